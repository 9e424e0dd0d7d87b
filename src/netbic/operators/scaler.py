"""The user's words for centring and scaling, as corrections for training data and as arithmetic for new data."""

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
    """Subtract column offsets (and each row's own mean, if `rows`), then multiply columns by factors.

    `offsets` are the column means ("columns", "both"), the grand mean ("grand") or zero. Under "both" the
    row means are those of what is left after the column means, so that in complete data (before any scaling) rows and
    columns both end with mean zero.
    """

    offsets: Floats
    factors: Floats | None
    rows: bool

    @classmethod
    def learn(cls, data: DataOperator, center: str | None, scale: bool) -> Self:
        """Measure means and standard deviations (about the column mean, divided by n) of the training data."""
        n, p = data.shape
        wanted = center in ("columns", "both", "grand") or scale
        means = data.column_sums() / n if wanted else np.zeros(p)
        deviations = np.sqrt(data.column_squares(np.zeros(n), means) / n) if scale else None
        return cls.from_moments(means, float(means.mean()), deviations, center, data.epsilon)

    @classmethod
    def from_moments(
        cls, means: Floats, grand: float, deviations: Floats | None, center: str | None, epsilon: float
    ) -> Self:
        """What to subtract and multiply by, from column means, grand mean and column deviations."""
        factors = None
        if deviations is not None:
            constant = deviations <= 10 * epsilon * np.abs(means)
            factors = 1 / np.where(constant, 1.0, deviations)
        offsets = {"columns": means, "both": means, "grand": np.full_like(means, grand)}.get(center or "")
        return cls(np.zeros_like(means) if offsets is None else offsets, factors, rows=center in ("rows", "both"))

    def operator(self, data: DataOperator) -> Corrected:
        """The prepared training matrix."""
        n, p = data.shape
        factors = np.ones(p) if self.factors is None else self.factors
        row_means = data.row_sums() / p - self.offsets.mean() if self.rows else np.zeros(n)
        squared_norm = data.squared_norm(row_means, self.offsets, self.factors)
        offsets = self.offsets * factors if self.offsets.any() else None
        pairs = (row_means[:, None], factors[:, None]) if row_means.any() else (None, None)
        return Corrected(data, squared_norm, self.factors, offsets, *pairs)

    def apply(self, X: Array) -> Array:
        """Prepare new rows: the training columns' offsets and factors, the new rows' own means."""
        prepared: Array = np.subtract(X, self.offsets, out=np.empty_like(X), casting="same_kind")
        if self.rows:
            seen = np.maximum(np.sum(~np.isnan(prepared), axis=1, keepdims=True), 1)
            prepared -= np.nansum(prepared, axis=1, keepdims=True) / seen
        if self.factors is not None:
            np.multiply(prepared, self.factors, out=prepared, casting="same_kind")
        return prepared

    def project(self, X: Matrix, directions: Array) -> Array:
        """Product of prepared new rows with some directions (p, K); a sparse X stays sparse."""
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

    def undo(self, prepared: Array) -> Array:
        """Bring prepared rows back to the units of the data; row means are not known and stay zero."""
        restored = prepared if self.factors is None else prepared / self.factors.astype(prepared.dtype)
        return np.asarray(restored + self.offsets.astype(prepared.dtype))


def winsorised(X: Array, furthest: float = 3.0) -> Array:
    """Entries beyond so many robust standard deviations (by the median absolute deviation) of their column drawn in.

    Columns more than half of whose entries are equal stay as they are, and so do missing entries.
    """
    median = np.nanmedian if np.isnan(X).any() else np.median
    centres = median(X, axis=0)
    spreads = _MAD_TO_SD * median(np.abs(X - centres), axis=0)
    limits = np.where(spreads > 0, furthest * spreads, np.inf)
    clipped: Array = np.clip(X, centres - limits, centres + limits, dtype=X.dtype)
    return clipped
