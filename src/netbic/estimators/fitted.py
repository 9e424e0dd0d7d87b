"""What other packages ask of a fitted model: the model behind a search, its names, its graphs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from netbic.estimators.estimator import SparseGraphSVD
from netbic.estimators.words import axis_names
from netbic.graphs import Graph, match


def unwrapped(model: Any) -> SparseGraphSVD:
    """The model itself, or the one that a search (`AutoSVD`, `Tuning`, scikit-learn's own) has settled on."""
    found = getattr(model, "best_estimator_", model)
    if isinstance(found, SparseGraphSVD):
        return found
    raise TypeError(
        f"model={type(model).__name__}: a SparseGraphSVD is needed, or a fitted search such as AutoSVD that has one as "
        "best_estimator_"
    )


def fitted_model(model: Any) -> SparseGraphSVD:
    """The same, and fitted."""
    found = unwrapped(model)
    check_is_fitted(found)
    return found


def is_model(thing: Any) -> bool:
    """Whether this is a model or a fitted search for one, and no list of modules."""
    return isinstance(getattr(thing, "best_estimator_", thing), SparseGraphSVD)


def matched_graph(model: SparseGraphSVD, axis: str) -> Graph | None:
    """The graph of a fitted model's rows or columns ("row", "column"), a node for each of them."""
    graph = getattr(model, f"{axis}_graph")
    if graph is None:
        return None
    size = model.left_vectors_.shape[0] if axis == "row" else model.components_.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has said it all
        return match(graph, size, model.names_[f"{axis}s"], axis)


def check_same_data(model: SparseGraphSVD, X: Any) -> None:
    """Raise unless X has the shape, and where it has names the names, of the data a model was fitted to."""
    model = fitted_model(model)
    known = (len(model.left_vectors_), int(model.n_features_in_))
    if tuple(X.shape) != known:
        raise ValueError(f"X has shape {tuple(X.shape)} but the modules were found in one of shape {known}: give that")
    for axis, names in zip(("rows", "columns"), axis_names(X), strict=True):
        own = model.names_[axis]
        if names is not None and own is not None and not np.array_equal(names, own):
            raise ValueError(f"the {axis} of X are others than those of the fit, or in another order: give the same X")


def heaviest(vector: NDArray[Any]) -> NDArray[np.intp]:
    """Places of a module's members, heaviest first."""
    members = np.flatnonzero(vector)
    return members[np.argsort(-np.abs(vector[members]), kind="stable")]


def names_of(model: SparseGraphSVD, axis: str) -> Any:
    """Names of the rows or columns; their numbers where there are none."""
    known = model.names_[axis]
    size = model.left_vectors_.shape[0] if axis == "rows" else model.components_.shape[1]
    return np.arange(size) if known is None else known
