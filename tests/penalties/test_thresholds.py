"""Thresholds, compared with brute force, random competitors and special cases."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netbic import L0, L1, SCAD, AdaptiveLasso, Dense, KeepSoft, L1Ball
from netbic.penalties import largest

scores = arrays(np.float64, st.integers(2, 12), elements=st.floats(0, 10).map(lambda x: round(x, 2)))
any_scores = scores.filter(lambda c: c.max() > 0)


def unit(kept, size):
    full = np.zeros(size)
    full[kept.support] = kept.values / np.linalg.norm(kept.values)
    return full


@given(any_scores, st.integers(1, 12))
def test_l0_is_the_best_support(c, k):
    k = min(k, c.size)
    x = unit(L0(k).threshold(c), c.size)
    best = max(np.linalg.norm(c[list(s)]) for s in combinations(range(c.size), k))
    assert c @ x == pytest.approx(best, rel=1e-12)
    assert np.count_nonzero(x) == min(k, np.count_nonzero(c))


def test_l0_fills_ties_by_lowest_index_and_skips_zero_scores():
    assert largest(np.array([1.0, 2.0, 1.0, 1.0]), 2).tolist() == [0, 1]
    assert largest(np.array([0.0, 2.0, 0.0, -1.0]), 3).tolist() == [1]


@given(any_scores, st.floats(1, 3.4), st.integers(0, 2**32 - 1))
def test_l1_ball_beats_every_feasible_competitor(c, bound, seed):
    bound = min(bound, np.sqrt(c.size))
    kept = L1Ball(bound).threshold(c)
    x = unit(kept, c.size)
    assert x.sum() <= bound * (1 + 1e-9)
    generator = np.random.default_rng(seed)
    rivals = np.abs(generator.standard_normal((200, c.size))) * (generator.random((200, c.size)) < 0.5)
    rivals[: c.size] = np.eye(c.size)
    rivals = rivals[rivals.any(axis=1)]
    rivals /= np.linalg.norm(rivals, axis=1, keepdims=True)
    rivals = rivals[rivals.sum(axis=1) <= bound]
    assert c @ x >= (rivals @ c).max() - 1e-9 * c.max()


@given(arrays(np.float64, 9, elements=st.floats(0.1, 10)), st.floats(1.0, 2.9))
def test_l1_ball_equals_bisection(c, bound):
    below = c.max() - c  # exact for near ties, which the levels themselves would not tell apart

    def shrunk(step):
        return np.maximum(step - below, 0)

    def ratio(step):
        return shrunk(step).sum() / np.linalg.norm(shrunk(step))

    if ratio(c.max()) <= bound or bound <= np.sqrt(np.count_nonzero(below == 0)) + 1e-6:
        return
    low, high = 1e-9 * below[below > 0].min(), c.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if ratio(middle) > bound else (middle, high)
    expected = shrunk(low) / np.linalg.norm(shrunk(low))
    np.testing.assert_allclose(unit(L1Ball(bound).threshold(c), 9), expected, atol=1e-6)


def test_l1_ball_at_its_ends_and_on_ties():
    c = np.array([1.0, 3.0, 2.0])
    np.testing.assert_allclose(unit(L1Ball(1.0).threshold(c), 3), [0, 1, 0])
    np.testing.assert_allclose(unit(L1Ball(np.sqrt(3)).threshold(c), 3), c / np.linalg.norm(c))
    for bound in (1.0, 1.3, np.sqrt(2), 1.9, 2.0):
        x = unit(L1Ball(bound).threshold(np.full(4, 3.0)), 4)
        assert x.sum() == pytest.approx(bound, rel=1e-12)
        assert np.linalg.norm(x) == pytest.approx(1)
        assert (x >= 0).all()


@given(st.integers(2, 9), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_l1_ball_keeps_its_bound_on_near_ties(size, digits, seed):
    generator = np.random.default_rng(seed)
    c = 1 + 10.0**-digits * generator.standard_normal(size) * generator.integers(0, 2, size)
    bound = generator.uniform(1, np.sqrt(size))
    x = unit(L1Ball(bound).threshold(np.abs(c)), size)
    assert x.sum() <= bound * (1 + 1e-9)
    assert x.sum() >= min(bound, np.abs(c).sum() / np.linalg.norm(c)) * (1 - 1e-9)


@given(any_scores, st.floats(0, 9.9), st.integers(0, 2**32 - 1))
def test_l1_maximises_its_objective_on_the_sphere(c, alpha, seed):
    kept = L1(alpha).threshold(c)
    if c.max() <= alpha:
        assert not kept.support.size
        return
    x = unit(kept, c.size)
    rivals = np.abs(np.random.default_rng(seed).standard_normal((200, c.size)))
    rivals /= np.linalg.norm(rivals, axis=1, keepdims=True)
    value = c @ x - L1(alpha).value(x)
    assert value >= max(rival @ c - alpha * rival.sum() for rival in rivals) - 1e-12


def test_keep_soft_thresholds_at_the_next_value():
    c = np.array([5.0, 1.0, 4.0, 2.0])
    kept = KeepSoft(2).threshold(c)
    assert kept.support.tolist() == [0, 2]
    assert kept.values.tolist() == [3.0, 2.0]
    assert KeepSoft(2, position=0.5).threshold(c).values.tolist() == [2.0, 1.0]
    assert KeepSoft(4).threshold(c).values.tolist() == c.tolist()
    # the solution of the L1 ball for its own norm
    c = np.random.default_rng(0).exponential(size=30)
    x = unit(KeepSoft(8, position=0.5).threshold(c), 30)
    np.testing.assert_allclose(unit(L1Ball(x.sum()).threshold(c), 30), x, atol=1e-12)


def test_scad_pieces():
    kept = SCAD(level=1.0).threshold(np.array([0.5, 1.5, 2.7, 4.0]))
    assert kept.support.tolist() == [1, 2, 3]
    np.testing.assert_allclose(kept.values, [0.5, (2.7 * 2.7 - 3.7) / 1.7, 4.0])
    np.testing.assert_allclose(SCAD(2).threshold(np.array([9.0, 1.0, 8.0])).values, [9.0, 8.0])


def literal_bic(c, squared_norm, n_entries, threshold, levels):
    """Lee et al.'s rule, one candidate at a time."""
    noise = abs(squared_norm - c @ c) / (n_entries - c.size)
    costs = [np.sum((c - threshold(level)) ** 2) / noise + i * np.log(n_entries) for i, level in enumerate(levels, 1)]
    return threshold(levels[int(np.argmin(costs))])


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.0])
def test_adaptive_lasso_equals_the_literal_rule(gamma):
    c = np.random.default_rng(1).exponential(size=40) + np.where(np.arange(40) < 8, 6, 0)
    squared_norm, n_entries = 3.0 * (c @ c), 40 * 60
    levels = np.append(np.sort(c ** (gamma + 1))[::-1][1:], 0.0)
    expected = literal_bic(c, squared_norm, n_entries, lambda level: np.maximum(c - level / c**gamma, 0), levels)
    kept = AdaptiveLasso(gamma).for_matrix(squared_norm, n_entries).threshold(c)
    found = np.zeros(40)
    found[kept.support] = kept.values
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_scad_by_bic_equals_the_literal_rule():
    c = np.random.default_rng(2).exponential(size=40) + np.where(np.arange(40) < 8, 6, 0)
    squared_norm, n_entries = 3.0 * (c @ c), 40 * 60

    def threshold(level):
        kept, full = SCAD(level=level).threshold(c), np.zeros(40)
        full[kept.support] = kept.values
        return full

    expected = literal_bic(c, squared_norm, n_entries, threshold, np.append(np.sort(c)[::-1][1:], 0.0))
    kept = SCAD().for_matrix(squared_norm, n_entries).threshold(c)
    np.testing.assert_allclose(kept.values, expected[expected > 0], atol=1e-12)


