"""netbic export: modules in the formats of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import click

import netbic
from netbic.cli.command import Command, File
from netbic.cli.wording import counted

_TARGETS = {"gmt": "modules.gmt", "lists": "lists.txt", "xlsx": "modules.xlsx", "gct": "scores.gct"}
_TARGETS |= {"cytoscape": "cytoscape", "membership": "membership.tsv"}


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "kind", required=True, type=click.Choice(list(_TARGETS)), help="What to write, see above.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="FOLDER/modules.gmt, lists.txt, modules.xlsx, scores.gct, cytoscape or membership.tsv",
    help="File to write; for cytoscape, and for lists unless it ends in .txt, a new folder.",
)
@click.option(
    "--expression",
    type=File,
    show_default="where they were at the fit",
    help="The data of the fit (gct, membership).",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def export(folder: Path, kind: str, out: Path | None, expression: str | None, force: bool) -> None:
    """Write the modules in FOLDER (written by netbic fit) for other programs and other people.

    \b
    gmt        the genes of each module and side as gene sets (GSEA, Enrichr, ...)
    lists      plain lists of genes and samples, per module and side
    xlsx       a workbook: summary, a sheet per module, gene sets, associations
    gct        scores and expression, GCT 1.3 (Morpheus)
    cytoscape  the network of each module as GraphML and Cytoscape JSON
    membership correlation of every gene with the scores of every module (kME)

    Up are genes with positive weights, down those with negative weights. Modules count from 1, as in the report.
    """
    if expression is not None and kind not in ("gct", "membership"):
        raise click.UsageError("--expression is for --format gct and membership")
    path = folder / _TARGETS[kind] if out is None else out
    in_place = path.absolute().parent == folder.absolute()
    with netbic.io.locked(folder) if in_place else nullcontext():
        results = netbic.exports.Results.of(folder)
        for line in _written(results, kind, path, expression, force):
            click.echo(line)


def _written(
    results: netbic.exports.Results, kind: str, path: Path, expression: str | None, force: bool
) -> Iterator[str]:
    """Write the files; yields a line about each."""
    modules = counted(results.n_modules, "module")
    if kind == "gct":
        yield f"{netbic.exports.write_scores_gct(results, path, force=force)}: scores of {modules}"
        yield _expression(results, path, expression, force)
        return
    if kind == "membership":
        data = netbic.storage.read_again(str(results.folder), expression)
        written = netbic.exports.write_membership(results, data.matrix, path, force=force)
        yield f"{written}: {len(data.genes):,} genes by {modules}"
        return
    if kind == "cytoscape" and results.model.column_graph is None:
        raise click.UsageError("the modules were found without a network (netbic fit --graph): there is none to export")
    writers: dict[str, Callable[..., Path]] = {
        "gmt": netbic.exports.write_gmt,
        "lists": netbic.exports.write_lists,
        "xlsx": netbic.exports.write_workbook,
        "cytoscape": netbic.exports.write_cytoscape,
    }
    yield f"{writers[kind](results, path, force=force)}: {modules}"


def _expression(results: netbic.exports.Results, path: Path, expression: str | None, force: bool) -> str:
    """Write the expression of the genes next to the scores, if the data can be read; says what happened."""
    beside = path.with_name("expression.gct" if path.name == _TARGETS["gct"] else f"{path.stem}_expression.gct")
    folder = results.folder
    try:
        data = netbic.storage.read_again(str(folder), expression)
    except netbic.InputError as problem:
        if expression is not None:
            raise
        return f"no expression of the genes: {problem}".replace("`expression`", "--expression")
    written = netbic.exports.write_expression_gct(results, data.matrix, beside, force=force)
    return f"{written}: expression of the genes of the modules"
