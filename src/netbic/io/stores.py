"""Matrices in .h5ad, .zarr and .npy files, read by rows: AnnData's layout of groups, without AnnData.

Every reading opens the file anew, so that a task needs no more than a path, a key and the numbers of its rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.io.errors import InputError, extra, one_line, shown, unusable
from netbic.io.tables import Names
from netbic.io.text import checked_file

WHOLE = "netbic-whole"  # marks a matrix of which every chunk was written: one that is gone would be read as zeros
_STORED = re.compile(r"zarr\.json|\.z(group|array|attrs|metadata)|c|\d+([./]\d+)*")  # files that Zarr writes
_MARKS = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class Stored:
    """A matrix in a file: where it is, what it is like, and its names."""

    path: str
    key: str  # of the matrix in the file; empty where the file is the matrix
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    encoding: str  # "array", "csr_matrix" or "csc_matrix"
    chunk_rows: int  # rows that are read together whatever is asked for
    row_bytes: float
    samples: Names
    genes: Names


def is_zarr(path: Path) -> bool:
    """Whether a folder is, or by its name should be, a Zarr store."""
    return path.is_dir() and (path.suffix.lower() == ".zarr" or is_store(path))


def is_store(path: Path) -> bool:
    """Whether a folder has what Zarr writes, whatever its name: only such a one may be replaced."""
    return any((path / mark).is_file() for mark in _MARKS)


def foreign_files(path: Path) -> list[str]:
    """Files in a Zarr store that are neither its metadata nor chunks, by their names in it."""
    found = []
    for folder, _, names in os.walk(path):
        inside = Path(folder).relative_to(path)
        found += [str(inside / name) for name in names if not _STORED.fullmatch(name)]
    return sorted(found)


def describe(path: Path, layer: str | None = None, gene_names: str | None = None) -> Stored:
    """Look at a file's matrix (X, or a layer) and read its names."""
    if not is_zarr(path):
        path = checked_file(path)
    try:
        with _opened(str(path)) as root:
            return _described(path.absolute(), root, layer, gene_names)
    except InputError:
        raise
    except Exception as problem:  # h5py, zarr and numpy have many ways to say that a file is damaged
        what = f"cannot be read as {path.suffix.lower() or '.zarr'} ({one_line(str(problem), 120)})"
        raise unusable(path, what, "check that it is one, or write it again") from None


def stored_rows(path: str, key: str, first: int, last: int) -> Any:
    """The rows from `first` to before `last`, as an array or CSR."""
    with readable(path, first, last), _opened(path) as root:
        element = root[key] if key else root
        rows = _whole_rows if WHOLE in dict(getattr(element, "attrs", {})) else _rows
        return rows(element, first, last)


@contextmanager
def readable(path: str, first: int, last: int) -> Iterator[None]:
    """Name the file and the rows if they cannot be read."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist here: all workers need it under the same name")
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as problem:  # each library has its own ways to say that a file is damaged
        what = f"rows {first} to {last - 1} cannot be read ({one_line(str(problem), 120)})"
        raise unusable(path, what, "write it again") from None


def stored_whole(stored: Stored) -> Any:
    """All rows; also of a matrix that is stored by columns."""
    if stored.encoding != "csc_matrix":
        return stored_rows(stored.path, stored.key, 0, stored.shape[0])
    with _opened(stored.path) as root:
        data, indices, indptr = (np.asarray(root[stored.key][name][:]) for name in ("data", "indices", "indptr"))
    return sp.csc_array((data, indices, indptr), shape=stored.shape).tocsr()


def stored_columns(stored: Stored, entries: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Columns, rows and values of a matrix that is stored by columns, about so many entries at a time."""
    with _opened(stored.path) as root:
        group = root[stored.key]
        indptr = np.asarray(group["indptr"][:])
        first = 0
        while first < stored.shape[1]:
            last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + entries, side="right")) - 1)
            own = slice(int(indptr[first]), int(indptr[last]))
            columns = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1]))
            yield columns, np.asarray(group["indices"][own]), np.asarray(group["data"][own])
            first = last


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """What a file holds: a group, or an array."""
    if path.lower().endswith(".npy"):
        yield np.load(path, mmap_mode="r", allow_pickle=False)
    elif Path(path).is_dir():
        yield extra("zarr", "dask", "a .zarr store").open(path, mode="r")
    else:
        with extra("h5py", "anndata", "an .h5ad file").File(path, "r") as file:
            yield file


def _whole_rows(element: Any, first: int, last: int) -> Any:
    """Rows of a matrix of which every chunk was written: one may have gone since it was opened."""
    if not _is_group(element):
        _check_chunks(element, first, last)
        return _rows(element, first, last)
    _check_chunks(element["indptr"], first, last + 1)
    start, stop = (int(element["indptr"][row]) for row in (first, last))
    for name in ("data", "indices"):
        _check_chunks(element[name], start, stop)
    return _rows(element, first, last)


