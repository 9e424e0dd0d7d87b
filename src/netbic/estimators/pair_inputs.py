"""Two tables of the same samples: validation, and matching of samples by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples, check_array

from netbic.arrays import Array, Floats, checked, kind_of, without_names
from netbic.estimators.inputs import axis_names, validated_table

if TYPE_CHECKING:
    from netbic.estimators.two_tables import TwoTables

_SHOWN = 3  # names in an error message


def validated_x(model: TwoTables, X: Any, reset: bool) -> Any:
    """Check X as scikit-learn does: a dense or CSR matrix of floats."""
    _check_kind(X, "X")
    with _finite("X"):
        return validated_table(model, checked(X, missing="error"), reset, _options(reset))


def validated_y(model: TwoTables, Y: Any, reset: bool) -> tuple[Any, bool]:
    """Check Y likewise, and say whether it is a vector, which becomes a table with one column."""
    if Y is None:
        raise ValueError(f"{type(model).__name__} needs two tables: requires y to be passed, but the target y is None")
    _check_kind(Y, "Y")
    with _finite("Y"):
        values = checked(Y, "Y", missing="error") if getattr(Y, "ndim", 2) == 2 else Y
        values = check_array(without_names(values), input_name="Y", ensure_2d=False, **_options(reset))
    is_vector = values.ndim == 1
    values = values.reshape(-1, 1) if is_vector else values
    if not reset:
        _check_features(model, axis_names(Y)[1], values.shape[1])
    return values, is_vector


@contextmanager
def about(table: str) -> Iterator[None]:
    """Errors of functions for one matrix, which they call X, name this table instead."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.args = (re.sub(r"\bX\b", table, str(error)), *error.args[1:])
        raise


@contextmanager
def _finite(name: str) -> Iterator[None]:
    """Errors about missing and infinite entries say which table has them, and what to do."""
    try:
        yield
    except ValueError as error:
        text = str(error).splitlines()[0] if str(error) else ""
        if "contains NaN" not in text and "contains infinity" not in text:
            raise
        what = "NaN" if "NaN" in text else "infinity"
        raise ValueError(
            f"{name} contains {what}: models of two tables need complete tables. Leave out these samples or features, "
            "or fill the entries, e.g. with the mean of the feature"
        ) from None


def _check_features(model: TwoTables, names: Array | None, count: int) -> None:
    """Raise unless these are the features of Y of the fit, in the same order."""
    known, expected = model.names_["y"], len(model.y_weights_)
    if count != expected:
        raise ValueError(f"Y has {count} features but the model was fitted to {expected}: give the same features")
    if known is None or names is None or np.array_equal(known, names):
        return
    at = int(np.flatnonzero(known != names)[0])
    raise ValueError(
        f"feature {at} of Y is {names[at]!r}, but it was {known[at]!r} in the fit: give the same features in the same "
        "order, e.g. Y[model.names_['y']]"
    )


def _options(fitting: bool) -> dict[str, Any]:
    dtypes = [np.float64, np.float32]
    return {"dtype": dtypes, "accept_sparse": "csr", "ensure_min_samples": 2 if fitting else 1}


def _check_kind(table: Any, name: str) -> None:
    if (kind := kind_of(table)) in ("dask", "operator"):
        what = "a Dask array" if kind == "dask" else f"a {type(table).__name__}"
        raise TypeError(f"{name} is {what}: two tables have to be in memory, as arrays, DataFrames or sparse matrices")


def in_order_of(X: Any, Y: Any) -> Any:
    """Y with its samples in the order of X, if both have names; otherwise samples are matched by position.

    Raises
    ------
    ValueError
        If the names are not the same, or the numbers of samples differ.
    """
    if _have_same_labels(X, Y):
        return Y.loc[X.index]
    x_names, y_names = axis_names(X)[0], axis_names(Y)[0]
    if x_names is None or y_names is None or np.array_equal(x_names, y_names):
        if (n := _num_samples(X)) != (m := _num_samples(Y)):
            raise ValueError(
                f"X has {n} samples but Y has {m} (inconsistent numbers of samples): give the same samples in both"
            )
        return Y
    for names, table in ((x_names, "X"), (y_names, "Y")):
        if len(repeated := pd.Index(names)[pd.Index(names).duplicated()]):
            raise ValueError(f"sample {repeated[0]!r} occurs twice in {table}: samples are matched by name")
    missing = [_only_in(x_names, y_names, "X"), _only_in(y_names, x_names, "Y")]
    if any(missing):
        remedy = (
            "keep the samples of both, e.g. both = X.index.intersection(Y.index), and give X.loc[both] and Y.loc[both]"
        )
        if not np.isin(x_names, y_names).any():
            remedy = "use the same names of samples in both; if samples are in columns, give X.T and Y.T"
        raise ValueError(f"X and Y have different samples ({'; '.join(filter(None, missing))}): {remedy}")
    return Y.loc[x_names]


def _have_same_labels(X: Any, Y: Any) -> bool:
    """Whether both are pandas objects whose different indexes hold the same labels, numbers included."""
    one, other = getattr(X, "index", None), getattr(Y, "index", None)
    if not (isinstance(one, pd.Index) and isinstance(other, pd.Index)) or one.equals(other):
        return False
    return one.is_unique and other.is_unique and len(one) == len(other) and bool(one.isin(other).all())


def _only_in(names: Array, others: Array, table: str) -> str:
    only = pd.Index(names).difference(pd.Index(others), sort=False)
    if not len(only):
        return ""
    shown = ", ".join(map(str, only[:_SHOWN])) + (", ..." if len(only) > _SHOWN else "")
    return f"{len(only):,} of {len(names):,} samples of {table} are not in the other table: {shown}"


def checked_starts(y_start: Any, n_features: int, n_components: int) -> Floats | None:
    """The starts of all pairs, a row each."""
    if y_start is None:
        return None
    starts = check_array(y_start, input_name="y_start", dtype=np.float64)
    if starts.shape[0] != n_features or starts.shape[1] < n_components:
        raise ValueError(f"y_start has shape {starts.shape}: ({n_features}, {n_components}) is needed")
    if not starts.any(axis=0).all():
        raise ValueError("a column of y_start is zero: every pair needs a start")
    return np.asarray(starts.T)
