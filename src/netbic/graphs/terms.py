"""Graph terms: the matrix M of the model, its products and bounds of its eigenvalues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Final, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from netbic.arrays import Floats, Indices

_USUAL_SCALES = (2.0**-20, 2.0**40)  # range of the largest weight in which no rescaling is needed
_SAFE_SUMS = 2.0**896  # largest weight for which sums cannot overflow
_EXACT_SIZE = 64  # below this LAPACK is faster than Lanczos and needs no special cases
_FULL_SHARE = 1 / 3  # above this share of kept nodes the full product is faster


def near_one(weights: sp.csr_array) -> sp.csr_array:
    """The weights, multiplied by a power of two (without rounding) if the largest is far from 1."""
    largest = float(weights.data.max(initial=0.0))
    if not largest or _USUAL_SCALES[0] <= largest <= _USUAL_SCALES[1]:
        return weights
    return _times_power_of_two(weights, -int(np.frexp(largest)[1]))


def with_finite_sums(weights: sp.csr_array) -> sp.csr_array:
    """The weights, divided by a power of two if their sums would overflow."""
    return _times_power_of_two(weights, -128) if weights.data.max(initial=0.0) > _SAFE_SUMS else weights


def _times_power_of_two(weights: sp.csr_array, exponent: int) -> sp.csr_array:
    data = np.ldexp(weights.data, exponent)
    return sp.csr_array((data, weights.indices, weights.indptr), shape=weights.shape)


class GraphTerm(ABC):
    """The symmetric matrix M = S A S + E whose quadratic form (sigma / 2) w'Mw the objective rewards.

    A holds the edge weights, S and E are diagonal. Subclasses define S and E, and bounds of the spectrum of M.

    Attributes
    ----------
    is_empty : bool
        Whether the graph has no edges at all.
    largest_diagonal : float
        Largest absolute diagonal entry: the shift that keeps the scores of AISP non-negative on Laplacian terms.
    """

    factors: Floats | None = None  # the diagonal of S; None: the identity
    diagonal: Floats | None = None  # the diagonal of E; None: zero

    def __init__(self, weights: sp.csr_array) -> None:
        self._weights = weights
        self._columns = weights.indices.astype(np.intp)
        self._unweighted = bool((weights.data == 1).all())
        self.is_empty = weights.nnz == 0
        with np.errstate(over="ignore"):  # infinite sums are checked by the caller
            self.strengths = np.asarray(weights.sum(axis=1), dtype=np.float64).ravel()
        self._describe()
        self.largest_diagonal = 0.0 if self.diagonal is None else float(np.abs(self.diagonal).max(initial=0.0))

    def _describe(self) -> None:
        """Set `factors` and `diagonal`; by default M = A."""
        self.factors = self.diagonal = None

    @cached_property
    def matrix(self) -> sp.csr_array:
        """M itself."""
        matrix = self._weights
        if self.factors is not None:
            scaling = sp.diags_array(self.factors)
            matrix = sp.csr_array(scaling @ matrix @ scaling)
        return matrix if self.diagonal is None else sp.csr_array(matrix + sp.diags_array(self.diagonal))

    @property
    def scale(self) -> float:
        """Divisor of a relative smoothness, which makes it comparable between graphs and graph terms."""
        return 1.0

    @property
    @abstractmethod
    def shift_bound(self) -> float:
        """Upper bound of -lambda_min(M): M plus this times I is positive semidefinite."""

    def product(self, support: Indices, values: Floats) -> Floats:
        """M w for a vector w that is zero outside `support`; reads only these rows of A."""
        scaled = values if self.factors is None else values * self.factors[support]
        if support.size > _FULL_SHARE * self._weights.shape[0]:
            full = np.zeros(self._weights.shape[0])
            full[support] = scaled
            product = np.asarray(self._weights @ full)
        else:
            product = self._neighbour_sums(support, scaled)
        if self.factors is not None:
            product *= self.factors
        if self.diagonal is not None:
            product[support] += self.diagonal[support] * values
        return product

    def _neighbour_sums(self, support: Indices, values: Floats) -> Floats:
        """A w: the entries of the supported rows, concatenated and summed by column."""
        first = self._weights.indptr[support]
        lengths = self._weights.indptr[support + 1] - first
        ends = np.cumsum(lengths)
        entries = np.repeat(first - ends + lengths, lengths)
        entries += np.arange(entries.size, dtype=entries.dtype)
        terms = np.repeat(values, lengths)
        if not self._unweighted:
            terms *= self._weights.data[entries]
        sums = np.bincount(self._columns[entries], terms, minlength=self._weights.shape[0])
        return sums.astype(np.float64, copy=False)


class _Adjacency(GraphTerm):
    """M = A: every edge between two chosen nodes is rewarded (what the published algorithm does)."""

    @cached_property
    def scale(self) -> float:
        return 1.0 if self.is_empty else extreme_eigenvalue(self.matrix, "LA")[0]

    @cached_property
    def shift_bound(self) -> float:
        value, error = extreme_eigenvalue(self.matrix, "SA")
        return min(error - value, float(self.strengths.max(initial=0.0)))


class _Laplacian(GraphTerm):
    """M = -L = A - D: differences across edges are penalised (the model as the paper writes it, its Eq. 5)."""

    def _describe(self) -> None:
        self.diagonal = -self.strengths

    @cached_property
    def scale(self) -> float:
        connected = self.strengths > 0
        return float(self.strengths[connected].mean()) if connected.any() else 1.0

    @cached_property
    def shift_bound(self) -> float:
        value, error = extreme_eigenvalue(self.matrix, "SA")
        return min(error - value, 2 * float(self.strengths.max(initial=0.0)))


class _Normalized(GraphTerm):
    """M = D^-1/2 A D^-1/2: edges rewarded, those of hubs less."""

    shift_bound = 1.0  # the spectrum lies in [-1, 1]

    def _describe(self) -> None:
        self.factors = 1 / np.sqrt(np.where(self.strengths > 0, self.strengths, np.inf))


class _NormalizedLaplacian(_Normalized):
    """M = D^-1/2 A D^-1/2 - I (zero rows for isolated nodes)."""

    shift_bound = 2.0  # the normalised Laplacian's spectrum lies in [0, 2]

    def _describe(self) -> None:
        super()._describe()
        self.diagonal = -(self.strengths > 0).astype(np.float64)


TERM_CLASSES: Final[dict[str, type[GraphTerm]]] = {
    "adjacency": _Adjacency,
    "laplacian": _Laplacian,
    "normalized": _Normalized,
    "normalized_laplacian": _NormalizedLaplacian,
}
TERMS: Final = tuple(TERM_CLASSES)


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
    # The tolerance is for the vector; the error of the value is about its square.
    values, vectors = eigsh(matrix, k=1, which=which, v0=start, tol=1e-2, ncv=8)
    residual = matrix @ vectors[:, 0] - values[0] * vectors[:, 0]
    return float(values[0]), float(np.linalg.norm(residual)) + 1e-12 * abs(float(values[0]))
