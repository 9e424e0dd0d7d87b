"""Starts of penalties that choose their sizes: one module of several with about the same d, not a mixture of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from netbic.arrays import Floats
from netbic.operators import Corrected
from netbic.penalties import L0
from netbic.solver.adaptive_step import strength_of
from netbic.solver.half_step import Side
from netbic.solver.solve import Budget, Solution, with_fixed_size
from netbic.solver.starts import Pair
from netbic.solver.vectors import State

Solve = Callable[[Side, Side, Pair, Budget | None], Solution]

_FEWEST = 8  # members of the smallest module of a path (on its longer axis)
_PROMISING_F1 = 0.7  # expected F1 below which the first choice of members is not worth improving
_NOISE = 1.0  # strength below which all modules of a path are weak
_WEAKER = 0.9  # share of the largest strength below which a path ends
_POWER_STEPS = 15  # for the second singular value of a module
_MIXED = 0.4  # share of d from which on the second singular value may be that of another module
_BEYOND_NOISE = 1.15  # the same, relative to the largest value expected from noise


def best_of_sizes(
    operator: Corrected, rows: Side, columns: Side, start: Pair, solve: Solve, budget: Budget
) -> Solution:
    """Solve from a dense start, where penalties choose sizes on one axis or on both.

    The leading pair is a mixture if several modules have about the same d, and sizes would be chosen for the mixture.
    So the choice begins with the strongest module of a path of fixed sizes, and a solution that contains two modules
    is taken apart. If both axes choose their sizes, the dense start itself and a module of half the size are tried too.
    Penalties with a fallback are asked once only if it is clear that their choice will not be reliable.
    """

    def choose(start: Pair) -> Solution:
        return solve(rows, columns, _forgotten(start), budget)

    strongest, strength = strongest_by_size(operator, rows, columns, start, solve)
    replaceable = [bool(side.penalty.when_unreliable()) for side in (rows, columns)]
    if any(replaceable):
        first = solve(rows, columns, _forgotten(strongest), Budget(1))
        if strength < _NOISE or _is_doubtful(first.state, replaceable):
            return first
    both = rows.penalty.chooses_size and columns.penalty.chooses_size
    solutions = []
    if both:
        solutions.append(choose(start))
        solutions.append(choose(_half_size(rows, columns, solutions[-1].state, solve)))
    guided = both and (rows.has_graph or columns.has_graph)  # a graph tells modules apart
    if not guided:
        solutions.append(choose(strongest))
    best = max(solutions, key=lambda solution: solution.rank)
    if guided or budget.is_spent or (any(replaceable) and _is_doubtful(best.state, replaceable, least_f1=1.0)):
        return best
    return _separated(operator, rows, columns, best, solve, choose)


def _is_doubtful(state: State, replaceable: list[bool], least_f1: float = _PROMISING_F1) -> bool:
    """Whether the fallback of a penalty will be used: more steps would be a waste of time."""
    choices = [v.choice for v, has_fallback in zip((state.u, state.v), replaceable, strict=True) if has_fallback]
    return any(choice is not None and choice.diagnostic and choice.expected_f1 < least_f1 for choice in choices)


def strongest_by_size(operator: Corrected, rows: Side, columns: Side, start: Pair, solve: Solve) -> tuple[Pair, float]:
    """The strongest of the modules with 1/2, 1/4, 1/8, ... of the entries of an axis, each solved from the previous.

    Its strength is returned too: d relative to the largest value expected from noise for modules of this size. Graphs
    are not used.
    """
    best, largest = start, 0.0
    for halved in _halved(rows, columns, operator.shape):
        state = solve(*halved, start, None).state
        if state.is_empty:
            break
        start, strength = (state.u, state.v), module_strength(operator, state)
        if strength > largest:
            best, largest = start, strength
        elif strength < _WEAKER * largest:
            break
    return best, largest


def _halved(rows: Side, columns: Side, shape: tuple[int, int]) -> Iterator[tuple[Side, Side]]:
    """Both sides with 1/2, 1/4, 1/8, ... of the entries where penalties choose their sizes."""
    sides = tuple(zip((rows, columns), shape, strict=True))
    longest = max(size for side, size in sides if side.penalty.chooses_size)
    for halvings in range(1, max(int(np.log2(longest / _FEWEST)), 1) + 1):
        first, second = (_with_size(side, max(size >> halvings, 2)) for side, size in sides)
        yield first, second


def _with_size(side: Side, size: int) -> Side:
    if not side.penalty.chooses_size:
        return side
    return replace(side, penalty=L0(size, nonnegative=side.penalty.nonnegative), sigma=0.0)


def _half_size(rows: Side, columns: Side, state: State, solve: Solve, start: Pair | None = None) -> Pair:
    """The module of half the size that is found from a module (or from another start)."""
    if state.is_empty:
        return state.u, state.v
    sides = with_fixed_size(rows, state.u, 0.5), with_fixed_size(columns, state.v, 0.5)
    found = solve(*sides, start or (state.u, state.v), Budget()).state  # until it converges
    return (state.u, state.v) if found.is_empty else (found.u, found.v)


def _forgotten(start: Pair) -> Pair:
    """A start without the choices by which it was made."""
    u, v = start
    return replace(u, choice=None, smoothed=None), replace(v, choice=None, smoothed=None)


def _separated(
    operator: Corrected, rows: Side, columns: Side, found: Solution, solve: Solve, choose: Callable[[Pair], Solution]
) -> Solution:
    """The solution, or one of two modules of which it is a mixture.

    In the rows and columns of a single module, nothing but noise is left after its own singular pair. A mixture of two
    has a second pair (s, w): then v + w and v - w are close to the two. Of the solutions found from them and the
    mixture itself, the one with the largest distance of d to its s is kept.
    """
    if found.state.is_empty:
        return found
    second, w = second_pair(operator, found.state)
    if second < max(_MIXED * found.state.d, _BEYOND_NOISE * _noise_edge(operator, found.state)):
        return found
    solutions = [(found.state.d - second, found)]
    for sign in (1.0, -1.0):
        v = found.state.v
        part = found.state.u, replace(v, values=_unit(v.values + sign * w))
        other = choose(_half_size(rows, columns, found.state, solve, _forgotten(part)))
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
