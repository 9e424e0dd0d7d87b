"""Stability selection: which members of a module are selected in random halves of the data.

Halves come in complementary pairs (Shah and Samworth 2013), and the modules of each half are matched to those of the
fit to all data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from netbic.arrays import Bools, Floats, Indices, Matrix, RandomState
from netbic.estimators import (
    SparseGraphSVD,
    StableModules,
    TwoTableModel,
    check_count,
    check_part,
    check_same_data,
    covariates_of,
    is_number,
    names_of,
    training_design,
    unwrapped,
)
from netbic.selection.error_bounds import expected_false, pcer_threshold, threshold_for
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    SIDES,
    PairTables,
    by_position,
    cosines,
    draw_halves,
    draw_seed,
    fill_unobserved,
    fitted_to,
    geometric_mean,
    jaccard,
    match_rows,
    match_scores,
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
        A row per feature (or sample), a column per module: how often it is a member if the module is found, as a share
        of the halves of the pairs in which both halves find the module (0 if there is no such pair).
    found : ndarray
        Share of halves in which the module was found again. Below the threshold, no member is stable.
    overlap : ndarray
        Mean Jaccard index of its members with those of the modules matched to it; 0 if there is none.
    selected : ndarray
        Mean number of members in a half.
    n_pairs : int
        Pairs of halves.
    pairs_found : ndarray
        Pairs of which both halves find the module.
    threshold : ndarray
        Frequency from which a member is stable, and share of halves in which the module has to be found; infinite where
        no threshold achieves the requested error.
    false : ndarray
        Bound on the expected number of stable members that halves select no more often than at random.
    rewired : AxisStability or None
        The same for rewired graphs, if that was asked for: what they would keep too.
    """

    frequency: pd.DataFrame
    found: Floats
    overlap: Floats
    selected: Floats
    n_pairs: int
    pairs_found: Indices
    threshold: Floats
    false: Floats
    rewired: AxisStability | None = None

    @property
    def members(self) -> Bools:
        """Stable members: a row per module."""
        lowest = self.threshold[:, None] - _ROUNDING
        return np.asarray((lowest <= self.frequency.to_numpy().T) & (lowest <= self.found[:, None]))


@dataclass(frozen=True)
class Stability:
    """How stable the modules of a model are.

    Attributes
    ----------
    reference : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        The model fitted to all data; its modules (pairs of two tables) are the ones assessed.
    parts : dict of AxisStability
        Selections of features, "columns" (in halves of the samples), and of samples, "rows" (in halves of the
        features); for two tables, those of the features of X and of Y, "x" and "y". An axis is left out if the model
        keeps all of it. Also available as attributes, which are then None.
    """

    reference: Any
    parts: dict[str, AxisStability]

    @property
    def columns(self) -> AxisStability | None:
        """Selections of features."""
        return self.parts.get("columns")

    @property
    def rows(self) -> AxisStability | None:
        """Selections of samples."""
        return self.parts.get("rows")

    @property
    def x(self) -> AxisStability | None:
        """Selections of features of X, for two tables."""
        return self.parts.get("x")

    @property
    def y(self) -> AxisStability | None:
        """Selections of features of Y, for two tables."""
        return self.parts.get("y")

    @property
    def table(self) -> pd.DataFrame:
        """A row per module.

        `module` (`pair` for two tables); `found`, the share of halves in which it is found; and for features
        (`columns`; `x` and `y`) and samples (`rows`): `n_`, the members in the fit to all data, `stable_`, the number
        of stable members, `false_`, the bound on the number of those expected by chance, `overlap_`, the mean Jaccard
        index with the matched modules, and `rewired_`, the number of stable members that are stable with rewired graphs
        too (if that was asked for).
        """
        table = pd.DataFrame({self._unit: np.arange(self.reference.n_components_)})
        table["found"] = np.mean([part.found for part in self.parts.values()], axis=0)
        for axis, part in self.parts.items():
            table[f"n_{axis}"] = _support(self.reference, axis).sum(axis=1)
            table[f"stable_{axis}"] = part.members.sum(axis=1)
            table[f"false_{axis}"] = part.false
            table[f"overlap_{axis}"] = part.overlap
            if part.rewired is not None:
                table[f"rewired_{axis}"] = (part.members & part.rewired.members).sum(axis=1)
        return table

    @property
    def _unit(self) -> str:
        return "pair" if isinstance(self.reference, TwoTableModel) else "module"

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
            if part.rewired is not None:
                chance += f"; {table[f'rewired_{axis}'].mean():.0f} with rewired graphs too"
            stable = f"{table[f'stable_{axis}'].mean():.0f} of {table[f'n_{axis}'].mean():.0f} {_NOUNS[axis]}"
            kept.append(f"{stable} are stable ({chance})")
        again, total = int((table["found"] > _FOUND).sum()), len(table)
        subject = f"{again} of {total} {unit}{'s' * (total != 1)} {'is' if 1 in (again, total) else 'are'}"
        return f"{subject} found again in most halves; {f'per {unit}, ' * (total > 1)}{' and '.join(kept)}."

    def at(
        self,
        threshold: float | None = None,
        *,
        max_false: float | None = None,
        pcer: float | None = None,
        assumption: str = "unimodal",
    ) -> Stability:
        """The same frequencies at another threshold or error (see `stability`), without new fits."""
        limit = _Limit.of(threshold, max_false, pcer, assumption)
        return replace(self, parts={axis: limit.apply(part) for axis, part in self.parts.items()})

    def refit(self, X: Matrix) -> StableModules:
        """The modules of one table re-estimated on their stable members, as a fitted model.

        Parameters
        ----------
        X : as for `stability`
            The same data.
        """
        check_same_data(self.reference, X)
        masks = {"rows": self.reference.rows_, "columns": self.reference.columns_}
        masks |= {axis: part.members for axis, part in self.parts.items()}
        return StableModules.at(self.reference, X, masks["rows"], masks["columns"])


