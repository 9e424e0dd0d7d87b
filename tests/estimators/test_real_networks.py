"""Modules of real tumours with real networks: the network puts no gene on top that the data do not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from netbic import Graph, SparseGraphSVD
from netbic.estimators.results import recurrent_features


def tumours(folder, expression, network):
    X = pd.read_parquet(folder / expression).T.dropna(axis=1)
    edges = pd.read_parquet(folder / network)[["gene_a", "gene_b"]]
    known = X.columns.isin(pd.unique(edges.to_numpy().ravel())) & (X.std() > 0).to_numpy()
    X = X.loc[:, known].astype(np.float64)
    return X.to_numpy(), Graph.from_edges(edges).align(X.columns)


def effective_rank(scores):
    values = np.linalg.eigvalsh(np.corrcoef(scores)).clip(1e-12)
    values /= values.sum()
    return np.exp(-(values * np.log(values)).sum())


@pytest.mark.parametrize(
    ("expression", "network"),
    [
        ("expr_tcga_brca_rnaseq.parquet", "network_pathway_commons_v7.parquet"),
        pytest.param("expr_tcga_coadread_rnaseq.parquet", "network_biogrid_3.4.133.parquet", marks=pytest.mark.nightly),
    ],
)
def test_networks_put_no_gene_on_top_that_the_data_do_not(real_data, expression, network):
    X, graph = tumours(real_data, expression, network)
    hubs = graph.degrees >= np.sort(graph.degrees)[-graph.n_nodes // 100]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = SparseGraphSVD(10, n_columns=100).fit(X)
        model = SparseGraphSVD(10, n_columns=100, column_graph=graph).fit(X)
        before = {"graph_term": "normalized", "smoothness_scale": "relative", "deflation": "hotelling"}
        earlier = SparseGraphSVD(10, n_rows=len(X) // 10, n_columns=100, column_graph=graph, **before).fit(X)
        sequential = SparseGraphSVD(10, n_columns=100, column_graph=graph, search="sequential").fit(X)
    for found, most in ((model, 200), (sequential, 60)):  # the limits of `smoothness_scale`
        assert found.diagnostics_["worst_rank"].median() <= 30
        assert found.diagnostics_["worst_rank"].max() <= most
    assert earlier.diagnostics_["worst_rank"].max() > 300  # what the earlier defaults gave
    led, led_without = (set(recurrent_features(list(made.components_))) for made in (model, plain))
    assert led <= led_without
    shares = [np.mean([hubs[members].mean() for members in made.columns_]) for made in (model, plain)]
    assert shares[0] <= shares[1] + 0.01
    scores = model.components_ @ (X - X.mean(axis=0)).T
    assert effective_rank(scores) >= 6
    assert effective_rank(earlier.components_ @ (X - X.mean(axis=0)).T) < 5
