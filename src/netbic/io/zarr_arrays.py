"""Zarr arrays whose headers promise far more than there is in the store."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from netbic.errors import unusable

_ALWAYS_ALLOWED = 1 << 28  # bytes that a header may promise, whatever is in the store
_MOST_UNPACKED = 20_000  # times the bytes in the store: what compressors make of zeros
_FEW_CHUNKS = 10_000
_MOST_ABSENT = 100  # chunks that may be absent for each that is there


def check_zarr(path: Path, array: Any) -> None:
    """Raise if reading a Zarr array would fill the memory, or take for ever, with what is not in the store.

    Chunks that are absent stand for the fill value, so that a header of a few bytes can promise any number of them.
    Anything but a Zarr array is let through.
    """
    kind = type(array)
    if kind.__name__ != "Array" or not kind.__module__.startswith("zarr."):
        return
    name = array.path or "the array"
    item = max(int(np.dtype(array.dtype).itemsize), 1)
    promised = max(math.prod(array.shape), math.prod(array.chunks)) * item  # Python's integers do not overflow
    if promised > _ALWAYS_ALLOWED and promised > _MOST_UNPACKED * (stored := int(array.nbytes_stored())):
        what = f"{name} is {promised:,} bytes by its header, but only {stored:,} are there"
        raise unusable(path, what, "copy or write it again")
    pieces = zip(array.shape, array.shards or array.chunks, strict=True)
    n_chunks = math.prod(-(-size // max(piece, 1)) for size, piece in pieces)
    if n_chunks > _FEW_CHUNKS and not _has_files(path / array.path, n_chunks // _MOST_ABSENT):
        what = f"{name} has {n_chunks:,} chunks by its header, nearly all of which are absent"
        raise unusable(path, what, "copy or write it again")


def _has_files(folder: Path, count: int) -> bool:
    return len(list(islice(folder.rglob("*"), count))) == count
