"""Zarr arrays that must not be read: those that would run code, and those that promise far more than there is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from netbic.io.errors import unusable

_ALWAYS_ALLOWED = 1 << 28  # bytes that a header may promise, whatever is in the store
_MOST_UNPACKED = 20_000  # times the bytes in the store: what compressors make of zeros
_FEW_CHUNKS = 10_000
_MOST_ABSENT = 100  # chunks that may be absent for each that is there


def check_zarr(path: Path, array: Any) -> None:
    """Raise if reading a Zarr array would unpickle something, or fill the memory with what is not in the store.

    Anything but a Zarr array is let through.
    """
    kind = type(array)
    if kind.__name__ != "Array" or not kind.__module__.startswith("zarr."):
        return
    if any("pickle" in name for name in _codecs(array.metadata)):
        raise unusable(path, f"{array.path} holds pickled objects, which may run code", "write it again without")
    _check_size(path, array)


def _codecs(metadata: Any) -> list[str]:
    """Names of what chunks are packed with: Zarr 2 has filters and a compressor, Zarr 3 a list."""
    if metadata.zarr_format == 2:
        return [str(codec.codec_id) for codec in (*(metadata.filters or ()), metadata.compressor) if codec is not None]
    return [str(codec.to_dict().get("name", "")) for codec in metadata.codecs]


def _check_size(path: Path, array: Any) -> None:
    chunk = math.prod(array.chunks) * _item_bytes(array)  # Python's integers do not overflow
    promised = max(math.prod(array.shape) * _item_bytes(array), chunk)
    if promised > _ALWAYS_ALLOWED and promised > _MOST_UNPACKED * (stored := int(array.nbytes_stored())):
        what = f"{array.path or 'the array'} is {promised:,} bytes by its header, but only {stored:,} are there"
        raise unusable(path, what, "copy or write it again")
    if array.nchunks > _FEW_CHUNKS and array.nchunks > _MOST_ABSENT * array.nchunks_initialized:
        what = f"{array.path or 'the array'} has {array.nchunks:,} chunks by its header, nearly all of which are absent"
        raise unusable(path, what, "copy or write it again")


def _item_bytes(array: Any) -> int:
    return max(int(np.dtype(array.dtype).itemsize), 1)
