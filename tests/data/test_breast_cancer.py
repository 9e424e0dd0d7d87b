"""Breast tumours: modules of a fit with default settings separate the known subtypes, and a network adds edges."""

import re

import numpy as np
import pandas as pd

import netbic
from support.commands import run_successfully

NAME = "expr_tcga_brca_agilent2012"


def test_modules_separate_subtypes(real_data, tmp_path):
    files = (real_data / f"{NAME}.parquet", "--sample-info", real_data / f"{NAME}_samples.tsv")
    done = run_successfully("fit", *files, "--no-report", "--out", tmp_path / "out")
    assert "matched: 516 of 516 samples (100%)" in done.output
    table = netbic.io.read_table(tmp_path / "out" / "associations.tsv")
    auc = table[table["test"] == "Mann-Whitney"].assign(distance=lambda rows: (rows["effect"] - 0.5).abs() + 0.5)
    best = auc.groupby("level")["distance"].max()
    expected = pd.Series({"Basal": 0.99, "ER+": 0.92, "ER-": 0.92, "Her2": 0.85, "LumA": 0.9})
    assert (best[expected.index] >= expected).all(), best
    basal = auc[auc["level"] == "Basal"]
    assert basal["n"].eq(492).all()
    named = re.search(r"^pam50: Basal is (?:higher|lower) in module (\d+) \(AUC ", done.output, re.M)[1]
    assert int(named) == basal.loc[basal["distance"].idxmax(), "module"]


def test_the_graph_raises_edges_inside_modules(real_data):
    expression = pd.read_parquet(real_data / f"{NAME}.parquet").T.astype(np.float64)
    network = pd.read_parquet(real_data / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    keywords = {"n_rows": 50, "n_columns": 200, "scale": True}
    plain = netbic.SparseGraphSVD(10, **keywords).fit(expression)
    guided = netbic.SparseGraphSVD(10, column_graph=network, **keywords).fit(expression)
    assert guided.converged_.all()
    assert (guided.graph_share_ < 0.3).all()
    folds = [netbic.enrichment.edges(model, network)["fold_change"].median() for model in (plain, guided)]
    assert folds[1] > folds[0]
