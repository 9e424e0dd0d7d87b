"""Centring and scaling: as corrections of the training data, and as arithmetic for new data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from netbic.arrays import Array, Floats, Matrix
from netbic.operators.base import DataOperator
from netbic.operators.corrected import Corrected

CENTERS: Final = (None, "columns", "rows", "both", "grand")
_MAD_TO_SD = 1.4826


@dataclass(frozen=True)
class Scaler:
    """Subtract column offsets (and the mean of each row, if `rows`), then multiply columns by factors.

    `offsets` are the column means ("columns", "both"), the grand mean ("grand") or zero. With "both", row means are
    computed after subtracting column means, so that without missing entries rows and columns have mean zero before
    scaling.

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

    @classmethod
    def learn(cls, data: DataOperator, center: str | None, scale: bool) -> Self:
        """Compute means and standard deviations (about the column mean, divided by n) of the training data."""
        n, p = data.shape
        wanted = center in ("columns", "both", "grand") or scale
        means = data.column_sums() / n if wanted else np.zeros(p)
        deviations = np.sqrt(data.column_squares(np.zeros(n), means) / n) if scale else None
        return cls.from_moments(means, float(means.mean()), deviations, center, data.epsilon)

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

    def operator(self, data: DataOperator) -> Corrected:
        """The centred and scaled training matrix."""
        n, p = data.shape
        factors = np.ones(p) if self.factors is None else self.factors
        row_means = data.row_sums() / p - self.offsets.mean() if self.rows else np.zeros(n)
        squared_norm = data.squared_norm(row_means, self.offsets, self.factors)
        offsets = self.offsets * factors if self.offsets.any() else None
        pairs = (row_means[:, None], factors[:, None]) if row_means.any() else (None, None)
        return Corrected(data, squared_norm, self.factors, offsets, *pairs)

    def apply(self, X: Array) -> Array:
        """Centre and scale new rows, by the offsets and factors of the training columns and their own row means."""
        scaled: Array = np.subtract(X, self.offsets, out=np.empty_like(X), casting="same_kind")
        if self.rows:
            seen = np.maximum(np.sum(~np.isnan(scaled), axis=1, keepdims=True), 1)
            scaled -= np.nansum(scaled, axis=1, keepdims=True) / seen
        if self.factors is not None:
            np.multiply(scaled, self.factors, out=scaled, casting="same_kind")
        return scaled

    def project(self, X: Matrix, directions: Array) -> Array:
        """Product of centred and scaled new rows with directions of shape (p, K); a sparse X stays sparse."""
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

    def undo(self, scaled: Array) -> Array:
        """Transform scaled rows back to the units of the data; row means are unknown and stay zero."""
        restored = scaled if self.factors is None else scaled / self.factors.astype(scaled.dtype)
        return np.asarray(restored + self.offsets.astype(scaled.dtype))


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
