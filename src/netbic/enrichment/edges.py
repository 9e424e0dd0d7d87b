"""Edge enrichment: whether members of a module are joined more often than chance would have it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, hypergeom
from sklearn.base import clone

from netbic.arrays import checked
from netbic.enrichment.masks import Masks, graph_and_masks, refuse_dask
from netbic.enrichment.nulls import degree_matched_counts, edges_inside, rewired_counts, without_peers
from netbic.estimators import SparseGraphSVD, axis_names, check_count, unwrapped
from netbic.graphs import Graph, match

NULLS = ("hypergeometric", "degree", "rewired")
_DRAWS = {"degree": 999, "rewired": 99}
_MOSTLY_ITSELF = 0.5


def edges(
    modules: Any,
    graph: Any,
    *,
    null: str = "hypergeometric",
    axis: str = "columns",
    random_state: Any = None,
    n_draws: int | None = None,
) -> pd.DataFrame:
    """Test modules for more edges of `graph` than expected.

    Parameters
    ----------
    modules : fitted model, or list of index arrays, boolean masks or node names
    graph : graph-like
        All its nodes, isolated ones included, are the universe. With a fitted model it is first matched to the
        features (or samples) the model was fitted to, which then are the universe.
    null : {"hypergeometric", "degree", "rewired"}
        "hypergeometric", the paper's: the module's pairs of nodes as draws without replacement from all pairs. It takes
        any set of hubs for a coherent module. "degree": random sets with as many nodes of every degree (in bins 15 %
        wide; a hub without peers stands for itself). "rewired": the same sets in rewired graphs, in which every node
        keeps its number of neighbours. All three are circular on the graph a model was fitted with: see
        `held_out_edges`, and what a fit to shuffled data gives.
    axis : {"columns", "rows"}
        Which side of a fitted model to test.
    random_state : None, int or numpy.random.Generator
        For the nulls that draw.
    n_draws : int, optional
        Random sets (999) or rewired graphs (99) to compare with. No p-value is below 1 / (n_draws + 1).

    Returns
    -------
    DataFrame
        Columns `module`, `n_nodes`, `n_edges`, `expected`, `fold_change`, `p_value` (right tail), `q_value`
        (Benjamini-Hochberg over the modules). A module of fewer than two nodes has no pairs: `fold_change` is NaN and
        `p_value` 1. Where nothing is expected and something found, `fold_change` is infinite.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> triangle_and_point = np.zeros((4, 4))
    >>> triangle_and_point[:3, :3] = 1 - np.eye(3)
    >>> table = netbic.enrichment.edges([[0, 1, 2]], triangle_and_point)
    >>> table[["n_edges", "expected", "fold_change", "p_value"]].iloc[0].round(12).tolist()
    [3.0, 1.5, 2.0, 0.05]
    """
    _check_null(null, n_draws)
    graph, masks = graph_and_masks(modules, graph, axis)
    return _tested(masks, graph, null, random_state, n_draws)


def _check_null(null: str, n_draws: int | None) -> None:
    if null not in NULLS:
        raise ValueError(f"null={null!r} is not known: choose one of {', '.join(map(repr, NULLS))}")
    if n_draws is not None:
        check_count("n_draws", n_draws)


def held_out_edges(
    model: SparseGraphSVD,
    X: Any,
    graph: Any = None,
    *,
    share: float = 0.1,
    null: str = "degree",
    random_state: Any = None,
    n_draws: int | None = None,
    shuffled: bool = False,
) -> pd.DataFrame:
    """Fit on part of a graph's edges and test modules for the edges that were hidden.

    The hidden edges had no say in the fit. But graphs are clustered, so that known edges tell something of hidden ones
    even where the data tell nothing: set the answer beside that on `shuffled` data.

    Parameters
    ----------
    model : SparseGraphSVD
        How to fit; a clone of it is fitted, with what is left of the graph as its `column_graph`.
    X : matrix
        In memory.
    graph : graph-like, optional
        Default: the model's `column_graph`.
    share : float
        Share of the edges to hide.
    null, random_state, n_draws
        See `edges`; the null's degrees are those of the hidden edges.
    shuffled : bool
        Shuffle the entries of every column of X first: what the graph alone brings about.

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
    _check_null(null, n_draws)
    if not 0 < share < 1:
        raise ValueError(f"share={share!r}: a number between 0 and 1 is needed")
    refuse_dask(X)
    model = unwrapped(model)
    source = model.column_graph if graph is None else graph
    if source is None:
        raise ValueError("there is no graph whose edges could be hidden: give one")
    generator = np.random.default_rng(random_state)
    names = axis_names(X)[1]
    X = np.asarray(checked(X, missing=model.missing))
    known, hidden = split_edges(match(source, X.shape[1], names, "column"), share, generator)
    if not hidden.n_edges:
        raise ValueError(f"share={share} of {known.n_edges} edges hides none: hide more")
    values = generator.permuted(X, axis=0) if shuffled else X
    fitted = clone(model).set_params(column_graph=Graph(known.weights)).fit(values)
    return _tested(fitted.columns_, hidden, null, generator, n_draws)


