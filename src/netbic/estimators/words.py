"""Checks of what was asked for, and of what X is."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def is_number(value: Any) -> bool:
    """Whether a value is a plain number (True and False are not)."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_count(name: str, value: Any) -> None:
    """Raise unless `value` is an integer of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: an integer is needed")
    if value < 1:
        raise ValueError(f"{name}={value}: at least 1 is needed")


def has_holes(X: Any) -> bool:
    """Whether any (stored) entry is NaN."""
    return bool(np.isnan(X if isinstance(X, np.ndarray) else X.data).any())


def axis_names(X: Any) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """The names of the rows and columns of X; None where it has none."""
    return names_of_index(getattr(X, "index", None)), names_of_index(getattr(X, "columns", None))


def names_of_index(index: Any) -> NDArray[Any] | None:
    """The names of a DataFrame's rows or columns, unless they only count."""
    if not isinstance(index, pd.Index) or isinstance(index, pd.RangeIndex):
        return None
    return index.to_numpy() if index.dtype.kind in "iu" else np.asarray(index.astype(object).to_numpy(), dtype=object)


def is_anndata(thing: Any) -> bool:
    """Whether this is an AnnData object; by its name, so that anndata need not be there."""
    return any(kind.__name__ == "AnnData" and kind.__module__.startswith("anndata") for kind in type(thing).__mro__)


def refuse_anndata(X: Any) -> None:
    """Raise where a matrix is needed and an AnnData object, or a Dask DataFrame, given."""
    if type(X).__module__.startswith("dask.dataframe"):
        raise TypeError("X is a Dask DataFrame: give the matrix, X.to_dask_array(lengths=True)")
    if is_anndata(X):
        raise TypeError(
            "X is an AnnData object: use netbic.tl (tl.modules, tl.score), or give the matrix with names, adata.to_df()"
        )
