"""Breast tumours: the modules of a fit with default settings separate the known subtypes."""

import pandas as pd

import netbic
from support.commands import run_successfully


def test_modules_separate_subtypes(real_data, tmp_path):
    name = "expr_tcga_brca_agilent2012"
    files = (real_data / f"{name}.parquet", "--sample-info", real_data / f"{name}_samples.tsv")
    done = run_successfully("fit", *files, "--no-report", "--out", tmp_path / "out")
    assert "matched: 516 of 516 samples (100%)" in done.output
    assert "pam50: Basal is lower in module 1 (AUC 0.00" in done.output
    table = netbic.io.read_table(tmp_path / "out" / "associations.tsv")
    auc = table[table["test"] == "Mann-Whitney"].assign(distance=lambda rows: (rows["effect"] - 0.5).abs() + 0.5)
    best = auc.groupby("level")["distance"].max()
    expected = pd.Series({"Basal": 0.99, "ER+": 0.92, "ER-": 0.92, "Her2": 0.85, "LumA": 0.9})
    assert (best[expected.index] >= expected).all(), best
    assert auc.loc[auc["level"] == "Basal", "n"].eq(492).all()
