"""Rows of centred data: all of them are kept while a module is searched for, then groups are split off its scores.

A penalty that chooses its size (`AdaptiveSupport`) takes the scores of rows that are not members to be at zero. If the
columns of X are centred they are not, unless the members are few or have both signs. So the module is solved with all
rows first. If its scores form clear groups with free locations, these are the members; otherwise the penalty chooses
in every half step, as on other axes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netbic.arrays import Floats
from netbic.penalties import Choice, Dense, Penalty
from netbic.solver.adaptive_step import noise_scales, strength_of
from netbic.solver.half_step import Side
from netbic.solver.restarts import ModuleProblem
from netbic.solver.solve import Solution
from netbic.solver.vectors import Vector


def with_all_rows(problem: ModuleProblem) -> ModuleProblem:
    """The same problem with all rows kept, and without a graph of the rows."""
    penalty = Dense(nonnegative=problem.rows.penalty.nonnegative)
    return replace(problem, rows=Side(penalty, squares=problem.rows.squares))


def with_groups(solution: Solution, problem: ModuleProblem, penalty: Penalty) -> Solution | None:
    """A solution with all rows, restricted to groups among their scores; None if there are none.

    The strength of the module is that with all rows: the others take part in it, with scores of the other sign.
    """
    state = solution.state
    if state.is_empty or state.d <= 0:
        return None
    z = problem.operator.matvec(state.v.support, state.v.values)
    choice = penalty.choose_groups(z)
    if choice is None:
        return None
    u = _on_members(_described(choice, problem, penalty, z, state.d, state.v), z)
    d = float(z[u.support] @ u.values)
    objective = d + problem.columns.gain(state.v)
    return replace(solution, state=replace(state, u=u, d=d, objective=objective))


def _described(choice: Choice, problem: ModuleProblem, penalty: Penalty, z: Floats, d: float, v: Vector) -> Choice:
    scales = noise_scales(z, problem.rows.squares, v.size)
    varying = scales[scales > 0]
    spread = float(np.std(np.log(varying))) if varying.size else 0.0
    matrix_penalty = penalty.for_matrix(problem.operator.squared_norm, problem.operator.n_entries)
    strength = strength_of(matrix_penalty, d, z.size, z.size, v)
    return replace(choice, strength=strength, heteroscedasticity=spread)


def _on_members(choice: Choice, z: Floats) -> Vector:
    support = choice.support[z[choice.support] != 0]
    values = z[support] / np.linalg.norm(z[support])
    return Vector(z.size, support, values, choice=choice)
