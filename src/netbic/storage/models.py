"""Fitted models as plain values (one state for every estimator), and in folders: arrays and JSON, never pickle.

Folders and AnnData objects are written from a `ModelState` and read into it. Anybody may have changed the files of a
folder: only those of known names are opened, digests show whether they are what was written, and the indices of sparse
matrices are checked before compiled code uses them.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from netbic import __version__, files, penalties
from netbic.arrays import Array, compressed_problem, values_problem
from netbic.errors import InputError, one_line, unusable
from netbic.estimators.covariates import CovariateCoding, store_covariates
from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.estimators.results import DIAGNOSTIC_NUMBERS, diagnostics_from, groups_table
from netbic.estimators.studies import StudyNumbers, StudyScaling, studies_table
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.files import JsonValue, Record
from netbic.graph import Graph
from netbic.operators.corrected import Scaler
from netbic.penalties.base import NotSaved
from netbic.solver.count import Count
from netbic.solver.half_step import Vector
from netbic.solver.search import Module

Arrays: TypeAlias = dict[str, Array]
Names: TypeAlias = "list[str | int] | None"
PairModel: TypeAlias = SparseGraphPLS | SparseGraphCCA

_RECORD, _FORMAT = "model.json", 1
_KINDS: Final = {kind.__name__: kind for kind in (SparseGraphSVD, SparseGraphPLS, SparseGraphCCA)}
# Axes of a model, with the letter of their size in the shapes below and the parameter for their graph.
_AXES: Final = {"rows": ("n", "row_graph"), "columns": ("p", "column_graph")}
_PAIR_AXES: Final = {"samples": ("n", ""), "x": ("p", "x_graph"), "y": ("q", "y_graph")}
# Fitted attributes that are stored as they are, without the underscore at the end.
_ATTRIBUTES: Final = {
    "left_vectors": "nK",
    "components": "Kp",
    **dict.fromkeys(("singular_values", "explained_variance_ratio", "graph_share", "converged"), "K"),
}
_PAIR_ATTRIBUTES: Final = {
    **{f"x_{name}": "pK" for name in ("weights", "rotations", "loadings")},
    **{f"y_{name}": "qK" for name in ("weights", "rotations", "loadings")},
    **dict.fromkeys(("x_scores", "y_scores"), "nK"),
    **dict.fromkeys(("singular_values", "correlations", "graph_share", "converged"), "K"),
}
_STUDY_NUMBERS: Final = ("study_d", "study_share", "study_ratio", "study_z")
# Shapes of all arrays: modules (K), samples (n), features (p, or q of the second table), rounds of all modules (R),
# covariates (c), studies (S), numbers that describe a module (D).
SHAPES: Final[dict[str, str]] = {
    **_ATTRIBUTES,
    **_PAIR_ATTRIBUTES,
    **{"rounds": "K", "objectives": "R", "diagnostics": "KD", "diffusion": "", "scale_power": ""},
    **dict.fromkeys(("offsets", "factors", "x_offsets", "x_factors"), "p"),
    **{"y_offsets": "q", "y_factors": "q", "y_coefficients": "Kq", "x_effects": "cp", "y_effects": "cq"},
    **{"covariates": "nc", "effects": "cp", "study_of_samples": "n", "study_weights": "S", "study_factors": "Sp"},
    **dict.fromkeys(_STUDY_NUMBERS, "KS"),
}
_MODULE_NUMBERS = ("d", "graph_share", "graph_weight", "worst_rank", "by_data_alone", "standing_out")
_GRAPH_ARRAYS = ("data", "indices", "indptr", "size")
_DAMAGED = "it is damaged or was changed: fit again"
_GIVE_FOLDER = "give the output folder of netbic fit"


# Folders


def save(model: object, folder: Path | str) -> None:
    """Write a fitted model into a folder: model.json, names.json and arrays, in open formats.

    A model that `save` wrote there before is replaced, and its report and tables are removed. If there are files of
    these names that netbic did not write, an error is raised.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted, or a fitted search that has one as `best_estimator_`. Parameters that JSON cannot hold (a random
        generator, a user-defined penalty) are described but not saved; a user-defined subclass is loaded as its base
        class.
    folder : path
        Created if it does not exist.

    Examples
    --------
    >>> import tempfile, netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=50).fit(toy.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.save(model, folder)
    ...     again = netbic.load(folder)
    >>> bool((again.components_ == model.components_).all())
    True
    """
    folder, state = Path(folder), state_of(model)
    files.check_writable(folder, [*files.MODEL_FILES, _RECORD])
    names, parts = dict(state.names), {"arrays.npz": npz_bytes(state.arrays)}
    for name, graph in state.graphs.items():
        names[name], weights = None if graph.names is None else graph.names.tolist(), graph.weights
        arrays = (weights.data, weights.indices, weights.indptr, np.int64(graph.n_nodes))
        parts[f"{name}.npz"] = npz_bytes(dict(zip(_GRAPH_ARRAYS, arrays, strict=True)))
    parts["names.json"] = files.json_bytes(names)
    header: Record = {"format": _FORMAT, "netbic": __version__, "class": state.kind, "settings": state.settings}
    header |= {"files": {name: _digest(part) for name, part in parts.items()}, **state.further}
    files.write_files(folder, parts, _RECORD, header)


def load(folder: Path | str) -> Any:
    """Load a fitted model that `save`, `netbic fit` or `netbic pairs` wrote.

    Parameters
    ----------
    folder : path
        The output folder of a command, or the one given to `save`.

    Returns
    -------
    SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted: `transform`, `score` and all attributes work as before.

    Raises
    ------
    InputError
        If files are missing, damaged or not what was written, or cannot be those of a model.
    """
    folder, header = _read_header(Path(folder))
    try:
        parts = {name: files.read_bytes(folder / name) for name in header["files"]}
        for name, part in parts.items():
            if _digest(part) != header["files"][name]:
                what = "is not what was written with the model"
                raise unusable(folder / name, what, "it is damaged or was exchanged: fit again")
        names = json.loads(parts.pop("names.json"))
        stored = {name.removesuffix(".npz"): npz_arrays(folder / name, part) for name, part in parts.items()}
        arrays = {name: array for name, array in stored.pop("arrays").items() if name in SHAPES}
        graphs = {name: _graph_from(own, names, name) for name, own in stored.items()}
        further = {name: header[name] for name in ModelState.FURTHER if name in header}
        model = model_from(ModelState(str(header.get("class")), header["settings"], arrays, names, graphs, further))
        if isinstance(model, SparseGraphSVD):
            with warnings.catch_warnings(action="ignore"):  # already given by the fit
                own = model.names_["rows"], model.names_["columns"]
                model.check((model.left_vectors_.shape[0], model.n_features_in_), own)
        return model
    except InputError as problem:
        text = str(problem)
        raise problem if text.startswith(str(folder)) else InputError(f"{folder}: {text}") from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError) as problem:
        what = f"cannot be a model ({one_line(str(problem), 120)}; written by netbic {header.get('netbic')})"
        raise unusable(folder, what, _DAMAGED) from None


def load_modules(folder: Path | str) -> SparseGraphSVD:
    """The same for what needs the modules of one table; an error if the folder contains pairs of two tables."""
    model = load(folder)
    if not isinstance(model, SparseGraphSVD):
        what = f"contains pairs of two tables ({type(model).__name__}), not modules of one table"
        raise unusable(folder, what, _GIVE_FOLDER)
    return model


def _read_header(folder: Path) -> tuple[Path, Record]:
    """The folder of the model itself, and its model.json."""
    files.read_record(folder, files.RUN_RECORD)  # moves results to their places that a killed command had finished
    found = next((each for each in (folder, folder / "model") if (each / _RECORD).exists()), None)
    if found is None and (folder / files.FIT_PIECES).is_dir():
        raise unusable(folder, "contains a fit that is not finished", "resume it with netbic fit")
    if found is None:
        raise unusable(folder, "contains no model" if folder.exists() else "does not exist", _GIVE_FOLDER)
    path, header = found / _RECORD, files.read_json(found / _RECORD)
    if not isinstance(header, dict) or not all(isinstance(header.get(part), dict) for part in ("settings", "files")):
        raise unusable(path, "is not a model of netbic", _GIVE_FOLDER)
    if header.get("format") != _FORMAT:
        what = f"was written by netbic {header.get('netbic')} in format {header.get('format')}"
        raise unusable(path, f"{what}; netbic {__version__} reads format {_FORMAT}", "upgrade netbic, or fit again")
    for name in header["files"].keys() - {*files.MODEL_FILES}:
        raise unusable(path, f"lists {name!r}, which no model has", "it was changed: fit again")
    return found, header


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _graph_from(arrays: Arrays, names: Any, name: str) -> Graph:
    """A graph from its checked arrays, with the names of its nodes."""
    size = int(arrays["size"])
    data, indices, indptr = (arrays[part] for part in _GRAPH_ARRAYS[:3])
    problem = values_problem(data, "it") or compressed_problem(data, indices, indptr, (size, size), "it")
    if problem is not None:
        raise InputError(f"the model's {name} is damaged ({problem}): fit again")
    weights = sp.csr_array((data, indices, indptr), shape=(size, size))
    return Graph(weights, _name_array(names, name, size), signed=True)


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """Arrays as the content of a compressed .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **dict(arrays))  # type: ignore[arg-type]
    return buffer.getvalue()


