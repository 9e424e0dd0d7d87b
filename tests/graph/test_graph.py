"""Graphs from every source, graph terms, eigenvalue bounds, alignment, rewiring."""

import copy
import pickle

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import laplacian

from netbic import Graph, SparseGraphSVD
from netbic.graph import match
from netbic.graph_terms import TERMS

A = np.array([[0, 1, 2, 0], [1, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0]], dtype=float)  # node 3 is isolated
EDGES = pd.DataFrame({"source": ["a", "a"], "target": ["b", "c"], "weight": [1.0, 2.0]})


def random_graph(size, seed, share=0.1):
    upper = np.triu(np.random.default_rng(seed).random((size, size)) < share, 1)
    return Graph((upper | upper.T).astype(float))


def networkx_graph():
    graph = nx.Graph()
    graph.add_nodes_from("abcd")
    graph.add_weighted_edges_from([("c", "a", 2.0), ("a", "b", 1.0)])
    return graph


def igraph_graph():
    graph = igraph.Graph(n=4, edges=[(0, 1), (2, 0)])
    graph.es["weight"] = [1.0, 2.0]
    graph.vs["name"] = list("abcd")
    return graph


def test_every_source_gives_the_same_graph():
    matrices = A, A.astype(int), A.tolist(), sp.csr_array(A), sp.csc_matrix(A), sp.coo_matrix(A)
    for source in (*matrices, networkx_graph(), igraph_graph()):
        graph = Graph.of(source)
        np.testing.assert_array_equal(graph.weights.toarray(), A)
        assert (graph.n_nodes, graph.n_edges) == (4, 2)
        assert graph.degrees.tolist() == [2, 1, 1, 0]


def test_edge_table():
    graph = Graph.of(EDGES)
    assert graph.names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(graph.weights.toarray(), A[:3, :3])
    plain = Graph.from_edges(EDGES[["source", "target"]].rename(columns={"source": "gene_a", "target": "gene_b"}))
    np.testing.assert_array_equal(plain.weights.toarray(), A[:3, :3] > 0)
    typed = EDGES[["source", "target"]].assign(types="in-complex-with")
    assert Graph.from_edges(typed).weights.max() == 1
    assert Graph.from_edges(pd.DataFrame({"a": ["x", 1], "b": [1, 2]})).n_edges == 2  # names of mixed kinds
    table = Graph.of(pd.DataFrame(A, index=list("abcd"), columns=list("abcd")))  # adjacency
    assert table.names.tolist() == list("abcd")
    np.testing.assert_array_equal(table.weights.toarray(), A)


def test_self_loops_and_repeated_edges_are_dropped_with_a_warning():
    table = pd.DataFrame({"a": ["x", "y", "x", "z"], "b": ["y", "x", "y", "z"], "weight": [1.0, 3.0, 2.0, 1.0]})
    with pytest.warns(UserWarning, match="dropped 1 self-loops; dropped 2 repeated edges, keeping the largest weight"):
        graph = Graph.from_edges(table)
    assert graph.n_edges == 1
    assert graph.weights.max() == 3
    loops = Graph(A + np.eye(len(A)))  # those of a matrix, such as scikit-learn's graphs of images, say nothing
    assert (loops.weights != Graph(A).weights).nnz == 0
    assert loops.notes == ("dropped 4 self-loops",)
    with pytest.warns(UserWarning, match="made 1 one-sided or unequal pairs symmetric by the larger weight"):
        upper = Graph(np.triu(A[:2, :2]))
    np.testing.assert_array_equal(upper.weights.toarray(), A[:2, :2])
    assert upper.notes == ("made 1 one-sided or unequal pairs symmetric by the larger weight",)
    small = np.diag([1e12, 0, 1e12], 1) + np.diag([1e12, 0, 1e12], -1)
    small[0, 2] = 1.0  # beside large weights
    with pytest.warns(UserWarning, match="made 1 one-sided"):
        assert Graph(sp.csr_array(small)).n_edges == 3


