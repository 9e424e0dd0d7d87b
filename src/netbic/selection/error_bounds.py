"""Bounds on the expected number of false selections in stability selection with complementary pairs.

The data are split into B pairs of disjoint halves; in each half, q of p candidates are selected on average. A candidate
is stable if it is selected in at least a share tau of the 2B halves. A stable candidate is false if a fit to half the
data selects it with a probability of at most q/p, no more often than at random. The bounds are those of Shah and
Samworth (2013), J. R. Stat. Soc. B 75, 55-80, under different assumptions.

`stability` uses them for frequencies given that a module is found: B is then the number of pairs of which both halves
find it, and q is divided by the share of halves that find it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from netbic.arrays import Array, Floats, check_choice
from netbic.estimators import is_number

ASSUMPTIONS: Final = ("none", "unimodal", "r-concave")
_ROUNDING = 1e-9  # a threshold that differs from a multiple of 1 / (2B) only by rounding is that multiple
_LOGS = (-25.0, 25.0)  # log scale range of the location of an r-concave distribution


def expected_false(threshold: float, q: float, p: int, n_pairs: int, assumption: str = "unimodal") -> float:
    """Bound the expected number of stable candidates that are selected no more often than at random.

    Parameters
    ----------
    threshold : float
        Above 0.5, at most 1.
    q : float
        Candidates selected per half, on average.
    p : int
        Candidates.
    n_pairs : int
        Pairs of halves, B.
    assumption : {"none", "unimodal", "r-concave"}
        On the distribution of the share of pairs in which both halves select a candidate: none; unimodal; r-concave
        with r = -1/2 (and r = -1/4 for the share of halves). Each bound is the smallest of its own and those under
        weaker assumptions.

    Examples
    --------
    >>> from netbic.selection import expected_false
    >>> [round(expected_false(0.8, 20, 88, 50, assumption), 3) for assumption in ("none", "unimodal", "r-concave")]
    [7.576, 3.743, 1.143]
    """
    check_choice("assumption", assumption, ASSUMPTIONS)
    if not (is_number(threshold) and 0.5 < threshold <= 1):
        raise ValueError(f"threshold={threshold!r}: a share of the halves above 0.5 and at most 1 is needed")
    if not 0 <= q <= p:
        raise ValueError(f"q={q} of p={p} candidates: q must lie between 0 and p")
    # Frequencies are multiples of 1 / (2B): a threshold between two of them is the larger one.
    halves = int(np.ceil(2 * n_pairs * threshold - _ROUNDING))
    bounds = [_worst_case(halves, q, p, n_pairs), q * 2 * n_pairs / halves]
    if assumption != "none":
        bounds.append(_unimodal(halves, q, p, n_pairs))
    if assumption == "r-concave":
        bounds.append(_r_concave(halves, q, p, n_pairs))
    return float(min(bounds))


def threshold_for(max_false: float, q: float, p: int, n_pairs: int, assumption: str = "unimodal") -> float:
    """The smallest threshold at which `expected_false` is at most `max_false`; infinite if there is none.

    Examples
    --------
    >>> from netbic.selection import threshold_for
    >>> threshold_for(1.0, 20, 400, 50), threshold_for(1.0, 120, 400, 50)
    (0.76, inf)
    """
    lowest, highest = n_pairs + 1, 2 * n_pairs + 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        if expected_false(middle / (2 * n_pairs), q, p, n_pairs, assumption) <= max_false:
            highest = middle
        else:
            lowest = middle + 1
    return lowest / (2 * n_pairs) if lowest <= 2 * n_pairs else np.inf


def pcer_threshold(pcer: float, q: float, p: int) -> float:
    """The threshold that bounds the per-comparison error rate E(V) / p; infinite if there is none.

    It solves Meinshausen and Buehlmann's bound E(V) <= q^2 / ((2 tau - 1) p) for tau with E(V) = pcer * p, as in s4vd
    (Sill et al. 2011).

    Examples
    --------
    >>> from netbic.selection import pcer_threshold
    >>> round(pcer_threshold(0.05, 20, 100), 3)
    0.9
    """
    if not (is_number(pcer) and 0 < pcer <= 1):
        raise ValueError(f"pcer={pcer!r}: a rate above 0 and at most 1 is needed")
    threshold = (1 + (q / p) ** 2 / pcer) / 2
    return threshold if threshold <= 1 else np.inf


def _worst_case(halves: int, q: float, p: int, n_pairs: int) -> float:
    """Theorem 1: both halves select a candidate with probability at most (q/p)^2, in 2 tau - 1 of the pairs."""
    return q**2 / p / (halves / n_pairs - 1)


def _unimodal(halves: int, q: float, p: int, n_pairs: int) -> float:
    """Theorem 2: Markov's inequality, sharpened for unimodal distributions on 0, 1/B, ..., 1; infinite if not valid."""
    mean, tail = (q / p) ** 2, halves / n_pairs - 1
    if mean > 1 / 3 or tail <= min(2 * mean, 1 / (2 * n_pairs) + 1.5 * mean):
        return np.inf
    if tail <= 0.5:
        return q**2 / p / (2 * tail - 1 / n_pairs)
    return q**2 / p * 2 * (1 - tail + 1 / n_pairs) / (1 + 1 / n_pairs)


