"""The number of modules: planted modules are counted, noise has none, threads make no difference."""

import numpy as np
import pandas as pd
import pytest

import netbic
from netbic import SparseGraphSVD
from netbic.operators.corrected import winsorised
from netbic.selection import n_modules
from netbic.selection.n_modules import Evening, with_random_signs
from support.simulations import NOISE, three_modules_in_noise

model = SparseGraphSVD(n_rows=20, n_columns=20, center=None)


@pytest.mark.nightly
def test_three_planted_modules_are_counted():
    matrices = (three_modules_in_noise(0.03, seed) for seed in range(12))
    found = np.array([n_modules(model, X, most=6, random_state=seed).n for seed, X in enumerate(matrices)])
    assert (abs(found - 3) <= 1).all()
    assert (found == 3).mean() > 0.8


@pytest.mark.parametrize(
    "kind",
    [
        "uneven samples",
        *(pytest.param(k, marks=pytest.mark.nightly) for k in ("normal", "t4", "lognormal", "uneven genes", "counts")),
    ],
)
def test_noise_has_no_modules(kind):
    """Noise of features and samples may differ; columns that are permuted fail for uneven samples and counts."""
    for sizes in ({"n_columns": 20}, {"n_rows": 20, "n_columns": 20}):
        matrices = (NOISE[kind](np.random.default_rng(seed), 100, 100) for seed in range(16))
        found = [n_modules(SparseGraphSVD(**sizes), X, most=1, random_state=seed).n for seed, X in enumerate(matrices)]
        assert sum(found) <= 4  # of 16: probability of more .001 if the level is .05


def test_random_signs_keep_means_and_distances():
    X = np.random.default_rng(0).gamma(1.0, size=(50, 30))
    copy = with_random_signs(X, np.full(50, 1 / np.sqrt(50)), np.random.default_rng(1))
    np.testing.assert_allclose(copy.mean(axis=0), X.mean(axis=0))
    assert np.corrcoef(np.abs(copy - X.mean(axis=0)).ravel(), np.abs(X - X.mean(axis=0)).ravel())[0, 1] > 0.95
    assert abs(np.corrcoef((copy - X.mean(axis=0)).ravel(), (X - X.mean(axis=0)).ravel())[0, 1]) < 0.1
    assert copy.var() == pytest.approx(X.var(), rel=0.1)


def test_samples_are_scaled_to_similar_noise_only_if_they_differ():
    generator = np.random.default_rng(0)
    even = generator.standard_normal((60, 400)) + 5
    scales = np.exp(generator.normal(0, 0.5, (60, 1)))
    mean = even.mean(axis=0)
    uneven = mean + (even - mean) * scales
    before, after = (
        np.log((X - X.mean(axis=0)).std(axis=1)).std() for X in (uneven, Evening(uneven, False).apply(uneven)[0])
    )
    assert before > 0.4
    assert after < 0.15
    np.testing.assert_allclose(Evening(even, False).apply(even)[0], winsorised(even), atol=0.25)
    np.testing.assert_allclose(Evening(uneven, False).apply(uneven)[0].mean(axis=0), mean, atol=0.3)
    constant = np.ones((5, 4))
    np.testing.assert_array_equal(Evening(constant, False).apply(constant)[0], constant)


def test_errors_of_column_means_do_not_look_like_a_module():
    """Scaled to similar noise, a column mean has the shape 1 / noise; what is left of it is regressed out."""
    generator = np.random.default_rng(1)
    X = generator.standard_normal((60, 400)) * np.exp(generator.normal(0, 0.5, (60, 1)))
    values, shape = Evening(X - X.mean(axis=0), True).apply(X - X.mean(axis=0))
    np.testing.assert_allclose(shape @ values, 0, atol=1e-10)
    copy = with_random_signs(values, shape, np.random.default_rng(2))
    np.testing.assert_allclose(shape @ copy, 0, atol=1e-10)
    assert np.linalg.norm(copy) == pytest.approx(np.linalg.norm(values), rel=0.01)