def test_bad_weights_and_edge_tables_are_refused():
    for weights, names, message in (
        (np.array([[0, np.nan], [np.nan, 0]]), None, "NaN or infinity"),
        (np.array([[0, np.inf], [np.inf, 0]]), None, "NaN or infinity"),
        (np.ones((2, 3)), None, r"shape \(2, 3\): a square matrix"),
        (np.ones(3), None, "a square matrix"),
        (np.array([["a", "b"], ["c", "d"]]), None, "cannot be made from"),
        (A, ["a"], "one name per node"),
        (A, ["a", "a", "b", "c"], "'a' occurs more than once"),
    ):
        with pytest.raises(ValueError, match=message):
            Graph(weights, names)
    for table, nodes, message in (
        ({"a": ["x"]}, None, "two columns"),
        ({"a": ["x", "y"], "b": ["y", None]}, None, "edge 1 has no partner"),
        ({"a": ["x"], "b": ["y"]}, ["x"], "'y' is not among the nodes"),
        ({"a": ["x", "y"], "b": ["y", "z"], "weight": [1, "strong"]}, None, "edge 1 has weight 'strong': numbers are"),
        ({"a": ["x"], "b": ["y"]}, ["x", "x", "y"], "'x' occurs more than once"),
    ):
        with pytest.raises(ValueError, match=message):
            Graph.from_edges(pd.DataFrame(table), nodes=nodes)


def test_graph_terms_equal_their_definitions():
    graph = Graph(A)
    degrees = A.sum(axis=1)
    roots = np.where(degrees > 0, np.sqrt(degrees), 1)
    np.testing.assert_array_equal(graph.term("adjacency").matrix.toarray(), A)
    np.testing.assert_allclose(graph.term("laplacian").matrix.toarray(), -laplacian(A))
    np.testing.assert_allclose(graph.term("normalized").matrix.toarray(), A / np.outer(roots, roots))
    np.testing.assert_allclose(graph.term("normalized_laplacian").matrix.toarray(), -laplacian(A, normed=True))
    tau = degrees[degrees > 0].mean()
    expected = (A - np.outer(degrees, degrees) / degrees.sum()) / np.sqrt(np.outer(degrees + tau, degrees + tau))
    np.testing.assert_allclose(graph.term("modularity").toarray(), expected, atol=1e-15)
    assert graph.term("laplacian") is graph.term("laplacian")
    with pytest.raises(ValueError, match="graph_term='bogus' is not known: choose one of 'modularity', 'adjacency'"):
        graph.term("bogus")


@pytest.mark.parametrize("name", TERMS)
def test_shift_bound_makes_every_term_positive_semidefinite(name):
    for size in (5, 60, 200):
        term = random_graph(size, size).term(name)
        values = np.linalg.eigvalsh(term.toarray())
        assert term.largest_eigenvalue >= 0
        assert values[-1] <= term.largest_eigenvalue + 1e-9
        assert values[0] + term.shift_bound >= -1e-10
        assert term.shift_bound <= 2.2 * max(-values[0], 1.0)
    assert Graph(np.zeros((3, 3))).term(name).is_empty


def _path(n):
    return sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))


def test_the_modularity_is_bounded_where_its_largest_eigenvalues_are_nearly_equal(monkeypatch):
    for weights in (
        _path(900),
        sp.kron(_path(30), sp.eye_array(30)) + sp.kron(sp.eye_array(30), _path(30)),
        sp.block_diag([_path(450), _path(450), np.ones((9, 9)) - np.eye(9)]),
    ):
        term = Graph(sp.csr_array(weights)).term("modularity")
        largest = np.linalg.eigvalsh(term.toarray())[-1]
        assert largest <= term.largest_eigenvalue + 1e-14
        assert term.largest_eigenvalue < largest + 1e-3
        assert term.scale == pytest.approx(largest, rel=3e-4)
    term, calls = Graph(_path(20_000)).term("modularity"), []
    product = type(term).product
    monkeypatch.setattr(type(term), "product", lambda self, *vector: (calls.append(1), product(self, *vector))[1])
    assert 0.5 < term.largest_eigenvalue < 0.5001  # n / (2 n - 1) bounds it
    assert len(calls) < 1_000


