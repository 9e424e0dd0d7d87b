r"""The search for pairs of vectors u (features of X) and v (features of Y), one pair after another.

A pair maximises u'X'Yv with penalties and graph terms on both sides: it is a module of the cross-product X'Y. After
each pair the tables, or their cross-product, are deflated. With the scores t = Xu and s = Yv:

- "canonical":   X - tt'X / t't  and  Y - ss'Y / s's   (both tables; PLS and CCA in canonical mode);
- "regression":  X - tt'X / t't  and  Y - tt'Y / t't   (what the scores of X predict);
- "hotelling":   X'Y - d uv'                           (Witten, Tibshirani and Hastie 2009).

A cross-product that is small is formed; another is used by products with both tables. The first starts are found from
inner products of the samples (`pair_starts`), unless there are more samples than features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from netbic.arrays import Floats
from netbic.operators import Corrected, Cross, CrossOperator, DenseOperator, Table
from netbic.penalties import DataDriven
from netbic.solver.fallback import solve_sizes, with_rejected
from netbic.solver.lengths import Lengths, Squares
from netbic.solver.module_scale import before_graph, solve_with_graph
from netbic.solver.pair_starts import PairStarts
from netbic.solver.restarts import ModuleProblem, Settings
from netbic.solver.search import MAX_MODULES, Axis, Module, described
from netbic.solver.solve import Solution
from netbic.solver.starts import Direction, Starts, image
from netbic.solver.vectors import Vector

PAIR_DEFLATIONS: Final = ("canonical", "regression", "hotelling")
PairDeflation = Literal["canonical", "regression", "hotelling"]

_MOST_SAMPLES = 4096  # up to this many, starts are found from inner products of the samples
_FORMED_WORK = 2e9  # multiplications up to which the cross-product is formed
_FORMED_ENTRIES = 1 << 25  # its entries, if there are many samples: 256 MB


@dataclass(frozen=True, eq=False)
class Pair:
    """A module of the cross-product, and the scores of the samples in both (deflated) tables."""

    module: Module
    x_scores: Floats
    y_scores: Floats


class CrossResidual(ABC):
    """What is left of two tables and of their cross-product.

    Attributes
    ----------
    operator : Corrected
        The cross-product.
    x, y : Table
        The tables.
    has_norm : bool
        Whether the squared norm of the operator is known, from which some penalties estimate the noise.
    """

    has_norm: bool = True
    operator: Corrected
    x: Table
    y: Table

    @abstractmethod
    def leading(self) -> Direction | None:
        """The leading singular direction of the cross-product; None if it is zero."""

    @abstractmethod
    def remove(self, x_direction: Floats, y_direction: Floats) -> None:
        """Project unit vectors of the samples out of X and out of Y."""

    @abstractmethod
    def subtract(self, pair: Pair) -> None:
        """Subtract d uv' from the cross-product."""


class OfLayers(CrossResidual):
    """The cross-product, formed if it is small, minus a rank-one matrix for each deflation."""

    def __init__(self, x: Table, y: Table, exact: bool, formed: bool) -> None:
        self.x, self.y = x, y
        self.has_norm = formed
        if formed:
            matrix = CrossOperator(x, y).formed()
            self.operator = Corrected(DenseOperator(matrix), float(np.sum(matrix**2)))
        else:  # the norm is not known: this number only sets a scale, and `has_norm` says so
            self.operator = Cross(x, y, x.operator.squared_norm * y.operator.squared_norm)
        self._starts = Starts(self.operator, exact)

    def leading(self) -> Direction | None:
        """The leading singular direction of the cross-product; None if it is zero."""
        return self._starts.leading(self.operator) if self.operator.squared_norm else None

    def remove(self, x_direction: Floats, y_direction: Floats) -> None:
        """Project unit vectors of the samples out of X and out of Y."""
        self._subtract(self.x.rmatvec(x_direction), self.y.rmatvec(x_direction))
        self.x = self.x.without(x_direction)
        self._subtract(self.x.rmatvec(y_direction), self.y.rmatvec(y_direction))
        self.y = self.y.without(y_direction)

    def subtract(self, pair: Pair) -> None:
        """Subtract d uv' from the cross-product."""
        self._subtract(pair.module.d * pair.module.u.full(), pair.module.v.full())

    def _subtract(self, left: Floats, right: Floats) -> None:
        product = image(self.operator.matvec, right)
        self._starts.deflate(self.operator, left, right, product)
        self.operator = self.operator.minus(left, right, product)


class OfSamples(CrossResidual):
    """The cross-product by products with both tables, from which samples' directions are projected out."""

    operator: Cross

    def __init__(self, x: Table, y: Table, exact: bool) -> None:
        self.x, self.y = x, y
        self._starts = PairStarts(x, y, exact)
        self.operator = Cross(x, y, self._starts.squared_norm)

    def leading(self) -> Direction | None:
        """The leading singular direction of the cross-product; None if it is zero."""
        return self._starts.leading(self.operator)

    def remove(self, x_direction: Floats, y_direction: Floats) -> None:
        """Project unit vectors of the samples out of X and out of Y."""
        self._starts.remove_from_x(x_direction)
        self._starts.remove_from_y(y_direction)
        self.x, self.y = self.x.without(x_direction), self.y.without(y_direction)
        self.operator = self.operator.of(self.x, self.y, self._starts.squared_norm)

    def subtract(self, pair: Pair) -> None:
        """Subtract d uv' from the cross-product."""
        module = pair.module
        self._starts.remove_pair(module.d, pair.x_scores, pair.y_scores)
        left = max(self.operator.squared_norm - module.d**2, 0.0)  # exact, as d = u'X'Yv for unit vectors
        self.operator = self.operator.less(module.d * module.u.full(), module.v.full(), left)


