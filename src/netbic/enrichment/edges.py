"""Edge enrichment: whether members of a module are joined more often than a random set of that size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, hypergeom
from sklearn.utils.validation import check_is_fitted

from netbic.decomposition import SparseGraphSVD
from netbic.graphs import Graph, match

NULLS = ("hypergeometric",)


def edges(
    modules: Any, graph: Any, *, null: str = "hypergeometric", axis: str = "columns", random_state: Any = None
) -> pd.DataFrame:
    """Test modules for more edges of `graph` than expected.

    Parameters
    ----------
    modules : fitted model, or list of index arrays, boolean masks or node names
    graph : graph-like
        All its nodes, isolated ones included, are the universe. With a fitted model it is first matched to the
        features (or samples) the model was fitted to, which then are the universe.
    null : {"hypergeometric"}
        The paper's: the module's pairs of nodes as draws without replacement from all pairs. Beware that it is circular
        on the graph a model was fitted with, and that it takes a set of hubs for a coherent module.
    axis : {"columns", "rows"}
        Which side of a fitted model to test.
    random_state : ignored
        For nulls that draw.

    Returns
    -------
    DataFrame
        Columns `module`, `n_nodes`, `n_edges`, `expected`, `fold_change`, `p_value` (right tail), `q_value`
        (Benjamini-Hochberg over the modules). A module of fewer than two nodes has no pairs: `fold_change` is NaN and
        `p_value` 1.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> triangle_and_point = np.zeros((4, 4))
    >>> triangle_and_point[:3, :3] = 1 - np.eye(3)
    >>> table = netbic.enrichment.edges([[0, 1, 2]], triangle_and_point)
    >>> table[["n_edges", "expected", "fold_change", "p_value"]].iloc[0].round(12).tolist()
    [3.0, 1.5, 2.0, 0.05]
    """
    if null not in NULLS:
        raise ValueError(f"null={null!r} is not known: choose one of {', '.join(map(repr, NULLS))}")
    graph, sets = _graph_and_sets(modules, graph, axis)
    members = [_as_mask(module, graph) for module in sets]
    n_pairs = graph.n_nodes * (graph.n_nodes - 1) // 2
    rows = [_test(mask, graph, n_pairs) for mask in members]
    table = pd.DataFrame(rows, columns=["n_nodes", "n_edges", "expected", "fold_change", "p_value"])
    table.insert(0, "module", np.arange(len(table)))
    table["q_value"] = false_discovery_control(table["p_value"]) if len(table) else []
    return table


def _test(mask: NDArray[np.bool_], graph: Graph, n_pairs: int) -> tuple[int, int, float, float, float]:
    size = int(mask.sum())
    inside = int(graph.weights[mask][:, mask].nnz // 2)
    own_pairs = size * (size - 1) // 2
    expected = own_pairs * graph.n_edges / n_pairs if n_pairs else 0.0
    fold_change = inside / expected if expected else np.nan
    p_value = float(hypergeom.sf(inside - 1, n_pairs, graph.n_edges, own_pairs)) if own_pairs else 1.0
    return size, inside, expected, fold_change, p_value


def _graph_and_sets(modules: Any, graph: Any, axis: str) -> tuple[Graph, list[Any]]:
    """The modules as a list, and the graph in the order they are counted in."""
    if axis not in ("columns", "rows"):
        raise ValueError(f"axis={axis!r} is not known: choose 'columns' or 'rows'")
    if isinstance(modules, SparseGraphSVD):
        check_is_fitted(modules)
        masks = getattr(modules, f"{axis}_")
        return match(graph, masks.shape[1], modules.names_[axis], axis.removesuffix("s")), list(masks)
    if isinstance(modules, np.ndarray) and modules.ndim == 1 and modules.dtype != object:
        raise ValueError(f"modules is an array of shape {modules.shape}: give a list of modules, e.g. [members]")
    return Graph.of(graph), list(modules)


def _as_mask(module: Any, graph: Graph) -> NDArray[np.bool_]:
    """Members of one module as a mask over the graph's nodes."""
    members = np.asarray(module)
    mask = np.zeros(graph.n_nodes, dtype=bool)
    if members.dtype == bool:
        if members.shape != mask.shape:
            raise ValueError(f"a module's mask has length {members.size} but the graph has {graph.n_nodes} nodes")
        return members
    if members.dtype.kind in "OUS" and members.size:
        members = _positions(members, graph)
    if members.size and not np.issubdtype(members.dtype, np.integer):
        raise ValueError(f"module members are of type {members.dtype}: give positions, names or a boolean mask")
    outside = members[(members < 0) | (members >= graph.n_nodes)] if members.size else members
    if outside.size:
        raise ValueError(f"a module has member {outside[0]} but the graph has nodes 0 to {graph.n_nodes - 1}")
    mask[members.astype(np.intp)] = True
    return mask


def _positions(names: NDArray[Any], graph: Graph) -> NDArray[np.intp]:
    if graph.names is None:
        raise ValueError("modules are given by name but the graph has no node names: make it with names=...")
    names = names.astype(object)
    found = pd.Index(graph.names).get_indexer(pd.Index(names))
    if (found < 0).any():
        raise ValueError(
            f"module member {names[int(np.argmin(found))]!r} is not a node of the graph: drop or rename it"
        )
    return np.asarray(found)
