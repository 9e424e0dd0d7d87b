"""Modules of tumours in another study of the same and of another tissue."""

import pandas as pd
import pytest

import netbic
from support.shared_data import shared_folder

DATA = shared_folder("NETBIC_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="NETBIC_DATA does not name the folder of the real data")


def read(name):
    return pd.read_parquet(DATA / f"expr_tcga_{name}.parquet").T


def test_breast_modules_hold_in_breast_tumours_but_that_of_the_oestrogen_receptor_not_in_colorectal_ones():
    model = netbic.SparseGraphSVD(random_state=0).fit(read("brca_rnaseq"))
    found = netbic.replicate(model, read("brca_agilent2012"), new_samples_only=True, random_state=0)
    assert (found.n_samples, found.n_shared) == (516 - 151, 0)
    judged = found.table[found.table["verdict"] != "too few to tell"]
    assert judged["verdict"].isin(["strong", "weak"]).mean() > 2 / 3
    assert judged["density"].max() > 0.4
    weights = pd.DataFrame(model.components_, columns=model.names_["columns"]).abs()
    hormonal, immune = weights["ESR1"].idxmax(), weights["CD3E"].idxmax()
    colorectal = netbic.replicate(model, read("coadread_rnaseq"), random_state=0).table
    assert found.table["verdict"][hormonal] == "strong"
    assert colorectal["verdict"][hormonal] == "not replicated"
    assert colorectal["verdict"][immune] == "strong"


def test_stroma_and_immune_cells_of_gastric_tumours_hold_in_ovarian_ones_sex_and_parietal_cells_do_not():
    gastric, ovarian = (
        pd.read_parquet(DATA / f"bulk_{name}.parquet").T for name in ("gastric_gse26901", "ovarian_gse51088")
    )
    model = netbic.SparseGraphSVD(30, random_state=0).fit(gastric)
    weights = pd.DataFrame(model.components_, columns=gastric.columns).abs()
    found = netbic.replicate(model, ovarian, random_state=0)
    verdicts = {gene: found.table["verdict"][weights[gene].idxmax()] for gene in ("COL1A1", "CD79A", "ATP4A", "RPS4Y1")}
    assert verdicts == {"COL1A1": "strong", "CD79A": "strong", "ATP4A": "not replicated", "RPS4Y1": "too few to tell"}
    assert "missing values are replaced by the mean" in found.verdict
