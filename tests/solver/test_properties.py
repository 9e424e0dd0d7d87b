"""Properties that hold for every matrix, graph, term, sign mode, penalty and solver."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from netbic import L0, SCAD, AdaptiveLasso, KeepSoft, SparseGraphSVD
from netbic.solver import DEFLATIONS, IncompatibleSolver
from support.problems import matrices, penalty_with_objective, random_graph, signs, terms


def quiet_fit(X, **keywords):
    """Fit without the warnings that random problems cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGraphSVD(**keywords).fit(X)


def random_settings(X, generator):
    n, p = X.shape
    scale = np.linalg.norm(X, 2)
    return {
        "row_penalty": penalty_with_objective(n, generator, scale),
        "column_penalty": penalty_with_objective(p, generator, scale),
        "row_graph": random_graph(n, generator, weighted=bool(generator.integers(2))),
        "column_graph": random_graph(p, generator, weighted=bool(generator.integers(2))),
        "row_smoothness": float(generator.choice([0, 0.1, 0.5, 2.0])),
        "column_smoothness": float(generator.choice([0, 0.1, 0.5, 2.0])),
    }


def objective_never_falls(problem, term, sign, solver):
    X, generator = problem
    keywords = random_settings(X, generator)
    keywords |= {"smoothness_scale": str(generator.choice(["module", "relative", "absolute"]))}
    model = quiet_fit(X, graph_term=term, signs=sign, solver=solver, n_components=2, center=None, **keywords)
    for trace in model.objectives_:
        falls = np.maximum(-np.diff(trace), 0)
        assert (falls <= 1e-12 * np.abs(trace[1:]).clip(np.linalg.norm(X, 2))).all()


@settings(max_examples=50)
@given(matrices(), terms, signs, st.sampled_from(["auto", "monotone"]))
def test_objective_never_falls(problem, term, sign, solver):
    objective_never_falls(problem, term, sign, solver)


@pytest.mark.nightly
@settings(max_examples=50)
@given(matrices(), terms, signs, st.sampled_from(["auto", "monotone"]))
def test_objective_never_falls_in_more_problems(problem, term, sign, solver):
    objective_never_falls(problem, term, sign, solver)


@settings(max_examples=50)
@given(matrices(), terms, signs, st.sampled_from(["auto", "monotone", "aisp"]))
def test_a_module_has_the_stated_properties(problem, term, sign, solver):
    X, generator = problem
    keywords = random_settings(X, generator)
    model = quiet_fit(X, graph_term=term, signs=sign, solver=solver, n_components=1, center=None, **keywords)
    if not model.n_components_:
        return
    u, v, d = model.left_vectors_[:, 0], model.components_[0], model.singular_values_[0]
    assert np.linalg.norm(u) == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(v) == pytest.approx(1, abs=1e-12)
    assert d >= 0
    assert d == pytest.approx(u @ X @ v, rel=1e-9, abs=1e-10)
    for penalty, x in ((keywords["row_penalty"], u), (keywords["column_penalty"], v)):
        if isinstance(penalty, L0):
            assert np.count_nonzero(x) <= penalty.k
        if penalty.nonnegative:
            assert (x >= 0).all()
        if hasattr(penalty, "bound"):
            assert np.abs(x).sum() <= penalty.bound * (1 + 1e-9)


@settings(max_examples=50)
@given(matrices(), terms, signs)
def test_final_objective_is_the_formula(problem, term, sign):
    """The objective F, calculated from its definition."""
    X, generator = problem
    keywords = random_settings(X, generator)
    model = quiet_fit(
        X, graph_term=term, signs=sign, n_components=1, center=None, smoothness_scale="absolute", **keywords
    )
    if not model.n_components_:
        return
    u, v = model.left_vectors_[:, 0], model.components_[0]
    expected = u @ X @ v
    for axis, x in (("row", u), ("column", v)):
        w = np.abs(x) if sign == "absolute" else x
        M = keywords[f"{axis}_graph"].term(term).toarray()
        expected += keywords[f"{axis}_smoothness"] / 2 * w @ M @ w
        expected -= keywords[f"{axis}_penalty"].value(np.abs(x))
    assert model.objectives_[0][-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=50)
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


@settings(max_examples=50)
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


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), terms, signs)
def test_permuting_rows_and_columns_permutes_the_result(seed, term, sign):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((20, 30))
    rows, columns = generator.permutation(20), generator.permutation(30)
    row_graph, column_graph = random_graph(20, generator), random_graph(30, generator)
    keywords = {"n_components": 1, "n_rows": 6, "n_columns": 8, "graph_term": term, "signs": sign, "tol": 1e-10}
    one = quiet_fit(X, row_graph=row_graph, column_graph=column_graph, **keywords)
    other = quiet_fit(
        X[rows][:, columns],
        row_graph=row_graph.weights[rows][:, rows],
        column_graph=column_graph.weights[columns][:, columns],
        **keywords,
    )
    np.testing.assert_array_equal(other.columns_[0], one.columns_[0][columns])
    np.testing.assert_allclose(np.abs(other.components_[0]), np.abs(one.components_[0][columns]), atol=1e-6)
    np.testing.assert_allclose(np.abs(other.left_vectors_[:, 0]), np.abs(one.left_vectors_[rows, 0]), atol=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), terms)
def test_flipping_a_row_flips_its_entry(seed, term):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((20, 30))
    flips = generator.choice([-1.0, 1.0], 20)
    keywords = {"n_components": 1, "n_rows": 6, "n_columns": 8, "graph_term": term, "center": None, "tol": 1e-10}
    graphs = {"row_graph": random_graph(20, generator), "column_graph": random_graph(30, generator)}
    one, other = quiet_fit(X, **graphs, **keywords), quiet_fit(flips[:, None] * X, **graphs, **keywords)
    np.testing.assert_allclose(other.left_vectors_[:, 0], flips * one.left_vectors_[:, 0], atol=1e-6)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(DEFLATIONS))
def test_dense_modules_are_the_svd_for_every_deflation(seed, deflation):
    X = np.random.default_rng(seed).standard_normal((12, 9)) * np.linspace(1, 4, 9)
    model = quiet_fit(X, n_components=3, center=None, deflation=deflation, tol=1e-12, max_iter=20000)
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
