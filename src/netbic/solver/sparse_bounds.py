r"""Upper bounds of the largest singular value among submatrices with a given number of rows and columns.

Let r_j be the columns of R, S a set of k of them, y a unit vector, and W a positive definite matrix. By the inequality
of Cauchy and Schwarz (r_j'y)^2 <= q_j y'Wy with q_j = r_j'W^-1 r_j, and so, with w_j = max(1 - 1/q_j, 0),

    (r_j'y)^2 <= y'Wy + w_j (r_j'y)^2.

The sum over S is at most y'(kW + sum_j w_j r_j r_j')y, where the second sum is over all columns. Hence the square of
the largest singular value of the columns S is at most the largest eigenvalue of

    A = kW + sum_j w_j r_j r_j',

whatever S is and for every W. Two special cases are known bounds: W -> 0 gives the largest singular value of R, and
W = (k-th largest |r_j|^2) I at most the sum of the k largest squared norms. The W used here have two parameters,
W = a yy' + b (I - yy') with the y of a module that was found: in its direction the bound is nearly the value of the
module, as far as it is not exceeded in others. The bound is convex in W, and a and b are searched for.

If y has at most m entries, q_j can be smaller. Let y0 (with m0 entries) be the direction of W, z_j = r_j'y0, T_j the
norm of the m + m0 largest entries of r_j - z_j y0, and t_j that of the m largest entries of r_j. As y - (y0'y) y0 has
at most m + m0 entries, q_j = z_j^2/a + T_j^2/b is enough, and so is t_j^2 / min(a, b). What remains is to maximise y'Ay
over vectors with m entries. As A - kaI is positive semidefinite for a <= b, it is LL', and the maximum is ka plus the
solution of the same problem for the rows of L.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.optimize import minimize

from netbic.arrays import Floats

_MARGIN: Final = 1 + 1e-9  # for rounding errors of eigenvalues, which are about 1e-13
_SHIFT: Final = 1e-11  # of A, relative to its trace
_FIRST: Final = ((1e-3, 1.0), (0.3, 3.0), (0.7, 1.0), (1.0, 2.0))  # a, in units of the k-th largest (r_j'y)^2, and b/a
_LOWEST: Final = float(np.log(1e-6))
_EVALUATIONS: Final = 12  # of the search for a and b, for each axis


class Columns(NamedTuple):
    """Columns r_j with their products with a unit vector y, and bounds of what other vectors can give.

    Attributes
    ----------
    vectors : array of shape (t, m)
        The columns; others, which are left out, must have q_j <= 1 for all a of at least `least`.
    y : array of shape (t,)
    products : array of shape (m,)
        r_j'y.
    others : array of shape (m,)
        The largest squared products of r_j - (r_j'y) y with admitted unit vectors, T_j^2.
    all_directions : array of shape (m,)
        The same for r_j itself, t_j^2.
    least : float
        Smallest a.
    """

    vectors: Floats
    y: Floats
    products: Floats
    others: Floats
    all_directions: Floats
    least: float = 0.0

    @classmethod
    def of(cls, vectors: Floats, y: Floats, n_entries: int | None = None, least: float = 0.0) -> Columns:
        """Compute the products; `n_entries` is the number of entries that vectors may have (None: any)."""
        products = y @ vectors
        rest = vectors - np.outer(y, products)
        if n_entries is None:
            return cls(vectors, y, products, _squares(rest), _squares(vectors), least)
        both = n_entries + int(np.count_nonzero(y))
        return cls(vectors, y, products, largest_squares(rest, both), largest_squares(vectors, n_entries), least)

    def matrix(self, k: int, a: float, b: float) -> Floats:
        """A, for k of the columns."""
        q = np.minimum(self.products**2 / a + self.others / b, self.all_directions / min(a, b))
        used = np.flatnonzero(q > 1)
        kept = self.vectors[:, used] * np.sqrt(1 - 1 / q[used])
        total: Floats = kept @ kept.T + k * (a - b) * np.outer(self.y, self.y)
        total[np.diag_indices_from(total)] += k * b
        return total

    def natural(self, k: int) -> float:
        """The k-th largest (r_j'y)^2, at least `least`: the a for which S is the best set in the direction y."""
        squares = self.products**2
        kth = float(np.partition(squares, squares.size - k)[squares.size - k]) if k < squares.size else 0.0
        positive = kth if kth > 0 else float(self.all_directions.max()) * 1e-3
        return max(positive, self.least)


def _squares(columns: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


def largest_squares(columns: Floats, count: int) -> Floats:
    """Sum of the `count` largest squares of each column."""
    size = len(columns)
    if count >= size:
        return _squares(columns)
    return np.asarray(np.partition(columns**2, size - count, axis=0)[size - count :].sum(axis=0))


def largest_eigenvalue(matrix: Floats) -> float:
    """Of a symmetric matrix, by LAPACK."""
    last = len(matrix) - 1
    return float(eigh(matrix, eigvals_only=True, subset_by_index=[last, last], check_finite=False)[0])


def squared_norm_bound(columns: Columns, k: int, vector: Floats, n_entries: int | None) -> float:
    """Upper bound of the squared norm of any k of the columns, for vectors with at most `n_entries` entries.

    Parameters
    ----------
    columns : Columns
    k : int
    vector : array of shape (t,)
        A vector with at most `n_entries` entries, near the best one if possible.
    n_entries : int or None
        None: any number.
    """
    first = columns.natural(k)

    def of_weights(weights: Floats) -> float:
        a, b = _weights(first, weights[:2], columns.least)
        matrix = columns.matrix(k, a, b)
        if n_entries is None:
            return largest_eigenvalue(matrix)
        matrix[np.diag_indices_from(matrix)] -= k * a  # A - kaI is positive semidefinite, and y'(kaI)y is known
        return k * a + _entries_bound(matrix, vector, n_entries, weights[2:])

    return _MARGIN * _smallest(of_weights, 1 if n_entries is None else 2)


def quadratic_bound(matrix: Floats, vector: Floats, n_entries: int) -> float:
    """Upper bound of y'Ay over unit vectors with at most `n_entries` entries, for a positive semidefinite A."""
    return _MARGIN * _smallest(lambda weights: _entries_bound(matrix, vector, n_entries, weights), 1)


def _entries_bound(matrix: Floats, vector: Floats, n_entries: int, weights: Floats) -> float:
    """The bound for the columns of L', where A = LL'."""
    trace = float(np.trace(matrix))
    if trace <= 0:
        return 0.0
    # A is semidefinite up to rounding errors: the shift makes it definite, and only increases the bound.
    root = cholesky(matrix + _SHIFT * trace * np.eye(len(matrix)), lower=True, check_finite=False)
    image = vector @ root
    columns = Columns.of(root.T, image / np.linalg.norm(image))
    return largest_eigenvalue(columns.matrix(n_entries, *_weights(columns.natural(n_entries), weights, 0.0)))


def _weights(first: float, logarithms: Floats, least: float) -> tuple[float, float]:
    """a and b >= a from the logarithms of a, in units of the first one, and of b / a."""
    shares = np.exp(np.clip(logarithms, _LOWEST, -_LOWEST))
    a = max(first * float(shares[0]), least)
    return a, a * max(float(shares[1]), 1.0)


def _smallest(bound: Callable[[Floats], float], n_axes: int) -> float:
    """The smallest of the bounds for the first weights, and for those that a simplex search from the best one meets."""
    first = np.log(np.array(list(product(_FIRST, repeat=n_axes)))).reshape(-1, 2 * n_axes)
    values = [bound(weights) for weights in first]
    best = first[int(np.argmin(values))]
    simplex = np.vstack([best, best + 0.3 * np.eye(best.size)])
    options: Any = {"maxfev": _EVALUATIONS * n_axes, "initial_simplex": simplex, "fatol": 0.0, "xatol": 0.01}
    return min(min(values), float(minimize(bound, best, method="Nelder-Mead", options=options).fun))