def test_relative_scales_and_known_eigenvalues():
    graph = random_graph(200, 1)
    assert graph.term("adjacency").scale == pytest.approx(np.linalg.eigvalsh(graph.weights.toarray())[-1], rel=1e-7)
    assert Graph(A).term("laplacian").scale == pytest.approx(2.0)
    assert graph.term("normalized").scale == graph.term("normalized_laplacian").scale == 1
    star = Graph.of(nx.star_graph(100)).term("adjacency")
    assert 10 - 1e-9 <= star.shift_bound == pytest.approx(10, rel=0.02)
    assert star.scale == pytest.approx(10)


@pytest.mark.parametrize("name", TERMS)
def test_products_are_those_of_the_matrix(name):
    """With few and with many nodes, with edge weights and without, with the same nodes again and with others."""
    generator = np.random.default_rng(0)
    weights = random_graph(100, 2).weights
    few, others, many = (np.sort(generator.choice(100, size, replace=False)) for size in (3, 3, 70))
    for factor in (1.0, 2.5):
        term = Graph(weights * factor).term(name)
        dense = term.toarray()
        for support in (few, few, others, few.copy(), many, others):
            values = generator.standard_normal(support.size)
            np.testing.assert_allclose(term.product(support, values), dense[:, support] @ values, atol=1e-12)


def test_alignment_by_name():
    graph = Graph.of(EDGES)
    aligned = graph.align(["c", "x", "a"])
    np.testing.assert_array_equal(aligned.weights.toarray(), [[0, 0, 2], [0, 0, 0], [2, 0, 0]])
    with pytest.raises(ValueError, match=r"no node name .* the graph has a, b, c, \.\.\.; the data have x, y"):
        graph.align(["x", "y"])
    with pytest.raises(ValueError, match="'a' occurs more than once"):
        graph.align(["a", "a"])
    with pytest.raises(ValueError, match="no node names"):
        Graph(A).align(["a"])


