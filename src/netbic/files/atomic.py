"""Atomic writes: a file appears complete or not at all, and is never written through a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from netbic.errors import one_line

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS: Final = fcntl is not None
TEMPORARY: Final = ".netbic-unfinished-"
_SUFFIX = re.compile(r"\d+-[a-z0-9_]{8}")  # the process, and what tempfile appends
_LONGEST = 80  # bytes of a name that its temporary file repeats, so that the file's name does not become too long
_SIGNALS = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # a pipe is opened without waiting
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WriteError(OSError):
    """A file that could not be written: which one and why. The earlier file, if any, is unchanged."""

    def __init__(self, path: Path | str, problem: OSError | str) -> None:
        full = isinstance(problem, OSError) and problem.errno in _FULL
        reason = getattr(problem, "strerror", None) or str(problem)
        advice = "free some disk space, or write to another disk" if full else "check the folder and its permissions"
        super().__init__(one_line(f"{path} cannot be written ({reason}): {advice}"))
        self.is_full = full


@contextmanager
def write_errors(path: Path | str, full_only: bool = False) -> Iterator[None]:
    """Turn errors of the operating system (or a full disk only) into a `WriteError` that names the file."""
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
    """Defer Ctrl-C, SIGTERM and SIGHUP until a short operation on files is complete."""
    caught: list[int] = []
    before = {}

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) not in (None, signal.SIG_IGN):
                before[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])


def write_atomic(path: Path, content: bytes) -> None:
    """Write a temporary file beside the target, wait until it is on disk, then rename it."""
    with write_errors(path), signals_deferred():
        for stale in temporary_files(path.parent, path.name):
            remove_if_stale(stale)
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def temporary_file(folder: Path, target: str) -> tuple[int, str]:
    """A new temporary file of a target: its handle and its path. While it is open and locked, it is not stale."""
    handle, name = tempfile.mkstemp(prefix=f"{_prefix(target)}{os.getpid()}-", dir=folder)
    try_lock(handle)
    return handle, name


def temporary_files(folder: Path, target: str, ending: str = "") -> list[Path]:
    """All temporary files of a target (with this ending): of this process, of others, and of killed processes."""
    prefix = _prefix(target)
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(ending)]
    return [folder / name for name in names if _SUFFIX.fullmatch(name.removeprefix(prefix).removesuffix(ending))]


def is_temporary(name: str, targets: str = ".+") -> bool:
    """Whether this is the name of a temporary file of netbic (of targets that match a regular expression)."""
    return re.fullmatch(rf"{re.escape(TEMPORARY)}({targets})-{_SUFFIX.pattern}", name) is not None


def _prefix(target: str) -> str:
    """The start of the names of a target's temporary files; long names are cut and made unique by a digest."""
    encoded = os.fsencode(target)
    if len(encoded) > _LONGEST:
        digest = hashlib.blake2b(encoded, digest_size=8).hexdigest()
        target = f"{encoded[:_LONGEST].decode(errors='ignore')}-{digest}"
    return f"{TEMPORARY}{target}-"


def remove_if_stale(path: Path, before: Callable[[], None] = lambda: None) -> None:
    """Remove a temporary file, unless it is a link, not a regular file, or locked by a running process.

    `before` is called before it is removed.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | NO_WAIT | NO_LINK)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle):
                before()
                path.unlink()
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file for this process; False if another one holds it, True on file systems without locks."""
    if not HAS_LOCKS:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        return problem.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True
