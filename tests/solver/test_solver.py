"""Parts of the solver: half steps, shifts, starts, deflation."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from netbic import L0, Graph, SparseGraphSVD
from netbic.operators.corrected import Corrected
from netbic.operators.dense import DenseOperator
from netbic.simulate import paper
from netbic.solver.half_step import Side, State, Vector, candidate, half_step, rounds
from netbic.solver.problem import ModuleProblem
from netbic.solver.search import DEFLATIONS, Module, deflation_terms
from netbic.solver.solve import Settings, Solution, solve
from netbic.solver.starts import Direction, Starts, Subspace, exact_direction
from support.operator_entries import entries_of
from support.problems import matrices, penalty_with_objective, random_graph, signed_graph, terms

PATH = Graph(np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1))
FAR_EDGE = Graph(np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float))


def corrected(X):
    return Corrected(DenseOperator(X), float(np.sum(X**2)))


def test_a_node_chosen_for_its_neighbours_alone_is_positive():
    old = Vector.of(np.array([0.0, -1.0, 0, 0, 0, 0]))
    side = Side(L0(2), PATH.term("adjacency"), sigma=10.0)
    for zero in (0.0, -0.0):
        new = candidate(side, np.array([zero, -1.0, 0, 0, 0, 0]), side.smooth(old), 0.0)
        assert new.support.tolist() == [0, 2]
        assert (new.values > 0).all()
        assert np.linalg.norm(new.values) == pytest.approx(1)


@pytest.mark.parametrize("solver", ["auto", "monotone"])
def test_supports_of_equal_objective_do_not_alternate(solver):
    side = Side(L0(1), FAR_EDGE.term("adjacency"), sigma=1.0)
    old = side.smooth(Vector.of(np.array([0.0, 1.0, 0, 0])))
    assert half_step(side, np.array([1.0, 1, 0, 0]), old, solver, feasible=True).support.tolist() == [1]
    if solver == "auto":
        assert half_step(side, np.array([1.0, 1, 0, 0]), old, solver, feasible=False).support.tolist() == [0]


@given(matrices(), terms, st.sampled_from(["absolute", "signed", "signed edges"]))
def test_the_full_shift_never_lowers_the_objective_by_itself(problem, term, sign):
    """The proof's step, without the guard that would hide a wrong bound."""
    X, generator = problem
    size, signed = X.shape[1], sign == "signed edges"
    graph = signed_graph(size, generator) if signed else random_graph(size, generator, weighted=True)
    penalty, sigma = penalty_with_objective(size, generator, np.linalg.norm(X, 2)), float(generator.uniform(0, 5))
    trust = float(generator.random())
    side = Side(penalty, graph.term(term), sigma, signed=sign == "signed", trust=trust)
    assert side.signed == (sign != "absolute")
    z = X.T @ generator.standard_normal(X.shape[0])
    start = Vector.of(generator.standard_normal(X.shape[1]))
    old = side.smooth(candidate(side, z, side.smooth(start), 0.0))
    for _ in range(3):
        if old.is_empty:
            return
        new = side.smooth(candidate(side, z, old, side.shift_bound))
        if new.is_empty:  # L1 alone may leave nothing; then the guard keeps the old vector
            return
        before, after = side.objective(z, old), side.objective(z, new)
        assert after >= before - 1e-12 * (abs(before) + np.abs(z).max() + side.sigma * side.shift_bound)
        old = new


def test_without_the_shift_f_falls_on_a_star():
    """All weight alternates between the hub and the leaves: no edge inside the support, F = 0."""
    star = Graph(np.array([[0.0, 1, 1, 1, 1]] + [[1.0, 0, 0, 0, 0]] * 4))
    side = Side(L0(3), star.term("adjacency"), sigma=1.0)
    z = np.zeros(5)
    old = side.smooth(Vector.of(np.array([0.9, 0.3, 0.3, 0, 0])))
    plain, shifted = (side.smooth(candidate(side, z, old, shift)) for shift in (0.0, side.term.shift_bound))
    assert side.objective(z, plain) == 0
    assert side.objective(z, shifted) >= side.objective(z, old) > 0


def test_auto_takes_the_papers_steps_where_they_do_not_lower_f():
    agreed = 0
    for seed in range(8):
        toy = paper(0.04, random_state=seed)
        sides = [Side(L0(50), graph.term("adjacency"), 0.1) for graph in (toy.row_graph, toy.column_graph)]
        u, _, vt = np.linalg.svd(toy.X)
        start = Vector.of(u[:, 0]), Vector.of(vt[0])
        plain, auto, full = (
            solve(DenseOperator(toy.X), *sides, start, Settings(solver=solver))
            for solver in ("aisp", "auto", "monotone")
        )
        if plain.outcome == "converged" and (np.diff(plain.objectives) >= 0).all():
            agreed += 1
            np.testing.assert_array_equal(auto.state.v.full(), plain.state.v.full())
            assert len(auto.objectives) == len(plain.objectives)
            assert len(full.objectives) > len(plain.objectives)
    assert agreed >= 4


