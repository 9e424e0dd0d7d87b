"""Matrices in AnnData's files (.h5ad, .zarr), bare arrays (.npy, .zarr) and 10x folders: whole, or some rows at a time.

For some rows the file is opened each time, so that a Dask task needs only a path, a key and its rows.
"""

from __future__ import annotations

import csv
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Indices, Matrix, checked, is_sparse
from netbic.errors import InputError, import_optional, shown, unusable
from netbic.io.tables import (
    NameArray,
    Progress,
    Step,
    as_matrix,
    as_names,
    check_file,
    float_type,
    library_errors,
    read_bytes,
    read_lines,
    text_lines,
    text_pieces,
)
from netbic.operators.executors import free_memory

BLOCK_BYTES = 64_000_000
_DOWNLOAD = "download it again"


@dataclass(frozen=True)
class RowSource:
    """A matrix of which some rows can be read: load(*arguments, first row, row after the last)."""

    load: Callable[..., Matrix]
    arguments: tuple[object, ...]
    samples: NameArray
    genes: NameArray
    dtype: np.dtype[Any]
    row_bytes: float  # in the file
    is_sparse: bool = False
    cuts: Indices | None = None  # rows before which no row is read twice if it is cut there; default: all
    steps: tuple[Step, ...] = ()
    divisible: bool = True  # whether it may be cut elsewhere if the height of blocks is given

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return int(self.samples.size), int(self.genes.size)

    def rows(self, first: int, last: int) -> Matrix:
        """Some rows, as floats."""
        return self.load(*self.arguments, first, last)

    def blocks(self, rows: int | None = None) -> Any:
        """The matrix as a Dask array with blocks of this many rows, or of about 64 MB of the file."""
        dask_array = import_optional("dask.array", "dask", "a matrix that stays in its file")
        n, bounds = self.shape[0], [0]
        wanted = max(1, int(BLOCK_BYTES / max(1.0, self.row_bytes))) if rows is None else rows
        anywhere = self.cuts is None or (rows is not None and self.divisible)
        ends = np.arange(1, n + 1) if anywhere else np.append(self.cuts[1:], n)  # type: ignore[index]
        while bounds[-1] < n:
            following, reached = np.searchsorted(ends, [bounds[-1], bounds[-1] + wanted], side="right")
            bounds.append(int(ends[max(following, reached - 1)]))
        name = f"netbic-rows-{uuid.uuid4().hex}"
        tasks = {(name, at, 0): (self.load, *self.arguments, *own) for at, own in enumerate(pairwise(bounds))}
        meta = sp.csr_array((0, 0), dtype=self.dtype) if self.is_sparse else np.empty((0, 0), dtype=self.dtype)
        chunks = (tuple(np.diff(bounds).tolist()), (self.shape[1],))
        return dask_array.Array(tasks, name, chunks, dtype=self.dtype, meta=meta)


# AnnData's files and bare arrays


class StoredMatrix(NamedTuple):
    """A matrix in an open file and its names."""

    key: str  # of the matrix in the file; empty where the file is the matrix
    values: Any  # an array, or a sparse data set of AnnData's, of which some rows can be read
    samples: NameArray
    genes: NameArray

    @property
    def format(self) -> str:
        """How entries are stored: "array", "csr" or "csc"."""
        return str(getattr(self.values, "format", "array"))

    @property
    def row_bytes(self) -> float:
        """Bytes of a row, of a sparse matrix with its indices."""
        is_array = self.format == "array"
        parts = [self.values] if is_array else [self.values.group[name] for name in ("data", "indices")]
        return float(sum(part.size * part.dtype.itemsize for part in parts) / self.values.shape[0])

    def columns(self, entries: int, progress: Progress = lambda share: None) -> Iterator[tuple[Array, Array, Array]]:
        """Rows, columns and values of a matrix stored by columns, about `entries` of them at a time."""
        indptr, first = np.asarray(self.values.group["indptr"][:]), 0
        while first < self.values.shape[1]:
            last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + entries, side="right")) - 1)
            part = checked(self.values[:, first:last]).tocoo()
            yield part.row, part.col + first, part.data
            first = last
            progress(first / self.values.shape[1])


def is_store(path: Path) -> bool:
    """Whether a folder holds the metadata of Zarr, whatever its name; only such a folder may be replaced."""
    return any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))


