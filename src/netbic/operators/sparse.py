"""A sparse matrix, kept by rows and by columns; never densified, whatever is centred, scaled or taken out of it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.operators.base import Floats, Indices
from netbic.operators.row_reduction import Look

_FULL_SHARE = 0.3  # above this share of kept rows or columns the full product beats gathering
_BLOCK_ENTRIES = 1 << 20  # stored entries visited at a time
_GRAM_BLOCK = 256  # lines of the Gram matrix made at a time


class SparseOperator:
    """A CSR matrix as an operator, with a CSC copy beside it so that columns can be gathered too.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, p), float32 or float64
        Never written to. 64-bit indices are narrowed where 32 bits suffice.
    """

    def __init__(self, X: Any) -> None:
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.epsilon = float(np.finfo(X.dtype).eps)
        self._rows = _narrowed(X)
        self._columns = self._rows.tocsc()

    def for_one_start(self) -> Self:
        """The operator itself: it remembers nothing."""
        return self

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v, reading the supported columns only."""
        values = values.astype(self._rows.dtype, copy=False)
        if support.size < _FULL_SHARE * self.shape[1]:
            return np.asarray(self._columns[:, support] @ values, dtype=np.float64)
        return np.asarray(self._rows @ _spread(support, values, self.shape[1]), dtype=np.float64)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u, reading the supported rows only."""
        values = values.astype(self._rows.dtype, copy=False)
        if support.size < _FULL_SHARE * self.shape[0]:
            return np.asarray(self._rows[support].T @ values, dtype=np.float64)
        return np.asarray(self._columns.T @ _spread(support, values, self.shape[0]), dtype=np.float64)

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return np.asarray(self._rows.sum(axis=1, dtype=np.float64)).ravel()

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return np.asarray(self._columns.sum(axis=0, dtype=np.float64)).ravel()

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - r_i - c_j)^2: stored entries one by one, the zeros between them all at once."""
        ends = self._columns.indptr
        stored, r_sum, r_square = (np.zeros(self.shape[1]) for _ in range(3))
        step = max(1, int(_BLOCK_ENTRIES * self.shape[1] / max(self._columns.nnz, 1)))
        for first in range(0, self.shape[1], step):
            last = min(first + step, self.shape[1])
            part = slice(ends[first], ends[last])
            column = np.repeat(np.arange(last - first), np.diff(ends[first : last + 1]))
            r = row_offsets[self._columns.indices[part]]
            rest = self._columns.data[part] - r - column_offsets[first + column]
            for sums, terms in ((stored, rest**2), (r_sum, r), (r_square, r**2)):
                sums[first:last] = np.bincount(column, terms, minlength=last - first)
        zeros = (self.shape[0] - np.diff(ends)) * column_offsets**2
        zeros += 2 * column_offsets * (row_offsets.sum() - r_sum) + (row_offsets @ row_offsets - r_square)
        return np.maximum(stored + zeros, 0.0)

    def squared_norm(self, row_offsets: Floats, column_offsets: Floats, factors: Floats | None) -> float:
        """Squared norm after offsets and factors."""
        squares = self.column_squares(row_offsets, column_offsets)
        return float(squares.sum() if factors is None else squares @ factors**2)

    def scan(self, look: Look) -> Any:
        """What comes of a look at every row."""
        return look.over(self._rows)

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: Any) -> NDArray[Any]:
        """Y Y' or Y'Y for Y = X diag(factors) - left right': (XF)(XF)' - (XFR)L' - L(XFR)' + L(R'R)L'."""
        scaled = self._rows if (factors == 1).all() else self._rows.multiply(factors).tocsr()
        lines, other, inner, outer = (scaled, scaled.T, left, right) if on_rows else (scaled.T, scaled, right, left)
        total = _dense_product(lines.tocsr(), other)
        crossed = (lines @ outer) @ inner.T
        total += inner @ (outer.T @ outer) @ inner.T - crossed - crossed.T
        return np.asfortranarray(total, dtype=dtype)


def _narrowed(X: Any) -> sp.csr_array:
    """CSR in canonical form with 32-bit indices where they suffice; copies only what has to change."""
    small = X.nnz < np.iinfo(np.int32).max and max(X.shape) < np.iinfo(np.int32).max
    kind = np.int32 if small else X.indptr.dtype
    parts = (X.data, X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False))
    narrow = sp.csr_array(parts, shape=X.shape)
    if not narrow.has_canonical_format:
        narrow = narrow.copy()
        narrow.sum_duplicates()
    return narrow


def _spread(support: Indices, values: NDArray[Any], size: int) -> NDArray[Any]:
    full = np.zeros(size, dtype=values.dtype)
    full[support] = values
    return full


def _dense_product(lines: sp.csr_array, other: Any) -> Floats:
    """A sparse product written out a few lines at a time."""
    total = np.empty((lines.shape[0], other.shape[1]))
    for start in range(0, lines.shape[0], _GRAM_BLOCK):
        total[start : start + _GRAM_BLOCK] = (lines[start : start + _GRAM_BLOCK] @ other).toarray()
    return total
