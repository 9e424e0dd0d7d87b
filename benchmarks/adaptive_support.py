"""Sizes and smoothness chosen by `AdaptiveSupport`, compared with an oracle: a fit with the true sizes.

python benchmarks/adaptive_support.py [runs]      (default 50; a table by size, noise and type of graph)

100 x 100 with 50 x 50 planted is the paper's simulation, with a graph on both axes. 300 x 2,000 with 30 x 120 planted
has a graph on the columns: 15 neighbours within the module, 10 elsewhere. "Right" means both sizes within 20%.
"""

import sys
import warnings

import numpy as np
from joblib import Parallel, delayed

from netbic import AdaptiveSupport, Graph, SparseGraphSVD
from netbic.simulate import paper

TERM = {"graph_term": "normalized", "smoothness_scale": "relative"}  # of the published table
CASES = [
    *((100, gamma, kind) for gamma in (0.03, 0.04, 0.05) for kind in ("none", "true", "permuted")),
    *((300, gamma, kind) for gamma in (0.02, 0.025) for kind in ("none", "true")),
]


def problem(n_rows, gamma, seed):
    """X, the true members of both axes, and a graph for each axis (or None)."""
    if n_rows == 100:
        toy = paper(gamma, random_state=seed)
        return toy.X, (toy.u != 0, toy.v != 0), [toy.row_graph, toy.column_graph]
    toy = paper(gamma, n_rows=300, n_columns=2000, n_row_support=30, n_column_support=120, random_state=seed)
    generator = np.random.default_rng([seed, 1])
    inside = toy.v != 0
    chances = np.where(np.outer(inside, inside), 15 / 119, 10 / 2000)
    edges = np.triu(generator.random(chances.shape) < chances, k=1)
    return toy.X, (toy.u != 0, inside), [None, Graph((edges | edges.T).astype(float))]


def permuted(graph, generator):
    if graph is None:
        return None
    order = generator.permutation(graph.n_nodes)
    return Graph(graph.weights[order][:, order])


def f1(found, truth):
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


def one_run(n_rows, gamma, kind, seed):
    """Whether both sizes are right, F1, F1 of the oracle, whether a diagnostic was given, and convergence."""
    X, truths, graphs = problem(n_rows, gamma, seed)
    generator = np.random.default_rng(seed + 10_000)
    if kind == "permuted":
        graphs = [permuted(graph, generator) for graph in graphs]
    graph_parameters = {} if kind == "none" else dict(zip(("row_graph", "column_graph"), graphs, strict=True))
    adaptive = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport()}
    sizes = {"n_rows": int(truths[0].sum()), "n_columns": int(truths[1].sum())}
    if kind == "true":  # the better one of 0.3 and 1 for the oracle
        weight = 1.0 if n_rows == 100 else 0.3
        given = {name: graph for name, graph in graph_parameters.items() if graph is not None}
        sizes |= graph_parameters | {f"{name[:-6]}_smoothness": weight for name in given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = (adaptive | graph_parameters, sizes)
        own, oracle = (SparseGraphSVD(1, center=None, **TERM, **parameters).fit(X) for parameters in cases)
    right = all(abs(int(mask.sum()) - t.sum()) <= 0.2 * t.sum() for mask, t in zip(_masks(own), truths, strict=True))
    scores = [np.mean([f1(m, t) for m, t in zip(_masks(model), truths, strict=True)]) for model in (own, oracle)]
    return right, *scores, bool((own.choices_["diagnostic"] != "").any()), own.converged_[0]


def _masks(model):
    return model.rows_[0], model.columns_[0]


def heteroscedastic_run(scale, seed):
    """F1 of the columns, that of the oracle, and whether a diagnostic was given, if columns differ in noise."""
    toy, generator = paper(0.03, random_state=seed), np.random.default_rng([seed, 2])
    factors = np.exp(0.5 * generator.standard_normal(100))
    X = np.outer(toy.u, toy.v) + 0.03 * factors * generator.standard_normal((100, 100))
    sizes = {"n_rows": 50, "n_columns": 50, "scale": scale}
    adaptive = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport(), "scale": scale}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, oracle = (SparseGraphSVD(1, **parameters).fit(X) for parameters in (adaptive, sizes))
    flagged = bool((own.choices_["diagnostic"] != "").any())
    return f1(own.columns_[0], toy.v != 0), f1(oracle.columns_[0], toy.v != 0), flagged


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for scale in (False, True):
        rows = Parallel(n_jobs=-1)(delayed(heteroscedastic_run)(scale, seed) for seed in range(runs))
        score, oracle, flagged = np.mean(rows, axis=0)
        print(f"heteroscedastic columns, scale={scale}: F1 {score:.3f}, oracle {oracle:.3f}, flagged {flagged:.2f}")
    for n_rows, gamma, kind in CASES:
        rows = Parallel(n_jobs=-1)(delayed(one_run)(n_rows, gamma, kind, seed) for seed in range(runs))
        right, score, oracle, flagged, converged = np.mean(rows, axis=0)
        print(
            f"{n_rows} rows, noise {gamma:g}, graph {kind:8s}: sizes right {right:.2f}, F1 {score:.3f}, "
            f"oracle {oracle:.3f}, flagged {flagged:.2f}, converged {converged:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