def _support(fitted: Any, axis: str) -> Bools:
    """The members of the modules of a fitted model on an axis, a row each."""
    return np.asarray(getattr(fitted, f"{axis}_support_" if axis in SIDES else f"{axis}_"))


class _Limit(NamedTuple):
    """What determines the threshold: itself, a number of false members, or a rate of them."""

    threshold: float
    max_false: float | None
    pcer: float | None
    assumption: str

    @classmethod
    def of(cls, threshold: float | None, max_false: float | None, pcer: float | None, assumption: str) -> _Limit:
        values = {"threshold": threshold, "max_false": max_false, "pcer": pcer}
        given = [name for name, value in values.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given: each determines the threshold, so give one of them")
        threshold = _DEFAULT_THRESHOLD if threshold is None else threshold
        expected_false(threshold, 0, 1, 1, assumption)  # raises if one of them is invalid
        if max_false is not None and not (is_number(max_false) and max_false > 0):
            raise ValueError(f"max_false={max_false!r}: a number above 0 is needed")
        if pcer is not None:
            pcer_threshold(pcer, 0, 1)
        return cls(threshold, max_false, pcer, assumption)

    def apply(self, part: AxisStability) -> AxisStability:
        """The same frequencies with this threshold, and the bound on false members."""
        p = len(part.frequency)
        # If a half finds the module and selects a candidate with probability q / p, then a half that finds the module
        # selects it with probability q / (p found). Given that both halves find it, they are still independent.
        known = part.pairs_found > 0
        selected = np.minimum(part.selected / np.where(known, part.found, 1.0), p)
        pairs = np.where(known, part.pairs_found, part.n_pairs)
        thresholds, false = [], []
        for q, n, found in zip(selected, pairs.tolist(), part.found, strict=True):
            tau = self.threshold
            if self.pcer is not None:
                tau = max(pcer_threshold(self.pcer, q, p), 0.5 + 0.5 / n)
            elif self.max_false is not None:
                tau = threshold_for(self.max_false, q, p, n, self.assumption)
            thresholds.append(tau)
            achieved = tau - _ROUNDING <= found and tau <= 1
            false.append(expected_false(tau, q, p, n, self.assumption) if achieved else 0.0)
        rewired = None if part.rewired is None else self.apply(part.rewired)
        return replace(part, threshold=np.array(thresholds), false=np.array(false), rewired=rewired)


def stability(
    model: SparseGraphSVD | TwoTableModel,
    X: Matrix,
    Y: Any = None,
    *,
    covariates: Any = None,
    n_pairs: int = 50,
    threshold: float | None = None,
    max_false: float | None = None,
    pcer: float | None = None,
    assumption: str = "unimodal",
    n_rewired: int = 0,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Stability:
    """Find the members of modules that are selected in most halves of the data.

    The samples are split at random into two halves, many times; the model is fitted to each half (sizes in proportion,
    graphs restricted to it), and its modules are matched one to one to those of the fit to all data. A module is found
    again in a half if the matched module is similar enough (`found`, the share of such halves). How often a feature is
    a member of it then (`frequency`) measures how stable the feature is (Meinshausen and Buehlmann 2010; Shah and
    Samworth 2013). The module itself has to be found as often as its stable members. Samples are assessed in the same
    way in halves of the *features*: in halves of the samples, each sample would always come with the same noise.

    For two tables, pairs are matched by the correlation of their scores in the *other* half, and found again if it is
    at least 0.6 (the geometric mean of those of X and of Y). Only features are assessed.

    The bound on false members counts features (samples) that are selected from half the data, as members of the module
    found again, with a probability of at most q / p, where q of p are selected on average. It is a bound for
    `frequency`, given that the module is found: q is divided by `found`, and only pairs are used of which both halves
    find it. It assumes that the two halves are independent: that samples are independent and, for the selection of
    samples, that features are independent given the module. It does not cover features that are selected more often
    for reasons common to all halves: a larger variance, a graph that favours them (see `n_rewired`), a batch effect.
    The theory does not cover the matching either, which uses all data.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        4 * n_pairs clones of it (2 * n_pairs for two tables) are fitted to halves, and one to all of X.
    X : array, DataFrame or sparse matrix
    Y : array, DataFrame or sparse matrix
        The second table, for SparseGraphPLS and SparseGraphCCA.
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into halves together with X. Default: those of the model, if it was fitted to X. Not for two tables.
    n_pairs : int
        Pairs of disjoint halves.
    threshold : float
        Frequency, above 0.5, from which a member is stable, and share of the halves in which its module has to be
        found. Default 0.75.
    max_false : float
        Instead: the allowed expected number of false members per module and axis, which determines the threshold.
    pcer : float
        Instead: that number as a share of all features (samples), by Meinshausen and Buehlmann's bound as in s4vd.
    assumption : {"unimodal", "none", "r-concave"}
        The assumption behind the bound, see `expected_false`.
    n_rewired : int
        Pairs of halves that are also fitted with rewired graphs (another one for each pair, in which every node keeps
        its number of neighbours), if the model has a graph. Members that are not stable with them owe it to the edges
        of the graph. Not for two tables.
    progress : function, optional
        Called after each pair of halves, in the calling thread, with the numbers of finished and of all of them.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over pairs (default: all cores, unless X is small), or the workers of the current Dask client; the
        result does not depend on it.

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
    >>> netbic.enrichment.edges(result.refit(study.expression), study.network)["n_nodes"].tolist()
    [...]

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
    limit = _Limit.of(threshold, max_false, pcer, assumption)
    model = _check_model(model, Y, covariates, n_rewired)
    seed, fits = draw_seed(random_state), Fits(X, n_jobs, progress)
    parts: dict[str, AxisStability] = {}
    if isinstance(model, TwoTableModel):
        if not (sides := [side for side in SIDES if _selects(model, side, f"n_{side}")]):
            raise ValueError("the model keeps all features, so nothing is selected: give n_x or n_y")
        reference: Any = seeded(model, seed).fit(X, Y)  # warnings of the fit are shown
        with quiet():
            tables = _Tables.of(reference, X, Y)
            counted = _count(tables, [(seed, number) for number in range(n_pairs)], fits)
        for side, counts in zip(SIDES, counted, strict=True):
            if side in sides:
                known = reference.names_[side]
                names = np.arange(counts.counts.shape[1]) if known is None else known
                parts[side] = limit.apply(_shares(counts, names, n_pairs))
        return Stability(reference, parts)
    axes = [axis for axis in ("columns", "rows") if _selects(model, axis[:-1], f"n_{axis}")]
    if not axes:
        raise ValueError("the model keeps all samples and features, so nothing is selected: give n_rows or n_columns")
    n_rewired = n_rewired if model.row_graph is not None or model.column_graph is not None else 0
    with quiet():
        reference = fitted_to(seeded(model, seed), X, covariates_of(model, X, covariates))
        halves = {axis: _Halves.of(reference, X, axis) for axis in axes}
        fits.left = len(axes) * (n_pairs + n_rewired)
        for axis in axes:
            found = []
            for rewired, number in ((False, n_pairs), (True, n_rewired)):
                fits.left -= number
                seeds = [(seed, axis == "rows", each) for each in range(number)]
                if seeds:
                    (counts,) = _count(replace(halves[axis], rewired=rewired), seeds, fits)
                    found.append(_shares(counts, names_of(reference, axis), number))
            parts[axis] = limit.apply(replace(found[0], rewired=found[1] if n_rewired else None))
    return Stability(reference, parts)


def _check_model(model: Any, Y: Any, covariates: Any, n_rewired: int) -> SparseGraphSVD | TwoTableModel:
    """The model of one or of two tables, with the options that it allows."""
    if n_rewired:
        check_count("n_rewired", n_rewired)
    found = getattr(model, "best_estimator_", model)
    if not isinstance(found, TwoTableModel):
        if Y is not None:
            raise TypeError(
                f"Y is given, but {type(found).__name__} takes one table: use SparseGraphPLS or SparseGraphCCA"
            )
        return unwrapped(model)
    if Y is None:
        raise ValueError(f"{type(found).__name__} needs two tables: give the second one as Y=...")
    if covariates is not None or n_rewired:
        raise ValueError("covariates and n_rewired are for models of one table: leave them out")
    return found


def _selects(model: SparseGraphSVD | TwoTableModel, axis: str, size: str) -> bool:
    """Whether the model selects part of this axis."""
    return getattr(model, size) is not None or getattr(model, f"{axis}_penalty") is not None


class _Counts(NamedTuple):
    """Sums over halves, an entry or row per module."""

    counts: NDArray[np.int64]  # of the pairs in both halves of which the module is found: halves with each candidate
    selected: Floats  # members of the matched modules, similar or not
    found: Floats  # halves in which the matched module is similar enough
    overlap: Floats  # Jaccard indices with those
    pairs: Floats  # number of pairs in both halves of which it is found


def _count(data: _Halves | _Tables, seeds: list[Any], fits: Fits) -> list[_Counts]:
    """Sums over pairs of halves, for each axis that is assessed; no fit is kept."""
    total: list[_Counts] = []
    for found in fits.map(_count_pair, data, seeds):
        pairs = zip(total, found, strict=True)
        total = [_Counts(*map(np.add, one, other)) for one, other in pairs] if total else found
    return total


def _count_pair(data: _Halves | _Tables, seed: Any) -> list[_Counts]:
    """Selections in two disjoint halves."""
    generator = np.random.default_rng(seed)
    one, two = draw_halves(generator, data.size)
    starts = generator.integers(2**31 - 1, size=2).tolist()
    data = data.with_rewired_graphs(generator)
    (first, in_first), (second, in_second) = data.select(one, two, starts[0]), data.select(two, one, starts[1])
    totals = []
    for members, others, reference in zip(first, second, data.supports, strict=True):
        counted, also = members & in_first[:, None], others & in_second[:, None]
        both = in_first & in_second
        overlap = in_first * jaccard(reference, counted) + in_second * jaccard(reference, also)
        counts = (counted.astype(np.int64) + also) * both[:, None]
        selected = (members.sum(axis=1) + others.sum(axis=1)).astype(np.float64)
        totals.append(_Counts(counts, selected, in_first + in_second * 1.0, overlap, both.astype(np.float64)))
    return totals


def _shares(counted: _Counts, names: Any, n_pairs: int) -> AxisStability:
    """Counts as shares of the halves; the threshold is still to be set."""
    pairs = counted.pairs.astype(np.intp)
    return AxisStability(
        frequency=pd.DataFrame(counted.counts.T / (2 * np.maximum(pairs, 1)), index=pd.Index(names)),
        found=counted.found / (2 * n_pairs),
        overlap=counted.overlap / np.maximum(counted.found, 1),
        selected=counted.selected / (2 * n_pairs),
        n_pairs=n_pairs,
        pairs_found=pairs,
        threshold=np.zeros(len(pairs)),
        false=np.zeros(len(pairs)),
    )


def _matched_members(support: Bools, matched: Indices) -> Bools:
    """The members of matched modules, a row each; none for -1, no partner."""
    return np.asarray(np.vstack([support, np.zeros(support.shape[1], dtype=bool)])[matched])


@dataclass(frozen=True)
class _Halves:
    """A model, data, and modules to search for in halves of the data.

    The graphs of `model` match `X` by position. `axis` ("columns" or "rows") is the one whose selections are counted;
    the other one is halved. If `rewired`, graphs are rewired at random for every pair.
    """

    model: SparseGraphSVD
    X: Matrix
    left: Floats  # vectors of the modules in all data: (n, K)
    right: Floats  # (K, p)
    axis: str
    covariates: Floats | None  # a row per sample
    rewired: bool = False

    @classmethod
    def of(cls, fitted: SparseGraphSVD, X: Matrix, axis: str) -> _Halves:
        """For the modules of a model fitted to X."""
        model, values = by_position(fitted, X, "csr" if axis == "columns" else "csc")
        made = cls(model, values, fitted.left_vectors_, fitted.components_, axis, training_design(fitted, X))
        if made.size < _FEWEST:
            halved = "samples" if axis == "columns" else "features"
            raise ValueError(f"X has {made.size} {halved}: at least {_FEWEST} are needed, two for each half")
        if axis == "columns":
            check_part(made.covariates, made.size // 2, "a half of ")
        return made

    @property
    def size(self) -> int:
        """Number of samples or features that are halved."""
        return int(self.X.shape[0] if self.axis == "columns" else self.X.shape[1])

    @property
    def supports(self) -> list[Bools]:
        """Members of the modules in all data."""
        return [self.right != 0 if self.axis == "columns" else self.left.T != 0]

    def with_rewired_graphs(self, generator: np.random.Generator) -> _Halves:
        """Graphs in which every node keeps its number of neighbours, if they are to be rewired."""
        names = ("row_graph", "column_graph") if self.rewired else ()
        graphs = {name: graph.rewire(generator) for name in names if (graph := getattr(self.model, name)) is not None}
        return replace(self, model=clone(self.model).set_params(**graphs)) if graphs else self

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
            right, part = right[:, kept], self.X[:, kept]
        model = restrict(self.model, "row" if self.axis == "columns" else "column", kept, self.size)
        fitted = fitted_to(model.set_params(random_state=random_state), fill_unobserved(part), covariates)
        alike = geometric_mean(cosines(left.T, fitted.left_vectors_.T), cosines(right, fitted.components_))
        matched, similarity = match_rows(alike)
        return [_matched_members(_support(fitted, self.axis), matched)], similarity >= _SIMILAR


@dataclass(frozen=True)
class _Tables:
    """Two tables, and the model fitted to all of their samples."""

    tables: PairTables
    reference: TwoTableModel

    @classmethod
    def of(cls, fitted: TwoTableModel, X: Any, Y: Any) -> _Tables:
        """For the pairs of a model fitted to X and Y."""
        made = cls(PairTables.of(fitted, X, Y), fitted)
        if made.size < _FEWEST_OF_PAIRS:
            raise ValueError(f"X has {made.size} samples: at least {_FEWEST_OF_PAIRS} are needed, three per half")
        return made

    @property
    def size(self) -> int:
        """Number of samples."""
        return self.tables.n_samples

    @property
    def supports(self) -> list[Bools]:
        """Members of the pairs of all samples, in X and in Y."""
        return [_support(self.reference, side) for side in SIDES]

    def with_rewired_graphs(self, generator: np.random.Generator) -> _Tables:
        """Graphs are not rewired."""
        return self

    def select(self, kept: Indices, other: Indices, random_state: int) -> tuple[list[Bools], Bools]:
        """Members of the pairs of a half, matched to those of all samples by their scores in the other half."""
        fitted = self.tables.fitted_to(kept, random_state=random_state)
        scores = fitted.transform(self.tables.X[other], self.tables.Y[other])
        matched, similarity = match_scores((self.reference.x_scores_[other], self.reference.y_scores_[other]), scores)
        return [_matched_members(_support(fitted, side), matched) for side in SIDES], similarity >= _CORRELATED
