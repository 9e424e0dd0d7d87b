"""Text files: unpacked, decoded, cut into lines and fields; names, and which fields are numbers."""

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
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netbic.errors import InputError, one_line, shown, unusable

Progress = Callable[[float], object]
NameArray = NDArray[np.object_]
MISSING = ("", "NA", "NaN", "nan", "N/A", "n/a", "null", "NULL", "None", "#N/A")  # how tables write a missing value
SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}
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


# Names


def as_names(names: Iterable[Any]) -> NameArray:
    """Names as text without blanks around them."""
    texts = (name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names)
    return np.array([text.strip() for text in texts], dtype=object)


def check_characters(path: Path | str, kind: str, names: Iterable[Any], line: int | None = None) -> None:
    r"""Raise if one of the names (or of a column of categories) in a file holds a control character.

    Examples
    --------
    >>> check_characters("table.parquet", "gene", ["TP53", "MDM2"])
    >>> check_characters("table.tsv", "gene", ["TP53", "MD\rM2"])
    Traceback (most recent call last):
    netbic.errors.InputError: table.tsv: the name of gene 2, 'MD\rM2', holds the control character '\r': rename it
    """
    codes = getattr(names, "codes", None)  # of categories, each of which is looked at once
    texts = [str(name) for name in (names if codes is None else names.categories)]  # type: ignore[attr-defined]
    if not _FORBIDDEN.search("\n".join(texts)):  # one search for all of them is many times faster
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
    """Whether a field holds a number that is not a code or an identifier: 001 and numbers of 16 digits are text.

    Examples
    --------
    >>> [is_plain_number(field) for field in ("12", "-0.5", "1e-3", "0", "001", "1234567890123456", "1e400")]
    [True, True, True, True, False, False, False]
    """
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
        advice, named = "read it in (smaller) blocks of samples (`lazy=True`, `block_rows`)", ["lazy", "block_rows"]
        raise unusable(path, "does not fit into memory", advice, parameters=named) from None
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
                if not before:
                    _check_beginning(path, piece)
                _check_text(path, piece, before)
                if progress is not None:
                    progress(file.tell() / max(path.stat().st_size, 1))
                yield before, piece if before else piece.removeprefix(b"\xef\xbb\xbf")
                before += piece.count(b"\n") or 1
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "check its permissions") from None


def _check_beginning(path: Path, data: bytes) -> None:
    """Raise if the first bytes are those of a spreadsheet, an archive or another encoding than UTF-8, or all blank."""
    is_excel = path.suffix.lower() in (".xlsx", ".xlsm", ".xls") or b"[Content_Types].xml" in data[:200]
    if data.startswith(_OLD_EXCEL) or (data.startswith(b"PK\x03\x04") and is_excel):
        raise unusable(path, "is an Excel file", "save it in Excel as tab-separated text (.txt or .tsv)")
    for mark, kind in _PACKED.items():
        if data.startswith(mark):
            raise unusable(path, f"is compressed with {kind}", "unpack it, or compress it with gzip instead")
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise unusable(path, f"is encoded as {encoding}", "save it as UTF-8")
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise unusable(path, "holds only blanks", "write or download it again")


def _check_text(path: Path, piece: bytes, before: int) -> None:
    """Raise if a piece, which has this many lines before it, is not UTF-8 or holds zero bytes."""
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
    for separator in SEPARATORS:
        counts = [len(split(line, separator)) for line in lines if line.strip()]
        usual, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        if usual > 1 and 2 * times > len(counts) and counts[0] > 1:
            return separator
        if rest is None and usual > 1:
            rest = separator
    return rest
