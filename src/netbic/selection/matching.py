"""Which module of one fit is which of another: matched one to one by how alike they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from netbic.estimators import SparseGraphSVD

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

ALIKE = 0.5  # similarity from which a module counts as found again


class Layers(NamedTuple):
    """Modules as rank-one layers u v': left vectors (n, K) and right vectors (K, p)."""

    left: NDArray[Any]
    right: NDArray[Any]

    @classmethod
    def of(cls, model: SparseGraphSVD) -> Layers:
        """Those of a fitted model."""
        return cls(model.left_vectors_, model.components_)

    def on(self, rows: Indices | slice = slice(None), columns: Indices | slice = slice(None)) -> Layers:
        """The layers on some rows and columns only."""
        return Layers(self.left[rows], self.right[:, columns])


def similarity(some: Layers, others: Layers) -> Floats:
    """How alike layers are: the geometric mean of their vectors' cosines, 0 where the layers' signs disagree.

    Its square is the cosine of the two layers as matrices, whatever the signs of their vectors. Vectors that have
    nothing in common have cosines near 0, however many members they share by chance, if their signs are mixed.
    """
    cosines = _cosines(some.left.T, others.left.T) * _cosines(some.right, others.right)
    return np.sqrt(np.clip(cosines, 0.0, 1.0))


def _cosines(some: NDArray[Any], others: NDArray[Any]) -> Floats:
    """Between rows; 0 for a row of zeros."""
    units = []
    for rows in (some, others):
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        units.append(rows / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(units[0] @ units[1].T)


def partners(alike: Floats) -> Indices:
    """The column each row is matched to so that the sum of similarities is largest; -1 where none is left for it."""
    matched = np.full(alike.shape[0], -1, dtype=np.intp)
    rows, columns = linear_sum_assignment(-alike)
    matched[rows] = columns
    return matched


def jaccard(some: Bools, others: Bools) -> Floats:
    """Shared members over all members, row by row; 0 for two empty sets."""
    return np.asarray((some & others).sum(axis=1) / np.maximum((some | others).sum(axis=1), 1))
