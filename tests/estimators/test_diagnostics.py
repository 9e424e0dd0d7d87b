"""The diagnostics of every module, calculated from their definitions."""

import warnings

import numpy as np
import pytest

import netbic
from netbic import Graph, SparseGraphSVD
from support.problems import searched_for_one


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((50, 300))
    X += np.outer(generator.standard_normal(50), np.where(np.arange(300) < 150, 1.5, 0))
    A = np.triu(generator.random((300, 300)) < 0.05, 1)
    graph = Graph(A | A.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseGraphSVD(4, n_columns=30, column_graph=graph, deflation="hotelling", center=None).fit(X)
    return X, graph, model


def test_ranks_and_shares_are_those_of_the_residual(fitted):
    X, _, model = fitted
    residual = X.copy()
    for k, (u, v, d) in enumerate(zip(model.left_vectors_.T, model.components_, model.singular_values_, strict=True)):
        order = np.argsort(-np.abs(residual.T @ u))
        ranks = np.empty(300, dtype=int)
        ranks[order] = 1 + np.arange(300)
        assert model.diagnostics_["worst_rank"][k] == ranks[np.argsort(-np.abs(v))[:20]].max()
        assert model.diagnostics_["by_data_alone"][k] == pytest.approx(np.mean(ranks[v != 0] <= 30))
        residual -= d * np.outer(u, v)


def test_repeats_are_correlated_scores(fitted):
    X, _, model = fitted
    scores = model.components_ @ X.T
    correlations = np.abs(np.corrcoef(scores))
    table = model.diagnostics_
    assert table["correlation"][0] == 0
    for k in range(1, 4):
        assert table["correlation"][k] == pytest.approx(correlations[k, :k].max())
        expected = correlations[k, :k].argmax() + 1 if correlations[k, :k].max() >= 0.7 else None
        assert table["repeats"].astype(object).replace({np.nan: None})[k] == expected
    assert table["repeats"].notna().any()  # slices of one factor
    k = int(np.flatnonzero(table["repeats"].notna())[0])
    one, other = model.columns_[k], model.columns_[table["repeats"][k] - 1]
    assert table["feature_overlap"][k] == pytest.approx((one & other).sum() / (one | other).sum())
    assert np.isnan(table["sample_overlap"]).all()  # all samples are kept


def test_the_overlap_of_selected_samples(fitted):
    X, _, _ = fitted
    model = SparseGraphSVD(3, n_rows=20, n_columns=30).fit(X)
    overlaps = model.diagnostics_["sample_overlap"]
    shared = (model.rows_[0] & model.rows_[1]).sum() / (model.rows_[0] | model.rows_[1]).sum()
    assert np.isnan(overlaps[0])
    assert overlaps[1] == pytest.approx(shared)


def test_the_weight_of_the_graph(fitted):
    X, graph, _ = fitted
    sigma = 0.4
    keywords = {"n_columns": 30, "column_graph": graph, "column_smoothness": sigma, "smoothness_scale": "absolute"}
    largest = np.linalg.eigvalsh(graph.term("modularity").toarray())[-1]
    for search, searched in (("sequential", X), ("joint", searched_for_one(X))):
        model = SparseGraphSVD(1, center=None, scale=False, search=search, tol=1e-10, **keywords).fit(X)
        weight = sigma * largest / np.linalg.norm(searched @ model.components_[0])
        assert model.diagnostics_["graph_weight"][0] == pytest.approx(weight, rel=1e-6)
    assert SparseGraphSVD(1, n_columns=30).fit(X).diagnostics_["graph_weight"][0] == 0


def test_features_that_lead_half_of_the_modules_are_reported():
    generator = np.random.default_rng(1)
    X = generator.standard_normal((60, 200))
    X[:, 7] *= 20
    graph = Graph(np.ones((200, 200)) - np.eye(200))
    keywords = {"n_rows": 10, "n_columns": 25, "column_graph": graph, "column_smoothness": 0.1}
    with pytest.warns(UserWarning, match=r"7, .*are among the ten leading features of half of the modules or more"):
        model = SparseGraphSVD(4, **keywords).fit(X)
    assert (model.diagnostics_["recurrent"] >= 1).any()
    with warnings.catch_warnings(action="error"):  # in a dense fit every feature may lead every module
        dense = SparseGraphSVD(4, column_penalty=netbic.Dense(), column_graph=graph, column_smoothness=0.01).fit(X)
    assert dense.diagnostics_["recurrent"].any()


@pytest.mark.parametrize("search", ["joint", "sequential"])
def test_a_gene_far_behind_in_the_data_is_reported(search):
    generator = np.random.default_rng(2)
    X = generator.standard_normal((40, 600)) + generator.standard_normal((40, 1)) * (np.arange(600) < 30)
    linked = np.isin(np.arange(600), [0, 1, 2, *range(500, 510)])  # a few that vary together, and others
    A = np.outer(linked, linked) & ~np.eye(600, dtype=bool)
    keywords = {"n_columns": 30, "column_graph": A, "graph_term": "normalized", "smoothness_scale": "relative"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseGraphSVD(1, column_smoothness=3.0, search=search, **keywords).fit(X)
    assert any("whose rank by the data alone is" in str(warning.message) for warning in caught)
    assert model.diagnostics_["worst_rank"][0] > 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SparseGraphSVD(1, n_columns=30, column_graph=A, search=search).fit(X)
    assert model.diagnostics_["worst_rank"][0] <= 60


@pytest.mark.parametrize("options", [{"n_columns": 30}, {}, {"search": "sequential"}])
def test_a_graph_that_weighs_as_much_as_the_data_is_reported(options):
    generator = np.random.default_rng(3)
    weights = np.linspace(3, 0.5, 300)
    X = np.outer(generator.standard_normal(80), weights) + generator.standard_normal((80, 300))
    A = np.kron(np.eye(10), 1 - np.eye(30))
    with pytest.warns(UserWarning, match=r"the graph (weighs as much as the data, or more|makes up more than 30%)"):
        model = SparseGraphSVD(1, column_graph=A, column_smoothness=3.0, **options).fit(X)
    assert model.diagnostics_["graph_weight"][0] >= 1
