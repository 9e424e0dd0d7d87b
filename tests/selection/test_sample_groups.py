"""Groups of samples: calibration, power, invariances, and the same result for every kind of matrix."""

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.metrics import adjusted_rand_score

import netbic
from netbic import Dense, SparseGraphSVD
from netbic.selection import SampleGroups, group_summary, sample_groups
from netbic.selection.score_groups import (
    exponential_power_likelihood,
    fit_location_mixture,
    score_groups,
    sinh_arcsinh_likelihood,
)

ONE_GROUP = {
    "normal": lambda generator, n: generator.standard_normal(n),
    "t5": lambda generator, n: generator.standard_t(5, n),
    "gamma": lambda generator, n: generator.gamma(2, size=n),
    "lognormal": lambda generator, n: generator.lognormal(size=n),
    "uniform": lambda generator, n: generator.random(n),
}


def half_zero(draw, share=0.5):
    """Scores of which a share is exactly zero."""
    return lambda generator, n: np.append(np.zeros(round(share * n)), draw(generator, n - round(share * n)))


TIED = {
    "half zero, exponential": half_zero(lambda generator, n: generator.exponential(size=n)),
    "mostly zero, exponential": half_zero(lambda generator, n: generator.exponential(size=n), 0.8),
    "half zero, half normal": half_zero(lambda generator, n: np.abs(generator.standard_normal(n))),
    "half zero, normal": half_zero(lambda generator, n: generator.standard_normal(n)),
    "censored": lambda generator, n: np.maximum(generator.standard_normal(n), 0),
    "counts": lambda generator, n: generator.poisson(0.7, n),
    "rounded": lambda generator, n: np.round(generator.standard_normal(n)),
    "sparse counts": lambda generator, n: np.log1p(
        generator.poisson(0.1 * generator.exponential(size=(n, 1)), (n, 20))
    ).sum(1),
}


def two_groups(generator, n=200, share=0.3, gap=4.0, deviation=1.0):
    """Scores, and which of them belong to the upper group."""
    upper = generator.permutation(n) < round(share * n)
    return generator.standard_normal(n) * np.where(upper, deviation, 1.0) + gap * upper, upper


@pytest.mark.nightly
@pytest.mark.parametrize("name", ONE_GROUP)
def test_one_group_is_a_gradient(name):
    """False groups in at most 3 of 100 vectors; lengths from 30 to 500."""
    generator = np.random.default_rng(100)
    found = [score_groups(ONE_GROUP[name](generator, n)) for n in [30] * 10 + [100] * 10 + [200] * 8 + [500] * 2]
    assert sum(not one.is_gradient for one in found) <= 1
    assert all((one.labels == 0).all() for one in found if one.is_gradient)


@pytest.mark.nightly
def test_groups_are_found():
    for share, gap in ((0.1, 5), (0.3, 4), (0.5, 4), (0.05, 6)):
        generator, agreements = np.random.default_rng(7), []
        for _ in range(10):
            scores, upper = two_groups(generator, 200, share, gap)
            agreements.append(adjusted_rand_score(upper, score_groups(scores).labels))
        assert np.mean(np.array(agreements) > 0.5) >= 0.9
        assert np.mean(agreements) > 0.8


def test_groups_may_have_unequal_variances():
    generator = np.random.default_rng(8)
    for deviation, gap in ((0.5, 6), (3, 12)):
        scores, upper = two_groups(generator, 300, 0.25, gap, deviation)
        found = score_groups(scores)
        assert found.sizes.size == 2
        assert adjusted_rand_score(upper, found.labels) > 0.95
    # Three groups, one of them too small, may have the best BIC.
    generator = np.random.default_rng(0)
    scores = np.concatenate([generator.standard_normal(137), 14 + 0.7 * generator.standard_normal(61), [10.4, 10.6]])
    assert score_groups(scores).sizes.tolist() == [137, 63]


