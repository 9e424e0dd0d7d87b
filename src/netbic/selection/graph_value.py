"""Whether a graph helps to explain samples that were not fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators.covariates import training_design
from netbic.estimators.inputs import axis_names
from netbic.estimators.parameters import check_count
from netbic.estimators.svd import SparseGraphSVD, unwrapped
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    Parameters,
    complement,
    draw_seed,
    explained_share,
    fitted_to,
    folds,
    graphs_by_position,
    n_asked,
    restrict,
    seeded,
)

Kind = str | int  # the graph itself ("true"), none ("none"), or the number of a rewired graph
Place = tuple[int, int]  # a repeat and a fold
Job = tuple[Sequence[Kind], Sequence[Place]]
# A model whose graphs match X by position, X, the number of folds, their seed, and the design matrix of covariates.
Folded = tuple[SparseGraphSVD, Matrix, int, int, Floats | None]

_LEVEL = 0.05
# Repeats after which the comparison with no graph may end, and p-values above which it does. This can only lower the
# level. Of 279 graphs that were better than none after four repeats in simulations, 2 were lost.
_LOOKS_AT_NONE = ((1, 0.2), (2, 0.12), (3, 0.08))
_CLEAR, _FUTILE = 0.001, 0.5  # p-values at which the comparison with rewired graphs ends early
_JOBS_PER_THREAD = 3  # with fewer of them, threads would wait for the last one
_HUB_DRIVEN = 0.3  # rank correlation of membership and degree above which a module is called hub-driven


@dataclass(frozen=True, repr=False)
class GraphValue:
    """How well a graph helps to explain samples that were not fitted.

    Attributes
    ----------
    helps : bool
        Whether the graph beats both its rewired copies and no graph at all.
    p_rewired, p_none : float
        One-sided p-values of the two comparisons. `p_rewired` is NaN if the graph is not better than none: then it was
        not compared with rewired graphs.
    table : DataFrame
        `graph` ("true", "none" or "rewired"), `share`, the variance of held-out samples explained, mean over folds, and
        `n_fits`, the number of folds. The `share` of a graph that was fitted to fewer folds than the true one is that
        of the true one plus the mean difference of both on these folds.
    degree : DataFrame
        Per module of a fit to all samples: `correlation` of membership with degree (Spearman), and whether it `tracks`
        degree (above 0.3).
    """

    helps: bool
    p_rewired: float
    p_none: float
    table: pd.DataFrame
    degree: pd.DataFrame

    @property
    def share(self) -> float:
        """Variance of held-out samples explained with the graph."""
        return float(self.table.loc[self.table["graph"] == "true", "share"].mean())

    def __repr__(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """A plain sentence, and the numbers behind it."""
        shares = self.table.groupby("graph")["share"].mean()
        if self.helps:
            summary = "The graph helps to explain unseen samples."
        elif self.p_none <= _LEVEL:
            summary = "No evidence that the structure of the graph helps: rewired graphs do as well."
        elif shares["true"] > shares["none"]:
            summary = "No evidence that the graph helps: the gain over no graph could be chance."
        else:
            summary = "No evidence that the graph helps: modules found without it do as well."
        compared = ""
        if not np.isnan(self.p_rewired):
            compared = f"{shares['rewired']:.4f} with rewired graphs (p = {self.p_rewired:.2g}), "
        return (
            f"{summary} Variance of unseen samples explained: {shares['true']:.4f} with the graph, {compared}"
            f"{shares['none']:.4f} without a graph (p = {self.p_none:.2g})."
        )


def graph_value(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    covariates: Any = None,
    n_rewired: int = 19,
    n_folds: int = 5,
    n_repeats: int = 4,
    early_stopping: bool = True,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> GraphValue:
    """Test whether a model's `column_graph` helps to explain samples that were not fitted.

    It helps only if it beats graphs in which every node keeps its number of neighbours (a t-test of the graph against
    the spread of its rewired copies) and also no graph at all (a paired t-test over folds). Each comparison alone is
    misleading: hubs make any graph look useful, and a graph that points to the wrong features still beats its rewired
    copies.

    Parameters
    ----------
    model : SparseGraphSVD
        With a `column_graph`, which it uses as a graph term or for `diffusion` (give a number: "cv" would choose it
        anew in every fit). Clones of it are fitted, at most (n_rewired + 2) * n_folds * n_repeats of them, and judged
        on samples that are not smoothed.
    X : array, DataFrame or sparse matrix
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into folds together with X. Default: those of the model, if it was fitted to X.
    n_rewired : int
        Rewired graphs to compare with, at least 3.
    n_folds, n_repeats : int
        Folds of held-out samples, and how many times samples are partitioned into folds.
    early_stopping : bool
        Make no further fits when the answer is known. After one, two or three repeats, the comparison with no graph
        ends if the gain is far from significant (p > 0.2, 0.12 or 0.08), which can only lower the level; in simulations
        it misses 1 % of the graphs that all repeats find better than none. Rewired graphs are not needed if the graph
        is not better than none. Otherwise, five of them with one repeat, five or ten with all repeats are enough if
        the graph is clearly better (p <= 0.001) or not at all (p > 0.5): the level of 0.05 becomes at most 0.053.
    progress : function, optional
        As for `n_modules`.
    random_state, n_jobs
        As for `stability`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 1000, n_modules=3, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_rows=40, n_columns=60, column_graph=study.network)
    >>> value = netbic.selection.graph_value(model, study.expression, n_rewired=9, n_repeats=2, random_state=0)
    >>> value.helps, value.verdict.split(". ")[0]
    (True, 'The graph helps to explain unseen samples')
    """
    for name, number in (("n_rewired", n_rewired), ("n_folds", n_folds), ("n_repeats", n_repeats)):
        check_count(name, number)
    if n_rewired < 3:
        raise ValueError(f"n_rewired={n_rewired}: at least 3 are needed to estimate how much rewired graphs differ")
    model, seed = unwrapped(model), draw_seed(random_state)
    fits = Fits(X, (2 + n_rewired) * n_folds * n_repeats, n_jobs, progress)
    design = training_design(model, X, covariates)
    if model.column_graph is None:
        raise ValueError("the model has no column_graph to test: set column_graph")
    X = checked(X, missing=model.missing)
    values: Matrix = X.tocsr() if is_sparse(X) else np.asarray(X)
    model = seeded(model, seed)
    graphs = graphs_by_position(model.get_params(deep=False), values.shape, axis_names(X))
    model.set_params(n_jobs=None, **graphs)
    if model.n_components == "auto":  # the same number with every graph
        model.set_params(n_components=n_asked(fitted_to(clone(model), values, design)))
    comparison = _Comparison((model, values, n_folds, seed, design), fits)
    with quiet():
        if early_stopping:
            _decide(comparison, n_rewired, n_repeats)
        else:
            comparison.extend(("true", "none", *range(n_rewired)), n_repeats)
        degree = _degree_correlation(model, values, design)
    kinds = ["true", "none", *comparison.rewired]
    table = pd.DataFrame(
        {
            "graph": [kind if isinstance(kind, str) else "rewired" for kind in kinds],
            "share": [comparison.share(kind) for kind in kinds],
            "n_fits": [comparison.scores(kind).size for kind in kinds],
        }
    )
    p_none, p_rewired = comparison.p_none(), comparison.p_rewired()
    return GraphValue(p_rewired <= _LEVEL and p_none <= _LEVEL, p_rewired, p_none, table, degree)


def _decide(comparison: _Comparison, n_rewired: int, n_repeats: int) -> None:
    """Make as many fits as are needed for the answer."""
    for repeats, futile in (*(look for look in _LOOKS_AT_NONE if look[0] < n_repeats), (n_repeats, _LEVEL)):
        comparison.extend(("true", "none"), repeats)
        if comparison.p_none() > futile:
            return
    looks = [look for look in ((5, 1), (5, n_repeats), (10, n_repeats)) if look[0] < n_rewired]
    for number, repeats in (*looks, (n_rewired, n_repeats)):
        comparison.extend(range(number), repeats)
        if not _CLEAR < comparison.p_rewired() <= _FUTILE:
            return


def _degree_correlation(model: SparseGraphSVD, X: Matrix, design: Floats | None) -> pd.DataFrame:
    """Correlation of membership and degree for each module of a fit to all samples: `GraphValue.degree`."""
    from scipy.stats import spearmanr

    degrees = model.column_graph.degrees
    rows = []
    for module, mask in enumerate(fitted_to(clone(model), X, design).columns_, start=1):
        constant = mask.all() or not mask.any() or np.ptp(degrees) == 0
        correlation = 0.0 if constant else float(spearmanr(mask, degrees).statistic)
        rows.append((module, correlation, correlation > _HUB_DRIVEN))
    return pd.DataFrame(rows, columns=["module", "correlation", "tracks"])


def fit_folds(data: Folded, job: Job) -> list[float]:
    """Variance of held-out samples explained, with some graphs in some folds: all in the first fold, then in the next.

    Every repeat is another partition; the same seed gives the same folds, so that graphs can be compared fold by fold.
    A graph of the rows is restricted to the samples of the fold, `n_rows` is reduced in proportion, and effects of
    covariates are estimated in the samples of the fold. Held-out samples are not smoothed.
    """
    model, X, n_folds, seed, design = data
    models = []
    for kind in job[0]:
        changes: Parameters = {}
        if kind == "none":
            changes = {"column_graph": None, "column_smoothness": None, "diffusion": None}
        elif kind != "true":
            changes = {"column_graph": model.column_graph.rewire([seed, int(kind)])}
        models.append(clone(model).set_params(**changes))
    shares, n = [], X.shape[0]
    for repeat, fold in job[1]:
        held_out = folds(n, n_folds, [seed, repeat])[fold]
        kept = complement(held_out, n)
        prepared = None
        for each in models:
            part = restrict(each, "row", kept, n)
            if prepared is None or model.diffusion is not None:  # smoothed data depend on the graph
                prepared = part.prepared(X[kept], None if design is None else design[kept])
                known = None
                if design is not None and prepared.coding is not None:
                    known = prepared.coding.encode(design[held_out], len(held_out), None)
                share = explained_share(X[held_out], prepared.scaler, "column", known, may_be_constant=True)
            shares.append(share(np.array([module.v.full() for module in part.modules_of(prepared)])))
    return shares


class _Comparison:
    """Fits with different graphs, made as they are needed."""

    def __init__(self, data: Folded, fits: Fits) -> None:
        self._data, self._n_folds, self._executor = data, data[2], fits
        self._shares: dict[Kind, dict[Place, float]] = {}

    def extend(self, kinds: Iterable[Kind], n_repeats: int) -> None:
        """Fit models with these graphs to all folds of so many repeats, unless that was done before.

        A rewired graph is made once, for all folds; others are compared fold by fold: they share a matrix.
        """
        kinds = list(kinds)
        every = [(repeat, fold) for repeat in range(n_repeats) for fold in range(self._n_folds)]
        left = {kind: [place for place in every if place not in self._shares.get(kind, {})] for kind in kinds}
        jobs: list[Job] = [((kind,), places) for kind, places in left.items() if isinstance(kind, int) and places]
        others = [kind for kind in kinds if isinstance(kind, str)]
        places = left[others[0]] if others else []
        shared = len(places) >= _JOBS_PER_THREAD * self._executor.n_parallel
        groups = [others] if shared else [[kind] for kind in others]
        jobs += [(group, [place]) for place in places for group in groups]
        n_fits = lambda job: len(job[0]) * len(job[1])  # noqa: E731
        results = self._executor.map(fit_folds, self._data, jobs, n_fits=n_fits)
        for (graphs, at), found in zip(jobs, results, strict=True):
            pairs = ((kind, place) for place in at for kind in graphs)
            for (kind, place), share in zip(pairs, found, strict=True):
                self._shares.setdefault(kind, {})[place] = share

    @property
    def rewired(self) -> list[Kind]:
        """The numbers of the rewired graphs that were fitted."""
        return [kind for kind in self._shares if isinstance(kind, int)]

    def scores(self, kind: Kind) -> Floats:
        """Shares of the variance explained: (n_repeats, n_folds)."""
        known = self._shares[kind]
        return np.array([known[place] for place in sorted(known)]).reshape(-1, self._n_folds)

    def share(self, kind: Kind) -> float:
        """Their mean; of a graph with fewer repeats than the true one, that of the true one and the mean difference."""
        own, true = self.scores(kind), self.scores("true")
        further = true.mean() - true[: len(own)].mean() if len(own) < len(true) else 0.0
        return float(own.mean() + further)

    def p_none(self) -> float:
        """One-sided paired t-test over folds; repeats reduce the variance of the mean but are no further samples."""
        gains = self.scores("true") - self.scores("none")
        n_folds = gains.shape[1]
        return _upper_tail(gains.mean(), float(gains.std(ddof=1)) / np.sqrt(n_folds), n_folds - 1)

    def p_rewired(self) -> float:
        """One-sided t-test of the graph against the spread of its rewired copies; NaN if none was needed."""
        others = np.array([self.share(kind) for kind in self.rewired])
        if not others.size:
            return np.nan
        spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / others.size)
        return _upper_tail(self.share("true") - others.mean(), spread, others.size - 1)


def _upper_tail(gain: float, spread: float, freedom: int) -> float:
    """P(T >= gain / spread) of Student's t; 1 if nothing varies."""
    from scipy.stats import t

    return float(t.sf(gain / spread, freedom)) if spread > 0 else 1.0
