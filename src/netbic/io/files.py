"""Writing files so that a half-written one is never taken for a whole one."""

from __future__ import annotations

import csv
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.io.errors import InputError, shown, unusable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".unfinished-"
_TEXTS = dict.fromkeys(("name", "term", "genes", "top_genes", "sample", "axis"), str)  # never numbers
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one process; where the system has no such locks, nothing happens."""
    if fcntl is None:
        yield
        return
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another fit is writing to {folder}: wait for it, or choose another folder") from None
        yield
    (folder / LOCK).unlink(missing_ok=True)


LOCK = f"{TEMPORARY}lock"


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target, wait until it is on disk, then take its place in one step."""
    handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def as_json(content: Any) -> bytes:
    """JSON with one line per entry; a lone surrogate, which UTF-8 does not have, is written as an escape."""
    try:
        return f"{json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()


def write_json(path: Path, content: Any) -> None:
    """JSON, whole or not at all."""
    write_whole(path, as_json(content))


def read_json(path: Path) -> Any:
    """What a JSON file of netbic holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise unusable(path, f"cannot be read ({problem})", "it is damaged or not netbic's: fit again") from None


def read_table(path: Path | str) -> pd.DataFrame:
    """A table of results, numbers to the last bit and names as they are (also one that is called NA)."""
    words: dict[str, Any] = {"sep": "\t", "float_precision": "round_trip", "keep_default_na": False}
    columns = pd.read_csv(path, nrows=0, **words).columns
    missing = {name: [""] for name in columns if name not in _TEXTS}
    table: pd.DataFrame = pd.read_csv(path, dtype=_TEXTS, na_values=missing, **words)
    return table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """A tab-separated table whose numbers read back to the same bits."""
    write_whole(path, as_table(path, table))


def as_table(path: Path, table: pd.DataFrame) -> bytes:
    """What `write_table` writes; an error if a name holds what no table can hold."""
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    if "\r" in text:  # pandas quotes names with tabs, quotes and line feeds, but reads a bare "\r" as the end of a line
        text = table.to_csv(sep="\t", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    if wrong := _UNWRITABLE.search(text):
        before, after = re.split("[\t\n]", text[: wrong.start()])[-1], re.split("[\t\n]", text[wrong.start() :])[0]
        what = f"the name {shown(before + after)} holds {wrong.group()!r}, which no table can hold"
        raise unusable(path, what, "rename it")
    return text.encode()
