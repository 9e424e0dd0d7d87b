"""The order of rows and columns of a heatmap, compared with its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from netbic.pl.heatmap import module_order

WEIGHTS = arrays(float, (3, 12), elements=st.sampled_from([-0.7, -0.5, -0.1, 0.0, 0.0, 0.2, 0.3, 0.9]))


@given(WEIGHTS)
def test_every_member_is_drawn_once_in_its_heaviest_module(weights):
    order = module_order(weights)
    members = np.flatnonzero(weights.any(axis=0))
    assert sorted(order.members) == members.tolist()
    for k in range(3):
        own = order.members[order.bounds[k] : order.bounds[k + 1]]
        assert (np.abs(weights[k, own]) == np.abs(weights[:, own]).max(axis=0)).all()
        assert (np.diff(weights[k, own]) <= 0).all()


@given(WEIGHTS)
def test_all_memberships_are_kept(weights):
    order = module_order(weights, n_others=2)
    np.testing.assert_array_equal(order.belongs, weights[:, order.members] != 0)
    np.testing.assert_array_equal(order.weight, np.abs(weights).max(axis=0)[order.members])


@pytest.mark.parametrize(("n_others", "n_found"), [(0, 0), (3, 3), (50, 8)])
def test_others_belong_to_no_module(n_others, n_found):
    weights = np.zeros((2, 12))
    weights[0, [1, 3]], weights[1, [3, 5, 7]] = 1, 2
    order = module_order(weights, n_others)
    others = order.members[order.bounds[-1] :]
    assert len(set(others)) == n_found
    assert not weights[:, others].any()
