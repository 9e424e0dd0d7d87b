"""Types of arrays, kinds of inputs, conversions between dense and sparse matrices, and checks of users' matrices.

The compiled code of SciPy trusts the index arrays of a sparse matrix: one index out of bounds, or one decreasing
pointer, and it reads or writes memory outside of the arrays. Here they are checked by NumPy alone, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

Array = NDArray[Any]  # of any dtype
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]
RandomState = int | Sequence[int] | np.random.Generator | np.random.RandomState | None
# An array, or a sparse matrix of any format. The stubs of SciPy and NumPy have no common type for the two.
Matrix = Any
Kind = Literal[
    "dense", "sparse", "table", "dask", "dask table", "anndata", "mudata", "operator", "linear operator", "blocks",
    "other",
]  # fmt: skip
Problem = str | None  # what is wrong with a matrix, as text, or None

_CACHED = 1 << 17  # entries
_SMALLEST, _LARGEST = 1e-120, 1e140  # bounds of the largest absolute entry
_FURTHEST = 2**31 - 1  # diagonal: beyond it, SciPy's arithmetic overflows
_REMEDY = "build it again from its entries, e.g. as a COO matrix, or load it again"


# --- Kinds of inputs, and conversions ---


@singledispatch
def kind_of(X: object) -> Kind:
    """The kind of an input X; inputs are distinguished here only.

    "dense" is a NumPy array, "table" a DataFrame, "operator" a `DataOperator`, "blocks" a `RowBlocks`, "other" e.g. a
    list. The classes of netbic register themselves.
    """
    # Optional packages are recognised by the names of their classes, without importing them.
    for parent in type(X).__mro__:
        package, _, module = parent.__module__.partition(".")
        if package == "anndata" and parent.__name__ == "AnnData":
            return "anndata"
        if package == "mudata" and parent.__name__ == "MuData":
            return "mudata"
        if package == "dask" and module.startswith("array") and parent.__name__ == "Array":
            return "dask"
        if package == "dask" and module.startswith("dataframe"):
            return "dask table"
    return "other"


kind_of.register(np.ndarray, lambda X: "dense")
kind_of.register(sp.sparray, lambda X: "sparse")
kind_of.register(sp.spmatrix, lambda X: "sparse")
kind_of.register(pd.DataFrame, lambda X: "table")
kind_of.register(LinearOperator, lambda X: "linear operator")


_REFUSED: dict[Kind, str] = {
    "dask table": "is a Dask DataFrame: give the matrix, X.to_dask_array(lengths=True)",
    "anndata": (
        "is an AnnData object: use netbic.tl (tl.modules, tl.score), or give the matrix with names, adata.to_df()"
    ),
    "operator": "is a {}, which offers products only, but its entries are needed: give X.toarray()",
    "linear operator": (
        "is a LinearOperator of SciPy: write its two products as a netbic.operators.DataOperator, which takes ten "
        "lines, or give the matrix, X @ np.eye(X.shape[1])"
    ),
}


def refuse(X: object, *kinds: Kind, name: str = "X") -> None:
    """Raise a TypeError with advice if X is of one of these kinds."""
    if (kind := kind_of(X)) in kinds:
        raise TypeError(f"{name} {_REFUSED[kind].format(type(X).__name__)}")


def check_in_memory(X: object, purpose: str, advice: str = "") -> None:
    """Raise a TypeError if X is not a matrix in memory; `purpose` says what needs one, `advice` what else to do."""
    refuse(X, "anndata", "dask table")
    if (kind := kind_of(X)) in ("dask", "operator"):
        what, remedy = ("Dask array", "compute") if kind == "dask" else (type(X).__name__, "toarray")
        raise TypeError(
            f"X is a {what}, but {purpose}: give X.{remedy}() if it fits, or a random subset of its rows{advice}"
        )


def is_sparse(X: Matrix) -> bool:
    """Whether X is a SciPy sparse matrix or array."""
    return kind_of(X) == "sparse"


def to_dense(X: Matrix, dtype: Any = None) -> Array:
    """A sparse or dense matrix as a NumPy array; a dense one is not copied unless the precision changes."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=dtype)


