"""Starts of the iteration.

The leading singular direction is computed from the Gram matrix of the short side (XX' or X'X), which is made once and
updated in place at every deflation; if both sides are long, from a few passes over X; and if entries are missing (so
that deflation is not a low-rank update), from scratch for every module. There are two kinds of start:

- `paper_start`: the full leading pair, as in the paper's algorithms;
- `sparse_start` (default): the first round without the graph. Its first half is free, because Xv = sigma_1 u for the
  leading pair, and the second half reads only the kept rows or columns.

Restarts use a random direction instead. A start depends on X and the seed, not on the operator that holds X.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import eigh, get_blas_funcs, get_lapack_funcs
from scipy.sparse.linalg import ArpackError, LinearOperator, svds

from netbic.arrays import Array, Floats, Indices
from netbic.operators.base import Operator
from netbic.operators.corrected import Corrected
from netbic.solver.half_step import Side, State, Vector, step_without_graph

_EXACT_WORK = 2e8  # multiplications up to which the Gram matrix is made and solved in double precision
_LAPACK_SIZE = 300
_GRAM_SIZE = 4096  # short sides up to this have a Gram matrix; beyond, products with X replace it
# Relative residual of a start; fixed, since another value gives other modules on real data. Inaccurate starts lose weak
# modules: in `simulate.cohort` (strength 0.7) the features' mean F1 is 0.77 at 1e-4 and 1e-3, 0.72 at 1e-2
# and 0.60 at 5e-2.
_TOLERANCE = 1e-3
_GRAM_SUBSPACE, _PASS_SUBSPACE = (20, 8), (64, 24)  # size of the subspace at most, and after a restart
_BLOCK = 8  # directions that are multiplied in one pass over X for the first start
_STEPS = (7, 2)  # passes over X for the first start, and at most for each later one
_LATER_ERROR = 0.8  # residual of later starts, in units of that of the first one; larger values lose weak modules
_SVD_SIZE = 16  # up to this many rows or columns the matrix is made dense: too small for ARPACK

Pair = tuple[Vector, Vector]
Start = Pair | State  # a state has scores, from which a working set can be made
Product = Callable[[Array], tuple[Array, Array | None]]  # X'Xq and, if it is to be kept, Xq; one column per vector q


class Direction(NamedTuple):
    """A unit vector on one axis, and its singular value.

    `image`, the product of the matrix with the vector, is known (in single precision) for matrices that prefetch: it
    tells which lines of the other axis will be read.
    """

    vector: Floats
    on_rows: bool
    value: float
    image: Floats | None = None

    def __neg__(self) -> Direction:
        return self._replace(vector=-self.vector, image=None if self.image is None else -self.image)


class Starts:
    """Leading singular directions of a matrix that is deflated by one module after another.

    They are `exact` to machine precision for the paper's start, and for small matrices.
    """

    def __init__(self, operator: Corrected, exact: bool) -> None:
        n, p = operator.shape
        short = min(n, p)
        has_gram = short <= _GRAM_SIZE and operator.tracks_gram
        in_passes = not (has_gram or exact) and operator.tracks_gram
        self._on_rows = n <= p and not in_passes  # X'Xv takes a single pass over X
        self._exact = exact or short * short * max(n, p) <= _EXACT_WORK
        # A power of two that brings the matrix into the range of single precision without rounding; 1 if it is in range
        squared_norm = operator.squared_norm
        is_far = squared_norm > 0 and not 1e-10 <= squared_norm <= 1e10
        self._scale = float(2.0 ** -np.round(np.log2(squared_norm) / 2)) if is_far else 1.0
        self._found: Direction | None = None  # reset by `deflate`
        self._gram: Array | None = None
        dtype = np.float32 if has_gram and not self._exact else np.float64
        if has_gram:
            self._gram = operator.gram(self._on_rows, self._scale, dtype)
            self._symv, self._syr2 = get_blas_funcs(("symv", "syr2"), (self._gram,))
        # Rounding error of the Gram matrix: below it only products with the operator are accurate.
        size = squared_norm + operator.correction_norm() ** 2
        self._floor = 10 * float(np.finfo(dtype).eps) * size * self._scale**2
        width = min(_BLOCK, short) if in_passes else 1
        first = np.random.default_rng(0).standard_normal((width, n if self._on_rows else p)).astype(dtype)
        self._keeps_images = in_passes and operator.data.prefetches
        sizes = _PASS_SUBSPACE if in_passes else _GRAM_SUBSPACE
        self._subspace = Subspace(first, *sizes, image_size=n if self._keeps_images else 0)
        # Products with single-precision data are not more accurate than the data; a Gram matrix is.
        self._finest = 1e-13 if has_gram else max(1e-13, operator.data.epsilon)

    def copy(self) -> Self:
        """A copy for another search, which modifies it."""
        made = copy.copy(self)
        made._gram = None if self._gram is None else self._gram.copy(order="F")
        made._subspace = self._subspace.copy()
        return made

    def leading(self, operator: Corrected) -> Direction | None:
        """The leading direction of the current matrix; None if it is zero."""
        if self._found is None:
            self._found = self._compute(operator) if operator.tracks_gram else exact_direction(operator, self._on_rows)
        return self._found

    def _compute(self, operator: Corrected) -> Direction | None:
        if self._gram is not None and self._exact and self._gram.shape[0] <= _LAPACK_SIZE:
            last = self._gram.shape[0] - 1
            values, vectors = eigh(self._gram, lower=False, subset_by_index=[last, last], check_finite=False)
            square, vector, image = float(values[0]), vectors[:, 0], None
        else:
            square, vector, image = self._subspace.leading(self._product(operator), *self._effort())
        if square <= self._floor:
            return exact_direction(operator, self._on_rows)
        return Direction(vector.astype(np.float64), self._on_rows, float(np.sqrt(square)) / self._scale, image)

    def _effort(self) -> tuple[float, int]:
        """Tolerance and maximal number of products for one direction (a pass over X each without a Gram matrix).

        With passes, later directions need not be more accurate than the first one: in noise, no step would be enough.
        """
        if self._exact:
            return self._finest, 10_000
        if self._gram is not None:
            return _TOLERANCE, 40
        if not self._subspace.size:
            return _TOLERANCE, _STEPS[0]
        return max(_TOLERANCE, _LATER_ERROR * self._subspace.first_error), _STEPS[1]

    def _product(self, operator: Corrected) -> Product:
        """The product with XX' or X'X: by the Gram matrix, or by one pass over the data."""
        if self._gram is not None:
            return lambda q: (np.asarray(self._symv(1.0, self._gram, q)), None)
        every_row, every_column = (np.arange(size) for size in operator.shape)
        if self._on_rows:
            return lambda q: (self._scale**2 * operator.matvec(every_column, operator.rmatvec(every_row, q)), None)

        def by_pass(q: Array) -> tuple[Array, Array | None]:
            products, images = operator.normal(q)
            return self._scale**2 * products, images if self._keeps_images else None

        return by_pass

    def deflate(self, operator: Corrected, left: Floats, right: Floats, product: Floats) -> None:
        """Update for X -> X - left right', where `operator` is the old X and `product` is X right: G -= w a' + a w'."""
        self._found = None
        if not operator.tracks_gram:
            return
        self._subspace.deflate_images(left, right)
        a, b = left, right
        if not self._on_rows:
            a, b = right, left
            product = image(operator.rmatvec, left)
        w = self._scale * (product - 0.5 * float(b @ b) * a)
        a = self._scale * a
        if self._gram is not None:
            w, a = w.astype(self._gram.dtype), a.astype(self._gram.dtype)
            self._gram = self._syr2(-1.0, w, a, a=self._gram, overwrite_a=True)
        self._subspace.deflate(w, a)


