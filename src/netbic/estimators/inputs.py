"""Input data: validation, names of rows and columns, missing entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from netbic.arrays import Array, checked, is_sparse, kind_of, stored_values, without_names
from netbic.errors import InputError
from netbic.operators import DataOperator, RowBlocks

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


def validated(model: SparseGraphSVD, X: Any, reset: bool) -> Any:
    """Check X as scikit-learn does; a dense or CSR matrix of floats, an operator, or `RowBlocks` for a Dask array."""
    check_one_matrix(X)
    kind = kind_of(X)
    if kind in ("dask", "operator"):
        validate_data(model, X, reset=reset, skip_check_array=True)
        return RowBlocks(X, hold=reset) if kind == "dask" else _check_operator(X, model.missing)
    X = checked(X, missing=model.missing)
    finite = True if model.missing == "error" else "allow-nan"
    options = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": finite}
    try:
        X = validated_table(model, X, reset, options)
    except ValueError as problem:
        if "contains NaN" not in str(problem) and "infinity" not in str(problem):
            raise
        what = str(problem).splitlines()[0].rstrip(".")
        is_missing = "contains NaN" in what and model.missing == "error"
        remedy = "use missing='ignore' or missing='impute', or replace them" if is_missing else "replace these entries"
        raise ValueError(f"{what}: {remedy}") from None
    if is_sparse(X) and model.missing != "error" and has_missing(X):
        raise ValueError("X is sparse and contains NaN: drop those entries (missing values need a dense X)")
    return X


def validated_table(model: BaseEstimator, X: Any, reset: bool, options: Mapping[str, Any]) -> Any:
    """Check X by `validate_data` of scikit-learn, but not the columns of a DataFrame of floats one by one."""
    if (values := without_names(X)) is X:
        return validate_data(model, X, reset=reset, **options)
    validate_data(model, X, reset=reset, skip_check_array=True)
    return check_array(values, estimator=model, input_name="X", **options)


def _check_operator(X: DataOperator, missing: str) -> DataOperator:
    if 0 in X.shape:
        raise ValueError(f"X has {X.shape[0]} samples and {X.shape[1]} features: at least one of each is needed")
    if missing != "error":
        raise ValueError(
            f"missing={missing!r} needs the entries of X, but X is a {type(X).__name__}, which offers products only: "
            "use missing='error'"
        )
    return X


def has_missing(X: Any) -> bool:
    """Whether any (stored) entry is NaN. Missing entries of Dask arrays and operators are refused elsewhere."""
    return kind_of(X) not in ("blocks", "operator") and bool(np.isnan(stored_values(X)).any())


def check_one_matrix(X: Any) -> None:
    """Raise if X is a dict of studies, where the matrix of all samples is needed."""
    if isinstance(X, Mapping) and kind_of(X) == "other":  # a sparse matrix may be a mapping, too
        raise InputError(
            "X is a dict of studies, but the matrix of all samples is needed: give netbic.stack_studies(X).X (the "
            "model knows the study of each sample)"
        )


def axis_names(X: Any) -> tuple[Array | None, Array | None]:
    """Names of the rows and columns of X; None where it has none."""
    check_one_matrix(X)
    return names_of_index(getattr(X, "index", None)), names_of_index(getattr(X, "columns", None))


def names_of_index(index: Any) -> Array | None:
    """The names in the index of a DataFrame; None for the default index 0, 1, ..."""
    if not isinstance(index, pd.Index):
        return None
    if isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index))):
        return None
    return index.to_numpy() if index.dtype.kind in "iu" else np.asarray(index.astype(object).to_numpy(), dtype=object)
