"""Stability selection: which members of a module are selected in random halves of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, RandomState
from netbic.estimators import (
    SparseGraphSVD,
    StableModules,
    TwoTables,
    check_count,
    check_same_data,
    covariates_of,
    is_number,
    names_of,
    unwrapped,
)
from netbic.selection.complementary_pairs import ComplementaryPairs, SelectionCounts
from netbic.selection.error_bounds import expected_false, pcer_threshold, threshold_for
from netbic.selection.finished import Progress, TrackedExecutor
from netbic.selection.fits import Jobs, executor_for, quiet
from netbic.selection.matching import share_of_modules
from netbic.selection.resampling import draw_seed, fitted_to, seeded

_DEFAULT_THRESHOLD = 0.75
_FOUND = 0.5  # share of the halves above which a module is said to be found again
_ROUNDING = 1e-9  # frequencies are multiples of 1 / (2 pairs_found)


@dataclass(frozen=True)
class AxisStability:
    """Selection frequencies on one axis, features or samples; arrays have an entry per module.

    Attributes
    ----------
    frequency : DataFrame
        A row per feature (or sample), a column per module: how often it is a member if the module is found, as a share
        of the halves of the pairs in which both halves find the module (0 if there is no such pair).
    frequency_in_all : DataFrame
        The same as a share of all halves; those that do not find the module count as halves without it.
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
    threshold: Floats
    false: Floats
    frequency_in_all: pd.DataFrame
    pairs_found: Indices
    rewired: AxisStability | None = None

    @property
    def members(self) -> Bools:
        """Stable members: a row per module."""
        lowest = self.threshold[:, None] - _ROUNDING
        return np.asarray((lowest <= self.frequency.to_numpy().T) & (lowest <= self.found[:, None]))

    def at_limit(self, limit: ErrorLimit) -> AxisStability:
        """The same frequencies at another threshold."""
        p = len(self.frequency)
        # If a half finds the module and selects a candidate with probability q / p, then a half that finds the module
        # selects it with probability q / (p found). Given that both halves find it, they are still independent.
        known = self.pairs_found > 0
        selected = np.minimum(self.selected / np.where(known, self.found, 1.0), p)
        pairs = np.where(known, self.pairs_found, self.n_pairs)
        each = list(zip(selected, pairs.tolist(), strict=True))
        threshold = np.array([limit.threshold_at(q, p, n) for q, n in each])
        false = [
            expected_false(tau, q, p, n, limit.assumption) if tau - _ROUNDING <= found and tau <= 1 else 0.0
            for tau, found, (q, n) in zip(threshold, self.found, each, strict=True)
        ]
        rewired = None if self.rewired is None else self.rewired.at_limit(limit)
        return replace(self, threshold=threshold, false=np.array(false), rewired=rewired)


