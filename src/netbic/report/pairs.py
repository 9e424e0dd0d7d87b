"""The contents of a report about pairs of two tables, read from their folder."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats
from netbic.association.stored import adjusted_tests, stored_record, stored_samples, stored_variables
from netbic.association.variables import Variable
from netbic.association.words import LEVEL, in_words, main_tests
from netbic.enrichment import DEFAULT_LEVEL, ONE_SIDE, enrichment_record, module_names, shared_sentence
from netbic.errors import InputError
from netbic.estimators.covariates import covariate_names
from netbic.estimators.pairs import SparseGraphCCA
from netbic.estimators.parameters import smoothness_of
from netbic.estimators.results import heaviest
from netbic.files import finished_record
from netbic.io.dataset import SampleMatching, missing_lines, table_lines
from netbic.pl.base import MINUS, as_label, labels_of, variable_colours, variable_strip
from netbic.report.associations import Beside, answer_lines, association_grid, findings, is_survival_unadjusted
from netbic.report.contents import SETS, TESTS, TOP_TERMS, read_alignment, read_known, read_record
from netbic.report.modules import TOP_MEMBERS, Members, Row
from netbic.report.pictures import Figure, Scale
from netbic.report.settings import Rows, covariate_rows, input_rows, parameter_rows, sample_rows
from netbic.selection.pair_verdicts import held_out_text, p_text, pairs_verdict
from netbic.storage.models import PairModel, fitted_pair_model, load
from netbic.storage.tables import HELD_OUT, SIDES, feature_names, pairs_table, sample_names, sides_of

_FILES = (
    *(f"{name}{number}" for name in ("table", "graph", "string_info", "graph_names", "id_map") for number in (1, 2)),
    *("sample_info", "gene_sets"),
)
_TESTED = {"held_out_correlation": "held out", "p_value": "p"}  # columns that tests add, and a few more
_OF_FEATURES = ["found_again", "correlation", "confidence"]
_ON_A_CARD = 6  # features of a table
_SENTENCES, _AGAIN = 6, "run netbic associate again"
_LEFT, _WIDTH, _HEIGHT = 72, 400, 320  # of the drawing of the scores
_MOST = 2000  # samples that are drawn
_MANY = 300  # samples from which on points are smaller
_MARGIN = 0.05  # of the range of the scores, on either side

Colouring = tuple[str, list[str], list[str], list[tuple[str, str]]]  # variable, texts and colours of samples, legend


def gather_pairs(folder: Path, model: PairModel | None = None, record: Row | None = None) -> SimpleNamespace:
    """What the page shows, from the folder of pairs; `model` and `record` are given while they are being written."""
    model = fitted_pair_model(load(folder) if model is None else model)
    record = finished_record(folder) or {} if record is None else record
    table, names, alignment = pairs_table(model), sample_names(model), read_record(folder / "alignment.json")
    stored = read_known(folder / "pairs.tsv", set(table.columns), "fit again")
    if stored is not None and len(stored) == len(table):
        table = table.assign(**{str(name): own.to_numpy() for name, own in stored.items() if name not in table})
    tested = {name: title for name, title in _TESTED.items() if name in table}
    given = record.get("inputs")
    inputs: Row = given if isinstance(given, dict) else {}
    failed = ", ".join(map(str, table.loc[~model.converged_, "pair"]))
    labels, sets = _labels(folder, names), read_known(folder / "gene_sets.tsv", SETS - {"module"} | {"pair"}, "enrich")
    weights = read_known(folder / "weights.tsv", {"pair", "table", "name", "weight"}, "fit again")
    scores = read_known(folder / "scores.tsv", {"pair"}, "fit again")
    tests, pairs = None if labels is None else labels["tests"], list[dict[str, Any]]()
    beside = Beside({} if tests is None else adjusted_tests(folder))
    sentences, titles = findings(tests, beside), module_names(model, _of_sure_pairs(sets, table))
    for row, title in zip(table.to_dict("records"), titles, strict=True):
        at, word = row["pair"] - 1, str(row.get("verdict", ""))
        texts, colouring = ([], None) if labels is None else _associations(labels, row["pair"])
        drawn = _held_out_scores(scores, row["pair"], len(names))
        both = (model.x_scores_[:, at], model.y_scores_[:, at]) if drawn is None else drawn
        pair = {
            "row": row,
            "name": title,
            "kind": word or "unknown",
            "verdict": word,
            "strength": _strength(row),
            "reason": row.get("reason", ""),
            "numbers": _numbers(row) if tested else {},
            "same_names": shared_sentence(row, model.table_names_),
            "sides": (sides := [_side(model, row, number, sets, weights) for number in (1, 2)]),
            "opposite": _opposite(sides),
            "scatter": scatter(
                *both, names, model.table_names_, colouring, "score" if drawn is None else "mean held-out score"
            ),
            "is_held_out": drawn is not None,
            "findings": sentences.get(row["pair"], []),
            "labels": texts,
        }
        pairs.append(pair)
    words = {row["row"]["pair"]: row["verdict"] for row in pairs}
    options = enrichment_record(folder).get("gene_sets", {})
    return SimpleNamespace(
        title=" and ".join(model.table_names_),
        verdict_sentence=pairs_verdict(table) if "verdict" in table else "",
        record=record,
        pairs=pairs,
        n_samples=len(names),
        n_features=(len(model.x_weights_), len(model.y_weights_)),
        has_graph=(model.graphs_["x"] is not None, model.graphs_["y"] is not None),
        missing=alignment.get("missing", (0, 0)),
        tables=model.table_names_,
        tested=tested,
        warnings=[str(text) for text in record.get("warnings", [])]
        or ([f"not converged: pair {failed}"] if failed else []),  # for models without a record of their warnings
        alignment=_alignment_lines(alignment, model.table_names_) if alignment else [],
        settings=_settings(model, record),
        inputs=input_rows(inputs, _FILES),
        removed=covariate_names(model),
        whitened=isinstance(model, SparseGraphCCA) and model.covariance != "diagonal",
        labels=labels,
        of_batches=[] if labels is None else labels["of_batches"],
        answers=answer_lines(tests, words, beside),
        associations=association_grid(tests, 2 * len(pairs), words),
        is_unadjusted=labels is not None and not beside.adjusted and is_survival_unadjusted(tests, labels),
        sets_tested=sets is not None,
        level=float(options.get("level", DEFAULT_LEVEL)),
        names={"sample": names, "feature": np.concatenate([feature_names(model, side) for side in SIDES])},
    )


def _of_sure_pairs(sets: pd.DataFrame | None, table: pd.DataFrame) -> pd.DataFrame | None:
    """The gene sets without those of doubtful pairs, which would name noise."""
    if sets is None or "verdict" not in table:
        return sets
    return sets[~sets["pair"].isin(table.loc[table["verdict"] == "doubtful", "pair"])]


def _numbers(row: Row) -> dict[str, str]:
    """The numbers of the tests for a table."""
    interval = held_out_text(row).replace("95% interval ", "").replace("-", MINUS)
    p = (
        p_text(row)
        .partition(" with ")[0]
        .removeprefix("p ")
        .removeprefix("= ")
        .replace("<=", "\N{LESS-THAN OR EQUAL TO}")
    )
    return {"held_out_correlation": interval, "p_value": p}


def _strength(row: Row) -> str:
    """The correlation of the scores in samples not used, the p-value, and the samples that carry a pair."""
    if "p_value" not in row:
        return f"correlation {row['correlation']:.2f}".replace("-", MINUS)
    parts = [f"correlation {held_out_text(row).replace('-', MINUS)} in samples not used", p_text(row)]
    if isinstance(by := row.get("carried_by"), str) and by:
        parts.append(f"carried by few samples: {by}")
    return ", ".join(parts)


def _side(
    model: PairModel, row: Row, number: int, sets: pd.DataFrame | None, stored: pd.DataFrame | None
) -> dict[str, Any]:
    """One side of a pair: its features, the edges between them, and enriched gene sets."""
    side, table = SIDES[number - 1], model.table_names_[number - 1]
    weights, names = getattr(model, f"{side}_weights_")[:, row["pair"] - 1], feature_names(model, side)
    terms = pd.DataFrame() if sets is None else sets[(sets["pair"] == row["pair"]) & (sets["table"] == table)]
    terms = terms.sort_values("q_value", kind="stable") if len(terms) else terms
    return {
        "table": table,
        "members": Members.of(weights, names),
        "directions": _directions(weights, names),
        "judged": _judged(stored, row["pair"], table),
        "has_graph": model.graphs_[side] is not None,
        "n_edges": row[f"n_edges_{number}"],
        "terms": [term | {"side": _side_of(term, weights, names)} for term in terms.head(TOP_TERMS).to_dict("records")],
        "n_terms": len(terms),
        "sets_tested": sets is not None and table in set(sets["table"]),
    }


def _side_of(term: Row, weights: Array, names: Array) -> str:
    """The side of a gene set; one that was tested in all features has that of most of its genes, if any."""
    if term["side"] != "both":
        return str(term["side"])
    own = np.isin(names.astype(str), str(term["genes"]).split(", "))
    up, down = np.count_nonzero(weights[own] > 0), np.count_nonzero(weights[own] < 0)
    return "up" if up >= ONE_SIDE * (up + down) else "down" if down >= ONE_SIDE * (up + down) else "both"


def _opposite(sides: list[dict[str, Any]]) -> list[str]:
    """Gene sets of both tables whose genes are up in one and down in the other, in words."""
    known = [{term["name"] or term["term"]: term["side"] for term in side["terms"]} for side in sides]
    places = [side["table"] for side in sides]
    return [
        f"{term} is {side} in {places[0]} and {known[1][term]} in {places[1]}"
        for term, side in known[0].items()
        if {side, known[1].get(term)} == {"up", "down"}
    ]


def _directions(weights: Array, names: Array) -> list[tuple[str, list[Any], int]]:
    """The features that are up and those that are down in a pair: the side, the first names, and how many there are."""
    order, sides = heaviest(weights), sides_of(weights)
    own = [(side, names[order[sides[order] == side]].tolist()) for side in ("up", "down")]
    shown = _ON_A_CARD // sum(bool(members) for _, members in own) if any(members for _, members in own) else 0
    return [(side, members[:shown], len(members)) for side, members in own if members]


def _judged(stored: pd.DataFrame | None, pair: int, table: str) -> list[Row]:
    """The features of one table in a pair with their numbers, the surest first; none if they were not tested."""
    if stored is None or not {*_OF_FEATURES} <= {*stored}:
        return []
    own = stored[(stored["pair"] == pair) & (stored["table"] == table)]
    own = own.assign(size=own["correlation"].abs()).sort_values(["confidence", "size"], ascending=False, kind="stable")
    return own.head(TOP_MEMBERS).to_dict("records")


def _held_out_scores(stored: pd.DataFrame | None, pair: int, n_samples: int) -> tuple[Floats, Floats] | None:
    """The scores of the samples by fits that did not use them, as `netbic.pl.pairs` draws them; None without tests."""
    if stored is None or not {*HELD_OUT} <= {*stored}:
        return None
    own = stored[stored["pair"] == pair]
    x, y = (own[name].to_numpy(dtype=np.float64) for name in HELD_OUT)
    return (x, y) if len(own) == n_samples else None


def _labels(folder: Path, samples: Array) -> dict[str, Any] | None:
    """Tests of associations.tsv, variables of sample_info.tsv, and what associations.json says; None without tests."""
    tests, info = read_known(folder / "associations.tsv", {"pair", "table", *TESTS}, _AGAIN), stored_samples(folder)
    if tests is None or tests.empty:
        return None
    record, variables = stored_record(folder), list[Variable]()
    of_batches = [str(note) for note in record.get("of_batches", [])]
    notes = [str(note) for note in record.get("notes", []) if note not in of_batches]
    if info is None or [*map(str, info.index)] != [*map(str, samples)]:
        missing = "points have no colours, because sample_info.tsv is missing or about other samples"
        notes.append(f"{missing}: {_AGAIN}")
    else:
        variables, problems = stored_variables(info, record)
        notes += [f"not shown: {problem}" for problem in problems]
    adjusted = record.get("adjusted_for", [])
    about = {"rows": sample_rows(record), "notes": notes, "of_batches": of_batches, "adjusted_for": adjusted}
    return {"tests": tests, "variables": variables} | about


def _associations(labels: dict[str, Any], pair: int) -> tuple[list[str], Colouring | None]:
    """The associations of a pair, the strongest first, and colours by the label with the strongest one, if any."""
    found = main_tests(labels["tests"][labels["tests"]["pair"] == pair])
    found = found[found["q"] <= LEVEL]
    texts = [f"{row['variable']}: {in_words(row)}" for row in found.head(_SENTENCES).to_dict("records")]
    if len(found) > _SENTENCES:
        texts.append(f"and {len(found) - _SENTENCES} more (associations.tsv)")
    categorical = {each.name: each for each in labels["variables"] if each.kind == "categorical"}
    name = next((str(name) for name in found["variable"] if str(name) in categorical), None)
    if name is None:
        return texts, None
    strip = variable_strip(categorical[name], variable_colours(labels["variables"]))
    values = ["missing" if label is None else label for label in labels_of(categorical[name])]
    return texts, (name, values, strip.colours.tolist(), strip.legend)


def scatter(
    x: Floats,
    y: Floats,
    names: Array,
    tables: tuple[str, str],
    colouring: Colouring | None = None,
    kind: str = "score",
) -> Figure:
    """The drawing of scores in both tables (the first one horizontal); a random choice of very many samples."""
    n = len(x)
    shown = np.arange(n) if n <= _MOST else np.sort(np.random.default_rng(0).choice(n, _MOST, replace=False))
    variable, values, colours, legend = colouring or ("", [""] * n, [""] * n, [])
    across, up = _scale(x, _LEFT, _WIDTH), _scale(y, _HEIGHT, -_HEIGHT)
    points = list[Figure]()
    for k in shown.tolist():
        text = f"{names[k]}: {as_label(x[k], 3)}, {as_label(y[k], 3)} {values[k]}".strip()
        points.append({"x": across.at(x[k]), "y": up.at(y[k]), "text": text, "colour": colours[k]})
    drawn = {"points": points, "n": n, "radius": 4.5 if n <= _MANY else 2.5, "variable": variable, "legend": legend}
    drawn |= {
        "x_title": f"{kind} in {tables[0]}",
        "y_title": f"{kind} in {tables[1]}",
        "x_ticks": across.ticks,
        "y_ticks": up.ticks,
    }
    frame = {"left": _LEFT, "width": _WIDTH, "height": _HEIGHT}
    return {"box": (0, -12, _LEFT + _WIDTH + 14, _HEIGHT + 64), **drawn, **frame}


def _scale(values: Floats, start: float, length: float) -> Scale:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return Scale(low - margin, high + margin, start, length)


def _settings(model: PairModel, record: Row) -> Rows:
    """The options of the command with the defaults that were used; for other models, their parameters."""
    asked = record.get("settings")
    if not isinstance(asked, dict):
        kept = {name: value for name, value in model.get_params(deep=False).items() if "graph" not in name}
        return parameter_rows({"method": type(model).__name__} | kept) + covariate_rows(model)
    used: Row = {
        "pairs": int(model.n_components),
        "features1": model.n_x or "all",
        "features2": model.n_y or "all",
        "deflation": model.deflation,
    }
    if isinstance(model, SparseGraphCCA):
        used |= {"covariance": model.covariance} | ({"ridge": model.ridge} if model.covariance == "ridge" else {})
    for number, side in ((1, "x"), (2, "y")):
        if model.graphs_[side] is not None:
            given = getattr(model, f"{side}_smoothness")
            used[f"smoothness{number}"] = f"{smoothness_of(given, model.smoothness_scale):g}"
    rows = parameter_rows({name: value for name, value in (asked | used).items() if name != "covariates"})
    return rows + covariate_rows(model)


def _alignment_lines(content: Row, names: tuple[str, str]) -> list[str]:
    try:
        tables = [line for k in (1, 2) for line in table_lines(names[k - 1], read_alignment(content[f"table{k}"]))]
        missing = missing_lines(names, content.get("missing", (0, 0)))
        return [*SampleMatching(**content["samples"]).lines(names), *tables, *missing]
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None
