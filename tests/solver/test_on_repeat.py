"""Deflation "on repeat": signals are not found twice, and groups that partition the samples are not lost."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import netbic
from netbic import SparseGraphSVD


def dense_factor(seed, n=80, p=600):
    """One factor that all features follow, and two weaker ones of 60 features each."""
    generator = np.random.default_rng(seed)
    factor, other, third = generator.standard_normal((3, n))
    X = np.outer(factor, generator.uniform(0.5, 1.5, p)) + 0.7 * generator.standard_normal((n, p))
    X[:, :60] += 0.9 * other[:, None]
    X[:, 60:120] += 0.8 * third[:, None]
    return X, np.array([factor, other, third])


def scores_of(model, X):
    return model.components_ @ (X - X.mean(axis=0)).T


def test_the_slices_of_one_factor_are_one_module():
    X, factors = dense_factor(0)
    found = {}
    for deflation in ("hotelling", "on_repeat"):
        model = SparseGraphSVD(3, n_columns=60, deflation=deflation).fit(X)
        found[deflation] = np.abs(np.corrcoef(scores_of(model, X), factors)[:3, 3:])
    assert (found["hotelling"][:, 0] > 0.9).all()  # the same contrast three times
    assert (found["on_repeat"][1:, 1:].max(axis=1) > 0.5).all()  # the other two factors
    model = SparseGraphSVD(3, n_columns=60).fit(X)  # the default
    assert model.regressed_out_[1].tolist() == [True, False, False]
    assert not model.regressed_out_[0].any()
    blocks = [np.bincount(np.flatnonzero(members) // 60, minlength=10).argmax() for members in model.columns_[1:]]
    assert sorted(blocks) == [0, 1]


def test_scores_that_were_regressed_out_are_explained():
    """The second module is that of the data without the scores of the first one."""
    X, _ = dense_factor(1)
    model = SparseGraphSVD(2, n_columns=60, tol=1e-10).fit(X)
    assert model.regressed_out_[1, 0]
    centred = X - X.mean(axis=0)
    u, v, d = model.left_vectors_[:, 0], model.components_[0], model.singular_values_[0]
    scores = centred @ v
    rest = centred - d * np.outer(u, v)
    rest -= np.outer(scores, scores @ rest) / (scores @ scores)
    alone = SparseGraphSVD(1, n_columns=60, center=None, tol=1e-10).fit(rest)
    np.testing.assert_array_equal(alone.columns_[0], model.columns_[1])
    np.testing.assert_allclose(np.abs(alone.components_[0]), np.abs(model.components_[1]), atol=1e-6)


@pytest.mark.parametrize("shares", [(0.25, 0.25, 0.25, 0.25), (0.4, 0.35, 0.25), (0.4, 0.3, 0.18, 0.12)])
def test_groups_that_partition_the_samples_are_found(shares):
    generator = np.random.default_rng(3)
    n, size = 200, 100
    X = generator.standard_normal((n, 2000))
    labels = np.repeat(np.arange(len(shares)), (np.array(shares) * n).round().astype(int))
    for group in range(len(shares)):
        X[np.ix_(labels == group, np.arange(group * size, (group + 1) * size))] += 2
    model = SparseGraphSVD(len(shares), n_columns=size).fit(X)
    truth = np.array([np.arange(2000) // size == group for group in range(len(shares))])
    shared = (model.columns_.astype(int) @ truth.T) / size
    assert shared[linear_sum_assignment(-shared)].min() > 0.97
    groups = netbic.selection.sample_groups(model, X)
    for module, group in zip(*linear_sum_assignment(-shared), strict=True):
        own = groups[groups["module"] == module + 1]["group"].to_numpy()
        parts = [own == name for name in ("up", "down", "")]
        assert max(np.mean(part == (labels == group)) for part in parts) > 0.97


def test_the_search_ends_although_a_signal_cannot_be_avoided():
    """Two features: after the first scores are regressed out, one direction is left."""
    generator = np.random.default_rng(4)
    X = np.outer(generator.standard_normal(30), [1.0, 1.0, 1.0]) + 0.01 * generator.standard_normal((30, 3))
    model = SparseGraphSVD(3, n_columns=1).fit(X)
    assert model.n_components_ == 3
    assert model.diagnostics_["repeats"].notna().tolist() == [False, True, True]
