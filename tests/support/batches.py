"""Data with planted modules and batches, and the same data with covariates removed by plain least squares."""

import numpy as np
import pandas as pd


def cohort(seed=0, n_samples=120, n_features=90, correlation=0.0, sparse=False):
    """X with two planted modules, one of them in a batch, and the table of covariates."""
    rng = np.random.default_rng(seed)
    activity = rng.standard_normal((n_samples, 2))
    latent = correlation * activity[:, 0] + np.sqrt(1 - correlation**2) * rng.standard_normal(n_samples)
    batch = np.digitize(latent, np.quantile(latent, [0.3, 0.7]))
    X = rng.standard_normal((n_samples, n_features)) + 3.0
    X[:, :20] += activity[:, :1]
    X[:, 20:40] -= 0.8 * activity[:, 1:]
    X[:, 50:80] += np.array([0.0, 3.0, -2.0])[batch][:, None]
    if sparse:
        X = np.where(rng.random(X.shape) < 0.4, X, 0.0)
    table = pd.DataFrame(
        {"batch": pd.Categorical.from_codes(batch, ["a", "b", "c"]), "age": rng.normal(50, 9, n_samples)}
    )
    return X, table


def design_with_mean(table):
    """The design matrix by hand: the mean, indicators and numbers."""
    columns = [np.ones(len(table))]
    for name in table:
        if table[name].dtype.kind in "fiu":
            columns.append(table[name].to_numpy(dtype=float))
        else:
            columns += [(table[name] == level).to_numpy(dtype=float) for level in table[name].unique()]
    return np.column_stack(columns)


def residuals(X, table, keep_means=False):
    """X without covariates, column by column; of missing entries nothing is used."""
    design, rest = design_with_mean(table), np.full(X.shape, np.nan)
    for column in range(X.shape[1]):
        seen = ~np.isnan(X[:, column])
        found = np.linalg.lstsq(design[seen], X[seen, column], rcond=None)[0]
        rest[seen, column] = X[seen, column] - design[seen] @ found
        if keep_means:
            rest[seen, column] += X[seen, column].mean()
    return rest


def assert_equal_fits(one, other, tolerance=1e-10):
    """Supports identical, vectors, singular values and explained variance within the tolerance."""
    np.testing.assert_array_equal(one.rows_, other.rows_)
    np.testing.assert_array_equal(one.columns_, other.columns_)
    for name in ("left_vectors_", "components_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=tolerance, rtol=0)
    np.testing.assert_allclose(one.singular_values_, other.singular_values_, rtol=tolerance)
