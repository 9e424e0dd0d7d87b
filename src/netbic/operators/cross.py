"""The cross-product X'Y of two tables of the same samples, which need not be formed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from netbic.arrays import Array, Floats, Indices
from netbic.operators.base import DataOperator, Operator, slabs
from netbic.operators.corrected import Corrected


@dataclass(frozen=True, eq=False)
class Whitening:
    """A symmetric map W = U diag(g) U' of the samples: W X is X with (nearly) uncorrelated columns."""

    vectors: Floats  # U, the left singular vectors of X
    gains: Floats  # g, by which the singular values are multiplied

    def __call__(self, rows: Floats) -> Floats:
        """W times a vector, or the columns of an array."""
        return np.asarray(self.vectors @ ((self.vectors.T @ rows).T * self.gains).T)


@dataclass(frozen=True, eq=False)
class Table:
    """One of two tables: P W X for a centred and scaled X, a whitening W, and a projection P = I - T T' of its rows."""

    operator: Corrected  # X
    whitening: Whitening | None = None  # None: W is the identity
    removed: Floats | None = None  # T', orthonormal directions of the samples that are projected out, in rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and features."""
        return self.operator.shape

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """The product with a vector that is zero outside `support`."""
        return self.mapped(self.operator.matvec(support, values))

    def rmatvec(self, rows: Floats) -> Floats:
        """The product of the transpose with a dense vector."""
        return self.operator.rmatvec(np.arange(self.shape[0]), self.mapped_back(rows))

    def left_products(self, rows: Floats) -> Floats:
        """The same with the columns of an array; one row per vector."""
        return self.operator.left_products(self.mapped_back(rows))

    def columns(self, support: Indices) -> Floats:
        """Some (increasing) columns as a dense array."""
        return self.mapped(self.operator.submatrix(np.arange(self.shape[0]), support))

    def part(self, columns: Indices) -> SmallTable:
        """Some (increasing) columns, copied into memory of their own."""
        return SmallTable(self, *self.operator.lines(columns))

    def without(self, direction: Floats) -> Self:
        """The table after the projection on the complement of a unit vector, orthogonal to those removed before."""
        return replace(self, removed=np.vstack([direction] if self.removed is None else [self.removed, direction]))

    def gram(self, dtype: type = np.float64) -> Floats:
        """The matrix PWXX'WP of inner products of the samples, in this precision."""
        upper = np.triu(self.operator.gram(True, 1.0, dtype))
        full = upper + upper.T
        full[np.diag_indices_from(full)] /= 2
        if self.whitening is not None:
            full = self.whitening(self.whitening(full).T)
        return np.asarray(self._projected(self._projected(full).T), dtype=dtype)

    def mapped(self, rows: Floats) -> Floats:
        """PW times a vector, or the columns of an array."""
        return self._projected(rows if self.whitening is None else self.whitening(rows))

    def mapped_back(self, rows: Floats) -> Floats:
        """WP times a vector, or the columns of an array."""
        rows = self._projected(rows)
        return rows if self.whitening is None else self.whitening(rows)

    def _projected(self, rows: Floats) -> Floats:
        return rows if self.removed is None else rows - self.removed.T @ (self.removed @ rows)


