"""Modules one after another: start, solve (restarts included), keep, deflate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from netbic.graphs import GraphTerm
from netbic.operators import Corrected
from netbic.penalties import Penalty
from netbic.solver.rounds import Side, SolverName, State, Vector
from netbic.solver.solve import Outcome, Solution, solve
from netbic.solver.starts import LeadingPair, largest_entry, leading_pair, random_pair

Deflation = Literal["hotelling", "projection", "schur"]
SOLVERS: Final = ("auto", "aisp", "monotone")
DEFLATIONS: Final = ("hotelling", "projection", "schur")


@dataclass(frozen=True)
class Axis:
    """What the user asked for on one axis; `side` turns it into what a half step needs for one module."""

    penalty: Penalty
    term: GraphTerm | None = None
    smoothness: float = 0.0
    relative: bool = True
    signed: bool = False

    def side(self, leading_value: float, squared_norm: float, n_entries: int) -> Side:
        """Fix sigma and data-driven penalties for a residual with this leading singular value and squared norm."""
        sigma = self.smoothness
        if self.relative and self.term is not None:
            sigma *= leading_value / self.term.scale
        return Side(self.penalty.for_matrix(squared_norm, n_entries), self.term, sigma, self.signed)


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
    """Iterate over modules until `n_modules` are found or nothing is left; `ended` then says why it stopped early."""

    def __init__(self, operator: Corrected, rows: Axis, columns: Axis, settings: Settings, epsilon: float) -> None:
        self.ended = ""
        self._residual = operator
        self._rows, self._columns, self._settings = rows, columns, settings
        norm = np.sqrt(operator.squared_norm) + operator.correction_norm()
        self._noise = epsilon * (10 + np.sqrt(max(operator.shape))) * norm

    def __iter__(self) -> Iterator[Module]:
        number = 0
        while True:
            pair = leading_pair(self._residual) if self._residual.squared_norm > 0 else None
            if pair is None or pair.value <= self._noise:
                self.ended = "nothing but rounding error is left of X"
                return
            module = self._next(pair, number)
            if module is None:
                return
            yield module
            self._residual = deflate(self._residual, module, self._settings.deflation)
            number += 1

    def _next(self, pair: LeadingPair, number: int) -> Module | None:
        n, p = self._residual.shape
        rows = self._rows.side(pair.value, self._residual.squared_norm, n * p)
        columns = self._columns.side(pair.value, self._residual.squared_norm, n * p)
        solution = best_of_starts(self._residual, rows, columns, pair, number, self._settings)
        if solution.state.is_empty:
            axis, asked = ("row", self._rows) if solution.state.u.is_empty else ("column", self._columns)
            self.ended = f"the {axis} penalty {asked.penalty!r} leaves no {axis} at all"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best module left explains nothing (d = 0)"
            return None
        state = _signed_by_convention(solution.state, rows, columns)
        share = max(graph_share(rows, state.u, state.d), graph_share(columns, state.v, state.d))
        return Module(state.u, state.v, state.d, solution.outcome, solution.objectives, share)


def best_of_starts(
    operator: Corrected, rows: Side, columns: Side, pair: LeadingPair, number: int, settings: Settings
) -> Solution:
    """Solve from the leading pair and n_init - 1 random starts; the largest F wins, the earliest among equals."""

    def attempt(index: int) -> Solution | None:
        generator = np.random.default_rng([settings.seed, number, index])
        start = random_pair(operator, generator) if index else (pair.u, pair.v)
        if start is None:
            return None
        keywords = {"solver": settings.solver, "max_iter": settings.max_iter, "tol": settings.tol}
        return _solve_either_sign(operator, rows, columns, start, keywords)

    if settings.n_init == 1:
        attempts = [attempt(0)]
    else:
        run = Parallel(n_jobs=settings.n_jobs, prefer="threads")
        attempts = run(delayed(attempt)(index) for index in range(settings.n_init))
    return max((found for found in attempts if found is not None), key=lambda found: found.rank)


def _solve_either_sign(
    operator: Corrected, rows: Side, columns: Side, start: tuple[Vector, Vector], keywords: dict[str, Any]
) -> Solution:
    """Solve from a start, which is defined up to its sign.

    The sign matters once a side is non-negative: then both are tried and the better one is kept. Where both die (a
    non-negative side can be left with no positive score at all), the column of the largest entry is a last start.
    """
    u, v = start
    solutions = [solve(operator, rows, columns, (u, v), **keywords)]
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        solutions.append(solve(operator, rows, columns, (-u, -v), **keywords))
        if all(solution.state.is_empty for solution in solutions):
            solutions.append(solve(operator, rows, columns, largest_entry(operator), **keywords))
    return max(solutions, key=lambda solution: solution.rank)


def graph_share(side: Side, vector: Vector, d: float) -> float:
    """Share of the graph in the scores of the kept entries: sigma |w'Mw| against d."""
    graph = abs(2 * side.graph_gain(side.smooth(vector)))
    return graph / (d + graph)


def deflate(operator: Corrected, module: Module, how: Deflation) -> Corrected:
    """Take a module out of the matrix, as rank-one corrections.

    hotelling: X - d uv'.  projection: (I - uu') X (I - vv').  schur: X - (Xv)(X'u)' / d.
    """
    u, v, d = module.u, module.v, module.d
    if how == "hotelling":
        return operator.minus(d * u.full(), v.full())
    left = operator.matvec(v.support, v.values)
    right = operator.rmatvec(u.support, u.values)
    if how == "schur":
        return operator.minus(left / d, right)
    return operator.minus(u.full(), right).minus(left - d * u.full(), v.full())


def _signed_by_convention(state: State, rows: Side, columns: Side) -> State:
    """Make the largest entry of v positive, unless a non-negative side has fixed the signs already."""
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        return state
    if state.v.values[np.argmax(np.abs(state.v.values))] > 0:
        return state
    return State(-state.u, -state.v, state.d, state.objective)
