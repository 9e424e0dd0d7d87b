"""Tests of scores with categories, numbers and survival times; the numbers are those of R."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations
from math import atanh, exp, factorial, inf, nan, prod, sqrt, tanh
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit, nctdtr, softmax

from netbic.arrays import Bools, Floats, Indices

CONFIDENCE: Final = 0.95
Z: Final = 1.959963984540054  # normal quantile of (1 + CONFIDENCE) / 2
_TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
MONTE_CARLO: Final = 9_999  # random tables
_EXPLAINED = 1e-9  # share of a norm below which nothing is left but rounding errors
_EXACT_BELOW = 50  # samples per group for an exact Mann-Whitney test, as in R
_FEW_WAYS = 10_000  # to divide samples into levels, for an exact Kruskal-Wallis test
_EXACT_UP_TO = 9  # samples for an exact test of a Spearman correlation, as in R
_SMALLEST_EXPECTED = 5  # count of the chi-squared distribution
_SAME = 1e-7  # relative: tables whose probabilities differ by less are equally likely, as in R
_EQUAL = 1e-9  # relative: statistics of the same table may differ by rounding errors
_NEXT = 1e-12  # from an AUC of 0 or 1, where the standard error is zero
_MOST_STEPS, _MOST_HALVINGS = 50, 30  # of Newton's method
_CONVERGED = 1e-13  # relative change of the log likelihood
_FLAT = 50.0  # standard error of a standardised coefficient at which the likelihood has no maximum
_WIDEST = 200.0  # difference of two samples' log hazards beyond which the smaller hazard is rounded to zero
_FEW_MISPLACED = 5  # samples of the smaller group on the wrong side, below which DeLong's variance is too uncertain
_LARGE_T = 100.0  # statistic beyond which the noncentral t distribution is approximated


class Result(NamedTuple):
    """A test: its statistic, p-value and effect, with a confidence interval where there is one (NaN otherwise)."""

    statistic: float
    p: float
    effect: float
    low: float = nan
    high: float = nan


UNDEFINED: Final = Result(nan, nan, nan)  # a test that the data do not allow


# Categories


def kruskal_wallis(scores: Floats, levels: Indices) -> Result:
    """Kruskal-Wallis test; the effect is epsilon squared, the share of the variance of ranks between the levels.

    The p-value is exact if samples can be divided into the levels in at most 10,000 ways, such as four and three.
    """
    groups = [scores[levels == level] for level in np.unique(levels)]
    if len(groups) < 2 or np.ptp(scores) == 0:
        return UNDEFINED
    statistic, p = stats.kruskal(*groups)
    sizes = [len(group) for group in groups]
    if scores.size <= _EXACT_BELOW and _n_ways(sizes) <= _FEW_WAYS:
        ranks = stats.rankdata(np.concatenate(groups))
        own = sum(part.sum() ** 2 / part.size for part in np.split(ranks, np.cumsum(sizes)[:-1]))
        p = float(np.mean(_sums_of_ranks(tuple(sorted(ranks.tolist())), tuple(sizes)) >= own * (1 - _EQUAL)))
    return Result(float(statistic), float(p), float(statistic) / (scores.size - 1))


def _n_ways(sizes: Sequence[int]) -> int:
    """The number of ways to divide samples into groups of these sizes.

    >>> _n_ways([4, 3]), _n_ways([2, 2, 2])
    (35, 90)
    """
    return factorial(sum(sizes)) // prod(map(factorial, sizes))


@lru_cache(maxsize=64)
def _sums_of_ranks(ranks: tuple[float, ...], sizes: tuple[int, ...]) -> Floats:
    """The sum over groups of the squared sum of ranks per size, for every way to divide ranks into such groups."""
    if len(sizes) == 1:
        return np.array([sum(ranks) ** 2 / sizes[0]])
    every = range(len(ranks))
    parts = []
    for chosen in combinations(every, sizes[0]):
        own = sum(ranks[at] for at in chosen) ** 2 / sizes[0]
        others = tuple(ranks[at] for at in every if at not in chosen)
        parts.append(own + _sums_of_ranks(others, sizes[1:]))
    return np.concatenate(parts)


def mann_whitney(scores: Floats, inside: Bools) -> Result:
    """Mann-Whitney test of the samples inside a group against all others; the effect is the AUC.

    The AUC is the probability that a sample inside has a higher score than one outside, ties counting one half. The
    p-value is exact if both groups have fewer than 50 samples and no scores are tied; otherwise it is that of the
    normal approximation with corrections for ties and continuity (the default of `wilcox.test` in R).
    """
    own, other = scores[inside], scores[~inside]
    if not own.size or not other.size or np.ptp(scores) == 0:
        return UNDEFINED
    exact = max(own.size, other.size) < _EXACT_BELOW and np.unique(scores).size == scores.size
    statistic, p = stats.mannwhitneyu(own, other, method="exact" if exact else "asymptotic")
    auc = float(statistic) / (own.size * other.size)
    return Result(float(statistic), float(p), auc, *_auc_interval(own, other, auc))


def _auc_interval(own: Floats, other: Floats, auc: float) -> tuple[float, float]:
    """The variance of DeLong on the logit scale, with a t quantile.

    If few samples are misplaced, this variance is often far too small. The interval then includes that of Newcombe
    (2006, method 5), which depends on the AUC and the numbers of samples only.
    """
    low, high = 1.0, 0.0
    if min(own.size, other.size) > 1 and 0 < auc < 1:
        ranks = stats.rankdata(np.concatenate([own, other]))
        above = ranks[: own.size] - stats.rankdata(own), ranks[own.size :] - stats.rankdata(other)
        placed = above[0] / other.size, above[1] / own.size
        parts = [float(np.var(values, ddof=1)) / values.size for values in placed]
        if (variance := sum(parts)) > 0:
            # Degrees of freedom of Satterthwaite, as in the test of Brunner and Munzel (2000).
            df = variance**2 / sum(part**2 / (each.size - 1) for part, each in zip(parts, placed, strict=True))
            half = float(stats.t.ppf((1 + CONFIDENCE) / 2, df)) * sqrt(variance) / (auc * (1 - auc))
            low, high = (float(limit) for limit in expit(logit(auc) + half * np.array([-1.0, 1.0])))
            if min(auc, 1 - auc) * min(own.size, other.size) >= _FEW_MISPLACED:
                return low, high

    def distance(true: float, side: int) -> float:
        """Zero where the observed AUC is 1.96 standard errors of the true one away from it."""
        shape = 1 + ((own.size + other.size) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return side * (auc - true) - Z * sqrt(max(true * (1 - true) * shape / (own.size * other.size), 0.0))

    lower = 0.0 if auc == 0 else float(brentq(distance, 0.0, min(auc, 1 - _NEXT), args=(1,)))
    upper = 1.0 if auc == 1 else float(brentq(distance, max(auc, _NEXT), 1.0, args=(-1,)))
    return min(low, lower), max(high, upper)


def fisher(first: Bools, second: Bools) -> Result:
    """Fisher's exact test of two properties of samples.

    The effect is the conditional maximum likelihood estimate of the odds ratio with its exact confidence interval, as
    of `fisher.test` in R. (`scipy.stats.contingency.odds_ratio` has the same numbers and takes ten times as long.)
    """
    n, n_first, n_second = first.size, int(np.count_nonzero(first)), int(np.count_nonzero(second))
    if n_first in (0, n) or n_second in (0, n):
        return UNDEFINED
    counts = np.arange(max(0, n_first + n_second - n), min(n_first, n_second) + 1)
    observed, last = int(np.count_nonzero(first & second)) - int(counts[0]), counts.size - 1
    logs = np.asarray(stats.hypergeom.logpmf(counts, n, n_first, n_second))
    probabilities = np.exp(logs)
    p = float(np.sum(probabilities[probabilities <= probabilities[observed] * (1 + _SAME)]))

    def ratio_at(excess: Callable[[Floats], float]) -> float:
        """The odds ratio at which an excess, an increasing function of the probabilities of the counts, is zero."""

        def function(log_ratio: float) -> float:
            return excess(np.asarray(softmax(logs + log_ratio * np.arange(counts.size))))

        reach = 1.0
        while function(-reach) > 0 or function(reach) < 0:
            reach *= 2
        return exp(brentq(function, -reach, reach, xtol=1e-13, rtol=1e-13))

    tail = _TAILS[0]
    low = 0.0 if observed == 0 else ratio_at(lambda weights: float(weights[observed:].sum()) - tail)
    high = inf if observed == last else ratio_at(lambda weights: tail - float(weights[: observed + 1].sum()))
    effect = 0.0 if observed == 0 else inf
    if 0 < observed < last:
        effect = ratio_at(lambda weights: float(weights @ np.arange(counts.size)) - observed)
    return Result(effect, min(p, 1.0), effect, low, high)


def chi_squared(table: NDArray[np.int64]) -> tuple[Result, bool]:
    """Chi-squared test of a table of counts, without continuity correction; the effect is Cramer's V.

    If an expected count is below 5, which the second value says, the p-value is that of random tables with the same
    margins (fixed seed).
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape) < 2:
        return UNDEFINED, False
    statistic, chi_squared_p, _, expected = stats.chi2_contingency(table, correction=False)
    p = float(chi_squared_p)
    simulated = bool(expected.min() < _SMALLEST_EXPECTED)
    if simulated:
        tables = stats.random_table(table.sum(axis=1), table.sum(axis=0), seed=0).rvs(MONTE_CARLO)
        others = np.sum((tables - expected) ** 2 / expected, axis=(1, 2))
        p = (int(np.sum(others >= statistic * (1 - _EQUAL))) + 1) / (MONTE_CARLO + 1)
    return Result(float(statistic), p, sqrt(statistic / (table.sum() * (min(table.shape) - 1)))), simulated


