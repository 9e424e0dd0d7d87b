"""What scanpy users expect: highly variable genes, one kind of scores, names by key, selection as functions of tl."""

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


def test_highly_variable_genes_are_used_if_they_are_known(adata, capsys, tmp_path):
    adata.var["highly_variable"] = np.arange(300) % 3 != 0
    tl.modules(adata, n_modules=2, key_added="hvg")
    printed = capsys.readouterr().out
    assert printed == "using the 200 of 300 genes in adata.var['highly_variable'] (mask_var=None uses all)\n"
    assert not adata.varm["hvg"][::3].to_numpy().any()
    assert adata.uns["hvg"]["params"]["mask_var"] == "highly_variable"
    tl.modules(adata, n_modules=2, mask_var="highly_variable", key_added="asked")
    pd.testing.assert_frame_equal(adata.varm["asked"].set_axis(adata.varm["hvg"].columns, axis=1), adata.varm["hvg"])
    tl.modules(adata, n_modules=2, mask_var=None, key_added="all")
    assert adata.varm["all"][::3].to_numpy().any()
    assert not capsys.readouterr().out
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = tl.from_anndata(anndata.read_h5ad(tmp_path / "cells.h5ad"), "hvg")
    assert list(again.names_["columns"]) == list(adata.var_names[adata.var["highly_variable"]])
    adata.var["highly_variable"] = "yes"
    with pytest.raises(InputError, match="expected 300 booleans, one per gene"):
        tl.modules(adata)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_there_is_one_matrix_of_cells_unless_cells_are_selected(adata, dtype):
    adata.X = sp.csr_matrix(adata.X.astype(dtype))
    tl.modules(adata, n_modules=2, obs_columns=True)
    assert set(adata.obsm) == {"X_netbic"}
    np.testing.assert_array_equal(adata.obsm["X_netbic"], adata.obs.to_numpy())
    model = netbic.SparseGraphSVD(2).fit(adata.X)
    again = tl.from_anndata(adata)
    assert again.left_vectors_.dtype == dtype
    np.testing.assert_allclose(again.left_vectors_, model.left_vectors_, atol=1e-5 if dtype == np.float32 else 1e-12)
    tl.modules(adata, n_modules=2, n_cells=30)
    assert set(adata.obsm) == {"X_netbic", "netbic"}
    assert (adata.obsm["netbic"] != 0).sum().tolist() == [30, 30]
    del adata.obsm["netbic"], adata.obsm["X_netbic"]
    with pytest.raises(InputError, match=r"obsm\['X_netbic'\] of the modules 'netbic' were removed"):
        tl.from_anndata(adata)


def test_results_of_other_programs_are_not_replaced(adata):
    adata.uns["pca"], adata.obsm["X_pca"] = {"variance": np.ones(2)}, np.ones((120, 2))
    with pytest.raises(InputError, match=r"adata\.uns\['pca'\] is not netbic's and would be replaced"):
        tl.modules(adata, n_modules=2, key_added="pca")
    assert (adata.obsm["X_pca"] == 1).all()


def test_tables_and_columns_are_named_by_the_key(adata):
    tl.modules(adata, n_modules=2, obs_columns=True, key_added="prog")
    names = ["prog_1", "prog_2"]
    assert adata.obs.columns.tolist() == list(adata.varm["prog"]) == names
    assert adata.uns["prog"]["modules"].index.tolist() == names
    assert get.modules_df(adata, key="prog")["label"].unique().tolist() == names
    for table in (get.scores_df(adata, key="prog"), get.membership_df(adata, key="prog")):
        assert table.columns.tolist() == names


def test_a_size_has_a_reason(adata):
    tl.modules(adata, n_modules=2, n_genes=30)
    assert adata.uns["netbic"]["modules"]["size_reason"].tolist() == ["as given"] * 2
    tl.modules(adata, n_modules=8)
    table = adata.uns["netbic"]["modules"]
    assert table["size_reason"].iloc[:2].tolist() == ["so many stand out from the others"] * 2
    noise = table[table["standing_out"] < 5]  # two modules were planted
    assert len(noise)
    assert (noise["n_genes"] == 20).all()
    assert noise["size_reason"].str.startswith("only ").all()


