"""Mixtures of members and others, and the norm of noise: the parts of a penalty that chooses its size."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from netbic import AdaptiveSupport
from netbic.penalties import expected_noise_norm
from netbic.penalties.adaptive import fit_mixture


def two_groups(seed, members=400, others=1600, mean=8.0, spread=1.5, noise=2.0):
    generator = np.random.default_rng(seed)
    signs = generator.choice([-1.0, 1.0], members)
    inside = signs * (mean + spread * generator.standard_normal(members)) + noise * generator.standard_normal(members)
    return np.append(inside, noise * generator.standard_normal(others))


def test_the_mixture_finds_the_groups_it_was_made_of():
    found = fit_mixture(two_groups(0), None)
    assert found.mean == pytest.approx(8, abs=0.5)
    assert np.sqrt(found.noise) == pytest.approx(2, abs=0.15)
    assert found.posterior.sum() == pytest.approx(400, abs=40)
    assert found.slope == 0
    larger = np.argsort(np.abs(two_groups(0)))
    assert (np.diff(found.posterior[larger]) >= -1e-12).all()


def log_likelihood(z, mean, noise, spread, share):
    """Of scores with unit mean square, by definition; `share` is the prior of membership."""
    width = np.sqrt(noise + spread)
    member = 0.5 * (stats.norm.pdf(z, mean, width) + stats.norm.pdf(z, -mean, width))
    return float(np.log((1 - share) * stats.norm.pdf(z, 0, np.sqrt(noise)) + share * member).sum())


def textbook_em(z, x, share, n_rounds=600):
    """Expectation-maximisation as in a textbook, without extrapolation, from the largest scores as members."""
    size = np.abs(z)
    inside = size >= np.quantile(size, 1 - share)
    m, g2, slopes = size[inside].mean(), (size[~inside] ** 2).mean(), np.zeros(2)
    t2 = max(size[inside].var() - g2, 0.01 * m * m)
    design = np.column_stack([np.ones(z.size), np.zeros(z.size) if x is None else (x - x.mean()) / x.std()])
    for _ in range(n_rounds):
        prior, width = special.expit(design @ slopes), np.sqrt(g2 + t2)
        up, down = (stats.norm.pdf(z, mean, width) for mean in (m, -m))
        other = stats.norm.pdf(z, 0, np.sqrt(g2))
        members = prior * 0.5 * (up + down)
        likelihood = float(np.log(members + (1 - prior) * other).sum())
        r, signed = members / (members + (1 - prior) * other), z * (up - down) / (up + down)
        inside, total = r.sum(), r @ signed
        m = total / inside
        g2 = max((1 - r) @ z**2 / (1 - r).sum(), 1e-3 * m * m)
        variance = (r @ z**2 - 2 * m * total) / inside + m * m
        t2 = max((inside * (variance - g2) + 40 * (m / 6) ** 2) / (inside + 40), 1e-4 * m * m)
        weights = prior * (1 - prior)
        curvature = design.T @ (weights[:, None] * design) + np.diag([0, 0.5]) + 1e-6 * np.eye(2)
        slopes = slopes + np.clip(np.linalg.solve(curvature, design.T @ (r - prior) - [0, 0.5 * slopes[1]]), -1, 1)
    return likelihood


@pytest.mark.parametrize("mean", [2.0, pytest.param(3.0, marks=pytest.mark.nightly), 8.0])
@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_extrapolated_steps_reach_the_likelihood_of_many_plain_ones(mean, guided, seed):
    generator = np.random.default_rng([seed, 7])
    z = two_groups(seed, members=150, others=700, mean=mean, spread=0.5, noise=1.0)
    x = np.append(np.full(150, 1.0), np.zeros(700)) + generator.standard_normal(850) if guided else None
    z /= np.sqrt(np.mean(z * z))
    plain = max(textbook_em(z, x, share) for share in (0.15, 0.5, 0.75))
    assert fit_mixture(z, x).likelihood >= plain - 0.05


@pytest.mark.parametrize("guided", [False, True])
def test_the_likelihood_is_that_of_the_model(guided):
    z = two_groups(1, members=200, others=800)  # few enough not to be grouped
    z /= np.sqrt(np.mean(z * z))
    x = np.append(np.ones(200), np.zeros(800)) + np.random.default_rng(0).standard_normal(1000) if guided else None
    found = fit_mixture(z, x)

    def missed(free):  # neither the spread nor the intercept is reported
        prior = special.expit(free[1] + (found.slope * x if guided else 0.0))
        return -log_likelihood(z, found.mean, found.noise, np.exp(free[0]), prior)

    best = -optimize.minimize(missed, [np.log(0.1), -1.5], method="Nelder-Mead").fun
    assert best - 0.5 <= found.likelihood <= best + 1e-3  # the spread has a prior


@pytest.mark.parametrize(("size", "height"), [(40, 10.0), (300, 15.0)])
def test_a_single_outlier_is_found(size, height):
    """Steps from some splits decrease the likelihood at first."""
    found = []
    for seed in range(40):
        z = np.random.default_rng(seed).standard_normal(size)
        z[0] += height
        found.append((fit_mixture(z, None).posterior > 0.5).nonzero()[0].tolist())
    assert found.count([0]) >= 39


def test_scores_of_any_distribution_have_a_posterior():
    random = np.random.default_rng(0)
    for _ in range(100):
        size = int(random.integers(5, 60))
        z = random.standard_t(random.choice([0.3, 1, 5]), size)
        z = random.choice(
            [z, np.round(z), np.sign(z), np.where(random.random(size) < 0.8, 0, z), z * 10.0 ** z.clip(-9, 9)]
        )
        x = None if random.random() < 0.5 else random.choice([z, np.abs(z), random.standard_cauchy(size)])
        found = fit_mixture(z, None if x is None or np.ptp(x) == 0 else x)
        assert np.isfinite(found.posterior).all()
        assert np.isfinite([found.likelihood, found.mean, found.noise, found.slope]).all()


def test_a_graph_that_separates_members_has_a_bounded_weight():
    z = two_groups(3, members=100, others=400)
    slope = fit_mixture(z, np.append(np.ones(100), np.zeros(400))).slope
    spread = np.append(np.ones(100), np.zeros(400)).std()
    assert 0 < slope * spread < 6  # without the ridge it grows to the largest slope, 12


def test_scale_and_signs_of_scores_do_not_matter():
    z, x = two_groups(3), np.append(np.ones(400), np.zeros(1600)) + np.random.default_rng(0).standard_normal(2000)
    one = AdaptiveSupport().choose(z, x)
    assert one.sigma > 0
    for factor in (2.0**-500, 2.0**-20, 2.0**40, 2.0**500):
        other = AdaptiveSupport().choose(-factor * z, x)
        np.testing.assert_allclose(one.posterior, other.posterior, rtol=1e-9)
        assert other.sigma == pytest.approx(factor * one.sigma)
        assert other.noise == pytest.approx(factor * one.noise)


def test_a_graph_is_used_if_it_separates_members_from_others():
    generator = np.random.default_rng(5)
    z = two_groups(4, members=100, others=400, mean=4.0)
    informative = np.append(np.full(100, 2.0), np.zeros(400)) + generator.standard_normal(500)
    truth = np.arange(500) < 100
    guided, plain = (AdaptiveSupport().choose(z, x) for x in (informative, None))
    right = [np.mean((choice.posterior > 0.5) == truth) for choice in (guided, plain)]
    assert right[0] > right[1] + 0.02
    assert plain.sigma == 0
    misled = [AdaptiveSupport().choose(z, generator.permutation(informative)).sigma for _ in range(40)]
    assert np.mean(np.array(misled) > 0) < 0.1


def test_expected_noise_norm_is_that_of_the_largest_entries():
    for size, kept in ((100, 100), (100, 50), (300, 30), (50, 5)):
        draws = np.sort(np.random.default_rng(0).standard_normal((2000, size)) ** 2, axis=1)[:, -kept:].sum(axis=1)
        assert expected_noise_norm(size, kept) == pytest.approx(np.sqrt(draws.mean()), rel=0.03)
