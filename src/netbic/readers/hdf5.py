"""HDF5 files that would crash or hang the HDF5 library, found out in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from netbic.errors import one_line, unusable

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SCRIPT = Path(__file__).with_name("hdf5_trial.py")
_SECONDS, _BYTES_PER_SECOND = 15.0, 5e6  # patience with a file: a slow disk is no damage


def check_hdf5(path: Path, layer: str | None = None, column: str | None = None, *, whole: bool = False) -> None:
    """Raise if reading a matrix and its names would crash or hang the HDF5 library, or need absurdly much memory.

    The file is read in another process first, once as long as it does not change. Large datasets are read at both
    ends only, with all of their structure.

    Parameters
    ----------
    path : path
    layer, column : str, optional
        What is to be read: a layer instead of X, a column of `var` beside its index.
    whole : bool
        Everything in the file.
    """
    try:
        state = path.stat()
    except OSError as problem:
        raise unusable(path, f"cannot be opened ({problem.strerror})", "check its permissions") from None
    if not _has_signature(path):  # which the library refuses by itself
        return
    mark = (str(path.absolute()), state.st_ino, state.st_size, state.st_mtime_ns)
    problem_found = _tried(mark, layer or "", column or "", whole)
    if problem_found:
        raise unusable(path, problem_found, "it is damaged: copy or write it again")


def _has_signature(path: Path) -> bool:
    """Whether a file begins as HDF5 does; there may be a block of the user's before that, of 512, 1024, ... bytes."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            starts = [0, *(512 << power for power in range(max(size // 512, 1).bit_length()))]
            return any(file.seek(start) == start and file.read(8) == _SIGNATURE for start in starts)
    except OSError:
        return True


@lru_cache(maxsize=256)
def _tried(mark: tuple[str, int, int, int], layer: str, column: str, whole: bool) -> str:
    """What is wrong with a file; nothing where that cannot be found out."""
    if not sys.executable or getattr(sys, "frozen", False):  # there is no Python to run
        return ""
    words = [sys.executable, "-P", str(_SCRIPT), mark[0], layer, column, "whole" if whole else "parts"]
    surroundings = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}  # nothing is written, nobody has to wait
    nowhere = subprocess.DEVNULL
    try:
        with subprocess.Popen(
            words, bufsize=0, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere, env=surroundings
        ) as process:
            return _outcome(process, mark[2])
    except (OSError, ValueError):  # no process could be started, or the name of a layer has a zero byte
        return ""


def _outcome(process: subprocess.Popen[bytes], size: int) -> str:
    """Wait for the process, counting from when its libraries are loaded."""
    assert process.stdout is not None
    if process.stdout.readline().strip() != b"ready":
        return ""
    try:
        said, _ = process.communicate(timeout=_SECONDS + size / _BYTES_PER_SECOND)
    except subprocess.TimeoutExpired:
        process.kill()
        return "the HDF5 library does not come to an end with it"
    if process.returncode < 0 or process.returncode > 1:  # a signal; on Windows, a large status
        return "the HDF5 library cannot read it without crashing"
    return one_line(said.decode(errors="replace").strip(), 300)