def read_store(path: Path, layer: str | None = None, gene_names: str | None = None) -> tuple[Matrix, Any, Any]:
    """The matrix of a file, its samples and its genes."""
    with open_matrix(path, layer, gene_names) as stored:
        needed, free = stored.row_bytes * stored.values.shape[0], free_memory()
        if needed > free:
            what = f"needs {needed / 1e9:,.1f} GB of memory, of which {free / 1e9:,.1f} GB are free"
            raise unusable(path, what, "read it in blocks of samples (`lazy=True`)")
        is_array = stored.format == "array"
        values = np.array(stored.values[:]) if is_array else _anndata_io().read_elem(stored.values.group)
        return as_matrix(values), stored.samples, stored.genes


def open_store(path: Path, layer: str | None = None, gene_names: str | None = None) -> RowSource:
    """The matrix of a file, of which blocks of samples are read."""
    with open_matrix(path, layer, gene_names) as stored:
        if stored.format == "csc":
            what = f"{stored.key} is stored by columns (CSC), from which blocks of samples cannot be read"
            raise unusable(path, what, f"convert it first (netbic convert {path} {path.stem}.zarr)")
        chunks = getattr(stored.values, "chunks", None)
        return RowSource(
            read_rows,
            (str(path.absolute()), stored.key),
            stored.samples,
            stored.genes,
            float_type(stored.values.dtype),
            stored.row_bytes,
            is_sparse=stored.format != "array",
            cuts=np.arange(0, stored.values.shape[0], int(chunks[0])) if chunks else None,
        )


def read_rows(path: str, key: str, first: int, last: int) -> Matrix:
    """The rows from `first` up to (not including) `last`, as an array or CSR of floats."""
    with readable(path, first, last), _open_root(Path(path)) as root:
        rows = _values(root, key)[first:last]
        return as_matrix(rows if is_sparse(rows) else np.array(rows))


def readable(path: str, first: int, last: int) -> AbstractContextManager[None]:
    """Name the file and the rows if they cannot be read."""
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist here: all workers need it under the same path")
    return library_errors(path, f"rows {first} to {last - 1} cannot be read", "write it again")


@contextmanager
def open_matrix(path: Path, layer: str | None = None, gene_names: str | None = None) -> Iterator[StoredMatrix]:
    """The matrix of a file (X, or a layer) while it is open."""
    what, remedy = f"cannot be read as {path.suffix.lower() or '.zarr'}", "check that it is one, or write it again"
    with library_errors(path, what, remedy), _checked_root(path) as root:
        key = _key(path, root, layer)
        values = _values(root, key)
        _check_header(path, key, values)
        if key:
            names = _read_names(path, root["obs"]), _read_names(path, root["var"], gene_names)
        else:
            names = as_names(f"sample_{row}" for row in range(values.shape[0])), as_names(range(values.shape[1]))
        if tuple(values.shape) != (names[0].size, names[1].size):
            what = f"the matrix has shape {tuple(values.shape)} but obs names {names[0].size:,} samples and var"
            raise unusable(path, f"{what} {names[1].size:,} genes", "write it again")
        yield StoredMatrix(key, values, *names)


def read_obs(path: Path, name: str = "obs") -> Any:
    """The obs or var of an .h5ad file or .zarr store, as a DataFrame."""
    with library_errors(path, f"has an {name} that cannot be read", "write it again"), _checked_root(path) as root:
        return _anndata_io().read_elem(root[name])


def _anndata_io() -> Any:
    return import_optional("anndata.io", "anndata", "an .h5ad file or .zarr store")


@contextmanager
def _open_root(path: Path) -> Iterator[Any]:
    """The root of a file: a group, or an array."""
    if path.is_dir():
        _anndata_io()
        yield import_optional("zarr", "anndata", "a .zarr store").open(str(path), mode="r")
    elif check_file(path).suffix.lower() == ".npy":
        yield np.load(path, mmap_mode="r", allow_pickle=False)
    else:
        _anndata_io()
        with import_optional("h5py", "anndata", "an .h5ad file").File(path, "r") as file:
            yield file


