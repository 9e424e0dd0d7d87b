"""Where to draw the nodes of a small graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Places = NDArray[np.float64]

_PULL_TO_CENTRE = 0.3


def layout(weights: Any, seed: int = 0, *, n_rounds: int = 150) -> Places:
    """Place nodes so that neighbours are near and none lie on top of each other (Fruchterman and Reingold, 1991).

    All nodes repel each other, edges pull, and a weak pull to the centre keeps parts that hang on nothing in sight.
    Time and memory grow with the square of the number of nodes: meant for a few hundred.

    Parameters
    ----------
    weights : (n, n) array or sparse array
        Symmetric. Only whether there is an edge counts, not its weight.
    seed : int
        Of the first places. The same graph and seed give the same layout.
    n_rounds : int

    Returns
    -------
    (n, 2) array
        Places in [0, 1], spread over the whole square.

    Examples
    --------
    >>> import numpy as np
    >>> from netbic.graphs.layout import layout
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> places = layout(path, seed=0)
    >>> steps = np.linalg.norm(np.diff(places, axis=0), axis=1)  # from a node to the next
    >>> bool(np.linalg.norm(places[0] - places[3]) > steps.max())  # the ends lie furthest apart
    True
    """
    edges = sp.coo_array(weights)
    forward = edges.row < edges.col
    tails, heads = edges.row[forward], edges.col[forward]
    n = edges.shape[0]
    places: Places = np.random.default_rng(seed).random((n, 2))
    apart = 1 / np.sqrt(max(n, 1))
    for step in np.linspace(0.1, 0.002, n_rounds):
        force = _repulsion(places, apart) - _PULL_TO_CENTRE * (places - 0.5) / apart
        pull = _pull(places, tails, heads, apart)
        np.add.at(force, tails, -pull)
        np.add.at(force, heads, pull)
        length = np.maximum(np.hypot(force[:, 0], force[:, 1]), 1e-12)
        places += force * (np.minimum(length, step) / length)[:, None]
    return _spread(places)


def _repulsion(places: Places, apart: float) -> Places:
    across, up = (coordinate[:, None] - coordinate for coordinate in places.T)
    strength = apart**2 / np.maximum(across**2 + up**2, 1e-6)
    return np.column_stack([(across * strength).sum(axis=1), (up * strength).sum(axis=1)])


def _pull(places: Places, tails: NDArray[Any], heads: NDArray[Any], apart: float) -> Places:
    ways = places[tails] - places[heads]
    pull: Places = ways * (np.hypot(ways[:, 0], ways[:, 1]) / apart)[:, None]
    return pull


def _spread(places: Places) -> Places:
    """Stretch to the unit square; a single node goes to its middle."""
    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    reach = high - low
    return np.where(reach > 0, (places - low) / np.where(reach > 0, reach, 1.0), 0.5)
