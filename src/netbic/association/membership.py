"""Membership of all genes in all modules: correlations with the scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Floats, check_largest, check_range, checked, is_sparse, kind_of
from netbic.estimators.covariates import basis_of, training_design
from netbic.estimators.inputs import has_missing
from netbic.estimators.prediction import module_scores
from netbic.estimators.studies import as_one_study
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.operators.base import as_operator
from netbic.operators.blocks import RowBlocks


def gene_membership(model: SparseGraphSVD, X: Any) -> Floats:
    """The correlation of every gene with the scores of every module.

    Genes inside and outside of the modules are compared with the scores Xv of all samples, as WGCNA compares them with
    the eigengene of a module (kME). Effects of covariates and row means that the fit removed are removed here as well.
    X is used in one product with the scores, so that a sparse matrix or a Dask array is not converted to a dense one.
    Missing entries are left out pair by pair.

    Parameters
    ----------
    model : SparseGraphSVD
    X : DataFrame, array, sparse matrix or Dask array of shape (n_samples, n_genes)
        The data of the fit, or other samples with the same genes if the model has no covariates.

    Returns
    -------
    array of shape (n_genes, n_modules)
        NaN for genes, or modules, that do not vary.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> found = netbic.association.gene_membership(model, study.expression)
    >>> found.shape, bool(abs(found[model.columns_[0]]).mean() > abs(found[~model.columns_[0]]).mean())
    ((500, 1), True)
    """
    model, X = as_one_study(fitted_model(model), X)
    data = checked(X, missing=model.missing)
    if kind_of(data) == "dask":
        data = RowBlocks(data, hold=False)
        check_largest(data.summary.largest, "X")
    else:
        data = sp.csr_array(data) if is_sparse(data) else np.asarray(data, dtype=np.float64)
        check_range(data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (has feature names|does not have valid)")  # as of a model from AnnData
        scores = module_scores(model, X)
    design = None if model.covariates_ is None else training_design(model, X)
    if isinstance(data, np.ndarray) and (has_missing(data) or np.isnan(scores).any()):
        return _of_observed(model.scaler_.apply(data, design), scores)
    # From products of the data with the scores and the covariates, and column norms.
    data = as_operator(data, low_memory=True)
    n, p = data.shape
    row_means = data.row_sums() / p if model.scaler_.rows else np.zeros(n)
    basis = np.zeros((n, 0)) if design is None else basis_of(design)
    own = scores - scores.mean(axis=0)
    own -= basis @ (basis.T @ own)
    vectors = np.hstack([own, basis])
    means = data.column_sums() / n - row_means.mean()
    # The sums of the vectors are zero up to rounding errors, which count where means are large.
    products = data.left_products(vectors).T - row_means @ vectors - np.outer(means, vectors.sum(axis=0))
    centred = data.column_squares(row_means, means)
    left = centred - (products[:, own.shape[1] :] ** 2).sum(axis=1)
    # What is left of a constant column, or of one that the covariates explain, is rounding error.
    varies = left > (100 * data.epsilon) ** 2 * (centred + n * means**2)
    norms = np.sqrt(np.where(varies, left, np.nan))
    lengths = np.linalg.norm(own, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = products[:, : own.shape[1]] / (norms[:, None] * lengths)
    return np.asarray(np.clip(np.where(lengths > 0, found, np.nan), -1, 1))


def _of_observed(values: Floats, scores: Floats) -> Floats:
    """With missing entries: correlations over the samples of which both values are known."""
    found = np.full((values.shape[1], scores.shape[1]), np.nan)
    for module, own in enumerate(scores.T):
        known = np.isfinite(own)
        part, score = values[known], own[known]
        seen = ~np.isnan(part)
        n = np.maximum(seen.sum(axis=0), 1)
        part = np.where(seen, part - np.nansum(part, axis=0) / n, 0.0)
        scores_of_seen = np.where(seen, score[:, None] - score @ seen / n, 0.0)
        norms = np.linalg.norm(part, axis=0), np.linalg.norm(scores_of_seen, axis=0)
        defined = (norms[0] > 0) & (norms[1] > 0)
        found[defined, module] = (part * scores_of_seen).sum(axis=0)[defined] / (norms[0] * norms[1])[defined]
    return np.asarray(np.clip(found, -1, 1))
