"""Commands about the results in a folder: netbic report, enrich, plot and export."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netbic.cli import options
from netbic.cli.command import Command, counted, echo, echo_report_is_older
from netbic.cli.options import File, Finite, Folder, Names, Output

if TYPE_CHECKING:
    from netbic.exports import Results

_ENRICHMENT = ("edges.tsv", "gene_sets.tsv", "enrichment.json")
_ENDINGS = (".pdf", ".png", ".svg")
_EXPORTS = {  # the file of each format, and the function of `netbic.exports` that writes it
    "gmt": ("modules.gmt", "write_gmt"),
    "lists": ("lists.txt", "write_lists"),
    "xlsx": ("modules.xlsx", "write_workbook"),
    "cytoscape": ("cytoscape", "write_cytoscape"),
    "membership": ("membership.tsv", "write_membership"),
}
_DPI = 200
_WITHOUT_NETWORK = "the modules were found without a network (netbic fit --graph)"


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.option("--out", type=Output, show_default="FOLDER/report.html", help="File to write.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def report(folder: Path, out: Path | None, force: bool) -> None:
    """Write the results in FOLDER as a single HTML file that can be opened in a browser or sent by e-mail.

    netbic fit already writes a report. Write it again after netbic enrich to include new gene sets.
    """
    from netbic.files import locked
    from netbic.report import write_report

    in_place = out is None or out.absolute().parent == folder.absolute()
    with locked(folder) if in_place else nullcontext():
        click.echo(f"{write_report(folder, out, force=force)}")


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.option("--gene-sets", type=File, help="GMT file with gene sets; results are written to FOLDER/gene_sets.tsv.")
@click.option("--level", default=0.05, type=Finite(0, 1), help="Largest adjusted p-value to report.")
@click.option(
    "--by-sign/--together",
    default=None,
    show_default="separately in modules with at least 10 genes on both sides",
    help="Test the genes with positive weights (up) and with negative weights (down) of a module separately, or all of "
    "them together.",
)
@click.option(
    "--collapse",
    type=Finite(0, 1),
    help="Omit gene sets whose genes in the module overlap those of a more significant set by at least this Jaccard "
    "index, e.g. 0.5.",
)
@options.seed
def enrich(folder: Path, gene_sets: str | None, seed: int, **given: Any) -> None:
    """Test the modules in FOLDER (written by netbic fit) for enrichment in network edges and gene sets.

    \b
    FOLDER/edges.tsv       edges inside each module, compared with random genes
                           (the paper's test) and random genes of the same degrees
                           and, where known, similar mean and variance
    FOLDER/gene_sets.tsv   enriched gene sets (with --gene-sets)
    """
    from netbic.enrichment import write_enrichment
    from netbic.files import check_not_input, locked
    from netbic.storage import load_modules

    model = load_modules(folder)
    if model.column_graph is None and gene_sets is None:
        raise click.UsageError("nothing to test: use --gene-sets, or fit with --graph")
    if gene_sets is None and (given["by_sign"] is not None or given["collapse"] is not None):
        raise click.UsageError("--by-sign, --together and --collapse need --gene-sets")
    check_not_input([folder / name for name in _ENRICHMENT], {"the gene sets": gene_sets})
    with locked(folder):
        echo(*(f"{folder}/{line}" for line in write_enrichment(model, folder, gene_sets, **given, random_state=seed)))
    echo_report_is_older(folder)


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.option("--format", "kind", required=True, type=click.Choice(list(_EXPORTS)), help="What to write, see above.")
@click.option(
    "--out",
    type=Output,
    show_default="FOLDER/modules.gmt, lists.txt, modules.xlsx, cytoscape or membership.tsv",
    help="File to write; for cytoscape, and for lists unless it ends in .txt, a new folder.",
)
@click.option("--expression", type=File, show_default="where they were", help="The data of the fit (membership).")
@click.option("--force", is_flag=True, help="Replace existing files.")
def export(folder: Path, kind: str, out: Path | None, expression: str | None, force: bool) -> None:
    """Write the modules in FOLDER (written by netbic fit) for other programs and other people.

    \b
    gmt        the genes of each module and side as gene sets (GSEA, Enrichr, ...)
    lists      plain lists of genes and samples, per module and side
    xlsx       a workbook: summary, a sheet per module, gene sets, associations
    cytoscape  the network of each module as GraphML and Cytoscape JSON
    membership correlation of every gene with the scores of every module (kME)

    Up are genes with positive weights, down those with negative weights.
    """
    from netbic import exports
    from netbic.files import locked
    from netbic.storage import read_again

    if expression is not None and kind != "membership":
        raise click.UsageError("--expression is for --format membership")
    name, write = _EXPORTS[kind]
    path = folder / name if out is None else out
    in_place = path.absolute().parent == folder.absolute()
    with locked(folder) if in_place else nullcontext():
        results = exports.Results.of(folder)
        modules = counted(results.n_modules, "module")
        if kind == "cytoscape" and results.model.column_graph is None:
            raise click.UsageError(f"{_WITHOUT_NETWORK}: there is none to export")
        data, size = [], modules
        if kind == "membership":
            expressed = read_again(str(folder), expression)
            data, size = [expressed.matrix], f"{len(expressed.genes):,} genes by {modules}"
        echo(f"{getattr(exports, write)(results, *data, path, force=force)}: {size}")


_USED = {  # options that each kind of figure uses
    "heatmap": {"module", "annotate", "expression"},
    "network": {"module"},
    "associations": set[str](),
    "scores": {"module", "annotate"},
    "survival": {"module", "survival", "until"},
}


@click.command(cls=Command)
@click.argument("folder", type=Folder)
@click.argument("kind", type=click.Choice(list(_USED)))
@click.option("--out", required=True, type=Output, help="File to write: .pdf, .png or .svg.")
@click.option("--module", type=int, show_default="1; for heatmap all", help="Number of the module.")
@click.option(
    "--annotate", type=Names(), metavar="NAME,...", help="Columns of the sample table to draw (heatmap, scores)."
)
@click.option(
    "--survival",
    type=Names(2),
    metavar="TIME,EVENT",
    show_default="those of netbic associate --survival",
    help="Columns of the sample table with times and events (survival).",
)
@click.option("--until", type=Finite(0, min_open=True), help="End of the time axis (survival).")
@click.option("--expression", type=File, show_default="where they were", help="The data of the fit (heatmap).")
@click.option("--width", type=Finite(1, 100), help="Width of the figure in inches.")
@click.option("--height", type=Finite(1, 100), help="Height of the figure in inches.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def plot(folder: Path, kind: str, out: Path, force: bool, width: float, height: float, **given: Any) -> None:
    """Draw a figure of the modules in FOLDER (written by netbic fit).

    \b
    heatmap       the data of the samples and genes of the modules
    network       the network between the genes of a module
    associations  modules by variables of the sample table (see netbic associate)
    scores        the scores of the samples in a module
    survival      Kaplan-Meier curves of a module
    """
    from netbic import pl
    from netbic.exports import Results
    from netbic.files import check_output_file, recorded_paths, write_atomic
    from netbic.storage import read_again

    for name, value in given.items():
        if value is not None and name not in _USED[kind]:
            raise click.UsageError(f"--{name} has no effect on {kind}: leave it out")
    if out.suffix.lower() not in _ENDINGS:
        raise click.UsageError(f"--out {out}: the name must end in .pdf, .png or .svg")
    module, expression = given["module"], given["expression"]
    inputs: Any = {"the results": recorded_paths(folder), "the data": expression}
    check_output_file(out, inputs, force=force)
    results = Results.of(folder)
    if module is not None and module not in results.modules:
        has = f"modules are numbered from 1; {folder} has {results.n_modules}"
        raise click.UsageError(f"--module {module}: {has}")
    number = 1 if module is None else module
    names: Any = results.names
    beside = {"names": names} | _annotation(results, folder, given["annotate"])
    associate = f"run netbic associate {folder} --sample-info TABLE"
    if kind == "heatmap":
        data, chosen = read_again(folder, expression), None if module is None else [number]
        draw = partial(pl.heatmap, results.model, data.matrix, modules=chosen, **beside)
    elif kind == "network":
        if results.model.column_graph is None:
            raise click.UsageError(f"{_WITHOUT_NETWORK}: there is none to draw")
        draw = partial(pl.network, results.model, number, names=names)
    elif kind == "associations":
        if (tests := results.tables.get("associations")) is None:
            raise click.UsageError(f"{folder} has no associations.tsv: {associate}")
        draw = partial(pl.associations, tests, names=names)
    elif kind == "scores":
        if (samples := results.tables.get("samples")) is None:
            raise click.UsageError(f"{folder} has no samples.tsv: write the modules by netbic fit")
        draw = partial(pl.scores, samples, module=number, **beside)
    else:
        if results.sample_info is None:
            raise click.UsageError(f"survival needs {folder}/sample_info.tsv: {associate} --survival TIME,EVENT")
        columns: Any = tuple(given["survival"] or ()) or None
        draw = partial(pl.survival, folder, number, survival=columns, until=given["until"])
    content = _drawn(draw, out.suffix.lower()[1:], (width, height))
    check_output_file(out, inputs, force=force)  # it may have been created meanwhile
    write_atomic(out, content)
    click.echo(f"{out}")


def _annotation(results: Results, folder: Path, names: list[str] | None) -> dict[str, Any]:
    """Columns of the sample table, and the colours of all labels that were tested, as in the report."""
    from netbic.association import stored_record, stored_variables
    from netbic.pl.base import variable_colours

    if not names:
        return {"annotation": None, "colours": {}}
    if (info := results.sample_info) is None:
        what = f"--annotate needs {folder}/sample_info.tsv"
        raise click.UsageError(f"{what}: run netbic associate {folder} --sample-info TABLE")
    if missing := [name for name in names if name not in info]:
        known = ", ".join(info.columns)
        raise click.UsageError(f"--annotate {missing[0]}: the sample table has no such column (there are: {known})")
    if (tests := results.tables.get("associations")) is None:
        return {"annotation": info[names], "colours": {}}
    tested, found = set(tests["variable"]), stored_variables(info, stored_record(folder))[0]
    labels = [each for each in found if each.kind == "categorical" and each.name in tested]
    return {"annotation": info[names], "colours": variable_colours(labels)}


def _drawn(draw: Callable[..., Any], kind: str, size: tuple[float | None, float | None]) -> bytes:
    """The figure as a file; drawn again if it gets another size, because names are written where they fit."""
    import io

    from netbic.errors import import_optional

    import_optional("matplotlib", "plot", "a figure").use("agg")
    import matplotlib.pyplot as plt

    figure = draw(ax=None).get_figure()
    if any(size):
        given = [new or own for new, own in zip(size, figure.get_size_inches().tolist(), strict=True)]
        plt.close(figure)
        figure = draw(ax=plt.subplots(figsize=given, layout="constrained")[1]).get_figure()
    content = io.BytesIO()
    with plt.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42}):  # text that can be edited
        figure.savefig(content, format=kind, dpi=_DPI)
    plt.close(figure)
    return content.getvalue()
