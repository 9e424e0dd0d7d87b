"""The state of fitted models of two tables, as plain values; folders are written from it and read into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeGuard

import numpy as np
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array
from netbic.estimators import SparseGraphCCA, SparseGraphPLS
from netbic.files import Record
from netbic.graph import Graph
from netbic.operators import Scaler
from netbic.storage.npz import Arrays
from netbic.storage.parameters import settings_from, settings_of
from netbic.storage.state import Names, check_settings, name_array, name_list
from netbic.storage.state_check import (
    Expected,
    check_expected,
    check_lengths,
    check_names,
    check_present,
    number_of_rounds,
)

PairModel: TypeAlias = SparseGraphPLS | SparseGraphCCA
PAIR_KINDS: Final[Mapping[str, type[PairModel]]] = {kind.__name__: kind for kind in (SparseGraphPLS, SparseGraphCCA)}
_TABLES = ("x", "y")
_OF_FEATURES = ("weights", "rotations", "loadings")  # attributes of either table with a column per pair
# The letters of shapes stand for pairs (K), samples (n), features of X (p) and of Y (q), and rounds of all pairs (R).
PAIR_ARRAYS: Final[dict[str, Expected]] = {
    "x_weights": Expected("pK", least=-1.001, most=1.001),
    "y_weights": Expected("qK", least=-1.001, most=1.001),
    "x_scores": Expected("nK"),
    "y_scores": Expected("nK"),
    **{f"{side}_{name}": Expected(f"{size}K") for side, size in (("x", "p"), ("y", "q")) for name in _OF_FEATURES[1:]},
    "singular_values": Expected("K", least=0.0),
    "correlations": Expected("K", least=-1.001, most=1.001),
    "graph_share": Expected("K", least=0.0, most=1.0),
    "converged": Expected("K", "b"),
    "rounds": Expected("K", "iu", least=0),
    "objectives": Expected("R"),
    "x_offsets": Expected("p"),
    "y_offsets": Expected("q"),
    "x_factors": Expected("p", least=0.0, required=False),
    "y_factors": Expected("q", least=0.0, required=False),
    "y_coefficients": Expected("Kq", required=False),  # of PLS
}
_STORED = [name for name in PAIR_ARRAYS if name.split("_", 1)[-1] not in ("offsets", "factors", "coefficients")]
_ATTRIBUTES = [name for name in _STORED if name not in ("rounds", "objectives")]


@dataclass(frozen=True)
class PairState:
    """The complete state of a fitted model of two tables.

    Attributes
    ----------
    settings : dict
        Parameters of the estimator, as JSON.
    arrays : dict of arrays
        Those of `PAIR_ARRAYS`.
    names : dict
        Of "samples", "x" and "y": a list, or None.
    graphs : dict of Graph
        "x_graph" and "y_graph", where the model has them.
    feature_names : bool
        Whether `feature_names_in_` is set.
    kind : str
        Name of the class.
    y_is_vector : bool
        Whether Y was a vector, as predictions then are.
    """

    settings: Record
    arrays: Arrays
    names: dict[str, Names]
    graphs: dict[str, Graph] = field(default_factory=dict)
    feature_names: bool = False
    kind: str = "SparseGraphCCA"
    y_is_vector: bool = False

    @property
    def further(self) -> Record:
        """What `model.json` holds in addition."""
        return {"y_is_vector": self.y_is_vector}


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


def pair_state_of(model: object) -> PairState:
    """The state of a fitted model, or of the model that a fitted search found."""
    model = fitted_pair_model(model)
    arrays: Arrays = {name: np.asarray(getattr(model, f"{name}_")) for name in _ATTRIBUTES}
    arrays["objectives"] = np.concatenate([*model.objectives_, np.empty(0)])
    arrays["rounds"] = np.array([len(values) for values in model.objectives_], dtype=np.int64)
    for side, scaler in model.scalers_.items():
        arrays[f"{side}_offsets"] = scaler.offsets
        if scaler.factors is not None:
            arrays[f"{side}_factors"] = scaler.factors
    if isinstance(model, SparseGraphPLS):
        arrays["y_coefficients"] = model.y_coefficients_
    names = {axis: name_list(known, axis) for axis, known in model.names_.items()}
    graphs = {f"{side}_graph": graph for side in _TABLES if (graph := model.graphs_[side]) is not None}
    kind = next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in PAIR_KINDS)  # not a user's subclass
    named = hasattr(model, "feature_names_in_")
    settings = settings_of(model.get_params(deep=False))
    return PairState(settings, arrays, names, graphs, named, kind, bool(model._y_is_vector))


def pair_model_from(state: PairState) -> PairModel:
    """The fitted model with a state; an error if the state cannot be that of a model."""
    kind = PAIR_KINDS[state.kind]
    check_settings(state.settings, kind().get_params(deep=False))
    _check(state)
    parameters: dict[str, Any] = settings_from(state.settings) | state.graphs
    model = kind(**parameters)
    model._check()
    for name in _ATTRIBUTES:
        setattr(model, f"{name}_", state.arrays[name])
    model.n_components_, model.n_features_in_ = model.singular_values_.size, len(model.x_weights_)
    model.x_support_, model.y_support_ = model.x_weights_.T != 0, model.y_weights_.T != 0
    bounds = np.cumsum(state.arrays["rounds"])[:-1]
    model.objectives_ = np.split(state.arrays["objectives"], bounds) if model.n_components_ else []
    model.n_iter_ = int(state.arrays["rounds"].max(initial=1))
    model.scalers_ = {side: _scaler(state.arrays, side) for side in _TABLES}
    model.names_ = {axis: name_array(state.names.get(axis)) for axis in ("samples", *_TABLES)}
    model.graphs_ = {side: state.graphs.get(f"{side}_graph") for side in _TABLES}
    model._y_is_vector = state.y_is_vector
    if isinstance(model, SparseGraphPLS):
        model.y_coefficients_ = state.arrays["y_coefficients"]
    if state.feature_names:
        model.feature_names_in_ = model.names_["x"]
    return model


def _check(state: PairState) -> None:
    """Raise unless arrays and names are those of one model."""
    arrays, table = state.arrays, dict(PAIR_ARRAYS)
    if state.kind == "SparseGraphPLS":
        table["y_coefficients"] = table["y_coefficients"]._replace(required=True)
    check_present(arrays, table, ("x_weights", "y_weights", "x_scores", "rounds"))
    sizes = {"p": len(arrays["x_weights"]), "q": len(arrays["y_weights"]), "R": number_of_rounds(arrays["rounds"])}
    sizes["n"], sizes["K"] = arrays["x_scores"].shape
    check_expected(arrays, table, sizes)
    check_lengths(arrays, {"x_weights": 0, "y_weights": 0}, "pair")
    check_names(state.names, {"samples": sizes["n"], "x": sizes["p"], "y": sizes["q"]})


def _scaler(arrays: Mapping[str, Array], side: str) -> Scaler:
    return Scaler(arrays[f"{side}_offsets"], arrays.get(f"{side}_factors"), rows=False)
