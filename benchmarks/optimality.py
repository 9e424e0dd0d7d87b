"""How far from the best possible module are the modules that a fit finds?

python benchmarks/optimality.py FOLDER

FOLDER holds the expression sets and networks. The table has a row per problem: the median and the largest gap by
`selection.optimality` (a module is at least 1 - gap of the best possible one), the same for the spectral bound alone
(`optimality_gap_`), the median gap without the network, and the time of the bounds in units of that of the fit.

- the paper's simulation: 100 x 100, modules of 50 x 50, noise gamma 0.02 to 0.06, 20 matrices each, both networks;
- breast tumours (TCGA, Agilent) with BioGRID, ten modules: 1.5 % of the genes (at least 50, the default of
  `netbic fit` where sizes are not identified) or 200 genes of all samples, and 200 genes of 50 samples.

With --tiny, the time of branch and bound in ten noise matrices of 20 x 15 for several sizes.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from netbic import SparseGraphSVD, simulate
from netbic.selection import optimality
from netbic.solver import best_submatrix
from real_networks import load

SIZES = ((50, None), (200, None), (200, 50))  # genes, samples
TINY = ((3, 3), (5, 5), (10, 7), (20, 5))


def examined(model, X):
    """The gaps of a model, and the times of its fit and of its bounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        model.fit(X)
        fitted = time.perf_counter()
        table = optimality(model, X).table
    return table, fitted - begun, time.perf_counter() - fitted


def row(problem, pairs):
    """A row of the table from (matrix, model with a network, model without) triples."""
    tables, plain, times = [], [], []
    for X, model, without in pairs:
        table, *seconds = examined(model, X)
        tables.append(table)
        times.append(seconds)
        plain.append(examined(without, X)[0])
    gaps, spectral, alone = pd.concat(tables)["gap"], pd.concat(tables)["spectral_gap"], pd.concat(plain)
    fit, bounds = np.sum(times, axis=0)
    return {
        "problem": problem,
        "median_gap": round(gaps.median(), 3),
        "largest_gap": round(gaps.max(), 3),
        "median_spectral_gap": round(spectral.median(), 3),
        "median_gap_without_network": round(alone["gap"].median(), 3),
        "median_spectral_gap_without": round(alone["spectral_gap"].median(), 3),
        "fit_ms": round(1000 * fit / len(gaps), 1),  # per module
        "bound_ms": round(1000 * bounds / len(gaps), 1),
    }


def simulated(gamma, n_matrices=20):
    for seed in range(n_matrices):
        toy = simulate.paper(gamma, random_state=seed)
        sizes = {"n_rows": 50, "n_columns": 50, "center": None}
        graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph}
        yield toy.X, SparseGraphSVD(1, **sizes, **graphs), SparseGraphSVD(1, **sizes)


def tiny():
    for sizes in TINY:
        seconds, nodes = [], []
        for seed in range(10):
            begun = time.perf_counter()
            found = best_submatrix(np.random.default_rng(seed).standard_normal((20, 15)), *sizes)
            seconds.append(time.perf_counter() - begun)
            nodes.append(found.n_nodes if found.certified else np.inf)
        print(f"{sizes}: median {np.median(seconds):.2f} s, largest {max(seconds):.1f} s, nodes up to {max(nodes)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if options.tiny:
        tiny()
        return
    rows = [row(f"simulation, gamma {gamma}", simulated(gamma)) for gamma in (0.02, 0.03, 0.04, 0.05, 0.06)]
    X, graph = load(options.folder, "agilent", "biogrid")
    for genes, samples in SIZES:
        sizes = {"n_columns": genes, "n_rows": samples}
        pair = X, SparseGraphSVD(10, column_graph=graph, **sizes), SparseGraphSVD(10, **sizes)
        rows.append(row(f"breast tumours, {genes} genes, {samples or 'all'} samples", [pair]))
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
