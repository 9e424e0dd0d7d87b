"""Does it help to know which edges activate and which inhibit? Simulated modules, whose genes have known signs.

python benchmarks/signed_graphs.py [first seed] [seeds] [file.csv]      (default: 100 30)

How much signs count (`Side.trusting`) was chosen on seeds 0 to 29.

A module of 60 among 600 genes, in 30 of 100 samples; half of the edges of its genes are inside the module. Columns are:

- F1 of the genes that were found,
- share of the planted genes that were found with the right sign,
- share of the found planted genes that have the right sign (up to the sign of the module).

Edges outside the module have random signs in every scenario. Inside the module

- "agree": edges activate between genes of equal signs and inhibit between others; genes have random signs,
- "80% agree": the same, but a fifth of these edges have the wrong sign,
- "one direction": all genes have the same sign and all edges activate, so that signs tell nothing new,
- "random": edges have random signs, so that signs tell nothing,
- "decoys": as "agree", and 60 other genes have as many edges to the genes of the module as these, but of random signs.

Means and standard errors over the seeds; differences are between signed and unsigned graphs of the same seeds.
"""

import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd

from netbic import Graph, SparseGraphSVD
from netbic.simulate import cohort, recovery

STRENGTHS = (0.45, 0.55, 0.7)
SCENARIOS = {"agree": 1.0, "80% agree": 0.8, "one direction": 1.0, "random": 0.5, "decoys": 1.0}
KEPT = (60, 150)  # as many genes as the module has, and more
GRAPHS = ("none", "unsigned", "signed")
SIZES = {"n_modules": 1, "module_samples": 30, "module_genes": 60, "overlap": 0}


def problem(scenario, strength, seed):
    """The data, the signed graph, and the signs of the genes of the module (0 for others)."""
    generator = np.random.default_rng([seed, 1])
    study = cohort(100, 600, strength=strength, random_state=seed, **SIZES)
    X, signs = study.expression.to_numpy(), np.sign(study.weights[0])
    if scenario == "one direction":
        means = X.mean(axis=0)
        X, signs = means + (X - means) * np.where(signs < 0, -1.0, 1.0), np.abs(signs)
    tails, heads, _ = study.network.edges()
    if scenario == "decoys":
        extra = generator.choice(np.flatnonzero(signs == 0), 60, replace=False)
        extra = np.column_stack([np.repeat(extra, 6), generator.choice(np.flatnonzero(signs), 360)])
        known = set(zip(tails.tolist(), heads.tolist(), strict=True))
        extra = np.array(sorted({(a, b) for a, b in np.sort(extra).tolist()} - known))
        tails, heads = np.append(tails, extra[:, 0]), np.append(heads, extra[:, 1])
    products = signs[tails] * signs[heads]
    right = np.where(generator.random(tails.size) < SCENARIOS[scenario], products, -products)
    values = np.where(products != 0, right, generator.choice([-1.0, 1.0], tails.size))
    edges = pd.DataFrame({"source": tails, "target": heads, "weight": values})
    return X, Graph.from_edges(edges, np.arange(600), signed=True).renamed(None), signs


def fitted(X, graph, kept):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseGraphSVD(1, n_columns=kept, column_graph=graph).fit(X).components_[0]


def measured(v, signs):
    """F1, and how many planted genes have the right sign: of all, and of those that were found."""
    agrees = np.sign(v) * signs
    agrees *= 1.0 if agrees.sum() >= 0 else -1.0
    found = np.count_nonzero(agrees)
    right = np.count_nonzero(agrees > 0)
    f1 = float(recovery(v != 0, signs != 0)["f1"].iloc[0])
    return {"f1": f1, "right_sign": right / np.count_nonzero(signs), "sign_accuracy": right / max(found, 1)}


def runs(first, n_seeds):
    """A row per scenario, number of genes that are kept, strength, seed and graph."""
    for scenario, strength, seed in product(SCENARIOS, STRENGTHS, range(first, first + n_seeds)):
        X, graph, signs = problem(scenario, strength, seed)
        for kept, (name, own) in product(KEPT, zip(GRAPHS, (None, graph.unsigned(), graph), strict=True)):
            key = {"scenario": scenario, "kept": kept, "strength": strength, "seed": seed, "graph": name}
            yield key | measured(fitted(X, own, kept), signs)


def shown(table):
    """Mean and standard error of each number, and of the difference between the signed and the unsigned graph."""
    keys, numbers = ["scenario", "kept", "strength"], ["f1", "right_sign", "sign_accuracy"]
    wide = table.pivot_table(index=[*keys, "seed"], columns="graph", values=numbers, sort=False)
    for number in numbers:
        own = wide[number][list(GRAPHS)].copy()
        own["difference"] = own["signed"] - own["unsigned"]
        groups = own.groupby(level=keys, sort=False)
        text = groups.mean().map("{:.3f}".format) + " +- " + groups.sem().map("{:.3f}".format)
        print(f"\n{number}\n{text.to_string()}")


if __name__ == "__main__":
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    found = pd.DataFrame(runs(first, seeds))
    if len(sys.argv) > 3:
        found.to_csv(sys.argv[3], index=False)
    shown(found)
