"""What a graph is worth: does it help to explain samples that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone

from netbic.arrays import checked
from netbic.estimators import SparseGraphSVD, axis_names, check_count, refuse_anndata, unwrapped
from netbic.graphs import Graph, match
from netbic.selection.fits import Jobs, fitters, quiet
from netbic.selection.resampling import Floats, HeldOut, held_out_scores, seeded

_LEVEL = 0.05
_MUCH_DEGREE = 0.3  # rank correlation of membership and degree above which a module is called hub-driven


@dataclass(frozen=True)
class GraphValue:
    """What a graph is worth on samples that were not fitted.

    Attributes
    ----------
    helps : bool
        Whether the graph beats both its rewired copies and no graph at all.
    p_rewired, p_none : float
        One-sided p-values of the two comparisons.
    table : DataFrame
        `graph` ("true", "none" or "rewired"), `share`, the variance of held-out samples explained, mean over folds, and
        `overlap`, how alike the modules of two folds are (Jaccard index of their features, matched). The overlap does
        not decide: any graph raises it, on noise as well.
    degree : DataFrame
        Per module of a fit to all samples: `correlation` of membership with degree (Spearman), and whether it `tracks`
        degree (above .3).
    """

    helps: bool
    p_rewired: float
    p_none: float
    table: pd.DataFrame
    degree: pd.DataFrame

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        shares = self.table.groupby("graph")["share"].mean()
        seen = ", ".join(f"{shares[name]:.4f} {word}" for name, word in _WORDS.items())
        seen = f"variance of unseen samples: {seen}; p = {self.p_rewired:.2g} and {self.p_none:.2g}"
        if self.helps:
            return f"The graph helps, by its structure ({seen})."
        if self.p_none > _LEVEL:
            gains = shares["true"] > shares["none"]
            why = "what it gains over none could be chance" if gains else "modules found without it do as well"
            return f"No evidence that the graph helps: on unseen samples {why} ({seen})."
        return f"No evidence that the graph's structure helps: rewired graphs do as well on unseen samples ({seen})."


_WORDS = {"true": "with it", "rewired": "rewired", "none": "without"}


def graph_value(
    model: SparseGraphSVD,
    X: Any,
    *,
    n_rewired: int = 19,
    n_folds: int = 5,
    n_repeats: int = 4,
    random_state: Any = None,
    n_jobs: Jobs = None,
) -> GraphValue:
    """Ask whether a model's `column_graph` helps to explain samples that were not fitted.

    It helps only if it beats graphs in which every node keeps its number of neighbours (a t-test of the graph against
    the spread of its rewired copies) and also no graph at all (a paired t-test over folds). Each half alone misleads:
    hubs make any graph look useful, and a graph that points at the wrong genes still beats its rewired copies.

    Parameters
    ----------
    model : SparseGraphSVD
        With a `column_graph`; clones of it are fitted, (n_rewired + 2) * n_folds * n_repeats of them.
    X : array, DataFrame or sparse matrix
    n_rewired : int
        Rewired graphs to compare with, at least 3; 19 are a fair number.
    n_folds, n_repeats : int
        Folds of held-out samples, and how often samples are dealt into folds.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over graphs, or the workers of the present Dask client; the answer does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 1000, n_modules=3, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_rows=40, n_columns=60, column_graph=study.network)
    >>> value = netbic.selection.graph_value(model, study.expression, n_rewired=9, n_repeats=2, random_state=0)
    >>> value.helps, value.verdict.split(" (")[0]
    (True, 'The graph helps, by its structure')
    """
    refuse_anndata(X)
    for name, number in (("n_rewired", n_rewired), ("n_folds", n_folds), ("n_repeats", n_repeats)):
        check_count(name, number)
    if n_rewired < 3:
        raise ValueError(f"n_rewired={n_rewired}: at least 3 are needed to see how much rewired graphs differ")
    workers = fitters(X, n_jobs)
    seed = int(np.random.default_rng(random_state).integers(2**31))
    model = seeded(unwrapped(model), seed)
    graph, values = _graph_and_values(model, X)
    contest = _Contest(model, graph, values, n_folds, n_repeats, seed)
    with quiet():
        found = list(workers.each(_Contest.scores, contest, ["true", "none", *range(n_rewired)]))
        degree = degree_tracking(model, values, graph)
    own, none, *rewired = (each.scores for each in found)
    p_rewired, p_none = _against_rewired(own, rewired), _against_none(own, none)
    table = pd.DataFrame(
        {
            "graph": ["true", "none", *["rewired"] * n_rewired],
            "share": [each.scores.mean() for each in found],
            "overlap": [each.overlap for each in found],
        }
    )
    helps = p_rewired <= _LEVEL and p_none <= _LEVEL
    return GraphValue(helps, p_rewired, p_none, table, degree)


@dataclass(frozen=True)
class _Contest:
    """A graph, and what it and its rivals are judged by."""

    model: SparseGraphSVD
    graph: Graph
    X: Any
    n_folds: int
    n_repeats: int
    seed: int

    def scores(self, rival: str | int) -> HeldOut:
        """Of the graph itself ("true"), of none ("none"), or of a rewired one, by its number."""
        words: dict[str, Any] = {"column_graph": self.graph, "n_jobs": None}
        if rival == "none":
            words |= {"column_graph": None, "column_smoothness": None}
        elif rival != "true":
            words["column_graph"] = self.graph.rewire([self.seed, int(rival)])
        return held_out_scores(clone(self.model).set_params(**words), self.X, self.n_folds, self.n_repeats, self.seed)


def _graph_and_values(model: SparseGraphSVD, X: Any) -> tuple[Graph, NDArray[Any]]:
    """The columns' graph and the values of X, by position; the model's row graph too is matched by name here."""
    if model.column_graph is None:
        raise ValueError("the model has no column_graph whose worth could be judged: give it one")
    X = checked(X, missing=model.missing)
    is_sparse: bool = sp.issparse(X)
    values: Any = X.tocsr() if is_sparse else np.asarray(X)
    row_names, column_names = axis_names(X)
    if model.row_graph is not None:
        model.set_params(row_graph=Graph(match(model.row_graph, values.shape[0], row_names, "row").weights))
    return Graph(match(model.column_graph, values.shape[1], column_names, "column").weights), values


def _against_rewired(own: Floats, rewired: list[Floats]) -> float:
    """One-sided t-test of one value against a sample of others."""
    others = np.array([scores.mean() for scores in rewired])
    spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / others.size)
    if not spread > 0:
        return 1.0
    return float(stats.t.sf((own.mean() - others.mean()) / spread, others.size - 1))


def _against_none(own: Floats, none: Floats) -> float:
    """One-sided paired t-test over folds; repeats make the mean steadier but count as no further samples."""
    gains = own - none
    n_folds = gains.shape[1]
    spread = float(gains.std(ddof=1)) / np.sqrt(n_folds)
    if not spread > 0:
        return 1.0
    return float(stats.t.sf(gains.mean() / spread, n_folds - 1))


def degree_tracking(model: SparseGraphSVD, X: NDArray[Any], graph: Graph) -> pd.DataFrame:
    """Per module of a fit to all samples, how far its membership follows degree: `module`, `correlation`, `tracks`."""
    fitted = clone(model).set_params(column_graph=graph).fit(X)
    rows = []
    for module, mask in enumerate(fitted.columns_):
        constant = mask.all() or not mask.any() or np.ptp(graph.degrees) == 0
        correlation = 0.0 if constant else float(stats.spearmanr(mask, graph.degrees).statistic)
        rows.append((module, correlation, correlation > _MUCH_DEGREE))
    return pd.DataFrame(rows, columns=["module", "correlation", "tracks"])
