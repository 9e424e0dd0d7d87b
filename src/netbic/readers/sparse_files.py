"""Sparse matrices in .npz files, as SciPy writes them.

The arrays are checked before a matrix is made of them: SciPy's own reader casts indices that are not integers, and its
compiled code trusts them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic.arrays import (
    Array,
    blocks_problem,
    compressed_problem,
    coordinates_problem,
    diagonals_problem,
    shape_problem,
    values_problem,
)
from netbic.errors import InputError, one_line, unusable
from netbic.readers.matrices import native
from netbic.readers.unpacking import check_archive

_REMEDY = "write it with scipy.sparse.save_npz"
_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
_ALWAYS_ALLOWED = 10_000_000  # rows or columns, for any number of entries
_MOST_EMPTY = 1000  # rows or columns for each entry that is stored
_LARGEST_RATIO = 1100  # of unpacked to packed bytes: many weights are equal, and deflate reaches 1032


def read_sparse(path: Path) -> sp.coo_array:
    """The sparse matrix that `scipy.sparse.save_npz` wrote, in any of its formats.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import scipy.sparse as sp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sp.save_npz(f"{folder}/path.npz", sp.diags_array([1.0, 2.0], offsets=1))
    ...     read_sparse(Path(f"{folder}/path.npz")).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    """
    try:
        kind, shape, parts = _arrays(path)
        problem = _problem(kind, shape, parts)
        if problem is None:
            _check_sparsity(path, shape, int(parts["data"].size))
            return sp.coo_array(_made(kind, shape, parts))
    except InputError:
        raise
    except Exception as found:  # zip, numpy and scipy each have their own ways to say that a file is damaged
        what = f"cannot be read as a sparse matrix ({one_line(str(found), 120)})"
        raise unusable(path, what, _REMEDY) from None
    raise unusable(path, problem, _REMEDY)


def _arrays(path: Path) -> tuple[str, Any, dict[str, Array]]:
    """Format, shape and arrays of the file; never runs code (no pickle)."""
    check_archive(path, ratio=_LARGEST_RATIO)
    with np.load(path, allow_pickle=False) as file:
        if "format" not in file:
            raise unusable(path, "holds arrays, but no sparse matrix", _REMEDY)
        name = file["format"].item()
        kind = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
        if kind not in _PARTS:
            raise unusable(path, f"holds a matrix in format {kind!r}", f"choose one of {', '.join(_PARTS)}")
        if kind == "coo" and "coords" in file:
            raise unusable(path, "holds an array of more or fewer than 2 dimensions", "a matrix is needed")
        shape = tuple(int(size) for size in np.atleast_1d(file["shape"]))
        return kind, shape, {name: native(file[name]) for name in _PARTS[kind]}


def _problem(kind: str, shape: tuple[int, int], parts: dict[str, Array]) -> str | None:
    """What is wrong with the arrays of a matrix, or None."""
    name, arrays = "the matrix", tuple(parts.values())
    data = arrays[0]
    if problem := shape_problem(shape, name) or values_problem(data, name, {"bsr": 3, "dia": 2}.get(kind, 1)):
        return problem
    if kind == "coo":
        return coordinates_problem(data, arrays[1], arrays[2], shape, name)
    if kind == "dia":
        return diagonals_problem(data, arrays[1], shape, name)
    if kind == "bsr":
        return blocks_problem(data, arrays[1], arrays[2], shape, name)
    return compressed_problem(data, arrays[1], arrays[2], shape, name, by_rows=kind == "csr", exact=False)


def _made(kind: str, shape: tuple[int, int], parts: dict[str, Array]) -> Any:
    data, *places = parts.values()
    content: Any = (data, tuple(places)) if kind == "coo" else (data, *places)
    return getattr(sp, f"{kind}_array")(content, shape=shape)


def _check_sparsity(path: Path, shape: tuple[int, int], stored: int) -> None:
    """Raise if a matrix has so many empty rows that the pointers to them would fill the memory."""
    if max(shape) > max(_ALWAYS_ALLOWED, _MOST_EMPTY * stored):
        raise unusable(path, f"has shape {shape} but {stored:,} entries", "leave out nodes without edges")
