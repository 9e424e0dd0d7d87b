r"""The weight of the graph in units of the module's own strength (`smoothness_scale="module"`).

A module is first solved without the graph, which gives d0. Then sigma = share d0 / scale, where `scale` is that of the
graph term, and the iteration continues from this module with the graph.

How much can the graph amplify? At a fixed point w = c / |c| with c = |z| + sigma M w on the kept entries. Let C be a
set of kept entries without edges to the others. The inner product of both sides with w_C, where the correction of the
modularity adds nothing positive between C and the others, gives

    |w_C|^2 |c| = w_C'|z_C| + sigma w_C'(Mw)_C <= |w_C| |z_C| + sigma lambda_C |w_C|^2,
    |w_C| <= (|z_C| / |c|) / (1 - sigma lambda_C / |c|),

with lambda_C the largest eigenvalue of M within C, at most that of M. So sigma is reduced until
sigma lambda_max(M) <= share |c|: no set of entries gets more than 1 / (1 - share) times what the data give it.
By F, |c| = d + sigma w'Mw.

Where many scores are nearly equal, a small bonus changes the order much. So sigma is also reduced until the 20 largest
entries are among the 60 largest by |z| alone: no gene leads a module that the data rank far behind.

If edges have signs, these count by how well they agree with the signs of the module without the graph
(`Side.trusting`): edges with random signs are used as if they had none.

Penalties that choose a size choose sigma as well: by the likelihood, but at most share |c| / lambda_max(M), too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from netbic.arrays import Floats
from netbic.penalties import largest
from netbic.solver.half_step import Side
from netbic.solver.restarts import ModuleProblem, Settings
from netbic.solver.solve import Solution
from netbic.solver.starts import Direction
from netbic.solver.vectors import Vector

_REDUCTIONS = 20  # of sigma at most; then the module without the graph is kept
_MARGIN = 0.99  # factor of sigma beyond what is needed, so that few reductions are enough
_STEP = 0.7  # factor of sigma if a leading entry has too bad a rank by the data alone
_WORST = 3  # rank that a leading entry may have by the data alone, in units of the number of leading entries
_ROUNDING = 1 + 1e-9
_ROUGH = 1e-3  # tolerance for the vectors without the graph; the error of d is about its square

LEADING: Final = 20  # number of largest entries of a vector that are examined


def before_graph(settings: Settings, rows: Side, columns: Side) -> Settings:
    """The settings of the solve without the graph: it need not converge fully if one with the graph follows."""
    if not (rows.share or columns.share) or rows.penalty.chooses_size or columns.penalty.chooses_size:
        return settings
    return replace(settings, tol=max(settings.tol, _ROUGH), rough=True)


def solve_with_graph(problem: ModuleProblem, plain: Solution, leading: Direction) -> tuple[ModuleProblem, Solution]:
    """Continue from the solution without the graph with weights in units of its d; the problem with these weights."""
    if plain.state.is_empty or plain.state.d <= 0:
        return problem, plain
    d = plain.state.d
    rows, columns = _weighted(problem.rows, plain.state.u, d), _weighted(problem.columns, plain.state.v, d)
    weighted = _with_sides(problem, rows, columns)
    solution = weighted.resume(plain.state)
    if problem.settings.annealing:
        annealed = weighted.from_direction(leading)
        solution = max(solution, annealed, key=lambda one: one.rank)
    for _ in range(_REDUCTIONS):
        state = solution.state
        if state.is_empty:
            break
        rows = _reduced(weighted.rows, state.u, state.d, state.row_scores)
        columns = _reduced(weighted.columns, state.v, state.d, state.column_scores)
        if rows is weighted.rows and columns is weighted.columns:
            return weighted, solution
        weighted = _with_sides(problem, rows, columns)
        solution = weighted.resume(state)
    return problem, problem.resume(plain.state)


def _with_sides(problem: ModuleProblem, rows: Side, columns: Side) -> ModuleProblem:
    return replace(problem, rows=rows, columns=columns)


def _weighted(side: Side, vector: Vector, d: float) -> Side:
    """The side with its sigma for a module with this d, if it is in units of it; signs count as they agree."""
    if side.term is None or not side.share:
        return side
    return replace(side.trusting(vector), sigma=side.share * d / side.term.scale)


def _reduced(side: Side, vector: Vector, d: float, scores: Floats | None) -> Side:
    """The side with a smaller sigma if the graph amplifies, or may amplify, scores too much."""
    if not (side.share and side.amplification):
        return side
    norm = d + 2 * side.graph_gain(side.smooth(vector))  # |c| at a fixed point
    allowed = side.share * norm
    if side.amplification <= _ROUNDING * allowed:
        if worst_rank(side, vector, scores) <= _WORST * min(LEADING, vector.support.size):
            return side
        return replace(side, sigma=_STEP * side.sigma)
    return replace(side, sigma=side.sigma * _MARGIN * max(allowed / side.amplification, 0.1))


def worst_rank(side: Side, vector: Vector, scores: Floats | None) -> int:
    """The worst rank, by the scores alone, among the (up to 20) largest entries of a vector.

    Their number is the best possible; it is that without a graph (`scores` are None), too.
    """
    if scores is None:
        return min(LEADING, vector.support.size)
    leading = np.argsort(-np.abs(vector.values), kind="stable")[:LEADING]
    sizes = _sizes(side, scores)
    return 1 + int(np.count_nonzero(sizes > sizes[vector.support[leading]].min()))


def share_by_data(side: Side, vector: Vector, scores: Floats | None) -> float:
    """The share of entries that are among as many entries with the largest scores; of ties, all."""
    if scores is None:
        return 1.0
    sizes, count = _sizes(side, scores), vector.support.size
    kept = largest(sizes, count)
    edge = sizes[kept].min() if kept.size == count else 0.0
    return float(np.mean(sizes[vector.support] >= edge))


def _sizes(side: Side, scores: Floats) -> Floats:
    """How large the scores are without the graph, by which entries are ranked."""
    sizes: Floats = np.maximum(scores, 0.0) if side.penalty.nonnegative else np.abs(scores)
    return sizes