def test_integer_names_are_positions():
    graph = nx.Graph([(3, 1), (1, 0)])  # networkx keeps nodes in the order 3, 1, 0
    matched = match(graph, 5, None, "column")
    expected = np.zeros((5, 5))
    expected[[3, 1, 1, 0], [1, 3, 0, 1]] = 1
    np.testing.assert_array_equal(matched.weights.toarray(), expected)
    with pytest.raises(ValueError, match="a node 3 but X has columns 0 to 2"):
        match(graph, 3, None, "column")
    shuffled = nx.Graph([(3, 1), (1, 0), (0, 2)])
    np.testing.assert_array_equal(Graph.of(shuffled).weights.toarray()[3], [0, 1, 0, 0])
    with pytest.raises(ValueError, match="the column graph has 20 nodes but X has 30 columns"):
        match(nx.path_graph(20), 30, None, "column")

    # Entrez ids: if both sides have them, they are matched as names.
    table = pd.DataFrame({"a": [7157, 4193], "b": [4193, 4194]})
    matched = match(table, 3, np.array([4194, 7157, 4193]), "column")
    np.testing.assert_array_equal(matched.weights.toarray(), [[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="a node 7157 but X has columns 0 to 2: number nodes from 0, or give X as"):
        match(table, 3, None, "column")


def test_a_range_that_does_not_start_at_0_names_the_columns():
    data = np.random.default_rng(0).standard_normal((9, 7))
    graph = Graph.from_edges(pd.DataFrame({"source": [5], "target": [6]}))
    for columns in (pd.RangeIndex(1, 8), pd.Index(list(range(1, 8)))):
        model = SparseGraphSVD(1, n_columns=3, column_graph=graph).fit(pd.DataFrame(data, columns=columns))
        np.testing.assert_array_equal(model.names_["columns"], np.arange(1, 8))
        assert [int(end[0]) for end in model.graphs_["columns"].edges()[:2]] == [4, 5]
    assert SparseGraphSVD(1).fit(pd.DataFrame(data)).names_ == {"rows": None, "columns": None}


def test_matching_by_size():
    with pytest.raises(ValueError, match="the row graph has 4 nodes but X has 7 rows"):
        match(A, 7, None, "row")
    named = Graph(A, names=list("abcd"))
    with pytest.warns(UserWarning, match=r"node names \(a, ...\) but X has none: its node i is taken for column i"):
        assert match(named, 4, None, "column") is named
    assert match(named, 4, np.array(list("abcd"), dtype=object), "column") is named


def test_clones_share_a_graph_and_pickles_preserve_it():
    graph = Graph(A, names=list("abcd"))
    assert copy.deepcopy(graph) is graph
    again = pickle.loads(pickle.dumps(graph))
    np.testing.assert_array_equal(again.weights.toarray(), A)
    assert repr(again) == "Graph(4 nodes, 2 edges)"


def test_rewiring_keeps_degrees_and_mixes():
    graph = Graph.of(nx.barabasi_albert_graph(300, 4, seed=1))
    rewired = graph.rewire(0)
    np.testing.assert_array_equal(rewired.degrees, graph.degrees)
    assert rewired.weights.diagonal().sum() == 0
    assert rewired.weights.max() == 1
    assert (abs(rewired.weights - rewired.weights.T)).nnz == 0
    kept = graph.weights.multiply(rewired.weights).nnz / graph.weights.nnz
    # Random graphs with these degrees share the sum of the chances d_i d_j / 2m over the edges.
    d = graph.degrees
    rows, columns, _ = graph.edges()
    chance = np.mean(np.minimum(d[rows] * d[columns] / d.sum(), 1))
    assert kept == pytest.approx(chance, abs=0.04)
    np.testing.assert_array_equal(rewired.weights.toarray(), graph.rewire(0).weights.toarray())
    with pytest.raises(ValueError, match="sweeps=0: at least 1 is needed"):
        graph.rewire(0, sweeps=0)
    assert Graph(np.zeros((3, 3))).rewire(0).n_edges == 0


def test_the_graph_between_some_nodes():
    generator = np.random.default_rng(0)
    dense = np.triu(generator.random((30, 30)) * (generator.random((30, 30)) < 0.2), 1)
    dense += dense.T
    graph = Graph(dense, names=[f"n{k}" for k in range(30)])
    with pytest.raises(ValueError, match="give positions or a boolean mask"):
        graph.subgraph(["n1", "n2"])
    assert sorted(graph.rewire(1).edges()[2]) == sorted(graph.edges()[2])
    for nodes in (generator.permutation(30)[:12], np.arange(30), np.empty(0, dtype=int), [4]):
        inside = graph.subgraph(nodes)
        expected = dense[np.ix_(np.asarray(nodes), np.asarray(nodes))]
        np.testing.assert_array_equal(inside.weights.toarray(), expected)
        assert inside.weights.has_sorted_indices
        assert inside.n_edges == np.count_nonzero(expected) // 2
        assert inside.names is None or inside.names.tolist() == [f"n{k}" for k in nodes]
    mask = generator.random(30) < 0.5
    assert (graph.subgraph(mask).weights != graph.subgraph(np.flatnonzero(mask)).weights).nnz == 0


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("solver", ["auto", "aisp"])
def test_weights_of_any_scale_give_the_same_result(term, solver):
    generator = np.random.default_rng(0)
    X = generator.standard_normal((30, 90))
    X[:12, :15] += 2
    A = np.triu((generator.random((90, 90)) < 0.1) | np.pad(np.ones((15, 15), dtype=bool), (0, 75)), 1)
    parameters = {"n_rows": 10, "n_columns": 12, "graph_term": term, "solver": solver, "column_smoothness": 0.2}
    usual = SparseGraphSVD(2, column_graph=A | A.T, **parameters).fit(X)
    assert (np.abs(usual.graph_share_) > 1e-3).all()
    for scale in (1e-310, 1e-20, 1e20, 1.7e308):
        other = SparseGraphSVD(2, column_graph=(A | A.T) * scale, **parameters).fit(X)
        np.testing.assert_allclose(other.components_, usual.components_, atol=1e-9)
        np.testing.assert_allclose(other.graph_share_, usual.graph_share_, atol=1e-9)


def test_only_unusual_weights_are_rescaled():
    for scale in (1e-5, 1.0, 1000.0, 1e11):
        graph = Graph(random_graph(40, 1).weights * scale)
        for name in TERMS:
            assert graph.term(name, relative=True)._weights is graph.weights
    graph = np.full((20, 20), 1.7e308)
    np.fill_diagonal(graph, 0)
    parameters = {"graph_term": "adjacency", "smoothness_scale": "absolute", "column_smoothness": 1.0}
    with pytest.raises(ValueError, match="add up to more than numbers can hold: rescale them"):
        SparseGraphSVD(1, column_graph=graph, **parameters).fit(np.eye(20))


SIGNED = np.array([[0, 2.0, -1.0], [2.0, 0, 0], [-1.0, 0, 0]])


def test_negative_weights_must_be_asked_for():
    with pytest.raises(ValueError, match=r"contain -1: weights must be non-negative, unless .* signed=True"):
        Graph(SIGNED)
    graph = Graph(SIGNED, names=["a", "b", "c"], signed=True)
    assert (graph.n_edges, graph.n_inhibiting, graph.is_signed) == (2, 1, True)
    assert (graph.weights.toarray() == SIGNED).all()
    assert (graph.align(["c", "a"]).weights.toarray() == [[0, -1], [-1, 0]]).all()
    assert not graph.subgraph([0, 1]).is_signed
    assert (graph.unsigned().weights.toarray() == np.abs(SIGNED)).all()
    assert sorted(graph.rewire(0).weights.data.tolist()) == sorted(graph.weights.data.tolist())
    unsigned = Graph(np.abs(SIGNED), signed=True)
    assert not unsigned.is_signed
    assert unsigned.unsigned() is unsigned


def test_signed_is_true_or_false():
    for make, source in (
        (Graph, np.abs(SIGNED)),
        (Graph, sp.csr_array(SIGNED)),
        (Graph.from_edges, EDGES),
        (Graph.from_networkx, networkx_graph()),
        (Graph.from_igraph, igraph_graph()),
    ):
        with pytest.raises(TypeError, match="signed='yes': use True"):
            make(source, signed="yes")
    assert Graph(SIGNED, signed=np.bool_(True)).is_signed


def test_contradictory_signs_are_dropped_and_the_larger_weight_wins():
    weights = np.array([[0, 1.0, -3.0], [-1.0, 0, 0], [2.0, 0, 0]])
    with pytest.warns(UserWarning, match=r"made 2 .* pairs symmetric.*; dropped 1 pairs of nodes with edges of both"):
        graph = Graph(weights, signed=True)
    assert (graph.weights.toarray() == [[0, 0, -3], [0, 0, 0], [-3, 0, 0]]).all()


def test_a_column_of_signs():
    edges = pd.DataFrame({"source": list("abca"), "target": list("bcdd"), "weight": [1, 2, 3, 4]})
    edges["sign"] = ["activation", "Inhibits", "-", None]
    with pytest.warns(UserWarning, match="dropped 1 edges whose sign is not known"):
        graph = Graph.from_edges(edges)
    assert graph.edges()[2].tolist() == [1, -2, -3]
    with pytest.raises(ValueError, match=r"an edge is 'binds': 1 and -1.* replace others.* or drop the column"):
        Graph.from_edges(edges.assign(sign=["+", "-", "binds", "+"]))
    with pytest.raises(ValueError, match="a column `sign` and negative weights"):
        Graph.from_edges(edges.assign(sign="+", weight=[1, 1, 1, -1]))


def test_a_third_column_of_signs_is_not_read_as_weights():
    edges = pd.DataFrame({"gene_a": list("abc"), "gene_b": list("bcd"), "sign": [1, -1, -1]})
    expected = Graph.from_edges(edges.set_axis(["source", "target", "sign"], axis=1))
    for graph in (Graph.from_edges(edges), Graph.of(edges)):
        assert graph.edges()[2].tolist() == [1, -1, -1]
        assert (graph.weights.toarray() == expected.weights.toarray()).all()
