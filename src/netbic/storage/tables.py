"""Fitted models as tables."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from netbic.arrays import Array
from netbic.estimators import DIAGNOSTIC_NUMBERS, SparseGraphSVD, fitted_model, heaviest, names_of, shared_by

# Columns of the summary that were added later come last.
_LAST: Final = ("genes_up", "genes_down", "label")


def modules_table(model: SparseGraphSVD) -> pd.DataFrame:
    """Members of every module by name, largest absolute weight first.

    Columns are `module`, `axis` (gene or sample), `name`, `weight` and `side`: "up" if the weight is positive, "down"
    if it is negative. In samples with positive weights, genes of the side "up" are above their means and genes of the
    side "down" below; the largest weight of a gene is positive.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> netbic.io.modules_table(model)["axis"].value_counts().to_dict()
    {'gene': 50, 'sample': 50}
    >>> netbic.io.modules_table(model).columns.tolist()
    ['module', 'axis', 'name', 'weight', 'side']
    """
    model = fitted_model(model)
    parts = [pd.DataFrame(columns=["module", "axis", "name", "weight", "side"])]
    for module in range(model.n_components_):
        for axis, vector, names in (
            ("gene", model.components_[module], names_of(model, "columns")),
            ("sample", model.left_vectors_[:, module], names_of(model, "rows")),
        ):
            members = heaviest(vector)
            part = {"module": module, "axis": axis, "name": names[members], "weight": vector[members]}
            parts.append(pd.DataFrame(part | {"side": sides_of(vector[members])}))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def sides_of(weights: Array) -> Array:
    """The side of each member: "up" if its weight is positive, "down" if it is negative, "" if it is zero.

    Examples
    --------
    >>> import numpy as np
    >>> sides_of(np.array([0.5, -0.2, 0.0])).tolist()
    ['up', 'down', '']
    """
    return np.where(weights > 0, "up", np.where(weights < 0, "down", "")).astype(object)


def summary_with(model: SparseGraphSVD, further: pd.DataFrame | None) -> pd.DataFrame:
    """The summary with further columns, a row per module; those of the same name are replaced."""
    summary = summary_table(model)
    if further is None:
        return summary
    last = {name: summary.pop(name) for name in _LAST}
    return summary.assign(**{str(name): column for name, column in further.items()}).assign(**last)


def summary_table(model: SparseGraphSVD) -> pd.DataFrame:
    """A row per module: singular value, sizes, variance explained, edges inside, diagnostics, top genes, sides, label.

    `genes_up` and `genes_down` are the numbers of genes with positive and with negative weights. `label` counts from 1
    ("module 1"), like everything that people read; `module` and other columns with numbers of modules count from 0. If
    the model was fitted to several studies, `studies` says where each module lives: "shared by 2 of 4 studies (a, b)".
    """
    model = fitted_model(model)
    genes = names_of(model, "columns")
    graph = model.graphs_["columns"]
    studies = {} if model.studies_ is None else {"studies": shared_by(model.studies_)}
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
            **studies,
            "top_genes": [", ".join(map(str, genes[heaviest(vector)[:5]])) for vector in model.components_],
            "genes_up": (model.components_ > 0).sum(axis=1),
            "genes_down": (model.components_ < 0).sum(axis=1),
            "label": [f"module {module + 1}" for module in range(model.n_components_)],
        }
    )
