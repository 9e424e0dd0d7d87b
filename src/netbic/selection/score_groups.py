"""Groups in one vector of scores: up, down and the bulk, or a gradient without groups.

Two or three normal distributions with free locations are compared with one group of any shape:

- *Groups*: scores of samples are centred, so that neither members nor others have mean zero; every group has its own
  location. Groups have one common variance, or one each. The fit is by expectation-maximisation from several splits of
  the sorted scores, all at once; the best ones are then continued to convergence.
- *One group that need not be normal*: skewed, with heavy tails or with hardly any. A mixture of normal distributions
  fits such scores better than one normal distribution, although there are no groups. Both families used here are
  unimodal for all parameters.
- *Tied scores*, such as those of all samples without a count of the module's genes: a point has no density, so a
  distribution with a narrow peak at tied scores, and heavy tails for all others, has a larger likelihood than any
  groups. Rounded scores, on the other hand, look like as many groups as there are values. So tied scores are spread
  evenly around their value before distributions are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from scipy import special
from scipy.optimize import brentq, minimize

from netbic.arrays import Array, Floats, Indices

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
        return _directions(self.sizes)


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
    fitted = spread_ties(standard)
    if fitted.size > _MOST_SCORES:
        fitted = np.quantile(fitted, (np.arange(_MOST_SCORES) + 0.5) / _MOST_SCORES)
    equal = [fit_location_mixture(fitted, n_groups, equal_variances=True) for n_groups in (2, 3)]
    unequal = [fit_location_mixture(fitted, n_groups, equal_variances=False) for n_groups in (2, 3)]
    separate = equal + [mixture for mixture in unequal if mixture.valley() < _SHALLOWEST_VALLEY]
    log_size = float(np.log(fitted.size))
    ranked = sorted(separate, key=lambda mixture: -mixture.criterion(log_size))
    # Tied scores belong to one group, so that groups are counted before ties are spread.
    fewest = max(_FEWEST, _SMALLEST_SHARE * standard.size)
    large = [mixture for mixture in ranked if _sizes(mixture.boundaries, standard).min() >= fewest]
    best = (large or ranked)[0]
    normal = -fitted.size * (float(np.log(2 * np.pi * fitted.var())) + 1) - 2 * log_size
    gain, margin = best.criterion(log_size) - normal, np.nan
    if large and gain >= GROUP_GAIN:
        one_group = max(sinh_arcsinh_likelihood(fitted), exponential_power_likelihood(fitted))
        margin = best.criterion(log_size) - (2 * one_group - 4 * log_size)
    if not margin >= GROUP_MARGIN:
        return _one_group(values, gain, margin)
    means, boundaries = middle + spread * best.means, middle + spread * best.boundaries
    sizes = _sizes(boundaries, seen)
    labels, probabilities = np.zeros(values.size, dtype=np.intp), np.full((values.size, means.size), np.nan)
    labels[observed] = _directions(sizes)[np.searchsorted(boundaries, seen)]
    probabilities[observed] = best.probabilities(standard)
    return ScoreGroups(labels, means, sizes, boundaries, probabilities, gain, margin)


def _sizes(boundaries: Floats, scores: Floats) -> Indices:
    """Numbers of scores between the boundaries."""
    return np.bincount(np.searchsorted(boundaries, scores), minlength=boundaries.size + 1)


def _directions(sizes: Indices) -> Indices:
    largest = int(np.argmax(sizes))
    if sizes.size == 1 or sizes[largest] >= BULK * np.sort(sizes)[-2]:
        return np.sign(np.arange(sizes.size) - largest)
    return np.array([-1, 1]) if sizes.size == 2 else np.array([-1, 0, 1])


def _one_group(scores: Floats, gain: float, margin: float) -> ScoreGroups:
    observed = scores[~np.isnan(scores)]
    mean = float(observed.mean()) if observed.size else np.nan
    probabilities = np.where(np.isnan(scores), np.nan, 1.0)[:, None]
    labels, sizes = np.zeros(scores.size, dtype=np.intp), np.array([observed.size])
    return ScoreGroups(labels, np.array([mean]), sizes, np.empty(0), probabilities, gain, margin)


# --- Mixtures with free locations ---

# Shares of the sorted scores at which the groups of a start are split.
_SPLITS = {
    2: ((0.05,), (0.15,), (0.35,), (0.5,), (0.65,), (0.85,), (0.95,)),
    3: ((0.33, 0.67), (0.1, 0.9), (0.05, 0.6), (0.4, 0.95), (0.6, 0.9), (0.1, 0.4), (0.25, 0.75)),
}
_FIRST_ROUNDS, _ROUNDS, _CLOSE = 15, 200, 1e-3  # before starts are compared, in all, and the increase at which to stop
_CONTINUED = 2  # starts that are continued
_LARGEST_RATIO = 9.0  # of a group's variance to the pooled one: a group must not fit a few equal scores, or all of them
_SMALLEST_VARIANCE = 1e-4  # pooled, relative to that of all scores
_GRID = 101  # points between two locations at which the density is compared

_Parameters = tuple[Floats, Floats, Floats]  # weights, means and variances of several mixtures, a row each


@dataclass(frozen=True)
class LocationMixture:
    """A fitted mixture, its groups in the order of their locations."""

    weights: Floats
    means: Floats
    variances: Floats
    likelihood: float  # its logarithm
    n_parameters: int  # that are free

    def criterion(self, log_size: float) -> float:
        """Minus BIC, given the logarithm of the number of scores."""
        return 2 * self.likelihood - self.n_parameters * log_size

    @property
    def boundaries(self) -> Floats:
        """Scores at which two neighbouring groups are equally probable, between their locations.

        Infinite if one of two neighbours is less probable than the other one everywhere between their locations.
        """
        found = []
        for left, (lower, upper) in enumerate(pairwise(self.means.tolist())):

            def log_ratio(score: float, left: int = left) -> float:
                return float(self._log_ratio(left, np.array([score]))[0])

            if not log_ratio(lower) < 0:
                found.append(-np.inf)
            else:
                found.append(float(brentq(log_ratio, lower, upper)) if log_ratio(upper) > 0 else np.inf)
        return np.array(found)

    def probabilities(self, scores: Floats) -> Floats:
        """Probability of each group (in columns) for each score; monotone in the score.

        Between two locations the ratio of two normal densities is monotone, whatever their variances. Beyond the
        outermost locations it is kept at its last value: scores there belong to the outermost groups, even if the other
        group has the larger variance.
        """
        above = [special.expit(self._log_ratio(left, scores)) for left in range(self.means.size - 1)]
        decreasing = np.minimum.accumulate([np.ones(scores.size), *above, np.zeros(scores.size)])
        return np.asarray(-np.diff(decreasing, axis=0).T)

    def _log_ratio(self, left: int, scores: Floats) -> Floats:
        """Logarithm of the ratio of the densities of a group and the one below it, between their locations."""
        logs = self._log_densities(np.clip(scores, self.means[left], self.means[left + 1]))
        return np.asarray(logs[left + 1] - logs[left])

    def density(self, scores: Floats) -> Floats:
        """Density of the mixture."""
        return np.asarray(np.exp(self._log_densities(scores)).sum(axis=0))

    def _log_densities(self, scores: Floats) -> Array:
        return np.asarray(_log_densities(scores, self.weights[None], self.means[None], self.variances[None])[0])

    def valley(self) -> float:
        """Density in the valley between two neighbouring groups, relative to the lower peak; 1 if there is none.

        For three groups, the larger one of the two.
        """
        ratios = []
        for left in range(self.means.size - 1):
            density = self.density(np.linspace(self.means[left], self.means[left + 1], _GRID))
            lowest = int(np.argmin(density))
            ratios.append(density[lowest] / min(density[: lowest + 1].max(), density[lowest:].max()))
        return float(max(ratios))


def fit_location_mixture(scores: Floats, n_groups: int, *, equal_variances: bool) -> LocationMixture:
    """Fit two or three normal distributions with free locations; the best of several local maxima.

    Variances that need not be equal are bounded relative to the pooled one.
    """
    # Starts: means of the parts of the sorted scores; equal weights and variances
    ordered, starts = np.sort(scores), []
    for shares in _SPLITS[n_groups]:
        cuts = np.clip(np.rint(np.array(shares) * ordered.size).astype(int), 1, ordered.size - 1)
        cuts = np.minimum(np.maximum.accumulate(cuts + np.arange(cuts.size)), ordered.size - 1)
        starts.append([float(part.mean()) if part.size else float(ordered[-1]) for part in np.split(ordered, cuts)])
    shape, variance = (len(starts), n_groups), float(scores.var()) / n_groups**2
    found: _Parameters = np.full(shape, 1 / n_groups), np.array(starts), np.full(shape, variance)
    found, likelihoods = _expectation_maximisation(scores, found, _FIRST_ROUNDS, equal_variances)
    best = np.argsort(-likelihoods, kind="stable")[:_CONTINUED]
    weights, means, variances = (part[best] for part in found)
    found, likelihoods = _expectation_maximisation(scores, (weights, means, variances), _ROUNDS, equal_variances)
    chosen = int(np.argmax(likelihoods))
    order = np.argsort(found[1][chosen], kind="stable")
    n_parameters = 2 * n_groups if equal_variances else 3 * n_groups - 1
    weights, means, variances = (part[chosen][order] for part in found)
    return LocationMixture(weights, means, variances, float(likelihoods[chosen]), n_parameters)


def _expectation_maximisation(
    scores: Floats, found: _Parameters, rounds: int, equal_variances: bool
) -> tuple[_Parameters, Floats]:
    """Iterate all starts together until none of their log-likelihoods increases any more."""
    smallest = _SMALLEST_VARIANCE * float(scores.var())
    before = np.full(len(found[1]), -np.inf)
    for _ in range(rounds):
        weights, means, variances = found
        squares = np.square(scores - means[:, :, None])
        logs = squares * (-0.5 / variances)[:, :, None]
        logs += (np.log(weights) - 0.5 * np.log(2 * np.pi * variances))[:, :, None]
        largest = logs.max(axis=1)
        posterior = np.exp(np.subtract(logs, largest[:, None], out=logs), out=logs)
        totals = posterior.sum(axis=1)
        likelihoods: Floats = (largest + np.log(totals)).sum(axis=1)
        if (likelihoods - before).max() < _CLOSE:
            break
        before, current = likelihoods, found
        posterior /= totals[:, None]
        counts = np.maximum(posterior.sum(axis=2), 1e-9)
        weights = counts / counts.sum(axis=1, keepdims=True)
        moved = posterior @ scores / counts
        # Around the means before, whose squares are known, the mean square is larger by the square of the movement.
        variances = np.einsum("skn,skn->sk", posterior, squares) / counts - np.square(moved - means)
        # Bounds keep a group from collapsing to a point.
        pooled = np.maximum((weights * variances).sum(axis=1, keepdims=True), smallest)
        lower, upper = (pooled, pooled) if equal_variances else (pooled / _LARGEST_RATIO, pooled * _LARGEST_RATIO)
        found = weights, moved, np.minimum(np.maximum(variances, lower), upper)
    else:
        return current, likelihoods
    return found, likelihoods


def _log_densities(scores: Floats, weights: Floats, means: Floats, variances: Floats) -> Array:
    """Logarithm of weight times density, by mixture, group and score."""
    constants = np.log(weights) - 0.5 * np.log(2 * np.pi * variances)
    return np.asarray(constants[:, :, None] - (scores - means[:, :, None]) ** 2 / (2 * variances[:, :, None]))


# --- One group that need not be normal ---

_ITERATIONS, _TOLERANCE = 100, 1e-7  # relative decrease of the loss at which to stop
_LARGEST = 30.0  # argument of sinh, whose square must not overflow
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))

Bounds = Sequence[tuple[float | None, float | None]]
Loss = Callable[[Floats], tuple[float, Floats]]


def sinh_arcsinh_likelihood(scores: Floats) -> float:
    """Largest log-likelihood of a sinh-arcsinh distribution (Jones and Pewsey 2009).

    Z = sinh(delta arcsinh((x - location) / scale) - epsilon) is standard normal: epsilon skews the distribution, and a
    delta below 1 makes both tails heavier. All four parameters are fitted.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood, and its gradient by location, log(scale), epsilon and log(delta)."""
        location, log_scale, epsilon, log_delta = parameters.tolist()
        scale, delta = np.exp(log_scale), np.exp(log_delta)
        y = (scores - location) / scale
        angle, radius = np.arcsinh(y), 1 + y * y
        argument = np.clip(delta * angle - epsilon, -_LARGEST, _LARGEST)
        sinh, cosh = np.sinh(argument), np.cosh(argument)
        logs = np.log(cosh) - 0.5 * np.log(radius) - 0.5 * sinh * sinh
        value = -float(logs.sum()) + scores.size * (_HALF_LOG_2PI + log_scale - log_delta)
        by_argument = np.tanh(argument) - sinh * cosh
        by_y = by_argument * delta / np.sqrt(radius) - y / radius
        by_delta = -scores.size - delta * by_argument @ angle
        return value, np.array([by_y.sum() / scale, scores.size + by_y @ y, by_argument.sum(), by_delta])

    middle, log_scale = float(np.median(scores)), float(np.log(scores.std()))
    bounds: Bounds = [(None, None), (log_scale - 5, log_scale + 5), (-6, 6), (np.log(0.1), np.log(10))]
    return _largest_likelihood(loss, [(middle, log_scale, skewness, 0.0) for skewness in (0.0, 0.7, -0.7)], bounds)


def exponential_power_likelihood(scores: Floats) -> float:
    """Largest log-likelihood of an asymmetric exponential power distribution.

    The density is proportional to exp(-(|x - mode| / scale)^power), with a scale for each side of the mode. The power
    is 1 for the Laplace and 2 for the normal distribution; large powers approach the uniform distribution, whose
    tails are lighter than those of any sinh-arcsinh distribution.
    """

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """Minus the log-likelihood, and its gradient by mode, both log(scale) and log(power)."""
        mode, power = float(parameters[0]), float(np.exp(parameters[3]))
        scale, n = np.exp(parameters[1:3]), scores.size
        right = scores >= mode
        own_scale = scale[right.astype(int)]
        ratio = np.maximum(np.abs(scores - mode) / own_scale, 1e-12)
        log_ratio = np.log(ratio)
        cost = np.exp(np.minimum(power * log_ratio, 500.0))
        value = n * (np.log(scale.sum()) + special.gammaln(1 + 1 / power)) + cost.sum()
        by_mode = power * np.sum(np.where(right, -1.0, 1.0) * cost / (ratio * own_scale))
        by_scale = n * scale / scale.sum() - power * np.array([cost[~right].sum(), cost[right].sum()])
        by_power = power * (cost @ log_ratio) - n * special.digamma(1 + 1 / power) / power
        return float(value), np.array([by_mode, *by_scale, by_power])

    deviation, lowest, highest = float(scores.std()), float(scores.min()), float(scores.max())
    width = (highest - lowest) / 2
    modes = [float(np.median(scores)), (lowest + highest) / 2, *np.quantile(scores, [0.2, 0.8]).tolist()]
    scales = [(1.4 * deviation, 1.4 * deviation), (width, width), (deviation / 2, 2 * deviation)]
    scales.append(scales[-1][::-1])
    powers = (2.0, 6.0, 2.0, 2.0)
    starts = [(m, np.log(s[0]), np.log(s[1]), np.log(p)) for m, s, p in zip(modes, scales, powers, strict=True)]
    of_scale = np.log(deviation) - 4, np.log(deviation) + 4
    bounds: Bounds = [(lowest, highest), of_scale, of_scale, (0.0, np.log(30))]
    return _largest_likelihood(loss, starts, bounds)


def _largest_likelihood(loss: Loss, starts: Iterable[tuple[float, ...]], bounds: Bounds) -> float:
    """The best of several local maxima."""
    limits = {"maxiter": _ITERATIONS, "ftol": _TOLERANCE}
    options: Any = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": limits}
    found = (minimize(loss, np.array(start), **options) for start in starts)
    return -min(float(result.fun) for result in found)


# --- Tied scores ---

WIDTHS: Final = (0.02, 0.6)  # smallest and largest distance by which tied scores are moved, in standard deviations
_BY_CHANCE = 3.0  # typical distances between scores by which the next one of a decreasing density may be away


def spread_ties(scores: Floats) -> Floats:
    """Spread tied scores evenly, up to half the distance to the next score; other scores are not changed.

    Next to tied scores the distance is that of rounded scores. Next to a score that is not tied, the part of the
    distance that can be due to chance does not count: three times the typical distance between scores on that side.
    The standard deviation of the scores is near 1.

    >>> spread_ties(np.array([-1.0, 0.0, 0.0, 0.5, 1.0, 1.0])).tolist()
    [-1.0, -0.01, 0.01, 0.5, 0.99, 1.01]
    >>> spread_ties(np.array([0.0, 1.0, 1.0, 0.0])).tolist()
    [-0.25, 0.75, 1.25, 0.25]
    """
    values, numbers, counts = np.unique(scores, return_inverse=True, return_counts=True)
    if counts.max() == 1:
        return scores
    distances = np.minimum(_distances(values, counts), _distances(-values[::-1], counts[::-1])[::-1])
    width = np.clip(distances / 2, *WIDTHS)[numbers]
    order = np.argsort(numbers, kind="stable")
    ranks = np.empty(scores.size)
    ranks[order] = np.arange(scores.size) - np.repeat(np.cumsum(counts) - counts, counts)
    moved: Floats = scores + width * (2 * (ranks + 0.5) / counts[numbers] - 1)
    return np.where(counts[numbers] > 1, moved, scores)


def _distances(values: Floats, counts: Indices) -> Floats:
    """Distance of each value to the next larger one, without the part that can be due to chance."""
    up_to = np.cumsum(counts)
    above = up_to[-1] - up_to
    middle = np.minimum(np.searchsorted(up_to, up_to + above / 2), values.size - 1)  # median of the scores above
    typical = (values[middle] - values) / np.maximum(above / 2, 1)
    next_is_tied = np.append(counts[1:], 2) > 1
    return np.append(np.diff(values), np.inf) - np.where(next_is_tied, 0.0, _BY_CHANCE * typical)
