"""Parquet files; the sizes they declare are checked before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from netbic.errors import InputError, one_line, shown, unusable
from netbic.io.characters import check_characters
from netbic.io.matrices import as_names, float_type
from netbic.io.tables import NumberTable, columns_to_skip
from netbic.io.text import checked_file
from netbic.io.unpacking import check_memory, check_unpacked_size

ALWAYS_ALLOWED = 1_000_000_000  # bytes that every table may take in memory
LARGEST_RATIO = 400  # bytes in memory per byte of the file
_REFERENCE = 8  # bytes, to a name
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_REMEDY = "write it without compression and dictionaries if it really is that large"


def open_parquet(path: Path, whole: bool = False) -> pq.ParquetFile:
    """A Parquet file whose declared size is plausible.

    Parameters
    ----------
    path : path
    whole : bool
        Whether all of it is going to be in memory; otherwise not more than a row group.
    """
    try:
        file = pq.ParquetFile(checked_file(path))
        _check_size(path, file, whole)
        return file
    except InputError:
        raise
    except Exception as problem:
        raise not_parquet(path, problem) from None


def _check_size(path: Path, file: pq.ParquetFile, whole: bool) -> None:
    packed, free = path.stat().st_size, None if whole else float("inf")
    limits: dict[str, Any] = {"allowed": ALWAYS_ALLOWED, "ratio": LARGEST_RATIO, "free": free, "remedy": _REMEDY}
    sizes = [_group_size(file, number) for number in range(file.num_row_groups)]
    size = sum(sizes) + _REFERENCE * file.metadata.num_rows
    check_unpacked_size(path, packed, size, **limits)
    check_unpacked_size(path, packed, size + _text_size(file, path), **limits)
    check_memory(path, max(sizes, default=0))


def read_parquet(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """A Parquet file, or some of its columns, as a DataFrame."""
    open_parquet(path, whole=columns is None)
    try:
        return pd.read_parquet(path, columns=columns)
    except Exception as problem:
        raise not_parquet(path, problem) from None


def not_parquet(path: Path, problem: Exception) -> InputError:
    """The error for a file that pyarrow cannot read."""
    what = f"cannot be read as Parquet ({one_line(str(problem), 120)})"
    return unusable(path, what, "check that it is one, or write it again")


def _group_size(file: pq.ParquetFile, number: int) -> int:
    """Bytes of a row group in memory, with texts counted as often as they are stored.

    The metadata of a column are read only if it holds lists: if they are damaged, pyarrow ends the process.
    """
    group, schema = file.metadata.row_group(number), file.schema
    fixed = references = 0
    for at in range(len(schema)):
        column = schema.column(at)
        n_values = group.num_rows if column.max_repetition_level == 0 else group.column(at).num_values
        fixed += n_values * _WIDTHS.get(column.physical_type, 0)
        references += n_values * _REFERENCE * (column.physical_type not in _WIDTHS)
    return int(references + max(fixed, group.total_byte_size))


def _text_size(file: pq.ParquetFile, path: Path) -> int:
    """Bytes of all texts in memory: a dictionary may hold one long text that occurs a million times."""
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    if sum(group.num_rows * group.total_byte_size for group in groups) < ALWAYS_ALLOWED:
        return 0  # an upper bound: every text as long as its row group
    columns = [file.schema.column(at) for at in range(len(file.schema))]
    names = [column.path for column in columns if column.physical_type == "BYTE_ARRAY" and "." not in column.path]
    batches = pq.ParquetFile(path, read_dictionary=names).iter_batches(columns=names) if names else ()
    return sum(_written_out(column) for batch in batches for column in batch.columns)


def _written_out(column: pa.Array) -> int:
    if not isinstance(column, pa.DictionaryArray):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = column.indices.drop_null().to_numpy(zero_copy_only=False)
    return int(np.bincount(codes, minlength=lengths.size) @ lengths)


def named_frame(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with names in its index; they may be in its first column."""
    if not isinstance(frame.index, pd.RangeIndex):
        return frame
    if not frame.shape[1] or pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0]):
        raise unusable(path, "has no names: neither an index nor a first column of text", "write it with its index")
    return frame.set_index(frame.columns[0])


def number_table(path: Path, frame: pd.DataFrame, skip_columns: Sequence[str], annotated: bool) -> NumberTable:
    """The numbers of a Parquet table (or of some of its lines) and their names."""
    frame = named_frame(path, frame).copy(deep=False)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns], dtype=object)
    check_characters(path, "column", frame.columns)
    skipped = columns_to_skip(path, list(frame.columns), skip_columns, annotated)
    frame = frame.drop(columns=skipped)
    for name, kind in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            place = shown(str(name))
            remedy = "leave it out (`skip_columns`), or give a table of expression values"
            raise unusable(path, "holds text, not numbers", remedy, column=place, parameters=["skip_columns"])
    if not frame.shape[1]:
        raise unusable(path, "has no column of numbers", "write it again")
    nullable = any(pd.api.types.is_extension_array_dtype(kind) for kind in frame.dtypes)
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else frame.to_numpy()
    numbers = values.astype(float_type(values.dtype), copy=False)
    return NumberTable(numbers, as_names(frame.index), frame.columns.to_numpy(dtype=object), tuple(skipped))
