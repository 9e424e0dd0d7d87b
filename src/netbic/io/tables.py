"""Text tables parsed in bulk: a matrix of numbers with names, or columns of text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from netbic.arrays import Array, Floats
from netbic.errors import one_line, shown, unusable
from netbic.io.characters import check_characters
from netbic.io.matrices import NameArray, Step
from netbic.io.text import (
    MISSING,
    Layout,
    check_quotes,
    first_problem,
    is_number,
    not_an_expression_table,
    read_bytes,
    single_spaced,
    trimmed,
)


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers with a name for every line and column; missing values are NaN."""

    numbers: Array
    lines: NameArray
    columns: NameArray
    skipped: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was left out, as a step of the preprocessing."""
        return ({"step": "columns left out", "named": list(self.skipped)},) if self.skipped else ()


def read_numbers(path: Path | str, skip_columns: Sequence[str] = (), annotated: bool = True) -> NumberTable:
    """Read a table of numbers with names in its first line and first column.

    Parameters
    ----------
    path : path
        Tabs, commas, semicolons or spaces; gzip or not. The first line may lack a name for the column of names (as R
        writes it).
    skip_columns : sequence of str
        Columns (beyond the first) to leave out, such as descriptions.
    annotated : bool
        Also leave out columns whose names are those of usual annotations (Entrez_Gene_Id, Description, Length, ...).
    """
    return next(number_pieces(path, [(0, read_bytes(path))], skip_columns, annotated))


def number_pieces(
    path: Path | str, pieces: Iterable[tuple[int, bytes]], skip_columns: Sequence[str] = (), annotated: bool = True
) -> Iterator[NumberTable]:
    """The same piece by piece (`text_pieces`): some lines of the table at a time."""
    pieces = iter(pieces)
    _, data = next(pieces)
    layout = Layout.of(path, data)
    check_quotes(layout, data)
    header = _header(layout, data)
    check_characters(path, "column", header)
    skipped = columns_to_skip(path, header[1:], skip_columns, annotated)
    kept = [position for position, name in enumerate(header) if position and name not in skipped]
    if not kept:
        raise unusable(path, "has no column of numbers left", "skip fewer columns")
    types = dict.fromkeys(range(layout.n_fields), pa.string()) | dict.fromkeys(kept, pa.float64())
    columns = np.array([header[at] for at in kept], dtype=object)
    yield NumberTable(*_numbers(layout, data, types, header, True), columns, tuple(skipped))
    for before, piece in pieces:
        if piece.strip():
            later = replace(layout, n_skipped=0, before=before)
            check_quotes(later, piece)
            yield NumberTable(*_numbers(later, piece, types, header, False), columns, tuple(skipped))


def _numbers(
    layout: Layout, data: bytes, types: dict[int, Any], header: Sequence[str], skip_first: bool
) -> tuple[Floats, NameArray]:
    """Columns of numbers side by side, and the names in the first column."""
    kept = [position for position, kind in types.items() if kind != pa.string()]
    if len(kept) == len(types) - 1 >= _WIDE:
        found = _wide(layout, data, len(kept), skip_first)
        if found is not None:
            return found
    table = _parsed(layout, data, types, header, skip_first)
    values = np.empty((table.num_rows, len(kept)))
    for at, position in enumerate(kept):
        values[:, at] = table.column(position).to_numpy(zero_copy_only=False)
    return values, _text(table.column(0))


def _wide(layout: Layout, data: bytes, n_columns: int, skip_first: bool) -> tuple[Floats, NameArray] | None:
    """The same, parsed as one long column: faster if there are thousands of columns. None if that fails."""
    if b'"' in data or layout.separator == " ":
        return None
    mark = layout.separator.encode()
    lines = [line for line in data.splitlines()[layout.n_skipped + skip_first :] if line.strip()]
    names, _, numbers = zip(*(line.partition(mark) for line in lines), strict=True) if lines else ((), (), ())
    if not lines or any(line.count(mark) != n_columns - 1 for line in numbers):
        return None
    column = b"\n".join(numbers).replace(mark, b"\n") + b"\n"
    del lines, numbers
    try:
        table = _by_arrow(Layout(layout.path, ",", 0, [], 1), column, {0: pa.float64()}, 0, ignore_empty_lines=False)
    except pa.ArrowException:
        return None
    if table.num_rows != len(names) * n_columns or table.num_columns != 1:
        return None
    values = table.column(0).to_numpy(zero_copy_only=False).reshape(len(names), n_columns)
    return values, np.array([name.decode().strip() for name in names], dtype=object)


_WIDE = 1000  # columns
_ANNOTATIONS = """entrez_gene_id entrezgene entrezid entrez_id entrez gene_id geneid gene_name genename gene_symbol
description gene_description length gene_length effective_length chr chrom chromosome start end strand biotype
gene_biotype gene_type hgnc_id ensembl_id ensembl_gene_id uniprot locus cytoband band"""
_ANNOTATION_NAMES = frozenset(_ANNOTATIONS.split())


def columns_to_skip(path: Path | str, names: Sequence[str], asked: Sequence[str], annotated: bool) -> list[str]:
    """The columns to leave out: those asked for, and those with the name of an annotation."""
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise unusable(path, f"has no column {shown(unknown[0])} to skip", f"its columns are {_some(names)}")
    annotations = [name for name in names if annotated and column_key(name) in _ANNOTATION_NAMES]
    return list(dict.fromkeys([*asked, *annotations]))


def column_key(name: str) -> str:
    """The name of a column in lower case, with one underscore for all other characters than letters and digits."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


