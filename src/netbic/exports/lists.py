"""Names of genes and samples as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from netbic.exports.output import check_file, check_folder, write_file, write_folder
from netbic.exports.results import SIDES, Results, Source, label_of
from netbic.exports.text import plain


def write_lists(source: Source, path: Path | str, *, force: bool = False) -> Path:
    """Write the genes and samples of each module and side as plain lists, a name per line.

    Genes are ordered by decreasing absolute weight, samples by decreasing absolute score. Samples are listed where they
    form groups, or where the fit selected some of them; all samples of a gradient would be no list of members.

    Parameters
    ----------
    source : fitted model, folder of a fit, or Results
    path : path
        If it ends in .txt, all lists are written to this file, each after a line that starts with #. Otherwise a
        folder for one file per list: module_1_genes_up.txt, module_1_samples_down.txt, ...
    force : bool
        Replace existing files of these names.

    Returns
    -------
    Path
        The file or folder that was written.

    Examples
    --------
    >>> import pathlib, tempfile, netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> results = netbic.exports.Results.of(model, study.expression)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = netbic.exports.write_lists(results, f"{folder}/lists")
    ...     sorted(file.name for file in written.iterdir())  # doctest: +NORMALIZE_WHITESPACE
    ['module_1_genes_down.txt', 'module_1_genes_up.txt', 'module_1_samples_down.txt', 'module_1_samples_up.txt']
    """
    results, path = Results.of(source), Path(path)
    if path.suffix.lower() == ".txt":
        check_file(results, path, force=force)
        blocks = [_block(results, *each) for each in _lists(results)]
        return write_file(results, path, "\n".join(blocks).encode(), force=force)
    check_folder(results, path, force=force)
    contents = {
        f"module_{module + 1}_{kind}_{side}.txt": "".join(f"{name}\n" for name in names).encode()
        for module, kind, side, names in _lists(results)
    }
    return write_folder(results, path, contents, force=force)


def _lists(results: Results) -> Iterator[tuple[int, str, str, list[str]]]:
    """Module, "genes" or "samples", side and names of each list that is not empty."""
    for module in range(results.n_modules):
        genes = results.genes(module)
        by_side = {side: genes.loc[genes["side"] == side, "name"].tolist() for side in SIDES}
        for kind, lists in (("genes", by_side), ("samples", results.samples_by_side(module))):
            yield from ((module, kind, side, names) for side, names in lists.items() if names)


def _block(results: Results, module: int, kind: str, side: str, names: list[str]) -> str:
    title = plain(f"{label_of(module)}: {len(names):,} {kind} {side} ({results.names[module]})")
    return "".join(f"{line}\n" for line in (f"# {title}", *names))
