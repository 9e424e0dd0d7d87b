"""Modules of real expression data with a real network, if the data are available."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import netbic


@pytest.fixture(scope="module")
def breast(real_data):
    expression = pd.read_parquet(real_data / "expr_tcga_brca_agilent2012.parquet").T.astype(np.float64)
    network = pd.read_parquet(real_data / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    samples = pd.read_csv(real_data / "expr_tcga_brca_agilent2012_samples.tsv", sep="\t", index_col=0)
    return expression, network, samples.loc[expression.index]


def test_modules_of_breast_tumours(breast):
    expression, network, samples = breast
    model = netbic.SparseGraphSVD(5, n_rows=50, n_columns=200, column_graph=network, scale=True).fit(expression)
    assert model.converged_.all()
    assert (model.graph_share_ < 0.3).all()
    scores = model.transform(expression)
    positive = samples["er_status"].to_numpy() == samples["er_status"].mode()[0]
    areas = [max(area, 1 - area) for area in (roc_auc_score(positive, score) for score in scores.T)]
    assert max(areas) > 0.9  # oestrogen receptor status is the strongest contrast among breast tumours


def test_the_graph_raises_edges_inside_modules(breast):
    expression, network, _ = breast
    keywords = {"n_rows": 50, "n_columns": 200, "scale": True}
    plain = netbic.SparseGraphSVD(10, **keywords).fit(expression)
    guided = netbic.SparseGraphSVD(10, column_graph=network, **keywords).fit(expression)
    folds = [netbic.enrichment.edges(model, network)["fold_change"].median() for model in (plain, guided)]
    assert folds[1] > folds[0]
