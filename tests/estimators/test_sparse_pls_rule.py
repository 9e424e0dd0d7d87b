"""SparseGraphPLS agrees with sparse PLS as published, and as in mixOmics' `spls`, on the nutrimouse data."""

import numpy as np
import pandas as pd
import pytest

from netbic import KeepSoft, SparseGraphPLS


@pytest.fixture(scope="module")
def nutrimouse(real_data):
    """Genes and lipids of 40 mice."""
    files = (real_data / f"small_nutrimouse_{name}.parquet" for name in ("genes", "lipids"))
    return tuple(pd.read_parquet(file).T.astype(float) for file in files)


def soft_threshold(vector, keep):
    """All but the `keep` largest magnitudes become 0, and the largest of these is subtracted from the others."""
    magnitudes = np.abs(vector)
    dropped = np.sort(magnitudes)[: vector.size - keep]
    level = dropped[-1] if dropped.size else 0.0
    return np.sign(vector) * np.maximum(magnitudes - level, 0.0)


def sparse_pls(X, Y, keep_x, keep_y, mode, n_components=2):
    """Le Cao, Rossouw, Robert-Granie and Besse (2008), with the sparsity given as keepX and keepY."""
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0, ddof=1)
    found = []
    for _ in range(n_components):
        left, _, right = np.linalg.svd(X.T @ Y)
        a, b = left[:, 0], right[0]
        for _ in range(10_000):
            before = a, b
            a = soft_threshold(X.T @ (Y @ b), keep_x)
            a /= np.linalg.norm(a)
            b = soft_threshold(Y.T @ (X @ a), keep_y)
            b /= np.linalg.norm(b)
            if max(np.linalg.norm(a - before[0]), np.linalg.norm(b - before[1])) < 1e-13:
                break
        t, u = X @ a, Y @ b
        X = X - np.outer(t, X.T @ t) / (t @ t)
        s = u if mode == "canonical" else t
        Y = Y - np.outer(s, Y.T @ s) / (s @ s)
        found.append((a, b, t, u))
    return [np.column_stack(vectors) for vectors in zip(*found, strict=True)]


@pytest.mark.parametrize("mode", ["regression", "canonical"])
@pytest.mark.parametrize(("keep_x", "keep_y"), [(10, 10), (25, 5), (50, 21), (120, 3)])
def test_two_components_of_spls(nutrimouse, mode, keep_x, keep_y):
    genes, lipids = nutrimouse
    a, b, t, _ = sparse_pls(genes.to_numpy(), lipids.to_numpy(), keep_x, keep_y, mode)
    model = SparseGraphPLS(
        2, x_penalty=KeepSoft(keep_x), y_penalty=KeepSoft(keep_y), deflation=mode, tol=1e-13, max_iter=10_000
    ).fit(genes, lipids)
    signs = np.sign(np.sum(a * model.x_weights_, axis=0))
    np.testing.assert_array_equal(model.x_support_, a.T != 0)
    np.testing.assert_array_equal(model.y_support_, b.T != 0)
    np.testing.assert_allclose(model.x_weights_, a * signs, atol=1e-9)
    np.testing.assert_allclose(model.y_weights_, b * signs, atol=1e-9)
    np.testing.assert_allclose(model.x_scores_, t * signs, atol=1e-8)