class CrossOperator(DataOperator):
    """The matrix X'Y for two tables of the same samples, by products with both."""

    can_be_cut = True

    def __init__(self, x: Table, y: Table) -> None:
        super().__init__((x.shape[1], y.shape[1]))
        self.x, self.y = x, y

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X'Y v."""
        return self.x.rmatvec(self.y.matvec(support, values))

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Y'X u."""
        return self.y.rmatvec(self.x.matvec(support, values))

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Y'X w and w, for w = weights * (X'Y v - offsets)."""
        every = np.arange(self.shape[1])
        lines = vectors.reshape(self.shape[1], -1)
        images = self.x.left_products(np.column_stack([self.y.matvec(every, line) for line in lines.T])).T
        images = weights * (images.reshape(-1, *vectors.shape[1:]) - offsets)
        every, lines = np.arange(self.shape[0]), images.reshape(self.shape[0], -1)
        products = self.y.left_products(np.column_stack([self.x.matvec(every, line) for line in lines.T])).T
        return products.reshape(vectors.shape), images

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """Some rows and columns as a dense array."""
        return self.x.columns(rows).T @ self.y.columns(columns)

    def formed(self) -> Array:
        """The whole matrix, some columns at a time."""
        n, (p, q) = self.x.shape[0], self.shape
        matrix = np.empty((p, q))
        for part in slabs(q, max(n, p)):
            matrix[:, part] = self.x.left_products(self.y.columns(np.arange(q)[part])).T
        return matrix


class Cross(Corrected):
    """The cross-product X'Y of two tables by products with both, minus low-rank corrections."""

    def __init__(self, x: Table, y: Table, squared_norm: float) -> None:
        super().__init__(CrossOperator(x, y), squared_norm)
        self.x, self.y = x, y

    def of(self, x: Table, y: Table, squared_norm: float) -> Self:
        """The same corrections on other tables, and the squared norm that the matrix has then."""
        made = self.on(CrossOperator(x, y))
        made.x, made.y, made.squared_norm = x, y, squared_norm
        return made

    def less(self, left: Floats, right: Floats, squared_norm: float) -> Self:
        """The matrix minus `left right'`, and the squared norm that it has then."""
        made = self.minus(left, right, np.zeros(self.shape[0]))
        made.squared_norm = squared_norm
        return made

    def entries_read(self, n_rows: int, n_columns: int) -> int:
        """The number of entries that two products read: both tables."""
        return self.x.shape[0] * sum(self.shape)

    def entries_of_part(self, n_rows: int, n_columns: int) -> tuple[int, int]:
        """The number of entries that are read to make a `part` of this size, and of those that it holds."""
        return (self.x.shape[0] * (n_rows + n_columns),) * 2

    def part(self, rows: Indices, columns: Indices) -> Operator:
        """The operator of some (increasing) rows and columns, copied into memory of their own."""
        return SmallCross(self.x.part(rows), self.y.part(columns), *self._layers_among(rows, columns))


@dataclass(frozen=True, eq=False)
class SmallTable:
    """Some columns of a table, as they are stored: products with them are corrected, not the columns."""

    table: Table  # its whitening and projection are applied to products
    lines: Array  # (k, n): columns of the data, a row each
    factors: Floats | None
    left: Floats  # (r, n) and (r, k): the layers that are subtracted, centring among them
    right: Floats

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """The product with a vector that is zero outside `support`, positions among the columns."""
        scaled = values if self.factors is None else values * self.factors[support]
        product = np.asarray(scaled.astype(self.lines.dtype, copy=False) @ self.lines.take(support, axis=0), np.float64)
        return self.table.mapped(product - (self.right.take(support, axis=1) @ values) @ self.left)

    def rmatvec(self, rows: Floats) -> Floats:
        """The product of the transpose with a dense vector."""
        rows = self.table.mapped_back(rows)
        product = np.asarray(self.lines @ rows.astype(self.lines.dtype, copy=False), np.float64)
        if self.factors is not None:
            product *= self.factors
        return product - (self.left @ rows) @ self.right


class SmallCross:
    """The operator A'B - L'R for some columns A and B of two tables, and layers L and R of shape (r, p) and (r, q)."""

    def __init__(self, x: SmallTable, y: SmallTable, left: Floats, right: Floats) -> None:
        self.shape = (len(x.lines), len(y.lines))
        self._x, self._y, self._left, self._right = x, y, left, right

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """The product with a vector that is zero outside `support`."""
        product = self._x.rmatvec(self._y.matvec(support, values))
        return product - (self._right.take(support, axis=1) @ values) @ self._left

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """The product of the transpose with a vector that is zero outside `support`."""
        product = self._y.rmatvec(self._x.matvec(support, values))
        return product - (self._left.take(support, axis=1) @ values) @ self._right
