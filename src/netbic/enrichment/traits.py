"""Mean and variance of the features, on which random sets are matched in addition to the degree."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbic.arrays import Floats, Matrix, checked, is_sparse, kind_of
from netbic.estimators import SparseGraphSVD
from netbic.operators import RowBlocks, as_operator

Traits = dict[str, Floats]  # "mean" and "variance", where they are known and differ between features

_EQUAL = 1e-9  # relative differences up to this are rounding errors


def column_traits(X: Matrix) -> Traits:
    """Mean and variance of the observed entries of every column; one that is the same for all columns is left out.

    Examples
    --------
    >>> import numpy as np
    >>> column_traits(np.array([[0.0, 1.0], [2.0, 5.0]]))
    {'mean': array([1., 3.]), 'variance': array([1., 4.])}
    >>> column_traits(np.array([[-1.0, 2.0], [1.0, -2.0]]))
    {'variance': array([1., 4.])}
    """
    X = checked(X)
    if kind_of(X) == "dask" or is_sparse(X):
        data = as_operator(RowBlocks(X, hold=False) if kind_of(X) == "dask" else X, low_memory=True)
        means = data.column_sums() / data.shape[0]
        variances = data.column_squares(np.zeros(data.shape[0]), means) / data.shape[0]
    else:
        means, variances = _observed_moments(np.asarray(X, dtype=np.float64))
    return _varying({"mean": means, "variance": variances}, float(np.sqrt(np.max(variances, initial=0.0))))


def _observed_moments(X: Floats) -> tuple[Floats, Floats]:
    seen = np.maximum(np.sum(~np.isnan(X), axis=0), 1)
    means = np.nansum(X, axis=0) / seen
    return means, np.nansum((X - means) ** 2, axis=0) / seen


def stored_traits(model: SparseGraphSVD) -> Traits:
    """What a fitted model knows of its columns: means if it centred them, variances if it scaled them."""
    if model.study_scaling_ is not None:
        return {}  # genes have other means and variances in every study
    scaler, traits = model.scaler_, {}
    # A lower bound of the standard deviation of all entries, not far below it.
    unit = float(model.singular_values_.max(initial=0.0)) / np.sqrt(model.left_vectors_.shape[0] * model.n_features_in_)
    if model.center in ("columns", "both"):
        traits["mean"] = np.asarray(scaler.offsets, dtype=np.float64)
    if scaler.factors is not None:
        traits["variance"] = 1 / np.asarray(scaler.factors, dtype=np.float64) ** 2
        unit = float(np.sqrt(np.median(traits["variance"])))
    return _varying(traits, unit)


def _varying(traits: Traits, unit: float) -> Traits:
    """Traits that differ between columns by more than rounding errors."""
    limits = {"mean": _EQUAL * unit, "variance": _EQUAL * unit**2}
    return {name: values for name, values in traits.items() if values.size and np.ptp(values) > limits[name]}


def traits_from(arrays: dict[str, Any], size: int) -> Traits:
    """Traits that were stored as arrays; none if they are not of `size` columns."""
    known: Traits = {name: np.asarray(arrays[name]) for name in ("mean", "variance") if name in arrays}
    return known if all(values.shape == (size,) for values in known.values()) else {}


def matched_on(traits: Traits) -> str:
    """What sets are matched on, in words: "degree" or "degree, mean, variance"."""
    return ", ".join(["degree", *traits])