class Subspace:
    """A subspace for the leading eigenvectors of a slowly changing matrix G.

    It holds an orthonormal basis and the products of G with it. A rank-two change of G updates these products, so that
    the directions computed for one module are reused for the next ones.

    The `first` directions (rows) are multiplied together. When the dimension is `most`, the `kept` best directions are
    kept. `image_size` is the number of rows of X, if G = X'X and the products of X with the basis are kept too; else 0.
    """

    def __init__(self, first: Array, most: int, kept: int, image_size: int = 0) -> None:
        self._first, self.most, self.kept = first, most, kept
        self._basis = np.empty((self.most, first.shape[1]), dtype=first.dtype)
        self._products = np.empty_like(self._basis)
        self._images = np.zeros((self.most, image_size), dtype=np.float32)
        self._syevr: Any = get_lapack_funcs("syevr", (self._basis,))
        self.size = 0
        self.first_error = 0.0  # relative residual of the first direction that was computed

    def copy(self) -> Self:
        """A copy that shares no arrays."""
        made = copy.copy(self)
        made._basis, made._products, made._images = self._basis.copy(), self._products.copy(), self._images.copy()
        return made

    def leading(self, product: Product, tolerance: float, steps: int) -> tuple[float, Array, Array | None]:
        """Largest eigenvalue, its vector and image, to a relative residual of `tolerance` or after `steps` products.

        The first time, the residuals of as many directions as there were at first are multiplied together.
        """
        width = 1 if self.size else len(self._first)
        if not self.size:
            self._add(self._first, product)
            steps -= width > 1  # a Gram matrix makes the first product nearly free
        values, vectors, residuals = self._ritz(width)
        while steps > 0 and np.linalg.norm(residuals[-1]) > tolerance * abs(values[-1]):
            if not self._add(residuals, product):
                break
            steps -= 1
            values, vectors, residuals = self._ritz(width)
        if width > 1:
            self.first_error = float(np.linalg.norm(residuals[-1])) / abs(float(values[-1]))
        if not self._images.shape[1]:
            return float(values[-1]), vectors[-1], None
        weights = (self._basis[: self.size] @ vectors[-1]).astype(np.float32)
        return float(values[-1]), vectors[-1], np.asarray(weights @ self._images[: self.size], dtype=np.float64)

    def _ritz(self, count: int) -> tuple[Array, Array, Array]:
        """The largest values in the subspace, in increasing order, their vectors, and the residuals."""
        values, weights = self._projected(count)
        vectors = weights.T @ self._basis[: self.size]
        return values, vectors, weights.T @ self._products[: self.size] - values[:, None] * vectors

    def _projected(self, count: int) -> tuple[Array, Array]:
        """The largest eigenvalues of G within the subspace, in increasing order, and their vectors."""
        inside = self._basis[: self.size] @ self._products[: self.size].T
        lowest = self.size - count + 1
        values, weights, *_ = self._syevr(inside, range="I", il=lowest, iu=self.size)
        return values[:count], weights[:, :count]

    def _add(self, vectors: Array, product: Product) -> bool:
        """Extend the subspace by some vectors; False if it contains them already."""
        if self.size + len(vectors) > self.most:  # only the best directions are kept
            best = self._projected(self.kept)[1].T
            self._basis[: self.kept] = best @ self._basis[: self.size]
            self._products[: self.kept] = best @ self._products[: self.size]
            self._images[: self.kept] = best @ self._images[: self.size]
            self.size = self.kept
        first = self.size
        for vector in vectors:
            basis, length = self._basis[: self.size], np.linalg.norm(vector)
            outside = vector - (basis @ vector) @ basis  # once is enough: residuals are nearly orthogonal
            rest = np.linalg.norm(outside)
            if rest > 1e-4 * length:
                self._basis[self.size] = outside / rest
                self.size += 1
        added = self._basis[first : self.size]
        if not len(added):
            return False
        products, images = product(added[0] if len(added) == 1 else added.T)
        self._products[first : self.size] = products.T
        if images is not None:
            self._images[first : self.size] = images.T
        return True

    def deflate(self, w: Array, a: Array) -> None:
        """Update for G -> G - w a' - a w'."""
        basis = self._basis[: self.size]
        self._products[: self.size] -= np.outer(basis @ a, w) + np.outer(basis @ w, a)

    def deflate_images(self, left: Floats, right: Floats) -> None:
        """Update the products of X for X -> X - left right', if they are kept."""
        if self._images.shape[1]:
            self._images[: self.size] -= np.outer(self._basis[: self.size] @ right, left)


