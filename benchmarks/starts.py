"""Different starts near the limit of detection, for fits with the true sizes.

python benchmarks/starts.py [runs]      (default 20)

300 x 2,000 with 30 x 120 planted and a graph on the columns (15 neighbours within the module, 10 elsewhere), at noise
levels at which the leading singular pair hardly reflects the module. F1 of the columns: mean and share above 0.9.
"""

import sys
import warnings

import numpy as np
from joblib import Parallel, delayed

from netbic import L0, SparseGraphSVD
from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler
from netbic.solver.half_step import Side, Vector
from netbic.solver.solve import solve
from problems import simulations

SMOOTHNESS = 0.3


def from_the_truth(X, graph, truths):
    """A fit that starts from the leading singular pair of the planted block."""
    data = as_operator(X)
    operator = Scaler.learn(data, None, False).operator(data)
    left, _, right = np.linalg.svd(X[np.ix_(*truths)], full_matrices=False)
    start = [np.zeros(size) for size in X.shape]
    start[0][truths[0]], start[1][truths[1]] = left[:, 0], right[0]
    sigma = SMOOTHNESS * np.linalg.norm(X, 2)
    sides = Side(L0(30)), Side(L0(120), graph.term("normalized"), sigma)
    return solve(operator, *sides, (Vector.of(start[0]), Vector.of(start[1]))).state.v.full() != 0


def one_run(gamma, seed):
    X, truths, (_, graph) = simulations.one_module(300, gamma, seed)
    sized = {"n_rows": 30, "n_columns": 120, "center": None, "column_graph": graph, "column_smoothness": SMOOTHNESS}
    sized |= {"graph_term": "normalized", "smoothness_scale": "relative"}
    strong = sized | {"column_smoothness": 1.0}
    models = {
        "default start": sized,
        "20 restarts, largest F": sized | {"n_init": 20, "random_state": seed},
        "smoothness 1": strong,
        "all samples, size from the data": {"center": None, "column_graph": graph},
    }
    found = {name: SparseGraphSVD(1, **parameters).fit(X).columns_[0] for name, parameters in models.items()}
    found["started from the planted module"] = from_the_truth(X, graph, truths)
    return {name: simulations.f1(mask, truths[1]) for name, mask in found.items()}


def quiet_run(gamma, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return one_run(gamma, seed)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for gamma in (0.025, 0.0315, 0.035, 0.04):
        found = Parallel(n_jobs=-1)(delayed(quiet_run)(gamma, seed) for seed in range(runs))
        print(f"noise {gamma:g}")
        for name in found[0]:
            scores = np.array([run[name] for run in found])
            print(f"  {name:32s} F1 {scores.mean():.3f}, above 0.9 in {np.mean(scores > 0.9):.2f}", flush=True)


if __name__ == "__main__":
    main()
