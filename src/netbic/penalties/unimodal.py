"""Distributions of one group of scores that need not be normal: skewed, with heavy tails or with hardly any.

A mixture of normal distributions fits such scores better than one normal distribution, although there are no groups.
Both families are unimodal for all parameters. Scores should have a standard deviation near 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import minimize

from netbic.arrays import Floats

_ITERATIONS, _TOLERANCE = 100, 1e-7  # relative decrease of the loss at which to stop
_LARGEST = 30.0  # argument of sinh, whose square must not overflow
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))

Bounds = Sequence[tuple[float | None, float | None]]
Loss = Callable[[Floats], tuple[float, Floats]]


def sinh_arcsinh_likelihood(scores: Floats) -> float:
    """Largest log-likelihood of a sinh-arcsinh distribution (Jones and Pewsey 2009).

    Z = sinh(delta arcsinh((x - location) / scale) - epsilon) is standard normal: epsilon skews the distribution, and a
    delta below 1 makes both tails heavier. All four parameters are fitted.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).standard_t(3, 500)
    >>> normal = -scores.size * (np.log(scores.std()) + 0.5 * np.log(2 * np.pi) + 0.5)
    >>> bool(sinh_arcsinh_likelihood(scores) > normal + 20)
    True
    """
    middle, log_scale = float(np.median(scores)), float(np.log(scores.std()))
    bounds: Bounds = [(None, None), (log_scale - 5, log_scale + 5), (-6, 6), (np.log(0.1), np.log(10))]
    starts = [(middle, log_scale, skewness, 0.0) for skewness in (0.0, 0.7, -0.7)]
    return _largest_likelihood(lambda parameters: _sinh_arcsinh_loss(parameters, scores), starts, bounds)


def _sinh_arcsinh_loss(parameters: Floats, scores: Floats) -> tuple[float, Floats]:
    """Minus the log-likelihood, and its gradient by location, log(scale), epsilon and log(delta)."""
    location, log_scale, epsilon, log_delta = parameters.tolist()
    scale, delta = np.exp(log_scale), np.exp(log_delta)
    y = (scores - location) / scale
    angle, radius = np.arcsinh(y), 1 + y * y
    argument = np.clip(delta * angle - epsilon, -_LARGEST, _LARGEST)
    sinh, cosh = np.sinh(argument), np.cosh(argument)
    logs = np.log(cosh) - 0.5 * np.log(radius) - 0.5 * sinh * sinh
    loss = -float(logs.sum()) + scores.size * (_HALF_LOG_2PI + log_scale - log_delta)
    by_argument = np.tanh(argument) - sinh * cosh
    by_y = by_argument * delta / np.sqrt(radius) - y / radius
    gradient = by_y.sum() / scale, scores.size + by_y @ y, by_argument.sum(), -scores.size - delta * by_argument @ angle
    return loss, np.array(gradient)


def exponential_power_likelihood(scores: Floats) -> float:
    """Largest log-likelihood of an asymmetric exponential power distribution.

    The density is proportional to exp(-(|x - mode| / scale)^power), with a scale for each side of the mode. The power
    is 1 for the Laplace and 2 for the normal distribution; large powers approach the uniform distribution, whose
    tails are lighter than those of any sinh-arcsinh distribution.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).uniform(-2, 2, 500)
    >>> bool(exponential_power_likelihood(scores) > sinh_arcsinh_likelihood(scores) + 10)
    True
    """
    deviation, lowest, highest = float(scores.std()), float(scores.min()), float(scores.max())
    width = (highest - lowest) / 2
    modes = [float(np.median(scores)), (lowest + highest) / 2, *np.quantile(scores, [0.2, 0.8]).tolist()]
    scales = [(1.4 * deviation, 1.4 * deviation), (width, width), (deviation / 2, 2 * deviation)]
    scales.append(scales[-1][::-1])
    powers = (2.0, 6.0, 2.0, 2.0)
    starts = [(m, np.log(s[0]), np.log(s[1]), np.log(p)) for m, s, p in zip(modes, scales, powers, strict=True)]
    of_scale = np.log(deviation) - 4, np.log(deviation) + 4
    bounds: Bounds = [(lowest, highest), of_scale, of_scale, (0.0, np.log(30))]
    return _largest_likelihood(lambda parameters: _exponential_power_loss(parameters, scores), starts, bounds)


def _exponential_power_loss(parameters: Floats, scores: Floats) -> tuple[float, Floats]:
    """Minus the log-likelihood, and its gradient by mode, both log(scale) and log(power)."""
    mode, power = float(parameters[0]), float(np.exp(parameters[3]))
    scale, n = np.exp(parameters[1:3]), scores.size
    right = scores >= mode
    own_scale = scale[right.astype(int)]
    ratio = np.maximum(np.abs(scores - mode) / own_scale, 1e-12)
    log_ratio = np.log(ratio)
    cost = np.exp(np.minimum(power * log_ratio, 500.0))
    loss = n * (np.log(scale.sum()) + special.gammaln(1 + 1 / power)) + cost.sum()
    by_mode = power * np.sum(np.where(right, -1.0, 1.0) * cost / (ratio * own_scale))
    by_scale = n * scale / scale.sum() - power * np.array([cost[~right].sum(), cost[right].sum()])
    by_power = power * (cost @ log_ratio) - n * special.digamma(1 + 1 / power) / power
    return float(loss), np.array([by_mode, *by_scale, by_power])


def _largest_likelihood(loss: Loss, starts: Iterable[tuple[float, ...]], bounds: Bounds) -> float:
    """The best of several local maxima."""
    limits = {"maxiter": _ITERATIONS, "ftol": _TOLERANCE}
    options: Any = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": limits}
    found = (minimize(loss, np.array(start), **options) for start in starts)
    return -min(float(result.fun) for result in found)
