"""Matrices that lie the wrong way round for reading rows, brought to temporary files from which rows can be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.errors import one_line, unusable
from netbic.readers import (
    NameArray,
    NumberTable,
    RowSource,
    StoredMatrix,
    TenX,
    float_type,
    not_parquet,
    number_pieces,
    number_table,
    open_parquet,
    parts_of_10x,
    single_spaced,
    stored_columns,
    text_pieces,
)

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # rows, columns, values
Told = Callable[[float], Any]

_BATCH = 1 << 25  # bytes of a table, or entries' bytes, at a time


# ----------------------------------------------------------------------------------------------------------------
# Tables
# ----------------------------------------------------------------------------------------------------------------


def spooled_table(pieces: Iterable[NumberTable], scratch: Path, samples_in_rows: bool, dtype: Any) -> RowSource:
    """Lines of a table, written one after the other as they come."""
    path, lines = scratch / "lines", list[Any]()
    with path.open("wb") as file:
        for piece in pieces:
            dtype = piece.numbers.dtype if dtype is None else dtype
            file.write(np.ascontiguousarray(piece.numbers, dtype=dtype).data)
            lines.extend(piece.lines)
    named = np.array(lines, dtype=object)
    samples, genes = (named, piece.columns) if samples_in_rows else (piece.columns, named)
    shape, dtype = (samples.size, genes.size), np.dtype(dtype)
    return RowSource(
        lines_of if samples_in_rows else turned_lines,
        (str(path), dtype.str, len(lines), piece.columns.size),
        shape,
        dtype,
        False,
        np.arange(shape[0]),
        float(shape[1] * dtype.itemsize),
        samples,
        genes,
        ({"step": "columns left out", "named": list(piece.skipped)},) if piece.skipped else (),
    )


def lines_of(path: str, dtype: str, n_lines: int, n_columns: int, first: int, last: int) -> NDArray[Any]:
    """Some lines."""
    start = first * n_columns * np.dtype(dtype).itemsize
    return np.fromfile(path, dtype, (last - first) * n_columns, offset=start).reshape(last - first, n_columns)


def turned_lines(path: str, dtype: str, n_lines: int, n_columns: int, first: int, last: int) -> NDArray[Any]:
    """Some columns of all lines, as rows."""
    size = np.dtype(dtype).itemsize
    values = np.empty((n_lines, last - first), dtype=dtype)
    with open(path, "rb", buffering=0) as file:
        for line in range(n_lines):
            file.seek((line * n_columns + first) * size)
            file.readinto(values[line].data)
    return np.ascontiguousarray(values.T)


def text_source(path: Path, scratch: Path, skip: Any, samples_in_rows: bool, dtype: Any, told: Told) -> RowSource:
    """A text table."""
    pieces = number_pieces(path, text_pieces(path, told=told), skip, not samples_in_rows)
    return spooled_table(pieces, scratch, samples_in_rows, dtype)


def parquet_source(path: Path, scratch: Path, skip: Any, samples_in_rows: bool, dtype: Any, told: Told) -> RowSource:
    """A Parquet table, either way round."""
    return spooled_table(_batches(path, skip, not samples_in_rows, told), scratch, samples_in_rows, dtype)


def _batches(path: Path, skip: Any, annotated: bool, told: Told) -> Iterator[NumberTable]:
    file = open_parquet(path)
    try:
        if not file.metadata.num_rows:
            raise unusable(path, "has a header and nothing else", "write or download it again")
        height = max(1, _BATCH // (8 * max(1, len(file.schema_arrow.names))))
        done = 0
        for batch in file.iter_batches(height):
            yield number_table(path, pa.Table.from_batches([batch]).to_pandas(), skip, annotated)
            done += batch.num_rows
            told(done / file.metadata.num_rows)
    except (pa.ArrowException, OSError) as problem:
        raise not_parquet(path, problem) from None


# ----------------------------------------------------------------------------------------------------------------
# Entries of sparse matrices
# ----------------------------------------------------------------------------------------------------------------


def spooled_entries(
    pieces: Iterable[Entries],
    scratch: Path,
    samples: NameArray,
    genes: NameArray,
    dtype: Any,
    steps: tuple[Any, ...] = (),
) -> RowSource:
    """Entries of a sparse matrix in any order, brought to rows: counted first, then each put into its place."""
    shape = (samples.size, genes.size)
    counts = _written(pieces, scratch, shape[0], dtype)
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
    bytes_per_row = float(starts[-1] * (np.dtype(dtype).itemsize + 4) / max(shape[0], 1))
    arguments, cuts = (str(scratch), shape[1]), np.arange(shape[0])
    return RowSource(
        rows_of_entries, arguments, shape, np.dtype(dtype), True, cuts, bytes_per_row, samples, genes, steps
    )


def rows_of_entries(folder: str, n_columns: int, first: int, last: int) -> Any:
    """Some rows, as CSR; entries of one place are added up."""
    starts, columns, values = (np.load(f"{folder}/{n}.npy", mmap_mode="r") for n in ("starts", "columns", "values"))
    bounds = np.array(starts[first : last + 1])
    own = slice(bounds[0], bounds[-1])
    rows = sp.csr_array((np.array(values[own]), np.array(columns[own]), bounds - bounds[0]), (last - first, n_columns))
    rows.sum_duplicates()
    return rows


def _written(pieces: Iterable[Entries], scratch: Path, n_rows: int, dtype: Any) -> NDArray[np.int64]:
    """Write entries as they come; how many each row has."""
    counts = np.zeros(n_rows, dtype=np.int64)
    with ExitStack() as closing:
        files = [closing.enter_context((scratch / str(at)).open("wb")) for at in range(3)]
        for piece in pieces:
            counts += np.bincount(piece[0], minlength=n_rows)
            for part, kind, file in zip(piece, (np.int32, np.int32, dtype), files, strict=True):
                file.write(np.ascontiguousarray(part, dtype=kind).data)
    return counts


def _read_again(scratch: Path, count: int, dtype: Any) -> Iterator[list[NDArray[Any]]]:
    step, kinds = _BATCH // 8, (np.dtype(np.int32), np.dtype(np.int32), np.dtype(dtype))
    for start in range(0, int(count), step):
        yield [
            np.fromfile(scratch / str(at), kind, step, offset=start * kind.itemsize) for at, kind in enumerate(kinds)
        ]


def _new(path: Path, dtype: Any, size: int) -> NDArray[Any]:
    """An array in a file. Its space is reserved: a disk that is full later would end the process by a signal."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(int(size),))
    if reserve := getattr(os, "posix_fallocate", None):
        with path.open("r+b") as file:
            reserve(file.fileno(), 0, path.stat().st_size)
    return array


