"""Write the enrichment of a fitted model's modules as tables to its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.arrays import Bools, RandomState
from netbic.enrichment.edges import edges
from netbic.enrichment.gene_sets import Sets, gene_sets
from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, fitted_model, is_number, matched_graph
from netbic.files import add_files, json_bytes, read_json, table_bytes
from netbic.graphs import Graph

RECORD = "enrichment.json"
DEFAULT_LEVEL = 0.05


def write_enrichment(
    model: SparseGraphSVD,
    folder: Path,
    sets: Sets | Path | str | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    by_sign: bool = False,
    collapse: float | None = None,
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
    random_state : None, int or numpy.random.Generator
        For the degree-matched sets.
    """
    model = fitted_model(model)
    graph = matched_graph(model, "column")
    if graph is None and sets is None:
        yield "no network and no gene sets: no enrichment to test"
        return
    tables: dict[str, pd.DataFrame] = {}
    options: dict[str, dict[str, Any]] = {}
    if sets is not None:
        found = gene_sets(model, sets, by_sign=by_sign, collapse=collapse)
        tables["gene_sets"] = found[found["q_value"] <= level]
        options["gene_sets"] = {"level": level, "by_sign": by_sign, "collapse": collapse}
    if graph is not None:
        tables["edges"] = _edge_table(model.columns_, graph, random_state)
        options["edges"] = {"level": level}
    files = {RECORD: json_bytes(dict(sorted((enrichment_record(folder) | options).items())))}
    for name in sorted(tables):
        files[f"{name}.tsv"] = table_bytes(folder / f"{name}.tsv", tables[name])
    add_files(folder, files)
    graph_used = model.column_smoothness != 0
    yield from (_summary(name, tables[name], level, graph_used) for name in sorted(tables))


def _summary(name: str, table: pd.DataFrame, level: float, graph_used: bool) -> str:
    if name == "gene_sets":
        n_modules = table["module"].nunique()
        found = f"{len(table):,} enriched gene set{'s' * (len(table) != 1)}"
        return f"gene_sets.tsv: {found} in {n_modules} module{'s' * (n_modules != 1)} (q <= {level:g})"
    n_paper, n_degree = (int((table[column] <= level).sum()) for column in ("q_value", "degree_q_value"))
    return (
        f"edges.tsv: modules with more edges than random genes: {n_paper} of {len(table)}; "
        f"than random genes of the same degrees: {n_degree} of {len(table)} (q <= {level:g}"
        f"{'; not independent evidence: the fit used this network' * graph_used})"
    )


def enrichment_record(folder: Path) -> dict[str, dict[str, Any]]:
    """The options for the tables of a folder, "edges" and "gene_sets"; empty if they are not known."""
    try:
        content = read_json(folder / RECORD)
    except InputError:
        return {}
    known = content if isinstance(content, dict) else {}
    return {name: each for name, each in known.items() if isinstance(each, dict) and is_number(each.get("level"))}


def _edge_table(masks: Bools, graph: Graph, random_state: RandomState) -> pd.DataFrame:
    """The paper's test, and in further columns the comparison with degree-matched sets."""
    table, degree = edges(masks, graph), edges(masks, graph, null="degree", random_state=random_state)
    for name in ("expected", "fold_change", "p_value", "q_value"):
        table[f"degree_{name}"] = degree[name]
    return table
