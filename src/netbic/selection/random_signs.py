"""Data with random signs, the null model of `n_modules`, and the scaling of samples to similar noise before.

All functions keep the precision of X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import orth

from netbic.arrays import Array, Floats
from netbic.operators import winsorised

_FITTED = 1e-9  # share of its variance that is left of a sample that is fitted exactly
_MOST_SCALING = 2.0  # natural logarithm of the largest factor by which a sample is scaled
_BLOCK = 256  # columns that are processed at a time: they stay in the cache


class SampleNoise(NamedTuple):
    """Sums over columns, an entry per sample, from which the noise of samples is estimated.

    Columns are winsorised and standardised first, each on its own: if only some columns change, only their part of the
    sums does (`replaced`).

    Attributes
    ----------
    squares, fourth : array
        Sums of the second and fourth powers.
    n_columns : int
    """

    squares: Floats
    fourth: Floats
    n_columns: int

    @classmethod
    def of(cls, X: Array, n_threads: int = 1) -> Self:
        """Those of all columns."""
        squares, fourth = np.sum(_by_blocks(_powers, X, n_threads), axis=0)
        return cls(squares, fourth, X.shape[1])

    def replaced(self, before: Array, after: Array) -> Self:
        """Those after some columns have changed."""
        change = _powers(after) - _powers(before)
        return self._replace(squares=self.squares + change[0], fourth=self.fourth + change[1])

    @property
    def relative(self) -> Floats:
        """The noise of every sample, relative to the others; 1 if samples differ by no more than chance.

        It is the root mean square of its winsorised, standardised entries, shrunk towards the mean of all samples by
        the share of its variation that is expected by chance: if samples do not differ, they are not scaled, because
        that would only scale down the samples of modules.
        """
        noise = self.squares / self.n_columns
        known = noise > 0
        if not known.any():
            return np.ones(len(noise))
        variances = np.maximum(self.fourth / self.n_columns - noise**2, 0.0)
        logs = np.log(np.where(known, noise, 1.0)) / 2
        by_chance = float((variances[known] / noise[known] ** 2).mean()) / (4 * self.n_columns)
        kept = max(0.0, 1 - by_chance / max(float(logs[known].var()), np.finfo(float).tiny))
        logs = np.where(known, np.clip(kept * (logs - logs[known].mean()), -_MOST_SCALING, _MOST_SCALING), 0.0)
        return np.asarray(np.exp(logs))


def _powers(X: Array) -> Floats:
    """Sums over columns of the second and fourth powers of winsorised, standardised entries."""
    values = winsorised(X)
    values -= values.mean(axis=0)
    deviations = values.std(axis=0)
    values /= np.where(deviations > 0, deviations, np.inf)
    values *= values
    squares = values.sum(axis=1, dtype=np.float64)
    values *= values
    return np.array([squares, values.sum(axis=1, dtype=np.float64)])


def _by_blocks(function: Callable[[Array], Array], X: Array, n_threads: int) -> list[Array]:
    """A function of some columns, for one block of columns after another."""
    blocks = [X[:, start : start + _BLOCK] for start in range(0, X.shape[1], _BLOCK)]
    found: list[Array] = Parallel(n_jobs=n_threads, prefer="threads")(delayed(function)(block) for block in blocks)
    return found


class EvenedData(NamedTuple):
    """Data in which samples have similar noise.

    Attributes
    ----------
    values : array
        Scaled and winsorised.
    means : array
        The shape of the column means, a unit vector. With covariates, the shapes of everything that was removed, as
        orthonormal columns.
    """

    values: Array
    means: Floats


class Evening:
    """Scale samples (rows) to similar noise and winsorise entries, again after columns have changed.

    Parameters
    ----------
    X : array
    centred : bool
        Whether the columns of X were centred.
    basis : array, optional
        An orthonormal basis of covariates that were removed from X.
    n_threads : int
        It does not affect the result.
    """

    def __init__(self, X: Array, centred: bool, basis: Floats | None = None, n_threads: int = 1) -> None:
        n = len(X)
        self._centred, self._basis, self._n_threads = centred, basis, n_threads
        self._constant = np.full((n, 1), 1 / np.sqrt(n))
        self._noise = SampleNoise.of(self._errors(X), n_threads)

    def replace(self, before: Array, after: Array) -> None:
        """Take into account that some columns of X have changed."""
        self._noise = self._noise.replaced(self._errors(before), self._errors(after))

    def _errors(self, X: Array) -> Array:
        """X, in which the residuals of a regression on covariates have the variance of the errors."""
        if self._basis is None:
            return X
        factors = _without_leverage(np.hstack([self._constant, self._basis]))
        return ((X - self._means(X)) * factors[:, None]).astype(X.dtype, copy=False)

    def _means(self, X: Array) -> Floats | float:
        return 0.0 if self._centred else X.mean(axis=0)

    def apply(self, X: Array) -> EvenedData:
        """The scaled and winsorised X.

        A column with mean m and noise s_i in sample i becomes m / s_i plus noise. So the means of columns that were
        centred are removed again by regressing out 1 / s_i, the shape of the means: their errors would look like a
        module of the samples with little noise. The same holds for covariates.
        """
        weights = 1 / self._noise.relative
        weights *= np.sqrt(len(X)) / np.linalg.norm(weights)
        removed, means = self._shapes(weights)

        def even(part: Array) -> Array:
            centres = self._means(part)
            scaled = winsorised((centres + (part - centres) * weights[:, None]).astype(X.dtype, copy=False))
            return (scaled - removed @ (removed.T @ scaled)).astype(X.dtype, copy=False)

        return EvenedData(np.hstack(_by_blocks(even, X, self._n_threads)), means)

    def _shapes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Shapes to be removed again after samples were scaled, and the shapes of the means and of all covariates."""
        if self._basis is None:
            shape = weights[:, None] / np.sqrt(len(weights))
            return (shape, shape[:, 0]) if self._centred else (shape[:, :0], self._constant[:, 0])
        if self._centred:
            shapes = orth(weights[:, None] * np.hstack([self._constant, self._basis]))
            return shapes, shapes
        scaled = weights[:, None] * self._basis
        shapes = orth(scaled - scaled.mean(axis=0))
        return shapes, np.hstack([self._constant, shapes])


