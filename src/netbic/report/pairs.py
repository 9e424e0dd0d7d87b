"""The contents of a report about pairs of two tables, read from their folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import numpy as np

from netbic.arrays import Array, Floats
from netbic.association.stored import stored_record, stored_samples, stored_variables
from netbic.association.variables import Variable
from netbic.association.words import LEVEL, in_words, main_tests
from netbic.errors import InputError
from netbic.estimators.pairs import SparseGraphCCA
from netbic.estimators.parameters import smoothness_of
from netbic.files import finished_record
from netbic.io.dataset import SampleMatching, table_lines
from netbic.pl.base import as_label, labels_of, variable_colours, variable_strip
from netbic.report.contents import TESTS, read_alignment, read_known, read_record
from netbic.report.modules import Members, Row
from netbic.report.pictures import Figure, Scale
from netbic.report.settings import Rows, input_rows, parameter_rows, sample_rows
from netbic.storage.models import PairModel, fitted_pair_model, load
from netbic.storage.tables import feature_names, pairs_table, sample_names

_FILES = (
    *(f"{name}{number}" for name in ("table", "graph", "string_info", "graph_names", "id_map") for number in (1, 2)),
    "sample_info",
)
_CARRIED = "carried_by"
_TESTED = {"held_out_correlation": "correlation, held out", "p_value": "p", "p": "p"}  # columns that tests add
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
        table = table.assign(**{name: stored[name].to_numpy() for name in (*_TESTED, _CARRIED) if name in stored})
    tested = {name: title for name, title in _TESTED.items() if name in table}
    given = record.get("inputs")
    inputs: Row = given if isinstance(given, dict) else {}
    files = [inputs.get(f"table{number}") for number in (1, 2)]
    tables = [PurePath(str(file)).name if file else f"table {k}" for k, file in enumerate(files, start=1)]
    failed = ", ".join(map(str, table.loc[~model.converged_, "pair"]))
    labels, features = _labels(folder, names), [feature_names(model, number) for number in (1, 2)]
    pairs = list[dict[str, Any]]()
    for at, row in enumerate(table.to_dict("records")):
        texts, colouring = ([], None) if labels is None else _associations(labels, row["pair"])
        pair = {
            "row": row,
            "first": Members.of(model.x_weights_[:, at], features[0]),
            "second": Members.of(model.y_weights_[:, at], features[1]),
            "scatter": scatter(model.x_scores_[:, at], model.y_scores_[:, at], names, colouring),
            "tests": ", ".join(_tests(row, tested)),
            "labels": texts,
        }
        pairs.append(pair)
    return SimpleNamespace(
        title=" and ".join(tables),
        record=record,
        pairs=pairs,
        n_samples=len(names),
        n_features=(len(model.x_weights_), len(model.y_weights_)),
        has_graph=(model.graphs_["x"] is not None, model.graphs_["y"] is not None),
        tables=tables,
        tested=tested,
        warnings=[str(text) for text in record.get("warnings", [])]
        or ([f"not converged: pair {failed}"] if failed else []),  # for models without a record of their warnings
        alignment=_alignment_lines(alignment) if alignment else [],
        settings=_settings(model, record),
        inputs=input_rows(inputs, _FILES),
        whitened=isinstance(model, SparseGraphCCA) and model.covariance != "diagonal",
        labels=labels,
        names={"sample": names, "feature": np.concatenate(features)},  # by kind, as the page shows them
    )


def _tests(row: Row, tested: dict[str, str]) -> Iterator[str]:
    """The numbers of the tests of a pair, and the samples that carry it."""
    yield from (f"{title} {as_label(float(row[name]), 2)}" for name, title in tested.items())
    if isinstance(by := row.get(_CARRIED), str) and by:
        yield f"carried by few samples: {by}"


def _labels(folder: Path, samples: Array) -> dict[str, Any] | None:
    """Tests of associations.tsv, variables of sample_info.tsv, and what associations.json says; None without tests."""
    tests, info = read_known(folder / "associations.tsv", {"pair", "table", *TESTS}, _AGAIN), stored_samples(folder)
    if tests is None or tests.empty:
        return None
    record, variables = stored_record(folder), list[Variable]()
    notes = [str(note) for note in record.get("notes", [])]
    if info is None or [*map(str, info.index)] != [*map(str, samples)]:
        missing = "points have no colours, because sample_info.tsv is missing or about other samples"
        notes.append(f"{missing}: {_AGAIN}")
    else:
        variables, problems = stored_variables(info, record)
        notes += [f"not shown: {problem}" for problem in problems]
    return {"tests": tests, "variables": variables, "rows": sample_rows(record), "notes": notes}


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


def scatter(x: Floats, y: Floats, names: Array, colouring: Colouring | None = None) -> Figure:
    """The drawing of scores in table 1 (horizontal) and table 2 (vertical); a random choice of very many samples."""
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
        "x_title": "score in table 1",
        "y_title": "score in table 2",
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
        return parameter_rows({"method": type(model).__name__} | kept)
    used: Row = {"features1": model.n_x or "all", "features2": model.n_y or "all", "deflation": model.deflation}
    if isinstance(model, SparseGraphCCA):
        used |= {"covariance": model.covariance} | ({"ridge": model.ridge} if model.covariance == "ridge" else {})
    for number, side in ((1, "x"), (2, "y")):
        if model.graphs_[side] is not None:
            given = getattr(model, f"{side}_smoothness")
            used[f"smoothness{number}"] = f"{smoothness_of(given, model.smoothness_scale):g}"
    return parameter_rows(asked | used)


def _alignment_lines(content: Row) -> list[str]:
    try:
        tables = [line for k in (1, 2) for line in table_lines(k, read_alignment(content[f"table{k}"]))]
        return [*SampleMatching(**content["samples"]).lines(), *tables]
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None
