"""Linear models: what is left of numbers after a regression on covariates, and tests of further terms."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from netbic.arrays import Bools, Floats, Indices
from netbic.association.results import CONFIDENCE, UNDEFINED, Result

_EXPLAINED = 1e-9  # share of a norm below which nothing is left but rounding errors


class Residuals:
    """Removes a constant and covariates from vectors by linear regression; covariates may be linearly dependent.

    Attributes
    ----------
    basis : array of shape (n, rank)
        Orthonormal columns; the first is the constant.
    rank : int
        Independent columns of the design, the constant included.

    Examples
    --------
    >>> import numpy as np
    >>> removed = Residuals(4, np.array([[0.0], [0], [1], [1]]))
    >>> removed.rank, removed(np.array([1.0, 3, 10, 20])).round(6).tolist()
    (2, [-1.0, 1.0, -5.0, 5.0])
    """

    def __init__(self, n: int, design: Floats | None = None) -> None:
        centred = np.empty((n, 0)) if design is None else design - design.mean(axis=0)
        sizes = np.linalg.norm(centred, axis=0)
        kept = centred[:, sizes > 0] / sizes[sizes > 0]
        left, values, _ = np.linalg.svd(kept, full_matrices=False)
        independent = left[:, values > _EXPLAINED * max(values, default=0.0)]
        self.basis = np.column_stack([np.full(n, 1 / sqrt(n)), independent])
        self.rank = self.basis.shape[1]

    def __call__(self, values: Floats) -> Floats:
        """What is left of a vector; exact zeros if nothing but rounding errors is left."""
        left = values - values.mean()
        size = float(np.linalg.norm(left))
        for _ in range(2):  # the second time removes the rounding errors of the first
            left = left - self.basis @ (self.basis.T @ left)
        return left if float(np.linalg.norm(left)) > _EXPLAINED * size else np.zeros_like(left)


def linear_model(scores: Floats, levels: Indices, design: Floats | None = None) -> Result:
    """F test of the levels of a category in a linear model of the scores with covariates.

    The effect is partial eta squared: the share of the variance that the covariates leave which the levels explain.

    Examples
    --------
    >>> import numpy as np
    >>> found = linear_model(np.array([1.0, 2, 3, 7, 8, 9]), np.array([0, 0, 0, 1, 1, 1]))
    >>> round(found.statistic, 6), round(found.effect, 4)
    (54.0, 0.931)
    """
    dummies = (levels[:, None] == np.unique(levels)[None, 1:]).astype(np.float64)
    without = Residuals(scores.size, design)
    full = Residuals(scores.size, dummies if design is None else np.column_stack([design, dummies]))
    terms, left = full.rank - without.rank, scores.size - full.rank
    remaining, unexplained = (float(np.sum(removed(scores) ** 2)) for removed in (without, full))
    if terms < 1 or left < 1 or remaining == 0:
        return UNDEFINED
    if unexplained == 0:
        return Result(np.inf, 0.0, 1.0)
    statistic = (remaining - unexplained) / terms / (unexplained / left)
    return Result(statistic, float(f_distribution.sf(statistic, terms, left)), 1 - unexplained / remaining)


def standardised_difference(scores: Floats, inside: Bools, design: Floats | None = None) -> Result:
    """Difference of the scores inside and outside a group in a linear model with covariates, by its t test.

    The effect is the difference in units of the residual standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> found = standardised_difference(np.array([1.0, 2, 3, 7, 8, 9]), np.repeat([False, True], 3))
    >>> round(found.effect, 6), round(found.statistic, 4)
    (6.0, 7.3485)
    """
    removed = Residuals(scores.size, design)
    own, group, left = removed(scores), removed(inside.astype(np.float64)), scores.size - removed.rank - 1
    weight = float(group @ group)
    if left < 1 or weight == 0 or not own.any():
        return UNDEFINED
    difference = float(group @ own) / weight
    sd = sqrt(max(float(own @ own) - difference**2 * weight, 0.0) / left)
    if sd == 0:
        return UNDEFINED
    effect, error = difference / sd, 1 / sqrt(weight)
    half = float(t_distribution.ppf((1 + CONFIDENCE) / 2, left)) * error
    statistic = effect / error
    return Result(statistic, 2 * float(t_distribution.sf(abs(statistic), left)), effect, effect - half, effect + half)
