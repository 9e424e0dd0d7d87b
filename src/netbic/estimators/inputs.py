"""Input data: validation, names of rows and columns, and from a validated matrix to the operator that is searched."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from threading import Lock, local
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data
from threadpoolctl import ThreadpoolController

from netbic.arrays import (
    Array,
    Floats,
    check_largest,
    check_range,
    checked,
    is_sparse,
    kind_of,
    stored_values,
    without_names,
)
from netbic.errors import InputError
from netbic.operators.base import RowReduction, as_operator
from netbic.operators.blocks import RowBlocks
from netbic.operators.corrected import Corrected, Scaler
from netbic.operators.dense import DenseOperator
from netbic.operators.masked import Masked, learn_from_observed

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

Scaled = tuple[Corrected, float, Scaler]  # the matrix, its rounding error, and how to transform other rows


def validated(model: SparseGraphSVD, X: Any, reset: bool) -> Any:
    """Check X as scikit-learn does; a dense or CSR matrix of floats, an operator, or `RowBlocks` for a Dask array."""
    check_one_matrix(X)
    kind = kind_of(X)
    if kind in ("dask", "operator"):
        validate_data(model, X, reset=reset, skip_check_array=True)
        if kind == "dask":
            return RowBlocks(X, hold=reset)
        if 0 in X.shape:
            raise ValueError(f"X has {X.shape[0]} samples and {X.shape[1]} features: at least one of each is needed")
        if model.missing != "error":
            raise ValueError(
                f"missing={model.missing!r} needs the entries of X, but X is a {type(X).__name__}, which offers "
                "products only: use missing='error'"
            )
        return X
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


def has_missing(X: Any) -> bool:
    """Whether any (stored) entry is NaN. Missing entries of Dask arrays and operators are refused elsewhere."""
    return kind_of(X) not in ("blocks", "operator") and bool(np.isnan(stored_values(X)).any())


def holds_studies(X: Any) -> bool:
    """Whether X is a dict of studies."""
    return isinstance(X, Mapping) and kind_of(X) == "other"  # a sparse matrix may be a mapping, too


def check_one_matrix(X: Any) -> None:
    """Raise if X is a dict of studies, where the matrix of all samples is needed."""
    if holds_studies(X):
        raise InputError(
            "X is a dict of studies, but the matrix of all samples is needed: give netbic.stack_studies(X).X (the "
            "model knows the study of each sample)"
        )


def check_same_data(model: SparseGraphSVD, X: Any) -> None:
    """Raise unless X has the shape, and where it has names the names, of the data a model was fitted to."""
    known = (len(model.left_vectors_), int(model.n_features_in_))
    check_one_matrix(X)
    if tuple(X.shape) != known:
        raise ValueError(f"X has shape {tuple(X.shape)} but the modules were found in one of shape {known}: give that")
    for axis, names in zip(("rows", "columns"), axis_names(X), strict=True):
        own = model.names_[axis]
        if names is not None and own is not None and not np.array_equal(names, own):
            raise ValueError(f"the {axis} of X differ from those of the fit, or are in another order: give the same X")


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


# Centring and scaling


def scale_data(
    X: Any,
    design: Floats | None = None,
    *,
    center: str | None = "columns",
    scale: float = False,
    missing: str = "error",
    low_memory: bool = False,
    ddof: int = 0,
    name: str = "X",
) -> Scaled:
    """The centred and scaled matrix, its rounding error, and how to transform other rows.

    The covariates in the columns of `design` (of mean zero, and linearly independent) are projected out first. Standard
    deviations are divided by n - `ddof`; errors call the matrix by its `name`. See `SparseGraphSVD` for the others.
    """
    kind = kind_of(X)
    is_dense = kind not in ("blocks", "operator", "sparse")
    if kind == "blocks":
        X.check_finite()
    masked = is_dense and missing != "error" and has_missing(X)
    if masked:
        check_range(X, name)
        scaler = learn_from_observed(X, center, scale, design)
        operator: Corrected = Masked(scaler.apply(X, design), missing == "impute", low_memory)
        offsets = scaler.offsets if scaler.factors is None else scaler.offsets * scaler.factors
        norms = float(np.sqrt(operator.squared_norm)) + float(np.linalg.norm(offsets) * np.sqrt(X.shape[0]))
        noise = 4 * float(np.finfo(X.dtype).eps) * norms
    else:
        data = as_operator(X, low_memory=True)
        with np.errstate(over="ignore", invalid="ignore"):
            scaler = Scaler.learn(data, center, scale, design, ddof)
            operator = scaler.operator(data, design)
            noise = float(4 * data.epsilon * (np.sqrt(operator.squared_norm) + operator.correction_norm()))
        if not operator.squared_norm_is_safe:
            check_largest(_largest_entry(X), name)
        # Offsets may be so large that subtracting them from products would lose significant digits.
        loses_digits = noise > 4e-6 * np.sqrt(operator.squared_norm) > 0
        if is_dense and loses_digits:
            operator = Corrected(DenseOperator(scaler.apply(X, design), low_memory), operator.squared_norm)
        elif is_dense and not low_memory:
            operator = operator.on(DenseOperator(X))
        elif kind == "blocks" and not X.is_sparse and loses_digits:
            operator = Corrected(as_operator(X.with_transform(scaler.apply, design)), operator.squared_norm)
    if design is not None and operator.squared_norm <= noise**2:
        raise ValueError("the covariates explain all of X, and no variance is left to search: use fewer covariates")
    return operator, noise, scaler


def is_mostly_zero(X: Any) -> bool:
    """Whether more than half of the entries are zero, as in counts of single cells; False if that is not known yet."""
    match kind_of(X):
        case "blocks":
            n_nonzero = X.summary.n_nonzero
        case "operator" | "dask":
            return False
        case "sparse" if 2 * X.nnz < X.shape[0] * X.shape[1]:
            return True
        case _:
            n_nonzero = int(np.count_nonzero(stored_values(X)))
    return bool(2 * n_nonzero < X.shape[0] * X.shape[1])


def learn_scaler(X: Any, center: str | None, scale: float, design: Floats | None) -> Scaler:
    """How the rows of X are centred and scaled; from the observed entries if some are missing."""
    if has_missing(X):
        return learn_from_observed(X, center, scale, design)
    return Scaler.learn(as_operator(X, low_memory=True), center, scale, design)


def _largest_entry(X: Any) -> float:
    match kind_of(X):
        case "blocks":
            return float(X.summary.largest)
        case "operator":
            nothing = np.empty((X.shape[0], 0)), np.empty((X.shape[1], 0))
            return float(X.reduce_rows(RowReduction(_largest_of_rows, max, None, *nothing)))
        case _:
            return float(abs(X).max())


def _largest_of_rows(rows: Array, first: int) -> float:
    return float(np.abs(rows).max())


# Threads


class _OneThread(AbstractContextManager[object]):
    """BLAS is limited to one thread while any fit is inside.

    Fits in several threads, and iterations over modules, may overlap: the number of threads is restored when the last
    of them has left. (`ThreadpoolController.limit` would then restore the limit of another fit.) Libraries that
    use OpenMP have a number per thread, which is restored when the last fit of that thread has left.
    """

    def __init__(self) -> None:
        self._lock, self._count, self._depth = Lock(), 0, local()
        self._libraries: list[tuple[Any, int]] = []  # and their usual numbers of threads

    @cached_property
    def _blas(self) -> Any:
        return ThreadpoolController().select(user_api="blas")

    def __enter__(self) -> None:
        with self._lock:
            if not self._count:
                self._libraries = [(library, library.num_threads) for library in self._blas.lib_controllers]
            self._count += 1
            self._depth.here = getattr(self._depth, "here", 0) + 1  # fits of this thread that are inside
            for library, _ in self._libraries:
                library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            # A generator may be closed by another thread.
            self._depth.here = max(getattr(self._depth, "here", 0) - 1, 0)
            for library, usual in self._libraries:
                per_process = library.info()["threading_layer"] == "pthreads"
                if not (self._count if per_process else self._depth.here):
                    library.set_num_threads(usual)


_one_thread = _OneThread()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: the products of the solver are too small for more."""
    return _one_thread
