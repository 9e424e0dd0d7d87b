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
from netbic.operators import Corrected
from netbic.penalties import Choice, Dense, Penalty
from netbic.solver.adaptive_step import ScaledScores
from netbic.solver.half_step import Side
from netbic.solver.restarts import ModuleProblem
from netbic.solver.sizes import module_strength
from netbic.solver.solve import Budget, Solution
from netbic.solver.vectors import State, Vector

_UNOBSERVED = 1e-9  # part of |v|^2 on the observed entries of a row that is rounding error


def with_all_rows(problem: ModuleProblem) -> ModuleProblem:
    """The same problem with all rows kept, and without a graph of the rows."""
    penalty = Dense(nonnegative=problem.rows.penalty.nonnegative)
    return replace(problem, rows=Side(penalty, squares=problem.rows.squares), budget=Budget())


def scores_of_all_rows(operator: Corrected, v: Vector) -> Floats:
    """The scores z = Xv, where missing entries that are imputed hold the prediction zv' of the module itself.

    With missing entries at 0 the product is z (1 - s), where s is the part of |v|^2 on the missing entries of a row.
    """
    product = operator.matvec(v.support, v.values)
    if not operator.imputes:
        return product
    missing = operator.with_prediction(np.ones(product.size), v.full()).matvec(v.support, v.values) - product
    observed = 1 - missing
    return np.divide(product, observed, where=observed > _UNOBSERVED, out=np.zeros_like(product))


def with_groups(solution: Solution, problem: ModuleProblem, penalty: Penalty) -> Solution | None:
    """A solution with all rows, restricted to groups among their scores; None if there are none.

    The strength of the module is that with all rows: the others take part in it, with scores of the other sign.
    """
    state = solution.state
    if state.is_empty or state.d <= 0:
        return None
    z = scores_of_all_rows(problem.operator, state.v)
    choice = penalty.choose_groups(z)
    if choice is None:
        return None
    u = _on_members(_described(choice, problem, penalty, z, state), z)
    d = float(z[u.support] @ u.values)
    objective = d + problem.columns.gain(state.v)
    return replace(solution, state=replace(state, u=u, d=d, objective=objective))


def _described(choice: Choice, problem: ModuleProblem, penalty: Penalty, z: Floats, state: State) -> Choice:
    filled, squares = problem.operator, problem.rows.squares
    if filled.imputes:
        filled = filled.with_prediction(z, state.v.full())
        squares = filled.squared_lengths()[0]
    spread = ScaledScores.of(penalty, z, state.u, state.v, squares).heteroscedasticity
    return replace(choice, strength=module_strength(filled, state), heteroscedasticity=spread)


def _on_members(choice: Choice, z: Floats) -> Vector:
    support = choice.support[z[choice.support] != 0]
    values = z[support] / np.linalg.norm(z[support])
    return Vector(z.size, support, values, choice=choice)
