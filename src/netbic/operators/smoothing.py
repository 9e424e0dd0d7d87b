"""Network smoothing: Y = (1 - a) X (I - aM)^-1, for a symmetric M whose eigenvalues lie between -1 and 1.

(I - aM)^-1 is never formed. As a function of the eigenvalue x of M it is a series of Chebyshev polynomials,

    1 / (1 - ax) = (1 + 2 sum_k r^k T_k(x)) / sqrt(1 - a^2),    r = (1 - sqrt(1 - a^2)) / a,

whose terms decrease geometrically and have |T_k(x)| <= 1, so that the number of terms for a given accuracy is known
(77 for a = 0.9 in double precision), and T_{k+1}(M) X = 2M T_k(M) X - T_{k-1}(M) X takes one sparse product per term.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, sqrt
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Indices, scatter
from netbic.operators.base import DataOperator, RowReduction, slabs
from netbic.operators.corrected import Corrected
from netbic.operators.dense import DenseOperator

_ROUNDING = 4  # the remainder of the series is at most this many times the rounding error of a number
_BLOCK_ROWS = 32  # rows smoothed at a time: they stay in the cache from one term to the next


class Smoother:
    """The matrix S = (1 - a) (I - aM)^-1, which is symmetric and has eigenvalues between 0 and 1.

    M is symmetric, with eigenvalues between -1 and 1, such as the graph term "normalized"; the weight a is at least 0
    and below 1.
    """

    def __init__(self, matrix: sp.csr_array, weight: float) -> None:
        if not 0 <= weight < 1:
            raise ValueError(f"weight={weight!r}: a number of at least 0 and below 1 is needed")
        self.matrix, self.weight = sp.csr_array(matrix), float(weight)

    def rows(self, X: Array) -> Array:
        """X S, in the precision of X."""
        return smoothed_rows(self.matrix, X, [self.weight])[0]

    def columns(self, X: Array) -> Array:
        """S X; for one vector or several."""
        smoothed: Array = self.rows(np.atleast_2d(X.T)).T
        return smoothed.reshape(X.shape)

    def undo_columns(self, X: Array) -> Array:
        """The inverse of `columns`."""
        return np.asarray((X - self.weight * (self.matrix @ X)) / (1 - self.weight))


def smoothed_rows(matrix: sp.csr_array, X: Array, weights: Sequence[float]) -> list[Array]:
    """(1 - a) X (I - aM)^-1 for several weights a, in the time that the largest one takes; in the precision of X.

    The series share the polynomials T_k(M) X'.
    """
    terms = []  # for each weight: the first coefficient, the ratio r of the series, and the number of further terms
    for weight in weights:
        root = sqrt(1 - weight * weight)
        ratio = weight / (1 + root)
        remainder = _ROUNDING * float(np.finfo(X.dtype).eps) * (1 - ratio)
        terms.append(((1 - weight) / root, ratio, ceil(log(remainder) / log(ratio)) if weight else 0))
    longest = max(length for _, _, length in terms)
    matrix, made = matrix.astype(X.dtype), [np.empty_like(X, order="C") for _ in weights]
    for start in range(0, len(X), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        earlier = latest = np.ascontiguousarray(X[part].T)
        totals = [scale * latest for scale, _, _ in terms]
        for power in range(1, longest + 1):
            product = matrix @ latest
            if power > 1:
                product *= 2
                product -= earlier
            earlier, latest = latest, product
            for total, (scale, ratio, length) in zip(totals, terms, strict=True):
                if power <= length:
                    total += 2 * scale * ratio**power * latest
        for smooth, total in zip(made, totals, strict=True):
            smooth[part] = total.T
    return made


def smoothed(operator: Corrected, smoother: Smoother, low_memory: bool = False) -> Corrected:
    """A centred and scaled matrix, before deflation, times S.

    A dense matrix is smoothed once; of all others, the products are smoothed.
    """
    if (rows := scaled_rows(operator)) is not None:
        made = DenseOperator(smoother.rows(rows), low_memory)
        nothing = np.zeros(made.shape[0]), np.zeros(made.shape[1])
        return Corrected(made, float(made.column_squares(*nothing).sum()))
    base, factors, left, right = operator.parts()
    implicit = SmoothedOperator(base, factors, smoother)
    right = smoother.columns(right)
    squares = RowReduction(lambda rows, first: float(np.einsum("ij,ij->", rows, rows)), add, None, left, right)
    squared_norm = implicit.reduce_rows(squares)
    return Corrected(implicit, squared_norm, left=left, right=right)


def scaled_rows(operator: Corrected) -> Array | None:
    """A centred and scaled matrix before deflation as an array, if the data are stored as one."""
    base, factors, left, right = operator.parts()
    if (rows := base.stored_rows()) is None:
        return None
    scaled: Array = rows.copy() if factors is None else rows * factors.astype(rows.dtype)
    scaled -= (left @ right.T).astype(rows.dtype, copy=False)
    return scaled


class SmoothedOperator(DataOperator):
    """X F S for a matrix X of any kind, F diagonal: vectors are smoothed before or after the product with X."""

    def __init__(self, base: DataOperator, factors: Floats | None, smoother: Smoother) -> None:
        super().__init__(base.shape, base.dtype)
        self._base, self._smoother = base, smoother
        self._factors = np.ones(base.shape[1]) if factors is None else factors
        self._every = np.arange(base.shape[1])

    @property
    def epsilon(self) -> float:
        """Relative rounding error of one product."""
        return self._base.epsilon

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X F S v."""
        return self._base.matvec(self._every, self._directions(scatter(support, values, self.shape[1])))

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """S F X'u."""
        return np.asarray(self._smoother.columns(self._factors * self._base.rmatvec(support, values)))

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """X F S v for several vectors v; one row per vector."""
        directions = [self._directions(scatter(at, values, self.shape[1])) for at, values in vectors]
        return self._base.products([(self._every, direction) for direction in directions])

    def _directions(self, vectors: Floats) -> Floats:
        return np.asarray((self._factors * self._smoother.columns(vectors.astype(np.float64)).T).T)

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """S F X'w and w, for w = weights * (X F S v - offsets), in one pass over X."""
        products, images = self._base.normal(self._directions(vectors), offsets, weights)
        return np.asarray(self._smoother.columns((self._factors * products.T).T)), images

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """The entries in some rows and columns: whole rows are smoothed, or columns of S are multiplied."""
        if len(rows) <= len(columns):
            return self._smoother.rows(self._base.submatrix(rows, self._every) * self._factors)[:, columns]
        return self.products([(np.array([column]), np.ones(1)) for column in columns])[:, rows].T

    def reduce_rows(self, reduction: RowReduction) -> Any:
        """The result of a reduction over all rows of X F S diag(g) - L R' = (X F - L R0') S diag(g)."""
        g = np.ones(self.shape[1]) if reduction.factors is None else reduction.factors
        smoother, function = self._smoother, reduction.function

        def of_smoothed(rows: Floats, first: int) -> Any:
            return function(smoother.rows(rows) * g, first)

        right = smoother.undo_columns(reduction.right / g[:, None])
        return self._base.reduce_rows(reduction._replace(function=of_smoothed, factors=self._factors, right=right))

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y Y' or Y'Y for Y = X F S diag(factors) - left right'."""
        inner = self._smoother.undo_columns(right / factors[:, None])  # Y = (X F - left inner') S diag(factors)
        if not on_rows:
            upper = np.triu(self._base.gram(False, self._factors, left, inner, np.float64))
            whole = upper + np.triu(upper, 1).T
            total = self._smoother.rows(self._smoother.columns(whole)) * factors * factors[:, None]
            return np.asfortranarray(total, dtype=dtype)
        n, p = self.shape
        total = np.empty((n, n))
        for part in slabs(n, p):  # Z S diag(factors)^2 S Z' for Z = X F - left inner', a few rows of Z at a time
            rows = self._base.submatrix(np.arange(n)[part], self._every) * self._factors - left[part] @ inner.T
            rows = self._smoother.rows(self._smoother.rows(rows) * factors**2)
            products = self._base.products([(self._every, row * self._factors) for row in rows])
            total[part] = products - (rows @ inner) @ left.T
        return np.asfortranarray(total, dtype=dtype)
