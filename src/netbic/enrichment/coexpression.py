"""Co-expression: whether the genes of a module are correlated more strongly than random genes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from netbic.arrays import Bools, Floats, Matrix, RandomState, checked, to_dense
from netbic.enrichment.masks import Modules, in_order_of, masks_over, refuse_dask
from netbic.estimators import SparseGraphSVD, check_count, fitted_model, is_model


def coexpression(modules: Modules, X: Matrix, *, n_draws: int = 99, random_state: RandomState = None) -> pd.DataFrame:
    """Compare the mean absolute Pearson correlation within modules with that within random sets of the same size.

    Parameters
    ----------
    modules : fitted model, or list of index arrays, boolean masks or column names
    X : array or DataFrame of shape (n_samples, n_features)
        Preferably samples that were not used to find the modules.
    n_draws : int
        Random sets per module size.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    DataFrame
        `module`, `n_genes`, `mean_correlation`, `expected` (mean over random sets), `ratio`, `p_value` (at least
        1 / (n_draws + 1)). The correlation with a constant feature counts as 0.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 800, n_modules=1, random_state=0)
    >>> table = netbic.enrichment.coexpression(study.genes, study.expression, random_state=0)
    >>> float(table["p_value"].iloc[0])
    0.01
    """
    check_count("n_draws", n_draws)
    values, masks = _values_and_masks(modules, X)
    standard = _standardised(values)
    generator = np.random.default_rng(random_state)
    by_chance: dict[int, Floats] = {}
    rows = []
    for module, mask in enumerate(masks):
        size = int(mask.sum())
        own = _mean_correlation(standard[:, mask])
        if size not in by_chance:
            sets = (generator.choice(values.shape[1], size, replace=False) for _ in range(n_draws))
            by_chance[size] = np.array([_mean_correlation(standard[:, members]) for members in sets])
        expected = float(by_chance[size].mean())
        p_value = (1 + int((by_chance[size] >= own).sum())) / (1 + n_draws) if size > 1 else 1.0
        rows.append((module, size, own, expected, own / expected if expected else np.nan, p_value))
    return pd.DataFrame(rows, columns=["module", "n_genes", "mean_correlation", "expected", "ratio", "p_value"])


def _values_and_masks(modules: Modules, X: Matrix) -> tuple[Floats, Bools]:
    refuse_dask(X)
    if is_model(modules):
        modules = fitted_model(modules)
        X = in_order_of(modules.names_["columns"], X, "model's features")
    X = checked(X)
    names = X.columns.to_numpy(dtype=object) if isinstance(X, pd.DataFrame) else None
    values = to_dense(X, np.float64)
    if values.ndim != 2 or values.shape[0] < 3:
        raise ValueError(f"X has shape {values.shape}: at least three samples are needed for a correlation")
    if np.isinf(values).any() or np.isnan(values).all(axis=0).any():
        raise ValueError("X has infinite values or columns without any observed value: remove them")
    if isinstance(modules, SparseGraphSVD):
        if modules.n_features_in_ != values.shape[1]:
            raise ValueError(f"X has {values.shape[1]} features but the model has {modules.n_features_in_}")
        return values, modules.columns_
    return values, masks_over(modules, values.shape[1], names, "matrix")


def _standardised(values: Floats) -> Floats:
    """Columns of mean 0 and length 1; constant ones are 0. Missing values are replaced by the column's mean."""
    centred = np.nan_to_num(values - np.nanmean(values, axis=0))
    lengths = np.linalg.norm(centred, axis=0)
    varying = lengths > 1e-10 * np.sqrt(len(values)) * np.nanmax(np.abs(values), axis=0)  # above rounding error
    return np.asarray(np.where(varying, centred / np.where(varying, lengths, 1.0), 0.0))


def _mean_correlation(standard: Floats) -> float:
    """Mean of |r| over the pairs of columns; 0 if there is no pair."""
    size = standard.shape[1]
    if size < 2:
        return 0.0
    correlations = np.abs(standard.T @ standard)
    return float((correlations.sum() - np.trace(correlations)) / (size * (size - 1)))
