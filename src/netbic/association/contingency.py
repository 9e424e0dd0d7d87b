"""Tests of counts: samples that are up, down or neither, over the levels of a category."""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, fisher_exact, random_table
from scipy.stats.contingency import odds_ratio

from netbic.arrays import Bools
from netbic.association.results import UNDEFINED, Result

Counts = NDArray[np.int64]
MONTE_CARLO: Final = 9_999  # random tables
_SEED = 0
_SMALLEST_EXPECTED = 5
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
    table = np.array([[np.sum(a & b) for b in (second, ~second)] for a in (first, ~first)])
    if not table.sum(axis=0).all() or not table.sum(axis=1).all():
        return UNDEFINED
    found = odds_ratio(table, kind="conditional")
    interval = found.confidence_interval()
    estimate = float(found.statistic)
    return Result(estimate, float(fisher_exact(table).pvalue), estimate, float(interval.low), float(interval.high))


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
