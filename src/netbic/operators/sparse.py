"""A sparse matrix, stored by rows and by columns; never made dense by centring, scaling or deflation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Indices, Matrix, scatter, to_dense
from netbic.operators.base import DataOperator, RowReduction, as_operator

_FULL_SHARE = 0.3  # above this share of kept rows or columns the full product beats gathering
_BLOCK_ENTRIES = 1 << 20  # stored entries processed at a time
_GRAM_BLOCK = 256  # rows of the Gram matrix computed at a time
_CACHED_ENTRIES = 1 << 18  # of the vectors in a product: a megabyte in single precision, which fits into a cache


_LARGEST_COPY = 50_000_000  # entries of a copy in double precision


class SparseOperator(DataOperator):
    """A CSR matrix as an operator, with a CSC copy to gather columns from, which is made when it is first needed.

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

    def in_double(self) -> SparseOperator:
        """The same matrix in double precision, a copy, unless it is large."""
        is_single = self.dtype == np.float32 and self._rows.nnz <= _LARGEST_COPY
        return SparseOperator(self._rows.astype(np.float64)) if is_single else self

    @cached_property
    def _columns(self) -> sp.csc_array:
        return self._rows.tocsc()

    def _blocks(self) -> Iterator[tuple[slice, sp.csr_array]]:
        """Blocks of rows that share the memory of X: what is computed of one stays in the cache."""
        n, p = self.shape
        step = max(1, int(_BLOCK_ENTRIES * n / max(self._rows.nnz, 1)))
        for first in range(0, n, step):
            ends = self._rows.indptr[first : first + step + 1]
            own = slice(ends[0], ends[-1])
            block = sp.csr_array((len(ends) - 1, p), dtype=self.dtype)
            # Given to the constructor, small parts of large arrays would be copied.
            block.data, block.indices, block.indptr = self._rows.data[own], self._rows.indices[own], ends - ends[0]
            yield slice(first, first + len(ends) - 1), block

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """Some rows and columns as a dense array."""
        if len(rows) <= len(columns):
            return to_dense(self._rows[rows][:, columns])
        some = self._columns[:, columns]
        return to_dense(some if np.array_equal(rows, np.arange(self.shape[0])) else some[rows])

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
        """X'w and w, for w = weights * (X v - offsets), a block of rows at a time."""
        n, p = self.shape
        images, products = np.empty((n, *vectors.shape[1:])), np.zeros(vectors.shape)
        offsets, weights = np.broadcast_to(offsets, images.shape), np.broadcast_to(weights, images.shape)
        vectors = vectors.astype(self.dtype, copy=False)
        few = max(_CACHED_ENTRIES // p, 8)
        for first in range(0, images[:1].size, few):
            part = np.s_[..., first : first + few] if vectors.ndim > 1 else np.s_[...]
            own = np.ascontiguousarray(vectors[part])
            for rows, block in self._blocks():
                image = (block @ own - offsets[rows][part]) * weights[rows][part]
                images[rows][part] = image
                products[part] += block.T @ image.astype(self.dtype, copy=False)
        return products, images

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """X v for several vectors v, in one pass over the rows; one row per vector."""
        right = np.zeros((self.shape[1], len(vectors)), dtype=self.dtype)
        for number, (support, values) in enumerate(vectors):
            right[support, number] = values
        return np.ascontiguousarray((self._rows @ right).T, dtype=np.float64)

    def left_products(self, vectors: Floats) -> Floats:
        """X'u for the columns u of an array, in double precision."""
        products = np.zeros((self.shape[1], vectors.shape[1]))
        for rows, block in self._blocks():
            products += block.T @ np.asarray(vectors[rows], dtype=np.float64)
        return np.ascontiguousarray(products.T)

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return np.asarray(self._rows.sum(axis=1, dtype=np.float64)).ravel()

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return self._column_sums.copy()

    @cached_property
    def _column_sums(self) -> Floats:
        return np.asarray(self._rows.sum(axis=0, dtype=np.float64)).ravel()

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - r_i - c_j)^2; without row offsets from the sums about the means, which are kept."""
        if row_offsets.any():
            return self._squares_about(row_offsets, column_offsets)
        return self._variation + self.shape[0] * (self._column_sums / self.shape[0] - column_offsets) ** 2

    @cached_property
    def _variation(self) -> Floats:
        """Sums of squares of the columns about their means."""
        return self._squares_about(np.zeros(self.shape[0]), self._column_sums / self.shape[0])

    def _squares_about(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum over i of (x_ij - r_i - c_j)^2: stored entries one by one, zeros by their number."""
        n, p = self.shape
        stored, counts, r_sum, r_square = np.zeros((4, p))
        has_rows = row_offsets.any()
        for rows, block in self._blocks():
            rest = block.data.astype(np.float64)
            rest -= column_offsets[block.indices]
            if has_rows:
                r = np.repeat(row_offsets[rows], np.diff(block.indptr))
                rest -= r
                r_sum += _column_totals(block, r)
                r_square += _column_totals(block, r * r)
            counts += np.bincount(block.indices, minlength=p)
            stored += _column_totals(block, rest * rest)
        zeros = (n - counts) * column_offsets**2
        zeros += 2 * column_offsets * (row_offsets.sum() - r_sum) + (row_offsets @ row_offsets - r_square)
        return np.maximum(stored + zeros, 0.0)

    def squared_lengths(self, factors: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns of Y = X diag(factors) - left right'.

        Stored entries y = x - f have y^2 - f^2 = x (x - 2f), the sums of f^2 over whole rows and columns are known.
        """
        of_rows = np.einsum("ij,jk,ik->i", left, right.T @ right, left)
        of_columns = np.einsum("ij,jk,ik->i", right, left.T @ left, right)
        for rows, block in self._blocks():
            values, twice = block.data * factors[block.indices], np.zeros(block.nnz)
            for one, other in zip(2 * left[rows].T, right.T, strict=True):
                twice += np.repeat(one, np.diff(block.indptr)) * other[block.indices]
            beyond = values * (values - twice)
            of_rows[rows] += _row_totals(block, beyond)
            of_columns += _column_totals(block, beyond)
        return np.maximum(of_rows, 0.0), np.maximum(of_columns, 0.0)

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


def _row_totals(block: sp.csr_array, values: Floats) -> Floats:
    """Sums of values, one for each stored entry, by rows."""
    return np.asarray(sp.csr_array((values, block.indices, block.indptr), shape=block.shape) @ np.ones(block.shape[1]))


def _column_totals(block: sp.csr_array, values: Floats) -> Floats:
    """The same by columns."""
    parts = sp.csr_array((values, block.indices, block.indptr), shape=block.shape)
    return np.asarray(parts.T @ np.ones(block.shape[0]))


for kind in (sp.sparray, sp.spmatrix):
    as_operator.register(kind, lambda X, low_memory=False: SparseOperator(X))
