"""Sequential p-values: exactly valid, and equal to those of all draws where no more than `enough` reach the value."""

from itertools import permutations

import numpy as np
import pytest

from netbic.enrichment import is_decided, sequential_p_values


@pytest.mark.parametrize("enough", [1, 2, 3, None])
def test_p_values_are_exactly_valid(enough):
    """All orders of seven different values are equally likely: the first one is observed."""
    orders = np.array(list(permutations(range(7))), dtype=float)
    p = sequential_p_values(orders[:, 0], orders[:, 1:], 6, enough)
    for value in np.unique(p):
        assert np.mean(p <= value) == pytest.approx(value)


def test_draws_after_the_last_needed_one_make_no_difference():
    rng = np.random.default_rng(0)
    observed, by_chance = rng.standard_normal(50), rng.standard_normal((50, 99))
    p = sequential_p_values(observed, by_chance, 99, 5)
    for value, draws, expected in zip(observed, by_chance, p, strict=True):
        needed = 1
        while needed < 99 and not is_decided(value[None], draws[None, :needed], 5):
            needed += 1
        assert sequential_p_values(value[None], draws[None, :needed], 99, 5)[0] == expected


def test_all_draws_are_made_if_asked_for():
    assert not is_decided(np.zeros(1), np.ones((1, 1000)), None)
    assert sequential_p_values(np.zeros(1), np.ones((1, 9)), 9, None)[0] == 1.0
