"""What `selection.tune` chooses, and how long it takes.

python benchmarks/tuning.py sizes [runs]        (default 20: how often tuning finds the planted sizes)
python benchmarks/tuning.py smoothness [runs]   (default 20: gain with the true graph, share of 0 with a permuted one)
python benchmarks/tuning.py cost                (5 x 5 x 4 settings, 5 folds, on breast tumours; needs NETBIC_DATA)
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD

from netbic import Graph, SparseGraphSVD
from netbic.selection import tune
from netbic.simulate import paper

TERM = {"graph_term": "normalized", "smoothness_scale": "relative"}
SMALL = {"n_rows": list(range(10, 101, 10)), "n_columns": list(range(10, 101, 10))}
WIDE = {"n_rows": [10, 15, 20, 25, 30, 36, 45, 60, 90], "n_columns": [40, 60, 80, 100, 120, 150, 200, 300, 500]}
CELLS = (  # rows of X, noise, whether there is a graph
    (100, 0.038, False),
    (100, 0.05, False),
    (100, 0.05, True),
    (100, 0.07, True),
    (300, 0.025, False),
    (300, 0.0275, True),
)


def wide(gamma, seed):
    """300 x 2,000 with 30 x 120 planted; a graph on the columns, 15 neighbours within the module, 10 elsewhere."""
    generator = np.random.default_rng(seed)
    vectors = []
    for size, members in ((300, 30), (2000, 120)):
        vectors.append(np.zeros(size))
        vectors[-1][:members] = generator.choice([-1.0, 1.0], members) / np.sqrt(members)
    X = np.outer(*vectors) + gamma * generator.standard_normal((300, 2000))
    inside = np.arange(2000) < 120
    upper = np.triu(generator.random((2000, 2000)) < np.where(np.outer(inside, inside), 15 / 120, 10 / 2000), 1)
    return X, *vectors, Graph(sp.csr_array((upper | upper.T).astype(float)))


def problem(rows, gamma, graph, seed):
    """X, the planted u and v, a model with the true sizes, and the grid."""
    parameters = {"center": None, "n_components": 1} | TERM
    if rows == 100:
        toy = paper(gamma, random_state=seed)
        X, u, v, graphs, grid = toy.X, toy.u, toy.v, {"row": toy.row_graph, "column": toy.column_graph}, SMALL
    else:
        X, u, v, network = wide(gamma, seed)
        graphs, grid = {"column": network}, WIDE
    for axis, network in graphs.items() if graph else ():
        parameters |= {f"{axis}_graph": network, f"{axis}_smoothness": 1.0}
    sized = SparseGraphSVD(n_rows=np.count_nonzero(u), n_columns=np.count_nonzero(v), **parameters)
    return X, u, v, sized, grid


def f1(model, u, v):
    pairs = ((model.rows_[0], u != 0), (model.columns_[0], v != 0))
    return np.mean([2 * (found & truth).sum() / (found.sum() + truth.sum()) for found, truth in pairs])


def sizes_run(cell, seed):
    """Per rule: whether both sizes are within 20%, and F1 minus that of the true sizes."""
    warnings.simplefilter("ignore")
    X, u, v, sized, grid = problem(*cell, seed)
    oracle = f1(sized.fit(X), u, v)
    found = {}
    tuning = tune(sized, X, grid, random_state=seed)
    best = tuning.cv_results_["params"][tuning.cv_results_["mean_test_score"].argmax()]
    for rule, chosen in (("one_se", tuning.best_params_), ("best", best)):
        sizes = ((chosen["n_rows"], u), (chosen["n_columns"], v))
        right = all(abs(size / np.count_nonzero(truth) - 1) <= 0.2 for size, truth in sizes)
        fitted = clone(sized).set_params(**chosen).fit(X)
        found[rule] = right, f1(fitted, u, v) - oracle
    return found


def sizes(runs):
    for cell in CELLS:
        found = Parallel(n_jobs=-1)(delayed(sizes_run)(cell, seed) for seed in range(runs))
        for rule in found[0]:
            right, gain = np.mean([run[rule] for run in found], axis=0)
            graph = "graph" if cell[2] else "no graph"
            print(f"{cell[0]} rows, noise {cell[1]:g}, {graph}: {rule:18s} {right:.2f} {gain:+.3f}", flush=True)


def smoothness_run(gamma, permuted, seed):
    """Whether smoothness 0 is chosen at the true sizes, and the gain in F1 over smoothness 0."""
    warnings.simplefilter("ignore")
    toy = paper(gamma, random_state=seed)
    order = np.random.default_rng(seed + 10_000).permutation(100) if permuted else np.arange(100)
    graph = Graph(toy.column_graph.weights[order][:, order])
    model = SparseGraphSVD(1, n_rows=50, n_columns=50, column_graph=graph, center=None, **TERM)
    tuning = tune(model, toy.X, {"column_smoothness": [0.0, 0.1, 0.25, 0.5, 1.0]}, random_state=seed)
    without = model.set_params(column_smoothness=0).fit(toy.X)
    gain = f1(tuning.best_estimator_, toy.u, toy.v) - f1(without, toy.u, toy.v)
    return tuning.best_params_["column_smoothness"] == 0, gain


def smoothness(runs):
    for gamma in (0.04, 0.05, 0.07):
        for permuted in (False, True):
            jobs = (delayed(smoothness_run)(gamma, permuted, seed) for seed in range(runs))
            zero, gain = np.mean(Parallel(n_jobs=-1)(jobs), axis=0)
            print(f"noise {gamma:g}, {'permuted' if permuted else 'true'} graph: 0 in {zero:.2f}, F1 {gain:+.3f}")


def breast_tumours(folder):
    """Agilent samples x genes of Pathway Commons, in double precision, and the network."""
    expression = pd.read_parquet(folder / "expr_tcga_brca_agilent2012.parquet").T.astype(np.float64)
    network = pd.read_parquet(folder / "network_pathway_commons_v7.parquet")[["gene_a", "gene_b"]]
    known = expression.columns.isin(pd.unique(network.to_numpy().ravel()))
    return expression.loc[:, known], Graph.from_edges(network)


def cost():
    X, network = breast_tumours(Path(os.environ["NETBIC_DATA"]))
    values = np.ascontiguousarray(X.to_numpy())
    model = SparseGraphSVD(10, column_graph=network, **TERM)
    grid = {"n_rows": [20, 50, 100, 200, 400], "n_columns": [50, 200, 600, 1500, 3127]}
    grid["column_smoothness"] = [0.0, 0.05, 0.1, 0.25]
    tune(model, X, {"n_rows": [20, 50]}, n_folds=2, n_jobs=2)  # warm-up: starts the processes
    for n_jobs in (2, 1):
        before = fastest_truncated_svd(values)
        start = time.perf_counter()
        tuning = tune(model, X, grid, random_state=0, n_jobs=n_jobs)
        taken = time.perf_counter() - start
        single = min(before, fastest_truncated_svd(values))
        print(f"{X.shape}: TruncatedSVD(10) {single:.4f} s; 500 fits, n_jobs={n_jobs}: {taken:.1f} s")
        print(f"  {taken / single:.0f} times as long", flush=True)
    print(tuning.verdict)
    print(tuning.table.pivot_table("score", "n_rows", "n_columns", "max").round(4).to_string())


def fastest_truncated_svd(X):
    """Seconds, with all BLAS threads."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        TruncatedSVD(10, random_state=0).fit(X)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else "sizes"
    if part == "cost":
        cost()
    else:
        {"sizes": sizes, "smoothness": smoothness}[part](int(sys.argv[2]) if len(sys.argv) > 2 else 20)


if __name__ == "__main__":
    main()
