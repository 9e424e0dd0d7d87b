"""Folds of an axis, and models for part of the data."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_array

from netbic.arrays import Array, Indices, Matrix, RandomState, checked, without_names
from netbic.estimators import AXES, SparseGraphSVD, TwoTables
from netbic.graph import Graph, match
from netbic.penalties import Penalty
from netbic.selection.grid import Parameters

SIDES = ("x", "y")  # the features of the first and of the second of two tables
Model = TypeVar("Model", bound=SparseGraphSVD | TwoTables)
Names = tuple[Array | None, ...]  # of each axis, such as rows and columns


def folds(size: int, n_folds: int, random_state: RandomState, what: str = "samples") -> list[Indices]:
    """Held-out samples (or features) of each fold: a random partition into parts of nearly equal size."""
    if not 2 <= n_folds <= size // 2:
        most = max(size // 2, 2)
        raise ValueError(f"{n_folds} folds of {size} {what}: choose 2 to {most}, so that each holds two {what}")
    order = np.random.default_rng(random_state).permutation(size)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def complement(held_out: Indices, size: int) -> Indices:
    """The indices that are not held out."""
    return np.setdiff1d(np.arange(size), held_out)


def draw_seed(random_state: RandomState) -> int:
    """An integer seed drawn from a random state."""
    return int(np.random.default_rng(random_state).integers(2**31))


def seeded(model: Model, seed: int) -> Model:
    """A clone with an integer `random_state`, so that its random starts do not depend on the order of the fits."""
    made: Model = clone(model)
    return made if isinstance(model.random_state, Integral) else made.set_params(random_state=seed)


def graphs_by_position(
    parameters: Parameters,
    shape: tuple[int, ...],
    names: Names,
    matched: dict[tuple[str, int], Graph] | None = None,
    axes: tuple[str, ...] = AXES,
) -> Parameters:
    """The graphs and the penalties of groups among a model's parameters, matched to the axes of X, without names.

    `matched` holds graphs of earlier calls, by axis and identity, so that each is matched once. For a model of two
    tables, `shape` and `names` are those of the features of X and of Y, the axes "x" and "y".
    """
    found: Parameters = {}
    matched = {} if matched is None else matched
    for axis, size, known in zip(axes, shape, names, strict=True):
        if (graph := parameters[f"{axis}_graph"]) is not None:
            key = axis, id(graph)
            if key not in matched:
                matched[key] = match(graph, size, known, axis if axis in AXES else "feature").renamed(None)
            found[f"{axis}_graph"] = matched[key]
        penalty = parameters[f"{axis}_penalty"]
        if isinstance(penalty, Penalty) and penalty.n_groups() is not None:
            found[f"{axis}_penalty"] = penalty.for_names(known, size, axis).for_part(np.arange(size), size)
    return found


def by_position(fitted: SparseGraphSVD, X: Matrix, sparse_format: str) -> tuple[SparseGraphSVD, Matrix]:
    """A clone of a fitted model whose graphs match X by position, and the values of X without names."""
    values = check_array(
        without_names(checked(X)), accept_sparse=sparse_format, dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    names = fitted.names_["rows"], fitted.names_["columns"]
    graphs = graphs_by_position(fitted.get_params(deep=False), values.shape, names)
    made: SparseGraphSVD = clone(fitted).set_params(n_jobs=None, verbose=0, **graphs)
    return made, values


def fitted_to(model: SparseGraphSVD, X: Matrix, covariates: Any = None) -> SparseGraphSVD:
    """The model, fitted to X; covariates are given to `fit` only if there are any."""
    made: SparseGraphSVD = model.fit(X) if covariates is None else model.fit(X, covariates=covariates)
    return made


def fallback_penalties(model: SparseGraphSVD) -> dict[str, Penalty | None]:
    """The penalties of a model, with fixed sizes in place of chosen ones where these have a fallback."""
    names = ("row_penalty", "column_penalty")
    given: dict[str, Penalty | None] = {name: getattr(model, name) for name in names}
    return {name: penalty and (penalty.when_unreliable() or penalty) for name, penalty in given.items()}


def restrict(model: SparseGraphSVD, axis: str, kept: Indices, size: int) -> SparseGraphSVD:
    """A clone for some of the rows or columns ("row", "column"): sizes in proportion, the induced subgraph."""
    made = for_part(model, axis, kept, size)
    if (graph := getattr(model, f"{axis}_graph")) is not None:
        made.set_params(**{f"{axis}_graph": induced(match(graph, size, None, axis), kept)})
    return made


def for_part(model: SparseGraphSVD, axis: str, kept: Indices, size: int) -> SparseGraphSVD:
    """A clone for some entries of an axis: sizes in proportion, L1 bounds (of unit vectors) to the root of the share.

    Groups contain those of their members that are kept.
    """
    made: SparseGraphSVD = clone(model)
    count, penalty = getattr(model, f"n_{axis}s"), getattr(model, f"{axis}_penalty")
    if count is not None:
        made.set_params(**{f"n_{axis}s": max(1, round(count * (len(kept) / size)))})
    if isinstance(penalty, Penalty):
        made.set_params(**{f"{axis}_penalty": penalty.for_part(kept, size)})
    return made


def induced(graph: Graph, nodes: Indices) -> Graph:
    """The subgraph induced by some nodes, without names."""
    return graph.subgraph(nodes).renamed(None)
