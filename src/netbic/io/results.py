"""Fitted models as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.decomposition import SparseGraphSVD, axis_names
from netbic.io.state import fitted_model, matched_graph


def modules_table(model: SparseGraphSVD) -> pd.DataFrame:
    """Members of every module by name: columns `module`, `axis` (gene or sample), `name`, `weight`, heaviest first.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> netbic.io.modules_table(model)["axis"].value_counts().to_dict()
    {'gene': 50, 'sample': 50}
    """
    model, parts = fitted_model(model), []
    for module in range(model.n_components_):
        for axis, vector, names in (
            ("gene", model.components_[module], names_of(model, "columns")),
            ("sample", model.left_vectors_[:, module], names_of(model, "rows")),
        ):
            members = heaviest(vector)
            part = {"module": module, "axis": axis, "name": names[members], "weight": vector[members]}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["module", "axis", "name", "weight"])


def check_same_data(model: SparseGraphSVD, X: Any) -> None:
    """Raise unless X has the shape, and where it has names the names, of the data a model was fitted to."""
    model = fitted_model(model)
    known = (len(model.left_vectors_), int(model.n_features_in_))
    if tuple(X.shape) != known:
        raise ValueError(f"X has shape {tuple(X.shape)} but the modules were found in one of shape {known}: give that")
    for axis, names in zip(("rows", "columns"), axis_names(X), strict=True):
        own = model.names_[axis]
        if names is not None and own is not None and not np.array_equal(names, own):
            raise ValueError(f"the {axis} of X are others than those of the fit, or in another order: give the same X")


def heaviest(vector: NDArray[Any]) -> NDArray[np.intp]:
    """Places of a module's members, heaviest first."""
    members = np.flatnonzero(vector)
    return members[np.argsort(-np.abs(vector[members]), kind="stable")]


def summary_table(model: SparseGraphSVD) -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, graph share, rounds, edges inside, top genes."""
    model = fitted_model(model)
    genes = names_of(model, "columns")
    edges = _edges_inside(model)
    rows = []
    for module in range(model.n_components_):
        vector = model.components_[module]
        top = heaviest(vector)[:5]
        rows.append(
            {
                "module": module,
                "singular_value": model.singular_values_[module],
                "n_genes": int(model.columns_[module].sum()),
                "n_samples": int(model.rows_[module].sum()),
                "explained_variance_ratio": model.explained_variance_ratio_[module],
                "n_edges": edges[module],
                "graph_share": model.graph_share_[module],
                "rounds": len(model.objectives_[module]),
                "converged": bool(model.converged_[module]),
                "top_genes": ", ".join(map(str, genes[top])),
            }
        )
    return pd.DataFrame(rows, columns=_SUMMARY)


_SUMMARY = ["module", "singular_value", "n_genes", "n_samples", "explained_variance_ratio", "n_edges", "graph_share"]
_SUMMARY += ["rounds", "converged", "top_genes"]


def _edges_inside(model: SparseGraphSVD) -> list[int]:
    """Edges of the genes' graph between members of each module; 0 without a graph."""
    graph = matched_graph(model, "column")
    if graph is None:
        return [0] * model.n_components_
    return [graph.subgraph(members).n_edges for members in model.columns_]


def names_of(model: SparseGraphSVD, axis: str) -> Any:
    """Names of the rows or columns; their numbers where there are none."""
    known = model.names_[axis]
    size = model.left_vectors_.shape[0] if axis == "rows" else model.components_.shape[1]
    return np.arange(size) if known is None else known
