"""Null distributions, confidence intervals and degenerate input of the tests."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from netbic.association.tests import (
    Result,
    chi_squared,
    cox,
    fisher,
    kaplan_meier,
    kruskal_wallis,
    linear_model,
    log_rank,
    mann_whitney,
    noncentrality_interval,
    pearson,
    spearman,
    standardised_difference,
)


def null_p_values(test, seed, runs):
    """p-values of permuted scores."""
    generator = np.random.default_rng(seed)
    scores = np.sort(generator.standard_normal(120))
    return np.array([test(generator.permutation(scores), np.random.default_rng(seed)).p for _ in range(runs)])


def labels(generator):
    return generator.integers(3, size=120)


def times(generator, n=120):
    return generator.exponential(size=n), generator.uniform(size=n) < 0.6


def score_test(scores, generator):
    model = cox(*times(generator), scores)
    return Result(model.score, model.p(model.score), model.hazard_ratio()[0])


CONTINUOUS = {
    "Kruskal-Wallis": lambda scores, own: kruskal_wallis(scores, labels(own)),
    "Mann-Whitney": lambda scores, own: mann_whitney(scores, labels(own) == 0),
    "Spearman": lambda scores, own: spearman(scores, own.standard_normal(120)),
    "Pearson": lambda scores, own: pearson(scores, own.standard_normal(120)),
    "partial Spearman": lambda scores, own: spearman(scores, own.standard_normal(120), own.standard_normal((120, 2))),
    "linear model": lambda scores, own: linear_model(scores, labels(own), own.standard_normal((120, 2))),
    "difference": lambda scores, own: standardised_difference(scores, labels(own) == 1, own.normal(size=(120, 1))),
    "Cox score": score_test,
}


@pytest.mark.parametrize("runs", [150, pytest.param(1000, marks=pytest.mark.nightly)])
def test_p_values_of_permuted_scores_are_uniform(runs):
    for name, test in CONTINUOUS.items():
        assert stats.kstest(null_p_values(test, 103, runs), "uniform").pvalue > 0.001, name


def assert_not_anticonservative(p):
    for level in (0.01, 0.05, 0.1, 0.2):
        assert np.mean(p <= level) <= level + 2 * np.sqrt(level * (1 - level) / len(p)), level


DISCRETE = {
    "Fisher": lambda scores, own: fisher(scores > np.quantile(scores, 0.8), labels(own) == 0),
    "Mann-Whitney, exact": lambda scores, own: mann_whitney(scores[:12], np.arange(12) < 4),
    "Mann-Whitney, ties": lambda scores, own: mann_whitney(np.round(scores), labels(own) == 0),
    "log-rank": lambda scores, own: log_rank(*times(own), scores > 0),
}


def test_discrete_p_values_are_not_too_small():
    for test in DISCRETE.values():
        assert_not_anticonservative(null_p_values(test, 202, 400))


@pytest.mark.nightly
def test_simulated_p_values_are_not_too_small():
    generator, p = np.random.default_rng(7), []
    levels, groups = np.repeat([0, 1, 2], [16, 5, 3]), np.repeat([0, 1, 2], [4, 5, 15])
    for _ in range(150):
        own = generator.permutation(groups)
        found, simulated = chi_squared(np.array([np.bincount(levels[own == group], minlength=3) for group in range(3)]))
        assert simulated
        p.append(found.p)
    assert_not_anticonservative(np.array(p))


def auc(generator, n, shift):
    inside = np.arange(n) < n // 3
    return mann_whitney(generator.standard_normal(n) + shift * inside, inside), stats.norm.cdf(shift / np.sqrt(2))


def difference(generator, n, shift):
    inside, design = np.arange(n) < n // 3, generator.standard_normal((n, 2))
    scores = generator.standard_normal(n) + shift * inside + design.sum(axis=1)
    return standardised_difference(scores, inside, design), shift


def rank_correlation(generator, n, shift):
    x, r = generator.standard_normal(n), np.sin(np.arctan(shift))
    y = r * x + np.sqrt(1 - r**2) * generator.standard_normal(n)
    return spearman(x, y), 6 / np.pi * np.arcsin(r / 2)


def hazard(generator, n, shift):
    x = generator.standard_normal(n)
    t, end = generator.exponential(size=n) * np.exp(-shift / 2 * x), generator.exponential(size=n) * 1.5
    return Result(0, 0, *cox(np.minimum(t, end), t <= end, x).hazard_ratio()), np.exp(shift / 2)


def curve_at(generator, n, shift):
    """Survival at the time where its true value is 0.95 (shift 0) or less."""
    t, end, at = generator.exponential(size=n), generator.uniform(0.2, 4, n), 0.05 + shift / 4
    row = kaplan_meier(np.minimum(t, end), t <= end)
    row = row[row["time"] <= at].iloc[-1:] if (row["time"] <= at).any() else None
    limits = (0, 1) if row is None else (row["ci_low"].item(), row["ci_high"].item())
    return Result(0, 0, 0, *limits), np.exp(-at)


@pytest.mark.parametrize("runs", [250, pytest.param(2000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("draw", [auc, difference, rank_correlation, hazard, curve_at])
def test_intervals_cover(draw, runs):
    for n, shift in ((24, 0), (24, 3), (80, 0), (80, 3)):
        generator = np.random.default_rng(11)
        drawn = [draw(generator, n, shift) for _ in range(runs)]
        covered = np.mean([found.low <= true <= found.high for found, true in drawn])
        assert covered >= 0.92 - 2 * np.sqrt(0.05 * 0.95 / runs), (n, shift)


def test_limits_of_a_noncentral_t_distribution():
    for statistic, df in ((0.0, 5), (2.5, 4), (-2.5, 4), (8, 22), (60, 300), (99, 3)):
        low, high = noncentrality_interval(statistic, df)
        quantiles = stats.nct.cdf(statistic, df, low), stats.nct.cdf(statistic, df, high)
        assert quantiles == pytest.approx((0.975, 0.025), abs=1e-6)
    for df in (1, 22, 500, 100_000):  # the approximation continues the exact limits
        for exact, approximate in zip(*(noncentrality_interval(each, df) for each in (100.0, 100.0001)), strict=True):
            assert approximate == pytest.approx(exact, rel=0.03)
    assert np.isfinite(noncentrality_interval(1e8, 1)).all()


def test_the_auc_counts_pairs_and_its_variance_is_that_of_delong():
    generator = np.random.default_rng(3)
    scores, inside = np.round(generator.standard_normal(40), 1), generator.uniform(size=40) < 0.4
    found = mann_whitney(scores, inside)
    wins = np.sign(scores[inside][:, None] - scores[~inside][None, :]) / 2 + 0.5
    assert found.effect == pytest.approx(wins.mean())
    parts = [wins.mean(axis=axis).var(ddof=1) / wins.shape[1 - axis] for axis in (1, 0)]
    variance = sum(parts)
    df = variance**2 / (parts[0] ** 2 / (wins.shape[0] - 1) + parts[1] ** 2 / (wins.shape[1] - 1))
    logit, half = np.log(found.effect / (1 - found.effect)), stats.t.ppf(0.975, df) * np.sqrt(variance)
    half /= found.effect * (1 - found.effect)
    assert (found.low, found.high) == pytest.approx(1 / (1 + np.exp(-(logit + half * np.array([-1, 1])))))


def test_a_complete_separation_has_an_interval_of_positive_length():
    found = mann_whitney(np.arange(20.0), np.arange(20) >= 15)
    assert found.effect == found.high == 1
    assert 0.6 < found.low < 0.95
    flipped = mann_whitney(-np.arange(20.0), np.arange(20) >= 15)
    assert (flipped.effect, flipped.low, flipped.high) == pytest.approx((0, 0, 1 - found.low))
    first = np.arange(10_000) < 3000
    same, other = fisher(first, first), fisher(first, ~first)
    assert (same.effect, same.high, other.effect, other.low) == (np.inf, np.inf, 0, 0)
    assert same.low > 1000
    assert same.p == other.p == 0  # below the smallest number


def test_reversing_the_scores_reverses_the_effects():
    generator = np.random.default_rng(4)
    scores, inside, other = generator.standard_normal(50), np.arange(50) < 15, generator.standard_normal(50)
    up, down = mann_whitney(scores, inside), mann_whitney(-scores, inside)
    assert (up.effect, up.low, up.p) == pytest.approx((1 - down.effect, 1 - down.high, down.p))
    for test in (spearman, pearson):
        assert test(scores, other).effect == pytest.approx(-test(-scores, other).effect)
    t, events = times(generator, 50)
    up, down = cox(t, events, scores), cox(t, events, -scores)
    assert up.hazard_ratio()[0] == pytest.approx(1 / down.hazard_ratio()[0])
    assert up.score == pytest.approx(down.score)
    alone = cox(t, events, inside.astype(float))  # the log-rank test is its score test if no times are tied
    assert log_rank(t, events, inside).statistic == pytest.approx(alone.score, rel=1e-10)


def test_a_cox_model_without_a_maximum_says_so():
    t = np.arange(1.0, 21)
    model = cox(t, np.arange(20) < 8, (np.arange(20) < 8).astype(float))
    assert not model.converged
    assert model.hazard_ratio()[0] == np.inf
    assert np.isnan(model.hazard_ratio()[1:]).all()
    assert model.p(model.score) < 0.001


def test_nearly_separated_events_are_no_crash():
    for seed in (63, 82, 204, 266, 315, 497):
        generator = np.random.default_rng(seed)
        n = int(generator.integers(8, 25))
        x = generator.standard_normal(n)
        t, end = generator.exponential(size=n) * np.exp(-1.6 * x), generator.exponential(size=n) * 0.3
        model = cox(np.minimum(t, end), t <= end, x)
        assert not model.converged
        assert model.hazard_ratio()[0] in (0, np.inf)
        assert 0 < model.p(model.score) < 1


def test_cox_coefficients_do_not_depend_on_units_or_dependent_covariates():
    generator = np.random.default_rng(6)
    t, events = times(generator, 80)
    x, covariates = generator.standard_normal(80), generator.standard_normal((80, 2))
    plain = cox(t, events, x, covariates)
    other = cox(t, events, 1000 * x + 5, np.column_stack([covariates, covariates.sum(axis=1), np.ones(80)]))
    assert other.coefficients[0] * 1000 == pytest.approx(plain.coefficients[0], rel=1e-8)
    assert other.score == pytest.approx(plain.score, rel=1e-8)


def test_what_cannot_be_tested_is_undefined():
    scores, nothing = np.arange(6.0), np.zeros(6, dtype=bool)
    assert np.isnan(mann_whitney(scores, nothing).p)
    assert np.isnan(mann_whitney(np.ones(6), np.arange(6) < 3).p)
    assert np.isnan(kruskal_wallis(scores, np.zeros(6, dtype=int)).p)
    assert np.isnan(spearman(scores, np.ones(6)).p)
    assert np.isnan(pearson(scores, scores**2, scores[:, None]).p)
    assert np.isnan(fisher(nothing, np.arange(6) < 3).p)
    assert np.isnan(chi_squared(np.array([[3, 3], [0, 0]]))[0].p)
    assert np.isnan(linear_model(scores, np.repeat([0, 1], 3), np.repeat([0.0, 1.0], 3)[:, None]).p)
    assert np.isnan(log_rank(scores, nothing, np.arange(6) < 3).p)
    assert cox(scores, nothing, scores) is None
    assert cox(scores, ~nothing, np.ones(6)) is None
    assert cox(scores, ~nothing, scores, scores[:, None]) is None
    assert kaplan_meier(scores, nothing)["survival"].eq(1).all()


def test_exact_spearman_p_values_are_those_of_all_permutations():
    y = np.array([2.0, 1, 4, 3, 6, 5])
    found = spearman(np.arange(6.0), y)
    own = np.array([np.corrcoef(np.arange(6), order)[0, 1] for order in permutations(range(6))])
    assert found.p == pytest.approx(2 * np.mean(own >= found.effect - 1e-9))
    p = np.array([spearman(np.array(order, dtype=float), np.arange(6.0)).p for order in permutations(range(6))])
    for level in np.unique(p):  # not too small for any of the orders, which are equally likely
        assert np.mean(p <= level) <= level + 1e-12


def test_the_kruskal_wallis_test_of_few_samples_is_exact():
    generator = np.random.default_rng(0)
    for sizes in ((3, 4), (2, 2, 3)):
        scores, levels = generator.standard_normal(7), np.repeat(np.arange(len(sizes)), sizes)

        def statistic(some, scores=scores, levels=levels):
            return stats.kruskal(*(scores[np.array(some) == level] for level in set(levels))).statistic

        every = [statistic(some) for some in set(permutations(levels.tolist()))]
        expected = np.mean(np.array(every) >= statistic(levels) - 1e-9)
        np.testing.assert_allclose(kruskal_wallis(scores, levels).p, expected)
        if len(sizes) == 2:
            np.testing.assert_allclose(expected, stats.mannwhitneyu(scores[:3], scores[3:], method="exact").pvalue)
