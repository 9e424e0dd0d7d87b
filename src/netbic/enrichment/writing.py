"""Enrichment of a fitted model's modules as tables in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from netbic.enrichment.edges import edges
from netbic.enrichment.gene_sets import gene_sets
from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, fitted_model, is_number, matched_graph
from netbic.files import add_files, json_bytes, read_json, table_bytes

RECORD = "enrichment.json"
DEFAULT_LEVEL = 0.05


def write_enrichment(
    model: SparseGraphSVD,
    folder: Path,
    sets: Mapping[str, Iterable[str]] | Path | str | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    by_sign: bool = False,
    collapse: float | None = None,
    random_state: Any = None,
) -> Iterator[str]:
    """Write edges.tsv (if the model has a graph) and gene_sets.tsv (if sets are given); say what they hold.

    What was asked for goes to enrichment.json, for the report. Everything is read and tested before anything is
    written, and the files appear together, so that a bad file of gene sets or a full disk leaves the folder as it was.
    Files of those names that netbic did not write are refused.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted, with names.
    folder : path
    sets : mapping or path of a GMT file, optional
    level : float
        Gene sets above this adjusted p-value are not written; edges up to it count as enriched.
    by_sign, collapse
        See `gene_sets`.
    random_state : None, int or numpy.random.Generator
        For the degree-matched sets.
    """
    model = fitted_model(model)
    graph = matched_graph(model, "column")
    if graph is None and sets is None:
        yield "no network and no gene sets: nothing to test the modules with"
        return
    found = None if sets is None else gene_sets(model, sets, by_sign=by_sign, collapse=collapse)
    table = None if graph is None else edge_table(model, graph, random_state)
    asked: dict[str, Any] = {}
    if table is not None:
        asked["edges"] = {"level": level}
    if found is not None:
        asked["gene_sets"] = {"level": level, "by_sign": by_sign, "collapse": collapse}
    files = {RECORD: json_bytes(dict(sorted((enrichment_record(folder) | asked).items())))}
    if table is not None:
        files["edges.tsv"] = table_bytes(folder / "edges.tsv", table)
    if found is not None:
        found = found[found["q_value"] <= level]
        files["gene_sets.tsv"] = table_bytes(folder / "gene_sets.tsv", found)
    add_files(folder, files)
    if table is not None:
        yield _about_edges(table, level)
    if found is not None:
        yield f"gene_sets.tsv: {len(found):,} enriched sets in {found['module'].nunique()} modules"


def _about_edges(table: pd.DataFrame, level: float) -> str:
    paper, honest = (int((table[name] <= level).sum()) for name in ("q_value", "degree_q_value"))
    return (
        f"edges.tsv: {paper} of {len(table)} modules hold more edges than chance (q <= {level:g}), "
        f"{honest} more than random genes of the same degrees (in the fitted network: no proof of biology)"
    )


def enrichment_record(folder: Path) -> dict[str, dict[str, Any]]:
    """What the tables of a folder were asked for, by "edges" and "gene_sets"; nothing where that is not known."""
    try:
        content = read_json(folder / RECORD)
    except InputError:
        return {}
    known = content if isinstance(content, dict) else {}
    return {name: asked for name, asked in known.items() if isinstance(asked, dict) and is_number(asked.get("level"))}


def edge_table(model: SparseGraphSVD, graph: Any, random_state: Any) -> pd.DataFrame:
    """The paper's test, with the fold change and p-value against degree-matched sets beside it."""
    table, degree = edges(model, graph), edges(model, graph, null="degree", random_state=random_state)
    for name in ("expected", "fold_change", "p_value", "q_value"):
        table[f"degree_{name}"] = degree[name]
    return table
