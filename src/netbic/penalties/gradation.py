r"""Whether the scores of members are separated from those of the others, or decrease gradually to zero.

The mixture of members around +-m and others around 0 (`netbic.penalties.mixture`) has a gap between both. It is
compared with two mixtures of as many others and members without a gap: members from N(0, t^2) or uniform on [-b, b],
each with the noise of the others. If one of them explains the scores, the weights of members decrease to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special

from netbic.arrays import Floats
from netbic.penalties.mixture import Scores, fit_mixture, grouped

_Density = Callable[[Scores, float, float], Floats]

_OPTIONS: Any = {"maxiter": 400, "fatol": 0.02, "xatol": 5e-3}
_ALLOWANCES = (1.0, -2.0)  # log-likelihood by which a gap has to be better than normal and than uniform members
_CLEAR_F1 = 0.9  # expected F1 from which on members are found although there is no gap


def evidence_of_gradation(z: Floats) -> float:
    """Log-likelihood of the better mixture without a gap, minus that with a gap; 0 if a gap explains the scores.

    A gap has to be more likely than normal members by 1, because these are the special case m = 0 of the mixture;
    uniform members have to be more likely than a gap by 2, because their range resembles members with unequal weights.
    It is also 0 if weights decrease without a gap, but are so large that nearly all members stand out from noise.

    Parameters
    ----------
    z : array
        Scores.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> others = generator.standard_normal(1000)
    >>> evidence_of_gradation(np.append(generator.normal(6, 1, 50), others))
    0.0
    >>> bool(evidence_of_gradation(np.append(generator.normal(0, 6, 100), others)) > 0)
    True
    """
    fitted = fit_mixture(z, None)
    scale = float(np.sqrt(np.mean(z * z)))
    members = float(fitted.posterior.sum())
    if not (0 < scale < np.inf and 0 < members < z.size):
        return 0.0
    width = float(np.sqrt(3 * (fitted.posterior @ (z * z)) / members)) / scale
    scores, noise = grouped(z / scale), float(np.sqrt(fitted.noise)) / scale
    fits = [_fit(scores, density, noise, width, members / z.size) for density in (_normal, _uniform)]
    evidence, f1 = max(
        (fit.likelihood - fitted.likelihood + allowance, fit.expected_f1)
        for fit, allowance in zip(fits, _ALLOWANCES, strict=True)
    )
    return evidence if evidence > 0 and f1 < _CLEAR_F1 else 0.0


class _Graded(NamedTuple):
    """A mixture without a gap: its log-likelihood, and the F1 expected of its members."""

    likelihood: float
    expected_f1: float


def _fit(scores: Scores, density: _Density, noise: float, width: float, share: float) -> _Graded:
    """The most likely mixture in which members have this density; the other arguments are a start."""

    def densities(parameters: Floats) -> tuple[Floats, Floats]:
        g, width = np.exp(np.clip(parameters[:2], -12, 12))
        others = special.log_expit(-parameters[2]) - 0.5 * (scores.squares / g**2) - np.log(g * np.sqrt(2 * np.pi))
        return others, special.log_expit(parameters[2]) + density(scores, g, width)

    def loss(parameters: Floats) -> float:
        return -float(scores.counts @ np.logaddexp(*densities(parameters)))

    starts = [
        np.array([np.log(noise), np.log(width), special.logit(start)])
        for start in (share, min(2 * share, 0.5 + share / 2))
    ]
    fits = (optimize.minimize(loss, start, method="Nelder-Mead", options=_OPTIONS) for start in starts)
    best = min(fits, key=lambda fit: float(fit.fun))
    others, members = densities(best.x)
    posterior = special.expit(members - others)
    kept = scores.counts * (posterior > 0.5)
    total = float(np.add.reduce(kept) + scores.counts @ posterior)
    return _Graded(-float(best.fun), 2 * float(kept @ posterior) / total)


def _normal(scores: Scores, noise: float, width: float) -> Floats:
    """Logarithm of the density of N(0, width^2 / 3) with noise; a uniform distribution has the same variance."""
    variance = noise**2 + width**2 / 3
    log_density: Floats = -0.5 * (scores.squares / variance + np.log(2 * np.pi * variance))
    return log_density


def _uniform(scores: Scores, noise: float, width: float) -> Floats:
    """Logarithm of the density of a uniform distribution on [-width, width] with noise."""
    below = special.ndtr((scores.size + width) / noise) - special.ndtr((scores.size - width) / noise)
    log_density: Floats = np.log(np.maximum(below, 1e-300) / (2 * width))
    return log_density
