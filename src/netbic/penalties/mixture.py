r"""A mixture model of scores: members and others.

    z ~ (1 - pi) N(0, g^2) + pi (1/2) [N(m, g^2 + t^2) + N(-m, g^2 + t^2)],        logit pi = a + b x,

where x is the product of the graph term with the current members. A posterior above one half is the rule
|z| + sigma x > level of the paper, with sigma = b g^2 / m. The model is fitted by expectation-maximisation from several
splits of the scores; the fit with the largest likelihood is kept. Many scores are fitted in groups of similar size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from netbic.arrays import Floats

_SPLITS = (0.15, 0.5, 0.75)  # shares of members at the start
_SMALL_SPLITS = (0.005, 0.03, 0.15, 0.5)  # of many scores
_ROUNDS, _CLOSE = 60, 1e-4  # maximal number, and the increase of the log-likelihood at which to stop
_TRIAL = 8  # rounds after which only the best two splits of many scores are continued
_PRIOR = 40.0  # number of observations that the prior of t is worth; its mean is m / 6
_RIDGE = 0.5  # on b in units of x's standard deviation: b would diverge if x separates the members
_MANY = 1500  # scores from which on they are grouped (without x)
_SINGLE, _GROUPS = 300, 500  # largest scores that are not grouped, and number of groups of the others


class Mixture(NamedTuple):
    """A fitted mixture: the posterior of membership, log-likelihood, m, g^2, b, t^2 and a (of the centred x)."""

    posterior: Floats
    likelihood: float
    mean: float
    noise: float
    slope: float
    spread: float = 0.0
    intercept: float = 0.0


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
    (39, 4.9)
    """
    largest = float(np.abs(z).max(initial=0.0))
    if largest > 0 and not 1e-140 < largest < 1e140:  # squares would overflow or underflow
        found = fit_mixture(z / largest, x)
        return found._replace(mean=largest * found.mean, noise=largest * (largest * found.noise))
    scale = float(np.sqrt(np.mean(z * z)))
    if not scale > 0:
        return Mixture(np.zeros_like(z), 0.0, 0.0, 0.0, 0.0)
    z = z / scale
    if x is None and z.size >= _MANY:
        best = _of_many(z)
    else:
        scores = Scores(np.abs(z), z * z, np.ones(z.size))
        splits = [_maximise(scores, x, _split(scores, share)) for share in _SPLITS]
        best = max(splits, key=lambda mixture: mixture.likelihood)
    # The likelihood stays that of z / scale: it is compared between fits of the same scores only.
    return best._replace(mean=scale * best.mean, noise=scale**2 * best.noise, spread=scale**2 * best.spread)


def _of_many(z: Floats) -> Mixture:
    """The mixture of many scores, fitted in groups; only the most promising splits are followed to the end."""
    scores = grouped(z)
    trials = [_maximise(scores, None, _split(scores, share), _TRIAL) for share in _SMALL_SPLITS]
    promising = sorted(trials, key=lambda mixture: -mixture.likelihood)[:2]
    best = max((_maximise(scores, None, trial) for trial in promising), key=lambda mixture: mixture.likelihood)
    ratio = _log_ratio(np.abs(z), z * z, best.mean, best.noise, best.spread)[0] + best.intercept
    return best._replace(posterior=special.expit(ratio))


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


def _maximise(scores: Scores, x: Floats | None, start: Mixture, n_rounds: int = _ROUNDS) -> Mixture:
    """Expectation-maximisation from the parameters of a start."""
    spread = 1.0 if x is None else float(x.std())
    guide = None if x is None else (x - x.mean()) / spread
    m, g2, t2, a, b = start.mean, start.noise, start.spread, start.intercept, 0.0
    before = -np.inf
    for _ in range(n_rounds):
        r, signed, likelihood = _expect(scores, m, g2, t2, a if guide is None else a + b * guide)
        m, g2, t2 = _moments(r, signed, scores)
        a, b = (_intercept(r, scores.counts), 0.0) if guide is None else _logistic_step(r, guide, a, b)
        if likelihood - before < _CLOSE:
            break
        before = likelihood
    return Mixture(r, likelihood, m, g2, b / spread, t2, a)


