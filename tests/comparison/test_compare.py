"""Modules of two fits matched to each other."""

import copy

import anndata
import numpy as np
import pandas as pd
import pytest

import netbic
from netbic.comparison.compare import Agreement


def changed(model, order, signs):
    """The same model with its modules in another order and with other signs."""
    other = copy.deepcopy(model)
    other.components_ = (model.components_ * signs[:, None])[order]
    other.left_vectors_ = (model.left_vectors_ * signs)[:, order]
    return other


def renamed(model, axis, names):
    other = copy.deepcopy(model)
    other.names_ = {**model.names_, axis: np.asarray(names, dtype=object)}
    return other


def test_a_fit_is_the_same_as_itself_in_any_order_and_with_any_signs(model):
    found = netbic.compare(model, model)
    assert found.table["status"].tolist() == ["same"] * 3
    assert found.table["module_a"].tolist() == found.table["module_b"].tolist() == [1, 2, 3]
    for name in ("similarity", "jaccard", "cosine", "score_correlation"):
        np.testing.assert_allclose(found.table[name], 1.0, atol=1e-12)
    assert found.table["sign"].tolist() == [1, 1, 1]
    assert found.verdict.startswith("Of 3 modules of a and 3 of b, 3 are the same in both")
    first = "Module 1 of a is module 1 of b: 60 of 60 features in common, correlation of scores 1.00."
    assert found.table["reason"][0] == first
    order, signs = np.array([2, 0, 1]), np.array([1.0, -1.0, -1.0])
    found = netbic.compare(model, changed(model, order, signs)).table
    assert found["module_b"].tolist() == (np.argsort(order) + 1).tolist()
    assert found["status"].tolist() == ["same"] * 3
    assert found["sign"].tolist() == signs.astype(int).tolist()
    np.testing.assert_allclose(found["similarity"], 1.0, atol=1e-12)
    assert "with up and down exchanged" in found["reason"][1]


def test_what_is_new_and_what_is_gone(model):
    fewer = changed(model, np.array([1]), np.ones(3))
    fewer.n_components_ = 1
    found = netbic.compare(model, fewer).table
    assert found["status"].tolist() == ["gone", "same", "gone"]
    assert found["module_b"].isna().tolist() == [True, False, True]
    found = netbic.compare(fewer, model).table
    assert found["status"].tolist() == ["same", "new", "new"]
    assert found["module_b"].tolist() == [2, 1, 3]
    none = changed(model, np.array([], dtype=int), np.ones(3))
    none.n_components_ = 0
    assert netbic.compare(model, none).table["status"].tolist() == ["gone"] * 3
    assert netbic.compare(none, none).table.empty
    assert "0 modules" in netbic.compare(none, none).verdict


def test_numbers_are_those_of_plain_computations(study, model):
    other = netbic.SparseGraphSVD(3, n_columns=90, n_rows=80).fit(study.expression.iloc[100:300, ::-1][:150])
    found = netbic.compare(model, other)
    for row in found.table.dropna(subset=["module_a", "module_b"]).itertuples():
        v = pd.Series(model.components_[row.module_a - 1], model.names_["columns"])
        w = pd.Series(other.components_[row.module_b - 1], other.names_["columns"])[v.index]
        inside, theirs = {*v.index[v != 0]}, {*w.index[w != 0]}
        assert row.features_in_common == len(inside & theirs)
        assert row.jaccard == pytest.approx(len(inside & theirs) / len(inside | theirs))
        assert row.cosine == pytest.approx(v @ w)
        u = pd.Series(model.left_vectors_[:, row.module_a - 1], model.names_["rows"])
        t = pd.Series(other.left_vectors_[:, row.module_b - 1], other.names_["rows"])
        both = u.index.intersection(t.index)
        assert len(both) == found.n_samples == 100
        assert row.score_correlation == pytest.approx(np.corrcoef(u[both], t[both])[0, 1])


def test_random_genes_are_not_similar(model):
    generator = np.random.default_rng(0)
    for _ in range(10):
        other = renamed(model, "columns", generator.permutation(model.names_["columns"]))
        other.names_["rows"] = None
        assert set(netbic.compare(model, other, n_draws=200).table["status"]) == {"gone", "new"}


def test_the_chance_level_holds_for_all_pairs_together():
    """In 5 % of random relabellings, at most, any pair of modules exceeds its chance level."""
    generator = np.random.default_rng(5)
    some, others = (
        (generator.random((rows, 300)) < share) * generator.uniform(0.5, 1.5, (rows, 300))
        for rows, share in ((4, 0.1), (6, 0.05))
    )
    above = reached = 0
    for _ in range(200):
        found = Agreement.between(some, others[:, generator.permutation(300)], 200, generator)
        above += bool((found.agreement > 0).any())
        reached += bool((found.p <= 0.05).any())
    assert above <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)
    assert reached <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)
    assert above > 0


