"""The contents of a report about modules, read from the folder of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Floats
from netbic.association.associate import matched_scores
from netbic.association.stored import adjusted_tests, stored_record, stored_samples
from netbic.enrichment import DEFAULT_LEVEL, enrichment_record, fit_used_graph, module_names
from netbic.errors import InputError, one_line, unusable
from netbic.estimators.parameters import smoothness_of
from netbic.estimators.results import leading_features, names_of, recurrent_features
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.files import finished_record, read_json, read_table
from netbic.io.matching import Alignment
from netbic.io.networks import NetworkSummary
from netbic.pl.base import variable_colours
from netbic.report import pictures
from netbic.report.associations import (
    Beside,
    SampleTable,
    answer_lines,
    association_grid,
    findings,
    group_findings,
    is_survival_unadjusted,
)
from netbic.report.modules import EXPLANATIONS, TOP_MEMBERS, Members, ModulePage, Row, Verdict
from netbic.report.settings import enrichment_rows, input_rows, sample_rows, setting_rows
from netbic.selection import selected_samples, verdict_sentence
from netbic.storage.models import load_modules
from netbic.storage.tables import sides_of, summary_table

TOP_TERMS = 10
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
    "worst_rank": "graph-driven",
    "(recurrent)": "same leading genes",
}
# What the genes of a module do in another study, which says nothing about its associations there.
_REPLICATED = {
    "strong": "its genes move together in",
    "weak": "its genes weakly move together in",
    "not replicated": "its genes are not shown to move together in",
}
_REPEATED = {"module", "variable", "level", "q", "effect_name", "effect_other", "p_other", "q_other", "holds"}
_COMPARED = {"expected", "fold_change", "p_value", "q_value"}
_EDGES = {"module", "n_nodes", "n_edges", *_COMPARED, *(f"degree_{name}" for name in _COMPARED)}
SETS = {"module", "term", "name", "n_overlap", "n_term", "n_module", "fold_change", "q_value", "genes"}
_VERDICTS = ["verdict", "reason", "technical", "closest", "correlation", "gene_overlap"]
TESTS = {"variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p", "q"}


def gather(folder: Path, model: SparseGraphSVD | None = None, record: dict[str, Any] | None = None) -> SimpleNamespace:
    """Read the folder of a fit; `model` and `record` are given while the fit is being finished."""
    model = load_modules(folder) if model is None else fitted_model(model)
    record = finished_record(folder) or {} if record is None else record
    alignment, found, options = read_record(folder / "alignment.json"), _read(folder, model), enrichment_record(folder)
    kinds = {"edges": found.edges, "gene_sets": found.sets}
    # Largest adjusted p-values at which edges and gene sets were called enriched.
    levels = {name: float(options[name]["level"]) if name in options else DEFAULT_LEVEL for name in kinds}
    tested = {name: options[name] for name, table in kinds.items() if name in options and table is not None}
    words = {number: verdict.word for number, verdict in enumerate(found.verdicts, start=1) if verdict is not None}
    given, known = record.get("inputs"), found.sample_table
    noted = {} if known is None else known.record
    of_batches = list(noted.get("of_batches", ()))
    inputs: dict[str, Any] = given if isinstance(given, dict) else {}
    shown_above = ("title", *(() if known is None else ("variables", "adjust", "survival", "types")))
    modules = list(_modules(model, found, levels["edges"]))
    # A row per module: the summary, tests for edges, diagnostics, and the kind of its verdict if it is known.
    rows = list[dict[Any, Any]]()
    for module in modules:
        judged = {} if module.verdict is None else {"verdict": module.verdict.kind}
        badges = ", ".join(one.badge for one in module.details)
        rows.append({**(module.edges or {}), **module.summary, "diagnostics": badges, **judged})
    power = model.scale_power
    by = "standard deviation" if power == 1 else f"standard deviation to the power of {power:g}"
    scaled = f", genes divided by their {by}" if power else ""
    removed = "" if model.covariates_ is None else ", effects of the covariates removed"
    missing = {
        "verdicts (verdicts.tsv), which netbic fit writes unless they are switched off": None in found.verdicts,
        "scores and groups of the samples (samples.tsv), which netbic fit writes": None in found.scores,
        "the summary of the matching (alignment.json), which netbic fit writes": not alignment,
        "heatmaps (heatmaps.npz), which netbic fit writes; they need the data": None in found.heatmaps,
        "networks of the modules: the model was fitted without a network": model.column_graph is None,
        "tests for edges (edges.tsv): run netbic enrich": model.column_graph is not None and found.edges is None,
        **{f"figures of {problem}": True for problem in ([] if known is None else known.not_shown)},
    }
    gene_sets = "enriched gene sets (gene_sets.tsv): run netbic enrich with a file of gene sets, then netbic report"
    missing[gene_sets] = found.sets is None
    return SimpleNamespace(
        model=model,
        record=record,
        names={"gene": names_of(model, "columns"), "sample": names_of(model, "rows")},
        title=_title(inputs),
        verdict_sentence=found.verdict_sentence,
        modules=modules,
        table=pd.DataFrame(rows) if rows else summary_table(model, feature_name="gene").assign(diagnostics=""),
        # The search and the downloads include the samples, unless there are too many for one page.
        lists_samples=sum(len(module.samples.positions) for module in modules) <= _MOST_LISTED,
        selects_samples=not all(module.keeps_all_samples for module in modules),
        circular=fit_used_graph(model),
        as_fitted=f"{_CENTRED[model.center]}{scaled}{removed}",
        levels=levels,
        sets_tested=found.sets is not None,
        associations=association_grid(found.associations, model.n_components_, words),
        is_unadjusted=known is not None
        and not found.beside.adjusted
        and is_survival_unadjusted(found.associations, known.record),
        answers=answer_lines(found.associations, words, found.beside),
        repeated=found.beside.sentence,
        sample_table=known,
        alignment=list(read_alignment(alignment).lines()) if alignment else [],
        missing=[text for text, is_missing in missing.items() if is_missing],
        settings=setting_rows(model, record.get("settings")),
        notes=[note for note in noted.get("notes", ()) if note not in of_batches],
        of_batches=of_batches,
        sample_settings=[] if known is None else sample_rows(known.record),
        tests=enrichment_rows(tested),
        inputs=input_rows({name: value for name, value in inputs.items() if name not in shown_above}),
        **warnings_of(modules, record, has_graph=model.column_graph is not None),
    )


def _title(inputs: dict[str, Any]) -> str:
    """The title that was given, or the name of the file with the data without its ending."""
    if inputs.get("title"):
        return str(inputs["title"])
    return PurePath(str(inputs.get("expression") or "netbic modules").removesuffix(".gz")).stem


def warnings_of(modules: Sequence[ModulePage], record: dict[str, Any], has_graph: bool) -> dict[str, Any]:
    """Diagnostics of the modules, warnings of the fit that they do not express, or that there are none."""
    found: dict[tuple[str, str], list[int]] = {}
    for kind, text in EXPLANATIONS.items():
        for module in modules:
            if kind in module.kinds:
                found.setdefault((kind, text or module.kinds[kind]), []).append(module.number)
    kinds = {kind for module in modules for kind in module.kinds}
    expressed = [word for word, kind in _EXPRESSED_BY.items() if kind in kinds]
    texts = [str(text) for text in record.get("warnings", [])]
    warnings, none = [text for text in texts if not any(word in text for word in expressed)], ""
    if modules and not found and not warnings:
        none = "No warnings, but the modules were not judged: they may be noise."
        if any(module.verdict is not None for module in modules):
            by_graph = " None is driven by hubs or by the network alone." if has_graph else ""
            none = f"No warnings: all modules converged, and all are found again.{by_graph}"
    explanations = [(kind, which, text) for (kind, text), which in found.items()]
    return {"explanations": explanations, "warnings": warnings, "no_warnings": none}


def for_script(contents: SimpleNamespace) -> dict[str, Any]:
    """Names by position in the data, members, scores and labels; samples only if there are not too many."""
    modules, with_samples = contents.modules, contents.lists_samples
    genes, samples = (
        {at: name for own in members for at, name in zip(own.positions.tolist(), own.names, strict=True)}
        for members in ([module.genes for module in modules], [module.samples for module in modules])
    )
    known, labels = contents.names["sample"], dict[str, Any]()
    if not with_samples:
        samples = {int(at): str(known[at]) for module in modules if module.heatmap for at in module.heatmap.samples}
    elif any(module.scores is not None for module in modules):
        samples = dict(enumerate(map(str, known))) | samples
    if with_samples and contents.sample_table is not None:  # levels and their positions, or numbers, for tooltips
        for variable in contents.sample_table.variables:
            if variable.kind != "survival":
                labels[variable.name] = {"levels": list(variable.levels), "values": _rounded(variable.values)}
    return {
        "genes": genes,
        "samples": samples,
        "modules": [_module_for_script(module, with_samples) for module in modules],
        "labels": labels,
    }


def _module_for_script(module: ModulePage, with_samples: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        kind: list(zip(own.positions.tolist(), _rounded(own.weights), strict=True))
        for kind, own in (("genes", module.genes), ("samples", module.samples))
    }
    if not with_samples:
        content["samples"] = []
    elif module.scores is not None:  # a letter per sample for its group
        letters = "".join({"up": "u", "down": "d"}.get(group, "-") for group in module.scores.groups)
        content |= {"scores": _rounded(module.scores.scores), "groups": letters}
    if module.network is not None:
        content["edges"] = module.network.edges.ravel().tolist()
    if (heatmap := module.heatmap) is not None:
        content["heatmap"] = {
            "genes": heatmap.genes.tolist(),
            "samples": heatmap.samples.tolist(),
            "limit": float(f"{heatmap.limit:.4g}"),
            "strips": [strip["variable"] for strip in module.strips],
        }
    return content


def _rounded(values: Floats) -> list[float | int | None]:
    """Four digits; whole numbers as such, null if missing."""
    rounded = [float(f"{value:.4g}") for value in values.tolist()]
    return [None if not np.isfinite(value) else int(value) if value.is_integer() else value for value in rounded]


def _read(folder: Path, model: SparseGraphSVD) -> SimpleNamespace:
    """Tables and heatmaps of the folder, unless they are about the modules of an earlier fit."""
    n = model.n_components_

    def of_all_modules(name: str, columns: Sequence[str], remedy: str) -> pd.DataFrame | None:
        table = read_known(folder / name, {"module", *columns}, remedy)
        return table if table is not None and table["module"].tolist() == list(range(1, n + 1)) else None

    found = SimpleNamespace(verdict_sentence="")  # how many modules are strong, moderate, repetitions and doubtful
    found.scores, found.verdicts, found.replication = [None] * n, [None] * n, [None] * n
    found.judged = _judged_genes(folder, n)
    known = read_known(folder / "samples.tsv", {"module", "sample", "score", "group"}, "fit again")
    if (matched := matched_scores(known, n, names_of(model, "rows"))) is not None:
        found.scores = [
            pictures.SampleScores(*pair) for pair in zip(*(each.to_numpy().T for each in matched), strict=True)
        ]
    found.heatmaps = _heatmaps(folder, model, found.scores)
    found.associations = read_known(folder / "associations.tsv", {"module", *TESTS}, "run netbic associate again")
    if found.associations is not None and not found.associations["module"].between(1, n).all():
        found.associations = None
    about_samples = stored_samples(folder), found.associations, stored_record(folder)
    found.sample_table = SampleTable.of(*about_samples, len(model.left_vectors_))
    enrich = "run netbic enrich again"
    found.sets = _of_these_modules(read_known(folder / "gene_sets.tsv", SETS, enrich), model, "n_module")
    found.edges = _of_these_modules(read_known(folder / "edges.tsv", _EDGES, enrich), model, "n_nodes")
    if found.edges is not None:  # an empty cell is a fold change that is not defined, as for a module of one gene
        numbers = found.edges.columns.drop("degree_matched_on", errors="ignore")
        found.edges[numbers] = found.edges[numbers].apply(pd.to_numeric, errors="coerce")
    if (judged := of_all_modules("verdicts.tsv", _VERDICTS, "fit again")) is not None and n:
        known = judged[_VERDICTS].fillna({"technical": ""})
        found.verdicts = [
            Verdict(str(word), str(reason), one_line(str(text)), None if pd.isna(other) else int(other), *similar)
            for word, reason, text, other, *similar in known.itertuples(index=False, name=None)
        ]
        found.verdict_sentence = verdict_sentence(judged)
    found.beside = _beside(folder, found.associations)
    judged = of_all_modules("replication.tsv", ["verdict", "reason"], "run netbic replicate again")
    if judged is not None:
        record = read_record(folder / "replication.json")
        about = {"study": _other_study(record), "n_shared": int(record.get("n_shared", 0))}
        found.replication = [
            {
                "text": _REPLICATED.get(word, f"{word} whether its genes move together in"),
                "reason": str(reason),
                **about,
            }
            for word, reason in zip(judged["verdict"].astype(str), judged["reason"], strict=True)
        ]
    return found


def _other_study(record: dict[str, Any]) -> str:
    """The study of `netbic replicate`, from replication.json."""
    return str(record.get("study") or "another study")


def _beside(folder: Path, tests: pd.DataFrame | None) -> Beside:
    """Adjusted tests, and the same associations in another study, if they are in the folder."""
    if tests is None:
        return Beside()
    repeated = read_known(folder / "replication_associations.tsv", _REPEATED, "run netbic replicate again")
    record = read_record(folder / "replication.json")
    return Beside(adjusted_tests(folder), _other_study(record), repeated, record)


def _judged_genes(folder: Path, n: int) -> list[list[Row]]:
    """The genes of every module with their confidence and kME, the most confident first; none if they are unknown."""
    table = read_known(folder / "modules.tsv", {"module", "name", "weight"}, "fit again")
    if table is None or "confidence" not in table:
        return [[] for _ in range(n)]
    table = table[table["confidence"].notna()].sort_values(["confidence", "kme"], ascending=False, kind="stable")
    return [table[table["module"] == module].head(TOP_MEMBERS).to_dict("records") for module in range(1, n + 1)]


def _heatmaps(
    folder: Path, model: SparseGraphSVD, scores: list[pictures.SampleScores | None]
) -> list[pictures.Heatmap | None]:
    """Heatmaps of these modules, none if the file is about others; where all samples are kept, by decreasing score."""

    def are_members(mask: NDArray[np.bool_], positions: NDArray[np.int32]) -> bool:
        return max(positions, default=0) < mask.size and bool(mask[positions].all())

    stored, found = pictures.read_heatmaps(folder), list[pictures.Heatmap | None]()
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


def _modules(model: SparseGraphSVD, found: SimpleNamespace, level: float) -> Iterator[ModulePage]:
    graph, known = model.graphs_["columns"], found.sample_table
    gene_names, sample_names = (names_of(model, axis) for axis in ("columns", "rows"))
    wide = model.columns_.sum(axis=1).min(initial=_WIDE) >= _WIDE
    recurrent = recurrent_features(list(model.components_) if wide else [])
    summary = summary_table(model, feature_name="gene")
    bounded = model.smoothness_scale == "module" and smoothness_of(model.column_smoothness, "module") < 1
    summary["bounded"] = bounded
    selected, names = selected_samples(model).tolist(), module_names(model, found.sets)
    colours = {} if known is None else variable_colours(known.variables)
    sentences, of_groups = findings(found.associations, found.beside), group_findings(found.associations)
    tables = None if found.sets is None else found.sets.sort_values("q_value", kind="stable"), found.edges
    for at, row in enumerate(summary.to_dict("records")):
        number = int(row["module"])
        genes, weights = Members.of(model.components_[at], gene_names), model.left_vectors_[:, at]
        leading = leading_features(model.components_[at])
        terms, edges = (pd.DataFrame() if own is None else own[own["module"] == number] for own in tables)
        heatmap, scores = found.heatmaps[at], found.scores[at]
        strongest = [] if known is None else known.strongest(number)
        marks = [] if heatmap is None else pictures.strips([one for one, *_ in strongest], heatmap.samples, colours)
        plots = list[pictures.Figure | None]()  # by what is known about the samples, the strongest association first
        for variable, q, test in [] if scores is None else strongest:
            if variable.kind in ("categorical", "ordered"):
                plots.append(pictures.box_plot(scores.scores, variable, q, test))
            elif variable.kind == "survival":
                own = (known.tests["module"] == number) & (known.tests["variable"].astype(str) == variable.name)
                plots.append(pictures.survival_plot(scores, variable, q, test, known.tests[own]))
        groups = scores
        if scores is not None and selected[at]:  # by the signs of weights: other groups are found in noise as well
            groups = replace(scores, groups=sides_of(weights))
        yield ModulePage(
            number=number,
            name=names[at],
            summary=row,
            genes=genes,
            samples=Members.of(weights, sample_names),
            n_samples=len(sample_names),
            selected=selected[at],
            recurrent=[str(name) for name in gene_names[leading[np.isin(leading, recurrent)]]],
            network=None if graph is None else pictures.subnetwork(graph, *genes),
            heatmap=heatmap,
            strips=marks,
            edges=None if edges.empty else edges.iloc[[0]].to_dict("records")[0],
            level=level,
            terms=terms.head(TOP_TERMS).to_dict("records"),
            n_terms=len(terms),
            verdict=found.verdicts[at],
            judged=found.judged[at],
            replication=found.replication[at],
            scores=groups,
            findings=sentences.get(number, []),
            group_findings=of_groups.get(number, []),
            plots=[plot for plot in plots if plot is not None],
        )


def read_record(path: Path) -> dict[str, Any]:
    """What a JSON file contains, if it exists."""
    content = read_json(path) if path.is_file() else {}
    return content if isinstance(content, dict) else {}


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
