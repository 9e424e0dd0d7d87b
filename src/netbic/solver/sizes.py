"""Penalties that choose their sizes (`AdaptiveSupport`).

- `best_of_sizes`: starts from one module of several with about the same d, not from a mixture of them.
- `solve_sizes`: fixed sizes instead of those that a penalty chooses, for modules whose size is not reliable. The module
  with the fixed size is found first. If most rows (columns) follow it, or if they differ in their noise, no size can be
  reliable, and the penalty is not asked. So data without sparse modules take hardly longer than with a fixed size.
- `with_groups`: rows of centred data. A penalty takes the scores of rows that are not members to be at zero. If the
  columns of X are centred they are not, unless the members are few or have both signs. So the module is solved with all
  rows first. If its scores form clear groups with free locations, these are the members; otherwise the penalty chooses
  in every half step, as on other axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from netbic.arrays import Floats
from netbic.operators.corrected import Corrected
from netbic.penalties import L0, Choice, Dense, Penalty
from netbic.solver.half_step import Side, State, Vector, adaptive_step, scale_scores, strength_of
from netbic.solver.solve import Budget, Solution, with_fixed_size
from netbic.solver.starts import Direction, Pair

if TYPE_CHECKING:
    from netbic.solver.problem import ModuleProblem

Choices = tuple[Choice | None, Choice | None]  # of rows and columns

_FEWEST = 8  # members of the smallest module of a path (on its longer axis)
_PROMISING_F1 = 0.7  # expected F1 below which the first choice of members is not worth improving
_NOISE = 1.0  # strength below which all modules of a path are weak
_WEAKER = 0.9  # share of the largest strength below which a path ends
_POWER_STEPS = 15  # for the second singular value of a module
_MIXED = 0.4  # share of d from which on the second singular value may be that of another module
_BEYOND_NOISE = 1.15  # the same, relative to the largest value expected from noise
_UNOBSERVED = 1e-9  # part of |v|^2 on the observed entries of a row that is rounding error


def best_of_sizes(problem: ModuleProblem, start: Pair) -> Solution:
    """Solve from a dense start, where penalties choose sizes on one axis or on both.

    The leading pair is a mixture if several modules have about the same d, and sizes would be chosen for the mixture.
    So the choice begins with the strongest module of a path of fixed sizes, and a solution that contains two modules
    is taken apart. If both axes choose their sizes, the dense start itself and a module of half the size are tried too.
    Penalties with a fallback are asked once only if it is clear that their choice will not be reliable.
    """
    rows, columns, budget = problem.rows, problem.columns, problem.budget

    def choose(start: Pair) -> Solution:
        return problem.solve_sides(rows, columns, _forgotten(start), budget)

    strongest, strength = strongest_by_size(problem, start)
    replaceable = [bool(side.penalty.when_unreliable()) for side in (rows, columns)]
    if any(replaceable):
        first = problem.solve_sides(rows, columns, _forgotten(strongest), Budget(1))
        if strength < _NOISE or _is_doubtful(first.state, replaceable):
            return first
    both = rows.penalty.chooses_size and columns.penalty.chooses_size
    solutions = []
    if both:
        solutions.append(choose(start))
        solutions.append(choose(_half_size(problem, solutions[-1].state)))
    guided = both and (rows.has_graph or columns.has_graph)  # a graph tells modules apart
    if not guided:
        solutions.append(choose(strongest))
    best = max(solutions, key=lambda solution: solution.rank)
    if guided or budget.choosing <= 0 or (any(replaceable) and _is_doubtful(best.state, replaceable, least_f1=1.0)):
        return best
    return _separated(problem, best, choose)


def _is_doubtful(state: State, replaceable: list[bool], least_f1: float = _PROMISING_F1) -> bool:
    """Whether the fallback of a penalty will be used: more steps would be a waste of time."""
    choices = [v.choice for v, has_fallback in zip((state.u, state.v), replaceable, strict=True) if has_fallback]
    return any(choice is not None and choice.diagnostic and choice.expected_f1 < least_f1 for choice in choices)


def strongest_by_size(problem: ModuleProblem, start: Pair) -> tuple[Pair, float]:
    """The strongest of the modules with 1/2, 1/4, 1/8, ... of the entries of an axis, each solved from the previous.

    Its strength is returned too: d relative to the largest value expected from noise for modules of this size. Graphs
    are not used.
    """
    best, largest = start, 0.0
    sides = tuple(zip((problem.rows, problem.columns), problem.operator.shape, strict=True))
    longest = max(size for side, size in sides if side.penalty.chooses_size)
    for halvings in range(1, max(int(np.log2(longest / _FEWEST)), 1) + 1):
        rows, columns = (
            replace(side, penalty=L0(max(size >> halvings, 2), nonnegative=side.penalty.nonnegative), sigma=0.0)
            if side.penalty.chooses_size
            else side
            for side, size in sides
        )
        state = problem.solve_sides(rows, columns, start).state
        if state.is_empty:
            break
        start, strength = (state.u, state.v), module_strength(problem.operator, state)
        if strength > largest:
            best, largest = start, strength
        elif strength < _WEAKER * largest:
            break
    return best, largest


def _half_size(problem: ModuleProblem, state: State, start: Pair | None = None) -> Pair:
    """The module of half the size that is found from a module (or from another start)."""
    if state.is_empty:
        return state.u, state.v
    sides = with_fixed_size(problem.rows, state.u, 0.5), with_fixed_size(problem.columns, state.v, 0.5)
    found = problem.solve_sides(*sides, start or (state.u, state.v), Budget()).state  # until it converges
    return (state.u, state.v) if found.is_empty else (found.u, found.v)


def _forgotten(start: Pair) -> Pair:
    """A start without the choices by which it was made."""
    u, v = start
    return replace(u, choice=None, smoothed=None), replace(v, choice=None, smoothed=None)


def _separated(problem: ModuleProblem, found: Solution, choose: Callable[[Pair], Solution]) -> Solution:
    """The solution, or one of two modules of which it is a mixture.

    In the rows and columns of a single module, nothing but noise is left after its own singular pair. A mixture of two
    has a second pair (s, w): then v + w and v - w are close to the two. Of the solutions found from them and the
    mixture itself, the one with the largest distance of d to its s is kept.
    """
    if found.state.is_empty:
        return found
    operator = problem.operator
    second, w = second_pair(operator, found.state)
    if second < max(_MIXED * found.state.d, _BEYOND_NOISE * _noise_edge(operator, found.state)):
        return found
    solutions = [(found.state.d - second, found)]
    for sign in (1.0, -1.0):
        v = found.state.v
        part = found.state.u, replace(v, values=_unit(v.values + sign * w))
        other = choose(_half_size(problem, found.state, _forgotten(part)))
        if not other.state.is_empty:
            edge = _noise_edge(operator, other.state)
            solutions.append((other.state.d - max(second_pair(operator, other.state)[0], edge), other))
    return max(solutions, key=lambda each: each[0])[1]


def second_pair(operator: Corrected, state: State) -> tuple[float, Floats]:
    """The second singular value in the rows and columns of a module, and its right vector, by power iteration."""
    u, v = state.u, state.v
    w, value = np.random.default_rng(0).standard_normal(v.support.size), 0.0
    for _ in range(_POWER_STEPS):
        w = _unit(w - v.values * float(v.values @ w))
        y = operator.matvec(v.support, w)[u.support]
        y = _unit(y - u.values * float(u.values @ y))
        w = operator.rmatvec(u.support, y)[v.support]
        value = float(np.linalg.norm(w))
    return value, _unit(w - v.values * float(v.values @ w))


def _unit(vector: Floats) -> Floats:
    unit: Floats = vector / max(float(np.linalg.norm(vector)), np.finfo(np.float64).tiny)
    return unit


def _noise(operator: Corrected, state: State) -> float:
    """Standard deviation of the entries of the matrix without a module."""
    return float(np.sqrt(max(operator.squared_norm - state.d**2, 0.0) / operator.n_entries))


def _noise_edge(operator: Corrected, state: State) -> float:
    """Largest singular value expected from noise in the rows and columns of a module."""
    return _noise(operator, state) * float(np.sqrt(state.u.support.size) + np.sqrt(state.v.support.size))


def module_strength(operator: Corrected, state: State) -> float:
    """d relative to the largest value expected from noise for modules of this size."""
    kept = state.u.support.size, state.v.support.size
    return strength_of(state.d, _noise(operator, state), *zip(operator.shape, kept, strict=True))


# --- Fallbacks ---


def solve_sizes(
    problem: ModuleProblem, fixed: ModuleProblem, leading: Direction, number: int
) -> tuple[ModuleProblem, Solution, Choices]:
    """Solve from all starts; `fixed` is solved instead, which has fallbacks, where chosen sizes are not reliable.

    The problem that was solved, its solution, and the choices that were not relied on.
    """
    of_rows, of_columns = (bool(side.penalty.when_unreliable()) for side in (problem.rows, problem.columns))
    if not (of_rows or of_columns):
        return problem, _examined(problem, problem.best_of_starts(leading, number)), (None, None)
    simple = fixed.best_of_starts(leading, number)
    rejected: Choices = None, None
    if not simple.state.is_empty:
        rejected = (
            _assess(problem, simple.state, on_rows=True) if of_rows else None,
            _assess(problem, simple.state, on_rows=False) if of_columns else None,
        )
    if not any(choice is not None and choice.is_hopeless for choice in rejected):
        found = _examined(problem, problem.best_of_starts(leading, number))
        rejected = found.state.u.choice if of_rows else None, found.state.v.choice if of_columns else None
        if not any(choice is not None and choice.diagnostic for choice in rejected):
            return problem, found, (None, None)
    return fixed, simple, rejected


def _assess(problem: ModuleProblem, state: State, on_rows: bool) -> Choice | None:
    """What the penalty of an axis would choose for a module with fixed sizes."""
    if on_rows:
        side, vector, other = problem.rows, state.u, state.v
        z = problem.operator.matvec(other.support, other.values)
    else:
        side, vector, other = problem.columns, state.v, state.u
        z = _column_scores(problem, state)
    scores = scale_scores(side.penalty, z, vector, other, side.squares)
    strength = module_strength(problem.operator, state)
    unknown = Choice(np.full(z.size, np.nan), 0.0, np.nan, strength, background=scores.background)
    if unknown.is_hopeless:  # posteriors would cost as much as the module itself
        return replace(unknown, heteroscedasticity=scores.heteroscedasticity)
    return adaptive_step(replace(side, limit=np.inf), z, vector, other).choice


def _examined(problem: ModuleProblem, solution: Solution) -> Solution:
    """The solution, after its columns were compared with members whose scores decrease without a gap."""
    state, choice = solution.state, solution.state.v.choice
    if state.is_empty or choice is None or choice.sigma > 0 or choice.diagnostic:
        return solution  # by a graph, members can be told apart without a gap
    side = problem.columns
    scores = scale_scores(side.penalty, _column_scores(problem, state), state.v, state.u, side.squares)
    choice = replace(choice, gradation=side.penalty.gradation(scores.values))
    return replace(solution, state=replace(state, v=replace(state.v, choice=choice)))


def _column_scores(problem: ModuleProblem, state: State) -> Floats:
    if state.column_scores is not None:
        return state.column_scores
    return problem.operator.rmatvec(state.u.support, state.u.values)


# --- Groups of rows ---


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
    filled, squares = problem.operator, problem.rows.squares
    if filled.imputes:
        filled = filled.with_prediction(z, state.v.full())
        squares = filled.squared_lengths()[0]
    spread = scale_scores(penalty, z, state.u, state.v, squares).heteroscedasticity
    choice = replace(choice, strength=module_strength(filled, state), heteroscedasticity=spread)
    support = choice.support[z[choice.support] != 0]
    u = Vector(z.size, support, z[support] / np.linalg.norm(z[support]), choice=choice)
    d = float(z[u.support] @ u.values)
    objective = d + problem.columns.gain(state.v)
    return replace(solution, state=replace(state, u=u, d=d, objective=objective))
