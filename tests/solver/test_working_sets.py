"""Rounds on a small part of X: the same problem, never a smaller F, and only full rounds decide on convergence."""

from unittest import mock

import dask.array as da
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from netbic import L0, Graph, SparseGraphSVD
from netbic.graph_terms import TERMS
from netbic.operators.blocks import RowBlocks
from netbic.operators.chunked import ChunkedOperator
from netbic.operators.corrected import Scaler
from netbic.operators.dense import DenseOperator
from netbic.operators.masked import Masked
from netbic.operators.sparse import SparseOperator
from netbic.solver import working_sets
from netbic.solver.half_step import Side, Vector, rounds
from netbic.solver.solve import extrapolated
from netbic.solver.working_sets import WorkingSets
from support.operator_entries import entries_of
from support.problems import matrices, penalty_with_objective, quiet_fit, random_graph, signs, terms

GENERATOR = np.random.default_rng(0)


def always(factor=1):
    """Use working sets of this size even where they do not pay."""
    return mock.patch.multiple(working_sets, _LESS=0, _FACTOR=factor, _LARGEST_SHARE=1.0, _LEAST_READ=0, _UNCHANGED=1)


@given(matrices(), terms, signs, st.sampled_from([1, 2]))
def test_f_does_not_fall_and_a_full_round_confirms_the_module(problem, term, sign, factor):
    X, generator = problem
    scale, sides = np.linalg.norm(X, 2), []
    keywords = {"graph_term": term, "signs": sign, "smoothness_scale": "absolute", "center": None}
    for axis, size, sigmas in zip(("row", "column"), X.shape, ([0, 0.5], [0.1, 1.0]), strict=True):
        penalty, graph = penalty_with_objective(size, generator, scale), random_graph(size, generator, weighted=True)
        sigma = float(generator.choice(sigmas))
        keywords |= {f"{axis}_penalty": penalty, f"{axis}_graph": graph, f"{axis}_smoothness": sigma}
        sides.append(Side(penalty, graph.term(term), sigma, sign == "signed"))
    with always(factor):
        model = quiet_fit(X, n_components=1, **keywords)
    for trace in model.objectives_:
        assert (np.diff(trace) >= -1e-12 * np.abs(trace[1:]).clip(scale)).all()
    if not (model.n_components_ and model.converged_[0]):
        return
    u, v = Vector.of(model.left_vectors_[:, 0]), Vector.of(model.components_[0])
    after = next(rounds(DenseOperator(X), *sides, u, v, "auto", feasible=True))
    assert after.u.distance(u) <= 1e-5
    assert after.v.distance(v) <= 1e-5


def test_modules_are_those_of_full_rounds():
    """Planted modules have one solution, whatever the path to it."""
    X = GENERATOR.standard_normal((60, 6000))
    for k in range(3):
        X[20 * k : 20 * (k + 1), 30 * k : 30 * (k + 1)] += 2.5
    graph = Graph.of(nx.gnm_random_graph(6000, 30_000, seed=1))
    used = []
    cut = WorkingSets.for_state

    def counted(*arguments):
        used.append(cut(*arguments))
        return used[-1]

    for keywords in ({"n_columns": 30, "search": "sequential"}, {"n_rows": 20, "n_columns": 30}):
        used.clear()
        with mock.patch.object(WorkingSets, "for_state", counted):
            small = SparseGraphSVD(3, column_graph=graph, tol=1e-10, **keywords).fit(X)
        assert sum(part is not None for part in used) >= 3
        with mock.patch.object(WorkingSets, "for_state", return_value=None):
            full = SparseGraphSVD(3, column_graph=graph, tol=1e-10, **keywords).fit(X)
        np.testing.assert_array_equal(small.columns_, full.columns_)
        np.testing.assert_allclose(small.components_, full.components_, atol=1e-8)


def test_the_other_solvers_and_custom_penalties_use_no_working_sets():
    for solver in ("aisp", "monotone"):
        with mock.patch.object(WorkingSets, "for_state", side_effect=AssertionError):
            SparseGraphSVD(1, n_columns=5, search="sequential", solver=solver).fit(
                GENERATOR.standard_normal((30, 5000))
            )

    class Own(L0):
        def restricted(self):
            return None

    with mock.patch("netbic.operators.corrected.Corrected.part", side_effect=AssertionError):
        SparseGraphSVD(1, column_penalty=Own(5), search="sequential").fit(GENERATOR.standard_normal((30, 5000)))


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_restricted_term_is_a_principal_submatrix(term, weighted):
    whole = random_graph(40, np.random.default_rng(3), weighted).term(term)
    nodes = np.array([0, 3, 4, 11, 12, 20, 39])
    part = whole.restricted(nodes)
    expected = whole.toarray()[np.ix_(nodes, nodes)]
    for support in (np.arange(7), np.array([1, 5])):
        values = GENERATOR.random(support.size)
        np.testing.assert_allclose(part.product(support, values), expected[:, support] @ values, atol=1e-12)
    assert np.linalg.eigvalsh(expected + part.shift_bound * np.eye(7)).min() >= -1e-9
    assert np.linalg.eigvalsh(expected).max() <= part.largest_eigenvalue + 1e-9
    assert part.scale == whole.scale


