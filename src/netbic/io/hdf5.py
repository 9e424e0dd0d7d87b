"""Damaged HDF5 files that would crash or hang the HDF5 library, detected in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from netbic.errors import one_line, unusable

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SCRIPT = Path(__file__).with_name("hdf5_probe.py")
_SECONDS, _BYTES_PER_SECOND = 15.0, 5e6  # time limit: long enough for a slow disk


def check_hdf5(path: Path, layer: str | None = None, column: str | None = None, *, whole: bool = False) -> None:
    """Raise if reading a matrix and its names would crash or hang the HDF5 library, or need far too much memory.

    The file is first read in another process, once as long as it does not change. Of large datasets the structure and
    both ends are read.

    Parameters
    ----------
    path : path
    layer, column : str, optional
        A layer to read instead of X, a column of `var` to read in addition to its index.
    whole : bool
        Read everything in the file.
    """
    try:
        state = path.stat()
    except OSError as problem:
        raise unusable(path, f"cannot be opened ({problem.strerror})", "check its permissions") from None
    if not _has_signature(path):  # the library will refuse it
        return
    state_key = (str(path.absolute()), state.st_ino, state.st_size, state.st_mtime_ns)
    if damage := _probed(state_key, layer or "", column or "", whole):
        raise unusable(path, damage, "it is damaged: copy or write it again")


def _has_signature(path: Path) -> bool:
    """Whether a file has the HDF5 signature, at its start or after a user block of 512, 1024, ... bytes."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            starts = [0, *(512 << power for power in range(max(size // 512, 1).bit_length()))]
            return any(file.seek(start) == start and file.read(8) == _SIGNATURE for start in starts)
    except OSError:
        return True


@lru_cache(maxsize=256)
def _probed(state_key: tuple[str, int, int, int], layer: str, column: str, whole: bool) -> str:
    """What is wrong with a file; empty if nothing is, or if no process can be started."""
    if not sys.executable or getattr(sys, "frozen", False):  # there is no Python to run
        return ""
    path, _, size, _ = state_key
    command = [sys.executable, "-P", str(_SCRIPT), path, layer, column, "whole" if whole else "parts"]
    environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}  # nothing is written
    null = subprocess.DEVNULL
    try:
        with subprocess.Popen(
            command, bufsize=0, stdin=null, stdout=subprocess.PIPE, stderr=null, env=environment
        ) as process:
            return _outcome(process, size)
    except (OSError, ValueError):  # no process could be started, or the name of a layer has a zero byte
        return ""


def _outcome(process: subprocess.Popen[bytes], size: int) -> str:
    """Wait for the process, counting from when its libraries are loaded."""
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        return ""
    try:
        output, _ = process.communicate(timeout=_SECONDS + size / _BYTES_PER_SECOND)
    except subprocess.TimeoutExpired:
        process.kill()
        return "the HDF5 library does not finish reading it"
    if process.returncode < 0 or process.returncode > 1:  # a signal; on Windows, a large status
        return "the HDF5 library cannot read it without crashing"
    return one_line(output.decode(errors="replace").strip(), 300)
