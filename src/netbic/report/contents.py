"""The contents of a report about modules, read from the folder of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.association import matched_scores, stored_record, stored_samples
from netbic.enrichment import DEFAULT_LEVEL, enrichment_record, fit_used_graph, module_names
from netbic.errors import InputError, unusable
from netbic.estimators import (
    SparseGraphSVD,
    fitted_model,
    leading_features,
    names_of,
    recurrent_features,
    smoothness_of,
)
from netbic.files import finished_record, read_json, read_table
from netbic.io.matching import Alignment
from netbic.io.networks import NetworkSummary
from netbic.pl import variable_colours
from netbic.report.associations import (
    AnswerLine,
    AssociationGrid,
    SampleTable,
    answer_lines,
    association_grid,
    findings,
)
from netbic.report.figures import Figure, SampleScores, box_plot, strips, survival_plot
from netbic.report.judgement import EXPLANATIONS, Replicated, Verdict, replication_list, verdict_list, verdict_sentence
from netbic.report.modules import Members, ModulePage, Row
from netbic.report.pictures import Heatmap, read_heatmaps, subnetwork
from netbic.report.settings import Rows, enrichment_rows, input_rows, sample_rows, setting_rows
from netbic.selection import selected_samples
from netbic.storage import load_modules, summary_table

_TOP_TERMS = 10
_MOST_LISTED = 60_000  # samples of all modules that the search and the downloads include
_WIDE = 20  # genes of every module from which on it is remarkable if the same ones lead many modules
_CENTRED = {
    None: "not centred",
    "columns": "each gene centred",
    "rows": "each sample centred",
    "both": "genes and samples centred",
    "grand": "centred by the grand mean",
}
# Warnings of the fit that a diagnostic of the modules expresses as well, by a word in them.
_EXPRESSED_BY = {
    "graph_share": "graph-driven",
    "converge": "not converged",
    "do not identify": "size not identified",
    "worst_rank": "graph-driven",
    "(recurrent)": "same leading genes",
}
_EDGES = {"module", "n_nodes", "n_edges", "expected", "fold_change", "p_value", "q_value", "degree_q_value"}
_SETS = {"module", "term", "name", "n_overlap", "n_term", "n_module", "fold_change", "q_value", "genes"}
_VERDICTS = {"module", "verdict", "reason", "closest", "correlation", "gene_overlap"}
_ASSOCIATIONS = {"variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p", "q"}


@dataclass(kw_only=True)
class Contents:
    """The contents of a report."""

    model: SparseGraphSVD
    record: dict[str, Any]
    modules: list[ModulePage]
    alignment: list[str]
    reasons: list[str]
    missing: list[str]
    levels: dict[str, float]  # largest adjusted p-values at which "edges" and "gene_sets" were called enriched
    sets_tested: bool
    associations: AssociationGrid | None
    answers: tuple[list[AnswerLine], int]  # and how many are left out
    sample_table: SampleTable | None
    settings: Rows
    sample_settings: Rows
    tests: Rows
    inputs: Rows
    title: str

    def __post_init__(self) -> None:
        model, modules = self.model, self.modules
        self.names = {"gene": names_of(model, "columns"), "sample": names_of(model, "rows")}
        self.circular = fit_used_graph(model)
        scaled = ", genes scaled to unit standard deviation" if model.scale else ""
        removed = "" if model.covariates_ is None else ", effects of the covariates removed"
        self.as_fitted = f"{_CENTRED[model.center]}{scaled}{removed}"
        self.verdict_sentence = verdict_sentence([module.verdict for module in modules])
        # The search and the downloads include the samples, unless there are too many for one page.
        self.lists_samples = sum(len(module.samples.positions) for module in modules) <= _MOST_LISTED
        self.with_default_size = [module.number for module in modules if "columns" in module.summary["default_size"]]
        self.selects_samples = not all(module.keeps_all_samples for module in modules)
        # A row per module: the summary, tests for edges, diagnostics, and the kind of its verdict if it is known.
        rows = list[Row]()
        for module in modules:
            judged = {} if module.verdict is None else {"verdict": module.verdict.kind}
            badges = ", ".join(one.badge for one in module.details)
            rows.append({**(module.edges or {}), **module.summary, "diagnostics": badges, **judged})
        self.table = pd.DataFrame(rows) if rows else summary_table(model, feature_name="gene").assign(diagnostics="")
        self._gather_warnings()

    def _gather_warnings(self) -> None:
        """Diagnostics of the modules, warnings of the fit that they do not express, or that there are none."""
        found: dict[tuple[str, str], list[int]] = {}
        for kind, text in EXPLANATIONS.items():
            for module in self.modules:
                if kind in module.kinds:
                    found.setdefault((kind, text or module.kinds[kind]), []).append(module.number)
        self.explanations = [(kind, which, text) for (kind, text), which in found.items()]
        kinds = {kind for module in self.modules for kind in module.kinds}
        expressed = [word for word, kind in _EXPRESSED_BY.items() if kind in kinds]
        texts = [str(text) for text in self.record.get("warnings", [])]
        self.warnings = [text for text in texts if not any(word in text for word in expressed)]
        self.no_warnings = ""
        if self.modules and not self.explanations and not self.warnings:
            self.no_warnings = "No warnings, but the modules were not judged: they may be noise."
            if self.verdict_sentence:
                has_graph = self.model.column_graph is not None
                by_graph = " None is driven by hubs or by the network alone." if has_graph else ""
                self.no_warnings = f"No warnings: all modules converged, and all are found again.{by_graph}"

    def for_script(self) -> dict[str, Any]:
        """Names by position in the data, members, scores and labels; samples only if there are not too many."""
        genes, samples = (
            {at: name for own in members for at, name in zip(own.positions.tolist(), own.names, strict=True)}
            for members in ([module.genes for module in self.modules], [module.samples for module in self.modules])
        )
        known = self.names["sample"]
        if not self.lists_samples:
            drawn = [module.heatmap.samples for module in self.modules if module.heatmap]
            samples = {int(at): str(known[at]) for own in drawn for at in own}
        elif any(module.scores is not None for module in self.modules):
            samples = dict(enumerate(map(str, known))) | samples
        labels = {} if self.sample_table is None or not self.lists_samples else self.sample_table.for_script()
        modules = [module.for_script(self.lists_samples) for module in self.modules]
        return {"genes": genes, "samples": samples, "modules": modules, "labels": labels}


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> Contents:
    """Read the folder of a fit; `model` and `record` are given while the fit is being finished."""
    model = load_modules(folder) if model is None else fitted_model(model)
    record = finished_record(folder) or {} if record is None else record
    alignment, auto = read_record(folder / "alignment.json"), read_record(folder / "auto.json")
    tables, options = _Tables.read(folder, model), enrichment_record(folder)
    kinds = {"edges": tables.edges, "gene_sets": tables.sets}
    levels = {name: float(options[name]["level"]) if name in options else DEFAULT_LEVEL for name in kinds}
    tested = {name: options[name] for name, table in kinds.items() if name in options and table is not None}
    words = {number: verdict.word for number, verdict in enumerate(tables.verdicts, start=1) if verdict is not None}
    given, known = record.get("inputs"), tables.sample_table
    inputs: dict[str, Any] = given if isinstance(given, dict) else {}
    shown_above = () if known is None else ("variables", "adjust", "survival", "types")
    return Contents(
        model=model,
        record=record,
        modules=list(_modules(model, tables, levels["edges"])),
        alignment=list(read_alignment(alignment).lines()) if alignment else [],
        reasons=[str(reason) for reason in auto.get("reasons", [])],
        missing=list(_missing(model, alignment, tables)),
        levels=levels,
        sets_tested=tables.sets is not None,
        associations=association_grid(tables.associations, model.n_components_),
        answers=answer_lines(tables.associations, words),
        sample_table=known,
        settings=setting_rows(model, record.get("settings")),
        sample_settings=[] if known is None else sample_rows(known.record),
        tests=enrichment_rows(tested),
        inputs=input_rows({name: value for name, value in inputs.items() if name not in shown_above}),
        title=PurePath(str(inputs["expression"])).name if inputs.get("expression") else "netbic modules",
    )


def _modules(model: SparseGraphSVD, tables: _Tables, level: float) -> Iterator[ModulePage]:
    graph = model.graphs_["columns"]
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    wide = model.columns_.sum(axis=1).min(initial=_WIDE) >= _WIDE
    recurrent = recurrent_features(list(model.components_) if wide else [])
    chosen = model.choices_.loc[~model.choices_["fallback"].astype(bool), "module"]
    bounded = model.smoothness_scale == "module" and smoothness_of(model.column_smoothness, "module") < 1
    summary = summary_table(model, feature_name="gene")
    summary["chosen"] = bounded | summary["module"].isin(chosen)
    selected, names = selected_samples(model).tolist(), module_names(model, tables.sets)
    colours = {} if tables.sample_table is None else variable_colours(tables.sample_table.variables)
    unidentified = model.choices_[model.choices_["diagnostic"] != ""]
    for at, row in enumerate(summary.to_dict("records")):
        number = int(row["module"])
        genes, weights = Members.of(model.components_[at], gene_names), model.left_vectors_[:, at]
        leading = leading_features(model.components_[at])
        terms, edges = (
            [] if table is None else table[table["module"] == number].to_dict("records") for table in tables[:2]
        )
        # Why the data do not identify its size, by axis, where the penalty used a fallback and where it did not.
        own = unidentified[unidentified["module"] == number]
        parts = own[~own["fallback"].astype(bool)], own[own["fallback"].astype(bool)]
        size_diagnostics, default_size = (dict(zip(part["axis"], part["diagnostic"], strict=True)) for part in parts)
        terms.sort(key=lambda term: float(term["q_value"]))
        heatmap, scores, known = tables.heatmaps[at], tables.scores[at], tables.sample_table
        strongest = [] if known is None else known.strongest(number)
        marks = [] if heatmap is None else strips([one for one, *_ in strongest], heatmap.samples, colours)
        groups = scores
        if scores is not None and selected[at]:  # by the signs of weights: other groups are found in noise as well
            signs = np.where(weights > 0, "up", np.where(weights < 0, "down", "")).astype(object)
            groups = replace(scores, groups=signs)
        yield ModulePage(
            number=number,
            name=names[at],
            summary={**row, "size_diagnostics": size_diagnostics, "default_size": default_size},
            genes=genes,
            samples=Members.of(weights, sample_names),
            n_samples=len(sample_names),
            selected=selected[at],
            recurrent=[str(name) for name in gene_names[leading[np.isin(leading, recurrent)]]],
            network=None if graph is None else subnetwork(graph, *genes),
            heatmap=heatmap,
            strips=marks,
            edges=edges[0] if edges else None,
            level=level,
            terms=terms[:_TOP_TERMS],
            n_terms=len(terms),
            verdict=tables.verdicts[at],
            replication=tables.replication[at],
            scores=groups,
            findings=findings(tables.associations, number),
            plots=[] if scores is None or known is None else list(_plots(scores, known, number)),
        )


def _plots(scores: SampleScores, table: SampleTable, module: int) -> Iterator[Figure]:
    """Scores and survival by what is known about the samples, the strongest association first."""
    tests = table.tests[table.tests["module"] == module]
    for variable, q, test in table.strongest(module):
        made: Figure | None = None
        if variable.kind in ("categorical", "ordered"):
            made = box_plot(scores.scores, variable, q, test)
        elif variable.kind == "survival":
            made = survival_plot(scores, variable, q, test, tests[tests["variable"].astype(str) == variable.name])
        if made is not None:
            yield made


class _Tables(NamedTuple):
    """What the folder contains about the modules, in addition to the model."""

    sets: pd.DataFrame | None
    edges: pd.DataFrame | None
    heatmaps: list[Heatmap | None]
    verdicts: list[Verdict | None]
    scores: list[SampleScores | None]
    associations: pd.DataFrame | None
    sample_table: SampleTable | None
    replication: list[Replicated | None]

    @classmethod
    def read(cls, folder: Path, model: SparseGraphSVD) -> _Tables:
        """Tables and heatmaps, unless they are about the modules of an earlier fit."""
        n = model.n_components_
        known = read_known(folder / "samples.tsv", {"module", "sample", "score", "group"}, "fit again")
        found = matched_scores(known, n, names_of(model, "rows"))
        scores: list[SampleScores | None] = [None] * n
        if found is not None:
            scores = [SampleScores(*pair) for pair in zip(*(each.to_numpy().T for each in found), strict=True)]
        associations = read_associations(folder, {"module"})
        if associations is not None and not associations["module"].between(1, n).all():
            associations = None
        enrich = "run netbic enrich again"
        sets = _of_these_modules(read_known(folder / "gene_sets.tsv", _SETS, enrich), model, "n_module")
        edges = _of_these_modules(read_known(folder / "edges.tsv", _EDGES, enrich), model, "n_nodes")
        if edges is not None:  # an empty cell is a fold change that is not defined, as for a module of one gene
            numbers = [str(name) for name in edges.columns if name != "degree_matched_on"]
            edges = edges.assign(**{name: pd.to_numeric(edges[name], errors="coerce") for name in numbers})
        judged = {"module", "verdict", "reason"}
        replication = read_known(folder / "replication.tsv", judged, "run netbic replicate again")
        return cls(
            sets,
            edges,
            _heatmaps(folder, model, scores),
            verdict_list(read_known(folder / "verdicts.tsv", _VERDICTS, "fit again"), n),
            scores,
            associations,
            SampleTable.of(stored_samples(folder), associations, stored_record(folder), len(model.left_vectors_)),
            replication_list(replication, read_record(folder / "replication.json"), n),
        )


def _heatmaps(folder: Path, model: SparseGraphSVD, scores: list[SampleScores | None]) -> list[Heatmap | None]:
    """Heatmaps of these modules, none if the file is about others; where all samples are kept, by decreasing score."""

    def are_members(mask: NDArray[np.bool_], positions: NDArray[np.int32]) -> bool:
        return max(positions, default=0) < mask.size and bool(mask[positions].all())

    stored, found = read_heatmaps(folder), list[Heatmap | None]()
    if len(stored) != model.n_components_:
        return [None] * model.n_components_
    for heatmap, own, genes, kept in zip(stored, scores, model.columns_, model.rows_, strict=True):
        if not (are_members(genes, heatmap.genes) and are_members(kept, heatmap.samples)):
            return [None] * model.n_components_
        if own is not None and kept.all():
            order = np.argsort(-own.scores[heatmap.samples], kind="stable")
            heatmap = replace(heatmap, values=heatmap.values[:, order], samples=heatmap.samples[order])
        found.append(heatmap)
    return found


def _of_these_modules(table: pd.DataFrame | None, model: SparseGraphSVD, size: str) -> pd.DataFrame | None:
    """The table, unless it is about the modules of an earlier fit."""
    if table is None or table.empty or size not in table:
        return table
    weights = model.components_
    counts = {"up": weights > 0, "down": weights < 0, "both": model.columns_}
    sizes = {(k, side): n for side, masks in counts.items() for k, n in enumerate(masks.sum(axis=1).tolist(), start=1)}
    sides = table["side"] if "side" in table else ["both"] * len(table)
    expected = [sizes.get(key) for key in zip(table["module"], sides, strict=True)]
    return table if expected == table[size].tolist() else None


def read_record(path: Path) -> dict[str, Any]:
    """What a JSON file contains, if it exists."""
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def read_associations(folder: Path, of: set[str]) -> pd.DataFrame | None:
    """The table associations.tsv, if it exists; `of` are the columns that say what the tests are about."""
    return read_known(folder / "associations.tsv", _ASSOCIATIONS | of, "run netbic associate again")


def read_known(path: Path, columns: set[str], remedy: str) -> pd.DataFrame | None:
    """A table of results with some columns, if it exists."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except (ValueError, OSError) as problem:
        raise unusable(path, f"cannot be read ({problem})", remedy) from None
    if lacking := sorted(columns - set(table.columns)):
        raise unusable(path, f"has no column {lacking[0]}", f"netbic did not write it: {remedy}")
    return table


def read_alignment(content: dict[str, Any]) -> Alignment:
    """How a table and its network were matched."""
    try:
        own = {name: value for name, value in content.items() if name != "isolated_share"}
        network = own.pop("network", None)
        return Alignment(**own, network=network and NetworkSummary(**network))
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None


def _missing(model: SparseGraphSVD, alignment: dict[str, Any], tables: _Tables) -> Iterator[str]:
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
