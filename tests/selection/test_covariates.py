"""Covariates are cut together with X: batches are neither modules nor found again in halves, folds or copies."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from netbic import Graph, SparseGraphSVD, selection
from netbic.errors import InputError
from netbic.selection.graph_value import fit_folds
from netbic.selection.halves import Part
from netbic.selection.n_modules import Evening, with_random_signs
from netbic.selection.tune import Block
from support.batches import assert_equal_fits, cohort, residuals

X, TABLE = cohort(2, n_samples=100)
MODEL = SparseGraphSVD(2, n_columns=20, scale=False)
FITTED = clone(MODEL).fit(X, covariates=TABLE)
REST = residuals(X, TABLE)


def test_verdicts_judge_what_covariates_leave():
    model = SparseGraphSVD(3, n_columns=20)
    found = selection.verdicts(clone(model).fit(X, covariates=TABLE), X, n_pairs=4, random_state=0).table
    assert found["verdict"].tolist() == ["strong", "strong", "doubtful"]
    before = clone(model).fit(X)
    assert selection.verdicts(before, X, n_pairs=4, random_state=0).table["verdict"].tolist() == ["strong"] * 3


def test_too_few_samples_for_the_covariates():
    few, table = X[:24], pd.DataFrame({"batch": list("abcdef") * 4})
    reason = selection.verdicts(clone(MODEL).fit(few, covariates=table), few).table["reason"][0]
    given = "24 samples and 5 degrees of freedom of covariates"
    assert reason == f"Too few samples to tell: {given}, at least 30 are needed."
    crowded = clone(MODEL).fit(few, covariates=np.random.default_rng(0).standard_normal((24, 11)))
    with pytest.raises(InputError, match=r"^covariates have 11 degrees of freedom, .* nothing of a half of 12 samples"):
        selection.stability(crowded, few, n_pairs=2)


def test_halves_are_residuals_of_their_own():
    rows = np.arange(0, 100, 2)
    design = FITTED.covariates_.to_numpy()[rows]
    rest = residuals(X[rows], TABLE.iloc[rows])
    rest /= rest.std(axis=0)
    for part in (X[rows], sp.csr_array(X[rows])):
        half = Part(part, SparseGraphSVD(scale=True), design)
        np.testing.assert_allclose(half.scores(FITTED.components_), FITTED.components_ @ rest.T, atol=1e-9)
        np.testing.assert_allclose(half.columns(np.array([3, 60])), rest[:, [3, 60]], atol=1e-10)


def test_halves_with_missing_entries():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    design = FITTED.covariates_.to_numpy()
    filled = np.nan_to_num(residuals(holes, TABLE))
    half = Part(holes, SparseGraphSVD(missing="ignore", scale=False), design)
    every = half.columns(np.arange(90))
    np.testing.assert_allclose(every, filled - filled.mean(axis=0), atol=1e-9)


def test_stability():
    found = selection.stability(MODEL, X, covariates=TABLE, n_pairs=6, random_state=0)
    again = selection.stability(FITTED, X, n_pairs=6, random_state=0)
    pd.testing.assert_frame_equal(found.table, again.table)
    assert found.table["stable_columns"].tolist() == [20, 20]
    with pytest.raises(InputError, match="fitted with covariates, to other samples than those in X"):
        selection.stability(FITTED, X[:60], n_pairs=2)


def test_groups_of_samples():
    table = selection.sample_groups(FITTED, X)
    scores = table["score"].to_numpy().reshape(2, -1)
    np.testing.assert_allclose(scores, FITTED.components_ @ REST.T, atol=1e-9)
    new = selection.group_summary(FITTED, X[:60], covariates=TABLE[:60])
    assert new["samples"].tolist() == [60] * 2


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_held_out_parts_are_corrected_by_the_effects_of_the_fitted_part(kind):
    design = FITTED.covariates_.to_numpy()
    held_rows, held_columns = np.arange(0, 100, 4), np.arange(1, 90, 4)
    split = Block(kind(X), (held_rows, held_columns), design)
    model = split.training_model(MODEL)
    prepared, score = split.prepare(MODEL)
    modules = model.modules_of(prepared)
    rows, columns = np.setdiff1d(np.arange(100), held_rows), np.setdiff1d(np.arange(90), held_columns)
    with_mean = np.column_stack([np.ones(100), design])
    found = np.linalg.lstsq(with_mean[rows], X[rows], rcond=None)[0]
    rest = X - with_mean @ found
    v, u = (np.linalg.qr(np.array([getattr(module, side).full() for module in modules]).T)[0] for side in "vu")
    samples, features = rest[np.ix_(held_rows, columns)], rest[np.ix_(rows, held_columns)]
    expected = np.sum((samples @ v) ** 2) / np.sum(samples**2) + np.sum((u.T @ features) ** 2) / np.sum(features**2)
    assert score(modules) == pytest.approx(expected, rel=1e-9)


def test_a_checkpoint_knows_its_covariates(tmp_path):
    path, grid = tmp_path / "tuning", {"n_columns": [10, 20]}
    found = selection.tune(MODEL, X, grid, covariates=TABLE, n_folds=2, checkpoint=path, random_state=0)
    assert_equal_fits(found.best_estimator_, clone(MODEL).set_params(**found.best_params_).fit(X, covariates=TABLE))
    with pytest.raises(InputError, match="covariates differs"):
        selection.tune(MODEL, X, grid, covariates=TABLE[["age"]], n_folds=2, checkpoint=path, random_state=0)


def test_the_value_of_a_graph():
    links = np.zeros((90, 90))
    links[:20, :20] = links[20:40, 20:40] = 1
    np.fill_diagonal(links, 0)
    model = SparseGraphSVD(2, n_columns=20, column_graph=Graph(links))
    value = selection.graph_value(model, X, covariates=TABLE, n_rewired=3, n_folds=3, n_repeats=1, random_state=0)
    design = FITTED.covariates_.to_numpy()
    seed = int(np.random.default_rng(0).integers(2**31))
    fits = fit_folds((model, X, 3, seed, design), (["true"], [(0, 0), (0, 1), (0, 2)]))
    assert value.share == np.mean(fits)
    order = np.random.default_rng([seed, 0]).permutation(100)
    held = np.sort(np.array_split(order, 3)[0])
    kept = np.setdiff1d(np.arange(100), held)
    part = clone(model).fit(X[kept], covariates=TABLE.iloc[kept])
    expected = part.score(X[held], covariates=TABLE.iloc[held])
    assert fits[0] == pytest.approx(expected, rel=1e-9)


def test_copies_have_no_batches_and_the_right_variance():
    rng = np.random.default_rng(0)
    batch = np.repeat(np.arange(10), [3] * 9 + [33])
    noise = rng.standard_normal((60, 2000))
    rest = noise - np.array([noise[batch == b].mean(axis=0) for b in range(10)])[batch]
    basis = np.linalg.qr((batch[:, None] == np.arange(1, 10)) - (batch[:, None] == np.arange(1, 10)).mean(axis=0))[0]
    values, shapes = Evening(rest, True, basis).apply(rest)
    assert shapes.shape == (60, 10)
    copy = with_random_signs(values, shapes, rng)
    np.testing.assert_allclose(shapes.T @ copy, 0, atol=1e-10)
    small, large = copy[:27].var(), copy[27:].var()
    assert small / large == pytest.approx((1 - 1 / 3) / (1 - 1 / 33), rel=0.05)
    assert copy.var() == pytest.approx(values.var(), rel=0.03)


def test_batches_are_no_modules():
    for center, data in (("columns", X), (None, X - X.mean(axis=0))):
        model = SparseGraphSVD(n_columns=20, center=center)
        assert selection.n_modules(model, data, covariates=TABLE, most=3, random_state=0).n == 2
        assert selection.n_modules(model, data, most=3, random_state=0).n >= 3
    # Missing entries are filled with what covariates predict.
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    tolerant = SparseGraphSVD(n_columns=20, missing="ignore")
    assert selection.n_modules(tolerant, holes, covariates=TABLE, most=3, random_state=0).n == 2


@pytest.mark.nightly
def test_noise_with_ten_batches_has_no_modules():
    p_values = []
    for seed in range(30):
        rng = np.random.default_rng(900 + seed)
        batch = rng.integers(10, size=50)
        data = rng.standard_normal((50, 80)) + 3 * rng.standard_normal((10, 80))[batch]
        table = pd.DataFrame({"batch": pd.Categorical(batch)})
        found = selection.n_modules(SparseGraphSVD(n_columns=10), data, covariates=table, most=1, random_state=seed)
        p_values.append(found.table["p_value"][0])
    assert np.mean(np.array(p_values) <= 0.05) <= 0.17  # P < 0.01 at level 0.05
