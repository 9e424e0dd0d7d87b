"""Co-expression within modules, compared with plain numpy and with random sets."""

import numpy as np
import pytest

import netbic
from netbic.enrichment import coexpression

study = netbic.simulate.cohort(200, 800, n_modules=2, random_state=0)


def test_the_mean_absolute_correlation_is_numpys():
    members = np.array([3, 17, 200, 401])
    table = coexpression([members], study.expression, random_state=0, n_draws=9)
    correlations = np.abs(np.corrcoef(study.expression.to_numpy()[:, members], rowvar=False))
    assert table["mean_correlation"].iloc[0] == pytest.approx(correlations[np.triu_indices(4, 1)].mean())


def test_planted_modules_are_coexpressed_and_random_sets_are_not():
    generator = np.random.default_rng(1)
    random_sets = [generator.choice(800, 60, replace=False) for _ in range(20)]
    table = coexpression(study.genes, study.expression, random_state=0)
    assert (table["p_value"] == 0.01).all()
    assert (table["ratio"] > 1.5).all()
    assert (coexpression(random_sets, study.expression, random_state=0)["p_value"] <= 0.05).mean() <= 0.2


def test_held_out_samples():
    model = netbic.SparseGraphSVD(2, n_rows=20, n_columns=60).fit(study.expression.iloc[::2])
    table = coexpression(model, study.expression.iloc[1::2], random_state=0)
    assert (table["p_value"] == 0.01).all()
    turned = coexpression(model, study.expression.iloc[1::2, ::-1], random_state=0)
    np.testing.assert_allclose(turned["mean_correlation"], table["mean_correlation"])
    with pytest.raises(ValueError, match="X lacks 5 of the model's features"):
        coexpression(model, study.expression.iloc[:, 5:])


def test_small_modules_constant_genes_and_bad_input():
    X = study.expression.to_numpy().copy()
    X[:, 5] = 1.0
    table = coexpression([[], [3], [5, 6]], X, n_draws=9, random_state=0)
    assert table["mean_correlation"].tolist()[:2] == [0, 0]
    assert table["p_value"].tolist()[:2] == [1, 1]
    assert table["mean_correlation"].iloc[2] == 0
    for constant in (7.7, 0.1, 1e6 + 0.1):
        X[:, :5] = constant
        assert coexpression([range(5)], X, n_draws=9)["mean_correlation"].iloc[0] == 0
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        coexpression([[0, 1]], X)
    X = study.expression.to_numpy()
    with pytest.raises(ValueError, match="at least three samples"):
        coexpression([[0, 1]], X[:2])
    with pytest.raises(ValueError, match="X has 10 features but the model has 800"):
        coexpression(netbic.SparseGraphSVD(1).fit(X), X[:, :10])
