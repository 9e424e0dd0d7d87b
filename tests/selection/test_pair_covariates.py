"""Covariates of two tables: what is removed, from which samples, and tests of pairs that have batches in common."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import SparseGraphCCA, SparseGraphPLS
from netbic.errors import InputError
from netbic.selection import pair_tests, stability, tune
from netbic.selection.pair_tests import groups_of, prepare_tables, strength, without_pairs
from netbic.selection.resampling import pairs_by_position

MODELS = {
    "cca": SparseGraphCCA(2, n_x=8, n_y=5, random_state=0),
    "ridge": SparseGraphCCA(2, n_x=8, n_y=5, covariance="ridge", ridge=0.5, random_state=0),
    "pls": SparseGraphPLS(2, n_x=8, n_y=5, random_state=0),
    "missing": SparseGraphCCA(2, n_x=8, n_y=5, missing="ignore", random_state=0),
}


def tables(seed=0, n=72, p=30, q=20, signal=1.5, missing=0.0):
    """One pair (eight and five features), six plates, and an age."""
    random = np.random.default_rng(seed)
    names = [f"s{k}" for k in range(n)]
    X, Y = random.standard_normal((n, p)), random.standard_normal((n, q))
    common = signal * random.standard_normal((n, 1))
    X[:, :8] += common
    Y[:, :5] += common
    Y[random.random(Y.shape) < missing] = np.nan
    plates = random.permutation(np.arange(n) % 6)
    known = pd.DataFrame({"plate": [f"p{k}" for k in plates], "age": random.uniform(30, 80, n)}, names)
    return pd.DataFrame(X, names), pd.DataFrame(Y, names), known


def shifted(table, known, seed):
    """The table with an effect of every plate, and of age, on every feature."""
    random = np.random.default_rng(seed)
    levels, plates = pd.factorize(known["plate"])[0], known["plate"].nunique()
    plate = 5 * random.standard_normal((plates, table.shape[1]))[levels]
    return table + plate + np.outer(known["age"] / 10, random.standard_normal(table.shape[1]))


def both_shifted(X, Y, known):
    return shifted(X, known, 100), shifted(Y, known, 101)


@pytest.mark.parametrize("name", MODELS)
def test_effects_of_covariates_change_nothing(name):
    X, Y, known = tables(missing=0.2 * (name == "missing"))
    model, other = MODELS[name], netbic.SparseGraphPLS()
    plain = SparseGraphCCA(**model.get_params()) if name != "pls" else other.set_params(**model.get_params())
    first = plain.fit(X, Y, covariates=known)
    moved = model.fit(*both_shifted(X, Y, known), covariates=known.sample(frac=1, random_state=0))  # matched by name
    for attribute in ("x_weights_", "y_weights_", "x_scores_", "y_scores_", "singular_values_", "x_loadings_"):
        np.testing.assert_allclose(getattr(moved, attribute), getattr(first, attribute), atol=1e-7)
    design = moved.covariates_.to_numpy()
    assert design.shape == (72, 6)
    for scores in (moved.x_scores_, moved.y_scores_):
        np.testing.assert_allclose(design.T @ scores, 0, atol=1e-8)


def test_a_fit_with_covariates_is_one_of_residuals():
    X, Y, known = tables()
    X, Y = both_shifted(X, Y, known)
    model = SparseGraphCCA(2, n_x=8, n_y=5).fit(X, Y, covariates=known)
    columns = np.column_stack([np.ones(len(X)), pd.get_dummies(known["plate"], dtype=float), known["age"]])
    left = [table - columns @ np.linalg.lstsq(columns, table, rcond=None)[0] for table in (X, Y)]
    expected = SparseGraphCCA(2, n_x=8, n_y=5).fit(*left)
    np.testing.assert_allclose(model.x_weights_, expected.x_weights_, atol=1e-7)
    np.testing.assert_allclose(model.correlations_, expected.correlations_, atol=1e-7)


def test_new_samples_need_their_covariates(tmp_path):
    X, Y, known = tables()
    X, Y = both_shifted(X, Y, known)
    model = SparseGraphPLS(1, n_x=8, n_y=5).fit(X, Y, covariates=known)
    netbic.save(model, tmp_path / "model")
    for each in (model, netbic.load(tmp_path / "model")):
        part = X.index[:10]
        scores = each.transform(X.loc[part], Y.loc[part], covariates=known)
        np.testing.assert_allclose(scores[0], model.x_scores_[:10], atol=1e-8)
        np.testing.assert_allclose(scores[1], model.y_scores_[:10], atol=1e-8)
        assert each.score(X, Y, covariates=known) > 0.9  # the effects of the covariates are in the prediction
        with pytest.raises(InputError, match=r"fitted with covariates \('plate', 'age'\): give those of these samples"):
            each.transform(X)
        with pytest.raises(InputError, match="has the level 'new', which no sample of the fit has"):
            each.transform(X, covariates=known.assign(plate="new"))
    with pytest.raises(InputError, match="but the model was fitted without any"):
        SparseGraphPLS(1).fit(X, Y).transform(X, covariates=known)


@pytest.mark.parametrize("missing", [0.0, 0.08])
def test_effects_are_estimated_in_each_part_of_the_samples(missing):
    """Held-out samples have the same scores, whatever the effects of the covariates are."""
    X, Y, known = tables(missing=missing)
    model = SparseGraphCCA(2, n_x=8, n_y=5, missing="ignore")
    options = {"n_permutations": 19, "n_repeats": 2, "random_state": 0}
    first = pair_tests(model, X, Y, covariates=known, **options)
    second = pair_tests(model, *both_shifted(X, Y, known), covariates=known, **options)
    assert first.table["verdict"][0] == "strong"
    for name in ("table", "features", "scores"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), atol=1e-6)
    held_out = second.scores[second.scores["pair"] == 1].set_index("sample")["held_out_1"]
    columns = np.column_stack([pd.get_dummies(known["plate"], dtype=float), known["age"]])
    np.testing.assert_allclose(held_out.loc[known.index] @ columns, held_out.mean() * columns.sum(axis=0), atol=1e-8)
    tuned = [
        tune(model, *both, {"n_x": [4, 8]}, Y=other, covariates=known, n_folds=3, random_state=0)
        for *both, other in ((X, Y), both_shifted(X, Y, known))
    ]
    np.testing.assert_allclose(tuned[0].table["score"], tuned[1].table["score"], atol=1e-7)
    assert tuned[1].best_estimator_.covariates_ is not None
    if not missing:
        halves = stability(SparseGraphCCA(1, n_x=8, n_y=5), *both_shifted(X, Y, known), covariates=known, n_pairs=5)
        assert halves.x.frequency.iloc[:8].to_numpy().min() == 1


def test_covariates_of_a_fitted_model_are_used_again():
    X, Y, known = tables()
    X, Y = both_shifted(X, Y, known)
    model = SparseGraphCCA(1, n_x=8, n_y=5)
    options = {"n_permutations": 19, "n_repeats": 1, "random_state": 0}
    expected = pair_tests(model, X, Y, covariates=known, **options)
    again = pair_tests(expected.reference, X, Y, **options)
    pd.testing.assert_frame_equal(again.table, expected.table)


def test_samples_with_the_same_groups_are_exchangeable():
    X, Y, known = tables()
    model = SparseGraphCCA(1, n_x=8, n_y=5)
    plates = groups_of(model.fit(X, Y, covariates=known[["plate"]]))
    assert pd.crosstab(plates, known["plate"]).gt(0).sum().tolist() == [1] * 6
    assert groups_of(model.fit(X, Y, covariates=known)) is None  # an age is not the same in any two samples
    pairs = pd.DataFrame({"pair": [f"{k // 2}" for k in range(72)], "two": list("ab") * 36}, X.index)
    assert np.bincount(groups_of(model.fit(X, Y, covariates=pairs[["pair"]]))).tolist() == [2] * 36
    assert groups_of(model.fit(X, Y, covariates=pairs)) is None  # every sample by itself


def p_value(X, Y, covariates, n_permutations=39):
    fitted = SparseGraphCCA(1, n_x=8, n_y=5, missing="ignore").fit(X, Y, covariates=covariates)
    model, x, y = pairs_by_position(fitted, X, Y)
    design = None if covariates is None else fitted.covariates_.to_numpy()
    prepared = without_pairs(prepare_tables(model, x, y, groups_of(fitted), design), fitted, 0)
    by_chance = [strength(prepared, (0, k)) for k in range(n_permutations)]
    return (1 + sum(d >= strength(prepared) for d in by_chance)) / (1 + n_permutations)


@pytest.mark.parametrize(("columns", "missing"), [(["plate"], 0.3), (["plate", "age"], 0.0)])
def test_batches_that_both_tables_have_in_common_are_no_evidence(columns, missing):
    """The p-values of unrelated tables are those of chance; without the covariates all of them are significant."""
    values = list[float]()
    for seed in range(40):
        X, Y, known = tables(seed, signal=0.0, missing=missing)
        X, Y = both_shifted(X, Y, known if "age" in columns else known.assign(age=0.0))
        if missing:
            Y.loc[known["plate"] == "p1", Y.columns % 4 == 0] = np.nan  # not measured in this plate
        values.append(p_value(X, Y, known[columns]))
        if seed < 3:
            assert p_value(X, Y, None) == 1 / 40
    assert sum(p <= 0.05 for p in values) <= 6  # P(more | 0.05) = 0.003
    assert 0.35 < np.mean(values) < 0.65


def test_too_many_covariates_are_refused_before_the_long_part():
    X, Y, _ = tables()
    many = pd.DataFrame(np.random.default_rng(0).standard_normal((72, 58)), X.index).add_prefix("z")
    with pytest.raises(InputError, match="58 degrees of freedom, which leave nothing of a part of 57 samples"):
        pair_tests(SparseGraphCCA(1, n_x=8, n_y=5), X, Y, covariates=many, n_permutations=19)
