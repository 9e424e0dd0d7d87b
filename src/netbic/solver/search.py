"""The search for modules, one after another: leading direction, solve (with restarts), deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from netbic.arrays import Floats
from netbic.graph_terms import GraphTerm
from netbic.operators import Corrected
from netbic.penalties import Dense, Penalty
from netbic.solver.fallback import solve_sizes, with_rejected
from netbic.solver.free_locations import scores_of_all_rows, with_all_rows, with_groups
from netbic.solver.half_step import Side
from netbic.solver.lengths import Lengths, Squares
from netbic.solver.module_scale import before_graph, share_by_data, solve_with_graph, worst_rank
from netbic.solver.residual import Residual
from netbic.solver.restarts import Deflation, ModuleProblem, Settings
from netbic.solver.solve import Outcome, Solution
from netbic.solver.starts import Direction, Starts
from netbic.solver.vectors import State, Vector

SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("on_repeat", "hotelling", "projection", "schur")
MAX_MODULES: Final = 10_000  # of one search; modules of one row and one column could be as many as entries of X

Solved = tuple[ModuleProblem, Solution]
SmoothnessScale = Literal["module", "relative", "absolute"]
AxisName = Literal["rows", "columns"]


@dataclass(frozen=True)
class Axis:
    """The options of one axis; `side` turns them into the input of a half step for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    scale: SmoothnessScale = "relative"
    signed: bool = False
    centred: bool = False  # whether the scores of this axis have mean zero, because the other axis is centred

    def side(self, leading_value: float, squared_norm: float, n_entries: int, squares: Floats | None = None) -> Side:
        """Set sigma and data-driven penalties for a residual with this leading singular value and squared norm.

        `squares` are the squared norms of the rows (columns) of the residual, for penalties that choose their size.
        """
        sigma, share, limit = self.smoothness, 0.0, np.inf
        if self.term is not None and sigma > 0:
            if self.penalty.chooses_size and self.scale == "module" and self.term.largest_eigenvalue > 0:
                limit = sigma / self.term.largest_eigenvalue
            if self.scale == "relative" or self.penalty.chooses_size:
                sigma *= leading_value / self.term.scale
            elif self.scale == "module":
                sigma, share = 0.0, sigma  # set by `solve_with_graph`, after a solve without the graph
        penalty = self.penalty.for_matrix(squared_norm, n_entries)
        return Side(penalty, self.term, sigma, self.signed, squares, share, limit)

    @property
    def is_bounded(self) -> bool:
        """Whether the graph cannot dominate the data: there is none, or its weight is reduced until it does not."""
        return self.term is None or not self.smoothness or (self.scale == "module" and self.smoothness < 1)

    @property
    def is_trivial(self) -> bool:
        """Whether all entries are kept as they are, without a graph: then singular vectors are the solution."""
        return isinstance(self.penalty, Dense) and not self.penalty.nonnegative and not (self.term and self.smoothness)

    def when_unreliable(self) -> Axis:
        """The options for a module whose size, as chosen by the penalty, is not reliable."""
        penalty = self.penalty.when_unreliable()
        return self if penalty is None else replace(self, penalty=penalty)


@dataclass(frozen=True)
class Module:
    """A pair (u, v) with d = u'Xv, how its iteration ended, and the part of the graph in it.

    Attributes
    ----------
    graph_share : float
        Share of the graph in the scores of the kept entries (the larger one of both axes).
    graph_weight : float
        sigma lambda_max(M) / d (the larger one of both axes): from 1 on the graph alone can carry a set of entries.
    worst_rank : int
        The worst rank, by abs(X'u) alone, of the 20 columns with the largest entries in v; without a graph 20, or the
        number of columns of a smaller module.
    by_data_alone : float
        Share of the columns that are among as many columns with the largest abs(X'u).
    regressed_out : tuple of int
        Earlier modules whose scores were regressed out of X before this one was found (`deflation="on_repeat"`).
    """

    u: Vector
    v: Vector
    d: float
    outcome: Outcome
    objectives: Floats
    graph_share: float
    graph_weight: float = 0.0
    worst_rank: int = 0
    by_data_alone: float = 1.0
    regressed_out: tuple[int, ...] = ()

    @property
    def free_locations(self) -> bool:
        """Whether the rows are groups among the scores of all rows; then deflation subtracts the other rows too."""
        return self.u.choice is not None and bool(self.u.choice.free_locations)


