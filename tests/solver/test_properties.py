"""Properties that hold for every matrix, graph, term, sign mode, penalty and solver."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from netbic import L0, SCAD, AdaptiveLasso, Dense, KeepSoft, SparseGraphSVD
from netbic.solver.search import DEFLATIONS, SOLVERS
from netbic.solver.solve import IncompatibleSolver
from support.problems import (
    graph_part,
    matrices,
    penalty_with_objective,
    quiet_fit,
    random_graph,
    signed_graph,
    signs,
    terms,
)

kinds_of_signs = st.sampled_from(["absolute", "signed", "signed edges"])


@given(matrices(), terms, kinds_of_signs, st.sampled_from(SOLVERS), st.sampled_from(["module", "relative", "absolute"]))
def test_a_module_has_the_stated_properties(problem, term, sign, solver, scale):
    """Unit vectors that satisfy the penalties, d, and the objective F: it never falls and is that of its definition."""
    X, generator = problem
    norm = np.linalg.norm(X, 2)
    keywords = {"graph_term": term, "solver": solver, "smoothness_scale": scale, "n_components": 2, "center": None}
    if sign != "signed edges":
        keywords["signs"] = sign
    for axis, size in zip(("row", "column"), X.shape, strict=True):
        weighted = bool(generator.integers(2))
        signed = sign == "signed edges"
        graph = signed_graph(size, generator) if signed else random_graph(size, generator, weighted)
        keywords[f"{axis}_penalty"] = penalty_with_objective(size, generator, norm)
        keywords[f"{axis}_graph"] = graph
        keywords[f"{axis}_smoothness"] = float(generator.choice([0, 0.1, 0.5, 2.0]))
    model = quiet_fit(X, **keywords)
    if solver != "aisp":
        for trace in model.objectives_:
            falls = np.maximum(-np.diff(trace), 0)
            assert (falls <= 1e-12 * np.abs(trace[1:]).clip(norm)).all()
    if not model.n_components_:
        return
    u, v, d = model.left_vectors_[:, 0], model.components_[0], model.singular_values_[0]
    assert d >= 0
    assert d == pytest.approx(u @ X @ v, rel=1e-9, abs=1e-10)
    expected = u @ X @ v
    for axis, x in (("row", u), ("column", v)):
        penalty, graph = keywords[f"{axis}_penalty"], keywords[f"{axis}_graph"]
        assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
        if isinstance(penalty, L0):
            assert np.count_nonzero(x) <= penalty.k
        if penalty.nonnegative:
            assert (x >= 0).all()
        if hasattr(penalty, "bound"):
            assert np.abs(x).sum() <= penalty.bound * (1 + 1e-9)
        w = np.abs(x) if sign == "absolute" else x
        part = graph_part(graph, term, x) if sign == "signed edges" else w @ graph.term(term).toarray() @ w
        expected += keywords[f"{axis}_smoothness"] / 2 * part - penalty.value(np.abs(x))
    if scale == "absolute" and solver != "aisp":
        assert model.objectives_[0][-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(matrices(n=st.integers(6, 25), p=st.integers(6, 25)), st.integers(1, 6), st.integers(1, 6), terms)
def test_exactly_k_entries_or_all_with_a_positive_score_are_kept(problem, k_rows, k_columns, term):
    X, generator = problem
    graph = random_graph(X.shape[1], generator)
    keywords = {"n_components": 1, "n_rows": k_rows, "n_columns": k_columns, "center": None, "graph_term": term}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseGraphSVD(column_graph=graph, **keywords).fit(X)
    short = model.rows_[0].sum() < k_rows or model.columns_[0].sum() < k_columns
    assert short == any(" fewer than " in str(warning.message) for warning in caught)
    assert model.rows_[0].sum() <= k_rows
    assert model.columns_[0].sum() <= k_columns


@pytest.mark.parametrize("penalty", [KeepSoft(3), SCAD(3), AdaptiveLasso()])
@pytest.mark.parametrize("axis", ["row", "column"])
def test_monotone_refuses_penalties_without_an_objective(penalty, axis):
    X = np.random.default_rng(0).standard_normal((8, 9))
    with pytest.raises(IncompatibleSolver, match=f"cannot be used with {axis} penalty {type(penalty).__name__}"):
        SparseGraphSVD(solver="monotone", **{f"{axis}_penalty": penalty}).fit(X)


@given(matrices(n=st.integers(9, 25), p=st.integers(9, 25)), st.sampled_from(["joint", "sequential"]), terms)
def test_monotone_increases_the_objective_with_sizes_from_the_data(problem, search, term):
    X, generator = problem
    graph = random_graph(X.shape[1], generator)
    model = quiet_fit(X, n_components=2, search=search, solver="monotone", column_graph=graph, graph_term=term)
    for trace in model.objectives_:
        assert (np.diff(trace) >= -1e-12 * np.abs(trace[1:]).clip(np.linalg.norm(X, 2))).all()


@given(matrices(), terms, signs, st.floats(1e-6, 1e6))
def test_scaling_x_scales_d_and_nothing_else(problem, term, sign, factor):
    X, generator = problem
    n, p = X.shape
    keywords = {
        "n_components": 2,
        "n_rows": max(1, n // 2),
        "n_columns": max(1, p // 3),
        "row_graph": random_graph(n, generator),
        "column_graph": random_graph(p, generator),
        "graph_term": term,
        "signs": sign,
    }
    # A power of two changes no digit, so that ties are broken in the same way.
    factor = 2.0 ** round(np.log2(factor))
    one, other = quiet_fit(X, **keywords), quiet_fit(factor * X, **keywords)
    np.testing.assert_allclose(other.singular_values_, factor * one.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-7)
    np.testing.assert_allclose(other.left_vectors_, one.left_vectors_, atol=1e-7)


@given(st.integers(0, 2**32 - 1), terms, signs)
def test_permuting_and_flipping_rows_and_columns_does_so_to_the_result(seed, term, sign):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((20, 30))
    rows, columns = generator.permutation(20), generator.permutation(30)
    flips = generator.choice([-1.0, 1.0], (20, 1)) if sign == "absolute" else np.ones((20, 1))
    first, second = random_graph(20, generator), random_graph(30, generator)
    moved = first.weights[rows][:, rows], second.weights[columns][:, columns]
    keywords = {"n_components": 1, "n_rows": 6, "n_columns": 8, "graph_term": term, "signs": sign, "tol": 1e-10}
    one = quiet_fit(X, row_graph=first, column_graph=second, center=None, **keywords)
    other = quiet_fit(flips * X[rows][:, columns], row_graph=moved[0], column_graph=moved[1], center=None, **keywords)
    u, v = flips[:, 0] * one.left_vectors_[rows, 0], one.components_[0][columns]
    np.testing.assert_array_equal(other.columns_[0], one.columns_[0][columns])
    turned = np.sign(v @ other.components_[0])  # of two equal largest entries, another one may be positive
    np.testing.assert_allclose(turned * other.components_[0], v, atol=1e-6)
    np.testing.assert_allclose(turned * other.left_vectors_[:, 0], u, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from(DEFLATIONS))
def test_dense_modules_are_the_svd_for_every_deflation(seed, deflation):
    X = np.random.default_rng(seed).standard_normal((12, 9)) * np.linspace(1, 4, 9)
    model = quiet_fit(
        X, n_components=3, column_penalty=Dense(), center=None, deflation=deflation, tol=1e-12, max_iter=20000
    )
    np.testing.assert_allclose(model.singular_values_, np.linalg.svd(X, compute_uv=False)[:3], rtol=1e-7)


def test_no_module_is_found_twice():
    """Deflation removes a planted module: three planted modules are matched one to one."""
    generator = np.random.default_rng(5)
    U, V = np.zeros((40, 3)), np.zeros((60, 3))
    for k in range(3):
        U[10 * k : 10 * k + 10, k], V[15 * k : 15 * k + 15, k] = 1, 1
    X = (U * [3, 2.5, 2]) @ V.T + 0.3 * generator.standard_normal((40, 60))
    for deflation in DEFLATIONS:
        model = quiet_fit(X, n_components=3, n_rows=10, n_columns=15, center=None, deflation=deflation)
        shared = model.columns_.astype(int) @ V
        assert shared[linear_sum_assignment(-shared)].tolist() == [15, 15, 15]


@pytest.mark.nightly
@pytest.mark.parametrize("test", [test_a_module_has_the_stated_properties, test_scaling_x_scales_d_and_nothing_else])
def test_properties_of_more_problems(test):
    settings(max_examples=500)(test)()
