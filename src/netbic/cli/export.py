"""netbic export: modules in the formats of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import click

import netbic
from netbic.cli.command import Command, File
from netbic.cli.wording import counted

_TARGETS = {"gmt": "modules.gmt", "lists": "lists.txt", "xlsx": "modules.xlsx", "cytoscape": "cytoscape"}
_TARGETS |= {"membership": "membership.tsv"}


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--format", "kind", required=True, type=click.Choice(list(_TARGETS)), help="What to write, see above.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="FOLDER/modules.gmt, lists.txt, modules.xlsx, cytoscape or membership.tsv",
    help="File to write; for cytoscape, and for lists unless it ends in .txt, a new folder.",
)
@click.option(
    "--expression",
    type=File,
    show_default="where they were at the fit",
    help="The data of the fit (membership).",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def export(folder: Path, kind: str, out: Path | None, expression: str | None, force: bool) -> None:
    """Write the modules in FOLDER (written by netbic fit) for other programs and other people.

    \b
    gmt        the genes of each module and side as gene sets (GSEA, Enrichr, ...)
    lists      plain lists of genes and samples, per module and side
    xlsx       a workbook: summary, a sheet per module, gene sets, associations
    cytoscape  the network of each module as GraphML and Cytoscape JSON
    membership correlation of every gene with the scores of every module (kME)

    Up are genes with positive weights, down those with negative weights. Modules count from 1, as in the report.
    """
    if expression is not None and kind != "membership":
        raise click.UsageError("--expression is for --format membership")
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
