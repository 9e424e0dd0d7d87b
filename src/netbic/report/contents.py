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

from netbic.enrichment import DEFAULT_LEVEL, enrichment_record
from netbic.errors import InputError, unusable
from netbic.estimators import DEFAULT_SMOOTHNESS, SparseGraphSVD, fitted_model, heaviest, matched_graph, names_of
from netbic.files import finished_record, read_json, read_table
from netbic.penalties import AdaptiveSupport
from netbic.readers import NetworkAccount
from netbic.report.heatmaps import Heatmap, picture, read_heatmaps
from netbic.report.network import Subnetwork, subnetwork
from netbic.solver import LARGE_GRAPH_SHARE
from netbic.storage import load, summary_table
from netbic.study import Alignment

_HUB_SHARE, _FEW_EDGES, _BEYOND_EQUALS = 0.5, 10, 0.2
_TOP, _TERMS = 15, 10
_CENTRED = {
    None: "not centred",
    "columns": "each gene about its mean",
    "rows": "each sample about its mean",
    "both": "genes and samples about their means",
    "grand": "about the mean of all",
}
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
    level: float = DEFAULT_LEVEL  # up to which adjusted p-value edges count as more than chance

    @cached_property
    def flags(self) -> list[str]:
        """What a reader should know before believing in the module."""
        return [name for name, holds in self._doubts() if holds]

    def _doubts(self) -> Iterator[tuple[str, bool]]:
        yield "not converged", not self.summary["converged"]
        yield "graph-driven", self.summary["graph_share"] > LARGE_GRAPH_SHARE and not self.summary.get("chosen", False)
        yield "hub-driven", self._few_hubs() or self._degrees_explain_it()
        yield "size in doubt", bool(self.summary.get("doubt"))

    def _few_hubs(self) -> bool:
        """Whether three members hold half of the edges: more than three of as many equals would, by far."""
        drawn = self.network
        if drawn is None or drawn.n_edges < _FEW_EDGES:
            return False
        joined = len(drawn.nodes)
        equals = 1 - (joined - 3) * (joined - 4) / (joined * (joined - 1)) if joined > 4 else 1.0
        return drawn.hub_share >= max(_HUB_SHARE, equals + _BEYOND_EQUALS)

    def _degrees_explain_it(self) -> bool:
        """Denser than chance by the paper's test, but not denser than genes with as many neighbours."""
        return (
            self.judged
            and self.edges is not None
            and self.edges["q_value"] <= self.level < self.edges["degree_q_value"]
        )

    @property
    def judged(self) -> bool:
        """Whether there are other genes with as many neighbours; else random sets are the module over again."""
        edges = self.edges
        return edges is not None and not np.isclose(edges["degree_expected"], edges["n_edges"], rtol=1e-6)

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
    levels: dict[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The data's name, without the folder it lay in."""
        file = self._inputs().get("expression")
        return PurePath(str(file)).name if file else "netbic modules"

    @property
    def circular(self) -> bool:
        """Whether the network had a say in which genes are members."""
        return self.model.column_graph is not None and self.model.column_smoothness != 0

    @property
    def as_fitted(self) -> str:
        """What was done to the values before the fit."""
        scaled = ", genes scaled to unit deviation" if self.model.scale else ""
        return f"{_CENTRED[self.model.center]}{scaled}"

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
        if isinstance(asked, dict):
            if asked.get("auto"):
                asked = {**asked, "modules": f"{self.model.n_components_} (at most {asked.get('modules')})"}
            asked = {**asked, **{name: value for name, value in self._effective().items() if asked.get(name) is None}}
        if asked is None:
            asked = {name: value for name, value in self.model.get_params(deep=False).items() if "graph" not in name}
        return [(name, _in_words(value)) for name, value in asked.items() if value is not None and value is not False]

    def _effective(self) -> dict[str, Any]:
        """What the options come to where they were left at their defaults."""
        weight = DEFAULT_SMOOTHNESS if self.model.column_smoothness is None else self.model.column_smoothness
        words = {"genes": self.model.n_columns, "samples": self.model.n_rows}
        if isinstance(self.model.column_penalty, AdaptiveSupport):
            return words | {"smoothness": "chosen per module"}
        return words | {"smoothness": weight if self.model.column_graph is not None else None}

    def inputs(self) -> list[tuple[str, str]]:
        """Files, without the folders they lay in, and how they were read where it was not as usual."""
        given = {name: value for name, value in self._inputs().items() if value}
        return [(name, PurePath(value).name if name in _FILES else _in_words(value)) for name, value in given.items()]

    def _inputs(self) -> dict[str, Any]:
        given = self.record.get("inputs")
        return given if isinstance(given, dict) else {}

    def names(self, axis: str) -> dict[int, str]:
        """Names of all members, by position in the data."""
        own, names = ("genes", "gene_names") if axis == "columns" else ("samples", "sample_names")
        known: dict[int, str] = {}
        for module in self.modules:
            known |= zip(getattr(module, own).tolist(), getattr(module, names), strict=True)
        return known


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> Contents:
    """Read the folder of a fit; `model` and `record` are given while it is being finished."""
    model = load(folder) if model is None else fitted_model(model)
    record = finished_record(folder) or {} if record is None else record
    alignment, auto = _json(folder / "alignment.json"), _json(folder / "auto.json")
    heatmaps, levels = _fitting(read_heatmaps(folder), model), _levels(folder)
    tables = {
        "edges": _of_these_modules(_table(folder / "edges.tsv", _EDGES), model, "n_nodes"),
        "gene_sets": _of_these_modules(_table(folder / "gene_sets.tsv", _SETS), model, "n_module"),
    }
    return Contents(
        model,
        record,
        list(_modules(model, heatmaps, tables["edges"], tables["gene_sets"], levels["edges"])),
        _account(alignment),
        [str(reason) for reason in auto.get("reasons", [])],
        [str(remark) for remark in record.get("warnings", record.get("remarks", []))],
        list(_missing(model, alignment, heatmaps, tables)),
        levels,
    )


def _levels(folder: Path) -> dict[str, float]:
    """Adjusted p-values up to which edges and gene sets were called enriched."""
    asked = enrichment_record(folder)
    return {name: float(asked[name]["level"]) if name in asked else DEFAULT_LEVEL for name in ("edges", "gene_sets")}


def _json(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _table(path: Path, columns: set[str]) -> pd.DataFrame | None:
    """A table of enrichment, if it is there."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except (ValueError, OSError) as problem:
        raise unusable(path, f"cannot be read ({problem})", "run netbic enrich again") from None
    if lacking := sorted(columns - set(table.columns)):
        raise unusable(path, f"has no column {lacking[0]}", "it is not netbic's: run netbic enrich again")
    return table


_EDGES = {"module", "n_nodes", "n_edges", "expected", "fold_change", "p_value", "q_value", "degree_q_value"}
_SETS = {"module", "term", "name", "n_overlap", "n_term", "n_module", "fold_change", "q_value", "genes"}


def _of_these_modules(table: pd.DataFrame | None, model: SparseGraphSVD, size: str) -> pd.DataFrame | None:
    """The table, unless it is of other modules: those of an earlier fit in the folder."""
    if table is None or table.empty or size not in table or "sign" in table:
        return table
    sizes = model.columns_.sum(axis=1)
    known = table["module"].between(0, len(sizes) - 1)
    return table if known.all() and (sizes[table["module"]] == table[size]).all() else None


def _fitting(heatmaps: list[Heatmap], model: SparseGraphSVD) -> list[Heatmap | None]:
    """Heatmaps of just these modules; none if those on disk are of others."""
    alike = len(heatmaps) == model.n_components_ and all(
        _all_members(model.columns_[k], heatmap.genes) and _all_members(model.rows_[k], heatmap.samples)
        for k, heatmap in enumerate(heatmaps)
    )
    return [*heatmaps] if alike else [None] * model.n_components_


def _all_members(mask: NDArray[Any], members: NDArray[Any]) -> bool:
    return max(members, default=0) < mask.size and bool(mask[members].all())


def _modules(
    model: SparseGraphSVD,
    heatmaps: list[Heatmap | None],
    edges: pd.DataFrame | None,
    sets: pd.DataFrame | None,
    level: float,
) -> Iterator[ModulePage]:
    graph = matched_graph(model, "column")
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    doubts = _doubts(model)
    for number, summary in enumerate(summary_table(model).to_dict("records")):
        genes, gene_weights = _members(model.components_[number])
        samples, sample_weights = _members(model.left_vectors_[:, number])
        own = gene_names[genes]
        own_sets = None if sets is None else sets[sets["module"] == number].sort_values("q_value", kind="stable")
        found = [] if own_sets is None else own_sets.to_dict("records")
        yield ModulePage(
            number,
            {str(name): value for name, value in summary.items()}
            | {"doubt": doubts.get(number, ""), "chosen": not model.choices_.empty},
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
            level,
        )


def _doubts(model: SparseGraphSVD) -> dict[int, str]:
    """Why the sizes of some modules, where a penalty chose them, are not to be relied on."""
    doubted = model.choices_[model.choices_["diagnostic"] != ""]
    return dict(zip(doubted["module"].tolist(), doubted["diagnostic"].tolist(), strict=True))


def _members(vector: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    members = heaviest(vector)
    return members, vector[members].astype(np.float64)


def _edge_row(edges: pd.DataFrame | None, number: int) -> dict[str, Any] | None:
    if edges is None:
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
