"""Whether a graph helps to explain samples that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone

from netbic.arrays import Array, Bools, Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators import SparseGraphSVD, axis_names, check_count, training_design, unwrapped
from netbic.selection.fits import FitExecutor, Jobs, executor_for, quiet
from netbic.selection.grid import Parameters
from netbic.selection.matching import mean_overlap
from netbic.selection.resampling import (
    complement,
    draw_seed,
    fallback_penalties,
    fitted_to,
    folds,
    graphs_by_position,
    restrict,
    seeded,
)

_LEVEL = 0.05
_LOOKS = (5, 10)  # numbers of rewired graphs after which the comparison may end early
_CLEAR, _FUTILE = 0.001, 0.5  # p-values at which it does; the level becomes at most 0.05 + 2 * 0.001
_HUB_DRIVEN = 0.3  # rank correlation of membership and degree above which a module is called hub-driven


@dataclass(frozen=True)
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
        `overlap`, the mean Jaccard index of the features of matched modules of successive folds. The overlap is not
        used in the decision: any graph increases it, also in noise.
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
        compared = (
            ""
            if np.isnan(self.p_rewired)
            else f"{shares['rewired']:.4f} with rewired graphs (p = {self.p_rewired:.2g}), "
        )
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
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> GraphValue:
    """Test whether a model's `column_graph` helps to explain samples that were not fitted.

    It helps only if it beats graphs in which every node keeps its number of neighbours (a t-test of the graph against
    the spread of its rewired copies) and also no graph at all (a paired t-test over folds). Each comparison alone is
    misleading: hubs make any graph look useful, and a graph that points to the wrong genes still beats its rewired
    copies.

    Parameters
    ----------
    model : SparseGraphSVD
        With a `column_graph`, which it uses as a graph term or for `smoothing` (give a number: "cv" would choose it
        anew in every fit). Clones of it are fitted, at most (n_rewired + 2) * n_folds * n_repeats of them, and judged
        on samples that are not smoothed. Of an `AdaptiveSupport` with a fallback, this size is used.
    X : array, DataFrame or sparse matrix
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into folds together with X. Default: those of the model, if it was fitted to X.
    n_rewired : int
        Rewired graphs to compare with, at least 3.
    n_folds, n_repeats : int
        Folds of held-out samples, and how many times samples are partitioned into folds.
    early_stopping : bool
        Make no further fits when the answer is known: rewired graphs are not needed if the graph is not better than
        none, and fewer of them are enough if the graph is clearly better than five or ten (p <= 0.001) or not at all
        (p > 0.5). The level of 0.05 becomes at most 0.052.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over graphs, or the workers of the current Dask client; the result does not depend on it.

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
    executor, seed = executor_for(X, n_jobs), draw_seed(random_state)
    design = training_design(unwrapped(model), X, covariates)
    comparison = _Comparison(*_by_position(seeded(unwrapped(model), seed), X), n_folds, n_repeats, seed, design)
    with quiet():
        found = comparison.compared(executor, n_rewired, early_stopping)
        degree = _degree_correlation(comparison.model, comparison.X, design)
    table = pd.DataFrame(
        {
            "graph": ["true", "none", *["rewired"] * (len(found) - 2)],
            "share": [each.scores.mean() for each in found],
            "overlap": [each.overlap for each in found],
        }
    )
    p_none, p_rewired = _p_values(found)
    return GraphValue(p_rewired <= _LEVEL and p_none <= _LEVEL, p_rewired, p_none, table, degree)


def _by_position(model: SparseGraphSVD, X: Matrix) -> tuple[SparseGraphSVD, Array]:
    """The model, its graphs matched to X by position, and the values of X."""
    if model.column_graph is None:
        raise ValueError("the model has no column_graph to test: set column_graph")
    X = checked(X, missing=model.missing)
    values: Matrix = X.tocsr() if is_sparse(X) else np.asarray(X)
    graphs = graphs_by_position(model.get_params(deep=False), values.shape, axis_names(X))
    return model.set_params(n_jobs=None, **fallback_penalties(model), **graphs), values


class HeldOut(NamedTuple):
    """Share of the variance of held-out samples explained, (n_repeats, n_folds), and the overlap of successive folds.

    The overlap is the mean Jaccard index of the modules' features, matched one to one.
    """

    scores: Floats
    overlap: float


