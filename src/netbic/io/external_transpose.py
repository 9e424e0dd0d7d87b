"""External transpose: matrices stored by genes, written to temporary files from which samples can be read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from netbic.arrays import Array, Matrix
from netbic.errors import unusable
from netbic.io.expression import file_format
from netbic.io.lazy import RowSource
from netbic.io.matrices import NameArray, Step, float_type
from netbic.io.options import ExpressionOptions
from netbic.io.parquet import not_parquet, number_table, open_parquet
from netbic.io.stores import StoredMatrix, stored_columns
from netbic.io.tables import NumberTable, number_pieces
from netbic.io.tenx import TenX
from netbic.io.text import Progress, text_pieces

Entries = tuple[Array, Array, Array]  # rows, columns, values

_BATCH = 1 << 25  # bytes of a table, or entries' bytes, at a time


# ----------------------------------------------------------------------------------------------------------------
# Tables
# ----------------------------------------------------------------------------------------------------------------


def table_source(
    path: Path, scratch: Path, options: ExpressionOptions, dtype: DTypeLike | None, progress: Progress
) -> RowSource:
    """A text or Parquet table with samples or genes in rows; its lines are written to a file one after the other."""
    pieces = _parquet_pieces if file_format(path) == "parquet" else _text_pieces
    lines_file, lines = scratch / "lines", list[Any]()
    with lines_file.open("wb") as file:
        for piece in pieces(path, options.skip_columns, not options.samples_in_rows, progress):
            dtype = piece.numbers.dtype if dtype is None else dtype
            file.write(np.ascontiguousarray(piece.numbers, dtype=dtype).data)
            lines.extend(piece.lines)
    named, kind = np.array(lines, dtype=object), np.dtype(dtype)
    samples, genes = (named, piece.columns) if options.samples_in_rows else (piece.columns, named)
    arguments = (str(lines_file), kind.str, len(lines), piece.columns.size)
    load = lines_of if options.samples_in_rows else transposed_lines
    return RowSource(load, arguments, samples, genes, kind, steps=piece.steps)


def _text_pieces(path: Path, skip: Sequence[str], annotated: bool, progress: Progress) -> Iterator[NumberTable]:
    return number_pieces(path, text_pieces(path, progress=progress), skip, annotated)


def _parquet_pieces(path: Path, skip: Sequence[str], annotated: bool, progress: Progress) -> Iterator[NumberTable]:
    file = open_parquet(path)
    try:
        if not file.metadata.num_rows:
            raise unusable(path, "contains only a header", "write or download it again")
        height = max(1, _BATCH // (8 * max(1, len(file.schema_arrow.names))))
        done = 0
        for batch in file.iter_batches(height):
            yield number_table(path, pa.Table.from_batches([batch]).to_pandas(), skip, annotated)
            done += batch.num_rows
            progress(done / file.metadata.num_rows)
    except (pa.ArrowException, OSError) as problem:
        raise not_parquet(path, problem) from None


def lines_of(path: str, dtype: str, n_lines: int, n_columns: int, first: int, last: int) -> Array:
    """Some lines."""
    start = first * n_columns * np.dtype(dtype).itemsize
    return np.fromfile(path, dtype, (last - first) * n_columns, offset=start).reshape(last - first, n_columns)


def transposed_lines(path: str, dtype: str, n_lines: int, n_columns: int, first: int, last: int) -> Array:
    """Some columns of all lines, as rows; read by hand, since pages of a memory map would count as memory in use."""
    size = np.dtype(dtype).itemsize
    values = np.empty((n_lines, last - first), dtype=dtype)
    with open(path, "rb", buffering=0) as file:
        for line in range(n_lines):
            file.seek((line * n_columns + first) * size)
            file.readinto(values[line].data)
    return np.ascontiguousarray(values.T)


# ----------------------------------------------------------------------------------------------------------------
# Entries of sparse matrices
# ----------------------------------------------------------------------------------------------------------------


def entries_on_disk(
    pieces: Iterable[Entries],
    scratch: Path,
    samples: NameArray,
    genes: NameArray,
    dtype: DTypeLike,
    steps: tuple[Step, ...] = (),
) -> RowSource:
    """Entries of a sparse matrix in any order, sorted by rows: counted first, then each written to its place."""
    counts = _written(pieces, scratch, samples.size, dtype)
    starts = np.concatenate([[0], np.cumsum(counts)])
    np.save(scratch / "starts.npy", starts)
    columns = _new(scratch / "columns.npy", np.int32, starts[-1])
    values = _new(scratch / "values.npy", dtype, starts[-1])
    free = starts[:-1].copy()
    for rows, *parts in _read_again(scratch, starts[-1], dtype):
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        met, first, times = np.unique(rows, return_index=True, return_counts=True)
        places = free[rows] + np.arange(rows.size) - np.repeat(first, times)
        free[met] += times
        columns[places], values[places] = (part[order] for part in parts)
    kind, arguments = np.dtype(dtype), (str(scratch), int(genes.size))
    row_bytes = float(starts[-1] * (kind.itemsize + 4) / max(samples.size, 1))
    return RowSource(rows_of_entries, arguments, samples, genes, kind, True, row_bytes, steps=steps)


def rows_of_entries(folder: str, n_columns: int, first: int, last: int) -> Matrix:
    """Some rows, as CSR; entries at the same place are added up."""
    starts, columns, values = (np.load(f"{folder}/{n}.npy", mmap_mode="r") for n in ("starts", "columns", "values"))
    bounds = np.array(starts[first : last + 1])
    own = slice(bounds[0], bounds[-1])
    rows = sp.csr_array((np.array(values[own]), np.array(columns[own]), bounds - bounds[0]), (last - first, n_columns))
    rows.sum_duplicates()
    return rows


def _written(pieces: Iterable[Entries], scratch: Path, n_rows: int, dtype: DTypeLike) -> NDArray[np.int64]:
    """Write entries as they come; returns the number of entries of each row."""
    counts = np.zeros(n_rows, dtype=np.int64)
    with ExitStack() as closing:
        files = [closing.enter_context((scratch / str(at)).open("wb")) for at in range(3)]
        for piece in pieces:
            counts += np.bincount(piece[0], minlength=n_rows)
            for part, kind, file in zip(piece, (np.int32, np.int32, dtype), files, strict=True):
                file.write(np.ascontiguousarray(part, dtype=kind).data)
    return counts


def _read_again(scratch: Path, count: int, dtype: DTypeLike) -> Iterator[list[Array]]:
    step, kinds = _BATCH // 8, (np.dtype(np.int32), np.dtype(np.int32), np.dtype(dtype))
    for start in range(0, int(count), step):
        yield [
            np.fromfile(scratch / str(at), kind, step, offset=start * kind.itemsize) for at, kind in enumerate(kinds)
        ]


def _new(path: Path, dtype: DTypeLike, size: int) -> Array:
    """An array in a file. Its space is reserved: a disk that fills up later would kill the process by a signal."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(int(size),))
    if reserve := getattr(os, "posix_fallocate", None):
        with path.open("r+b") as file:
            reserve(file.fileno(), 0, path.stat().st_size)
    return array


def csc_source(stored: StoredMatrix, scratch: Path, dtype: DTypeLike | None, progress: Progress) -> RowSource:
    """A matrix that is stored by columns."""
    kind = float_type(stored.dtype) if dtype is None else dtype

    def pieces() -> Iterator[Entries]:
        for columns, rows, values in stored_columns(stored, _BATCH // 8):
            yield rows, columns, values
            progress(columns[-1] / stored.shape[1] if columns.size else 0.0)

    return entries_on_disk(pieces(), scratch, stored.samples, stored.genes, kind)


def tenx_source(
    folder: Path, scratch: Path, gene_names: str | None, dtype: DTypeLike | None, progress: Progress
) -> RowSource:
    """A 10x folder."""
    tenx = TenX.open(folder, gene_names)
    kind = np.float64 if dtype is None else dtype
    genes = tenx.features[tenx.kept]
    return entries_on_disk(tenx.entries(progress), scratch, tenx.barcodes, genes, kind, tenx.steps)
