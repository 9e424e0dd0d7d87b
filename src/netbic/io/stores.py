"""Matrices in .h5ad, .zarr and .npy files, read by rows: AnnData's layout, without AnnData.

The file is opened for each read, so that a Dask task needs only a path, a key and its rows.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic.arrays import (
    Array,
    Matrix,
    bounds_problem,
    compressed_problem,
    pointers_problem,
    shape_problem,
    values_problem,
)
from netbic.errors import InputError, import_optional, one_line, shown, unusable
from netbic.io.annotations import is_group, names_in
from netbic.io.hdf5 import check_hdf5
from netbic.io.matrices import NameArray, as_names, native
from netbic.io.text import checked_file
from netbic.io.zarr_arrays import check_zarr
from netbic.operators import free_memory

Element = Any  # a group or array of h5py or zarr, or an array of NumPy
WHOLE = "netbic-whole"  # marks a matrix of which every chunk was written: a missing one would be read as zeros
BY_BLOCKS = "read it in blocks of samples (`lazy=True`)"
_STORED = re.compile(r"zarr\.json|\.z(group|array|attrs|metadata)|c|\d+([./]\d+)*")  # files that Zarr writes
_MARKS = ("zarr.json", ".zgroup", ".zarray")
_REMEDY = "write it again"
_PARTS = ("data", "indices", "indptr")
_ENCODINGS = ("array", "csr_matrix", "csc_matrix")


@dataclass(frozen=True)
class StoredMatrix:
    """A matrix in a file: its place, shape, type and names."""

    path: str
    key: str  # of the matrix in the file; empty where the file is the matrix
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    encoding: str  # "array", "csr_matrix" or "csc_matrix"
    chunk_rows: int  # rows that are stored, and so read, together
    row_bytes: float
    samples: NameArray
    genes: NameArray


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr store, or has the name of one."""
    return path.is_dir() and (path.suffix.lower() == ".zarr" or is_store(path))


def is_store(path: Path) -> bool:
    """Whether a folder holds the metadata of Zarr, whatever its name; only such a folder may be replaced."""
    return any((path / mark).is_file() for mark in _MARKS)


def check_store(path: Path) -> None:
    """Raise if a store holds something other than files and folders: reading a pipe would never end."""
    for folder, _, names in os.walk(path):
        for name in names:
            kind = os.stat(os.path.join(folder, name)).st_mode
            if not stat.S_ISREG(kind):
                inside = Path(folder, name).relative_to(path)
                raise unusable(path, f"{inside} is not a regular file", "copy or write the store again")


def foreign_files(path: Path) -> list[str]:
    """Files in a Zarr store that are neither metadata nor chunks, relative to it."""
    found = []
    for folder, _, names in os.walk(path):
        inside = Path(folder).relative_to(path)
        found += [str(inside / name) for name in names if not _STORED.fullmatch(name)]
    return sorted(found)


def describe(
    path: Path, layer: str | None = None, gene_names: str | None = None, *, is_open: bool = False
) -> StoredMatrix:
    """Read and check the header of a file's matrix (X, or a layer), and its names.

    `is_open` says that this process has the HDF5 file open already, so that it is not checked in another process.
    """
    if not is_zarr(path):
        path = checked_file(path)
        if path.suffix.lower() != ".npy" and not is_open:
            import_optional("h5py", "anndata", "an .h5ad file")
            check_hdf5(path, layer, gene_names)
    try:
        if path.is_dir():
            check_store(path)
        with opened(str(path)) as root:
            return _described(path.absolute(), root, layer, gene_names)
    except InputError:
        raise
    except Exception as problem:  # h5py, zarr and numpy raise many kinds of errors for damaged files
        what = f"cannot be read as {path.suffix.lower() or '.zarr'} ({one_line(str(problem), 120)})"
        raise unusable(path, what, "check that it is one, or write it again") from None


def stored_rows(path: str, key: str, first: int, last: int) -> Matrix:
    """The rows from `first` up to (not including) `last`, as an array or CSR."""
    with readable(path, first, last), opened(path) as root:
        element = root[key] if key else root
        if WHOLE in _attributes(element):
            _check_present(element, first, last)
        if not is_group(element):
            return np.array(element[first:last])
        indptr = native(element["indptr"][first : last + 1])
        own = slice(max(int(indptr[0]), 0), max(int(indptr[-1]), 0))
        parts = [native(element["data"][own]), native(element["indices"][own]), indptr - indptr[0]]
        shape = (last - first, _shape(path, element, key)[1])
        _check_parts(path, key, parts, shape)
        return sp.csr_array((parts[0], parts[1], parts[2]), shape=shape)


