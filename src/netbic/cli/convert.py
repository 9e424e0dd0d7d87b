"""netbic convert: a matrix of any form as blocks of samples, for data larger than memory."""

from __future__ import annotations

from typing import Any

import click

import netbic
from netbic.cli.command import Command, File, listed, progress_bar, reads_expression, say


class ConvertCommand(Command):
    """A command that writes all or nothing."""

    not_begun = "nothing was written"
    kept = "nothing was written"


@click.command(cls=ConvertCommand)
@click.argument("expression", type=File)
@click.argument("out", type=click.Path(path_type=str))
@reads_expression
@click.option("--block-rows", type=click.IntRange(1), help="Samples per block [default: about 64 MB].")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), help="Precision [default: that of the file].")
@click.option("--force", is_flag=True, help="Replace a store of that name.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def convert(expression: str, out: str, quiet: bool, **words: Any) -> None:
    """Write EXPRESSION as a Zarr store OUT.zarr, from which netbic fit --dask reads samples block by block.

    EXPRESSION is a table (.tsv, .csv, .parquet; genes in rows), an .h5ad file, a .zarr store, an .npy array or a 10x
    folder; it may be larger than memory. OUT.zarr has AnnData's layout: anndata.read_zarr reads it too.
    """
    with progress_bar("per cent", 100, 0, quiet) as tell:
        made = netbic.io.convert(expression, out, **listed(words), told=tell)
    heights = made.matrix.chunks[0]
    kind = "sparse" if hasattr(made.matrix._meta, "indptr") else "dense"
    blocks = f"{len(heights):,} blocks of {heights[0]:,}" if len(heights) > 1 else "1 block"
    size = f"{made.shape[0]:,} samples x {made.shape[1]:,} genes"
    say(f"{out}: {size}, {kind} {made.matrix.dtype}, {blocks}", quiet)
    say(f"next: netbic fit {out} --graph NETWORK --out FOLDER --dask local", quiet)
