"""netbic convert: store a matrix in blocks of samples, for data larger than memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, echo, reads_expression, split_lists
from netbic.cli.progress import Progress


class ConvertCommand(Command):
    """A command that writes all or nothing."""

    restart_hint = "nothing was written"
    unchanged_hint = "nothing was written"


@click.command(cls=ConvertCommand)
@click.argument("expression", type=File)
@click.argument("out", type=click.Path(path_type=str))
@reads_expression
@click.option("--block-rows", type=click.IntRange(1), show_default="about 64 MB", help="Samples per block.")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), show_default="as in the file", help="Floating-point type."
)
@click.option("--force", is_flag=True, help="Replace an existing store.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
def convert(expression: str, out: str, quiet: bool, **options: Any) -> None:
    """Convert EXPRESSION to a Zarr store OUT.zarr, which netbic fit --dask reads in blocks of samples.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array or a 10x
    folder. It may be larger than memory. OUT.zarr has AnnData's layout and can also be read by anndata.read_zarr.
    """
    with Progress({"percent": "converting"}, quiet) as progress:
        update = partial(progress.update, "percent", total=100)
        made = netbic.io.convert(expression, out, **split_lists(options), progress=update)
    from netbic.arrays import kind_of

    heights = made.matrix.chunks[0]
    kind = kind_of(made.matrix._meta)
    blocks = f"{len(heights):,} blocks of {heights[0]:,}" if len(heights) > 1 else "1 block"
    size = f"{made.shape[0]:,} samples x {made.shape[1]:,} genes"
    echo(f"{out}: {size}, {kind} {made.matrix.dtype}, {blocks}", quiet)
    echo(f"next: netbic fit {out} --graph NETWORK --out FOLDER --dask local", quiet)
