"""Stability selection: which members of a module are selected in random halves of the data.

Halves come in complementary pairs (Shah and Samworth 2013), and the modules of each half are matched to those of the
fit to all data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, RandomState, jaccard
from netbic.estimators.covariates import check_part, covariates_of, training_design
from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.parameters import check_count, is_number
from netbic.estimators.results import names_of
from netbic.estimators.svd import SparseGraphSVD, unwrapped
from netbic.penalties import Dense
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    SIDES,
    by_position,
    check_second_table,
    cosines,
    draw_seed,
    fill_unobserved,
    fitted_to,
    geometric_mean,
    match_rows,
    match_scores,
    pairs_by_position,
    restrict,
    seeded,
)

_DEFAULT_THRESHOLD = 0.75
_FOUND = 0.5  # share of the halves above which a module is said to be found again
_ROUNDING = 1e-9  # frequencies are multiples of 1 / (2 pairs_found)
_FEWEST = 4  # samples or features, two for each half: a single one is 0 after centring
_FEWEST_OF_PAIRS = 6  # samples of two tables: a correlation of two is 1 or -1
_SIMILAR = 0.5  # cosine of two modules from which they count as the same
_CORRELATED = 0.6  # correlation of scores from which a pair of two tables is found again, as in `verdicts`
_NOUNS = {"columns": "features", "rows": "samples", "x": "features of X", "y": "features of Y"}


@dataclass(frozen=True)
class AxisStability:
    """Selection frequencies on one axis, features or samples; arrays have an entry per module.

    Attributes
    ----------
    frequency : DataFrame
        A row per feature (or sample), a column per module (`module_1`, or `pair_1`): how often it is a member, as a
        share of the halves of the pairs in which both halves find the module (0 if there is no such pair).
    found : ndarray
        Share of halves in which the module was found again. Below the threshold, no member is stable.
    overlap : ndarray
        Mean Jaccard index of its members with those of the modules matched to it; 0 if there is none.
    selected : ndarray
        Mean number of members in a half.
    n_pairs, pairs_found : int, ndarray
        Pairs of halves, and those of which both halves find the module.
    threshold : ndarray
        Frequency from which a member is stable, and share of halves in which the module has to be found; infinite where
        no threshold achieves the requested error.
    false : ndarray
        Bound on the expected number of stable members that halves select no more often than at random.
    """

    frequency: pd.DataFrame
    found: Floats
    overlap: Floats
    selected: Floats
    n_pairs: int
    pairs_found: Indices
    threshold: Floats
    false: Floats

    @property
    def members(self) -> Bools:
        """Stable members: a row per module."""
        lowest = self.threshold[:, None] - _ROUNDING
        return np.asarray((lowest <= self.frequency.to_numpy().T) & (lowest <= self.found[:, None]))


@dataclass(frozen=True, repr=False)
class Stability:
    """How stable the modules of a model are.

    Attributes
    ----------
    reference : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        The model fitted to all data; its modules (pairs of two tables) are the ones assessed.
    columns, rows : AxisStability or None
        Selections of features (in halves of the samples), and of samples (in halves of the features); None if the model
        keeps all of them.
    x, y : AxisStability or None
        The same for the features of the two tables X and Y.
    """

    reference: Any
    columns: AxisStability | None = None
    rows: AxisStability | None = None
    x: AxisStability | None = None
    y: AxisStability | None = None

    @property
    def parts(self) -> dict[str, AxisStability]:
        """All axes that are assessed, by name."""
        return {axis: part for axis in _NOUNS if (part := getattr(self, axis)) is not None}

    @property
    def table(self) -> pd.DataFrame:
        """A row per module.

        `module` (`pair` for two tables); `found`, the share of halves in which it is found; and for features
        (`columns`; `x` and `y`) and samples (`rows`): `n_`, the members in the fit to all data, `stable_`, the number
        of stable members, `false_`, the bound on the number of those expected by chance, and `overlap_`, the mean
        Jaccard index with the matched modules.
        """
        table = pd.DataFrame({self._unit: np.arange(1, self.reference.n_components_ + 1)})
        table["found"] = np.mean([part.found for part in self.parts.values()], axis=0)
        for axis, part in self.parts.items():
            table[f"n_{axis}"] = _support(self.reference, axis).sum(axis=1)
            table[f"stable_{axis}"] = part.members.sum(axis=1)
            table[f"false_{axis}"] = part.false
            table[f"overlap_{axis}"] = part.overlap
        return table

    @property
    def _unit(self) -> str:
        return "pair" if isinstance(self.reference, TwoTableModel) else "module"

    def __repr__(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        table, unit = self.table, self._unit
        if table.empty:
            return f"No {unit} was found, so there is none to assess."
        kept = []
        for axis, part in self.parts.items():
            chance = f"at most {part.false.mean():.2g} expected by chance"
            if np.isinf(part.threshold).any():
                chance = "no threshold achieves the requested error: use smaller modules, or allow more false members"
            stable = f"{table[f'stable_{axis}'].mean():.0f} of {table[f'n_{axis}'].mean():.0f} {_NOUNS[axis]}"
            kept.append(f"{stable} are stable ({chance})")
        again, total = int((table["found"] > _FOUND).sum()), len(table)
        subject = f"{again} of {total} {unit}{'s' * (total != 1)} {'is' if 1 in (again, total) else 'are'}"
        return f"{subject} found again in most halves; {f'per {unit}, ' * (total > 1)}{' and '.join(kept)}."

    def at(self, threshold: float | None = None, *, max_false: float | None = None) -> Stability:
        """The same frequencies at another threshold or error (see `stability`), without new fits."""
        _check_limit(threshold, max_false)
        limits = _DEFAULT_THRESHOLD if threshold is None else threshold, max_false
        return replace(self, **{axis: _with_threshold(part, *limits) for axis, part in self.parts.items()})


def _support(fitted: Any, axis: str) -> Bools:
    """The members of the modules of a fitted model on an axis, a row each."""
    return np.asarray(getattr(fitted, f"{axis}_support_" if axis in SIDES else f"{axis}_"))


def _check_limit(threshold: float | None, max_false: float | None) -> None:
    """Raise unless at most one of them is given, and valid."""
    if threshold is not None and max_false is not None:
        raise ValueError("threshold and max_false are given: each determines the threshold, so give one of them")
    if threshold is not None and not (is_number(threshold) and 0.5 < threshold <= 1):
        raise ValueError(f"threshold={threshold!r}: a share of the halves above 0.5 and at most 1 is needed")
    if max_false is not None and not (is_number(max_false) and max_false > 0):
        raise ValueError(f"max_false={max_false!r}: a number above 0 is needed")


def _with_threshold(part: AxisStability, threshold: float, max_false: float | None) -> AxisStability:
    """The same frequencies with another threshold, and the bound on false members."""
    p = len(part.frequency)
    # If a half finds the module and selects a candidate with probability q / p, then a half that finds the module
    # selects it with probability q / (p found). Given that both halves find it, they are still independent.
    known = part.pairs_found > 0
    selected = np.minimum(part.selected / np.where(known, part.found, 1.0), p)
    pairs = np.where(known, part.pairs_found, part.n_pairs)
    thresholds, false = np.full(len(pairs), threshold), np.zeros(len(pairs))
    for k, (q, n) in enumerate(zip(selected, pairs.tolist(), strict=True)):
        if max_false is not None:
            thresholds[k] = threshold_for(max_false, q, p, n)
        if thresholds[k] - _ROUNDING <= part.found[k] and thresholds[k] <= 1:
            false[k] = expected_false(thresholds[k], q, p, n)
    return replace(part, threshold=thresholds, false=false)


def expected_false(threshold: float, q: float, p: int, n_pairs: int) -> float:
    """Bound the expected number of stable candidates that are selected no more often than at random.

    q of p candidates are selected per half, on average; one is stable if the share of the 2 B halves (B = `n_pairs`)
    that select it is at least the threshold. The bounds are those of Shah and Samworth (2013), J. R. Stat. Soc. B 75,
    55-80. That of Theorem 2 assumes that the share of pairs in which both halves select a candidate is unimodal.

    Examples
    --------
    >>> round(expected_false(0.8, 20, 88, 50), 3)
    3.743
    """
    # Frequencies are multiples of 1 / (2B): a threshold between two of them is the larger one.
    halves = int(np.ceil(2 * n_pairs * threshold - _ROUNDING))
    mean, tail = (q / p) ** 2, halves / n_pairs - 1
    # Theorem 1: both halves select a candidate with probability at most (q/p)^2, in 2 tau - 1 of the pairs.
    bounds = [q**2 / p / tail, q * 2 * n_pairs / halves]
    # Theorem 2: Markov's inequality, sharpened for unimodal distributions on 0, 1/B, ..., 1.
    if mean <= 1 / 3 and tail > min(2 * mean, 1 / (2 * n_pairs) + 1.5 * mean):
        if tail <= 0.5:
            bounds.append(q**2 / p / (2 * tail - 1 / n_pairs))
        else:
            bounds.append(q**2 / p * 2 * (1 - tail + 1 / n_pairs) / (1 + 1 / n_pairs))
    return float(min(bounds))


def threshold_for(max_false: float, q: float, p: int, n_pairs: int) -> float:
    """The smallest threshold at which `expected_false` is at most `max_false`; infinite if there is none.

    Examples
    --------
    >>> threshold_for(1.0, 20, 400, 50), threshold_for(1.0, 120, 400, 50)
    (0.76, inf)
    """
    thresholds = (halves / (2 * n_pairs) for halves in range(n_pairs + 1, 2 * n_pairs + 1))
    return next((each for each in thresholds if expected_false(each, q, p, n_pairs) <= max_false), np.inf)


def stability(
    model: SparseGraphSVD | TwoTableModel,
    X: Matrix,
    Y: Any = None,
    *,
    covariates: Any = None,
    n_pairs: int = 50,
    threshold: float | None = None,
    max_false: float | None = None,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Stability:
    """Find the members of modules that are selected in most halves of the data.

    The samples are split at random into two halves, many times; the model is fitted to each half (sizes in proportion,
    graphs restricted to it), and its modules are matched one to one to those of the fit to all data. `found` is the
    share of halves in which the matched module is similar enough, `frequency` how often a feature is then a member of
    it (Meinshausen and Buehlmann 2010; Shah and Samworth 2013). Samples are assessed in the same way in halves of the
    *features*. For two tables, pairs are matched by the correlation of their scores in the *other* half, and found
    again if it is at least 0.6 (the geometric mean of those of X and of Y); only features are assessed.

    The bound on false members counts features (samples) that half of the data selects, given that the module is found,
    with a probability of at most q / p, where q of p are selected on average. It assumes that samples are independent
    and, for the selection of samples, that features are independent given the module. It does not cover features that
    are selected more often for reasons common to all halves (a larger variance, a graph that favours them, a batch
    effect), nor the matching, which uses all data.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        4 * n_pairs clones of it (2 * n_pairs for two tables) are fitted to halves, and one to all of X.
    X : array, DataFrame or sparse matrix
    Y : array, DataFrame or sparse matrix
        The second table, for SparseGraphPLS and SparseGraphCCA.
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into halves together with X. Default: those of the model, if it was fitted to X.
    n_pairs : int
        Pairs of disjoint halves.
    threshold : float
        Frequency, above 0.5, from which a member is stable, and share of the halves in which its module has to be
        found. Default 0.75.
    max_false : float
        Instead: the allowed expected number of false members per module and axis, which determines the threshold.
    progress : function, optional
        Called after each pair of halves, in the calling thread, with the numbers of finished and of all of them.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        How many fits run at the same time at most (default: as many as there are cores): in processes if these save
        time, else in two threads or one after the other; or on the workers of the Dask client. It changes no result.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60)
    >>> result = netbic.selection.stability(model, study.expression, n_pairs=10, random_state=0)
    >>> result.columns.frequency.shape
    (500, 2)
    >>> result.verdict
    '2 of 2 modules are found again in most halves; per module, ...'

    Two tables:

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphPLS(1, n_x=8, n_y=5)
    >>> netbic.selection.stability(model, X, Y, n_pairs=10, random_state=0).verdict
    '1 of 1 pair is found again in most halves; ...'
    """
    check_count("n_pairs", n_pairs)
    _check_limit(threshold, max_false)
    two = check_second_table(model, Y)
    model = cast(TwoTableModel, getattr(model, "best_estimator_", model)) if two else unwrapped(model)
    size_names = {"x": "n_x", "y": "n_y"} if two else {"columns": "n_columns", "rows": "n_rows"}
    chosen_by = {axis: (size, f"{axis.removesuffix('s')}_penalty") for axis, size in size_names.items()}

    def selects(axis: str, size: str, penalty: str) -> bool:
        given = getattr(model, penalty)
        by_penalty = axis == "columns" if given is None else not isinstance(given, Dense)
        return getattr(model, size) is not None or by_penalty

    axes = [axis for axis, names in chosen_by.items() if selects(axis, *names)]
    if not axes:
        everything, sizes = ("features", "n_x or n_y") if two else ("samples and features", "n_rows or n_columns")
        raise ValueError(f"the model keeps all {everything}, so nothing is selected: give {sizes}")
    seed, fits = draw_seed(random_state), Fits(X, 2 * n_pairs * len(axes), n_jobs, progress)
    parts: dict[str, AxisStability] = {}
    if isinstance(model, TwoTableModel):
        given = covariates_of(model, X, covariates)
        reference: Any = seeded(model, seed).fit(X, Y, covariates=given)  # warnings of the fit are shown
        with quiet():
            found = _assess(_HalvesOfPairs(reference, X, Y), [(seed, number) for number in range(n_pairs)], fits)
        parts = {side: part for side, part in zip(SIDES, found, strict=True) if side in axes}
    else:
        with quiet():
            reference = fitted_to(seeded(model, seed), X, covariates_of(model, X, covariates))
            halves = {axis: _Halves(reference, X, axis) for axis in axes}
            for number, axis in enumerate(axes, start=1):
                fits.left = (len(axes) - number) * n_pairs
                (parts[axis],) = _assess(halves[axis], [(seed, axis == "rows", each) for each in range(n_pairs)], fits)
    return Stability(reference, **parts).at(threshold, max_false=max_false)


class _Halves:
    """Halves of the samples of one table, to count selections of its "columns", or of its features, to count "rows".

    The graphs of `model` match the table by position.
    """

    unit = "module"

    def __init__(self, fitted: SparseGraphSVD, X: Matrix, axis: str) -> None:
        self.axis = axis
        self.model, self.X = by_position(fitted, X, "csr" if axis == "columns" else "csc")
        halved, self.size = ("samples", self.X.shape[0]) if axis == "columns" else ("features", self.X.shape[1])
        if self.size < _FEWEST:
            raise ValueError(f"X has {self.size} {halved}: at least {_FEWEST} are needed, two for each half")
        self.covariates = training_design(fitted, X)
        if axis == "columns":
            check_part(self.covariates, self.size // 2, "a half of ")
        self.left, self.right = fitted.left_vectors_, fitted.components_.T
        self.supports, self.names = [_support(fitted, axis)], [names_of(fitted, axis)]

    def select(self, kept: Indices, other: Indices, random_state: int) -> tuple[list[Bools], Bools]:
        """Members of the modules of a half that are matched to those of all data, and whether these are similar.

        The similarity is the geometric mean of the cosines of the left and of the right vectors, 0 where the signs of
        the layers u v' disagree. Its square is the cosine of the two layers as matrices, whatever the signs of their
        vectors. Unrelated vectors of mixed signs have cosines near 0, even if they share many members by chance.
        """
        left, right, covariates = self.left, self.right, self.covariates
        if self.axis == "columns":
            left, part = left[kept], self.X[kept]
            covariates = None if covariates is None else covariates[kept]
        else:
            right, part = right[kept], self.X[:, kept]
        model = restrict(self.model, "row" if self.axis == "columns" else "column", kept, self.size)
        fitted = fitted_to(model.set_params(random_state=random_state), fill_unobserved(part), covariates)
        alike = geometric_mean(cosines(left.T, fitted.left_vectors_.T), cosines(right.T, fitted.components_))
        matched, similarity = match_rows(alike)
        return [_matched_members(_support(fitted, self.axis), matched)], similarity >= _SIMILAR


class _HalvesOfPairs:
    """Halves of the samples of two tables, in which selections of the features of both are counted."""

    unit = "pair"

    def __init__(self, fitted: TwoTableModel, X: Any, Y: Any) -> None:
        self.model, self.X, self.Y = pairs_by_position(fitted, X, Y)
        self.size = self.X.shape[0]
        if self.size < _FEWEST_OF_PAIRS:
            raise ValueError(f"X has {self.size} samples: at least {_FEWEST_OF_PAIRS} are needed, three per half")
        self.covariates = training_design(fitted, X)
        check_part(self.covariates, self.size // 2, "a half of ")
        self.x_scores, self.y_scores = fitted.x_scores_, fitted.y_scores_
        self.supports, self.names = [_support(fitted, side) for side in SIDES], [fitted.names_[side] for side in SIDES]

    def select(self, kept: Indices, other: Indices, random_state: int) -> tuple[list[Bools], Bools]:
        """The same as for one table, but pairs are matched by their scores in the other half."""
        tables = fill_unobserved(self.X[kept]), fill_unobserved(self.Y[kept])
        own, others = (None if self.covariates is None else self.covariates[half] for half in (kept, other))
        fitted = clone(self.model).set_params(random_state=random_state).fit(*tables, covariates=own)
        known = self.x_scores[other], self.y_scores[other]
        new = fitted.transform(self.X[other], self.Y[other], covariates=others)
        matched, similarity = match_scores(known, new)
        return [_matched_members(_support(fitted, side), matched) for side in SIDES], similarity >= _CORRELATED


def _assess(halves: _Halves | _HalvesOfPairs, seeds: list[Any], fits: Fits) -> list[AxisStability]:
    """Selections in pairs of halves, a pair per seed, on each axis; the threshold is still to be set."""
    total: list[Any] = []
    for counted in fits.map(_count_pair, halves, seeds):  # sums: no fit is kept
        total = [list(map(np.add, *both)) for both in zip(total, counted, strict=True)] if total else counted
    parts = []
    for (counts, selected, found, overlap, pairs), names in zip(total, halves.names, strict=True):
        index = pd.Index(np.arange(counts.shape[1]) if names is None else names)
        columns = [f"{halves.unit}_{number}" for number in range(1, len(counts) + 1)]
        frequency = pd.DataFrame(counts.T / (2 * np.maximum(pairs, 1)), index, columns)
        means = found / (2 * len(seeds)), overlap / np.maximum(found, 1), selected / (2 * len(seeds))
        parts.append(AxisStability(frequency, *means, len(seeds), pairs, *np.zeros((2, len(pairs)))))
    return parts


def _count_pair(halves: _Halves | _HalvesOfPairs, seed: Any) -> list[tuple[Array, ...]]:
    """Selections in two disjoint halves, for each axis that is assessed; an entry or row per module.

    Halves that select each candidate, if both find the module; members of the matched modules, similar or not; halves
    that find it (in which the matched module is similar enough); Jaccard indices of those; whether both find it.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(halves.size)
    one, two = np.sort(order[: order.size // 2]), np.sort(order[order.size // 2 :][: order.size // 2])
    starts = generator.integers(2**31 - 1, size=2).tolist()
    first, in_first = halves.select(one, two, starts[0])
    second, in_second = halves.select(two, one, starts[1])
    both = in_first & in_second
    totals: list[tuple[Array, ...]] = []
    for members, others, reference in zip(first, second, halves.supports, strict=True):
        counted, also = members & in_first[:, None], others & in_second[:, None]
        overlap = in_first * jaccard(reference, counted) + in_second * jaccard(reference, also)
        counts = (counted.astype(np.int64) + also) * both[:, None]
        selected = (members.sum(axis=1) + others.sum(axis=1)).astype(np.float64)
        totals.append((counts, selected, in_first + in_second * 1.0, overlap, both.astype(np.intp)))
    return totals


def _matched_members(support: Bools, matched: Indices) -> Bools:
    """The members of matched modules, a row each; none for -1, no partner."""
    return np.asarray(np.vstack([support, np.zeros(support.shape[1], dtype=bool)])[matched])
