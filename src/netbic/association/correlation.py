"""Correlations of scores with numbers and ordered levels, without and with covariates."""

from __future__ import annotations

from functools import lru_cache
from math import atanh, inf, sqrt, tanh

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as t_distribution

from netbic.arrays import Floats
from netbic.association.linear import Residuals
from netbic.association.results import UNDEFINED, Result, Z

_EXACT_UP_TO = 9  # samples, as in R


def pearson(x: Floats, y: Floats, design: Floats | None = None) -> Result:
    """Pearson correlation, with the confidence interval of Fisher's z; partial if covariates are given.

    Parameters
    ----------
    x, y : arrays
    design : array of shape (n_samples, n_columns), optional
        The correlation is that of what is left of x and y after a linear regression on these columns.

    Examples
    --------
    >>> import numpy as np
    >>> round(pearson(np.arange(8.0), np.array([2.0, 1, 4, 3, 6, 5, 8, 7])).effect, 4)
    0.9048
    """
    return _correlation(x, y, design, 1.0, 0.0)


def spearman(x: Floats, y: Floats, design: Floats | None = None) -> Result:
    """Spearman correlation; if covariates are given, the partial correlation of the ranks.

    The p-value is exact for up to nine samples without ties and covariates; otherwise from the t distribution
    (`cor.test` of R with `exact=FALSE`). The confidence interval is that of Bonett and Wright (2000).

    Parameters
    ----------
    x, y : arrays
    design : array of shape (n_samples, n_columns), optional
        Covariates; each column is replaced by its ranks.

    Examples
    --------
    >>> import numpy as np
    >>> found = spearman(np.arange(5.0), np.array([1.0, 2, 3, 5, 4]))
    >>> round(found.effect, 4), round(found.p, 4)
    (0.9, 0.0833)
    """
    ranks = rankdata(x), rankdata(y)
    found = _correlation(*ranks, None if design is None else rankdata(design, axis=0), 1.0, 0.5)
    distinct = all(np.unique(each).size == each.size for each in ranks)
    if design is None and 2 < x.size <= _EXACT_UP_TO and distinct:
        return found._replace(p=_exact_p(round(float(np.sum((ranks[0] - ranks[1]) ** 2))), x.size))
    return found


def _correlation(x: Floats, y: Floats, design: Floats | None, *variance: float) -> Result:
    """Correlation with its t test; the variance of its z is (variance[0] + variance[1] r^2) / (n - 3)."""
    removed = Residuals(x.size, design)
    own, other, n = removed(x), removed(y), x.size - removed.rank + 1  # samples, less the covariates
    if n < 3 or not own.any() or not other.any():
        return UNDEFINED
    r = float(np.clip(own @ other / (np.linalg.norm(own) * np.linalg.norm(other)), -1, 1))
    statistic = r * sqrt((n - 2) / (1 - r**2)) if abs(r) < 1 else r * inf
    p = 2 * float(t_distribution.sf(abs(statistic), n - 2))
    if n == 3 or abs(r) == 1:
        return Result(statistic, p, r)
    half = Z * sqrt((variance[0] + variance[1] * r**2) / (n - 3))
    return Result(statistic, p, r, tanh(atanh(r) - half), tanh(atanh(r) + half))


def _exact_p(distance: int, n: int) -> float:
    """Two-sided p-value of a sum of squared differences of ranks, as in R."""
    counts = _distances(n)
    upper = 6 * distance > n**3 - n
    tail = counts[distance:].sum() if upper else counts[: distance + 1].sum()
    return min(1.0, 2 * float(tail / counts.sum()))


@lru_cache(maxsize=_EXACT_UP_TO)
def _distances(n: int) -> Floats:
    """How many permutations have each sum of squared differences of ranks; permutations are built rank by rank."""
    longest = (n**3 - n) // 3
    counts = np.zeros((1 << n, longest + 1))
    counts[0, 0] = 1
    for used in range((1 << n) - 1):
        rank = used.bit_count()
        for other in range(n):
            if not used >> other & 1 and counts[used].any():
                step = (rank - other) ** 2
                counts[used | 1 << other, step:] += counts[used, : longest + 1 - step]
    return np.asarray(counts[-1])