def test_restarts_are_ranked_by_f_and_any_module_beats_none():
    u = Vector.of(np.ones(2))
    none = Vector(2, np.empty(0, dtype=np.intp), np.empty(0))
    high_f, high_d = (Solution(State(u, u, d, f), "converged", np.array([f])) for d, f in ((1.0, 5.0), (2.0, 3.0)))
    empty = Solution(State(none, u, 0.0, 9.0), "empty", np.array([9.0]))
    assert max([empty, high_d, high_f], key=lambda solution: solution.rank) is high_f


def test_a_start_of_the_wrong_sign_is_flipped():
    a, b = np.array([1.0, 2, 3]), np.array([1.0, -1, 2, 0.5])
    problem = ModuleProblem(corrected(np.outer(a, b)), Side(L0(2, nonnegative=True)), Side(L0(3)), Settings())
    for sign in (1, -1):
        direction = Direction(sign * a / np.linalg.norm(a), True, float(np.linalg.norm(a) * np.linalg.norm(b)))
        solution = problem.from_direction(direction)
        assert solution.outcome == "converged"
        assert solution.state.u.support.tolist() == [1, 2]


def test_nonnegative_sides_are_never_flipped():
    """Signed terms can give both vectors signs with d < 0; then there is no module, not a negative one."""
    complete = Graph(np.ones((4, 4)) - np.eye(4)).term("adjacency")
    sides = [Side(L0(2, nonnegative=True), complete, 5.0, signed=True) for _ in range(2)]
    start = Vector.of(np.ones(4)), Vector.of(np.ones(4))
    solution = solve(DenseOperator(-np.ones((4, 4))), *sides, start)
    assert (solution.state.u.values >= 0).all()
    assert (solution.state.v.values >= 0).all()
    assert solution.state.d < 0
    free = [sides[0], Side(L0(2), complete, 5.0, signed=True)]
    turned = solve(DenseOperator(-np.ones((4, 4))), *free, start)
    assert turned.state.d > 0
    assert (turned.state.u.values >= 0).all()


@pytest.mark.parametrize("how", DEFLATIONS)
def test_deflation_is_the_formula(how):
    generator, shape = np.random.default_rng(0), (12, 9)
    X = generator.standard_normal(shape)
    u, v = np.zeros(shape[0]), np.zeros(shape[1])
    u[1:4], v[2:6] = generator.standard_normal(3), generator.standard_normal(4)
    u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
    d = u @ X @ v
    module = Module(Vector.of(u), Vector.of(v), d, "converged", np.array([d]), 0.0)
    operator = corrected(X)
    for left, right in deflation_terms(operator, module, how):
        support = np.flatnonzero(right)
        operator = operator.minus(left, right, operator.matvec(support, right[support]))
    expected = {
        "hotelling": X - d * np.outer(u, v),
        "projection": (np.eye(shape[0]) - np.outer(u, u)) @ X @ (np.eye(shape[1]) - np.outer(v, v)),
        "schur": X - np.outer(X @ v, X.T @ u) / d,
    }[how]
    np.testing.assert_allclose(entries_of(operator), expected, atol=1e-12)
    assert operator.squared_norm == pytest.approx(np.sum(expected**2))


@pytest.mark.parametrize("shape", [(30, 50), (50, 30), (400, 500)])
@pytest.mark.parametrize("exact", [True, False])
def test_starts_follow_the_deflated_matrix(shape, exact):
    generator = np.random.default_rng(1)
    X = generator.standard_normal(shape) + 3 * np.outer(np.linspace(0, 1, shape[0]), np.linspace(1, 0, shape[1]))
    operator = corrected(X)
    starts = Starts(operator, exact)
    for _ in range(4):
        direction = starts.leading(operator)
        u, values, vt = np.linalg.svd(X)
        expected = u[:, 0] if direction.on_rows else vt[0]
        assert direction.value == pytest.approx(values[0], rel=1e-3)
        if exact or min(shape) < 100:
            assert direction.value == pytest.approx(values[0], rel=1e-10)
            assert abs(direction.vector @ expected) == pytest.approx(1, abs=1e-10)
        left, right = np.zeros(shape[0]), np.zeros(shape[1])
        left[:20], right[5:25] = 2 * u[:20, 0], values[0] * vt[0, 5:25]
        starts.deflate(operator, left, right, X @ right)
        operator = operator.minus(left, right, X @ right)
        X = X - np.outer(left, right)