def test_modules_of_other_genes_with_the_same_scores_are_similar(model):
    other = renamed(model, "columns", [f"protein {k}" for k in range(900)])
    other.components_ = np.roll(model.components_, 300, axis=1)
    other.names_["columns"] = model.names_["columns"]
    found = netbic.compare(model, other).table
    assert found["status"].tolist() == ["similar"] * 3
    assert (found["similarity"] < 0.7).all()


def test_names_that_do_not_match(model):
    other = renamed(model, "columns", [f"protein {k}" for k in range(900)])
    found = netbic.compare(model, other)  # by the samples only
    assert found.n_features == 0
    assert found.table["cosine"].isna().all()
    assert found.table["module_b"].tolist() == [1, 2, 3]
    names, first = model.names_["columns"].copy(), model.columns_[0]
    names[first] = [f"other {k}" for k in range(first.sum())]
    without_first = renamed(model, "columns", names)
    without_first.names_["rows"] = other.names_["rows"] = None
    assert netbic.compare(model, without_first).table.set_index("module_a")["status"][1] == "not comparable"
    with pytest.raises(ValueError, match="no name of the modules is in the other study"):
        netbic.compare(model, other)
    mouse = renamed(other, "columns", [str(name).capitalize() for name in model.names_["columns"]])
    with pytest.raises(ValueError, match=r"differ in capital letters, as mouse"):
        netbic.compare(model, mouse)
    unnamed = renamed(other, "rows", [])
    unnamed.names_ = {"rows": None, "columns": None}
    with pytest.raises(ValueError, match="fit both to DataFrames"):
        netbic.compare(model, unnamed)
    repeated = renamed(model, "columns", ["A"] * 900)
    with pytest.raises(ValueError, match="larger has several genes 'A': rename or drop them"):
        netbic.compare(model, repeated, labels=("first", "larger"), feature_name="gene")
    found = netbic.compare(model, renamed(model, "rows", ["A"] * 200))  # by the features only
    assert (found.n_samples, set(found.table["status"])) == (0, {"same"})


def test_samples_without_a_score_are_left_out_of_its_pairs_only(model):
    generator, known = np.random.default_rng(0), np.ones((3, 200), dtype=bool)
    known[0, :7], known[1, 150:] = False, False
    scores, others = generator.standard_normal((2, 3, 200))
    others[0] += scores[0]
    found = Agreement.between(np.where(known, scores, np.nan), others, 500, generator, centre=True)
    for i, own in enumerate(known):
        expected = [np.corrcoef(scores[i, own], other[own])[0, 1] for other in others]
        np.testing.assert_allclose(found.cosine[i], expected, atol=1e-12)
    assert found.p[0, 0] < 0.01 < found.p[1:].min()
    incomplete = copy.deepcopy(model)
    incomplete.left_vectors_[0, 1] = np.nan
    table = netbic.compare(model, incomplete).table
    np.testing.assert_allclose(table["score_correlation"], 1.0, atol=1e-12)
    few = np.full((1, 200), np.nan)
    few[0, :4] = range(4)
    assert np.isnan(Agreement.between(few, others, 10, generator, centre=True).cosine).all()


def test_arrays_without_names(study):
    X = study.expression.to_numpy()[:200]
    first, second = (netbic.SparseGraphSVD(3, n_columns=60, random_state=seed).fit(X) for seed in (0, 1))
    found = netbic.compare(first, second)
    assert found.table["status"].tolist() == ["same"] * 3
    assert found.n_samples == 0
    assert netbic.compare(first, second, same_samples=True).table["score_correlation"].min() > 0.9
    other = netbic.compare(first, netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression.to_numpy()[200:])).table
    assert other["score_correlation"].isna().all()
    assert set(other["status"]) <= {"same", "similar"}
    with pytest.raises(ValueError, match="200 and 400 samples"):
        netbic.compare(first, netbic.SparseGraphSVD(1).fit(study.expression.to_numpy()), same_samples=True)


def test_an_anndata_object_and_a_saved_model_are_the_same_as_their_model(study, model, tmp_path):
    adata = anndata.AnnData(study.expression[:200])
    netbic.tl.modules(adata, n_components=3, n_columns=60)
    assert netbic.compare(adata, netbic.tl.from_anndata(adata)).table["status"].tolist() == ["same"] * 3
    with pytest.raises(ValueError, match="no modules 'other'"):
        netbic.compare(adata, adata, key="other")
    netbic.save(model, tmp_path / "first")
    found = netbic.compare(tmp_path / "first", model)
    np.testing.assert_allclose(found.table["similarity"], 1.0, atol=1e-12)
    assert netbic.compare(str(tmp_path / "first"), tmp_path / "first").labels == ("a", "b")
    with pytest.raises(TypeError, match="DataFrame has no modules"):
        netbic.compare(model, pd.DataFrame())
    for folder, message in ((tmp_path, "contains no model"), (tmp_path / "nowhere", "does not exist")):
        with pytest.raises(netbic.InputError, match=message):
            netbic.compare(model, folder)