def buffers(X: Matrix) -> list[Array]:
    """The arrays that a dense, CSR or CSC matrix is stored in."""
    return [X.data, X.indices, X.indptr] if is_sparse(X) else [X]


def stored_values(X: Matrix) -> Array:
    """All entries of a dense matrix, the stored entries of a sparse one."""
    return np.asarray(X.data) if is_sparse(X) else np.asarray(X)


def row_blocks(X: Array) -> Iterator[Array]:
    """The rows of a dense matrix, some at a time: what is computed from them stays in the cache of the processor."""
    step = max(1, _CACHED // max(X.shape[1], 1))
    yield from (X[start : start + step] for start in range(0, len(X), step))


def scatter(support: Indices, values: Array, size: int) -> Array:
    """A vector of this size with the given values on `support`, and zeros elsewhere; for an array, its columns."""
    full = np.zeros((size, *values.shape[1:]), dtype=values.dtype)
    full[support] = values
    return full


def jaccard(some: Bools, others: Bools) -> Floats:
    """Jaccard index row by row; 0 for two empty sets."""
    return np.asarray((some & others).sum(axis=1) / np.maximum((some | others).sum(axis=1), 1))


def leading_right_vector(X: Floats) -> Floats:
    """The leading right singular vector of a dense matrix, not of unit length if X has more columns than rows."""
    n, p = X.shape
    gram = X.T @ X if p <= n else X @ X.T
    vector = eigh(gram, subset_by_index=[len(gram) - 1] * 2, check_finite=False)[1][:, 0]
    return np.asarray(vector if p <= n else X.T @ vector)


# --- Checks ---


def check_choice(name: str, value: object, choices: Iterable[object], error: type[ValueError] = ValueError) -> None:
    """Raise an error if the value of a parameter is not one of its choices."""
    value = bool(value) if isinstance(value, np.bool_) else value
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise error(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, choices))}")


def without_names(X: Any) -> Any:
    """The array of a DataFrame whose columns are all float64 or all float32; everything else as it is.

    scikit-learn examines the columns of a DataFrame one by one, which takes longer than a fit if there are many.
    """
    if not isinstance(X, pd.DataFrame) or len(kinds := set(X.dtypes)) != 1:
        return X
    return X.to_numpy() if kinds <= {np.dtype(np.float64), np.dtype(np.float32)} else X


def checked(X: Any, name: str = "X", *, missing: str = "ignore") -> Any:
    """The same data in a form that is safe to compute with; an error that says what is wrong with them otherwise.

    Masked entries become missing values (NaN), or are refused by missing="error". Complex numbers and sparse matrices
    whose arrays do not make one are refused. Everything else is returned as it is.
    """
    refuse(X, "anndata", "dask table", "operator", "linear operator", name=name)
    X = _stacked(X)
    if missing == "error" and (masked := n_masked(X)):
        raise ValueError(
            f"{name} is a masked array and {masked:,} of its entries are masked: drop or fill them, or use "
            "missing='ignore' or 'impute'"
        )
    if isinstance(X, np.ma.MaskedArray):  # single precision stays single precision
        check_real(X, name)
        kept = X.dtype if X.dtype.kind == "f" else np.float64
        X = np.asarray(np.ma.filled(X.astype(kept), np.nan) if np.ma.is_masked(X) else X.data)
    if sp.issparse(X):
        check_sparse(X, name)
    elif isinstance(X, np.ndarray):
        check_real(X, name)
    elif isinstance(X, pd.DataFrame):
        for at, dtype in enumerate(X.dtypes):
            if dtype.kind in "cmMO":  # others hold real numbers
                check_real(X.iloc[:, at], f"column {X.columns[at]!r} of {name}")
    return X


def n_masked(X: Any) -> int:
    """How many entries of a masked array (or of a list of such) are masked; 0 for everything else."""
    X = _stacked(X)
    return int(np.count_nonzero(np.ma.getmaskarray(X))) if isinstance(X, np.ma.MaskedArray) else 0


