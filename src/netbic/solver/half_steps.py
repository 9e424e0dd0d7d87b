r"""The algorithm of the paper, as an iterator of rounds.

One module is a pair of unit vectors u (rows), v (columns). A round updates u, then v, each by a *half step* on

    F(u, v) = u'Xv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - P1(u) - P2(v),        on the unit spheres,

with a graph term M and a penalty P on each side (`signed` sides use u'M1u instead of |u|'M1|u|).

The half step for u, with z = Xv and w = |u| (Algorithms 1 and 2 of the paper; its Eqs. 13-14 for L1 and 19-21 for L0):

    c = |z| + su (M1 + shift I) w;    threshold c;    normalise;    give it the signs of z, where sign(0) = +1.

Why F cannot fall when N = M1 + shift I is positive semidefinite: on the sphere shift |w|^2 is a constant, and by
convexity w'Nw >= 2 w0'Nw - w0'Nw0, with equality at the old point w0. So F - const is at least
|z|'w + su w0'Nw - P(w) - const' = c'w - P(w) - const', again with equality at w0. The thresholds with `has_objective`
maximise c'w - P(w) over the sphere, hence the new F is at least the old one.

The three solvers differ only in the shift: "aisp" takes 0 (the paper; the largest diagonal entry on Laplacian terms,
without which c turns negative and nothing settles), "monotone" the full bound, and "auto" 0 first and, if F would
fall, doubled shifts up to the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from netbic.graphs import GraphTerm
from netbic.operators import Operator
from netbic.penalties import Choice, Penalty, reach_of_noise

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
SolverName = Literal["aisp", "monotone", "auto"]

_SHIFTS = (0.0, 0.125, 0.25, 0.5, 1.0)  # what "auto" tries, in units of the bound
_ROUNDING = 8 * float(np.finfo(np.float64).eps)
_ORTHOGONAL = 1e-12  # share of |z| up to which its product with a unit vector is rounding error


@dataclass(frozen=True, slots=True)
class Vector:
    """A unit vector by its non-zero entries.

    `smoothed` is the graph's product Mw with it, where there is a graph; `choice` is how its support was chosen, where
    a penalty did so.
    """

    size: int
    support: Indices
    values: Floats
    smoothed: Floats | None = None
    choice: Choice | None = None

    @classmethod
    def of(cls, full: Floats) -> Vector:
        """The direction of a full array (not zero)."""
        support = np.flatnonzero(full)
        return cls(full.size, support, full[support] / np.linalg.norm(full[support]))

    def full(self) -> Floats:
        """All entries, zeros included."""
        entries = np.zeros(self.size)
        entries[self.support] = self.values
        return entries

    def distance(self, other: Vector) -> float:
        """Euclidean distance."""
        if np.array_equal(self.support, other.support):
            return float(np.linalg.norm(self.values - other.values))
        return float(np.linalg.norm(self.full() - other.full()))

    def __neg__(self) -> Vector:
        return replace(self, values=-self.values, smoothed=None)

    @property
    def is_empty(self) -> bool:
        """Whether nothing survived the threshold."""
        return self.support.size == 0


@dataclass(frozen=True)
class Side:
    """All that a half step knows of its axis: penalty, graph term, its weight sigma, and how signs count.

    `squares`, the squared lengths of the axis' rows (columns) of X, are there for penalties that choose their size.
    """

    penalty: Penalty
    term: GraphTerm | None = None
    sigma: float = 0.0
    signed: bool = False
    squares: Floats | None = None

    @property
    def has_graph(self) -> bool:
        """Whether the graph has any say."""
        return self.term is not None and self.sigma > 0

    def weights(self, values: Floats) -> Floats:
        """The w of the graph term: `|u|`, or u itself on a signed side."""
        return values if self.signed else np.abs(values)

    def smooth(self, vector: Vector) -> Vector:
        """Attach the graph's product Mw, which the next half step and F both need."""
        if self.term is None or self.sigma == 0 or vector.smoothed is not None:
            return vector
        return replace(vector, smoothed=self.term.product(vector.support, self.weights(vector.values)))

    def graph_gain(self, vector: Vector) -> float:
        """The graph part of F: (sigma / 2) w'Mw."""
        if vector.smoothed is None:
            return 0.0
        sigma = self.sigma if vector.choice is None else vector.choice.sigma
        return 0.5 * sigma * float(self.weights(vector.values) @ vector.smoothed[vector.support])

    def gain(self, vector: Vector) -> float:
        """What this side alone adds to F: graph part minus penalty."""
        return self.graph_gain(vector) - self.penalty.value(np.abs(vector.values))

    def objective(self, z: Floats, vector: Vector) -> float:
        """F as a function of this side's vector alone, up to what the other side adds."""
        return float(z[vector.support] @ vector.values) + self.gain(vector)

    def shifts(self, solver: SolverName) -> Iterator[float]:
        """Shifts to try, in order. The bound is asked for only when it is needed: it may cost an eigenvalue."""
        if self.term is None or self.sigma == 0:
            yield 0.0
        elif solver == "aisp":
            yield self.term.largest_diagonal
        elif solver == "monotone":
            yield self.term.shift_bound
        else:
            yield from (share and share * self.term.shift_bound for share in _SHIFTS)


