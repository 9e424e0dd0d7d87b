"""How often `selection.graph_value` finds that a graph helps, for informative and uninformative graphs.

python benchmarks/graph_value.py [runs]      (default 50; a table by noise and type of graph)

The paper's simulation (n = p = 100, 50 planted on either side), graph on the columns, smoothness 1 (relative).
"""

import sys

import numpy as np
from joblib import Parallel, delayed

from netbic import Graph, SparseGraphSVD
from netbic.selection import graph_value
from netbic.simulate import paper

KINDS = ("true", "rewired", "permuted", "signal on the other nodes")


def helps(gamma, kind, seed):
    toy = paper(gamma, random_state=seed)
    graph, X = toy.column_graph, toy.X
    if kind == "rewired":
        graph = graph.rewire(seed + 10_000)
    elif kind == "permuted":
        order = np.random.default_rng(seed + 10_000).permutation(graph.n_nodes)
        graph = Graph(graph.weights[order][:, order])
    elif kind == "signal on the other nodes":
        X = X[:, ::-1].copy()
    term = {"graph_term": "normalized", "smoothness_scale": "relative"}
    model = SparseGraphSVD(1, n_rows=50, n_columns=50, column_graph=graph, column_smoothness=1.0, center=None, **term)
    return graph_value(model, X, random_state=seed).helps


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for gamma in (0.04, 0.05):
        for kind in KINDS:
            results = Parallel(n_jobs=-1)(delayed(helps)(gamma, kind, seed) for seed in range(runs))
            print(f"gamma {gamma:g}  {kind:30s} helps in {np.mean(results):.2f} of {runs}", flush=True)


if __name__ == "__main__":
    main()
