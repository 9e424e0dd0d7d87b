"""Where a module's iteration begins.

The leading singular direction comes from the Gram matrix of the short side (XX' or X'X), which is made once and updated
in place when a module is taken out. From there:

- `paper_start`: the full leading pair, as the paper's algorithms begin;
- `cut_start` (default): the first round without the graph. Its first half is free, because Xv = sigma_1 u for the
  leading pair, and the other half reads the kept lines only.

Restarts do the same from a random direction. A start is one function of (X, seed), whatever operator holds X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, get_blas_funcs
from scipy.sparse.linalg import LinearOperator, svds

from netbic.operators import Corrected, Operator
from netbic.solver.rounds import Side, Vector, plain_step

Floats = NDArray[np.float64]

_EXACT_WORK = 2e8  # multiplications up to which the Gram matrix is made in double precision and solved to the end
_LAPACK_SIZE = 300
_LANCZOS_TOLERANCE = 1e-3  # fixed: another value gives other modules on real data
_LANCZOS_STEPS = 60
_LANCZOS_CYCLES = 50
_SVD_SIZE = 16  # up to this many rows or columns the matrix is written out: ARPACK needs room

Product = Callable[[NDArray[Any]], NDArray[Any]]


class Direction(NamedTuple):
    """A unit vector on one axis, and the singular value that goes with it."""

    vector: Floats
    on_rows: bool
    value: float


class Starts:
    """Leading singular directions of a matrix that loses one module after another.

    Parameters
    ----------
    operator : Corrected
        The matrix before the first module is taken out.
    exact : bool
        Solve to machine precision, as the paper's start needs; otherwise only where that costs nothing.
    """

    def __init__(self, operator: Corrected, exact: bool) -> None:
        n, p = operator.shape
        self._on_rows = n <= p
        short, long = min(n, p), max(n, p)
        self._exact = exact or short * short * long <= _EXACT_WORK
        self._scale = _power_of_two(operator.squared_norm)
        self._gram = operator.gram(self._on_rows, self._scale, np.float64 if self._exact else np.float32)
        self._symv, self._syr2 = get_blas_funcs(("symv", "syr2"), (self._gram,))
        # What rounding may have left in the Gram matrix: below it only products with the operator tell the truth.
        self._floor = (1e-12 if self._exact else 1e-5) * float(np.trace(self._gram))
        self._first = np.random.default_rng(0).standard_normal(short).astype(self._gram.dtype)

    def leading(self, operator: Corrected) -> Direction | None:
        """The leading direction of what is left; None if that is zero."""
        if self._exact and self._gram.shape[0] <= _LAPACK_SIZE:
            last = self._gram.shape[0] - 1
            values, vectors = eigh(self._gram, lower=False, subset_by_index=[last, last], check_finite=False)
            square, vector = float(values[0]), vectors[:, 0]
        else:
            square, vector = lanczos(self._product, self._first, 1e-13 if self._exact else _LANCZOS_TOLERANCE)
        if square <= self._floor:
            return exact_direction(operator, self._on_rows)
        return Direction(vector.astype(np.float64), self._on_rows, float(np.sqrt(square)) / self._scale)

    def _product(self, vector: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._symv(1.0, self._gram, vector))

    def forget(self, operator: Corrected, left: Floats, right: Floats) -> None:
        """Follow X -> X - left right' (`operator` is X before): G -= w a' + a w', on the upper triangle only."""
        if self._on_rows:
            a, b = left, right
            product = operator.matvec(*_nonzero(right))
        else:
            a, b = right, left
            product = operator.rmatvec(*_nonzero(left))
        other = product - 0.5 * float(b @ b) * a
        scaled = [(self._scale * x).astype(self._gram.dtype) for x in (other, a)]
        self._gram = self._syr2(-1.0, *scaled, a=self._gram, overwrite_a=True)


def _nonzero(vector: Floats) -> tuple[NDArray[np.intp], Floats]:
    support = np.flatnonzero(vector)
    return support, vector[support]


def _power_of_two(squared_norm: float) -> float:
    """A factor that brings a matrix into the range of single precision without touching a digit; 1 if it is there."""
    if 1e-10 <= squared_norm <= 1e10:
        return 1.0
    return float(2.0 ** -np.round(np.log2(squared_norm) / 2)) if squared_norm > 0 else 1.0


