"""One module from one start: rounds until they settle, cycle, or run out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from netbic.operators import Operator
from netbic.penalties import L0
from netbic.solver.half_steps import Side, SolverName, State, Vector, rounds

Outcome = Literal["converged", "empty", "cycle", "max_iter", "unsettled"]

CHOOSING: Final = 400  # rounds of one start in which penalties may choose their sizes: benchmarks take up to 125


@dataclass(frozen=True)
class Solution:
    """The last state, how it ended, and F after every round."""

    state: State
    outcome: Outcome
    objectives: NDArray[np.float64]

    @property
    def rank(self) -> tuple[bool, float]:
        """What restarts are compared by: any module beats none, then the larger F.

        Where penalties choose sizes F has no meaning: of modules of equal d the smaller one is the harder to reach.
        """
        choice = self.state.v.choice or self.state.u.choice
        return (not self.state.is_empty, self.state.objective if choice is None else choice.strength)


@dataclass
class Budget:
    """Rounds in which penalties may still choose their sizes; the solves of one start share it.

    Such a round costs as much as hundreds of others, and nothing promises that the sizes ever settle.
    """

    choosing: int = field(default_factory=lambda: CHOOSING)

    @property
    def is_spent(self) -> bool:
        """Whether sizes are to be kept as they are."""
        return self.choosing <= 0


class IncompatibleSolver(ValueError):
    """A solver was asked for a promise that a penalty cannot keep."""


def solve(
    operator: Operator,
    rows: Side,
    columns: Side,
    start: tuple[Vector, Vector],
    *,
    solver: SolverName = "auto",
    max_iter: int = 500,
    tol: float = 1e-6,
    budget: Budget | None = None,
) -> Solution:
    """Iterate from `start` until both vectors and F change by at most `tol` (relative).

    Penalties without an objective are iterated as "aisp" does; "monotone" refuses them. Where penalties that choose
    their sizes run into a cycle, the sizes and weights of its last round are kept and iterated to the end. The same is
    done when the `budget` is spent; unless the penalties would then choose the same once more, the solution is
    "unsettled", not "converged".
    """
    solver = _usable(solver, rows, columns)
    budget, most = budget or Budget(), max_iter
    choosing = chooses_size(rows) or chooses_size(columns)
    if choosing:
        most = min(max_iter, max(budget.choosing, 1))
    found = _iterated(operator, rows, columns, State(*start, 0.0, -np.inf), solver, most, tol)
    used = len(found.objectives)
    if choosing:
        budget.choosing -= used
    if found.outcome in ("cycle", "max_iter") and used < max_iter and _chosen(found.state):
        sides = as_chosen(rows, found.state.u), as_chosen(columns, found.state.v)
        rest = _iterated(operator, *sides, found.state, _usable("auto", *sides), max_iter - used, tol, feasible=True)
        in_doubt = found.outcome == "max_iter" and rest.outcome == "converged"
        outcome = "unsettled" if in_doubt and not stands(operator, rows, columns, rest.state, tol) else rest.outcome
        found = Solution(rest.state, outcome, np.concatenate([found.objectives, rest.objectives]))
    return replace(found, state=upright(found.state, rows, columns))


def stands(operator: Operator, rows: Side, columns: Side, state: State, tol: float) -> bool:
    """Whether one more round, in which penalties choose their sizes, leaves a state as it is."""
    after = next(rounds(operator, rows, columns, state.u, state.v, "aisp"))
    return not after.is_empty and _same(after, state, tol)


def _iterated(
    operator: Operator,
    rows: Side,
    columns: Side,
    state: State,
    solver: SolverName,
    most: int,
    tol: float,
    *,
    feasible: bool = False,
) -> Solution:
    """Rounds until they settle, cycle or run out."""
    objectives: list[float] = []
    watch = CycleWatch()
    states = rounds(operator, rows, columns, state.u, state.v, solver, feasible=feasible)
    while len(objectives) < most:
        previous, state = state, next(states)
        objectives.append(state.objective)
        if state.is_empty:
            return Solution(state, "empty", np.array(objectives))
        settled = _same(state, previous, tol)
        if settled and abs(state.objective - previous.objective) <= tol * abs(state.objective):
            turned = upright(state, rows, columns)
            if turned is state:
                return Solution(state, "converged", np.array(objectives))
            # Signed terms may settle at d < 0; flipping one vector raises F by 2|d|.
            states = rounds(operator, rows, columns, turned.u, turned.v, solver, feasible=True)
        elif solver == "aisp" and watch.seen(state, previous):
            return Solution(state, "cycle", np.array(objectives))
    return Solution(state, "max_iter", np.array(objectives))


def _usable(solver: SolverName, rows: Side, columns: Side) -> SolverName:
    for axis, side in (("row", rows), ("column", columns)):
        if not side.penalty.has_objective:
            if solver == "monotone":
                raise IncompatibleSolver(
                    f"solver='monotone' cannot be used with {axis} penalty {side.penalty!r}: it has no objective, so "
                    "there is nothing that could be monotone. Use solver='auto' or 'aisp', or a penalty with one "
                    "(L0, L1, L1Ball)"
                )
            solver = "aisp"
    return solver


def chooses_size(side: Side) -> bool:
    """Whether the side's penalty decides how many entries stay."""
    return side.penalty.chooses_size


def _chosen(state: State) -> bool:
    return state.u.choice is not None or state.v.choice is not None


def as_chosen(side: Side, vector: Vector, share: float = 1.0) -> Side:
    """The side with (a share of the) size and weight of the graph as its penalty chose them, if it does choose."""
    if vector.choice is None:
        return side
    penalty = L0(max(1, round(share * vector.support.size)), nonnegative=side.penalty.nonnegative)
    return replace(side, penalty=penalty, sigma=vector.choice.sigma)


def _same(one: State, other: State, tol: float) -> bool:
    return one.u.distance(other.u) <= tol and one.v.distance(other.v) <= tol


def upright(state: State, rows: Side, columns: Side) -> State:
    """The state itself, or where d < 0 the one with a vector flipped that is free to be (none if both must be >= 0)."""
    if state.d >= 0 or (rows.penalty.nonnegative and columns.penalty.nonnegative):
        return state
    d, objective = -state.d, state.objective - 2 * state.d
    return (
        State(state.u, -state.v, d, objective) if rows.penalty.nonnegative else State(-state.u, state.v, d, objective)
    )


class CycleWatch:
    """Brent's cycle finding: compares every state with one remembered at rounds 1, 2, 4, 8, ...

    A state counts as seen if it has come back a million times closer than it moves in a round: an oscillation that dies
    away slowly has not.
    """

    def __init__(self) -> None:
        self._remembered: State | None = None
        self._age, self._span = 0, 1

    def seen(self, state: State, previous: State) -> bool:
        """Whether `state` equals an earlier one, although it differs from the one just before."""
        step = max(state.u.distance(previous.u), state.v.distance(previous.v))
        if self._remembered is not None and _same(state, self._remembered, 1e-6 * step):
            return True
        self._age += 1
        if self._age >= self._span:
            self._remembered, self._age, self._span = state, 0, 2 * self._span
        return False
