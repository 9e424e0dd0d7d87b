"""The contents of a report about pairs of two tables, read from their folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats
from netbic.association import (
    LEVEL,
    Variable,
    in_words,
    main_tests,
    stored_record,
    stored_samples,
    stored_variables,
)
from netbic.errors import InputError
from netbic.estimators import SparseGraphCCA, smoothness_of
from netbic.files import finished_record
from netbic.io import SampleMatching, table_lines
from netbic.pl import variable_colours
from netbic.report.contents import read_alignment, read_associations, read_known, read_record
from netbic.report.figures import MISSING, OTHER, as_label, round_ticks
from netbic.report.modules import Members, Row
from netbic.report.settings import Rows, input_rows, parameter_rows, sample_rows
from netbic.storage import PairModel, feature_names, fitted_pair_model, load, pairs_table, sample_names

_FILES = (
    *(f"{name}{number}" for name in ("table", "graph", "string_info", "graph_names", "id_map") for number in (1, 2)),
    "sample_info",
)
_TESTED = {"held_out_correlation": "correlation, held out", "p_value": "p", "p": "p"}  # columns that tests add
_SENTENCES = 6
_LEFT, _TOP, _WIDTH, _HEIGHT = 62, 12, 400, 320  # of the drawing of the scores
_MOST = 2000  # samples that are drawn
_MANY = 300  # samples from which on points are smaller
_MARGIN = 0.05  # of the range of the scores, on either side


class Colouring(NamedTuple):
    """A variable, its value and colour of each sample, and what the colours mean."""

    variable: str
    texts: list[str]
    colours: list[str]
    keys: list[tuple[str, str]]  # label and colour


@dataclass(frozen=True)
class PairLabels:
    """The tests of associations.tsv, the variables of sample_info.tsv, and what associations.json says about both."""

    tests: pd.DataFrame
    variables: list[Variable]
    rows: Rows
    notes: list[str]

    @classmethod
    def of(cls, folder: Path, samples: Array) -> Self | None:
        """Those of a folder; None if there are none."""
        tests, info = read_associations(folder, ("pair", "table")), stored_samples(folder)
        if tests is None or tests.empty:
            return None
        record = stored_record(folder)
        notes, rows = [str(note) for note in record.get("notes", [])], sample_rows(record)
        if info is None or [*map(str, info.index)] != [*map(str, samples)]:
            missing = "points have no colours, because sample_info.tsv is missing or about other samples"
            return cls(tests, [], rows, [*notes, f"{missing}: run netbic associate again"])
        variables, problems = stored_variables(info, record)
        return cls(tests, variables, rows, [*notes, *(f"not shown: {problem}" for problem in problems)])

    def sentences(self, pair: int) -> list[str]:
        """The associations of a pair, the strongest first."""
        found = self._found(pair)
        shown = [f"{row['variable']}: {in_words(row)}" for row in found.head(_SENTENCES).to_dict("records")]
        return [*shown, f"and {len(found) - _SENTENCES} more (associations.tsv)"] if len(found) > _SENTENCES else shown

    def colouring(self, pair: int) -> Colouring | None:
        """Colours by the label with the strongest association; None if there is no such label."""
        labels = {each.name: each for each in self.variables if each.kind == "categorical"}
        name = next((str(name) for name in self._found(pair)["variable"] if str(name) in labels), None)
        if name is None:
            return None
        variable, chosen = labels[name], variable_colours(self.variables)[name]
        texts = ["missing" if np.isnan(value) else variable.levels[int(value)] for value in variable.values]
        known = variable.known.tolist()
        colours = [chosen.get(text, OTHER) if seen else MISSING for text, seen in zip(texts, known, strict=True)]
        further = [(label, colour) for label, colour in (("other", OTHER), ("missing", MISSING)) if colour in colours]
        return Colouring(name, texts, colours, [*chosen.items(), *further])

    def _found(self, pair: int) -> pd.DataFrame:
        main = main_tests(self.tests[self.tests["pair"] == pair])
        return main[main["q"] <= LEVEL]


class Point(NamedTuple):
    """A sample."""

    x: float
    y: float
    text: str
    colour: str = ""


class Scatter(NamedTuple):
    """Positions of points and ticks in the drawing of the scores of a pair."""

    points: list[Point]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    n: int
    radius: float
    variable: str = ""  # by which points are coloured
    keys: Sequence[tuple[str, str]] = ()  # label and colour
    left: int = _LEFT
    top: int = _TOP
    width: int = _WIDTH
    height: int = _HEIGHT
    box: tuple[int, int] = (_LEFT + _WIDTH + 14, _TOP + _HEIGHT + 52)


def scatter(x: Floats, y: Floats, names: Array, colouring: Colouring | None = None) -> Scatter:
    """The drawing of scores in table 1 (horizontal) and table 2 (vertical); a random choice of very many samples."""
    n = len(x)
    shown = np.arange(n) if n <= _MOST else np.sort(np.random.default_rng(0).choice(n, _MOST, replace=False))
    variable, texts, colours, keys = colouring or Colouring("", [""] * n, [""] * n, [])
    across, x_ticks = _axis(x, _LEFT, _WIDTH)
    up, y_ticks = _axis(y, _TOP + _HEIGHT, -_HEIGHT)
    points = [
        Point(across[k], up[k], f"{names[k]}: {as_label(x[k], 3)}, {as_label(y[k], 3)} {texts[k]}".strip(), colours[k])
        for k in shown.tolist()
    ]
    return Scatter(points, x_ticks, y_ticks, n, 4.5 if n <= _MANY else 2.5, variable, keys)


def _axis(values: Floats, start: float, length: float) -> tuple[list[float], list[tuple[float, str]]]:
    """Positions of the values, and of ticks with their labels."""
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    low, high = low - margin, high + margin

    def at(value: float) -> float:
        return round(start + length * (float(value) - low) / (high - low), 1)

    return [at(value) for value in values], [(at(tick), as_label(tick)) for tick in round_ticks(low, high)]


@dataclass(frozen=True)
class PairPage:
    """One pair, as the page shows it; `label` counts from 1."""

    label: int
    row: Row
    first: Members
    second: Members
    scatter: Scatter
    tests: str
    labels: Sequence[str]  # associations with what is known about the samples, in words


@dataclass(frozen=True, kw_only=True)
class PairContents:
    """The contents of a report."""

    title: str  # the names of the files
    record: Row
    pairs: list[PairPage]
    n_samples: int
    n_features: tuple[int, int]
    has_graph: tuple[bool, bool]
    tables: list[str]
    tested: dict[str, str]
    warnings: list[str]
    alignment: list[str]
    settings: Rows
    inputs: Rows
    whitened: bool
    labels: PairLabels | None
    names: dict[str, Array]  # by kind, as the page shows them


def gather_pairs(folder: Path, model: PairModel | None = None, record: Row | None = None) -> PairContents:
    """Read the folder of pairs; `model` and `record` are given while they are being written."""
    model = fitted_pair_model(load(folder) if model is None else model)
    record = finished_record(folder) or {} if record is None else record
    table, names = pairs_table(model), sample_names(model)
    stored = read_known(folder / "pairs.tsv", set(table.columns), "fit again")
    if stored is not None and len(stored) == len(table):
        table = table.assign(**{name: stored[name].to_numpy() for name in _TESTED if name in stored})
    tested = {name: title for name, title in _TESTED.items() if name in table}
    given = record.get("inputs")
    inputs: Row = given if isinstance(given, dict) else {}
    files = [inputs.get(f"table{number}") for number in (1, 2)]
    tables = [PurePath(str(file)).name if file else f"table {k}" for k, file in enumerate(files, start=1)]
    failed = ", ".join(str(pair + 1) for pair in np.flatnonzero(~model.converged_))
    labels, features = PairLabels.of(folder, names), [feature_names(model, number) for number in (1, 2)]
    pairs = [
        PairPage(
            number + 1,
            {str(key): value for key, value in row.items()},
            Members.of(model.x_weights_[:, number], features[0]),
            Members.of(model.y_weights_[:, number], features[1]),
            scatter(*_scores(model, number), names, None if labels is None else labels.colouring(number)),
            ", ".join(f"{title} {as_label(float(row[name]), 2)}" for name, title in tested.items()),
            [] if labels is None else labels.sentences(number),
        )
        for number, row in enumerate(table.to_dict("records"))
    ]
    return PairContents(
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
        alignment=_alignment_lines(read_record(folder / "alignment.json")),
        settings=_settings(model, record),
        inputs=input_rows(inputs, _FILES),
        whitened=isinstance(model, SparseGraphCCA) and model.covariance != "diagonal",
        labels=labels,
        names={"sample": names, "feature": np.concatenate(features)},
    )


def _scores(model: PairModel, number: int) -> tuple[Floats, Floats]:
    return model.x_scores_[:, number], model.y_scores_[:, number]


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
    if not content:
        return []
    try:
        lines = list(SampleMatching(**content["samples"]).lines())
        for number in (1, 2):
            lines += table_lines(number, read_alignment(content[f"table{number}"]))
        return lines
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None
