"""Mixtures of two or three normal distributions with free locations, fitted to one vector of scores.

Scores of samples are centred, so that neither members nor others have mean zero: unlike in `mixture`, every group has
its own location. Groups have one common variance, or one each. The fit is by expectation-maximisation from several
splits of the sorted scores, all at once; the best ones are then continued to convergence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.optimize import brentq

from netbic.arrays import Array, Floats

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


@dataclass(frozen=True)
class LocationMixture:
    """A fitted mixture, its groups in the order of their locations.

    Attributes
    ----------
    weights, means, variances : ndarray
        One entry per group.
    likelihood : float
        Log-likelihood.
    n_parameters : int
        Number of free parameters, for information criteria.
    """

    weights: Floats
    means: Floats
    variances: Floats
    likelihood: float
    n_parameters: int

    @property
    def boundaries(self) -> Floats:
        """Scores at which two neighbouring groups are equally probable, between their locations.

        Infinite if one of two neighbours is less probable than the other one everywhere between their locations.
        """
        return np.array([self._boundary(left) for left in range(self.means.size - 1)])

    def _boundary(self, left: int) -> float:
        def log_ratio(score: float) -> float:
            return float(self._log_ratio(left, np.array([score]))[0])

        lower, upper = self.means[left : left + 2].tolist()
        if not log_ratio(lower) < 0:
            return -np.inf
        return float(brentq(log_ratio, lower, upper)) if log_ratio(upper) > 0 else np.inf

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
        inside = np.clip(scores, self.means[left], self.means[left + 1])
        logs = _log_densities(inside, *(part[None] for part in self._parameters))[0]
        return np.asarray(logs[left + 1] - logs[left])

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

    def density(self, scores: Floats) -> Floats:
        """Density of the mixture."""
        return np.asarray(np.exp(_log_densities(scores, *(part[None] for part in self._parameters))[0]).sum(axis=0))

    @property
    def _parameters(self) -> _Parameters:
        return _Parameters(self.weights, self.means, self.variances)


class _Parameters(NamedTuple):
    """Parameters of one mixture (a number per group), or of several (a row each)."""

    weights: Floats
    means: Floats
    variances: Floats


def fit_location_mixture(scores: Floats, n_groups: int, *, equal_variances: bool) -> LocationMixture:
    """Fit two or three normal distributions with free locations; the best of several local maxima.

    Parameters
    ----------
    scores : array
        Finite, not all equal.
    n_groups : {2, 3}
    equal_variances : bool
        Whether all groups have the same variance. If not, variances are bounded relative to the pooled one.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> scores = np.append(generator.normal(-2, 1, 140), generator.normal(4, 1, 60))
    >>> found = fit_location_mixture(scores, 2, equal_variances=True)
    >>> found.means.round(1).tolist(), found.weights.round(2).tolist()
    ([-1.9, 3.9], [0.7, 0.3])
    """
    start = _starts(scores, n_groups)
    found, likelihoods = _expectation_maximisation(scores, start, _FIRST_ROUNDS, equal_variances)
    best = np.argsort(-likelihoods, kind="stable")[:_CONTINUED]
    continued = _Parameters(*(part[best] for part in found))
    found, likelihoods = _expectation_maximisation(scores, continued, _ROUNDS, equal_variances)
    chosen = int(np.argmax(likelihoods))
    order = np.argsort(found.means[chosen], kind="stable")
    n_parameters = 2 * n_groups if equal_variances else 3 * n_groups - 1
    weights, means, variances = (part[chosen][order] for part in found)
    return LocationMixture(weights, means, variances, float(likelihoods[chosen]), n_parameters)


def _starts(scores: Floats, n_groups: int) -> _Parameters:
    """Means of the parts of the sorted scores; equal weights and variances."""
    ordered = np.sort(scores)
    means = []
    for shares in _SPLITS[n_groups]:
        cuts = np.clip(np.rint(np.array(shares) * ordered.size).astype(int), 1, ordered.size - 1)
        cuts = np.minimum(np.maximum.accumulate(cuts + np.arange(cuts.size)), ordered.size - 1)
        means.append([float(part.mean()) if part.size else float(ordered[-1]) for part in np.split(ordered, cuts)])
    shape = len(means), n_groups
    variance = float(scores.var()) / n_groups**2
    return _Parameters(np.full(shape, 1 / n_groups), np.array(means), np.full(shape, variance))


def _expectation_maximisation(
    scores: Floats, found: _Parameters, rounds: int, equal_variances: bool
) -> tuple[_Parameters, Floats]:
    """Iterate all starts together until none of their log-likelihoods increases any more."""
    smallest = _SMALLEST_VARIANCE * float(scores.var())
    before = np.full(len(found.means), -np.inf)
    for _ in range(rounds):
        logs = _log_densities(scores, *found)
        largest = logs.max(axis=1)
        posterior = np.exp(logs - largest[:, None])
        totals = posterior.sum(axis=1)
        likelihoods: Floats = (largest + np.log(totals)).sum(axis=1)
        if float(np.max(likelihoods - before)) < _CLOSE:
            break
        before = likelihoods
        following = _maximised(scores, posterior / totals[:, None], equal_variances, smallest)
        found, current = following, found
    else:
        return current, likelihoods
    return found, likelihoods


def _maximised(scores: Floats, posterior: Array, equal_variances: bool, smallest: float) -> _Parameters:
    """Weights, means and variances given the posteriors, with bounds that keep a group from collapsing to a point."""
    counts = np.maximum(posterior.sum(axis=2), 1e-9)
    weights = counts / counts.sum(axis=1, keepdims=True)
    means = posterior @ scores / counts
    variances = np.einsum("skn,skn->sk", posterior, (scores - means[:, :, None]) ** 2) / counts
    pooled = np.maximum((weights * variances).sum(axis=1, keepdims=True), smallest)
    bounds = (pooled, pooled) if equal_variances else (pooled / _LARGEST_RATIO, pooled * _LARGEST_RATIO)
    return _Parameters(weights, means, np.clip(variances, *bounds))


def _log_densities(scores: Floats, weights: Floats, means: Floats, variances: Floats) -> Array:
    """Logarithm of weight times density, by mixture, group and score."""
    constants = np.log(weights) - 0.5 * np.log(2 * np.pi * variances)
    return np.asarray(constants[:, :, None] - (scores - means[:, :, None]) ** 2 / (2 * variances[:, :, None]))
