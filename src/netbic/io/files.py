"""Writing files so that a half-written one is never taken for a whole one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.io.errors import InputError, unusable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".unfinished-"


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
    """JSON with one line per entry."""
    return f"{json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()


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
    """A table of results, numbers to the last bit."""
    names = {"name": str, "term": str, "genes": str, "top_genes": str}
    return pd.read_csv(path, sep="\t", float_precision="round_trip", keep_default_na=False, dtype=names)


def write_table(path: Path, table: pd.DataFrame) -> None:
    """A tab-separated table whose numbers read back to the same bits."""
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    write_whole(path, text.encode())
