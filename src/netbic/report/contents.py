"""The contents of a report, read from the folder of a fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Floats
from netbic.enrichment import DEFAULT_LEVEL, enrichment_record, fit_used_graph, module_names
from netbic.errors import InputError
from netbic.estimators import (
    SparseGraphSVD,
    fitted_model,
    heaviest,
    leading_features,
    names_of,
    recurrent_features,
    smoothness_of,
)
from netbic.files import finished_record
from netbic.io import Alignment, NetworkSummary
from netbic.pl import variable_colours
from netbic.report.associations import AnswerLine, AssociationGrid, answer_lines, findings
from netbic.report.box_plots import BoxPlot, box_plot
from netbic.report.heatmaps import Heatmap
from netbic.report.judgement import EXPLANATIONS, verdict_sentence
from netbic.report.modules import Members, ModulePage, Row
from netbic.report.network import subnetwork
from netbic.report.sample_table import LEVELS, SURVIVAL, SampleTable
from netbic.report.samples import SampleScores
from netbic.report.settings import enrichment_rows, input_rows, sample_rows, setting_rows
from netbic.report.strips import Strip, strips
from netbic.report.survival_curves import SurvivalPlot, survival_plot
from netbic.report.tables import Tables, read_record
from netbic.selection import selected_samples
from netbic.solver import LARGE_GRAPH_SHARE
from netbic.storage import load_modules, summary_table

_TOP_TERMS = 10
_MOST_LISTED = 60_000  # samples of all modules that the search and the downloads include
_CENTRED = {
    None: "not centred",
    "columns": "each gene centred",
    "rows": "each sample centred",
    "both": "genes and samples centred",
    "grand": "centred by the grand mean",
}
_MATCHED = "degree_matched_on"  # the column of edges.tsv that is text
_NOUNS = {"columns": "genes", "column": "gene", "rows": "samples", "row": "sample", "features": "genes"}
_NOUNS |= {"graph": "network", "graphs": "networks", "Graph": "Network"}
# Warnings of the fit that a diagnostic of the modules expresses as well, by a word in them.
_EXPRESSED_BY = {
    "graph_share": "graph-driven",
    "converge": "not converged",
    "do not identify": "size not identified",
    "worst_rank": "graph-driven",
    "recurrent in": "same leading genes",
}
_WIDE = 20  # genes of every module from which on it is remarkable if the same ones lead many modules


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
    associations: AssociationGrid | None = None
    answers: tuple[list[AnswerLine], int] = field(default_factory=lambda: ([], 0))  # and how many are left out
    sample_table: SampleTable | None = None

    @property
    def title(self) -> str:
        """The name of the data file."""
        file = self._inputs().get("expression")
        return PurePath(str(file)).name if file else "netbic modules"

    @property
    def circular(self) -> bool:
        """Whether the network was used to select the genes."""
        return fit_used_graph(self.model)

    @property
    def as_fitted(self) -> str:
        """How the values were preprocessed for the fit."""
        scaled = ", genes scaled to unit standard deviation" if self.model.scale else ""
        removed = "" if self.model.covariates_ is None else ", effects of the covariates removed"
        return f"{_CENTRED[self.model.center]}{scaled}{removed}"

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per module: the summary, tests for edges, diagnostics, and the kind of its verdict if it is known."""
        rows = [
            {
                **(module.edges or {}),
                **module.summary,
                "diagnostics": ", ".join(module.diagnostics),
                **({} if module.verdict is None else {"verdict": module.verdict.kind}),
            }
            for module in self.modules
        ]
        return pd.DataFrame(rows) if rows else summary_table(self.model).assign(diagnostics="")

    def scores(self) -> Floats | None:
        """Scores of the samples, modules by samples; None if they are not known."""
        known = [module.scores.scores for module in self.modules if module.scores is not None]
        return np.array(known) if known and len(known) == len(self.modules) else None

    @property
    def verdict_sentence(self) -> str:
        """How many modules are strong, moderate, repetitions and doubtful; "" if they were not judged."""
        return verdict_sentence([module.verdict for module in self.modules])

    def with_kind(self, kind: str) -> list[int]:
        """Modules about which this should be known, as they are numbered in the page."""
        return [module.label for module in self.modules if kind in module.kinds]

    def explanations(self) -> list[tuple[str, list[int], str]]:
        """What should be known about modules: its name, the modules, and what it means."""
        found: dict[tuple[str, str], list[int]] = {}
        for kind, text in EXPLANATIONS.items():
            for module in self.modules:
                if kind in module.kinds:
                    found.setdefault((kind, text or module.kinds[kind]), []).append(module.label)
        return [(kind, which, text.format(share=f"{LARGE_GRAPH_SHARE:.0%}")) for (kind, text), which in found.items()]

    def no_warnings(self) -> str:
        """That there is nothing to warn of, and what was examined; "" if there are warnings."""
        if not self.modules or self.explanations() or self.warnings():
            return ""
        if not self.verdict_sentence:
            return "No warnings, but the modules were not judged: they may be noise."
        by_graph = " None is driven by hubs or by the network alone." if self.model.column_graph is not None else ""
        return f"No warnings: all modules converged, and all are found again.{by_graph}"

    def warnings(self) -> list[str]:
        """Warnings of the fit, but for those that a diagnostic of the modules expresses as well."""
        texts = [str(text) for text in self.record.get("warnings", self.record.get("remarks", []))]
        expressed = [word for word, name in _EXPRESSED_BY.items() if self.with_kind(name)]
        return [from_one(in_genes(text)) for text in texts if not any(word in text for word in expressed)]

    @property
    def lists_samples(self) -> bool:
        """Whether the search and the downloads include the samples: not if there are too many for one page."""
        return sum(len(module.samples.positions) for module in self.modules) <= _MOST_LISTED

    @property
    def with_default_size(self) -> list[int]:
        """Modules whose number of genes is the default, because the data do not determine it."""
        return [module.label for module in self.modules if "columns" in module.summary["default_size"]]

    @property
    def selects_samples(self) -> bool:
        """Whether some module keeps only some of the samples."""
        return not all(module.keeps_all_samples for module in self.modules)

    def settings(self) -> list[tuple[str, str]]:
        """The options of the command; for other models, their parameters."""
        return setting_rows(self.model, self.record.get("settings"))

    def sample_settings(self) -> list[tuple[str, str]]:
        """The variables of the sample table, and how they were tested."""
        return [] if self.sample_table is None else sample_rows(self.sample_table.record)

    def tests(self) -> list[tuple[str, str]]:
        """The recorded options of the enrichment tests."""
        return enrichment_rows(self.tested)

    def inputs(self) -> list[tuple[str, str]]:
        """Names of files, and the options with which they were read."""
        shown_above = () if self.sample_table is None else ("variables", "adjust", "survival", "types")
        return input_rows({name: value for name, value in self._inputs().items() if name not in shown_above})

    def _inputs(self) -> dict[str, Any]:
        given = self.record.get("inputs")
        return given if isinstance(given, dict) else {}

    def labels(self) -> dict[str, Any]:
        """What is known about the samples, for tooltips; nothing if there are too many samples for one page."""
        return self.sample_table.for_script() if self.sample_table is not None and self.lists_samples else {}

    def names(self, axis: str) -> dict[int, str]:
        """Names of the "genes" or "samples" that the script shows, by position in the data."""
        if axis == "samples" and not self.lists_samples:
            known, drawn = names_of(self.model, "rows"), [module.heatmap for module in self.modules if module.heatmap]
            return {int(at): str(known[at]) for heatmap in drawn for at in heatmap.samples}
        members: list[Members] = [getattr(module, axis) for module in self.modules]
        names = {at: name for own in members for at, name in zip(own.positions.tolist(), own.names, strict=True)}
        if axis == "samples" and any(module.scores is not None for module in self.modules):
            return dict(enumerate(map(str, names_of(self.model, "rows")))) | names
        return names


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


