"""Whether a graph helps to explain samples that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone

from netbic.arrays import Array, Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators import SparseGraphSVD, axis_names, check_count, training_design, unwrapped
from netbic.selection.finished import Finished, Progress, tracked
from netbic.selection.fits import Jobs, quiet
from netbic.selection.graph_comparison import FoldFitter, GraphComparison, n_fits_of
from netbic.selection.resampling import (
    draw_seed,
    fallback_penalties,
    fitted_to,
    graphs_by_position,
    seeded,
)

_LEVEL = 0.05
# Repeats after which the comparison with no graph may end, and p-values above which it does. This can only lower the
# level. Of 279 graphs that were better than none after four repeats in simulations, 2 were lost.
_LOOKS_AT_NONE = ((1, 0.2), (2, 0.12), (3, 0.08))
_CLEAR, _FUTILE = 0.001, 0.5  # p-values at which the comparison with rewired graphs ends early
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
        `graph` ("true", "none" or "rewired"), `share`, the variance of held-out samples explained, mean over folds,
        `overlap`, the mean Jaccard index of the features of matched modules of successive folds, and `n_fits`, the
        number of folds. The overlap is not used in the decision: any graph increases it, also in noise. If a graph was
        fitted to fewer folds than the true one, its `share` is that of the true one plus the mean difference of both on
        these folds.
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
    progress: Progress | None = None,
    finished: Finished | None = None,
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
        With a `column_graph`, which it uses as a graph term or for `diffusion` (give a number: "cv" would choose it
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
        Make no further fits when the answer is known. After one, two or three repeats, the comparison with no graph
        ends if the gain is far from significant (p > 0.2, 0.12 or 0.08), which can only lower the level; in simulations
        it misses 1 % of the graphs that all repeats find better than none. Rewired graphs are not needed if the graph
        is not better than none. Otherwise, five of them with one repeat, five or ten with all repeats are enough if
        the graph is clearly better (p <= 0.001) or not at all (p > 0.5): the level of 0.05 becomes at most 0.053.
    progress : function, optional
        Called after each fit, in the calling thread, with the number of finished fits and the number of all fits, as
        far as it is known: it may increase, and the last fits may not be needed.
    finished : mutable mapping, optional
        Results of finished fits: those in it are not computed again, others are added. If it is stored somewhere, an
        interrupted computation can be continued; data and parameters must then be the same.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over folds and graphs (default: all cores, unless X is small), or the workers of the current Dask
        client; the result does not depend on it.

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
    executor = tracked(X, n_jobs, f"graph_value {unwrapped(model).diffusion}", progress, finished, n_fits_of)
    seed = draw_seed(random_state)
    design = training_design(unwrapped(model), X, covariates)
    fitter = FoldFitter(*_by_position(seeded(unwrapped(model), seed), X), n_folds, seed, design)
    comparison = GraphComparison(fitter, executor)
    with quiet():
        if early_stopping:
            _decide(comparison, n_rewired, n_repeats)
        else:
            comparison.extend(("true", "none", *range(n_rewired)), n_repeats)
        degree = _degree_correlation(fitter.model, fitter.X, design)
    kinds = ["true", "none", *comparison.rewired()]
    table = pd.DataFrame(
        {
            "graph": [kind if isinstance(kind, str) else "rewired" for kind in kinds],
            "share": [comparison.share(kind) for kind in kinds],
            "overlap": [comparison.overlap(kind) for kind in kinds],
            "n_fits": [comparison.scores(kind).size for kind in kinds],
        }
    )
    p_none, p_rewired = _p_none(comparison), _p_rewired(comparison)
    return GraphValue(p_rewired <= _LEVEL and p_none <= _LEVEL, p_rewired, p_none, table, degree)


def _by_position(model: SparseGraphSVD, X: Matrix) -> tuple[SparseGraphSVD, Array]:
    """The model, its graphs matched to X by position, and the values of X."""
    if model.column_graph is None:
        raise ValueError("the model has no column_graph to test: set column_graph")
    X = checked(X, missing=model.missing)
    values: Matrix = X.tocsr() if is_sparse(X) else np.asarray(X)
    graphs = graphs_by_position(model.get_params(deep=False), values.shape, axis_names(X))
    return model.set_params(n_jobs=None, **fallback_penalties(model) | graphs), values


def _decide(comparison: GraphComparison, n_rewired: int, n_repeats: int) -> None:
    """Make as many fits as are needed for the answer."""
    for repeats, futile in (*(look for look in _LOOKS_AT_NONE if look[0] < n_repeats), (n_repeats, _LEVEL)):
        comparison.extend(("true", "none"), repeats)
        if _p_none(comparison) > futile:
            return
    looks = [look for look in ((5, 1), (5, n_repeats), (10, n_repeats)) if look[0] < n_rewired]
    for number, repeats in (*looks, (n_rewired, n_repeats)):
        comparison.extend(range(number), repeats)
        if not _CLEAR < _p_rewired(comparison) <= _FUTILE:
            return


def _p_none(comparison: GraphComparison) -> float:
    return _against_none(comparison.scores("true"), comparison.scores("none"))


def _p_rewired(comparison: GraphComparison) -> float:
    """NaN if no rewired graph was needed."""
    others = np.array([comparison.share(kind) for kind in comparison.rewired()])
    return _against_rewired(comparison.share("true"), others) if others.size else np.nan


def _against_rewired(own: float, others: Floats) -> float:
    """One-sided t-test of one value against a sample of others."""
    spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / others.size)
    if not spread > 0:
        return 1.0
    return float(stats.t.sf((own - others.mean()) / spread, others.size - 1))


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
