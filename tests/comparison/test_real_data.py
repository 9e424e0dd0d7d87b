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
    assert (judged["verdict"] == "replicated").mean() > 2 / 3
    assert judged["z"].max() > 20
    weights = pd.DataFrame(model.components_, columns=model.names_["columns"]).abs()
    hormonal, immune = weights["ESR1"].idxmax(), weights["CD3E"].idxmax()
    colorectal = netbic.replicate(model, read("coadread_rnaseq"), random_state=0).table
    assert found.table["verdict"][hormonal] == "replicated"
    assert colorectal["verdict"][hormonal] == "not replicated"
    assert colorectal["verdict"][immune] == "replicated"
