"""Fitted models as tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from netbic.estimators import DIAGNOSTIC_NUMBERS, SparseGraphSVD, fitted_model, heaviest, names_of


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
    model = fitted_model(model)
    parts = [pd.DataFrame(columns=["module", "axis", "name", "weight"])]
    for module in range(model.n_components_):
        for axis, vector, names in (
            ("gene", model.components_[module], names_of(model, "columns")),
            ("sample", model.left_vectors_[:, module], names_of(model, "rows")),
        ):
            members = heaviest(vector)
            part = {"module": module, "axis": axis, "name": names[members], "weight": vector[members]}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def summary_table(model: SparseGraphSVD) -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, edges inside, diagnostics, top genes."""
    model = fitted_model(model)
    genes = names_of(model, "columns")
    graph = model.graphs_["columns"]
    return pd.DataFrame(
        {
            "module": np.arange(model.n_components_),
            "singular_value": model.singular_values_,
            "n_genes": model.columns_.sum(axis=1),
            "n_samples": model.rows_.sum(axis=1),
            "explained_variance_ratio": model.explained_variance_ratio_,
            "n_edges": [0 if graph is None else graph.subgraph(members).n_edges for members in model.columns_],
            "graph_share": model.graph_share_,
            "rounds": [len(trace) for trace in model.objectives_],
            "converged": model.converged_,
            **{name: model.diagnostics_[name].to_numpy() for name in DIAGNOSTIC_NUMBERS},
            "top_genes": [", ".join(map(str, genes[heaviest(vector)[:5]])) for vector in model.components_],
        }
    )
