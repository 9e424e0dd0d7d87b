"""Pairs of two tables: starts equal singular vectors, both forms of the cross-product agree, F is monotone."""

import itertools

import numpy as np
import pytest

from netbic import L0, L1Ball
from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler
from netbic.operators.cross import Table
from netbic.penalties import Dense
from netbic.solver import pairs
from netbic.solver.pairs import PairSearch, PairStarts
from netbic.solver.search import Axis
from netbic.solver.solve import Settings
from support.problems import random_graph


def table(X):
    data = as_operator(X)
    return Table(Scaler.learn(data, "columns", False).operator(data))


def two_tables(n=25, p=40, q=30, seed=0, signal=1.5):
    random = np.random.default_rng(seed)
    X, Y = random.standard_normal((n, p)), random.standard_normal((n, q))
    for k in range(3):
        common = signal * random.standard_normal((n, 1))
        X[:, 5 * k : 5 * k + 5] += common
        Y[:, 4 * k : 4 * k + 4] += common
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def unit(vector):
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("exact", [True, False])
def test_starts_follow_every_deflation(exact, monkeypatch):
    monkeypatch.setattr("netbic.solver.pairs._EXACT_WORK", 0)
    X, Y = two_tables()
    x, y = table(X), table(Y)
    starts = PairStarts(x, y, exact)
    tolerance = 1e-9 if exact else 1e-3
    t, s = unit(X @ np.ones(X.shape[1])), unit(Y @ np.arange(Y.shape[1]))

    def check(X, Y, C, x, y):
        cross = pairs.Cross(x, y, 1.0)
        leading = starts.leading(cross)
        assert not leading.on_rows
        _, d, v = np.linalg.svd(C)
        assert leading.value == pytest.approx(d[0], rel=tolerance)
        assert starts.squared_norm == pytest.approx(np.sum(C**2), rel=tolerance)
        assert abs(leading.vector @ v[0]) == pytest.approx(1, abs=tolerance)

    check(X, Y, X.T @ Y, x, y)
    starts.remove(t, from_x=True)
    X, x = X - np.outer(t, t @ X), x.without(t)
    check(X, Y, X.T @ Y, x, y)
    starts.remove(s, from_x=False)
    Y, y = Y - np.outer(s, s @ Y), y.without(s)
    check(X, Y, X.T @ Y, x, y)


def search(X, Y, form, x_axis, y_axis, deflation, monkeypatch, count=3):
    forms = {
        "formed": lambda x, y, exact: pairs.OfLayers(x, y, exact, formed=True),
        "passes": lambda x, y, exact: pairs.OfLayers(x, y, exact, formed=False),
        "samples": pairs.OfSamples,
    }
    monkeypatch.setattr(pairs, "residual_of", forms[form])
    found = PairSearch(table(X), table(Y), x_axis, y_axis, Settings(tol=1e-10), deflation, noise=1e-9)
    return list(itertools.islice(found, count))


@pytest.mark.parametrize("deflation", pairs.PAIR_DEFLATIONS)
@pytest.mark.parametrize("form", ["samples", "passes"])
def test_all_forms_of_the_cross_product_give_the_same_pairs(deflation, form, monkeypatch):
    X, Y = two_tables(signal=3)
    axes = Axis(L0(5)), Axis(L0(4))
    expected = search(X, Y, "formed", *axes, deflation, monkeypatch)
    found = search(X, Y, form, *axes, deflation, monkeypatch)
    for one, other in zip(expected, found, strict=True):
        assert one.module.outcome == other.module.outcome == "converged"
        np.testing.assert_allclose(one.module.u.full(), other.module.u.full(), atol=1e-8)
        np.testing.assert_allclose(one.module.v.full(), other.module.v.full(), atol=1e-8)
        np.testing.assert_allclose(one.x_scores, other.x_scores, atol=1e-7)
        np.testing.assert_allclose(one.y_scores, other.y_scores, atol=1e-7)
        assert one.module.d == pytest.approx(other.module.d)


@pytest.mark.parametrize("deflation", pairs.PAIR_DEFLATIONS)
def test_deflation_is_that_of_its_definition(deflation, monkeypatch):
    X, Y = two_tables()
    first, second = search(X, Y, "samples", Axis(L0(5)), Axis(L0(4)), deflation, monkeypatch, count=2)
    u, v = first.module.u.full(), first.module.v.full()
    t, s = unit(X @ u), unit(Y @ v)
    C = X.T @ Y
    if deflation == "hotelling":
        left = C - first.module.d * np.outer(u, v)
    else:
        other = t if deflation == "regression" else s
        left = (X - np.outer(t, t @ X)).T @ (Y - np.outer(other, other @ Y))
    assert second.module.u.full() @ left @ second.module.v.full() == pytest.approx(second.module.d)
    scores = left @ second.module.v.full()  # a fixed point of the half step
    assert set(np.argsort(-np.abs(scores))[:5]) == set(second.module.u.support)


@pytest.mark.parametrize("seed", range(8))
def test_the_objective_never_decreases(seed, monkeypatch):
    X, Y = two_tables(seed=seed, signal=0.5)
    random = np.random.default_rng(seed)
    terms = [random_graph(size, random).term("modularity") for size in (X.shape[1], Y.shape[1])]
    penalties = [L0(6), L1Ball(2.0)] if seed % 2 else [Dense(), L0(5)]
    axes = [Axis(penalty, term, 0.5, "relative") for penalty, term in zip(penalties, terms, strict=True)]
    form = ("formed", "samples")[seed // 2 % 2]
    for pair in search(X, Y, form, *axes, "canonical", monkeypatch):
        steps = np.diff(pair.module.objectives)
        assert (steps >= -1e-12 * np.abs(pair.module.objectives[:-1])).all()


def test_tiny_problems_are_solved_as_by_brute_force(monkeypatch):
    reached = 0
    for seed in range(10):
        X, Y = (np.random.default_rng(seed).standard_normal((8, size)) for size in (5, 5))
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        C = X.T @ Y
        supports = list(itertools.combinations(range(5), 2))
        best = max(np.linalg.norm(C[np.ix_(a, b)], 2) for a in supports for b in supports)
        monkeypatch.undo()
        settings = Settings(tol=1e-12, n_init=20)
        pair = next(iter(PairSearch(table(X), table(Y), Axis(L0(2)), Axis(L0(2)), settings, "canonical", 1e-9)))
        assert pair.module.d <= best * (1 + 1e-12)
        reached += pair.module.d == pytest.approx(best, rel=1e-9)
    assert reached >= 10


def test_the_search_ends_when_nothing_is_left():
    X, Y = two_tables(n=6)
    found = PairSearch(table(X), table(Y), Axis(Dense()), Axis(Dense()), Settings(), "canonical", 1e-9)
    assert len(list(found)) == 5
    # Which of the two is seen first depends on the rounding errors of the last deflation.
    assert "nothing but rounding error" in found.ended or "no covariance" in found.ended
