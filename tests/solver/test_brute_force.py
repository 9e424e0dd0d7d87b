"""Tiny problems, compared with all possible supports."""

import warnings
from itertools import combinations

import numpy as np

from netbic import SparseGraphSVD


def best_d(X, k_rows, k_columns):
    n, p = X.shape
    return max(
        np.linalg.norm(X[np.ix_(rows, columns)], 2)
        for rows in combinations(range(n), k_rows)
        for columns in combinations(range(p), k_columns)
    )


def test_twenty_starts_find_the_optimum():
    generator = np.random.default_rng(0)
    hits = []
    for seed in range(60):
        n, p = generator.integers(3, 8, 2)
        k_rows, k_columns = int(generator.integers(1, n + 1)), int(generator.integers(1, p + 1))
        X = generator.standard_normal((n, p))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SparseGraphSVD(
                1, n_rows=k_rows, n_columns=k_columns, center=None, n_init=20, random_state=seed, tol=1e-10
            ).fit(X)
        assert model.singular_values_[0] <= best_d(X, k_rows, k_columns) * (1 + 1e-9)
        hits.append(model.singular_values_[0] >= best_d(X, k_rows, k_columns) * (1 - 1e-9))
    assert np.mean(hits) >= 0.95
