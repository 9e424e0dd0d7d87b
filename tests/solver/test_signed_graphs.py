"""Edges that inhibit: the objective, its monotone increase, and the invariance against changes of signs."""

import warnings
from itertools import combinations, product

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import netbic
from netbic import L0, AdaptiveSupport, Graph, SparseGraphSVD
from netbic.graph_terms import TERMS
from netbic.solver import Side, Vector
from netbic.solver.half_step import candidate
from support.problems import matrices, penalty_with_objective, random_graph, terms

SHAPES = {
    "star": np.array([[0.0] + [1.0] * 29] + [[1.0] + [0.0] * 29] * 29),
    "clique": np.ones((30, 30)) - np.eye(30),
    "edge": np.pad([[0.0, 1.0], [1.0, 0.0]], (0, 3)),
    "path": np.diag(np.ones(29), 1) + np.diag(np.ones(29), -1),
}


def with_signs(weights, generator, share=0.5):
    """A graph whose edges inhibit with this probability (at least one does)."""
    upper = np.triu(weights, 1)
    flipped = (upper != 0) & (generator.random(upper.shape) < share)
    if not flipped.any():
        flipped.flat[np.flatnonzero(upper)[0]] = True
    upper = np.where(flipped, -upper, upper)
    return Graph(upper + upper.T, signed=True)


def signed_graph(size, generator):
    return with_signs(random_graph(size, generator, weighted=True).weights.toarray(), generator)


def matrices_of(A, term):
    """B and r of a term, from their definitions."""
    d = np.abs(A).sum(axis=1)
    safe, r = np.where(d > 0, d, 1), np.zeros(len(A))
    if term == "adjacency":
        return A, r
    if term == "laplacian":
        return A - np.diag(d), r
    if term == "modularity":
        t = 1 / np.sqrt(d + d[d > 0].mean())
        return A * np.outer(t, t), t * d / np.sqrt(d.sum())
    normalized = A / np.sqrt(np.outer(safe, safe))
    return normalized - (np.diag(d > 0) if term == "normalized_laplacian" else 0), r


def graph_part(graph, term, v, trust=0.5):
    """t v'Bv + (1 - t) |v|'B'|v| - (r'|v|)^2, with B' of the magnitudes of the weights; of one or several columns v."""
    A, w = graph.weights.toarray(), np.abs(v)
    (B, r), plain = matrices_of(A, term), matrices_of(np.abs(A), term)[0]
    return np.sum(trust * v * (B @ v) + (1 - trust) * w * (plain @ w), axis=0) - (r @ w) ** 2


