"""The search for modules, one after another: leading direction, solve (with restarts), deflate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from netbic.arrays import Floats
from netbic.graphs import GraphTerm
from netbic.operators import Corrected
from netbic.penalties import Penalty
from netbic.solver.half_step import Side
from netbic.solver.restarts import Deflation, ModuleProblem, Settings
from netbic.solver.solve import Outcome
from netbic.solver.starts import Direction, Starts, image
from netbic.solver.vectors import State, Vector

SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("hotelling", "projection", "schur")
MAX_MODULES: Final = 10_000  # of one search; modules of one row and one column could be as many as entries of X
_EPSILON = float(np.finfo(np.float64).eps)


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
class Module:
    """A pair (u, v) with d = u'Xv, and how its iteration ended."""

    u: Vector
    v: Vector
    d: float
    outcome: Outcome
    objectives: Floats
    graph_share: float


class ModuleSearch:
    """Iterate over modules until X is exhausted; `ended` is then the reason why the search has ended.

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
        problem = ModuleProblem(self._residual, rows, columns, self._settings)
        solution = problem.best_of_starts(leading, number)
        if self._residual.imputes and not solution.state.is_empty:
            solution = problem.impute(solution)
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
