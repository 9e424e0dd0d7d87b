"""netbic score: new samples on modules found before."""

from __future__ import annotations

from pathlib import Path

import click

import netbic
from netbic.cli.command import Command, File


@click.command(cls=Command)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("expression", type=File)
@click.option("--out", type=click.Path(path_type=Path), help="Table to write; without it, it is printed.")
def score(folder: Path, expression: str, out: Path | None) -> None:
    """Score the samples of EXPRESSION on the modules that netbic fit wrote into FOLDER.

    The file is read and prepared as that of the fit was; genes are matched by name.
    """
    model = netbic.load(folder)
    data = netbic.io.read_like(folder, expression)
    scores = netbic.io.scores_by_name(model, data.matrix, data.genes)
    table = netbic.io.scores_table(scores, data.samples)
    if out is None:
        click.echo(table.to_csv(sep="\t", index=False), nl=False)
    else:
        netbic.io.write_table(out, table)
        click.echo(f"{len(table):,} samples x {scores.shape[1]} modules: {out}")