def _stacked(X: Any) -> Any:
    """A list of masked rows as one masked array: NumPy would drop the masks."""
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        return np.ma.stack([np.ma.asarray(row) for row in X])  # noqa: PD013
    return X


def check_range(X: Matrix, name: str = "X") -> None:
    """Raise if the squares of the entries overflow or underflow; missing entries are left out."""
    check_largest(float(np.fmax.reduce(np.abs(stored_values(X)), axis=None, initial=0.0)), name)


def check_largest(largest: float, name: str) -> None:
    """The same for the largest absolute entry."""
    if np.isnan(largest):
        raise ValueError(f"{name} contains NaN: all entries have to be finite numbers")
    if largest and not _SMALLEST < largest < _LARGEST:
        raise ValueError(
            f"{name} has entries up to {largest:.3g}, whose squares leave the range of numbers: rescale {name} "
            f"(divide it by a number), so that its largest absolute entry lies between {_SMALLEST:g} and {_LARGEST:g}"
        )


def check_real(values: Any, name: str) -> None:
    """Raise if an array, a sparse matrix or a column of a table holds complex numbers or dates."""
    objects = np.ravel(values) if values.dtype == object and not sp.issparse(values) else ()
    if values.dtype.kind in "mM":
        raise ValueError(f"{name} holds dates or durations ({values.dtype}): give numbers, such as days")
    if values.dtype.kind == "c" or any(isinstance(value, (complex, np.complexfloating)) for value in objects):
        kind = "complex numbers" if values.dtype == object else values.dtype
        raise ValueError(
            f"Complex data not supported: {name} holds {kind}, real numbers are needed (take their modulus or "
            "real part)"  # the estimator checks of scikit-learn look for the first three words
        )


def check_sparse(matrix: Any, name: str = "X") -> None:
    """Raise unless the arrays of a SciPy sparse matrix make a matrix of real numbers."""
    check_real(matrix, name)
    if problem := sparse_problem(matrix, name):
        raise ValueError(f"{problem}: {_REMEDY}")


def sparse_problem(matrix: Matrix, name: str = "X") -> Problem:
    """What is wrong with the arrays of a SciPy sparse matrix of any format, or None."""
    shape, kind = matrix.shape, matrix.format
    if len(shape) != 2:
        return f"{name} has {len(shape)} dimensions where 2 are needed"
    if any(not isinstance(size, (int, np.integer)) or size < 0 for size in shape):
        return f"{name} has shape {tuple(shape)}, which no matrix has"
    if kind == "lil":
        if any(len(places) != len(values) for places, values in zip(matrix.rows, matrix.data, strict=True)):
            return f"a row of {name} has more indices than values, or fewer"
        return bounds_problem(_integers(chain.from_iterable(matrix.rows)), shape[1], "columns", name)
    if kind == "dok":
        rows, columns = (_integers(key[axis] for key in matrix.keys()) for axis in (0, 1))  # noqa: SIM118
        return bounds_problem(rows, shape[0], "rows", name) or bounds_problem(columns, shape[1], "columns", name)
    if problem := values_problem(matrix.data, name, ndim={"bsr": 3, "dia": 2}.get(kind, 1)):
        return problem
    n_data = len(matrix.data)
    if kind == "coo":
        if not matrix.row.size == matrix.col.size == n_data:
            return f"the arrays of {name} have {matrix.row.size:,}, {matrix.col.size:,} and {n_data:,} entries"
        problem = bounds_problem(matrix.row, shape[0], "rows", name, "row")
        return problem or bounds_problem(matrix.col, shape[1], "columns", name, "col")
    if kind == "dia":
        offsets, called = matrix.offsets, _called(name, "offsets")
        if offsets.dtype.kind not in "iu" or offsets.size != n_data or np.unique(offsets).size != n_data:
            return f"{called} does not have one integer for each of {n_data:,} diagonals, or names a diagonal twice"
        far = (offsets < -_FURTHEST) | (offsets > _FURTHEST)  # empty diagonals outside of the matrix are allowed
        return f"{called} holds {offsets[far][0]:,} but {name} has shape {shape}" if far.any() else None
    if kind == "bsr":
        blocks = matrix.data.shape[1:]
        if 0 in blocks or any(size % block for size, block in zip(shape, blocks, strict=True)):
            return f"{name} has blocks of shape {blocks}, into which its shape {shape} cannot be cut"
        shape = shape[0] // blocks[0], shape[1] // blocks[1]
    parts = matrix.data, matrix.indices, matrix.indptr
    return compressed_problem(*parts, shape, name, by_rows=kind != "csc", exact=False)


