"""Modules that are unions of gene sets: recovery by GroupL0 against L0 told the true size.

python benchmarks/groups.py [seeds]      (default 20; a few minutes)

Gene sets: 200 samples x 2,000 genes N(0, 1), 60 sets of 20 to 33 genes (disjoint) or of 20 to 50 (which share
genes). A module consists of the genes of 3 sets; every gene has the weight +1 or -1 in it, every sample a normal score,
times the strength. GroupL0 is told that there are 3 sets, L0 the number of genes. Reported: the F1 of the genes (mean
and standard error over seeds), and the share of active sets found.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from netbic import L0, GroupL0, SparseGraphSVD

N_SAMPLES, N_GENES, N_SETS, N_ACTIVE = 200, 2000, 60, 3
STRENGTHS = (0.2, 0.25, 0.3, 0.4)


def gene_sets(generator, overlap):
    sizes = generator.integers(20, 51, N_SETS)
    if overlap:
        pool = generator.choice(N_GENES, 1000, replace=False)  # so that a gene is in two sets on average
        return [generator.choice(pool, size, replace=False) for size in sizes]
    sizes = np.minimum(sizes, N_GENES // N_SETS)
    return np.split(generator.permutation(N_GENES)[: sizes.sum()], np.cumsum(sizes)[:-1])


def planted(generator, inside, strength):
    weights = np.zeros(N_GENES)
    weights[inside] = generator.choice([-1.0, 1.0], inside.size)
    signal = strength * np.outer(generator.standard_normal(N_SAMPLES), weights)
    return signal + generator.standard_normal((N_SAMPLES, N_GENES))


def f1(model, inside):
    found = np.flatnonzero(model.columns_[0])
    return 2 * np.intersect1d(found, inside).size / (found.size + inside.size)


def sets_once(seed, strength, overlap):
    generator = np.random.default_rng(seed)
    sets = gene_sets(generator, overlap)
    active = generator.choice(N_SETS, N_ACTIVE, replace=False)
    inside = np.unique(np.concatenate([sets[number] for number in active]))
    X = planted(generator, inside, strength)
    grouped = SparseGraphSVD(1, column_penalty=GroupL0(sets, N_ACTIVE)).fit(X)
    plain = SparseGraphSVD(1, column_penalty=L0(inside.size)).fit(X)
    found = np.isin(active.astype(str), grouped.groups_["group"]).mean()
    assert len(grouped.groups_) == N_ACTIVE
    return {"GroupL0": f1(grouped, inside), "L0": f1(plain, inside), "sets found": found}


def report(title, overlap, seeds):
    print(f"\n{title}")
    for strength in STRENGTHS:
        table = pd.DataFrame([sets_once(seed, strength, overlap) for seed in range(seeds)])
        texts = [f"{name} {table[name].mean():.3f} ({table[name].sem():.3f})" for name in table]
        print(f"strength {strength:g}: {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    report("disjoint sets", False, number)
    report("sets that share genes", True, number)
