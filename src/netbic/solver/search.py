"""The search for modules, one after another: start, solve (with restarts), deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from netbic.arrays import Floats
from netbic.graphs import GraphTerm
from netbic.operators import Corrected
from netbic.penalties import Penalty
from netbic.solver.half_step import Side, SolverName
from netbic.solver.solve import Budget, Outcome, Solution, is_stable, solve, with_fixed_size
from netbic.solver.starts import Direction, Starts, image, largest_entry, paper_start, random_direction, sparse_start
from netbic.solver.vectors import State, Vector

Sides = tuple[Side, Side]
Pair = tuple[Vector, Vector]
Deflation = Literal["hotelling", "projection", "schur"]
SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("hotelling", "projection", "schur")
MAX_MODULES: Final = 10_000  # of one search; modules of one row and one column could be as many as entries of X
_EPSILON = float(np.finfo(np.float64).eps)
_IMPUTATION_ROUNDS = 10  # in units of max_iter, while missing entries are imputed


@dataclass(frozen=True)
class Axis:
    """The options of one axis; `side` turns them into the input of a half step for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    relative: bool = True
    signed: bool = False

    def side(self, leading_value: float, squared_norm: float, n_entries: int, squares: Floats | None = None) -> Side:
        """Set sigma and data-driven penalties for a residual with this leading singular value and squared norm.

        `squares` are the squared norms of the rows (columns) of the residual, for penalties that choose their size.
        """
        sigma = self.smoothness
        if self.relative and self.term is not None and sigma > 0:
            sigma *= leading_value / self.term.scale
        return Side(self.penalty.for_matrix(squared_norm, n_entries), self.term, sigma, self.signed, squares)


@dataclass(frozen=True)
class Settings:
    """Options of the iteration, named as the parameters of `SparseGraphSVD`."""

    solver: SolverName = "auto"
    n_init: int = 1
    max_iter: int = 500
    tol: float = 1e-6
    deflation: Deflation = "hotelling"
    seed: int = 0
    n_jobs: int | None = None
    annealing: int = 0


@dataclass(frozen=True)
class Module:
    """A pair (u, v) with d = u'Xv, and how its iteration ended."""

    u: Vector
    v: Vector
    d: float
    outcome: Outcome
    objectives: Floats
    graph_share: float


class ModuleSearch:
    """Iterate over modules until nothing is left of X; `ended` then says why the search has ended.

    `known` modules, the first ones of an earlier search, are not searched for again. The others are bit-identical to
    those of that search. `starts` are those of the operator, if they have been computed already; they are modified.
    """

    def __init__(
        self,
        operator: Corrected,
        rows: Axis,
        columns: Axis,
        settings: Settings,
        noise: float,
        known: Sequence[Module] = (),
        starts: Starts | None = None,
    ) -> None:
        self.ended = ""
        self._known = known
        self._residual = operator.for_one_start()
        if known:
            self._residual.prefetch(np.unique(np.concatenate([module.v.support for module in known])))
        self._rows, self._columns, self._settings = rows, columns, settings
        self._noise = noise
        self._starts = starts or Starts(operator, exact=settings.solver == "aisp")

    def __iter__(self) -> Iterator[Module]:
        number, norm_error = 0, 0.0
        while True:
            if number == MAX_MODULES:
                self.ended = f"no more than {MAX_MODULES:,} are searched for"
                return
            is_left = self._residual.squared_norm > norm_error
            leading = self._starts.leading(self._residual) if is_left else None
            if leading is None or leading.value <= self._noise:
                self.ended = "nothing but rounding error is left of X"
                return
            self._residual.reset_cache()
            module = self._known[number] if number < len(self._known) else self._next(leading, number)
            if module is None:
                return
            yield module
            norm_error += _EPSILON * self._residual.squared_norm  # rounding error of the difference of the two norms
            self._residual.reset_cache()
            for left, right in deflation_terms(self._filled(module), module, self._settings.deflation):
                self._deflate(left, right)
            number += 1

    def _filled(self, module: Module) -> Corrected:
        """The matrix to deflate: missing entries that are imputed hold the prediction of the module."""
        if not self._residual.imputes:
            return self._residual
        return self._residual.with_prediction(module.d * module.u.full(), module.v.full())

    def _deflate(self, left: Floats, right: Floats) -> None:
        product = image(self._residual.matvec, right)
        self._starts.deflate(self._residual, left, right, product)
        self._residual = self._residual.minus(left, right, product)

    def _next(self, leading: Direction, number: int) -> Module | None:
        squared_norm, n_entries = self._residual.squared_norm, self._residual.n_entries
        choosing = any(axis.penalty.chooses_size for axis in (self._rows, self._columns))
        row_squares, column_squares = self._residual.squared_lengths() if choosing else (None, None)
        self._residual.reset_cache()
        rows = self._rows.side(leading.value, squared_norm, n_entries, row_squares)
        columns = self._columns.side(leading.value, squared_norm, n_entries, column_squares)
        solution = best_of_starts(self._residual, rows, columns, leading, number, self._settings)
        if self._residual.imputes and not solution.state.is_empty:
            solution = solve_imputed(self._residual, rows, columns, solution, self._settings)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} keeps no {axis}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining module explains nothing (d <= 0)"
            return None
        state = _signed_by_convention(solution.state, rows, columns)
        share = max(graph_share(rows, state.u, state.d), graph_share(columns, state.v, state.d))
        return Module(state.u, state.v, state.d, solution.outcome, solution.objectives, share)


