"""Modules in any form as boolean masks over the nodes of a graph or over a list of names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Indices, Matrix, check_choice, check_in_memory
from netbic.estimators import fitted_model, is_model
from netbic.graph import Graph, match

Modules = Any  # a fitted model, or a list of index arrays, boolean masks or names
GraphLike = Any  # anything that `Graph.of` accepts


def refuse_dask(X: Any) -> None:
    """Raise where the data have to be in memory."""
    check_in_memory(X, "modules are judged on data in memory")


def graph_and_masks(modules: Modules, graph: GraphLike, axis: str) -> tuple[Graph, Bools]:
    """The graph, matched to the model if there is one, and a row per module over its nodes."""
    check_choice("axis", axis, ("columns", "rows"))
    if is_model(modules):
        model = fitted_model(modules)
        masks = getattr(model, f"{axis}_")
        return match(graph, masks.shape[1], model.names_[axis], axis.removesuffix("s")), masks
    made = Graph.of(graph)
    return made, masks_over(modules, made.n_nodes, made.names, "graph")


def in_order_of(names: Array | None, X: Matrix, features: str) -> Matrix:
    """Columns of X in the order of some names, if both have names; `features` is what error messages call them."""
    if names is None or not isinstance(X, pd.DataFrame):
        return X
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise ValueError(f"X lacks {len(missing)} of the {features}, such as {missing[0]!r}: add them")
    return X[list(names)]


def masks_over(modules: Modules, size: int, names: Array | None, whole: str) -> Bools:
    """A row per module over `size` members of a `whole`, which is what error messages call it."""
    if isinstance(modules, np.ndarray) and modules.ndim == 1 and modules.dtype != object:
        raise ValueError(f"modules is an array of shape {modules.shape}: give a list of modules, e.g. [members]")
    if isinstance(modules, (str, dict)) or not isinstance(modules, Iterable):
        raise ValueError(f"modules is a {type(modules).__name__}: give a fitted model or a list of modules")
    modules = [sorted(module) if isinstance(module, (set, frozenset)) else module for module in modules]
    if any(isinstance(module, str) or np.ndim(module) == 0 for module in modules):
        raise ValueError("modules is a list of single members: give a list of modules, e.g. [members]")
    rows = [_mask(module, size, names, whole) for module in modules]
    return np.array(rows, dtype=bool).reshape(len(rows), size)


def _mask(module: Any, size: int, names: Array | None, whole: str) -> Bools:
    members = np.asarray(module)
    mask = np.zeros(size, dtype=bool)
    if members.dtype == bool:
        if members.shape != mask.shape:
            raise ValueError(f"a module's mask has length {members.size} but the {whole} has {size} nodes")
        return members
    if members.shape == mask.shape and size > 2 and members.dtype.kind in "iuf" and set(np.unique(members)) <= {0, 1}:
        raise ValueError(f"a module is given by {size} zeros and ones: make it boolean, e.g. mask.astype(bool)")
    if members.dtype.kind in "OUS" and members.size:
        members = _positions(members, names, whole)
    if members.size and not np.issubdtype(members.dtype, np.integer):
        raise ValueError(f"module members are of type {members.dtype}: give positions, names or a boolean mask")
    outside = members[(members < 0) | (members >= size)] if members.size else members
    if outside.size:
        raise ValueError(f"a module has member {outside[0]} but the {whole} has nodes 0 to {size - 1}")
    mask[members.astype(np.intp)] = True
    return mask


def _positions(members: Array, names: Array | None, whole: str) -> Indices:
    if names is None:
        raise ValueError(f"modules are given by name but the {whole} has no node names: make it with names=...")
    members = members.astype(object)
    found = pd.Index(names).get_indexer(pd.Index(members))
    if (found < 0).any():
        missing = members[int(np.argmin(found))]
        raise ValueError(f"module member {missing!r} is not in the {whole}: drop or rename it")
    return np.asarray(found)
