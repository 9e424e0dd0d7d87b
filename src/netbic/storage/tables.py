"""Fitted models as tables."""

from __future__ import annotations

import pandas as pd

from netbic.estimators import SparseGraphSVD, fitted_model, heaviest, matched_graph, names_of


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
