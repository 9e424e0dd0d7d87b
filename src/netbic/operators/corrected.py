"""Centring, scaling and deflation without touching the data: X S^-1 - L R' with S diagonal and L, R thin."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from netbic.operators.base import DataOperator, Floats, Indices
from netbic.operators.row_reduction import Look

_SPARSE_SHARE = 0.2  # layers with fewer non-zeros than this share are kept by their non-zeros


class Corrected:
    """The operator X S^-1 - 1 c' - L R'.

    Parameters
    ----------
    base : DataOperator
        The data X.
    squared_norm : float
        Squared Frobenius norm of the corrected matrix; `minus` keeps it up to date.
    column_factors : array of shape (p,), optional
        The diagonal of S^-1.
    column_offsets : array of shape (p,), optional
        The c to subtract from every row, after the factors.
    left, right : arrays of shape (n, r) and (p, r), optional
        The low-rank correction L R'.
    """

    imputes: bool = False  # whether there are holes that `with_prediction` fills
    tracks_gram: ClassVar[bool] = True  # whether `minus` changes the matrix by that layer and nothing else

    def __init__(
        self,
        base: DataOperator,
        squared_norm: float,
        column_factors: Floats | None = None,
        column_offsets: Floats | None = None,
        left: Floats | None = None,
        right: Floats | None = None,
    ) -> None:
        self.shape = base.shape
        self.squared_norm = max(squared_norm, 0.0)
        self._base: Any = base
        self._factors, self._offsets = column_factors, column_offsets
        # Kept as (r, n) and (r, p): a product then runs along memory.
        self._left = np.empty((0, self.shape[0])) if left is None else np.ascontiguousarray(left.T)
        self._right = np.empty((0, self.shape[1])) if right is None else np.ascontiguousarray(right.T)
        self._sparse_left, self._sparse_right = SparseLayers(self.shape[0]), SparseLayers(self.shape[1])

    @property
    def squared_norm_is_safe(self) -> bool:
        """Whether the squared norm is well within the range of numbers (zero is not)."""
        return bool(1e-250 < self.squared_norm < np.inf)

    @property
    def n_entries(self) -> int:
        """Entries that the squared norm is spread over."""
        return self.shape[0] * self.shape[1]

    def on(self, base: DataOperator) -> Self:
        """The same corrections on another copy of the data."""
        twin = copy.copy(self)
        twin._base = base
        return twin

    def for_one_start(self) -> Self:
        """The same operator with a memory for one sequence of slowly changing supports (not for two threads)."""
        twin = copy.copy(self)
        twin._base = self._base.for_one_start()
        return twin

    def forget(self) -> None:
        """Make what follows independent, to the last digit, of what was multiplied before."""
        if hasattr(self._base, "forget"):
            self._base.forget()

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the right."""
        scaled = values if self._factors is None else values * self._factors[support]
        product = self._less_on_rows(self._base.matvec(support, scaled), support, values)
        self._foretell("rows", product)
        return product

    def _less_on_rows(self, product: Floats, support: Indices, values: Floats) -> Floats:
        """Take (1 c' + L R') v off a product with X, in place."""
        if self._offsets is not None:
            product -= self._offsets.take(support) @ values
        if len(self._right):
            product -= (self._right.take(support, axis=1) @ values) @ self._left
        if self._sparse_right.count:
            product -= self._sparse_left.sum(self._sparse_right.inner(support, values))
        return product

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the left."""
        product = self._less_on_columns(self._base.rmatvec(support, values), support, values)
        self._foretell("columns", product)
        return product

    def _foretell(self, axis: str, scores: Floats) -> None:
        """Tell data that are slow to read which rows or columns may soon be wanted: those with large scores."""
        if hasattr(self._base, "scores"):
            self._base.scores[axis] = scores

    def _less_on_columns(self, product: Floats, support: Indices, values: Floats) -> Floats:
        """Bring a product with X' to scale and take (c 1' + R L') u off it, in place."""
        if self._factors is not None:
            product *= self._factors
        if self._offsets is not None:
            product -= values.sum() * self._offsets
        if len(self._left):
            product -= (self._left.take(support, axis=1) @ values) @ self._right
        if self._sparse_left.count:
            product -= self._sparse_right.sum(self._sparse_left.inner(support, values))
        return product

    def normal(self, vector: Floats) -> Floats:
        """The product of the corrected matrix and its transpose with a vector: one pass, where the data can do that."""
        n, p = self.shape
        every_row, every_column = np.arange(n), np.arange(p)
        if not hasattr(self._base, "normal"):
            return self.rmatvec(every_row, self.matvec(every_column, vector))
        scaled = vector if self._factors is None else vector * self._factors
        offsets = -self._less_on_rows(np.zeros(n), every_column, vector)
        product, image = self._base.normal(scaled, offsets)
        return self._less_on_columns(product, every_row, image)

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """Products with many supported vectors on the right, a row each: one pass, where the data can do that."""
        if not hasattr(self._base, "products"):
            return np.array([self.matvec(*vector) for vector in vectors]).reshape(-1, self.shape[0])
        right = np.zeros((self.shape[1], len(vectors)))
        for number, (support, values) in enumerate(vectors):
            right[support, number] = values if self._factors is None else values * self._factors[support]
        products: Floats = self._base.products(right)
        for product, vector in zip(products, vectors, strict=True):
            self._less_on_rows(product, *vector)
        return products

    def expect(self, columns: Indices) -> None:
        """Say that products with parts of these columns are to come."""
        if hasattr(self._base, "expect"):
            self._base.expect(columns)

    def squared_lengths(self) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns."""
        along, across = self._scan(_square_sums, _joined)
        return along, across

    def largest_entry(self) -> tuple[int, int]:
        """Row and column of the largest entry, the first among equals."""
        _, row, column = self._scan(_largest, _first_largest)
        return row, column

    def _scan(self, function: Callable[[Floats, int], Any], combine: Callable[[Any, Any], Any]) -> Any:
        left, right = self._dense_layers()
        left = np.vstack([left, self._sparse_left.full()])
        right = np.vstack([right, self._sparse_right.full()])
        return self._base.scan(Look(function, combine, self._factors, left.T, right.T))

    def with_prediction(self, left: Floats, right: Floats) -> Self:
        """The same matrix with `left right'` added in its holes: here there are none."""
        return self

    def minus(self, left: Floats, right: Floats, product: Floats) -> Self:
        """Subtract one more rank-one matrix `left right'`; `product` is this operator times `right`."""
        made = copy.copy(self)
        rows, columns = np.flatnonzero(left), np.flatnonzero(right)
        if not (rows.size and columns.size):
            return made
        # |Y - ab'|^2 = |Y|^2 - 2 a'Yb + |a|^2 |b|^2
        change = float(left @ left) * float(right @ right) - 2 * float(left @ product)
        made.squared_norm = max(self.squared_norm + change, 0.0)
        if rows.size + columns.size < _SPARSE_SHARE * sum(self.shape):
            made._sparse_left = self._sparse_left.plus(rows, left[rows])
            made._sparse_right = self._sparse_right.plus(columns, right[columns])
        else:
            made._left, made._right = np.vstack([self._left, left]), np.vstack([self._right, right])
        return made

    def gram(self, on_rows: bool, factor: float, dtype: Any) -> NDArray[Any]:
        """`factor`^2 times XX' (`on_rows`) or X'X before any layer was taken out; upper triangle, Fortran order."""
        column_factors = np.full(self.shape[1], factor) if self._factors is None else factor * self._factors
        left, right = self._dense_layers()
        gram: NDArray[Any] = self._base.gram(on_rows, column_factors, left.T, factor * right.T, dtype)
        return gram

    def _dense_layers(self) -> tuple[Floats, Floats]:
        """Both factors of 1 c' + L R', a row per layer."""
        if self._offsets is None:
            return self._left, self._right
        return np.vstack([np.ones(self.shape[0]), self._left]), np.vstack([self._offsets, self._right])

    def correction_norm(self) -> float:
        """Frobenius norm of 1 c' and the dense part of L R'."""
        left, right = self._dense_layers()
        return float(np.sqrt(max(np.sum((left @ left.T) * (right @ right.T)), 0.0)))


@dataclass(frozen=True)
class SparseLayers:
    """One factor of many rank-one layers, by its non-zeros, layer after layer."""

    size: int
    indices: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    values: Floats = field(default_factory=lambda: np.empty(0))
    bounds: Indices = field(default_factory=lambda: np.zeros(1, dtype=np.intp))

    @cached_property
    def _lengths(self) -> Indices:
        return np.diff(self.bounds)

    @property
    def count(self) -> int:
        """Number of layers."""
        return self.bounds.size - 1

    def plus(self, support: Indices, values: Floats) -> SparseLayers:
        """One layer more."""
        return SparseLayers(
            self.size,
            np.concatenate([self.indices, support]),
            np.concatenate([self.values, values]),
            np.concatenate([self.bounds, self.bounds[-1:] + support.size]),
        )

    def full(self) -> Floats:
        """The layers written out, a row each."""
        layers = np.zeros((self.count, self.size))
        layers[np.repeat(np.arange(self.count), self._lengths), self.indices] = self.values
        return layers

    def inner(self, support: Indices, values: Floats) -> Floats:
        """Inner product of every layer with a supported vector."""
        full = np.zeros(self.size)
        full[support] = values
        return np.add.reduceat(self.values * full[self.indices], self.bounds[:-1])

    def sum(self, weights: Floats) -> Floats:
        """Weighted sum of the layers."""
        weighted = self.values * np.repeat(weights, self._lengths)
        return np.bincount(self.indices, weighted, minlength=self.size).astype(np.float64, copy=False)


def _square_sums(rows: Floats, first: int) -> tuple[Floats, Floats]:
    return np.einsum("ij,ij->i", rows, rows), np.einsum("ij,ij->j", rows, rows)


def _joined(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return np.concatenate([one[0], other[0]]), one[1] + other[1]


def _largest(rows: Floats, first: int) -> tuple[float, int, int]:
    row, column = np.unravel_index(int(rows.argmax()), rows.shape)
    return float(rows[row, column]), first + int(row), int(column)


def _first_largest(one: tuple[float, int, int], other: tuple[float, int, int]) -> tuple[float, int, int]:
    return other if other[0] > one[0] else one