@dataclass(frozen=True, slots=True)
class State:
    """Where a round ended: both vectors, d = u'Xv and the objective F."""

    u: Vector
    v: Vector
    d: float
    objective: float

    @property
    def is_empty(self) -> bool:
        """Whether a threshold left nothing of one of the vectors."""
        return self.u.is_empty or self.v.is_empty


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
    """Alternate half steps for ever (or until a vector is empty), rows first, each on the previous iterate (Jacobi).

    Parameters
    ----------
    operator : Operator
        The matrix X.
    rows, columns : Side
    u, v : Vector
        The start. `feasible` says that it obeys the penalties, so that F must not fall from it either.
    solver : {"aisp", "monotone", "auto"}
    """
    u, v = rows.smooth(u), columns.smooth(v)
    while True:
        z = operator.matvec(v.support, v.values)
        u = half_step(rows, z, u, v, solver, feasible)
        if u.is_empty:
            yield State(u, v, 0.0, 0.0)
            return
        z = operator.rmatvec(u.support, u.values)
        v = half_step(columns, z, v, u, solver, feasible)
        d = float(z[v.support] @ v.values)
        yield State(u, v, d, d + rows.gain(u) + columns.gain(v))
        if v.is_empty:
            return
        feasible = True


def half_step(side: Side, z: Floats, old: Vector, other: Vector, solver: SolverName, feasible: bool) -> Vector:
    """Move one vector; under "auto" and "monotone" F does not fall from a feasible `old` (beyond rounding).

    `other` is the vector of the other axis, of which z is the product with X.
    """
    if side.penalty.chooses_size:
        return side.smooth(adaptive_step(side.penalty, z, old, other, side.squares))
    guarded = solver != "aisp" and feasible and side.has_graph  # without a graph the step is the exact maximiser
    level = side.objective(z, old) if guarded else -np.inf
    for shift in side.shifts(solver):
        new = side.smooth(candidate(side, z, old, shift))
        if not guarded or _rises(side.objective(z, new), level, np.array_equal(new.support, old.support)):
            return new if old.choice is None else replace(new, choice=old.choice)
    return old


def _rises(new: float, old: float, same_support: bool) -> bool:
    """Whether F rose.

    On one support the last digits are left to rounding, or the vector could not settle fully; to another support F must
    rise strictly, or two supports of equal F could take turns for ever.
    """
    return new > old - (_ROUNDING * abs(old) if same_support else 0.0)


def candidate(side: Side, z: Floats, old: Vector, shift: float) -> Vector:
    """Score, threshold, normalise, sign: Algorithm 2, lines 3-9 (Algorithm 1 with an L1 penalty)."""
    folded = not (side.signed or side.penalty.nonnegative)
    scores = np.abs(z) if folded else z.copy()
    if old.smoothed is not None:
        scores += side.sigma * old.smoothed
        if shift:
            scores[old.support] += side.sigma * shift * side.weights(old.values)
    return _thresholded(side, scores, z if folded else scores)


