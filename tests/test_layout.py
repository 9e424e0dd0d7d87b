"""Layouts: neighbours lie near each other, and the same graph is drawn the same way."""

import numpy as np
import pytest
import scipy.sparse as sp

from netbic.graphs.layout import layout


@pytest.fixture(scope="module")
def two_groups():
    groups = np.repeat([0, 1], 20)
    likely = np.where(groups[:, None] == groups, 0.5, 0.02)
    upper = np.triu(np.random.default_rng(0).random((40, 40)) < likely, 1)
    return (upper | upper.T).astype(float)


def test_neighbours_are_nearer_than_strangers(two_groups):
    places = layout(two_groups, seed=3)
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    joined, pairs = two_groups > 0, ~np.eye(40, dtype=bool)
    assert distances[joined].mean() < 0.6 * distances[pairs & ~joined].mean()


def test_groups_are_drawn_apart(two_groups):
    places = layout(two_groups, seed=3)
    first, second = places[:20], places[20:]
    between = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
    assert between > max(part.std(axis=0).max() for part in (first, second))


def test_the_same_seed_gives_the_same_places_and_another_gives_others(two_groups):
    np.testing.assert_array_equal(layout(two_groups, 1), layout(sp.csr_array(two_groups), 1))
    assert not np.allclose(layout(two_groups, 1), layout(two_groups, 2))


def test_places_fill_the_unit_square(two_groups):
    places = layout(two_groups)
    np.testing.assert_array_equal(places.min(axis=0), 0)
    np.testing.assert_array_equal(places.max(axis=0), 1)


def test_no_two_nodes_lie_on_top_of_each_other(two_groups):
    places = layout(two_groups)
    distances = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(40)
    assert distances.min() > 0.01


def test_nothing_and_a_single_node_have_a_place():
    assert layout(np.zeros((0, 0))).shape == (0, 2)
    np.testing.assert_array_equal(layout(np.zeros((1, 1))), [[0.5, 0.5]])