@dataclass(frozen=True)
class _Comparison:
    """A model with a graph, and the folds on which the graph is compared with others."""

    model: SparseGraphSVD
    X: Matrix
    n_folds: int
    n_repeats: int
    seed: int
    design: Floats | None = None  # covariates, a row per sample

    def compared(self, executor: FitExecutor, n_rewired: int, early_stopping: bool) -> list[HeldOut]:
        """For the graph itself, for none, and for as many rewired ones as are needed."""
        if not early_stopping:
            return list(executor.map(_Comparison.held_out, self, ["true", "none", *range(n_rewired)]))
        found = list(executor.map(_Comparison.held_out, self, ["true", "none"]))
        if _p_values(found)[0] > _LEVEL:
            return found
        for number in (*(look for look in _LOOKS if look < n_rewired), n_rewired):
            found += executor.map(_Comparison.held_out, self, range(len(found) - 2, number))
            if not _CLEAR < _p_values(found)[1] <= _FUTILE:
                break
        return found

    def held_out(self, graph: str | int) -> HeldOut:
        """For the graph itself ("true"), for none ("none"), or for a rewired one, by its number."""
        changes: Parameters = {}
        if graph == "none":
            changes = {"column_graph": None, "column_smoothness": None, "smoothing": None}
        elif graph != "true":
            changes = {"column_graph": self.model.column_graph.rewire([self.seed, int(graph)])}
        model = clone(self.model).set_params(**changes)
        return held_out_scores(model, self.X, self.n_folds, self.n_repeats, self.seed, self.design)


def held_out_scores(
    model: SparseGraphSVD,
    X: Array,
    n_folds: int = 5,
    n_repeats: int = 1,
    seed: int = 0,
    design: Floats | None = None,
) -> HeldOut:
    """How well modules of some samples explain the others, and how similar they are from fold to fold.

    A graph of the rows is restricted to the samples of the fold, and `n_rows` is reduced in proportion. Every repeat is
    another partition; the same seed gives the same folds, so that two models can be compared fold by fold. Effects of
    covariates (`design`) are estimated in the samples of the fold, too.
    """
    scores = np.empty((n_repeats, n_folds))
    overlaps: list[float] = []
    for repeat in range(n_repeats):
        before: Bools | None = None
        for fold, held_out in enumerate(folds(X.shape[0], n_folds, [seed, repeat])):
            kept = complement(held_out, X.shape[0])
            own, other = ({} if design is None else {"covariates": design[part]} for part in (kept, held_out))
            fitted = restrict(model, "row", kept, X.shape[0]).fit(X[kept], **own)
            scores[repeat, fold] = fitted.score(X[held_out], **other)
            overlaps += [] if before is None else [mean_overlap(before, fitted.columns_)]
            before = fitted.columns_
    return HeldOut(scores, float(np.mean(overlaps)))


def _p_values(found: list[HeldOut]) -> tuple[float, float]:
    """Of the comparison of the graph with none, and with rewired ones."""
    own, none, *rewired = (each.scores for each in found)
    return _against_none(own, none), _against_rewired(own, rewired)


def _against_rewired(own: Floats, rewired: list[Floats]) -> float:
    """One-sided t-test of one value against a sample of others; NaN without any."""
    if not rewired:
        return np.nan
    others = np.array([scores.mean() for scores in rewired])
    spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / others.size)
    if not spread > 0:
        return 1.0
    return float(stats.t.sf((own.mean() - others.mean()) / spread, others.size - 1))


def _against_none(own: Floats, none: Floats) -> float:
    """One-sided paired t-test over folds; repeats reduce the variance of the mean but are no further samples."""
    gains = own - none
    n_folds = gains.shape[1]
    spread = float(gains.std(ddof=1)) / np.sqrt(n_folds)
    if not spread > 0:
        return 1.0
    return float(stats.t.sf(gains.mean() / spread, n_folds - 1))


def _degree_correlation(model: SparseGraphSVD, X: Array, design: Floats | None) -> pd.DataFrame:
    """Correlation of membership and degree for each module of a fit to all samples: `GraphValue.degree`."""
    degrees = model.column_graph.degrees
    rows = []
    for module, mask in enumerate(fitted_to(clone(model), X, design).columns_):
        constant = mask.all() or not mask.any() or np.ptp(degrees) == 0
        correlation = 0.0 if constant else float(stats.spearmanr(mask, degrees).statistic)
        rows.append((module, correlation, correlation > _HUB_DRIVEN))
    return pd.DataFrame(rows, columns=["module", "correlation", "tracks"])
