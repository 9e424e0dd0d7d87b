"""What a report tells, gathered from the folder of a fit."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.decomposition import SparseGraphSVD
from netbic.io import Alignment, NetworkAccount, load, read_table, summary_table
from netbic.io.errors import InputError
from netbic.io.files import read_json
from netbic.io.results import names_of
from netbic.io.state import matched_graph
from netbic.report.heatmaps import Heatmap, picture, read_heatmaps
from netbic.report.network import Subnetwork, subnetwork

LEVEL = 0.05
_MUCH_GRAPH = 0.3
_HUB_SHARE, _FEW_EDGES = 0.5, 10
_TOP, _TERMS = 15, 10
_FILES = ("expression", "graph", "gene_sets", "string_info", "graph_names", "id_map")


@dataclass(frozen=True)
class ModulePage:
    """One module, as the page shows it; members are heaviest first."""

    number: int
    summary: dict[str, Any]
    genes: NDArray[Any]  # positions in the data
    gene_weights: NDArray[Any]
    gene_names: list[str]
    samples: NDArray[Any]
    sample_weights: NDArray[Any]
    sample_names: list[str]
    network: Subnetwork | None
    heatmap: Heatmap | None
    edges: dict[str, Any] | None
    terms: list[dict[str, Any]]
    n_terms: int

    @cached_property
    def flags(self) -> list[str]:
        """What a reader should know before believing in the module."""
        return [name for name, holds in self._doubts() if holds]

    def _doubts(self) -> Iterator[tuple[str, bool]]:
        yield "not converged", not self.summary["converged"]
        yield "graph-driven", self.summary["graph_share"] > _MUCH_GRAPH
        yield "hub-driven", self._few_hubs() or self._degrees_explain_it()

    def _few_hubs(self) -> bool:
        drawn = self.network
        return drawn is not None and drawn.n_edges >= _FEW_EDGES and drawn.hub_share >= _HUB_SHARE

    def _degrees_explain_it(self) -> bool:
        """Denser than chance by the paper's test, but not denser than genes with as many neighbours."""
        return self.edges is not None and self.edges["q_value"] <= LEVEL < self.edges["degree_q_value"]

    @property
    def circular(self) -> bool:
        """Whether the network had a say in which genes are members."""
        return bool(self.summary["graph_share"] > 0)

    @property
    def top_genes(self) -> list[tuple[str, float]]:
        """The heaviest genes, with weights."""
        return list(zip(self.gene_names[:_TOP], self.gene_weights[:_TOP].tolist(), strict=True))

    @property
    def top_samples(self) -> list[tuple[str, float]]:
        """The heaviest samples, with weights."""
        return list(zip(self.sample_names[:_TOP], self.sample_weights[:_TOP].tolist(), strict=True))

    @property
    def picture(self) -> str:
        """The heatmap as an image."""
        return "" if self.heatmap is None else picture(self.heatmap.values)

    def for_script(self) -> dict[str, Any]:
        """What the page's script needs beyond what is written out: positions among the module's own members."""
        content: dict[str, Any] = {
            "genes": [
                [int(at), float(f"{weight:.4g}")] for at, weight in zip(self.genes, self.gene_weights, strict=True)
            ],
            "samples": [
                [int(at), float(f"{weight:.4g}")] for at, weight in zip(self.samples, self.sample_weights, strict=True)
            ],
        }
        if self.network is not None:
            content["edges"] = self.network.edges.ravel().tolist()
        if self.heatmap is not None:
            levels = (self.heatmap.values.astype(np.int16) + 128).astype(np.uint8)
            content["heatmap"] = {
                "genes": self.heatmap.genes.tolist(),
                "samples": self.heatmap.samples.tolist(),
                "limit": float(f"{self.heatmap.limit:.4g}"),
                "levels": base64.b64encode(levels.tobytes()).decode(),
            }
        return content


