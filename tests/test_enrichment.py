"""Edge enrichment by the paper's test."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact
from sklearn.exceptions import NotFittedError

import netbic
from netbic import Graph
from netbic.enrichment import edges


def graph_and_names():
    generator = np.random.default_rng(0)
    upper = np.triu(generator.random((30, 30)) < 0.2, 1)
    upper[:6, :6] = np.triu(np.ones((6, 6)), 1)
    return Graph((upper | upper.T).astype(float), names=[f"g{i}" for i in range(30)])


def test_equals_fisher_on_pairs():
    graph = graph_and_names()
    row = edges([np.arange(8)], graph).iloc[0]
    inside = graph.weights.toarray()[:8, :8].sum() / 2
    pairs, own = 30 * 29 // 2, 8 * 7 // 2
    counts = [[inside, own - inside], [graph.n_edges - inside, pairs - own - graph.n_edges + inside]]
    assert row["n_edges"] == inside
    assert row["p_value"] == pytest.approx(fisher_exact(counts, alternative="greater").pvalue)
    assert row["fold_change"] == pytest.approx((inside / own) / (graph.n_edges / pairs))
    assert row["expected"] == pytest.approx(own * graph.n_edges / pairs)


def test_modules_may_be_indices_masks_names_or_a_model():
    graph = graph_and_names()
    mask = np.arange(30) < 8
    X = np.random.default_rng(1).standard_normal((10, 30))
    model = netbic.SparseGraphSVD(2, n_rows=4, n_columns=8).fit(X)
    tables = [edges([sets], graph) for sets in (np.arange(8), mask, [f"g{i}" for i in range(8)])]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])
    with pytest.warns(UserWarning, match=r"the column graph has node names \(g0, ...\) but X has none"):
        assert edges(model, graph)["n_nodes"].tolist() == [8, 8]
    assert edges(model, Graph(np.ones((10, 10)) - np.eye(10)), axis="rows")["n_edges"].tolist() == [6, 6]


def test_a_models_graph_is_matched_by_name():
    """Whatever the order of the edge table's nodes, and with genes that it lacks."""
    graph = graph_and_names()
    frame = pd.DataFrame(np.random.default_rng(1).standard_normal((10, 31)), columns=[*graph.names, "extra"])
    frame = frame[frame.columns[np.random.default_rng(2).permutation(31)]]
    model = netbic.SparseGraphSVD(2, n_rows=4, n_columns=8).fit(frame)
    members = [frame.columns[mask].difference(["extra"]).tolist() for mask in model.columns_]
    table = edges(model, graph)
    assert table["n_edges"].tolist() == edges(members, graph)["n_edges"].tolist()
    assert table["expected"].iloc[0] == pytest.approx(28 * graph.n_edges / (31 * 30 / 2))
    with pytest.raises(NotFittedError):
        edges(netbic.SparseGraphSVD(), graph)


def test_modules_too_small_for_an_edge_and_graphs_without():
    graph = graph_and_names()
    table = edges([[], [3]], graph)
    assert table["p_value"].tolist() == [1, 1]
    assert table["fold_change"].isna().all()
    assert edges([[0, 1]], np.zeros((4, 4)))["p_value"].tolist() == [1]
    assert edges([], graph).empty


def test_bad_input():
    graph = graph_and_names()
    with pytest.raises(ValueError, match="null='magic' is not known"):
        edges([[0, 1]], graph, null="magic")
    with pytest.raises(ValueError, match="axis='genes' is not known"):
        edges([[0, 1]], graph, axis="genes")
    with pytest.raises(ValueError, match="mask has length 3 but the graph has 30 nodes"):
        edges([np.ones(3, dtype=bool)], graph)
    with pytest.raises(ValueError, match="'TP53' is not a node of the graph"):
        edges([["g1", "TP53"]], graph)
    with pytest.raises(ValueError, match="member -1 but the graph has nodes 0 to 29"):
        edges([[-1, 3]], graph)
    with pytest.raises(ValueError, match="members are of type float64"):
        edges([[0.5, 3]], graph)
    with pytest.raises(ValueError, match=r"array of shape \(3,\): give a list of modules"):
        edges(np.arange(3), graph)
    with pytest.raises(ValueError, match="member 30 but the graph has nodes 0 to 29"):
        edges([[30]], graph)
    with pytest.raises(ValueError, match="the graph has no node names"):
        edges([["a"]], np.zeros((3, 3)))