@dataclass(frozen=True)
class TextTable:
    """Columns of text, and the number of header lines above them."""

    frame: pd.DataFrame
    n_header: int


def read_columns(path: Path | str, header: bool | None, data: bytes | None = None) -> TextTable:
    """Read a table of text columns, each as categories, named by a header line if there is one.

    `header` None: the first line is a header if it has text above numbers, or usual names of the ends of an edge.
    """
    data = read_bytes(path) if data is None else data
    layout = Layout.of(path, data)
    check_quotes(layout, data)
    has_header = looks_like_header(layout, data) if header is None else header
    n_fields = layout.n_fields
    if has_header and len(layout.first) != n_fields:
        what = f"names {len(layout.first)} columns but the lines below have {n_fields} fields"
        raise unusable(path, what, "make them agree", line=layout.n_skipped + 1)
    names = [field.lstrip("#").strip() for field in layout.first] if has_header else [str(k) for k in range(n_fields)]
    table = _parsed(layout, data, dict.fromkeys(range(n_fields), pa.string()), names, skip_first=has_header)
    if not table.num_rows:
        raise unusable(path, "contains only a header", "write or download it again")
    frame = pd.DataFrame({at: _categories(table.column(at)) for at in range(n_fields)})
    return TextTable(frame.set_axis(pd.Index(names, dtype=object), axis=1), int(has_header))


def text_columns(layout: Layout, data: bytes, names: Sequence[str]) -> list[NameArray]:
    """All columns of a table below its header line, as text."""
    table = _parsed(layout, data, dict.fromkeys(range(len(names)), pa.string()), names)
    return [_text(table.column(at)) for at in range(len(names))]


_ENDS = re.compile(
    r"(source|target|from|to|tf|regulator|(official_symbol_|entrez_gene_)?(gene|node|protein|symbol|name|participant|"
    r"interactor|partner|id|entrez|ensembl|alias|uniprot|hgnc)(_?(a|b|x|y|1|2|id|name|symbol))?|gene_symbol_?[ab12]|"
    r"string_protein_id|preferred_name|ensembl_gene_id|old|new)(_name|_id)?"
)


def looks_like_header(layout: Layout, data: bytes) -> bool:
    """Whether the first line is a header: names of ends of edges that occur nowhere below, or text above numbers."""
    names = [field.lstrip("#").strip() for field in layout.first]
    if layout.first[0].startswith("#") or not names[0]:
        return True
    ends = [name for name in names if _ENDS.fullmatch(column_key(name))]
    if len(ends) >= 2:
        below = (field.strip() for _, fields in islice(layout.rows(data, skip=1), 1000) for field in fields)
        return not set(ends).intersection(below)
    second = next(layout.rows(data, skip=1), (0, []))[1]
    return any(is_number(below) and not is_number(above) for above, below in zip(names[2:], second[2:], strict=False))


_FIRST_NAMES = """gene genes symbol symbols id ids name names probe probes feature hugo_symbol gene_symbol
gene_name gene_id ensembl sample samples cell cells x geneid id_ref probe_id unnamed_0 index barcode patient rownames
row_names"""  # of the first column