def _r_concave(halves: int, q: float, p: int, n_pairs: int) -> float:
    """The smaller tail of two r-concave distributions, of the shares of pairs and of halves, times p."""
    both = r_concave_tail((q / p) ** 2 * n_pairs, halves - n_pairs, n_pairs, 2)
    return p * min(both, r_concave_tail(q / p * 2 * n_pairs, halves, 2 * n_pairs, 4))


@lru_cache(maxsize=4096)
def r_concave_tail(mean: float, at_least: int, highest: int, power: int) -> float:
    """The largest P(N >= `at_least`) of (-1 / `power`)-concave distributions on 0 ... `highest` with this mean.

    The extreme distributions are proportional to (a + i)^-power up to some k and have the remaining mass at k + 1 (Shah
    and Samworth, Appendix A.4): given k and the mean, a is the one free parameter. 1 if the tail starts within twice
    the mean.
    """
    if at_least <= 2 * mean:
        return 1.0
    if mean <= 0:
        return 0.0
    support = np.arange(highest + 1)
    best = 0.0
    upper = _LOGS[1] if at_least - 1 <= 2 * mean else _location(mean, support[:at_least], power)
    for last in range(at_least, highest + 1):
        lower = _location(mean, support[: last + 1], power)
        found = minimize_scalar(
            lambda log_a, last=last: -_tail(log_a, mean, support[: last + 1], at_least, power),
            bounds=(lower, upper), method="bounded", options={"xatol": 1e-6},
        )  # fmt: skip
        ends = (_tail(end, mean, support[: last + 1], at_least, power) for end in (lower, upper))
        best = max(best, -float(found.fun), *ends)
        upper = lower
    return best


def _location(mean: float, support: Array, power: int) -> float:
    """The log a at which the distribution (a + i)^-power on these values has this mean."""

    def excess(log_a: float) -> float:
        weights = _weights(log_a, support, power)
        return float(support @ weights / weights.sum()) - mean

    return float(brentq(excess, *_LOGS)) if excess(_LOGS[1]) > 0 else _LOGS[1]


def _tail(log_a: float, mean: float, support: Array, at_least: int, power: int) -> float:
    """P(N >= at_least), with the mass at the last value that gives the mean."""
    weights = _weights(log_a, support, power)
    weights[-1] = max(float((mean - support[:-1]) @ weights[:-1]) / (support[-1] - mean), 0.0)
    return float(weights[at_least:].sum() / weights.sum())


def _weights(log_a: float, support: Array, power: int) -> Floats:
    """The distribution up to a factor, 1 at 0."""
    return np.asarray((1 + support * np.exp(-log_a)) ** -float(power))
