"""Centring, scaling, covariates and deflation without touching the data: X S^-1 - L R' with S diagonal and L, R thin.

:class:`Scaler` learns offsets, factors and effects of covariates, and makes the :class:`Corrected` matrix of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from typing import ClassVar, Final, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.linalg import solve_triangular

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, scatter
from netbic.operators.base import DataOperator, Operator, RowReduction, column_squares

CENTERS: Final = (None, "columns", "rows", "both", "grand")
_MAD_TO_SD = 1.4826
_CANCELS = 1e-6  # share of its squares that covariates leave of a column, below which differences lose too many digits
_SPARSE_SHARE = 0.2  # layers with a smaller share of non-zeros are stored sparse

Result = TypeVar("Result")


class Corrected:
    """The operator X S^-1 - 1 c' - L R' for data X: S^-1 has the `column_factors` and c is `column_offsets`.

    L and R are `left` and `right`, of shape (n, r) and (p, r). `squared_norm` is that of the corrected matrix; `minus`
    keeps it up to date.
    """

    imputes: bool = False  # whether `with_prediction` fills missing entries
    row_weights: Floats | None = None  # variances of noise in the rows, of mean 1; None if they are equal
    tracks_gram: ClassVar[bool] = True  # whether `minus` changes the matrix by that layer and nothing else

    def __init__(
        self,
        data: DataOperator,
        squared_norm: float,
        column_factors: Floats | None = None,
        column_offsets: Floats | None = None,
        left: Floats | None = None,
        right: Floats | None = None,
    ) -> None:
        self.shape = data.shape
        self.squared_norm = max(squared_norm, 0.0)
        self.data = data
        self._factors, self._offsets = column_factors, column_offsets
        # Kept as (r, n) and (r, p): a product then runs along memory.
        self._left = np.empty((0, self.shape[0])) if left is None else np.ascontiguousarray(left.T)
        self._right = np.empty((0, self.shape[1])) if right is None else np.ascontiguousarray(right.T)
        self._sparse_left, self._sparse_right = SparseLayers(self.shape[0]), SparseLayers(self.shape[1])

    @property
    def squared_norm_is_safe(self) -> bool:
        """Whether the squared norm is far from overflow and underflow (False for zero)."""
        return bool(1e-250 < self.squared_norm < np.inf)

    @property
    def n_entries(self) -> int:
        """Number of entries that contribute to the squared norm."""
        return self.shape[0] * self.shape[1]

    def on(self, data: DataOperator) -> Self:
        """The same corrections on another copy of the data."""
        made = copy.copy(self)
        made.data = data
        return made

    def for_one_start(self) -> Self:
        """The same operator with a cache for one sequence of slowly changing supports, used by one thread only."""
        return self.on(self.data.for_one_start())

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the right."""
        scaled = values if self._factors is None else values * self._factors[support]
        product = self._less_on_rows(self.data.matvec(support, scaled), support, values)
        self.data.prefetch_hint("rows", product)
        return product

    def _less_on_rows(self, product: Floats, support: Indices, values: Floats) -> Floats:
        """Subtract (1 c' + L R') v from products with X for a vector v, or several (columns), in place."""
        if self._offsets is not None:
            product -= self._offsets.take(support) @ values
        if len(self._right):
            product -= self._left.T @ (self._right.take(support, axis=1) @ values)
        if self._sparse_right.count:
            product -= self._sparse_left.sum(self._sparse_right.inner(support, values))
        return product

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the left."""
        product = self._less_on_columns(self.data.rmatvec(support, values), support, values)
        self.data.prefetch_hint("columns", product)
        return product

    def _less_on_columns(self, product: Floats, support: Indices, values: Floats) -> Floats:
        """Scale products with X' for a vector u, or several (columns), and subtract (c 1' + R L') u, in place."""
        if self._factors is not None:
            product *= self._factors if product.ndim == 1 else self._factors[:, None]
        if self._offsets is not None:
            product -= np.multiply.outer(self._offsets, values.sum(axis=0))
        if len(self._left):
            product -= self._right.T @ (self._left.take(support, axis=1) @ values)
        if self._sparse_left.count:
            product -= self._sparse_right.sum(self._sparse_left.inner(support, values))
        return product

    def normal(self, vectors: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """Y'w and w, for this matrix Y, w = weights * Yv and a dense vector v, or several: the columns of an array."""
        every_row, every_column = (np.arange(size) for size in self.shape)
        scaled = vectors if self._factors is None else (vectors.T * self._factors).T
        n_different = self.shape[0] if len(self._left) + self._sparse_left.count else 1  # column offsets: all the same
        offsets = self._less_on_rows(np.zeros((n_different, *vectors.shape[1:])), every_column, vectors)
        products, images = self.data.normal(scaled, -offsets, weights)
        return self._less_on_columns(products, every_row, images), images

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """Products with several supported vectors on the right, one row per vector."""
        scaled = [(at, values if self._factors is None else values * self._factors[at]) for at, values in vectors]
        products = self.data.products(scaled)
        for product, vector in zip(products, vectors, strict=True):
            self._less_on_rows(product, *vector)
        return products

    def left_products(self, vectors: Floats) -> Floats:
        """Products with dense vectors on the left, the columns of an array; one row per vector."""
        products = self.data.left_products(vectors)
        self._less_on_columns(products.T, np.arange(self.shape[0]), vectors)
        return products

    def submatrix(self, rows: Indices, columns: Indices) -> Floats:
        """The entries in some (increasing) rows and columns, as a dense array."""
        block, left, right = self._block(rows, columns)
        return np.asarray(block.T - right.T @ left).T  # columns are contiguous, as those of dense data

    def lines(self, columns: Indices) -> tuple[Array, Floats | None, Floats, Floats]:
        """Some (increasing) columns of X, a row each, with the factors and layers that correct products with them."""
        every_row = np.arange(self.shape[0])
        factors = None if self._factors is None else self._factors[columns]
        lines = np.ascontiguousarray(self.data.submatrix(every_row, columns).T)
        return lines, factors, *self._layers_among(every_row, columns)

    def part(self, rows: Indices, columns: Indices) -> Operator:
        """The operator of some (increasing) rows and columns, copied into memory of their own."""
        return SmallOperator(*self._block(rows, columns))

    def _block(self, rows: Indices, columns: Indices) -> tuple[Array, Floats, Floats]:
        """Some rows and columns of X S^-1, and of the layers that are subtracted from it."""
        block = self.data.submatrix(rows, columns)
        if self._factors is not None:
            block = block * self._factors[columns].astype(block.dtype)
        return block, *self._layers_among(rows, columns)

    def _layers_among(self, rows: Indices, columns: Indices) -> tuple[Floats, Floats]:
        """Some rows and columns of all layers, a row per layer."""
        left, right = self._dense_layers()
        sparse = self._sparse_left.among(rows), self._sparse_right.among(columns)
        return np.vstack([left[:, rows], sparse[0]]), np.vstack([right[:, columns], sparse[1]])

    def entries_read(self, n_rows: int, n_columns: int) -> int:
        """The number of entries that two products read, with vectors that have so many non-zeros."""
        return self.shape[0] * n_columns + self.shape[1] * n_rows

    def entries_of_part(self, n_rows: int, n_columns: int) -> tuple[int, int]:
        """The number of entries that are read to make a `part` of this size, and of those that it holds."""
        return min(self.shape[0] * n_columns, self.shape[1] * n_rows), n_rows * n_columns

    def squared_lengths(self) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns."""
        factors = np.ones(self.shape[1]) if self._factors is None else self._factors
        left, right = self._layers_among(*(np.arange(size) for size in self.shape))
        return self.data.squared_lengths(factors, left.T, right.T)

    def column_squares(self) -> Floats:
        """Sums of squares of the columns, by those of X and its products with L: nothing is made dense."""
        left, right = self._dense_layers()
        factors = np.ones(self.shape[1]) if self._factors is None else self._factors
        squares = factors**2 * self.data.column_squares(np.zeros(self.shape[0]), np.zeros(self.shape[1]))
        crossed = np.einsum("ij,ij->j", factors * self.data.left_products(left.T), right)
        return np.asarray(squares - 2 * crossed + np.einsum("ij,ik,kj->j", right, left @ left.T, right))

    def largest_entry(self) -> tuple[int, int]:
        """Row and column of the largest entry; the first one in case of ties."""

        def largest(rows: Floats, first: int) -> tuple[float, int, int]:
            row, column = np.unravel_index(int(rows.argmax()), rows.shape)
            return float(rows[row, column]), first + int(row), int(column)

        _, row, column = self._reduce_rows(largest, lambda one, other: other if other[0] > one[0] else one)
        return row, column

    def _reduce_rows(
        self, function: Callable[[Floats, int], Result], combine: Callable[[Result, Result], Result]
    ) -> Result:
        left, right = self._layers_among(*(np.arange(size) for size in self.shape))
        result: Result = self.data.reduce_rows(RowReduction(function, combine, self._factors, left.T, right.T))
        return result

    def with_prediction(self, left: Floats, right: Floats) -> Self:
        """The same matrix with `left right'` added to its missing entries: here there are none."""
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

    def gram(self, on_rows: bool, factor: float, dtype: DTypeLike) -> Array:
        """`factor`^2 times XX' (`on_rows`) or X'X before deflation; upper triangle, Fortran order."""
        column_factors = np.full(self.shape[1], factor) if self._factors is None else factor * self._factors
        left, right = self._dense_layers()
        return self.data.gram(on_rows, column_factors, left.T, factor * right.T, dtype)

    def parts(self) -> tuple[DataOperator, Floats | None, Floats, Floats]:
        """X, the diagonal of S^-1, and L and R of X S^-1 - L R' before deflation (the offsets are a column of R)."""
        left, right = self._dense_layers()
        return self.data, self._factors, left.T, right.T

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
    """One factor of many rank-one layers, as the concatenated non-zeros of all layers."""

    size: int
    indices: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    values: Floats = field(default_factory=lambda: np.empty(0))
    bounds: Indices = field(default_factory=lambda: np.zeros(1, dtype=np.intp))

    @property
    def count(self) -> int:
        """Number of layers."""
        return self.bounds.size - 1

    def plus(self, support: Indices, values: Floats) -> SparseLayers:
        """Append one layer."""
        return SparseLayers(
            self.size,
            np.concatenate([self.indices, support]),
            np.concatenate([self.values, values]),
            np.concatenate([self.bounds, self.bounds[-1:] + support.size]),
        )

    def among(self, entries: Indices) -> Floats:
        """Some (increasing) entries of all layers, one row per layer."""
        positions = np.full(self.size, -1, dtype=np.intp)
        positions[entries] = np.arange(entries.size)
        at = positions[self.indices]
        inside = at >= 0
        layers = np.zeros((self.count, entries.size))
        numbers = np.repeat(np.arange(self.count), np.diff(self.bounds))  # of the layers that the values are in
        layers[numbers[inside], at[inside]] = self.values[inside]
        return layers

    @cached_property
    def _matrix(self) -> sp.csr_array:
        """The layers in rows."""
        return sp.csr_array((self.values, self.indices, self.bounds), shape=(self.count, self.size))

    @cached_property
    def _transpose(self) -> sp.csc_array:
        """The layers in columns."""
        return self._matrix.T

    def inner(self, support: Indices, values: Floats) -> Floats:
        """Inner product of every layer with a supported vector."""
        return np.asarray(self._matrix @ scatter(support, values, self.size))

    def sum(self, weights: Floats) -> Floats:
        """Weighted sum of the layers."""
        return np.asarray(self._transpose @ weights)


class SmallOperator:
    """The operator B - L'R for a small dense B of shape (n, p), and layers L and R of shape (r, n) and (r, p).

    The lines of a support are copied together once, as long as the support does not change.
    """

    def __init__(self, block: Array, left: Floats, right: Floats) -> None:
        self.shape = (block.shape[0], block.shape[1])
        self._lines = np.ascontiguousarray(block.T)  # a row for each column of B
        self._left, self._right = left, np.ascontiguousarray(right.T)
        every_row, every_column = (np.arange(size) for size in self.shape)
        self._rows = every_row, self._lines, self._left
        self._columns = every_column, self._lines, self._right

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """The product with a vector that is zero outside `support` (increasing column indices)."""
        if not np.array_equal(support, self._columns[0]):
            self._columns = support, self._lines.take(support, axis=0), self._right.take(support, axis=0)
        _, lines, layers = self._columns
        product = np.asarray(values.astype(lines.dtype, copy=False) @ lines, dtype=np.float64)
        return product - (values @ layers) @ self._left

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """The product of the transpose with a vector that is zero outside `support` (increasing row indices)."""
        if not np.array_equal(support, self._rows[0]):
            self._rows = support, self._lines.take(support, axis=1), self._left.take(support, axis=1)
        _, lines, layers = self._rows
        product = np.asarray(lines @ values.astype(lines.dtype, copy=False), dtype=np.float64)
        return product - self._right @ (layers @ values)


# --- Centring, scaling and covariates ---


@dataclass(frozen=True)
class Scaler:
    """Subtract column offsets (and the mean of each row, if `rows`), then multiply columns by factors.

    `offsets` are the column means ("columns", "both"), the grand mean ("grand") or zero. With "both", row means are
    computed after subtracting column means, so that without missing entries rows and columns have mean zero before
    scaling.

    If there are covariates, their `effects`, of shape (c, p), are subtracted before row means are computed: the rows of
    the `design`, of shape (n, c), times the effects. The columns of the design of the training data have mean zero and
    are linearly independent, and the effects are those of least squares.
    """

    offsets: Floats
    factors: Floats | None
    rows: bool
    effects: Floats | None = None

    @classmethod
    def learn(
        cls, data: DataOperator, center: str | None, scale: float, design: Floats | None = None, ddof: int = 0
    ) -> Self:
        """Compute means, effects of covariates, and standard deviations of what they leave (divided by n - ddof)."""
        n, p = data.shape
        wanted = center in ("columns", "both", "grand") or scale
        means = data.column_sums() / n if wanted else np.zeros(p)
        effects = None
        if design is not None:  # least squares; the columns of the design have mean zero and are linearly independent
            basis, triangle = np.linalg.qr(design)
            effects = np.ascontiguousarray(solve_triangular(triangle, data.left_products(basis)))
        deviations = None
        if scale:
            squares = data.column_squares(np.zeros(n), means)
            if design is not None and effects is not None:
                left = _remaining(data, squares, (np.zeros(n), means), design, effects, fitted=True)
                explained = left <= (10 * data.epsilon) ** 2 * squares  # by the covariates, up to rounding error
                squares = np.where(explained, 0.0, left)
            deviations = np.sqrt(squares / (n - ddof))
        made = cls.from_moments(means, float(means.mean()), deviations, center, data.epsilon, scale)
        return replace(made, effects=effects)

    @classmethod
    def from_moments(
        cls,
        means: Floats,
        grand: float,
        deviations: Floats | None,
        center: str | None,
        epsilon: float,
        power: float = 1,
    ) -> Self:
        """The scaler for these column means, grand mean and column standard deviations, raised to a power."""
        factors = None
        if deviations is not None:
            constant = deviations <= 10 * epsilon * np.abs(means)
            factors = 1 / np.where(constant, 1.0, deviations) ** power
        offsets = {"columns": means, "both": means, "grand": np.full_like(means, grand)}.get(center or "")
        return cls(np.zeros_like(means) if offsets is None else offsets, factors, rows=center in ("rows", "both"))

    def operator(self, data: DataOperator, design: Floats | None = None, fitted: bool = True) -> Corrected:
        """The centred and scaled matrix.

        `design` is needed if there are effects of covariates; `fitted` says whether they were learnt from these rows.
        """
        n, p = data.shape
        factors = np.ones(p) if self.factors is None else self.factors
        row_means = data.row_sums() / p - self.offsets.mean() if self.rows else np.zeros(n)
        offsets = self.offsets * factors if self.offsets.any() else None
        if self.effects is None or design is None:
            squared_norm = data.squared_norm(row_means, self.offsets, self.factors)
            pairs = (row_means[:, None], factors[:, None]) if row_means.any() else (None, None)
            return Corrected(data, squared_norm, self.factors, offsets, *pairs)
        # The effects of covariates are one more low-rank correction.
        left, right = design, (self.effects * factors).T
        if self.rows:
            row_means = row_means - design @ self.effects.mean(axis=1)
            left, right = np.column_stack([row_means, left]), np.column_stack([factors, right])
        squares = data.column_squares(row_means, self.offsets)
        squares = _remaining(data, squares, (row_means, self.offsets), design, self.effects, fitted)
        return Corrected(data, float(squares @ factors**2), self.factors, offsets, left, right)

    def apply(self, X: Array, design: Floats | None = None) -> Array:
        """Centre and scale new rows, by the offsets and factors of the training columns and their own row means.

        `design` has the covariates of these rows, if the scaler has effects of covariates.
        """
        scaled: Array = np.subtract(X, self.offsets, out=np.empty_like(X), casting="same_kind")
        if self.effects is not None and design is not None:
            np.subtract(scaled, design @ self.effects, out=scaled, casting="same_kind")
        if self.rows:
            seen = np.maximum(np.sum(~np.isnan(scaled), axis=1, keepdims=True), 1)
            scaled -= np.nansum(scaled, axis=1, keepdims=True) / seen
        if self.factors is not None:
            np.multiply(scaled, self.factors, out=scaled, casting="same_kind")
        return scaled

    def project_effects(self, directions: Array, known: Bools | None = None) -> Array:
        """What a unit of each covariate adds to the products of `project`: an array of shape (c, K).

        The product with the design of new rows has to be subtracted from those products. `known` marks columns of the
        new rows that are known: others have no effects.
        """
        effects = np.zeros((0, len(directions))) if self.effects is None else self.effects
        effects = effects if known is None else np.where(known, effects, 0.0)
        if self.rows:
            effects = effects - effects.mean(axis=1, keepdims=True)
        return np.asarray((effects if self.factors is None else effects * self.factors) @ directions)

    def project(self, X: Matrix, directions: Array) -> Array:
        """Product of centred and scaled new rows with directions of shape (p, K); a sparse X stays sparse.

        Effects of covariates are not subtracted, see `project_effects`.
        """
        if isinstance(X, np.ndarray):
            return np.asarray(self.apply(X) @ directions)
        dtype = directions.dtype
        scaled = directions if self.factors is None else directions * self.factors[:, None].astype(dtype)
        is_operator, every = isinstance(X, DataOperator), np.arange(X.shape[1])
        raw = X.products([(every, column) for column in scaled.T]).T if is_operator else X @ scaled
        products: Array = np.asarray(raw, dtype=dtype) - (self.offsets @ scaled).astype(dtype)
        if self.rows:
            means = X.row_sums() / X.shape[1] if is_operator else np.asarray(X.mean(axis=1)).ravel()
            means = means - self.offsets.mean()
            products -= np.outer(means, scaled.sum(axis=0)).astype(dtype)
        return products

    def undo(self, scaled: Array, design: Floats | None = None) -> Array:
        """Transform scaled rows back to the units of the data; row means are unknown and stay zero."""
        restored = scaled if self.factors is None else scaled / self.factors.astype(scaled.dtype)
        restored = np.asarray(restored + self.offsets.astype(scaled.dtype))
        if self.effects is None or design is None:
            return restored
        return np.asarray(restored + (design @ self.effects).astype(scaled.dtype))


def _remaining(
    data: DataOperator, squares: Floats, offsets: tuple[Floats, Floats], design: Floats, effects: Floats, fitted: bool
) -> Floats:
    """Sums of squares of the columns of W - design effects, where W is X without the row and column offsets.

    `squares` are those of W. If the effects were fitted to X, then W - design effects is orthogonal to the design.
    """
    row_offsets, column_offsets = offsets
    fits = design.T @ design @ effects
    images = fits
    if not fitted:
        sums = np.outer(design.sum(axis=0), column_offsets) + (design.T @ row_offsets)[:, None]
        images = data.left_products(design) - sums
    left = squares - np.einsum("ij,ij->j", effects, 2 * images - fits)
    if (left >= _CANCELS * squares).all():
        return np.asarray(left)
    shifts = np.column_stack([row_offsets, np.ones(data.shape[0]), design])
    others = np.column_stack([np.ones(data.shape[1]), column_offsets, effects.T])
    return np.asarray(data.reduce_rows(RowReduction(column_squares, add, None, shifts, others)), dtype=np.float64)


def winsorised(X: Array, furthest: float = 3.0) -> Array:
    """Clip entries that are more than `furthest` robust standard deviations from the median of their column.

    The robust standard deviation is the scaled median absolute deviation. Columns in which more than half of the
    entries are equal are not changed, nor are missing entries.
    """
    median = np.nanmedian if np.isnan(X).any() else np.median
    centres = median(X, axis=0)
    spreads = _MAD_TO_SD * median(np.abs(X - centres), axis=0)
    limits = np.where(spreads > 0, furthest * spreads, np.inf)
    clipped: Array = np.clip(X, centres - limits, centres + limits, dtype=X.dtype)
    return clipped