def test_three_groups():
    generator = np.random.default_rng(9)
    truth = np.repeat([-1, 0, 1], [30, 140, 30])
    found = score_groups(generator.standard_normal(200) + 6 * truth)
    assert (found.labels == truth).mean() > 0.98
    assert found.down_below == pytest.approx(-3, abs=0.7)
    assert found.up_above == pytest.approx(3, abs=0.7)


def test_up_and_down_are_relative_to_the_bulk():
    for sizes, expected in (
        ((160, 40), (0, 1)),
        ((40, 160), (-1, 0)),
        ((90, 110), (-1, 1)),  # no bulk: both are named
        ((70, 65, 65), (-1, 0, 1)),
        ((140, 30, 30), (0, 1, 1)),
        ((40, 45, 115), (-1, -1, 0)),
        ((80, 45, 75), (-1, 0, 1)),
    ):
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        scores = 8.0 * numbers + np.random.default_rng(1).standard_normal(200)
        assert (score_groups(scores).labels == np.array(expected)[numbers]).all()


def test_labels_follow_the_scores_whatever_the_variances():
    """A wide group must not surround a narrow one: labels increase with the score."""
    generator = np.random.default_rng(2)
    for _ in range(5):
        scores, _ = two_groups(generator, 300, 0.4, 7, 2.5)
        labels = score_groups(scores).labels
        assert np.unique(labels).size == 2
        assert (np.diff(labels[np.argsort(scores)]) >= 0).all()


def test_shift_scale_order_and_sign_do_not_matter():
    generator = np.random.default_rng(3)
    scores, _ = two_groups(generator)
    order, one = generator.permutation(200), score_groups(scores)
    for offset, factor in ((0, 1e-30), (0, 1e30), (50, 3.0), (-7, 0.01)):
        other = score_groups(offset + factor * scores[order])
        assert (other.labels == one.labels[order]).all()
        assert other.gain == pytest.approx(one.gain, rel=1e-3)
        assert other.margin == pytest.approx(one.margin, rel=1e-2)
        np.testing.assert_allclose(other.means, offset + factor * one.means, rtol=1e-3)
    assert (score_groups(-scores).labels == -one.labels).all()
    with_gaps = score_groups(np.insert(scores, [0, 100, 200], np.nan)).labels  # they belong to no group
    np.testing.assert_array_equal(with_gaps, np.insert(one.labels, [0, 100, 200], 0))


def test_degenerate_scores_have_no_groups():
    for scores in ([], [1.0], [np.nan] * 9, [2.0] * 50, [1.0, 2.0, 3.0], [0.0] * 49 + [1.0]):
        found = score_groups(np.array(scores))
        assert found.is_gradient
        assert found.labels.tolist() == [0] * len(scores)


def test_many_scores_are_represented_by_quantiles():
    scores, upper = two_groups(np.random.default_rng(5), 40_000, 0.2, 6)
    assert adjusted_rand_score(upper, score_groups(scores).labels) > 0.97
    assert score_groups(np.random.default_rng(5).gamma(2, size=20_000)).is_gradient


def test_likelihoods_of_one_group_agree_with_scipy():
    """Both families contain the normal distribution; their maxima reach at least those of scipy's fits."""
    scores = np.random.default_rng(6).standard_normal(300)
    normal = stats.norm.logpdf(scores, scores.mean(), scores.std()).sum()
    for likelihood in (sinh_arcsinh_likelihood, exponential_power_likelihood):
        assert normal - 0.01 < likelihood(scores) < normal + 5
    laplace = np.random.default_rng(6).laplace(size=300)
    symmetric = stats.gennorm.logpdf(laplace, *stats.gennorm.fit(laplace)).sum()
    assert exponential_power_likelihood(laplace) > symmetric - 0.1


def test_the_mixture_is_a_maximum_of_the_likelihood():
    scores, _ = two_groups(np.random.default_rng(10), gap=5)
    found = fit_location_mixture(scores, 2, equal_variances=False)
    assert found.likelihood == pytest.approx(np.log(found.density(scores)).sum())

    def likelihood(means, deviations, weight):
        parts = stats.norm.pdf(scores[:, None], means, deviations) * [1 - weight, weight]
        return np.log(parts.sum(axis=1)).sum()

    best = found.means, np.sqrt(found.variances), found.weights[1]
    for change in (0.97, 1.03):
        for at in range(3):
            moved = [value * change if place == at else value for place, value in enumerate(best)]
            assert likelihood(*moved) < likelihood(*best) + 1e-2


