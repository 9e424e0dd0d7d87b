"""The members that a penalty has chosen from one vector of scores, and whether the choice is reliable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy import stats

from netbic.arrays import Bools, Floats, Indices

_FEWEST = 2  # members at least
_SATURATED = 0.9  # share of an axis above which a module is not sparse
_WEAK = 1.05  # strength below which noise explains a module; above 1, because heavy tails exceed the expected value
_HETEROSCEDASTIC = 0.3  # heteroscedasticity above which noisy entries displace members with little noise
_DENSE = 2.25  # background above which most entries follow a module; planted modules have up to 1.4, tumours 2 to 8
_RELIABLE_F1 = 0.8  # expected F1 below which the choice of members is not reliable

DIAGNOSTICS: Final = {
    "dense": "most {axis}s follow it to some degree",
    "saturated": "nearly all {axis}s would be members",
    "collapsed": "hardly any {axis} stands out",
    "weak": "noise alone could explain it",
    "heteroscedastic": "the noise differs too much between {axis}s",
    "graded": "the weights of {axis}s decrease to zero without a gap",
    "overlapping": "the scores of members and others overlap",
}


@dataclass(frozen=True, eq=False)
class Choice:
    """The members that a penalty such as `AdaptiveSupport` has chosen from one vector of scores.

    Attributes
    ----------
    posterior : ndarray
        Probability of membership of each entry; NaN for entries that do not vary.
    sigma : float
        Weight of the graph (absolute, as in the paper); 0 if the graph is not used.
    noise : float
        Standard deviation of the scores of entries that are not members.
    strength : float
        The d of the module, relative to the largest value expected from noise alone for modules of this size.
    heteroscedasticity : float
        Standard deviation, over entries, of the logarithm of their noise.
    background : float
        How large the scores of others than members are, relative to noise: about 1 unless most entries follow the
        module.
    gradation : float
        Evidence (a difference of log-likelihoods) that the scores of members decrease to zero without a gap; 0 if there
        is a gap, or if this was not examined.
    fallback : bool
        Whether the fallback of the penalty was used, because the size is not reliable. The other attributes describe
        what would have been chosen.
    free_locations : bool
        Whether the members are groups among the scores of all entries. The scores of the others are not zero then.
    """

    posterior: Floats
    sigma: float
    noise: float
    strength: float = np.inf
    heteroscedasticity: float = 0.0
    background: float = 1.0
    gradation: float = 0.0
    fallback: bool = False
    free_locations: bool = False

    def among(self, candidates: Bools) -> Choice:
        """The same choice on the full axis: entries that are not candidates get NaN."""
        posterior = np.full(candidates.size, np.nan)
        posterior[candidates] = self.posterior
        return replace(self, posterior=posterior)

    @property
    def support(self) -> Indices:
        """Entries with a posterior above one half; the two most probable if there are fewer."""
        kept = np.flatnonzero(self.posterior > 0.5)
        if kept.size >= _FEWEST:
            return kept
        most_probable = np.argsort(-self.posterior, kind="stable")[:_FEWEST]
        return np.sort(most_probable[~np.isnan(self.posterior[most_probable])])

    @property
    def expected_f1(self) -> float:
        """F1 (harmonic mean of precision and recall) expected from the posteriors; NaN if these are unknown."""
        if np.isnan(self.posterior).all():
            return np.nan
        kept = self.support
        total = kept.size + float(np.nansum(self.posterior))
        return 2 * float(np.nansum(self.posterior[kept])) / total if total > 0 else 0.0

    @property
    def is_hopeless(self) -> bool:
        """Whether the size cannot be reliable, whichever module of about the same samples is found."""
        return self.diagnostic in ("dense", "heteroscedastic")

    @property
    def diagnostic(self) -> str:
        """Why the size is not reliable, a key of `DIAGNOSTICS`; "" if it is reliable."""
        if self.background > _DENSE:
            return "dense"
        if self.support.size > _SATURATED * np.count_nonzero(~np.isnan(self.posterior)):
            return "saturated"
        if np.count_nonzero(self.posterior > 0.5) <= _FEWEST:
            return "collapsed"
        if self.strength < _WEAK:
            return "weak"
        if self.heteroscedasticity > _HETEROSCEDASTIC:
            return "heteroscedastic"
        if self.gradation > 0:
            return "graded"
        return "overlapping" if self.expected_f1 < _RELIABLE_F1 else ""


def expected_noise_norm(size: int, kept: int) -> float:
    """Expected norm of the `kept` largest of `size` standard normal numbers.

    By Chevet's inequality, the expected maximum of u'Zv over unit vectors with k and l non-zero entries, Z standard
    normal, is at most the sum of the norms of both axes.

    Examples
    --------
    >>> round(expected_noise_norm(100, 100), 6), round(expected_noise_norm(100, 1), 1)
    (10.0, 2.9)
    """
    edge = float(stats.norm.isf(kept / (2 * size)))
    return float(np.sqrt(size * (2 * edge * stats.norm.pdf(edge) + kept / size)))
