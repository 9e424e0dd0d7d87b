"""Groups in one vector of scores: up, down and the bulk, or a gradient without groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from netbic.arrays import Floats, Indices
from netbic.penalties.location_mixture import LocationMixture, fit_location_mixture
from netbic.penalties.ties import spread_ties
from netbic.penalties.unimodal import exponential_power_likelihood, sinh_arcsinh_likelihood

GROUP_GAIN: Final = 10.0  # smallest gain in BIC over one normal group
GROUP_MARGIN: Final = 6.0  # smallest gain in BIC over one group of any other shape
BULK: Final = 1.5  # size of the bulk, wherever it lies, relative to the second largest group
_FEWEST, _SMALLEST_SHARE = 3, 0.02  # scores of a group: fewer are outliers
_SHALLOWEST_VALLEY = 0.9  # of groups of unequal variances: larger ratios are heavy tails of one group
_MOST_SCORES = 5000  # quantiles that stand for the distribution of more scores
_CONSTANT = 1e-9  # spread of scores, relative to their size, that is rounding error


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """The groups of one vector of scores.

    Attributes
    ----------
    labels : ndarray of int
        1 for scores that belong to a group above the bulk, -1 for those of a group below it, 0 for all others. All are
        0 if there are no groups; scores that are NaN have 0.
    means, sizes, boundaries : ndarray
        Location and size of each group, in increasing order, and the scores that separate them. One group, and no
        boundary, if there are no groups.
    probabilities : ndarray of shape (n_scores, n_groups)
        Probability of each group; NaN for scores that are NaN.
    gain : float
        BIC of one normal group minus that of the best mixture; NaN if there are too few scores or if they are equal.
    margin : float
        BIC of one group that is skewed, heavy-tailed or flat, minus that of the best mixture; NaN if the gain is below
        10, or if every mixture has a group that is too small.
    """

    labels: Indices
    means: Floats
    sizes: Indices
    boundaries: Floats
    probabilities: Floats
    gain: float
    margin: float

    @property
    def is_gradient(self) -> bool:
        """Whether there are no groups."""
        return self.means.size < 2

    @property
    def up_above(self) -> float:
        """The score above which scores are up; NaN if none is."""
        first = int(np.argmax(self.directions == 1)) if 1 in self.directions else 0
        return float(self.boundaries[first - 1]) if first else np.nan

    @property
    def down_below(self) -> float:
        """The score up to which scores are down; NaN if none is."""
        n_down = int((self.directions == -1).sum())
        return float(self.boundaries[n_down - 1]) if n_down else np.nan

    @property
    def directions(self) -> Indices:
        """-1, 0 or 1 for each group: below the bulk, the bulk itself, above it."""
        return np.zeros(1, dtype=np.intp) if self.is_gradient else _directions(self.sizes)


def score_groups(scores: Floats) -> ScoreGroups:
    """Find groups in a vector of scores, if there are any.

    Two or three normal distributions with free locations are fitted, with equal and with unequal variances, and the one
    with the best BIC is compared with one group. Groups are accepted if BIC improves by at least 10 over one normal
    distribution, and by at least 6 over one skewed distribution with heavy tails (sinh-arcsinh) and over one with light
    tails (exponential power). A group needs at least three scores and two percent of them. Mixtures with unequal
    variances need a valley between their groups: otherwise they describe the tails of one group. Tied scores are spread
    a little before all this, because they have no density.

    The bulk is the group that is at least one and a half times as large as any other. If there is none, it is the
    middle one of three groups; two groups of similar size have no bulk: one of them is up and the other one down.

    Parameters
    ----------
    scores : array
        Missing scores (NaN) are left out. More than 5,000 scores are represented by 5,000 of their quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> found = score_groups(np.append(generator.normal(-1, 1, 160), generator.normal(5, 1, 40)))
    >>> int((found.labels == 1).sum()), found.sizes.tolist()
    (40, [160, 40])
    >>> score_groups(generator.gamma(2, size=200)).is_gradient
    True
    """
    values = np.asarray(scores, dtype=np.float64)
    observed = ~np.isnan(values)
    seen = values[observed]
    if seen.size < 2 * _FEWEST or not np.ptp(seen) > _CONSTANT * np.abs(seen).max():
        return _one_group(values, np.nan, np.nan)
    middle, spread = float(np.median(seen)), float(seen.std())
    standard = (seen - middle) / spread
    fitted = _at_most(spread_ties(standard), _MOST_SCORES)
    best, large_enough = _best_mixture(fitted, standard)
    criterion = _criterion(best, fitted.size)
    gain = criterion - _normal_criterion(fitted)
    margin = criterion - _unimodal_criterion(fitted) if large_enough and gain >= GROUP_GAIN else np.nan
    if margin >= GROUP_MARGIN:
        return _grouped(values, middle, spread, best, gain, margin)
    return _one_group(values, gain, margin)


def _best_mixture(scores: Floats, with_ties: Floats) -> tuple[LocationMixture, bool]:
    """The best mixture whose groups are large enough, or else the best one; whether its groups are large enough.

    Tied scores belong to one group, so that groups are counted before ties are spread.
    """
    equal = [fit_location_mixture(scores, n_groups, equal_variances=True) for n_groups in (2, 3)]
    unequal = [fit_location_mixture(scores, n_groups, equal_variances=False) for n_groups in (2, 3)]
    separate = equal + [mixture for mixture in unequal if mixture.valley() < _SHALLOWEST_VALLEY]
    fewest = max(_FEWEST, _SMALLEST_SHARE * with_ties.size)
    ranked = sorted(separate, key=lambda mixture: -_criterion(mixture, scores.size))
    large = [mixture for mixture in ranked if _sizes(mixture.boundaries, with_ties).min() >= fewest]
    return (large or ranked)[0], bool(large)


def _sizes(boundaries: Floats, scores: Floats) -> Indices:
    """Numbers of scores between the boundaries."""
    return np.bincount(np.searchsorted(boundaries, scores), minlength=boundaries.size + 1)


def _criterion(mixture: LocationMixture, n_scores: int) -> float:
    """Minus BIC."""
    return 2 * mixture.likelihood - mixture.n_parameters * float(np.log(n_scores))


def _normal_criterion(scores: Floats) -> float:
    """Minus BIC of one normal distribution."""
    return -scores.size * (float(np.log(2 * np.pi * scores.var())) + 1) - 2 * float(np.log(scores.size))


def _unimodal_criterion(scores: Floats) -> float:
    """Minus BIC of the best distribution of one group that is not normal."""
    likelihood = max(sinh_arcsinh_likelihood(scores), exponential_power_likelihood(scores))
    return 2 * likelihood - 4 * float(np.log(scores.size))


def _at_most(scores: Floats, most: int) -> Floats:
    """The scores, or so many of their quantiles if there are more."""
    if scores.size <= most:
        return scores
    return np.quantile(scores, (np.arange(most) + 0.5) / most)


def _grouped(
    scores: Floats, middle: float, spread: float, mixture: LocationMixture, gain: float, margin: float
) -> ScoreGroups:
    """The groups of a mixture that was fitted to (scores - middle) / spread."""
    means, boundaries = middle + spread * mixture.means, middle + spread * mixture.boundaries
    observed = ~np.isnan(scores)
    numbers, sizes = np.searchsorted(boundaries, scores[observed]), _sizes(boundaries, scores[observed])
    labels, probabilities = np.zeros(scores.size, dtype=np.intp), np.full((scores.size, means.size), np.nan)
    labels[observed] = _directions(sizes)[numbers]
    probabilities[observed] = mixture.probabilities((scores[observed] - middle) / spread)
    return ScoreGroups(labels, means, sizes, boundaries, probabilities, gain, margin)


def _directions(sizes: Indices) -> Indices:
    """-1, 0 or 1 for each group: below the bulk, the bulk itself, above it."""
    largest = int(np.argmax(sizes))
    if sizes[largest] >= BULK * np.sort(sizes)[-2]:
        return np.sign(np.arange(sizes.size) - largest)
    return np.array([-1, 1]) if sizes.size == 2 else np.array([-1, 0, 1])


def _one_group(scores: Floats, gain: float, margin: float) -> ScoreGroups:
    observed = scores[~np.isnan(scores)]
    mean = float(observed.mean()) if observed.size else np.nan
    probabilities = np.where(np.isnan(scores), np.nan, 1.0)[:, None]
    labels, sizes = np.zeros(scores.size, dtype=np.intp), np.array([observed.size])
    return ScoreGroups(labels, np.array([mean]), sizes, np.empty(0), probabilities, gain, margin)