def best_of_starts(
    operator: Corrected, rows: Side, columns: Side, leading: Direction, number: int, settings: Settings
) -> Solution:
    """Solve from the leading direction and n_init - 1 random ones; keep the largest F, the first among equals."""
    if settings.n_init == 1:
        return solve_either_sign(operator, rows, columns, leading, settings)

    def attempt(index: int) -> Solution:
        generator = np.random.default_rng([settings.seed, number, index])
        direction = random_direction(leading, generator) if index else leading
        # Each start has its own cache, so that results do not depend on the other starts.
        return solve_either_sign(operator.for_one_start(), rows, columns, direction, settings)

    run = Parallel(n_jobs=settings.n_jobs, prefer="threads")
    solutions: list[Solution] = run(delayed(attempt)(index) for index in range(settings.n_init))
    return max(solutions, key=lambda solution: solution.rank)


def solve_imputed(operator: Corrected, rows: Side, columns: Side, solution: Solution, settings: Settings) -> Solution:
    """Fill missing entries with the prediction of the module and solve again, until the module converges.

    Penalties that choose their sizes do so in every solve until the budget is spent; then the last sizes are fixed.
    """
    budget, asked, n_rounds = Budget(), (rows, columns), 0
    budget.choosing *= 3  # many short solves: about a hundred are typical
    for _ in range(settings.max_iter):
        before = solution.state
        filled = operator.with_prediction(before.d * before.u.full(), before.v.full())
        rows, columns = _for_matrix((rows, columns), filled)
        solution = solve_with(filled, rows, columns, (before.u, before.v), settings, budget)
        after, n_rounds = solution.state, n_rounds + len(solution.objectives)
        if after.is_empty:
            return solution
        if max(after.u.distance(before.u), after.v.distance(before.v)) <= settings.tol:
            stable = not budget.is_spent or is_stable(filled, *_for_matrix(asked, filled), after, settings.tol)
            return solution if stable else replace(solution, outcome="unsettled")
        if n_rounds > _IMPUTATION_ROUNDS * settings.max_iter:
            break
        if budget.is_spent:
            rows, columns = with_fixed_size(rows, after.u), with_fixed_size(columns, after.v)
    return replace(solution, outcome="max_iter")


def _for_matrix(sides: Sides, operator: Corrected) -> Sides:
    """Both sides with the noise level of a matrix."""
    norm, size = operator.squared_norm, operator.n_entries
    rows, columns = (replace(side, penalty=side.penalty.for_matrix(norm, size)) for side in sides)
    return rows, columns


def solve_with(
    operator: Corrected,
    rows: Side,
    columns: Side,
    start: Pair,
    settings: Settings,
    budget: Budget | None = None,
) -> Solution:
    """`solve` with these settings."""
    solver, most, tol = settings.solver, settings.max_iter, settings.tol
    return solve(operator, rows, columns, start, solver=solver, max_iter=most, tol=tol, budget=budget)