def from_one(text: str) -> str:
    """A warning of the library, in which modules count from 0, with the numbers of the page, which count from 1.

    Examples
    --------
    >>> from netbic.report import from_one
    >>> from_one("found 4 of 5 modules; modules 0, 3 did not converge (module 0 ran into a cycle)")
    'found 4 of 5 modules; modules 1, 4 did not converge (module 1 ran into a cycle)'
    """
    return re.sub(
        r"\b((?:module|pair)s? )(\d+(?:, \d+)*)",
        lambda found: found[1] + re.sub(r"\d+", lambda number: str(int(number[0]) + 1), found[2]),
        text,
    )


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> Contents:
    """Read the folder of a fit; `model` and `record` are given while the fit is being finished."""
    model = load_modules(folder) if model is None else fitted_model(model)
    record = finished_record(folder) or {} if record is None else record
    alignment, auto = read_record(folder / "alignment.json"), read_record(folder / "auto.json")
    tables, options = Tables.read(folder, model), enrichment_record(folder)
    levels = _levels(options)
    words = {number: verdict.word for number, verdict in enumerate(tables.verdicts) if verdict is not None}
    return Contents(
        model,
        record,
        list(_modules(model, tables, levels["edges"])),
        _alignment_lines(alignment),
        [str(reason) for reason in auto.get("reasons", [])],
        list(_missing(model, alignment, tables)),
        levels,
        sets_tested=tables.sets is not None,
        tested={
            name: options[name]
            for name, table in (("edges", tables.edges), ("gene_sets", tables.sets))
            if name in options and table is not None
        },
        associations=AssociationGrid.of(tables.associations, model.n_components_),
        answers=answer_lines(tables.associations, words),
        sample_table=tables.sample_table,
    )


def _levels(options: dict[str, Row]) -> dict[str, float]:
    """Largest adjusted p-values at which edges and gene sets were called enriched."""
    return {
        name: float(options[name]["level"]) if name in options else DEFAULT_LEVEL for name in ("edges", "gene_sets")
    }


