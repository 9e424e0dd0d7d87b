"""Words of single-cell analysis: cells and genes as parameters, columns of obs, programs and usages; netbic.get."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import get, tl
from netbic.errors import InputError


@pytest.fixture
def adata():
    study = netbic.simulate.cohort(120, 300, n_modules=2, strength=2, random_state=0)
    return anndata.AnnData(study.expression)


def test_cells_and_genes_are_other_names_of_rows_and_columns(adata):
    plain = tl.modules(adata, n_components=2, n_rows=40, n_columns=30, copy=True)
    named = tl.modules(adata, n_modules=2, n_cells=40, n_genes=30, copy=True)
    np.testing.assert_array_equal(named.varm["netbic"], plain.varm["netbic"])
    np.testing.assert_array_equal(named.obsm["netbic"], plain.obsm["netbic"])
    assert tl.modules(adata, n_genes=30, copy=True).varm["netbic"].shape == (300, 2)  # two were planted
    for first, second in (("n_components", "n_modules"), ("n_rows", "n_cells"), ("n_columns", "n_genes")):
        with pytest.raises(InputError, match=f"{first}=5 and {second}=5 are the same parameter"):
            tl.modules(adata, **{first: 5, second: 5})


def test_columns_of_obs_are_the_scores_and_belong_to_the_modules(adata, tmp_path):
    tl.modules(adata, n_modules=3, n_genes=30, obs_columns=True)
    assert adata.obs.columns.tolist() == ["module_1", "module_2", "module_3"]
    np.testing.assert_array_equal(adata.obs.to_numpy(), adata.obsm["X_netbic"])
    adata.write_h5ad(tmp_path / "modules.h5ad")
    again = anndata.read_h5ad(tmp_path / "modules.h5ad")
    tl.modules(again, n_modules=2, n_genes=30, obs_columns=True)  # its own columns are replaced
    assert again.obs.columns.tolist() == ["module_1", "module_2"]
    tl.modules(again, n_modules=1, n_genes=30, obs_columns=True, key_added="other")
    assert again.obs.columns.tolist() == ["module_1", "module_2", "other_1"]
    tl.modules(again, n_modules=1, n_genes=30)
    assert again.obs.columns.tolist() == ["other_1"]
    adata.obs = pd.DataFrame({"module_2": "mine"}, index=adata.obs_names)  # a column of the user is not replaced
    del adata.uns["netbic"]
    with pytest.raises(InputError, match="obs has a column 'module_2' already"):
        tl.modules(adata, n_modules=2, n_genes=30, obs_columns=True)
    assert adata.obs["module_2"].eq("mine").all()
    assert "netbic" not in adata.uns


@pytest.fixture
def programs():
    """Counts of three programs of 20 genes, each used by 60 of 200 cells, and a common background."""
    rng = np.random.default_rng(3)
    usage, genes = np.zeros((3, 200)), np.zeros((3, 300))
    for k in range(3):
        usage[k, 60 * k : 60 * k + 60] = rng.uniform(1, 2, 60)
        genes[k, 20 * k : 20 * k + 20] = rng.uniform(1, 2, 20)
    counts = rng.poisson(0.2 + 3 * usage.T @ genes)
    return anndata.AnnData(sp.csr_matrix(np.log1p(counts.astype(float)))), usage > 0, genes > 0


def test_programs_and_usages_are_not_negative_and_found(programs):
    adata, usage, genes = programs
    tl.modules(adata, n_modules=4, n_genes=20, preset="nonnegative", obs_columns=True)
    assert sp.issparse(adata.X)
    for part in (adata.varm["netbic"], adata.obsm["netbic"], adata.obs):
        assert (part.to_numpy() >= 0).all()
    overlap = ((adata.varm["netbic"] != 0).to_numpy().T[:, None] & genes[None]).sum(axis=2)
    found = overlap.argmax(axis=0)
    assert (overlap.max(axis=0) >= 18).all()
    for k, module in enumerate(found):
        inside, outside = (adata.obs[f"module_{module + 1}"][mask] for mask in (usage[k], ~usage[k]))
        assert inside.min() > outside.max()
    model = tl.from_anndata(adata)
    assert model.center is None
    assert model.row_penalty.nonnegative
    assert model.column_penalty == netbic.L0(20, nonnegative=True)


def test_the_preset_chooses_sizes_and_needs_data_that_are_not_centred(adata, programs):
    chosen = tl.from_anndata(tl.modules(programs[0], n_modules=2, preset="nonnegative", copy=True))
    assert chosen.column_penalty == netbic.BeyondBulk(nonnegative=True)
    assert (chosen.components_ >= 0).all()
    sizes = {"n_cells": 50, "n_genes": 20}
    cells = tl.from_anndata(tl.modules(programs[0], n_modules=2, **sizes, preset="nonnegative", copy=True))
    assert (cells.rows_.sum(axis=1) <= 50).all()
    adata.X = adata.X - adata.X.mean(axis=0)
    for data, options, message in (
        (adata, {"preset": "nonnegative"}, "the data have negative values"),
        (programs[0], {"preset": "nonnegative", "center": "columns"}, "preset='nonnegative' sets center"),
        (programs[0], {"preset": "nmf"}, "preset='nmf' is not known: choose one of 'nonnegative'"),
    ):
        with pytest.raises(InputError, match=message):
            tl.modules(data, **options)


def test_tables_of_models_objects_and_folders_agree(adata, tmp_path):
    tl.modules(adata, n_modules=2, n_genes=30)
    model = tl.from_anndata(adata)
    netbic.save(model, tmp_path)
    table = get.modules_df(adata)
    assert table.columns.tolist() == ["module", "label", "name", "weight", "side"]
    assert table["label"].tolist() == [f"module_{number}" for number in table["module"]]
    for other in (model, tmp_path, str(tmp_path)):
        pd.testing.assert_frame_equal(get.modules_df(other), table.drop(columns="label"))
    assert (table["side"] == "up").equals(table["weight"] > 0)
    summary = get.summary_df(adata)
    assert summary.columns.tolist() != get.summary_df(model).columns.tolist()  # n_genes, n_features
    pd.testing.assert_frame_equal(get.summary_df(model), get.summary_df(tmp_path))
    pd.testing.assert_frame_equal(summary.set_axis(get.summary_df(model).columns, axis=1), get.summary_df(model))
    weights = adata.varm["netbic"]["module_2"]
    own = get.modules_df(adata, 2)
    assert own["weight"].tolist() == weights[own["name"]].tolist()
    assert len(own) == 30
    pd.testing.assert_frame_equal(get.modules_df(adata, 1, axis="cells"), get.modules_df(adata, 1, axis="samples"))
    pd.testing.assert_frame_equal(get.modules_df(adata, 1, axis="genes"), get.modules_df(adata, 1))
    for wrong in (0, 3, -1, 0.5, True, "module_1"):
        with pytest.raises(InputError, match=f"module={wrong!r}: modules are numbered from 1; this model has 2"):
            get.modules_df(adata, wrong)


def test_scores_are_those_of_the_samples(adata):
    tl.modules(adata, n_modules=2, mask_var=np.arange(300) < 250, n_genes=30, obs_columns=True)
    table = get.scores_df(adata)
    np.testing.assert_allclose(table.to_numpy(), adata.obs.to_numpy())
    assert table.columns.tolist() == adata.obs.columns.tolist()
    assert table.index.equals(adata.obs_names)
    tl.sample_groups(adata)
    np.testing.assert_allclose(get.scores_df(adata).to_numpy(), table.to_numpy())
    X = adata[:, :250].to_df()
    pd.testing.assert_frame_equal(get.scores_df(tl.from_anndata(adata), X), table, check_names=False)
    with pytest.raises(InputError, match="give X"):
        get.scores_df(tl.from_anndata(adata))


def test_stored_tables_are_filtered_or_missing(adata):
    tl.modules(adata, n_modules=2, n_genes=30)
    for read, message in (
        (get.verdicts_df, "no table of verdicts"),
        (get.associations_df, "no table of associations"),
        (get.gene_sets_df, "no table of gene sets: run netbic enrich"),
    ):
        with pytest.raises(InputError, match=message):
            read(adata)
        with pytest.raises(TypeError, match="expected an AnnData object or the folder"):
            read(3)
    tl.verdicts(adata, n_pairs=3, random_state=0)
    assert get.verdicts_df(adata)["module"].tolist() == [1, 2]
    adata.obs["side"] = np.where(np.arange(120) % 2, "a", "b")
    tl.associate(adata, keys=["side"])
    assert {*get.associations_df(adata, module=2)["module"]} == {2}
    assert {*get.associations_df(adata, test="Mann-Whitney")["effect_name"]} == {"AUC"}
    for options, message in (
        ({"module": 0}, "module=0: modules are numbered from 1"),
        ({"test": "AUC"}, "test='AUC' is not known: choose one of 'Kruskal-Wallis', 'Mann-Whitney'"),
        ({"variable": "x"}, "variable='x' is not known: choose one of 'side'"),
    ):
        with pytest.raises(InputError, match=message):
            get.associations_df(adata, **options)
