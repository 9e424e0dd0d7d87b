"""A fitted model as pandas tables, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from netbic.decomposition import SparseGraphSVD
from netbic.io.errors import InputError
from netbic.io.results import names_of, summary_table
from netbic.io.state import ModelState, model_from, settings_of, state_of


class Frames(NamedTuple):
    """A model as tables: `genes` and `samples` have a row per name and a column per module, `summary` a row per module.

    `genes` has two columns more: `offset` and `factor`, by which the data were centred and scaled; the model's settings
    are in its `attrs`. Graphs are not kept.
    """

    genes: pd.DataFrame
    samples: pd.DataFrame
    summary: pd.DataFrame


def to_frames(model: SparseGraphSVD) -> Frames:
    """Write a fitted model as pandas tables.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=50, n_columns=50).fit(toy.X)
    >>> tables = netbic.io.to_frames(model)
    >>> tables.genes.shape, tables.samples.shape
    ((100, 4), (100, 2))
    >>> again = netbic.io.from_frames(tables)
    >>> bool((again.transform(toy.X) == model.transform(toy.X)).all())
    True
    """
    state = state_of(model)
    arrays = state.arrays
    modules = range(model.n_components_)
    genes = pd.DataFrame(model.components_.T, index=names_of(model, "columns"), columns=modules)
    genes["offset"] = arrays["offsets"]
    genes["factor"] = arrays.get("factors", np.ones(len(genes)))
    genes.attrs["settings"] = state.settings
    samples = pd.DataFrame(model.left_vectors_, index=names_of(model, "rows"), columns=modules)
    return Frames(genes, samples, summary_table(model))


def from_frames(tables: Frames) -> SparseGraphSVD:
    """Make a fitted model of tables as `to_frames` writes them; traces of F are not in them."""
    genes, samples, summary = tables
    modules = [name for name in genes.columns if name not in ("offset", "factor")]
    if list(samples.columns) != modules or len(summary) != len(modules):
        raise InputError(
            f"genes have {len(modules)} modules, samples {samples.shape[1]} and the summary {len(summary)}: "
            "give the three tables of one model"
        )
    rounds = summary["rounds"].to_numpy(dtype=np.int64)
    arrays = {
        "components": np.ascontiguousarray(genes[modules].to_numpy().T),
        "left_vectors": samples.to_numpy(copy=True),
        "singular_values": summary["singular_value"].to_numpy(copy=True),
        "explained_variance_ratio": summary["explained_variance_ratio"].to_numpy(copy=True),
        "graph_share": summary["graph_share"].to_numpy(copy=True),
        "converged": summary["converged"].to_numpy(dtype=bool),
        "rounds": rounds,
        "objectives": np.full(int(rounds.sum()), np.nan),
        "offsets": genes["offset"].to_numpy(copy=True),
    }
    scaled = bool((genes["factor"] != 1).any())
    if scaled:
        arrays["factors"] = genes["factor"].to_numpy(copy=True)
    settings = genes.attrs.get("settings")
    if settings is None:
        settings = settings_of(SparseGraphSVD(max(len(modules), 1), scale=scaled).get_params(deep=False))
    names = {"rows": _names(samples.index), "columns": _names(genes.index)}
    return model_from(ModelState(settings, arrays, names))


def _names(index: pd.Index) -> list[object] | None:
    """Names, unless they only count."""
    return None if list(index) == list(range(len(index))) else index.tolist()