def _check_chunks(array: Any, first: int, last: int) -> None:
    """Raise if a chunk with some of these rows, or entries, is gone."""
    height = array.chunks[0]
    for number in range(first // height, -(-last // height)):
        name = array.metadata.encode_chunk_key((number, *(0,) * (array.ndim - 1)))
        if not (array.store.root / array.path / name).exists():
            raise FileNotFoundError(f"{array.path}/{name} is not there")


def _rows(element: Any, first: int, last: int) -> Any:
    if not _is_group(element):
        return np.array(element[first:last])
    indptr = np.asarray(element["indptr"][first : last + 1])
    own = slice(int(indptr[0]), int(indptr[-1]))
    parts = (np.asarray(element["data"][own]), np.asarray(element["indices"][own]), indptr - indptr[0])
    return sp.csr_array(parts, shape=(last - first, _shape(element)[1]))


def _described(path: Path, root: Any, layer: str | None, gene_names: str | None) -> Stored:
    key = _key(path, root, layer)
    named = (_names(path, root["obs"]), _names(path, root["var"], gene_names)) if key else None
    element = root[key] if key else root
    shape = _shape(element)
    if len(shape) != 2:
        raise unusable(path, f"{key or 'the array'} has {len(shape)} dimensions", "two are needed: samples, genes")
    samples, genes = named or (_counted(shape[0], "sample_"), _counted(shape[1]))
    _check_lengths(path, shape, samples, genes)
    encoding = str(dict(element.attrs).get("encoding-type", "csr_matrix")) if _is_group(element) else "array"
    if encoding not in ("array", "csr_matrix", "csc_matrix"):
        raise unusable(path, f"{key} is stored as {encoding}", "an array, CSR or CSC is needed")
    values = element["data"] if _is_group(element) else element
    if np.dtype(values.dtype).kind not in "fiub":
        raise unusable(path, f"holds {values.dtype}, not numbers", "real numbers are needed")
    _check_whole(path, element)
    chunk, row_bytes = _heights(element, shape)
    return Stored(str(path), key, shape, np.dtype(values.dtype), encoding, chunk, row_bytes, samples, genes)


def _check_whole(path: Path, element: Any) -> None:
    """Raise if chunks are gone that were written."""
    if WHOLE not in dict(getattr(element, "attrs", {})):
        return
    for part in [element[name] for name in ("data", "indices", "indptr")] if _is_group(element) else [element]:
        if part.nchunks_initialized < part.nchunks:
            gone = part.nchunks - part.nchunks_initialized
            raise unusable(path, f"lacks {gone:,} of its {part.nchunks:,} chunks", "copy or convert it again")


def _key(path: Path, root: Any, layer: str | None) -> str:
    """Where the matrix is; a bare array is the matrix itself."""
    if not _is_group(root):
        if layer is not None:
            raise unusable(path, f"has no layer {shown(layer)}", "it is a bare array: leave the layer out")
        return ""
    if "obs" not in root or "var" not in root:
        raise unusable(path, "has no obs and var", "AnnData's layout is needed, or a bare array of samples by genes")
    layers = sorted(root["layers"].keys()) if "layers" in root else []
    if layer is not None and layer not in layers:
        raise unusable(path, f"has no layer {shown(layer)}", f"its layers are {', '.join(layers) or 'none'}")
    if layer is None and "X" not in root:
        raise unusable(path, "has no X", f"name a layer: {', '.join(layers) or 'there is none'}")
    return "X" if layer is None else f"layers/{layer}"


def _is_group(element: Any) -> bool:
    return hasattr(element, "keys")


def _shape(element: Any) -> tuple[int, ...]:
    sizes: Any = dict(element.attrs).get("shape", ()) if _is_group(element) else element.shape
    return tuple(int(size) for size in sizes)


def _heights(element: Any, shape: tuple[int, ...]) -> tuple[int, float]:
    """Rows that are stored together, and bytes per row."""
    if _is_group(element):
        per_entry = np.dtype(element["data"].dtype).itemsize + np.dtype(element["indices"].dtype).itemsize
        return 1, element["data"].shape[0] * per_entry / max(shape[0], 1)
    chunks = getattr(element, "chunks", None)
    return int(chunks[0]) if chunks else 1, float(shape[1] * np.dtype(element.dtype).itemsize)


def _names(path: Path, frame: Any, column: str | None = None) -> Names:
    """The index of a data frame, or one of its columns."""
    if not _is_group(frame):
        raise unusable(path, "was written by an old AnnData", "read it with anndata and write it again")
    attributes = dict(frame.attrs)
    index = str(attributes.get("_index", "_index"))
    if column is not None and column not in frame:
        known = ", ".join(map(str, attributes.get("column-order", []))) or "none"
        raise unusable(path, f"has no column {shown(column)} in var", f"it has {known}")
    return np.array([str(name).strip() for name in _values(frame[column or index])], dtype=object)


def _values(element: Any) -> Any:
    """A column of a data frame: plain, categorical or with a mask."""
    if not _is_group(element):
        return element.asstr()[:] if hasattr(element, "asstr") and element.dtype.kind in "OS" else element[:]
    if "categories" in element:
        return np.asarray(_values(element["categories"]), dtype=object)[np.asarray(element["codes"][:])]
    return np.where(element["mask"][:], "", np.asarray(_values(element["values"]), dtype=object))


def _counted(size: int, word: str = "") -> Names:
    return np.array([f"{word}{number}" for number in range(size)], dtype=object)


def _check_lengths(path: Path, shape: tuple[int, ...], samples: Names, genes: Names) -> None:
    if shape != (samples.size, genes.size):
        what = f"the matrix has shape {shape} but obs names {samples.size:,} samples and var {genes.size:,} genes"
        raise unusable(path, what, "write it again")
