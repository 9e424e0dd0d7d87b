"""Scores of samples on the modules of a fitted model, and the variance that the modules explain in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netbic.arrays import Array, Floats
from netbic.estimators.inputs import has_missing
from netbic.estimators.projection import observed_scores, scores_of_observed, scoring, span
from netbic.estimators.smoothing import check_complete, smoother
from netbic.operators import as_operator, winsorised
from netbic.outofcore import compute_rows

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


def score_directions(model: SparseGraphSVD) -> Floats:
    """The matrix of shape (n_features, n_components_) that maps centred and scaled samples to their scores.

    Smoothing is symmetric, so that smoothed directions give the scores of smoothed samples.
    """
    return _smoothed(model, scoring(model.components_.astype(np.float64)))


def _smoothed(model: SparseGraphSVD, directions: Floats) -> Floats:
    by = smoother(model.graphs_["columns"], model.smoothing_)
    return directions if by is None else np.asarray(by.columns(directions))


def module_scores(model: SparseGraphSVD, X: Any) -> Floats:
    """Scores Xv of samples, a column per module, where X is centred, scaled and smoothed as in the fit.

    Each module is scored on its own: `transform` gives the least-squares scores on all modules together. Entries are
    clipped only if a penalty of the model asks for it and X is dense and in memory; they are clipped at the medians and
    deviations of the samples in X, which are those of the fit only for the samples of the fit. With missing entries, a
    score is the least-squares score on the observed ones, and NaN if they have less than a tenth of the weight of the
    module.
    """
    X = model._validated(X, reset=False)
    if isinstance(X, np.ndarray) and model.clip is not None:
        X = winsorised(X, model.clip)
    components = model.components_.astype(np.float64)
    if model.smoothing_:
        check_complete(X)
    if has_missing(X):
        return scores_of_observed(model.scaler_.apply(X), components)
    return np.asarray(_projected(model, X, _smoothed(model, components.T)), dtype=np.float64)


def scores_of(model: SparseGraphSVD, X: Any) -> Array:
    """Least-squares scores of validated samples, smoothed as in the fit."""
    if model.smoothing_:
        check_complete(X)
    if model.missing != "error" and has_missing(X):
        return observed_scores(model.scaler_.apply(X), model.components_)
    return _projected(model, X, score_directions(model))


def explained_share(model: SparseGraphSVD, X: Any) -> float:
    """Share of the variance of validated samples that the modules reconstruct; the samples are not smoothed."""
    if model.missing != "error" and has_missing(X):
        scaled = model.scaler_.apply(X)
        residual = scaled - observed_scores(scaled, model.components_) @ model.components_
        total = float(np.nansum(np.square(scaled)))
        return 1 - float(np.nansum(np.square(residual))) / total if total > 0 else 0.0
    projected = _projected(model, X, span(model.components_.astype(np.float64)))
    total = model.scaler_.operator(as_operator(X, low_memory=True)).squared_norm
    return float(np.sum(projected.astype(np.float64) ** 2)) / total if total > 0 else 0.0


def _projected(model: SparseGraphSVD, X: Any, directions: Array) -> Array:
    """Products of centred and scaled rows with some directions."""
    return compute_rows(X, model.scaler_.project, directions.astype(X.dtype, copy=False))
