"""Matching the modules of one fit to those of another, one to one, by similarity."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from netbic.arrays import Array, Bools, Floats, Indices
from netbic.estimators import SparseGraphSVD

MIN_SIMILARITY = 0.5  # similarity from which two modules count as the same


class Layers(NamedTuple):
    """Modules as rank-one layers u v': left vectors (n, K) and right vectors (K, p)."""

    left: Array
    right: Array

    @classmethod
    def of(cls, model: SparseGraphSVD) -> Layers:
        """Those of a fitted model."""
        return cls(model.left_vectors_, model.components_)


class Matches(NamedTuple):
    """For each module: the module matched to it (-1 if there is none), and their similarity (then 0)."""

    partner: Indices
    similarity: Floats


def match_modules(some: Layers, others: Layers) -> Matches:
    """Match layers one to one so that the sum of similarities is largest."""
    similarities = similarity(some, others)
    matched = partners(similarities)
    padded = np.pad(similarities, ((0, 0), (0, 1)))  # index -1, no partner, points to the last column
    return Matches(matched, padded[np.arange(matched.size), matched])


def similarity(some: Layers, others: Layers) -> Floats:
    """Geometric mean of the cosines of the left and of the right vectors; 0 where the signs of the layers disagree.

    Its square is the cosine of the two layers as matrices, whatever the signs of their vectors. Unrelated vectors of
    mixed signs have cosines near 0, even if they share many members by chance.
    """
    cosines = _cosines(some.left.T, others.left.T) * _cosines(some.right, others.right)
    return np.sqrt(np.clip(cosines, 0.0, 1.0))


def _cosines(some: Array, others: Array) -> Floats:
    """Between rows; 0 for a row of zeros."""
    units = []
    for rows in (some, others):
        lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        units.append(rows / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(units[0] @ units[1].T)


def partners(similarities: Floats) -> Indices:
    """The column matched to each row so that the sum of similarities is largest; -1 for rows without a column."""
    matched = np.full(similarities.shape[0], -1, dtype=np.intp)
    rows, columns = linear_sum_assignment(-similarities)
    matched[rows] = columns
    return matched


def jaccard(some: Bools, others: Bools) -> Floats:
    """Jaccard index row by row; 0 for two empty sets."""
    return np.asarray((some & others).sum(axis=1) / np.maximum((some | others).sum(axis=1), 1))


def mean_overlap(some: Bools, others: Bools) -> float:
    """Mean Jaccard index of sets (rows) matched one to one so that it is largest; 0 for sets without a partner."""
    shared = some.astype(int) @ others.T.astype(int)
    union = some.sum(axis=1)[:, None] + others.sum(axis=1) - shared
    similarities = shared / np.maximum(union, 1)
    return float(similarities[linear_sum_assignment(-similarities)].sum() / max(*similarities.shape, 1))


def share_of_modules(number: int, total: int) -> str:
    """The subject and verb of a sentence about some of the modules.

    Examples
    --------
    >>> share_of_modules(1, 1), share_of_modules(1, 3), share_of_modules(2, 3)
    ('1 of 1 module is', '1 of 3 modules is', '2 of 3 modules are')
    """
    return f"{number} of {total} module{'s' * (total != 1)} {'is' if 1 in (number, total) else 'are'}"