def residual_of(x: Table, y: Table, exact: bool) -> CrossResidual:
    """The cross-product of two tables, in the form that is the fastest for their sizes."""
    (n, p), q = x.shape, y.shape[1]
    if n > _MOST_SAMPLES:
        return OfLayers(x, y, exact, p * q <= _FORMED_ENTRIES)
    return OfLayers(x, y, exact, True) if n * p * q <= _FORMED_WORK and min(p, q) <= n else OfSamples(x, y, exact)


class PairSearch:
    """Iterate over pairs until the cross-product is exhausted; `ended` is then the reason why the search has ended.

    Parameters
    ----------
    x, y : Table
    x_axis, y_axis : Axis
        Penalties and graph terms of the features of X and of Y.
    settings : Settings
        Options of the iteration; its `deflation` is not used.
    deflation : {"canonical", "regression", "hotelling"}
    noise : float
        The norm of the cross-product that rounding errors alone can reach.
    starts : array of shape (k, q), optional
        Vectors of the features of Y from which each pair starts, instead of leading singular vectors.
    """

    def __init__(
        self,
        x: Table,
        y: Table,
        x_axis: Axis,
        y_axis: Axis,
        settings: Settings,
        deflation: PairDeflation,
        noise: float,
        starts: Floats | None = None,
    ) -> None:
        self.ended, self._starts = "", starts
        self._axes, self._settings, self._deflation, self._noise = (x_axis, y_axis), settings, deflation, noise
        exact = settings.solver == "aisp" or all(axis.is_trivial for axis in self._axes)
        self._left = residual_of(x, y, exact)
        self._chooses = any(axis.penalty.chooses_size for axis in self._axes)
        if not self._left.has_norm and any(isinstance(axis.penalty, DataDriven) for axis in self._axes):
            raise ValueError(
                f"the tables are too large ({x.shape[0]:,} samples, {x.shape[1]:,} and {y.shape[1]:,} features) for "
                "penalties that choose sizes: give numbers of features instead"
            )

    def __iter__(self) -> Iterator[Pair]:
        for number in range(MAX_MODULES):
            pair = self._next(number)
            if pair is None:
                return
            yield pair
            self._deflate(pair)
        self.ended = f"no more than {MAX_MODULES:,} are searched for"

    def _next(self, number: int) -> Pair | None:
        leading = self._left.leading()
        if leading is None or leading.value <= self._noise:
            self.ended = "nothing but rounding error is left of the cross-product"
            return None
        if self._starts is not None:
            start = self._starts[number]
            leading = Direction(start / np.linalg.norm(start), on_rows=False, value=leading.value)
        problem, solution = self._solved(leading, number)
        if solution.state.is_empty:
            table, axis = ("X", self._axes[0]) if solution.state.u.is_empty else ("Y", self._axes[1])
            self.ended = f"the penalty {axis.penalty!r} keeps no feature of {table}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining pair has no covariance (d <= 0)"
            return None
        module = described(solution, problem.rows, problem.columns, signed_by="rows")
        return Pair(module, self._scores(self._left.x, module.u), self._scores(self._left.y, module.v))

    def _solved(self, leading: Direction, number: int) -> tuple[ModuleProblem, Solution]:
        """The best solution, and the problem with the sizes and weights of the graphs that it was found with."""
        squares = Lengths(self._left.operator, self._chooses).of(self._left.operator)
        problem = self._problem(self._axes, leading.value, squares)
        fixed = self._problem([axis.when_unreliable() for axis in self._axes], leading.value, squares)
        found = solve_sizes(problem, fixed, leading, number)
        problem, solution = found.problem, found.solution
        if problem.rows.share or problem.columns.share:
            problem, solution = solve_with_graph(replace(problem, settings=self._settings), solution, leading)
        return problem, with_rejected(found._replace(problem=problem, solution=solution))

    def _problem(self, axes: Sequence[Axis], leading_value: float, squares: Squares) -> ModuleProblem:
        """The search for a pair in what is left of the tables."""
        operator = self._left.operator
        rows, columns = (
            axis.side(leading_value, operator.squared_norm, operator.n_entries, own)
            for axis, own in zip(axes, squares, strict=True)
        )
        return ModuleProblem(operator, rows, columns, before_graph(self._settings, rows, columns))

    @staticmethod
    def _scores(table: Table, vector: Vector) -> Floats:
        return table.matvec(vector.support, vector.values)

    def _deflate(self, pair: Pair) -> None:
        if self._deflation == "hotelling":
            self._left.subtract(pair)
            return
        t = pair.x_scores / np.linalg.norm(pair.x_scores)
        s = t if self._deflation == "regression" else pair.y_scores / np.linalg.norm(pair.y_scores)
        self._left.remove(t, s)
