r"""The algorithm of the paper: rounds of two half steps.

A module is a pair of unit vectors u (rows) and v (columns). A round updates u, then v, each by a *half step* on

    F(u, v) = u'Xv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - P1(u) - P2(v),        on the unit spheres,

with a graph term M and a penalty P on each side (`signed` sides use u'M1u instead of |u|'M1|u|).

The half step for u, with z = Xv and w = |u| (Algorithms 1 and 2 of the paper; Eqs. 13-14 for L1, 19-21 for L0):

    c = |z| + su (M1 + shift I) w;    threshold c;    normalise;    take the signs of z, where sign(0) = +1.

With edges that inhibit (negative weights) signs matter, and a side is always signed. Its graph part is
(su/2) (u'B1u + |u|'B2|u|), where B1 contains the edges with their signs and B2 those without, and what the degrees lead
to expect (`GraphTerm`). Then, with u0 the old vector and shifts s1 and s2,

    c = z + su (B1 + s1 I) u0;    h = su (B2 + s2 I) |u0|;    threshold max(|c| + h, 0);    take the signs of c:

if B1 + s1 I and B2 + s2 I are positive semidefinite, F is at least c'u + h'|u| - P(u) + const, with equality at u0.

Entries with a negative c (a graph term may count against a node) are set to 0: with w >= 0 that is the maximiser.

F cannot decrease if N = M1 + shift I is positive semidefinite: on the sphere shift |w|^2 is constant, and by convexity
w'Nw >= 2 w0'Nw - w0'Nw0, with equality at the old point w0. So F is at least
|z|'w + su w0'Nw - P(w) + const = c'w - P(w) + const, again with equality at w0. The thresholds with `has_objective`
maximise c'w - P(w) over the sphere, hence the new F is at least the old one. For that it is enough that c'w - P(w) is
not smaller than at w0, which penalties of overlapping groups ensure (`Penalty.update`).

The three solvers differ only in the shift: "aisp" uses 0 (as the paper; on Laplacian terms the largest diagonal entry,
without which c becomes negative and the iteration does not converge), "monotone" the full bound, and "auto" tries 0
first and, if F would decrease, larger shifts up to the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

import numpy as np

from netbic.arrays import Floats, Indices, scatter
from netbic.graph_terms import GraphTerm
from netbic.operators.base import Operator
from netbic.penalties import Penalty

SolverName = Literal["aisp", "monotone", "auto"]

_SHIFTS = (0.0, 0.125, 0.25, 0.5, 1.0)  # tried by "auto", in units of the bound
_ROUNDING = 8 * float(np.finfo(np.float64).eps)


def rounds(
    operator: Operator,
    rows: Side,
    columns: Side,
    u: Vector,
    v: Vector,
    solver: SolverName = "auto",
    *,
    feasible: bool = False,
) -> Iterator[State]:
    """Alternate half steps without end (or until a vector is empty), rows first: Algorithms 1 and 2, lines 2-16.

    Each half step uses the previous vector of its axis as a whole (Jacobi iteration). From a `feasible` start (u, v),
    which satisfies the penalties, F does not decrease in the first round either.
    """
    u, v = rows.smooth(u), columns.smooth(v)
    while True:
        row_scores = operator.matvec(v.support, v.values)  # line 3: z = Xv
        u = half_step(rows, row_scores, u, solver, feasible)
        if u.is_empty:
            yield State(u, v, 0.0, 0.0)
            return
        z = operator.rmatvec(u.support, u.values)  # z = X'u
        v = half_step(columns, z, v, solver, feasible)
        d = float(z[v.support] @ v.values)
        yield State(u, v, d, d + rows.gain(u) + columns.gain(v), row_scores, z)
        if v.is_empty:
            return
        feasible = True


def half_step(side: Side, z: Floats, old: Vector, solver: SolverName, feasible: bool) -> Vector:
    """Update one vector; under "auto" and "monotone" F does not decrease from a feasible `old` (beyond rounding).

    z is the product of X with the vector of the other axis.
    """
    guarded = solver != "aisp" and feasible and side.has_graph  # without a graph the step is the exact maximiser
    level = side.objective(z, old) if guarded else -np.inf
    for shift in side.shifts(solver):
        new = side.smooth(candidate(side, z, old, shift))
        # On the same support rounding errors are tolerated, or the vector could not converge fully; on another one F
        # must increase strictly, or the iteration could alternate between two supports of equal F.
        if not guarded or side.objective(z, new) > level - _ROUNDING * abs(level) * new.has_support_of(old):
            return new
    return old


def candidate(side: Side, z: Floats, old: Vector, shift: float) -> Vector:
    """Score, threshold, normalise, take signs: Algorithm 2, lines 4-9 (Algorithm 1, lines 4-8, with an L1 penalty)."""
    scores = scored(side, z, old, shift)
    return threshold(side, scores, z if side.is_folded else scores, old)


def scored(side: Side, z: Floats, old: Vector, shift: float = 0.0) -> Floats:
    """The scores c of a half step, before the threshold; max(|c| + h, 0) with the signs of c if edges have signs."""
    scores = np.abs(z) if side.is_folded else z.copy()
    if old.smoothed is None or side.term is None:
        return scores
    if not side.is_split:
        scores += side.sigma * old.smoothed  # Eqs. 13 and 19, without the divisor, as in the algorithms
        if shift:
            scores[old.support] += side.sigma * shift * side.weights(old.values)
        if side.is_folded and side.term.correction is not None:
            np.maximum(scores, 0.0, out=scores)  # never |c|: these nodes have fewer neighbours than expected
        return scores
    of_signed, of_magnitudes = side.parts(old.smoothed)
    scores += side.sigma * of_signed
    h = side.sigma * of_magnitudes
    if shift:
        first, second = side.term.signed_shifts(side.trust)
        part = side.sigma * shift / (first + second)
        scores[old.support] += part * first * old.values
        h[old.support] += part * second * np.abs(old.values)
    if side.penalty.nonnegative:
        return scores + h
    return np.copysign(np.maximum(np.abs(scores) + h, 0.0), scores + 0.0)


def threshold(side: Side, scores: Floats, signs: Floats, old: Vector | None = None) -> Vector:
    """Threshold and normalise the scores, and take signs (all +1 on a non-negative side).

    If the support is that of the `old` vector, it is the same array: what is made for a support is not made again.
    """
    known = (None, None) if old is None else (old.support, old.groups)
    (support, values), chosen = side.penalty.update(side.magnitudes(scores), *known)  # Eq. 13 for L1, Eq. 20 for L0
    if not support.size:
        return Vector(scores.size, support, values)
    values = values / sqrt(values @ values)
    if not side.penalty.nonnegative:
        values = np.copysign(values, signs.take(support) + 0.0)  # Eqs. 14 and 21; + 0.0 turns -0.0 into 0.0
    if old is not None and same_support(support, old.support):
        support = old.support
    return Vector(scores.size, support, values, groups=chosen)


def step_without_graph(side: Side, z: Floats) -> Vector:
    """The half step without the graph: the exact maximiser of z'u - P(u)."""
    return threshold(side, z if side.penalty.nonnegative else np.abs(z), z)


