"""Centring, scaling and deflation without touching the data: X S^-1 - L R' with S diagonal and L, R thin."""

from __future__ import annotations

from typing import Self

import numpy as np

from netbic.operators.base import Floats, Indices, Operator


class Corrected:
    """The operator X S^-1 - L R'.

    Parameters
    ----------
    base : Operator
        The data X.
    squared_norm : float
        Squared Frobenius norm of the corrected matrix; `minus` keeps it up to date.
    column_factors : array of shape (p,), optional
        The diagonal of S^-1.
    left, right : arrays of shape (n, r) and (p, r), optional
        The low-rank correction L R'.
    """

    def __init__(
        self,
        base: Operator,
        squared_norm: float,
        column_factors: Floats | None = None,
        left: Floats | None = None,
        right: Floats | None = None,
    ) -> None:
        self.shape = base.shape
        self.squared_norm = max(squared_norm, 0.0)
        self._base = base
        self._factors = column_factors
        self._left = np.empty((self.shape[0], 0)) if left is None else left
        self._right = np.empty((self.shape[1], 0)) if right is None else right

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the right."""
        scaled = values if self._factors is None else values * self._factors[support]
        return self._base.matvec(support, scaled) - self._left @ (values @ self._right[support])

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """Product with a supported vector on the left."""
        product = self._base.rmatvec(support, values)
        if self._factors is not None:
            product *= self._factors
        return product - self._right @ (values @ self._left[support])

    def minus(self, left: Floats, right: Floats) -> Self:
        """Subtract one more rank-one matrix `left right'`: |Y - ab'|^2 = |Y|^2 - 2 a'Yb + |a|^2 |b|^2."""
        support = np.flatnonzero(right)
        overlap = float(left @ self.matvec(support, right[support]))
        return type(self)(
            self._base,
            self.squared_norm - 2 * overlap + float(left @ left) * float(right @ right),
            self._factors,
            np.column_stack([self._left, left]),
            np.column_stack([self._right, right]),
        )

    def correction_norm(self) -> float:
        """Frobenius norm of L R'."""
        return float(np.sqrt(max(np.sum((self._left.T @ self._left) * (self._right.T @ self._right)), 0.0)))
