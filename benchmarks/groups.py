"""Modules that are unions of gene sets or of edges: recovery by GroupL0 and EdgeL0 against L0 told the true size.

python benchmarks/groups.py [seeds]      (default 20; a few minutes)

Gene sets: 200 samples x 2,000 genes N(0, 1), 60 sets of 20 to 33 genes (disjoint) or of 20 to 50 (which share
genes). A module consists of the genes of 3 sets; every gene has the weight +1 or -1 in it, every sample a normal score,
times the strength. GroupL0 is told that there are 3 sets, L0 the number of genes. Edges: 2,000 genes, a sparse random
graph of 6,000 edges; the module is a random path of 40 nodes. EdgeL0 is told 20 edges, L0 40 genes; "graph term" is L0
with the default smoothness. Reported: the F1 of the genes (mean and standard error over seeds), the share of active
sets found, and the smallest ratio of the norm of the scores in the chosen groups to its upper bound.
"""

import sys
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic import L0, EdgeL0, Graph, GroupL0, SparseGraphSVD

N_SAMPLES, N_GENES, N_SETS, N_ACTIVE = 200, 2000, 60, 3
STRENGTHS = (0.2, 0.25, 0.3, 0.4)


def gene_sets(generator, overlap):
    sizes = generator.integers(20, 51, N_SETS)
    if overlap:
        pool = generator.choice(N_GENES, 1000, replace=False)  # so that a gene is in two sets on average
        return [generator.choice(pool, size, replace=False) for size in sizes]
    sizes = np.minimum(sizes, N_GENES // N_SETS)
    return np.split(generator.permutation(N_GENES)[: sizes.sum()], np.cumsum(sizes)[:-1])


def path_in_graph(generator, length=40):
    """A sparse graph, and the nodes of a path in it."""
    order = generator.permutation(N_GENES)
    path, others = order[:length], generator.integers(0, N_GENES, (2, 6000 - length + 1))
    tails, heads = np.concatenate([path[:-1], others[0]]), np.concatenate([path[1:], others[1]])
    kept = tails != heads
    tails, heads = tails[kept], heads[kept]
    matrix = sp.coo_array((np.ones(tails.size), (tails, heads)), shape=(N_GENES, N_GENES)).tocsr()
    symmetric = ((matrix + matrix.T) > 0).astype(float)
    return Graph(symmetric), np.sort(path)


def planted(generator, inside, strength):
    weights = np.zeros(N_GENES)
    weights[inside] = generator.choice([-1.0, 1.0], inside.size)
    signal = strength * np.outer(generator.standard_normal(N_SAMPLES), weights)
    return signal + generator.standard_normal((N_SAMPLES, N_GENES))


def f1(model, inside):
    found = np.flatnonzero(model.columns_[0])
    return 2 * np.intersect1d(found, inside).size / (found.size + inside.size)


def tightness(model, penalty, X):
    """How near the norm of the scores in the chosen groups is to the upper bound for any groups."""
    scores = np.abs((X - X.mean(axis=0)).T @ model.left_vectors_[:, 0])
    return np.linalg.norm(scores[model.columns_[0]]) / penalty.bound(scores)


def sets_once(seed, strength, overlap):
    generator = np.random.default_rng(seed)
    sets = gene_sets(generator, overlap)
    active = generator.choice(N_SETS, N_ACTIVE, replace=False)
    inside = np.unique(np.concatenate([sets[number] for number in active]))
    X, penalty = planted(generator, inside, strength), GroupL0(sets, N_ACTIVE)
    grouped = SparseGraphSVD(1, column_penalty=penalty).fit(X)
    plain = SparseGraphSVD(1, column_penalty=L0(inside.size)).fit(X)
    found = np.isin(active.astype(str), grouped.groups_["group"]).mean()
    results = {"GroupL0": f1(grouped, inside), "L0": f1(plain, inside), "sets found": found}
    assert len(grouped.groups_) == N_ACTIVE
    return results | {"norm / bound": tightness(grouped, penalty, X)}


def edges_once(seed, strength, _):
    generator = np.random.default_rng(seed)
    graph, inside = path_in_graph(generator)
    X, penalty = planted(generator, inside, strength), EdgeL0(graph, inside.size // 2)
    edges = SparseGraphSVD(1, column_penalty=penalty).fit(X)
    plain = SparseGraphSVD(1, column_penalty=L0(inside.size)).fit(X)
    term = SparseGraphSVD(1, column_penalty=L0(inside.size), column_graph=graph).fit(X)
    both = SparseGraphSVD(1, column_penalty=penalty, column_graph=graph).fit(X)
    results = {"EdgeL0": f1(edges, inside), "L0": f1(plain, inside), "L0, graph term": f1(term, inside)}
    assert len(edges.groups_) == penalty.k
    return results | {"EdgeL0, graph term": f1(both, inside), "norm / bound": tightness(edges, penalty, X)}


def report(title, once, overlap, seeds):
    print(f"\n{title}")
    for strength in STRENGTHS:
        table = pd.DataFrame([once(seed, strength, overlap) for seed in range(seeds)])
        tight = table.pop("norm / bound").min()
        texts = [f"{name} {table[name].mean():.3f} ({table[name].sem():.3f})" for name in table]
        print(f"strength {strength:g}: {', '.join(texts)}, smallest norm / bound {tight:.3f}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    report("edges of a path", edges_once, None, number)
    report("disjoint sets", sets_once, False, number)
    report("sets that share genes", sets_once, True, number)
