"""Graph terms: the matrix M of the model, made from edge weights, with what the solver must know of it."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_EXACT_SIZE = 64  # below this LAPACK is faster than Lanczos and has no corner cases


class GraphTerm:
    """The symmetric matrix M whose quadratic form (sigma / 2) w'Mw the objective rewards.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array
    is_empty : bool
        Whether the graph has no edges at all.
    largest_diagonal : float
        Largest absolute diagonal entry: the shift the plain AISP needs on Laplacian terms to keep scores non-negative.
    """

    def __init__(self, weights: sp.csr_array) -> None:
        self.is_empty = weights.nnz == 0
        self._strengths = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
        self.matrix = self._matrix(weights)
        self.largest_diagonal = float(np.abs(self.matrix.diagonal()).max(initial=0.0))

    def _matrix(self, weights: sp.csr_array) -> sp.csr_array:
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """What a relative smoothness is divided by, so that it means about the same for every graph and term."""
        return 1.0

    @property
    def shift_bound(self) -> float:
        """Upper bound of -lambda_min(M): M plus this times I is positive semidefinite."""
        raise NotImplementedError

    def product(self, support: Indices, values: Floats) -> Floats:
        """M w for a vector w that is zero outside `support`: reads the supported rows only (M is symmetric)."""
        if 3 * support.size > self.matrix.shape[0]:
            full = np.zeros(self.matrix.shape[0])
            full[support] = values
            return np.asarray(self.matrix @ full)
        lengths, columns, weights = self._rows(support)
        sums = np.bincount(columns, weights * np.repeat(values, lengths), minlength=self.matrix.shape[0])
        return sums.astype(np.float64, copy=False)

    def _rows(self, support: Indices) -> tuple[Indices, Indices, Floats]:
        """Lengths, columns and values of some rows, laid end to end (matrix[support] without making a matrix)."""
        first = self.matrix.indptr[support]
        lengths = self.matrix.indptr[support + 1] - first
        ends = np.cumsum(lengths)
        entries = np.arange(lengths.sum()) + np.repeat(first - ends + lengths, lengths)
        return lengths, self.matrix.indices[entries], self.matrix.data[entries]


class _Adjacency(GraphTerm):
    """M = A: every edge between two chosen nodes is rewarded (what the published algorithm does)."""

    def _matrix(self, weights: sp.csr_array) -> sp.csr_array:
        return weights

    @cached_property
    def scale(self) -> float:
        return 1.0 if self.is_empty else extreme_eigenvalue(self.matrix, "LA")[0]

    @cached_property
    def shift_bound(self) -> float:
        value, error = extreme_eigenvalue(self.matrix, "SA")
        return min(error - value, float(self._strengths.max(initial=0.0)))


class _Laplacian(GraphTerm):
    """M = -L = A - D: differences across edges are penalised (the model as the paper writes it, its Eq. 5)."""

    def _matrix(self, weights: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(weights - sp.diags_array(self._strengths))

    @cached_property
    def scale(self) -> float:
        connected = self._strengths > 0
        return float(self._strengths[connected].mean()) if connected.any() else 1.0

    @cached_property
    def shift_bound(self) -> float:
        value, error = extreme_eigenvalue(self.matrix, "SA")
        return min(error - value, 2 * float(self._strengths.max(initial=0.0)))


class _Normalized(GraphTerm):
    """M = D^-1/2 A D^-1/2: edges rewarded, those of hubs less."""

    shift_bound = 1.0  # the spectrum lies in [-1, 1]

    def _matrix(self, weights: sp.csr_array) -> sp.csr_array:
        return _normalized_adjacency(weights, self._strengths)


class _NormalizedLaplacian(GraphTerm):
    """M = D^-1/2 A D^-1/2 - I (zero rows for isolated nodes)."""

    shift_bound = 2.0  # the normalised Laplacian's spectrum lies in [0, 2]

    def _matrix(self, weights: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(
            _normalized_adjacency(weights, self._strengths) - sp.diags_array((self._strengths > 0).astype(np.float64))
        )


TERM_CLASSES: Final[dict[str, type[GraphTerm]]] = {
    "adjacency": _Adjacency,
    "laplacian": _Laplacian,
    "normalized": _Normalized,
    "normalized_laplacian": _NormalizedLaplacian,
}
TERMS: Final = tuple(TERM_CLASSES)


def _normalized_adjacency(weights: sp.csr_array, strengths: Floats) -> sp.csr_array:
    inverse_roots = sp.diags_array(1 / np.sqrt(np.where(strengths > 0, strengths, np.inf)))
    return sp.csr_array(inverse_roots @ weights @ inverse_roots)


def extreme_eigenvalue(matrix: sp.csr_array, which: Literal["LA", "SA"]) -> tuple[float, float]:
    """Largest ("LA") or smallest ("SA") eigenvalue of a symmetric matrix, and a bound on its error.

    The start is a fixed vector: all ones for the largest eigenvalue (which makes it independent of the node order),
    pseudo-random for the smallest (all ones may be orthogonal to its eigenvector).
    """
    size = matrix.shape[0]
    if size <= _EXACT_SIZE:
        values = np.linalg.eigvalsh(matrix.toarray())
        value = float(values[-1] if which == "LA" else values[0])
        return value, 1e-12 * max(1.0, abs(value))
    start = np.ones(size) if which == "LA" else np.random.default_rng(0).standard_normal(size)
    values, vectors = eigsh(
        matrix, k=1, which=which, v0=start, tol=1e-2, ncv=8
    )  # the value's error is about the square
    residual = matrix @ vectors[:, 0] - values[0] * vectors[:, 0]
    return float(values[0]), float(np.linalg.norm(residual)) + 1e-12 * abs(float(values[0]))
