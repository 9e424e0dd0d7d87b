"""AnnData objects: the same modules as the estimator, preserved in .h5ad files, sparse matrices stay sparse."""

import json

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import InputError, SparseGraphSVD, tl
from support.cells import cells, counts, study, values

PARAMETERS = {"n_rows": 30, "n_columns": 60}


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_the_modules_are_the_estimators(kind):
    data = cells(kind(counts))
    assert tl.modules(data, study.network, 3, **PARAMETERS) is None
    model = SparseGraphSVD(3, column_graph=study.network.weights, **PARAMETERS).fit(sp.csr_array(counts))
    assert np.array_equal(data.varm["netbic"] != 0, model.columns_.T)
    assert np.array_equal(data.obsm["netbic"] != 0, model.rows_.T)
    np.testing.assert_allclose(data.varm["netbic"], model.components_.T, atol=1e-10)
    np.testing.assert_allclose(data.obsm["X_netbic"], netbic.get.scores_df(model, counts), atol=1e-8)
    np.testing.assert_allclose(data.uns["netbic"]["modules"]["singular_value"], model.singular_values_)
    assert (data.varp["netbic"] != study.network.weights).nnz == 0


def test_results_survive_a_file(tmp_path):
    data = cells(sp.csr_matrix(counts))
    tl.modules(data, study.network, 3, scale=True, **PARAMETERS)
    data.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    one, other = tl.from_anndata(data), tl.from_anndata(again)
    for name in ("components_", "left_vectors_", "singular_values_", "explained_variance_ratio_", "converged_"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    np.testing.assert_array_equal(netbic.get.scores_df(other, sp.csr_array(counts)), data.obsm["X_netbic"])
    assert other.get_params()["n_columns"] == 60
    assert other.column_graph.n_edges == study.network.n_edges
    refit = SparseGraphSVD(**other.get_params())
    for _ in refit.iter_fit(sp.csr_array(counts), names=(data.obs_names, data.var_names)):
        pass
    np.testing.assert_array_equal(refit.components_, one.components_)


def test_the_cells_of_the_fit_have_the_same_scores_again():
    incomplete = np.where(np.random.default_rng(0).random(values.shape) < 0.05, np.nan, values)
    for X, options in ((values, {"layer": "twice"}), (incomplete, {"missing": "ignore"})):
        data = cells(X)
        tl.modules(data, None, 2, **options, **PARAMETERS)
        before = data.obsm["X_netbic"].copy()
        assert np.isfinite(before).all()
        tl.score(data)
        np.testing.assert_allclose(data.obsm["X_netbic"], before, atol=1e-9)
        if "layer" in options:
            copied = tl.modules(data, None, 2, copy=True, **PARAMETERS)  # of X
            single, doubled = (each.uns["netbic"]["modules"]["singular_value"] for each in (copied, data))
            np.testing.assert_allclose(2 * single, doubled, rtol=1e-10)


def test_some_genes_and_graphs_by_name_or_position():
    chosen, found = np.arange(600) % 3 != 0, []
    by_name = nx.relabel_nodes(
        nx.from_scipy_sparse_array(study.network.weights), dict(enumerate(study.expression.columns))
    )
    for mask, graph in (("chosen", study.network), (chosen, study.network.weights), (chosen, by_name)):
        data = cells()
        tl.modules(data, graph, 2, mask_var=mask, key_added="part", **PARAMETERS)
        found.append(data)
    model = SparseGraphSVD(2, column_graph=study.network, **PARAMETERS).fit(study.expression.loc[:, chosen])
    for data in found:
        assert not data.varm["part"][::3].to_numpy().any()
        np.testing.assert_array_equal(data.varm["part"][chosen] != 0, model.columns_.T)
        assert list(data.varm["part"]) == ["part_1", "part_2"]
        np.testing.assert_array_equal(data.varm["part"], found[0].varm["part"])
    stored = tl.from_anndata(data, "part")
    again = tl.from_anndata(data[:, np.random.default_rng(0).permutation(600)].copy(), "part")  # in another order
    order = pd.Index(again.names_["columns"]).get_indexer(stored.names_["columns"])
    np.testing.assert_array_equal(again.components_[:, order], stored.components_)
    with pytest.raises(InputError, match="subset cells only, not genes"):
        tl.from_anndata(data[:, :300].copy(), "part")


def test_new_cells_are_scored_by_the_names_of_their_genes():
    data = cells()
    tl.modules(data, study.network, 3, **PARAMETERS)
    shuffled = np.random.default_rng(0).permutation(600)
    new = cells()[:40, shuffled].copy()
    tl.score(new, data)
    np.testing.assert_allclose(new.obsm["X_netbic"], data.obsm["X_netbic"][:40], atol=1e-10)
    tl.score(new, tl.from_anndata(data), key="model")
    np.testing.assert_allclose(new.obsm["X_model"], new.obsm["X_netbic"])
    new.var_names = ["a", *new.var_names[2:], "a"]
    with pytest.raises(InputError, match="'a' occurs more than once"):
        tl.score(new, data)


def test_usage_errors_explain_what_to_do():
    data = cells()
    for options, message in (
        ({"layer": "raw"}, "layer='raw' does not exist \\(there are: twice\\)"),
        ({"mask_var": "hvg"}, "mask_var='hvg' is not a column of var"),
        ({"mask_var": [True]}, "expected 600 booleans"),
        ({"mask_var": np.zeros(600, bool)}, "keeps 0 genes"),
        ({"graph": sp.csr_array((7, 7))}, "7 nodes without names but there are 600 genes"),
        ({"graph": nx.path_graph(["a", "b", "c"])}, "no gene of the data is in the network"),
    ):
        with pytest.raises(InputError, match=message):
            tl.modules(data, **options)
    for name, meant in (("n_samples", "n_rows"), ("column_graph", "graph"), ("n_colums", "n_columns")):
        with pytest.raises(TypeError, match=rf"tl\.modules\(\) .* {name!r}: did you mean {meant!r}\?"):
            tl.modules(data, **{name: 3})
    with pytest.raises(InputError, match=r"has no modules 'netbic' .*run tl\.modules"):
        tl.score(data)
    with pytest.raises(TypeError, match="expected an AnnData object, got ndarray"):
        tl.modules(values)
    data.X = None
    with pytest.raises(InputError, match=r"has no X: choose a layer \(there are: twice\)"):
        tl.modules(data)


def test_functions_of_matrices_refer_anndata_users_to_tl():
    calls = [
        lambda data: SparseGraphSVD().fit(data),
        lambda data: SparseGraphSVD(1).fit(values).transform(data),
        lambda data: SparseGraphSVD(1).fit(values).score(data),
        lambda data: netbic.enrichment.held_out_edges(SparseGraphSVD(1), data, study.network),
        lambda data: netbic.io.scores_by_name(SparseGraphSVD(1).fit(values), data, data.var_names),
        lambda data: netbic.selection.tune(SparseGraphSVD(), data),
        lambda data: netbic.selection.stability(SparseGraphSVD(n_columns=60), data),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"X is an AnnData object: use netbic\.tl .*adata\.to_df\(\)"):
            call(cells())


@pytest.fixture(scope="module")
def clear():
    """Two modules with groups of samples, in a layer and in some genes; the others are constant."""
    planted = netbic.simulate.cohort(200, 400, n_modules=2, module_samples=40, strength=2, random_state=3)
    data = anndata.AnnData(planted.expression * 0)
    data.layers["log"] = planted.expression.to_numpy()
    data.obs["donor"] = np.arange(200) // 2
    tl.modules(data, planted.network, 3, n_rows=200, n_columns=50, layer="log", mask_var=np.arange(400) % 10 != 0)
    used = planted.expression.loc[:, np.arange(400) % 10 != 0]
    return data, used


def test_groups_of_samples_are_those_of_selection_and_survive_a_file(clear, tmp_path):
    data, used = clear
    tl.sample_groups(data)
    data.write_h5ad(tmp_path / "data.h5ad")
    again = anndata.read_h5ad(tmp_path / "data.h5ad")
    expected = netbic.selection.SampleGroups.find(tl.from_anndata(data), used.to_numpy())
    for stored in (data, again):
        np.testing.assert_allclose(stored.obsm["X_netbic"].T.ravel(), expected.table["score"])
        groups = stored.obsm["netbic_groups"]
        assert list(groups.columns) == ["module_1_group", "module_2_group", "module_3_group"]
        assert all(list(groups[name].cat.categories) == ["down", "up"] for name in groups)
        flat = np.concatenate([groups[name].astype(object).fillna("") for name in groups])
        assert flat.tolist() == expected.table["group"].tolist()
        in_words = [text.replace("samples", "cells") for text in expected.summary["result"]]
        assert stored.uns["netbic"]["groups"]["result"].tolist() == in_words
    assert "groups" in set(expected.summary["kind"])


def test_verdicts_are_those_of_selection_and_survive_a_file(clear, tmp_path):
    data, used = clear
    copied = tl.verdicts(data, groups="donor", n_pairs=3, random_state=0, copy=True)  # cells of a donor stay together
    assert "verdicts" not in data.uns["netbic"]
    copied.write_h5ad(tmp_path / "data.h5ad")
    options = {"groups": np.arange(200) // 2, "n_pairs": 3, "random_state": 0}
    expected = netbic.selection.verdicts(
        tl.from_anndata(data), used, **options, feature_name="gene", sample_name="cell"
    )
    assert "groups of cells" in expected.verdict
    stored = anndata.read_h5ad(tmp_path / "data.h5ad").uns["netbic"]["verdicts"].reset_index(drop=True)
    pd.testing.assert_frame_equal(stored, expected.table, check_dtype=False)
    assert not stored["reason"].str.contains("sample").any()
    genes, confidence = netbic.get.modules_df(copied, 1), copied.varm["netbic_confidence"]["module_1"]
    known = genes.set_index("name")["confidence"]
    np.testing.assert_allclose(confidence.reindex(known.index), known)
    assert confidence.notna().sum() == len(genes)
    with pytest.raises(InputError, match=r"groups='patient' is not a column of obs \(there are: donor\)"):
        tl.verdicts(data, groups="patient")


def test_new_modules_remove_the_earlier_graph_groups_and_verdicts(clear):
    data = clear[0].copy()
    tl.sample_groups(data)
    tl.verdicts(data, n_pairs=3, random_state=0)
    assert json.loads(data.uns["netbic"]["alignment"])["edges_kept"] == data.varp["netbic"].nnz // 2 > 0
    tl.modules(data, None, 1, n_rows=50, n_columns=50, layer="log")
    assert "netbic_groups" not in data.obsm
    assert not {"groups", "verdicts"} & set(data.uns["netbic"])
    assert "netbic" not in data.varp
    assert "netbic_confidence" not in data.varm
    assert tl.from_anndata(data).column_graph is None


@pytest.mark.filterwarnings("ignore:the 2 most variable genes")  # one of them has nearly all of the variance
def test_warnings_are_about_genes():
    X = np.random.default_rng(1).standard_normal((60, 200))
    X[:, 7] *= 20
    adata, graph = anndata.AnnData(X), netbic.Graph(np.ones((200, 200)) - np.eye(200))
    with pytest.warns(UserWarning, match=r"leading genes of .*\(recurrent\)") as caught:
        netbic.tl.modules(adata, graph, 4, n_rows=10, n_columns=25, column_smoothness=0.1, key_added="own")
    assert {warning.filename for warning in caught} == {__file__}


def test_studies_are_a_column_of_obs(tmp_path):
    simulated = netbic.simulate.studies((40, 60, 80), 300, lives=((0, 1, 2), (1, 2)), random_state=0)
    adata = anndata.AnnData(sp.csr_matrix(simulated.X.to_numpy()))
    adata.obs_names, adata.var_names = simulated.X.index, simulated.X.columns
    adata.obs["cohort"] = pd.Categorical(simulated.studies)
    netbic.tl.modules(adata, n_modules=2, n_genes=50, scale=True, study_key="cohort", obs_columns=True)
    expected = netbic.SparseGraphSVD(2, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    scores = netbic.get.scores_df(expected, simulated.X)
    np.testing.assert_allclose(adata.obsm["X_netbic"], scores, atol=1e-8)
    adata.write_h5ad(tmp_path / "x.h5ad")
    again = netbic.tl.from_anndata(anndata.read_h5ad(tmp_path / "x.h5ad"))
    np.testing.assert_allclose(again.studies_["ratio"], expected.studies_["ratio"], rtol=1e-9)
    np.testing.assert_array_equal(again.study_labels_, simulated.studies)
    netbic.tl.score(adata, study_key="cohort")
    np.testing.assert_allclose(adata.obsm["X_netbic"], scores, atol=1e-8)
    with pytest.raises(netbic.InputError, match="study_key='batch' is not a column of obs"):
        netbic.tl.modules(adata, study_key="batch")