def _checked_root(path: Path) -> AbstractContextManager[Any]:
    """The root of a file, or of a store of nothing but files and folders: reading a pipe would never end."""
    for folder, _, names in os.walk(path):
        for name in names:
            if not stat.S_ISREG(os.stat(os.path.join(folder, name)).st_mode):
                inside = Path(folder, name).relative_to(path)
                raise unusable(path, f"{inside} is not a regular file", "copy or write the store again")
    return _open_root(path)


def _values(root: Any, key: str) -> Any:
    """An array, or AnnData's view of a sparse matrix, of whose pointers only those are read that are needed."""
    element = root[key] if key else root
    return _anndata_io().sparse_dataset(element, should_cache_indptr=False) if hasattr(element, "keys") else element


def _key(path: Path, root: Any, layer: str | None) -> str:
    """Where the matrix is; a bare array is the matrix itself."""
    if not hasattr(root, "keys"):
        if layer is not None:
            raise unusable(path, f"has no layer {shown(layer)}", "it is a bare array: leave the layer out")
        return ""
    if "obs" not in root or "var" not in root:
        raise unusable(path, "has no obs and var", "AnnData's layout is needed, or a bare array of samples by genes")
    if not hasattr(root["obs"], "keys") or not hasattr(root["var"], "keys"):
        raise unusable(path, "was written by an old AnnData", "read it with anndata and write it again")
    layers = sorted(root["layers"].keys()) if "layers" in root else []
    if layer is not None and layer not in layers:
        raise unusable(path, f"has no layer {shown(layer)}", f"its layers are {', '.join(layers) or 'none'}")
    if layer is None and ("X" not in root or root["X"].attrs.get("encoding-type") == "null"):
        raise unusable(path, "has no X", f"name a layer: {', '.join(layers) or 'there is none'}", parameters=["layer"])
    return "X" if layer is None else f"layers/{layer}"


def _read_names(path: Path, frame: Any, column: str | None = None) -> NameArray:
    """The index of obs or var, or one of its columns."""
    if column is None:
        return as_names(_anndata_io().read_elem(frame[frame.attrs["_index"]]))
    if column not in frame:
        known = ", ".join(map(str, frame.attrs.get("column-order", []))) or "none"
        raise unusable(path, f"has no column {shown(column)} in var", f"it has {known}")
    return as_names(_anndata_io().read_elem(frame)[column])


def _check_header(path: Path, key: str, values: Any) -> None:
    """Raise unless this is a matrix of real numbers; and if chunks are missing, which Zarr would fill up."""
    if len(values.shape) != 2:
        what = f"{key or 'the array'} has {len(values.shape)} dimensions where 2 are needed"
        raise unusable(path, what, "samples in rows and genes in columns are needed")
    if 0 in values.shape:
        what = f"has {values.shape[0]:,} samples and {values.shape[1]:,} genes"
        raise unusable(path, what, "at least two of each are needed")
    if values.dtype.kind not in "fiub":
        what = "complex numbers" if values.dtype.kind == "c" else f"{values.dtype}, not numbers"
        raise unusable(path, f"holds {what}", "real numbers are needed")
    arrays = [values]
    if hasattr(values, "group"):  # entries are checked when they are read
        arrays = data, indices, indptr = [values.group[name] for name in ("data", "indices", "indptr")]
        n_lines, n_entries = values.shape[values.format == "csc"], data.shape[0]
        fits = indices.dtype.kind in "iu" and (indptr.shape[0], indices.shape) == (n_lines + 1, data.shape)
        if not fits or int(indptr[0]) != 0 or int(indptr[-1]) != n_entries:
            what = f"the index and pointer arrays of {key} do not fit its shape and its entries"
            raise unusable(path, what, "write it again")
    for array in arrays:
        filled = getattr(array, "fill_value", 0)
        if (filled == -1 or filled != filled) and array.nchunks_initialized < array.nchunks:  # `convert` wrote it
            gone = array.nchunks - array.nchunks_initialized
            raise unusable(path, f"lacks {gone:,} of its {array.nchunks:,} chunks", "copy or convert it again")


# Folders in 10x format