class ModuleSearch:
    """Iterate over modules until X is exhausted; `ended` is then the reason why the search has ended.

    `known` modules, the first ones of an earlier search, are not searched for again. The others are bit-identical to
    those of that search. `starts` are those of the operator, if they have been computed already; they are modified.

    `scores` are the products Xv of the modules so far.
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
        self.scores: list[Floats] = []
        self._known = known
        own = operator.for_one_start()
        if known:
            own.prefetch(np.unique(np.concatenate([module.v.support for module in known])))
        self._rows, self._columns, self._settings, self._noise = rows, columns, settings, noise
        starts = starts or Starts(operator, exact=settings.solver == "aisp")
        lengths = Lengths(operator, any(axis.penalty.chooses_size for axis in (rows, columns)))
        self._left = Residual(own, starts, lengths, noise)

    def __iter__(self) -> Iterator[Module]:
        for number in range(MAX_MODULES):
            module = self._replayed(number) if number < len(self._known) else self._new(number)
            if module is None:
                return
            yield module
            self._left.operator.reset_cache()
            hotelling = self._settings.deflation in ("hotelling", "on_repeat")
            for left, right in deflation_terms(self._filled(module), module, self._settings.deflation):
                self._left.deflate(left, right, module.v if hotelling else None)
        self.ended = f"no more than {MAX_MODULES:,} are searched for"

    def _replayed(self, number: int) -> Module | None:
        """A known module, after the same steps as when it was found."""
        module = self._known[number]
        for repeated in (*module.regressed_out, None):
            if self._leading() is None:
                return None
            if repeated is not None:
                self._regress_out(repeated)
        self.scores.append(self._left.scores(module.v))
        return module

    @property
    def _avoids_repeats(self) -> bool:
        return self._settings.deflation == "on_repeat"

    def _leading(self) -> Direction | None:
        leading = self._left.leading()
        if leading is None:
            self.ended = "nothing but rounding error is left of X"
        return leading

    def _new(self, number: int) -> Module | None:
        """The next module; with "on_repeat", one whose scores are not those of an earlier module, if there is one."""
        regressed: tuple[int, ...] = ()
        while True:
            leading = self._leading()
            module = None if leading is None else self._next(leading, number)
            if module is None:
                return None
            scores = self._left.scores(module.v)
            repeated = self._left.repeated(scores, self.scores) if self._avoids_repeats else None
            if repeated is None:
                self.scores.append(scores)
                return replace(module, regressed_out=regressed)
            self._regress_out(repeated)
            regressed = (*regressed, repeated)

    def _regress_out(self, module: int) -> None:
        self._left.regress_out(module, self.scores[module])

    def _filled(self, module: Module) -> Corrected:
        """The matrix to deflate: missing entries that are imputed hold the prediction of the module."""
        residual = self._left.operator
        if not residual.imputes:
            return residual
        left = scores_of_all_rows(residual, module.v) if module.free_locations else module.d * module.u.full()
        return residual.with_prediction(left, module.v.full())

    def _next(self, leading: Direction, number: int) -> Module | None:
        """The best module of the residual; None, with the reason in `ended`, if there is none."""
        squares = self._left.squares()
        self._left.operator.reset_cache()
        problem = self._problem(leading.value, squares, self._rows, self._columns)
        fixed = self._problem(leading.value, squares, self._rows.when_unreliable(), self._columns.when_unreliable())
        groups = self._groups(problem, fixed, leading, number)
        problem, solution = groups or self._solved(problem, fixed, leading, number)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} keeps no {axis}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining module explains nothing (d <= 0)"
            return None
        return described(solution, problem.rows, problem.columns)

    def _solved(self, problem: ModuleProblem, fixed: ModuleProblem, leading: Direction, number: int) -> Solved:
        """The best solution, and the problem with the sizes and weights of the graph that it was found with."""
        found = solve_sizes(problem, fixed, leading, number)
        problem, solution = found.problem, found.solution
        if problem.rows.share or problem.columns.share:
            problem, solution = solve_with_graph(replace(problem, settings=self._settings), solution, leading)
        if self._left.operator.imputes and not solution.state.is_empty:
            solution = problem.impute(solution)
        return problem, with_rejected(found._replace(problem=problem, solution=solution))

    def _groups(self, problem: ModuleProblem, fixed: ModuleProblem, leading: Direction, number: int) -> Solved | None:
        """The same with rows that are groups among the scores of all rows; None if there are no such groups."""
        if not (self._rows.centred and self._rows.penalty.chooses_size):
            return None
        dense, solution = self._solved(with_all_rows(problem), with_all_rows(fixed), leading, number)
        grouped = with_groups(solution, dense, self._rows.penalty)
        return None if grouped is None else (dense, grouped)

    def _problem(self, leading_value: float, squares: Squares, rows: Axis, columns: Axis) -> ModuleProblem:
        """The search for a module of the residual with these options."""
        residual = self._left.operator
        squared_norm, n_entries = residual.squared_norm, residual.n_entries
        first, second = (
            axis.side(leading_value, squared_norm, n_entries, own)
            for axis, own in zip((rows, columns), squares, strict=True)
        )
        return ModuleProblem(residual, first, second, before_graph(self._settings, first, second))


def described(solution: Solution, rows: Side, columns: Side, signed_by: AxisName = "columns") -> Module:
    """A module and the part of the graph in it; the largest entry of the vector that fixes its sign is positive."""
    state = solution.state  # the numbers do not depend on the sign of both vectors
    share = max(graph_share(rows, state.u, state.d), graph_share(columns, state.v, state.d))
    weight = max(graph_weight(rows, state.u, state.d), graph_weight(columns, state.v, state.d))
    alone = columns, state.v, state.column_scores if graph_weight(columns, state.v, state.d) else None
    numbers = share, weight, worst_rank(*alone), share_by_data(*alone)
    state = _signed_by_convention(state, rows, columns, signed_by)
    u, v = state.u.with_smoothed(None), state.v.with_smoothed(None)  # as long as the axis, and not needed any more
    return Module(u, v, state.d, solution.outcome, solution.objectives, *numbers)


def graph_weight(side: Side, vector: Vector, d: float) -> float:
    """How much the graph can amplify scores: sigma lambda_max(M) against d."""
    sigma = side.sigma if vector.choice is None else vector.choice.sigma
    return 0.0 if side.term is None or not sigma else sigma * side.term.largest_eigenvalue / d


def graph_share(side: Side, vector: Vector, d: float) -> float:
    """Share of the graph in the scores of the kept entries: sigma |w'Mw| against d."""
    graph = abs(2 * side.graph_gain(side.smooth(vector)))
    return graph / (d + graph)


def deflation_terms(operator: Corrected, module: Module, how: Deflation) -> Iterator[tuple[Floats, Floats]]:
    """The rank-one matrices to subtract, one after another, to remove a module.

    hotelling and on_repeat: X - d uv', or X - Xvv' with free locations.  projection: (I - uu') X (I - vv').
    schur: X - (Xv)(X'u)' / d.
    """
    u, v, d = module.u, module.v, module.d
    if how in ("hotelling", "on_repeat") and not module.free_locations:
        yield d * u.full(), v.full()
        return
    left = operator.matvec(v.support, v.values)
    if how in ("hotelling", "on_repeat"):
        yield left, v.full()
        return
    right = operator.rmatvec(u.support, u.values)
    if how == "schur":
        yield left / d, right
    else:
        yield u.full(), right
        yield left - d * u.full(), v.full()


def _signed_by_convention(state: State, rows: Side, columns: Side, axis: AxisName) -> State:
    """Make the largest entry of one of the vectors positive, unless a non-negative side fixes the signs."""
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        return state
    values = (state.u if axis == "rows" else state.v).values
    if values[np.argmax(np.abs(values))] > 0:
        return state
    return replace(state, u=-state.u, v=-state.v)
