"""Several studies in one fit: equal to a stack that is standardised by hand; where modules live; bad input."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

import netbic
from netbic.estimators.covariates import own_covariates
from netbic.estimators.studies import as_one_study
from netbic.pl.base import Data, entries
from netbic.report.pictures import heatmaps_of
from netbic.selection import n_modules, stability, verdicts
from netbic.selection.resampling import draw_half_of_groups

LIVES = ((0, 1, 2), (0, 1), (2,), (0,))


@pytest.fixture(scope="module")
def simulated():
    return netbic.simulate.studies((40, 70, 50), 200, lives=LIVES, module_genes=20, background=0.0, random_state=1)


@pytest.fixture(scope="module")
def shuffled(simulated):
    """The same samples in random order, and their studies."""
    order = np.random.default_rng(0).permutation(len(simulated.X))
    return simulated.X.iloc[order], simulated.studies[order]


@pytest.fixture(scope="module")
def model(simulated):
    return netbic.SparseGraphSVD(4, n_columns=20, scale=True).fit(simulated.X, studies=simulated.studies)


def standardised(X, labels, power, design=None):
    """Each study centred, without its covariates, scaled and weighted by plain NumPy."""
    parts = {}
    for study in np.unique(labels.astype(str)):
        part = np.asarray(X, dtype=float)[labels == study]
        part = part - part.mean(axis=0)
        if design is not None:
            own = design[labels == study]
            part = part - LinearRegression().fit(own, part).predict(own)
        parts[study] = part / part.std(axis=0) ** power
    squares = {study: np.sum(part**2) for study, part in parts.items()}
    stacked = np.empty(np.shape(X))
    for study, part in parts.items():
        weight = np.sqrt(np.mean(list(squares.values())) / squares[study])
        stacked[labels == study] = weight * part
    return stacked


@pytest.mark.parametrize("scale", [False, True, None])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_rows", [None, 60])
def test_equals_a_stack_standardised_by_hand(shuffled, kind, scale, n_rows):
    X, labels = kind(shuffled[0].to_numpy()), shuffled[1]
    usual = 0.0 if n_rows else 0.5  # power of the standard deviations
    stacked = standardised(shuffled[0], labels, usual if scale is None else scale)
    links = netbic.Graph(np.eye(200, k=1) + np.eye(200, k=-1))
    options = {"n_columns": 20, "n_rows": n_rows, "column_graph": links if n_rows else None}
    expected = netbic.SparseGraphSVD(3, center=None, scale=False, **options).fit(stacked)
    model = netbic.SparseGraphSVD(3, scale=scale, **options).fit(X, studies=labels)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(model.left_vectors_, expected.left_vectors_, atol=1e-10)
    np.testing.assert_allclose(model.singular_values_, expected.singular_values_, rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(model.transform(X, studies=labels), expected.transform(stacked), atol=1e-8)
    assert model.score(X, studies=labels) == pytest.approx(expected.score(stacked), abs=1e-10)


def test_covariates_are_removed_within_each_study(shuffled):
    X, labels = shuffled
    generator = np.random.default_rng(3)
    table = pd.DataFrame({"age": generator.normal(60, 10, len(X)), "batch": generator.choice(list("xyz"), len(X))})
    table.index = X.index
    slopes = {study: generator.normal(size=X.shape[1]) for study in np.unique(labels.astype(str))}
    X = X + np.array([0.1 * slopes[study] * age for study, age in zip(labels, table["age"], strict=True)])
    design = np.column_stack([table["age"], pd.get_dummies(table["batch"], drop_first=True)]).astype(float)
    stacked = standardised(X, labels, True, design)
    expected = netbic.SparseGraphSVD(3, n_columns=20, center=None, scale=False).fit(stacked)
    model = netbic.SparseGraphSVD(3, n_columns=20, scale=True).fit(X, studies=labels, covariates=table)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-9)
    scores = model.transform(X.iloc[:9], studies=labels[:9], covariates=table.iloc[:9])
    np.testing.assert_allclose(scores, expected.transform(stacked)[:9], atol=1e-7)
    with pytest.raises(netbic.InputError, match="with covariates"):
        model.transform(X, studies=labels)


def test_a_level_that_one_study_has_is_removed_there(shuffled):
    X, labels = shuffled
    batch = np.where(labels == "study_2", np.arange(len(X)) % 2, 0)
    shifted = X + 9.0 * batch[:, None]
    table = pd.DataFrame({"batch": batch.astype(str)}, index=X.index)
    found = netbic.SparseGraphSVD(2, n_columns=20).fit(shifted, studies=labels, covariates=table)
    assert list(found.covariates_.columns) == ["study=study_2", "study=study_3", "batch in study_2=1"]
    without = netbic.SparseGraphSVD(2, n_columns=20).fit(X, studies=labels, covariates=table)
    np.testing.assert_allclose(found.components_, without.components_, atol=1e-9)


@pytest.mark.parametrize("missing", ["ignore", "impute"])
def test_missing_entries_are_ignored_study_by_study(shuffled, missing):
    X, labels = shuffled[0].copy(), shuffled[1]
    X.iloc[np.flatnonzero(labels == "study_1"), 3] = np.nan  # a gene that one study did not measure
    X.iloc[::7, 5] = np.nan
    model = netbic.SparseGraphSVD(2, n_columns=20, scale=True, missing=missing).fit(X, studies=labels)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X, studies=labels)).all()
    complete = netbic.SparseGraphSVD(2, n_columns=20, scale=True).fit(shuffled[0], studies=labels)
    assert np.abs(np.sum(model.components_[0] * complete.components_[0])) > 0.99


def test_scales_and_shifts_of_studies_change_nothing(shuffled):
    X, labels = shuffled
    other = X.copy()
    generator = np.random.default_rng(5)
    for study in np.unique(labels.astype(str)):
        other[labels == study] = other[labels == study] * np.exp(generator.normal(size=X.shape[1])) + 3
    one, two = (netbic.SparseGraphSVD(3, n_columns=20, scale=True).fit(data, studies=labels) for data in (X, other))
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-9)
    np.testing.assert_allclose(one.studies_["ratio"], two.studies_["ratio"], rtol=1e-6)


def test_singular_values_of_the_studies_add_up(shuffled):
    X, labels = shuffled
    model = netbic.SparseGraphSVD(1, n_columns=20, scale=True).fit(X, studies=labels)
    assert np.sum(model.studies_["d"] ** 2) == pytest.approx(model.singular_values_[0] ** 2, rel=1e-10)
    stacked = standardised(X, labels, True)
    for row in model.studies_.itertuples():
        part = stacked[labels == row.study]
        assert row.n_samples == len(part)
        assert row.share == pytest.approx(np.sum((part @ model.components_[0]) ** 2) / np.sum(part**2), rel=1e-9)


def test_inverse_transform_has_the_units_of_each_study(shuffled):
    X, labels = shuffled
    model = netbic.SparseGraphSVD(3, scale=True).fit(X, studies=labels)
    again = model.inverse_transform(model.transform(X, studies=labels), studies=labels)
    for study in np.unique(labels.astype(str)):
        own = labels == study
        np.testing.assert_allclose(again[own].mean(axis=0), X[own].mean(axis=0), rtol=1e-6, atol=1e-6)
    again = pd.DataFrame(again, index=X.index, columns=X.columns)
    np.testing.assert_allclose(model.transform(again, studies=labels), model.transform(X, studies=labels), atol=1e-8)


def test_shared_and_private_modules_are_told_apart():
    values, truth = [], []
    for seed in range(4):
        simulated = netbic.simulate.studies((40, 60, 90), 300, lives=LIVES, background=0.1, random_state=seed)
        model = netbic.SparseGraphSVD(6, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
        paired = netbic.simulate.recovery(model.columns_, simulated.genes)
        ratios = model.studies_["ratio"].to_numpy().reshape(-1, 3)
        for planted, found in paired.loc[paired["f1"] > 0.6, ["planted", "found"]].to_numpy():
            values.extend(ratios[found])
            truth.extend(simulated.lives[planted])
    truth, values = np.array(truth), np.array(values)
    assert truth.sum() >= 15
    assert (~truth).sum() >= 8
    assert roc_auc_score(truth, values) > 0.95
    assert (values[~truth] < 2).all()  # no study is called a home of a module that it does not have


def test_a_dict_of_studies_is_stacked_by_the_names_of_genes(simulated):
    X, labels = simulated.X, simulated.studies
    generator = np.random.default_rng(2)
    parts = {}
    for name in simulated.names:
        part = X[labels == name].assign(**{f"only_{name}": 1.0})
        parts[name] = part[generator.permutation(part.columns)]
    stacked = netbic.stack_studies(parts)
    assert stacked.X.shape == X.shape
    model = netbic.SparseGraphSVD(2, n_columns=20).fit(parts)
    expected = netbic.SparseGraphSVD(2, n_columns=20).fit(X[stacked.X.columns], studies=labels)
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.study_labels_, labels)
    np.testing.assert_array_equal(model.transform(parts), expected.transform(stacked.X, studies=labels))
    arrays = {name: X[labels == name].to_numpy() for name in simulated.names}
    plain = netbic.SparseGraphSVD(2, n_columns=20).fit(arrays)
    np.testing.assert_allclose(
        plain.components_, netbic.SparseGraphSVD(2, n_columns=20).fit(X, studies=labels).components_
    )
    sparse = netbic.stack_studies({name: sp.csr_array(part) for name, part in arrays.items()})
    assert sp.issparse(sparse.X)
    assert (sparse.X.toarray() == X.to_numpy()).all()


def test_one_study_with_covariates_is_the_same_model(shuffled):
    X, labels = shuffled
    model = netbic.SparseGraphSVD(3, n_columns=20, scale=True).fit(X, studies=labels)
    plain, data = as_one_study(model, X)
    again = netbic.SparseGraphSVD(3, n_columns=20, scale=False).fit(data, covariates=own_covariates(plain))
    np.testing.assert_allclose(again.components_, model.components_, atol=1e-12)


def test_words_say_where_a_module_lives(model):
    summary = netbic.storage.summary_table(model)["studies"].tolist()
    assert summary[0] == "shared by 3 of 3 studies"
    assert "shared by 2 of 3 studies (study_1, study_2)" in summary
    assert sum(words.endswith(" only") for words in summary) == 2


def test_verdicts_draw_halves_within_studies(simulated, model):
    found = verdicts(model, simulated.X, n_pairs=3, random_state=0)
    assert found.table["verdict"].tolist()[:3] == ["strong"] * 3  # the last one lives in 20 samples of a half only
    numbers = pd.factorize(simulated.studies)[0]
    chosen = draw_half_of_groups(np.random.default_rng(0), np.arange(len(simulated.X)), numbers)
    counts = pd.Series(simulated.studies[chosen]).value_counts()
    assert (np.abs(2 * counts - pd.Series(simulated.studies).value_counts()) <= 1).all()


def test_functions_that_know_one_study_refuse_several(simulated, model):
    for function in (stability, n_modules):
        with pytest.raises(netbic.InputError, match="several studies"):
            function(model, simulated.X)
    with pytest.raises(netbic.InputError, match=r"several studies \('study_1'"):
        netbic.io.scores_by_name(model, simulated.X.to_numpy(), simulated.X.columns)


def test_scores_by_name_use_the_scaling_of_the_study(simulated, model):
    X, labels = simulated.X, simulated.studies
    turned = X.iloc[:, ::-1]
    for kind in (np.asarray, sp.csr_array):
        found = netbic.io.scores_by_name(model, kind(turned.to_numpy()), turned.columns, studies=labels)
        np.testing.assert_allclose(found, netbic.get.scores_df(model, X), atol=1e-9)


def test_plots_reports_and_memberships_use_the_scaling_of_the_studies(shuffled):
    X, labels = shuffled
    model = netbic.SparseGraphSVD(2, n_columns=20, scale=True).fit(X, studies=labels)
    stacked = standardised(X, labels, True)
    rows, columns = np.array([3, 50, 7]), np.array([1, 9])
    shown = entries(model, Data(X.to_numpy(), X.index, X.columns), rows, columns)
    np.testing.assert_allclose(shown, stacked[np.ix_(rows, columns)], atol=1e-10)
    for heatmap in heatmaps_of(model, X):
        levels = np.rint(127 * np.clip(stacked[np.ix_(heatmap.samples, heatmap.genes)].T / heatmap.limit, -1, 1))
        assert np.abs(levels - heatmap.values).max() <= 1  # rounding
    scores = stacked @ model.components_.T
    expected = np.corrcoef(stacked.T, scores.T)[: X.shape[1], X.shape[1] :]
    np.testing.assert_allclose(netbic.association.gene_membership(model, X), expected, atol=1e-9)
    groups = netbic.selection.sample_groups(model, X)
    np.testing.assert_allclose(groups["score"].to_numpy().reshape(2, -1).T, scores, atol=1e-9)


def test_labels_are_matched_by_name(simulated):
    X, labels = simulated.X, pd.Series(simulated.studies, index=simulated.X.index, name="study")
    expected = netbic.SparseGraphSVD(2, n_columns=20).fit(X, studies=simulated.studies)
    turned = labels[::-1]
    further = pd.concat([turned, pd.Series(["study_9"], index=["other"], name="study")])
    for given in (turned, turned.to_frame(), further.to_frame()):
        model = netbic.SparseGraphSVD(2, n_columns=20).fit(X, studies=given)
        assert model.study_labels_.tolist() == simulated.studies.tolist()
        np.testing.assert_array_equal(model.components_, expected.components_)
        np.testing.assert_array_equal(model.transform(X, studies=given), expected.transform(X, studies=labels))
    without_names = netbic.SparseGraphSVD(2, n_columns=20).fit(X, studies=labels.reset_index(drop=True).to_frame())
    np.testing.assert_array_equal(without_names.components_, expected.components_)


def test_bad_labels(simulated):
    X, n = simulated.X, len(simulated.X)
    repeated = pd.Series(simulated.studies, index=["s1", *X.index[1:]])
    same = X.set_axis(repeated.index)  # as in X: nothing has to be matched
    assert netbic.SparseGraphSVD(1).fit(same, studies=repeated).study_labels_.tolist() == repeated.tolist()
    for labels, message in (
        (repeated.to_frame(), "sample 's1' occurs twice in studies"),
        (pd.DataFrame({"study": simulated.studies, "batch": 1}), "studies is a table with 2 columns: give one of them"),
        ("study_1", "studies have 1 rows but X has 160 samples: one row per sample"),
        (pd.Series(["a"] * n, index=[f"x{at}" for at in range(n)]), "160 of 160 samples have no studies .'s0', 's1'"),
        ([None, np.nan] + ["a", "b"] * (n // 2 - 1), r"no label for 2 samples \('s0', 's1'\)"),
        ([" "] + ["a"] * (n // 2) + ["b"] * (n - n // 2 - 1), "no label for 1 sample "),
        (["a"] * n, "one label only, 'a'"),
        (["b"] + ["a"] * (n - 1), "study 'b' has one sample"),
    ):
        with pytest.raises(netbic.InputError, match=message):
            netbic.SparseGraphSVD().fit(X, studies=labels)


def test_bad_input(simulated, model):
    X, labels = simulated.X, simulated.studies
    constant = X.mask(np.tile(labels == "study_2", (X.shape[1], 1)).T, 0.1)
    blocks = pytest.importorskip("dask.array").from_array(X.to_numpy(), chunks=(40, -1))
    plain = netbic.SparseGraphSVD(1, n_columns=20).fit(X)
    for call, message in (
        (lambda: netbic.SparseGraphSVD(center="both").fit(X, studies=labels), "center='both'"),
        (lambda: netbic.SparseGraphSVD().fit(constant, studies=labels), "'study_2' does not vary"),
        (lambda: netbic.SparseGraphSVD().fit(blocks, studies=labels), "a Dask array, whose studies cannot be scaled"),
        (lambda: model.transform(X.iloc[:2], studies=["study_1", "other"]), "study 'other' is not one of the fit"),
        (lambda: model.transform(X), "say which one each sample belongs to"),
        (lambda: plain.transform(X, studies=labels), "fitted to one study"),
        (lambda: netbic.leave_one_study_out(plain, X), "fitted to one study"),
    ):
        with pytest.raises(netbic.InputError, match=message):
            call()


def test_bad_dicts_of_studies(simulated, model):
    X, labels = simulated.X, simulated.studies
    one, other = X[labels == "study_1"], X[labels == "study_2"]
    renamed = other.set_axis([f"x{name}" for name in other.columns], axis=1)
    repeated = other.set_axis(["g0", "g0", *other.columns[2:]], axis=1)
    for studies, message in (
        ({"one": one, "other": renamed}, "no feature is in all 2 studies"),
        ({"one": one.T, "other": other.T.iloc[::-1]}, r"no feature is in all 2 .*: are features in rows\? Use X.T"),
        ({"one": one, "other": repeated}, "study 'other' has two columns 'g0'"),
        ({"one": one.to_numpy(), "other": other.to_numpy()[:, :5]}, "different numbers of columns"),
        ({"one": one, "other": other.to_numpy()}, "has no names of features"),
        ({"one": one}, "^one study is given: at least two"),
        ({}, "^no study is given: at least"),
        ([one, other], "studies are given as a list: give a dict of their names"),
        ({"a": X, "b": None}, "study 'b' is a NoneType: give a DataFrame, an array"),
        ({"a": X, "b": "x.tsv"}, "study 'b' is a str: give .* .netbic.io.read_expression reads files"),
        ({"a": X.to_numpy(), "b": X.to_numpy()[:, 0]}, r"study 'b' has the shape \(160,\): a matrix of samples"),
        ({"a": X, "b": X.iloc[:0]}, r"study 'b' has the shape \(0, 200\)"),
    ):
        with pytest.raises(netbic.InputError, match=message):
            netbic.stack_studies(studies)
    with pytest.raises(netbic.InputError, match="omit it"):
        netbic.SparseGraphSVD().fit({"one": one, "other": other}, studies=labels)
    parts = {"one": one, "other": other}
    for function in (verdicts, netbic.leave_one_study_out, stability, n_modules, netbic.selection.sample_groups):
        with pytest.raises(netbic.InputError, match=r"X is a dict of studies.*give netbic.stack_studies\(X\).X"):
            function(model, parts)
