"""The inputs of plots: a fitted model, or the one in an AnnData object, and the entries of the data to draw."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from netbic import tl
from netbic.arrays import Array, Indices, Matrix, is_sparse, kind_of, to_dense
from netbic.errors import InputError, shown
from netbic.estimators import SparseGraphSVD, fitted_model, is_model, names_of, rescaled
from netbic.io import as_floats, as_matrix

if TYPE_CHECKING:
    from anndata import AnnData

    ModelLike: TypeAlias = SparseGraphSVD | AnnData

AXIS_NOUNS: Final = {"columns": "genes", "rows": "samples"}
_MOST_ENTRIES = 10**8


def fitted(model: object, key: str = "netbic") -> SparseGraphSVD:
    """The fitted model, or the one that `tl.modules` stored in an AnnData object under `key`."""
    if kind_of(model) == "anndata":
        return tl.from_anndata(model, key)
    if is_model(model):
        return fitted_model(model)
    raise TypeError(
        f"model={type(model).__name__}: expected a fitted SparseGraphSVD, or an AnnData object after tl.modules"
    )


def check_module(model: SparseGraphSVD, module: object) -> int:
    """The number of a module, or an error with the numbers of the model's modules."""
    if not isinstance(module, Integral) or isinstance(module, bool):
        given = repr(module) if isinstance(module, (str, float, bool)) else type(module).__name__
        raise TypeError(f"module={given}: expected an integer; modules are numbered from 0")
    if not 0 <= int(module) < model.n_components_:
        known = f"modules 0 to {model.n_components_ - 1}" if model.n_components_ else "no modules"
        raise InputError(f"module={module} but the model has {known}")
    return int(module)


def check_axis(axis: str) -> str:
    """One of "columns" and "rows"."""
    if axis not in AXIS_NOUNS:
        raise InputError(f"unknown axis={axis!r}: choose 'columns' (genes) or 'rows' (samples)")
    return axis


def chosen_modules(model: SparseGraphSVD, modules: Iterable[int] | int | None) -> list[int]:
    """The modules to draw, each once; None: all modules."""
    if modules is None:
        modules = range(model.n_components_)
    listed = [modules] if isinstance(modules, Integral) else modules
    chosen = list(dict.fromkeys(check_module(model, module) for module in listed))  # type: ignore[union-attr]
    if not chosen:
        raise InputError("there are no modules to draw: fit a model that finds some, or choose at least one")
    return chosen


def weights_of(model: SparseGraphSVD, axis: str) -> Array:
    """Signed weights on one axis, a row per module."""
    return np.asarray(model.components_ if axis == "columns" else model.left_vectors_.T)


class Data(NamedTuple):
    """A matrix, and the names of its rows and columns if it has names."""

    matrix: Matrix
    rows: pd.Index[Any] | None = None
    columns: pd.Index[Any] | None = None


def data_of(model: Matrix, X: Matrix, key: str = "netbic") -> Data:
    """The data to draw: X, or the model itself if it is an AnnData object."""
    X = model if X is None and kind_of(model) == "anndata" else X
    if isinstance(X, Integral):
        remedy = f"for one module use module={X} (heatmap: modules=[{X}])"
        raise TypeError(f"X={X}: the second argument is the data; {remedy}")
    if X is None:
        raise InputError("X is missing: give the data that the model was fitted to")
    if kind_of(X) == "anndata":
        return Data(tl.matrix_of(X, key), X.obs_names, X.var_names)
    if kind_of(X) == "table":
        return Data(as_matrix(X), X.index, X.columns)
    return Data(as_floats(X) if kind_of(X) == "dask" else as_matrix(X))


def model_columns(model: SparseGraphSVD, data: Data) -> Matrix:
    """The data of the model's features, in their order."""
    columns = _positions(model, data, "columns", np.arange(model.n_features_in_))
    in_order = np.array_equal(columns, np.arange(data.matrix.shape[1]))
    return data.matrix if in_order else data.matrix[:, columns]


def entries(model: SparseGraphSVD, data: Data, rows: Indices, columns: Indices) -> Array:
    """These entries, centred and scaled as in the fit; of a sparse matrix only these are converted to dense."""
    if rows.size * columns.size > _MOST_ENTRIES:
        raise InputError(f"{rows.size:,} x {columns.size:,} entries are too many to plot: choose fewer modules")
    picked = data.matrix[_positions(model, data, "rows", rows)]
    picked = picked.compute() if kind_of(picked) == "dask" else picked
    done = model.scaler_
    block = rescaled(model, to_dense(picked[:, _positions(model, data, "columns", columns)]), rows, columns)
    block = np.subtract(block, done.offsets[columns], dtype=block.dtype)
    design = None if model.covariates_ is None else model.covariates_.to_numpy(dtype=np.float64)[rows]
    if design is not None and done.effects is not None:
        block -= (design @ done.effects[:, columns]).astype(block.dtype)
    if done.rows:
        own = picked[:, _positions(model, data, "columns", np.arange(model.n_features_in_))]
        block -= _row_means(own, done.offsets).astype(block.dtype)
        if design is not None and done.effects is not None:
            block += (design @ done.effects.mean(axis=1))[:, None].astype(block.dtype)
    if done.factors is not None:
        block *= done.factors[columns].astype(block.dtype)
    return block


def _row_means(own: Matrix, offsets: Array) -> Array:
    """Means of the observed entries over the columns of the model, after subtraction of the offsets."""
    if is_sparse(own):
        return np.asarray(own.mean(axis=1)).reshape(-1, 1) - float(offsets.mean())
    return np.asarray(np.nanmean(own - offsets, axis=1, keepdims=True))


def _positions(model: SparseGraphSVD, data: Data, axis: str, members: Indices) -> Indices:
    """Positions of the model's rows or columns in X: by name if both have names, otherwise unchanged."""
    names, index = pd.Index(names_of(model, axis)), data.rows if axis == "rows" else data.columns
    if index is not None and model.names_[axis] is not None and not index.equals(names):
        if not index.is_unique:
            raise InputError(
                f"names of {axis} occur twice in X, so they cannot be matched to the model: give the X of the fit"
            )
        positions = index.get_indexer(names[members])
        if (positions < 0).any():
            absent = str(names[members][int(np.argmin(positions))])
            raise InputError(f"X has no {AXIS_NOUNS[axis][:-1]} {shown(absent)} of the modules: give the X of the fit")
        return np.asarray(positions, dtype=np.intp)
    size = data.matrix.shape[0 if axis == "rows" else 1]
    if size != names.size:
        raise InputError(f"X has {size:,} {axis} but the model was fitted to {names.size:,}: give the X of the fit")
    return members
