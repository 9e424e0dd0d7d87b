"""Input data: validation, names of rows and columns, missing entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from netbic.arrays import Array, checked
from netbic.outofcore import RowBlocks, is_dask

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


def validated(model: SparseGraphSVD, X: Any, reset: bool) -> Any:
    """Check X as scikit-learn does; a dense or CSR matrix of floats, or `RowBlocks` for a Dask array."""
    refuse_anndata(X)
    if is_dask(X):
        validate_data(model, X, reset=reset, skip_check_array=True)
        return RowBlocks(X, hold=reset)
    X = checked(X, missing=model.missing)
    finite = True if model.missing == "error" else "allow-nan"
    options = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": finite}
    try:
        X = validate_data(model, X, reset=reset, **options)
    except ValueError as problem:
        if "contains NaN" not in str(problem) and "infinity" not in str(problem):
            raise
        what = str(problem).splitlines()[0]
        raise ValueError(f"{what} Drop such entries, or use missing='ignore' or 'impute' for NaN") from None
    if sp.issparse(X) and model.missing != "error" and has_missing(X):
        raise ValueError("X is sparse and contains NaN: drop those entries (missing values need a dense X)")
    return X


def has_missing(X: Any) -> bool:
    """Whether any (stored) entry is NaN. Missing entries of a Dask array are refused elsewhere."""
    if isinstance(X, RowBlocks):
        return False
    return bool(np.isnan(X if isinstance(X, np.ndarray) else X.data).any())


def axis_names(X: Any) -> tuple[Array | None, Array | None]:
    """Names of the rows and columns of X; None where it has none."""
    return names_of_index(getattr(X, "index", None)), names_of_index(getattr(X, "columns", None))


def names_of_index(index: Any) -> Array | None:
    """The names in the index of a DataFrame, unless they are only numbers 0, 1, ..."""
    if not isinstance(index, pd.Index) or isinstance(index, pd.RangeIndex):
        return None
    return index.to_numpy() if index.dtype.kind in "iu" else np.asarray(index.astype(object).to_numpy(), dtype=object)


def is_anndata(thing: object) -> bool:
    """Whether this is an AnnData object; by its name, so that anndata need not be installed."""
    return any(kind.__name__ == "AnnData" and kind.__module__.startswith("anndata") for kind in type(thing).__mro__)


def refuse_anndata(X: object) -> None:
    """Raise if an AnnData object or a Dask DataFrame is given instead of a matrix."""
    if type(X).__module__.startswith("dask.dataframe"):
        raise TypeError("X is a Dask DataFrame: give the matrix, X.to_dask_array(lengths=True)")
    if is_anndata(X):
        raise TypeError(
            "X is an AnnData object: use netbic.tl (tl.modules, tl.score), or give the matrix with names, adata.to_df()"
        )