# Numbers


class Residuals:
    """Removes a constant and covariates from vectors by linear regression; covariates may be linearly dependent.

    `basis` has orthonormal columns, of which the first is the constant; `rank` is their number.
    """

    def __init__(self, n: int, design: Floats | None = None) -> None:
        centred = np.empty((n, 0)) if design is None else design - design.mean(axis=0)
        sizes = np.linalg.norm(centred, axis=0)
        left, values, _ = np.linalg.svd(centred[:, sizes > 0] / sizes[sizes > 0], full_matrices=False)
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


def pearson(x: Floats, y: Floats, design: Floats | None = None, *, of_ranks: bool = False) -> Result:
    """Pearson correlation with the confidence interval of Fisher's z; partial if there are covariates.

    The variance of z is 1 / (n - 3); of ranks (1 + r^2 / 2) / (n - 3) (Bonett and Wright 2000), and the outer limit is
    moved by the bias of z, r / (n - 1), which matters if few ranks are exchanged.
    """
    removed = Residuals(x.size, design)
    own, other, n = removed(x), removed(y), x.size - removed.rank + 1  # samples, less the covariates
    if n < 3 or not own.any() or not other.any():
        return UNDEFINED
    r = float(np.clip(own @ other / (np.linalg.norm(own) * np.linalg.norm(other)), -1, 1))
    statistic = r * sqrt((n - 2) / (1 - r**2)) if abs(r) < 1 else r * inf
    p = 2 * float(stats.t.sf(abs(statistic), n - 2))
    if n == 3 or abs(r) == 1:
        return Result(statistic, p, r)
    half, bias = Z * sqrt((1 + of_ranks * r**2 / 2) / (n - 3)), of_ranks * r / (n - 1)
    return Result(statistic, p, r, tanh(atanh(r) - half + min(bias, 0)), tanh(atanh(r) + half + max(bias, 0)))


