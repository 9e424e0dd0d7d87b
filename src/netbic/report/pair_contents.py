"""The contents of a report about pairs of two tables, read from their folder."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePath

import numpy as np
import pandas as pd

from netbic.arrays import Array
from netbic.errors import InputError, unusable
from netbic.estimators import SparseGraphCCA, heaviest, smoothness_of
from netbic.files import finished_record, read_table
from netbic.io import Alignment, NetworkSummary, SampleMatching, table_lines
from netbic.report.axes import as_label
from netbic.report.contents import from_one
from netbic.report.modules import Members, Row
from netbic.report.pair_labels import PairLabels
from netbic.report.scatter import Scatter, scatter
from netbic.report.settings import Rows, input_rows, parameter_rows
from netbic.report.tables import read_record
from netbic.storage import PairModel, feature_names, fitted_pair_model, load, pairs_table, sample_names

_FILES = (
    *(f"{name}{number}" for name in ("table", "graph", "string_info", "graph_names", "id_map") for number in (1, 2)),
    "sample_info",
)
_TESTED = {"held_out_correlation": "correlation, held out", "p_value": "p", "p": "p"}  # columns that tests add


@dataclass(frozen=True)
class PairPage:
    """One pair, as the page shows it; `label` counts from 1."""

    label: int
    row: Row
    first: Members
    second: Members
    scatter: Scatter
    tests: str = ""
    labels: tuple[str, ...] = ()  # associations with what is known about the samples, in words


@dataclass(frozen=True)
class PairContents:
    """The contents of a report."""

    record: Row
    pairs: list[PairPage]
    n_samples: int
    n_features: tuple[int, int]
    has_graph: tuple[bool, bool]
    tables: tuple[str, str]
    tested: dict[str, str]
    warnings: list[str]
    alignment: list[str]
    settings: Rows
    inputs: Rows
    whitened: bool
    labels: PairLabels | None
    names: dict[str, Array] = field(default_factory=dict)  # by kind, as the page shows them

    @property
    def title(self) -> str:
        """The names of the files."""
        return " and ".join(self.tables)


def gather_pairs(folder: Path, model: PairModel | None = None, record: Row | None = None) -> PairContents:
    """Read the folder of pairs; `model` and `record` are given while they are being written."""
    model = fitted_pair_model(load(folder) if model is None else model)
    record = finished_record(folder) or {} if record is None else record
    table = _table(folder, model)
    tested = {name: title for name, title in _TESTED.items() if name in table}
    given = record.get("inputs")
    inputs: Row = given if isinstance(given, dict) else {}
    labels = PairLabels.of(folder, sample_names(model))
    return PairContents(
        record,
        _pairs(model, table, tested, labels),
        len(model.x_scores_),
        (len(model.x_weights_), len(model.y_weights_)),
        (model.graphs_["x"] is not None, model.graphs_["y"] is not None),
        (_file(inputs, 1), _file(inputs, 2)),
        tested,
        [from_one(str(text)) for text in record.get("warnings", [])] or _not_converged(model),
        _alignment_lines(read_record(folder / "alignment.json")),
        _settings(model, record),
        input_rows(inputs, _FILES),
        isinstance(model, SparseGraphCCA) and model.covariance != "diagonal",
        labels,
        {"sample": sample_names(model), "feature": np.concatenate([feature_names(model, k) for k in (1, 2)])},
    )


def _table(folder: Path, model: PairModel) -> pd.DataFrame:
    """The table of the pairs in the folder, which may have more columns than that of the model."""
    own, path = pairs_table(model), folder / "pairs.tsv"
    if not path.is_file():
        return own
    try:
        stored = read_table(path)
    except (ValueError, OSError) as problem:
        raise unusable(path, f"cannot be read ({problem})", "fit again") from None
    if lacking := sorted(set(own.columns) - set(stored.columns)):
        raise unusable(path, f"has no column {lacking[0]}", "netbic did not write it: fit again")
    further = {name: stored[name].to_numpy() for name in _TESTED if name in stored and len(stored) == len(own)}
    return own.assign(**further)


def _pairs(model: PairModel, table: pd.DataFrame, tested: dict[str, str], labels: PairLabels | None) -> list[PairPage]:
    names, made = sample_names(model), []
    for number, row in enumerate(table.to_dict("records")):
        first = _members(model.x_weights_[:, number], feature_names(model, 1))
        second = _members(model.y_weights_[:, number], feature_names(model, 2))
        colouring = None if labels is None else labels.colouring(number)
        drawn = scatter(model.x_scores_[:, number], model.y_scores_[:, number], names, colouring)
        known = () if labels is None else tuple(labels.sentences(number))
        tests = ", ".join(f"{title} {as_label(float(row[name]), 2)}" for name, title in tested.items())
        made.append(PairPage(number + 1, {str(key): row[key] for key in row}, first, second, drawn, tests, known))
    return made


def _members(vector: Array, names: Array) -> Members:
    at = heaviest(vector)
    return Members(at, vector[at].astype(np.float64), [str(name) for name in names[at]])


def _file(inputs: Row, number: int) -> str:
    given = inputs.get(f"table{number}")
    return PurePath(str(given)).name if given else f"table {number}"


def _not_converged(model: PairModel) -> list[str]:
    """For models without a record of their warnings."""
    numbers = [str(pair + 1) for pair in np.flatnonzero(~model.converged_)]
    return [f"not converged: pair {', '.join(numbers)}"] if numbers else []


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
            own = {name: value for name, value in content[f"table{number}"].items() if name != "isolated_share"}
            network = own.pop("network", None)
            lines += table_lines(number, Alignment(**own, network=network and NetworkSummary(**network)))
        return lines
    except (TypeError, KeyError) as problem:
        raise InputError(f"alignment.json was not written by netbic ({problem}): fit again") from None
