"""Zarr arrays whose headers, or whose chunks of strings, declare far more than there is in the store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from netbic.errors import import_optional, unusable

_ALWAYS_ALLOWED = 1 << 28  # bytes that a header may declare, whatever is in the store
_MOST_UNPACKED = 20_000  # times the bytes in the store: what compressors make of zeros
_FEW_CHUNKS = 10_000
_MOST_ABSENT = 100  # chunks that may be absent for each that is present
_STRINGS = ("vlen-utf8", "vlen-bytes")
_COMPRESSORS = ("blosc", "gzip", "zstd")  # with the same names in Zarr 3 and numcodecs
_SHARDS = "sharding_indexed"


def check_zarr(path: Path, array: Any) -> None:
    """Raise if reading a Zarr array would fill the memory, or not end, with data that is not in the store.

    Absent chunks are read as the fill value, so that a header of a few bytes can declare any number of them.
    Arrays of other libraries are not checked.
    """
    kind = type(array)
    if kind.__name__ != "Array" or not kind.__module__.startswith("zarr."):
        return
    name = array.path or "the array"
    item = max(int(np.dtype(array.dtype).itemsize), 1)
    declared = max(math.prod(array.shape), math.prod(array.chunks)) * item  # Python's integers do not overflow
    if declared > _ALWAYS_ALLOWED and declared > _MOST_UNPACKED * (stored := int(array.nbytes_stored())):
        what = f"{name} is {declared:,} bytes by its header, but only {stored:,} are there"
        raise unusable(path, what, "copy or write it again")
    pieces = zip(array.shape, array.shards or array.chunks, strict=True)
    n_chunks = math.prod(-(-size // max(piece, 1)) for size, piece in pieces)
    if n_chunks > _FEW_CHUNKS and not _has_files(path / array.path, n_chunks // _MOST_ABSENT):
        what = f"{name} has {n_chunks:,} chunks by its header, nearly all of which are absent"
        raise unusable(path, what, "copy or write it again")
    if array.ndim == 1 and (compressors := _compressors_of_strings(array.metadata)) is not None:
        _check_strings(path, array, compressors, n_chunks)


def _compressors_of_strings(metadata: Any) -> list[Any] | None:
    """What decodes the bytes of a chunk, in this order, before its strings; None if it holds none, or if unknown.

    Zarr 2 has filters and a compressor, Zarr 3 a list of codecs, which shards apply to each of their chunks.
    """
    if metadata.zarr_format == 2:
        filters = list(metadata.filters or ())
        names = [codec.codec_id for codec in filters]
        at = next((place for place, name in enumerate(names) if name in _STRINGS), None)
        compressors = [*filters[1 + (at or 0) :], metadata.compressor]
        return None if at is None else [codec for codec in reversed(compressors) if codec is not None]
    codecs = [codec.to_dict() for codec in metadata.codecs]
    if codecs[0]["name"] == _SHARDS:
        codecs = list(codecs[0]["configuration"]["codecs"])
    if codecs[0]["name"] not in _STRINGS or any(codec["name"] not in _COMPRESSORS for codec in codecs[1:]):
        return None
    numcodecs = import_optional("numcodecs", "dask", "a .zarr store")
    return [numcodecs.get_codec({"id": codec["name"]}) for codec in reversed(codecs[1:])]


def _check_strings(path: Path, array: Any, compressors: Sequence[Any], n_files: int) -> None:
    """Raise if a chunk declares more strings than it has room for: memory would be allocated for all of them."""
    for number in range(n_files):
        name = array.metadata.encode_chunk_key((number,))
        file = path / array.path / name
        content = file.read_bytes() if file.is_file() else b""
        for chunk in _chunks_of_shard(array, content) if array.shards else [content]:
            for codec in compressors if chunk else ():
                chunk = bytes(codec.decode(chunk))
            count = int.from_bytes(chunk[:4], "little")
            if count > array.chunks[0]:
                what = f"{array.path}/{name} has {count:,} strings by its header, but room for {array.chunks[0]:,}"
                raise unusable(path, what, "copy or write it again")


def _chunks_of_shard(array: Any, content: bytes) -> Iterator[bytes]:
    """The chunks in a shard, by its index: offset and size of each, and a checksum of four bytes."""
    size = 16 * (array.shards[0] // array.chunks[0])
    at_end = array.metadata.codecs[0].to_dict()["configuration"]["index_location"] == "end"
    start = len(content) - size - 4 if at_end else 0
    for offset, length in np.frombuffer(content[start : start + size], "<u8").reshape(-1, 2).tolist():
        if offset + length <= len(content):  # absent chunks have the largest number of 64 bits
            yield content[offset : offset + length]


def _has_files(folder: Path, count: int) -> bool:
    return len(list(islice(folder.rglob("*"), count))) == count
