"""Groups of samples: false groups, power, and subtypes of patients.

python benchmarks/sample_groups.py [runs]      (default 20; a few minutes)

False groups: the share of vectors of one group in which groups are found. Power: the share of vectors of two normal
groups in which groups are found, and the adjusted Rand index (0 if none are found), by the distance of the groups in
standard deviations and the share of the smaller one. Subtypes: 200 samples x 5,000 genes N(0, 1), ten disjoint sets of
50 genes, each shifted in a random 10 to 50 % of the samples; the index is the mean over the ten sets, each compared
with the module that shares most genes with it.
"""

import sys
import warnings
from time import perf_counter

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from netbic import SparseGraphSVD
from netbic.selection import sample_groups
from netbic.selection.score_groups import score_groups

ONE_GROUP = {
    "normal": lambda generator, n: generator.standard_normal(n),
    "t5": lambda generator, n: generator.standard_t(5, n),
    "t3": lambda generator, n: generator.standard_t(3, n),
    "Laplace": lambda generator, n: generator.laplace(size=n),
    "gamma(2)": lambda generator, n: generator.gamma(2, size=n),
    "lognormal": lambda generator, n: generator.lognormal(size=n),
    "uniform": lambda generator, n: generator.random(n),
    "beta(2, 5)": lambda generator, n: generator.beta(2, 5, n),
}
MODELS = {
    "50 genes told": {"n_columns": 50},
    "sizes from the data": {},
}


def false_groups(name, n, runs, generator):
    return np.mean([not score_groups(ONE_GROUP[name](generator, n)).is_gradient for _ in range(runs)])


def power(gap, share, n, runs, generator):
    """The share of vectors in which groups are found, and the adjusted Rand index."""
    results = []
    for _ in range(runs):
        upper = np.arange(n) < round(share * n)
        found = score_groups(generator.standard_normal(n) + gap * upper)
        results.append((not found.is_gradient, adjusted_rand_score(upper, found.labels)))
    return np.mean(results, axis=0)


def subtypes(shift, seed, n=200, p=5000, n_sets=10, size=50):
    """X, and the genes and samples of each set (boolean arrays with a row per set)."""
    generator = np.random.default_rng([seed, 77])
    X = generator.standard_normal((n, p))
    genes, samples = np.zeros((n_sets, p), dtype=bool), np.zeros((n_sets, n), dtype=bool)
    for k in range(n_sets):
        genes[k, k * size : (k + 1) * size] = True
        samples[k, generator.permutation(n)[: round(generator.uniform(0.1, 0.5) * n)]] = True
        X[np.ix_(samples[k], genes[k])] += shift
    return X, genes, samples


def one_run(parameters, shift, seed):
    """Agreement of `sample_groups` with the subtypes; Jaccard index of genes; seconds of the fit."""
    X, genes, samples = subtypes(shift, seed)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseGraphSVD(len(genes), **parameters).fit(X)
    seconds = perf_counter() - start
    both = (genes[:, None] & model.columns_).sum(axis=2) / (genes[:, None] | model.columns_).sum(axis=2)
    own, matched = linear_sum_assignment(-both)
    groups = sample_groups(model, X)["group"].to_numpy().reshape(model.n_components_, -1)
    agreement = [adjusted_rand_score(samples[k], groups[module]) for k, module in zip(own, matched, strict=True)]
    return np.mean(agreement), both[own, matched].mean(), seconds


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    generator = np.random.default_rng(2024)
    for name in ONE_GROUP:
        rates = [f"n = {n}: {false_groups(name, n, 5 * runs, generator):.3f}" for n in (30, 100, 200, 1000)]
        print(f"false groups, {name}: {', '.join(rates)}", flush=True)
    for n in (50, 100, 200, 500, 1000):
        for gap in (3, 4, 5):
            cells = [(share, *power(gap, share, n, 2 * runs, generator)) for share in (0.05, 0.1, 0.2, 0.3, 0.5)]
            text = ", ".join(f"{share:.0%}: {found:.2f} (ARI {index:.2f})" for share, found, index in cells)
            print(f"power, n = {n}, gap of {gap} sd: {text}", flush=True)
    for told, parameters in MODELS.items():
        for shift in (4, 2, 1):
            rows = np.array([one_run(parameters, shift, 5000 + seed) for seed in range(max(runs // 4, 1))])
            groups, overlap, seconds = rows.mean(axis=0)
            print(
                f"subtypes, shift {shift}, {told}: ARI of groups {groups:.3f}, Jaccard index of genes {overlap:.3f}, "
                f"{seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
