"""The half step of penalties that choose their size (`chooses_size`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from netbic.arrays import Floats
from netbic.penalties import Choice, Penalty, expected_noise_norm
from netbic.solver.vectors import Vector

_ORTHOGONAL = 1e-12  # share of |z| up to which its product with a unit vector is rounding error


def adaptive_step(penalty: Penalty, z: Floats, old: Vector, other: Vector, squares: Floats | None = None) -> Vector:
    """Let the penalty choose the members and the weight sigma of the graph, then score and normalise.

    The other vector is the product of X with `old`, so that z_i contains old_i |X_i|^2 / d from the noise of entry i
    itself: about old_i g_i^2 k / d for k entries of the other vector. This part is subtracted, because it would make
    every current member look like a member. Scores are compared in units of the noise of each entry; entries that do
    not vary are not candidates.

    Parameters
    ----------
    penalty : Penalty
    z : array
        Product of X with `other`.
    old, other : Vector
        The current vector of this axis, and that of the other axis.
    squares : array, optional
        Squared norms of the rows (columns) of X.
    """
    d = float(z[old.support] @ old.values)
    # A noise level estimated from scores far beyond those of X is bounded, or it would grow in every half step.
    noise = penalty.noise_without(0.0) if other.choice is None else min(other.choice.noise, penalty.largest_noise)
    scales = noise_scales(z, squares, other.size)
    corrected = z.copy()
    if d > _ORTHOGONAL * float(np.linalg.norm(z)):
        corrected[old.support] -= (noise * scales[old.support]) ** 2 * (other.support.size / d) * old.values
    varying = scales > 0
    smoothed = None if old.smoothed is None else old.smoothed[varying]
    choice = penalty.choose(corrected[varying] / scales[varying], smoothed).among(varying)
    spread = float(np.std(np.log(scales[varying]))) if varying.any() else 0.0
    return _on_members(penalty, replace(choice, heteroscedasticity=spread), z, old.smoothed, other)


def _on_members(penalty: Penalty, choice: Choice, z: Floats, smoothed: Floats | None, other: Vector) -> Vector:
    """The vector on the chosen members, scored with the chosen sigma."""
    plain = z if penalty.nonnegative else np.abs(z)
    scores = plain if smoothed is None else plain + choice.sigma * smoothed
    support = choice.support[scores[choice.support] > 0]
    values = scores[support]
    if support.size:
        values = values / np.sqrt(values @ values)
        strength = strength_of(penalty, float(plain[support] @ values), support.size, z.size, other)
        choice = replace(choice, strength=strength)
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


def strength_of(penalty: Penalty, d: float, kept: int, size: int, other: Vector) -> float:
    """d relative to the largest value expected from noise alone for modules of this size."""
    norms = expected_noise_norm(size, kept) + expected_noise_norm(other.size, other.support.size)
    by_noise = penalty.noise_without(d) * norms
    return d / by_noise if by_noise > 0 else np.inf