class TenX:
    """A folder with matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), each compressed with gzip or not.

    Features other than genes are left out, unless there are no genes.
    """

    def __init__(self, folder: Path, gene_names: str | None) -> None:
        if gene_names not in (None, "id", "symbol"):
            raise InputError(f"`gene_names={gene_names}` is not known for a 10x folder: choose 'id' or 'symbol'")
        self._file = _part(folder, "matrix.mtx")
        self.barcodes = read_lines(_part(folder, "barcodes.tsv"))
        lines = text_lines(read_bytes(_part(folder, "features.tsv", "genes.tsv")))
        rows = [line.split("\t") for line in lines if line.strip()]  # id, symbol and kind, or ids alone
        features = as_names(row[1] if len(row) > 1 and gene_names != "id" else row[0] for row in rows)
        kept = np.array([len(row) < 3 or row[2].strip() == "Gene Expression" for row in rows])
        kept = kept if kept.any() else ~kept
        self.genes, others = features[kept], features[~kept].tolist()
        left_out: Step = {"step": "features other than gene expression left out", "named": others}
        self.steps = (left_out,) if others else ()
        self._columns = np.where(kept, np.cumsum(kept) - 1, -1)  # of the features

    def read(self) -> Matrix:
        """The counts, cells in rows."""
        parts = list(self.entries())
        rows, columns, values = (np.concatenate([part[at] for part in parts] or [np.empty(0, int)]) for at in range(3))
        return as_matrix(sp.coo_array((values, (rows, columns)), shape=(self.barcodes.size, self.genes.size)))

    def entries(self, progress: Progress | None = None) -> Iterator[tuple[Array, Array, Array]]:
        """Cells, genes and values of the entries, some lines of the file at a time."""
        n_entries = n_read = 0
        for before, data in text_pieces(self._file, progress=progress):
            if not before:
                n_entries, data = self._header(data)
            if not data.strip():
                continue
            with library_errors(self._file, "cannot be read as a MatrixMarket file", _DOWNLOAD):
                kinds: Any = {0: np.int64, 1: np.int64, 2: np.float64}
                table = pd.read_csv(io.BytesIO(data), sep=r"\s+", header=None, dtype=kinds, quoting=csv.QUOTE_NONE)
                if table.shape[1] != 3:
                    raise ValueError(f"{table.shape[1]} columns where 3 are expected")
            features, cells = (table[at].to_numpy() - 1 for at in (0, 1))
            for numbers, size in ((features, self._columns.size), (cells, self.barcodes.size)):
                if not (numbers.min() >= 0 and numbers.max() < size):
                    raise unusable(self._file, f"has an entry at {numbers.max() + 1:,} of {size:,}", _DOWNLOAD)
            n_read += cells.size
            values, genes = table[2].to_numpy(), self._columns[features]
            yield cells[genes >= 0], genes[genes >= 0], values[genes >= 0]
        if n_read != n_entries:
            raise unusable(self._file, f"declares {n_entries:,} entries but has {n_read:,}", _DOWNLOAD)

    def _header(self, data: bytes) -> tuple[int, bytes]:
        """The number of entries, and the text after the header; an error if the names do not fit."""
        first, _, rest = data.partition(b"\n")
        banner = first.decode(errors="replace").lower().split()
        line = b"%"
        while line.startswith(b"%") or (rest and not line.strip()):
            line, _, rest = rest.partition(b"\n")
        sizes = [int(size) if size.isdigit() else 0 for size in line.split()]
        coordinates = len(banner) == 5 and banner[2] == "coordinate" and banner[3] in ("integer", "real")
        if not coordinates or len(sizes) != 3:
            raise unusable(self._file, "is not a MatrixMarket file of coordinates", _DOWNLOAD)
        if banner[4] != "general":
            raise unusable(self._file, f"is {banner[4]}", "a general matrix of genes by cells is needed")
        if (sizes[1], sizes[0]) != (self.barcodes.size, self._columns.size):
            what = f"has {sizes[0]:,} genes x {sizes[1]:,} cells, but there are {self._columns.size:,} features"
            remedy = "the files do not belong together"
            raise unusable(self._file, f"{what} and {self.barcodes.size:,} barcodes", remedy)
        return sizes[2], rest


def _part(folder: Path, *names: str) -> Path:
    for name in names:
        for candidate in (folder / f"{name}.gz", folder / name):
            if candidate.exists():
                return candidate
    needed = "matrix.mtx, barcodes.tsv and features.tsv (or genes.tsv), each with or without .gz"
    raise unusable(folder, f"is a folder without {' or '.join(names)}", f"a 10x folder has {needed}")
