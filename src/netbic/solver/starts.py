"""Where a module's iteration begins.

The first start is the leading singular pair of what earlier modules left; restarts are random. Both are one function
of (matrix, seed), whatever operator holds the matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from netbic.operators import Operator
from netbic.solver.rounds import Vector

_EXACT_SIZE = 16  # below this many rows or columns LAPACK is used: Lanczos needs room


class LeadingPair(NamedTuple):
    """The leading singular triplet."""

    u: Vector
    v: Vector
    value: float


def leading_pair(operator: Operator) -> LeadingPair | None:
    """The leading singular triplet to machine precision; None for a zero matrix."""
    n, p = operator.shape
    left, value, right = _small_svd(operator) if min(n, p) <= _EXACT_SIZE else _lanczos_svd(operator)
    if not value > 0:
        return None
    return LeadingPair(Vector.of(left), Vector.of(right), value)


def random_pair(operator: Operator, generator: np.random.Generator) -> tuple[Vector, Vector] | None:
    """A Gaussian direction v and the u that goes with it; None where they do not meet the data at all."""
    v = Vector.of(generator.standard_normal(operator.shape[1]))
    z = operator.matvec(v.support, v.values)
    return (Vector.of(z), v) if z.any() else None


def largest_entry(operator: Operator) -> tuple[Vector, Vector]:
    """The row and the column of the largest entry (one pass over the rows)."""
    n, p = operator.shape
    best, at = -np.inf, (0, 0)
    for i in range(n):
        row = operator.rmatvec(np.array([i]), np.ones(1))
        if row.max() > best:
            best, at = float(row.max()), (i, int(row.argmax()))
    return Vector(n, np.array([at[0]]), np.ones(1)), Vector(p, np.array([at[1]]), np.ones(1))


def _small_svd(operator: Operator) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Write the matrix out along its short side."""
    n, p = operator.shape
    one = np.ones(1)
    if n <= p:
        matrix = np.array([operator.rmatvec(np.array([i]), one) for i in range(n)])
    else:
        matrix = np.array([operator.matvec(np.array([j]), one) for j in range(p)]).T
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def _lanczos_svd(operator: Operator) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    n, p = operator.shape
    every_row, every_column = np.arange(n), np.arange(p)
    products = LinearOperator(
        shape=(n, p),
        dtype=np.float64,
        matvec=lambda v: operator.matvec(every_column, v.ravel()),
        rmatvec=lambda u: operator.rmatvec(every_row, u.ravel()),
    )
    start = np.random.default_rng(0).standard_normal(min(n, p))
    left, values, right = svds(products, k=1, v0=start, tol=0)
    return left[:, 0], float(values[0]), right[0]
