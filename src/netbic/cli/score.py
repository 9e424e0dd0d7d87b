"""netbic score: new samples on modules found before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, listed, reads_expression


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("expression", type=File)
@click.option("--out", type=click.Path(path_type=Path), help="Table to write; without it, it is printed.")
@click.option("--force", is_flag=True, help="Replace the table that --out names.")
@reads_expression
def score(folder: Path, expression: str, out: Path | None, force: bool, **words: Any) -> None:
    """Score the samples of EXPRESSION on the modules that netbic fit (or netbic.save) wrote into FOLDER.

    The file is read and prepared as that of the fit was, but for what the options say; genes are matched by name.
    """
    inputs: dict[str, str | list[Path]] = {
        "the samples to score": expression,
        "the modules": netbic.files.recorded_paths(folder),
    }
    if out is not None:
        netbic.files.check_output_file(out, inputs, force=force)
    model = netbic.load(folder)
    given = {name: value for name, value in listed(words).items() if value}
    data = netbic.io.read_like(folder, expression, **given)
    if model.missing == "error" and (holes := data.holes()):
        raise click.ClickException(f"{holes}: fill them, or fit with --missing ignore to score by what is observed")
    scores = netbic.io.scores_by_name(model, data.matrix, data.genes)
    table = netbic.io.scores_table(scores, data.samples)
    if out is None:
        click.echo(table.to_csv(sep="\t", index=False), nl=False)
    else:
        netbic.files.check_output_file(out, inputs, force=force)  # something may have come to be there
        netbic.io.write_table(out, table)
        click.echo(f"{len(table):,} samples x {scores.shape[1]} modules: {out}")
