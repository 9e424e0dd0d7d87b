"""Limits on the size of unpacked files: a small file must not be able to fill the memory."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

from netbic.errors import unusable
from netbic.operators import free_memory

ALWAYS_ALLOWED = 256_000_000  # bytes that every file may unpack to
LARGEST_RATIO = 200  # unpacked bytes per packed byte; a table of counts with 99.5% zeros reaches 120
BEGINNING = 1 << 20  # packed bytes after which the ratio of the file is known
LARGEST_CHANGE = 20  # of that ratio
MEMORY_SHARE = 0.5  # of the free memory
PIECE = 1 << 22

EXPECTED = "unpack it first if it really is that large"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, OSError)


def in_bytes(size: float) -> str:
    """A size with its unit: 4 MB, 1.3 GB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} bytes"


def check_unpacked_size(
    path: Path | str,
    packed: float,
    unpacked: float,
    *,
    allowed: float | None = None,
    ratio: float | None = None,
    free: float | None = None,
    remedy: str = EXPECTED,
) -> None:
    """Raise if a file unpacks to far more than is plausible for its size, or than the memory can hold.

    Parameters
    ----------
    path : path
        Named in the error.
    packed, unpacked : int
        Bytes on disk and bytes in memory, as declared by the file or as read so far.
    allowed : int, optional
        Bytes that are allowed for any ratio.
    ratio : float, optional
        Unpacked bytes allowed per packed byte.
    free : float, optional
        Bytes of memory that were free before reading. Default: those that are free now.
    remedy : str
        What to do if the file really is that large.

    Examples
    --------
    >>> check_unpacked_size("network.npz", packed=1_000_000, unpacked=50_000_000)
    >>> check_unpacked_size("network.npz", packed=4_000_000, unpacked=4_000_000_000)
    Traceback (most recent call last):
    netbic.errors.InputError: network.npz: unpacks from 4 MB to 4 GB or more: unpack it first if it really is that large
    """
    allowed = ALWAYS_ALLOWED if allowed is None else allowed
    ratio = LARGEST_RATIO if ratio is None else ratio
    if unpacked > max(allowed, ratio * packed):
        raise unusable(path, f"unpacks from {in_bytes(packed)} to {in_bytes(unpacked)} or more", remedy)
    check_memory(path, unpacked, free)


def check_memory(path: Path | str, size: float, free: float | None = None) -> None:
    """Raise if reading this many bytes would take most of the free memory."""
    if size <= ALWAYS_ALLOWED:
        return
    free = free_memory() if free is None else free
    if size > MEMORY_SHARE * free:
        what = f"needs {in_bytes(size)} or more of the {in_bytes(free)} of memory that are free"
        raise unusable(path, what, "netbic convert reads an expression matrix piece by piece")


def check_archive(path: Path | str, content: IO[bytes] | None = None, ratio: float | None = None) -> None:
    """Raise if the members of a zip archive (.npz) are too large, by their declared sizes; see `check_unpacked_size`.

    Not more than the declared sizes is ever unpacked. Files that are not zip archives are not checked.
    """
    try:
        with zipfile.ZipFile(path if content is None else content) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return
    finally:
        if content is not None:
            content.seek(0)
    packed, unpacked = sum(member.compress_size for member in members), sum(member.file_size for member in members)
    remedy = "write it without compression if it really is that large"
    check_unpacked_size(path, packed, unpacked, ratio=ratio, remedy=remedy)


class Unpacked(io.RawIOBase):
    """The content of a file as a stream, unpacked if it is gzip (whatever its name), with limits on its size.

    Parameters
    ----------
    path : path
    whole : bool
        Whether all of it is going to be in memory.
    """

    _file: Any = None  # until it is open

    def __init__(self, path: Path, whole: bool = True) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as problem:
            raise unusable(path, f"cannot be read ({problem.strerror})", "check its permissions") from None
        self.packed = self._file.read(2) == b"\x1f\x8b"
        self._file.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=self._file) if self.packed else self._file
        self._size = path.stat().st_size
        self._given = 0
        self._ratio: float = LARGEST_RATIO
        self._begun = False  # whether enough has been read to tell the ratio
        self._free = free_memory() if whole else float("inf")  # as it was before anything was read
        if not self.packed:
            check_memory(path, self._size, self._free)

    def readable(self) -> bool:
        """Always true."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size` (default: a few megabytes); empty at the end."""
        try:
            piece = bytes(self._stream.read(PIECE if size < 0 else size))
        except _DAMAGED:
            kind = "is a gzip file that is incomplete or damaged" if self.packed else "cannot be read"
            raise unusable(self._path, kind, "download or pack it again") from None
        self._given += len(piece)
        if self.packed and piece:
            self._check()
        return piece

    def _check(self) -> None:
        """Check the ratio of unpacked to packed bytes so far, also against that at the beginning."""
        read = self._file.tell()
        if not self._begun and read >= BEGINNING:
            self._begun = True
            self._ratio = min(LARGEST_RATIO, LARGEST_CHANGE * self._given / read)
        if self._given > max(ALWAYS_ALLOWED, self._ratio * read):
            raise unusable(self._path, f"its first {in_bytes(read)} unpack to {in_bytes(self._given)}", EXPECTED)
        check_memory(self._path, self._given, self._free)

    @property
    def share(self) -> float:
        """The share of the file that has been read."""
        return float(self._file.tell() / max(self._size, 1))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        super().close()