def _without_leverage(shapes: Floats) -> Floats:
    """Factors that give residuals of a regression on orthonormal columns the variance of the errors.

    Samples that are fitted exactly, such as the only one of a batch, have no residuals: their factor is 0.
    """
    left = 1 - np.einsum("ij,ij->i", shapes, shapes)
    return np.where(left > _FITTED, 1 / np.sqrt(np.maximum(left, _FITTED)), 0.0)


def with_random_signs(X: Array, means: Floats, generator: np.random.Generator) -> Array:
    """A copy in which every entry is as far from the mean of its column as in X, above or below it at random.

    `means` is the shape of the column means: a unit vector, constant unless samples were scaled. The copy has the same
    means as X. With covariates, `means` has several orthonormal columns: the shapes of everything that was removed.
    """
    n = len(X)
    shapes = means.reshape(n, -1).astype(X.dtype)
    # Removing means takes one degree of freedom each time; the data have lost only one.
    factors = _without_leverage(means) if means.ndim > 1 else np.full(n, np.sqrt(n / max(n - 1, 1)))
    fitted = shapes.T @ X
    copy: Array = shapes @ fitted
    np.subtract(X, copy, out=copy)
    signs = generator.integers(2, size=X.shape, dtype=np.int8)
    signs *= 2
    signs -= 1
    copy *= signs
    copy *= factors[:, None].astype(X.dtype)
    copy += shapes @ (fitted - shapes.T @ copy)
    return copy