def quiet_fit(X, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGraphSVD(**keywords).fit(X)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("shape", [*SHAPES, "random"])
def test_bounds_of_the_spectrum_hold(shape, term):
    """Whatever the signs of edges: of vectors, and of the two parts of the proof."""
    generator = np.random.default_rng(0)
    for _ in range(10):
        graph = signed_graph(30, generator) if shape == "random" else with_signs(SHAPES[shape], generator)
        own, trust = graph.term(term), float(generator.choice([0.0, 0.3, 1.0]))
        A = graph.weights.toarray()
        (B, r), plain = matrices_of(A, term), matrices_of(np.abs(A), term)[0]
        first, second = own.signed_shifts(trust)
        assert np.linalg.eigvalsh(trust * B)[0] >= -first - 1e-11
        assert np.linalg.eigvalsh((1 - trust) * plain - np.outer(r, r))[0] >= -second - 1e-11
        for _ in range(5):
            v = generator.standard_normal(graph.n_nodes) * (generator.random(graph.n_nodes) < 0.5)
            v /= np.linalg.norm(v) or 1.0
            assert graph_part(graph, term, v, trust) <= own.largest_eigenvalue + 1e-11
            side = Side(L0(3), own, 2.0, trust=trust)
            assert side.graph_gain(side.smooth(Vector.of(v))) == pytest.approx(graph_part(graph, term, v, trust))


@settings(max_examples=50)
@given(matrices(), terms)
def test_the_full_shift_never_lowers_the_objective_by_itself(problem, term):
    """The proof's step, without the guard that would hide a wrong bound."""
    X, generator = problem
    graph = signed_graph(X.shape[1], generator)
    penalty = penalty_with_objective(X.shape[1], generator, np.linalg.norm(X, 2))
    side = Side(penalty, graph.term(term), float(generator.uniform(0, 5)), trust=float(generator.random()))
    assert side.signed
    z = X.T @ generator.standard_normal(X.shape[0])
    old = side.smooth(candidate(side, z, side.smooth(Vector.of(generator.standard_normal(X.shape[1]))), 0.0))
    for _ in range(3):
        if old.is_empty:
            return
        new = side.smooth(candidate(side, z, old, side.shift_bound))
        if new.is_empty:
            return
        before, after = side.objective(z, old), side.objective(z, new)
        assert after >= before - 1e-12 * (abs(before) + np.abs(z).max() + side.sigma * side.shift_bound)
        old = new


@settings(max_examples=50)
@given(matrices(), terms, st.sampled_from(["auto", "monotone"]), st.sampled_from(["module", "relative", "absolute"]))
def test_the_objective_is_the_formula_and_never_falls(problem, term, solver, scale):
    X, generator = problem
    keywords = {"graph_term": term, "solver": solver, "smoothness_scale": scale, "n_components": 1, "center": None}
    for axis, size in zip(("row", "column"), X.shape, strict=True):
        keywords[f"{axis}_penalty"] = penalty_with_objective(size, generator, np.linalg.norm(X, 2))
        keywords[f"{axis}_graph"] = signed_graph(size, generator)
        keywords[f"{axis}_smoothness"] = float(generator.choice([0, 0.1, 0.5, 2.0]))
    model = quiet_fit(X, **keywords)
    for trace in model.objectives_:
        falls = np.maximum(-np.diff(trace), 0)
        assert (falls <= 1e-12 * np.abs(trace[1:]).clip(np.linalg.norm(X, 2))).all()
    if scale != "absolute" or not model.n_components_:
        return
    u, v = model.left_vectors_[:, 0], model.components_[0]
    expected = u @ X @ v
    for axis, x in (("row", u), ("column", v)):
        expected += keywords[f"{axis}_smoothness"] / 2 * graph_part(keywords[f"{axis}_graph"], term, x)
        expected -= keywords[f"{axis}_penalty"].value(np.abs(x))
    assert model.objectives_[0][-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), terms, st.sampled_from(["module", "relative", "absolute"]))
def test_flipping_a_gene_and_its_edges_flips_its_sign_only(seed, term, scale):
    generator = np.random.default_rng(seed)
    X, graph = generator.standard_normal((20, 30)), signed_graph(30, generator)
    flips = generator.choice([-1.0, 1.0], 30)
    flipped = Graph(graph.weights.toarray() * np.outer(flips, flips), signed=True)
    keywords = {"n_components": 2, "n_columns": 8, "graph_term": term, "smoothness_scale": scale, "tol": 1e-9}
    one, other = quiet_fit(X, column_graph=graph, **keywords), quiet_fit(X * flips, column_graph=flipped, **keywords)
    aligned = other.components_ * flips
    aligned *= np.sign(np.sum(aligned * one.components_, axis=1))[:, None]
    np.testing.assert_allclose(aligned, one.components_, atol=1e-8)
    np.testing.assert_allclose(other.singular_values_, one.singular_values_, rtol=1e-10)


def test_consistent_signs_are_an_unsigned_graph_of_genes_with_equal_signs():
    """If every edge agrees with the signs of its genes, only the signs of the genes differ.

    The weight of a graph that penalties choose depends on genes whose scores contradict their edges, too.
    """
    study = netbic.simulate.cohort(100, 200, n_modules=1, module_genes=40, overlap=0, strength=3.0, random_state=0)
    flips = np.random.default_rng(1).choice([-1.0, 1.0], 200)
    up = study.expression.to_numpy() * np.where(study.weights[0] < 0, -1.0, 1.0)
    graph = Graph(study.network.weights.toarray() * np.outer(flips, flips), signed=True)
    for keywords in ({"n_columns": 35}, {"column_penalty": AdaptiveSupport()}):
        plain = quiet_fit(up, n_components=1, column_graph=Graph(study.network.weights), **keywords)
        signed = quiet_fit(up * flips, n_components=1, column_graph=graph, **keywords)
        aligned = signed.components_ * flips
        assert plain.columns_[0].sum() > 20
        assert (plain.components_ >= 0).all()  # otherwise edges would not agree
        aligned *= np.sign(aligned.sum())
        assert (np.sign(aligned) == np.sign(plain.components_)).all()
        if "n_columns" in keywords:
            np.testing.assert_allclose(aligned, plain.components_, atol=1e-9)


