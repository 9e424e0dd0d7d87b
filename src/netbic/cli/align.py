"""netbic align: how a network matches the data."""

from __future__ import annotations

import json
from typing import Any

import click

import netbic
from netbic.cli.checks import checked
from netbic.cli.command import Command, File, in_terms_of_command, reads_a_study, split_lists


@click.command(cls=Command)
@click.argument("expression", type=File)
@click.option(
    "--graph", required=True, type=File, help="Network file: SIF, edge table, STRING, GraphML, Parquet or .npz."
)
@reads_a_study
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def align(expression: str, graph: str, as_json: bool, **options: Any) -> None:
    """Report which genes of EXPRESSION are in the network, and how many edges connect them.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder.
    """
    study = netbic.io.open_dataset(expression, graph, **split_lists(options))
    for line in [] if as_json else map(in_terms_of_command, study.alignment.lines()):
        click.echo(line)
    study = checked(study, silent=as_json)
    if as_json:
        click.echo(json.dumps(study.alignment.to_dict(), indent=1))
