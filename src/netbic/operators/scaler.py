"""Centring and scaling: as corrections of the training data, and as arithmetic for new data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import add
from typing import Final, Self

import numpy as np
from scipy.linalg import solve_triangular

from netbic.arrays import Array, Bools, Floats, Matrix
from netbic.operators.base import DataOperator
from netbic.operators.corrected import Corrected
from netbic.operators.row_reduction import RowReduction, column_squares

CENTERS: Final = (None, "columns", "rows", "both", "grand")
_MAD_TO_SD = 1.4826
_CANCELS = 1e-6  # share of its squares that covariates leave of a column, below which differences lose too many digits


@dataclass(frozen=True)
class Scaler:
    """Subtract column offsets (and the mean of each row, if `rows`), then multiply columns by factors.

    `offsets` are the column means ("columns", "both"), the grand mean ("grand") or zero. With "both", row means are
    computed after subtracting column means, so that without missing entries rows and columns have mean zero before
    scaling.

    If there are covariates, their `effects`, of shape (c, p), are subtracted before row means are computed: the rows of
    the `design`, of shape (n, c), times the effects. The columns of the design of the training data have mean zero and
    are linearly independent, and the effects are those of least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from netbic.operators import as_operator
    >>> X = np.array([[1.0, 4.0], [3.0, 8.0]])
    >>> scaler = Scaler.learn(as_operator(X), center="columns", scale=True)
    >>> scaler.apply(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    offsets: Floats
    factors: Floats | None
    rows: bool
    effects: Floats | None = None

    @classmethod
    def learn(
        cls, data: DataOperator, center: str | None, scale: bool, design: Floats | None = None, ddof: int = 0
    ) -> Self:
        """Compute means, effects of covariates, and standard deviations of what they leave (divided by n - ddof)."""
        n, p = data.shape
        wanted = center in ("columns", "both", "grand") or scale
        means = data.column_sums() / n if wanted else np.zeros(p)
        effects = None if design is None else _least_squares(data, design)
        deviations = None
        if scale:
            squares = data.column_squares(np.zeros(n), means)
            if design is not None and effects is not None:
                left = _remaining(data, squares, (np.zeros(n), means), design, effects, fitted=True)
                explained = left <= (10 * data.epsilon) ** 2 * squares  # by the covariates, up to rounding error
                squares = np.where(explained, 0.0, left)
            deviations = np.sqrt(squares / (n - ddof))
        made = cls.from_moments(means, float(means.mean()), deviations, center, data.epsilon)
        return made if effects is None else replace(made, effects=effects)

    @classmethod
    def from_moments(
        cls, means: Floats, grand: float, deviations: Floats | None, center: str | None, epsilon: float
    ) -> Self:
        """The scaler for these column means, grand mean and column standard deviations."""
        factors = None
        if deviations is not None:
            constant = deviations <= 10 * epsilon * np.abs(means)
            factors = 1 / np.where(constant, 1.0, deviations)
        offsets = {"columns": means, "both": means, "grand": np.full_like(means, grand)}.get(center or "")
        return cls(np.zeros_like(means) if offsets is None else offsets, factors, rows=center in ("rows", "both"))

    def operator(self, data: DataOperator, design: Floats | None = None, fitted: bool = True) -> Corrected:
        """The centred and scaled matrix.

        `design` is needed if there are effects of covariates; `fitted` says whether they were learnt from these rows.
        """
        n, p = data.shape
        factors = np.ones(p) if self.factors is None else self.factors
        row_means = data.row_sums() / p - self.offsets.mean() if self.rows else np.zeros(n)
        if self.effects is not None and design is not None:
            return self._without_covariates(data, factors, row_means, design, fitted)
        squared_norm = data.squared_norm(row_means, self.offsets, self.factors)
        offsets = self.offsets * factors if self.offsets.any() else None
        pairs = (row_means[:, None], factors[:, None]) if row_means.any() else (None, None)
        return Corrected(data, squared_norm, self.factors, offsets, *pairs)

    def _without_covariates(
        self, data: DataOperator, factors: Floats, row_means: Floats, design: Floats, fitted: bool
    ) -> Corrected:
        """The effects of covariates are one more low-rank correction."""
        effects = np.zeros((0, data.shape[1])) if self.effects is None else self.effects
        if self.rows:
            row_means = row_means - design @ effects.mean(axis=1)
        squares = data.column_squares(row_means, self.offsets)
        left = _remaining(data, squares, (row_means, self.offsets), design, effects, fitted)
        offsets = self.offsets * factors if self.offsets.any() else None
        own = [row_means[:, None]] if self.rows else []
        others = [factors[:, None]] if self.rows else []
        pairs = np.hstack([*own, design]), np.hstack([*others, (effects * factors).T])
        return Corrected(data, float(left @ factors**2), self.factors, offsets, *pairs)

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


def _least_squares(data: DataOperator, design: Floats) -> Floats:
    """Coefficients of the columns of X on a design whose columns have mean zero and are linearly independent."""
    basis, triangle = np.linalg.qr(design)
    return np.ascontiguousarray(solve_triangular(triangle, data.left_products(basis)))


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

    Examples
    --------
    >>> import numpy as np
    >>> winsorised(np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])).ravel().round(2)
    array([0.  , 1.  , 2.  , 3.  , 6.45])
    """
    median = np.nanmedian if np.isnan(X).any() else np.median
    centres = median(X, axis=0)
    spreads = _MAD_TO_SD * median(np.abs(X - centres), axis=0)
    limits = np.where(spreads > 0, furthest * spreads, np.inf)
    clipped: Array = np.clip(X, centres - limits, centres + limits, dtype=X.dtype)
    return clipped
