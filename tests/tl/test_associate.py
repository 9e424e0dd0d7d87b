"""tl.associate: tests of modules with columns of obs."""

import numpy as np
import pandas as pd
import pytest

import netbic

anndata = pytest.importorskip("anndata")


@pytest.fixture
def adata():
    study = netbic.simulate.cohort(150, 400, n_modules=1, strength=2, random_state=3)
    data = anndata.AnnData(study.expression)
    data.obs["planted"] = pd.Categorical(np.where(study.samples[0], "yes", "no"))
    data.obs["age"] = np.random.default_rng(0).normal(50, 10, 150)
    data.obs["barcode"] = [f"b{k}" for k in range(150)]
    netbic.tl.modules(data, n_components=2, n_columns=60)
    return data


def test_the_tests_are_those_of_the_model(adata):
    netbic.tl.associate(adata)
    model = netbic.tl.from_anndata(adata)
    expected = netbic.associate(model, adata.X, adata.obs)
    found = adata.uns["netbic"]["associations"]
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.table)
    kinds = adata.uns["netbic"]["variables"].set_index("name")["type"].to_dict()
    assert kinds == {"planted": "categorical", "age": "numeric", "barcode": "left out"}


def test_results_survive_a_file(adata, tmp_path):
    netbic.tl.associate(adata, keys="planted")
    adata.write_h5ad(tmp_path / "a.h5ad")
    back = anndata.read_h5ad(tmp_path / "a.h5ad").uns["netbic"]["associations"]
    np.testing.assert_array_equal(back["p"], adata.uns["netbic"]["associations"]["p"])
    assert set(back["variable"]) == {"planted"}


def test_a_copy_leaves_the_object_alone_and_scores_are_no_variables(adata):
    netbic.tl.sample_groups(adata)
    adata.obs["module_1"] = adata.obsm["netbic_scores"][:, 0]
    other = netbic.tl.associate(adata, copy=True, adjust="age")
    assert "associations" not in adata.uns["netbic"]
    assert set(other.uns["netbic"]["associations"]["variable"]) == {"planted"}


def test_wrong_names_are_refused(adata):
    with pytest.raises(netbic.InputError, match=r"no column 'plantd'.*it has planted"):
        netbic.tl.associate(adata, keys=["plantd"])
    with pytest.raises(netbic.InputError, match="has no modules 'other'"):
        netbic.tl.associate(adata, key="other")
