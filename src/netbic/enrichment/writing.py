"""Write the enrichment of a fitted model's modules as tables to its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.arrays import Matrix, RandomState
from netbic.enrichment.edges import EdgeTest
from netbic.enrichment.gene_sets import Sets, gene_sets
from netbic.enrichment.traits import Traits, column_traits, stored_traits, traits_from
from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, check_same_data, fitted_model, is_number
from netbic.files import add_files, json_bytes, read_bytes, read_json, table_bytes
from netbic.graph import Graph
from netbic.storage import npz_arrays, npz_bytes

RECORD = "enrichment.json"
MOMENTS = "gene_moments.npz"
DEFAULT_LEVEL = 0.05


def write_enrichment(
    model: SparseGraphSVD,
    folder: Path,
    sets: Sets | Path | str | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    by_sign: bool | None = None,
    collapse: float | None = None,
    X: Matrix | None = None,
    random_state: RandomState = None,
) -> Iterator[str]:
    """Write edges.tsv (if the model has a graph) and gene_sets.tsv (if sets are given); yield a summary of each.

    The options go to enrichment.json, for the report. Everything is read and tested before anything is written, and all
    files appear at the same time, so that an invalid file of gene sets or a full disk leaves the folder unchanged. If a
    file of one of these names was not written by netbic, an error is raised.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted, with names.
    folder : path
    sets : mapping or path of a GMT file, optional
    level : float
        Gene sets with a larger adjusted p-value are not written; up to it, modules count as enriched in edges.
    by_sign, collapse
        See `gene_sets`.
    X : matrix, optional
        The data the model was fitted to. Random sets of genes are then matched on mean and variance as well as degree,
        and both are stored in gene_moments.npz for later tests in the same folder. Without it, on what that file or
        the model knows.
    random_state : None, int or numpy.random.Generator
        For the matched sets.
    """
    model = fitted_model(model)
    graph = model.graphs_["columns"]
    if graph is None and sets is None:
        yield "no network and no gene sets: no enrichment to test"
        return
    tables: dict[str, pd.DataFrame] = {}
    options: dict[str, dict[str, Any]] = {}
    if sets is not None:
        found = gene_sets(model, sets, by_sign=by_sign, collapse=collapse)
        tables["gene_sets"] = found[found["q_value"] <= level]
        options["gene_sets"] = {"level": level, "by_sign": by_sign, "collapse": collapse}
    moments: dict[str, bytes] = {}
    if graph is not None:
        traits = _traits(model, folder, X)
        tables["edges"] = _edge_table(model, graph, traits, random_state)
        options["edges"] = {"level": level}
        if X is not None:
            moments = {MOMENTS: npz_bytes(traits)}
    files = moments | {RECORD: json_bytes(dict(sorted((enrichment_record(folder) | options).items())))}
    for name in sorted(tables):
        files[f"{name}.tsv"] = table_bytes(folder / f"{name}.tsv", tables[name])
    add_files(folder, files)
    used = fit_used_graph(model)
    yield from (_summary(name, tables[name], level, used) for name in sorted(tables))


def fit_used_graph(model: SparseGraphSVD) -> bool:
    """Whether the graph of the columns had an influence on the modules: by its weight, or by diffusion of the data.

    The weight that was used counts, not the one that was asked for: cross-validation may choose no diffusion, and a
    penalty may choose a weight of 0 for every module.
    """
    if model.column_graph is None or model.diffusion_ > 0:
        return model.column_graph is not None
    not_in_search = model.diffusion is not None and model.column_smoothness is None
    if not_in_search or model.column_smoothness == 0:
        return False
    weights = model.diagnostics_["graph_weight"]
    return bool((weights.isna() | (weights > 0)).any())  # NaN: not known of models of earlier versions


def _summary(name: str, table: pd.DataFrame, level: float, graph_used: bool) -> str:
    if name == "gene_sets":
        n_modules = table["module"].nunique()
        found = f"{len(table):,} enriched gene set{'s' * (len(table) != 1)}"
        return f"gene_sets.tsv: {found} in {n_modules} module{'s' * (n_modules != 1)} (q <= {level:g})"
    similar = _in_words(max(table["degree_matched_on"], key=len, default="degree"))
    n_modules = int((table["degree_q_value"] <= level).sum())
    return (
        f"edges.tsv: in {n_modules} of {len(table)} modules, the genes have more edges with each other than random "
        f"genes with {similar} (q <= {level:g})"
        f"{'; this is not independent evidence, because the fit used this network' * graph_used}"
    )


def enrichment_record(folder: Path) -> dict[str, dict[str, Any]]:
    """The options for the tables of a folder, "edges" and "gene_sets"; empty if they are not known."""
    try:
        content = read_json(folder / RECORD)
    except InputError:
        return {}
    known = content if isinstance(content, dict) else {}
    return {name: each for name, each in known.items() if isinstance(each, dict) and is_number(each.get("level"))}


def _in_words(matched_on: str) -> str:
    """What random genes have in common with a module: numbers of neighbours, and where known mean and variance."""
    others = matched_on.split(", ")[1:]
    return "as many neighbours" + (f" and a similar {' and '.join(others)}" if others else "")


def _traits(model: SparseGraphSVD, folder: Path, X: Matrix | None) -> Traits:
    """Mean and variance of the genes: of X, as stored in the folder, or what the model knows of them."""
    if X is not None:
        check_same_data(model, X)
        return column_traits(X)
    path = folder / MOMENTS
    stored = traits_from(npz_arrays(path, read_bytes(path)), int(model.n_features_in_)) if path.is_file() else {}
    return stored or stored_traits(model)


def _edge_table(model: SparseGraphSVD, graph: Graph, traits: Traits, random_state: RandomState) -> pd.DataFrame:
    """The paper's test, and in further columns the comparison with matched sets."""
    table = EdgeTest("hypergeometric", None, None).table(model.columns_, graph, {}).drop(columns="matched_on")
    matched = EdgeTest("matched", None, random_state).table(model.columns_, graph, traits)
    for name in ("expected", "fold_change", "p_value", "q_value", "matched_on"):
        table[f"degree_{name}"] = matched[name]
    return table