def _header(layout: Layout, data: bytes) -> list[str]:
    """A name for every column of a table of numbers."""
    first, n_fields = [field.strip() for field in layout.first], layout.n_fields
    line = layout.n_skipped + 1
    second = next(layout.rows(data, skip=1), (0, []))[1]
    if (
        len(first) == n_fields - 1
        and column_key(first[0]) not in (set(_FIRST_NAMES.split()) - {"x"})
        and second
        and second[-1].strip()
    ):
        first = ["", *first]
    if len(first) != n_fields:
        if (few := not_an_expression_table(layout, data)) is not None:
            raise few
        what = f"names {len(first)} columns but the lines below have {n_fields} fields (separator: {layout.spelled})"
        remedy = "make them agree (is there a separator too many at the end, or is this not an expression table?)"
        raise unusable(layout.path, what, remedy, line=line)
    numbers = [field for field in first[1:] if is_number(field)]
    whole = all(field.lstrip("+-").isdigit() for field in numbers)
    if 2 * len(numbers) > n_fields - 1 and not (whole and column_key(first[0]) in {"", *_FIRST_NAMES.split()}):
        what = f"the first line holds numbers ({shown(numbers[0])}) where names of columns are expected"
        remedy = "add a header line; if these are names, call the first column 'gene'"
        raise unusable(layout.path, what, remedy, line=line)
    blank = next((at for at, field in enumerate(first) if at and not field), None)
    if blank is not None:
        raise unusable(layout.path, f"column {blank + 1} has no name", "name it, or remove the column", line=line)
    return first


def _parsed(
    layout: Layout, data: bytes, types: dict[int, Any], names: Sequence[str], skip_first: bool = True
) -> pa.Table:
    """All lines, each column with its type; an error that describes the first problem."""
    skip = 1 if skip_first else 0
    if next(layout.rows(data, skip), None) is None:
        raise unusable(layout.path, "contains only a header", "write or download it again")
    if layout.separator == " " and (b"  " in data or b" \n" in data or b"\n " in data or b"\t" in data):
        data = single_spaced(data)
    try:
        table = _by_arrow(layout, data, types, skip)
        if table.num_columns != len(types):
            raise pa.ArrowInvalid(f"{table.num_columns} columns where {len(types)} are expected")
        return table
    except pa.ArrowException as problem:
        numeric = [at for at, kind in types.items() if kind != pa.string()]
        wrong = first_problem(layout, data, len(types), skip, numeric, names)
        if wrong is not None:
            raise wrong from None
        return _by_pandas(layout, trimmed(data, layout.separator), types, skip, one_line(str(problem), 200))


def _by_arrow(
    layout: Layout, data: bytes, types: dict[int, Any], skip: int, ignore_empty_lines: bool = True
) -> pa.Table:
    longest = max(map(len, data[: 1 << 20].splitlines()), default=0)  # a block must hold at least one line
    reading = arrow_csv.ReadOptions(
        skip_rows=layout.n_skipped + skip, autogenerate_column_names=True, block_size=max(1 << 22, 32 * longest)
    )
    converting = arrow_csv.ConvertOptions(
        column_types={f"f{at}": kind for at, kind in types.items()},
        null_values=list(MISSING),
        strings_can_be_null=False,
    )
    parsing = arrow_csv.ParseOptions(delimiter=layout.separator, ignore_empty_lines=ignore_empty_lines)
    return arrow_csv.read_csv(pa.BufferReader(data), reading, parsing, converting)


def _by_pandas(layout: Layout, data: bytes, types: dict[int, Any], skip: int, problem: str) -> pa.Table:
    """The slow parser, which accepts blanks around numbers and stray quotes."""
    kinds: Any = {at: str if kind == pa.string() else np.float64 for at, kind in types.items()}
    missing: Any = {at: list(MISSING) for at, kind in types.items() if kind != pa.string()}
    wrong = unusable(layout.path, f"cannot be parsed ({problem})", "check its separators and quotes")
    try:
        frame = pd.read_csv(
            io.BytesIO(data),
            sep=layout.separator,
            header=None,
            skiprows=layout.n_skipped + skip,
            dtype=kinds,
            na_values=missing,
            keep_default_na=False,
            skipinitialspace=True,
        )
        table = pa.Table.from_pandas(frame.rename(columns=lambda at: f"f{at}"), preserve_index=False)
    except (ValueError, pa.ArrowException):
        raise wrong from None
    if table.num_columns != len(types):
        raise wrong
    return table


def _text(column: pa.ChunkedArray) -> NameArray:
    """A column of text without blanks around it."""
    return np.asarray(pc.utf8_trim_whitespace(column).to_numpy(zero_copy_only=False), dtype=object)


def _categories(column: pa.ChunkedArray) -> pd.Categorical:
    encoded = pc.utf8_trim_whitespace(column).dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows
        encoded = encoded.chunk(0)
    labels = np.asarray(encoded.dictionary.to_numpy(zero_copy_only=False), dtype=object)
    return pd.Categorical.from_codes(encoded.indices.to_numpy(zero_copy_only=False), categories=pd.Index(labels))


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:5])) + (", ..." if len(names) > 5 else "")