def paper_start(operator: Operator, direction: Direction) -> tuple[Vector, Vector]:
    """The full singular pair: the direction itself and the product with it."""
    one = Vector.of(direction.vector)
    if direction.on_rows:
        return one, Vector.of(operator.rmatvec(one.support, one.values))
    return Vector.of(operator.matvec(one.support, one.values)), one


def cut_start(operator: Operator, rows: Side, columns: Side, direction: Direction) -> tuple[Vector, Vector] | None:
    """A round without the graph, the first half on the direction's own axis; None if a threshold leaves nothing."""
    z = direction.value * direction.vector
    if direction.on_rows:
        u = plain_step(rows, z)
        v = plain_step(columns, operator.rmatvec(u.support, u.values)) if not u.is_empty else u
    else:
        v = plain_step(columns, z)
        u = plain_step(rows, operator.matvec(v.support, v.values)) if not v.is_empty else v
    return None if u.is_empty or v.is_empty else (u, v)


def random_direction(like: Direction, generator: np.random.Generator) -> Direction:
    """A Gaussian direction on the same axis, with the same singular value (which scales what thresholds see)."""
    vector = generator.standard_normal(like.vector.size)
    return like._replace(vector=vector / np.linalg.norm(vector))


def largest_entry(operator: Operator) -> tuple[Vector, Vector]:
    """The row and the column of the largest entry (one pass over the rows)."""
    n, p = operator.shape
    best, at = -np.inf, (0, 0)
    for i in range(n):
        row = operator.rmatvec(np.array([i]), np.ones(1))
        if row.max() > best:
            best, at = float(row.max()), (i, int(row.argmax()))
    return Vector(n, np.array([at[0]]), np.ones(1)), Vector(p, np.array([at[1]]), np.ones(1))


def exact_direction(operator: Operator, on_rows: bool) -> Direction | None:
    """The leading direction by products with the operator alone, to machine precision; None for a zero matrix."""
    n, p = operator.shape
    left, value, right = _small_svd(operator) if min(n, p) <= _SVD_SIZE else _arpack_svd(operator)
    return Direction(left if on_rows else right, on_rows, value) if value > 0 else None


def _small_svd(operator: Operator) -> tuple[Floats, float, Floats]:
    """Write the matrix out along its short side."""
    n, p = operator.shape
    one = np.ones(1)
    if n <= p:
        matrix = np.array([operator.rmatvec(np.array([i]), one) for i in range(n)])
    else:
        matrix = np.array([operator.matvec(np.array([j]), one) for j in range(p)]).T
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def _arpack_svd(operator: Operator) -> tuple[Floats, float, Floats]:
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


def lanczos(product: Product, start: NDArray[Any], tolerance: float) -> tuple[float, NDArray[Any]]:
    """Leading eigenpair of a positive semidefinite matrix, to a relative residual of `tolerance`."""
    vector = start
    for _ in range(_LANCZOS_CYCLES):
        value, vector, residual = _lanczos_cycle(product, vector / np.linalg.norm(vector), tolerance)
        if residual <= tolerance * value:
            break
    return value, vector


def _lanczos_cycle(product: Product, start: NDArray[Any], tolerance: float) -> tuple[float, NDArray[Any], float]:
    """Up to _LANCZOS_STEPS steps with full reorthogonalisation: Ritz value, Ritz vector, norm of its residual."""
    steps = min(_LANCZOS_STEPS, start.size)
    basis = np.empty((steps, start.size), dtype=start.dtype)
    projected = np.zeros((steps, steps))
    basis[0] = start
    for j in range(steps):
        w = product(basis[j])
        projected[j, j] = basis[j] @ w
        for _ in range(2):
            w = w - (basis[: j + 1] @ w) @ basis[: j + 1]
        length = float(np.linalg.norm(w))
        last = j + 1 == steps or length <= np.finfo(basis.dtype).eps * projected[0, 0]
        if last or j % 4 == 3:  # look at the projected matrix only now and then: it costs more than a step
            values, vectors = np.linalg.eigh(projected[: j + 1, : j + 1])
            residual = length * abs(float(vectors[-1, -1]))
            if last or residual <= tolerance * values[-1]:
                break
        projected[j, j + 1] = projected[j + 1, j] = length
        basis[j + 1] = w / length
    return float(values[-1]), vectors[:, -1].astype(basis.dtype) @ basis[: j + 1], residual
