"""Upper bounds of the objective are never below the best module, which tiny problems show by trying all supports."""

from itertools import combinations, product

import numpy as np
import pytest

from netbic import L0, L1, Dense, L1Ball
from netbic.graph import TERMS
from netbic.operators import Corrected, as_operator
from netbic.solver import Side, State, Vector, best_submatrix, objective_bound, solve
from netbic.solver.bounds import spectral_bound
from netbic.solver.sparse_bounds import Columns
from support.problems import random_graph

SLACK = 1 + 1e-9


def operator_of(X):
    return Corrected(as_operator(X), float((X**2).sum()))


def supports(size, count):
    return [np.array(each) for each in combinations(range(size), count)]


def best_value(X, k_rows, k_columns):
    """The largest singular value of all submatrices."""
    blocks = [X[np.ix_(*pair)] for pair in product(supports(X.shape[0], k_rows), supports(X.shape[1], k_columns))]
    return float(np.linalg.norm(np.array(blocks), 2, axis=(1, 2)).max())


def start_on(X, rows, columns):
    """The leading pair of a submatrix."""
    left, _, right = np.linalg.svd(X[np.ix_(rows, columns)])
    u, v = np.zeros(X.shape[0]), np.zeros(X.shape[1])
    u[rows], v[columns] = left[:, 0], right[0]
    return Vector.of(u), Vector.of(v)


def any_matrix(generator, lowest, highest):
    shape = generator.integers(lowest, highest + 1, 2)
    X = generator.standard_normal(shape)
    if generator.random() < 0.3:  # heavy tails, and ties
        X = np.round(generator.standard_t(2, shape), int(generator.integers(0, 3)))
        X[0, 0] += 1.5
    return X


def test_500_tiny_problems_never_exceed_the_bound():
    generator, gaps, hits = np.random.default_rng(0), [], 0
    for _ in range(500):
        X = any_matrix(generator, 2, 7)
        k_rows, k_columns = (int(generator.integers(1, size + 1)) for size in X.shape)
        best = best_value(X, k_rows, k_columns)
        rows, columns = (
            Side(Dense() if k == size else L0(k)) for k, size in zip((k_rows, k_columns), X.shape, strict=True)
        )
        whole = np.linalg.norm(X, 2)
        found = solve(operator_of(X), rows, columns, start_on(X, *map(np.arange, X.shape)))
        bound = objective_bound(operator_of(X), rows, columns, found.state, whole * SLACK)
        assert found.state.objective <= best * SLACK
        assert best <= bound * SLACK
        assert bound <= spectral_bound(whole * SLACK, rows, columns) * SLACK
        gaps.append(1 - best / bound)
        hits += bound < 0.99 * whole
    assert np.median(gaps) < 0.02  # a bound of infinity would not be wrong, but useless
    assert hits > 200  # it is more than the spectral bound


def any_side(size, generator, scale):
    """A penalty of any kind with an objective, with or without a graph term of any kind."""
    count = int(generator.integers(1, size + 1))
    nonnegative = bool(generator.random() < 0.25)
    kinds = [
        Dense(nonnegative=nonnegative),
        L0(count, nonnegative=nonnegative),
        L1(float(generator.uniform(0, 0.3)) * scale, nonnegative=nonnegative),
        L1Ball(float(generator.uniform(1, np.sqrt(size))), nonnegative=nonnegative),
    ]
    term, sigma = None, 0.0
    if generator.random() < 0.6:
        graph = random_graph(size, generator, weighted=bool(generator.random() < 0.5))
        term = graph.term(TERMS[generator.integers(len(TERMS))])
        sigma = float(generator.uniform(0.1, 1.0)) * scale
    return Side(kinds[generator.integers(len(kinds))], term, sigma, signed=bool(generator.random() < 0.3))


def best_of_many_starts(X, rows, columns):
    """The best solution from every entry, and from random pairs."""
    starts = [start_on(X, *pair) for pair in product(supports(X.shape[0], 1), supports(X.shape[1], 1))]
    generator = np.random.default_rng(0)
    starts += [tuple(Vector.of(generator.standard_normal(size)) for size in X.shape) for _ in range(15)]
    if rows.penalty.nonnegative or columns.penalty.nonnegative:
        starts += [(-u, -v) for u, v in starts]
    operator = operator_of(X)
    solutions = [solve(operator, rows, columns, start, max_iter=50).state for start in starts]
    found = [state for state in solutions if not state.is_empty]
    return max(found, key=lambda state: state.objective, default=None)


def objective(X, rows, columns, state):
    """F, as written in the documentation."""
    value = state.u.full() @ X @ state.v.full()
    for side, vector in ((rows, state.u.full()), (columns, state.v.full())):
        weights = vector if side.signed else np.abs(vector)
        if side.term is not None:
            value += 0.5 * side.sigma * weights @ side.term.toarray() @ weights
        value -= getattr(side.penalty, "alpha", 0.0) * np.abs(vector).sum()
    return value


def test_bounds_of_all_penalties_and_graph_terms():
    generator, checked = np.random.default_rng(1), 0
    for _ in range(80):
        X = any_matrix(generator, 2, 5)
        whole = float(np.linalg.norm(X, 2)) * SLACK
        rows, columns = (any_side(size, generator, whole) for size in X.shape)
        best = best_of_many_starts(X, rows, columns)
        if best is None:
            continue
        assert best.objective == pytest.approx(objective(X, rows, columns, best), rel=1e-9, abs=1e-9)
        bound = objective_bound(operator_of(X), rows, columns, best, whole)
        assert best.objective <= bound + 1e-9 * whole
        assert bound <= spectral_bound(whole, rows, columns) + 1e-9 * whole
        checked += 1
    assert checked > 60


