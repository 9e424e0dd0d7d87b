"""Tables in text and Parquet files: a matrix of numbers with names, or columns of text.

Text is unpacked, decoded and cut into lines and fields; errors say what is wrong, and where.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from netbic.arrays import Array, Floats, Matrix, checked, is_sparse
from netbic.errors import InputError, one_line, shown, unusable

Progress = Callable[[float], object]
NameArray = NDArray[np.object_]
MISSING = ("", "NA", "NaN", "nan", "N/A", "n/a", "null", "NULL", "None", "#N/A")  # how tables write a missing value
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}
_EXACT_DIGITS = 15  # of a whole number that every program keeps
_LOOKED_AT = 30  # lines from which the layout is guessed
_PIECE = 1 << 22  # bytes that are read at a time
_BLANKS = re.compile(rb"[ \t]+")
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PACKED = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
# Byte-order marks; those of UTF-32 begin with those of UTF-16.
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
# Control characters except tab and line feed, which quoted fields may contain; and lone surrogates.
_FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
Step = dict[str, Any]  # of the preprocessing: its name ("step"), counts and the genes concerned
_WIDE = 1000  # columns
_ANNOTATIONS = """entrez_gene_id entrezgene entrezid entrez_id entrez gene_id geneid gene_name genename gene_symbol
description gene_description length gene_length effective_length chr chrom chromosome start end strand biotype
gene_biotype gene_type hgnc_id ensembl_id ensembl_gene_id uniprot locus cytoband band""".split()  # noqa: SIM905
_FIRST_NAMES = """gene genes symbol symbols id ids name names probe probes feature hugo_symbol gene_symbol
gene_name gene_id ensembl sample samples cell cells x geneid id_ref probe_id unnamed_0 index barcode patient rownames
row_names""".split()  # noqa: SIM905  # of the first column
_ENDS = re.compile(
    r"(source|target|from|to|tf|regulator|(official_symbol_|entrez_gene_)?(gene|node|protein|symbol|name|participant|"
    r"interactor|partner|id|entrez|ensembl|alias|uniprot|hgnc)(_?(a|b|x|y|1|2|id|name|symbol))?|gene_symbol_?[ab12]|"
    r"string_protein_id|preferred_name|ensembl_gene_id|old|new)(_name|_id)?"
)


# Names


def as_names(names: Iterable[Any]) -> NameArray:
    """Names as text without blanks around them."""
    texts = (name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names)
    return np.array([text.strip() for text in texts], dtype=object)


def check_characters(path: Path | str, kind: str, names: Iterable[Any], line: int | None = None) -> None:
    """Raise if one of the names (or of a column of categories) in a file holds a control character."""
    codes = getattr(names, "codes", None)  # of categories, each of which is looked at once
    texts = list(map(str, names if codes is None else names.categories))  # type: ignore[attr-defined]
    joined = "".join(texts)  # one search for all of them is many times faster
    if joined.isprintable() or not _FORBIDDEN.search(joined):
        return
    at, name = next((at, text) for at, text in enumerate(texts) if _FORBIDDEN.search(text))
    number = at if codes is None else int((codes == at).argmax())
    character = _FORBIDDEN.findall(name)[0]
    what = f"{'control ' * (character < chr(0xD800))}character {character!r}"
    raise unusable(path, f"the name of {kind} {number + 1}, {shown(name)}, holds the {what}", "rename it", line=line)


def is_number(field: str) -> bool:
    """Whether a field holds a number."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def is_plain_number(field: str) -> bool:
    """Whether a field holds a number that is not a code or an identifier: 001 and numbers of 16 digits are text."""
    if not is_number(field):
        return False
    digits = field.strip().lstrip("+-")
    if digits.isdigit():
        return len(digits) <= _EXACT_DIGITS and (digits == "0" or not digits.startswith("0"))
    return math.isfinite(float(field)) or not any(letter.isdigit() for letter in digits)


# Files


def check_file(path: Path | str) -> Path:
    """The path of an existing file that is not empty; an error otherwise."""
    path = Path(path)
    try:
        details = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise unusable(path, "does not exist", "check the spelling and the folder") from None
    except (OSError, ValueError) as problem:  # invalid names, folders without permission
        raise unusable(path, "cannot be opened", f"{problem}") from None
    if stat.S_ISDIR(details.st_mode):
        raise unusable(path, "is a folder", "name the file in it")
    if not stat.S_ISREG(details.st_mode):  # a pipe or device might never end
        raise unusable(path, "is not a regular file", "save its content to a regular file first")
    if details.st_size == 0:
        raise unusable(path, "is empty", "write or download it again")
    return path