def adaptive_step(penalty: Penalty, z: Floats, old: Vector, other: Vector, squares: Floats | None = None) -> Vector:
    """Score with the sigma, and keep the members, that the penalty chooses.

    The other vector is the product of X with `old`, so that z_i holds old_i |X_i|^2 / d of entry i's own noise: about
    old_i g_i^2 k / d for k entries of the other vector. Left in, it would make any member look like one. Scores are
    compared in units of each entry's own noise; what does not vary at all is no candidate.
    """
    d = float(z[old.support] @ old.values)
    # What was estimated from scores far beyond any that X has must not come back as their noise, or both would explode.
    noise = penalty.noise_without(0.0) if other.choice is None else min(other.choice.noise, penalty.largest_noise)
    scales = noise_scales(z, squares, other.size)
    foreign = z.copy()
    if d > _ORTHOGONAL * float(np.linalg.norm(z)):
        foreign[old.support] -= (noise * scales[old.support]) ** 2 * (other.support.size / d) * old.values
    varying = scales > 0
    smoothed = None if old.smoothed is None else old.smoothed[varying]
    choice = penalty.choose(foreign[varying] / scales[varying], smoothed).among(varying)
    choice = replace(choice, unevenness=float(np.std(np.log(scales[varying]))) if varying.any() else 0.0)
    return _with_members(penalty, choice, z, old.smoothed, other)


def _with_members(penalty: Penalty, choice: Choice, z: Floats, smoothed: Floats | None, other: Vector) -> Vector:
    """The vector on the members chosen, scored with the sigma chosen."""
    plain = z if penalty.nonnegative else np.abs(z)
    scores = plain if smoothed is None else plain + choice.sigma * smoothed
    support = choice.support[scores[choice.support] > 0]
    values = scores[support]
    if support.size:
        values = values / np.sqrt(values @ values)
        reached = _strength(penalty, float(plain[support] @ values), support.size, z.size, other)
        choice = replace(choice, strength=reached)
    if not penalty.nonnegative:
        values = np.copysign(values, z[support] + 0.0)
    return Vector(z.size, support, values, choice=choice)


def noise_scales(z: Floats, squares: Floats | None, length: int) -> Floats:
    """Standard deviation of each entry's noise, in units of the typical one; 0 where nothing varies.

    What of the squared length of row i the module does not explain, z_i^2, is noise (or other modules'). Logarithms of
    such variances scatter by trigamma(length / 2) even where all are the same; they are drawn together by that share.
    """
    if squares is None:
        return np.ones_like(z)
    varies = squares > 1e-12 * squares.max(initial=0.0)
    if not varies.any():
        return np.zeros_like(z)
    logs = np.log(np.maximum(squares - z * z, 1e-6 * squares), where=varies, out=np.zeros_like(z))
    centre, spread = float(np.mean(logs[varies])), float(np.var(logs[varies]))
    by_chance = float(special.polygamma(1, max(length - 1, 1) / 2))
    kept = max(1 - by_chance / spread, 0.0) if spread > 0 else 0.0
    return np.where(varies, np.exp(0.5 * kept * (logs - centre)), 0.0)


def _strength(penalty: Penalty, d: float, kept: int, size: int, other: Vector) -> float:
    reached = penalty.noise_without(d) * (reach_of_noise(size, kept) + reach_of_noise(other.size, other.support.size))
    return d / reached if reached > 0 else np.inf


def plain_step(side: Side, z: Floats) -> Vector:
    """The half step as if there were no graph: the exact maximiser of z'u - P(u)."""
    folded = not side.penalty.nonnegative
    return _thresholded(side, np.abs(z) if folded else z, z)


def _thresholded(side: Side, scores: Floats, signs: Floats) -> Vector:
    """Threshold scores, normalise, and give what is left its signs (all +1 on a non-negative side)."""
    magnitudes = np.abs(scores) if side.signed and not side.penalty.nonnegative else scores
    kept = side.penalty.threshold(magnitudes)
    if not kept.support.size:
        return Vector(scores.size, kept.support, kept.values)
    values = kept.values / np.sqrt(kept.values @ kept.values)
    if not side.penalty.nonnegative:
        values = np.copysign(values, signs[kept.support] + 0.0)  # + 0.0: the sign of -0.0 is + as well
    return Vector(scores.size, kept.support, values)
