"""The order of rows and columns in a heatmap: every member once, in the module where its weight is largest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Indices


class Order(NamedTuple):
    """One axis of a heatmap.

    Attributes
    ----------
    members : ndarray
        Positions of what is drawn, in order: by module, within a module by decreasing signed weight; then those of no
        module.
    bounds : ndarray
        The block of module k is `bounds[k]` to `bounds[k + 1]`.
    belongs : bool ndarray of shape (n_modules, n_drawn)
        All memberships, including overlaps.
    weight : ndarray
        Largest absolute weight of each, 0 for those of no module.
    """

    members: Indices
    bounds: Indices
    belongs: NDArray[np.bool_]
    weight: NDArray[Any]


def module_order(weights: NDArray[Any], n_others: int = 0) -> Order:
    """Order the members of modules, given as signed weights with one row per module.

    Examples
    --------
    >>> import numpy as np
    >>> order = module_order(np.array([[0.9, -0.1, 0.0, 0.4], [0.0, 0.0, 0.3, 0.8]]), n_others=1)
    >>> order.members.tolist(), order.bounds.tolist()  # the last belongs to both, with a larger weight in the second
    ([0, 1, 3, 2], [0, 2, 4])
    """
    sizes = np.abs(weights)
    home, heaviest = sizes.argmax(axis=0), sizes.max(axis=0)
    parts = []
    for module, vector in enumerate(weights):
        own = np.flatnonzero((home == module) & (heaviest > 0))
        parts.append(own[np.argsort(-vector[own], kind="stable")])
    bounds = np.cumsum([0, *(part.size for part in parts)])
    others = np.flatnonzero(heaviest == 0)
    few = others[np.linspace(0, others.size - 1, min(n_others, others.size)).astype(np.intp)]
    members = np.concatenate([*parts, few]).astype(np.intp)
    return Order(members, bounds, weights[:, members] != 0, heaviest[members])
