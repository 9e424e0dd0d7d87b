"""Sparse matrices in .npz files, as SciPy writes them, and the names of their rows if there are any.

The arrays are checked before a matrix is made of them: SciPy's own reader casts indices that are not integers, and its
compiled code trusts them.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Array, sparse_problem
from netbic.errors import InputError, one_line, unusable
from netbic.io.matrices import native
from netbic.io.unpacking import check_archive

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
        arrays = _arrays(path)
        if problem := sparse_problem(arrays, "the matrix"):
            raise unusable(path, problem, _REMEDY)
        data, *places = (getattr(arrays, name) for name in _PARTS[arrays.format])
        if max(arrays.shape) > max(_ALWAYS_ALLOWED, _MOST_EMPTY * data.size):  # the pointers would fill the memory
            what = f"has shape {arrays.shape} but {data.size:,} entries"
            raise unusable(path, what, "leave out nodes without edges")
        content: Any = (data, tuple(places)) if arrays.format == "coo" else (data, *places)
        return sp.coo_array(getattr(sp, f"{arrays.format}_array")(content, shape=arrays.shape))
    except InputError:
        raise
    except Exception as found:  # zip, numpy and scipy raise many kinds of errors for damaged files
        what = f"cannot be read as a sparse matrix ({one_line(str(found), 120)})"
        raise unusable(path, what, _REMEDY) from None


def read_node_names(path: Path) -> Array | None:
    """The array `names` of such a file: text or integers, as `write_network` writes them; None without it."""
    try:
        check_archive(path, ratio=_LARGEST_RATIO)
        with np.load(path, allow_pickle=False) as file:
            names = native(file["names"]) if "names" in file else None
    except InputError:
        raise
    except Exception as found:  # zip and numpy raise many kinds of errors for damaged files
        raise unusable(path, f"its names cannot be read ({one_line(str(found), 120)})", _REMEDY) from None
    if names is None:
        return None
    if names.ndim != 1 or names.dtype.kind not in "Uiu":
        what = f"its array `names` has {names.ndim} dimensions and type {names.dtype}"
        raise unusable(path, what, "one name (text or integer) for each node is needed")
    return names.astype(np.int64) if names.dtype.kind in "iu" else names.astype(object)


def is_marked_signed(path: Path) -> bool:
    """Whether `netbic.storage.write_network` marked the file: negative weights are those of edges that inhibit."""
    with np.load(path, allow_pickle=False) as file:
        return "signed" in file


def _arrays(path: Path) -> SimpleNamespace:
    """Format, shape and arrays of the file, under the names that a matrix of SciPy has; never runs code (no pickle)."""
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
        return SimpleNamespace(format=kind, shape=shape, **{part: native(file[part]) for part in _PARTS[kind]})
