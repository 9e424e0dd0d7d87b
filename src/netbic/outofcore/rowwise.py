"""Functions of a matrix that treat every row alike, for matrices in memory and Dask arrays."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Bools, Indices, Matrix, kind_of
from netbic.outofcore.executors import Function


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