def npz_arrays(path: Path, content: bytes) -> Arrays:
    """The arrays of an .npz file, read without running code (no pickle)."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as problem:  # zip and numpy raise many kinds of errors for damaged files
        raise unusable(path, f"cannot be read ({one_line(str(problem), 80)})", "it is damaged: fit again") from None


# The state of a fitted model


@dataclass(frozen=True)
class ModelState:
    """The complete state of a fitted model.

    `names` are those of "rows" and "columns", or of "samples", "x" and "y" for two tables. `graphs` are called as the
    parameters. `further` is JSON, where the model has it: whether `feature_names_in_` is set, how covariates are
    encoded, `count_`, the rows of `groups_`, the names of the studies or of both tables, whether Y was a vector.
    """

    FURTHER = ("feature_names", "covariates", "count", "groups", "studies", "y_is_vector", "table_names")

    kind: str  # name of the class
    settings: Record  # parameters as JSON
    arrays: Arrays  # fitted attributes and what others are made of
    names: dict[str, Names]
    graphs: dict[str, Graph] = field(default_factory=dict)
    further: Record = field(default_factory=dict)


def is_pair_model(model: object) -> TypeGuard[PairModel]:
    """Whether this is a model of two tables, or a fitted search for one."""
    return isinstance(getattr(model, "best_estimator_", model), (SparseGraphPLS, SparseGraphCCA))


def fitted_pair_model(model: object) -> PairModel:
    """The model itself, or the best one of a search; an error if it is another one or not fitted."""
    found = getattr(model, "best_estimator_", model)
    if not isinstance(found, (SparseGraphPLS, SparseGraphCCA)):
        raise TypeError(f"model={type(model).__name__}: a SparseGraphPLS or SparseGraphCCA is needed")
    check_is_fitted(found)
    return found


def state_of(given: object) -> ModelState:
    """The state of a fitted model, or of the model that a fitted search found."""
    pair = is_pair_model(given)
    model: Any = fitted_pair_model(given) if pair else fitted_model(given)
    arrays = {name: np.asarray(getattr(model, f"{name}_")) for name in (_PAIR_ATTRIBUTES if pair else _ATTRIBUTES)}
    arrays["objectives"] = np.concatenate([*model.objectives_, np.empty(0)])
    arrays["rounds"] = np.array([len(values) for values in model.objectives_], dtype=np.int64)
    further: Record = {"feature_names": hasattr(model, "feature_names_in_")}
    if pair:
        scalers = {f"{side}_": scaler for side, scaler in model.scalers_.items()}
        if isinstance(model, SparseGraphPLS):
            arrays["y_coefficients"] = model.y_coefficients_
        further |= {"y_is_vector": bool(model._y_is_vector), "table_names": list(model.table_names_)}
    else:
        scalers = {"": model.scaler_}
        _add_module_state(model, arrays, further)
    for prefix, scaler in scalers.items():
        arrays[f"{prefix}offsets"] = scaler.offsets
        if scaler.factors is not None:
            arrays[f"{prefix}factors"] = scaler.factors
        if scaler.effects is not None:
            arrays[f"{prefix}effects"] = scaler.effects
    if model.covariate_coding_ is not None:
        further["covariates"] = asdict(model.covariate_coding_)
    if model.covariates_ is not None:
        arrays["covariates"] = model.covariates_.to_numpy(dtype=np.float64)
    names = {axis: None if known is None else known.tolist() for axis, known in model.names_.items()}
    for axis, known in names.items():
        if odd := [name for name in known or () if not isinstance(name, (str, int))]:
            what = f"{axis} are named by {type(odd[0]).__name__}s such as {odd[0]!r}"
            raise InputError(f"{what}: only text and integers can be saved")
    axes = {axis: graph for axis, (_, graph) in (_PAIR_AXES if pair else _AXES).items() if graph}
    graphs = {name: graph for axis, name in axes.items() if (graph := model.graphs_[axis]) is not None}
    kind = next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in _KINDS)  # not a user's subclass
    return ModelState(kind, settings_of(model.get_params(deep=False)), arrays, names, graphs, further)


def _add_module_state(model: SparseGraphSVD, arrays: Arrays, further: Record) -> None:
    """What only models of one table have: diagnostics, studies, groups."""
    arrays["diagnostics"] = model.diagnostics_[list(DIAGNOSTIC_NUMBERS)].to_numpy(dtype=np.float64, na_value=np.nan)
    arrays["scale_power"] = np.array(model.scale_power)
    if model.diffusion_:
        arrays["diffusion"] = np.array(model.diffusion_)
    if model.count_ is not None:
        further["count"] = model.count_._asdict()
    if groups := model.groups_.to_numpy(dtype=object).tolist():
        further["groups"] = groups
    scaling, labels, table = model.study_scaling_, model.study_labels_, model.studies_
    if scaling is not None and labels is not None and table is not None:
        further["studies"] = {"names": list(scaling.names), "covariates": list(scaling.covariates)}
        arrays |= {"study_of_samples": scaling.numbers(labels).astype(np.int64), "study_weights": scaling.weights}
        arrays |= {} if scaling.factors is None else {"study_factors": scaling.factors}
        for name in _STUDY_NUMBERS:
            values = table[name.removeprefix("study_")].to_numpy(dtype=np.float64)
            arrays[name] = values.reshape(model.n_components_, len(scaling.names))


def model_from(state: ModelState) -> Any:
    """The fitted model with a state; an error if the state cannot be that of a model."""
    if state.kind not in _KINDS:
        raise InputError(f"the model is of a class this version does not know ({state.kind}): upgrade netbic")
    kind: Any = _KINDS[state.kind]
    if unknown := set(state.settings) - set(kind().get_params(deep=False)):
        raise InputError(
            f"the model has settings this version does not know ({', '.join(sorted(unknown))}): upgrade netbic"
        )
    pair = issubclass(kind, (SparseGraphPLS, SparseGraphCCA))
    axes, attributes = (_PAIR_AXES, _PAIR_ATTRIBUTES) if pair else (_AXES, _ATTRIBUTES)
    arrays, sizes = state.arrays, _sizes(state.arrays, attributes)
    names = {axis: _name_array(state.names, axis, sizes[letter]) for axis, (letter, _) in axes.items()}
    parameters = settings_from(state.settings) | state.graphs
    if not pair and "column_graph" not in state.graphs:
        if "diffusion" in arrays:
            raise InputError("the model smooths data over a network, which is missing: fit again")
        parameters["diffusion"] = None
    model = kind(**parameters)
    for name in attributes:
        setattr(model, f"{name}_", arrays[name])
    model.n_components_, model.n_features_in_ = sizes["K"], sizes["p"]
    model.objectives_ = np.split(arrays["objectives"], np.cumsum(arrays["rounds"])[:-1]) if sizes["K"] else []
    model.n_iter_ = int(arrays["rounds"].max(initial=1))
    model.names_ = names
    model.graphs_ = {axis: state.graphs.get(graph) for axis, (_, graph) in axes.items() if graph}
    if pair:
        model._check()
        model.x_support_, model.y_support_ = model.x_weights_.T != 0, model.y_weights_.T != 0
        model.scalers_ = {side: _scaler(arrays, state.further, f"{side}_") for side in ("x", "y")}
        model._y_is_vector = bool(state.further["y_is_vector"])
        first, second = map(str, state.further["table_names"])
        model.table_names_ = first, second
        if isinstance(model, SparseGraphPLS):
            model.y_coefficients_ = arrays["y_coefficients"]
    else:
        _set_module_state(model, arrays, state.further)
    if "covariates" in state.further:
        coding = CovariateCoding.from_record(state.further["covariates"])
        store_covariates(model, coding, arrays["covariates"], sizes["n"])
    if state.further.get("feature_names"):
        model.feature_names_in_ = model.names_["x" if pair else "columns"]
    return model


def _scaler(arrays: Arrays, further: Record, prefix: str, rows: bool = False) -> Scaler:
    """How the rows of a table are centred and scaled, without the effects of covariates if the model has any."""
    effects = arrays[f"{prefix}effects"] if further.get("covariates", {}).get("columns") else None
    return Scaler(arrays[f"{prefix}offsets"], arrays.get(f"{prefix}factors"), rows, effects)


def _set_module_state(model: SparseGraphSVD, arrays: Arrays, further: Record) -> None:
    """Set what `_add_module_state` took from a model."""
    model.rows_, model.columns_ = model.left_vectors_.T != 0, model.components_ != 0
    model.diffusion_, model.scale_ = float(arrays.get("diffusion", 0.0)), float(arrays["scale_power"])
    model.scaler_ = _scaler(arrays, further, "", model.center in ("rows", "both"))
    model.diagnostics_ = diagnostics_from(arrays["diagnostics"])
    model.count_ = Count(**further["count"]) if "count" in further else None
    model.groups_ = groups_table(map(tuple, further.get("groups", [])))
    if (studies := further.get("studies")) is not None:
        known = arrays["study_weights"], arrays.get("study_factors")
        scaling = StudyScaling(tuple(studies["names"]), *known, tuple(studies["covariates"]))
        model.study_scaling_ = scaling
        model.study_labels_ = np.array(scaling.names, dtype=object)[arrays["study_of_samples"]]
        model.studies_ = studies_table(model, scaling, StudyNumbers(*(arrays[name] for name in _STUDY_NUMBERS)))


def _sizes(arrays: Arrays, required: Mapping[str, str]) -> dict[str, int]:
    """What the letters of the shapes stand for; an error if an array is missing or does not fit the others."""
    if missing := [name for name in (*required, "rounds", "objectives") if name not in arrays]:
        raise InputError(f"the model lacks the array {missing[0]}: it is incomplete, fit again")
    sizes: dict[str, int] = {"R": int(arrays["rounds"].sum()), "D": len(DIAGNOSTIC_NUMBERS)}
    for name in (*required, *(name for name in arrays if name not in required)):
        array, letters = arrays[name], SHAPES[name]
        wanted = tuple(sizes.setdefault(letter, size) for letter, size in zip(letters, array.shape, strict=False))
        if array.dtype.kind not in "fiub" or array.ndim != len(letters) or array.shape != wanted:
            what = f"of {array.dtype} with shape {array.shape}, which does not fit the others"
            raise InputError(f"the model's array {name} is {what}: it is damaged or was changed, fit again")
    return sizes


def _name_array(names: Any, axis: str, size: int) -> Array | None:
    """The names of an axis from JSON, as text or integers; an error unless there are none or as many as entries."""
    known = names.get(axis) if isinstance(names, dict) else ()
    if known is None:
        return None
    if not isinstance(known, list) or not {*map(type, known)} <= {str, int}:
        raise InputError(f"the names of the model's {axis} are not a list of text or integers: fit again")
    if len(known) != size:
        raise InputError(f"the model has {size:,} {axis} but {len(known):,} names: fit again")
    array = np.empty(size, dtype=object)
    array[:] = known
    return array.astype(np.int64) if all(isinstance(name, int) for name in known) else array


# Parameters as JSON


def settings_of(parameters: Mapping[str, object]) -> Record:
    """Parameters of an estimator as JSON, without graphs and parameters that do not change the result."""
    left_out = ("row_graph", "column_graph", "x_graph", "y_graph", "n_jobs", "verbose")
    return {name: _plain(value) for name, value in sorted(parameters.items()) if name not in left_out}


def _plain(value: object) -> JsonValue:
    """A parameter as JSON; what JSON cannot hold is described, and is None (or `NotSaved`) when it is loaded."""
    if isinstance(value, penalties.Penalty) and type(value) is vars(penalties).get(type(value).__name__):
        own = {each.name: _plain(getattr(value, each.name)) for each in fields(value) if each.init}
        return {"penalty": type(value).__name__} | own
    if isinstance(value, penalties.Groups):
        return {"groups": [[name, list(members)] for name, members in value.items()]}
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"not saved": repr(value)}


def settings_from(settings: Record) -> dict[str, Any]:
    """Parameters of an estimator from the JSON that `settings_of` makes."""
    return {name: _parameter(value, is_penalty=name.endswith("penalty")) for name, value in settings.items()}


def _parameter(value: Any, *, is_penalty: bool = False) -> Any:
    if not isinstance(value, dict):
        return value
    if "groups" in value and "penalty" not in value:
        return penalties.Groups(dict(value["groups"]))
    if "penalty" not in value:
        return NotSaved(str(value.get("not saved"))) if is_penalty else None
    kind = getattr(penalties, str(value["penalty"]), None)
    if not (isinstance(kind, type) and issubclass(kind, penalties.Penalty)) or kind is penalties.Penalty:
        raise InputError(f"the model has a penalty this version does not know ({value['penalty']}): upgrade netbic")
    return kind(**{name: _parameter(part) for name, part in value.items() if name != "penalty"})


# Single modules of an unfinished fit


def module_arrays(module: Module) -> dict[str, ArrayLike]:
    """One module as arrays."""
    arrays: dict[str, ArrayLike] = {
        "sizes": [module.u.size, module.v.size],
        "numbers": [getattr(module, number) for number in _MODULE_NUMBERS],
        "objectives": module.objectives,
        "outcome": module.outcome,
    }
    for name, vector in (("u", module.u), ("v", module.v)):
        arrays |= {f"{name}_support": vector.support, f"{name}_values": vector.values}
        if vector.groups is not None:
            arrays[f"{name}_groups"] = vector.groups
    return arrays


def module_from(arrays: Arrays) -> Module:
    """The module that `module_arrays` took apart."""
    vectors: list[Vector] = []
    for name, size in zip("uv", arrays["sizes"], strict=True):
        entries = arrays[f"{name}_support"], arrays[f"{name}_values"]
        vectors.append(Vector(int(size), *entries, groups=arrays.get(f"{name}_groups")))
    numbers: dict[str, Any] = dict(zip(_MODULE_NUMBERS, arrays["numbers"].tolist(), strict=True))
    numbers["worst_rank"] = int(numbers["worst_rank"])
    outcome: Any = str(arrays["outcome"])
    u, v = vectors
    return Module(u, v, outcome=outcome, objectives=arrays["objectives"], **numbers)
