"""Penalties of groups, compared with brute force; groups of any kind, and groups that cannot be used."""

import copy
import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from netbic import L0, GroupL0
from netbic.penalties import Groups

seeds = st.integers(0, 2**32 - 1)


def random_groups(generator, n_groups, size, disjoint=False):
    if disjoint:
        labels = generator.integers(0, n_groups + 1, size)  # the last label is in no group
        groups = [np.flatnonzero(labels == label) for label in range(n_groups)]
        return [group for group in groups if group.size] or [np.arange(size)]
    return [generator.choice(size, generator.integers(1, size // 2 + 1), replace=False) for _ in range(n_groups)]


def best_norm(c, groups, k):
    """The largest norm of positive scores in a union of k groups, by trying all of them."""
    positive = np.maximum(c, 0)
    unions = (np.unique(np.concatenate(some)) for some in combinations(groups, min(k, len(groups))))
    return max(np.linalg.norm(positive[union]) for union in unions)


def is_union(penalty, c):
    """Whether the kept entries are the positive scores of the chosen groups."""
    kept, chosen = penalty.update(c, None, None)
    inside = penalty.groups.coverage(c.size).covered(chosen)
    return np.array_equal(kept.support, np.flatnonzero(inside & (c > 0))) and (kept.values == c[kept.support]).all()


@given(seeds, st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_disjoint_groups_are_the_best(seed, n_groups, k, negative):
    generator = np.random.default_rng(seed)
    groups = random_groups(generator, n_groups, 12, disjoint=True)
    c = generator.standard_normal(12) if negative else generator.exponential(size=12)
    penalty = GroupL0(groups, min(k, len(groups)))
    assert penalty.groups.coverage(12).is_disjoint
    kept, chosen = penalty.update(c, None, None)
    assert np.linalg.norm(kept.values) == pytest.approx(best_norm(c, groups, k), rel=1e-12)
    assert chosen.size == min(penalty.k, sum((c[group] > 0).any() for group in groups))
    assert is_union(penalty, c)


@given(seeds, st.integers(1, 10), st.integers(1, 5), st.booleans())
def test_overlapping_groups_of_small_problems_are_the_best(seed, n_groups, k, negative):
    generator = np.random.default_rng(seed)
    groups = random_groups(generator, n_groups, 12)
    c = generator.standard_normal(12) if negative else generator.exponential(size=12)
    penalty = GroupL0(groups, min(k, n_groups))
    best = best_norm(c, groups, penalty.k)
    assert np.linalg.norm(penalty.threshold(c).values) == pytest.approx(best, rel=1e-12)
    assert is_union(penalty, c)


@given(seeds, st.integers(2, 5))
def test_greedy_choices_keep_their_guarantee_and_exchanges_improve_them(seed, k):
    generator = np.random.default_rng(seed)
    groups = random_groups(generator, 9, 12)
    weights = generator.exponential(size=12) ** 2
    coverage = Groups(groups).coverage(12)
    greedy = coverage.greedy(weights, k)
    best = best_norm(np.sqrt(weights), groups, k) ** 2
    assert coverage.total(greedy, weights) >= (1 - 1 / np.e) * best
    assert coverage.total(coverage.exchange(greedy, weights, k), weights) >= coverage.total(greedy, weights)


@given(seeds, st.integers(1, 12))
def test_updates_are_at_least_as_good_as_the_groups_before(seed, k):
    generator = np.random.default_rng(seed)
    groups = random_groups(generator, 40, 60)
    penalty, c = GroupL0(groups, k), generator.standard_normal(60)
    before = generator.choice(40, k, replace=False)
    union = penalty.groups.coverage(60).covered(before)
    kept, chosen = penalty.update(c, None, before)
    assert np.linalg.norm(kept.values) >= np.linalg.norm(np.maximum(c, 0)[union]) * (1 - 1e-15)
    again = penalty.update(c, None, chosen)[1]
    assert again.tolist() == chosen.tolist()


@given(seeds, st.integers(1, 4))
def test_order_of_groups_and_scale_of_scores_do_not_matter(seed, k):
    generator = np.random.default_rng(seed)
    groups, c = random_groups(generator, 30, 50), generator.exponential(size=50)
    order = generator.permutation(30)
    kept = GroupL0(groups, k).threshold(c)
    assert GroupL0([groups[place] for place in order], k).threshold(c).support.tolist() == kept.support.tolist()
    for factor in (2.0**-400, 2.0**400):
        assert GroupL0(groups, k).threshold(factor * c).support.tolist() == kept.support.tolist()


def test_special_cases():
    """Groups of single entries are L0; entries in no group and scores that are not positive are not kept."""
    c = np.array([1.0, 3.0, 0.0, 3.0, 2.0, -4.0])
    for k in range(1, 7):
        assert GroupL0([[i] for i in range(6)], k).threshold(c).support.tolist() == L0(k).threshold(c).support.tolist()
    penalty = GroupL0([[0, 1], [1, 2]], 2)
    assert penalty.threshold(np.array([1.0, -1.0, 2.0, 99.0])).support.tolist() == [0, 2]
    kept, chosen = penalty.update(np.array([-1.0, 0.0, -2.0, 99.0]), None, None)
    assert kept.support.size == chosen.size == 0


def test_penalties_are_values():
    assert dict(Groups({"a": [0, 2], "b": [1]})) == {"a": (0, 2), "b": (1,)}
    for positions in ([[0, 2], [1]], [np.array([0, 2]), np.array([1])]):
        assert dict(Groups(positions)) == {0: (0, 2), 1: (1,)}
    assert dict(Groups({"a": ["x", "x", "y"]})) == {"a": ("x", "y")}
    penalty = GroupL0({"a": [0, 2], "b": [1]}, 1, nonnegative=True)
    assert penalty == GroupL0({"a": [0, 2], "b": [1]}, 1, nonnegative=True) != penalty.resized(2)
    assert copy.deepcopy(penalty) == pickle.loads(pickle.dumps(penalty)) == penalty
    assert hash(penalty) == hash(copy.deepcopy(penalty))
    assert repr(penalty) == "GroupL0(nonnegative=True, groups=Groups(2 groups), k=1)"


def test_parts_of_groups():
    part = GroupL0({"a": [0, 4], "b": [1, 3], "c": [2]}, 3).for_part(np.array([1, 3, 4]), 5)
    assert dict(part.groups) == {"a": (2,), "b": (0, 1)}
    assert part.k == 2
    with pytest.raises(ValueError, match="no group has a member among the 1 of 5 entries"):
        GroupL0([[0, 1]], 1).for_part(np.array([3]), 5)


def test_names_are_matched_and_what_is_left_out_is_said():
    names = np.array(["x", "y", "z"], dtype=object)
    groups = GroupL0({"a": ["z", "q"], "b": ["r"], "c": ["z"], "d": ["y", "x"]}, 1)
    with pytest.warns(UserWarning, match="column groups") as caught:
        matched = groups.for_names(names, 3, "column")
    assert str(caught[0].message) == (
        "column groups: 2 of 5 members are not columns of X; 1 of 4 groups have no column of X; "
        "1 of 4 groups have the same columns as an earlier one: left out"
    )
    assert dict(matched.groups) == {"a": (2,), "d": (0, 1)}
    assert matched.for_names(None, 3, "column") is matched
    # Integers are names if X has integers as names, and positions otherwise.
    numbered = GroupL0([[7, 5]], 1)
    assert dict(numbered.for_names(np.array([5, 6, 7]), 3, "column").groups) == {0: (0, 2)}
    assert numbered.for_names(np.array(list("abcdefgh"), dtype=object), 8, "column") is numbered


def test_groups_that_cannot_be_used():
    for groups, problem, message in (
        ({}, ValueError, "there are no groups"),
        ({"a": []}, ValueError, "group 'a' is empty: leave it out"),
        ({"a": "BRCA1"}, TypeError, "group 'a' is 'BRCA1': a sequence of its members is needed"),
        ({"a": ["x"], "b": [1]}, TypeError, "some members of the groups are names and others are positions"),
        ({"a": [1.5]}, TypeError, "a member of group 'a' is 1.5, a float"),
        ({None: ["x"]}, TypeError, "a group is None"),
        ("sets.gmt", TypeError, r"read the file first, with netbic.io.read_gene_sets"),
        (np.ones((2, 3, 1), dtype=bool).tolist()[0], TypeError, "a member of group 0 is True"),
        (pd.DataFrame([[1, 0]]), TypeError, "groups are a matrix: give the members of each group"),
        (np.array([[1, 0, 1], [0, 1, 0]]), TypeError, "groups are a matrix"),
        (sp.csr_array(np.eye(2)), TypeError, "groups are a matrix"),
        (3, TypeError, "a mapping of names to members"),
    ):
        with pytest.raises(problem, match=message):
            GroupL0(groups, 1)


def test_groups_that_do_not_match():
    names = np.array(["x", "y"], dtype=object)
    with pytest.raises(
        ValueError, match=r"no member of the column groups is a column of X: the groups have p, q, \.\.\.; X has x, y"
    ):
        GroupL0({"a": ["p", "q"]}, 1).for_names(names, 2, "column")
    with pytest.raises(ValueError, match=r"given by name \(p, \.\.\.\) but the rows of X have no such names"):
        GroupL0({"a": ["p"]}, 1).for_names(None, 2, "row")
    with pytest.raises(ValueError, match="the column name 'x' of X occurs twice"):
        GroupL0({"a": ["x"]}, 1).for_names(np.array(["x", "x"], dtype=object), 2, "column")
    with pytest.raises(ValueError, match="which have to be matched to those of the data first"):
        GroupL0({"a": ["x"]}, 1).threshold(np.ones(2))
    for members, wrong in (([0, 5], 5), ([-1, 0], -1)):
        with pytest.raises(ValueError, match=rf"a group has the member {wrong} but X has columns 0 to 4"):
            GroupL0([members], 1).check(5, "column")
    for k in (0, 3):
        with pytest.raises(ValueError, match="there are 2 different groups with columns of X: choose k from 1 to 2"):
            GroupL0([[0], [1]], k).check(5, "column")
    for k in (1.0, True, "1"):
        with pytest.raises(TypeError, match="k must be an integer"):
            GroupL0([[0]], k).check(5, "column")