@contextmanager
def library_errors(path: Path | str, what: str, remedy: str) -> Iterator[None]:
    """One line that names the file instead of the many kinds of errors that libraries raise for damaged files."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        remedy = "read it in (smaller) blocks of samples (`lazy=True`, `block_rows`)"
        raise unusable(path, "does not fit into memory", remedy) from None
    except Exception as problem:
        raise unusable(path, f"{what} ({one_line(str(problem), 120)})", remedy) from None


def read_bytes(path: Path | str) -> bytes:
    """The text of a file as UTF-8 bytes without a byte-order mark; gzip is unpacked whatever the file is called."""
    return b"".join(piece for _, piece in text_pieces(path))


def read_lines(path: Path | str) -> NameArray:
    """The lines of a text file as names; of several fields separated by tabs, the first."""
    lines = [line.strip() for line in text_lines(read_bytes(path))]
    return np.array([line.split("\t")[0] for line in lines if line], dtype=object)


def text_pieces(path: Path | str, size: int = _PIECE, progress: Progress | None = None) -> Iterator[tuple[int, bytes]]:
    """The text of a file in pieces of whole lines, of about this many bytes, each with the number of lines before it.

    `progress` is called with the share of the file that has been read.
    """
    path, before = check_file(path), 0
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            stream = gzip.GzipFile(fileobj=file) if packed else file
            while True:
                try:  # the first piece has enough lines to guess the layout from
                    piece = stream.read(size) + b"".join(islice(stream, 1 if before else _LOOKED_AT))
                except (EOFError, zlib.error, OSError):
                    kind = "is a gzip file that is incomplete or damaged" if packed else "cannot be read"
                    raise unusable(path, kind, "download or pack it again") from None
                if before and not piece:
                    return
                _check_text(path, piece, before)
                if progress is not None:
                    progress(file.tell() / max(path.stat().st_size, 1))
                yield before, piece if before else piece.removeprefix(b"\xef\xbb\xbf")
                before += piece.count(b"\n") or 1
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "check its permissions") from None


def _check_text(path: Path, piece: bytes, before: int) -> None:
    """Raise if a piece, which has this many lines before it, is not text in UTF-8, or if the first one is all blank.

    The first bytes tell spreadsheets, archives and other encodings.
    """
    if not before:
        is_excel = path.suffix.lower() in (".xlsx", ".xlsm", ".xls") or b"[Content_Types].xml" in piece[:200]
        if piece.startswith(_OLD_EXCEL) or (piece.startswith(b"PK\x03\x04") and is_excel):
            raise unusable(path, "is an Excel file", "save it in Excel as tab-separated text (.txt or .tsv)")
        if kind := next((kind for mark, kind in _PACKED.items() if piece.startswith(mark)), None):
            raise unusable(path, f"is compressed with {kind}", "unpack it, or compress it with gzip instead")
        if encoding := next((encoding for mark, encoding in _MARKS.items() if piece.startswith(mark)), None):
            raise unusable(path, f"is encoded as {encoding}", "save it as UTF-8")
        if not piece.removeprefix(b"\xef\xbb\xbf").strip():
            raise unusable(path, "holds only blanks", "write or download it again")
    if (zero := piece.find(b"\0")) >= 0:
        line = before + piece.count(b"\n", 0, zero) + 1
        raise unusable(path, "holds binary data", "a text file is needed here", line=line)
    try:
        piece.isascii() or piece.decode()
    except UnicodeDecodeError as problem:
        line = before + piece.count(b"\n", 0, problem.start) + 1
        what = f"byte {piece[problem.start]:#04x} is not UTF-8"
        raise unusable(path, what, "convert it, e.g. iconv -f latin1 -t utf-8", line=line) from None


# Lines and fields


def text_lines(data: bytes) -> Iterator[str]:
    """Lines of text, ended by a line feed, a carriage return or both."""
    for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="ignore", newline=None):
        yield line.rstrip("\n")


def single_spaced(data: bytes) -> bytes:
    """Text with one space between fields instead of several blanks."""
    return b"\n".join(_BLANKS.sub(b" ", line.strip(b" \t")) for line in data.splitlines())


def split(line: str, separator: str) -> list[str]:
    """The fields of one line without quotes; several spaces are one separator."""
    if separator == " ":
        line = single_spaced(line.encode()).decode()
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return line.split(separator)


@dataclass(frozen=True)
class Layout:
    """How a text table is laid out: separator, comment lines before it, and fields per line."""

    path: Path
    separator: str
    n_skipped: int
    first: list[str]
    n_fields: int  # of the lines after the first
    before: int = 0  # lines of the file before those at hand

    @classmethod
    def of(cls, path: Path | str, data: bytes) -> Layout:
        """Guess the layout from the first lines; an error if a quoted field does not end on its line."""
        lines = list(islice(text_lines(data), _LOOKED_AT))
        separator = _separator([line for line in lines if not line.startswith("#")] or lines)
        if separator is None:
            raise unusable(path, "has one column only", "separate columns by tabs, commas, semicolons or spaces")
        rows = [split(line, separator) for line in lines]
        filled = [at for at, line in enumerate(lines) if line.strip()]
        usual = Counter(len(rows[at]) for at in filled if lines[at][0] != "#").most_common(1)
        n_fields = usual[0][0] if usual else 0
        # A line with # and as many fields as others is a header.
        first = next((at for at in filled if lines[at][0] != "#" or len(rows[at]) == n_fields), 0)
        if lines[0].startswith("#1.") and len(lines) > 2:
            first = 2  # GCT: a version and the table's size
        below = Counter(len(rows[at]) for at in filled if at > first).most_common(1)
        layout = cls(Path(path), separator, first, rows[first], below[0][0] if below else len(rows[first]))
        layout.check_quotes(data)
        return layout

    def rows(self, data: bytes, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of every line after the comments (and `skip` more) that is not blank."""
        for number, line in enumerate(text_lines(data), start=1):
            if number > self.n_skipped + skip and line.strip():
                yield self.before + number, split(line, self.separator)

    def check_quotes(self, data: bytes) -> None:
        """Raise if a quoted field does not end on its line, as with a line break in a name."""
        if b'"' not in data:
            return
        unclosed = re.compile(rf'(?:^|{re.escape(self.separator)})"(?:[^"]|"")*$')
        for number, line in enumerate(text_lines(data), start=1):
            if number > self.n_skipped and line.count('"') % 2 and unclosed.search(line):
                what = "a quoted field does not end on its line"
                remedy = "remove line breaks from names, and quotes that are never closed"
                raise unusable(self.path, what, remedy, line=self.before + number)


