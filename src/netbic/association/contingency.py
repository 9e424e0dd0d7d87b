"""Tests of counts: samples that are up, down or neither, over the levels of a category."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import chi2, hypergeom, random_table

from netbic.arrays import Bools, Floats
from netbic.association.results import CONFIDENCE, UNDEFINED, Result

Counts = NDArray[np.int64]
MONTE_CARLO: Final = 9_999  # random tables
_SEED = 0
_SMALLEST_EXPECTED = 5
_SAME = 1e-7  # relative: tables whose probabilities differ by less are equally likely, as in R
_EQUAL = 1e-9  # relative: statistics of the same table may differ by rounding errors


def fisher(first: Bools, second: Bools) -> Result:
    """Fisher's exact test of two properties of samples; the effect is their odds ratio.

    The odds ratio is the conditional maximum likelihood estimate with an exact confidence interval, as of
    `fisher.test` in R.

    Examples
    --------
    >>> import numpy as np
    >>> first = np.repeat([True, False], [4, 4])
    >>> second = np.array([True, True, True, False, False, False, False, True])
    >>> round(fisher(first, second).p, 4), round(fisher(first, second).effect, 4)
    (0.4857, 6.4083)
    """
    n, n_first, n_second = first.size, int(np.count_nonzero(first)), int(np.count_nonzero(second))
    if n_first in (0, n) or n_second in (0, n):
        return UNDEFINED
    counts = np.arange(max(0, n_first + n_second - n), min(n_first, n_second) + 1)
    both = int(np.count_nonzero(first & second)) - int(counts[0])
    logs: Floats = np.asarray(hypergeom.logpmf(counts, n, n_first, n_second))
    probabilities = np.exp(logs)
    p = float(np.sum(probabilities[probabilities <= probabilities[both] * (1 + _SAME)]))
    effect, low, high = _odds_ratio(logs, both)
    return Result(effect, min(p, 1.0), effect, low, high)


def _odds_ratio(logs: Floats, observed: int) -> tuple[float, float, float]:
    """Conditional maximum likelihood estimate of an odds ratio, and its exact confidence interval.

    `logs` are the logarithms of the probabilities of all counts if the odds ratio is 1, `observed` the position of the
    observed one.
    """
    counts, last, tail = np.arange(logs.size), logs.size - 1, (1 - CONFIDENCE) / 2

    def weights(log_ratio: float) -> Floats:
        return np.asarray(softmax(logs + log_ratio * counts))

    def root(function: Callable[[float], float]) -> float:
        """Where an increasing function of the logarithm of the ratio is zero; the ratio itself."""
        reach = 1.0
        while function(-reach) > 0 or function(reach) < 0:
            reach *= 2
        return exp(brentq(function, -reach, reach, xtol=1e-13, rtol=1e-13))

    if observed in (0, last):
        estimate = 0.0 if observed == 0 else inf
    else:
        estimate = root(lambda log_ratio: float(weights(log_ratio) @ counts) - observed)
    low = 0.0 if observed == 0 else root(lambda log_ratio: float(weights(log_ratio)[observed:].sum()) - tail)
    high = inf if observed == last else root(lambda log_ratio: tail - float(weights(log_ratio)[: observed + 1].sum()))
    return estimate, low, high


def chi_squared(table: Counts) -> tuple[Result, bool]:
    """Chi-squared test of a table of counts; the effect is Cramer's V.

    Returns
    -------
    Result, bool
        The p-value is from random tables with the same margins (fixed seed) if an expected count is below 5, which the
        second value says; otherwise from the chi-squared distribution, without continuity correction.

    Examples
    --------
    >>> import numpy as np
    >>> found, simulated = chi_squared(np.array([[20, 10, 5], [10, 20, 25]]))
    >>> round(found.effect, 3), simulated
    (0.426, False)
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return UNDEFINED, False
    n, rows, columns = int(table.sum()), table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns) / n
    statistic = float(np.sum((table - expected) ** 2 / expected))
    effect = sqrt(statistic / (n * (min(table.shape) - 1)))
    simulated = bool(expected.min() < _SMALLEST_EXPECTED)
    if not simulated:
        return Result(statistic, float(chi2.sf(statistic, (rows.size - 1) * (columns.size - 1))), effect), False
    tables = random_table(rows, columns, seed=_SEED).rvs(MONTE_CARLO)
    others = np.sum((tables - expected) ** 2 / expected, axis=(1, 2))
    extreme = int(np.sum(others >= statistic * (1 - _EQUAL)))
    return Result(statistic, (extreme + 1) / (MONTE_CARLO + 1), effect), True
