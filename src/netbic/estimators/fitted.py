"""Access to a fitted model for other packages: the model of a search, its names, its graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Indices
from netbic.estimators.estimator import SparseGraphSVD
from netbic.estimators.inputs import axis_names, check_one_matrix


def unwrapped(model: object) -> SparseGraphSVD:
    """The model itself, or the best one of a search (`AutoSVD`, `Tuning`, or one of scikit-learn)."""
    found = getattr(model, "best_estimator_", model)
    if isinstance(found, SparseGraphSVD):
        return found
    raise TypeError(
        f"model={type(model).__name__}: a SparseGraphSVD is needed, or a fitted search such as AutoSVD that has one as "
        "best_estimator_"
    )


def fitted_model(model: object) -> SparseGraphSVD:
    """The same, and fitted."""
    found = unwrapped(model)
    check_is_fitted(found)
    return found


def is_model(thing: object) -> bool:
    """Whether this is a model or a fitted search for one (and not a list of modules)."""
    return isinstance(getattr(thing, "best_estimator_", thing), SparseGraphSVD)


def check_same_data(model: SparseGraphSVD, X: Any) -> None:
    """Raise unless X has the shape, and where it has names the names, of the data a model was fitted to."""
    known = (len(model.left_vectors_), int(model.n_features_in_))
    check_one_matrix(X)
    if tuple(X.shape) != known:
        raise ValueError(f"X has shape {tuple(X.shape)} but the modules were found in one of shape {known}: give that")
    for axis, names in zip(("rows", "columns"), axis_names(X), strict=True):
        own = model.names_[axis]
        if names is not None and own is not None and not np.array_equal(names, own):
            raise ValueError(f"the {axis} of X differ from those of the fit, or are in another order: give the same X")


def heaviest(vector: Array) -> Indices:
    """Positions of the members of a module, largest weight first."""
    members = np.flatnonzero(vector)
    return members[np.argsort(-np.abs(vector[members]), kind="stable")]


def names_of(model: SparseGraphSVD, axis: str) -> Any:
    """Names of the "rows" or "columns"; their numbers if there are none."""
    known = model.names_[axis]
    size = model.left_vectors_.shape[0] if axis == "rows" else model.components_.shape[1]
    return np.arange(size) if known is None else known