MATRICES = {
    "dense": DenseOperator,
    "dense, packed": lambda X: DenseOperator(X).for_one_start(),
    "dense, low memory": lambda X: DenseOperator(X, low_memory=True),
    "sparse": lambda X: SparseOperator(sp.csr_array(X)),
    "blocks": lambda X: ChunkedOperator(RowBlocks(da.from_array(X, chunks=(7, -1)))),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_a_part_has_the_centred_scaled_and_deflated_entries(make, dtype):
    X = (GENERATOR.poisson(0.7, (30, 50)) * GENERATOR.uniform(1, 3, (30, 50))).astype(dtype)
    data = make(X)
    operator = Scaler.learn(data, "both", True).operator(data)
    u, v = np.eye(30)[3] + np.eye(30)[5], np.eye(50)[2] - np.eye(50)[9]
    for left, right in ((u, v), (GENERATOR.standard_normal(30), GENERATOR.standard_normal(50))):
        operator = operator.minus(left, right, columns_of(operator) @ right)
    entries, close = columns_of(operator), 1e-5 if dtype == np.float32 else 1e-12
    every = np.arange(30)
    for rows, columns in ((every, np.array([2, 3, 9, 40])), (np.array([1, 3, 5, 29]), np.array([0, 2, 9]))):
        part = operator.part(rows, columns)
        np.testing.assert_allclose(columns_of(part), entries[np.ix_(rows, columns)], atol=close)
        weights = GENERATOR.standard_normal(rows.size)
        expected = weights @ entries[np.ix_(rows, columns)]
        np.testing.assert_allclose(part.rmatvec(np.arange(rows.size), weights), expected, atol=30 * close)


def columns_of(operator):
    """All entries, by products with unit vectors."""
    one = np.ones(1)
    return np.column_stack([operator.matvec(np.array([j]), one) for j in range(operator.shape[1])])


def test_a_part_of_a_matrix_with_missing_entries():
    X = GENERATOR.standard_normal((20, 30))
    X[GENERATOR.random(X.shape) < 0.2] = np.nan
    operator = Masked(X.copy(), impute=True)
    operator = operator.with_prediction(GENERATOR.standard_normal(20), GENERATOR.standard_normal(30))
    rows, columns = np.array([0, 4, 19]), np.array([1, 2, 28])
    np.testing.assert_allclose(
        entries_of(operator.part(rows, columns)), entries_of(operator)[np.ix_(rows, columns)], atol=1e-12
    )


def test_a_set_is_made_again_only_if_it_does_not_contain_the_vectors():
    X = GENERATOR.standard_normal((20, 6000))
    data = DenseOperator(X)
    operator = Scaler.learn(data, None, False).operator(data)
    rows, columns = Side(L0(20)), Side(L0(10))
    state = next(rounds(operator, rows, columns, Vector.of(np.ones(20)), Vector.of(X[0])))
    sets = WorkingSets()
    first = sets.for_state(operator, rows, columns, state, unchanged=0)
    assert first.operator.shape == (20, 30)
    assert sets.for_state(operator, rows, columns, state, unchanged=0) is first
    other = next(rounds(operator, rows, columns, Vector.of(np.eye(20)[7]), Vector.of(-X[3])))
    assert sets.for_state(operator, rows, columns, other, unchanged=0) is not first
    assert sets.for_state(Scaler.learn(data, None, False).operator(data), rows, columns, other, 0) is not first


@pytest.mark.filterwarnings("ignore:the graph makes up")
@pytest.mark.parametrize("term", ["laplacian", "adjacency"])
def test_slow_tails_converge(term):
    """On a star, the Laplacian needs a large shift: without extrapolation 500 rounds are not enough."""
    graph = Graph.of(nx.star_graph(59))
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((40, 60))
        keywords = {"n_rows": 15, "n_columns": 25, "column_smoothness": 3.0, "smoothness_scale": "relative"}
        model = SparseGraphSVD(1, column_graph=graph, graph_term=term, **keywords).fit(X)
        assert model.converged_.all()
        trace = model.objectives_[0]
        assert (np.diff(trace) >= -1e-12 * np.abs(trace).max()).all()


def test_extrapolation_finds_the_fixed_point_of_a_linear_iteration():
    turned, _ = np.linalg.qr(GENERATOR.standard_normal((8, 8)))
    matrix = turned @ np.diag([0.99, 0.9, 0.7, 0.3, 0, 0, 0, 0]) @ turned.T
    fixed = GENERATOR.standard_normal(8)
    points = [GENERATOR.standard_normal(8)]
    for _ in range(6):
        points.append(fixed + matrix @ (points[-1] - fixed))
    assert np.linalg.norm(points[-1] - fixed) > 0.1
    np.testing.assert_allclose(extrapolated(np.array(points)), fixed, atol=1e-3)
