"""netbic compare: match the modules of two fits. netbic replicate: look for modules in another study."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, echo_report_is_older, reads_expression, split_lists

_Folder = click.Path(exists=True, file_okay=False, path_type=Path)
_TABLE, _RECORD = "replication.tsv", "replication.json"


@click.command(cls=Command)
@click.argument("folder_a", metavar="DIR1", type=_Folder)
@click.argument("folder_b", metavar="DIR2", type=_Folder)
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="only printed", help="Write the table of matches to a file."
)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the similarities to a file (.pdf, .png or .svg).")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the permutations.")
def compare(folder_a: Path, folder_b: Path, out: Path | None, plot: Path | None, force: bool, seed: int) -> None:
    """Match the modules of two fits, and say which are the same, similar, new or gone.

    DIR1 and DIR2 are output folders of netbic fit (or of netbic.save). Modules are matched by their genes and, where
    samples have the same names, by their scores.
    """
    inputs = {
        "the modules": [path for each in (folder_a, folder_b) for path in netbic.files.recorded_paths(each)],
    }
    written = [path for path in (out, plot) if path is not None]
    if out is not None and plot is not None and out.absolute() == plot.absolute():
        raise click.UsageError(f"--out and --plot are the same file, {out}: name two files")
    _check_plot(plot)
    for path in written:
        netbic.files.check_output_file(path, inputs, force=force)
    found = netbic.compare(folder_a, folder_b, random_state=seed)
    if out is not None:
        netbic.io.write_table(out, found.table)
    if plot is not None:
        _draw(plot, found)
    for line in (found.verdict, *(f"  {reason}" for reason in found.table["reason"]), *map(str, written)):
        click.echo(line)


def _check_plot(path: Path | None) -> None:
    if path is not None and path.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise click.UsageError(f"--plot {path}: name a file that ends in .pdf, .png or .svg")


def _draw(path: Path, found: netbic.comparison.Comparison) -> None:
    drawn, content = netbic.pl.comparison(found), io.BytesIO()
    drawn.figure.canvas.figure.savefig(content, format=path.suffix[1:].lower())
    netbic.files.write_atomic(path, content.getvalue())


@click.command(cls=Command)
@click.argument("folder", type=_Folder)
@click.argument("other", type=File)
@click.option("--out", type=click.Path(path_type=Path), show_default="FOLDER/replication.tsv", help="Output table.")
@click.option("--force", is_flag=True, help="Replace an existing table that --out names.")
@click.option("--new-samples-only", is_flag=True, help="Leave out samples of OTHER that seem to be samples of the fit.")
@click.option("--draws", "n_draws", default=1000, type=click.IntRange(99), help="Random sets of genes per module.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Random seed for the random sets of genes.")
@reads_expression
def replicate(
    folder: Path, other: str, out: Path | None, force: bool, new_samples_only: bool, n_draws: int, seed: int,
    **options: Any,
) -> None:  # fmt: skip
    """Judge how far each module in FOLDER (of netbic fit or netbic.save) holds in another study.

    OTHER is a file with the expression data of that study, read and preprocessed like the data of the fit unless
    options say otherwise. Genes are matched by name, and centred and scaled in the other study.
    """
    model = netbic.storage.load_modules(folder)
    _check_table(folder, other, out, force)
    given = {name: value for name, value in split_lists(options).items() if value}
    data = netbic.storage.read_like(folder, other, **given)
    found = netbic.replicate(
        model, data.matrix, genes=list(data.genes), samples=list(data.samples), new_samples_only=new_samples_only,
        n_draws=n_draws, random_state=seed,
    )  # fmt: skip
    _check_table(folder, other, out, force)  # it may have been created meanwhile
    if out is not None:
        netbic.io.write_table(out, found.table)
    else:
        with netbic.io.locked(folder):
            _write(folder, other, found)
    for line in _answer(model, found):
        click.echo(line)
    click.echo(f"{folder / _TABLE if out is None else out}")
    if out is None:
        echo_report_is_older(folder)


def _write(folder: Path, other: str, found: netbic.comparison.Replication) -> None:
    """Write the table and, for the report, which study it is about."""
    record: dict[str, Any] = {
        "study": Path(other).name,
        "n_genes": found.n_genes,
        "n_samples": found.n_samples,
        "n_shared": found.n_shared,
        "verdict": found.verdict,
    }
    table = netbic.files.table_bytes(folder / _TABLE, found.table)
    netbic.files.add_files(folder, {_TABLE: table, _RECORD: netbic.files.json_bytes(record)})


def _answer(model: netbic.SparseGraphSVD, found: netbic.comparison.Replication) -> Iterator[str]:
    """The verdict and a line per module."""
    yield found.verdict
    if found.n_shared:
        yield "--new-samples-only leaves these samples out"
    top_genes = netbic.storage.summary_table(model)["top_genes"]
    for number, (genes, reason) in enumerate(zip(top_genes, found.table["reason"], strict=True), start=1):
        yield f"  module {number} ({', '.join(genes.split(', ')[:3])}, ...): {reason}"


def _check_table(folder: Path, other: str, out: Path | None, force: bool) -> None:
    """Refuse to replace an input or a file of the user's."""
    inputs: dict[str, str | list[Path]] = {"the other study": other}
    if out is None:
        netbic.files.check_writable(folder, [_TABLE, _RECORD], inputs)
    else:
        inputs["the modules"] = netbic.files.recorded_paths(folder)
        netbic.files.check_output_file(out, inputs, force=force)
