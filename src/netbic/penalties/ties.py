"""Tied scores, such as those of all samples without a count of the module's genes.

A point has no density: a distribution with a narrow peak at tied scores, and heavy tails for all others, has a larger
likelihood than any groups. Rounded scores, on the other hand, look like as many groups as there are values. So tied
scores are spread evenly around their value before distributions are fitted.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from netbic.arrays import Floats, Indices

WIDTHS: Final = (0.02, 0.6)  # smallest and largest distance by which tied scores are moved, in standard deviations
_BY_CHANCE = 3.0  # typical distances between scores by which the next one of a decreasing density may be away


def spread_ties(scores: Floats) -> Floats:
    """Spread tied scores evenly, up to half the distance to the next score; other scores are not changed.

    Next to tied scores the distance is that of rounded scores. Next to a score that is not tied, the part of the
    distance that can be due to chance does not count: three times the typical distance between scores on that side.

    Parameters
    ----------
    scores : array
        With a standard deviation near 1.

    Examples
    --------
    >>> import numpy as np
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
