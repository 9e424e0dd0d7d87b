"""Covariates are saved with a model, in folders and AnnData objects."""

import json

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import SparseGraphSVD
from netbic.errors import InputError
from support.batches import cohort

X, TABLE = cohort(4)
NAMES = [f"s{number}" for number in range(len(X))], [f"g{number}" for number in range(X.shape[1])]
FRAME = pd.DataFrame(X, index=NAMES[0], columns=NAMES[1])
NAMED = TABLE.set_axis(NAMES[0])
MODEL = SparseGraphSVD(2, n_columns=20).fit(FRAME, covariates=NAMED)


def in_folder(model, tmp_path):
    netbic.save(model, tmp_path)
    return netbic.load(tmp_path)


def in_anndata(model, _):
    return netbic.tl.from_anndata(netbic.tl.to_anndata(model, FRAME))


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:covariates with one value")
@pytest.mark.parametrize("way", [in_folder, in_anndata])
def test_a_model_comes_back_with_its_covariates(way, tmp_path):
    again = way(MODEL, tmp_path)
    pd.testing.assert_frame_equal(again.covariates_, MODEL.covariates_)
    pd.testing.assert_frame_equal(again.covariate_effects_, MODEL.covariate_effects_, check_names=False)
    assert again.covariate_coding_ == MODEL.covariate_coding_
    new = FRAME.iloc[::-1][:30]
    np.testing.assert_array_equal(again.transform(new, covariates=NAMED), MODEL.transform(new, covariates=NAMED))
    model = SparseGraphSVD(2, n_columns=20).fit(FRAME, covariates=NAMED.assign(batch="a")[["batch"]])
    again = way(model, tmp_path)  # covariates without an effect
    assert again.covariates_.shape == (120, 0)
    np.testing.assert_array_equal(again.transform(FRAME), model.transform(FRAME))


def test_damaged_covariates_are_refused(tmp_path):
    netbic.save(MODEL, tmp_path)
    path = tmp_path / "model.json"
    header = json.loads(path.read_text())
    for damage in ({}, {**header["covariates"], "kept": [7, 8, 9]}, [1]):
        path.write_text(json.dumps(header | {"covariates": damage}))
        with pytest.raises(InputError, match=str(tmp_path)):
            netbic.load(tmp_path)


def test_corrected_values_and_scores_with_missing_genes():
    design = MODEL.covariate_coding_.encode(NAMED, 120, None)
    entries = netbic.pl.base.entries(MODEL, netbic.pl.base.data_of(MODEL, FRAME), np.arange(5), np.arange(50, 60))
    corrected = X - MODEL.scaler_.offsets - design @ MODEL.scaler_.effects
    shown = corrected / corrected.std(axis=0) ** 0.5  # in pictures
    np.testing.assert_allclose(entries, shown[:5, 50:60], atol=1e-10)
    filled = X.copy()
    filled[:, :5] = MODEL.scaler_.offsets[:5] + (design @ MODEL.scaler_.effects)[:, :5]
    expected = netbic.selection.sample_groups(MODEL, pd.DataFrame(filled, *NAMES), covariates=NAMED)["score"]
    expected = expected.to_numpy().reshape(2, -1).T
    for kind in (np.asarray, sp.csr_array):
        with pytest.warns(UserWarning, match="5 of .* genes of the modules are missing"):
            scores = netbic.io.scores_by_name(MODEL, kind(X[:, 5:]), NAMES[1][5:], NAMED)
        np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_anndata_objects(tmp_path):
    adata = anndata.AnnData(FRAME, obs=NAMED)
    netbic.tl.modules(adata, n_components=2, n_columns=20, covariates=["batch", "age"])
    np.testing.assert_allclose(adata.varm["netbic"].T, MODEL.components_, atol=1e-12)
    np.testing.assert_allclose(adata.obsm["X_netbic"], netbic.get.scores_df(MODEL, FRAME), atol=1e-12)
    own = netbic.selection.sample_groups(MODEL, FRAME)["score"].to_numpy().reshape(2, -1).T
    np.testing.assert_allclose(adata.obsm["X_netbic"], own, atol=1e-9)
    adata.write_h5ad(tmp_path / "a.h5ad")
    part = anndata.read_h5ad(tmp_path / "a.h5ad")[20:70].copy()
    netbic.tl.sample_groups(part)
    np.testing.assert_allclose(part.obsm["X_netbic"], own[20:70], atol=1e-9)
    new = anndata.AnnData(FRAME[:30], obs=NAMED[:30])
    netbic.tl.score(new, adata)
    np.testing.assert_allclose(new.obsm["X_netbic"], adata.obsm["X_netbic"][:30], atol=1e-9)
    del new.obs["age"]
    with pytest.raises(InputError, match=r"^covariates='age' is not a column of obs"):
        netbic.tl.score(new, adata)
    with pytest.raises(InputError, match=r"^covariates='plate' is not a column of obs"):
        netbic.tl.modules(adata, covariates=["plate"])
    netbic.tl.modules(adata, n_components=2, n_columns=20)
    assert "netbic_covariates" not in adata.obsm
    assert netbic.tl.from_anndata(adata).covariates_ is None
