"""Tests by ranks: scores in the levels of a category."""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2, mannwhitneyu, norm, rankdata
from scipy.stats import t as t_distribution

from netbic.arrays import Bools, Floats, Indices
from netbic.association.results import CONFIDENCE, UNDEFINED, Result, Z

_EXACT_BELOW = 50  # samples per group, as in R
_NEXT = 1e-12  # from 0 or 1, where the standard error is zero


def kruskal_wallis(scores: Floats, levels: Indices) -> Result:
    """Kruskal-Wallis test of scores in several levels, numbered 0, 1, ...; the effect is epsilon squared.

    Epsilon squared, H / (n - 1), is the share of the variance of the ranks that lies between the levels.

    Examples
    --------
    >>> import numpy as np
    >>> round(kruskal_wallis(np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 0, 1, 1, 2, 2])).effect, 4)
    0.9143
    """
    n, sizes = scores.size, np.bincount(levels)
    sizes_seen = sizes[sizes > 0]
    ranks = rankdata(scores)
    spread = _tie_correction(ranks)
    if sizes_seen.size < 2 or spread == 0:
        return UNDEFINED
    sums = np.bincount(levels, weights=ranks)[sizes > 0]
    statistic = (12 / (n * (n + 1)) * float(np.sum(sums**2 / sizes_seen)) - 3 * (n + 1)) / spread
    return Result(statistic, float(chi2.sf(statistic, sizes_seen.size - 1)), statistic / (n - 1))


def mann_whitney(scores: Floats, inside: Bools) -> Result:
    """Mann-Whitney test of the samples inside a group against all others; the effect is the AUC.

    The AUC is the probability that a sample inside has a higher score than one outside, ties counting one half: 0.5
    without an effect, above it if scores inside are higher, below it if they are lower. The p-value is exact if both
    groups have fewer than 50 samples and no scores are tied; otherwise it is that of the normal approximation with
    corrections for ties and continuity (the default of `wilcox.test` in R). The confidence interval uses the
    variance of DeLong, on the logit scale, with a quantile of the t distribution; if all samples inside are beyond all
    samples outside, it is that of Newcombe (2006, method 5).

    Examples
    --------
    >>> import numpy as np
    >>> found = mann_whitney(np.array([1.0, 2, 3, 4, 5, 6]), np.array([False, False, False, True, True, True]))
    >>> found.effect, found.p
    (1.0, 0.1)
    """
    n, n_inside = scores.size, int(np.count_nonzero(inside))
    n_outside = n - n_inside
    ranks = rankdata(scores)
    spread = _tie_correction(ranks)
    if not n_inside or not n_outside or spread == 0:
        return UNDEFINED
    statistic = float(ranks[inside].sum()) - n_inside * (n_inside + 1) / 2
    auc = statistic / (n_inside * n_outside)
    if max(n_inside, n_outside) < _EXACT_BELOW and spread == 1:
        p = float(mannwhitneyu(scores[inside], scores[~inside], method="exact").pvalue)
    else:
        distance = abs(statistic - n_inside * n_outside / 2) - 0.5
        scale = sqrt(n_inside * n_outside * (n + 1) / 12 * spread)
        p = min(1.0, 2 * float(norm.sf(max(distance, -0.5) / scale)))
    return Result(statistic, p, auc, *auc_interval(scores, inside, auc))


def _tie_correction(ranks: Floats) -> float:
    """1 - sum(t^3 - t) / (n^3 - n) over groups of t tied values: 1 without ties, 0 if all are equal."""
    n = ranks.size
    _, ties = np.unique(ranks, return_counts=True)
    return 1 - float(np.sum(ties.astype(np.float64) ** 3 - ties)) / (float(n) ** 3 - n) if n > 1 else 0.0


def auc_interval(scores: Floats, inside: Bools, auc: float) -> tuple[float, float]:
    """Confidence interval of an AUC: DeLong's variance on the logit scale, Newcombe's method where that is zero."""
    n_inside, n_outside = int(np.count_nonzero(inside)), int(np.count_nonzero(~inside))
    variance, df = _delong_variance(scores, inside) if min(n_inside, n_outside) > 1 else (0.0, 0.0)
    if variance == 0 or not 0 < auc < 1:
        return _newcombe(auc, n_inside, n_outside)
    quantile = float(t_distribution.ppf((1 + CONFIDENCE) / 2, df))
    half = quantile * sqrt(variance) / (auc * (1 - auc))
    low, high = expit(logit(auc) + half * np.array([-1.0, 1.0]))
    return float(low), float(high)


def _delong_variance(scores: Floats, inside: Bools) -> tuple[float, float]:
    """Variance of the AUC from its placement values (DeLong, DeLong and Clarke-Pearson 1988), by ranks.

    The degrees of freedom are those of Satterthwaite, as in the test of Brunner and Munzel (2000).
    """
    ranks, own, other = rankdata(scores), scores[inside], scores[~inside]
    placed = (ranks[inside] - rankdata(own)) / other.size, (ranks[~inside] - rankdata(other)) / own.size
    parts = [float(np.var(values, ddof=1)) / values.size for values in placed]
    variance = sum(parts)
    scale = sum(part**2 / (values.size - 1) for part, values in zip(parts, placed, strict=True))
    return variance, variance**2 / scale if scale > 0 else 1.0


def _newcombe(auc: float, n_inside: int, n_outside: int) -> tuple[float, float]:
    """The AUCs from which the observed one is 1.96 of their own standard errors away."""
    half = (n_inside + n_outside) / 2 - 1

    def distance(true: float, side: int) -> float:
        shape = 1 + half * ((1 - true) / (2 - true) + true / (1 + true))
        return side * (auc - true) - Z * sqrt(max(true * (1 - true) * shape / (n_inside * n_outside), 0.0))

    low = 0.0 if auc == 0 else float(brentq(distance, 0.0, min(auc, 1 - _NEXT), args=(1,)))
    high = 1.0 if auc == 1 else float(brentq(distance, max(auc, _NEXT), 1.0, args=(-1,)))
    return low, high
