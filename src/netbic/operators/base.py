"""The contract between the solver and a matrix: two products, and defaults for everything else.

`as_operator` finds the operator of a matrix. A :class:`RowReduction` visits the rows of a corrected matrix, of which a
few are dense at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import singledispatch
from numbers import Integral
from operator import add
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse, kind_of, to_dense

_SLAB_ENTRIES = 1 << 20  # entries that are dense at a time: 8 MB


class Operator(Protocol):
    """A matrix X of shape (n, p) that is only ever multiplied. All results are double precision."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v for a vector v that is zero outside `support` (increasing column indices)."""

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u for a vector u that is zero outside `support` (increasing row indices)."""


class DataOperator(ABC):
    """Base class of matrices in which modules are found.

    A subclass implements `matvec` and `rmatvec`. All other methods have defaults written in terms of these two; a
    subclass overrides those that it can compute faster. An instance can be given to ``SparseGraphSVD.fit``.

    Parameters
    ----------
    shape : pair of int
        Number of rows (samples) and columns (features).
    dtype : float64 or float32
        Precision of the stored entries, hence of the fitted vectors.

    Attributes
    ----------
    shape : pair of int
    dtype : numpy.dtype

    Examples
    --------
    >>> import numpy as np
    >>> class Diagonal(DataOperator):
    ...     def __init__(self, diagonal):
    ...         super().__init__((len(diagonal), len(diagonal)))
    ...         self.diagonal = diagonal
    ...
    ...     def matvec(self, support, values):
    ...         product = np.zeros(self.shape[0])
    ...         product[support] = self.diagonal[support] * values
    ...         return product
    ...
    ...     rmatvec = matvec
    >>> Diagonal(np.array([3.0, 2.0, 1.0])).column_sums()
    array([3., 2., 1.])
    """

    can_be_cut: ClassVar[bool] = False  # whether `submatrix` reads no more than the rows or columns that it needs
    prefetches: ClassVar[bool] = False  # whether `prefetch` makes the products that follow faster

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike = np.float64) -> None:
        if len(shape) != 2 or not all(isinstance(size, Integral) and size >= 0 for size in shape):
            raise ValueError(f"shape={shape!r}: a pair of integers is needed, the numbers of rows and columns")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r}: float32 or float64 is needed")
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    @abstractmethod
    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v for a vector v that is zero outside `support` (increasing column indices); a new float64 array."""

    @abstractmethod
    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u for a vector u that is zero outside `support` (increasing row indices); a new float64 array."""

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """X v for several vectors v, each given by support and values; one row per vector."""
        return np.array([self.matvec(*vector) for vector in vectors]).reshape(-1, self.shape[0])

    def left_products(self, vectors: Floats) -> Floats:
        """X'u for several dense vectors u, the columns of an array; one row per vector."""
        every = np.arange(self.shape[0])
        return np.array([self.rmatvec(every, vector) for vector in vectors.T]).reshape(-1, self.shape[1])

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """X'w and w, for w = weights * (X v - offsets) and a dense v, or several: the columns of an array."""
        n, p = self.shape
        lines = vectors.reshape(p, -1).T
        images = np.array([self.matvec(np.arange(p), line) for line in lines]).T
        images = weights * (images.reshape(n, *vectors.shape[1:]) - offsets)
        products = np.array([self.rmatvec(np.arange(n), line) for line in images.reshape(n, -1).T]).T
        return products.reshape(vectors.shape), images

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """The entries in some rows and columns, in any order, as a dense array."""
        one = np.ones(1)
        if len(columns) <= len(rows):
            lines = [self.matvec(np.array([column]), one)[rows] for column in columns]
            return np.array(lines, dtype=self.dtype).reshape(len(columns), len(rows)).T
        lines = [self.rmatvec(np.array([row]), one)[columns] for row in rows]
        return np.array(lines, dtype=self.dtype).reshape(len(rows), len(columns))

    def stored_rows(self) -> Array | None:
        """The whole matrix, if it is stored as a dense array; not to be modified."""
        return None

    def toarray(self) -> Array:
        """The whole matrix as a dense array."""
        return self.submatrix(np.arange(self.shape[0]), np.arange(self.shape[1]))

    # Caches are optional: by default, nothing is done.

    def in_double(self) -> DataOperator:
        """The same matrix in double precision, or itself: for numbers that rounding errors should not change."""
        return self

    def for_one_start(self) -> DataOperator:
        """The same matrix with a cache for one sequence of slowly changing supports, used by one thread only."""
        return self

    def reset_cache(self) -> None:  # noqa: B027
        """Make the products that follow independent, to the last bit, of those computed before."""

    def prefetch(self, columns: Indices, rows: Indices | None = None) -> None:  # noqa: B027
        """Prepare for products with vectors that are zero outside these columns or, on the left, these rows."""

    def prefetch_hint(self, axis: str, scores: Floats) -> None:  # noqa: B027
        """Receive scores of all "rows" or "columns": those with large absolute scores are likely to be read next."""

    @property
    def epsilon(self) -> float:
        """Relative rounding error of one stored entry or product."""
        return float(np.finfo(self.dtype).eps)

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return self.matvec(np.arange(self.shape[1]), np.ones(self.shape[1]))

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return self.rmatvec(np.arange(self.shape[0]), np.ones(self.shape[0]))

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - row_offsets[i] - column_offsets[j])^2, for each column j."""
        n, p = self.shape
        left, right = np.column_stack([row_offsets, np.ones(n)]), np.column_stack([np.ones(p), column_offsets])
        squares: Floats = self.reduce_rows(RowReduction(column_squares, add, None, left, right))
        return squares

    def squared_lengths(self, factors: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns of Y = X diag(factors) - left right'."""
        lengths: tuple[Floats, Floats] = self.reduce_rows(
            RowReduction(square_sums, join_square_sums, factors, left, right)
        )
        return lengths

    def squared_norm(self, row_offsets: Floats, column_offsets: Floats, factors: Floats | None) -> float:
        """Sum over i, j of ((x_ij - row_offsets[i] - column_offsets[j]) * factors[j])^2."""
        squares = self.column_squares(row_offsets, column_offsets)
        return float(squares.sum() if factors is None else squares @ factors**2)

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y Y' (`on_rows`) or Y'Y for Y = X diag(factors) - left right', in Fortran order.

        Only the upper triangle is used.
        """
        if not on_rows:
            reduction = RowReduction(lambda rows, first: rows.T @ rows, add, factors, left, right)
            return np.asfortranarray(self.reduce_rows(reduction), dtype=dtype)
        n, p = self.shape
        total = np.zeros((n, n))
        for part in slabs(p, n):
            columns = self.submatrix(np.arange(n), np.arange(p)[part]) * factors[part]
            columns = columns - left @ right[part].T
            total += columns @ columns.T
        return np.asfortranarray(total, dtype=dtype)

    def reduce_rows(self, reduction: RowReduction) -> Any:
        """The result of a reduction over all rows."""
        n, p = self.shape
        return reduction.over_slabs(lambda part: self.submatrix(np.arange(n)[part], np.arange(p)), n)


kind_of.register(DataOperator, lambda X: "operator")


@singledispatch
def as_operator(X: Matrix, low_memory: bool = False) -> DataOperator:
    """The operator of a validated matrix.

    Each class of operators registers its matrices with ``as_operator.register``. An operator is returned unchanged.

    Parameters
    ----------
    X : array, CSR matrix, RowBlocks or DataOperator
    low_memory : bool
        Keep a dense X in one memory order instead of both.

    Examples
    --------
    >>> import numpy as np
    >>> from netbic.operators import as_operator
    >>> as_operator(np.eye(3)).row_sums()
    array([1., 1., 1.])
    """
    if isinstance(X, DataOperator):
        return X
    raise TypeError(
        f"X is a {type(X).__name__}: give an array, a sparse matrix, a Dask array or a netbic.operators.DataOperator"
    )


class RowReduction(NamedTuple):
    """A reduction over all rows of Y = X diag(factors) - left right'.

    Parameters
    ----------
    function : callable
        Of some rows of Y (a dense array) and the index of the first of them.
    combine : callable
        Of the result for some rows and the result for the rows that follow them.
    factors : array of shape (p,), optional
    left, right : arrays of shape (n, r) and (p, r)
    """

    function: Callable[[Floats, int], Any]
    combine: Callable[[Any, Any], Any]
    factors: Floats | None
    left: Floats
    right: Floats

    def over(self, rows: Matrix, first: int = 0) -> Any:
        """The result for an array or CSR matrix X whose first row has the index `first`."""
        return self.over_slabs(lambda part: to_dense(rows[part]), rows.shape[0], first)

    def over_slabs(self, read: Callable[[slice], Array], n_rows: int, first: int = 0) -> Any:
        """The result for `n_rows` rows of X, of which `read` returns a slice as a dense array."""
        total: Any = None
        for part in slabs(n_rows, self.right.shape[0]):
            rows = read(part) * (1.0 if self.factors is None else self.factors) - self.left[part] @ self.right.T
            result = self.function(rows, first + part.start)
            total = result if total is None else self.combine(total, result)
        return total


def slabs(n_lines: int, length: int) -> list[slice]:
    """Slices of a few lines (rows or columns) of this length."""
    step = max(1, _SLAB_ENTRIES // max(length, 1))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def aligned(X: Matrix) -> Matrix:
    """The same array at an aligned address.

    Arrays received over a network may be unaligned: products with them are slow, and sum in another order, so that
    the last digits would depend on which machine computed them.
    """
    return X if is_sparse(X) or X.flags.aligned else X.copy(order="K")


def column_squares(rows: Floats, first: int) -> Floats:
    """Sum of squares of each column of some rows."""
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


def square_sums(rows: Floats, first: int) -> tuple[Floats, Floats]:
    """Sums of squares of some rows, and of each column of them."""
    return np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->j", rows, rows)


def join_square_sums(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The `square_sums` of the rows of both."""
    return np.concatenate([one[0], other[0]]), one[1] + other[1]
