"""Scores of new samples on the modules of a model, with genes matched by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Matrix, checked, is_sparse
from netbic.errors import InputError, shown
from netbic.estimators import (
    Design,
    SparseGraphSVD,
    design_of_new,
    fitted_model,
    names_of,
    score_directions,
    study_of_new,
    without_studies,
)
from netbic.operators import Scaler, compute_rows, is_dask


def scores_by_name(
    model: SparseGraphSVD,
    X: Matrix,
    genes: Any,
    covariates: Any = None,
    samples: Any = None,
    studies: Any = None,
) -> Array:
    """Scores of the rows of X, whose columns are `genes`, in any order.

    Genes of the model that are missing in X are set to their mean, with a warning; other genes of X are ignored.

    Parameters
    ----------
    model : SparseGraphSVD
    X : array, sparse matrix or Dask array
        Preprocessed as the data of the fit.
    genes : sequence of names
    covariates : as for `SparseGraphSVD.fit`, optional
        Needed if the model was fitted with covariates. Missing genes are then set to the mean that is expected for
        these covariates.
    samples : list of str, optional
        Names of the rows of X, by which a table of covariates is matched; without them it is taken in their order.
    studies : array or Series of shape (n_samples,), optional
        The study of each sample, for a model that was fitted to several.

    Examples
    --------
    >>> import netbic, netbic.io
    >>> study = netbic.simulate.cohort(150, 700, n_modules=1, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=40, n_columns=60).fit(study.expression)
    >>> turned = study.expression.iloc[:, ::-1]
    >>> scores = netbic.io.scores_by_name(model, turned.to_numpy(), turned.columns)
    >>> bool((abs(scores - model.transform(study.expression)) < 1e-9).all())
    True
    """
    model = fitted_model(model)
    X = X if is_dask(X) else _as_floats(checked(X, missing=model.missing))
    known = pd.Index([str(gene) for gene in genes])
    if X.shape[1] != len(known):
        raise InputError(
            f"X has {X.shape[1]:,} columns but {len(known):,} genes are named: one name for each column is needed"
        )
    if not known.is_unique:
        raise InputError(f"gene {shown(known[known.duplicated()][0])} occurs more than once: make names unique")
    wanted = pd.Index([str(name) for name in names_of(model, "columns")])
    at = known.get_indexer(wanted)
    _check_overlap(model, known, wanted, at)
    names = None if samples is None else np.array([str(name) for name in samples], dtype=object)
    if model.study_scaling_ is not None:
        model, X, covariates, at = _of_studies(model, X, at, studies, covariates, names)
    design, effects = design_of_new(model, covariates, int(X.shape[0]), names), model.scaler_.effects
    if not isinstance(X, np.ndarray):
        scores = compute_rows(X, _affine_scores, model.scaler_, score_directions(model), at)
        if design is None or effects is None:
            return scores
        return np.asarray(scores - design @ model.scaler_.project_effects(score_directions(model), at >= 0))
    full = np.tile(model.scaler_.offsets.astype(X.dtype), (X.shape[0], 1))
    if design is not None and effects is not None:
        full += (design @ effects).astype(X.dtype)
    full[:, at >= 0] = X[:, at[at >= 0]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if design is None or model.covariate_coding_ is None:
            return np.asarray(model.transform(full))
        return np.asarray(model.transform(full, covariates=Design(design, model.covariate_coding_)))


def _of_studies(
    model: SparseGraphSVD, X: Matrix, at: Array, studies: Any, covariates: Any, names: Array | None
) -> tuple[SparseGraphSVD, Matrix, Design, Array]:
    """The model, samples and covariates as those of one study, and where the genes of the model are."""
    scaling, coding = model.study_scaling_, model.covariate_coding_
    if scaling is None or coding is None or is_dask(X):
        raise InputError("scores of a Dask array on modules of several studies: give X.compute(), or parts of its rows")
    numbers, design = study_of_new(model, studies, covariates, int(X.shape[0]), names)
    there = np.flatnonzero(at >= 0)
    new = np.full(at.size, -1)
    new[there] = np.arange(there.size)
    return without_studies(model), scaling.apply(X[:, at[there]], numbers, there), Design(design, coding), new


def _as_floats(X: Matrix) -> Matrix:
    """Integers as double precision; missing entries of a sparse matrix are an error."""
    kept = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = np.asarray(X, dtype=kept) if isinstance(X, np.ndarray) else sp.csr_array(X, dtype=kept)
    if is_sparse(X) and np.isnan(X.data).any():
        raise InputError("X is sparse and contains NaN: drop those entries (missing values need a dense X)")
    return X


def _check_overlap(model: SparseGraphSVD, known: pd.Index[Any], wanted: pd.Index[Any], at: Array) -> None:
    used = np.asarray(model.columns_.any(axis=0))
    if not (used & (at >= 0)).any():
        mine, theirs = (", ".join(map(shown, names[:5])) for names in (known, wanted[used]))
        raise InputError(f"no gene of the modules is in these data (modules: {theirs}; data: {mine})")
    if missing := int(np.count_nonzero(used & (at < 0))):
        n_used = np.count_nonzero(used)
        what = f"{missing:,} of {n_used:,} genes of the modules are missing: they are set to their mean in the fit"
        warnings.warn(what, stacklevel=4)


def _affine_scores(X: Matrix, scaler: Scaler, directions: Array, at: Array) -> Array:
    """Scores are affine in X, so the contribution of missing genes is the same for all rows."""
    there = np.flatnonzero(at >= 0)
    places = sp.csr_array((np.ones(there.size, dtype=X.dtype), (at[there], there)), shape=(X.shape[1], at.size))
    directions = directions.astype(X.dtype)
    missing = np.where(at < 0, scaler.offsets, 0.0)[None, :]
    added = (scaler.apply(missing) - scaler.apply(np.zeros_like(missing))) @ directions
    return np.asarray(scaler.project(X @ places, directions) + added.astype(X.dtype))


def scores_table(scores: Array, samples: Any) -> pd.DataFrame:
    """Scores with a row per sample: columns `sample`, `module_0`, `module_1`, ..."""
    table = pd.DataFrame(scores, columns=[f"module_{k}" for k in range(scores.shape[1])])
    table.insert(0, "sample", np.asarray(samples))
    return table