@contextmanager
def readable(path: str, first: int, last: int) -> Iterator[None]:
    """Name the file and the rows if they cannot be read."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist here: all workers need it under the same path")
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as problem:  # each library raises its own errors for damaged files
        what = f"rows {first} to {last - 1} cannot be read ({one_line(str(problem), 120)})"
        raise unusable(path, what, _REMEDY) from None


def stored_whole(stored: StoredMatrix) -> Matrix:
    """All rows; also of a matrix that is stored by columns."""
    needed, free = stored.row_bytes * stored.shape[0], free_memory()
    if needed > free:
        what = f"needs {needed / 1e9:,.1f} GB of memory, of which {free / 1e9:,.1f} GB are free"
        raise unusable(stored.path, what, BY_BLOCKS, parameters=["lazy"])
    if stored.encoding != "csc_matrix":
        return stored_rows(stored.path, stored.key, 0, stored.shape[0])
    with readable(stored.path, 0, stored.shape[0]), opened(stored.path) as root:
        parts = [native(array[:]) for array in _arrays(root[stored.key])]
        _check_parts(stored.path, stored.key, parts, stored.shape, by_rows=False)
        return sp.csc_array((parts[0], parts[1], parts[2]), shape=stored.shape).tocsr()


def stored_columns(stored: StoredMatrix, entries: int) -> Iterator[tuple[Array, Array, Array]]:
    """Columns, rows and values of a matrix stored by columns, about `entries` of them at a time."""
    with readable(stored.path, 0, stored.shape[0]), opened(stored.path) as root:
        group = root[stored.key]
        indptr = np.asarray(group["indptr"][:])  # `describe` has checked it
        first = 0
        while first < stored.shape[1]:
            last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + entries, side="right")) - 1)
            own = slice(int(indptr[first]), int(indptr[last]))
            columns = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1]))
            rows = np.asarray(group["indices"][own])
            if problem := bounds_problem(rows, stored.shape[0], "rows", f"{stored.key}/"):
                raise unusable(stored.path, problem, _REMEDY)
            yield columns, rows, np.asarray(group["data"][own])
            first = last


@contextmanager
def opened(path: str) -> Iterator[Element]:
    """The root of a file: a group, or an array."""
    if path.lower().endswith(".npy"):
        yield np.load(path, mmap_mode="r", allow_pickle=False)
    elif Path(path).is_dir():
        yield import_optional("zarr", "dask", "a .zarr store").open(path, mode="r")
    else:
        with import_optional("h5py", "anndata", "an .h5ad file").File(path, "r") as file:
            yield file


def _check_present(element: Element, first: int, last: int) -> None:
    """Raise if chunks with these rows have been removed since the matrix was opened."""
    if not is_group(element):
        _check_chunks(element, first, last)
        return
    _check_chunks(element["indptr"], first, last + 1)
    start, stop = (int(element["indptr"][row]) for row in (first, last))
    for name in ("data", "indices"):
        _check_chunks(element[name], start, stop)


def _check_chunks(array: Element, first: int, last: int) -> None:
    """Raise if a chunk with some of these rows, or entries, is missing."""
    height = array.chunks[0]
    for number in range(first // height, -(-last // height)):
        name = array.metadata.encode_chunk_key((number, *(0,) * (array.ndim - 1)))
        if not (array.store.root / array.path / name).exists():
            raise FileNotFoundError(f"{array.path}/{name} is missing")


def _check_parts(path: Path | str, key: str, parts: list[Array], shape: tuple[int, int], by_rows: bool = True) -> None:
    """Raise unless data, indices and pointers make a matrix."""
    data, indices, indptr = parts
    problem = values_problem(data, f"{key}/")
    problem = problem or compressed_problem(data, indices, indptr, shape, f"{key}/", by_rows=by_rows)
    if problem is not None:
        raise unusable(path, problem, _REMEDY)


# ----------------------------------------------------------------------------------------------------------------
# The header: everything but the entries
# ----------------------------------------------------------------------------------------------------------------


def _described(path: Path, root: Element, layer: str | None, gene_names: str | None) -> StoredMatrix:
    key = _key(path, root, layer)
    named = key and (names_in(path, root["obs"], "obs"), names_in(path, root["var"], "var", gene_names))
    element = root[key] if key else root
    encoding = _encoding(path, key, element)
    arrays = _arrays(element)
    for array in arrays:
        check_zarr(path, array)
    shape = _shape(path, element, key)
    samples, genes = named or _numbered(path, shape)
    if shape != (samples.size, genes.size):
        what = f"the matrix has shape {shape} but obs names {samples.size:,} samples and var {genes.size:,} genes"
        raise unusable(path, what, _REMEDY)
    dtype = np.dtype(arrays[0].dtype)
    if dtype.kind not in "fiub":
        what = "complex numbers" if dtype.kind == "c" else f"{dtype}, not numbers"
        raise unusable(path, f"holds {what}", "real numbers are needed")
    if encoding != "array":
        _check_pointers(path, key, element, shape, encoding)
    _check_complete(path, element)
    return StoredMatrix(str(path), key, shape, dtype, encoding, *_heights(element, shape), samples, genes)


def _arrays(element: Element) -> list[Element]:
    """The arrays of a matrix: data, indices and pointers of a sparse one."""
    return [element[name] for name in _PARTS] if is_group(element) else [element]


def _encoding(path: Path, key: str, element: Element) -> str:
    """How the matrix is stored; `h5sparse_format` is what AnnData before 0.7 wrote."""
    attributes = _attributes(element)
    if not is_group(element):
        if attributes.get("encoding-type") == "null" or element.shape is None:
            raise unusable(path, f"has no {key}", "name a layer", parameters=["layer"])
        return "array"
    encoding = str(attributes.get("encoding-type", f"{attributes.get('h5sparse_format', 'csr')}_matrix"))
    if encoding not in _ENCODINGS:
        raise unusable(path, f"{key} is stored as {encoding}", "an array, CSR or CSC is needed")
    for name in _PARTS:
        if name not in element:
            raise unusable(path, f"{key}/{name} is missing", _REMEDY)
    return encoding


def _attributes(element: Element) -> dict[str, Any]:
    return dict(getattr(element, "attrs", {}))  # an .npy array has none


def _check_pointers(path: Path, key: str, element: Element, shape: tuple[int, int], encoding: str) -> None:
    """Raise unless the pointers of a sparse matrix fit its shape and its other arrays, which stay in the file."""
    size, lines = (shape[0], "rows") if encoding == "csr_matrix" else (shape[1], "columns")
    data, indices = element["data"], element["indices"]
    lengths = int(np.prod(indices.shape)), int(np.prod(data.shape))
    problem = pointers_problem(native(element["indptr"][:]), size, lines, *lengths, f"{key}/")
    if problem is None and np.dtype(indices.dtype).kind not in "iu":
        problem = f"{key}/indices holds {indices.dtype}, not integers"
    if problem is not None:
        raise unusable(path, problem, _REMEDY)


def _numbered(path: Path, shape: tuple[int, int]) -> tuple[NameArray, NameArray]:
    """Names for a bare array."""
    if 0 in shape:
        raise unusable(path, f"has {shape[0]:,} samples and {shape[1]:,} genes", "at least two of each are needed")
    return as_names(f"sample_{row}" for row in range(shape[0])), as_names(range(shape[1]))


def _check_complete(path: Path, element: Element) -> None:
    """Raise if chunks are missing that were written."""
    if WHOLE not in _attributes(element):
        return
    for array in _arrays(element):
        if array.nchunks_initialized < array.nchunks:
            gone = array.nchunks - array.nchunks_initialized
            raise unusable(path, f"lacks {gone:,} of its {array.nchunks:,} chunks", "copy or convert it again")


def _key(path: Path, root: Element, layer: str | None) -> str:
    """Where the matrix is; a bare array is the matrix itself."""
    if not is_group(root):
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


def _shape(path: Path | str, element: Element, key: str) -> tuple[int, int]:
    """Samples and genes; `h5sparse_shape` is what AnnData before 0.7 wrote."""
    attributes = _attributes(element)
    sizes = attributes.get("shape", attributes.get("h5sparse_shape", ())) if is_group(element) else element.shape
    shape = tuple(int(size) for size in sizes)
    if problem := shape_problem(shape, key or "the array"):
        raise unusable(path, problem, "samples in rows and genes in columns are needed")
    return shape[0], shape[1]


def _heights(element: Element, shape: tuple[int, int]) -> tuple[int, float]:
    """Rows that are stored together, and bytes per row."""
    if is_group(element):
        per_entry = sum(np.dtype(element[name].dtype).itemsize for name in ("data", "indices"))
        return 1, element["data"].shape[0] * per_entry / max(shape[0], 1)
    chunks = getattr(element, "chunks", None)
    return int(chunks[0]) if chunks else 1, float(shape[1] * np.dtype(element.dtype).itemsize)
