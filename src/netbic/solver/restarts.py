"""One module: starts, annealing, restarts and imputation around `solve`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from netbic.operators import Corrected
from netbic.solver.half_step import Side, SolverName
from netbic.solver.sizes import best_of_sizes
from netbic.solver.solve import Budget, CycleDetector, Solution, is_stable, solve, with_fixed_size
from netbic.solver.starts import Direction, Pair, Start, largest_entry, paper_start, random_direction, sparse_start
from netbic.solver.vectors import State
from netbic.solver.working_sets import WorkingSets

Deflation = Literal["on_repeat", "hotelling", "projection", "schur"]

_START_ROUNDS = 10  # of a module with a given size, from which penalties choose sizes
_IMPUTATION_ROUNDS = 10  # in units of max_iter, while missing entries are imputed


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
    annealing: int = 0
    rough: bool = False


@dataclass(frozen=True)
class ModuleProblem:
    """The search for one module in a matrix.

    All solves from one start share a `budget` and working `sets`, also those with other weights of the graph, which
    continue from it.
    """

    operator: Corrected
    rows: Side
    columns: Side
    settings: Settings
    budget: Budget = field(default_factory=Budget)
    sets: WorkingSets = field(default_factory=WorkingSets)

    def best_of_starts(self, leading: Direction, number: int) -> Solution:
        """Solve from the leading direction and n_init - 1 random ones; keep the largest F, the first among equals."""
        if self.settings.n_init == 1:
            return self.from_direction(leading)

        def attempt(index: int) -> Solution:
            generator = np.random.default_rng([self.settings.seed, number, index])
            direction = random_direction(leading, generator) if index else leading
            # Each start has its own cache, so that results do not depend on the other starts.
            own = replace(self, operator=self.operator.for_one_start(), budget=Budget(), sets=WorkingSets())
            return own.from_direction(direction)

        run = Parallel(n_jobs=self.settings.n_jobs, prefer="threads")
        solutions: list[Solution] = run(delayed(attempt)(index) for index in range(self.settings.n_init))
        return max(solutions, key=lambda solution: solution.rank)

    def from_direction(self, direction: Direction) -> Solution:
        """Solve from a direction, which is defined up to its sign.

        The sign matters if a side is non-negative: then both are tried and the better one is kept. If both end empty
        (no score of a non-negative side may be positive), the row and the column of the largest entry are tried.
        """
        if not (self.rows.penalty.nonnegative or self.columns.penalty.nonnegative):
            return self._from_start(self._start(direction))
        signs = (direction, -direction)
        solutions = [self._from_start(self._start(signed)) for signed in signs]
        if all(solution.state.is_empty for solution in solutions):
            solutions.append(self._from_start(largest_entry(self.operator)))
        return max(solutions, key=lambda solution: solution.rank)

    def resume(self, state: State) -> Solution:
        """Solve from the vectors of a module that satisfies the penalties."""
        start = replace(state, u=replace(state.u, smoothed=None), v=replace(state.v, smoothed=None), objective=-np.inf)
        return self._solve(start, self.budget, feasible=True)

    def impute(self, solution: Solution) -> Solution:
        """Fill missing entries with the prediction of the module and solve again, until the module converges.

        Penalties that choose their sizes do so in every solve until the solutions run into a cycle, or until the budget
        is spent; then the last sizes are fixed, as in a single solve.
        """
        budget, problem, n_rounds, tol = Budget(), self, 0, self.settings.tol
        cycles = CycleDetector()
        budget.choosing *= 3  # many short solves: about a hundred are typical
        for _ in range(self.settings.max_iter):
            before = solution.state
            filled = self.operator.with_prediction(before.d * before.u.full(), before.v.full())
            problem = problem._on(filled)
            solution = problem._solve((before.u, before.v), budget)
            after, n_rounds = solution.state, n_rounds + len(solution.objectives)
            if after.is_empty:
                return solution
            if max(after.u.distance(before.u), after.v.distance(before.v)) <= tol:
                asked = self._on(filled)
                stable = not budget.is_spent or is_stable(filled, asked.rows, asked.columns, after, tol)
                return solution if stable else replace(solution, outcome="size_not_converged")
            if n_rounds > _IMPUTATION_ROUNDS * self.settings.max_iter:
                break
            if budget.is_spent or cycles.seen(after, before):
                problem = problem._with_fixed_sizes(after)
        return replace(solution, outcome="max_iter")

    @property
    def _chooses_size(self) -> bool:
        return self.rows.penalty.chooses_size or self.columns.penalty.chooses_size

    def _on(self, operator: Corrected) -> ModuleProblem:
        """The same problem for another matrix, with its noise level."""
        norm, size = operator.squared_norm, operator.n_entries
        rows, columns = (
            replace(side, penalty=side.penalty.for_matrix(norm, size)) for side in (self.rows, self.columns)
        )
        return replace(self, operator=operator, rows=rows, columns=columns)

    def _with_fixed_sizes(self, state: State) -> ModuleProblem:
        """The problem with the sizes that the penalties have chosen, where they do so."""
        rows, columns = with_fixed_size(self.rows, state.u), with_fixed_size(self.columns, state.v)
        return replace(self, rows=rows, columns=columns)

    def _start(self, direction: Direction) -> Start:
        """The dense singular pair for the paper's solver (or if a sparse start would be empty), else a sparse start.

        Annealing and penalties that choose their size also begin with the dense pair.
        """
        dense = self.settings.annealing > 0 or self.settings.solver == "aisp" or self._chooses_size
        sparse = None if dense else sparse_start(self.operator, self.rows, self.columns, direction)
        return sparse or paper_start(self.operator, direction)

    def _solve(self, start: Start, budget: Budget | None = None, *, feasible: bool = False) -> Solution:
        settings = self.settings
        return solve(
            self.operator,
            self.rows,
            self.columns,
            start,
            solver=settings.solver,
            max_iter=settings.max_iter,
            tol=settings.tol,
            budget=budget,
            feasible=feasible,
            sets=self.sets,
            rough=settings.rough,
        )

    def _from_start(self, start: Start) -> Solution:
        if not (self._chooses_size or self.settings.annealing):
            return self._solve(start, self.budget)
        pair = self._anneal((start.u, start.v) if isinstance(start, State) else start)
        if not self._chooses_size:
            return self._solve(pair, self.budget)
        return best_of_sizes(self.operator, self.rows, self.columns, pair, self._solve_sides, self.budget)

    def _solve_sides(self, rows: Side, columns: Side, start: Pair, budget: Budget | None) -> Solution:
        """Solve with other penalties; solutions for given sizes are starts, and need not converge."""
        most = self.settings.max_iter if budget else min(self.settings.max_iter, _START_ROUNDS)
        settings = replace(self.settings, max_iter=most)
        return replace(self, rows=rows, columns=columns, settings=settings)._solve(start, budget)

    def _anneal(self, start: Pair) -> Pair:
        """Reduce a dense start to the sizes of the penalties in geometric steps, each solved from the previous one."""
        n, p = self.operator.shape
        for share in np.linspace(1, 0, self.settings.annealing, endpoint=False):
            larger = replace(self, rows=enlarged(self.rows, n, share), columns=enlarged(self.columns, p, share))
            state = larger._solve(start, self.budget).state
            if state.is_empty:
                break
            start = state.u, state.v
        return start


def enlarged(side: Side, n_entries: int, share: float) -> Side:
    """The side with a size between that of its penalty (share 0) and all entries (share 1), if it has one."""
    size = side.penalty.size()
    if size is None:
        return side
    return replace(side, penalty=side.penalty.resized(round(size * (n_entries / size) ** share)))
