"""Layout of a small graph: stress majorisation per connected component, isolated nodes below."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

from netbic.estimators import one_blas_thread

Floats = NDArray[np.float64]

_MAX_ITER = 200
_TOLERANCE = 1e-4


class Layout(NamedTuple):
    """Positions of nodes, and which of them are isolated (drawn in rows below the others)."""

    positions: Floats
    isolated: NDArray[np.bool_]


def layout(weights: sp.csr_array | Floats, seed: int = 0) -> Layout:
    """Place nodes so that Euclidean distances approximate the distances in the graph.

    The length of an edge is the square root of the smaller degree of its ends, so that the area of a clique is
    proportional to its size. Each connected component is placed separately (Gansner, Koren and North 2004: every
    iteration decreases the stress); components are then arranged side by side, the largest first. The same graph and
    seed give the same layout.

    Examples
    --------
    >>> import numpy as np
    >>> path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    >>> positions, isolated = layout(path)
    >>> np.linalg.norm(np.diff(positions, axis=0), axis=1).round(2).tolist()
    [1.0, 1.41, 1.0]
    """
    edges = _lengths(sp.csr_array(weights))
    rng = np.random.default_rng(seed)
    _, part_of = connected_components(edges, directed=False)
    sizes = np.bincount(part_of, minlength=1)
    isolated = sizes[part_of] == 1 if part_of.size else np.zeros(0, dtype=bool)
    positions = np.zeros((edges.shape[0], 2))
    parts = [np.flatnonzero(part_of == part) for part in np.argsort(-sizes, kind="stable") if sizes[part] > 1]
    with one_blas_thread():
        for part in parts:
            positions[part] = _rotated(_stressed(shortest_path(edges[part][:, part]), rng))
    _arrange(positions, parts)
    _place_isolated(positions, np.flatnonzero(isolated), positions[~isolated])
    return Layout(positions, isolated)


def _lengths(weights: sp.csr_array) -> sp.csr_array:
    degrees = np.diff(weights.indptr)
    ends = weights.tocoo()
    lengths = np.sqrt(np.minimum(degrees[ends.row], degrees[ends.col]))
    return sp.csr_array((lengths, (ends.row, ends.col)), shape=weights.shape)


def _stressed(distances: Floats, rng: np.random.Generator) -> Floats:
    """Positions that minimise the sum of (|x_i - x_j| - d_ij)^2 / d_ij^2, by majorisation."""
    n = len(distances)
    wanted = distances + np.eye(n)
    closeness = (1 / wanted**2) * (1 - np.eye(n))
    laplacian = np.diag(closeness.sum(axis=1)) - closeness
    factor = cho_factor(laplacian[1:, 1:])  # the position of the first node is fixed
    positions = _principal(distances) + rng.normal(scale=0.05, size=(n, 2))  # or equal nodes would keep equal positions
    for _ in range(_MAX_ITER):
        apart = cdist(positions, positions) + np.eye(n)
        pull = closeness * wanted / np.maximum(apart, 1e-9)
        target = pull.sum(axis=1)[:, None] * positions - pull @ positions
        moved = np.zeros_like(positions)
        moved[1:] = cho_solve(factor, target[1:])
        moved -= moved.mean(axis=0)
        step = np.abs(moved - positions).max()
        positions = moved
        if step < _TOLERANCE * np.abs(positions).max():
            break
    return positions


def _principal(distances: Floats) -> Floats:
    """The two leading coordinates of classical multidimensional scaling."""
    squared = distances**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(centred)
    leading = vectors[:, -2:][:, ::-1]
    leading *= np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    plane: Floats = leading * np.sqrt(np.maximum(values[-2:][::-1], 0))
    return plane


def _rotated(positions: Floats) -> Floats:
    """Rotated so that the longest side is horizontal: pages and screens are wider than high."""
    positions = positions - positions.mean(axis=0)
    rotated: Floats = positions @ np.linalg.svd(positions, full_matrices=False)[2].T
    return rotated


def _arrange(positions: Floats, parts: list[NDArray[np.intp]]) -> None:
    """Arrange components side by side in rows as wide as the largest, with equal margins."""
    if not parts:
        return
    boxes = [np.ptp(positions[part], axis=0) + 1.0 for part in parts]
    width = max(boxes[0][0], float(np.sqrt(1.5 * sum(box.prod() for box in boxes))))
    x, y, row = 0.0, 0.0, 0.0
    for part, box in zip(parts, boxes, strict=True):
        if x and x + box[0] > width:
            x, y, row = 0.0, y - row, 0.0
        positions[part] += np.array([x, y - box[1]]) + 0.5 - positions[part].min(axis=0)
        x, row = x + box[0], max(row, box[1])


def _place_isolated(positions: Floats, alone: NDArray[np.intp], others: Floats) -> None:
    """Place nodes without edges in rows below the others."""
    if not alone.size:
        return
    left, bottom = others.min(axis=0) if others.size else np.zeros(2)
    width = max(float(np.ptp(others[:, 0])) if others.size else 0.0, 1.0)
    per_row = int(np.clip(np.ceil(np.sqrt(6 * alone.size)), 1, 30))
    step = width / max(per_row - 1, 1)
    number = np.arange(alone.size)
    positions[alone, 0] = left + number % per_row * step
    positions[alone, 1] = bottom - 0.08 * width - number // per_row * step