def image(product: Callable[[Indices, Floats], Floats], vector: Floats) -> Floats:
    """The product with a vector of any norm, computed with its direction to stay in the range of single precision."""
    support, length = np.flatnonzero(vector), float(np.linalg.norm(vector))
    return length * product(support, vector[support] / length) if length else product(support, vector[support])


def paper_start(operator: Operator, direction: Direction) -> Pair:
    """The full singular pair: the direction itself and the product with it."""
    one = Vector.of(direction.vector)
    if direction.on_rows:
        return one, Vector.of(operator.rmatvec(one.support, one.values))
    return Vector.of(operator.matvec(one.support, one.values)), one


def sparse_start(operator: Corrected, rows: Side, columns: Side, direction: Direction) -> State | None:
    """A round without the graph, beginning on the axis of the direction; None if a threshold keeps nothing."""
    scores = direction.value * direction.vector
    first, second = (rows, columns) if direction.on_rows else (columns, rows)
    product = operator.rmatvec if direction.on_rows else operator.matvec
    one = step_without_graph(first, scores)
    if one.is_empty:
        return None
    if direction.image is not None:
        # One pass reads the columns of v, the rows that u is likely to have, and the next best of both.
        operator.data.prefetch_hint("columns", direction.vector)
        operator.data.prefetch_hint("rows", direction.image)
        operator.data.prefetch(one.support, step_without_graph(second, direction.image).support)
    others = product(one.support, one.values)
    two = step_without_graph(second, others)
    if two.is_empty:
        return None
    if direction.on_rows:
        return State(one, two, 0.0, -np.inf, scores, others)
    return State(two, one, 0.0, -np.inf, others, scores)


