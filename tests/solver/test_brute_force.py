"""Tiny problems, compared with all possible supports."""

from itertools import combinations

import numpy as np

from support.problems import quiet_fit


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
        keywords = {"n_rows": k_rows, "n_columns": k_columns, "center": None, "n_init": 20, "random_state": seed}
        found, best = quiet_fit(X, n_components=1, tol=1e-10, **keywords), best_d(X, k_rows, k_columns)
        assert found.singular_values_[0] <= best * (1 + 1e-9)
        hits.append(found.singular_values_[0] >= best * (1 - 1e-9))
    assert np.mean(hits) >= 0.95
