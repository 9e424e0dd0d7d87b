"""How often `selection.judge` is right about sets of genes that were given.

    NETBIC_DATA=... python benchmarks/judge.py [--runs 20] [--seed 0] [--kinds random planted noise]

random   sets of random genes (10 to 200) in real tumours
planted  the planted sets of the scenarios of benchmarks/field; half of their genes replaced by others: `half`
noise    sets that were chosen in noise because their genes are correlated there, the hardest ones

Each as sets that were found in the same data, and as found elsewhere (noise: only the first is meant for them).
"""

import argparse
import os
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parent))

import netbic
from field.scenarios import SCENARIOS

TUMOURS = ("expr_tcga_brca_agilent2012", "bulk_gastric_gse26901", "expr_tcga_brca_rnaseq")
SIZES, N_SETS = (10, 200), 10


def random_sets(p, rng):
    sizes = np.exp(rng.uniform(*np.log(SIZES), N_SETS)).astype(int)
    return {str(k): rng.choice(p, size, replace=False) for k, size in enumerate(sizes)}


def correlated_sets(X, rng):
    """Genes that are most correlated with one of them: 15 to 60."""
    R = np.abs(np.corrcoef(X.T))
    seeds = rng.choice(len(R), N_SETS, replace=False)
    return {str(k): np.argsort(-R[at])[: rng.integers(15, 60)] for k, at in enumerate(seeds)}


def tumours(name):
    return pd.read_parquet(Path(os.environ["NETBIC_DATA"]) / f"{name}.parquet").T.to_numpy(dtype=float)


def random(rng):
    X = tumours(TUMOURS[rng.integers(len(TUMOURS))])
    part = X[rng.choice(len(X), min(len(X), int(rng.choice([60, 100, 200]))), replace=False)]
    yield "random", part, random_sets(X.shape[1], rng)


def planted(rng):
    for name, scenario in SCENARIOS.items():
        X, members, _ = scenario(rng)[:3]
        sets = {str(k): np.flatnonzero(own) for k, own in enumerate(members)}
        yield f"planted {name}", X, sets
        mixed = {}
        for k, own in sets.items():
            others = rng.choice(np.flatnonzero(~members[int(k)]), own.size // 2, replace=False)
            mixed[k] = np.append(rng.permutation(own)[: own.size - own.size // 2], others)
        yield "half of the genes", X, mixed


def noise(rng):
    n = int(rng.choice([25, 50, 100, 300]))
    normal = rng.standard_normal((n, 1000))
    kinds = {"normal": normal, "heavy tails": rng.standard_t(3, (n, 1000)), "log-normal": np.exp(normal)}
    kinds["uneven samples"] = normal * np.exp(rng.normal(0, 0.5, (n, 1)))
    X = tumours(TUMOURS[rng.integers(2)])
    X = X[rng.choice(len(X), min(n, len(X)), replace=False)][:, rng.choice(X.shape[1], 1000, replace=False)]
    kinds["permuted tumours"] = rng.permuted(X, axis=0)
    for kind, made in kinds.items():
        yield f"chosen in noise: {kind}", made, correlated_sets(made, rng)


KINDS = {"random": random, "planted": planted, "noise": noise}


def judged(kind, seed):
    warnings.simplefilter("ignore")
    found = Counter()
    for name, X, sets in KINDS[kind](np.random.default_rng([seed, sorted(KINDS).index(kind)])):
        for elsewhere in (False, True):
            table = netbic.selection.judge(X, sets, found_elsewhere=elsewhere, random_state=seed, n_jobs=1).table
            found.update(((name, "elsewhere" if elsewhere else "here"), verdict) for verdict in table["verdict"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    for kind in given.kinds:
        runs = Parallel(given.jobs)(delayed(judged)(kind, given.seed + run) for run in range(given.runs))
        found = sum(runs, Counter())
        table = pd.DataFrame(
            {verdict: {of: n for (of, which), n in found.items() if which == verdict} for _, verdict in found}
        )
        table = table.fillna(0).astype(int).sort_index()
        shares = table.div(table.sum(axis=1), axis=0).round(3)
        shares.insert(0, "sets", table.sum(axis=1))
        print(shares.to_string(), flush=True)


if __name__ == "__main__":
    main()
