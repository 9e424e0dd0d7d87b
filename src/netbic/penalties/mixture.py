r"""A mixture model of scores: members and others.

    z ~ (1 - pi) N(0, g^2) + pi (1/2) [N(m, g^2 + t^2) + N(-m, g^2 + t^2)],        logit pi = a + b x,

where x is the product of the graph term with the current members. A posterior above one half is the rule
|z| + sigma x > level of the paper, with sigma = b g^2 / m. The model is fitted by expectation-maximisation (EM) from
several splits of the scores; the fit with the largest likelihood is kept. EM is slow where members and others overlap,
so its steps are extrapolated (SQUAREM; Varadhan and Roland 2008), which takes less than half of the time. Many scores
are fitted in groups of similar size.
"""

from __future__ import annotations

from math import exp, log, pi
from typing import Final, NamedTuple

import numpy as np

from netbic.arrays import Floats

_SPLITS = (0.15, 0.5, 0.75)  # shares of members at the start
_SMALL_SPLITS = (0.005, 0.03, 0.15, 0.5)  # of many scores
_STEPS, _CLOSE = 60, 1e-4  # maximal number, and the increase of the log-likelihood at which to stop
_TRIAL, _PROMISING = 8, 2  # steps after which only the best splits are continued, and their number
_FARTHEST = 64.0  # extrapolation, in units of a step
_EXTREME = 30.0  # largest absolute logarithm of m, g^2 and t^2 (of scores with unit mean square) after it
_PRIOR = 40.0  # number of observations that the prior of t is worth; its mean is m / 6
_RIDGE = 0.5  # on b in units of x's standard deviation: b would diverge if x separates the members
_STEEPEST = 12.0  # largest abs(a) and abs(b)
_MANY = 1500  # scores from which on they are grouped (without x)
_SINGLE, _GROUPS = 300, 500  # largest scores that are not grouped, and number of groups of the others
_LOG_2: Final = log(2)


class Mixture(NamedTuple):
    """A fitted mixture: the posterior of membership, log-likelihood, m, g^2 and b."""

    posterior: Floats
    likelihood: float
    mean: float
    noise: float
    slope: float


class Scores(NamedTuple):
    """Magnitudes of scores, their squares, and how many scores each stands for."""

    size: Floats
    squares: Floats
    counts: Floats


def fit_mixture(z: Floats, x: Floats | None) -> Mixture:
    """Fit the mixture; the best of several local maxima.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> z = np.append(generator.normal(5, 1, 40), generator.normal(0, 1, 60))
    >>> found = fit_mixture(z, None)
    >>> int((found.posterior > 0.5).sum()), round(found.mean, 1)
    (40, 4.8)
    """
    largest = float(np.abs(z).max(initial=0.0))
    if largest > 0 and not 1e-140 < largest < 1e140:  # squares would overflow or underflow
        found = fit_mixture(z / largest, x)
        return found._replace(mean=largest * found.mean, noise=largest * (largest * found.noise))
    scale = float(np.sqrt(np.mean(z * z)))
    if not scale > 0:
        return Mixture(np.zeros_like(z), 0.0, 0.0, 0.0, 0.0)
    sizes = np.abs(z / scale)
    every = Scores(sizes, sizes * sizes, np.ones(z.size))
    many = x is None and z.size >= _MANY
    spread = 1.0 if x is None else float(x.std())
    guide = None if x is None else (x - x.mean()) / spread
    best = _Likelihood(grouped(sizes) if many else every, guide).maximised(_SMALL_SPLITS if many else _SPLITS)
    posterior = _Likelihood(every, guide).at(best.parameters).posterior if many else best.posterior
    m, g2, _, _, b = best.parameters
    # The likelihood stays that of z / scale: it is compared between fits of the same scores only.
    return Mixture(posterior, best.likelihood, scale * m, scale**2 * g2, b / spread)


