"""Edge enrichment: whether the members of a module are connected by more edges than expected by chance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, hypergeom
from sklearn.base import clone

from netbic.arrays import Bools, Floats, Matrix, RandomState, check_choice, checked, to_dense
from netbic.enrichment.masks import GraphLike, Modules, graph_and_masks, in_order_of, refuse_dask
from netbic.enrichment.nulls import (
    MOSTLY_ITSELF,
    Counts,
    edges_inside,
    matched_counts,
    rewired_counts,
    without_peers,
)
from netbic.enrichment.sequential import sequential_p_values
from netbic.enrichment.traits import Traits, column_traits, matched_on, stored_traits
from netbic.estimators import SparseGraphSVD, axis_names, check_count, covariates_of, fitted_model, is_model, unwrapped
from netbic.graph import Graph, match

NULLS = ("hypergeometric", "degree", "matched", "rewired")
_DRAWS = {"degree": 999, "matched": 999, "rewired": 99}
_ENOUGH = 10  # rewired graphs with as many edges in a module, after which it is not enriched


def edges(
    modules: Modules,
    graph: GraphLike,
    *,
    null: str = "hypergeometric",
    axis: str = "columns",
    X: Matrix | None = None,
    random_state: RandomState = None,
    n_draws: int | None = None,
    early_stopping: bool = True,
) -> pd.DataFrame:
    """Test modules for more edges of `graph` than expected; edges that activate and that inhibit count alike.

    Parameters
    ----------
    modules : fitted model, or list of index arrays, boolean masks or node names
    graph : graph-like
        All its nodes, including isolated ones, are the background. With a fitted model it is first matched to the
        features (or samples) of the model, which are then the background.
    null : {"hypergeometric", "degree", "matched", "rewired"}
        "hypergeometric", as in the paper: the pairs of nodes in the module as draws without replacement from all pairs;
        any set of hubs is then significant. "degree": random sets with the same number of nodes of every degree (in
        bins 15% wide; a hub without nodes of similar degree is always drawn itself). "matched": random sets with the
        same degrees and also the module's distribution of mean and variance, in 20 quantiles each; highly expressed or
        highly variable genes have more edges with each other than their degrees explain, so that a set of them is
        often significant under "degree". Quantiles are wider, or only degrees are matched, where a module has most
        of the nodes of similar mean and variance. It needs X or a model that knows the means or variances of its
        columns; without either it is the same as "degree". "rewired": the same sets in rewired graphs, in which every
        node keeps its number of neighbours. All are circular for the graph with which the model was fitted: see
        `held_out_edges`, and compare with a fit to shuffled data.
    axis : {"columns", "rows"}
        Which side of a fitted model to test.
    X : array, DataFrame, sparse matrix or Dask array, optional
        For null="matched": the data, whose columns (rows, with axis="rows") are the nodes of the graph, by name if both
        have names. Default: what the model stores of its columns (the means if it centred them, the variances if it
        scaled them).
    random_state : None, int or numpy.random.Generator
        For the null models with random draws.
    n_draws : int, optional
        Number of random sets (default 999) or rewired graphs (99). No p-value is below 1 / (n_draws + 1).
    early_stopping : bool
        For null="rewired", which takes most time: make no more draws when ten of them have as many edges as the module,
        for every module. Then p = 10 / l, where l is the draw at which this happens (Besag and Clifford 1991); such
        p-values are valid: without enrichment, P(p <= a) <= a for every a.

    Returns
    -------
    DataFrame
        Columns `module`, `n_nodes`, `n_edges`, `expected`, `fold_change`, `p_value` (right tail), `q_value`
        (Benjamini-Hochberg over the modules), `matched_on` (what random sets have in common with the module: "size",
        "degree" or e.g. "degree, mean, variance"). A module of fewer than two nodes has no pairs: `fold_change` is NaN
        and `p_value` 1. If no edge is expected but some are found, `fold_change` is infinite.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> triangle_and_point = np.zeros((4, 4))
    >>> triangle_and_point[:3, :3] = 1 - np.eye(3)
    >>> table = netbic.enrichment.edges([[0, 1, 2]], triangle_and_point)
    >>> table[["n_edges", "expected", "fold_change", "p_value"]].iloc[0].round(12).tolist()
    [3.0, 1.5, 2.0, 0.05]
    """
    test = EdgeTest(null, n_draws, random_state, _ENOUGH if early_stopping and null == "rewired" else None)
    graph, masks = graph_and_masks(modules, graph, axis)
    model = fitted_model(modules) if is_model(modules) else None
    return test.table(masks, graph, _traits(test, model, graph, axis, X))


def _traits(test: EdgeTest, model: SparseGraphSVD | None, graph: Graph, axis: str, X: Matrix | None) -> Traits:
    """Mean and variance of the nodes of a graph, where they are needed and known."""
    if test.null != "matched":
        if X is not None:
            raise ValueError(f"X is only used by null='matched', but null={test.null!r}: leave it out")
        return {}
    if X is None:
        return stored_traits(model) if model is not None and axis == "columns" else {}
    if axis == "rows":
        refuse_dask(X)
        X = X.T
    if (names := graph.names if model is None else model.names_[axis]) is not None:
        X = in_order_of(names, X, "graph's nodes" if model is None else "model's features")
    if X.shape[1] != graph.n_nodes:
        raise ValueError(f"X has {X.shape[1]} {axis} but the graph has {graph.n_nodes} nodes: give those, in its order")
    return column_traits(X)


def held_out_edges(
    model: SparseGraphSVD,
    X: Matrix,
    graph: GraphLike = None,
    *,
    share: float = 0.1,
    null: str = "matched",
    random_state: RandomState = None,
    n_draws: int | None = None,
    shuffled: bool = False,
) -> pd.DataFrame:
    """Fit with part of a graph's edges and test modules for the edges that were held out.

    The held-out edges are not used in the fit. But graphs are clustered, so that known edges predict held-out ones even
    if the data are uninformative: compare the result with that on `shuffled` data.

    Parameters
    ----------
    model : SparseGraphSVD
        A clone of it is fitted, with the remaining edges as its `column_graph`, and with the covariates of the model if
        it was fitted to X with any.
    X : array, DataFrame or sparse matrix
        A sparse matrix is made dense.
    graph : graph-like, optional
        Default: the model's `column_graph`.
    share : float
        Share of the edges to hold out.
    null, random_state, n_draws
        See `edges`; degrees are counted in the graph of held-out edges, means and variances are those of X.
    shuffled : bool
        Shuffle the entries of every column of X first, which shows the effect of the graph alone.

    Returns
    -------
    DataFrame
        As `edges`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 1500, n_modules=3, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_rows=40, n_columns=60, column_graph=study.network)
    >>> found, chance = (
    ...     netbic.enrichment.held_out_edges(model, study.expression, share=0.3, random_state=1, shuffled=shuffled)
    ...     for shuffled in (False, True)
    ... )
    >>> bool((found["p_value"] < 0.01).all()), bool((chance["p_value"] < 0.01).any())
    (True, False)
    """
    generator = np.random.default_rng(random_state)
    test = EdgeTest(null, n_draws, generator)
    if not 0 < share < 1:
        raise ValueError(f"share={share!r}: a number between 0 and 1 is needed")
    refuse_dask(X)
    model = unwrapped(model)
    source = model.column_graph if graph is None else graph
    if source is None:
        raise ValueError("there is no graph whose edges could be held out: give one")
    names, covariates = axis_names(X)[1], covariates_of(model, X)
    X = to_dense(checked(X, missing=model.missing))
    known, held_out = split_edges(match(source, X.shape[1], names, "column"), share, generator)
    if not held_out.n_edges:
        raise ValueError(f"share={share} of {known.n_edges} edges is less than one edge: choose a larger share")
    values = generator.permuted(X, axis=0) if shuffled else X
    fitted = clone(model).set_params(column_graph=known.renamed(None))
    fitted = fitted.fit(values) if covariates is None else fitted.fit(values, covariates=covariates)
    return test.table(fitted.columns_, held_out, column_traits(X) if null == "matched" else {})


def split_edges(graph: Graph, share: float, random_state: RandomState) -> tuple[Graph, Graph]:
    """Two graphs on the same nodes: one without a random share of the edges, one with only those."""
    generator = np.random.default_rng(random_state)
    tails, heads, weights = graph.edges()
    held_out = np.zeros(tails.size, dtype=bool)
    held_out[generator.permutation(tails.size)[: round(share * tails.size)]] = True
    table = pd.DataFrame({"source": tails, "target": heads, "weight": weights})
    parts = (Graph.from_edges(table[part], np.arange(graph.n_nodes), signed=True) for part in (~held_out, held_out))
    known, hidden = (part.renamed(graph.names) for part in parts)
    return known, hidden


@dataclass(frozen=True)
class EdgeTest:
    """A null model and how to draw from it."""

    null: str
    n_draws: int | None
    random_state: RandomState
    enough: int | None = None  # draws with as many edges as a module, after which no more are needed

    def __post_init__(self) -> None:
        check_choice("null", self.null, NULLS)
        if self.n_draws is not None:
            check_count("n_draws", self.n_draws)

    def table(self, masks: Bools, graph: Graph, traits: Traits) -> pd.DataFrame:
        """Test the modules: what `edges` returns. The traits of the nodes are for null="matched"."""
        sizes, counts = masks.sum(axis=1), edges_inside(masks, graph)
        similar: Any = "size"
        if self.null == "hypergeometric":
            expected, p_values = _hypergeometric(masks, graph, counts)
        else:
            by_chance, matched = self._drawn(masks, graph, traits)
            similar = np.where(matched, matched_on(traits), "degree")
            expected = by_chance.mean(axis=1)
            p_values = sequential_p_values(counts, by_chance, self.n_draws or _DRAWS[self.null], self.enough)
        table = pd.DataFrame(
            {"module": np.arange(len(masks)), "n_nodes": sizes, "n_edges": counts, "expected": expected}
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            table["fold_change"] = np.where(sizes > 1, counts / expected, np.nan)
        table["p_value"] = np.where(sizes > 1, p_values, 1.0)
        table["q_value"] = false_discovery_control(table["p_value"]) if len(table) else []
        table["matched_on"] = similar
        return table

    def _drawn(self, masks: Bools, graph: Graph, traits: Traits) -> tuple[Counts, Bools]:
        """Numbers of edges by chance, a column per draw; and which modules were matched on the traits."""
        n_draws = self.n_draws or _DRAWS[self.null]
        if self.null == "rewired":
            counts = rewired_counts(masks, graph, n_draws, self.random_state, self.enough)
            return counts, np.zeros(len(masks), dtype=bool)
        counts, matched = matched_counts(masks, graph, list(traits.values()), n_draws, self.random_state)
        _warn_of_missing_peers(np.where(matched, 0.0, without_peers(masks, graph)), self.null)
        return counts, matched


def _hypergeometric(masks: Bools, graph: Graph, counts: Counts) -> tuple[Floats, Floats]:
    """The paper's test: FC = (m / (n choose 2)) / (M / (N choose 2)), and the right tail."""
    sizes = masks.sum(axis=1)
    n_pairs, own_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2, sizes * (sizes - 1) // 2
    expected = own_pairs * (graph.n_edges / n_pairs if n_pairs else 0.0)
    return expected, np.asarray(hypergeom.sf(counts - 1, n_pairs, graph.n_edges, own_pairs))


def _warn_of_missing_peers(own: Floats, null: str) -> None:
    """Warn of modules that can only be compared with themselves, given the share of their own nodes in random sets."""
    unmatched = np.flatnonzero(own > MOSTLY_ITSELF)
    if unmatched.size:
        others = f" and {unmatched.size - 1} others" if unmatched.size > 1 else ""
        warnings.warn(
            f"most nodes of module {unmatched[0]}{others} have no other node of similar degree to be compared with: "
            f"null={null!r} cannot test such modules",
            stacklevel=5,
        )
