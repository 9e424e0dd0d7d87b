"""The pairs of a search as the fitted attributes of a model of two tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netbic.arrays import Floats
from netbic.operators import Table
from netbic.solver import Pair

if TYPE_CHECKING:
    from netbic.estimators.two_tables import PreparedTable, TwoTables


def store_pairs(model: TwoTables, pairs: list[Pair], x: PreparedTable, y: PreparedTable) -> None:
    """Set the fitted attributes that describe the pairs."""
    modules = [pair.module for pair in pairs]
    x_weights = _columns([module.u.full() for module in modules], x.operator.shape[1])
    y_weights = _columns([module.v.full() for module in modules], y.operator.shape[1])
    x_scores = _columns([pair.x_scores for pair in pairs], x.operator.shape[0])
    y_scores = _columns([pair.y_scores for pair in pairs], y.operator.shape[0])
    predictor = x_scores if model.deflation == "regression" else y_scores
    x_loadings, y_loadings = _loadings(x.table, x_scores), _loadings(y.table, predictor)
    deflated = model.deflation != "hotelling", model.deflation == "canonical"
    model.x_weights_, model.y_weights_ = x_weights, y_weights
    model.x_loadings_, model.y_loadings_ = x_loadings, y_loadings
    model.x_rotations_ = _rotations(x, x_weights, x_loadings if deflated[0] else None)
    model.y_rotations_ = _rotations(y, y_weights, y_loadings if deflated[1] else None)
    model.x_scores_ = x_scores
    if model.deflation == "regression":  # the scores of Y itself, not of what earlier pairs leave
        y_scores = _columns([y.table.matvec(module.v.support, module.v.values) for module in modules], len(y_scores))
    model.y_scores_ = y_scores
    model.x_support_, model.y_support_ = x_weights.T != 0, y_weights.T != 0
    model.singular_values_ = np.array([module.d for module in modules])
    model.correlations_ = paired_correlations(model.x_scores_, model.y_scores_)
    model.n_components_ = len(modules)
    model.objectives_ = [module.objectives for module in modules]
    model.n_iter_ = max([1, *map(len, model.objectives_)])
    model.converged_ = np.array([module.outcome == "converged" for module in modules], dtype=bool)
    model.graph_share_ = np.array([module.graph_share for module in modules])
    model.scalers_ = {"x": x.scaler, "y": y.scaler}


def _columns(vectors: list[Floats], size: int) -> Floats:
    return np.array(vectors).reshape(len(vectors), size).T


def _loadings(table: Table, scores: Floats) -> Floats:
    """Least-squares coefficients of each feature on the scores of each pair by itself: X't / t't."""
    loadings: Floats = table.left_products(scores).T / np.sum(scores**2, axis=0)
    return loadings


def _rotations(table: PreparedTable, weights: Floats, loadings: Floats | None) -> Floats:
    """R such that X R are the scores: W (P'W)^-1 if the scores of earlier pairs were projected out, else W.

    Weights of a whitened table refer to whitened features; the rotations refer to the features themselves.
    """
    rotations = weights
    if loadings is not None and weights.shape[1]:
        rotations = weights @ np.linalg.pinv(loadings.T @ weights)
    return rotations if table.whitening is None else table.whitening.coefficients(rotations)


def paired_correlations(x_scores: Floats, y_scores: Floats) -> Floats:
    """Correlations of corresponding columns; 0 where one of both is constant."""
    x, y = x_scores - x_scores.mean(axis=0), y_scores - y_scores.mean(axis=0)
    norms = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    found: Floats = np.divide(np.sum(x * y, axis=0), norms, out=np.zeros(x.shape[1]), where=norms > 0)
    return found