def solve_either_sign(
    operator: Corrected, rows: Side, columns: Side, direction: Direction, settings: Settings
) -> Solution:
    """Solve from a direction, which is defined up to its sign.

    The sign matters if a side is non-negative: then both are tried and the better one is kept. If both end empty (no
    score of a non-negative side may be positive), the row and the column of the largest entry are tried as a start.
    """
    budget = Budget()

    def attempt(start: Pair) -> Solution:
        start = anneal(operator, rows, columns, start, settings, budget)
        first = solve_with(operator, rows, columns, start, settings, budget)
        if first.state.is_empty or not _chooses_size(rows, columns):
            return first
        half = half_size_restart(operator, rows, columns, first.state, settings)
        second = solve_with(operator, rows, columns, half, settings, budget)
        return max(first, second, key=lambda solution: solution.rank)

    if not (rows.penalty.nonnegative or columns.penalty.nonnegative):
        return attempt(start_from(operator, rows, columns, direction, settings))
    signs = (direction, direction._replace(vector=-direction.vector))
    solutions = [attempt(start_from(operator, rows, columns, signed, settings)) for signed in signs]
    if all(solution.state.is_empty for solution in solutions):
        solutions.append(attempt(largest_entry(operator)))
    return max(solutions, key=lambda solution: solution.rank)


def start_from(operator: Corrected, rows: Side, columns: Side, direction: Direction, settings: Settings) -> Pair:
    """The dense singular pair for the paper's solver (or if the sparse start would be empty), otherwise a sparse start.

    Annealing and penalties that choose their size also begin with the dense pair: from a sparse start they would keep
    its support.
    """
    dense = settings.annealing > 0 or settings.solver == "aisp" or _chooses_size(rows, columns)
    sparse = None if dense else sparse_start(operator, rows, columns, direction)
    return sparse or paper_start(operator, direction)


def _chooses_size(rows: Side, columns: Side) -> bool:
    return rows.penalty.chooses_size or columns.penalty.chooses_size


def anneal(operator: Corrected, rows: Side, columns: Side, start: Pair, settings: Settings, budget: Budget) -> Pair:
    """Reduce a dense start to the sizes of the penalties in geometric steps, each solved from the previous one."""
    for share in np.linspace(1, 0, settings.annealing, endpoint=False):
        sides = enlarged(rows, operator.shape[0], share), enlarged(columns, operator.shape[1], share)
        state = solve_with(operator, *sides, start, settings, budget).state
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


def half_size_restart(operator: Corrected, rows: Side, columns: Side, state: State, settings: Settings) -> Pair:
    """A start for a second solve: the module of half the size that is found from this one.

    The leading pair is a mixture of modules with nearly equal d, and the size is then chosen for the mixture; the half
    size separates them.
    """
    rows, columns = with_fixed_size(rows, state.u, 0.5), with_fixed_size(columns, state.v, 0.5)
    found = solve_with(operator, rows, columns, (state.u, state.v), settings).state
    if found.is_empty:
        return state.u, state.v
    return replace(found.u, choice=None), replace(found.v, choice=None)


def graph_share(side: Side, vector: Vector, d: float) -> float:
    """Share of the graph in the scores of the kept entries: sigma |w'Mw| against d."""
    graph = abs(2 * side.graph_gain(side.smooth(vector)))
    return graph / (d + graph)


def deflation_terms(operator: Corrected, module: Module, how: Deflation) -> Iterator[tuple[Floats, Floats]]:
    """The rank-one matrices to subtract, one after another, to remove a module.

    hotelling: X - d uv'.  projection: (I - uu') X (I - vv').  schur: X - (Xv)(X'u)' / d.
    """
    u, v, d = module.u, module.v, module.d
    if how == "hotelling":
        yield d * u.full(), v.full()
        return
    left = operator.matvec(v.support, v.values)
    right = operator.rmatvec(u.support, u.values)
    if how == "schur":
        yield left / d, right
    else:
        yield u.full(), right
        yield left - d * u.full(), v.full()


def _signed_by_convention(state: State, rows: Side, columns: Side) -> State:
    """Make the largest entry of v positive, unless a non-negative side fixes the signs."""
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        return state
    if state.v.values[np.argmax(np.abs(state.v.values))] > 0:
        return state
    return State(-state.u, -state.v, state.d, state.objective)
