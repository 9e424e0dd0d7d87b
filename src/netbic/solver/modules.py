"""Modules one after another: start, solve (restarts included), keep, deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from netbic.graphs import GraphTerm
from netbic.operators import Corrected
from netbic.penalties import Penalty
from netbic.solver.half_steps import Side, SolverName, State, Vector
from netbic.solver.one_start import Budget, Outcome, Solution, as_chosen, chooses_size, solve, stands
from netbic.solver.starts import Direction, Starts, cut_start, image, largest_entry, paper_start, random_direction

Floats = NDArray[np.float64]
Deflation = Literal["hotelling", "projection", "schur"]
SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("hotelling", "projection", "schur")
MOST_MODULES: Final = 10_000  # of one search: a size of one row and one column could go on for every entry of X
_EPSILON = float(np.finfo(np.float64).eps)
_IMPUTING = 10  # times max_iter: most rounds while holes are imputed


@dataclass(frozen=True)
class Axis:
    """What the user asked for on one axis; `side` turns it into what a half step needs for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    relative: bool = True
    signed: bool = False

    def side(self, leading_value: float, squared_norm: float, n_entries: int, squares: Floats | None = None) -> Side:
        """Fix sigma and data-driven penalties for a residual with this leading singular value and squared norm.

        `squares` are the squared lengths of the residual's rows (columns), for penalties that choose their size.
        """
        sigma = self.smoothness
        if self.relative and self.term is not None and sigma > 0:
            sigma *= leading_value / self.term.scale
        return Side(self.penalty.for_matrix(squared_norm, n_entries), self.term, sigma, self.signed, squares)


@dataclass(frozen=True)
class Settings:
    """How to iterate; the words of `SparseGraphSVD`."""

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
    """One pair (u, v) with d = u'Xv and the account of how it was found."""

    u: Vector
    v: Vector
    d: float
    outcome: Outcome
    objectives: NDArray[np.float64]
    graph_share: float


