"""tl.associate: tests of modules with columns of obs."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

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


def test_the_tests_are_those_of_the_model_and_survive_a_file(adata, tmp_path):
    netbic.tl.associate(adata)
    model = netbic.tl.from_anndata(adata)
    expected = netbic.associate(model, adata.X, adata.obs)
    found = adata.uns["netbic"]["associations"]
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.table)
    kinds = adata.uns["netbic"]["variables"].set_index("name")["type"].to_dict()
    assert kinds == {"planted": "categorical", "age": "numeric", "barcode": "left out"}
    adata.write_h5ad(tmp_path / "a.h5ad")
    back = anndata.read_h5ad(tmp_path / "a.h5ad").uns["netbic"]["associations"]
    np.testing.assert_array_equal(back["p"], found["p"])
    with pytest.warns(UserWarning, match="tests of age, made in another way .* are replaced"):
        other = netbic.tl.associate(adata, copy=True, adjust="age")
    assert set(adata.uns["netbic"]["associations"]["variable"]) == {"planted", "age"}
    assert set(other.uns["netbic"]["associations"]["variable"]) == {"planted"}


def test_columns_that_modules_wrote_are_no_variables_and_others_are(adata):
    netbic.tl.modules(adata, n_components=2, n_columns=60, key_added="prog", obs_columns=True)
    netbic.tl.sample_groups(adata, key="prog")
    adata.obs = adata.obs.join(adata.obsm["prog_groups"])
    adata.obs["module_1_batch"] = np.where(np.arange(150) % 3, "x", "y")
    netbic.tl.associate(adata, key="prog")
    own = [name for name in adata.obs if name.startswith("prog")]
    assert own == ["prog_1", "prog_2", "prog_1_group", "prog_2_group"]
    np.testing.assert_allclose(adata.obs[["prog_1", "prog_2"]], adata.obsm["X_prog"])
    assert set(adata.uns["prog"]["associations"]["variable"]) == {"planted", "age", "module_1_batch"}


def with_donors(adata):
    """Ten donors of 14 cells, and 10 cells of which the donor is not known; each donor has both conditions."""
    donor = np.repeat([f"donor {k}" for k in range(10)] + [None], [14] * 10 + [10])
    adata.obs["donor"] = pd.Categorical(donor)
    adata.obs["sex"] = np.where(np.isin(donor, [f"donor {k}" for k in range(4)]), "f", "m")
    adata.obs["condition"] = np.tile(["control", "treated"], 75)
    return adata


def test_properties_of_donors_are_warned_of_and_the_warning_is_kept(adata, tmp_path):
    with pytest.warns(UserWarning, match="sex is the same in all cells of one donor") as warned:
        netbic.tl.associate(with_donors(adata), keys="sex")
    assert warned[0].filename == __file__
    adata.write_h5ad(tmp_path / "a.h5ad")
    back = anndata.read_h5ad(tmp_path / "a.h5ad").uns["netbic"]["association_notes"]
    assert list(back) == [str(warned[0].message)]
    before = netbic.get.associations_df(adata)
    netbic.tl.associate(adata, keys="condition")  # adds its tests
    both = netbic.get.associations_df(adata)
    assert both["variable"].unique().tolist() == ["sex", "condition"]
    pd.testing.assert_frame_equal(both[both["variable"] == "sex"].drop(columns="q_all"), before.drop(columns="q_all"))
    assert (both["q_all"] >= both["p"]).all()
    assert list(adata.uns["netbic"]["association_notes"]) == list(back)
    netbic.tl.associate(adata, keys="condition", name="other")
    assert len(adata.uns["netbic"]["association_notes_other"]) == 0
    adata.write_h5ad(tmp_path / "b.h5ad")


def test_averages_of_donors_are_tested(adata):
    netbic.tl.associate(with_donors(adata), keys="sex", by="donor")
    found = netbic.get.associations_df(adata, test="Mann-Whitney")
    scores = netbic.get.scores_df(adata).groupby(adata.obs["donor"], observed=True).mean()
    assert found["n"].eq(10).all()
    for module in (1, 2):
        values = scores[f"module_{module}"]
        expected = stats.mannwhitneyu(values[:4], values[4:])
        row = found[(found["module"] == module) & (found["level"] == "f")].iloc[0]
        assert row["p"] == pytest.approx(expected.pvalue)
        assert row["effect"] == pytest.approx(expected.statistic / 24)
    netbic.tl.associate(adata, by="donor")
    assert {*netbic.get.associations_df(adata)["variable"]} == {"age", "sex"}  # numbers are averaged
    notes = adata.uns["netbic"]["association_notes"]
    assert "so are numbers that differ in a group (age)" in notes[0]
    assert notes[1].startswith("planted, condition differ among cells of the same donor, and are not tested")
    age = netbic.get.associations_df(adata, variable="age", test="Spearman")
    means = adata.obs.groupby("donor", observed=True)["age"].mean()
    assert age["effect"].iloc[0] == pytest.approx(stats.spearmanr(scores["module_1"], means).statistic)


def test_donors_with_both_conditions_are_compared_in_pairs(adata):
    netbic.tl.associate(with_donors(adata), keys="condition", by=["donor", "condition"], adjust="donor")
    found = netbic.get.associations_df(adata, test="linear model")
    assert found["n"].eq(20).all()
    scores = netbic.get.scores_df(adata).groupby([adata.obs["donor"], adata.obs["condition"]], observed=True).mean()
    for module in (0, 1):
        control, treated = (scores[f"module_{module + 1}"].xs(name, level=1) for name in ("control", "treated"))
        assert found["p"][module] == pytest.approx(stats.ttest_rel(control, treated).pvalue)


def test_columns_that_vary_within_a_donor_are_refused(adata):
    with pytest.raises(netbic.InputError, match="'condition' has several values among cells of the same donor"):
        netbic.tl.associate(with_donors(adata), keys=["condition"], by="donor")
    adata.obs["reads"] = np.random.default_rng(0).random(adata.n_obs)
    with pytest.raises(netbic.InputError, match="this makes 140 averages of 140 cells, because 'reads' is a number"):
        netbic.tl.associate(adata, "sex", by=["donor", "reads"])
    with pytest.raises(netbic.InputError, match=r"by='patient' is not a column of obs \(there are: planted, age"):
        netbic.tl.associate(adata, by="patient")
    with pytest.raises(netbic.InputError, match=r"keys='plantd' is not a column of obs \(there are: planted, age"):
        netbic.tl.associate(adata, keys=["plantd"])
    with pytest.raises(netbic.InputError, match="has no modules 'other'"):
        netbic.tl.associate(adata, key="other")


def test_modules_that_follow_a_batch_are_said(adata):
    adata.obs["batch"] = np.where(np.asarray(adata.obsm["X_netbic"])[:, 1] > 0, "one", "two")
    adata.obs["side"] = adata.obs["batch"]  # no name of a batch
    with pytest.warns(UserWarning, match=r"batch explains most of|batch: \d+ % of the genes differ") as caught:
        netbic.tl.associate(adata)
    first, second = (str(each.message) for each in caught)
    assert re.match("batch explains most of .*module 2 .6", first)
    assert second.startswith("batch: ")
    note = next(note for note in adata.uns["netbic"]["association_notes"] if "batch" in note)
    assert "`covariates=batch`" in note
    assert "`groups=batch`" in note
    adata.obs["donor"] = [f"d{k % 3}" if batch == "one" else "d9" for k, batch in enumerate(adata.obs["batch"])]
    adata.obs["sex"] = np.where(adata.obs["donor"] == "d0", "f", "m")
    with pytest.warns(UserWarning, match="explains most of") as caught:
        netbic.tl.associate(adata, "sex", by="donor", name="donors")  # batches are looked at whatever is tested
    notes = [str(each.message) for each in caught]
    assert [note.split(" explains")[0] for note in notes] == ["batch", "donor"]
    assert notes[0].endswith("; all cells of batch two come from donor d9: there, batch and donor cannot be told apart")
    del adata.obs["donor"]
    netbic.tl.associate(adata, "side", name="other")
    assert not any("explains most" in note for note in adata.uns["netbic"]["association_notes_other"])


def test_scores_on_modules_of_another_object_are_tested(adata):
    donors = adata[:40].copy()
    donors.obs["dose"] = np.arange(40) / 7
    expected = netbic.association.associate_scores(netbic.get.scores_df(donors), None, donors.obs, variables="dose")
    pseudobulk = anndata.AnnData(donors.X, obs=donors.obs, var=donors.var[[]])
    netbic.tl.score(pseudobulk, adata)
    netbic.tl.associate(pseudobulk, "dose")
    found = netbic.get.associations_df(pseudobulk)
    np.testing.assert_allclose(found["effect"], expected.table["effect"], atol=1e-6)
    netbic.tl.modules(pseudobulk, n_modules=1, n_genes=60)  # replaces the tests and the scores
    assert "associations" not in pseudobulk.uns["netbic"]


def test_tests_under_another_name_do_not_replace_earlier_ones(adata, tmp_path):
    netbic.tl.associate(adata, "age")
    netbic.tl.associate(adata, "planted", name="groups")
    assert set(netbic.get.associations_df(adata)["variable"]) == {"age"}
    assert set(netbic.get.associations_df(adata, name="groups")["variable"]) == {"planted"}
    ax = netbic.pl.associations(adata, name="groups")
    assert [label.get_text() for label in ax.get_xticklabels()] in (["planted: no"], ["planted: yes"])
    with pytest.raises(netbic.InputError, match="use letters, digits"):
        netbic.tl.associate(adata, "age", name="a b")
    adata.write_h5ad(tmp_path / "cells.h5ad")


def test_gene_sets_are_stored_with_the_modules(adata):
    sets = {str(k): adata.var_names[20 * k : 20 * k + 20] for k in range(10)}
    netbic.tl.enrich(adata, sets)
    expected = netbic.enrichment.gene_sets(netbic.tl.from_anndata(adata), sets)
    pd.testing.assert_frame_equal(netbic.get.gene_sets_df(adata), expected)
    with pytest.raises(netbic.InputError, match=r"netbic.tl.enrich\(adata, gene_sets\)"):
        netbic.enrichment.gene_sets(adata, sets)
