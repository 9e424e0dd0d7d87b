r"""The search for one module: starts, restarts and imputation around `solve`, and the weight of the graph.

With `smoothness_scale="module"` the weight of the graph is in units of the module's own strength. A module is first
solved without the graph, which gives d0. Then sigma = share d0 / scale, where `scale` is that of the graph term, and
the iteration continues from this module with the graph.

How much can the graph amplify? At a fixed point w = c / |c| with c = |z| + sigma M w on the kept entries. Let C be a
set of kept entries without edges to the others. The inner product of both sides with w_C, where the correction of the
modularity adds nothing positive between C and the others, gives

    |w_C|^2 |c| = w_C'|z_C| + sigma w_C'(Mw)_C <= |w_C| |z_C| + sigma lambda_C |w_C|^2,
    |w_C| <= (|z_C| / |c|) / (1 - sigma lambda_C / |c|),

with lambda_C the largest eigenvalue of M within C, at most that of M. So sigma is reduced until
sigma lambda_max(M) <= share |c|: no such set gets more than 1 / (1 - share) times what the data give it.
By F, |c| = d + sigma w'Mw.

Where many scores are nearly equal, a small bonus changes the order much. So sigma is also reduced until the 20 largest
entries are among the 60 largest by |z| alone: no feature leads a module that the data rank far behind.

If edges have signs, these count by how well they agree with the signs of the module without the graph
(`Side.trusting`): edges with random signs are used as if they had none.

Penalties that take sizes from the data do so in a first solve, from all starts; then sizes are fixed (`with_sizes`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from netbic.arrays import Floats
from netbic.operators.corrected import Corrected
from netbic.penalties import largest
from netbic.solver.half_step import Side, State, Vector, scored
from netbic.solver.solve import Settings, Solution, solve
from netbic.solver.starts import Direction, Start, largest_entry, paper_start, random_direction, sparse_start
from netbic.solver.working_sets import WorkingSets

LEADING: Final = 20  # number of largest entries of a vector that are examined

_SIZE_ROUNDS = 20  # in which sizes are taken from the data
_IMPUTATION_ROUNDS = 10  # in units of max_iter, while missing entries are imputed
REDUCTIONS: Final = 20  # of sigma at most; then the module without the graph is kept
_MARGIN = 0.99  # factor of sigma beyond what is needed, so that few reductions are enough
_STEP = 0.7  # factor of sigma if a leading entry has too bad a rank by the data alone
_WORST = 3  # rank that a leading entry may have by the data alone, in units of the number of leading entries
_ROUNDING = 1 + 1e-9
ROUGH: Final = 1e-3  # tolerance for the vectors without the graph; the error of d is about its square


@dataclass(frozen=True)
class ModuleProblem:
    """The search for one module in a matrix.

    All solves from one start share working `sets`, also those with other weights of the graph, which continue from it.
    """

    operator: Corrected
    rows: Side
    columns: Side
    settings: Settings
    sets: WorkingSets = field(default_factory=WorkingSets)

    def best_of_starts(self, leading: Direction, number: int) -> Solution:
        """Solve from the leading direction and n_init - 1 random ones; keep the largest F, the first among equals."""
        if self.settings.n_init == 1:
            return self.from_direction(leading)

        def attempt(index: int) -> Solution:
            generator = np.random.default_rng([self.settings.seed, number, index])
            direction = random_direction(leading, generator) if index else leading
            # Each start has its own cache, so that results do not depend on the other starts.
            own = replace(self, operator=self.operator.for_one_start(), sets=WorkingSets())
            return own.from_direction(direction)

        run = Parallel(n_jobs=self.settings.n_jobs, prefer="threads")
        solutions: list[Solution] = run(delayed(attempt)(index) for index in range(self.settings.n_init))
        return max(solutions, key=lambda solution: solution.rank)

    def from_direction(self, direction: Direction) -> Solution:
        """Solve from a direction, which is defined up to its sign.

        The sign matters if a side is non-negative: then both are tried and the better one is kept. If both end empty
        (no score of a non-negative side may be positive), the row and the column of the largest entry are tried.
        """

        def solve_from(direction: Direction) -> Solution:
            start: Start | None = None
            if self.settings.solver != "aisp":
                start = sparse_start(self.operator, self.rows, self.columns, direction)
            return self.solve(start or paper_start(self.operator, direction))

        if not (self.rows.penalty.nonnegative or self.columns.penalty.nonnegative):
            return solve_from(direction)
        solutions = [solve_from(direction), solve_from(-direction)]
        if all(solution.state.is_empty for solution in solutions):
            solutions.append(self.solve(largest_entry(self.operator)))
        return max(solutions, key=lambda solution: solution.rank)

    def solve(self, start: Start, *, feasible: bool = False) -> Solution:
        """Solve from one start."""
        return solve(self.operator, self.rows, self.columns, start, self.settings, feasible=feasible, sets=self.sets)

    def with_sizes(self, leading: Direction, number: int) -> tuple[ModuleProblem, Solution]:
        """Solve from all starts; sizes that come from the data are those of a short first solve, and then fixed."""
        if not (self.rows.penalty.sizes_from_data or self.columns.penalty.sizes_from_data):
            return self, self.best_of_starts(leading, number)
        rounds = min(self.settings.max_iter, _SIZE_ROUNDS)
        first = replace(self, settings=replace(self.settings, max_iter=rounds)).best_of_starts(leading, number)
        state = first.state
        if state.is_empty:
            return self, first
        sides = []
        scores = self.operator.matvec(state.v.support, state.v.values), state.column_scores
        for side, z, vector in zip((self.rows, self.columns), scores, (state.u, state.v), strict=True):
            if side.penalty.sizes_from_data and z is not None:
                magnitudes = side.magnitudes(scored(side, z, side.smooth(vector)))
                side = replace(side, penalty=side.penalty.fixed_for(np.maximum(magnitudes, 0.0)))
            sides.append(side)
        fixed = replace(self, rows=sides[0], columns=sides[1])
        return fixed, fixed.solve((state.u, state.v))

    def resume(self, state: State) -> Solution:
        """Solve from the vectors of a module that satisfies the penalties."""
        start = replace(state, u=replace(state.u, smoothed=None), v=replace(state.v, smoothed=None), objective=-np.inf)
        return self.solve(start, feasible=True)

    def impute(self, solution: Solution) -> Solution:
        """Fill missing entries with the prediction of the module and solve again, until the module converges."""
        n_rounds, tol = 0, self.settings.tol
        for _ in range(self.settings.max_iter):
            before = solution.state
            filled = self.operator.with_prediction(before.d * before.u.full(), before.v.full())
            solution = self._on(filled).solve((before.u, before.v))
            after, n_rounds = solution.state, n_rounds + len(solution.objectives)
            if after.is_empty or max(after.u.distance(before.u), after.v.distance(before.v)) <= tol:
                return solution
            if n_rounds > _IMPUTATION_ROUNDS * self.settings.max_iter:
                break
        return replace(solution, outcome="max_iter")

    def _on(self, operator: Corrected) -> ModuleProblem:
        """The same problem for another matrix, with its noise level."""
        norm, size = operator.squared_norm, operator.n_entries
        rows, columns = (
            replace(side, penalty=side.penalty.for_matrix(norm, size)) for side in (self.rows, self.columns)
        )
        return replace(self, operator=operator, rows=rows, columns=columns)


def solve_with_graph(problem: ModuleProblem, plain: Solution) -> tuple[ModuleProblem, Solution]:
    """Continue from the solution without the graph with weights in units of its d; the problem with these weights."""
    if plain.state.is_empty or plain.state.d <= 0:
        return problem, plain

    def weighted_side(side: Side, vector: Vector) -> Side:
        if side.term is None or not side.share:
            return side
        return replace(side.trusting(vector), sigma=side.share * plain.state.d / side.term.scale)

    rows, columns = weighted_side(problem.rows, plain.state.u), weighted_side(problem.columns, plain.state.v)
    weighted = replace(problem, rows=rows, columns=columns)
    solution = weighted.resume(plain.state)
    for _ in range(REDUCTIONS):
        state = solution.state
        if state.is_empty:
            break
        rows = reduced_weight(weighted.rows, state.u, state.d, state.row_scores)
        columns = reduced_weight(weighted.columns, state.v, state.d, state.column_scores)
        if rows is weighted.rows and columns is weighted.columns:
            return weighted, solution
        weighted = replace(problem, rows=rows, columns=columns)
        solution = weighted.resume(state)
    return problem, problem.resume(plain.state)


def reduced_weight(side: Side, vector: Vector, d: float, scores: Floats | None, lowest_rank: int = 0) -> Side:
    """The side with a smaller sigma if the graph amplifies, or may amplify, scores too much.

    Leading entries may have the `lowest_rank` by the data alone, or three times their number if this is more.
    """
    if not (side.share and side.amplification):
        return side
    norm = d + 2 * side.graph_gain(side.smooth(vector))  # |c| at a fixed point
    allowed = side.share * norm
    if side.amplification <= _ROUNDING * allowed:
        if worst_rank(side, vector, scores) <= max(_WORST * min(LEADING, vector.support.size), lowest_rank):
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
    sizes = np.maximum(scores, 0.0) if side.penalty.nonnegative else np.abs(scores)
    return 1 + int(np.count_nonzero(sizes > sizes[vector.support[leading]].min()))


def share_by_data(side: Side, vector: Vector, scores: Floats | None) -> float:
    """The share of entries that are among as many entries with the largest scores; of ties, all."""
    if scores is None:
        return 1.0
    sizes, count = np.maximum(scores, 0.0) if side.penalty.nonnegative else np.abs(scores), vector.support.size
    kept = largest(sizes, count)
    edge = sizes[kept].min() if kept.size == count else 0.0
    return float(np.mean(sizes[vector.support] >= edge))