def test_starts_by_passes_over_a_matrix_with_two_long_sides(monkeypatch):
    """Without a Gram matrix: a few passes per module, using the results of earlier ones."""
    monkeypatch.setattr("netbic.solver.starts._GRAM_SIZE", 10)
    monkeypatch.setattr("netbic.solver.starts._EXACT_WORK", 0)
    generator = np.random.default_rng(5)
    U, V = (np.linalg.qr(generator.standard_normal((size, 6)))[0] for size in (80, 120))
    X = (U * [60, 50, 40, 30, 25, 20]) @ V.T + 0.3 * generator.standard_normal((80, 120))
    operator = corrected(X)
    starts = Starts(operator, exact=False)
    for k in range(5):
        direction = starts.leading(operator)
        assert direction.value == pytest.approx(np.linalg.norm(X, 2), rel=1e-3)
        assert abs(direction.vector @ V[:, k]) > 0.99
        left, right = X @ direction.vector, direction.vector
        starts.deflate(operator, left, right, X @ right)
        operator = operator.minus(left, right, X @ right)
        X = X - np.outer(left, right)


def test_a_subspace_is_compressed_when_a_block_does_not_fit():
    """Directions that the subspace contains already are dropped, so that it need not be full."""
    generator = np.random.default_rng(7)
    A = generator.standard_normal((40, 40))
    A = A @ A.T
    subspace = Subspace(generator.standard_normal((4, 40)), 10, 5)
    value, vector, _ = subspace.leading(lambda Q: (A @ Q, None), 1e-6, 60)
    assert subspace.size <= 10
    assert value == pytest.approx(np.linalg.eigvalsh(A)[-1], rel=1e-6)
    assert np.linalg.norm(A @ vector - value * vector) <= 1e-5 * value
    # It keeps the products of the matrix with its directions, also after the matrix was deflated.
    X = generator.standard_normal((60, 40))
    subspace = Subspace(generator.standard_normal((4, 40)), 10, 5, image_size=60)
    for _ in range(3):
        _, vector, image = subspace.leading(lambda Q, X=X: (X.T @ (X @ Q), X @ Q), 1e-3, 5)
        np.testing.assert_allclose(image, X @ vector, atol=1e-5)
        left, right = generator.standard_normal(60), generator.standard_normal(40)
        subspace.deflate(X.T @ left - 0.5 * (left @ left) * right, right)
        subspace.deflate_images(left, right)
        X = X - np.outer(left, right)


def test_an_exhausted_matrix_ends_the_search():
    """Rounding errors in the Gram matrix must not be mistaken for signal."""
    for seed in range(3):
        generator = np.random.default_rng(seed)
        X = np.zeros((40, 50))
        X[generator.choice(40, 6, False), generator.choice(50, 6, False)] = generator.standard_normal(6)
        for data in (X, sp.csr_array(X)):
            with pytest.warns(UserWarning, match="found 6 of 30 modules"):
                SparseGraphSVD(30, n_rows=1, n_columns=1, center=None).fit(data)
    a, b = np.random.default_rng(2).standard_normal((2, 40))
    X = np.outer(a, b)
    operator = corrected(X)
    starts = Starts(operator, exact=False)
    starts.deflate(operator, a, b, X @ b)
    operator = operator.minus(a, b, X @ b)
    rest = starts.leading(operator)
    assert rest is None or rest.value < 1e-12
    assert exact_direction(corrected(np.zeros((3, 4))), True) is None


def test_a_decaying_oscillation_is_not_a_cycle():
    outcomes = []
    for seed in range(8):
        toy = paper(0.05, n_rows=40, n_columns=40, n_row_support=20, n_column_support=20, random_state=seed)
        sides = [Side(L0(20), graph.term("adjacency"), 0.3, True) for graph in (toy.row_graph, toy.column_graph)]
        u, _, vt = np.linalg.svd(toy.X)
        start = Vector.of(u[:, 0]), Vector.of(vt[0])
        found = solve(DenseOperator(toy.X), *sides, start, Settings(solver="aisp", max_iter=2000))
        states = rounds(DenseOperator(toy.X), *sides, *start, "aisp")
        late = [next(states) for _ in range(2000)][-1]
        if found.outcome == "cycle":
            assert next(states).v.distance(late.v) > 1e-6
        outcomes.append(found.outcome)
    assert {"cycle", "converged"} <= set(outcomes)
