"""Coexpression graphs agree with brute force, whatever the blocks, the order of samples and the units of genes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic.graph import coexpression


@pytest.fixture
def data():
    generator = np.random.default_rng(0)
    common = generator.standard_normal((30, 4))
    return common @ generator.standard_normal((4, 60)) + generator.standard_normal((30, 60))


def brute_force(X, k, positive):
    correlations = np.corrcoef(X, rowvar=False)
    scores = correlations if positive else np.abs(correlations)
    edges = set()
    for gene, row in enumerate(scores):
        others = sorted((other for other in range(len(row)) if other != gene), key=lambda other: -row[other])
        edges |= {frozenset((gene, other)) for other in others[:k] if row[other] > 0}
    return edges


def edges_of(graph):
    tails, heads, _ = graph.edges()
    return set(map(frozenset, zip(tails.tolist(), heads.tolist(), strict=True)))


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("k", [1, 5, 59])
def test_neighbours_are_those_of_the_full_correlation_matrix(data, k, positive):
    graph = coexpression(data, k, positive)
    assert edges_of(graph) == brute_force(data, k, positive)
    assert set(graph.weights.data) == {1.0}
    assert graph.names is None


def test_blocks_sparse_input_order_of_samples_and_units_do_not_matter(data, monkeypatch):
    expected = edges_of(coexpression(data))
    counts = np.where(np.abs(data) > 1, data, 0.0)
    sparse = edges_of(coexpression(counts))
    units = np.random.default_rng(1).uniform(0.01, 100, 60)
    order = np.random.default_rng(2).permutation(30)
    assert edges_of(coexpression(data[order] * units + 7)) == expected
    monkeypatch.setattr("netbic.graph._BLOCK_ENTRIES", 7 * 60)
    assert edges_of(coexpression(data)) == expected
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        assert edges_of(coexpression(kind(counts))) == sparse


def test_the_location_of_genes_does_not_matter(data):
    exact = np.round(data * 1024) / 1024  # so that nothing is lost when the shift is added
    expected = edges_of(coexpression(exact))
    for kind in (np.asarray, sp.csr_array):
        shifted = kind(exact + 1e8 * np.arange(60))
        before = shifted.copy()
        assert edges_of(coexpression(shifted)) == expected
        assert abs(shifted - before).max() == 0  # the input is not changed


def test_constant_genes_have_no_neighbours(data):
    data[:, 3], data[:, 10] = 0.1, 0.0
    for X in (data, sp.csr_array(data)):
        assert coexpression(X).degrees[[3, 10]].tolist() == [0, 0]


def test_of_equal_correlations_the_first_genes_are_used(data):
    copies = np.tile(data[:, :1], 8)  # 8 identical genes: all correlations 1
    X = np.hstack([copies, data[:, 1:20]])
    expected = {frozenset((0, gene)) for gene in range(1, 8)} | {frozenset((1, gene)) for gene in range(2, 8)}
    found = {edge for edge in edges_of(coexpression(X, 2)) if max(edge) < 8}
    assert found == expected
    order = np.random.default_rng(0).permutation(30)
    assert {edge for edge in edges_of(coexpression(X[order] * 3 - 1, 2)) if max(edge) < 8} == expected


def test_names_are_those_of_the_columns(data):
    frame = pd.DataFrame(data, columns=[f"gene{i}" for i in range(60)])
    graph = coexpression(frame)
    assert graph.names.tolist() == list(frame.columns)
    model = netbic.SparseGraphSVD(1, n_columns=10, column_graph=graph).fit(frame[frame.columns[::-1]])
    assert model.graphs_["columns"].names.tolist() == list(frame.columns[::-1])


def test_unusable_data_are_refused(data):
    for bad, message in (
        (np.where(data > 2, np.nan, data), r"missing or infinite: fill them"),
        (data[:2], "2 samples: at least 3"),
        (data[:, :10], r"`k=10` but X_other has 10 features: choose 1 to 9"),
        (pd.DataFrame(data, columns=["a"] * 60), "'a' occurs more than once"),
    ):
        with pytest.raises(ValueError, match=message):
            coexpression(bad)
    dask = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="compute"):
        coexpression(dask.from_array(data, chunks=(10, 60)))


def test_data_whose_squares_overflow_are_refused():
    X = 1e155 * np.random.default_rng(0).normal(size=(30, 50))
    with pytest.raises(ValueError, match="X_other has entries up to"):
        netbic.graph.coexpression(X)
