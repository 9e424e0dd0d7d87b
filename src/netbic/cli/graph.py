"""netbic graph: a network of the genes that are correlated in another study."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, echo, preprocesses_genes, reads_expression, split_lists


class GraphCommand(Command):
    """A command that writes all or nothing."""

    restart_hint = "nothing was written"
    unchanged_hint = "nothing was written"


@click.command(cls=GraphCommand)
@click.argument("reference", type=File)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Network file to write (.npz).")
@click.option("--neighbours", default=10, type=click.IntRange(1), help="Most correlated genes to connect each gene to.")
@click.option("--absolute", is_flag=True, help="Use absolute correlations, not only positive ones.")
@reads_expression
@preprocesses_genes
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def graph(reference: str, out: Path, neighbours: int, absolute: bool, force: bool, quiet: bool, **options: Any) -> None:
    """Connect each gene to its most correlated genes in REFERENCE, a study other than the one to analyse.

    REFERENCE is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. The network can be used by netbic fit --graph.
    """
    inputs = {"the reference data": reference, "the id map": options["id_map"]}
    netbic.storage.check_network_file(out, inputs, force=force)
    started = perf_counter()
    study = netbic.io.open_dataset(reference, **split_lists(options))
    if missing_text := study.expression.missing_entries():
        raise click.ClickException(f"{missing_text}: fill the missing entries, or remove those genes")
    made = netbic.graph.coexpression(study.X, neighbours, positive=not absolute)
    named = made if made.names is not None else made.renamed(study.expression.genes)
    netbic.storage.write_network(named, out, force=force, inputs=inputs)
    samples = f"correlated in {study.expression.shape[0]:,} samples"
    seconds = f"{perf_counter() - started:.1f} s"
    echo(f"{out}: {made.n_nodes:,} genes, {made.n_edges:,} edges between genes {samples} ({seconds})", quiet)
    echo(f"next: netbic fit EXPRESSION --graph {out} --diffusion cv --out FOLDER", quiet)
    echo("EXPRESSION must have other samples: with the same ones, their correlations would be used twice", quiet)
