"""Expression matrices that stay in their files: Dask arrays of blocks of samples, each read when it is needed."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

from netbic.arrays import Array, Indices, Matrix
from netbic.errors import InputError, import_optional, unusable
from netbic.io.expression import Expression, check_names, file_format
from netbic.io.matrices import NameArray, Step, as_matrix, as_names, float_type
from netbic.io.options import ExpressionOptions
from netbic.io.parquet import named_frame, not_parquet, number_table, open_parquet, read_parquet
from netbic.io.stores import StoredMatrix, describe, readable, stored_rows
from netbic.io.text import checked_file
from netbic.operators import map_rows

BLOCK_BYTES = 64_000_000
_LARGE_GROUP = 16 * BLOCK_BYTES


@dataclass(frozen=True)
class RowSource:
    """A matrix of which some rows can be read: load(*arguments, first row, row after the last)."""

    load: Callable[..., Matrix]
    arguments: tuple[object, ...]
    samples: NameArray
    genes: NameArray
    dtype: np.dtype[Any]
    is_sparse: bool = False
    stored_row_bytes: float | None = None  # default: those of a dense row
    cuts: Indices | None = None  # rows before which no row is read twice if it is cut there; default: all
    steps: tuple[Step, ...] = ()
    divisible: bool = True  # whether it may be cut elsewhere if `block_rows` is given

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return int(self.samples.size), int(self.genes.size)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row in the file."""
        dense = float(self.genes.size * self.dtype.itemsize)
        return max(1.0, dense if self.stored_row_bytes is None else self.stored_row_bytes)

    def rows(self, first: int, last: int) -> Matrix:
        """Some rows, as floats."""
        return self.load(*self.arguments, first, last)

    def bounds(self, rows: int | None = None) -> Indices:
        """Where blocks begin and end: blocks of this many rows, or of about 64 MB of the file."""
        n = self.shape[0]
        if rows is not None and self.divisible:
            return np.append(np.arange(0, n, rows), n)
        wanted = max(1, int(BLOCK_BYTES / self.row_bytes)) if rows is None else rows
        ends = np.append(np.arange(1, n) if self.cuts is None else self.cuts[1:], n)
        bounds = [0]
        while bounds[-1] < n:
            following = np.searchsorted(ends, bounds[-1], side="right")
            reached = np.searchsorted(ends, bounds[-1] + wanted, side="right") - 1
            bounds.append(int(ends[max(following, reached)]))
        return np.array(bounds, dtype=np.intp)

    def expression(self, block_rows: int | None = None) -> Expression:
        """The matrix as a Dask array."""
        dask_array = import_optional("dask.array", "dask", "a matrix that stays in its file")
        bounds = self.bounds(block_rows)
        name = f"netbic-rows-{uuid.uuid4().hex}"
        tasks = {
            (name, at, 0): (self.load, *self.arguments, first, last)
            for at, (first, last) in enumerate(pairwise(bounds.tolist()))
        }
        meta = sp.csr_array((0, 0), dtype=self.dtype) if self.is_sparse else np.empty((0, 0), dtype=self.dtype)
        chunks = (tuple(np.diff(bounds).tolist()), (self.shape[1],))
        matrix = dask_array.Array(tasks, name, chunks, dtype=self.dtype, meta=meta)
        return Expression(matrix, self.samples, self.genes, self.steps)


def open_expression(
    path: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: Sequence[str] = (),
    block_rows: int | None = None,
) -> Expression:
    """Open an expression matrix that stays in its file.

    Parameters
    ----------
    path : path
        A .zarr store (AnnData's layout, dense or CSR, as `netbic convert` writes it, or a bare array), an .h5ad file,
        a Parquet table with samples in rows, or an .npy array. Bare arrays have samples in rows, which are called
        sample_0, sample_1, ...; their genes are called 0, 1, ...
    samples_in_rows, layer, gene_names, skip_columns
        See `ExpressionOptions`.
    block_rows : int, optional
        Samples per block. Default: what the file stores together (chunks, row groups), joined to about 64 MB. Row
        groups of a Parquet table are never cut.

    Returns
    -------
    Expression
        Its matrix is a Dask array of blocks of samples. Every task opens the file itself.

    Examples
    --------
    >>> import tempfile, netbic.io, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/counts.npy", np.arange(12.0).reshape(6, 2))
    ...     expression = netbic.io.open_expression(f"{folder}/counts.npy", block_rows=4)
    ...     expression.matrix.chunks, float(expression.matrix.sum().compute()), expression.samples[:2].tolist()
    (((4, 2), (2,)), 66.0, ['sample_0', 'sample_1'])
    """
    if block_rows is not None and block_rows < 1:
        raise InputError(f"`block_rows={block_rows}`: at least 1 is needed", ["block_rows"])
    options = ExpressionOptions(samples_in_rows, layer, gene_names, skip_columns)
    return row_source(path, options).expression(block_rows)


