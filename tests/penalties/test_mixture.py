"""Mixtures of members and others, and the norm of noise: the parts of a penalty that chooses its size."""

import numpy as np
import pytest
from scipy import stats

from netbic import AdaptiveSupport
from netbic.penalties import expected_noise_norm
from netbic.penalties.mixture import fit_mixture


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


def test_posteriors_follow_bayes_rule():
    z = two_groups(1)
    found = fit_mixture(z, None)
    inside = found.posterior.sum()
    signs = np.tanh(found.mean * z / 6.25)  # only their size matters little: the groups are far apart
    variance = (found.posterior @ (z - found.mean * np.sign(signs)) ** 2) / inside
    member = stats.norm.pdf(np.abs(z), found.mean, np.sqrt(variance)) / 2 * inside / z.size
    other = stats.norm.pdf(z, 0, np.sqrt(found.noise)) * (1 - inside / z.size)
    assert np.corrcoef(member / (member + other), found.posterior)[0, 1] > 0.999


def test_larger_scores_are_likelier_members():
    z = np.abs(two_groups(2))
    posterior = fit_mixture(z, None).posterior
    assert (np.diff(posterior[np.argsort(z)]) >= -1e-12).all()


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**-300, 2.0**-20, 2.0**40, 2.0**300, 2.0**500])
def test_scale_and_signs_of_scores_do_not_matter(factor):
    z, x = two_groups(3), np.append(np.ones(400), np.zeros(1600)) + np.random.default_rng(0).standard_normal(2000)
    one = AdaptiveSupport().choose(z, x)
    other = AdaptiveSupport().choose(-factor * z, x)
    np.testing.assert_allclose(one.posterior, other.posterior, rtol=1e-9)
    assert other.sigma == pytest.approx(factor * one.sigma)
    assert other.noise == pytest.approx(factor * one.noise)
    assert one.sigma > 0


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


def test_one_sided_members_are_positive():
    z = two_groups(6)
    choice = AdaptiveSupport(nonnegative=True).choose(z, None)
    assert (z[choice.support] > 0).all()
    assert choice.support.size == pytest.approx((z[:400] > 0).sum(), rel=0.15)


@pytest.mark.parametrize(("size", "kept"), [(100, 100), (100, 50), (300, 30), (2000, 120), (50, 5)])
def test_expected_noise_norm_is_that_of_the_largest_entries(size, kept):
    draws = np.sort(np.random.default_rng(0).standard_normal((2000, size)) ** 2, axis=1)[:, -kept:].sum(axis=1)
    assert expected_noise_norm(size, kept) == pytest.approx(np.sqrt(draws.mean()), rel=0.03)
