"""The half step of penalties that choose their size (`chooses_size`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from netbic.arrays import Bools, Floats
from netbic.penalties import Choice, Penalty, expected_noise_norm
from netbic.solver.vectors import Vector

_QUARTILE = 0.3186  # lower quartile of the magnitude of a standard normal number
_FEWEST = 8  # entries from which noise is estimated
_ORTHOGONAL = 1e-12  # share of |z| up to which its product with a unit vector is rounding error


def adaptive_step(
    penalty: Penalty, z: Floats, old: Vector, other: Vector, squares: Floats | None = None, limit: float = np.inf
) -> Vector:
    """Let the penalty choose the members and the weight sigma of the graph, then score and normalise.

    Parameters
    ----------
    penalty : Penalty
    z : array
        Product of X with `other`.
    old, other : Vector
        The current vector of this axis, and that of the other axis.
    squares : array, optional
        Squared norms of the rows (columns) of X.
    limit : float
        Largest sigma, relative to the norm of the scores of the members.
    """
    scores = ScaledScores.of(penalty, z, old, other, squares)
    smoothed = None if old.smoothed is None else old.smoothed[scores.varying]
    choice = penalty.choose(scores.values, smoothed).among(scores.varying)
    choice = replace(choice, heteroscedasticity=scores.heteroscedasticity, background=scores.background)
    if old.smoothed is not None and choice.sigma:
        choice = replace(choice, sigma=_limited(choice, np.abs(z), old.smoothed, limit))
    return _on_members(penalty, choice, z, old.smoothed, other)


@dataclass(frozen=True, eq=False)
class ScaledScores:
    """Scores of one axis in units of the noise of each entry.

    Attributes
    ----------
    values : array
        Scores of the entries that vary, without the part that comes from the noise of the entry itself.
    varying : bool array
    heteroscedasticity : float
        Standard deviation, over entries, of the logarithm of their noise.
    background : float
        Lower quartile of the magnitudes of the scores of others than current members, relative to that of pure noise; 1
        if the noise is not known.
    """

    values: Floats
    varying: Bools
    heteroscedasticity: float
    background: float

    @classmethod
    def of(cls, penalty: Penalty, z: Floats, old: Vector, other: Vector, squares: Floats | None) -> ScaledScores:
        """Scores of an axis, given its current vector and the product z of X with the other vector.

        The other vector is the product of X with `old`, so that z_i contains old_i |X_i|^2 / d from the noise of entry
        i itself: about old_i g_i^2 k / d for k entries of the other vector. This part is subtracted, because it would
        make every current member look like a member. Entries that do not vary are not candidates.
        """
        d = float(z[old.support] @ old.values)
        # A noise level estimated from scores far beyond those of X is bounded, or it would grow in every half step.
        noise = penalty.noise_without(0.0) if other.choice is None else min(other.choice.noise, penalty.largest_noise)
        scales = noise_scales(z, squares, other.size)
        corrected = z.copy()
        if d > _ORTHOGONAL * float(np.linalg.norm(z)):
            corrected[old.support] -= (noise * scales[old.support]) ** 2 * (other.support.size / d) * old.values
        varying = scales > 0
        spread = float(np.std(np.log(scales[varying]))) if varying.any() else 0.0
        background = _background(z, old, squares, other.size)
        return cls(corrected[varying] / scales[varying], varying, spread, background)


def _background(z: Floats, old: Vector, squares: Floats | None, length: int) -> float:
    """How large the scores of others than current members are, relative to noise.

    Scores of entries that are unrelated to the other vector have the variance of one entry of their row (column). The
    lower quartile does not change much if some of the others are members of this module.
    """
    if squares is None or length < _FEWEST:
        return 1.0
    variances = (squares - z * z) / (length - 1)
    others = variances > 1e-12 * variances.max(initial=0.0)
    others[old.support] = False
    if np.count_nonzero(others) < _FEWEST:
        return 1.0
    return float(np.quantile(np.abs(z[others]) / np.sqrt(variances[others]), 0.25)) / _QUARTILE


def _limited(choice: Choice, magnitudes: Floats, smoothed: Floats, limit: float) -> float:
    """The chosen sigma, or a smaller one: `limit` times the norm of the scores of members, with and without it."""
    plain = magnitudes[choice.support]
    scores = plain + choice.sigma * smoothed[choice.support]
    return min(choice.sigma, limit * min(float(np.linalg.norm(plain)), float(np.linalg.norm(scores))))


def _on_members(penalty: Penalty, choice: Choice, z: Floats, smoothed: Floats | None, other: Vector) -> Vector:
    """The vector on the chosen members, scored with the chosen sigma."""
    plain = z if penalty.nonnegative else np.abs(z)
    scores = plain if smoothed is None else plain + choice.sigma * smoothed
    support = choice.support[scores[choice.support] > 0]
    values = scores[support]
    if support.size:
        values = values / np.sqrt(values @ values)
        d = float(plain[support] @ values)
        sizes = (z.size, support.size), (other.size, other.support.size)
        choice = replace(choice, strength=strength_of(d, penalty.noise_without(d), *sizes))
    if not penalty.nonnegative:
        values = np.copysign(values, z[support] + 0.0)
    return Vector(z.size, support, values, choice=choice)


def noise_scales(z: Floats, squares: Floats | None, length: int) -> Floats:
    """Standard deviation of the noise of each entry, relative to the typical one; 0 where nothing varies.

    The part of the squared norm of row i that the module does not explain, beyond z_i^2, is noise (or other modules).
    Logarithms of such variances have variance trigamma(length / 2) even if all are equal: they are shrunk towards their
    mean by that share.
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


def strength_of(d: float, noise: float, rows: tuple[int, int], columns: tuple[int, int]) -> float:
    """d relative to the largest value expected from noise alone, for the size of each axis and how many are kept."""
    by_noise = noise * (expected_noise_norm(*rows) + expected_noise_norm(*columns))
    return d / by_noise if by_noise > 0 else np.inf
