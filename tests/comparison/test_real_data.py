"""Modules of tumours in another study of the same and of another tissue."""

import numpy as np
import pandas as pd
import pytest

import netbic
from support.shared_data import shared_folder

DATA = shared_folder("NETBIC_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="NETBIC_DATA does not name the folder of the real data")


def read(name):
    return pd.read_parquet(DATA / f"expr_tcga_{name}.parquet").T


def test_breast_modules_hold_in_breast_tumours_but_that_of_the_oestrogen_receptor_not_in_colorectal_ones():
    model = netbic.SparseGraphSVD(6, n_columns=200).fit(read("brca_rnaseq"))
    found = netbic.replicate(model, read("brca_agilent2012"), new_samples_only=True, random_state=0)
    assert (found.n_samples, found.n_shared) == (516 - 151, 0)
    assert (found.table["verdict"] == "replicated").sum() >= 4
    assert found.table["z"].max() > 20
    genes = np.asarray(model.names_["columns"])
    hormonal = next(k for k, members in enumerate(model.columns_) if "ESR1" in genes[members])
    immune = next(k for k, members in enumerate(model.columns_) if "CD3E" in genes[members])
    verdicts = netbic.replicate(model, read("coadread_rnaseq"), random_state=0).table["verdict"]
    assert verdicts[hormonal] == "not replicated"
    assert verdicts[immune] == "replicated"