class ModuleSearch:
    """Iterate over modules for as long as anything is left; `ended` then says why there are no more.

    Modules that are `known` already, the first ones of an earlier search, are taken as they are. No digit of a module
    depends on how those before it were found, so the search then goes on to the same numbers. `starts` are those of the
    operator, where they have been made already; they are used up.
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
            self._residual.expect(np.unique(np.concatenate([module.v.support for module in known])))
        self._rows, self._columns, self._settings = rows, columns, settings
        self._noise = noise
        self._starts = starts or Starts(operator, exact=settings.solver == "aisp")

    def __iter__(self) -> Iterator[Module]:
        number, norm_error = 0, 0.0
        while True:
            if number == MOST_MODULES:
                self.ended = f"no more than {MOST_MODULES:,} are sought"
                return
            is_left = self._residual.squared_norm > norm_error
            leading = self._starts.leading(self._residual) if is_left else None
            if leading is None or leading.value <= self._noise:
                self.ended = "nothing but rounding error is left of X"
                return
            self._residual.forget()
            module = self._known[number] if number < len(self._known) else self._next(leading, number)
            if module is None:
                return
            yield module
            norm_error += _EPSILON * self._residual.squared_norm  # what the difference of the two norms is rounded by
            self._residual.forget()
            for left, right in layers(self._filled(module), module, self._settings.deflation):
                self._take_out(left, right)
            number += 1

    def _filled(self, module: Module) -> Corrected:
        """What a module is taken out of: holes, where they are imputed, hold what it predicts."""
        if not self._residual.imputes:
            return self._residual
        return self._residual.with_prediction(module.d * module.u.full(), module.v.full())

    def _take_out(self, left: Floats, right: Floats) -> None:
        product = image(self._residual.matvec, right)
        self._starts.forget(self._residual, left, right, product)
        self._residual = self._residual.minus(left, right, product)

    def _next(self, leading: Direction, number: int) -> Module | None:
        squared_norm, n_entries = self._residual.squared_norm, self._residual.n_entries
        adaptive = any(axis.penalty.chooses_size for axis in (self._rows, self._columns))
        row_squares, column_squares = self._residual.squared_lengths() if adaptive else (None, None)
        self._residual.forget()
        rows = self._rows.side(leading.value, squared_norm, n_entries, row_squares)
        columns = self._columns.side(leading.value, squared_norm, n_entries, column_squares)
        solution = best_of_starts(self._residual, rows, columns, leading, number, self._settings)
        if self._residual.imputes and not solution.state.is_empty:
            solution = imputing(self._residual, rows, columns, solution, self._settings)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} leaves no {axis} at all"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best module left explains nothing (d <= 0)"
            return None
        state = _signed_by_convention(solution.state, rows, columns)
        share = max(graph_share(rows, state.u, state.d), graph_share(columns, state.v, state.d))
        return Module(state.u, state.v, state.d, solution.outcome, solution.objectives, share)


def best_of_starts(
    operator: Corrected, rows: Side, columns: Side, leading: Direction, number: int, settings: Settings
) -> Solution:
    """Solve from the leading direction and n_init - 1 random ones; the largest F wins, the earliest among equals."""
    if settings.n_init == 1:
        return solve_either_sign(operator, rows, columns, leading, settings)

    def attempt(index: int) -> Solution:
        generator = np.random.default_rng([settings.seed, number, index])
        direction = random_direction(leading, generator) if index else leading
        # Each start packs for itself, so that no digit depends on what ran before it or beside it.
        return solve_either_sign(operator.for_one_start(), rows, columns, direction, settings)

    run = Parallel(n_jobs=settings.n_jobs, prefer="threads")
    solutions: list[Solution] = run(delayed(attempt)(index) for index in range(settings.n_init))
    return max(solutions, key=lambda solution: solution.rank)


def imputing(operator: Corrected, rows: Side, columns: Side, solution: Solution, settings: Settings) -> Solution:
    """Fill the holes with what the module predicts and solve again, until it stands still.

    Sizes are chosen afresh each time, as long as the budget lasts; then those chosen last are kept.
    """
    budget, asked, n_rounds = Budget(), (rows, columns), 0
    budget.choosing *= 3  # many short solves: a hundred are usual
    for _ in range(settings.max_iter):
        before = solution.state
        filled = operator.with_prediction(before.d * before.u.full(), before.v.full())
        rows, columns = _for_matrix((rows, columns), filled)
        solution = solve_with(filled, rows, columns, (before.u, before.v), settings, budget)
        after, n_rounds = solution.state, n_rounds + len(solution.objectives)
        if after.is_empty:
            return solution
        if max(after.u.distance(before.u), after.v.distance(before.v)) <= settings.tol:
            settled = not budget.is_spent or stands(filled, *_for_matrix(asked, filled), after, settings.tol)
            return solution if settled else replace(solution, outcome="unsettled")
        if n_rounds > _IMPUTING * settings.max_iter:
            break
        if budget.is_spent:
            rows, columns = as_chosen(rows, after.u), as_chosen(columns, after.v)
    return replace(solution, outcome="max_iter")


def _for_matrix(sides: tuple[Side, Side], operator: Corrected) -> tuple[Side, Side]:
    """Both sides with the noise level of a matrix."""
    norm, size = operator.squared_norm, operator.n_entries
    rows, columns = (replace(side, penalty=side.penalty.for_matrix(norm, size)) for side in sides)
    return rows, columns


def solve_with(
    operator: Corrected,
    rows: Side,
    columns: Side,
    start: tuple[Vector, Vector],
    settings: Settings,
    budget: Budget | None = None,
) -> Solution:
    """`solve` with the user's solver, limits and tolerance."""
    solver, most, tol = settings.solver, settings.max_iter, settings.tol
    return solve(operator, rows, columns, start, solver=solver, max_iter=most, tol=tol, budget=budget)


