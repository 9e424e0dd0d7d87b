"""The bounds on false members: known values, extreme distributions, and random selections."""

import numpy as np
import pytest
from scipy.optimize import linprog

from netbic.selection import expected_false, pcer_threshold, threshold_for
from netbic.selection.error_bounds import ASSUMPTIONS, r_concave_tail


def test_numbers_calculated_by_hand():
    # 20 of 88: 400 / 88 / .6, and 400 / 88 * 4 * (.2 + .01) / 1.02
    assert expected_false(0.8, 20, 88, 50, "none") == pytest.approx(400 / 88 / 0.6)
    assert expected_false(0.8, 20, 88, 50) == pytest.approx(3.743316, abs=1e-6)  # as R's stabs prints it
    # 2 of 9 at .75: 4 / 9 / (2 * (.5 - .01))
    assert expected_false(0.75, 2, 9, 50) == pytest.approx(4 / 9 / 0.98)
    # Frequencies among 2 B = 10 halves are tenths: .71 requires .8
    assert expected_false(0.71, 3, 100, 5) == expected_false(0.8, 3, 100, 5)
    # No more than q / tau can reach tau at all
    assert expected_false(0.6, 90, 100, 50, "none") == pytest.approx(150)


def test_pcer_is_the_inverse_of_the_first_bound():
    for pcer, q, p in ((0.1, 20, 100), (0.05, 30, 400), (0.01, 9, 100)):
        threshold = pcer_threshold(pcer, q, p)
        assert q**2 / ((2 * threshold - 1) * p) / p == pytest.approx(pcer)
    assert pcer_threshold(0.01, 11, 100) == np.inf


@pytest.mark.parametrize("assumption", ASSUMPTIONS)
def test_thresholds_are_the_smallest_possible(assumption):
    bounds = [expected_false(k / 40, 12, 150, 20, assumption) for k in range(21, 41)]
    assert np.all(np.diff(bounds) <= 1e-12)
    for wanted in (0.2, 0.5, 1.0, 3.0):
        reached = [k / 40 for k, bound in zip(range(21, 41), bounds, strict=True) if bound <= wanted]
        assert threshold_for(wanted, 12, 150, 20, assumption) == (reached[0] if reached else np.inf)


def test_stronger_assumptions_never_give_larger_bounds():
    for threshold in (0.6, 0.75, 0.9, 1.0):
        bounds = [expected_false(threshold, 10, 200, 30, assumption) for assumption in ASSUMPTIONS]
        assert bounds[0] >= bounds[1] >= bounds[2] > 0


def worst_unimodal_tail(mean, at_least, highest):
    """By linear programming: the largest tail of laws on 0 ... highest with this mean and a mode at any one place."""
    places = np.arange(highest + 1)
    tails = []
    for mode in places:
        rising = np.eye(highest + 1)[:mode] - np.eye(highest + 1)[1 : mode + 1]
        falling = np.eye(highest + 1)[mode + 1 :] - np.eye(highest + 1)[mode:-1]
        done = linprog(
            -(places >= at_least).astype(float),
            A_ub=np.vstack([rising, falling]), b_ub=np.zeros(highest),
            A_eq=np.vstack([np.ones(highest + 1), places]), b_eq=[1, mean],
        )  # fmt: skip
        tails.append(-done.fun if done.status == 0 else 0.0)
    return max(tails)


@pytest.mark.parametrize(
    ("q", "p", "halves"), [(20, 100, 15), (20, 100, 19), (50, 100, 18), (5, 100, 13), (30, 100, 20)]
)
def test_the_unimodal_bound_is_attained(q, p, halves):
    worst = worst_unimodal_tail((q / p) ** 2 * 10, halves - 10, 10)
    assert expected_false(halves / 20, q, p, 10) == pytest.approx(p * worst, rel=1e-6)


@pytest.mark.parametrize(("mean", "at_least", "highest", "power"), [(0.5, 3, 8, 2), (1.0, 9, 10, 4), (0.2, 4, 10, 2)])
def test_no_r_concave_distribution_has_a_heavier_tail(mean, at_least, highest, power):
    generator, places, best = np.random.default_rng(0), np.arange(highest + 1), 0.0
    bound = r_concave_tail(mean, at_least, highest, power)
    steepness = 10.0 ** np.linspace(-4, 3, 100)[:, None]
    for _ in range(500):
        slopes = np.cumsum(generator.exponential(10.0 ** generator.uniform(-4, 1, highest)))
        rising = np.pad(np.cumsum(steepness * slopes, axis=1), ((0, 0), (1, 0)))  # f^(-1/power) - 1, convex
        laws = (1 + rising) ** -float(power)
        laws /= laws.sum(axis=1, keepdims=True)
        light = laws @ places <= mean
        best = max(best, laws[light, at_least:].sum(axis=1).max(initial=0.0))
    assert 0.5 * bound < best <= bound * (1 + 1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_random_selections_respect_the_bounds(shared):
    """Halves that select at random; `shared`: how similar the selections of different pairs (of the same data) are."""
    generator, p, q, n_pairs = np.random.default_rng(1), 100, 20, 25
    kept = {0.6: [], 0.75: [], 0.9: []}
    for _ in range(300):
        own = generator.standard_normal((1, 2, p))  # the two halves of a pair must stay independent of each other
        scores = np.sqrt(shared) * own + np.sqrt(1 - shared) * generator.standard_normal((n_pairs, 2, p))
        chosen = scores >= np.sort(scores, axis=2)[..., -q, None]
        for threshold, counts in kept.items():
            counts.append((chosen.mean(axis=(0, 1)) >= threshold).sum())
    for threshold, counts in kept.items():
        assert np.mean(counts) <= expected_false(threshold, q, p, n_pairs, "none")
    assert np.mean(kept[0.6]) > (1.0 if shared else -1.0)


def test_bad_input():
    for call, message in (
        (lambda: expected_false(0.5, 1, 10, 5), "threshold=0.5: a share of the halves above 0.5"),
        (lambda: expected_false(1.1, 1, 10, 5), "threshold=1.1"),
        (lambda: expected_false(0.8, 11, 10, 5), "q=11 of p=10"),
        (lambda: expected_false(0.8, 1, 10, 5, "bell"), "assumption='bell' is not known"),
        (lambda: pcer_threshold(0.0, 1, 10), "pcer=0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
