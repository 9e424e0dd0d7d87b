"""Single files, read and written safely.

A file appears whole or not at all, is never written through a symbolic link, and only regular files are read: a pipe or
a device in a file's place cannot make netbic wait for ever.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import json
import os
import re
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.errors import InputError, one_line, shown, unusable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".unfinished-"
LOCK = f"{TEMPORARY}lock"
_RANDOM = re.compile(r"[a-z0-9_]{8}")  # what tempfile appends to a prefix
_LONGEST = 80  # bytes of a name that its temporary file repeats, so that the whole stays a valid name
_STOPPING = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_TEXTS = dict.fromkeys(("name", "term", "genes", "top_genes", "sample", "axis"), str)  # never numbers
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


class WriteError(OSError):
    """A file that could not be written: which one and why. What was there before is as it was."""

    def __init__(self, path: Path | str, problem: OSError | str) -> None:
        full = isinstance(problem, OSError) and problem.errno in _FULL
        reason = getattr(problem, "strerror", None) or str(problem)
        remedy = "free some disk space, or write to another disk" if full else "check the folder and its permissions"
        super().__init__(one_line(f"{path} cannot be written ({reason}): {remedy}"))
        self.is_full = full


@contextmanager
def write_errors(path: Path | str, full_only: bool = False) -> Iterator[None]:
    """Name the file, and say what to do, if the system refuses to write it (or only if the disk is full)."""
    try:
        yield
    except WriteError:
        raise
    except OSError as problem:
        if full_only and problem.errno not in _FULL:
            raise
        raise WriteError(path, problem) from None


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Put Ctrl-C and other requests to stop off until a short piece of work on files is done."""
    caught: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _STOPPING:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, lambda number, frame: caught.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


# ----------------------------------------------------------------------------------------------------------------
# Locks
# ----------------------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one process; where the system has no such locks, nothing happens.

    The lock file is never truncated or opened through a link, and it is removed while it is still held.
    """
    if fcntl is None:
        yield
        return
    path, handle = folder / LOCK, -1
    try:
        with signals_deferred():
            handle = _held(path)
        yield
    finally:
        with signals_deferred():
            if handle >= 0:
                if os.fstat(handle).st_size == 0:  # somebody else's file of that name is left alone
                    path.unlink(missing_ok=True)
                os.close(handle)


def _held(path: Path) -> int:
    """An open lock file that this process holds and that is still the one of that name."""
    while True:
        with write_errors(path):
            handle = _opened_lock(path)
        if not try_lock(handle):
            os.close(handle)
            raise InputError(f"another fit is writing to {path.parent}: wait for it, or choose another folder")
        with suppress(OSError):
            if os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle)):
                return handle
        os.close(handle)  # its last owner removed it just now: another process may hold a new one


def _opened_lock(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_WAIT | _NO_LINK, 0o666)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise InputError(f"{path} is a symbolic link: remove it, netbic makes its own lock file there") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} is not a regular file: remove it, netbic makes its own lock file there")
    return handle


def try_lock(handle: int) -> bool:
    """Lock an open file for this process, unless another one holds it; file systems without locks always agree."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        return problem.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True


# ----------------------------------------------------------------------------------------------------------------
# Writing
# ----------------------------------------------------------------------------------------------------------------


def write_atomic(path: Path, content: bytes) -> None:
    """Write beside the target, wait until it is on disk, then take its place in one step."""
    with write_errors(path), signals_deferred():
        for leftover in leftovers(path.parent, path.name):
            remove_leftover(leftover)
        handle, name = temporary_file(path.parent, path.name)
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


def temporary_file(folder: Path, target: str) -> tuple[int, str]:
    """A new temporary file of a target: its handle, which this process holds, and its path."""
    handle, name = tempfile.mkstemp(prefix=_prefix(target), dir=folder)
    try_lock(handle)  # as long as it is held, it is not taken for a leftover
    return handle, name


def _prefix(target: str) -> str:
    """How the names of a target's temporary files begin; a long name is cut, and told from others by a digest."""
    encoded = os.fsencode(target)
    if len(encoded) > _LONGEST:
        digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
        target = f"{encoded[:_LONGEST].decode(errors='ignore')}-{digest}"
    return f"{TEMPORARY}{target}-"


def leftovers(folder: Path, target: str) -> list[Path]:
    """Temporary files of a target, of this process, of others and of those that were killed."""
    prefix = _prefix(target)
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    return [folder / name for name in names if _RANDOM.fullmatch(name.removeprefix(prefix))]


def remove_leftover(path: Path, first: Callable[[], Any] = lambda: None) -> None:
    """Remove a temporary file, unless it is a link, no regular file, or still held by another process.

    `first` is called before it goes.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | _NO_WAIT | _NO_LINK)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle):
                first()
                path.unlink()
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def json_bytes(content: Any) -> bytes:
    """JSON with one line per entry; a lone surrogate, which UTF-8 does not have, is written as an escape."""
    try:
        return f"{json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode()


def write_json(path: Path, content: Any) -> None:
    """JSON, whole or not at all."""
    write_atomic(path, json_bytes(content))


def write_table(path: Path, table: pd.DataFrame) -> None:
    """A tab-separated table whose numbers read back to the same bits."""
    write_atomic(path, table_bytes(path, table))


def table_bytes(path: Path, table: pd.DataFrame) -> bytes:
    """What `write_table` writes; an error if a name holds what no table can hold."""
    text = table.to_csv(sep="\t", index=False, lineterminator="\n")
    if "\r" in text:  # pandas quotes names with tabs, quotes and line feeds, but reads a bare "\r" as the end of a line
        text = table.to_csv(sep="\t", index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    if wrong := _UNWRITABLE.search(text):
        before, after = re.split("[\t\n]", text[: wrong.start()])[-1], re.split("[\t\n]", text[wrong.start() :])[0]
        what = f"the name {shown(before + after)} holds {wrong.group()!r}, which no table can hold"
        raise unusable(path, what, "rename it")
    return text.encode()


# ----------------------------------------------------------------------------------------------------------------
# Reading
# ----------------------------------------------------------------------------------------------------------------


def read_bytes(path: Path) -> bytes:
    """The bytes of one of netbic's own files, if it is a regular file (links to one are followed)."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_WAIT)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise unusable(path, "is not a regular file", "it is not netbic's: fit again")
            return file.read()
    except OSError as problem:
        raise unusable(path, f"cannot be read ({problem.strerror})", "fit again") from None


def read_json(path: Path) -> Any:
    """What a JSON file of netbic holds."""
    try:
        return json.loads(read_bytes(path).decode("utf-8"))
    except InputError:
        raise
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as found:
        problem = one_line(str(found), 120)
    raise unusable(path, f"cannot be read ({problem})", "it is damaged or not netbic's: fit again")


def read_table(path: Path | str) -> pd.DataFrame:
    """A table of results, numbers to the last bit and names as they are (also one that is called NA)."""
    words: dict[str, Any] = {"sep": "\t", "float_precision": "round_trip", "keep_default_na": False}
    columns = pd.read_csv(path, nrows=0, **words).columns
    missing = {name: [""] for name in columns if name not in _TEXTS}
    table: pd.DataFrame = pd.read_csv(path, dtype=_TEXTS, na_values=missing, **words)
    return table
