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

import numpy as np
from scipy.linalg import eigh

from netbic.arrays import Array, Floats
from netbic.operators import Cross, Table
from netbic.solver.starts import Direction, Subspace

_EXACT_WORK = 2e8  # multiplications up to which these are made and solved in double precision
_TOLERANCE, _EXACT_TOLERANCE = 1e-3, 1e-13
_STEPS, _EXACT_STEPS = 40, 10_000
_SUBSPACE = (20, 8)
_RANK_ERROR = 1e-7  # relative to the largest eigenvalue of YY', in single precision


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
        self._gram = x.gram(dtype)
        self._root = _square_root(y.gram(dtype))
        self._inside = self._root.T @ self._gram @ self._root
        first = np.random.default_rng(0).standard_normal((1, n)).astype(dtype)
        self._subspace = Subspace(first, *_SUBSPACE)

    @property
    def squared_norm(self) -> float:
        """The squared Frobenius norm of the current matrix."""
        return max(float(np.trace(self._inside, dtype=np.float64)), 0.0)

    def leading(self, cross: Cross) -> Direction | None:
        """The leading direction on the axis with fewer features; None if the matrix is zero."""
        if not self.squared_norm:
            return None
        effort = (_EXACT_TOLERANCE, _EXACT_STEPS) if self._exact else (_TOLERANCE, _STEPS)
        square, vector, _ = self._subspace.leading(lambda q: (self._inside @ q, None), *effort)
        if not square > 0:
            return None
        on_rows = cross.shape[0] <= cross.shape[1]
        samples = (self._root @ vector).astype(np.float64)  # proportional to Yv
        table = cross.x
        if not on_rows:
            samples, table = (self._gram @ (self._root @ vector)).astype(np.float64), cross.y
        direction = table.rmatvec(samples / np.linalg.norm(samples))
        length = float(np.linalg.norm(direction))
        return Direction(direction / length, on_rows, float(np.sqrt(square))) if length else None

    def remove_from_x(self, t: Floats) -> None:
        """Update for X -> X - tt'X, with a unit vector t of the samples."""
        t = t.astype(self._gram.dtype)
        image = self._gram @ t
        self._change(self._root.T @ t, self._root.T @ image, float(t @ image))
        self._gram = _changed(self._gram, t, image - 0.5 * float(t @ image) * t)

    def remove_from_y(self, s: Floats) -> None:
        """Update for Y -> Y - ss'Y, with a unit vector s of the samples."""
        s = s.astype(self._gram.dtype)
        image = self._gram @ s
        self._change(self._root.T @ s, self._root.T @ image, float(s @ image))
        self._root = self._root - np.outer(s, s @ self._root)

    def remove_pair(self, d: float, x_scores: Floats, y_scores: Floats) -> None:
        """Update for C -> C - duv', given Xu and Yv."""
        dtype = self._gram.dtype
        inside = np.linalg.lstsq(self._root, y_scores.astype(dtype), rcond=1e-6)[0]
        self._change(inside, d * (self._root.T @ x_scores.astype(dtype)), d * d)

    def _change(self, a: Array, b: Array, c: float) -> None:
        w = b - 0.5 * c * a
        self._inside = _changed(self._inside, a, w)
        self._subspace.deflate(w, a)


def _changed(matrix: Array, a: Array, w: Array) -> Array:
    """The symmetric matrix minus wa' + aw'."""
    step = np.outer(w, a)
    changed: Array = matrix - step - step.T
    return changed


def _square_root(gram: Array) -> Array:
    """A matrix L with LL' = gram, whose negligible eigenvalues are left out."""
    values, vectors = eigh(gram, check_finite=False, driver="evd")
    values = np.where(values > max(_RANK_ERROR * values[-1], 0.0) if values.size else False, values, 0.0)
    root: Array = vectors * np.sqrt(values)
    return root
