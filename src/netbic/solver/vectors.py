"""Sparse unit vectors, and the state of an iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from netbic.arrays import Floats, Indices
from netbic.penalties import Choice


@dataclass(frozen=True, slots=True)
class Vector:
    """A unit vector by its non-zero entries.

    `smoothed` is the product Mw of the graph term with its weights, if there is a graph (several products, a row each,
    if edges have signs); `choice` describes how the support was chosen, if the penalty chooses its size; `groups` are
    the groups of entries that a penalty of groups has chosen.
    """

    size: int
    support: Indices
    values: Floats
    smoothed: Floats | None = None
    choice: Choice | None = None
    groups: Indices | None = None

    @classmethod
    def of(cls, full: Floats) -> Vector:
        """Normalise a full array that is not zero."""
        support = np.flatnonzero(full)
        return cls(full.size, support, full[support] / np.linalg.norm(full[support]))

    def full(self) -> Floats:
        """All entries, including zeros."""
        entries = np.zeros(self.size)
        entries[self.support] = self.values
        return entries

    def with_smoothed(self, smoothed: Floats | None) -> Vector:
        """The same vector with another product Mw."""
        return Vector(self.size, self.support, self.values, smoothed, self.choice, self.groups)

    def has_support_of(self, other: Vector) -> bool:
        """Whether both vectors have the same support."""
        return same_indices(self.support, other.support)

    def distance(self, other: Vector) -> float:
        """Euclidean distance."""
        change = self.values - other.values if self.has_support_of(other) else self.full() - other.full()
        return sqrt(change @ change)

    def __neg__(self) -> Vector:
        return replace(self, values=-self.values, smoothed=None)

    @property
    def is_empty(self) -> bool:
        """Whether the threshold has kept no entry."""
        return self.support.size == 0


def same_indices(one: Indices, other: Indices) -> bool:
    """Whether two arrays of indices are equal."""
    return one is other or (one.size == other.size and bool((one == other).all()))


@dataclass(frozen=True, slots=True)
class State:
    """Both vectors after a round, d = u'Xv, the objective F, and the products Xv and X'u from which they were made."""

    u: Vector
    v: Vector
    d: float
    objective: float
    row_scores: Floats | None = None
    column_scores: Floats | None = None

    @property
    def is_empty(self) -> bool:
        """Whether a threshold has kept no entry of one of the vectors."""
        return self.u.is_empty or self.v.is_empty
