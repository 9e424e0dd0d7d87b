"""The members that a penalty has chosen from one vector of scores, and whether that choice is reliable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import stats

from netbic.arrays import Bools, Floats, Indices

_SATURATED = 0.9  # share of an axis from which on a module is not sparse
_FEWEST = 2
_FAINT = 1.05  # strength below which noise could have made a module: the bound holds on average, heavy tails go beyond
_UNEVEN = 0.3  # unevenness from which on loud entries push quiet members out
_TRUSTED = 0.8  # expected F1 below which a choice of members is not to be relied on


DOUBTS: Final = {
    "saturated": "nearly all {axis}s would be members",
    "collapsed": "hardly any {axis} stands out",
    "faint": "noise alone could reach as much",
    "uneven": "the noise of {axis}s differs too much",
    "overlapping": "members and others overlap",
}


@dataclass(frozen=True, eq=False)
class Choice:
    """What an `AdaptiveSupport` made of one vector of scores.

    Attributes
    ----------
    posterior : ndarray
        Probability of membership, per entry; NaN for entries that do not vary.
    sigma : float
        The weight of the graph that it amounts to (absolute, as in the paper); 0 where the graph was left out.
    noise : float
        Standard deviation of the scores of the others.
    strength : float
        The module's d, in units of what a module of its size could reach if all else in X were noise.
    unevenness : float
        Standard deviation of the logarithm of the entries' noise.
    """

    posterior: Floats
    sigma: float
    noise: float
    strength: float = np.inf
    unevenness: float = 0.0

    def among(self, candidates: Bools) -> Choice:
        """The same choice with entries put in that were no candidates."""
        posterior = np.full(candidates.size, np.nan)
        posterior[candidates] = self.posterior
        return replace(self, posterior=posterior)

    @property
    def support(self) -> Indices:
        """Entries with a posterior above one half; the two likeliest if there are fewer."""
        kept = np.flatnonzero(self.posterior > 0.5)
        if kept.size >= _FEWEST:
            return kept
        likeliest = np.argsort(-self.posterior, kind="stable")[:_FEWEST]
        return np.sort(likeliest[~np.isnan(self.posterior[likeliest])])

    @property
    def expected_f1(self) -> float:
        """The F1 that the posteriors promise: of precision and recall, their harmonic mean."""
        kept = self.support
        total = kept.size + float(np.nansum(self.posterior))
        return 2 * float(np.nansum(self.posterior[kept])) / total if total > 0 else 0.0

    @property
    def doubt(self) -> str:
        """Why the size is not to be relied on: a key of `DOUBTS`, or "" if it is."""
        if self.support.size > _SATURATED * np.count_nonzero(~np.isnan(self.posterior)):
            return "saturated"
        if np.count_nonzero(self.posterior > 0.5) <= _FEWEST:
            return "collapsed"
        if self.strength < _FAINT:
            return "faint"
        if self.unevenness > _UNEVEN:
            return "uneven"
        return "overlapping" if self.expected_f1 < _TRUSTED else ""


def reach_of_noise(size: int, kept: int) -> float:
    """Expected length of the `kept` largest of `size` standard normal numbers.

    The largest u'Zv over unit vectors with k and l non-zero entries, Z standard normal, is at most the sum of the two
    axes' lengths in expectation (Chevet's inequality).

    Examples
    --------
    >>> round(reach_of_noise(100, 100), 6), round(reach_of_noise(100, 1), 1)
    (10.0, 2.9)
    """
    edge = float(stats.norm.isf(kept / (2 * size)))
    return float(np.sqrt(size * (2 * edge * stats.norm.pdf(edge) + kept / size)))
