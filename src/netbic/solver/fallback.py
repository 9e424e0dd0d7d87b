"""Fixed sizes instead of those that a penalty chooses, for modules whose size is not reliable.

The module with the fixed size is found first. If most rows (columns) follow it, or if they differ in their noise, no
size can be reliable, and the penalty is not asked. So data without sparse modules take hardly longer than with a fixed
size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from netbic.arrays import Floats
from netbic.penalties import Choice
from netbic.solver.adaptive_step import ScaledScores, adaptive_step
from netbic.solver.half_step import Side
from netbic.solver.restarts import ModuleProblem
from netbic.solver.sizes import module_strength
from netbic.solver.solve import Solution
from netbic.solver.starts import Direction
from netbic.solver.vectors import State, Vector


class Sized(NamedTuple):
    """A problem with the penalties that were used in the end, its solution, and choices that were not relied on."""

    problem: ModuleProblem
    solution: Solution
    rejected: tuple[Choice | None, Choice | None] = (None, None)


def solve_sizes(problem: ModuleProblem, fixed: ModuleProblem, leading: Direction, number: int) -> Sized:
    """Solve from all starts; `fixed` is solved instead, which has fallbacks, where chosen sizes are not reliable."""
    if not any(side.penalty.when_unreliable() for side in (problem.rows, problem.columns)):
        return Sized(problem, _examined(problem, problem.best_of_starts(leading, number)))
    simple = fixed.best_of_starts(leading, number)
    assessed = _assessed(problem, simple.state)
    if not any(choice is not None and choice.is_hopeless for choice in assessed):
        found = _examined(problem, problem.best_of_starts(leading, number))
        assessed = _choices(problem, found.state)
        if not any(choice is not None and choice.diagnostic for choice in assessed):
            return Sized(problem, found)
    return Sized(fixed, simple, assessed)


def with_rejected(found: Sized) -> Solution:
    """The solution, whose vectors tell which choices were not relied on."""
    state, sides = found.solution.state, (found.problem.rows, found.problem.columns)
    u, v = (
        vector if choice is None else replace(vector, choice=replace(choice, sigma=side.sigma, fallback=True))
        for vector, choice, side in zip((state.u, state.v), found.rejected, sides, strict=True)
    )
    return replace(found.solution, state=replace(state, u=u, v=v))


def _choices(problem: ModuleProblem, state: State) -> tuple[Choice | None, Choice | None]:
    """What penalties with a fallback have chosen; None for the other axis."""
    sides = (problem.rows, state.u), (problem.columns, state.v)
    first, second = (vector.choice if side.penalty.when_unreliable() else None for side, vector in sides)
    return first, second


def _assessed(problem: ModuleProblem, state: State) -> tuple[Choice | None, Choice | None]:
    """What penalties with a fallback would choose for a module with fixed sizes."""
    if state.is_empty:
        return None, None
    first, second = (
        _assessed_side(problem, side, state, on_rows) if side.penalty.when_unreliable() else None
        for side, on_rows in ((problem.rows, True), (problem.columns, False))
    )
    return first, second


def _assessed_side(problem: ModuleProblem, side: Side, state: State, on_rows: bool) -> Choice | None:
    z, (vector, other) = _scores(problem, state, on_rows), _pair(state, on_rows)
    scores = ScaledScores.of(side.penalty, z, vector, other, side.squares)
    unknown = Choice(
        np.full(z.size, np.nan), 0.0, np.nan, module_strength(problem.operator, state), background=scores.background
    )
    if unknown.is_hopeless:  # posteriors would cost as much as the module itself
        return replace(unknown, heteroscedasticity=scores.heteroscedasticity)
    return adaptive_step(side.penalty, z, side.towards(z, vector), other, side.squares).choice


def _examined(problem: ModuleProblem, solution: Solution) -> Solution:
    """The solution, after its columns were compared with members whose scores decrease without a gap."""
    state, choice = solution.state, solution.state.v.choice
    if state.is_empty or choice is None or choice.sigma > 0 or choice.diagnostic:
        return solution  # by a graph, members can be told apart without a gap
    z, side = _scores(problem, state, on_rows=False), problem.columns
    scores = ScaledScores.of(side.penalty, z, state.v, state.u, side.squares)
    choice = replace(choice, gradation=side.penalty.gradation(scores.values))
    return replace(solution, state=replace(state, v=replace(state.v, choice=choice)))


def _pair(state: State, on_rows: bool) -> tuple[Vector, Vector]:
    """The vector of an axis, and that of the other axis."""
    return (state.u, state.v) if on_rows else (state.v, state.u)


def _scores(problem: ModuleProblem, state: State, on_rows: bool) -> Floats:
    """The product of the matrix with the vector of the other axis."""
    if not on_rows and state.column_scores is not None:
        return state.column_scores
    product = problem.operator.matvec if on_rows else problem.operator.rmatvec
    other = _pair(state, on_rows)[1]
    return product(other.support, other.values)
