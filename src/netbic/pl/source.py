"""What pictures are made of: a fitted model, or the one an AnnData object holds; and the entries its members have."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic import tl
from netbic.errors import InputError, shown
from netbic.estimators import SparseGraphSVD, fitted_model, is_anndata, is_model, names_of
from netbic.outofcore import is_dask
from netbic.readers import as_floats, as_matrix

Indices = NDArray[np.intp]

WORDS: Final = {"columns": "features", "rows": "samples"}
_MOST_ENTRIES = 10**8


def fitted(model: Any, key: str = "netbic") -> SparseGraphSVD:
    """The fitted model: itself, or what `tl.modules` has left in an AnnData object under `key`."""
    if is_anndata(model):
        return tl.from_anndata(model, key)
    if is_model(model):
        return fitted_model(model)
    raise TypeError(f"model={type(model).__name__}: a fitted SparseGraphSVD, or an AnnData object after tl.modules")


def check_module(model: SparseGraphSVD, module: Any) -> int:
    """The number of a module of this model, or an error that says which there are."""
    if not isinstance(module, Integral) or isinstance(module, bool):
        raise TypeError(f"module={module!r}: a number is needed, modules count from 0")
    if not 0 <= int(module) < model.n_components_:
        known = f"modules 0 to {model.n_components_ - 1}" if model.n_components_ else "no modules"
        raise InputError(f"module={module} but the model has {known}")
    return int(module)


def check_axis(axis: str) -> str:
    """One of "columns" and "rows"."""
    if axis not in WORDS:
        raise InputError(f"axis={axis!r} is not known: choose 'columns' (features) or 'rows' (samples)")
    return axis


def chosen_modules(model: SparseGraphSVD, modules: Iterable[int] | int | None) -> list[int]:
    """The modules to draw, each once; all where none are named."""
    if modules is None:
        modules = range(model.n_components_)
    listed = [modules] if isinstance(modules, Integral) else modules
    chosen = list(dict.fromkeys(check_module(model, module) for module in listed))  # type: ignore[union-attr]
    if not chosen:
        raise InputError("there are no modules to draw: fit a model that finds some, or name at least one")
    return chosen


def weights_of(model: SparseGraphSVD, axis: str) -> NDArray[Any]:
    """Signed weights on one axis, a row per module."""
    return np.asarray(model.components_ if axis == "columns" else model.left_vectors_.T)


class Data(NamedTuple):
    """A matrix, with the names of its rows and columns where it has any."""

    matrix: Any
    rows: pd.Index[Any] | None = None
    columns: pd.Index[Any] | None = None


def data_of(model: Any, X: Any, key: str = "netbic") -> Data:
    """The data to draw: X, an array or Dask array, table, sparse matrix or AnnData object; or the model."""
    X = model if X is None and is_anndata(model) else X
    if X is None:
        raise InputError("X is missing: give the data that the model was fitted to")
    if is_anndata(X):
        return Data(tl.matrix_of(X, key), X.obs_names, X.var_names)
    if isinstance(X, pd.DataFrame):
        return Data(as_matrix(X), X.index, X.columns)
    return Data(as_floats(X) if is_dask(X) else as_matrix(X))


def entries(model: SparseGraphSVD, data: Data, rows: Indices, columns: Indices) -> NDArray[Any]:
    """These entries as the model saw them, centred and scaled; nothing else of a sparse matrix is made dense."""
    if rows.size * columns.size > _MOST_ENTRIES:
        raise InputError(f"{rows.size:,} x {columns.size:,} entries are too many for a picture: name fewer modules")
    picked = data.matrix[_places(model, data, "rows", rows)]
    picked = picked.compute() if is_dask(picked) else picked
    block = _dense(picked[:, _places(model, data, "columns", columns)])
    done = model.scaler_
    block -= done.offsets[columns].astype(block.dtype)
    if done.rows:
        own = picked[:, _places(model, data, "columns", np.arange(model.n_features_in_))]
        block -= _row_means(own, done.offsets).astype(block.dtype)
    if done.factors is not None:
        block *= done.factors[columns].astype(block.dtype)
    return block


def _dense(part: Any) -> NDArray[Any]:
    return np.array(part.toarray() if hasattr(part, "toarray") else part)


def _row_means(own: Any, offsets: NDArray[Any]) -> NDArray[Any]:
    """Means over the model's own columns, after their offsets, of what is observed."""
    if hasattr(own, "toarray"):
        return np.asarray(own.mean(axis=1)).reshape(-1, 1) - float(offsets.mean())
    return np.asarray(np.nanmean(own - offsets, axis=1, keepdims=True))


def _places(model: SparseGraphSVD, data: Data, axis: str, members: Indices) -> Indices:
    """Where some of the model's rows or columns are: by name where both have names, otherwise where they were."""
    names, index = pd.Index(names_of(model, axis)), data.rows if axis == "rows" else data.columns
    if index is not None and model.names_[axis] is not None and not index.equals(names):
        if not index.is_unique:
            raise InputError(f"names of {axis} occur twice in X, so the model's cannot be found: give the X of the fit")
        places = index.get_indexer(names[members])
        if (places < 0).any():
            lost = str(names[members][int(np.argmin(places))])
            raise InputError(f"X has no {WORDS[axis][:-1]} {shown(lost)}, one of the modules': give the X of the fit")
        return np.asarray(places, dtype=np.intp)
    size = data.matrix.shape[0 if axis == "rows" else 1]
    if size != names.size:
        raise InputError(f"X has {size:,} {axis} but the model was fitted to {names.size:,}: give the X of the fit")
    return members