def test_one_entry_is_bounded_exactly_by_norms():
    X = np.random.default_rng(2).standard_normal((6, 5))
    one = Side(L1Ball(1.0))
    state = State(*start_on(X, np.arange(6), np.arange(5)), 0.0, 0.0)
    bound = objective_bound(operator_of(X), one, one, state, float(np.linalg.norm(X, 2)))
    assert bound == pytest.approx(np.abs(X).max())
    positive = Side(L1Ball(1.0, nonnegative=True))
    bound = objective_bound(operator_of(X), positive, positive, state, float(np.linalg.norm(X, 2)))
    assert bound == pytest.approx(X.max())


@pytest.mark.parametrize("n_entries", [None, 1, 3])
def test_the_inequality_holds_for_every_weight(n_entries):
    generator = np.random.default_rng(3)
    for _ in range(200):
        vectors, y = generator.standard_normal((6, 9)), np.zeros(6)
        members = generator.permutation(6)[: n_entries or 6]
        y[members] = generator.standard_normal(members.size)
        columns = Columns.of(vectors, y / np.linalg.norm(y), n_entries)
        k, (a, b) = int(generator.integers(1, 10)), generator.uniform(0.01, 8, 2)
        matrix = columns.matrix(k, a, b)
        x = np.zeros(6)
        chosen = generator.permutation(6)[: n_entries or 6]
        x[chosen] = generator.standard_normal(chosen.size)
        x /= np.linalg.norm(x)
        assert np.sort((x @ vectors) ** 2)[9 - k :].sum() <= x @ matrix @ x + 1e-12


def test_dense_modules_have_no_gap():
    X = np.random.default_rng(4).standard_normal((30, 40))
    dense = Side(Dense())
    found = solve(operator_of(X), dense, dense, start_on(X, np.arange(30), np.arange(40)))
    bound = objective_bound(operator_of(X), dense, dense, found.state, np.inf)
    assert found.state.objective == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_bounds_scale_with_the_matrix(factor):
    X = np.random.default_rng(5).standard_normal((20, 30))
    sides = Side(L0(5)), Side(L0(7))
    state = solve(operator_of(X), *sides, start_on(X, np.arange(20), np.arange(30))).state
    usual = objective_bound(operator_of(X), *sides, state, np.linalg.norm(X, 2))
    scaled = objective_bound(operator_of(factor * X), *sides, state, factor * np.linalg.norm(X, 2))
    assert scaled == pytest.approx(factor * usual, rel=1e-6)
    turned = State(state.v, state.u, state.d, state.objective)
    assert objective_bound(operator_of(X.T), *sides[::-1], turned, np.linalg.norm(X, 2)) == pytest.approx(
        usual, rel=1e-6
    )


def test_branch_and_bound_finds_the_best_submatrix():
    generator = np.random.default_rng(6)
    for _ in range(60):
        X = any_matrix(generator, 2, 7)
        sizes = [int(generator.integers(1, size + 1)) for size in X.shape]
        found = best_submatrix(X, *sizes)
        assert found.certified
        assert found.value == pytest.approx(best_value(X, *sizes), rel=1e-9)
        assert found.value == pytest.approx(np.linalg.norm(X[np.ix_(found.rows, found.columns)], 2))
        assert [found.rows.size, found.columns.size] == sizes


def test_twenty_rows_and_fifteen_columns_are_solved():
    X = np.random.default_rng(7).standard_normal((20, 15))
    found = best_submatrix(X, 20, 4)
    assert found.certified
    assert found.value == pytest.approx(best_value(X, 20, 4), rel=1e-9)
    turned = best_submatrix(X.T, 4, 20)
    assert turned.rows.tolist() == found.columns.tolist()


def test_an_unfinished_search_has_a_valid_bound():
    X = np.random.default_rng(8).standard_normal((7, 7))
    found = best_submatrix(X, 3, 3, max_nodes=3)
    assert not found.certified
    assert found.value <= best_value(X, 3, 3) * SLACK
    assert best_value(X, 3, 3) <= found.bound * SLACK


def test_a_search_begins_with_a_submatrix_that_is_known():
    for X in (np.random.default_rng(8).standard_normal((7, 6)), np.random.default_rng(9).standard_normal((6, 7))):
        best = best_submatrix(X, 3, 2)
        found = best_submatrix(X, 3, 2, max_nodes=1, known=(best.rows, best.columns))
        assert found.value == best.value
        assert (found.rows.tolist(), found.columns.tolist()) == (best.rows.tolist(), best.columns.tolist())
        part = best_submatrix(X, 3, 2, max_nodes=1, known=(best.rows[:1], best.columns))
        assert (part.rows.size, part.columns.size) == (3, 2)
        assert part.value >= np.linalg.norm(X[np.ix_(best.rows[:1], best.columns)])


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ((0, 2), ValueError, "n_rows=0 but X has 7 rows: choose 1 to 7"),
        ((8, 2), ValueError, "n_rows=8 but X has 7 rows"),
        ((2, 7), ValueError, "n_columns=7 but X has 6 columns: choose 1 to 6"),
        ((2.0, 2), TypeError, "n_rows=2.0: an integer is needed"),
        ((2, 2, 0), ValueError, "max_nodes=0: choose at least 1"),
    ],
)
def test_sizes_of_submatrices_that_do_not_exist(sizes, error, message):
    with pytest.raises(error, match=message):
        best_submatrix(np.ones((7, 6)), *sizes)