def grouped(z: Floats) -> Scores:
    """Scores in groups of similar magnitude; the largest ones are not grouped.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).standard_normal(20_000)
    >>> scores = grouped(z)
    >>> scores.size.size, bool(np.isclose(scores.counts @ scores.squares, z @ z))
    (800, True)
    """
    descending = -np.sort(-np.abs(z))
    singles = min(_SINGLE, z.size)
    steps = np.linspace(singles, z.size, min(_GROUPS, z.size - singles), endpoint=False).astype(np.intp)
    first = np.append(np.arange(singles), steps)
    counts = np.diff(np.append(first, z.size)).astype(np.float64)
    sums, squares = np.add.reduceat(descending, first), np.add.reduceat(descending**2, first)
    return Scores(sums / counts, squares / counts, counts)


class _Parameters(NamedTuple):
    """The parameters of a mixture; a and b refer to the standardised x."""

    m: float
    g2: float
    t2: float
    a: float
    b: float

    def coordinates(self) -> Floats:
        """Without bounds, for extrapolation."""
        return np.array([log(self.m), log(self.g2), log(self.t2), self.a, self.b])

    @classmethod
    def bounded(cls, m: float, g2: float, t2: float, a: float, b: float) -> _Parameters:
        """Within bounds that keep a group from collapsing to a point, and the probabilities from 0 and 1."""
        a, b = (min(max(value, -_STEEPEST), _STEEPEST) for value in (a, b))
        return cls(m, max(g2, 1e-3 * m * m), max(t2, 1e-4 * m * m), a, b)


class _Point(NamedTuple):
    """Parameters, and what is expected at them.

    Attributes
    ----------
    posterior : array
        Probability of membership of each score.
    signed : array
        Expected score of a member, with its sign.
    prior : array or None
        Probability of membership given x alone.
    """

    parameters: _Parameters
    likelihood: float
    posterior: Floats
    signed: Floats
    prior: Floats | None


class _Climb(NamedTuple):
    """The last point of some steps, and the most likely one."""

    last: _Point
    best: _Point


