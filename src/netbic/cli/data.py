"""Commands about data: netbic align, convert, graph and simulate."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from click import option

from netbic.cli import options
from netbic.cli.command import Command, Progress, echo, in_options
from netbic.cli.fit import check_data

_ALL_OR_NOTHING = {"restart_hint": "nothing was written", "unchanged_hint": "nothing was written"}


@click.command(cls=Command)
@click.argument("expression", type=options.File)
@option("--graph", required=True, type=options.File, help="Network: SIF, edge table, STRING, GraphML, Parquet, .npz.")
@options.reads_dataset
@option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def align(expression: str, graph: str, as_json: bool, **reading: Any) -> None:
    """Report which genes of EXPRESSION are in the network, and how many edges connect them.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder.
    """
    from netbic.io.dataset import open_dataset

    dataset = open_dataset(expression, graph, **reading)
    if not as_json:
        echo(*map(in_options, dataset.alignment.lines()))
    dataset = check_data(dataset)
    if as_json:
        echo(json.dumps(dataset.alignment.to_dict(), indent=1))


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("expression", type=options.File)
@click.argument("out", type=click.Path(path_type=str))
@options.reads_expression
@option("--block-rows", type=options.COUNT, show_default="about 64 MB", help="Samples per block.")
@option("--dtype", type=click.Choice(["float32", "float64"]), show_default="as in the file", help="Type of numbers.")
@option("--force", is_flag=True, help="Replace an existing store.")
@options.quiet
def convert(expression: str, out: str, **given: Any) -> None:
    """Convert EXPRESSION to a Zarr store OUT.zarr, which netbic fit --dask reads in blocks of samples.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array or a 10x
    folder. It may be larger than memory. OUT.zarr has AnnData's layout and can also be read by anndata.read_zarr.
    """
    from netbic import io
    from netbic.arrays import kind_of

    with Progress({"percent": "converting"}) as progress:
        made = io.convert(expression, out, **given, progress=lambda percent: progress.update("percent", percent, 100))
    heights = made.matrix.chunks[0]
    blocks = f"{len(heights):,} blocks of {heights[0]:,}" if len(heights) > 1 else "1 block"
    size = f"{made.shape[0]:,} samples x {made.shape[1]:,} genes"
    echo(f"{out}: {size}, {kind_of(made.matrix._meta)} {made.matrix.dtype}, {blocks}")
    echo(f"next: netbic fit {out} --graph NETWORK --out FOLDER --dask local")


@click.command(cls=Command, **_ALL_OR_NOTHING)
@click.argument("reference", type=options.File)
@option("--out", required=True, type=options.Output, help="Network file to write (.npz).")
@option("--neighbours", default=10, type=options.COUNT, help="Most correlated genes to connect each gene to.")
@option("--absolute", is_flag=True, help="Use absolute correlations, not only positive ones.")
@options.reads_expression
@options.preprocesses_genes
@option("--force", is_flag=True, help="Replace an existing file.")
@options.quiet
def graph(reference: str, out: Path, neighbours: int, absolute: bool, force: bool, **reading: Any) -> None:
    """Connect each gene to its most correlated genes in REFERENCE, a study other than the one to analyse.

    REFERENCE is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array
    or a 10x folder. The network can be used by netbic fit --graph.
    """
    from netbic.graph import coexpression
    from netbic.io.dataset import open_dataset
    from netbic.storage.tables import check_network_file, write_network

    inputs = {"the reference data": reference, "the id map": reading["id_map"]}
    check_network_file(out, inputs, force=force)
    started = perf_counter()
    dataset = open_dataset(reference, **reading)
    if missing_text := dataset.expression.missing_entries():
        raise click.ClickException(f"{missing_text}: fill the missing entries, or remove those genes")
    made = coexpression(dataset.X, neighbours, positive=not absolute)
    named = made if made.names is not None else made.renamed(dataset.expression.genes)
    write_network(named, out, force=force, inputs=inputs)
    found = f"{made.n_edges:,} edges between genes correlated in {dataset.expression.shape[0]:,} samples"
    echo(
        f"{out}: {made.n_nodes:,} genes, {found} ({perf_counter() - started:.1f} s)",
        f"next: netbic fit EXPRESSION --graph {out} --diffusion cv --out FOLDER",
        "EXPRESSION must have other samples: with the same ones, their correlations would be used twice",
    )


@click.command(cls=Command)
@click.argument("folder", type=options.Output)
@option("--samples", default=400, type=click.IntRange(20), help="Number of samples.")
@option("--genes", default=3000, type=click.IntRange(50), help="Number of genes.")
@option("--modules", default=5, type=options.COUNT, help="Number of planted modules.")
@option("--strength", default=0.75, type=options.Finite(0, 100), help="Strength of the modules; 0.5 is hard to find.")
@options.seed
@option("--force", is_flag=True, help="Replace an earlier simulation in the folder.")
def simulate(folder: Path, samples: int, genes: int, modules: int, strength: float, seed: int, force: bool) -> None:
    """Write a simulated cohort: expression.tsv.gz, network.sif, labels.tsv and truth.tsv (what was planted)."""
    from netbic.files import recorded_files
    from netbic.simulate import cohort
    from netbic.storage.tables import write_cohort

    if "expression.tsv.gz" in recorded_files(folder) and not force:
        raise click.UsageError(
            f"{folder} already contains a simulation: choose another folder, or use --force to replace it"
        )
    write_cohort(cohort(samples, genes, n_modules=modules, strength=strength, random_state=seed), folder)
    click.echo(
        f"{folder}: expression.tsv.gz ({samples:,} samples x {genes:,} genes), network.sif, truth.tsv, labels.tsv"
    )
    data = f"{folder}/expression.tsv.gz --graph {folder}/network.sif"
    click.echo(f"next: netbic fit {data} --modules {modules} --out {folder}/modules")