def _separator(lines: Sequence[str]) -> str | None:
    """The first of tab, comma, semicolon and space that splits most lines into the same number of fields."""
    rest = None
    for separator in _SEPARATORS:
        counts = [len(split(line, separator)) for line in lines if line.strip()]
        usual, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        if usual > 1 and 2 * times > len(counts) and counts[0] > 1:
            return separator
        if rest is None and usual > 1:
            rest = separator
    return rest


# Numbers


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Floats are kept (half precision becomes single); single precision holds small integers exactly."""
    dtype = np.dtype(dtype)
    is_single = dtype.itemsize <= (4 if dtype.kind == "f" else 2)
    return np.dtype(np.float32 if is_single else np.float64)


def as_matrix(values: Matrix) -> Matrix:
    """A dense array or CSR matrix of floats, its index arrays checked; masked entries of a masked array are NaN."""
    values = checked(values)
    matrix: Matrix = sp.csr_array(values) if is_sparse(values) else np.asarray(values)
    return matrix.astype(float_type(matrix.dtype), copy=False)


def column_key(name: str) -> str:
    """The name of a column in lower case, with one underscore for all other characters than letters and digits."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


# Tables of numbers


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers with a name for every line and column; missing values are NaN."""

    numbers: Array
    lines: NameArray
    columns: NameArray
    steps: tuple[Step, ...] = ()  # the columns that were left out


def number_pieces(
    path: Path | str, pieces: Iterable[tuple[int, bytes]], skip_columns: str | Sequence[str], annotated: bool
) -> Iterator[NumberTable]:
    """A text table of numbers with names in its first line and first column, some lines (`text_pieces`) at a time.

    Columns to skip are left out, and with `annotated` also those with usual names of annotations (Description, ...).
    """
    for before, data in pieces:
        if not before:
            layout = Layout.of(path, data)
            header = _header(layout, data)
            check_characters(path, "column", header)
            skipped, steps = _columns_to_skip(path, header[1:], skip_columns, annotated)
            kept = [position for position, name in enumerate(header) if position and name not in skipped]
            if not kept:
                raise unusable(path, "has no column of numbers left", "skip fewer columns")
            columns = np.array([header[at] for at in kept], dtype=object)
        elif not data.strip():
            continue
        else:
            layout = replace(layout, n_skipped=0, before=before)
            layout.check_quotes(data)
        skip = 0 if before else 1
        found = _wide(layout, data, len(kept), skip) if len(kept) == len(header) - 1 >= _WIDE else None
        if found is None:
            table = _parse(layout, data, header, kept, skip)
            numbers = np.empty((table.num_rows, len(kept)))
            for at, position in enumerate(kept):
                numbers[:, at] = table.column(position).to_numpy(zero_copy_only=False)
            names = pc.utf8_trim_whitespace(table.column(0)).to_numpy(zero_copy_only=False)
            found = numbers, np.asarray(names, dtype=object)
        yield NumberTable(*found, columns, steps)


def _wide(layout: Layout, data: bytes, n_columns: int, skip: int) -> tuple[Floats, NameArray] | None:
    """Numbers and names of a table of thousands of columns, parsed as one long column: faster and in less memory.

    None if that fails.
    """
    mark = layout.separator.encode()
    lines = [line for line in data.splitlines()[layout.n_skipped + skip :] if line.strip()]
    names, _, numbers = zip(*(line.partition(mark) for line in lines), strict=True) if lines else ((), (), ())
    if not lines or b'"' in data or mark == b" " or any(line.count(mark) != n_columns - 1 for line in numbers):
        return None
    column = b"\n".join(numbers).replace(mark, b"\n") + b"\n"
    del lines, numbers
    try:
        table = _by_arrow(Layout(layout.path, ",", 0, [], 1), column, 1, [0], 0, ignore_empty_lines=False)
    except pa.ArrowException:
        return None
    if table.num_rows != len(names) * n_columns or table.num_columns != 1:
        return None
    values = table.column(0).to_numpy(zero_copy_only=False).reshape(len(names), n_columns)
    return values, np.array([name.decode().strip() for name in names], dtype=object)


def _header(layout: Layout, data: bytes) -> list[str]:
    """A name for every column of a table of numbers."""
    first, n_fields = [field.strip() for field in layout.first], layout.n_fields
    line, usual = layout.n_skipped + 1, set(_FIRST_NAMES)
    second = next(layout.rows(data, skip=1), (0, []))[1]
    if len(first) == n_fields - 1 and column_key(first[0]) not in usual - {"x"} and second and second[-1].strip():
        first = ["", *first]
    if len(first) != n_fields:
        _check_numeric(layout, data)
        separator = _SEPARATORS[layout.separator]
        what = f"names {len(first)} columns but the lines below have {n_fields} fields (separator: {separator})"
        remedy = "make them agree (is there a separator too many at the end, or is this not an expression table?)"
        raise unusable(layout.path, what, remedy, line=line)
    numbers = [field for field in first[1:] if is_number(field)]
    whole = all(field.lstrip("+-").isdigit() for field in numbers)
    if 2 * len(numbers) > n_fields - 1 and not (whole and column_key(first[0]) in {"", *usual}):
        what = f"the first line holds numbers ({shown(numbers[0])}) where names of columns are expected"
        remedy = "add a header line; if these are names, call the first column 'gene'"
        raise unusable(layout.path, what, remedy, line=line)
    if "" in first[1:]:
        at = first.index("", 1)
        raise unusable(layout.path, f"column {at + 1} has no name", "name it, or remove the column", line=line)
    return first


def _columns_to_skip(
    path: Path | str, names: Sequence[str], asked: str | Sequence[str], annotated: bool
) -> tuple[list[str], tuple[Step, ...]]:
    """The columns to leave out (those asked for, and those with the name of an annotation), also as a step."""
    asked = [asked] if isinstance(asked, str) else asked
    unknown = [name for name in asked if name not in names]
    if unknown:
        some = ", ".join(map(shown, names[:5])) + (", ..." if len(names) > 5 else "")
        raise unusable(path, f"has no column {shown(unknown[0])} to skip", f"its columns are {some}")
    annotations = [name for name in names if annotated and column_key(name) in _ANNOTATIONS]
    skipped = list(dict.fromkeys([*asked, *annotations]))
    return skipped, ({"step": "columns left out", "named": skipped},) if skipped else ()


# Columns of text


def read_columns(path: Path | str, header: bool | None, data: bytes | None = None) -> tuple[pd.DataFrame, int]:
    """Read a table of text columns, each as categories, and the number of header lines above them (0 or 1).

    `header` None: the first line is a header if it has text above numbers, or usual names of the ends of an edge.
    """
    data = read_bytes(path) if data is None else data
    layout = Layout.of(path, data)
    has_header, n_fields = _looks_like_header(layout, data) if header is None else header, layout.n_fields
    names = [field.lstrip("#").strip() for field in layout.first] if has_header else [str(k) for k in range(n_fields)]
    names = ["", *names] if len(names) == n_fields - 1 else names  # as R writes row names
    if len(names) != n_fields:
        what = f"names {len(names)} columns but the lines below have {n_fields} fields"
        raise unusable(path, what, "make them agree", line=layout.n_skipped + 1)
    columns = enumerate(_parse(layout, data, names, skip=int(has_header)).columns)
    frame = pd.DataFrame({at: pc.utf8_trim_whitespace(own).dictionary_encode().to_pandas() for at, own in columns})
    return frame.set_axis(pd.Index(names, dtype=object), axis=1), int(has_header)


def _looks_like_header(layout: Layout, data: bytes) -> bool:
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


# Parsing, and what is wrong with a table that cannot be parsed


def _parse(layout: Layout, data: bytes, names: Sequence[str], numeric: Sequence[int] = (), skip: int = 1) -> pa.Table:
    """All lines below the header; `numeric` columns hold numbers. An error describes the first problem."""
    if next(layout.rows(data, skip), None) is None:
        raise unusable(layout.path, "contains only a header", "write or download it again")
    if layout.separator == " " and (b"  " in data or b" \n" in data or b"\n " in data or b"\t" in data):
        data = single_spaced(data)
    try:
        table = _by_arrow(layout, data, len(names), numeric, skip)
    except pa.ArrowException:
        return _by_line(layout, data, names, numeric, skip)
    return table if table.num_columns == len(names) else _by_line(layout, data, names, numeric, skip)


def _by_arrow(
    layout: Layout, data: bytes, n_fields: int, numeric: Sequence[int], skip: int, ignore_empty_lines: bool = True
) -> pa.Table:
    longest = max(map(len, data[: 1 << 20].splitlines()), default=0)  # a block must hold at least one line
    reading = arrow_csv.ReadOptions(
        skip_rows=layout.n_skipped + skip, autogenerate_column_names=True, block_size=max(1 << 22, 32 * longest)
    )
    types = dict.fromkeys(range(n_fields), pa.string()) | dict.fromkeys(numeric, pa.float64())
    converting = arrow_csv.ConvertOptions(
        column_types={f"f{at}": kind for at, kind in types.items()},
        null_values=list(MISSING),
        strings_can_be_null=False,
    )
    parsing = arrow_csv.ParseOptions(delimiter=layout.separator, ignore_empty_lines=ignore_empty_lines)
    return arrow_csv.read_csv(pa.BufferReader(data), reading, parsing, converting)


def _by_line(layout: Layout, data: bytes, names: Sequence[str], numeric: Sequence[int], skip: int) -> pa.Table:
    """The slow way, which accepts blanks around numbers, plus signs and stray quotes, and finds the first problem."""
    numbers: list[Floats] = []
    texts: list[list[str]] = []
    others = [at for at in range(len(names)) if at not in set(numeric)]
    for line, fields in layout.rows(data, skip):
        if len(fields) != len(names):
            separator = _SEPARATORS[layout.separator]
            what = f"has {len(fields)} fields where {len(names)} are expected (separator: {separator})"
            raise unusable(layout.path, what, "give all lines the same number of fields", line=line)
        own = [fields[at].strip() for at in numeric]
        for position, field in zip(numeric, own, strict=True):
            if field in MISSING or is_number(field):
                continue
            _check_numeric(layout, data, skip, numeric)
            comma = layout.separator != "," and is_number(field.replace(",", "."))
            remedy = "write decimals with a point" if comma else "correct it, or leave the column out (`skip_columns`)"
            where = f"{position + 1} ({names[position]})" if names[position] else f"{position + 1}"
            raise unusable(layout.path, f"{shown(field)} is not a number", remedy, line=line, column=where)
        numbers.append(np.array([np.nan if field in MISSING else float(field) for field in own], dtype=np.float64))
        texts.append([fields[at] for at in others])
    columns: dict[int, Any] = dict(zip(numeric, np.ascontiguousarray(np.array(numbers).T), strict=True))
    columns |= dict(zip(others, zip(*texts, strict=True), strict=True))
    return pa.table({f"f{at}": columns[at] for at in range(len(names))})


def _check_numeric(layout: Layout, data: bytes, skip: int = 1, columns: Sequence[int] | None = None) -> None:
    """Raise if at most one of these columns (default: all but the first) holds numbers, as in a network."""
    rows = [fields for _, fields in islice(layout.rows(data, skip), _LOOKED_AT)]
    columns = range(1, max(map(len, rows), default=0)) if columns is None else columns
    n_numeric = 0
    for at in columns:  # most fields that are not missing are numbers, with a decimal point or comma
        given = [fields[at].strip() for fields in rows if at < len(fields) and fields[at].strip() not in MISSING]
        n_numeric += 2 * sum(is_number(field.replace(",", ".")) for field in given) > len(given) or not given
    if n_numeric <= 1 and n_numeric != len(columns) and (not n_numeric or len(rows) > 1):  # one line does not tell
        what = f"is not an expression table: {'only one' if n_numeric else 'no'} column holds numbers"
        if ".gmt" in Path(layout.path).suffixes[-2:]:
            raise unusable(layout.path, "looks like a GMT file, not an expression table", "use it as `gene_sets`")
        raise unusable(layout.path, what, "is it a network (`graph`)?")


# Parquet


def parquet_errors(path: Path) -> AbstractContextManager[None]:
    """Errors in one line that name the file, which has to exist."""
    return library_errors(check_file(path), "cannot be read as Parquet", "check that it is one, or write it again")


def read_parquet(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """A Parquet file, or some of its columns, as a DataFrame."""
    # `pd.read_parquet` would import pyarrow.dataset, which one file does not need.
    with parquet_errors(path), pq.ParquetFile(path) as file:
        table: pd.DataFrame = file.read(columns, use_pandas_metadata=True).to_pandas()
    return table


def named_frame(path: Path, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with names in its index; they may be in its first column."""
    if not isinstance(frame.index, pd.RangeIndex):
        return frame
    if not frame.shape[1] or pd.api.types.is_numeric_dtype(frame.dtypes.iloc[0]):
        raise unusable(path, "has no names: neither an index nor a first column of text", "write it with its index")
    return frame.set_index(frame.columns[0])


def number_table(path: Path, frame: pd.DataFrame, skip_columns: str | Sequence[str], annotated: bool) -> NumberTable:
    """The numbers of a Parquet table (or of some of its lines) and their names."""
    frame = named_frame(path, frame).copy(deep=False)
    frame.columns = pd.Index([str(name).strip() for name in frame.columns], dtype=object)
    check_characters(path, "column", frame.columns)
    skipped, steps = _columns_to_skip(path, list(frame.columns), skip_columns, annotated)
    frame = frame.drop(columns=skipped) if skipped else frame  # without a copy
    for name, kind in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            remedy = "leave it out (`skip_columns`), or give a table of expression values"
            raise unusable(path, "holds text, not numbers", remedy, column=shown(str(name)))
    if not frame.shape[1]:
        raise unusable(path, "has no column of numbers", "write it again")
    nullable = any(pd.api.types.is_extension_array_dtype(kind) for kind in frame.dtypes)
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan) if nullable else frame.to_numpy()
    numbers = values.astype(float_type(values.dtype), copy=False)
    return NumberTable(numbers, as_names(frame.index), frame.columns.to_numpy(dtype=object), steps)