def csc_source(stored: StoredMatrix, scratch: Path, dtype: Any, told: Told) -> RowSource:
    """A matrix that is stored by columns."""
    kind = float_type(stored.dtype) if dtype is None else dtype

    def pieces() -> Iterator[Entries]:
        for columns, rows, values in stored_columns(stored, _BATCH // 8):
            yield rows, columns, values
            told(columns[-1] / stored.shape[1] if columns.size else 0.0)

    return spooled_entries(pieces(), scratch, stored.samples, stored.genes, kind)


def tenx_source(folder: Path, scratch: Path, gene_names: str | None, dtype: Any, told: Told) -> RowSource:
    """A 10x folder."""
    parts = parts_of_10x(folder, gene_names)
    places = np.full(parts.features.size, -1, dtype=np.int64)
    places[parts.kept] = np.arange(parts.kept.size)

    def pieces() -> Iterator[Entries]:
        for genes, cells, values in _market_entries(parts, told):
            columns = places[genes]
            yield cells[columns >= 0], columns[columns >= 0], values[columns >= 0]

    genes, kind = parts.features[parts.kept], np.float64 if dtype is None else dtype
    return spooled_entries(pieces(), scratch, parts.barcodes, genes, kind, parts.steps)


def _market_entries(parts: TenX, told: Told) -> Iterator[Entries]:
    """Rows (genes), columns (cells) and values of a MatrixMarket file, counted from 0."""
    path, fields, begun = parts.matrix_file, 3, False
    for _, data in text_pieces(path, told=told):
        if not begun:
            fields, data = _market_header(parts, data)
            begun = True
        if not data.strip():
            continue
        try:
            table = _three_columns(data, fields)
        except pa.ArrowException as problem:
            what = f"cannot be read as a MatrixMarket file ({one_line(str(problem), 120)})"
            raise unusable(path, what, "download it again") from None
        rows, columns = (table.column(at).to_numpy() - 1 for at in (0, 1))
        for numbers, size in ((rows, parts.features.size), (columns, parts.barcodes.size)):
            if numbers.min() < 0 or numbers.max() >= size:
                raise unusable(path, f"has an entry at {numbers.max() + 1:,} of {size:,}", "download it again")
        values = table.column(2).to_numpy() if fields == 3 else np.ones(rows.size)
        yield rows, columns, values


def _market_header(parts: TenX, data: bytes) -> tuple[int, bytes]:
    """Fields per line, and what comes after the header; an error if its size is not that of the names."""
    first, _, rest = data.partition(b"\n")
    words = first.decode(errors="replace").lower().split()
    if len(words) != 5 or words[2] != "coordinate" or words[3] not in ("integer", "real", "pattern"):
        what = "is not a MatrixMarket file of coordinates"
        raise unusable(parts.matrix_file, what, "download it again")
    if words[4] != "general":
        raise unusable(parts.matrix_file, f"is {words[4]}", "a general matrix of genes by cells is needed")
    line = b"%"
    while line.startswith(b"%") or (rest and not line.strip()):
        line, _, rest = rest.partition(b"\n")
    sizes = [int(word) if word.isdigit() else 0 for word in line.split()]
    if len(sizes) != 3:
        raise unusable(parts.matrix_file, "is not a MatrixMarket file of coordinates", "download it again")
    parts.check_size(sizes[1], sizes[0])
    return 2 if words[3] == "pattern" else 3, rest


def _three_columns(data: bytes, fields: int) -> pa.Table:
    if b"  " in data or b"\t" in data or b" \n" in data or b"\n " in data or data[:1] == b" ":
        data = single_spaced(data)
    kinds = dict(zip(("f0", "f1", "f2"), (pa.int64(), pa.int64(), pa.float64()), strict=True))
    reading = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 24)
    table = arrow_csv.read_csv(
        pa.BufferReader(data),
        reading,
        arrow_csv.ParseOptions(delimiter=" "),
        arrow_csv.ConvertOptions(column_types=dict(list(kinds.items())[:fields])),
    )
    if table.num_columns != fields:
        raise pa.ArrowInvalid(f"{table.num_columns} columns where {fields} are expected")
    return table