@pytest.mark.parametrize("penalty", [Dense(), L0(3), L1(0.1), L1Ball(1.2), KeepSoft(2), SCAD(2), AdaptiveLasso()])
def test_supports_are_sorted_and_values_positive(penalty):
    c = np.random.default_rng(3).exponential(size=9)
    kept = penalty.for_matrix(100.0, 90).threshold(c)
    assert (np.diff(kept.support) > 0).all()
    assert (kept.values > 0).all()
    assert not penalty.for_matrix(100.0, 90).threshold(np.zeros(9)).support.size


def test_errors_of_bad_penalties_name_the_problem():
    with pytest.raises(ValueError, match="call for_matrix first"):
        AdaptiveLasso().threshold(np.ones(3))
    for penalty, error, message in (
        (L0(11), ValueError, "L0.*k=11.* but X has 10 columns: choose k from 1 to 10"),
        (L0(0), ValueError, "choose k from 1 to 10"),
        (L0(2.5), TypeError, "k must be an integer"),
        (KeepSoft(True), TypeError, "k must be an integer"),
        (L1(-1.0), ValueError, "alpha must be a finite number of at least 0"),
        (L1(np.nan), ValueError, "alpha must be a finite number"),
        (L1("a"), TypeError, "alpha must be a number"),
        (L1Ball(0.5), ValueError, "bound must be a finite number of at least 1"),
        (L1Ball(4.0), ValueError, r"between 1 and sqrt\(10\) = 3.162"),
        (SCAD(2, level=1.0), ValueError, "at most one of k and level"),
        (SCAD(2, a=2.0), ValueError, "a must be above 2"),
        (SCAD(2, a="x"), TypeError, "a must be a number"),
        (KeepSoft(2, position="x"), TypeError, "position must be a number"),
        (KeepSoft(2, position=1.0), ValueError, "position must be"),
        (AdaptiveLasso(-1.0), ValueError, "gamma must be"),
    ):
        with pytest.raises(error, match=message):
            penalty.check(10, "column")


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_adaptive_lasso_at_any_scale(scale):
    c = np.random.default_rng(1).exponential(size=40) + np.where(np.arange(40) < 8, 6, 0)
    plain = AdaptiveLasso().for_matrix(3.0 * (c @ c), 2400).threshold(c)
    scaled = AdaptiveLasso().for_matrix(3.0 * (c @ c) * scale**2, 2400).threshold(scale * c)
    np.testing.assert_array_equal(scaled.support, plain.support)
    np.testing.assert_allclose(scaled.values, scale * plain.values)


def test_penalties_print_what_was_given():
    assert repr(L0(3)) == "L0(k=3)"
    assert repr(L1Ball(np.float64(2.5), nonnegative=True)) == "L1Ball(nonnegative=True, bound=2.5)"
    assert repr(AdaptiveLasso().for_matrix(1.0, 10)) == "AdaptiveLasso()"
