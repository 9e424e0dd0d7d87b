r"""The search for pairs of vectors u (features of X) and v (features of Y), one pair after another.

A pair maximises u'X'Yv with penalties and graph terms on both sides: it is a module of the cross-product X'Y. After
each pair the tables, or their cross-product, are deflated. With the scores t = Xu and s = Yv:

- "canonical":   X - tt'X / t't  and  Y - ss'Y / s's   (both tables; PLS and CCA in canonical mode);
- "regression":  X - tt'X / t't  and  Y - tt'Y / t't   (what the scores of X predict);
- "hotelling":   X'Y - d uv'                           (Witten, Tibshirani and Hastie 2009).

A cross-product that is small is formed; another is used by products with both tables. The first starts are found from
inner products of the samples (`PairStarts`), unless there are more samples than features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from netbic.arrays import Array, Floats
from netbic.operators.corrected import Corrected
from netbic.operators.cross import Cross, CrossOperator, Table
from netbic.operators.dense import DenseOperator
from netbic.penalties import ChosenByBIC
from netbic.solver.search import MAX_MODULES, Axis, Module, described, solve_module
from netbic.solver.solve import Settings
from netbic.solver.starts import Direction, Starts, Subspace, image

PAIR_DEFLATIONS: Final = ("canonical", "regression", "hotelling")
PairDeflation = Literal["canonical", "regression", "hotelling"]

_MOST_SAMPLES = 4096  # up to this many, starts are found from inner products of the samples
_FORMED_WORK = 2e9  # multiplications up to which the cross-product is formed
_FORMED_ENTRIES = 1 << 25  # its entries, if there are many samples: 256 MB
_EXACT_WORK = 2e8  # multiplications up to which starts are made and solved in double precision
_TOLERANCE, _EXACT_TOLERANCE = 1e-3, 1e-13
_STEPS, _EXACT_STEPS = 40, 10_000
_SUBSPACE = (20, 8)


@dataclass(frozen=True, eq=False)
class Pair:
    """A module of the cross-product, and the scores of the samples in both (deflated) tables."""

    module: Module
    x_scores: Floats
    y_scores: Floats


class PairSearch:
    """Iterate over pairs until the cross-product is exhausted; `ended` is then the reason why the search has ended.

    Each axis has the penalty and the graph term of the features of a table. The `deflation` of the settings is not
    used. Rounding errors alone can reach the norm `noise` of the cross-product. `starts`, of shape (k, q), are vectors
    of the features of Y from which each pair starts, instead of leading singular vectors.
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
        if not self._left.has_norm and any(isinstance(axis.penalty, ChosenByBIC) for axis in self._axes):
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
            if self._deflation == "hotelling":
                self._left.subtract(pair)
                continue
            t = pair.x_scores / np.linalg.norm(pair.x_scores)
            s = t if self._deflation == "regression" else pair.y_scores / np.linalg.norm(pair.y_scores)
            self._left.remove(t, s)
        self.ended = f"no more than {MAX_MODULES:,} are searched for"

    def _next(self, number: int) -> Pair | None:
        leading = self._left.leading()
        if leading is None or leading.value <= self._noise:
            self.ended = "nothing but rounding error is left of the cross-product"
            return None
        if self._starts is not None:
            start = self._starts[number]
            leading = Direction(start / np.linalg.norm(start), on_rows=False, value=leading.value)
        operator = self._left.operator
        problem, solution = solve_module(operator, self._axes, self._settings, leading, number)
        if solution.state.is_empty:
            table, axis = ("X", self._axes[0]) if solution.state.u.is_empty else ("Y", self._axes[1])
            self.ended = f"the penalty {axis.penalty!r} keeps no feature of {table}"
            return None
        if solution.state.d <= self._noise:
            self.ended = "the best remaining pair has no covariance (d <= 0)"
            return None
        module = described(solution, problem.rows, problem.columns, signed_by="rows")
        (u, v), left = (module.u, module.v), self._left
        return Pair(module, left.x.matvec(u.support, u.values), left.y.matvec(v.support, v.values))


class OfLayers:
    """What is left of two tables and of their cross-product, which is formed if it is small.

    It is corrected by a rank-one matrix for each deflation. Penalties that estimate the noise need its norm.
    """

    operator: Corrected

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


class OfSamples:
    """The cross-product by products with both tables, from which samples' directions are projected out."""

    has_norm = True

    def __init__(self, x: Table, y: Table, exact: bool) -> None:
        self.x, self.y = x, y
        self._starts = PairStarts(x, y, exact)
        self.operator = Cross(x, y, self._starts.squared_norm)

    def leading(self) -> Direction | None:
        """The leading singular direction of the cross-product; None if it is zero."""
        return self._starts.leading(self.operator)

    def remove(self, x_direction: Floats, y_direction: Floats) -> None:
        """Project unit vectors of the samples out of X and out of Y."""
        self._starts.remove(x_direction, from_x=True)
        self._starts.remove(y_direction, from_x=False)
        self.x, self.y = self.x.without(x_direction), self.y.without(y_direction)
        self.operator = self.operator.of(self.x, self.y, self._starts.squared_norm)

    def subtract(self, pair: Pair) -> None:
        """Subtract d uv' from the cross-product."""
        module = pair.module
        self._starts.remove_pair(module.d, pair.x_scores, pair.y_scores)
        left = max(self.operator.squared_norm - module.d**2, 0.0)  # exact, as d = u'X'Yv for unit vectors
        self.operator = self.operator.less(module.d * module.u.full(), module.v.full(), left)


