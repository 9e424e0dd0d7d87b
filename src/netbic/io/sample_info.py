"""Sample tables: a row per sample, columns of text, numbers, or both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.errors import import_optional, one_line, shown, unusable
from netbic.io.characters import check_characters
from netbic.io.expression import file_format
from netbic.io.parquet import read_parquet
from netbic.io.stores import describe, opened
from netbic.io.tables import text_columns
from netbic.io.text import MISSING, Layout, check_quotes, is_plain_number, read_bytes

_OF_NUMBERS = {"None"}  # missing in a column of numbers, but possibly a label ("no treatment") in others
_UNKNOWN = {"<NA>", "[Not Available]", "[Not Applicable]", "[Not Evaluated]", "[Unknown]", "[Discrepancy]"}  # TCGA
_NOT_KNOWN = (set(MISSING) - _OF_NUMBERS) | _UNKNOWN
NA_VALUES: Final = ("unknown", "not known", "not reported", "not available", "missing", "na", "?")


def read_sample_info(path: Path | str, *, na_values: Iterable[str] | None = None) -> pd.DataFrame:
    r"""Read a table that describes samples.

    Parameters
    ----------
    path : path
        A text table (.tsv, .csv, .txt, gzip or not; the separator is guessed) or .parquet with a row for each sample
        and names of columns in the first line; or the obs of an .h5ad file or .zarr store.
    na_values : list of str, optional
        Values that mean that a value is missing, in small or capital letters, in addition to empty fields, NA, NaN and
        the like. Default: unknown, not known, not reported, not available, missing, na, ?.

    Returns
    -------
    DataFrame
        The index contains the first column, the names of the samples. Columns in which all values are numbers are
        numbers, except codes and identifiers (001, whole numbers of more than 15 digits); missing values (empty, NA,
        NaN, ...) are NaN. `attrs["taken_as_missing"]` says which of the `na_values` were found in which columns, and
        how often: `{column: {value: number}}`.

    Examples
    --------
    >>> import tempfile, netbic.io
    >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     _ = file.write("sample\tage\tsubtype\np1\t61\tBasal\np2\tNA\tLumA\n")
    ...     file.flush()
    ...     netbic.io.read_sample_info(file.name)
             age subtype
    sample
    p1      61.0   Basal
    p2       NaN    LumA
    """
    path, words = Path(path), {value.strip().lower() for value in (NA_VALUES if na_values is None else na_values)}
    kind = file_format(path)
    if kind in ("zarr", ".h5ad"):
        table = read_obs(path)
    elif kind == "parquet":
        table = read_parquet(path)
        table = table.set_index(table.columns[0]) if isinstance(table.index, pd.RangeIndex) else table
    else:
        table = _from_text(path, words)
    if not table.shape[1]:
        raise unusable(path, "has names of samples only", "add columns that describe the samples")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise unusable(path, f"has several columns {shown(str(twice[0]))}", "rename or remove them")
    return table if kind not in ("zarr", ".h5ad", "parquet") else _without_words(table, words)


def _without_words(table: pd.DataFrame, words: set[str]) -> pd.DataFrame:
    """The table with missing values instead of words for them, and a record of them."""
    found, columns = dict[str, dict[str, int]](), dict[Any, "pd.Series[Any]"]()
    for name, column in table.items():
        if column.dtype.kind not in "OSU" and not isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
            continue
        kept, counts = _known(column, words)
        if counts:
            found[str(name)], columns[name] = counts, kept
    table = table.assign(**columns)
    table.attrs["taken_as_missing"] = found
    return table


def _known(column: pd.Series[Any], words: set[str]) -> tuple[pd.Series[Any], dict[str, int]]:
    """The column with missing values instead of words for them, and how often each of these occurs."""
    given = [value for value in column.dropna().unique() if isinstance(value, str) and value.strip().lower() in words]
    if not given:
        return column, {}
    counts = {str(value): int((column == value).sum()) for value in given}
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_categories(given), counts
    return column.where(~column.isin(given)), counts


def read_obs(path: Path) -> pd.DataFrame:
    """The obs of an .h5ad file or .zarr store."""
    describe(path)  # checks the file
    elements = import_optional("anndata", "anndata", "the obs of an AnnData file").io
    try:
        with opened(str(path)) as root:
            table: pd.DataFrame = elements.read_elem(root["obs"])
            return table
    except Exception as problem:  # anndata, h5py and zarr raise many kinds of errors for damaged files
        what = f"has an obs that cannot be read ({one_line(str(problem), 120)})"
        raise unusable(path, what, "write it again") from None


def _from_text(path: Path, words: set[str]) -> pd.DataFrame:
    data = read_bytes(path)
    layout = Layout.of(path, data)
    check_quotes(layout, data)
    names = [name.lstrip("#").strip() for name in layout.first]
    names = ["", *names] if len(names) == layout.n_fields - 1 else names  # as R writes row names
    if len(names) != layout.n_fields:
        what = f"names {len(names)} columns but the lines below have {layout.n_fields} fields"
        raise unusable(path, what, "make them agree", line=layout.n_skipped + 1)
    check_characters(path, "column", names)
    _check_header(path, names, layout)
    columns = text_columns(layout, data, names)
    check_characters(path, "sample", columns[0])
    index = pd.Index(columns[0], name=names[0] or "sample", dtype=object)
    found, own = dict[str, dict[str, int]](), dict[str, "pd.Series[Any]"]()
    for name, values in zip(names[1:], columns[1:], strict=True):
        known, counts = _known(pd.Series(np.asarray(values, dtype=object)), words)
        own[name] = _typed(known)
        found |= {name: counts} if counts else {}
    table = pd.DataFrame(own).set_axis(index)
    table.attrs["taken_as_missing"] = found
    return table


def _check_header(path: Path, names: list[str], layout: Layout) -> None:
    line = layout.n_skipped + 1
    if "" in names[1:]:
        what = f"column {names.index('', 1) + 1} has no name"
        raise unusable(path, what, "name it, or remove the column", line=line)
    name, times = Counter(names[1:]).most_common(1)[0] if names[1:] else ("", 1)
    if times > 1:
        raise unusable(path, f"has {times} columns {shown(name)}", "rename or remove them", line=line)


def _typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of text as numbers if all of its values are numbers."""
    numbers = column.where(~column.isin(_NOT_KNOWN | _OF_NUMBERS))
    if numbers.notna().any() and all(is_plain_number(value) for value in numbers.dropna().unique()):
        column = pd.to_numeric(numbers)
    else:
        column = column.where(~column.isin(_NOT_KNOWN))
    return column
