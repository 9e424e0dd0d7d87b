"""Matrices without modules and with planted ones, for tests of calibration and for the benchmarks."""

import numpy as np

from netbic import Graph
from netbic.simulate import paper

# Noise: functions of a generator and of the numbers of samples and genes


def normal(generator, n, p):
    return generator.standard_normal((n, p))


def heavy_tails(generator, n, p, degrees=3):
    """Student's t."""
    return generator.standard_t(degrees, (n, p))


def lognormal(generator, n, p):
    return np.exp(generator.standard_normal((n, p)))


def uneven_genes(generator, n, p, spread=0.7):
    """Genes differ in their noise; `spread` is that of its logarithm."""
    return generator.standard_normal((n, p)) * np.exp(generator.normal(0, spread, p))


def uneven_samples(generator, n, p, spread=0.5):
    return generator.standard_normal((n, p)) * np.exp(generator.normal(0, spread, (n, 1)))


def counts(generator, means, depths):
    """Overdispersed counts of independent genes, divided by the library size, log(1 + x).

    `means` are the logarithms of the genes' expected counts, `depths` those of the samples' relative depths.
    """
    expected = np.outer(np.exp(depths), np.exp(means))
    found = generator.poisson(expected * generator.gamma(5, 1 / 5, expected.shape)).astype(float)
    library = np.maximum(found.sum(axis=1, keepdims=True), 1)
    return np.log1p(found / library * np.median(library))


def outlier_samples(generator, n, p):
    X = generator.standard_normal((n, p))
    X[generator.choice(n, max(1, n // 30), replace=False)] *= 6
    return X


def autocorrelated(generator, n, p, rho=0.5):
    """AR(1) along the rows: samples in time, each correlated with the one before."""
    X = generator.standard_normal((n, p))
    for i in range(1, n):
        X[i] = rho * X[i - 1] + np.sqrt(1 - rho**2) * X[i]
    return X


def replicates(generator, n, p):
    """Every sample three times, with a little noise."""
    X = np.repeat(generator.standard_normal((-(-n // 3), p)), 3, axis=0)[:n]
    return X + 0.3 * generator.standard_normal((n, p))


NOISE = {
    "normal": normal,
    "t4": lambda generator, n, p: heavy_tails(generator, n, p, 4),
    "lognormal": lognormal,
    "uneven genes": lambda generator, n, p: uneven_genes(generator, n, p, 0.5),
    "uneven samples": lambda generator, n, p: uneven_samples(generator, n, p, 0.3),
    "counts": lambda generator, n, p: counts(
        generator, depths=generator.normal(0, 0.3, n), means=generator.normal(2, 1.2, p)
    ),
    "AR(1) samples": autocorrelated,
    "AR(1) genes": lambda generator, n, p: autocorrelated(generator, p, n).T,
}

# Planted modules


def three_modules(generator):
    """Three modules of 20 x 20 in 100 x 100 with random members and signs, d = 1, 0.8 and 0.6, without noise."""
    made = []
    for d in (1.0, 0.8, 0.6):
        vectors = np.zeros((2, 100))
        for vector in vectors:
            vector[generator.choice(100, 20, replace=False)] = generator.choice([-1.0, 1.0], 20) / np.sqrt(20)
        made.append(d * np.outer(*vectors))
    return np.array(made)


def three_modules_in_noise(gamma, seed):
    generator = np.random.default_rng(seed)
    return gamma * normal(generator, 100, 100) + three_modules(generator).sum(axis=0)


def one_module(n_rows, gamma, seed):
    """X, the true members of both axes, and a graph for each axis (or None).

    100 x 100 with 50 x 50 planted is the paper's simulation, with a graph on both axes. 300 x 2,000 with 30 x 120
    planted has a graph on the columns: 15 neighbours within the module, 10 elsewhere.
    """
    if n_rows == 100:
        toy = paper(gamma, random_state=seed)
        return toy.X, (toy.u != 0, toy.v != 0), [toy.row_graph, toy.column_graph]
    toy = paper(gamma, n_rows=300, n_columns=2000, n_row_support=30, n_column_support=120, random_state=seed)
    generator = np.random.default_rng([seed, 1])
    inside = toy.v != 0
    chances = np.where(np.outer(inside, inside), 15 / 119, 10 / 2000)
    edges = np.triu(generator.random(chances.shape) < chances, k=1)
    return toy.X, (toy.u != 0, inside), [None, Graph((edges | edges.T).astype(float))]


def f1(found, truth):
    """F1 of two masks."""
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())