@dataclass(frozen=True)
class Contents:
    """All that a report tells."""

    model: SparseGraphSVD
    record: dict[str, Any]
    modules: list[ModulePage]
    account: list[str]
    reasons: list[str]
    remarks: list[str]
    missing: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The data's name, without the folder it lay in."""
        file = self.record.get("inputs", {}).get("expression")
        return PurePath(str(file)).name if file else "netbic modules"

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per module: the summary, edge evidence and flags."""
        rows = [{**(module.edges or {}), **module.summary, "flags": ", ".join(module.flags)} for module in self.modules]
        return pd.DataFrame(rows) if rows else summary_table(self.model).assign(flags="")

    def flagged(self, flag: str) -> list[int]:
        """Numbers of the modules with a flag."""
        return [module.number for module in self.modules if flag in module.flags]

    def settings(self) -> list[tuple[str, str]]:
        """What was asked for, as options of the command; for other models, their parameters."""
        asked = self.record.get("settings")
        if asked is None:
            asked = {name: value for name, value in self.model.get_params(deep=False).items() if "graph" not in name}
        return [(name, _in_words(value)) for name, value in asked.items() if value is not None and value is not False]

    def inputs(self) -> list[tuple[str, str]]:
        """Files, without the folders they lay in, and how they were read where it was not as usual."""
        given = {name: value for name, value in self.record.get("inputs", {}).items() if value}
        return [(name, PurePath(value).name if name in _FILES else _in_words(value)) for name, value in given.items()]

    def names(self, axis: str) -> dict[int, str]:
        """Names of all members, by position in the data."""
        own, names = ("genes", "gene_names") if axis == "columns" else ("samples", "sample_names")
        known: dict[int, str] = {}
        for module in self.modules:
            known |= zip(getattr(module, own).tolist(), getattr(module, names), strict=True)
        return known


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> Contents:
    """Read the folder of a fit; `model` and `record` are given while it is being finished."""
    model = load(folder) if model is None else model
    record = _json(folder / "run.json") if record is None else record
    alignment, auto = _json(folder / "alignment.json"), _json(folder / "auto.json")
    heatmaps = _fitting(read_heatmaps(folder), model)
    tables = {name: _table(folder / f"{name}.tsv") for name in ("edges", "gene_sets")}
    return Contents(
        model,
        record,
        list(_modules(model, heatmaps, tables["edges"], tables["gene_sets"])),
        _account(alignment),
        [str(reason) for reason in auto.get("reasons", [])],
        [str(remark) for remark in record.get("remarks", [])],
        list(_missing(model, alignment, heatmaps, tables)),
    )


def _json(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _table(path: Path) -> pd.DataFrame | None:
    return read_table(path) if path.is_file() else None


def _fitting(heatmaps: list[Heatmap], model: SparseGraphSVD) -> list[Heatmap | None]:
    """Heatmaps of just these modules; none if those on disk are of others."""
    alike = len(heatmaps) == model.n_components_ and all(
        model.columns_[k][heatmap.genes].all() and model.rows_[k][heatmap.samples].all()
        for k, heatmap in enumerate(heatmaps)
        if max(heatmap.genes, default=0) < model.columns_.shape[1]
    )
    return [*heatmaps] if alike else [None] * model.n_components_


def _modules(
    model: SparseGraphSVD, heatmaps: list[Heatmap | None], edges: pd.DataFrame | None, sets: pd.DataFrame | None
) -> Iterator[ModulePage]:
    graph = matched_graph(model, "column")
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    for number, summary in enumerate(summary_table(model).to_dict("records")):
        genes, gene_weights = _members(model.components_[number])
        samples, sample_weights = _members(model.left_vectors_[:, number])
        own = gene_names[genes]
        found = [] if sets is None else sets[sets["module"] == number].to_dict("records")
        yield ModulePage(
            number,
            {str(name): value for name, value in summary.items()},
            genes,
            gene_weights,
            [str(name) for name in own],
            samples,
            sample_weights,
            [str(name) for name in sample_names[samples]],
            None if graph is None else subnetwork(graph, genes, gene_weights, own),
            heatmaps[number],
            _edge_row(edges, number),
            [{str(name): value for name, value in term.items()} for term in found[:_TERMS]],
            len(found),
        )


def _members(vector: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    members = np.flatnonzero(vector)
    members = members[np.argsort(-np.abs(vector[members]), kind="stable")]
    return members, vector[members].astype(np.float64)


def _edge_row(edges: pd.DataFrame | None, number: int) -> dict[str, Any] | None:
    if edges is None or "degree_q_value" not in edges:
        return None
    own = edges[edges["module"] == number]
    # An empty cell stands for a fold change that has no meaning: a module of one gene.
    values = own.apply(pd.to_numeric, errors="coerce").to_dict("records")
    return {str(name): value for name, value in values[0].items()} if values else None


def _account(alignment: dict[str, Any]) -> list[str]:
    if not alignment:
        return []
    content = {name: value for name, value in alignment.items() if name != "isolated_share"}
    network = content.pop("network", None)
    try:
        return list(Alignment(**content, network=network and NetworkAccount(**network)).lines())
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json is not netbic's ({problem}): fit again") from None


def _missing(
    model: SparseGraphSVD,
    alignment: dict[str, Any],
    heatmaps: list[Heatmap | None],
    tables: dict[str, pd.DataFrame | None],
) -> Iterator[str]:
    if not alignment:
        yield "the account of what matched (alignment.json): netbic fit writes it"
    if None in heatmaps:
        yield "heatmaps (heatmaps.npz): netbic fit writes them, they cannot be made without the data"
    if model.column_graph is None:
        yield "the modules' networks: the model was fitted without one"
    elif tables["edges"] is None:
        yield "edge evidence (edges.tsv): netbic enrich writes it"
    if tables["gene_sets"] is None:
        yield "enriched gene sets (gene_sets.tsv): netbic enrich DIR --gene-sets sets.gmt, then netbic report DIR"


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)
