"""Fits of two matrices whose names are known; sparse matrices cannot carry them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, Matrix
from netbic.estimators import SparseGraphCCA, SparseGraphPLS
from netbic.graph import Graph


def fit_by_name(
    model: SparseGraphPLS | SparseGraphCCA, X: Matrix, Y: Matrix, samples: Any, x_names: Any, y_names: Any
) -> None:
    """Fit a model to two matrices of the same samples in the same order; it then knows all names.

    Graphs of the model, if there are any, have one node per feature, in their order.

    Examples
    --------
    >>> import netbic, numpy as np, scipy.sparse as sp
    >>> random = np.random.default_rng(0)
    >>> X, Y = sp.csr_array(random.poisson(1.0, (20, 4)) * 1.0), random.standard_normal((20, 3))
    >>> model = netbic.SparseGraphCCA(1, n_x=2, n_y=1)
    >>> fit_by_name(model, X, Y, range(20), ["A", "B", "C", "D"], ["a", "b", "c"])
    >>> model.names_["x"]
    array(['A', 'B', 'C', 'D'], dtype=object)
    """
    names: dict[str, Array | None] = {
        key: np.asarray(known, dtype=object) for key, known in (("samples", samples), ("x", x_names), ("y", y_names))
    }
    graphs = {side: getattr(model, f"{side}_graph") for side in ("x", "y")}
    tables = {"x": X, "y": Y}
    for side, matrix in tables.items():
        if isinstance(matrix, np.ndarray):
            tables[side] = pd.DataFrame(matrix, index=names["samples"], columns=names[side])
        elif isinstance(graph := graphs[side], Graph):  # nodes are matched by their positions, without a warning
            model.set_params(**{f"{side}_graph": Graph(graph.weights)})
    try:
        model.fit(tables["x"], tables["y"])
    finally:
        model.set_params(x_graph=graphs["x"], y_graph=graphs["y"])
    model.names_, model.graphs_ = names, graphs
