"""Modules that may be technical: their scores follow a property of the samples that is known without labels.

Properties are the mean, the spread and the low values of a sample, its zeros or missing entries, and the mean of its
mitochondrial and ribosomal genes. A module follows one of the first if its scores are correlated with the property as
computed from all features, and also from those that do not belong to the module: a large module is a property of its
own samples, and in data that are normalised the other features are low where a large module is high.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import rankdata

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, is_sparse

FOLLOWS: Final = 0.7  # absolute rank correlation from which a module follows a property, with enough samples
DEPTH: Final = 0.8  # the same from which it follows the depth of sequencing so closely that it is nothing else
_BY_CHANCE = 3.3  # standard deviations of a correlation of few samples, below which it may be chance
CARRIED: Final = 0.6  # share of the variance of the scores in two samples from which these carry the module
EXTREME: Final = 0.25  # share of the variance of the scores of a pair in one sample from which it is named
_ALIKE = 0.5  # correlation with a module from which a feature may belong to it
_MOST = 0.75  # share of the features that go up or down together with a module that follows the mean of all
_BEYOND_CHANCE = 4.0  # variance of the mean, relative to that of independent features
_FEW = 0.02  # share of zeros or missing entries below which they are not looked at
_FEWEST_FEATURES = 50  # from which properties are computed
_FEWEST_NAMED = 5  # mitochondrial or ribosomal genes
_SAME = 1e-6  # relative standard deviation below which all samples have the same smallest value
_POOL = 1000  # features by which low values are defined
_NAMED: Final = {"the mean of mitochondrial genes": ("MT-",), "the mean of ribosomal genes": ("RPL", "RPS")}
_MEAN, _ZEROS = "the mean of the samples", "the share of zeros of the samples"
_LOW = "the share of low values of the samples"


class Followed(NamedTuple):
    """The property that a module follows most, "" if there is none, and the rank correlation."""

    name: str = ""
    correlation: float = 0.0

    @property
    def is_mean(self) -> bool:
        """Whether the module follows the mean of the samples."""
        return self.name == _MEAN

    @property
    def is_depth(self) -> bool:
        """Whether the module is hardly more than the depth of sequencing."""
        return self.name in (_MEAN, _ZEROS) and abs(self.correlation) >= DEPTH


@dataclass(frozen=True)
class Sums:
    """Of some features, for each sample: number, observed entries, zeros, low values, sum and sum of squares."""

    n: int
    observed: Floats
    zeros: Floats
    low: Floats
    total: Floats
    squares: Floats

    @classmethod
    def of(cls, X: Matrix, limit: float) -> Sums:
        """The sums of all columns; entries below `limit` are low."""
        n_samples, n = X.shape
        if is_sparse(X):
            X = X.tocsr()
            zeros = n - np.diff(X.indptr).astype(np.float64)
            total, squares = (np.asarray(each.sum(axis=1), dtype=np.float64).ravel() for each in (X, X.power(2)))
            return cls(n, np.full(n_samples, float(n)), zeros, np.zeros(n_samples), total, squares)
        total, filled, observed = X.sum(axis=1, dtype=np.float64), X, np.full(n_samples, float(n))
        if not np.isfinite(total).all():
            missing = np.isnan(X)
            filled, observed = np.where(missing, 0.0, X), np.count_nonzero(~missing, axis=1).astype(np.float64)
            total = filled.sum(axis=1, dtype=np.float64)
        zeros, low = (np.count_nonzero(each, axis=1).astype(np.float64) for each in (X == 0, limit > X))
        squares = np.einsum("ij,ij->i", filled, filled, dtype=np.float64)
        return cls(n, observed, zeros, low, total, squares)

    def without(self, others: Sums) -> Sums:
        """The sums of the features that are not among the others."""
        return Sums(**{name: own - getattr(others, name) for name, own in vars(self).items()})

    def properties(self) -> dict[str, Floats]:
        """What samples differ in, by name."""
        seen = np.maximum(self.observed, 1.0)
        found = {
            "the share of missing values of the samples": 1 - self.observed / max(self.n, 1),
            _ZEROS: self.zeros / seen,
            _LOW: self.low / seen,
            _MEAN: self.total / seen,
        }
        spread = np.maximum(self.squares / seen - found[_MEAN] ** 2, 0.0)
        found["the standard deviation of the samples"] = np.sqrt(spread)
        return {name: values for name, values in found.items() if "share" not in name or values.mean() >= _FEW}


def depth_of(X: Matrix) -> Floats | None:
    """Powers of the depth of samples that are mostly zeros, a row each, by their smallest values; None for other data.

    Of counts that were divided by the depth of their sample, the smallest value is that of a single count: it decreases
    with the depth. Logarithms of such data depend on the depth in all features, each in its own way, as an average of
    values of which many are zeros does.
    """
    if is_sparse(X):
        X = X.tocsr()
        positive, n_values = np.where(X.data > 0, X.data, np.inf), np.diff(X.indptr)
        full = np.flatnonzero(n_values)
        smallest = np.full(X.shape[0], np.inf)
        if full.size:
            smallest[full] = np.minimum.reduceat(positive, X.indptr[:-1][full])
        is_negative = bool((X.data < 0).any())
    else:
        n_values, is_negative = np.count_nonzero(X, axis=1), bool((X < 0).any())
        smallest = np.where(X > 0, X, np.inf).min(axis=1)
    if is_negative or 2 * n_values.sum() > X.shape[0] * X.shape[1] or not np.isfinite(smallest).any():
        return None
    depth = np.log(np.where(np.isfinite(smallest), smallest, np.median(smallest[np.isfinite(smallest)])))
    if (spread := float(depth.std())) <= _SAME * max(float(np.abs(depth).max()), 1.0):
        return None
    centred = (depth - depth.mean()) / spread
    return np.array([centred, centred**2, centred**3])


class SampleProperties:
    """Properties of the samples (rows) of a matrix, whose columns may have names."""

    def __init__(self, X: Matrix, names: Array | None, generator: np.random.Generator) -> None:
        pool = X[:, np.sort(generator.choice(X.shape[1], min(X.shape[1], _POOL), replace=False))]
        pool = pool.toarray() if is_sparse(pool) else pool
        self._low = float(np.nanquantile(pool, 0.1))
        self._X, self._sums = X, Sums.of(X, self._low)
        centred = np.nan_to_num(pool - np.nanmean(pool, axis=0))
        self._pool = centred[:, np.any(centred, axis=0)]
        self._named = {what: Sums.of(X[:, at], self._low) for what, at in _genes_by_name(names).items()}
        # The variance that the mean of the samples would have if features were independent.
        self._independent = float(np.nanmean(np.nanvar(pool, axis=0))) / X.shape[1]

    def followed_by(self, score: Floats, members: Bools, correlations: Floats) -> Followed:
        """The property that the score of a module follows most, if any; `correlations` are those of all features."""
        limit = max(FOLLOWS, _BY_CHANCE / np.sqrt(max(score.size - 1, 1)))
        found = {what: _rank_correlation(score, sums.properties()[_MEAN]) for what, sums in self._named.items()}
        if members.size - np.count_nonzero(members) >= _FEWEST_FEATURES:
            rest = self._properties_without(members)
            # Features beyond the members may belong to the module as well: what they have in common is not technical.
            alike = members | (np.abs(correlations) >= _ALIKE)
            unlike = self._properties_without(alike) if (~alike).sum() >= _FEWEST_FEATURES else rest
            for name, values in self._sums.properties().items():
                if name == _MEAN and not self._moves_most(score, values):
                    continue
                others = (rest if name == _MEAN else unlike).get(name, np.zeros(score.size))  # they may have no zeros
                both = [_rank_correlation(score, each) for each in (values, others)]
                found[name] = min(both, key=abs) if both[0] * both[1] > 0 else 0.0
        name = max(found, key=lambda name: abs(found[name]), default="")
        return Followed(name, found[name]) if name and abs(found[name]) >= limit else Followed()

    def _properties_without(self, features: Bools) -> dict[str, Floats]:
        """The properties of the samples, computed from the other features."""
        return self._sums.without(Sums.of(self._X[:, np.flatnonzero(features)], self._low)).properties()

    def _moves_most(self, score: Floats, mean: Floats) -> bool:
        """Whether the mean of the samples varies beyond chance, and most features are high where the score is."""
        ups = float(np.mean(score @ self._pool > 0)) if self._pool.size else 0.5
        return max(ups, 1 - ups) >= _MOST and float(mean.var()) >= _BEYOND_CHANCE * self._independent


def carriers(score: Floats, other: Floats | None = None) -> Indices:
    """The one or two samples that carry a module; none if the others have enough of the variance of its scores.

    With the scores of the `other` table, those that carry a pair: its covariance.

    Examples
    --------
    >>> import numpy as np
    >>> carriers(np.array([0.0, 9.0, 1.0, -1.0, 0.5, -0.5])).tolist(), carriers(np.arange(20.0)).tolist()
    ([1], [])
    """
    other = score if other is None else other
    squares = np.abs((score - np.median(score)) * (other - np.median(other)))
    total, most = float(squares.sum()), np.argsort(-squares, kind="stable")[:2]
    if not total > 0 or squares[most].sum() < CARRIED * total:
        return most[:0]
    return most[:1] if squares[most[0]] >= CARRIED * total else np.sort(most)


def extreme_sample(score: Floats) -> tuple[int, float] | None:
    """The sample that makes a quarter of the variance of the scores or more, and its share; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> extreme_sample(np.array([2.0, 1, 0, 0, 0, 0, -1, -1, -1])), extreme_sample(np.arange(20.0))
    ((0, 0.5), None)
    """
    squares = (score - np.median(score)) ** 2
    total, most = float(squares.sum()), int(np.argmax(squares))
    share = float(squares[most]) / total if total > 0 else 0.0
    return (most, share) if share >= EXTREME else None


def _genes_by_name(names: Array | None) -> dict[str, Indices]:
    """Positions of mitochondrial and of ribosomal genes, if there are enough."""
    upper = [] if names is None else [str(name).upper() for name in names]
    found = {what: [at for at, name in enumerate(upper) if name.startswith(starts)] for what, starts in _NAMED.items()}
    return {what: np.array(at, dtype=np.intp) for what, at in found.items() if len(at) >= _FEWEST_NAMED}


def _rank_correlation(one: Floats, other: Floats) -> float:
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
