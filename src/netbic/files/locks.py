"""Locks: one process at a time writes to a folder of results."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from netbic.errors import InputError
from netbic.files.atomic import HAS_LOCKS, NO_LINK, NO_WAIT, signals_deferred, try_lock, write_errors

LOCK: Final = ".netbic-lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; does nothing where the system has no file locks.

    The lock file is never truncated or opened through a link, and it is removed while it is still locked.
    """
    if not HAS_LOCKS:
        yield
        return
    path, handle = folder / LOCK, -1
    try:
        with signals_deferred():
            handle = _locked_file(path)
        yield
    finally:
        with signals_deferred():
            if handle >= 0:
                if os.fstat(handle).st_size == 0:  # a user's file of that name is left alone
                    path.unlink(missing_ok=True)
                os.close(handle)


def _locked_file(path: Path) -> int:
    """Open and lock the lock file; make sure that the locked file is still the one of that name."""
    while True:
        with write_errors(path):
            handle = _opened(path)
        if not try_lock(handle):
            os.close(handle)
            raise InputError(f"another command is writing to {path.parent}: wait for it, or choose another folder")
        with suppress(OSError):
            if os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle)):
                return handle
        os.close(handle)  # another process removed it in between and may hold a new one


def _opened(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_WAIT | NO_LINK, 0o666)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise InputError(f"{path} is a symbolic link: remove it, netbic needs a lock file there") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path} is not a regular file: remove it, netbic needs a lock file there")
    return handle
