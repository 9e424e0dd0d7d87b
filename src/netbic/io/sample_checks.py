"""Samples that are nearly the same, and samples that differ from all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, is_sparse

SAME_CORRELATION = 0.999
_PROJECTIONS = 64  # their correlation is within 0.001 of an exact one of 0.999
_CANDIDATE = 0.995  # correlation of the projections from which on a pair is compared exactly
MOST_PAIRS = 500
_BLOCK = 1000  # samples whose correlations are computed at once
_FEWEST_VALUES = 20  # samples with fewer values other than zero may agree by chance
_RANKED = 500  # genes
_FEWEST_SAMPLES = 10  # fewer do not show what is usual
_UPPER_DECILE = 1.2816  # of the normal distribution
_FAR = 3.0, 6.5  # distance to the median profile: times the median distance, and standard deviations of its logarithm
_UNRELATED = 0.5, 4.0  # correlation with the median profile: share of the usual one, and standard deviations below
_RELATED = 0.6  # usual correlation from which on it says something: not in data whose genes are centred
_FEW_DETECTED = 0.1  # share of the usual number of genes that are not zero
_LARGEST = 10  # deviation, in medians: larger ones of a few genes do not make a sample an outlier


def same_samples(X: Matrix, centre: Floats) -> list[tuple[int, int]]:
    """Pairs of samples whose profiles correlate above 0.999, the `centre` of each gene subtracted; at most 500.

    Candidates are found by random projections, so that a sparse matrix stays sparse.
    """
    directions = np.random.default_rng(0).standard_normal((X.shape[1], _PROJECTIONS))
    directions -= directions.mean(axis=0)  # so that the mean of each sample does not count, as in a correlation
    projected = np.asarray(X @ directions.astype(X.dtype)) - centre @ directions
    lengths = np.linalg.norm(projected, axis=1)
    enough = (lengths > 1e-6 * lengths.max(initial=0.0)) & (n_nonzero(X, axis=1) >= _FEWEST_VALUES)
    rows = np.flatnonzero(enough)
    units = (projected[rows] / lengths[rows, None]).astype(np.float32)
    pairs: list[Array] = []
    for start in range(0, len(rows), _BLOCK):
        one, other = np.nonzero(units[start : start + _BLOCK] @ units.T > _CANDIDATE)
        once = one + start < other
        pairs.append(rows[np.column_stack([one[once] + start, other[once]])])
    candidates = np.concatenate(pairs)[:MOST_PAIRS] if pairs else np.empty((0, 2), dtype=np.intp)
    same = _correlations(X, centre, candidates) > SAME_CORRELATION
    return [(int(one), int(other)) for one, other in candidates[same]]


def _correlations(X: Matrix, centre: Floats, pairs: Array) -> Floats:
    """Correlations of pairs of samples after a profile was subtracted."""
    found = np.zeros(len(pairs))
    profile = centre - centre.mean()
    for start in range(0, len(pairs), 50):
        one, other = (X[pairs[start : start + 50, side]].astype(np.float64) for side in (0, 1))
        squares = _covariance(one, one, profile) * _covariance(other, other, profile)
        lengths = np.sqrt(np.maximum(squares, np.finfo(float).tiny))
        found[start : start + 50] = _covariance(one, other, profile) / lengths
    return found


def _covariance(one: Matrix, other: Matrix, profile: Floats) -> Floats:
    """Inner products of samples minus a profile, all with mean 0; they are not formed, so that sparse ones stay so."""
    sums = [np.asarray(rows.sum(axis=1)).ravel() for rows in (one, other)]
    centred = _inner(one, other) - sums[0] * sums[1] / len(profile)
    return np.asarray(centred - one @ profile - other @ profile + profile @ profile)


def _inner(one: Matrix, other: Matrix) -> Floats:
    """Inner products of the rows of two matrices."""
    if is_sparse(one):
        return np.asarray(one.multiply(other).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", one, other))


def n_nonzero(X: Matrix, axis: int) -> Indices:
    """How many values are not zero, by gene (axis 0) or by sample (axis 1)."""
    if is_sparse(X):
        return np.asarray(X.astype(bool).sum(axis=axis)).ravel()
    return np.asarray(np.count_nonzero(X, axis=axis))


@dataclass(frozen=True)
class Outliers:
    """Samples that differ from the others, the most different first, and what tells them apart."""

    samples: Indices
    reason: str = ""


def outlying_samples(X: Array) -> Outliers:
    """Samples whose profile is unrelated to the median profile, or far away from it.

    What is usual is taken from the median and the tenth of the samples that are furthest away, so that cohorts of
    mixed samples, in which many of them are far from the median, have no outliers.
    """
    if X.shape[0] < _FEWEST_SAMPLES:
        return Outliers(np.empty(0, dtype=np.intp))
    middle = np.median(X, axis=0)
    deviations = X - middle
    sizes = np.abs(deviations)
    usual = np.median(sizes[sizes > 0]) if sizes.any() else 0.0
    deviations = np.clip(deviations, -_LARGEST * usual, _LARGEST * usual)
    distances = np.abs(deviations).mean(axis=1)
    correlations = _rank_correlation_with(X, middle)
    constant = X.min(axis=1) == X.max(axis=1)
    constant &= 2 * np.count_nonzero(constant) < len(constant)
    found = np.flatnonzero(_far(distances) | _unrelated(correlations) | constant)
    found = found[np.argsort(-distances[found], kind="stable")]
    if not found.size:
        return Outliers(found)
    if constant[found[0]]:
        return Outliers(found, "all values are equal")
    reason = f"{distances[found[0]] / np.median(distances):.1f} times the usual distance to the median profile"
    if np.median(correlations) >= _RELATED:
        shown = f"{correlations[found[0]]:.2f} (usually {np.median(correlations):.2f})"
        reason += f", rank correlation with it {shown}"
    return Outliers(found, reason)


def _rank_correlation_with(X: Array, profile: Array) -> Floats:
    """Spearman correlation of each sample with a profile, over at most 500 genes; 0 for constant samples."""
    some = slice(None, None, -(-X.shape[1] // _RANKED))
    ranks, own = (rankdata(values, axis=-1) for values in (X[:, some], profile[some]))
    ranks, own = ranks - ranks.mean(axis=1, keepdims=True), own - own.mean()
    lengths = np.linalg.norm(ranks, axis=1) * np.linalg.norm(own)
    return np.asarray(np.divide(ranks @ own, lengths, out=np.zeros(len(X)), where=lengths > 0), dtype=np.float64)


def _far(distances: Floats) -> Bools:
    times, deviations = _FAR
    usual = np.median(distances)
    if not usual > 0:
        return np.zeros(len(distances), dtype=bool)
    logs = np.log(np.maximum(distances / usual, np.finfo(float).tiny))
    spread = np.quantile(logs, 0.9) / _UPPER_DECILE
    return np.asarray((distances > times * usual) & (logs > deviations * spread))


def _unrelated(correlations: Floats) -> Bools:
    share, deviations = _UNRELATED
    usual = np.median(correlations)
    if usual < _RELATED:
        return np.zeros(len(correlations), dtype=bool)
    z = np.arctanh(np.clip(correlations, -0.9999, 0.9999))
    spread = (np.median(z) - np.quantile(z, 0.1)) / _UPPER_DECILE
    return np.asarray((correlations < share * usual) & (z < np.median(z) - deviations * spread))


def nearly_empty_samples(X: Matrix) -> Outliers:
    """Samples in which far fewer genes than usual are not zero, for matrices that are mostly zero."""
    counts: Any = n_nonzero(X, axis=1)
    usual = float(np.median(counts))
    found = np.flatnonzero((counts < _FEW_DETECTED * usual) & (usual >= _FEWEST_VALUES))
    found = found[np.argsort(counts[found], kind="stable")]
    reason = f"{counts[found[0]]:,} genes that are not zero, usually {usual:,.0f}" if found.size else ""
    return Outliers(found, reason)
