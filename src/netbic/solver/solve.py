"""One module from one start: rounds until they converge, cycle, or reach the limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np

from netbic.arrays import Floats
from netbic.operators import Corrected, Operator
from netbic.penalties import L0
from netbic.solver.half_step import Side, SolverName, State, Vector, rounds
from netbic.solver.working_sets import WorkingSets

Outcome = Literal["converged", "empty", "cycle", "max_iter", "size_not_converged"]

MAX_CHOOSING_ROUNDS: Final = 400  # per start, for penalties that choose their size; benchmarks need up to 125

_MOST_INSIDE = 100  # rounds on a working set before one on all of X, which may show that the set is the wrong one
_CLOSE = 0.1  # distance within which the result of a rough solve need not be confirmed; F errs by its square
_FIRST = 20  # rounds with the same supports before the first extrapolation: most iterations have converged by then
_ROUNDS = 7  # that are combined, and after which there is another proposal
_SMALLEST = 1e-10  # singular value of the changes of the steps that counts, relative to the largest one


@dataclass(frozen=True)
class Solution:
    """The last state, the outcome, and F after every round.

    The outcome is "size_not_converged" if the size was still changing after `MAX_CHOOSING_ROUNDS` and was then fixed.
    """

    state: State
    outcome: Outcome
    objectives: Floats

    @property
    def rank(self) -> tuple[bool, float]:
        """Key by which restarts are compared: any module before none, then the larger F.

        Where penalties choose sizes there is no F, and the module that is less likely by noise alone is preferred.
        """
        choice = self.state.v.choice or self.state.u.choice
        return (not self.state.is_empty, self.state.objective if choice is None else choice.strength)


@dataclass
class Budget:
    """Remaining rounds in which penalties may choose their sizes, shared by all solves of one start.

    Such a round costs as much as hundreds of others, and the sizes need not converge. If none is left, a solve chooses
    once, and another time to see whether the sizes have converged.
    """

    choosing: int = field(default_factory=lambda: MAX_CHOOSING_ROUNDS)

    @property
    def is_spent(self) -> bool:
        """Whether sizes are to be fixed."""
        return self.choosing <= 0


class IncompatibleSolver(ValueError):
    """The solver needs an objective and the penalty has none."""


def solve(
    operator: Operator,
    rows: Side,
    columns: Side,
    start: tuple[Vector, Vector] | State,
    *,
    solver: SolverName = "auto",
    max_iter: int = 500,
    tol: float = 1e-6,
    budget: Budget | None = None,
    feasible: bool = False,
    sets: WorkingSets | None = None,
    rough: bool = False,
) -> Solution:
    """Iterate from `start` until both vectors and F change by at most `tol` (relative).

    From a `feasible` start, which satisfies the penalties, F does not decrease in the first round either. With `sets`
    most rounds of the solver "auto" are on small parts of X (`working_sets`); a round on all of X confirms the result,
    which a `rough` solve does without if that is near the state from which the set was made.

    Penalties without an objective are iterated as by "aisp"; "monotone" raises an error. If penalties that choose their
    sizes run into a cycle, the sizes and weights of its last round are fixed and the iteration goes on to convergence.
    The same is done when the `budget` is spent; the outcome is then "size_not_converged" instead of "converged",
    unless another round would choose the same sizes again.
    """
    solver = _usable(solver, rows, columns)
    budget, most = budget or Budget(), max_iter
    choosing = rows.penalty.chooses_size or columns.penalty.chooses_size
    if choosing:
        most = min(max_iter, max(budget.choosing, 1))
    state = start if isinstance(start, State) else State(*start, 0.0, -np.inf)
    found = _Iteration(operator, rows, columns, solver, tol, sets, rough).run(state, most, feasible=feasible)
    used = len(found.objectives)
    if choosing:
        budget.choosing -= used
    if (
        found.outcome in ("cycle", "max_iter")
        and used < max_iter
        and any(vector.choice is not None for vector in (found.state.u, found.state.v))
    ):
        sides = with_fixed_size(rows, found.state.u), with_fixed_size(columns, found.state.v)
        fixed = _Iteration(operator, *sides, _usable("auto", *sides), tol, sets)
        rest = fixed.run(found.state, max_iter - used, feasible=True)
        outcome = rest.outcome
        if found.outcome == "max_iter" and outcome == "converged":
            outcome = outcome if is_stable(operator, rows, columns, rest.state, tol) else "size_not_converged"
        found = Solution(rest.state, outcome, np.concatenate([found.objectives, rest.objectives]))
    return replace(found, state=with_positive_d(found.state, rows, columns))


def is_stable(operator: Operator, rows: Side, columns: Side, state: State, tol: float) -> bool:
    """Whether another round, in which penalties choose their sizes, leaves the state unchanged."""
    after = next(rounds(operator, rows, columns, state.u, state.v, "aisp"))
    return not after.is_empty and _same(after, state, tol)


@dataclass(frozen=True)
class _Iteration:
    """Rounds until they converge, cycle, or reach a limit."""

    operator: Operator
    rows: Side
    columns: Side
    solver: SolverName
    tol: float
    sets: WorkingSets | None = None
    rough: bool = False

    def run(self, state: State, most: int, *, feasible: bool = False) -> Solution:
        """At most `most` rounds."""
        objectives: list[float] = []
        cycles, extrapolation = CycleDetector(), Extrapolation()
        states, unchanged = self._rounds(state, feasible), 0  # number of rounds that have left both supports the same
        while len(objectives) < most:
            if (inner := self._on_working_set(state, most - len(objectives) - 1, unchanged)) is not None:
                objectives.extend(inner.objectives)
                near = self.rough and inner.outcome == "converged" and inner.state.v.distance(state.v) <= _CLOSE
                if near:  # the result need not be confirmed
                    return replace(inner, objectives=np.array(objectives))
                state, states = inner.state, self._rounds(inner.state)
            previous, state = state, next(states)
            objectives.append(state.objective)
            if state.is_empty:
                return Solution(state, "empty", np.array(objectives))
            same = state.u.has_support_of(previous.u) and state.v.has_support_of(previous.v)
            unchanged = unchanged + 1 if same else 0
            change = abs(state.objective - previous.objective)
            if change <= self.tol * abs(state.objective) and _same(state, previous, self.tol):
                flipped = with_positive_d(state, self.rows, self.columns)
                if flipped is state:
                    return Solution(state, "converged", np.array(objectives))
                # Signed terms may converge to d < 0; flipping one vector increases F by 2|d|.
                state, states = flipped, self._rounds(flipped)
            elif self.solver == "aisp" and cycles.seen(state, previous):
                return Solution(state, "cycle", np.array(objectives))
            elif len(objectives) < most and (further := self._extrapolated(extrapolation, state)) is not None:
                objectives.append(further.objective)
                state, states = further, self._rounds(further)
        return Solution(state, "max_iter", np.array(objectives))

    def _rounds(self, state: State, feasible: bool = True) -> Iterator[State]:
        return rounds(self.operator, self.rows, self.columns, state.u, state.v, self.solver, feasible=feasible)

    def _extrapolated(self, extrapolation: Extrapolation, state: State) -> State | None:
        """The state after a round from an extrapolated one, if F is larger there.

        Both vectors must have changed in that round: extrapolated ones need not satisfy a bound of their L1 norm.
        """
        proposed = extrapolation.proposal(state) if self.solver == "auto" else None
        if proposed is None:
            return None
        further = next(self._rounds(proposed))
        if further.u.values is proposed.u.values or further.v.values is proposed.v.values:
            return None
        return further if not further.is_empty and further.objective > state.objective else None

    def _on_working_set(self, state: State, most: int, unchanged: int) -> Solution | None:
        """The result of rounds on a working set; None if there is no such set, or if a vector becomes empty."""
        if self.sets is None or self.solver != "auto" or most < 1 or not isinstance(self.operator, Corrected):
            return None
        part = self.sets.for_state(self.operator, self.rows, self.columns, state, unchanged)
        if part is None:
            return None
        inner = _Iteration(part.operator, *part.sides(self.rows, self.columns), "auto", self.tol)
        found = inner.run(part.inside(state), min(most, _MOST_INSIDE), feasible=True)
        return None if found.state.is_empty else replace(found, state=part.outside(found.state, state))


def _usable(solver: SolverName, rows: Side, columns: Side) -> SolverName:
    for axis, side in (("row", rows), ("column", columns)):
        if not side.penalty.has_objective:
            if solver == "monotone":
                raise IncompatibleSolver(
                    f"solver='monotone' cannot be used with {axis} penalty {side.penalty!r}: it has no objective, so "
                    "there is nothing that could be monotone. Use solver='auto' or 'aisp', or a penalty with an "
                    "objective (L0, L1, L1Ball)"
                )
            solver = "aisp"
    return solver


def with_fixed_size(side: Side, vector: Vector, share: float = 1.0) -> Side:
    """The side with (a share of) the size and the weight of the graph that its penalty has chosen, if it does so."""
    if vector.choice is None:
        return side
    penalty = L0(max(1, round(share * vector.support.size)), nonnegative=side.penalty.nonnegative)
    return replace(side.trusting(vector), penalty=penalty, sigma=vector.choice.sigma)


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

    def proposal(self, state: State) -> State | None:
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