class _Likelihood:
    """The likelihood of scores, and the steps that increase it."""

    def __init__(self, scores: Scores, x: Floats | None) -> None:
        self._scores, self._x = scores, x
        self._squared_x = None if x is None else x * x
        self._total = float(np.add.reduce(scores.counts))

    def maximised(self, splits: tuple[float, ...]) -> _Point:
        """The best point from several splits; only the most promising ones are continued to the end."""
        trials = [self._climbed(self._split(share), _TRIAL) for share in splits]
        promising = sorted(trials, key=lambda climb: -climb.best.likelihood)[:_PROMISING]
        further = [self._climbed(climb.last, _STEPS) for climb in promising]
        return max((climb.best for climb in (*further, *promising)), key=lambda point: point.likelihood)

    def _split(self, share: float) -> _Point:
        """A start: the largest `share` of the scores as members."""
        scores = self._scores
        order = np.argsort(-scores.size, kind="stable")
        sizes, counts = scores.size[order], scores.counts[order]
        n_members = max(2, int(share * self._total))
        inside = int(np.searchsorted(np.cumsum(counts), n_members, side="left")) + 1
        w, rest = counts[:inside], counts[inside:]
        m = float(w @ sizes[:inside] / np.add.reduce(w))
        g2 = max(float(rest @ sizes[inside:] ** 2) / max(float(np.add.reduce(rest)), 1.0), 1e-4 * m * m)
        t2 = max(float(w @ (sizes[:inside] - m) ** 2 / np.add.reduce(w)) - g2, 0.01 * m * m)
        return self.at(_Parameters(m, g2, t2, 0.0, 0.0))

    def _climbed(self, point: _Point, n_steps: int) -> _Climb:
        """Cycles of two steps of EM, extrapolated if the likelihood allows it.

        The steps themselves may decrease the likelihood, because of the prior of t and the ridge on b: the last point
        need not be the best.
        """
        best = point
        for _ in range(n_steps // 2):
            one = self.at(self._step(point))
            two = self._step(one)
            point = self.at(_extrapolated(point.parameters, one.parameters, two))
            if point.likelihood < one.likelihood:
                point = self.at(two)
            before, best = best, max(best, one, point, key=lambda each: each.likelihood)
            if best.likelihood - before.likelihood < _CLOSE:
                break
        return _Climb(point, best)

    def at(self, parameters: _Parameters) -> _Point:
        """What is expected at some parameters (the E step)."""
        m, g2, t2, a, b = parameters
        size, squares, counts = self._scores
        variance = g2 + t2
        exponent = (m / variance) * size
        decay = np.exp(-2 * exponent)
        ratio = exponent + np.log1p(decay)  # log(2 cosh); then the ratio of the densities of members and others
        ratio += (0.5 / g2 - 0.5 / variance) * squares
        ratio += 0.5 * (log(g2 / variance) - m * m / variance) - _LOG_2
        if self._x is None:
            prior, others = None, self._total * float(np.logaddexp(0, a))
            ratio += a
        else:
            eta = a + b * self._x
            prior, softplus = _expit(eta)
            others = float(np.add.reduce(softplus))  # -log(1 - pi)
            ratio += eta
        posterior, softplus = _expit(ratio)
        softplus -= (0.5 / g2) * squares
        likelihood = float(counts @ softplus) - others - 0.5 * self._total * log(2 * pi * g2)
        return _Point(parameters, likelihood, posterior, size * ((1 - decay) / (1 + decay)), prior)

    def _step(self, point: _Point) -> _Parameters:
        """The parameters after a step of EM (the M step)."""
        return _Parameters.bounded(*self._moments(point), *self._logistic(point))

    def _moments(self, point: _Point) -> tuple[float, float, float]:
        """m, g^2 and t^2 given the posterior."""
        inner, squares = point.posterior * self._scores.counts, self._scores.squares
        outer = self._scores.counts - inner
        total = float(inner @ point.signed)
        inside, outside = max(float(np.add.reduce(inner)), 1e-12), max(float(np.add.reduce(outer)), 1e-12)
        m = max(total / inside, 1e-6)
        variance = (float(inner @ squares) - 2 * m * total) / inside + m * m
        g2 = max(float(outer @ squares) / outside, 1e-3 * m * m)
        return m, g2, (inside * (variance - g2) + _PRIOR * (m / 6) ** 2) / (inside + _PRIOR)

    def _logistic(self, point: _Point) -> tuple[float, float]:
        """a and b given the posterior: a damped Newton step for logit P = a + b x, with a ridge on b."""
        x, p, (_, _, _, a, b) = self._x, point.prior, point.parameters
        if x is None or p is None or self._squared_x is None:
            share = min(max(float(point.posterior @ self._scores.counts) / self._total, 1e-3), 1 - 1e-3)
            return log(share / (1 - share)), 0.0
        w, missed = p * (1 - p) + 1e-6, point.posterior - p
        first, mixed, second = float(np.add.reduce(w)), float(w @ x), float(w @ self._squared_x) + _RIDGE
        of_a, of_b = float(np.add.reduce(missed)), float(missed @ x) - _RIDGE * b
        steps = np.array([second * of_a - mixed * of_b, first * of_b - mixed * of_a]) / (first * second - mixed**2)
        of_a, of_b = np.clip(steps, -1.0, 1.0).tolist()
        return a + of_a, b + of_b


def _extrapolated(zero: _Parameters, one: _Parameters, two: _Parameters) -> _Parameters:
    """Beyond two steps of EM, in the direction in which they become shorter."""
    start, first, second = (parameters.coordinates() for parameters in (zero, one, two))
    step, change = first - start, second - 2 * first + start
    length = min(float(np.sqrt(step @ step)) / max(float(np.sqrt(change @ change)), 1e-300), _FARTHEST)
    if length <= 1:
        return two
    far = np.clip(start + 2 * length * step + length**2 * change, -_EXTREME, _EXTREME)
    m, g2, t2, a, b = far.tolist()
    return _Parameters.bounded(exp(m), exp(g2), exp(t2), a, b)


def _expit(x: Floats) -> tuple[Floats, Floats]:
    """1 / (1 + exp(-x)) and log(1 + exp(x)), from one exponential."""
    decay = np.exp(-np.abs(x))
    softplus: Floats = np.maximum(x, 0) + np.log1p(decay)
    return np.where(x >= 0, 1.0, decay) / (1 + decay), softplus