def test_p_values_are_ranks_and_singular_values_those_of_the_estimator():
    X = three_modules_in_noise(0.04, 1)
    count = n_modules(model, X, most=5, early_stopping=False, random_state=0)
    p = count.table["p_value"].to_numpy()
    expected = np.minimum.accumulate((np.sort(p) * p.size / np.arange(1, p.size + 1))[::-1])[::-1]
    np.testing.assert_allclose(count.table["q_value"], expected[np.argsort(np.argsort(p))])
    first = SparseGraphSVD(1, n_rows=20, n_columns=20, center=None).fit(Evening(X, False).apply(X)[0])
    assert count.table["statistic"].iloc[0] == first.singular_values_[0]
    assert set(np.round(count.table["p_value"] * 20, 9)) <= set(range(1, 21))
    assert (count.table["p_value"].iloc[:-1] <= 0.05).all()
    assert not count.exhausted
    assert count.verdict.startswith(f"{count.n} modules stand out; the next does not")


def test_a_graph_and_the_data_frame_make_no_difference():
    study = netbic.simulate.cohort(150, 500, n_modules=2, module_samples=30, strength=1.2, random_state=0)
    plain = SparseGraphSVD(n_rows=30, n_columns=60)
    with_graph = SparseGraphSVD(n_rows=30, n_columns=60, column_graph=study.network, column_smoothness=0.5)
    one = n_modules(plain, study.expression.to_numpy(), most=3, random_state=0)
    other = n_modules(with_graph, study.expression, most=3, random_state=0, n_jobs=2)
    pd.testing.assert_frame_equal(one.table, other.table)
    assert one.n == 2


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3))])
def test_early_stopping_gives_the_same_number_with_fewer_copies(seed):
    X = three_modules_in_noise(0.05, seed)
    all_copies = n_modules(model, X, most=5, early_stopping=False, random_state=seed)
    one, two = (n_modules(model, X, most=5, random_state=seed, n_jobs=n_jobs) for n_jobs in (1, 2))
    pd.testing.assert_frame_equal(one.table, two.table)
    assert one.n == all_copies.n
    assert one.table["statistic"].tolist() == all_copies.table["statistic"].tolist()
    last = one.table["p_value"].iloc[-1]
    assert last > 0.05
    rank = 20 * all_copies.table["p_value"].iloc[-1] - 1  # copies that are at least as strong
    assert last == (rank + 1) / 20 if rank < 3 else (3 / last).round() == pytest.approx(3 / last)


def test_noise_is_updated_after_a_module_is_subtracted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 600)) * np.exp(0.5 * rng.standard_normal((40, 1)))
    evening, changed = Evening(X, True), X.copy()
    changed[:, 100:400] += 3 * rng.standard_normal((40, 1))
    evening.replace(X[:, 100:400], changed[:, 100:400])
    np.testing.assert_allclose(evening.apply(changed)[0], Evening(changed, True).apply(changed)[0], atol=1e-9)


def test_single_precision_is_kept_and_gives_the_same_number():
    X = three_modules_in_noise(0.03, 2)
    single = X.astype(np.float32)
    evened = Evening(single, True, n_threads=2).apply(single)
    assert evened[0].dtype == with_random_signs(*evened, np.random.default_rng(0)).dtype == np.float32
    one, two = (n_modules(model, data, most=4, random_state=0).table for data in (X, single))
    np.testing.assert_allclose(one["statistic"], two["statistic"], rtol=1e-4)
    assert one["p_value"].tolist() == two["p_value"].tolist()


def test_bad_input():
    for options, message in (
        ({"n_permutations": 10}, r"n_permutations=10: no p-value can be below 0.091, .*: use at least 19"),
        ({"level": 2.0}, "level=2.0"),
        ({"most": 0}, "most=0"),
        ({"X": np.full((100, 100), np.nan)}, "missing values"),
    ):
        with pytest.raises(ValueError, match=message):
            n_modules(model, **{"X": three_modules_in_noise(0.03, 0)} | options)


def test_exhausted_counts():
    few = n_modules(model, three_modules_in_noise(0.02, 0), most=2, random_state=0)
    assert few.exhausted
    assert few.verdict == "At least 2 modules stand out; no more were tested."