def test_new_cells_do_not_replace_the_scores_of_other_modules(adata):
    tl.modules(adata, n_modules=2, n_genes=30)
    new = adata[:50].copy()
    tl.score(new, adata)  # the same modules
    np.testing.assert_allclose(new.obsm["X_netbic"], adata.obsm["X_netbic"][:50])
    tl.modules(new, n_modules=1, n_genes=30)
    own = new.obsm["X_netbic"].copy()
    with pytest.raises(InputError, match="adata has other modules 'netbic', whose scores would be lost"):
        tl.score(new, adata)
    tl.score(new, adata, key_added="reference")
    np.testing.assert_array_equal(new.obsm["X_netbic"], own)
    np.testing.assert_allclose(new.obsm["X_reference"], adata.obsm["X_netbic"][:50])


def test_selection_is_that_of_the_library(adata, tmp_path):
    adata.var["chosen"] = np.arange(300) < 250
    used = adata[:, :250].to_df()
    tl.modules(adata, n_modules=2, n_genes=30, mask_var="chosen")
    tl.stability(adata, n_pairs=4)
    expected = netbic.selection.stability(tl.from_anndata(adata), used, n_pairs=4, random_state=0)
    frequency = adata.varm["netbic_stability"]
    np.testing.assert_array_equal(frequency[:250], expected.columns.frequency)
    assert not frequency[250:].to_numpy().any()
    tl.n_modules(adata, mask_var="chosen", most=3)
    counted = netbic.selection.n_modules(netbic.SparseGraphSVD(), used, most=3, random_state=0)
    tl.modules(adata, n_modules=1)  # the number is kept, the stability of earlier modules is not
    assert "netbic_stability" not in adata.varm
    adata.write_h5ad(tmp_path / "cells.h5ad")
    stored = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["netbic_n_modules"]
    assert (stored["n"], stored["verdict"]) == (counted.n, counted.verdict)
    np.testing.assert_allclose(stored["table"]["statistic"], counted.table["statistic"])


def test_each_donor_is_left_out_in_turn():
    simulated = netbic.simulate.studies((40, 50, 60), 200, lives=((0, 1, 2), (1,)), random_state=0)
    adata = anndata.AnnData(simulated.X)
    adata.obs["donor"] = simulated.studies
    tl.modules(adata, n_modules=2, n_genes=40, scale=True)
    with pytest.raises(InputError, match=r'found in all cells as one study: .* such as study_key="donor"'):
        tl.leave_one_study_out(adata)
    tl.modules(adata, n_modules=2, n_genes=40, scale=True, study_key="donor")
    tl.leave_one_study_out(adata, n_draws=100)
    expected = netbic.leave_one_study_out(tl.from_anndata(adata), simulated.X, n_draws=100, random_state=0).table
    expected = expected.rename(columns={"n_features": "n_genes"})
    stored = adata.uns["netbic"]["left_out"].reset_index(drop=True)
    pd.testing.assert_frame_equal(stored.drop(columns="reason"), expected.drop(columns="reason"))
    assert (
        stored["reason"]
        .str.contains("the module found without .* genes, .* of them in this one; .* as in the other donors")
        .any()
    )
    counts = (stored["verdict"] == "replicated").groupby(stored["module"]).sum()
    said = adata.uns["netbic"]["modules"]["left_out"]
    assert [text.split(" (")[0] for text in said] == [f"replicated in {n} of 3 donors left out" for n in counts]
    assert adata.uns["netbic"]["modules"]["studies"].str.contains("of 3 donors").any()
    assert adata.uns["netbic"]["params"]["study_key"] == "donor"
    tl.verdicts(adata, groups="donor")
    about = {"groups": "donor", "judged_in": "3 donors, each left out in turn"}
    assert adata.uns["netbic"]["verdicts_params"] == about
    assert adata.uns["netbic"]["verdicts"]["reason"].str.contains("in donors left out of the search").any()
