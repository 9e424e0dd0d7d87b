"""Penalties with a given size, a given weight or bound of the L1 norm, or a size chosen by BIC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from netbic.arrays import Bools, Floats, Indices
from netbic.penalties.base import Kept, Penalty

_SAMPLE = 500  # scores from which the k-th largest is estimated


class _OfScoresAlone(Penalty):
    """A penalty that depends neither on which entries the scores belong to nor on how many there are."""

    def restricted(self) -> Self:
        """The same penalty."""
        return self


@dataclass(frozen=True, repr=False)
class Dense(_OfScoresAlone):
    """No sparsity: keep every entry with a positive score."""

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep all positive scores unshrunk."""
        support = np.flatnonzero(magnitudes > 0)
        return Kept(support, magnitudes[support])


@dataclass(frozen=True, repr=False)
class L0(_OfScoresAlone):
    """Keep exactly the `k` largest entries (equation 20 of the paper); ties go to the lowest index.

    If fewer than `k` scores are positive, only those are kept, with a warning.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> netbic.L0(2).threshold(np.array([3.0, 1.0, 2.0, 2.0])).support
    array([0, 2])
    """

    k: int

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep the k largest positive scores unshrunk."""
        return self.update(magnitudes, None, None)[0]

    def update(self, magnitudes: Floats, support: Indices | None, groups: Indices | None) -> tuple[Kept, None]:
        """The same, faster if the entries of a given support are large."""
        kept = largest(magnitudes, self.k, support)
        return Kept(kept, magnitudes[kept]), None

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """k must be an integer from 1 to the size of the axis."""
        _check_count(self, self.k, size, axis, table)

    def size(self) -> int | None:
        """Return k."""
        return self.k


@dataclass(frozen=True, repr=False)
class L1(_OfScoresAlone):
    """Subtract `alpha` times the sum of absolute values (Algorithm 1's lambda): soft-thresholding at alpha.

    `alpha` is on the scale of X. If no score exceeds it, the module is empty and the search ends with a warning.
    """

    alpha: float

    def threshold(self, magnitudes: Floats) -> Kept:
        """Soft-threshold at alpha: the exact maximiser on the sphere whenever some score exceeds alpha."""
        return _soft(magnitudes, self.alpha)

    def value(self, magnitudes: Floats) -> float:
        """Alpha times the L1 norm."""
        return self.alpha * float(magnitudes.sum())

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """Alpha must be a finite number of at least 0."""
        _check_number(self, "alpha", self.alpha, 0.0)


@dataclass(frozen=True, repr=False)
class L1Ball(_OfScoresAlone):
    """Bound the L1 norm of the unit vector by `bound` (PMD's constraint, Witten et al. 2009), solved exactly.

    `bound` lies between 1 (a single entry) and the square root of the size of the axis (no constraint).

    Examples
    --------
    >>> import numpy as np, netbic
    >>> kept = netbic.L1Ball(1.2).threshold(np.array([3.0, 2.0, 1.0]))
    >>> unit = kept.values / np.linalg.norm(kept.values)
    >>> round(float(unit.sum()), 12)
    1.2
    """

    bound: float

    def threshold(self, magnitudes: Floats) -> Kept:
        """Soft-threshold at the level where the normalised result has L1 norm `bound`, found by sorting."""
        order = _descending(magnitudes)
        values = magnitudes[order]
        if values.sum() <= self.bound * np.linalg.norm(values):
            return _positive_part(order, values)
        # Computed from gaps to the largest score, which lose no digits if scores are nearly equal.
        gaps = (values[0] - values) / values[0]
        tied = order[gaps == 0]
        if tied.size >= self.bound**2:
            # Every unit vector on equal scores with L1 norm `bound` is a maximiser; the lowest indices are used.
            count = int(np.ceil(self.bound**2 - 1e-12))
            values = np.full(count, self.bound / count)
            if count > 1:
                values -= np.sqrt(max(1 - self.bound**2 / count, 0.0)) / np.sqrt(count * (count - 1))
                values[0] = self.bound - values[1:].sum()
            return _positive_part(np.sort(tied)[:count], values)
        # The smallest number of entries for which a threshold at the next value gives an L1 norm of at least the bound
        next_gap, counts = np.append(gaps[1:], 1.0), np.arange(1, gaps.size + 1)
        shrunk = counts * next_gap - np.cumsum(gaps)
        squares = counts * next_gap**2 - 2 * next_gap * np.cumsum(gaps) + np.cumsum(gaps**2)
        enough = (shrunk >= self.bound * np.sqrt(np.maximum(squares, 0.0))) & (next_gap > 0)
        enough &= counts > self.bound**2
        count = int(np.argmax(enough)) + 1 if enough.any() else gaps.size
        spread = gaps[:count].mean() - gaps[:count]
        # (s1 - k delta)^2 = bound^2 (s2 - 2 delta s1 + k delta^2) solved for delta, with s1 and s2 about the mean
        rise = self.bound * np.sqrt(spread @ spread / (count * (count - self.bound**2)))
        return _positive_part(order[:count], spread + rise)

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """The bound must lie between 1 and the square root of the size of the axis."""
        _check_number(self, "bound", self.bound, 1.0)
        if self.bound > np.sqrt(size) * (1 + 1e-12):
            raise ValueError(
                f"{self!r} but {table} has {size} {axis}s: the L1 bound must lie between 1 and "
                f"sqrt({size}) = {np.sqrt(size):.4g}"
            )

    def for_share(self, share: float) -> Self:
        """The bound shrinks with the square root of the share, as the L1 norm of unit vectors does."""
        return replace(self, bound=max(1.0, self.bound * np.sqrt(share)))


@dataclass(frozen=True, repr=False)
class KeepSoft(Penalty):
    """Keep the `k` largest entries, soft-thresholded at the (k+1)-th largest.

    `position` moves the threshold from the (k+1)-th (0) towards the k-th largest value (1, exclusive). A fixed point is
    the PMD solution for its own L1 norm as the bound; `position` = 0.5 is used for "PMD" with a given size. The
    threshold depends on the scores, so there is no objective: the iteration may cycle, with a warning.
    """

    has_objective: ClassVar[bool] = False
    k: int
    position: float = 0.0

    def threshold(self, magnitudes: Floats) -> Kept:
        """Soft-threshold between the (k+1)-th and the k-th largest score; scores tied at the threshold are dropped."""
        level = _order_statistic(magnitudes, self.k + 1)
        if self.position:
            level += self.position * (_order_statistic(magnitudes, self.k) - level)
        return _soft(magnitudes, level)

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """k must be an integer from 1 to the size of the axis, position in [0, 1)."""
        _check_count(self, self.k, size, axis, table)
        _check_number(self, "position", self.position, 0.0)
        if self.position >= 1:
            raise ValueError(f"{self!r}: position must be at least 0 and below 1")

    def size(self) -> int | None:
        """Return k."""
        return self.k


@dataclass(frozen=True, repr=False)
class ChosenByBIC(Penalty):
    """Base of penalties that choose their size by BIC in every half step (Lee et al. 2010).

    The BIC of keeping the i largest scores c, thresholded at level_i, is `|c - threshold(c)|^2 / s2 + i log(np)`, where
    s2 is the noise variance of X without the module. Of equal values the smaller size is chosen.
    """

    has_objective: ClassVar[bool] = False
    noise_source: tuple[float, int] | None = field(default=None, repr=False, kw_only=True)

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """Set the squared norm and the number of entries of the matrix, from which the noise is estimated."""
        return replace(self, noise_source=(squared_norm, n_entries))

    def _chosen_size(self, descending: Floats, residuals: Floats, n_scores: int) -> int:
        """Number of positive scores to keep, given the squared residuals for 1, 2, ... of them."""
        if self.noise_source is None:
            raise ValueError(f"{self!r} has no noise level: call for_matrix first")
        squared_norm, n_entries = self.noise_source
        residual = abs(squared_norm - float(descending @ descending))
        noise = max(residual / max(n_entries - n_scores, 1), np.finfo(np.float64).tiny)
        return int(np.argmin(residuals / noise + np.arange(1, descending.size + 1) * np.log(n_entries))) + 1


@dataclass(frozen=True, repr=False)
class AdaptiveLasso(ChosenByBIC):
    """Adaptive lasso whose size is chosen by BIC in every half step (Lee et al. 2010, "SSVD").

    Each score c is soft-thresholded at level / c**gamma; candidate levels are the values of c**(gamma + 1). In the
    simulation of the paper it keeps about one entry if the noise is high. There is no objective.
    """

    gamma: float = 2.0

    def threshold(self, magnitudes: Floats) -> Kept:
        """Weighted soft-threshold at the level with the smallest BIC."""
        order = _descending(magnitudes)
        c = magnitudes[order]
        if not c.size:
            return Kept(order, c)
        scale, c = c[0], c / c[0]  # powers of the scores cannot overflow
        powers = c ** (self.gamma + 1)
        levels = np.append(powers[1:], 0.0)
        dropped = float(c @ c) - np.cumsum(c**2)
        shrinkage = levels**2 * np.cumsum(c ** (-2 * self.gamma))
        residuals = scale**2 * (dropped + shrinkage)
        level = levels[self._chosen_size(scale * c, residuals, magnitudes.size) - 1]
        return _positive_part(order, np.where(powers > level, scale * (c - level / c**self.gamma), 0.0))

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """Gamma must be a finite number of at least 0."""
        _check_number(self, "gamma", self.gamma, 0.0)


@dataclass(frozen=True, repr=False)
class SCAD(ChosenByBIC):
    """SCAD thresholding (Fan and Li 2001) at the (k+1)-th largest score, at a given `level`, or at BIC's choice.

    Give `k`, or `level` (on the scale of X), or neither (BIC). There is no objective on the unit sphere.
    """

    k: int | None = None
    level: float | None = None
    a: float = 3.7

    def threshold(self, magnitudes: Floats) -> Kept:
        """Soft threshold below 2 level, linear up to a * level, no shrinkage above."""
        order = _descending(magnitudes)
        c = magnitudes[order]
        if self.k is not None:
            level = _order_statistic(magnitudes, self.k + 1)
        elif self.level is not None:
            level = self.level
        else:
            level = self._bic_level(c, magnitudes.size)
        middle = ((self.a - 1) * c - self.a * level) / (self.a - 2)
        shrunk = np.where(c <= 2 * level, c - level, np.where(c <= self.a * level, middle, c))
        return _positive_part(order, shrunk)

    def _bic_level(self, c: Floats, n_scores: int) -> float:
        """The score with the smallest BIC as the level; computed by cumulative sums over sorted scores."""
        if not c.size:
            return 0.0
        levels = np.append(c[1:], 0.0)
        counts = np.arange(1, c.size + 1)
        sums = np.stack([np.append(0.0, np.cumsum(c**power)) for power in (0, 1, 2)])
        untouched = np.minimum(np.searchsorted(-c, -self.a * levels, side="left"), counts)
        steep = np.minimum(np.searchsorted(-c, -2 * levels, side="left"), counts)
        n_middle, c_middle, cc_middle = sums[:, steep] - sums[:, untouched]
        middle = (self.a * levels) ** 2 * n_middle - 2 * self.a * levels * c_middle + cc_middle
        dropped = sums[2, -1] - sums[2, counts]
        residuals = dropped + middle / (self.a - 2) ** 2 + levels**2 * (counts - steep)
        return float(levels[self._chosen_size(c, residuals, n_scores) - 1])

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """At most one of k and level; a above 2."""
        if self.k is not None and self.level is not None:
            raise ValueError(f"{self!r}: give at most one of k and level")
        if self.k is not None:
            _check_count(self, self.k, size, axis, table)
        if self.level is not None:
            _check_number(self, "level", self.level, 0.0)
        _check_number(self, "a", self.a, 0.0)
        if not self.a > 2:
            raise ValueError(f"{self!r}: a must be above 2 (3.7 is the usual choice)")

    def size(self) -> int | None:
        """Return k, or None if it is not given."""
        return self.k


def largest(magnitudes: Floats, k: int, near: Indices | None = None) -> Indices:
    """Indices (increasing) of the k largest positive entries; of tied entries the lowest indices.

    It is faster if some k of the largest entries, or nearly so, are known to be `near`.
    """
    if k >= magnitudes.size:
        return _where(magnitudes > 0)
    # Only those above a level are sorted: that of k entries or, of many scores, one estimated from a sample.
    candidates, stride = None, magnitudes.size // _SAMPLE
    if near is not None and near.size >= k:
        level = magnitudes.take(near).min()
        candidates = _where(magnitudes >= level)
        if candidates.size == k and level > 0:
            return candidates
    elif stride >= 4 and (rank := int(1.5 * k / stride) + 8) < magnitudes[::stride].size:
        above = _where(magnitudes >= _order_statistic(magnitudes[::stride], rank))
        candidates = above if above.size >= k else None
    scores = magnitudes if candidates is None else magnitudes[candidates]
    edge = _order_statistic(scores, k)
    if edge <= 0:
        return _where(magnitudes > 0)
    kept = _where(scores >= edge)
    kept = kept if candidates is None else candidates[kept]
    surplus = kept.size - k
    if surplus:
        tied = _where(magnitudes[kept] == edge)
        kept = np.delete(kept, tied[-surplus:])
    return kept


def _order_statistic(magnitudes: Floats, rank: int) -> float:
    """The `rank`-th largest value; 0 if there are fewer."""
    if rank > magnitudes.size:
        return 0.0
    position = magnitudes.size - rank
    ordered = magnitudes.copy()
    ordered.partition(position)
    return max(float(ordered[position]), 0.0)


def _where(true: Bools) -> Indices:
    """Indices of the entries that are true (np.flatnonzero takes twice as long for a few hundred entries)."""
    return true.nonzero()[0]


def _descending(magnitudes: Floats) -> Indices:
    """Indices of the positive scores, largest first; ties by index."""
    return np.argsort(-magnitudes, kind="stable")[: np.count_nonzero(magnitudes > 0)]


def _positive_part(order: Indices, values: Floats) -> Kept:
    """The positive values, in increasing order of index."""
    kept = np.flatnonzero(values > 0)
    ascending = kept[np.argsort(order[kept])]
    return Kept(order[ascending], values[ascending])


def _soft(magnitudes: Floats, level: float) -> Kept:
    support = _where(magnitudes > level)
    return Kept(support, magnitudes[support] - level)


def _check_count(penalty: Penalty, k: object, size: int, axis: str, table: str) -> None:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool):
        raise TypeError(f"{penalty!r}: k must be an integer, got {k!r}")
    if not 1 <= k <= size:
        raise ValueError(f"{penalty!r} but {table} has {size} {axis}s: choose k from 1 to {size}")


def _check_number(penalty: Penalty, name: str, value: object, lowest: float) -> None:
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        raise TypeError(f"{penalty!r}: {name} must be a number, got {value!r}")
    if not lowest <= value < np.inf:
        raise ValueError(f"{penalty!r}: {name} must be a finite number of at least {lowest:g}")
