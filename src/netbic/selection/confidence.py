"""Confidence in each feature of a module: how surely its correlation with the module is no chance.

For every feature of the data there is a correlation with the score of the module in samples not used (kME). Most
features do not belong to the module, so that the bulk of all features shows what chance and the structure of the data
give. The confidence is one minus the local false discovery rate of these correlations.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfc
from sklearn.isotonic import isotonic_regression

from netbic.arrays import Bools, Floats

_MAD = 1.4826  # a standard deviation in units of the median absolute value of normal numbers
_TINY = 1e-300
_UNRELATED = 5  # p-values of 1 that are added to those of a set
_QUANTILE = 0.8  # of the number of features that exceed a value by chance


def confidence(z: Floats, members: Bools, smallest: float = 1.0) -> Floats:
    """One minus the local false discovery rate of every feature, from Fisher's z of its correlation with the module.

    Without correlation, z is normal with the standard deviation of the bulk of all features that are not `members`, and
    at least the `smallest` one that it has if features are independent. The
    rate is the ratio of the density of p-values without correlation (1) to their estimated density, which is assumed to
    decrease (Grenander's estimator: the slope of the least concave majorant of their distribution function).

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).standard_normal(1000) * 0.7
    >>> z[:20] += 5
    >>> found = confidence(z, np.arange(1000) < 20, smallest=0.7)
    >>> bool(found[:20].min() > 0.9), bool(found[20:].mean() < 0.1)
    (True, True)
    """
    bulk = np.abs(z[~members])
    spread = max(smallest, _MAD * float(np.median(bulk)) if bulk.size else 0.0)
    return _one_minus_rates(erfc(np.abs(z) / (spread * np.sqrt(2))))


def confidence_in_set(z: Floats, members: Bools) -> Floats:
    """One minus the local false discovery rate of every member of a set that was given; 0 for other features.

    The question is which members follow the score more than other features do, so that the p-value of a member is the
    share of other features whose correlation is as large. A few p-values of 1 are added: small sets need more evidence.

    Examples
    --------
    >>> import numpy as np
    >>> z = 3 * np.random.default_rng(0).standard_normal(1000)  # many features follow the score
    >>> z[:20] += 20
    >>> found = confidence_in_set(z, np.arange(1000) < 40)
    >>> bool(found[:20].min() > 0.9), bool(found[20:40].mean() < 0.2), bool(found[40:].any())
    (True, True, False)
    """
    others, found = np.sort(np.abs(z[~members])), np.zeros(z.size)
    p_values = 1 - np.searchsorted(others, np.abs(z[members])) / (others.size + 1)
    found[members] = _one_minus_rates(np.append(p_values, np.ones(_UNRELATED)))[: p_values.size]
    return found


def confidence_by_chance(z: Floats, by_chance: Floats) -> Floats:
    """One minus the local false discovery rate of every feature, if it is known what z is by chance, a row for each.

    By chance, correlated features have large values of z together. So the number of features that exceed a value is
    compared with the 80 % quantile (and at least the mean) of this number by chance.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> z, by_chance = random.standard_normal(1000), random.standard_normal((99, 1000))
    >>> bool(confidence_by_chance(z, by_chance).mean() < 0.01)
    True
    >>> z[:20] += 5
    >>> found = confidence_by_chance(z, by_chance)
    >>> bool(found[:20].mean() > 0.9), bool(found[20:].mean() < 0.1)
    (True, True)
    """
    sizes = np.abs(z)
    exceeding = np.array([z.size - np.searchsorted(np.sort(own), sizes) for own in np.abs(by_chance)], dtype=np.float64)
    at_most = np.maximum(np.quantile(exceeding, _QUANTILE, axis=0, method="higher"), exceeding.mean(axis=0))
    return _one_minus_rates(np.maximum(at_most, 1 / (1 + len(by_chance))) / z.size)


def _one_minus_rates(p_values: Floats) -> Floats:
    """By Grenander's estimator of the density of p-values."""
    p_values = np.maximum(p_values, _TINY)
    order, n = np.argsort(p_values, kind="stable"), p_values.size
    gaps = np.maximum(np.diff(p_values[order], prepend=0.0), _TINY)
    # Each p-value is a step of 1 / n of the distribution function; the last gap, up to 1, has none.
    gaps = np.append(gaps, max(1 - float(p_values.max()), _TINY))
    steps = np.append(np.full(n, 1 / n), 0.0) / gaps
    density = isotonic_regression(steps, sample_weight=gaps, increasing=False)[:n]
    rates = np.empty(n)
    rates[order] = np.minimum(1 / np.maximum(density, _TINY), 1.0)
    return np.asarray(1 - rates)
