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
from numpy.typing import NDArray

from netbic.errors import InputError, extra, unusable
from netbic.outofcore import by_blocks
from netbic.readers.expression import (
    Expression,
    as_matrix,
    check_names,
    check_options,
    file_format,
    float_type,
    named_frame,
    number_table,
)
from netbic.readers.parquet import not_parquet, open_parquet, read_parquet
from netbic.readers.stores import StoredMatrix, describe, readable, stored_rows
from netbic.readers.tables import NameArray
from netbic.readers.text import checked_file

BLOCK_BYTES = 64_000_000
_LARGE_GROUP = 16 * BLOCK_BYTES


@dataclass(frozen=True)
class RowSource:
    """A matrix of which some rows can be read: load(*arguments, first row, row after the last)."""

    load: Callable[..., Any]
    arguments: tuple[Any, ...]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    is_sparse: bool
    cuts: NDArray[np.intp]  # rows before which it may be cut without reading anything twice
    row_bytes: float
    samples: NameArray
    genes: NameArray
    steps: tuple[dict[str, Any], ...] = ()
    divisible: bool = True  # whether it may be cut elsewhere if that is asked for

    def rows(self, first: int, last: int) -> Any:
        """Some rows, as floats."""
        return self.load(*self.arguments, first, last)

    def bounds(self, rows: int | None = None) -> NDArray[np.intp]:
        """Where blocks begin and end: so many rows, or about 64 MB of the file."""
        n = self.shape[0]
        if rows is not None and self.divisible:
            return np.append(np.arange(0, n, rows), n)
        wanted = max(1, int(BLOCK_BYTES / max(self.row_bytes, 1.0))) if rows is None else rows
        ends = np.append(self.cuts[1:], n)
        bounds = [0]
        while bounds[-1] < n:
            following = np.searchsorted(ends, bounds[-1], side="right")
            reached = np.searchsorted(ends, bounds[-1] + wanted, side="right") - 1
            bounds.append(int(ends[max(following, reached)]))
        return np.array(bounds, dtype=np.intp)

    def expression(self, block_rows: int | None = None) -> Expression:
        """The matrix as a Dask array."""
        dask_array = extra("dask.array", "dask", "a matrix that stays in its file")
        bounds = self.bounds(block_rows)
        name = f"netbic-rows-{uuid.uuid4().hex}"
        tasks = {
            (name, at, 0): (self.load, *self.arguments, first, last)
            for at, (first, last) in enumerate(pairwise(bounds.tolist()))
        }
        meta: Any = sp.csr_array((0, 0), dtype=self.dtype) if self.is_sparse else np.empty((0, 0), dtype=self.dtype)
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
        As for `read_expression`.
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
        raise InputError(f"block_rows={block_rows}: at least 1 is needed")
    source = row_source(
        path, samples_in_rows=samples_in_rows, layer=layer, gene_names=gene_names, skip_columns=skip_columns
    )
    return source.expression(block_rows)


def row_source(
    path: Path | str,
    *,
    samples_in_rows: bool = False,
    layer: str | None = None,
    gene_names: str | None = None,
    skip_columns: Sequence[str] = (),
) -> RowSource:
    """A file whose rows can be read a few at a time."""
    path = Path(path)
    kind = file_format(path)
    check_options(path, kind, layer, gene_names, skip_columns, samples_in_rows)
    if kind in ("zarr", ".h5ad", ".npy"):
        source = store_source(describe(path, layer, gene_names))
    elif kind == "parquet" and samples_in_rows:
        source = _from_parquet(checked_file(path), tuple(skip_columns))
    else:
        if kind != "10x":
            checked_file(path)
        what = {"10x": "is a 10x folder", "parquet": "has genes in rows"}.get(kind, "is a text table")
        remedy = f"netbic convert {path} {path.name.split('.')[0]}.zarr first"
        if kind == "parquet":
            remedy += ", or `samples_in_rows=True` if samples are in rows"
        what += ", from which blocks of samples cannot be read"
        raise unusable(path, what, remedy, parameters=["samples_in_rows"])
    check_names(path, source.samples, source.genes)
    return source