@dataclass(frozen=True)
class Side:
    """One axis of a half step: penalty, graph term, its weight sigma, and the treatment of signs.

    A side whose graph has edges that inhibit is always `signed`. `trust`, from 0 to 1, says how much the signs of these
    edges count (`GraphTerm`): by how well they agree with a module that was found without them, if there is one, else
    one half: edges that agree are rewarded, others are not.

    `share` is a weight in units of the module's own d, from which sigma is computed when d is known.
    """

    penalty: Penalty
    term: GraphTerm | None = None
    sigma: float = 0.0
    signed: bool = False
    share: float = 0.0
    trust: float = 0.5

    def __post_init__(self) -> None:
        if self.term is not None and self.term.is_signed:
            object.__setattr__(self, "signed", True)  # the dataclass is frozen

    @property
    def has_graph(self) -> bool:
        """Whether the graph term has a positive weight."""
        return self.term is not None and self.sigma > 0

    @property
    def is_folded(self) -> bool:
        """Whether scores are magnitudes, to which the signs of z are added in the end."""
        return not (self.signed or self.penalty.nonnegative)

    @property
    def is_split(self) -> bool:
        """Whether edges have signs: the graph part has then two parts, of u and of its magnitudes."""
        return self.term is not None and self.term.is_signed

    @property
    def shift_bound(self) -> float:
        """The shift from which on F cannot decrease."""
        if self.term is None:
            return 0.0
        return sum(self.term.signed_shifts(self.trust)) if self.is_split else self.term.shift_bound

    @property
    def amplification(self) -> float:
        """Upper bound sigma lambda_max(M) of what the graph adds to the norm of the scores of a set of entries."""
        return 0.0 if self.term is None or not self.sigma else self.sigma * self.term.largest_eigenvalue

    def magnitudes(self, scores: Floats) -> Floats:
        """How large the scores are for the threshold; negative ones are not kept, except on a signed side."""
        return np.abs(scores) if self.signed and not self.penalty.nonnegative else scores

    def weights(self, values: Floats) -> Floats:
        """The w of the graph term: `|u|`, or u itself on a signed side."""
        return values if self.signed else np.abs(values)

    def smooth(self, vector: Vector) -> Vector:
        """Attach the product Mw, which the next half step and F both need."""
        if self.term is None or self.sigma == 0 or vector.smoothed is not None:
            return vector
        if self.is_split:
            return vector.with_smoothed(self.term.signed_products(vector.support, vector.values))
        return vector.with_smoothed(self.term.product(vector.support, self.weights(vector.values)))

    def graph_gain(self, vector: Vector) -> float:
        """The graph part of F: (sigma / 2) w'Mw."""
        if vector.smoothed is None:
            return 0.0
        if self.is_split:
            first, second = self.parts(vector.smoothed[:, vector.support])
            return 0.5 * self.sigma * float(vector.values @ first + np.abs(vector.values) @ second)
        return 0.5 * self.sigma * float(self.weights(vector.values) @ vector.smoothed[vector.support])

    def parts(self, products: Floats) -> tuple[Floats, Floats]:
        """The products B1u and B2|u| of the two parts, from those of the graph term."""
        signed, unsigned, expected = products
        return self.trust * signed, (1 - self.trust) * unsigned - self.trust * expected

    def trusting(self, vector: Vector) -> Side:
        """The side on which the signs of edges count by how well they agree with those of a vector.

        An edge inside a module supports its features even if its sign does not, so signs count much only if nearly all
        agree: by the third power (with the second, wrong signs of a fifth of the edges cost more than signs gain).
        """
        if self.term is None or not self.is_split:
            return self
        return replace(self, trust=self.term.sign_agreement(vector.support, vector.values) ** 3)

    def gain(self, vector: Vector) -> float:
        """The part of F that depends on this side only: graph part minus penalty."""
        return self.graph_gain(vector) - self.penalty.value(np.abs(vector.values))

    def objective(self, z: Floats, vector: Vector) -> float:
        """F as a function of this vector, up to the part of the other side."""
        return float(z[vector.support] @ vector.values) + self.gain(vector)

    def shifts(self, solver: SolverName) -> Iterator[float]:
        """Shifts to try, in order. The bound is computed only if needed: it may cost an eigenvalue."""
        if self.term is None or self.sigma == 0:
            yield 0.0
        elif solver == "aisp":
            yield self.term.largest_diagonal
        elif solver == "monotone":
            yield self.shift_bound
        else:
            yield from (share and share * self.shift_bound for share in _SHIFTS)