def spearman(x: Floats, y: Floats, design: Floats | None = None) -> Result:
    """Spearman correlation; if there are covariates, the partial correlation of the ranks.

    The p-value is exact for up to nine samples without ties and covariates; otherwise from the t distribution
    (`cor.test` of R with `exact=FALSE`).
    """
    own, other = stats.rankdata(x), stats.rankdata(y)
    found = pearson(own, other, None if design is None else stats.rankdata(design, axis=0), of_ranks=True)
    distinct = all(np.unique(each).size == each.size for each in (own, other))
    if design is None and 2 < x.size <= _EXACT_UP_TO and distinct:
        distances, observed = _rank_distances(x.size), np.sum((own - other) ** 2)
        tail = min(np.mean(distances <= observed), np.mean(distances >= observed))
        return found._replace(p=min(1.0, 2 * float(tail)))
    return found


@lru_cache(maxsize=_EXACT_UP_TO)
def _rank_distances(n: int) -> NDArray[np.int64]:
    """The sum of squared differences of ranks for every permutation."""
    orders = np.array(list(permutations(range(n))))
    return np.asarray(np.sum((orders - np.arange(n)) ** 2, axis=1))


def linear_model(scores: Floats, levels: Indices, design: Floats | None = None) -> Result:
    """F test of the levels of a category in a linear model of the scores with covariates.

    The effect is partial eta squared: the share of the variance that the covariates leave which the levels explain.
    """
    dummies = (levels[:, None] == np.unique(levels)[None, 1:]).astype(np.float64)
    without = Residuals(scores.size, design)
    full = Residuals(scores.size, dummies if design is None else np.column_stack([design, dummies]))
    terms, left = full.rank - without.rank, scores.size - full.rank
    remaining, unexplained = (float(np.sum(removed(scores) ** 2)) for removed in (without, full))
    if terms < 1 or left < 1 or remaining == 0:
        return UNDEFINED
    if unexplained == 0:
        return Result(inf, 0.0, 1.0)
    statistic = (remaining - unexplained) / terms / (unexplained / left)
    return Result(statistic, float(stats.f.sf(statistic, terms, left)), 1 - unexplained / remaining)


