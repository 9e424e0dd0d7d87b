"""Matrices and graphs for the benchmarks, and a literal implementation of Algorithm 2 to compare with.

Simulations that tests use as well are those of tests/support/simulations.py.
"""

import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic import Graph
from netbic.simulate import cohort

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support import simulations as simulations

DATA = {
    "coadread": "expr_tcga_coadread_rnaseq.parquet",
    "brca": "expr_tcga_brca_rnaseq.parquet",
    "agilent": "expr_tcga_brca_agilent2012.parquet",
}
NETWORKS = {
    "pathway_commons": "network_pathway_commons_v7.parquet",
    "biogrid": "network_biogrid_3.4.133.parquet",
    "string": "network_string_v12.parquet",
}


def random_graph(size, n_edges, seed=0):
    """A random graph with `n_edges` edges, each equally likely."""
    generator = np.random.default_rng(seed)
    ends = np.sort(generator.integers(0, size, (int(1.3 * n_edges) + 100, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    ends = ends[generator.permutation(len(ends))[:n_edges]]
    upper = sp.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    return Graph(upper + upper.T)


def planted(n=641, p=13_321, *, modules=40, rows=50, columns=200, height=1.5, seed=0, dtype=np.float64):
    """Gaussian noise with planted modules of mixed signs."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, p))
    for _ in range(modules):
        at_rows, at_columns = generator.choice(n, rows, False), generator.choice(p, columns, False)
        signs = np.outer(generator.choice([-1.0, 1.0], rows), generator.choice([-1.0, 1.0], columns))
        X[np.ix_(at_rows, at_columns)] += height * signs
    return X.astype(dtype)


def colorectal(folder):
    """TCGA colorectal tumours (samples x genes of the network) and the Pathway Commons network."""
    expression = pd.read_parquet(folder / "expr_tcga_coadread_rnaseq.parquet").T
    network = pd.read_parquet(folder / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    known = expression.columns.isin(pd.unique(network.to_numpy().ravel()))
    expression = expression.loc[:, known].astype(np.float64)
    return np.ascontiguousarray(expression.to_numpy()), Graph.from_edges(network).align(expression.columns)


@cache
def breast_tumours():
    """TCGA breast tumours (samples x genes), or a simulated cohort if NETBIC_DATA is not set."""
    if "NETBIC_DATA" not in os.environ:
        return cohort(250, 2000, random_state=0).expression.to_numpy()
    return pd.read_parquet(Path(os.environ["NETBIC_DATA"]) / DATA["brca"]).T.to_numpy(dtype=float)


def cells(n=50_000, p=20_000, *, share=0.05, modules=10, rows=500, columns=200, seed=0):
    """A CSR matrix with planted modules of higher expression, and the planted columns."""
    generator = np.random.default_rng(seed)
    at_rows = [np.sort(generator.choice(n, rows, False)) for _ in range(modules)]
    at_columns = [generator.choice(p, columns, False) for _ in range(modules)]
    blocks = []
    for start in range(0, n, 500):
        size = min(500, n - start)
        block = sp.csr_array(generator.random((size, p), dtype=np.float32) < share, dtype=np.float64)
        block.data = generator.lognormal(0, 0.5, block.nnz)
        for members, genes in zip(at_rows, at_columns, strict=True):
            inside = members[(members >= start) & (members < start + size)] - start
            extra = (generator.random((inside.size, columns)) < 0.3) * generator.lognormal(
                0, 0.5, (inside.size, columns)
            )
            places = np.repeat(inside, columns), np.tile(genes, inside.size)
            block = block + sp.csr_array((extra.ravel(), places), shape=block.shape)
        blocks.append(block)
    X = sp.vstack(blocks, format="csr")
    X.eliminate_zeros()
    truth = np.zeros((modules, p), dtype=bool)
    for k, genes in enumerate(at_columns):
        truth[k, genes] = True
    return X, truth


def literal_algorithm_2(X, A, n_modules, k_u, k_v, sigma, epsilon=1e-4, most=500):
    """Algorithm 2 as printed: a full SVD per module, dense products, the residual formed. X is samples x genes."""
    X = X - X.mean(axis=0)
    found = []
    for _ in range(n_modules):
        left, _, right = np.linalg.svd(X, full_matrices=False)
        u, v, d = left[:, 0], right[0], np.inf
        for _ in range(most):
            z = X @ v
            u = keep_largest(np.abs(z), k_u)
            u = u / np.linalg.norm(u) * np.sign(z)
            z = X.T @ u
            v = keep_largest(np.abs(z) + sigma * (A @ np.abs(v)), k_v)
            v = v / np.linalg.norm(v) * np.sign(z)
            d, before = z @ v, d
            if abs(d - before) <= epsilon:
                break
        X = X - d * np.outer(u, v)
        found.append((u, v, d))
    return found


def keep_largest(scores, k):
    return scores * (scores >= np.sort(scores)[-k])