def _split(scores: Scores, share: float) -> Mixture:
    """A start: the largest `share` of the scores as members."""
    order = np.argsort(-scores.size, kind="stable")
    sizes, counts = scores.size[order], scores.counts[order]
    n_members = max(2, int(share * float(np.add.reduce(counts))))
    inside = int(np.searchsorted(np.cumsum(counts), n_members, side="left")) + 1
    w, rest = counts[:inside], counts[inside:]
    m = float(w @ sizes[:inside] / np.add.reduce(w))
    g2 = max(float(rest @ sizes[inside:] ** 2) / max(float(np.add.reduce(rest)), 1.0), 1e-4 * m * m)
    t2 = max(float(w @ (sizes[:inside] - m) ** 2 / np.add.reduce(w)) - g2, 0.01 * m * m)
    return Mixture(scores.counts, -np.inf, m, g2, 0.0, t2)


def _expect(scores: Scores, m: float, g2: float, t2: float, eta: Floats | float) -> tuple[Floats, Floats, float]:
    """Posterior r, expected scores of members with their sign, and the log-likelihood."""
    ratio, other = _log_ratio(scores.size, scores.squares, m, g2, t2)
    ratio = ratio + eta
    r = special.expit(ratio)
    # log(1 - pi) + log(other) + log(1 + exp(ratio)), where -log(1 - r) = log(1 + exp(ratio))
    total = float(np.add.reduce(scores.counts))
    others = float(np.logaddexp(0, eta) if isinstance(eta, float) else np.mean(np.logaddexp(0, eta)))  # -log(1 - pi)
    likelihood = float(scores.counts @ (other + np.logaddexp(0, ratio))) - total * others
    return r, scores.size * np.tanh(m / (g2 + t2) * scores.size), likelihood


def _log_ratio(sizes: Floats, squares: Floats, m: float, g2: float, t2: float) -> tuple[Floats, Floats]:
    """Logarithm of the ratio of the densities of members and others, and of the density of others."""
    variance = g2 + t2
    other = -0.5 * (squares / g2 + np.log(2 * np.pi * g2))
    inside = _log_cosh(m / variance * sizes) - 0.5 * ((squares + m * m) / variance + np.log(2 * np.pi * variance))
    return inside - other, other


def _log_cosh(x: Floats) -> Floats:
    size = np.abs(x)
    cosh: Floats = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return cosh


def _moments(r: Floats, signed: Floats, scores: Scores) -> tuple[float, float, float]:
    """m, g^2 and t^2 given the posterior, with lower bounds that keep a group from collapsing to a point."""
    inner, outer = r * scores.counts, (1 - r) * scores.counts
    total = float(inner @ signed)
    inside, outside = float(np.add.reduce(inner)), max(float(np.add.reduce(outer)), 1e-12)
    m = max(total / max(inside, 1e-12), 1e-6)
    variance = (float(inner @ scores.squares) - 2 * m * total) / max(inside, 1e-12) + m * m
    g2 = max(float(outer @ scores.squares) / outside, 1e-3 * m * m)
    t2 = max((inside * (variance - g2) + _PRIOR * (m / 6) ** 2) / (inside + _PRIOR), 1e-4 * m * m)
    return m, g2, t2


def _intercept(r: Floats, counts: Floats) -> float:
    share = min(max(float(r @ counts) / float(np.add.reduce(counts)), 1e-3), 1 - 1e-3)
    return float(np.log(share / (1 - share)))


def _logistic_step(r: Floats, x: Floats, a: float, b: float) -> tuple[float, float]:
    """Two damped Newton steps for logit P = a + b x, with a ridge on b."""
    for _ in range(2):
        p = special.expit(a + b * x)
        w = p * (1 - p) + 1e-6
        mixed, missed = w @ x, r - p
        curvature = np.array([[np.add.reduce(w), mixed], [mixed, w @ (x * x) + _RIDGE]])
        steps = np.linalg.solve(curvature, np.array([np.add.reduce(missed), missed @ x - _RIDGE * b])).tolist()
        a, b = (min(max(old + min(max(step, -1.0), 1.0), -12.0), 12.0) for old, step in zip((a, b), steps, strict=True))
    return a, b
