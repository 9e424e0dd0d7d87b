"""Does a network help modules to hold in other samples? True, rewired and no network, paired.

python benchmarks/cross_study.py FOLDER [--draws 10] [--seed 0] [--samples 40] [--same]

Modules are fitted to random samples of one study and judged by the share of variance that they explain in another
study (with --same: in the left-out samples of the same study); genes in common, centred in each study.
The table shows the gain over no network in per cent, with its standard error, for the true and a rewired network.
"""

import argparse
import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from netbic import Graph, SparseGraphSVD
from problems import DATA, NETWORKS

N_MODULES, N_GENES = 10, 100


def read(folder, names, network, scale):
    """Studies with the genes that all of them share with the network, centred (and scaled), and the network."""
    studies = {name: pd.read_parquet(folder / DATA[name]).T.dropna(axis=1) for name in names}
    edges = pd.read_parquet(folder / NETWORKS[network])[["gene_a", "gene_b"]]
    shared = set(pd.unique(edges.to_numpy().ravel()))
    for table in studies.values():
        shared &= set(table.columns[table.std() > 0])
    genes = sorted(shared)
    arrays = {name: table[genes].to_numpy(np.float64) for name, table in studies.items()}
    arrays = {name: (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1) for name, X in arrays.items()}
    return arrays, Graph.from_edges(edges).align(genes)


def explained(model, X):
    """Share of the variance of X within the span of the modules' genes."""
    X = X if model.scaler_.factors is None else X * model.scaler_.factors
    basis = np.linalg.qr(model.components_.T)[0]
    return float(np.sum((X @ basis) ** 2) / np.sum(X**2))


def gains(train, test, graph, rewired, settings):
    """Gain of the true and the rewired network over none, in per cent."""
    found = []
    for used in (None, graph, rewired):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SparseGraphSVD(N_MODULES, n_columns=N_GENES, column_graph=used, **settings).fit(train)
        found.append(explained(model, test))
    return 100 * (found[1] / found[0] - 1), 100 * (found[2] / found[0] - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--smoothness", type=float)
    asked = parser.parse_args()
    settings = {} if asked.smoothness is None else {"column_smoothness": asked.smoothness}
    pooled = []
    for network in NETWORKS:
        for first, second in [(name, name) for name in DATA] if asked.same else permutations(DATA, 2):
            studies, graph = read(asked.folder, {first, second}, network, asked.scale)
            cell = []
            for draw in range(asked.draws):
                generator = np.random.default_rng([asked.seed, draw])
                order = generator.permutation(len(studies[first]))
                train, rest = studies[first][order[: asked.samples]], studies[first][order[asked.samples :]]
                test = rest if asked.same else studies[second]
                cell.append(gains(train, test, graph, graph.rewire(generator), settings))
            cell = np.array(cell)
            pooled.append(cell)
            mean, error = cell.mean(axis=0), cell.std(axis=0, ddof=1) / np.sqrt(len(cell))
            print(
                f"{network:16s} {first:9s}-> {second:9s} true {mean[0]:+.2f} +- {error[0]:.2f}"
                f"   rewired {mean[1]:+.2f} +- {error[1]:.2f}",
                flush=True,
            )
    pooled = np.concatenate(pooled)
    for name, values in (("true - none", pooled[:, 0]), ("true - rewired", pooled[:, 0] - pooled[:, 1])):
        test = stats.ttest_1samp(values, 0)
        print(f"{name:15s} {values.mean():+.2f} +- {stats.sem(values):.2f}  p = {test.pvalue:.2g}  (n = {len(values)})")


if __name__ == "__main__":
    main()