def same_support(one: Indices, other: Indices) -> bool:
    """Whether two supports have the same entries."""
    return one is other or (one.size == other.size and bool((one == other).all()))


@dataclass(frozen=True, slots=True)
class Vector:
    """A unit vector by its non-zero entries.

    `smoothed` is the product Mw of the graph term with its weights, if there is a graph (several products, a row each,
    if edges have signs); `groups` are the groups of entries that a penalty of groups has chosen.
    """

    size: int
    support: Indices
    values: Floats
    smoothed: Floats | None = None
    groups: Indices | None = None

    @classmethod
    def of(cls, full: Floats) -> Vector:
        """Normalise a full array that is not zero."""
        support = np.flatnonzero(full)
        return cls(full.size, support, full[support] / np.linalg.norm(full[support]))

    def full(self) -> Floats:
        """All entries, including zeros."""
        return scatter(self.support, self.values, self.size)

    def with_smoothed(self, smoothed: Floats | None) -> Vector:
        """The same vector with another product Mw."""
        return Vector(self.size, self.support, self.values, smoothed, self.groups)

    def has_support_of(self, other: Vector) -> bool:
        """Whether both vectors have the same support."""
        return same_support(self.support, other.support)

    def distance(self, other: Vector) -> float:
        """Euclidean distance."""
        change = self.values - other.values if self.has_support_of(other) else self.full() - other.full()
        return sqrt(change @ change)

    def __neg__(self) -> Vector:
        return replace(self, values=-self.values, smoothed=None)

    @property
    def is_empty(self) -> bool:
        """Whether the threshold has kept no entry."""
        return self.support.size == 0


@dataclass(frozen=True, slots=True)
class State:
    """Both vectors after a round, d = u'Xv, the objective F, and the products Xv and X'u from which they were made."""

    u: Vector
    v: Vector
    d: float
    objective: float
    row_scores: Floats | None = None
    column_scores: Floats | None = None

    @property
    def is_empty(self) -> bool:
        """Whether a threshold has kept no entry of one of the vectors."""
        return self.u.is_empty or self.v.is_empty
