"""Where the nodes of a small graph go: by stress majorisation, component by component, isolated ones aside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

from netbic.estimators import one_blas_thread

Floats = NDArray[np.float64]

_ROUNDS = 200
_SETTLED = 1e-4


class Layout(NamedTuple):
    """Places of nodes, and which of them have no edge (they stand in rows below the others)."""

    places: Floats
    isolated: NDArray[np.bool_]


def layout(weights: Any, seed: int = 0) -> Layout:
    """Place nodes so that distances on paper are those in the graph.

    An edge is as long as the square root of the smaller degree of its ends, so that n nodes that all know each other
    get n times the room of one. Each connected component is placed for itself (Gansner, Koren and North 2004: every
    round lowers the stress) and given room by its size, the largest first; so that parts that have nothing to do with
    each other are not flung apart. The same graph and seed give the same picture.

    Examples
    --------
    >>> import numpy as np
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> places, isolated = layout(path)
    >>> np.linalg.norm(np.diff(places, axis=0), axis=1).round(2).tolist()
    [1.0, 1.41, 1.0]
    """
    edges = _lengths(sp.csr_array(weights))
    rng = np.random.default_rng(seed)
    _, part_of = connected_components(edges, directed=False)
    sizes = np.bincount(part_of, minlength=1)
    isolated = sizes[part_of] == 1 if part_of.size else np.zeros(0, dtype=bool)
    places = np.zeros((edges.shape[0], 2))
    parts = [np.flatnonzero(part_of == part) for part in np.argsort(-sizes, kind="stable") if sizes[part] > 1]
    with one_blas_thread():
        for part in parts:
            places[part] = _upright(_stressed(shortest_path(edges[part][:, part]), rng))
    _shelve(places, parts)
    _line_up(places, np.flatnonzero(isolated), places[~isolated])
    return Layout(places, isolated)


def _lengths(weights: sp.csr_array) -> sp.csr_array:
    degrees = np.diff(weights.indptr)
    ends = weights.tocoo()
    lengths = np.sqrt(np.minimum(degrees[ends.row], degrees[ends.col]))
    return sp.csr_array((lengths, (ends.row, ends.col)), shape=weights.shape)


def _stressed(distances: Floats, rng: np.random.Generator) -> Floats:
    """Places in the plane that minimise the sum of (|x_i - x_j| - d_ij)^2 / d_ij^2, by majorisation."""
    n = len(distances)
    wanted = distances + np.eye(n)
    closeness = (1 / wanted**2) * (1 - np.eye(n))
    laplacian = np.diag(closeness.sum(axis=1)) - closeness
    factor = cho_factor(laplacian[1:, 1:])  # the first node stays where it is
    places = _principal(distances) + rng.normal(scale=0.05, size=(n, 2))  # twins would never part
    for _ in range(_ROUNDS):
        apart = cdist(places, places) + np.eye(n)
        pull = closeness * wanted / np.maximum(apart, 1e-9)
        target = pull.sum(axis=1)[:, None] * places - pull @ places
        moved = np.zeros_like(places)
        moved[1:] = cho_solve(factor, target[1:])
        moved -= moved.mean(axis=0)
        step = np.abs(moved - places).max()
        places = moved
        if step < _SETTLED * np.abs(places).max():
            break
    return places


def _principal(distances: Floats) -> Floats:
    """Classical scaling: the two leading coordinates."""
    squared = distances**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(centred)
    leading = vectors[:, -2:][:, ::-1]
    leading *= np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    plane: Floats = leading * np.sqrt(np.maximum(values[-2:][::-1], 0))
    return plane


def _upright(places: Floats) -> Floats:
    """Turned so that the longest side lies flat: papers and screens are wider than high."""
    places = places - places.mean(axis=0)
    turned: Floats = places @ np.linalg.svd(places, full_matrices=False)[2].T
    return turned


def _shelve(places: Floats, parts: list[NDArray[np.intp]]) -> None:
    """Put components side by side on shelves as wide as the largest, each with the same room around it."""
    if not parts:
        return
    boxes = [np.ptp(places[part], axis=0) + 1.0 for part in parts]
    width = max(boxes[0][0], float(np.sqrt(1.5 * sum(box.prod() for box in boxes))))
    x, y, shelf = 0.0, 0.0, 0.0
    for part, box in zip(parts, boxes, strict=True):
        if x and x + box[0] > width:
            x, y, shelf = 0.0, y - shelf, 0.0
        places[part] += np.array([x, y - box[1]]) + 0.5 - places[part].min(axis=0)
        x, shelf = x + box[0], max(shelf, box[1])


def _line_up(places: Floats, alone: NDArray[np.intp], others: Floats) -> None:
    """Nodes without edges, in rows under the others."""
    if not alone.size:
        return
    left, bottom = others.min(axis=0) if others.size else np.zeros(2)
    width = max(float(np.ptp(others[:, 0])) if others.size else 0.0, 1.0)
    per_row = int(np.clip(np.ceil(np.sqrt(6 * alone.size)), 1, 30))
    step = width / max(per_row - 1, 1)
    number = np.arange(alone.size)
    places[alone, 0] = left + number % per_row * step
    places[alone, 1] = bottom - 0.08 * width - number // per_row * step
