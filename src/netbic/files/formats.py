"""JSON and tables: written atomically, read with checks.

Only regular files are read: a pipe or a device in place of a file cannot make netbic wait forever.
"""

from __future__ import annotations

import csv
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pandas as pd

from netbic.errors import InputError, one_line, shown, unusable
from netbic.files.atomic import NO_WAIT, write_atomic

JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
Record: TypeAlias = dict[str, Any]  # a JSON object from a file; its values are checked where they are used
# columns that never hold numbers
_TEXT: Final = dict.fromkeys(("name", "term", "genes", "top_genes", "sample", "axis", "variable", "level"), str)
# pandas 3.1 reads every number to the last bit and deprecates the option that earlier versions need for it
_EXACT: Final[dict[str, Any]] = (
    {"float_precision": "round_trip"} if [*map(int, pd.__version__.split(".")[:2])] < [3, 1] else {}
)
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def json_bytes(content: JsonValue) -> bytes:
    """JSON with one line per entry; a lone surrogate, which UTF-8 does not have, is written as an escape."""
    try:
        return f"{json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()


def write_json(path: Path, content: JsonValue) -> None:
    """Write JSON atomically."""
    write_atomic(path, json_bytes(content))


def table_bytes(path: Path, table: pd.DataFrame) -> bytes:
    """What `write_table` writes; an error if a name has a character that a table cannot hold."""
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    if "\r" in text:  # pandas quotes names with tabs, quotes and line feeds, but reads a bare "\r" as the end of a line
        text = table.to_csv(sep="\t", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    if wrong := _UNWRITABLE.search(text):
        before, after = re.split("[\t\n]", text[: wrong.start()])[-1], re.split("[\t\n]", text[wrong.start() :])[0]
        what = f"the name {shown(before + after)} holds {wrong.group()!r}, which no table can hold"
        raise unusable(path, what, "rename it")
    return text.encode()


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a tab-separated table atomically; its numbers are read back to the same bits."""
    write_atomic(path, table_bytes(path, table))


def read_bytes(path: Path) -> bytes:
    """The content of one of netbic's own files, which must be a regular file or a link to one."""
    try:
        handle = os.open(path, os.O_RDONLY | NO_WAIT)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise unusable(path, "is not a regular file", "netbic did not write it: fit again")
            return file.read()
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "fit again") from None


def read_json(path: Path) -> Any:
    """The content of a JSON file of netbic."""
    try:
        return json.loads(read_bytes(path).decode("utf-8"))
    except InputError:
        raise
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as found:
        problem = one_line(str(found), 120)
    raise unusable(path, f"cannot be read ({problem})", "it is damaged or netbic did not write it: fit again")


def read_table(path: Path | str, *, as_text: bool = False) -> pd.DataFrame:
    """Read a table of results: numbers to the last bit, and names as they are, also one that is called NA.

    As text, all columns are text, as they are in the file.
    """
    if as_text:
        return pd.DataFrame(pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False))
    columns = pd.read_csv(path, sep="\t", nrows=0).columns
    missing = {name: [""] for name in columns if name not in _TEXT}
    table: pd.DataFrame = pd.read_csv(path, sep="\t", dtype=_TEXT, keep_default_na=False, na_values=missing, **_EXACT)
    return table
