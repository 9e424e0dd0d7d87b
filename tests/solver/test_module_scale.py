"""Smoothness in units of the module's own d: the weight, its proof, and what graphs cannot do to a module."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from netbic import Graph
from netbic.graph_terms import TERMS
from support.problems import quiet_fit

SIZE = 120


def awkward_graph(generator, weighted=False):
    """A sparse random graph with cliques, isolated pairs, stars and hubs."""
    A = np.triu(generator.random((SIZE, SIZE)) < 0.02, 1)
    nodes = generator.permutation(SIZE)
    clique, pair, star = nodes[:6], nodes[6:8], nodes[8:20]
    for alone in (clique, pair):
        A[alone] = A[:, alone] = False
        A[np.ix_(alone, alone)] = True
    A[star[0], star[1:]] = True
    A[nodes[20], generator.random(SIZE) < 0.5] = True
    W = A * (generator.uniform(0.1, 5, A.shape) if weighted else 1.0)
    W = np.maximum(W, W.T)
    np.fill_diagonal(W, 0)
    return Graph(W)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_spectrum_of_the_modularity(seed, weighted):
    generator = np.random.default_rng(seed)
    graph = awkward_graph(generator, weighted)
    term = graph.term("modularity")
    values = np.linalg.eigvalsh(term.toarray())
    assert values[0] >= -1
    assert values[-1] <= 1
    assert values[-1] <= term.largest_eigenvalue + 1e-14
    assert term.largest_eigenvalue <= max(values[-1] * (1 + 1e-6), 0) + 1e-11
    assert term.scale == pytest.approx(max(values[-1], 0.3), abs=1e-8)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["modularity", "normalized", "adjacency"]))
def test_no_set_of_genes_is_amplified_beyond_the_bound(seed, weighted, term):
    """|w_C| <= (|z_C| / |c|) / (1 - rho) for every set C of members without edges to other members."""
    generator = np.random.default_rng(seed)
    rho = float(generator.choice([0.25, 0.5, 0.75]))
    X = generator.standard_normal((40, SIZE))
    graph = awkward_graph(generator, weighted)
    keywords = {"column_graph": graph, "column_smoothness": rho, "graph_term": term, "center": None}
    keywords["search"] = "sequential"
    model = quiet_fit(X, n_components=1, n_columns=int(generator.integers(5, 40)), tol=1e-12, max_iter=5000, **keywords)
    assert model.converged_[0]
    w, z = np.abs(model.components_[0]), np.abs(model.left_vectors_[:, 0] @ X)
    M = graph.term(term).toarray()
    sigma = model.diagnostics_["graph_weight"][0] * model.singular_values_[0] / graph.term(term).largest_eigenvalue
    members = np.flatnonzero(w)
    c = z + sigma * M @ w
    norm = np.linalg.norm(c[members])
    np.testing.assert_allclose(c[members] / norm, w[members], atol=1e-6)
    assert sigma * graph.term(term).largest_eigenvalue <= rho * norm * (1 + 1e-6)
    n_sets, labels = connected_components(graph.weights[members][:, members])
    for number in range(n_sets):
        C = members[labels == number]
        assert np.linalg.norm(w[C]) <= np.linalg.norm(z[C]) / norm / (1 - rho) + 1e-6


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(["modularity", "normalized"]))
def test_the_weight_is_bounded_in_a_joint_search_with_sizes_from_the_data_too(seed, weighted, term):
    """sigma lambda_max(M) <= 0.6 (strength + sigma w'Mw), where graph_weight is sigma lambda_max(M) / strength."""
    generator = np.random.default_rng(seed)
    graph = awkward_graph(generator, weighted)
    X = generator.standard_normal((40, SIZE))
    X[:, : SIZE // 4] += generator.uniform(0.5, 2) * generator.standard_normal((40, 1))
    weights = graph.weights.toarray()
    weights[: SIZE // 4, : SIZE // 4] = 1 - np.eye(SIZE // 4)  # a module that the graph explains
    model = quiet_fit(X, n_components=2, column_graph=weights, graph_term=term)
    M = Graph(weights).term(term)
    for v, weight in zip(np.abs(model.components_), model.diagnostics_["graph_weight"], strict=True):
        norm = 1 + weight / M.largest_eigenvalue * (v @ M.toarray() @ v)  # in units of the strength
        assert weight <= 0.6 * norm * (1 + 1e-6)
    assert model.diagnostics_["graph_weight"].max() > 0.1


@pytest.mark.parametrize("term", TERMS)
def test_the_weight_is_in_units_of_the_module_without_the_graph(term):
    generator = np.random.default_rng(1)
    X = generator.standard_normal((30, SIZE))
    X[:12, :15] += 2
    graph = awkward_graph(generator)
    keywords = {"n_components": 1, "n_columns": 15, "center": None, "search": "sequential"}
    plain = quiet_fit(X, **keywords)
    for rho in (0.1, 0.4):
        model = quiet_fit(X, column_graph=graph, column_smoothness=rho, graph_term=term, **keywords)
        sigma = rho * plain.singular_values_[0] / graph.term(term).scale
        if term != "laplacian" and term != "normalized_laplacian":
            used = model.diagnostics_["graph_weight"][0] * model.singular_values_[0]
            assert 0.95 * sigma < used / graph.term(term).largest_eigenvalue <= sigma * (1 + 1e-9)
            sigma = used / graph.term(term).largest_eigenvalue
        absolute = {"smoothness_scale": "absolute", "column_smoothness": sigma}
        other = quiet_fit(X, column_graph=graph, graph_term=term, **absolute, **keywords)
        np.testing.assert_allclose(model.components_, other.components_, atol=1e-5)
    usual = quiet_fit(X, column_graph=graph, column_smoothness=0.6, graph_term=term, **keywords)
    default = quiet_fit(X, column_graph=graph, graph_term=term, **keywords)
    np.testing.assert_array_equal(default.components_, usual.components_)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["modularity", "normalized", "adjacency"]), st.sampled_from([0.5, 2.0])
)
def test_leading_genes_are_among_the_first_by_the_data_alone(seed, term, smoothness):
    """Scores of pure noise are nearly equal, so that a small bonus would change their order much."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((30, 500))
    A = np.triu(generator.random((500, 500)) < 0.008, 1)
    keywords = {"column_graph": Graph(A | A.T), "column_smoothness": smoothness, "graph_term": term}
    for size in (10, 50):
        model = quiet_fit(X, n_components=2, n_columns=size, search="sequential", **keywords)
        order = np.argsort(-np.abs(model.left_vectors_[:, 0] @ (X - X.mean(axis=0))))
        leading = np.argsort(-np.abs(model.components_[0]))[: min(size, 20)]
        assert 1 + np.flatnonzero(np.isin(order, leading)).max() == model.diagnostics_["worst_rank"][0]
        assert (model.diagnostics_["worst_rank"] <= 3 * min(size, 20)).all()
        joint = quiet_fit(X, n_components=2, n_columns=size, **keywords)
        assert (joint.diagnostics_["worst_rank"] <= max(3 * min(size, 20), 2 * size)).all()


def test_rows_and_columns_are_treated_alike():
    generator = np.random.default_rng(4)
    X = generator.standard_normal((SIZE, SIZE))
    X[:20, :20] += 2.5
    graph = awkward_graph(generator)
    keywords = {"n_components": 1, "n_rows": 20, "n_columns": 20, "center": None, "tol": 1e-10}
    rows = quiet_fit(X, row_graph=graph, **keywords)
    columns = quiet_fit(X.T, column_graph=graph, **keywords)
    np.testing.assert_array_equal(rows.rows_, columns.columns_)
    np.testing.assert_allclose(rows.diagnostics_["graph_weight"], columns.diagnostics_["graph_weight"], rtol=1e-6)