# ----------------------------------------------------------------------------------------------------------------
# Stores
# ----------------------------------------------------------------------------------------------------------------


def store_source(stored: StoredMatrix) -> RowSource:
    """A matrix in a store."""
    if stored.encoding == "csc_matrix":
        what = f"{stored.key} is stored by columns (CSC): blocks of samples cannot be read from that"
        remedy = f"netbic convert {stored.path} {Path(stored.path).stem}.zarr first"
        raise unusable(stored.path, what, remedy)
    return RowSource(
        float_rows,
        (stored.path, stored.key),
        stored.shape,
        float_type(stored.dtype),
        stored.encoding != "array",
        np.arange(0, stored.shape[0], stored.chunk_rows),
        stored.row_bytes,
        stored.samples,
        stored.genes,
    )


def float_rows(path: str, key: str, first: int, last: int) -> Any:
    """Rows of a store, as floats."""
    return as_matrix(stored_rows(path, key, first, last))


# ----------------------------------------------------------------------------------------------------------------
# Parquet
# ----------------------------------------------------------------------------------------------------------------


def _from_parquet(path: Path, skip_columns: tuple[str, ...]) -> RowSource:
    """A table with samples in rows; a row group is read whole."""
    file = open_parquet(path)
    try:
        empty = file.schema_arrow.empty_table().to_pandas()
        heights = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    except Exception as problem:
        raise not_parquet(path, problem) from None
    table = number_table(path, empty, skip_columns, False)
    has_index = named_frame(path, empty) is empty
    index = read_parquet(path, [] if has_index else [str(empty.columns[0])])
    lines = index.index if has_index else index.iloc[:, 0]
    samples = np.array([str(name).strip() for name in lines], dtype=object)
    dtype = table.numbers.dtype
    largest = max(heights, default=0) * table.columns.size * dtype.itemsize
    if largest > _LARGE_GROUP:
        what = f"{path}: a row group holds {largest / 1e9:.1f} GB, which is read at once"
        warnings.warn(f"{what}: netbic convert writes smaller blocks", stacklevel=4)
    return RowSource(
        parquet_rows,
        (str(path.absolute()), skip_columns, dtype.str),
        (samples.size, table.columns.size),
        dtype,
        False,
        np.concatenate([[0], np.cumsum(heights)[:-1]]).astype(np.intp),
        float(table.columns.size * dtype.itemsize),
        samples,
        table.columns,
        ({"step": "columns left out", "named": list(table.skipped)},) if table.skipped else (),
        divisible=False,
    )


def parquet_rows(path: str, skip_columns: tuple[str, ...], dtype: str, first: int, last: int) -> NDArray[Any]:
    """Rows of a Parquet table; the row groups that hold them are read."""
    with readable(path, first, last):
        return _parquet_rows(path, skip_columns, dtype, first, last)


def _parquet_rows(path: str, skip_columns: tuple[str, ...], dtype: str, first: int, last: int) -> NDArray[Any]:
    file = pq.ParquetFile(path)
    heights = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    starts = np.concatenate([[0], np.cumsum(heights)])
    groups = np.flatnonzero((starts[1:] > first) & (starts[:-1] < last))
    frame = file.read_row_groups(groups.tolist()).to_pandas()
    numbers = number_table(Path(path), frame, skip_columns, False).numbers
    start = first - int(starts[groups[0]])
    return np.ascontiguousarray(numbers[start : start + last - first], dtype=dtype)


def as_floats(X: Any) -> Any:
    """A Dask array of floats, in the precision `read_expression` would take."""
    dtype = float_type(X.dtype)
    return X if X.dtype == dtype else by_blocks(X, as_matrix, dtype=dtype)
