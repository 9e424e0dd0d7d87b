"""The state of fitted models and of single modules, as plain values; folders, tables, AnnData, checkpoints use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from netbic import penalties
from netbic.arrays import Array
from netbic.errors import InputError
from netbic.estimators import (
    AXES,
    DIAGNOSTIC_NUMBERS,
    CovariateCoding,
    SparseGraphSVD,
    StableModules,
    diagnostics_from,
    fitted_model,
    groups_table,
    store_choices,
    store_covariates,
)
from netbic.files import JsonValue, Record
from netbic.graph import Graph
from netbic.operators import Scaler
from netbic.solver import Module, Vector
from netbic.storage.npz import Arrays
from netbic.storage.parameters import settings_from, settings_of
from netbic.storage.state_check import check_arrays, check_names
from netbic.storage.study_state import set_studies, study_arrays, study_record

_ARRAYS = ("left_vectors", "components", "singular_values", "explained_variance_ratio", "graph_share", "converged")
# Of a Choice, in addition to the posteriors; models of earlier versions have the first four or seven.
CHOSEN_NUMBERS = [
    *("sigma", "noise", "strength", "heteroscedasticity"),
    *("background", "gradation", "fallback"),
    "free_locations",
]
# Modules of earlier versions have the first five.
_MODULE_NUMBERS = ("d", "graph_share", "graph_weight", "worst_rank", "by_data_alone")
Names: TypeAlias = "list[str | int] | None"
_KINDS = {kind.__name__: kind for kind in (SparseGraphSVD, StableModules)}


@dataclass(frozen=True)
class ModelState:
    """The complete state of a fitted model.

    Attributes
    ----------
    settings : dict
        Parameters of the estimator, as JSON.
    arrays : dict of arrays
        Those that `netbic.storage.state_check` lists.
    names : dict
        Of "rows" and "columns": a list, or None.
    graphs : dict of Graph
        "row_graph" and "column_graph", where the model has them.
    feature_names : bool
        Whether `feature_names_in_` is set.
    kind : str
        Name of the class.
    covariates : dict, optional
        How covariates are encoded, as JSON.
    groups : list, optional
        The rows of `groups_`, as JSON.
    studies : dict, optional
        Names of the studies, as JSON.
    """

    settings: Record
    arrays: Arrays
    names: dict[str, Names]
    graphs: dict[str, Graph] = field(default_factory=dict)
    feature_names: bool = False
    kind: str = "SparseGraphSVD"
    covariates: Record | None = None
    groups: list[JsonValue] | None = None
    studies: Record | None = None

    @property
    def further(self) -> Record:
        """What `model.json` holds in addition."""
        held: Record = {"covariates": self.covariates, "groups": self.groups, "studies": self.studies}
        return {name: value for name, value in held.items() if value is not None}


def state_of(given: object) -> ModelState:
    """The state of a fitted model, or of the model that a fitted search found."""
    model = fitted_model(given)
    graphs = {f"{axis}_graph": graph for axis in ("row", "column") if (graph := model.graphs_[f"{axis}s"]) is not None}
    arrays = {name: np.asarray(getattr(model, f"{name}_")) for name in _ARRAYS}
    arrays["objectives"] = np.concatenate([*model.objectives_, np.empty(0)])
    arrays["rounds"] = np.array([len(values) for values in model.objectives_], dtype=np.int64)
    arrays["offsets"] = model.scaler_.offsets
    if model.diffusion_:
        arrays["diffusion"] = np.array(model.diffusion_)
    arrays["diagnostics"] = model.diagnostics_[list(DIAGNOSTIC_NUMBERS)].to_numpy(dtype=np.float64)
    arrays["regressed_out"] = model.regressed_out_
    if model.scaler_.factors is not None:
        arrays["factors"] = model.scaler_.factors
    for axis, posteriors in model.posteriors_.items():
        if posteriors is not None:
            arrays[f"{axis}_posteriors"] = posteriors
            own = model.choices_[model.choices_["axis"] == axis]
            arrays[f"{axis}_choices"] = own[CHOSEN_NUMBERS].to_numpy(dtype=np.float64)
    if isinstance(model, StableModules):
        arrays["kept"] = model.kept_
    arrays |= _covariate_arrays(model) | study_arrays(model)
    names = {axis: name_list(known, axis) for axis, known in model.names_.items()}
    named = hasattr(model, "feature_names_in_")
    kind = next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in _KINDS)  # not a user's subclass
    coding = None if model.covariate_coding_ is None else model.covariate_coding_.record()
    groups: Any = model.groups_.to_numpy(dtype=object).tolist() or None
    settings, studies = settings_of(model.get_params(deep=False)), study_record(model)
    return ModelState(settings, arrays, names, graphs, named, kind, coding, groups, studies)


def _covariate_arrays(model: SparseGraphSVD) -> Arrays:
    """The covariates of the fit and their effects, if there are any."""
    if model.covariates_ is None or model.covariate_effects_ is None:
        return {}
    tables = {"covariates": model.covariates_, "effects": model.covariate_effects_}
    return {name: table.to_numpy(dtype=np.float64) for name, table in tables.items()}


def _set_covariates(model: SparseGraphSVD, state: ModelState) -> None:
    if state.covariates is None:
        if "effects" in state.arrays:
            raise InputError("the model was fitted with covariates, whose description is missing: fit again")
        return
    coding, values = CovariateCoding.from_record(state.covariates), state.arrays.get("covariates")
    if values is None or values.shape[1] != len(coding.columns) or "effects" not in state.arrays:
        raise InputError("the covariates of the model do not agree with their description: it was changed, fit again")
    store_covariates(model, coding, values)
    if coding.columns:
        model.scaler_ = replace(model.scaler_, effects=state.arrays["effects"])


def module_arrays(module: Module) -> dict[str, ArrayLike]:
    """One module of an unfinished fit as arrays."""
    arrays: dict[str, ArrayLike] = {
        "sizes": [module.u.size, module.v.size],
        "numbers": [getattr(module, number) for number in _MODULE_NUMBERS],
        "regressed_out": np.array(module.regressed_out, dtype=np.int64),
        "objectives": module.objectives,
        "outcome": module.outcome,
    }
    for name, vector in (("u", module.u), ("v", module.v)):
        arrays |= {f"{name}_support": vector.support, f"{name}_values": vector.values}
        if vector.choice is not None:
            arrays[f"{name}_posterior"] = vector.choice.posterior
            arrays[f"{name}_chosen"] = [getattr(vector.choice, number) for number in CHOSEN_NUMBERS]
        if vector.groups is not None:
            arrays[f"{name}_groups"] = vector.groups
    return arrays


def module_from(arrays: Arrays) -> Module:
    """The module that `module_arrays` took apart."""
    vectors: list[Vector] = []
    for name, size in zip("uv", arrays["sizes"], strict=True):
        known = f"{name}_posterior" in arrays
        choice = penalties.Choice(arrays[f"{name}_posterior"], *arrays[f"{name}_chosen"].tolist()) if known else None
        entries = arrays[f"{name}_support"], arrays[f"{name}_values"]
        vectors.append(Vector(int(size), *entries, choice=choice, groups=arrays.get(f"{name}_groups")))
    known_numbers = _MODULE_NUMBERS[: max(len(arrays["numbers"]), len(_MODULE_NUMBERS) - 1)]
    numbers: dict[str, Any] = dict(zip(known_numbers, arrays["numbers"].tolist(), strict=True))
    numbers["worst_rank"] = int(numbers["worst_rank"])
    numbers["regressed_out"] = tuple(arrays["regressed_out"].tolist())
    outcome: Any = str(arrays["outcome"])
    u, v = vectors
    return Module(u, v, outcome=outcome, objectives=arrays["objectives"], **numbers)


def _choices(model: SparseGraphSVD, arrays: Arrays, axis: str) -> Sequence[penalties.Choice | None]:
    if f"{axis}_posteriors" not in arrays:
        return [None] * int(model.n_components_)
    numbers = zip(arrays[f"{axis}_posteriors"], arrays[f"{axis}_choices"].tolist(), strict=True)
    return [penalties.Choice(posterior, *chosen) for posterior, chosen in numbers]


def check_settings(settings: Record, known: Mapping[str, object]) -> None:
    """Raise if there are settings other than the known ones."""
    if unknown := set(settings) - set(known):
        raise InputError(
            f"the model has settings this version does not know ({', '.join(sorted(unknown))}): upgrade netbic"
        )


def model_from(state: ModelState) -> SparseGraphSVD:
    """The fitted model with a state; an error if the state cannot be that of a model."""
    known = SparseGraphSVD().get_params(deep=False)
    check_settings(state.settings, known)
    if state.kind not in _KINDS:
        raise InputError(f"the model is of a class this version does not know ({state.kind}): upgrade netbic")
    check_arrays(state.arrays)
    settings = settings_from(state.settings)
    if "column_graph" not in state.graphs:
        if "diffusion" in state.arrays:
            raise InputError(
                "the model smooths data over a network, which is missing: give its edges too, or fit again"
            )
        settings["diffusion"] = None
    check_names(state.names, {"rows": len(state.arrays["left_vectors"]), "columns": state.arrays["offsets"].size})
    model = _KINDS[state.kind](**settings | state.graphs)
    if isinstance(model, StableModules):
        model.kept_ = state.arrays["kept"]
    for name in _ARRAYS:
        setattr(model, f"{name}_", state.arrays[name])
    _set_modules(model, state.arrays)
    rows = model.center in ("rows", "both")
    model.diffusion_ = float(state.arrays.get("diffusion", 0.0))
    model.scaler_ = Scaler(state.arrays["offsets"], state.arrays.get("factors"), rows)
    model.names_ = {axis: name_array(state.names.get(axis)) for axis in ("rows", "columns")}
    model.graphs_ = {f"{axis}s": state.graphs.get(f"{axis}_graph") for axis in AXES}
    _set_covariates(model, state)
    model.groups_ = groups_table([_group(row, model.n_components_) for row in state.groups or []])
    set_studies(model, state.studies, state.arrays)
    if state.feature_names:
        model.feature_names_in_ = model.names_["columns"]
    return model


def _group(row: Any, n_modules: int) -> tuple[int, str, str, int, float]:
    """A row of `groups_`, checked."""
    module, axis, group, size, share = row
    kinds = [type(module), type(size), type(axis), type(group)] == [int, int, str, str]
    if not kinds or not 0 <= module < n_modules or axis not in ("rows", "columns") or not 0 <= share < np.inf:
        raise InputError(f"the model has a group {row!r}, which no module can have: it was changed, fit again")
    return module, axis, group, size, float(share)


def _set_modules(model: SparseGraphSVD, arrays: Arrays) -> None:
    """The fitted attributes that describe the modules, but for the vectors."""
    model.n_components_, model.n_features_in_ = model.components_.shape
    model.rows_, model.columns_ = model.left_vectors_.T != 0, model.components_ != 0
    bounds = np.cumsum(arrays["rounds"])[:-1]
    model.objectives_ = np.split(arrays["objectives"], bounds) if model.n_components_ else []
    store_choices(model, *(_choices(model, arrays, axis) for axis in ("rows", "columns")))
    model.diagnostics_ = diagnostics_from(arrays.get("diagnostics"), model.n_components_)
    none = np.zeros((model.n_components_, model.n_components_), dtype=bool)  # as in models of earlier versions
    model.regressed_out_ = arrays.get("regressed_out", none)
    model.n_iter_ = int(arrays["rounds"].max(initial=1))


def name_list(names: Array | None, axis: str) -> Names:
    """Names as JSON."""
    if names is None:
        return None
    known: list[str | int] = names.tolist()
    odd = next((name for name in known if not isinstance(name, (str, int))), None)
    if odd is not None:
        raise InputError(
            f"{axis} are named by {type(odd).__name__}s such as {odd!r}: only text and integers can be saved"
        )
    return known


def name_array(names: Names) -> Array | None:
    """Names from JSON, as text or integers."""
    if names is None:
        return None
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array.astype(np.int64) if all(isinstance(name, int) for name in names) else array