def row_source(path: Path | str, options: ExpressionOptions) -> RowSource:
    """A file from which some rows can be read at a time."""
    path = Path(path)
    kind = file_format(path)
    options.check(path, kind)
    if kind in ("zarr", ".h5ad", ".npy"):
        source = store_source(describe(path, options.layer, options.gene_names))
    elif kind == "parquet" and options.samples_in_rows:
        source = _parquet_source(checked_file(path), tuple(options.skip_columns))
    else:
        raise _cannot_be_cut(path, kind)
    check_names(path, source.samples, source.genes)
    return source


def _cannot_be_cut(path: Path, kind: str) -> InputError:
    if kind != "10x":
        checked_file(path)
    what = {"10x": "is a 10x folder", "parquet": "has genes in rows"}.get(kind, "is a text table")
    remedy = f"convert it first (netbic convert {path} {path.name.split('.')[0]}.zarr)"
    if kind == "parquet":
        remedy += ", or `samples_in_rows=True` if samples are in rows"
    what += ", from which blocks of samples cannot be read"
    return unusable(path, what, remedy, parameters=["samples_in_rows"])


def store_source(stored: StoredMatrix) -> RowSource:
    """A matrix in an .h5ad file, a Zarr store or an .npy file."""
    if stored.encoding == "csc_matrix":
        what = f"{stored.key} is stored by columns (CSC), from which blocks of samples cannot be read"
        remedy = f"convert it first (netbic convert {stored.path} {Path(stored.path).stem}.zarr)"
        raise unusable(stored.path, what, remedy)
    return RowSource(
        float_rows,
        (stored.path, stored.key),
        stored.samples,
        stored.genes,
        float_type(stored.dtype),
        is_sparse=stored.encoding != "array",
        stored_row_bytes=stored.row_bytes,
        cuts=np.arange(0, stored.shape[0], stored.chunk_rows),
    )


def float_rows(path: str, key: str, first: int, last: int) -> Matrix:
    """Rows of a store, as floats."""
    return as_matrix(stored_rows(path, key, first, last))


def _parquet_source(path: Path, skip_columns: tuple[str, ...]) -> RowSource:
    """A table with samples in rows; a row group is read whole."""
    file = open_parquet(path)
    try:
        empty = file.schema_arrow.empty_table().to_pandas()
        starts = _group_starts(file)
    except Exception as problem:
        raise not_parquet(path, problem) from None
    table = number_table(path, empty, skip_columns, False)
    has_index = named_frame(path, empty) is empty
    names = read_parquet(path, [] if has_index else [str(empty.columns[0])])
    dtype = table.numbers.dtype
    largest = int(np.diff(starts).max(initial=0)) * table.columns.size * dtype.itemsize
    if largest > _LARGE_GROUP:
        what = f"{path}: a row group holds {largest / 1e9:.1f} GB, which is read as a whole"
        warnings.warn(f"{what}: netbic convert writes smaller blocks", stacklevel=4)
    return RowSource(
        parquet_rows,
        (str(path.absolute()), skip_columns, dtype.str),
        as_names(names.index if has_index else names.iloc[:, 0]),
        table.columns,
        dtype,
        cuts=starts[:-1],
        steps=table.steps,
        divisible=False,
    )


def _group_starts(file: pq.ParquetFile) -> Indices:
    """The first row of every row group, and the number of rows."""
    heights = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    return np.concatenate([[0], np.cumsum(heights)]).astype(np.intp)


def parquet_rows(path: str, skip_columns: tuple[str, ...], dtype: str, first: int, last: int) -> Array:
    """Rows of a Parquet table; the row groups that hold them are read."""
    with readable(path, first, last):
        file = pq.ParquetFile(path)
        starts = _group_starts(file)
        groups = np.flatnonzero((starts[1:] > first) & (starts[:-1] < last))
        frame = file.read_row_groups(groups.tolist()).to_pandas()
        numbers = number_table(Path(path), frame, skip_columns, False).numbers
        start = first - int(starts[groups[0]])
        return np.ascontiguousarray(numbers[start : start + last - first], dtype=dtype)


def as_floats(X: Matrix) -> Matrix:
    """A Dask array of floats, in the precision `read_expression` would take."""
    dtype = float_type(X.dtype)
    return X if X.dtype == dtype else map_rows(X, as_matrix, dtype=dtype)
