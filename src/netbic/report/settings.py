"""Settings of a fit as rows of names and values, including defaults that were used."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.parameters import smoothness_of
from netbic.estimators.svd import SparseGraphSVD
from netbic.penalties import Dense, Penalty

Rows = list[tuple[str, str]]

_FILES: Final = ("expression", "graph", "gene_sets", "sample_info", "string_info", "graph_names", "id_map")
_UNITS: Final = {
    "module": "module: in units of the strength of each module",
    "relative": "relative: in units of the leading singular value of the data",
    "absolute": "absolute: as in the paper",
}

_FROM_DATA = "from the data, for each module"


def setting_rows(model: SparseGraphSVD, asked: object) -> Rows:
    """The options of the command with the defaults that were used; for other models, their parameters."""
    if not isinstance(asked, dict):
        given = {name: value for name, value in model.get_params(deep=False).items() if "graph" not in name}
        return parameter_rows(given) + covariate_rows(model)
    asked = {name: value for name, value in asked.items() if name != "covariates"}
    if asked.get("auto"):
        asked = {**asked, "modules": f"{model.n_components_} (at most {asked.get('modules')})"}
    used = asked | {name: value for name, value in _defaults(model).items() if asked.get(name) is None}
    unit = used.pop("smoothness_scale", None)
    rows = parameter_rows(used) + covariate_rows(model)
    at = next((k for k, (name, _) in enumerate(rows, start=1) if name == "smoothness"), len(rows))
    return rows if unit is None else [*rows[:at], ("smoothness_scale", _UNITS.get(unit, str(unit))), *rows[at:]]


def covariate_rows(model: SparseGraphSVD | TwoTableModel) -> Rows:
    """The covariates whose effects were removed from the data before the search."""
    coding = model.covariate_coding_
    if model.covariates_ is None or coding is None:
        return []
    names = (
        each.name if each.levels is None else f"{each.name} ({len(each.levels)} levels)" for each in coding.covariates
    )
    return [("covariates removed from the data", ", ".join(names))]


def sample_rows(record: dict[str, Any]) -> Rows:
    """The sample table: how many samples were matched, types of the variables, and covariates of the tests."""
    rows = [("samples matched", f"{record['matched']:,} of {record['samples']:,}")] if "matched" in record else []
    kinds: dict[str, list[str]] = {}
    for each in record.get("variables", []):
        order = f" ({' < '.join(each['levels'])})" if each["type"] == "ordered" and each.get("levels") else ""
        kinds.setdefault(str(each["type"]), []).append(f"{each['name']}{order}")
    rows += [(kind, ", ".join(names)) for kind, names in kinds.items() if kind != "survival"]
    rows += [("survival", f"{time}, event: {event}") for time, event in record.get("survival", [])]
    adjusted = ", ".join(map(str, record.get("adjusted_for", [])))
    return [*rows, ("tests adjusted for", adjusted)] if adjusted else rows


def enrichment_rows(tested: dict[str, dict[str, Any]]) -> Rows:
    """The recorded options of the enrichment tests, by table."""
    levels = {name.replace("_", " "): f"{options['level']:g}" for name, options in tested.items()}
    same = len(set(levels.values())) == 1
    rows = [("level" if same else f"level, {name}", level) for name, level in levels.items()][: 1 if same else None]
    options = tested.get("gene_sets", {})
    return rows + parameter_rows({name: options.get(name) for name in ("by_sign", "collapse")})


def input_rows(inputs: dict[str, Any], files: tuple[str, ...] = _FILES) -> Rows:
    """Names of files without their folders, and the options with which they were read."""
    given = {name: value for name, value in inputs.items() if value}
    return [(name, PurePath(value).name if name in files else _as_text(value)) for name, value in given.items()]


def parameter_rows(settings: dict[str, Any]) -> Rows:
    """Settings that have a value, as text."""
    return [(name, _as_text(value)) for name, value in settings.items() if value is not None and value is not False]


def _defaults(model: SparseGraphSVD) -> dict[str, Any]:
    """Values that were used for options that were not given."""
    sizes = {
        "genes": _size(model.n_columns, model.column_penalty, _FROM_DATA),
        "samples": _size(model.n_rows, model.row_penalty, "all"),
    }
    if model.column_graph is None:
        return sizes
    smoothness = f"{smoothness_of(model.column_smoothness, model.smoothness_scale):g}"
    if model.diffusion is not None and model.column_smoothness is None:
        smoothness = "0"  # the network smooths the data instead
    units = {"smoothness_scale": model.smoothness_scale, "graph_term": model.graph_term}
    return {**sizes, "smoothness": smoothness, **units}


def _size(kept: int | None, penalty: object, default: str) -> int | str:
    """How many genes or samples a module contains."""
    if kept is not None or penalty is None:
        return default if kept is None else kept
    if isinstance(penalty, Dense):
        return "all"
    if isinstance(penalty, Penalty) and (groups := penalty.n_groups()) is not None:
        return f"those of {groups} groups"
    size = penalty.size() if isinstance(penalty, Penalty) else None
    return _FROM_DATA if size is None else size


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "yes" if value is True else str(value)
