"""netbic align: what of a network matches the data."""

from __future__ import annotations

import json
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, listed, reads_a_study


@click.command(cls=Command)
@click.argument("expression", type=File)
@click.option(
    "--graph", required=True, type=File, help="The network: SIF, edge table, STRING, GraphML, Parquet or .npz."
)
@reads_a_study
@click.option("--json", "as_json", is_flag=True, help="Print the account as JSON.")
def align(expression: str, graph: str, as_json: bool, **words: Any) -> None:
    """Say which genes of EXPRESSION the network knows, and which edges that leaves.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder.
    """
    study = netbic.io.open_study(expression, graph, **listed(words))
    if as_json:
        click.echo(json.dumps(study.alignment.to_dict(), indent=1))
        return
    for line in study.alignment.lines():
        click.echo(line)
