"""Scores of samples on the modules of a fitted model, and the variance that the modules explain in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats
from netbic.errors import InputError
from netbic.estimators.covariates import design_of_new, training_design
from netbic.estimators.diffusion import check_complete, smoother
from netbic.estimators.inputs import axis_names, has_missing
from netbic.estimators.projection import observed_scores, scores_of_observed, scoring, span
from netbic.estimators.studies import as_one_study
from netbic.operators import as_operator, compute_rows, winsorised

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


def score_directions(model: SparseGraphSVD) -> Floats:
    """The matrix of shape (n_features, n_components_) that maps centred and scaled samples to their scores.

    Diffusion is symmetric, so that smoothed directions give the scores of smoothed samples.
    """
    return _smoothed(model, scoring(model.components_.astype(np.float64)))


def _smoothed(model: SparseGraphSVD, directions: Floats) -> Floats:
    by = smoother(model.graphs_["columns"], model.diffusion_)
    return directions if by is None else np.asarray(by.columns(directions))


def module_scores(model: SparseGraphSVD, X: Any, covariates: Any = None) -> Floats:
    """Scores Xv of samples, a column per module, where X is centred, scaled and smoothed as in the fit.

    Each module is scored on its own: `transform` gives the least-squares scores on all modules together. Entries are
    clipped only if a penalty of the model asks for it and X is dense and in memory; they are clipped at the medians and
    deviations of the samples in X, which are those of the fit only for the samples of the fit. With missing entries, a
    score is the least-squares score on the observed ones, and NaN if they have less than a tenth of the weight of the
    module. The `covariates` of a model that was fitted with any are needed for other samples than those of the fit.
    """
    given, names = X, axis_names(X)[0]
    X = model._validated(X, reset=False)
    of_fit = covariates is None and model.covariates_ is not None
    model, X = as_one_study(model, X)
    if of_fit:
        design = training_design(model, X if names is None else given)
    else:
        design = design_of_new(model, covariates, X.shape[0], names)
    scores = _module_scores(model, X, design)
    if of_fit and design is not None and model.clip is None and not has_missing(X):
        _check_samples_of_fit(model, scores, design, X.dtype)
    return scores


def _module_scores(model: SparseGraphSVD, X: Any, design: Floats | None) -> Floats:
    if isinstance(X, np.ndarray) and model.clip is not None:
        X, design = winsorised(without_effects(X, model.scaler_.effects, design), model.clip), None
    components = model.components_.astype(np.float64)
    if model.diffusion_:
        check_complete(X)
    if has_missing(X):
        return scores_of_observed(model.scaler_.apply(X, design), components)
    return np.asarray(_projected(model, X, _smoothed(model, components.T), design), dtype=np.float64)


def _check_samples_of_fit(model: SparseGraphSVD, scores: Floats, design: Floats, dtype: DTypeLike) -> None:
    """Raise if scores are correlated with the covariates: in the fit they are not, so these are other samples."""
    products = np.abs(design.T @ scores)
    sizes = np.outer(np.linalg.norm(design, axis=0), np.linalg.norm(scores, axis=0))
    sizes += np.linalg.norm(model.scaler_.offsets) * np.sqrt(len(scores))
    if (products > 10 * float(np.finfo(dtype).eps) ** 0.5 * sizes).any():
        raise InputError(
            "X are not the samples of the fit, and the model was fitted with covariates: give those of X, too "
            "(`covariates`)",
            ["covariates"],
        )


def scores_of(model: SparseGraphSVD, X: Any, design: Floats | None = None) -> Array:
    """Least-squares scores of validated samples, smoothed as in the fit."""
    if model.diffusion_:
        check_complete(X)
    if model.missing != "error" and has_missing(X):
        return observed_scores(model.scaler_.apply(X, design), model.components_)
    return _projected(model, X, score_directions(model), design)


def explained_share(model: SparseGraphSVD, X: Any, design: Floats | None = None) -> float:
    """Share of the variance of validated samples that the modules reconstruct; the samples are not smoothed."""
    if model.missing != "error" and has_missing(X):
        scaled = model.scaler_.apply(X, design)
        residual = scaled - observed_scores(scaled, model.components_) @ model.components_
        total = float(np.nansum(np.square(scaled)))
        return 1 - float(np.nansum(np.square(residual))) / total if total > 0 else 0.0
    projected = _projected(model, X, span(model.components_.astype(np.float64)), design)
    total = model.scaler_.operator(as_operator(X, low_memory=True), design, fitted=False).squared_norm
    return float(np.sum(projected.astype(np.float64) ** 2)) / total if total > 0 else 0.0


def _projected(model: SparseGraphSVD, X: Any, directions: Array, design: Floats | None) -> Array:
    """Products of centred and scaled rows with some directions."""
    products = compute_rows(X, model.scaler_.project, directions.astype(X.dtype, copy=False))
    if design is None or model.scaler_.effects is None:
        return products
    return np.asarray(products - design @ model.scaler_.project_effects(directions), dtype=products.dtype)


def without_effects(X: Array, effects: Floats | None, design: Floats | None) -> Array:
    """X without the effects of covariates, in its own units; X itself if there are none."""
    if effects is None or design is None:
        return X
    return np.subtract(X, design @ effects, out=np.empty_like(X), casting="same_kind")