def standardised_difference(scores: Floats, inside: Bools, design: Floats | None = None) -> Result:
    """Difference of the scores inside and outside a group in a linear model with covariates, by its t test.

    The effect is the difference in units of the residual standard deviation. As this is estimated as well, the
    confidence interval is that of the parameter of a noncentral t distribution.
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
    p = 2 * float(stats.t.sf(abs(effect / error), left))
    low, high = (limit * error for limit in noncentrality_interval(effect / error, left))
    return Result(effect / error, p, effect, low, high)


def noncentrality_interval(statistic: float, df: int) -> tuple[float, float]:
    """The parameters of the noncentral t distributions that have a t statistic as their upper and lower quantile.

    Beyond a statistic of 100, where the distribution function loses its precision, the limits of mean and standard
    deviation are combined (Zou and Donner 2008), which differs by less than 1 %.
    """
    if statistic < 0:
        low, high = noncentrality_interval(-statistic, df)
        return -high, -low
    ratios = np.sqrt(stats.chi2.ppf(_TAILS, df) / df)
    low, high = (
        statistic + side * np.hypot(statistic * (1 - ratio), Z) for side, ratio in zip((-1, 1), ratios, strict=True)
    )
    if statistic > _LARGE_T:
        return float(low), float(high)

    def limit(start: float, p: float) -> float:
        """Where the distribution function, which falls with the parameter, has the value p."""

        def excess(parameter: float) -> float:
            return float(nctdtr(df, parameter, statistic)) - p

        reach = 1.0
        while not excess(start - reach) > 0 > excess(start + reach):
            reach *= 2
        return float(brentq(excess, start - reach, start + reach, xtol=1e-12, rtol=1e-14))

    return limit(float(low), _TAILS[1]), limit(float(high), _TAILS[0])


# Survival times


def kaplan_meier(times: Floats, events: Bools) -> pd.DataFrame:
    """Share of samples without an event, by time (Kaplan-Meier), with a confidence interval.

    A row per distinct time: `time`, `n_at_risk`, `n_events`, `n_censored`, `survival`, `ci_low`, `ci_high` (of Clopper
    and Pearson, for as many samples as would give Greenwood's variance; NaN where no sample survives).

    Examples
    --------
    >>> import numpy as np
    >>> curve = kaplan_meier(np.array([1.0, 2, 2, 3]), np.array([True, True, False, True]))
    >>> curve["survival"].round(3).tolist(), curve["n_at_risk"].tolist()
    ([0.75, 0.5, 0.0], [4, 3, 1])
    """
    moments, at = np.unique(times, return_inverse=True)
    seen = np.bincount(at, weights=events, minlength=moments.size).astype(np.int64)
    ended = np.bincount(at, minlength=moments.size)
    at_risk = times.size - np.cumsum(ended) + ended
    curve = np.cumprod(1 - seen / np.maximum(at_risk, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(seen / (at_risk * (at_risk - seen)))  # of the logarithm
        n = np.where(curve < 1, (1 - curve) / (curve * greenwood), at_risk)
        low = stats.beta.ppf(_TAILS[0], n * curve, n * (1 - curve) + 1)
        high = np.where(curve < 1, stats.beta.ppf(_TAILS[1], n * curve + 1, n * (1 - curve)), 1.0)
    low, high = (np.where(curve > 0, each, np.nan) for each in (low, high))
    counts = {"time": moments, "n_at_risk": at_risk, "n_events": seen, "n_censored": ended - seen}
    return pd.DataFrame(counts | {"survival": curve, "ci_low": low, "ci_high": high})


def log_rank(times: Floats, events: Bools, inside: Bools) -> Result:
    """Log-rank test of the samples inside and outside a group; it has no effect size."""
    if not events.any() or inside.all() or not inside.any():
        return UNDEFINED
    first, second = (stats.CensoredData.right_censored(times[own], ~events[own]) for own in (inside, ~inside))
    with np.errstate(divide="ignore", invalid="ignore"):  # no event while samples of both groups are at risk
        found = stats.logrank(first, second)
    return Result(found.statistic**2, float(found.pvalue), nan) if np.isfinite(found.statistic) else UNDEFINED


@dataclass(frozen=True)
class CoxModel:
    """A fitted Cox model (Newton's method, ties as of Efron): coefficients of the tested columns, and their tests.

    Attributes
    ----------
    coefficients, covariance : arrays
        Log hazard ratios per unit of each tested column, and their covariance.
    log_likelihood, null_log_likelihood : float
        With and without the tested columns.
    score, wald, likelihood_ratio : float
        Statistics of the tests that all coefficients are 0, chi-squared with `df` degrees of freedom.
    df : int
    converged : bool
        False if the likelihood has no maximum, for example because all events are in one group. Coefficients are then
        infinite, the Wald test is not defined, but the other two tests are.
    """

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    null_log_likelihood: float
    score: float
    wald: float
    likelihood_ratio: float
    df: int
    converged: bool

    def p(self, statistic: float) -> float:
        """The p-value of one of the statistics."""
        return float(stats.chi2.sf(statistic, self.df))

    def hazard_ratio(self, column: int = 0) -> tuple[float, float, float]:
        """Hazard ratio per unit of a column, and its confidence interval; 0 or infinite if there is no maximum."""
        log_ratio, half = self.coefficients[column], Z * np.sqrt(self.covariance[column, column])
        with np.errstate(over="ignore"):
            ratio, low, high = np.exp([log_ratio, log_ratio - half, log_ratio + half])
        return float(ratio), float(low), float(high)


def cox(times: Floats, events: Bools, x: Floats, covariates: Floats | None = None) -> CoxModel | None:
    """Fit a Cox model and test the columns of x, given the covariates.

    Parameters
    ----------
    times : array
        Time until the event or, where none was seen, until the end of the observation.
    events : array of bool
        Whether the event was seen.
    x : array of shape (n_samples,) or (n_samples, n_columns)
    covariates : array of shape (n_samples, n_covariates), optional
        Columns that the model contains but that are not tested; they may be linearly dependent.

    Returns
    -------
    CoxModel or None
        None if nothing can be tested: no events, or a column of x is constant or explained by the covariates.

    Examples
    --------
    >>> import numpy as np
    >>> times, events = np.array([1.0, 2, 3, 4, 5, 6]), np.array([True, True, False, True, True, False])
    >>> model = cox(times, events, np.array([1.0, 0, 1, 1, 0, 0]))
    >>> round(model.hazard_ratio()[0], 4), round(model.p(model.score), 4)
    (2.9243, 0.3636)
    """
    columns = x.reshape(times.size, -1).astype(np.float64)
    removed, df = Residuals(times.size, covariates), columns.shape[1]
    sizes = np.array([np.sqrt(np.mean(removed(column) ** 2)) for column in columns.T])
    if not events.any() or not sizes.all():
        return None
    fixed = removed.basis[:, 1:] * np.sqrt(times.size)
    risks = _RiskSets(times, events, np.column_stack([(columns - columns.mean(axis=0)) / sizes, fixed]))
    null = _maximum(risks, np.zeros(df + fixed.shape[1]), df)
    full = _maximum(risks, null, 0)
    null_likelihood, gradient, information = risks.derivatives(null)
    likelihood, _, curvature = risks.derivatives(full)
    if not np.diag(information)[:df].all():
        return None
    covariance = np.linalg.pinv(curvature, hermitian=True)[:df, :df]
    flat = ~(np.diag(covariance) < _FLAT**2) | (np.diag(curvature)[:df] < 1 / _FLAT**2)
    converged = not flat.any() and np.linalg.matrix_rank(curvature) == full.size
    return CoxModel(
        np.where(flat, np.copysign(np.inf, full[:df]), full[:df] / sizes),
        covariance / np.outer(sizes, sizes) if converged else np.full((df, df), np.nan),
        likelihood,
        null_likelihood,
        score=float(gradient @ np.linalg.pinv(information, hermitian=True) @ gradient),
        wald=float(full[:df] @ np.linalg.solve(covariance, full[:df])) if converged else np.nan,
        likelihood_ratio=2 * (likelihood - null_likelihood),
        df=df,
        converged=bool(converged),
    )


def _maximum(risks: _RiskSets, start: Floats, first: int) -> Floats:
    """The coefficients with the largest likelihood, by Newton's method; those before `first` are not changed."""
    coefficients = start.copy()
    value, gradient, information = risks.derivatives(coefficients)
    for _ in range(_MOST_STEPS if first < start.size else 0):
        step = np.zeros_like(start)
        step[first:] = np.linalg.pinv(information[first:, first:], hermitian=True) @ gradient[first:]
        for _ in range(_MOST_HALVINGS):
            found = risks.derivatives(coefficients + step)
            within = np.ptp(risks.x @ (coefficients + step)) <= _WIDEST
            if within and found[0] >= value - _CONVERGED * (
                1 + abs(value)
            ):  # a last step may be lost in rounding errors
                break
            step /= 2
        else:
            break
        change, (value, gradient, information) = found[0] - value, found
        coefficients = coefficients + step
        if change <= _CONVERGED * (1 + abs(value)):
            break
    return coefficients


class _RiskSets:
    """The partial likelihood: every event is compared with the samples at risk at its time."""

    def __init__(self, times: Floats, events: Bools, x: Floats) -> None:
        order = np.argsort(-times, kind="stable")  # those at risk at a time come before it
        times, events, self.x = times[order], events[order], x[order]
        new_time = np.r_[True, times[1:] != times[:-1]]
        self.last = np.r_[np.flatnonzero(new_time)[1:], times.size]  # one beyond those at risk, by moment
        self.moment = np.cumsum(new_time) - 1
        self.events, self.moments = np.flatnonzero(events), self.moment[events]
        counts = np.bincount(self.moments, minlength=self.last.size)
        # Efron: the k-th of d simultaneous events counts the others of them as partly gone.
        place = np.arange(self.events.size) - np.searchsorted(self.moments, self.moments)
        self.gone = place / counts[self.moments]

    def derivatives(self, coefficients: Floats) -> tuple[float, Floats, Floats]:
        """Log partial likelihood, its gradient, and the information matrix."""
        x, n_moments = self.x, self.last.size
        linear = x @ coefficients
        linear -= linear.max()  # the likelihood depends on differences only
        weights = np.exp(linear)
        weighted = weights[:, None] * np.column_stack([np.ones(len(x)), x])
        at_risk = np.cumsum(weighted, axis=0)[self.last - 1]
        tied = np.zeros((n_moments, weighted.shape[1]))
        np.add.at(tied, self.moments, weighted[self.events])
        totals = at_risk[self.moments] - self.gone[:, None] * tied[self.moments]
        size, mean = totals[:, 0], totals[:, 1:] / totals[:, :1]
        likelihood = float(np.sum(linear[self.events]) - np.sum(np.log(size)))
        gradient = x[self.events].sum(axis=0) - mean.sum(axis=0)
        # For each sample, the sum of 1 / size over the events for which it is at risk: with these, the second moments
        # of all risk sets are summed without an array of one matrix per sample.
        inverse, partly = (
            np.bincount(self.moments, weights=each / size, minlength=n_moments)
            for each in (np.ones(size.size), self.gone)
        )
        shares = np.cumsum(inverse[::-1])[::-1][self.moment]
        shares[self.events] -= partly[self.moments]
        second = x.T @ ((weights * shares)[:, None] * x)
        return likelihood, gradient, second - mean.T @ mean