def split_edges(graph: Graph, share: float, random_state: Any) -> tuple[Graph, Graph]:
    """Two graphs on the same nodes: one without a random share of the edges, one with those only."""
    generator = np.random.default_rng(random_state)
    tails, heads, weights = graph.edges()
    out = np.zeros(tails.size, dtype=bool)
    out[generator.permutation(tails.size)[: round(share * tails.size)]] = True
    nodes = np.arange(graph.n_nodes)
    known, hidden = (
        Graph.from_edges(pd.DataFrame({"source": tails[part], "target": heads[part], "weight": weights[part]}), nodes)
        for part in (~out, out)
    )
    names = graph.names
    return Graph(known.weights, names), Graph(hidden.weights, names)


def _tested(masks: Masks, graph: Graph, null: str, random_state: Any, n_draws: int | None) -> pd.DataFrame:
    sizes, counts = masks.sum(axis=1), edges_inside(masks, graph)
    if null == "hypergeometric":
        expected, p_values = _hypergeometric(sizes, counts, graph)
    else:
        if null == "degree":
            _note_missing_peers(masks, graph)
        draw = degree_matched_counts if null == "degree" else rewired_counts
        chance = draw(masks, graph, n_draws or _DRAWS[null], random_state)
        expected = chance.mean(axis=1)
        p_values = (1 + (chance >= counts[:, None]).sum(axis=1)) / (1 + chance.shape[1])
    table = pd.DataFrame({"module": np.arange(len(masks)), "n_nodes": sizes, "n_edges": counts, "expected": expected})
    with np.errstate(divide="ignore", invalid="ignore"):
        table["fold_change"] = np.where(sizes > 1, counts / expected, np.nan)
    table["p_value"] = np.where(sizes > 1, p_values, 1.0)
    table["q_value"] = false_discovery_control(table["p_value"]) if len(table) else []
    return table


def _note_missing_peers(masks: Masks, graph: Graph) -> None:
    """Say so where a module can only be compared with itself."""
    alike = np.flatnonzero(without_peers(masks, graph) > _MOSTLY_ITSELF)
    if alike.size:
        others = f" and {alike.size - 1} others" if alike.size > 1 else ""
        warnings.warn(
            f"most nodes of module {alike[0]}{others} have no other node of their degree to be compared with: "
            "null='degree' cannot judge such modules",
            stacklevel=4,
        )


def _hypergeometric(sizes: NDArray[Any], counts: NDArray[Any], graph: Graph) -> tuple[NDArray[Any], NDArray[Any]]:
    """The paper's test: FC = (m / (n choose 2)) / (M / (N choose 2)), and the right tail."""
    n_pairs, own_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2, sizes * (sizes - 1) // 2
    expected = own_pairs * (graph.n_edges / n_pairs if n_pairs else 0.0)
    return expected, np.asarray(hypergeom.sf(counts - 1, n_pairs, graph.n_edges, own_pairs))