def test_an_edge_decides_the_sign_of_a_gene_without_signal():
    graph = Graph(np.array([[0, 1.0, 0], [1.0, 0, -1.0], [0, -1.0, 0]]), signed=True)
    side = Side(L0(3), graph.term("adjacency"), sigma=1.0)
    old = side.smooth(Vector.of(np.array([0.0, 1.0, 0.0])))
    assert np.sign(candidate(side, np.array([0.0, 5.0, 0.0]), old, 0.1).full()).tolist() == [1, 1, -1]


@pytest.mark.parametrize("term", TERMS)
def test_tiny_problems_reach_the_optimum(term):
    """All supports, and on each of them all directions of a fine grid."""
    angles = np.linspace(0, 2 * np.pi, 721)
    grid = np.stack([np.cos(angles), np.sin(angles)])
    hits = []
    for seed in range(10):
        generator = np.random.default_rng(seed)
        X, graph = generator.standard_normal((4, 5)), with_signs(np.ones((5, 5)) - np.eye(5), generator)
        model = quiet_fit(
            X, n_components=1, n_columns=2, column_graph=graph, column_smoothness=1.0, smoothness_scale="absolute",
            graph_term=term, center=None, n_init=30, random_state=0, tol=1e-7,
        )  # fmt: skip
        best = -np.inf
        for pair in combinations(range(5), 2):
            v = np.zeros((5, angles.size))
            v[list(pair)] = grid
            best = max(best, np.max(np.linalg.norm(X @ v, axis=0) + graph_part(graph, term, v) / 2))
        found = model.objectives_[0][-1]
        assert found <= best + 1e-3  # of the grid
        hits.append(found >= best - 1e-9)
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize("term", TERMS)
def test_operators_agree(term):
    generator = np.random.default_rng(2)
    X = generator.standard_normal((40, 60)) * (generator.random((40, 60)) < 0.5)
    X[:15, :20] += np.outer(np.ones(15), generator.choice([-1.0, 1.0], 20))
    keywords = {"n_components": 2, "n_columns": 15, "graph_term": term, "column_graph": signed_graph(60, generator)}
    expected = quiet_fit(X, **keywords)
    for other in (sp.csr_array(X), da.from_array(X, chunks=(10, 60))):
        found = quiet_fit(other, **keywords)
        np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    strips = [quiet_fit(X, signs=signs, **keywords).components_ for signs in ("absolute", "signed")]
    assert (strips[0] == strips[1]).all()


def test_signs_count_as_much_as_they_agree():
    generator = np.random.default_rng(0)
    signs = generator.choice([-1.0, 1.0], 30)
    every = np.arange(30)
    agreeing = Graph(SHAPES["clique"] * np.outer(signs, signs), signed=True).term("normalized")
    assert agreeing.sign_agreement(every, signs) == pytest.approx(435 / 439)  # of 435 edges and four unknown ones
    assert agreeing.sign_agreement(every, generator.choice([-1.0, 1.0], 30)) < 0.2
    assert agreeing.sign_agreement(every[:2], signs[:2]) == pytest.approx(1 / 5)
    assert agreeing.sign_agreement(every[:2], signs[:2] * [1, -1]) == 0
    side = Side(L0(5), agreeing, 1.0).trusting(Vector.of(signs))
    assert side.trust == pytest.approx((435 / 439) ** 3)
    assert agreeing.restricted(np.arange(10)).sign_agreement(np.arange(10), signs[:10]) == pytest.approx(45 / 49)


def test_diffusion_needs_edges_that_activate():
    graph = with_signs(SHAPES["path"], np.random.default_rng(0))
    X = np.random.default_rng(0).standard_normal((20, 30))
    with pytest.raises(ValueError, match=r"diffusion=0.5 but \d+ edges of the column_graph inhibit"):
        SparseGraphSVD(1, n_columns=5, column_graph=graph, diffusion=0.5).fit(X)


def test_all_signs_of_a_triangle_that_inhibits():
    """No signs satisfy three genes that inhibit each other: the best ones leave one edge unsatisfied."""
    graph = Graph(np.eye(3) - np.ones((3, 3)), signed=True)
    values = {s: graph_part(graph, "adjacency", np.array(s) / np.sqrt(3), 1.0) for s in product([-1.0, 1.0], repeat=3)}
    assert max(values.values()) == pytest.approx(2 / 3)
    assert graph.term("adjacency").largest_eigenvalue == pytest.approx(2)
