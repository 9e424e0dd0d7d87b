"""The contents of a report, read from the folder of a fit."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.enrichment import DEFAULT_LEVEL, enrichment_record
from netbic.errors import InputError, unusable
from netbic.estimators import SparseGraphSVD, fitted_model, heaviest, matched_graph, names_of, smoothness_of
from netbic.files import finished_record, read_json, read_table
from netbic.readers import NetworkSummary
from netbic.report.heatmaps import Heatmap, picture, read_heatmaps
from netbic.report.network import Subnetwork, subnetwork
from netbic.solver import LARGE_GRAPH_SHARE
from netbic.storage import load, summary_frame
from netbic.study import Alignment

Row = dict[str, Any]  # of a table, by column

_HUB_SHARE, _FEW_EDGES, _BEYOND_EQUALS = 0.5, 10, 0.2
_TOP_MEMBERS, _TOP_TERMS = 15, 10
_CENTRED = {
    None: "not centred",
    "columns": "each gene centred",
    "rows": "each sample centred",
    "both": "genes and samples centred",
    "grand": "centred by the grand mean",
}
_FILES = ("expression", "graph", "gene_sets", "string_info", "graph_names", "id_map")
_EDGES = {"module", "n_nodes", "n_edges", "expected", "fold_change", "p_value", "q_value", "degree_q_value"}
_SETS = {"module", "term", "name", "n_overlap", "n_term", "n_module", "fold_change", "q_value", "genes"}
_NOUNS = {"columns": "genes", "column": "gene", "rows": "samples", "row": "sample", "features": "genes"}
_NOUNS |= {"graph": "network", "graphs": "networks", "Graph": "Network"}
# Warnings of the fit that a diagnostic of the modules expresses as well, by a word in them.
_EXPRESSED_BY = {"graph_share": "graph-driven", "converge": "not converged"}


class Members(NamedTuple):
    """Genes or samples of a module, by decreasing absolute weight."""

    positions: NDArray[np.intp]  # in the data
    weights: NDArray[np.float64]
    names: list[str]

    @property
    def top(self) -> list[tuple[str, float]]:
        """Names and weights of the first few."""
        return list(zip(self.names[:_TOP_MEMBERS], self.weights[:_TOP_MEMBERS].tolist(), strict=True))

    def for_script(self) -> list[list[float]]:
        """Pairs of position and weight."""
        pairs = zip(self.positions.tolist(), self.weights.tolist(), strict=True)
        return [[position, float(f"{weight:.4g}")] for position, weight in pairs]


@dataclass(frozen=True)
class ModulePage:
    """One module, as the page shows it."""

    number: int
    summary: Row
    genes: Members
    samples: Members
    network: Subnetwork | None
    heatmap: Heatmap | None
    edges: Row | None
    terms: list[Row]
    n_terms: int
    level: float = DEFAULT_LEVEL  # largest adjusted p-value at which edges are enriched

    @cached_property
    def diagnostics(self) -> list[str]:
        """What a reader should know before relying on the module."""
        return [name for name, holds in self._diagnostics() if holds]

    def _diagnostics(self) -> Iterator[tuple[str, bool]]:
        yield "not converged", not self.summary["converged"]
        yield "graph-driven", self.summary["graph_share"] > LARGE_GRAPH_SHARE and not self.summary.get("chosen", False)
        yield "hub-driven", self._few_hubs() or self._degrees_explain_it()
        yield "size not identified", bool(self.summary.get("size_diagnostic"))

    def _few_hubs(self) -> bool:
        """Whether three members have half of the edges: many more than if all members had the same degree."""
        drawn = self.network
        if drawn is None or drawn.n_edges < _FEW_EDGES:
            return False
        joined = len(drawn.nodes)
        equals = 1 - (joined - 3) * (joined - 4) / (joined * (joined - 1)) if joined > 4 else 1.0
        return drawn.hub_share >= max(_HUB_SHARE, equals + _BEYOND_EQUALS)

    def _degrees_explain_it(self) -> bool:
        """More edges than random genes (the paper's test), but not more than random genes of the same degrees."""
        return (
            self.comparable
            and self.edges is not None
            and self.edges["q_value"] <= self.level < self.edges["degree_q_value"]
        )

    @property
    def comparable(self) -> bool:
        """Whether other genes have the same degrees; otherwise random sets of such genes are the module itself."""
        edges = self.edges
        return edges is not None and not np.isclose(edges["degree_expected"], edges["n_edges"], rtol=1e-6)

    @property
    def also_matched(self) -> str:
        """In what else than degrees random genes are similar: "", "mean" or "mean and variance"."""
        similar = "degree" if self.edges is None else str(self.edges.get("degree_matched_on", "degree"))
        return " and ".join(similar.split(", ")[1:])

    @property
    def picture(self) -> str:
        """The heatmap as an image."""
        return "" if self.heatmap is None else picture(self.heatmap.values)

    def for_script(self) -> dict[str, Any]:
        """What the script of the page needs in addition to the text."""
        content: dict[str, Any] = {"genes": self.genes.for_script(), "samples": self.samples.for_script()}
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
    """The contents of a report."""

    model: SparseGraphSVD
    record: dict[str, Any]
    modules: list[ModulePage]
    alignment: list[str]
    reasons: list[str]
    missing: list[str] = field(default_factory=list)
    levels: dict[str, float] = field(default_factory=dict)
    sets_tested: bool = False
    tested: dict[str, Row] = field(default_factory=dict)  # recorded options, by table ("edges", "gene_sets")

    @property
    def title(self) -> str:
        """The name of the data file."""
        file = self._inputs().get("expression")
        return PurePath(str(file)).name if file else "netbic modules"

    @property
    def circular(self) -> bool:
        """Whether the network was used to select the genes."""
        return self.model.column_graph is not None and self.model.column_smoothness != 0

    @property
    def as_fitted(self) -> str:
        """How the values were preprocessed for the fit."""
        scaled = ", genes scaled to unit standard deviation" if self.model.scale else ""
        return f"{_CENTRED[self.model.center]}{scaled}"

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per module: the summary, tests for edges, and diagnostics."""
        rows = [
            {**(module.edges or {}), **module.summary, "diagnostics": ", ".join(module.diagnostics)}
            for module in self.modules
        ]
        return pd.DataFrame(rows) if rows else summary_frame(self.model).assign(diagnostics="")

    def with_diagnostic(self, name: str) -> list[int]:
        """Numbers of the modules with a diagnostic."""
        return [module.number for module in self.modules if name in module.diagnostics]

    def warnings(self) -> list[str]:
        """Warnings of the fit, but for those that a diagnostic of the modules expresses as well."""
        texts = [str(text) for text in self.record.get("warnings", self.record.get("remarks", []))]
        expressed = [word for word, name in _EXPRESSED_BY.items() if self.with_diagnostic(name)]
        return [in_genes(text) for text in texts if not any(word in text for word in expressed)]

    def settings(self) -> list[tuple[str, str]]:
        """The options of the command; for other models, their parameters."""
        asked = self.record.get("settings")
        if isinstance(asked, dict):
            if asked.get("auto"):
                asked = {**asked, "modules": f"{self.model.n_components_} (at most {asked.get('modules')})"}
            asked = {**asked, **{name: value for name, value in self._defaults().items() if asked.get(name) is None}}
        if asked is None:
            asked = {name: value for name, value in self.model.get_params(deep=False).items() if "graph" not in name}
        return [(name, _as_text(value)) for name, value in asked.items() if value is not None and value is not False]

    def _defaults(self) -> dict[str, Any]:
        """Values that were used for options that were not given."""
        smoothness = smoothness_of(self.model.column_smoothness, self.model.smoothness_scale)
        used: float | str | None = None if self.model.column_graph is None else smoothness
        if (self.model.choices_["axis"] == "columns").any():
            used = "chosen per module"
        return {"genes": self.model.n_columns, "samples": self.model.n_rows, "smoothness": used}

    def tests(self) -> list[tuple[str, str]]:
        """The recorded options of the enrichment tests."""
        levels = {name.replace("_", " "): f"{options['level']:g}" for name, options in self.tested.items()}
        same = len(set(levels.values())) == 1
        rows = [("level" if same else f"level, {name}", level) for name, level in levels.items()][: 1 if same else None]
        options = self.tested.get("gene_sets", {})
        given = {name: options.get(name) for name in ("by_sign", "collapse")}
        return rows + [(name, _as_text(value)) for name, value in given.items() if value not in (None, False)]

    def inputs(self) -> list[tuple[str, str]]:
        """Names of files, and the options with which they were read."""
        given = {name: value for name, value in self._inputs().items() if value}
        return [(name, PurePath(value).name if name in _FILES else _as_text(value)) for name, value in given.items()]

    def _inputs(self) -> dict[str, Any]:
        given = self.record.get("inputs")
        return given if isinstance(given, dict) else {}

    def names(self, axis: str) -> dict[int, str]:
        """Names of all members ("genes" or "samples"), by position in the data."""
        members: list[Members] = [getattr(module, axis) for module in self.modules]
        return {at: name for own in members for at, name in zip(own.positions.tolist(), own.names, strict=True)}


def in_genes(text: str) -> str:
    """A sentence of the library about genes, samples and the network instead of columns, rows and the graph.

    Examples
    --------
    >>> from netbic.report import in_genes
    >>> in_genes("rows.tsv: the best is at the edge of the grid (all 150 rows); omit --graph")
    'rows.tsv: the best is at the edge of the grid (all 150 samples); omit --graph'
    >>> in_genes("the file has genes in rows")  # a table's orientation
    'the file has genes in rows'
    """
    outside_names = rf"(?<![-\w./'])(?<!\bin )({'|'.join(_NOUNS)})(?![-\w/']|\.\w)"
    return re.sub(outside_names, lambda found: _NOUNS[found[1]], text)


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> Contents:
    """Read the folder of a fit; `model` and `record` are given while the fit is being finished."""
    model = load(folder) if model is None else fitted_model(model)
    record = finished_record(folder) or {} if record is None else record
    alignment, auto = _json(folder / "alignment.json"), _json(folder / "auto.json")
    heatmaps, options = _of_this_model(read_heatmaps(folder), model), enrichment_record(folder)
    edges = _of_these_modules(_table(folder / "edges.tsv", _EDGES), model, "n_nodes")
    sets = _of_these_modules(_table(folder / "gene_sets.tsv", _SETS), model, "n_module")
    levels = _levels(options)
    return Contents(
        model,
        record,
        list(_modules(model, heatmaps, edges, sets, levels["edges"])),
        _alignment_lines(alignment),
        [str(reason) for reason in auto.get("reasons", [])],
        list(_missing(model, alignment, heatmaps, edges, sets)),
        levels,
        sets_tested=sets is not None,
        tested={
            name: options[name]
            for name, table in (("edges", edges), ("gene_sets", sets))
            if name in options and table is not None
        },
    )


def _levels(options: dict[str, Row]) -> dict[str, float]:
    """Largest adjusted p-values at which edges and gene sets were called enriched."""
    return {
        name: float(options[name]["level"]) if name in options else DEFAULT_LEVEL for name in ("edges", "gene_sets")
    }


def _json(path: Path) -> dict[str, Any]:
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def _table(path: Path, columns: set[str]) -> pd.DataFrame | None:
    """A table of enrichment, if it exists."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except (ValueError, OSError) as problem:
        raise unusable(path, f"cannot be read ({problem})", "run netbic enrich again") from None
    if lacking := sorted(columns - set(table.columns)):
        raise unusable(path, f"has no column {lacking[0]}", "netbic did not write it: run netbic enrich again")
    return table


def _of_these_modules(table: pd.DataFrame | None, model: SparseGraphSVD, size: str) -> pd.DataFrame | None:
    """The table, unless it is about the modules of an earlier fit."""
    if table is None or table.empty or size not in table or "sign" in table:
        return table
    sizes = model.columns_.sum(axis=1)
    known = table["module"].between(0, len(sizes) - 1)
    return table if known.all() and (sizes[table["module"]] == table[size]).all() else None


def _of_this_model(heatmaps: list[Heatmap], model: SparseGraphSVD) -> list[Heatmap | None]:
    """Heatmaps of these modules; none if the file is about others."""
    alike = len(heatmaps) == model.n_components_ and all(
        _are_members(model.columns_[k], heatmap.genes) and _are_members(model.rows_[k], heatmap.samples)
        for k, heatmap in enumerate(heatmaps)
    )
    return [*heatmaps] if alike else [None] * model.n_components_


def _are_members(mask: NDArray[np.bool_], positions: NDArray[np.int32]) -> bool:
    return max(positions, default=0) < mask.size and bool(mask[positions].all())


def _modules(
    model: SparseGraphSVD,
    heatmaps: list[Heatmap | None],
    edges: pd.DataFrame | None,
    sets: pd.DataFrame | None,
    level: float,
) -> Iterator[ModulePage]:
    graph = matched_graph(model, "column")
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    unidentified = model.choices_[model.choices_["diagnostic"] != ""].set_index("module")["diagnostic"].to_dict()
    summary = summary_frame(model).assign(chosen=not model.choices_.empty)
    for number, row in enumerate(_rows(summary)):
        genes = _members(model.components_[number], gene_names)
        found = [] if sets is None else _rows(sets[sets["module"] == number].sort_values("q_value", kind="stable"))
        # An empty cell is a fold change that is not defined, as for a module of one gene.
        tested = [] if edges is None else _rows(edges[edges["module"] == number].apply(pd.to_numeric, errors="coerce"))
        yield ModulePage(
            number,
            row | {"size_diagnostic": unidentified.get(number, "")},
            genes,
            _members(model.left_vectors_[:, number], sample_names),
            None if graph is None else subnetwork(graph, genes.positions, genes.weights, genes.names),
            heatmaps[number],
            tested[0] if tested else None,
            found[:_TOP_TERMS],
            len(found),
            level,
        )


def _rows(table: pd.DataFrame) -> list[Row]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _members(vector: NDArray[Any], names: NDArray[Any]) -> Members:
    positions = heaviest(vector)
    return Members(positions, vector[positions].astype(np.float64), [str(name) for name in names[positions]])


def _alignment_lines(alignment: dict[str, Any]) -> list[str]:
    if not alignment:
        return []
    content = {name: value for name, value in alignment.items() if name != "isolated_share"}
    network = content.pop("network", None)
    try:
        return list(Alignment(**content, network=network and NetworkSummary(**network)).lines())
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None


def _missing(
    model: SparseGraphSVD,
    alignment: dict[str, Any],
    heatmaps: list[Heatmap | None],
    edges: pd.DataFrame | None,
    sets: pd.DataFrame | None,
) -> Iterator[str]:
    if not alignment:
        yield "the summary of the matching (alignment.json), which netbic fit writes"
    if None in heatmaps:
        yield "heatmaps (heatmaps.npz), which netbic fit writes; they need the data"
    if model.column_graph is None:
        yield "networks of the modules: the model was fitted without a network"
    elif edges is None:
        yield "tests for edges (edges.tsv): run netbic enrich"
    if sets is None:
        yield "enriched gene sets (gene_sets.tsv): run netbic enrich with a file of gene sets, then netbic report"


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)
