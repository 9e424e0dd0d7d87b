"""Graph terms: the matrix M of the model, its products and bounds of its eigenvalues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import ClassVar, Final, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from netbic.arrays import Floats, Indices, scatter

_USUAL_SCALES = (2.0**-20, 2.0**40)  # range of the largest weight in which no rescaling is needed
_SAFE_SUMS = 2.0**896  # largest weight for which sums cannot overflow
_EXACT_SIZE = 64  # below this LAPACK is faster than Lanczos and needs no special cases
_LANCZOS_RESTARTS = 60  # of 10 products each; real networks need 1 to 3
_FULL_SHARE = 1 / 3  # above this share of kept nodes the full product is faster
_PRIOR_EDGES = 4  # edges of unknown agreement that are added to those inside a module
_LEAST_STRUCTURE = 0.3  # smallest scale of the modularity: real networks have 0.47 to 0.71, rewired ones 0.14 to 0.18


def rescale(weights: sp.csr_array, only_overflow: bool) -> sp.csr_array:
    """The weights, times a power of two (without rounding) if the largest is far from 1, or only if sums overflow."""
    largest = float(np.abs(weights.data).max(initial=0.0))
    if only_overflow:
        exponent = -128 if largest > _SAFE_SUMS else 0
    else:
        usual = not largest or _USUAL_SCALES[0] <= largest <= _USUAL_SCALES[1]
        exponent = 0 if usual else -int(np.frexp(largest)[1])
    if not exponent:
        return weights
    return sp.csr_array((np.ldexp(weights.data, exponent), weights.indices, weights.indptr), shape=weights.shape)


class GraphTerm(ABC):
    """The symmetric matrix M = S A S + E - rr' whose quadratic form (sigma / 2) w'Mw the objective rewards.

    A holds the edge weights, S and E are diagonal, r is a vector. Subclasses define S, E and r, and bounds of the
    spectrum of M.

    Edges that inhibit have negative weights. Degrees are then sums of magnitudes, and B = SAS + E is the part with
    signs. How much the signs count is a number t from 0 to 1: the quadratic form of a vector w, with its signs, is

        t w'Bw + (1 - t) |w|'(S|A|S + E)|w| - (r'|w|)^2,

    so that an edge counts 1 if its sign agrees with the signs of w, and 1 - 2t otherwise; what is expected by the
    degrees does not depend on signs. The form is at most that of |w| without the signs of the edges, so that the scale
    and the upper bound of the spectrum are those of the graph without signs. Nothing changes if the signs of an entry
    of w and of all edges of this node are flipped.

    `largest_diagonal` is the largest absolute diagonal entry: the shift that keeps the scores of AISP non-negative on
    Laplacian terms.
    """

    factors: Floats | None = None  # the diagonal of S; None: the identity
    diagonal: Floats | None = None  # the diagonal of E; None: zero
    correction: Floats | None = None  # r; None: zero
    ignores_weight_scale: ClassVar[bool] = False  # whether M stays the same if all weights are multiplied by a number
    is_signed: bool = False  # whether some edges inhibit

    def __init__(self, weights: sp.csr_array) -> None:
        self._weights = weights
        self._columns = weights.indices.astype(np.intp)
        self._unweighted = bool((weights.data == 1).all())
        nothing = np.empty(0, dtype=np.intp)
        # The last support, and the neighbours of its nodes with their weights: a tuple, as threads share the term.
        self._last: tuple[Indices, Indices, Floats | None, Indices] = (nothing, nothing, None, nothing)
        self.is_empty = weights.nnz == 0
        self.is_signed = bool((weights.data < 0).any())
        with np.errstate(over="ignore"):  # infinite sums are checked by the caller
            magnitudes = abs(weights) if self.is_signed else weights
            self.strengths = np.asarray(magnitudes.sum(axis=1), dtype=np.float64).ravel()
        self._describe()
        self.largest_diagonal = 0.0 if self.diagonal is None else float(np.abs(self.diagonal).max(initial=0.0))

    def _describe(self) -> None:  # noqa: B027
        """Set `factors`, `diagonal` and `correction`; by default M = A."""

    @cached_property
    def unsigned(self) -> GraphTerm:
        """The term of the same graph without the signs of its edges."""
        return type(self)(abs(self._weights)) if self.is_signed else self

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The sparse part S A S + E of M, which is M itself if there is no rank-one correction."""
        matrix = self._weights
        if self.factors is not None:
            scaling = sp.diags_array(self.factors)
            matrix = sp.csr_array(scaling @ matrix @ scaling)
        return matrix if self.diagonal is None else sp.csr_array(matrix + sp.diags_array(self.diagonal))

    def toarray(self) -> Floats:
        """M as a dense array, for small graphs; if edges have signs, that of vectors without negative entries."""
        dense: Floats = self.matrix.toarray()
        return dense if self.correction is None else dense - np.outer(self.correction, self.correction)

    @property
    def scale(self) -> float:
        """Divisor of a relative smoothness, which makes it comparable between graphs and graph terms."""
        return 1.0

    @property
    @abstractmethod
    def shift_bound(self) -> float:
        """Upper bound of -lambda_min(M): M plus this times I is positive semidefinite.

        If edges have signs, this is the bound of B alone (see `signed_shifts`).
        """

    def signed_shifts(self, trust: float) -> tuple[float, float]:
        """If edges have signs that count with `trust`: upper bounds of -lambda_min of both parts of the quadratic form.

        The parts are that of w and that of its magnitudes, (1 - t) M' - t rr' with M' the term without signs.
        """
        of_degrees = 0.0 if self.correction is None else float(self.correction @ self.correction)
        return trust * self.shift_bound, (1 - trust) * self.unsigned.shift_bound + trust * of_degrees

    @property
    @abstractmethod
    def largest_eigenvalue(self) -> float:
        """Upper bound of lambda_max(M), at least 0: how much the graph can amplify a set of nodes."""

    def product(self, support: Indices, values: Floats) -> Floats:
        """M w for a vector w that is zero outside `support`; reads only these rows of A.

        If edges have signs, Bw: the correction depends on magnitudes (see `signed_products`).
        """
        scaled, size = values if self.factors is None else values * self.factors[support], self._weights.shape[0]
        if support.size > _FULL_SHARE * size:
            product = np.asarray(self._weights @ scatter(support, scaled, size))
        else:  # the entries of the supported rows, concatenated and summed by column
            last, neighbours, weights, lengths = self._last
            if last is not support:
                # In every round: slicing the sparse array takes several times as long.
                first = self._weights.indptr[support]
                lengths = self._weights.indptr[support + 1] - first
                entries = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
                entries += np.arange(entries.size, dtype=entries.dtype)
                neighbours = self._columns[entries]
                weights = None if self._unweighted else self._weights.data[entries]
                self._last = support, neighbours, weights, lengths
            terms = np.repeat(scaled, lengths)
            if weights is not None:
                terms *= weights
            product = np.bincount(neighbours, terms, minlength=size).astype(np.float64, copy=False)
        if self.factors is not None:
            product *= self.factors
        if self.diagonal is not None:
            product[support] += self.diagonal[support] * values
        if self.correction is not None and not self.is_signed:
            product -= float(self.correction[support] @ values) * self.correction
        return product

    def signed_products(self, support: Indices, values: Floats) -> Floats:
        """If edges have signs: Bw, M'|w| and rr'|w| as rows, with M' the term without signs.

        The quadratic form is that of t Bw, and of (1 - t) M'|w| - t rr'|w| for the magnitudes.
        """
        magnitudes = np.abs(values)
        expected = np.zeros(self._weights.shape[0])
        if self.correction is not None:
            expected = float(self.correction[support] @ magnitudes) * self.correction
        return np.stack([self.product(support, values), self.unsigned.product(support, magnitudes), expected])

    def sign_agreement(self, support: Indices, values: Floats) -> float:
        """How well the signs of edges agree with those of a vector w: 1 if all do, 0 if not more than by chance.

        It is w'SASw / |w|'S|A|S|w|, at least 0, and reduced if there are few edges inside the (increasing) support: as
        if there were four more edges, two of each kind.
        """
        part = self._weights[support][:, support]
        scaled = values if self.factors is None else values * self.factors[support]
        rewards = part.data * np.repeat(scaled, np.diff(part.indptr)) * scaled[part.indices]
        total = float(np.abs(rewards).sum())
        if not total:
            return 0.0
        n_edges = total**2 / float(rewards @ rewards) / 2  # each edge is stored twice
        return max(float(rewards.sum()) / total, 0.0) * n_edges / (n_edges + _PRIOR_EDGES)

    def restricted(self, nodes: Indices) -> GraphTerm:
        """The part of M in some (increasing) nodes, with the bounds of the whole M."""
        return _Restricted(self, nodes)


class _Restricted(GraphTerm):
    """Some rows and columns of another term. The eigenvalues of a principal submatrix lie between those of M."""

    def __init__(self, whole: GraphTerm, nodes: Indices) -> None:
        self._whole, self._nodes = whole, nodes
        self.is_empty, self.largest_diagonal, self.is_signed = whole.is_empty, whole.largest_diagonal, whole.is_signed
        self.factors, self.diagonal, self.correction = (
            None if part is None else part[nodes] for part in (whole.factors, whole.diagonal, whole.correction)
        )
        self._weights = whole._weights[nodes][:, nodes]

    def product(self, support: Indices, values: Floats) -> Floats:
        """M w for a vector w that is zero outside `support`."""
        full = scatter(support, values, self._weights.shape[0])
        product: Floats = self._weights @ (full if self.factors is None else full * self.factors)
        if self.factors is not None:
            product *= self.factors
        if self.diagonal is not None:
            product += self.diagonal * full
        if self.correction is not None and not self.is_signed:
            product -= float(self.correction @ full) * self.correction
        return product

    @property
    def scale(self) -> float:
        return self._whole.scale

    @property
    def shift_bound(self) -> float:
        return self._whole.shift_bound

    def signed_shifts(self, trust: float) -> tuple[float, float]:
        """Those of the whole M."""
        return self._whole.signed_shifts(trust)

    @cached_property
    def unsigned(self) -> GraphTerm:
        return self._whole.unsigned.restricted(self._nodes) if self.is_signed else self

    @property
    def largest_eigenvalue(self) -> float:
        return self._whole.largest_eigenvalue


class _Adjacency(GraphTerm):
    """M = A: every edge between two chosen nodes is rewarded (what the published algorithm does)."""

    @cached_property
    def scale(self) -> float:
        return 1.0 if self.is_empty else extreme_eigenvalue(self.unsigned.matrix, "LA")[0]

    @cached_property
    def largest_eigenvalue(self) -> float:
        return 0.0 if self.is_empty else sum(extreme_eigenvalue(self.unsigned.matrix, "LA"))

    @cached_property
    def shift_bound(self) -> float:
        value, error = extreme_eigenvalue(self.matrix, "SA")
        return min(error - value, float(self.strengths.max(initial=0.0)))


class _Laplacian(GraphTerm):
    """M = -L = A - D: differences across edges are penalised (the model as the paper writes it, its Eq. 5).

    Across an edge that inhibits, sums are: w'Lw adds up |a| (w_i - sign(a) w_j)^2, so that L is positive semidefinite.
    """

    largest_eigenvalue = 0.0  # L is positive semidefinite

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
    """M = D^-1/2 A D^-1/2: edges rewarded, those of hubs less.

    With y = D^-1/2 w, 2 |a y_i y_j| <= |a| (y_i^2 + y_j^2) adds up to |w'Mw| <= |w|^2, whatever the signs of the edges.
    """

    shift_bound = 1.0  # the spectrum lies in [-1, 1]
    largest_eigenvalue = 1.0
    ignores_weight_scale = True

    def _describe(self) -> None:
        self.factors = 1 / np.sqrt(np.where(self.strengths > 0, self.strengths, np.inf))


class _NormalizedLaplacian(_Normalized):
    """M = D^-1/2 A D^-1/2 - I (zero rows for isolated nodes)."""

    shift_bound = 2.0  # the normalised Laplacian's spectrum lies in [0, 2]
    largest_eigenvalue = 0.0

    def _describe(self) -> None:
        super()._describe()
        self.diagonal = -(self.strengths > 0).astype(np.float64)


class _Modularity(GraphTerm):
    """M = D_t^-1/2 (A - dd'/2m) D_t^-1/2: more neighbours than the degrees lead to expect are rewarded.

    d are the degrees (sums of weights), 2m is their sum, and D_t = D + tau I with tau the mean degree of connected
    nodes, so that nodes with few neighbours weigh less. With P = diag sqrt(d / (d + tau)), the normalised adjacency
    matrix N and q = sqrt(d / 2m), M = P (N - qq') P. As Nq = q and |q| = 1, the eigenvalues of N - qq' lie in [-1, 1];
    as P < I, so do those of M, and none exceeds the largest entry of P^2.

    If edges have signs, B = PNP with N of signed weights, whose eigenvalues lie in [-1, 1] as well.
    """

    ignores_weight_scale = True

    def _describe(self) -> None:
        connected = self.strengths > 0
        tau = float(self.strengths[connected].mean()) if connected.any() else 1.0
        self.factors = 1 / np.sqrt(self.strengths + tau)
        total = float(self.strengths.sum())
        self.correction = self.factors * self.strengths / np.sqrt(total if total > 0 else 1.0)
        self._largest_share = float(np.max(self.strengths / (self.strengths + tau), initial=0.0))  # of P^2

    @cached_property
    def shift_bound(self) -> float:
        return self._largest_share if self.is_signed else 1.0

    @cached_property
    def scale(self) -> float:
        return max(self._leading[0], _LEAST_STRUCTURE)

    @cached_property
    def largest_eigenvalue(self) -> float:
        return min(max(sum(self._leading), 0.0), self._largest_share)

    @cached_property
    def _leading(self) -> tuple[float, float]:
        """The largest eigenvalue (without the signs of edges), and a bound on its error."""
        term = self.unsigned
        size, every = len(self.strengths), np.arange(len(self.strengths))
        if self.is_empty:
            return 0.0, 0.0
        if size <= _EXACT_SIZE:
            return float(np.linalg.eigvalsh(term.toarray())[-1]), 1e-12
        products = LinearOperator((size, size), matvec=lambda w: term.product(every, np.ravel(w)), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        try:  # accurate enough not to depend on the order of the nodes, in which the start is random
            values, vectors = eigsh(products, k=1, which="LA", v0=start, tol=1e-6, maxiter=_LANCZOS_RESTARTS)
        except ArpackNoConvergence:  # the largest eigenvalues are nearly equal, as those of long paths and grids
            values, vectors = eigsh(products, k=1, which="LA", v0=start, tol=1e-3)
        residual = products @ vectors[:, 0] - values[0] * vectors[:, 0]
        return float(values[0]), float(np.linalg.norm(residual)) + 1e-12


TERM_CLASSES: Final[dict[str, type[GraphTerm]]] = {
    "modularity": _Modularity,
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
