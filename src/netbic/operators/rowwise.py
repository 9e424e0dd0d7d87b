"""Functions of a matrix that treat every row alike, for matrices in memory and Dask arrays."""

from __future__ import annotations

import uuid
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Bools, Indices, Matrix, kind_of
from netbic.operators.blocks import RowBlocks
from netbic.operators.executors import Function


def select_columns(X: Matrix, kept: Indices | Bools) -> Matrix:
    """Some columns of a matrix, by index or mask; tasks of a Dask array hold one bit per column."""
    if kind_of(X) != "dask":
        return X[:, kept]
    wanted = np.flatnonzero(kept) if kept.dtype == bool else np.asarray(kept)
    increasing = bool((np.diff(wanted) > 0).all())
    if wanted.size == X.shape[1] and increasing:
        return X
    mask = np.zeros(X.shape[1], dtype=bool)
    mask[wanted] = True
    return map_rows(X, _columns_of_rows, np.packbits(mask) if increasing else wanted, width=int(wanted.size))


def _columns_of_rows(block: Matrix, chosen: Array) -> Matrix:
    """Columns by index, or by a mask packed into bits."""
    if chosen.dtype == np.uint8:
        chosen = np.flatnonzero(np.unpackbits(chosen, count=block.shape[1]))
    return np.take(block, chosen, axis=1) if isinstance(block, np.ndarray) else block[:, chosen]


def map_rows(
    X: Matrix, function: Function, *arguments: Any, width: int | None = None, dtype: DTypeLike | None = None
) -> Matrix:
    """function(rows, arguments) of a matrix; for a Dask array of every block of rows, when it is read.

    `width` and `dtype` are those of the result, if they are not those of X.
    """
    if kind_of(X) != "dask":
        return function(X, *arguments)
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    chunks = (X.chunks[0], (X.shape[1] if width is None else width,))
    dtype = X.dtype if dtype is None else dtype
    meta = X._meta.astype(dtype)
    return X.map_blocks(function, *arguments, chunks=chunks, dtype=dtype, meta=meta, name=f"netbic-{uuid.uuid4().hex}")


def compute_rows(X: Matrix, function: Function, *arguments: Any) -> Array:
    """The array function(rows, arguments) of a matrix; of a Dask array or `RowBlocks`, from one pass over the blocks.

    Raises a ValueError that names the entry if a block has entries that are not finite.
    """
    X = RowBlocks(X, hold=False) if kind_of(X) == "dask" else X
    if not isinstance(X, RowBlocks):
        return np.asarray(function(X, *arguments))
    made = X.map_concatenate(function, *arguments)
    if not np.isfinite(made).all():
        X.check_finite()
    return made


def released(X: Matrix | RowBlocks) -> AbstractContextManager[None]:
    """A context at the end of which the blocks of X are released, if it has any."""
    return X.released() if isinstance(X, RowBlocks) else nullcontext()


def passes(X: Matrix | RowBlocks) -> float | None:
    """How often the blocks of X have been read; None for a matrix in memory."""
    return X.passes if isinstance(X, RowBlocks) else None
