"""Fitted models as pandas tables, and back."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from netbic.arrays import Array
from netbic.errors import InputError
from netbic.estimators import DIAGNOSTIC_NUMBERS, SparseGraphSVD, fitted_model, names_of
from netbic.graph import Graph
from netbic.storage.npz import Arrays
from netbic.storage.parameters import settings_of
from netbic.storage.state import CHOSEN_NUMBERS, ModelState, Names, model_from, state_of
from netbic.storage.study_state import STUDY_NUMBERS
from netbic.storage.tables import summary_table

Index: TypeAlias = "pd.Index[Any]"
_POSTERIOR, _COVARIATE = "posterior_", "covariate_"
_ATTRIBUTES = ("kept", "diffusion", "regressed_out")  # arrays of some models only
_STUDY_ARRAYS = ("study_of_samples", "study_weights", "study_factors", *STUDY_NUMBERS)


class Frames(NamedTuple):
    """A model as tables.

    - `genes` and `samples`: a row per name and a column per module; if a penalty chose the members, also columns
      `posterior_0`, `posterior_1`, ... `genes` has the columns `offset` and `factor` too, by which the data were
      centred and scaled. The model's settings are in its `attrs`. If there are covariates, both have a column for each
      column of the design matrix, such as `covariate_age`: its values in `samples`, its effects in `genes`.
    - `summary`: a row per module.
    - `choices`: the model's `choices_`; None if nothing was chosen.
    - `gene_edges` and `sample_edges`: the graphs, as edges between names (between row numbers if names are not
      unique); None if there is no graph.
    """

    genes: pd.DataFrame
    samples: pd.DataFrame
    summary: pd.DataFrame
    choices: pd.DataFrame | None = None
    gene_edges: pd.DataFrame | None = None
    sample_edges: pd.DataFrame | None = None


def to_frames(model: SparseGraphSVD) -> Frames:
    """Write a fitted model as pandas tables.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=50, n_columns=50, column_graph=toy.column_graph).fit(toy.X)
    >>> tables = netbic.io.to_frames(model)
    >>> tables.genes.shape, tables.samples.shape, len(tables.gene_edges) == toy.column_graph.n_edges
    ((100, 4), (100, 2), True)
    >>> again = netbic.io.from_frames(tables)
    >>> bool((again.transform(toy.X) == model.transform(toy.X)).all())
    True
    """
    model = fitted_model(model)
    state = state_of(model)
    arrays, gene_names, sample_names = state.arrays, names_of(model, "columns"), names_of(model, "rows")
    genes = _weights(arrays["components"].T, gene_names, arrays.get("columns_posteriors"))
    genes["offset"] = arrays["offsets"]
    genes["factor"] = arrays.get("factors", np.ones(len(genes)))
    genes.attrs |= {"settings": state.settings, "class": state.kind}
    genes.attrs |= {name: arrays[name].tolist() for name in (*_ATTRIBUTES, *_STUDY_ARRAYS) if name in arrays}
    genes.attrs |= {} if state.groups is None else {"groups": state.groups}
    genes.attrs |= {} if state.studies is None else {"studies": state.studies}
    samples = _weights(arrays["left_vectors"], sample_names, arrays.get("rows_posteriors"))
    if state.covariates is not None:
        genes.attrs["covariates"] = state.covariates
        columns = [f"{_COVARIATE}{name}" for name in state.covariates["columns"]]
        genes[columns], samples[columns] = arrays["effects"].T, arrays["covariates"]
    return Frames(
        genes,
        samples,
        summary_table(model),
        None if model.choices_.empty else model.choices_.copy(),
        _edges(state.graphs.get("column_graph"), gene_names),
        _edges(state.graphs.get("row_graph"), sample_names),
    )


def _weights(weights: Array, names: Array, posteriors: Array | None) -> pd.DataFrame:
    table = pd.DataFrame(weights, index=names, columns=range(weights.shape[1]))
    for module, posterior in enumerate([] if posteriors is None else posteriors):
        table[f"{_POSTERIOR}{module}"] = posterior
    return table


def _edges(graph: Graph | None, names: Array) -> pd.DataFrame | None:
    if graph is None:
        return None
    tails, heads, weights = graph.edges()
    nodes = _nodes(pd.Index(names))
    return pd.DataFrame({"source": nodes[tails], "target": nodes[heads], "weight": weights})


def _nodes(index: Index) -> Index:
    return index if index.is_unique else pd.RangeIndex(len(index))


def from_frames(tables: Frames) -> SparseGraphSVD:
    """The fitted model in tables as `to_frames` writes them, without its `objectives_`.

    Tables after the first three may be left out. Without the edges of a graph, the model has no graph and no
    smoothness.
    """
    genes, samples, summary = tables[:3]
    modules = _modules(genes)
    if _modules(samples) != modules or len(summary) != len(modules):
        raise InputError(
            f"genes have {len(modules)} modules, samples {len(_modules(samples))} and the summary {len(summary)}: "
            "give the three tables of one model"
        )
    settings = genes.attrs.get("settings")
    if settings is None:
        settings = settings_of(SparseGraphSVD(max(len(modules), 1), scale=_is_scaled(genes)).get_params(deep=False))
    graphs = {
        f"{axis}_graph": _graph(edges, table.index)
        for axis, edges, table in (("column", tables.gene_edges, genes), ("row", tables.sample_edges, samples))
        if edges is not None
    }
    without = {f"{axis}_smoothness": None for axis in ("row", "column") if f"{axis}_graph" not in graphs}
    names = {"rows": _names(samples.index), "columns": _names(genes.index)}
    kind = genes.attrs.get("class", "SparseGraphSVD")
    state = ModelState(settings | without, _arrays(tables, modules), names, graphs, kind=kind)
    further: dict[str, Any] = {name: genes.attrs.get(name) for name in ("covariates", "groups", "studies")}
    return model_from(replace(state, **further))


def _arrays(tables: Frames, modules: list[Hashable]) -> Arrays:
    genes, samples, summary, choices = tables[:4]
    arrays = _from_summary(summary) | {
        "components": np.ascontiguousarray(genes[modules].to_numpy().T),
        "left_vectors": samples[modules].to_numpy(copy=True),
        "offsets": genes["offset"].to_numpy(copy=True),
    }
    if _is_scaled(genes):
        arrays["factors"] = genes["factor"].to_numpy(copy=True)
    if (covariates := genes.attrs.get("covariates")) is not None:
        columns = [f"{_COVARIATE}{name}" for name in covariates["columns"]]
        arrays["effects"] = np.ascontiguousarray(genes[columns].to_numpy(dtype=np.float64).T)
        arrays["covariates"] = samples[columns].to_numpy(dtype=np.float64, copy=True)
    if choices is not None:
        arrays |= _chosen(genes, "columns", choices) | _chosen(samples, "rows", choices)
    arrays |= {name: np.array(genes.attrs[name]) for name in _ATTRIBUTES if name in genes.attrs and modules}
    return arrays | {name: np.array(genes.attrs[name]) for name in _STUDY_ARRAYS if name in genes.attrs}


def _is_scaled(genes: pd.DataFrame) -> bool:
    return bool((genes["factor"] != 1).any())


def _modules(table: pd.DataFrame) -> list[Hashable]:
    """The columns with the weights of modules."""
    others = ("offset", "factor")
    further = (_POSTERIOR, _COVARIATE)
    return [name for name in table.columns if name not in others and not str(name).startswith(further)]


def _is_posterior(name: Hashable) -> bool:
    return str(name).startswith(_POSTERIOR)


def _from_summary(summary: pd.DataFrame) -> Arrays:
    rounds = summary["rounds"].to_numpy(dtype=np.int64)
    arrays: Arrays = {}  # tables of earlier versions lack the columns of these two
    if set(DIAGNOSTIC_NUMBERS) <= set(summary.columns):
        arrays["diagnostics"] = summary[list(DIAGNOSTIC_NUMBERS)].to_numpy(dtype=np.float64)
    return arrays | {
        "singular_values": summary["singular_value"].to_numpy(copy=True),
        "explained_variance_ratio": summary["explained_variance_ratio"].to_numpy(copy=True),
        "graph_share": summary["graph_share"].to_numpy(copy=True),
        "converged": summary["converged"].to_numpy(dtype=bool),
        "rounds": rounds,
        "objectives": np.full(int(rounds.sum()), np.nan),
    }


def _chosen(table: pd.DataFrame, axis: str, choices: pd.DataFrame) -> Arrays:
    """What a penalty chose on one axis, if any."""
    posteriors = [name for name in table.columns if _is_posterior(name)]
    if not posteriors:
        return {}
    own = choices[choices["axis"] == axis].sort_values("module")
    if len(own) != len(posteriors):
        raise InputError(
            f"{axis} have posteriors of {len(posteriors)} modules and choices of {len(own)}: give tables of one model"
        )
    if "heteroscedasticity" not in own:  # tables of earlier versions
        own = own.rename(columns={"unevenness": "heteroscedasticity"})
    known = [name for name in CHOSEN_NUMBERS if name in own]  # tables of earlier versions have the first four
    arrays = {f"{axis}_posteriors": np.ascontiguousarray(table[posteriors].to_numpy().T)}
    return arrays | {f"{axis}_choices": own[known].to_numpy(dtype=np.float64)}


def _graph(edges: pd.DataFrame, index: Index) -> Graph:
    made = Graph.from_edges(edges, nodes=_nodes(index), signed=True)
    return made if index.is_unique and _names(index) is not None else made.renamed(None)


def _names(index: Index) -> Names:
    """The names, unless they are row numbers."""
    return None if list(index) == list(range(len(index))) else index.tolist()
