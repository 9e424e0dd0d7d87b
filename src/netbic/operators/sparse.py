"""A sparse matrix, stored by rows and by columns; never made dense by centring, scaling or deflation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Indices, Matrix, scatter, to_dense
from netbic.operators.base import DataOperator, RowReduction, as_operator

_FULL_SHARE = 0.3  # above this share of kept rows or columns the full product beats gathering
_BLOCK_ENTRIES = 1 << 20  # stored entries processed at a time
_GRAM_BLOCK = 256  # rows of the Gram matrix computed at a time


class SparseOperator(DataOperator):
    """A CSR matrix as an operator, with a CSC copy to gather columns from.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, p), float32 or float64
        Never written to. 64-bit indices are converted to 32 bits where these are enough.
    """

    can_be_cut = True

    def __init__(self, X: Matrix) -> None:
        super().__init__(X.shape, X.dtype)
        small = X.nnz < np.iinfo(np.int32).max and max(X.shape) < np.iinfo(np.int32).max
        kind = np.int32 if small else X.indptr.dtype
        parts = (X.data, X.indices.astype(kind, copy=False), X.indptr.astype(kind, copy=False))
        self._rows = sp.csr_array(parts, shape=X.shape)  # copies only what changes
        if not self._rows.has_canonical_format:
            self._rows = self._rows.copy()
            self._rows.sum_duplicates()
        self._columns = self._rows.tocsc()

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """Some rows and columns as a dense array."""
        if len(rows) <= len(columns):
            return to_dense(self._rows[rows][:, columns])
        return to_dense(self._columns[:, columns][rows])

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v, reading the supported columns only."""
        values = values.astype(self._rows.dtype, copy=False)
        if support.size < _FULL_SHARE * self.shape[1]:
            return np.asarray(self._columns[:, support] @ values, dtype=np.float64)
        return np.asarray(self._rows @ scatter(support, values, self.shape[1]), dtype=np.float64)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u, reading the supported rows only."""
        values = values.astype(self._rows.dtype, copy=False)
        if support.size < _FULL_SHARE * self.shape[0]:
            return np.asarray(self._rows[support].T @ values, dtype=np.float64)
        return np.asarray(self._columns.T @ scatter(support, values, self.shape[0]), dtype=np.float64)

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """X'w and w, for w = weights * (X v - offsets)."""
        images = np.asarray(self._rows @ vectors.astype(self.dtype, copy=False), dtype=np.float64)
        images -= offsets
        images *= weights
        products = self._rows.T @ images.astype(self.dtype, copy=False)
        return np.asarray(products, dtype=np.float64), images

    def left_products(self, vectors: Floats) -> Floats:
        """X'u for the columns u of an array, in double precision."""
        return np.ascontiguousarray((self._columns.T @ vectors).T, dtype=np.float64)

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return np.asarray(self._rows.sum(axis=1, dtype=np.float64)).ravel()

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return np.asarray(self._columns.sum(axis=0, dtype=np.float64)).ravel()

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - r_i - c_j)^2: stored entries one by one, zeros by their number."""
        if not row_offsets.any():
            return self._squares_about(column_offsets)
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

    def _squares_about(self, offsets: Floats) -> Floats:
        """Sum over i of (x_ij - c_j)^2."""
        counts = np.diff(self._columns.indptr)
        squares = (self.shape[0] - counts) * offsets**2
        step = max(1, int(_BLOCK_ENTRIES * self.shape[1] / max(self._columns.nnz, 1)))
        for first in range(0, self.shape[1], step):
            own = first + np.flatnonzero(counts[first : first + step])  # columns without entries have no sum
            if own.size:
                starts = self._columns.indptr[own]
                stored = self._columns.data[starts[0] : starts[-1] + counts[own[-1]]]
                rest = stored - np.repeat(offsets[own], counts[own])
                squares[own] += np.add.reduceat(rest * rest, starts - starts[0])
        return squares

    def reduce_rows(self, reduction: RowReduction) -> Any:
        """The result of a reduction over all rows."""
        return reduction.over(self._rows)

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y Y' or Y'Y for Y = X diag(factors) - left right': (XF)(XF)' - (XFR)L' - L(XFR)' + L(R'R)L'."""
        scaled = self._rows if (factors == 1).all() else self._rows.multiply(factors).tocsr()
        lines, other, inner, outer = (scaled, scaled.T, left, right) if on_rows else (scaled.T, scaled, right, left)
        own, total = lines.tocsr(), np.empty((lines.shape[0], other.shape[1]))
        for start in range(0, len(total), _GRAM_BLOCK):
            total[start : start + _GRAM_BLOCK] = (own[start : start + _GRAM_BLOCK] @ other).toarray()
        crossed = (lines @ outer) @ inner.T
        total += inner @ (outer.T @ outer) @ inner.T - crossed - crossed.T
        return np.asfortranarray(total, dtype=dtype)


for kind in (sp.sparray, sp.spmatrix):
    as_operator.register(kind, lambda X, low_memory=False: SparseOperator(X))
