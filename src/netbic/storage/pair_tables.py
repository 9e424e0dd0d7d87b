"""Fitted models of two tables as tables: a row per pair, weights of the features, scores of the samples."""

from __future__ import annotations

import numpy as np
import pandas as pd

from netbic.arrays import Array
from netbic.estimators import heaviest
from netbic.storage.pair_state import PairModel, fitted_pair_model
from netbic.storage.tables import sides_of

_LAST = ("top_features_1", "top_features_2", "label")  # columns of the table of pairs that are text
_TOP = 5
_SIDES = {1: "x", 2: "y"}  # as tables are called in files, and in the attributes of a model


def feature_names(model: PairModel, table: int) -> Array:
    """Names of the features of table 1 (X) or 2 (Y); their numbers if there are none."""
    known = model.names_[_SIDES[table]]
    return np.arange(len(_weights(model, table))) if known is None else known


def sample_names(model: PairModel) -> Array:
    """Names of the samples; their numbers if there are none."""
    known = model.names_["samples"]
    return np.arange(len(model.x_scores_)) if known is None else known


def _weights(model: PairModel, table: int) -> Array:
    return model.x_weights_ if table == 1 else model.y_weights_


def pairs_table(model: PairModel, tests: pd.DataFrame | None = None) -> pd.DataFrame:
    """A row per pair: sizes in both tables, covariance, correlation, edges inside, convergence, top features, label.

    `d` is u'X'Yv in the deflated tables, `correlation` that of the scores of both tables in the samples of the fit,
    which is too large. `pair` counts from 0, `label` ("pair 1") from 1.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Fitted.
    tests : DataFrame, optional
        Further columns about the pairs, with a column `pair`; those of the same name are replaced.

    Examples
    --------
    >>> import netbic, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
    >>> netbic.io.pairs_table(model)[["pair", "n_features_1", "n_features_2", "correlation", "label"]].round(2)
       pair  n_features_1  n_features_2  correlation   label
    0     0             8             5         0.84  pair 1
    """
    model = fitted_pair_model(model)
    number = np.arange(model.n_components_)
    table = pd.DataFrame(
        {
            "pair": number,
            "n_features_1": model.x_support_.sum(axis=1),
            "n_features_2": model.y_support_.sum(axis=1),
            "d": model.singular_values_,
            "correlation": model.correlations_,
            "n_edges_1": _edges(model, 1),
            "n_edges_2": _edges(model, 2),
            "graph_share": model.graph_share_,
            "rounds": np.array([len(values) for values in model.objectives_], dtype=np.int64),
            "converged": model.converged_,
            "top_features_1": _top(model, 1),
            "top_features_2": _top(model, 2),
            "label": [f"pair {pair + 1}" for pair in number],
        }
    )
    return table if tests is None else _with_tests(table, tests)


def _with_tests(table: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns of another one, matched by pair; texts come last."""
    own = tests.set_index("pair").reindex(table["pair"])
    last = {name: table.pop(name) for name in _LAST}
    return table.assign(**{str(name): own[name].to_numpy() for name in own.columns}).assign(**last)


def _edges(model: PairModel, table: int) -> list[int]:
    """Edges between the features of each pair; 0 without a graph."""
    graph = model.graphs_[_SIDES[table]]
    support = model.x_support_ if table == 1 else model.y_support_
    return [0 if graph is None else graph.subgraph(members).n_edges for members in support]


def _top(model: PairModel, table: int) -> list[str]:
    names = feature_names(model, table)
    return [", ".join(map(str, names[heaviest(vector)[:_TOP]])) for vector in _weights(model, table).T]


def weights_table(model: PairModel) -> pd.DataFrame:
    """Features of every pair by name, largest absolute weight first.

    Columns are `pair` (from 0), `table` (1 or 2), `name`, `weight` and `side`: "up" if the weight is positive, "down"
    if it is negative. Features of the same side, in either table, are high in the same samples.
    """
    model = fitted_pair_model(model)
    parts = [pd.DataFrame(columns=["pair", "table", "name", "weight", "side"])]
    for pair in range(model.n_components_):
        for table in _SIDES:
            vector, names = _weights(model, table)[:, pair], feature_names(model, table)
            members = heaviest(vector)
            part = {"pair": pair, "table": table, "name": names[members], "weight": vector[members]}
            parts.append(pd.DataFrame(part | {"side": sides_of(vector[members])}))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def pair_scores_table(model: PairModel) -> pd.DataFrame:
    """Scores of the samples of the fit in both tables: columns `pair` (from 0), `sample`, `score_1` and `score_2`."""
    model = fitted_pair_model(model)
    names = sample_names(model)
    return pd.DataFrame(
        {
            "pair": np.repeat(np.arange(model.n_components_), len(names)),
            "sample": np.tile(names, model.n_components_),
            "score_1": model.x_scores_.T.ravel(),
            "score_2": model.y_scores_.T.ravel(),
        }
    )
