"""Genes of modules as gene sets (GMT)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from netbic.exports.output import check_file, write_file
from netbic.exports.results import SIDES, Results, Source, label_of
from netbic.exports.text import plain


def write_gmt(source: Source, path: Path | str, *, force: bool = False) -> Path:
    """Write the genes of each module and side as gene sets, for GSEA, Enrichr, g:Profiler and others.

    A line of the file is a set: its name (module_1_up, module_1_down, ...), a description with the name of the module,
    the side and the verdict, and the genes by decreasing absolute weight, all separated by tabs. Sides without genes
    have no line.

    Parameters
    ----------
    source : fitted model, folder of a fit, or Results
    path : path
        Ends in .gmt as a rule. The file appears complete or not at all.
    force : bool
        Replace an existing file.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sets = netbic.io.read_gene_sets(netbic.exports.write_gmt(model, f"{folder}/modules.gmt"))
    >>> {name: len(genes) for name, genes in sets.items()}
    {'module_1_up': 28, 'module_1_down': 32}
    """
    results, path = Results.of(source), Path(path)
    check_file(results, path, force=force)
    return write_file(results, path, "".join(_lines(results)).encode(), force=force)


def _lines(results: Results) -> Iterator[str]:
    for module in range(results.n_modules):
        genes = results.genes(module)
        verdict = f", {results.verdicts[module]}" if results.verdicts[module] else ""
        for side in SIDES:
            own = genes.loc[genes["side"] == side, "name"].tolist()
            description = plain(f"{results.names[module]} ({label_of(module)}, genes {side}{verdict})")
            if own:
                yield "\t".join([f"module_{module + 1}_{side}", description, *own]) + "\n"