def _modules(model: SparseGraphSVD, tables: Tables, level: float) -> Iterator[ModulePage]:
    graph = model.graphs_["columns"]
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    wide = model.columns_.sum(axis=1).min(initial=_WIDE) >= _WIDE
    recurrent = recurrent_features(list(model.components_) if wide else [])
    chosen = model.choices_.loc[~model.choices_["fallback"].astype(bool), "module"]
    bounded = model.smoothness_scale == "module" and smoothness_of(model.column_smoothness, "module") < 1
    summary = summary_table(model).assign(chosen=lambda table: bounded | table["module"].isin(chosen))
    selected = selected_samples(model).tolist()
    names = module_names(model, tables.sets)
    for number, row in enumerate(_rows(summary)):
        genes = _members(model.components_[number], gene_names)
        leading = leading_features(model.components_[number])
        found, tested = _of_module(tables.sets, number), _of_module(tables.edges, number)
        terms = [] if found is None else _rows(found.sort_values("q_value", kind="stable"))
        yield ModulePage(
            number,
            row
            | {"size_diagnostics": _unidentified(model, number, fallback=False)}
            | {"default_size": _unidentified(model, number, fallback=True)},
            genes,
            _members(model.left_vectors_[:, number], sample_names),
            None if graph is None else subnetwork(graph, genes.positions, genes.weights, genes.names),
            tables.heatmaps[number],
            None if tested is None or tested.empty else _rows(_numeric(tested))[0],
            terms[:_TOP_TERMS],
            len(terms),
            level,
            tables.verdicts[number],
            _groups(tables.scores[number], model.left_vectors_[:, number], selected[number]),
            len(sample_names),
            tuple(map(str, gene_names[leading[np.isin(leading, recurrent)]])),
            selected[number],
            names[number],
            tuple(findings(tables.associations, number)),
            tuple(_plots(tables.scores[number], tables.sample_table, number)),
            tuple(_strips(tables.heatmaps[number], tables.sample_table, number)),
            tables.replication[number],
        )


def _plots(scores: SampleScores | None, table: SampleTable | None, module: int) -> Iterator[BoxPlot | SurvivalPlot]:
    """Scores and survival by what is known about the samples, the strongest association first."""
    if scores is None or table is None:
        return
    tests = table.tests[table.tests["module"] == module]
    for variable, q, test in table.strongest(module):
        made: BoxPlot | SurvivalPlot | None = None
        if variable.kind in LEVELS:
            made = box_plot(scores.scores, variable, q)
        elif variable.kind == SURVIVAL:
            made = survival_plot(scores, variable, q, tests[tests["variable"].astype(str) == variable.name])
        if made is not None:
            yield made._replace(test=test)


def _strips(heatmap: Heatmap | None, table: SampleTable | None, module: int) -> list[Strip]:
    if heatmap is None or table is None:
        return []
    ordered = [variable for variable, *_ in table.strongest(module)]
    return strips(ordered, heatmap.samples, variable_colours(table.variables))


def _groups(scores: SampleScores | None, weights: NDArray[Any], selected: bool) -> SampleScores | None:
    """Selected samples are up or down by the signs of their weights: groups of them are found in noise as well."""
    if not selected:
        return scores
    groups = np.where(weights > 0, "up", np.where(weights < 0, "down", "")).astype(object)
    return None if scores is None else replace(scores, groups=groups)


def _of_module(table: pd.DataFrame | None, number: int) -> pd.DataFrame | None:
    return None if table is None else table[table["module"] == number]


def _numeric(edges: pd.DataFrame) -> pd.DataFrame:
    """Tests for edges; an empty cell is a fold change that is not defined, as for a module of one gene."""
    numbers = [str(name) for name in edges.columns if name != _MATCHED]
    return edges.assign(**{name: pd.to_numeric(edges[name], errors="coerce") for name in numbers})


def _unidentified(model: SparseGraphSVD, number: int, *, fallback: bool) -> dict[str, str]:
    """Why the data do not identify the size of a module, by axis, where the penalty used a fallback or did not."""
    own = model.choices_[(model.choices_["module"] == number) & (model.choices_["diagnostic"] != "")]
    own = own[own["fallback"].astype(bool) == fallback]
    return dict(zip(own["axis"], own["diagnostic"], strict=True))


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


def _missing(model: SparseGraphSVD, alignment: dict[str, Any], tables: Tables) -> Iterator[str]:
    if None in tables.verdicts:
        yield "verdicts (verdicts.tsv), which netbic fit writes unless they are switched off"
    if None in tables.scores:
        yield "scores and groups of the samples (samples.tsv), which netbic fit writes"
    if not alignment:
        yield "the summary of the matching (alignment.json), which netbic fit writes"
    if None in tables.heatmaps:
        yield "heatmaps (heatmaps.npz), which netbic fit writes; they need the data"
    if model.column_graph is None:
        yield "networks of the modules: the model was fitted without a network"
    elif tables.edges is None:
        yield "tests for edges (edges.tsv): run netbic enrich"
    for problem in [] if tables.sample_table is None else tables.sample_table.not_shown:
        yield f"figures of {problem}"
    if tables.sets is None:
        yield "enriched gene sets (gene_sets.tsv): run netbic enrich with a file of gene sets, then netbic report"
