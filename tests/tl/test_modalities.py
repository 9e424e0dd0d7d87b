"""Pairs of two modalities of MuData objects."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError, tl
from support.pair_folders import both_tables

anndata = pytest.importorskip("anndata", reason="needs anndata: pip install 'netbic[anndata]'")
mudata = pytest.importorskip("mudata", reason="needs mudata: pip install 'netbic[mudata]'")

X, Y = (table.T for table in both_tables())
N, P = X.shape
SIZES = {"rna": 6, "prot": 4}


def multimodal(X=X, Y=Y):
    return mudata.MuData({"rna": anndata.AnnData(X.copy()), "prot": anndata.AnnData(Y.copy())})


def expected(kind=netbic.SparseGraphCCA, X=X, Y=Y, **options):
    return kind(2, n_x=6, n_y=4, **options).fit(X, Y)


@pytest.mark.parametrize(("method", "kind"), [("cca", netbic.SparseGraphCCA), ("pls", netbic.SparseGraphPLS)])
def test_results_are_those_of_the_estimator(method, kind):
    mdata, model = multimodal(), expected(kind)
    assert tl.modules(mdata, mods=("rna", "prot"), n_components=2, n_features=SIZES, method=method) is None
    np.testing.assert_allclose(mdata["rna"].varm["netbic_pairs"], model.x_weights_, atol=1e-12)
    np.testing.assert_allclose(mdata["prot"].varm["netbic_pairs"], model.y_weights_, atol=1e-12)
    np.testing.assert_array_equal(mdata["prot"].varm["netbic_pairs"] != 0, model.y_support_.T)
    assert list(mdata["prot"].varm["netbic_pairs"]) == ["pair_1", "pair_2"]
    np.testing.assert_allclose(mdata["rna"].obsm["X_netbic_pairs"], model.x_scores_, atol=1e-9)
    np.testing.assert_allclose(mdata["prot"].obsm["X_netbic_pairs"], model.y_scores_, atol=1e-9)
    stored = mdata.uns["netbic_pairs"]
    assert stored["class"] == kind.__name__
    assert json.loads(stored["settings"])["n_x"] == 6
    assert list(stored["mods"]) == ["rna", "prot"]
    table = netbic.get.pairs_df(mdata)
    np.testing.assert_allclose(table["correlation"], model.correlations_, atol=1e-12)
    assert table["top_features_2"][0].startswith("l")


def test_cells_are_matched_by_name_and_all_of_them_get_scores():
    """Another order, and cells of one modality only, change nothing for the cells of both."""
    order = np.random.default_rng(1).permutation(N)
    mdata = multimodal(X.iloc[10:], Y.iloc[order])
    tl.pairs(mdata, ("rna", "prot"), n_pairs=2, n_features=SIZES)
    model = expected(X=X.iloc[10:], Y=Y.iloc[10:])
    np.testing.assert_allclose(mdata["rna"].varm["netbic_pairs"], model.x_weights_, atol=1e-12)
    scores = pd.DataFrame(mdata["prot"].obsm["X_netbic_pairs"], index=mdata["prot"].obs_names)
    np.testing.assert_allclose(scores.loc[X.index[10:]], model.y_scores_, atol=1e-9)
    others = model.transform(X.iloc[:10], Y.iloc[:10])[1]
    np.testing.assert_allclose(scores.loc[X.index[:10]], others, atol=1e-9)
    assert mdata.uns["netbic_pairs"]["n_cells"] == {"rna": N - 10, "prot": N, "both": N - 10}


def test_sparse_matrices_and_another_order_of_modalities_give_the_same():
    sparse = anndata.AnnData(sp.csr_matrix(X), obs=X[[]], var=X.T[[]])
    mdata, model = mudata.MuData({"rna": sparse, "prot": anndata.AnnData(Y)}), expected()
    tl.pairs(mdata, ("rna", "prot"), n_pairs=2, n_features=SIZES)
    np.testing.assert_allclose(mdata["rna"].varm["netbic_pairs"], model.x_weights_, atol=1e-9)
    tl.pairs(mdata, ("prot", "rna"), n_pairs=1, n_features=SIZES)  # the sides of CCA are exchanged
    for name, weights in (("rna", model.x_weights_), ("prot", model.y_weights_)):
        np.testing.assert_allclose(np.abs(mdata[name].varm["netbic_pairs"]), np.abs(weights[:, :1]), atol=1e-4)


def test_layers_masks_and_graphs_are_given_by_the_name_of_the_modality():
    mdata = multimodal()
    mdata["rna"].layers["doubled"] = 2 * mdata["rna"].X
    mdata["rna"].X[:] = 0
    mdata["rna"].var["kept"] = np.arange(P) < 20
    edges = pd.DataFrame({"a": [f"g{k}" for k in range(19)], "b": [f"g{k + 1}" for k in range(19)]})
    chosen = {"layer": {"rna": "doubled"}, "mask_var": {"rna": "kept"}, "graph": {"rna": edges}}
    tl.modules(mdata, mods=("rna", "prot"), n_modules=2, n_features=SIZES, smoothness={"rna": 0.3}, **chosen)
    model = expected(X=X.iloc[:, :20], x_graph=netbic.Graph.of(edges), x_smoothness=0.3)
    np.testing.assert_allclose(mdata["rna"].varm["netbic_pairs"][:20], model.x_weights_, atol=1e-9)
    assert not mdata["rna"].varm["netbic_pairs"][20:].to_numpy().any()
    assert mdata["rna"].varp["netbic_pairs"].nnz == 2 * len(edges)
    assert "netbic_pairs" not in mdata["prot"].varp


def test_results_survive_a_file(tmp_path):
    mdata = multimodal()
    tl.pairs(mdata, n_pairs=2, n_features=SIZES)
    mdata.write_h5mu(tmp_path / "cells.h5mu")
    again = mudata.read_h5mu(tmp_path / "cells.h5mu")
    pd.testing.assert_frame_equal(netbic.get.pairs_df(again), netbic.get.pairs_df(mdata), check_dtype=False)
    np.testing.assert_array_equal(again["rna"].varm["netbic_pairs"], mdata["rna"].varm["netbic_pairs"])
    copied = tl.modules(mdata, mods=("rna", "prot"), n_components=1, n_features=SIZES, key_added="mine", copy=True)
    assert "mine" in copied.uns
    assert "mine" in copied["prot"].varm
    assert "mine" not in mdata.uns
    assert "mine" not in mdata["rna"].varm


def test_the_model_is_restored_from_a_file_and_tests_are_stored(tmp_path):
    edges = pd.DataFrame({"a": [f"g{k}" for k in range(5)], "b": [f"g{k + 1}" for k in range(5)]})
    holes = Y.mask(np.random.default_rng(0).random(Y.shape) < 0.2)
    mdata = multimodal(Y=holes)
    chosen = {"n_features": SIZES, "graph": {"rna": edges}, "missing": "ignore"}
    tl.pairs(mdata, n_pairs=2, **chosen, n_permutations=19)
    mdata.write_h5mu(tmp_path / "cells.h5mu")
    again = mudata.read_h5mu(tmp_path / "cells.h5mu")
    model = tl.from_mudata(again)
    fitted = expected(Y=holes, missing="ignore", x_graph=netbic.Graph.of(edges))
    np.testing.assert_allclose(model.y_weights_, fitted.y_weights_, atol=1e-12)
    assert model.table_names_ == ("rna", "prot")
    assert model.graphs_["x"].n_edges == 5
    for one, other in zip(model.transform(X, holes), fitted.transform(X, holes), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    np.testing.assert_allclose(again["prot"].obsm["X_netbic_pairs"], fitted.y_scores_, atol=1e-9)
    tests = netbic.selection.pair_tests(model, X, holes, n_permutations=19, random_state=model.random_state).table
    table = netbic.get.pairs_df(again)
    assert table["p_value"][0] == 0.05
    assert len(tests) == len(table) == 2
    with pytest.raises(InputError, match="no pairs 'mine'"):
        tl.from_mudata(mdata, "mine")


def test_raw_counts_name_their_modality():
    random = np.random.default_rng(0)
    counts = random.negative_binomial(1, 1 / (1 + random.lognormal(3, 2, 300)), (N, 300)).astype(float)
    raw = pd.DataFrame(counts, index=X.index, columns=[f"g{k}" for k in range(300)])
    with pytest.warns(UserWarning, match=r"^rna: .*raw counts"):
        tl.pairs(multimodal(raw), n_pairs=1)


BAD = {
    "three modalities": ({"mods": ("rna", "prot", "atac")}, "give the names of two modalities"),
    "one twice": ({"mods": ("rna", "rna")}, "give the names of two modalities"),
    "unknown": ({"mods": ("rna", "atac")}, "there is no modality 'atac' \\(there are: 'rna', 'prot'\\)"),
    "a number for both": ({"n_features": 5}, "n_features has to name the modality: n_features={'rna': ...}"),
    "another modality": ({"graph": {"atac": None}}, "graph names 'atac', which is not in mods"),
    "too many": ({"n_features": {"prot": 99}}, "n_features={'prot': 99} but 'prot' has 20 features: choose 1 to 20"),
    "method": ({"method": "svd"}, "method"),
}


def test_unusable_parameters_are_explained():
    for options, message in BAD.values():
        with pytest.raises(InputError, match=message):
            tl.pairs(multimodal(), **{"mods": ("rna", "prot")} | options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_x': did you mean 'n_features'"):
        tl.pairs(multimodal(), n_x=5)
    with pytest.raises(InputError, match=r"n_columns=5 is for AnnData objects.*use n_features="):
        tl.modules(multimodal(), mods=("rna", "prot"), n_genes=5)
    with pytest.raises(TypeError, match="expected a MuData object, got AnnData"):
        tl.modules(multimodal()["rna"], mods=("rna", "prot"))


def test_cells_that_cannot_be_matched_are_refused():
    with pytest.raises(InputError, match=r"'rna' and 'prot' have 0 cells in common \(rna: mouse 0"):
        tl.pairs(multimodal(Y=Y.rename(index=lambda name: f"other {name}")))
    mdata = multimodal()
    names = [*X.index[:-1], X.index[0]]
    mdata["prot"].obs_names = names
    with pytest.raises(InputError, match="cell 'mouse 0' occurs twice in 'prot'"):
        tl.pairs(mdata)
    with pytest.raises(InputError, match=r"has no pairs 'netbic_pairs': run tl\.pairs"):
        netbic.get.pairs_df(multimodal())