def residual_of(x: Table, y: Table, exact: bool) -> OfLayers | OfSamples:
    """The cross-product of two tables, in the form that is the fastest for their sizes."""
    (n, p), q = x.shape, y.shape[1]
    if n > _MOST_SAMPLES:
        return OfLayers(x, y, exact, p * q <= _FORMED_ENTRIES)
    return OfLayers(x, y, exact, True) if n * p * q <= _FORMED_WORK and min(p, q) <= n else OfSamples(x, y, exact)


class PairStarts:
    r"""Leading singular directions of a cross-product C = X'Y that is deflated by one pair after another.

    With K = XX' and a square root L of YY' (YY' = LL'), Y = LQ for a Q with orthonormal rows, and C'C = Q'SQ with the
    n x n matrix S = L'KL. So a leading eigenvector s of S gives the leading right singular vector v = Q's of C, which
    is proportional to C'Cv = Y'KLs, and |C|^2 is the trace of S. Deflation changes S by matrices of rank two,

        S - wa' - aw',   with   w = b - (c/2) a:

    - X -> X - tt'X:    a = L't, b = L'Kt, c = t'Kt, and K changes likewise, with a = t and b = Kt;
    - Y -> Y - ss'Y:    a = L's, b = L'Ks, c = s'Ks, and L becomes L - ss'L;
    - C -> C - duv':    a = Qv, b = d L'Xu, c = d^2, where the part of v outside the rows of Y is neglected: what is
      left of it in a start, the iteration removes.
    """

    def __init__(self, x: Table, y: Table, exact: bool) -> None:
        n = x.shape[0]
        self._exact = exact or n * n * (x.shape[1] + y.shape[1]) <= _EXACT_WORK
        dtype = np.float64 if self._exact else np.float32
        gram = x.gram(dtype)
        # A root L of full column rank, by Cholesky decomposition with pivots; the rank is that up to rounding errors.
        of_y = y.gram(dtype)
        pstrf: Any = get_lapack_funcs("pstrf", (of_y,))
        lower, pivots, rank, _ = pstrf(of_y, lower=True)
        self._root = np.empty((n, rank), dtype=dtype)
        self._root[pivots - 1] = np.tril(lower)[:, :rank]
        self._gram, self._inside = _Symmetric(gram), _Symmetric(self._root.T @ gram @ self._root)
        first = np.random.default_rng(0).standard_normal((1, self._root.shape[1])).astype(dtype)
        self._subspace = Subspace(first, *_SUBSPACE)

    @property
    def squared_norm(self) -> float:
        """The squared Frobenius norm of the current matrix."""
        return max(float(np.trace(self._inside.entries, dtype=np.float64)), 0.0)

    def leading(self, cross: Cross) -> Direction | None:
        """The leading direction on the axis with fewer features; None if the matrix is zero."""
        if not self.squared_norm:
            return None
        effort = (_EXACT_TOLERANCE, _EXACT_STEPS) if self._exact else (_TOLERANCE, _STEPS)
        square, vector, _ = self._subspace.leading(lambda q: (self._inside.product(q), None), *effort)
        if not square > 0:
            return None
        on_rows = cross.shape[0] <= cross.shape[1]
        samples = (self._root @ vector).astype(np.float64)  # proportional to Yv
        table = cross.x
        if not on_rows:
            samples, table = self._gram.product(self._root @ vector).astype(np.float64), cross.y
        direction = table.rmatvec(samples / np.linalg.norm(samples))
        length = float(np.linalg.norm(direction))
        return Direction(direction / length, on_rows, float(np.sqrt(square))) if length else None

    def remove(self, direction: Floats, from_x: bool) -> None:
        """Update for X -> X - tt'X (`from_x`) or Y -> Y - tt'Y, with a unit vector t of the samples."""
        t = direction.astype(self._root.dtype)
        image = self._gram.product(t)
        self._change(self._root.T @ t, self._root.T @ image, float(t @ image))
        if from_x:
            self._gram.subtract(t, image - 0.5 * float(t @ image) * t)
        else:
            self._root = self._root - np.outer(t, t @ self._root)

    def remove_pair(self, d: float, x_scores: Floats, y_scores: Floats) -> None:
        """Update for C -> C - duv', given Xu and Yv."""
        dtype = self._root.dtype
        inside = np.linalg.lstsq(self._root, y_scores.astype(dtype), rcond=1e-6)[0]
        self._change(inside, d * (self._root.T @ x_scores.astype(dtype)), d * d)

    def _change(self, a: Array, b: Array, c: float) -> None:
        w = b - 0.5 * c * a
        self._inside.subtract(a, w)
        self._subspace.deflate(w, a)


class _Symmetric:
    """A symmetric matrix that is changed in place; of its entries, BLAS uses the upper triangle."""

    def __init__(self, entries: Array) -> None:
        self.entries = np.asfortranarray(entries)
        self._symv, self._syr2 = get_blas_funcs(("symv", "syr2"), (self.entries,))

    def product(self, vector: Array) -> Array:
        """The product with a vector."""
        return np.asarray(self._symv(1.0, self.entries, vector))

    def subtract(self, a: Array, w: Array) -> None:
        """Subtract wa' + aw'."""
        self.entries = self._syr2(-1.0, w, a, a=self.entries, overwrite_a=True)
