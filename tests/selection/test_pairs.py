"""Tests of pairs of two tables: calibration, sequential p-values, held-out correlations, stability and tuning."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from netbic import Graph, SparseGraphCCA, SparseGraphPLS, SparseGraphSVD
from netbic.selection import pair_tests, stability, tune
from netbic.selection.fits import quiet
from netbic.selection.pair_tests import prepare_tables, random_order, strata_of, strength, without_pairs
from netbic.selection.pair_verdicts import judge_pair
from netbic.selection.resampling import match_scores, pairs_by_position

MODELS = (SparseGraphPLS, SparseGraphCCA)


def two_tables(seed, n=60, strength=1.5, n_real=1, p=30, q=20):
    """Common variables change eight features of X and five of Y each."""
    generator = np.random.default_rng(seed)
    X, Y = generator.standard_normal((n, p)), generator.standard_normal((n, q))
    for k in range(n_real):
        common = strength * generator.standard_normal((n, 1))
        X[:, 8 * k : 8 * k + 8] += common
        Y[:, 5 * k : 5 * k + 5] += common
    return X, Y


def named(X, Y):
    """The same as tables with names; the samples of Y are in another order."""
    samples = [f"s{i}" for i in range(len(X))]
    first = pd.DataFrame(X, samples, [f"x{j}" for j in range(X.shape[1])])
    return first, pd.DataFrame(Y, samples, [f"y{j}" for j in range(Y.shape[1])]).iloc[::-1]


def rejections(n_real, pair, n, n_runs, model):
    """The number of data sets in which a pair has p <= 0.05."""
    found = 0
    for seed in range(n_runs):
        with quiet():
            tests = pair_tests(
                model, *two_tables(seed, n, 2.0, n_real), n_permutations=19, n_folds=2, random_state=seed
            )
        found += tests.table["p_value"][pair] <= 0.05
    return found


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_real", "pair", "n", "model"),
    [
        (0, 0, 30, SparseGraphCCA(1, n_x=8, n_y=5)),
        (1, 1, 30, SparseGraphCCA(2, n_x=8, n_y=5)),
        (1, 1, 30, SparseGraphPLS(2, n_x=8, n_y=5)),
        (1, 1, 60, SparseGraphCCA(2, n_x=8, n_y=5, deflation="hotelling")),
    ],
    ids=["independent", "second pair, CCA", "second pair, PLS", "second pair, hotelling"],
)
def test_pairs_without_signal_are_rarely_significant(n_real, pair, n, model):
    assert rejections(n_real, pair, n, 40, model) <= 6  # probability of more .004 if the level is .05


def test_real_pairs_are_significant():
    X, Y = two_tables(0, n_real=2)
    tests = pair_tests(SparseGraphCCA(3, n_x=8, n_y=5), X, Y, n_permutations=99, random_state=0)
    assert (tests.table["p_value"][:2] == 0.01).all()
    assert tests.table["p_value"][2] > 0.05
    assert tests.verdict.startswith("Of 3 pairs, 2 are strong, 1 is doubtful. 2 are stronger than expected by chance (")
    assert tests.verdict.endswith(" expected by chance (p <= 0.05).")
    assert (tests.table["held_out_correlation"][:2] > 0.8).all()
    assert abs(tests.table["held_out_correlation"][2]) < 0.5 < tests.table["correlation"][2]  # chosen to be large
    reasons = tests.table["reason"]
    assert reasons[0].startswith("Strong: stronger than expected by chance (p <= 0.01 with 99 permutations); the corr")
    assert reasons[2].startswith("Doubtful: no stronger than expected by chance (p = 0.")
    real, noise = tests.features[tests.features["pair"] < 3], tests.features[tests.features["pair"] == 3]
    assert real["confidence"].min() > 0.9 > noise["confidence"].mean()
    assert real["found_again"].min() > 0.9 > noise["found_again"].mean()


def test_pairs_are_searched_for_until_two_in_a_row_are_doubtful():
    X, Y = named(*two_tables(0, n_real=2))
    options = {"n_permutations": 39, "n_repeats": 2, "random_state": 0}
    found = pair_tests(SparseGraphCCA(1, n_x=8, n_y=5), X, Y, most=6, **options)
    assert found.table["verdict"].tolist() == ["strong", "strong", "doubtful", "doubtful"]
    assert found.reference.n_components_ == 4
    asked = pair_tests(SparseGraphCCA(4, n_x=8, n_y=5), X, Y, **options)
    np.testing.assert_array_equal(found.table["p_value"], asked.table["p_value"])
    pd.testing.assert_frame_equal(found.table[:2], asked.table[:2])  # only these are the same in all fits
    fewer = pair_tests(SparseGraphCCA(5, n_x=8, n_y=5), X, Y, most=1, **options)
    assert fewer.verdict == (
        "The only pair is strong. It is stronger than expected by chance (p <= 0.025 with 39 permutations): "
        "there may be more pairs."
    )


def measured(**changed):
    """What is measured about a pair, for a strong one."""
    row = {"correlation": 0.9, "held_out_correlation": 0.7, "held_out_low": 0.5, "held_out_high": 0.8, "p_value": 0.005}
    row |= {"n_permutations": 199, "found_again": 1.0, "confidence_1": 0.9, "confidence_2": 0.9, "carried_by": ""}
    return row | changed


@pytest.mark.parametrize(
    ("changed", "verdict", "why"),
    [
        ({}, "strong", "90% of its features of RNA and 90% of its features of protein are related to the other table."),
        ({"p_value": 0.06, "held_out_low": 0.25}, "doubtful", "no stronger than expected by chance (p = 0.06)"),
        ({"p_value": 0.06, "held_out_low": 0.25}, "doubtful", "; it may be below 0.3 there."),
        ({"p_value": 0.06}, "moderate", "Not strong, because p > 0.05."),
        (
            {"p_value": 0.06},
            "moderate",
            "Moderate: its permutation test alone does not show it (p = 0.06), but the corr",
        ),
        ({"held_out_low": -0.01}, "doubtful", "; it may be 0 there."),
        ({"found_again": 0.4}, "doubtful", "only 40% of the fits without a part of the samples find it again."),
        ({"held_out_low": 0.2}, "moderate", "Not strong, because its correlation in other samples may be below 0.3."),
        (
            {"confidence_2": 0.5},
            "moderate",
            "Not strong, because fewer than 80% of its features of protein are related to",
        ),
        ({"confidence_2": 0.3, "n_sure_2": 7}, "moderate", "of protein cannot be relied on (7 have a confidence of at"),
        ({"extreme_samples": "s3 makes 31% of it"}, "strong", "table. Most extreme: s3 makes 31% of it; look at"),
        ({"carried_by": "s3, s8"}, "moderate", "few samples carry it: s3, s8 (look at them, and fit without them)."),
    ],
)
def test_a_verdict_follows_from_what_was_measured(changed, verdict, why):
    found, reason = judge_pair(measured(**changed), ("RNA", "protein"))
    assert found == verdict
    assert why in reason


@pytest.mark.nightly
@pytest.mark.parametrize(("strength", "kinds"), [(0.0, {"doubtful"}), (1.5, {"strong"})])
def test_verdicts_on_planted_pairs_and_on_noise(strength, kinds):
    found = []
    for seed in range(40):
        tables = two_tables(seed, 60, strength)
        tests = pair_tests(SparseGraphCCA(1, n_x=8, n_y=5), *tables, n_permutations=39, n_repeats=5, random_state=seed)
        found.append(tests.table["verdict"][0])
    assert np.mean([verdict in kinds for verdict in found]) >= 0.9


def tables_after(fitted, X, Y, pair):
    """The tables that are left after so many pairs of a fitted model."""
    return without_pairs(prepare_tables(*pairs_by_position(fitted, X, Y)), fitted, pair)


def test_p_values_follow_the_sequential_formula():
    X, Y = two_tables(1, strength=0.0)
    model = SparseGraphCCA(3, n_x=8, n_y=5)
    complete = pair_tests(model, X, Y, n_permutations=39, early_stopping=False, random_state=3)
    early = pair_tests(model, X, Y, n_permutations=39, random_state=3)
    assert (complete.table["n_permutations"] == 39).all()
    seed = int(np.random.default_rng(3).integers(2**31))
    own, sequential, numbers = [], [], []
    for pair in range(3):
        tables = tables_after(complete.reference, X, Y, pair)
        reached = np.array([strength(tables, (seed, pair, b)) >= strength(tables) for b in range(39)])
        own.append((1 + reached.sum()) / 40)
        stopped = np.flatnonzero(np.cumsum(reached) == 3)  # enough for p > 0.05
        sequential.append(3 / (1 + stopped[0]) if stopped.size else own[-1])
        numbers.append(1 + stopped[0] if stopped.size else 39)
    np.testing.assert_allclose(complete.table["p_value"], own)
    np.testing.assert_allclose(early.table["p_value"], sequential)
    np.testing.assert_allclose(complete.table["p_value_with_earlier"], np.maximum.accumulate(own))
    assert early.table["n_permutations"].tolist() == numbers
    assert min(numbers) < 39


def test_threads_names_and_sparse_tables_make_no_difference():
    X, Y = two_tables(2)
    X[np.abs(X) < 0.5] = 0.0
    for kind in MODELS:
        model = kind(2, n_x=8, n_y=5)
        one = pair_tests(model, X, Y, n_permutations=19, random_state=0)
        two = pair_tests(model, *named(X, Y), n_permutations=19, random_state=0, n_jobs=2)
        three = pair_tests(model, sp.csr_array(X), Y, n_permutations=19, random_state=0)
        pd.testing.assert_frame_equal(one.table, two.table)
        pd.testing.assert_frame_equal(one.table, three.table)


def test_observed_strengths_are_those_of_the_model():
    """The first one exactly; the second one in rotated bases only if the same direction was removed from both."""
    X, Y = two_tables(3)
    for model in (
        SparseGraphPLS(2, n_x=8, n_y=5),
        SparseGraphCCA(2, n_x=8, n_y=5),
        SparseGraphCCA(2, n_x=8, n_y=5, covariance="ridge", ridge=0.4),
        SparseGraphCCA(2, covariance="full"),
    ):
        fitted = model.fit(X, Y)
        first, second = (tables_after(fitted, X, Y, pair) for pair in (0, 1))
        assert strength(first) == pytest.approx(fitted.singular_values_[0], rel=1e-6)
        close = 1e-6 if model.deflation == "regression" else 0.05
        assert strength(second) == pytest.approx(fitted.singular_values_[1], rel=close)
        assert second.x.shape == (58, 30)  # the mean and one direction are removed from 60 samples
        assert strength(first, (0,)) == strength(first, (0,)) != strength(first, (1,))


def test_samples_are_permuted_within_strata():
    generator = np.random.default_rng(0)
    strata = strata_of(generator.choice(["a", "b", "c"], 50), 50)
    order = random_order(50, strata, (0,))
    assert sorted(order) == list(range(50))
    assert (strata[order] == strata).all()
    assert (order != np.arange(50)).mean() > 0.5
    samples = np.array(["a", "b", "c", "d"], dtype=object)
    labels = pd.Series(["x", "y", "x", "y"], ["d", "c", "b", "a"])
    np.testing.assert_array_equal(strata_of(labels, 4, samples), strata_of(["y", "x", "y", "x"], 4))
    for given, message in ((labels.drop("a"), "no label for 1 samples"), (["x", None, "x", "x"], "1 labels of strata")):
        with pytest.raises(ValueError, match=message):
            strata_of(given, 4, samples)


def test_a_difference_between_strata_is_no_evidence():
    X, Y = two_tables(4, 60, 0.0)
    batch = np.repeat([0.0, 1.0], 30)
    X[:, :8] += 2 * batch[:, None]
    Y[:, :5] += 2 * batch[:, None]
    model = SparseGraphCCA(1, n_x=8, n_y=5)
    plain = pair_tests(model, X, Y, n_permutations=59, random_state=0).table["p_value"][0]
    within = pair_tests(model, X, Y, strata=batch, n_permutations=59, random_state=0).table["p_value"][0]
    assert plain == 1 / 60
    assert within > 0.05


def test_held_out_correlations_are_those_of_plain_folds():
    """Recomputed for one division of the samples, and one pair that every fit finds first."""
    X, Y = two_tables(6, 50, 1.5)
    model = SparseGraphCCA(1, n_x=8, n_y=5)
    tests = pair_tests(model, X, Y, n_permutations=19, n_folds=4, n_repeats=1, random_state=7)
    seed = int(np.random.default_rng(7).integers(2**31))
    order = np.random.default_rng([seed, 0]).permutation(50)
    all_scores = np.zeros((2, 50))
    for held_out in np.array_split(order, 4):
        rest = np.setdiff1d(np.arange(50), held_out)
        model.fit(X[rest], Y[rest])
        scaled = [(T[held_out] - T[rest].mean(0)) / T[rest].std(0, ddof=1) for T in (X, Y)]
        for own, table, weights, fit_scores in zip(
            all_scores, scaled, (model.x_weights_, model.y_weights_), (model.x_scores_, model.y_scores_), strict=True
        ):
            own[held_out] = table @ weights[:, 0] / fit_scores[:, 0].std()
    r, row = np.corrcoef(*all_scores)[0, 1], tests.table.iloc[0]
    assert row["held_out_correlation"] == pytest.approx(r)
    assert row["held_out_low"] <= np.tanh(np.arctanh(r) - 1.96 / np.sqrt(47)) + 1e-12
    assert row["held_out_high"] >= np.tanh(np.arctanh(r) + 1.96 / np.sqrt(47)) - 1e-12
    own = tests.features[tests.features["table"] == "X"].set_index("name")["correlation"]
    for feature in own.index[:3]:
        assert own[feature] == pytest.approx(np.corrcoef(X[:, feature], all_scores[1])[0, 1])


def test_pairs_are_matched_by_their_scores_whatever_their_order_and_sign():
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((40, 3)), generator.standard_normal((40, 3))
    matched, similarity = match_scores((x, y), (-x[:, [2, 0]], -y[:, [2, 0]]))
    assert matched.tolist() == [1, -1, 0]
    np.testing.assert_allclose(similarity, [1, 0, 1])


@pytest.mark.parametrize("kind", MODELS)
def test_stable_features_are_the_planted_ones(kind):
    X, Y = named(*two_tables(0, 120, 1.5))
    model = kind(1, n_x=8, n_y=5)
    one = stability(model, X, Y, n_pairs=10, random_state=0)
    assert one.x.frequency.index[one.x.members[0]].tolist() == [f"x{j}" for j in range(8)]
    assert one.y.frequency.index[one.y.members[0]].tolist() == [f"y{j}" for j in range(5)]
    assert one.table["found"][0] == 1
    assert one.verdict.startswith("1 of 1 pair is found again in most halves; 8 of 8 features of X are stable (at mo")
    assert not one.at(max_false=1e-9).x.members.any()


def test_pairs_of_noise_are_not_found_again():
    X, Y = two_tables(1, 60, 0.0)
    found = stability(SparseGraphCCA(2, n_x=8), X, Y, n_pairs=8, random_state=0)
    assert found.y is None  # all features of Y are kept
    assert found.table["found"].max() < 0.5
    assert found.table["stable_x"].sum() == 0


def block_graph(size, block, order=None):
    """Every block of nodes is a clique."""
    same = np.arange(size)[:, None] // block == np.arange(size)[None] // block
    weights = (same & ~np.eye(size, dtype=bool)).astype(float)
    return Graph(sp.csr_array(weights if order is None else weights[order][:, order]))


def test_tune_chooses_the_planted_sizes_by_name():
    X, Y = named(*two_tables(0, 100, 1.0))
    model = SparseGraphCCA(1)
    grid = {"n_x": [2, 8, 30], "n_y": [1, 5, 20]}
    one = tune(model, X, grid, Y=Y, random_state=0)
    assert one.best_params_ == {"n_x": 8, "n_y": 5}
    assert one.best_estimator_.x_support_.sum() == 8
    assert {"mean_pairs", "mean_x_share", "mean_y_share", "param_n_x"} <= set(one.cv_results_)
    assert "the correlation of the scores of both tables in held-out samples" in one.verdict
    assert one.table.columns.tolist()[:2] == ["n_x", "n_y"]


def test_scores_of_tune_are_held_out_correlations():
    X, Y = two_tables(2, 50, 0.8, n_real=2)
    result = tune(SparseGraphPLS(2, n_y=5), X, {"n_x": [8]}, Y=Y, n_folds=3, random_state=1)
    seed = int(np.random.default_rng(1).integers(2**31))
    order = np.random.default_rng([seed, 0]).permutation(50)
    for number, held_out in enumerate(np.array_split(order, 3)):
        rest = np.setdiff1d(np.arange(50), held_out)
        model = SparseGraphPLS(2, n_x=8, n_y=5).fit(X[rest], Y[rest])
        x, y = model.transform(X[held_out], Y[held_out])
        expected = np.mean([np.corrcoef(x[:, k], y[:, k])[0, 1] for k in (0, 1)])
        assert result.cv_results_[f"split{number}_test_score"][0] == pytest.approx(expected)


@pytest.mark.nightly
def test_a_graph_that_fits_is_used_and_a_permuted_one_is_not():
    chosen = {"own": 0, "permuted": 0}
    for seed in range(6):
        X, Y = two_tables(seed, 40, 0.6, p=200)
        orders = {"own": None, "permuted": np.random.default_rng(seed).permutation(200)}
        for name, order in orders.items():
            model = SparseGraphCCA(1, n_x=8, n_y=5, x_graph=block_graph(200, 8, order))
            found = tune(model, X, {"x_smoothness": [0.0, 0.5]}, Y=Y, random_state=seed)
            chosen[name] += found.best_params_["x_smoothness"] > 0
    assert chosen["own"] >= 4
    assert chosen["permuted"] <= 2


def test_checkpoints_of_tune_belong_to_one_pair_of_tables(tmp_path):
    X, Y = two_tables(0, 40)
    model, grid, made = SparseGraphCCA(1, n_y=5), {"n_x": [4, 8]}, []
    first = tune(model, X, grid, Y=Y, checkpoint=tmp_path / "tuning", random_state=0)
    kept = {"checkpoint": tmp_path / "tuning", "random_state": 0}
    again = tune(model, X, grid, Y=Y, **kept, progress=lambda *n: made.append(n))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert not made
    with pytest.raises(ValueError, match="Y"):
        tune(model, X, grid, Y=Y + 1, checkpoint=tmp_path / "tuning", random_state=0)


BAD = (
    (lambda X, Y, m: pair_tests(m, X, Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (lambda X, Y, m: pair_tests(SparseGraphSVD(1), X, Y), TypeError, "a model of two tables is needed"),
    (lambda X, Y, m: stability(SparseGraphSVD(1), X, Y), TypeError, "SparseGraphCCA"),
    (lambda X, Y, m: stability(m, X), ValueError, "give the second one as Y="),
    (lambda X, Y, m: pair_tests(m, X, Y, n_permutations=0), ValueError, "n_permutations=0"),
    (lambda X, Y, m: pair_tests(m, X, Y, n_permutations=18), ValueError, "below 0.053, .*: use at least 19"),
    (lambda X, Y, m: pair_tests(m, X, Y, n_folds=30), ValueError, "choose 2 to 20"),
    (lambda X, Y, m: pair_tests(m, X, Y, strata=[1, 2]), ValueError, "there are 60 samples"),
    (lambda X, Y, m: pair_tests(m, X, Y, strata=range(60)), ValueError, "nothing can be permuted"),
    (lambda X, Y, m: tune(m, X, {"n_x": [2]}), ValueError, "give the second one as Y="),
    (lambda X, Y, m: tune(SparseGraphSVD(1), X, Y=Y), TypeError, "takes one table"),
    (lambda X, Y, m: tune(m, X, {"n_rows": [2]}, Y=Y), ValueError, "no parameter of SparseGraphCCA"),
    (lambda X, Y, m: tune(m, X, {"n_x": [99]}, Y=Y), ValueError, "grid point n_x=99: n_x=99 but X"),
    (lambda X, Y, m: stability(SparseGraphPLS(), X, Y), ValueError, "give n_x or n_y"),
    (lambda X, Y, m: stability(m, X[:5], Y[:5]), ValueError, "at least 6 are needed"),
    (lambda X, Y, m: tune(m, X, Y=Y, covariates=X[:, 0]), ValueError, "covariates have shape"),
)


def test_bad_input():
    for call, kind, message in BAD:
        with pytest.raises(kind, match=message):
            call(*two_tables(0), SparseGraphCCA(1, n_x=8, n_y=5))
    X, Y = two_tables(0, 12)
    with pytest.raises(ValueError, match="10 pairs but only 12 samples: at most 8 pairs can be tested"):
        pair_tests(SparseGraphCCA(10, n_x=3, n_y=3, deflation="hotelling"), X, Y, n_permutations=19, n_folds=2)


def test_outlier_samples_that_carry_a_pair_are_named():
    generator = np.random.default_rng(0)
    X, Y = generator.standard_normal((60, 40)), generator.standard_normal((60, 30))
    X[[3, 8], :10] += 8
    Y[[3, 8], :10] += 8
    names = [f"s{k}" for k in range(60)]
    tables = pd.DataFrame(X, index=names), pd.DataFrame(Y, index=names)
    found = pair_tests(SparseGraphPLS(1, n_x=10, n_y=10), *tables, n_permutations=19, random_state=0)
    assert found.table["carried_by"].tolist() == ["s3, s8"]
    assert found.table["verdict"][0] != "strong"
    assert found.table["extreme_samples"].tolist() == [""]  # they carry it
    sure = found.features[found.features["confidence"] >= 0.5]["table"].value_counts()
    assert found.table[["n_sure_1", "n_sure_2"]].to_numpy().tolist() == [[sure.get("X", 0), sure.get("Y", 0)]]
    Y[:, 10:20] += 2 * X[:, 20:30].mean(axis=1, keepdims=True)
    X[[3, 8], :10] -= 8
    without = pair_tests(SparseGraphPLS(1, n_x=10, n_y=10), X, Y, n_permutations=19, random_state=0)
    assert without.table["carried_by"].tolist() == [""]
    Y[5, 10:20] += 4
    extreme = pair_tests(SparseGraphPLS(1, n_x=10, n_y=10), X, Y, n_permutations=19, random_state=0)
    assert re.fullmatch(r"5 makes \d\d% of the variance of the scores in Y", extreme.table["extreme_samples"][0])


# Missing values


def with_holes(X, Y, share, seed=0):
    """The same tables with missing entries, and a feature of Y of which two values are known."""
    generator = np.random.default_rng(seed)
    X, Y = (np.where(generator.random(T.shape) < share, np.nan, T) for T in (X, Y))
    Y[:, -1] = np.nan
    Y[:2, -1] = 1.0, 2.0
    return X, Y


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_planted_pairs_are_found_in_tables_with_missing_values(kind, share):
    X, Y = with_holes(*two_tables(0, 100, n_real=2), share)
    model = kind(2, n_x=8, n_y=5, missing="ignore")
    tests = pair_tests(model, X, Y, n_permutations=19, random_state=0)
    found = [np.flatnonzero(support).tolist() for support in tests.reference.y_support_]
    assert sorted(found) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert (tests.table["p_value"] == 0.05).all()
    assert (tests.table["held_out_correlation"] > 0.6).all()
    assert stability(model, X, Y, n_pairs=3, random_state=0).table["found"].tolist() == [1, 1]
    assert tune(kind(1, n_x=8, missing="ignore"), X, {"n_y": [1, 5, 20]}, Y=Y, random_state=0).best_params_["n_y"] == 5


def test_features_with_few_observed_values_are_not_trusted_in_noise():
    """They are chosen because large correlations of few values are common; one factor makes the scores of X."""
    for seed in range(3):
        generator = np.random.default_rng(seed)
        X, Y = generator.standard_normal((60, 100)), generator.standard_normal((60, 800))
        X[:, :20] += 2 * generator.standard_normal((60, 1))
        Y[generator.random(Y.shape) < generator.uniform(0, 0.8, 800)] = np.nan
        model = SparseGraphCCA(1, n_x=20, n_y=20, missing="ignore")
        tests = pair_tests(model, X, Y, n_permutations=19, n_repeats=3, random_state=seed)
        assert tests.features["confidence"].mean() < 0.1
        assert (tests.features["confidence"] >= 0.8).sum() <= 1


@pytest.mark.parametrize("share", [0, 0.4])
def test_features_of_high_confidence_are_the_planted_ones(share):
    generator = np.random.default_rng(0)
    X, Y = generator.standard_normal((100, 200)), generator.standard_normal((100, 300))
    common = 1.5 * generator.standard_normal((100, 1))
    X[:, :20] += common * generator.uniform(0.3, 1.2, 20)
    Y[:, :20] += common * generator.uniform(0.3, 1.2, 20)
    Y[generator.random(Y.shape) < generator.uniform(0, 2 * share, 300)] = np.nan
    model = SparseGraphCCA(1, n_x=30, n_y=30, missing="ignore")
    tests = pair_tests(model, X, Y, n_permutations=19, n_repeats=3, random_state=0)
    sure = tests.features[tests.features["confidence"] >= 0.8]
    assert len(sure) >= 24
    assert (sure["name"] < 20).mean() >= 0.9


@pytest.mark.nightly
def test_pairs_of_noise_with_missing_values_are_rarely_significant():
    """Low values are missing more often, and some samples have many missing values."""
    found = 0
    for seed in range(60):
        generator = np.random.default_rng([seed, 1])
        tables = []
        for T in two_tables(seed, 30, 0.0):
            bad = np.minimum(generator.standard_normal((30, 1)), 1)
            tables.append(np.where(T - bad + generator.standard_normal(T.shape) < -1, np.nan, T))
        model = SparseGraphCCA(1, n_x=8, n_y=5, missing="ignore")
        with quiet():
            tests = pair_tests(model, *tables, n_permutations=19, n_folds=2, random_state=seed)
        found += tests.table["p_value"][0] <= 0.05
    assert found <= 8  # probability of more .005 if the level is .05


def test_a_missing_entry_is_the_mean_of_its_feature():
    X, Y = with_holes(*two_tables(1, 80), 0.2)
    model = SparseGraphPLS(2, n_x=8, n_y=5, missing="ignore").fit(X, Y)
    filled = [np.nan_to_num((T - np.nanmean(T, 0)) / np.nanstd(T, 0, ddof=1)) for T in (X, Y)]
    complete = SparseGraphPLS(2, n_x=8, n_y=5, scale=False).fit(*filled)
    np.testing.assert_allclose(model.x_weights_, complete.x_weights_, atol=1e-9)
    np.testing.assert_allclose(model.y_weights_, complete.y_weights_, atol=1e-9)
    for one, other in zip(model.transform(X, Y), (model.x_scores_, model.y_scores_), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)
    known = ~np.isnan(Y)
    r2 = [
        1 - np.sum((Y[own, j] - model.predict(X)[own, j]) ** 2) / np.sum((Y[own, j] - Y[own, j].mean()) ** 2)
        for j, own in enumerate(known.T)
    ]
    assert model.score(X, Y) == pytest.approx(np.mean(r2))


def test_tables_that_cannot_be_used_with_missing_values():
    X, Y = with_holes(*two_tables(1), 0.2)
    for model, tables, message in (
        (SparseGraphCCA(1), (X, Y), "X contains NaN: use missing='ignore'"),
        (SparseGraphCCA(1, missing="impute"), (X, Y), "missing='impute'"),
        (SparseGraphCCA(1, missing="ignore"), (sp.csr_array(X), Y), "X is sparse and has missing entries"),
        (SparseGraphCCA(1, missing="ignore"), (X, np.where(np.arange(60)[:, None] == 3, np.nan, Y)), "row 3 of Y has"),
        (SparseGraphCCA(1, missing="ignore"), (X, np.where(Y > 1, np.inf, Y)), "Y contains infinity: replace them"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*tables)
