r"""A mixture model of scores: members and others.

    z ~ (1 - pi) N(0, g^2) + pi (1/2) [N(m, g^2 + t^2) + N(-m, g^2 + t^2)],        logit pi = a + b x,

where x is the product of the graph term with the current members. A posterior above one half is the rule
|z| + sigma x > level of the paper, with sigma = b g^2 / m. The model is fitted by expectation-maximisation from several
splits of the scores; the fit with the largest likelihood is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from netbic.arrays import Floats

_SPLITS = (0.15, 0.5, 0.75)  # shares of members at the start
_ROUNDS, _CLOSE = 60, 1e-4  # maximal number, and the increase of the log-likelihood at which to stop
_PRIOR = 40.0  # number of observations that the prior of t is worth; its mean is m / 6
_RIDGE = 0.5  # on b in units of x's standard deviation: b would diverge if x separates the members


class Mixture(NamedTuple):
    """A fitted mixture: the posterior of membership, log-likelihood, m, g^2 and b."""

    posterior: Floats
    likelihood: float
    mean: float
    noise: float
    slope: float


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
    splits = [_from_split(z / scale, x, share) for share in _SPLITS]
    best = max(splits, key=lambda mixture: mixture.likelihood)
    return best._replace(mean=scale * best.mean, noise=scale**2 * best.noise)


def _from_split(z: Floats, x: Floats | None, share: float) -> Mixture:
    """Expectation-maximisation from the largest `share` of the scores as members."""
    members, others = np.split(-np.sort(-np.abs(z)), [max(2, int(share * z.size))])
    squares, spread = z * z, 1.0 if x is None else float(x.std())
    guide = None if x is None else (x - x.mean()) / spread
    m = float(members.mean())
    g2 = max(float((others**2).mean()), 1e-4 * m * m)
    t2 = max(float(members.var()) - g2, 0.01 * m * m)
    a = b = 0.0
    before = -np.inf
    for _ in range(_ROUNDS):
        r, signed, likelihood = _expect(z, squares, m, g2, t2, a if guide is None else a + b * guide)
        m, g2, t2 = _moments(r, signed, squares)
        a, b = (_intercept(r), 0.0) if guide is None else _logistic_step(r, guide, a, b)
        if likelihood - before < _CLOSE:
            break
        before = likelihood
    return Mixture(r, likelihood, m, g2, b / spread)


def _expect(
    z: Floats, squares: Floats, m: float, g2: float, t2: float, eta: Floats | float
) -> tuple[Floats, Floats, float]:
    """Posterior r, expected scores of members with their sign, and the log-likelihood."""
    variance = g2 + t2
    other = -0.5 * (squares / g2 + np.log(2 * np.pi * g2))
    slope = m / variance
    ratio = _log_cosh(slope * z) - 0.5 * ((squares + m * m) / variance + np.log(2 * np.pi * variance)) - other + eta
    r = special.expit(ratio)
    # log(1 - pi) + log(other) + log(1 + exp(ratio)), where -log(1 - r) = log(1 + exp(ratio))
    others = float(np.logaddexp(0, eta) if isinstance(eta, float) else np.mean(np.logaddexp(0, eta)))  # -log(1 - pi)
    likelihood = float(np.add.reduce(other + np.logaddexp(0, ratio))) - z.size * others
    return r, z * np.tanh(slope * z), likelihood


def _log_cosh(x: Floats) -> Floats:
    size = np.abs(x)
    cosh: Floats = size + np.log1p(np.exp(-2 * size)) - np.log(2)
    return cosh


def _moments(r: Floats, signed: Floats, squares: Floats) -> tuple[float, float, float]:
    """m, g^2 and t^2 given the posterior, with lower bounds that keep a group from collapsing to a point."""
    rest, total = 1 - r, float(r @ signed)
    inside, outside = float(np.add.reduce(r)), max(float(np.add.reduce(rest)), 1e-12)
    m = max(total / max(inside, 1e-12), 1e-6)
    variance = (float(r @ squares) - 2 * m * total) / max(inside, 1e-12) + m * m
    g2 = max(float(rest @ squares) / outside, 1e-3 * m * m)
    t2 = max((inside * (variance - g2) + _PRIOR * (m / 6) ** 2) / (inside + _PRIOR), 1e-4 * m * m)
    return m, g2, t2


def _intercept(r: Floats) -> float:
    share = min(max(float(np.add.reduce(r)) / r.size, 1e-3), 1 - 1e-3)
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
