"""Whitening of a table by its own covariance matrix, from inner products of the shorter side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from netbic.arrays import Array, Floats
from netbic.operators import Corrected, Whitening

_RANK = 1e-10  # squared singular values below this share of the largest one are zero


@dataclass(frozen=True, eq=False)
class RidgeWhitening:
    """The map X -> X R^-1/2 with R = (1 - ridge) S + ridge I, where S is the covariance matrix of X.

    With X = U D V' and n samples, X R^-1/2 = W X for W = U diag(g) U' and g = ((1 - ridge) D^2 / (n - 1) + ridge)^-1/2,
    so that X itself is not changed, and R is never formed.

    Parameters
    ----------
    X : Corrected
        The centred and scaled table.
    ridge : float
        From 0 (the covariance matrix itself, on the space of the samples) to 1 (no whitening).
    """

    X: Corrected
    ridge: float
    vectors: Floats  # U
    squares: Floats  # D^2

    @classmethod
    def of(cls, X: Corrected, ridge: float) -> RidgeWhitening:
        """Compute the singular vectors of the samples."""
        on_rows = X.shape[0] <= X.shape[1]
        squares, vectors = eigh(X.gram(on_rows, 1.0, np.float64), lower=False, check_finite=False)
        kept = squares > _RANK * squares[-1]
        squares, vectors = squares[kept], vectors[:, kept]
        if not on_rows:
            every = np.arange(X.shape[1])
            vectors = X.products([(every, vector) for vector in vectors.T]).T / np.sqrt(squares)
        return cls(X, ridge, vectors, squares)

    @property
    def rank(self) -> int:
        """The rank of X."""
        return int(self.squares.size)

    @property
    def gains(self) -> Floats:
        """g, by which singular values are multiplied."""
        gains: Floats = ((1 - self.ridge) * self.squares / (self.X.shape[0] - 1) + self.ridge) ** -0.5
        return gains

    def rows(self) -> Whitening:
        """W, as a map of the samples."""
        return Whitening(self.vectors, self.gains)

    def coefficients(self, weights: Array) -> Floats:
        """R^-1/2 times the weights of whitened features, of shape (p, K): weights of the features themselves.

        R^-1/2 = ridge^-1/2 I + V diag(g - ridge^-1/2) V', and V'w = D^-1 U'Xw. Without a ridge, only the second term.
        """
        outside = self.ridge**-0.5 if self.ridge else 0.0
        every = np.arange(self.X.shape[1])
        images = self.X.products([(every, column) for column in np.asarray(weights, dtype=np.float64).T]).T
        inside = self.vectors @ (((self.gains - outside) / self.squares)[:, None] * (self.vectors.T @ images))
        coefficients: Floats = outside * weights + self.X.left_products(inside).T
        return coefficients