def random_direction(like: Direction, generator: np.random.Generator) -> Direction:
    """A Gaussian direction on the same axis, with the same singular value (the scale of the scores).

    Its entries are drawn in the order of those of the given direction, so that it does not depend on that of the lines.
    """
    drawn, order = generator.standard_normal(like.vector.size), np.argsort(np.abs(like.vector), kind="stable")
    vector = np.empty(drawn.size)
    vector[order] = np.where(like.vector[order] < 0, -drawn, drawn)
    return like._replace(vector=vector / np.linalg.norm(vector), image=None)


def largest_entry(operator: Corrected) -> Pair:
    """The row and the column of the largest entry."""
    (n, p), (row, column) = operator.shape, operator.largest_entry()
    return Vector(n, np.array([row]), np.ones(1)), Vector(p, np.array([column]), np.ones(1))


def exact_direction(operator: Operator, on_rows: bool) -> Direction | None:
    """The leading direction by products with the operator alone, to machine precision; None for a zero matrix."""
    n, p = operator.shape
    if min(n, p) <= _SVD_SIZE:  # made dense along its short side
        one = np.ones(1)
        if n <= p:
            matrix = np.array([operator.rmatvec(np.array([i]), one) for i in range(n)])
        else:
            matrix = np.array([operator.matvec(np.array([j]), one) for j in range(p)]).T
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
    else:
        every_row, every_column = np.arange(n), np.arange(p)
        probe = np.random.default_rng(1).standard_normal(p)
        if not operator.matvec(every_column, probe).any():  # ARPACK cannot start on a zero matrix
            return None
        products = LinearOperator(
            shape=(n, p),
            dtype=np.float64,
            matvec=lambda v: operator.matvec(every_column, v.ravel()),
            rmatvec=lambda u: operator.rmatvec(every_row, u.ravel()),
        )
        start = np.random.default_rng(0).standard_normal(min(n, p))
        try:
            left, values, right = svds(products, k=1, v0=start, tol=0)
        except ArpackError:  # the start is mapped to zero: the matrix is rounding error
            return None
    value = float(values[0])
    return Direction(left[:, 0] if on_rows else right[0], on_rows, value) if value > 0 else None
