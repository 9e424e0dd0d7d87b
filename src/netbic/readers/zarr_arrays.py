"""Zarr arrays whose headers, or whose chunks of strings, promise far more than there is in the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from netbic.errors import extra, unusable

_ALWAYS_ALLOWED = 1 << 28  # bytes that a header may promise, whatever is in the store
_MOST_UNPACKED = 20_000  # times the bytes in the store: what compressors make of zeros
_FEW_CHUNKS = 10_000
_MOST_ABSENT = 100  # chunks that may be absent for each that is there
_STRINGS = ("vlen-utf8", "vlen-bytes")
_PACKINGS = ("blosc", "gzip", "zstd")  # which Zarr 3 and numcodecs call the same


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
    if array.ndim == 1 and (packings := _packings_of_strings(array.metadata)) is not None:
        _check_strings(path, array, packings, n_chunks)


def _packings_of_strings(metadata: Any) -> list[Any] | None:
    """What has to be undone, in this order, before a chunk is strings; None where it holds none or that is not known.

    Zarr 2 has filters and then a compressor, Zarr 3 a list of codecs.
    """
    if metadata.zarr_format == 2:
        filters = list(metadata.filters or ())
        names = [codec.codec_id for codec in filters]
        at = next((place for place, name in enumerate(names) if name in _STRINGS), None)
        packings = [*filters[1 + (at or 0) :], metadata.compressor]
        return None if at is None else [codec for codec in reversed(packings) if codec is not None]
    codecs = [codec.to_dict() for codec in metadata.codecs]
    if codecs[0]["name"] not in _STRINGS or any(codec["name"] not in _PACKINGS for codec in codecs[1:]):
        return None
    numcodecs = extra("numcodecs", "dask", "a .zarr store")
    return [numcodecs.get_codec({"id": codec["name"]}) for codec in reversed(codecs[1:])]


def _check_strings(path: Path, array: Any, packings: Sequence[Any], n_chunks: int) -> None:
    """Raise if a chunk says that it holds more strings than it has room for: memory would be taken for all of them."""
    for number in range(n_chunks):
        name = array.metadata.encode_chunk_key((number,))
        file = path / array.path / name
        content = file.read_bytes() if file.is_file() else b""
        for packing in packings if content else ():
            content = bytes(packing.decode(content))
        count = int.from_bytes(content[:4], "little")
        if count > array.chunks[0]:
            what = f"{array.path}/{name} has {count:,} strings by its header, but room for {array.chunks[0]:,}"
            raise unusable(path, what, "copy or write it again")


def _has_files(folder: Path, count: int) -> bool:
    return len(list(islice(folder.rglob("*"), count))) == count