@dataclass(frozen=True)
class ErrorLimit:
    """What determines the threshold: itself, a number of false members, or a rate of them."""

    threshold: float | None
    max_false: float | None
    pcer: float | None
    assumption: str

    def __post_init__(self) -> None:
        given = [name for name in ("threshold", "max_false", "pcer") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given: each determines the threshold, so give one of them")
        expected_false(self._fixed_threshold, 0, 1, 1, self.assumption)  # raises if one of them is invalid
        if self.max_false is not None and not (is_number(self.max_false) and self.max_false > 0):
            raise ValueError(f"max_false={self.max_false!r}: a number above 0 is needed")
        if self.pcer is not None:
            pcer_threshold(self.pcer, 0, 1)

    def threshold_at(self, q: float, p: int, n_pairs: int) -> float:
        """The threshold if q of p candidates are selected on average."""
        if self.pcer is not None:
            return max(pcer_threshold(self.pcer, q, p), 0.5 + 0.5 / n_pairs)
        if self.max_false is not None:
            return threshold_for(self.max_false, q, p, n_pairs, self.assumption)
        return self._fixed_threshold

    @property
    def _fixed_threshold(self) -> float:
        return _DEFAULT_THRESHOLD if self.threshold is None else self.threshold


@dataclass(frozen=True)
class Stability:
    """How stable the modules of a model are.

    Attributes
    ----------
    reference : SparseGraphSVD
        The model fitted to all data; its modules are the ones assessed.
    columns, rows : AxisStability or None
        Selections of features (in halves of the samples) and of samples (in halves of the features). None where the
        model keeps the whole axis.
    """

    reference: SparseGraphSVD
    columns: AxisStability | None
    rows: AxisStability | None

    @property
    def table(self) -> pd.DataFrame:
        """A row per module.

        `module`; `found`, the share of halves in which it is found; and for features (`columns`) and samples (`rows`):
        `n_`, the members in the fit to all data, `stable_`, the number of stable members, `false_`, the bound on the
        number of those expected by chance, `overlap_`, the mean Jaccard index with the matched modules, and `rewired_`,
        the number of stable members that are stable with rewired graphs too (if that was asked for).
        """
        table = pd.DataFrame({"module": np.arange(self.reference.n_components_)})
        table["found"] = np.mean([part.found for part in self._parts().values()], axis=0)
        for axis, part in self._parts().items():
            table[f"n_{axis}"] = getattr(self.reference, f"{axis}_").sum(axis=1)
            table[f"stable_{axis}"] = part.members.sum(axis=1)
            table[f"false_{axis}"] = part.false
            table[f"overlap_{axis}"] = part.overlap
            if part.rewired is not None:
                table[f"rewired_{axis}"] = (part.members & part.rewired.members).sum(axis=1)
        return table

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        table = self.table
        if table.empty:
            return "No module was found in X, so there is none to assess."
        nouns = {"columns": "features", "rows": "samples"}
        kept = [
            f"{table[f'stable_{axis}'].mean():.0f} of {table[f'n_{axis}'].mean():.0f} {nouns[axis]} are stable "
            f"({expected_by_chance(part)}{_with_rewired(part)})"
            for axis, part in self._parts().items()
        ]
        again = share_of_modules(int((table["found"] > _FOUND).sum()), len(table))
        return f"{again} found again in most halves; {'per module, ' * (len(table) > 1)}{' and '.join(kept)}."

    def _parts(self) -> dict[str, AxisStability]:
        named = {"columns": self.columns, "rows": self.rows}
        return {axis: part for axis, part in named.items() if part is not None}

    def at(
        self,
        threshold: float | None = None,
        *,
        max_false: float | None = None,
        pcer: float | None = None,
        assumption: str = "unimodal",
    ) -> Stability:
        """The same frequencies at another threshold or error (see `stability`), without new fits."""
        limit = ErrorLimit(threshold, max_false, pcer, assumption)
        parts: dict[str, Any] = {axis: part.at_limit(limit) for axis, part in self._parts().items()}
        return replace(self, **parts)

    def refit(self, X: Matrix) -> StableModules:
        """The modules re-estimated on their stable members, as a fitted model.

        Parameters
        ----------
        X : as for `stability`
            The same data.
        """
        check_same_data(self.reference, X)
        masks = {"rows": self.reference.rows_, "columns": self.reference.columns_}
        masks |= {axis: part.members for axis, part in self._parts().items()}
        return StableModules.at(self.reference, X, masks["rows"], masks["columns"])


def expected_by_chance(part: AxisStability) -> str:
    """The bound on false members, in words."""
    if np.isinf(part.threshold).any():
        return "no threshold achieves the requested error: use smaller modules, or allow more false members"
    return f"at most {part.false.mean():.2g} expected by chance"


def _with_rewired(part: AxisStability) -> str:
    if part.rewired is None:
        return ""
    return f"; {(part.members & part.rewired.members).sum(axis=1).mean():.0f} with rewired graphs too"


def stability(
    model: SparseGraphSVD,
    X: Matrix,
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
    """Find the members of a model's modules that are selected in most halves of the data.

    The samples are split at random into two halves, many times; the model is fitted to each half (sizes in proportion,
    graphs restricted to it), and its modules are matched one to one to those of the fit to all data. A module is found
    again in a half if the matched module is similar enough (`found`, the share of such halves). How often a feature is
    a member of it then (`frequency`) measures how stable the feature is (Meinshausen and Buehlmann 2010; Shah and
    Samworth 2013). The module itself has to be found as often as its stable members. Samples are assessed in the same
    way in halves of the *features*: in halves of the samples, each sample would always come with the same noise.

    The bound on false members counts features (samples) that are selected from half the data, as members of the module
    found again, with a probability of at most q / p, where q of p are selected on average. It is a bound for
    `frequency`, given that the module is found: q is divided by `found`, and only pairs are used of which both halves
    find it. It assumes that the two halves are independent: that samples are independent and, for the selection of
    samples, that features are independent given the module. It does not cover features that are selected more often
    for reasons common to all halves: a larger variance, a graph that favours them (see `n_rewired`), a batch effect.
    The theory does not cover the matching either, which uses all data.

    Parameters
    ----------
    model : SparseGraphSVD
        4 * n_pairs clones of it are fitted to halves, and one to all of X.
    X : array, DataFrame or sparse matrix
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into halves together with X. Default: those of the model, if it was fitted to X.
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
        of the graph.
    progress : function, optional
        Called after each pair, in the calling thread, with the numbers of finished pairs and of all pairs.
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
    """
    check_count("n_pairs", n_pairs)
    limit = ErrorLimit(threshold, max_false, pcer, assumption)
    if isinstance(getattr(model, "best_estimator_", model), TwoTables):
        raise TypeError(f"{type(model).__name__} is a model of two tables: use pair_stability(model, X, Y)")
    model = unwrapped(model)
    axes = [axis for axis in ("columns", "rows") if _selects(model, axis)]
    if not axes:
        raise ValueError("the model keeps all samples and features, so nothing is selected: give n_rows or n_columns")
    if n_rewired:
        check_count("n_rewired", n_rewired)
    has_graph = model.row_graph is not None or model.column_graph is not None
    n_rewired = n_rewired if has_graph else 0
    seed, executor = draw_seed(random_state), executor_for(X, n_jobs)
    parts: dict[str, Any] = {"columns": None, "rows": None}
    with quiet():
        reference = fitted_to(seeded(model, seed), X, covariates_of(model, X, covariates))
        pairs = {axis: ComplementaryPairs.of(reference, X, axis) for axis in axes}
        fits = TrackedExecutor(executor, "pairs", progress)
        fits.left = len(axes) * (n_pairs + n_rewired)
        for axis in axes:
            parts[axis] = _counted(pairs[axis], names_of(reference, axis), (n_pairs, n_rewired), seed, fits).at_limit(
                limit
            )
    return Stability(reference, **parts)


def _counted(
    pairs: ComplementaryPairs, names: Array, numbers: tuple[int, int], seed: int, fits: TrackedExecutor
) -> AxisStability:
    """Shares of the halves of so many pairs, and of pairs with rewired graphs."""
    found = []
    for rewired, number in zip((False, True), numbers, strict=True):
        fits.part, fits.left = f"{pairs.axis}{' rewired' * rewired}", fits.left - number
        if number:
            found.append(shares_of(replace(pairs, rewired=rewired).count(number, seed, fits), names, number))
    return replace(found[0], rewired=found[1] if len(found) > 1 else None)


def _selects(model: SparseGraphSVD, axis: str) -> bool:
    """Whether the model selects part of this axis."""
    return getattr(model, f"n_{axis}") is not None or getattr(model, f"{axis.removesuffix('s')}_penalty") is not None


def shares_of(counted: SelectionCounts, names: Array, n_pairs: int) -> AxisStability:
    """Counts as shares of the halves; the threshold is still to be set."""
    index = pd.Index(names)
    pairs = counted.pairs.astype(np.intp)
    return AxisStability(
        frequency=pd.DataFrame(counted.counts_of_pairs.T / (2 * np.maximum(pairs, 1)), index=index),
        found=counted.found / (2 * n_pairs),
        overlap=counted.overlap / np.maximum(counted.found, 1),
        selected=counted.selected / (2 * n_pairs),
        n_pairs=n_pairs,
        threshold=np.zeros(len(pairs)),
        false=np.zeros(len(pairs)),
        frequency_in_all=pd.DataFrame(counted.counts.T / (2 * n_pairs), index=index),
        pairs_found=pairs,
    )
