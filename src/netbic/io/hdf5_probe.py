"""Read what netbic is about to read from an HDF5 file, in a separate process.

Run as a script, `python hdf5_probe.py FILE LAYER COLUMN EXTENT`: prints "ready" when the libraries are loaded, then at
most one line that says what is wrong with the file. A damaged file may crash or hang the HDF5 library, and then only
this process ends. It imports only h5py and NumPy, so that it starts quickly.
"""

import contextlib
import math
import sys
from typing import Any

import h5py
import numpy as np

_LARGE = 1 << 26  # bytes up to which a dataset is read completely; of larger ones the structure and both ends
_MOST_UNPACKED = 5000  # times the bytes in the file: deflate reaches 1032
_ALWAYS_ALLOWED = 1 << 28  # bytes
_STRINGS = 100_000  # read at a time
_SPARE = 1 << 29  # bytes that reading may take in addition to the chunks


class DamagedFile(Exception):
    """What is wrong with a file."""


def probe(path: str, layer: str, column: str, whole: bool) -> str:
    """Read the matrix, obs and the names of the genes (or everything); returns what is wrong with them, if anything.

    Errors that h5py raises are not reported: it will raise them again.
    """
    try:
        with h5py.File(path, "r") as root:
            _visit(root, set()) if whole else _read_parts(root, layer, column)
    except DamagedFile as problem:
        return str(problem)
    except Exception as problem:
        out_of_memory = isinstance(problem, MemoryError) or "alloc" in str(problem)
        return f"needs far more memory than it has bytes ({problem})" if out_of_memory else ""
    return ""


def _read_parts(root: Any, layer: str, column: str) -> None:
    dict(root.attrs)
    with contextlib.suppress(KeyError):
        _visit(root["obs"], set())  # the table of the samples
    with contextlib.suppress(KeyError):
        _read_names(root["var"], column)
    if "layers" in root:
        list(root["layers"].keys())
    _visit(root[f"layers/{layer}" if layer else "X"], set())


def _read_names(frame: Any, column: str) -> None:
    """The index of a data frame, and one of its columns; in old files it is a table, which is read completely."""
    attributes = dict(frame.attrs)
    if not isinstance(frame, h5py.Group):
        return _visit(frame, set())
    for name in (str(attributes.get("_index", "_index")), column, "__categories" if column else ""):
        if name and name in frame:
            _visit(frame[name], set())
    return None


def _visit(element: Any, seen: set[Any]) -> None:
    """Read an element, its attributes and its members, once each: links may be cyclic."""
    place = h5py.h5o.get_info(element.id)
    if (place.fileno, place.addr) in seen:
        return
    seen.add((place.fileno, place.addr))
    dict(element.attrs)
    if isinstance(element, h5py.Group):
        for name in element:
            _visit(element[name], seen)
    elif isinstance(element, h5py.Dataset) and element.shape is not None:
        _read(element)


def _read(dataset: Any) -> None:
    stored = dataset.id.get_storage_size()
    most = max(_ALWAYS_ALLOWED, _MOST_UNPACKED * stored)
    item = dataset.dtype.itemsize
    for what, shape in (("is", dataset.shape), ("has chunks of", dataset.chunks or ())):
        size = math.prod(shape) * item  # Python's integers do not overflow
        if size > most:
            raise DamagedFile(
                f"{dataset.name.lstrip('/')} {what} {size:,} bytes by its header, but only {stored:,} are there"
            )
    _limit_memory(_SPARE + 4 * math.prod(dataset.chunks or (0,)) * item)
    if dataset.chunks is not None:
        dataset.id.chunk_iter(lambda chunk: None)
    if dataset.dtype.kind == "O" and dataset.ndim == 1:  # strings take more memory than the references to them
        for start in range(0, dataset.shape[0], _STRINGS):
            dataset[start : start + _STRINGS]
    elif math.prod(dataset.shape) * item <= _LARGE:
        np.asarray(dataset[()])
    else:
        dataset[:1], dataset[-1:]


def _limit_memory(further: int) -> None:
    """Let this process allocate this many more bytes: damaged string lengths may ask for gigabytes."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # available on Linux only
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + further, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _forbid_core_dumps() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # Windows has none
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _forbid_core_dumps()
    _limit_memory(_SPARE)
    print("ready", flush=True)
    print(probe(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "whole").replace("\n", " "), flush=True)