def solve_either_sign(
    operator: Corrected, rows: Side, columns: Side, direction: Direction, settings: Settings
) -> Solution:
    """Solve from a direction, which is defined up to its sign.

    The sign matters once a side is non-negative: then both are tried and the better one is kept. Where both die (a
    non-negative side can be left with no positive score at all), the column of the largest entry is a last start.
    """
    budget = Budget()

    def attempt(start: tuple[Vector, Vector]) -> Solution:
        start = come_down(operator, rows, columns, start, settings, budget)
        first = solve_with(operator, rows, columns, start, settings, budget)
        if first.state.is_empty or not (chooses_size(rows) or chooses_size(columns)):
            return first
        half = half_as_large(operator, rows, columns, first.state, settings)
        second = solve_with(operator, rows, columns, half, settings, budget)
        return max(first, second, key=lambda solution: solution.rank)

    if not (rows.penalty.nonnegative or columns.penalty.nonnegative):
        return attempt(start_from(operator, rows, columns, direction, settings))
    signs = (direction, direction._replace(vector=-direction.vector))
    solutions = [attempt(start_from(operator, rows, columns, signed, settings)) for signed in signs]
    if all(solution.state.is_empty for solution in solutions):
        solutions.append(attempt(largest_entry(operator)))
    return max(solutions, key=lambda solution: solution.rank)


def start_from(
    operator: Corrected, rows: Side, columns: Side, direction: Direction, settings: Settings
) -> tuple[Vector, Vector]:
    """The paper's start for the paper's solver (or where a cut start would be empty), otherwise a cut one.

    Penalties that choose their size come down from the dense pair: cut at once, they keep what the first cut left.
    """
    dense = settings.annealing > 0 or chooses_size(rows) or chooses_size(columns)
    cut = None if dense or settings.solver == "aisp" else cut_start(operator, rows, columns, direction)
    return cut or paper_start(operator, direction)


def come_down(
    operator: Corrected, rows: Side, columns: Side, start: tuple[Vector, Vector], settings: Settings, budget: Budget
) -> tuple[Vector, Vector]:
    """From a dense start towards the sizes asked for, in geometric steps: each is solved from the one before."""
    for share in np.linspace(1, 0, settings.annealing, endpoint=False):
        wide, tall = larger(rows, operator.shape[0], share), larger(columns, operator.shape[1], share)
        state = solve_with(operator, wide, tall, start, settings, budget).state
        if state.is_empty:
            break
        start = state.u, state.v
    return start


def larger(side: Side, size: int, share: float) -> Side:
    """The side with a size between that asked for (share 0) and all (share 1); as it is if none is asked for."""
    asked = side.penalty.size()
    if asked is None:
        return side
    return replace(side, penalty=side.penalty.resized(round(asked * (size / asked) ** share)))


def half_as_large(
    operator: Corrected, rows: Side, columns: Side, state: State, settings: Settings
) -> tuple[Vector, Vector]:
    """The module of half the size that is found from this one: of two that were mixed up in it, the one or the other.

    Modules of nearly equal d leave a leading pair that is any mixture of theirs, and a size chosen for both.
    """
    rows, columns = as_chosen(rows, state.u, 0.5), as_chosen(columns, state.v, 0.5)
    found = solve_with(operator, rows, columns, (state.u, state.v), settings).state
    if found.is_empty:
        return state.u, state.v
    return replace(found.u, choice=None), replace(found.v, choice=None)


def graph_share(side: Side, vector: Vector, d: float) -> float:
    """Share of the graph in the scores of the kept entries: sigma |w'Mw| against d."""
    graph = abs(2 * side.graph_gain(side.smooth(vector)))
    return graph / (d + graph)


def layers(operator: Corrected, module: Module, how: Deflation) -> Iterator[tuple[Floats, Floats]]:
    """The rank-one matrices to subtract, one after another, to take a module out.

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
    """Make the largest entry of v positive, unless a non-negative side has fixed the signs already."""
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        return state
    if state.v.values[np.argmax(np.abs(state.v.values))] > 0:
        return state
    return State(-state.u, -state.v, state.d, state.objective)
