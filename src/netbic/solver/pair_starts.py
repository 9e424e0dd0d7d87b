r"""Leading directions of a cross-product C = X'Y, from inner products of the samples.

With K = XX' and a square root L of YY' (YY' = LL'), Y = LQ for a Q with orthonormal rows, and C'C = Q'SQ with the
n x n matrix S = L'KL. So a leading eigenvector s of S gives the leading right singular vector v = Q's of C, which is
proportional to C'Cv = Y'KLs, and |C|^2 is the trace of S. Deflation changes S by matrices of rank two,

    S - wa' - aw',   with   w = b - (c/2) a:

- X -> X - tt'X:    a = L't, b = L'Kt, c = t'Kt, and K changes likewise, with a = t and b = Kt;
- Y -> Y - ss'Y:    a = L's, b = L'Ks, c = s'Ks, and L becomes L - ss'L;
- C -> C - duv':    a = Qv, b = d L'Xu, c = d^2, where the part of v outside the rows of Y is neglected: what is left of
  it in a start, the iteration removes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from netbic.arrays import Array, Floats
from netbic.operators import Cross, Table
from netbic.solver.starts import Direction, Subspace

_EXACT_WORK = 2e8  # multiplications up to which these are made and solved in double precision
_TOLERANCE, _EXACT_TOLERANCE = 1e-3, 1e-13
_STEPS, _EXACT_STEPS = 40, 10_000
_SUBSPACE = (20, 8)


class PairStarts:
    """Leading singular directions of a cross-product that is deflated by one pair after another.

    Parameters
    ----------
    x, y : Table
        Before the first deflation.
    exact : bool
        Compute directions to machine precision.
    """

    def __init__(self, x: Table, y: Table, exact: bool) -> None:
        n = x.shape[0]
        self._exact = exact or n * n * (x.shape[1] + y.shape[1]) <= _EXACT_WORK
        dtype = np.float64 if self._exact else np.float32
        gram = x.gram(dtype)
        self._root = _square_root(y.gram(dtype))
        self._gram, self._inside = _Symmetric(gram), _Symmetric(self._root.T @ gram @ self._root)
        first = np.random.default_rng(0).standard_normal((1, self._root.shape[1])).astype(dtype)
        self._subspace = Subspace(first, *_SUBSPACE)

    @property
    def squared_norm(self) -> float:
        """The squared Frobenius norm of the current matrix."""
        return max(self._inside.trace, 0.0)

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

    def remove_from_x(self, t: Floats) -> None:
        """Update for X -> X - tt'X, with a unit vector t of the samples."""
        t = t.astype(self._root.dtype)
        image = self._gram.product(t)
        self._change(self._root.T @ t, self._root.T @ image, float(t @ image))
        self._gram.subtract(t, image - 0.5 * float(t @ image) * t)

    def remove_from_y(self, s: Floats) -> None:
        """Update for Y -> Y - ss'Y, with a unit vector s of the samples."""
        s = s.astype(self._root.dtype)
        image = self._gram.product(s)
        self._change(self._root.T @ s, self._root.T @ image, float(s @ image))
        self._root = self._root - np.outer(s, s @ self._root)

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
        self._entries = np.asfortranarray(entries)
        self._symv, self._syr2 = get_blas_funcs(("symv", "syr2"), (self._entries,))

    @property
    def trace(self) -> float:
        """The sum of the diagonal entries."""
        return float(np.trace(self._entries, dtype=np.float64))

    def product(self, vector: Array) -> Array:
        """The product with a vector."""
        return np.asarray(self._symv(1.0, self._entries, vector))

    def subtract(self, a: Array, w: Array) -> None:
        """Subtract wa' + aw'."""
        self._entries = self._syr2(-1.0, w, a, a=self._entries, overwrite_a=True)


def _square_root(gram: Array) -> Array:
    """A matrix L of full column rank with LL' = gram, by Cholesky decomposition with pivots."""
    pstrf: Any = get_lapack_funcs("pstrf", (gram,))
    lower, pivots, rank, _ = pstrf(gram, lower=True)  # the rank is that up to rounding errors
    root = np.empty((len(gram), rank), dtype=gram.dtype)
    root[pivots - 1] = np.tril(lower)[:, :rank]
    return root