# Models


def subtypes(shift, seed, n=150, p=600, size=40):
    """Four disjoint sets of genes, each shifted in a random 15 to 50 % of the samples."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, p))
    members = np.array([generator.permutation(n) < round(share * n) for share in (0.15, 0.25, 0.4, 0.5)])
    for number, rows in enumerate(members):
        X[np.ix_(rows, np.arange(number * size, (number + 1) * size))] += shift
    return X, members


def by_truth(model, size=40):
    """The number of the module of each planted set of genes."""
    return [int(np.argmax(model.columns_[:, k * size : (k + 1) * size].sum(axis=1))) + 1 for k in range(4)]


def test_subtypes_of_patients_are_found():
    agreements = []
    for seed in range(3):
        X, members = subtypes(1, seed)
        model = SparseGraphSVD(4, n_columns=40).fit(X)
        table = sample_groups(model, X).set_index("module")
        found = [table.loc[module, "group"] for module in by_truth(model)]
        agreements += [adjusted_rand_score(*pair) for pair in zip(members, found, strict=True)]
    assert np.mean(agreements) >= 0.85


@pytest.mark.parametrize("name", [pytest.param(k, marks=[pytest.mark.nightly] * (k != "counts")) for k in TIED])
def test_tied_scores_of_one_distribution_are_a_gradient(name):
    """Without spreading, rounded scores and counts have as many groups as values."""
    found = [score_groups(TIED[name](np.random.default_rng(seed), (60, 200)[seed % 2])) for seed in range(30)]
    assert sum(not each.is_gradient for each in found) <= 1


def test_groups_are_found_if_all_others_are_tied():
    """A heavy-tailed distribution with a narrow peak at the tied scores would explain all of them."""
    for seed, n_members in enumerate((20, 80)):
        members = np.random.default_rng(seed).normal(5, 1, n_members)
        scores = np.append(np.zeros(200 - n_members), members)
        for factor in (1.0, -1e-6):
            found = score_groups(factor * scores)
            assert found.sizes.tolist() == [200 - n_members, n_members][:: int(np.sign(factor))]


def test_noise_has_no_groups():
    X = np.random.default_rng(0).standard_normal((150, 600))
    summary = group_summary(SparseGraphSVD(8, n_columns=40).fit(X), X)
    assert (summary["kind"] == "gradient").sum() >= 7
    assert summary["result"].value_counts().index[0] == "gradient: use the scores"


def test_groups_of_selected_samples_are_marked():
    X, _ = subtypes(2, 14)
    model = SparseGraphSVD(1, n_rows=30, n_columns=40).fit(X)
    assert group_summary(model, X)["result"][0].endswith("(the fit selected samples: no evidence of groups)")
    assert not group_summary(model, X[:120])["selected"].any()
    for penalty in (None, Dense()):
        model = SparseGraphSVD(1, n_columns=40, row_penalty=penalty).fit(X)
        assert group_summary(model, X)["result"][0].endswith("of 150 samples")
        assert not group_summary(model, X)["selected"].any()


@pytest.fixture(scope="module")
def fitted():
    X, _ = subtypes(2, 11)
    table = pd.DataFrame(X, index=[f"sample{i}" for i in range(150)], columns=[f"gene{j}" for j in range(600)])
    return table, SparseGraphSVD(2, n_columns=40, scale=True).fit(table)


def test_the_table_has_all_samples_in_order(fitted):
    X, model = fitted
    table = sample_groups(model, X)
    assert list(table.columns) == ["module", "sample", "score", "group"]
    assert table["module"].tolist() == [1] * 150 + [2] * 150
    assert table["sample"].tolist() == 2 * list(X.index)
    assert set(table["group"]) <= {"up", "down", ""}
    scaled = (X - X.mean()) / X.std(ddof=0)
    expected = scaled.to_numpy() @ model.components_.T
    np.testing.assert_allclose(table["score"], expected.T.ravel(), atol=1e-10)
    part = sample_groups(model, X.iloc[20:120])  # as new samples
    assert part["sample"].tolist() == 2 * list(X.index[20:120])
    np.testing.assert_allclose(part["score"], expected[20:120].T.ravel(), atol=1e-10)
    flipped = SparseGraphSVD(2, n_columns=40, scale=True).fit(-X)
    turned = table["group"].replace({"up": "down", "down": "up"})
    assert sample_groups(flipped, -X)["group"].tolist() == turned.tolist()


def test_the_summary_counts_the_table(fitted):
    X, model = fitted
    found = SampleGroups.find(model, X)
    for _, row in found.summary.iterrows():
        scores = found.table.loc[found.table["module"] == row["module"]]
        assert row["up"] == (scores["group"] == "up").sum() == (scores["score"] > row["up_above"]).sum()
        assert row["down"] == (scores["group"] == "down").sum() == (scores["score"] <= row["down_below"]).sum()
        assert row["kind"] == "groups"
        assert row["samples"] == 150
        assert min(row["bic_gain"] - 10, row["bic_margin"] - 6) >= 0
    counts = [f"{name} in {row[name]}" for name in ("up", "down") if row[name]]
    assert row["result"] == f"{' and '.join(counts)} of 150 samples"
    pd.testing.assert_frame_equal(group_summary(model, X), found.summary)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_all_kinds_of_matrices_have_the_same_groups(fitted):
    X, model = fitted
    names = list(X.index)
    expected = sample_groups(model, X)
    for other in (sp.csr_array(X.to_numpy()), dask.array.from_array(X.to_numpy(), chunks=(40, 600)), X.to_numpy()):
        table = sample_groups(model, other, names=names)
        np.testing.assert_allclose(table["score"], expected["score"], atol=1e-8)
        assert table["group"].tolist() == expected["group"].tolist()
    assert sample_groups(model, X.to_numpy())["sample"].tolist() == 2 * list(range(150))


def test_missing_entries_change_little():
    X, members = subtypes(2, 12)
    generator = np.random.default_rng(0)
    incomplete = np.where(generator.random(X.shape) < 0.2, np.nan, X)
    incomplete[3, :160] = np.nan  # all genes of the modules
    for missing in ("ignore", "impute"):
        model = SparseGraphSVD(4, n_columns=40, missing=missing).fit(incomplete)
        table = sample_groups(model, incomplete)
        for rows, module in zip(members, by_truth(model), strict=True):
            one = table.loc[table["module"] == module]
            assert np.isnan(one["score"].iloc[3])
            assert one["group"].iloc[3] == ""
            seen = np.arange(150) != 3
            assert adjusted_rand_score(rows[seen], one["group"].to_numpy()[seen]) > 0.9


def test_searches_and_bad_input(fitted):
    X, model = fitted
    with pytest.raises(TypeError, match="a SparseGraphSVD is needed"):
        sample_groups(object(), X)
    with pytest.raises(ValueError, match="names has 2 entries but X has 150 samples"):
        sample_groups(model, X, names=["a", "b"])
    with pytest.raises(ValueError, match="feature names should match"):
        sample_groups(model, X.iloc[:, :20])
    with pytest.raises(ValueError, match="NaN"):
        sample_groups(model, X.mask(X > 2))


def test_a_model_without_modules_has_empty_tables():
    X = np.random.default_rng(0).standard_normal((20, 8))
    with pytest.warns(UserWarning, match="found 0 of 1 modules: the column penalty .* keeps no column"):
        model = SparseGraphSVD(1, column_penalty=netbic.L1(1e6)).fit(X)
    found = SampleGroups.find(model, np.zeros((20, 8)))
    assert found.table.empty
    assert found.summary.empty
    assert list(found.table.columns) == ["module", "sample", "score", "group"]
    assert "result" in found.summary