def compressed_problem(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], name: str, *, by_rows: bool = True, exact: bool = True
) -> Problem:
    """What is wrong with the three arrays of a CSR (`by_rows`) or CSC matrix, or None; see `values_problem` for data.

    A name that ends in a slash is a place in a file: arrays are then called "X/indices" and so on. `exact`: `indices`
    and `data` have to end where the last pointer says, as in a file; in memory they may be longer.
    """
    n_lines, n_others = shape if by_rows else shape[::-1]
    lines, others = ("rows", "columns") if by_rows else ("columns", "rows")
    if problem := _integers_problem(indptr, name, "indptr"):
        return problem
    called, matrix = _called(name, "indptr"), name.removesuffix("/")
    if indptr.size != n_lines + 1:
        return f"{called} has {indptr.size:,} entries but {matrix} has {n_lines:,} {lines}, which need one more"
    if indptr[0] != 0:
        return f"{called} begins with {indptr[0]:,}, not 0"
    falls = indptr[1:] < indptr[:-1]  # differences could overflow
    if falls.any():
        at = int(np.argmax(falls))
        return f"{called} decreases, from {indptr[at]:,} to {indptr[at + 1]:,}"
    stored = int(indptr[-1])
    for length, part in ((len(indices), "indices"), (len(data), "data")):
        if length < stored or (exact and length > stored):
            return f"{_called(name, part)} has {length:,} entries where {called} counts {stored:,}"
    return bounds_problem(indices[:stored], n_others, others, name)


def bounds_problem(indices: Array, size: int, what: str, name: str, part: str = "indices") -> Problem:
    """What is wrong with an array of integers from 0 to before `size`, or None; one pass over it."""
    if problem := _integers_problem(indices, name, part):
        return problem
    # Without a sign, what is negative becomes very large, so that one comparison finds it too.
    unsigned = indices.view(indices.dtype.str.replace("i", "u"))
    if not indices.size or int(unsigned.max()) < size:
        return None
    wrong = indices[(indices < 0) | (indices >= size)][0]
    return f"{_called(name, part)} holds {wrong:,} but {name.removesuffix('/')} has {size:,} {what}"


def values_problem(data: Any, name: str, ndim: int = 1) -> Problem:
    """What is wrong with the values of a sparse matrix, or None."""
    if not isinstance(data, np.ndarray) or data.ndim != ndim:
        return f"{_called(name, 'data')} is not an array of {ndim} dimension{'s' * (ndim > 1)}"
    return f"{_called(name, 'data')} holds {data.dtype}, not real numbers" if data.dtype.kind not in "fiub" else None


def _integers_problem(values: Any, name: str, part: str) -> Problem:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        return f"{_called(name, part)} holds {getattr(values, 'dtype', type(values).__name__)}, not integers"
    return None if values.ndim == 1 else f"{_called(name, part)} has {values.ndim} dimensions where 1 is needed"


def _integers(values: Iterable[Any]) -> Array:
    """Integers of any size from a list, as an array; of objects if one of them is no integer, or too large."""
    listed = list(values)
    return np.array(listed) if listed else np.zeros(0, dtype=np.intp)


_PARTS = {"indices": "index array", "indptr": "pointer array", "data": "data array", "offsets": "offset array"}
_PARTS |= {"row": "row index array", "col": "column index array"}


def _called(name: str, part: str) -> str:
    return f"{name}{part}" if name.endswith("/") else f"the {_PARTS[part]} of {name}"
