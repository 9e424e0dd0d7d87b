"""Random problems for the property tests."""

import warnings

import numpy as np
from hypothesis import strategies as st

from netbic import L0, L1, Dense, Graph, L1Ball, SparseGraphSVD
from netbic.graph_terms import TERMS


def random_graph(size, generator, weighted=False):
    """A random graph, sometimes with hubs, isolated nodes or weights."""
    popularity = generator.pareto(1.5, size) + 0.2
    chance = np.minimum(np.outer(popularity, popularity) / popularity.sum() * generator.uniform(0.5, 3), 1)
    upper = np.triu(generator.random((size, size)) < chance, 1).astype(float)
    if weighted:
        upper *= generator.uniform(0.2, 3, upper.shape)
    upper[:, generator.random(size) < 0.1] = 0
    if not upper.any():
        upper[0, -1] = 1.0
    return Graph(upper + upper.T)


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
    """B and r of a graph term, from their definitions."""
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


def searched_for_one(X):
    """W = U D^(3/4) V' of the two leading directions, as large as X: where a joint search finds a single module."""
    left, values, right = np.linalg.svd(X, full_matrices=False)
    return (left[:, :2] * values[:2] ** 0.75 * values[0] ** 0.25) @ right[:2]


sizes = st.integers(3, 25)


@st.composite
def matrices(draw, n=sizes, p=sizes):
    """Gaussian, heavy-tailed, integer (full of ties) or low-rank, with a generator for the rest of the problem."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(n), draw(p)
    kind = draw(st.sampled_from(["gaussian", "heavy", "integer", "low rank"]))
    X = generator.standard_normal(shape)
    if kind == "heavy":
        X = generator.standard_t(2, shape)
    elif kind == "integer":
        X = generator.integers(-2, 3, shape).astype(float)
    elif kind == "low rank":
        X = X[:, :2] @ generator.standard_normal((2, shape[1]))
    if not X.any():
        X[0, 0] = 1.0
    return X, generator


def penalty_with_objective(size, generator, scale):
    kinds = [
        Dense(),
        L0(int(generator.integers(1, size + 1))),
        L1(float(generator.uniform(0, 0.3)) * scale),
        L1Ball(float(generator.uniform(1, np.sqrt(size)))),
        L0(int(generator.integers(1, size + 1)), nonnegative=True),
    ]
    return kinds[generator.integers(len(kinds))]


terms = st.sampled_from(TERMS)
signs = st.sampled_from(["absolute", "signed"])


def quiet_fit(X, **keywords):
    """Fit without the warnings that random problems cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGraphSVD(**keywords).fit(X)
