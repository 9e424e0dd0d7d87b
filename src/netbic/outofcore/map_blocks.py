"""A Dask array changed block by block, by small tasks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def of_columns(X: Any, kept: NDArray[Any]) -> Any:
    """Some columns of a Dask array, by index or mask; tasks hold a bit per column."""
    wanted = np.flatnonzero(kept) if kept.dtype == bool else np.asarray(kept)
    mask = np.zeros(X.shape[1], dtype=bool)
    mask[wanted] = True
    if wanted.size == X.shape[1] and (np.diff(wanted) > 0).all():
        return X
    chosen = np.packbits(mask) if (np.diff(wanted) > 0).all() else wanted
    return by_blocks(X, columns_of_rows, chosen, width=int(wanted.size))


def columns_of_rows(block: Any, chosen: NDArray[Any]) -> Any:
    """Columns by index, or by a mask packed into bits."""
    if chosen.dtype == np.uint8:
        chosen = np.flatnonzero(np.unpackbits(chosen, count=block.shape[1]))
    return np.take(block, chosen, axis=1) if isinstance(block, np.ndarray) else block[:, chosen]


def by_blocks(
    X: Any, function: Callable[..., Any], *arguments: Any, width: int | None = None, dtype: Any = None
) -> Any:
    """function(block, arguments) for every block of rows of a Dask array."""
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    chunks = (X.chunks[0], (X.shape[1] if width is None else width,))
    dtype = X.dtype if dtype is None else dtype
    meta = X._meta.astype(dtype)
    return X.map_blocks(function, *arguments, chunks=chunks, dtype=dtype, meta=meta, name=f"netbic-{uuid.uuid4().hex}")
