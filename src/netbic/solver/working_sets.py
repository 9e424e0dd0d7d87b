r"""Rounds on a small part of X: the working set.

Most rounds of an iteration change a vector only among the entries with large scores. So after a round on all of X, the
rows and columns with the largest scores, a few times as many as are kept, are copied into a small matrix, and the
iteration goes on there until it converges. Then a round on all of X confirms the result, or shows which entries were
missing, and another working set is made. If a round on all of X costs hardly more than such a copy, because few rows
and few columns are kept, it is only the last rounds, in which both supports stay the same, that use a working set:
that of the supports.

F does not decrease: a vector that is zero outside the working set has the same F in the small problem as in the whole
one (M becomes a principal submatrix, for which the bounds of its eigenvalues hold as well, and the penalty depends on
the kept entries only), and rounds on all of X are guarded as always. Only these decide whether the iteration has
converged.

Which sets are used depends on sizes alone, so that an array, a sparse matrix and blocks on disk give the same modules.
Operators that cannot be cut (those of users, and smoothed ones that are not stored) iterate on all of X.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netbic.arrays import Floats, Indices
from netbic.graph_terms import GraphTerm
from netbic.operators.base import Operator
from netbic.operators.corrected import Corrected
from netbic.penalties import largest
from netbic.solver.half_step import Side, State, Vector, scored

_FACTOR = 3  # entries of a working set, in units of those that are kept
_LARGEST_SHARE = 0.5  # of the entries of an axis; beyond, all of them are used
_LESS = 4  # times less is read to copy a working set than in a round on all of X
_UNCHANGED = 4  # rounds with the same supports after which a working set of these supports is made
_LEAST_READ = 100_000  # entries read by a round on all of X; below, it is as fast as any other
_MOST_ENTRIES = 1 << 22  # of the small matrix, which is dense also if X is sparse or on disk: 32 MB


class WorkingSets:
    """The working sets of one matrix after another; the last one is kept for iterations that go on within it."""

    def __init__(self) -> None:
        self._operator: Corrected | None = None
        self._last: WorkingSet | None = None

    def for_state(
        self, operator: Corrected, rows: Side, columns: Side, state: State, unchanged: int
    ) -> WorkingSet | None:
        """The working set for the rounds after this state; None if they should be on all of X.

        `unchanged` is the number of rounds that have left both supports the same.
        """
        if state.row_scores is None or state.column_scores is None or not operator.data.can_be_cut:
            return None
        kept = state.u.support.size, state.v.support.size
        read = operator.entries_read(*kept)
        if read < _LEAST_READ or any(side.penalty.restricted() is None for side in (rows, columns)):
            return None
        copied, held = operator.entries_of_part(_count(state.u), _count(state.v))
        # Rounds on a working set must read much less than rounds on all of X, counting the copy as one.
        if held > _MOST_ENTRIES or _LESS * copied > read:
            _, held = operator.entries_of_part(*kept)
            if unchanged < _UNCHANGED or held > _MOST_ENTRIES:
                return None
            return WorkingSet(operator, Part(state.u.size, state.u.support), Part(state.v.size, state.v.support))
        if self._operator is not operator or self._last is None or not self._last.contains(state):
            parts = _best(rows, state.u, state.row_scores), _best(columns, state.v, state.column_scores)
            self._operator, self._last = operator, WorkingSet(operator, *parts)
        return self._last


def _count(vector: Vector) -> int:
    """The number of entries of an axis in a working set."""
    count = _FACTOR * vector.support.size
    return count if count <= _LARGEST_SHARE * vector.size else vector.size


def _best(side: Side, vector: Vector, scores: Floats) -> Part:
    """The entries with the largest scores, and those of the vector."""
    count = _count(vector)
    if count == vector.size:
        return Part(vector.size)
    best = largest(side.magnitudes(scored(side, scores, vector)), count)
    return Part(vector.size, np.union1d(best, vector.support))


class Part:
    """Some entries of an axis, or all of them."""

    def __init__(self, size: int, entries: Indices | None = None) -> None:
        self.size = size
        self._positions: Indices | None = None
        self.entries = np.arange(size) if entries is None else entries  # increasing
        if self.entries.size < size:
            self._positions = np.full(size, -1, dtype=np.intp)
            self._positions[self.entries] = np.arange(self.entries.size)
        self._term: tuple[GraphTerm, GraphTerm] | None = None

    def contains(self, vector: Vector) -> bool:
        """Whether the vector is zero outside these entries."""
        return self._positions is None or bool((self._positions[vector.support] >= 0).all())

    def side(self, side: Side) -> Side:
        """A side restricted to these entries."""
        if self._positions is None:
            return side
        penalty, term = side.penalty.restricted() or side.penalty, None
        if side.term is not None and side.sigma:
            if self._term is None or self._term[0] is not side.term:
                self._term = side.term, side.term.restricted(self.entries)
            term = self._term[1]
        return replace(side, penalty=penalty, term=term)

    def inside(self, vector: Vector) -> Vector:
        """The vector by positions among these entries."""
        if self._positions is None:
            return vector
        smoothed = None if vector.smoothed is None else vector.smoothed[..., self.entries]
        return replace(vector, size=self.entries.size, support=self._positions[vector.support], smoothed=smoothed)

    def outside(self, vector: Vector) -> Vector:
        """A vector by positions among these entries as one of the whole axis."""
        if self._positions is None:
            return vector
        return replace(vector, size=self.size, support=self.entries[vector.support], smoothed=None)


class WorkingSet:
    """A small matrix of some rows and columns of X."""

    def __init__(self, operator: Corrected, rows: Part, columns: Part) -> None:
        self.operator: Operator = operator.part(rows.entries, columns.entries)
        self.rows, self.columns = rows, columns

    def contains(self, state: State) -> bool:
        """Whether both vectors are zero outside the set."""
        return self.rows.contains(state.u) and self.columns.contains(state.v)

    def inside(self, state: State) -> State:
        """A state of the whole problem, by positions in the set."""
        return replace(state, u=self.rows.inside(state.u), v=self.columns.inside(state.v))

    def outside(self, state: State, scores: State) -> State:
        """A state of the small problem as one of the whole problem, with the products Xv and X'u of another state."""
        return replace(
            scores, u=self.rows.outside(state.u), v=self.columns.outside(state.v), d=state.d, objective=state.objective
        )
