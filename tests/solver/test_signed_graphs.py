"""Edges that inhibit: bounds of the spectrum, the optimum of tiny problems, and changes of signs."""

from itertools import combinations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import netbic
from netbic import L0, Graph, SparseGraphSVD
from netbic.graph_terms import TERMS
from netbic.solver.half_step import Side, Vector, candidate
from support.problems import graph_part, matrices_of, quiet_fit, signed_graph, terms, with_signs

SHAPES = {
    "star": np.array([[0.0] + [1.0] * 29] + [[1.0] + [0.0] * 29] * 29),
    "clique": np.ones((30, 30)) - np.eye(30),
    "edge": np.pad([[0.0, 1.0], [1.0, 0.0]], (0, 3)),
    "path": np.diag(np.ones(29), 1) + np.diag(np.ones(29), -1),
}


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

    Sizes from the data depend on genes whose scores contradict their edges, too.
    """
    study = netbic.simulate.cohort(100, 200, n_modules=1, module_genes=40, overlap=0, strength=3.0, random_state=0)
    flips = np.random.default_rng(1).choice([-1.0, 1.0], 200)
    up = study.expression.to_numpy() * np.where(study.weights[0] < 0, -1.0, 1.0)
    graph = Graph(study.network.weights.toarray() * np.outer(flips, flips), signed=True)
    for keywords in ({"n_columns": 35}, {}):
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
    for seed in range(5):
        generator = np.random.default_rng(seed)
        X, graph = generator.standard_normal((4, 5)), with_signs(np.ones((5, 5)) - np.eye(5), generator)
        model = quiet_fit(
            X, n_components=1, n_columns=2, column_graph=graph, column_smoothness=1.0, smoothness_scale="absolute",
            graph_term=term, center=None, search="sequential", n_init=15, random_state=0, tol=1e-7,
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


def test_operators_agree():
    generator = np.random.default_rng(2)
    X = generator.standard_normal((40, 60)) * (generator.random((40, 60)) < 0.5)
    X[:15, :20] += np.outer(np.ones(15), generator.choice([-1.0, 1.0], 20))
    keywords = {"n_components": 2, "n_columns": 15, "column_graph": signed_graph(60, generator)}
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
