"""One module from one start: rounds until they converge, cycle, or reach the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from netbic.arrays import Floats
from netbic.operators.base import Operator
from netbic.operators.corrected import Corrected
from netbic.penalties import Penalty
from netbic.solver.half_step import Side, SolverName, State, Vector, rounds
from netbic.solver.working_sets import WorkingSets

Outcome = Literal["converged", "empty", "cycle", "max_iter"]

Deflation = Literal["hotelling", "projection", "schur"]

_MOST_INSIDE = 100  # rounds on a working set before one on all of X, which may show that the set is the wrong one
_CLOSE = 0.1  # distance within which the result of a rough solve need not be confirmed; F errs by its square
_FIRST = 20  # rounds with the same supports before the first extrapolation: most iterations have converged by then
_ROUNDS = 7  # that are combined, and after which there is another proposal
_SMALLEST = 1e-10  # singular value of the changes of the steps that counts, relative to the largest one


@dataclass(frozen=True)
class Solution:
    """The last state, the outcome, and F after every round."""

    state: State
    outcome: Outcome
    objectives: Floats

    @property
    def rank(self) -> tuple[bool, float]:
        """Key by which restarts are compared: any module before none, then the larger F."""
        return not self.state.is_empty, self.state.objective


@dataclass(frozen=True)
class Settings:
    """Options of the iteration, named as the parameters of `SparseGraphSVD`.

    The result of a `rough` solve may be that of a working set, without a round on all of X that confirms it.
    """

    solver: SolverName = "auto"
    n_init: int = 1
    max_iter: int = 500
    tol: float = 1e-6
    deflation: Deflation = "hotelling"
    seed: int = 0
    n_jobs: int | None = None
    rough: bool = False


class IncompatibleSolver(ValueError):
    """The solver needs an objective and the penalty has none."""


def solve(
    operator: Operator,
    rows: Side,
    columns: Side,
    start: tuple[Vector, Vector] | State,
    settings: Settings | None = None,
    *,
    feasible: bool = False,
    sets: WorkingSets | None = None,
) -> Solution:
    """Iterate from `start` until both vectors and F change by at most `tol` (relative).

    From a `feasible` start, which satisfies the penalties, F does not decrease in the first round either. With `sets`
    most rounds of the solver "auto" are on small parts of X (`working_sets`); a round on all of X confirms the result,
    which a `rough` solve does without if that is near the state from which the set was made.

    Penalties without an objective are iterated as by "aisp"; "monotone" raises an error.
    """
    settings = settings or Settings()
    settings = replace(settings, solver=usable_solver(settings.solver, rows.penalty, columns.penalty))
    state = start if isinstance(start, State) else State(*start, 0.0, -np.inf)
    found = _iterate(operator, rows, columns, state, settings, settings.max_iter, sets, feasible=feasible)
    return replace(found, state=with_positive_d(found.state, rows, columns))


def _iterate(
    operator: Operator,
    rows: Side,
    columns: Side,
    state: State,
    settings: Settings,
    most: int,
    sets: WorkingSets | None = None,
    *,
    feasible: bool = True,
) -> Solution:
    """At most `most` rounds."""
    solver, tol = settings.solver, settings.tol

    def continued(state: State, feasible: bool = True) -> Iterator[State]:
        return rounds(operator, rows, columns, state.u, state.v, solver, feasible=feasible)

    objectives: list[float] = []
    cycles, extrapolation = CycleDetector(), Extrapolation()
    states, unchanged = continued(state, feasible), 0  # number of rounds that have left both supports the same
    while len(objectives) < most:
        left = min(most - len(objectives) - 1, _MOST_INSIDE)
        if (
            sets is not None
            and solver == "auto"
            and left > 0
            and isinstance(operator, Corrected)
            and (part := sets.for_state(operator, rows, columns, state, unchanged)) is not None
        ):
            within = part.rows.side(rows), part.columns.side(columns)
            inner = _iterate(part.operator, *within, part.inside(state), replace(settings, rough=False), left)
            if not inner.state.is_empty:
                objectives.extend(inner.objectives)
                found = part.outside(inner.state, state)
                near = settings.rough and inner.outcome == "converged" and found.v.distance(state.v) <= _CLOSE
                if near:  # the result need not be confirmed
                    return Solution(found, inner.outcome, np.array(objectives))
                state, states = found, continued(found)
        previous, state = state, next(states)
        objectives.append(state.objective)
        if state.is_empty:
            return Solution(state, "empty", np.array(objectives))
        same = state.u.has_support_of(previous.u) and state.v.has_support_of(previous.v)
        unchanged = unchanged + 1 if same else 0
        change = abs(state.objective - previous.objective)
        if change <= tol * abs(state.objective) and _same(state, previous, tol):
            flipped = with_positive_d(state, rows, columns)
            if flipped is state:
                return Solution(state, "converged", np.array(objectives))
            # Signed terms may converge to d < 0; flipping one vector increases F by 2|d|.
            state, states = flipped, continued(flipped)
        elif solver == "aisp" and cycles.seen(state, previous):
            return Solution(state, "cycle", np.array(objectives))
        elif solver == "auto" and len(objectives) < most and (guess := extrapolation.propose(state)) is not None:
            further = next(continued(guess))
            # Both vectors must have changed: extrapolated ones need not satisfy a bound of their L1 norm.
            moved = further.u.values is not guess.u.values and further.v.values is not guess.v.values
            if moved and not further.is_empty and further.objective > state.objective:
                objectives.append(further.objective)
                state, states = further, continued(further)
    return Solution(state, "max_iter", np.array(objectives))


def usable_solver(solver: SolverName, rows: Penalty, columns: Penalty) -> SolverName:
    """The solver for these penalties: that of the paper if one has no objective, for which "monotone" is refused.

    Sizes from the data are fixed after a first solve: nothing need be monotone before.
    """
    for axis, penalty in (("row", rows), ("column", columns)):
        if not penalty.has_objective:
            if solver == "monotone" and not penalty.sizes_from_data:
                raise IncompatibleSolver(
                    f"solver='monotone' cannot be used with {axis} penalty {penalty!r}: it has no objective, so "
                    "there is nothing that could be monotone. Use solver='auto' or 'aisp', or a penalty with an "
                    "objective (L0, L1, L1Ball)"
                )
            solver = "aisp"
    return solver


def _same(one: State, other: State, tol: float) -> bool:
    return one.u.distance(other.u) <= tol and one.v.distance(other.v) <= tol


def with_positive_d(state: State, rows: Side, columns: Side) -> State:
    """The state, with one vector flipped if d < 0 (unless both must be non-negative)."""
    if state.d >= 0 or (rows.penalty.nonnegative and columns.penalty.nonnegative):
        return state
    d, objective = -state.d, state.objective - 2 * state.d
    if rows.penalty.nonnegative:
        return replace(state, v=-state.v, d=d, objective=objective)
    return replace(state, u=-state.u, d=d, objective=objective)


class CycleDetector:
    """Brent's cycle detection: every state is compared with one stored at rounds 1, 2, 4, 8, ...

    A state counts as seen if it is a million times closer to the stored one than it moves in a round, so that slowly
    decaying oscillations are not taken for cycles.
    """

    def __init__(self) -> None:
        self._stored: State | None = None
        self._age, self._span = 0, 1

    def seen(self, state: State, previous: State) -> bool:
        """Whether `state` equals an earlier one, although it differs from the previous one."""
        step = max(state.u.distance(previous.u), state.v.distance(previous.v))
        if self._stored is not None and _same(state, self._stored, 1e-6 * step):
            return True
        self._age += 1
        if self._age >= self._span:
            self._stored, self._age, self._span = state, 0, 2 * self._span
        return False


class Extrapolation:
    """Extrapolation of an iteration that converges slowly on fixed supports (Anderson 1965).

    On fixed supports a round is a smooth function of both vectors, and near its fixed point nearly a linear one. From a
    few rounds x, x + f, ... the combination of points whose steps f nearly cancel is closer to the fixed point. It is
    only a proposal: the solver goes on from there if F is larger than before.
    """

    def __init__(self) -> None:
        self._last: State | None = None
        self._states: list[State] = []
        self._wait = _FIRST

    def propose(self, state: State) -> State | None:
        """Add the state of a round; an extrapolated one now and then, if the supports stay the same."""
        last, self._last = self._last, state
        if last is None or not (state.u.has_support_of(last.u) and state.v.has_support_of(last.v)):
            self._states, self._wait = [], _FIRST
        self._states = [*self._states[-_ROUNDS + 1 :], state]
        self._wait -= 1
        if self._wait > 0:
            return None
        self._wait = _ROUNDS
        points = np.array([np.concatenate([earlier.u.values, earlier.v.values]) for earlier in self._states])
        found = extrapolated(points)
        if (np.sign(found) != np.sign(points[-1])).any():
            return None
        u, v = np.split(found, [state.u.values.size])
        return replace(
            state,
            u=replace(state.u, values=u / np.linalg.norm(u), smoothed=None),
            v=replace(state.v, values=v / np.linalg.norm(v), smoothed=None),
        )


def extrapolated(points: Floats) -> Floats:
    """The affine combination of points with the shortest combined step."""
    steps = np.diff(points, axis=0)
    changes = np.diff(steps, axis=0)
    weights = np.linalg.lstsq(changes.T, steps[-1], rcond=_SMALLEST)[0]
    found: Floats = points[-1] - weights @ np.diff(points[1:], axis=0)
    return found
