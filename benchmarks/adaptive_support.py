"""Sizes and smoothness chosen by `AdaptiveSupport`, compared with an oracle: a fit with the true sizes.

python benchmarks/adaptive_support.py [runs]      (default 50; a table by size, noise and type of graph)

100 x 100 with 50 x 50 planted is the paper's simulation, with a graph on both axes. 300 x 2,000 with 30 x 120 planted
has a graph on the columns: 15 neighbours within the module, 10 elsewhere. "Right" means both sizes within 20%.
"""

import sys
import warnings

import numpy as np
from joblib import Parallel, delayed

from netbic import AdaptiveSupport, SparseGraphSVD
from netbic.simulate import paper
from problems import simulations

CASES = [
    *((100, gamma, kind) for gamma in (0.03, 0.04, 0.05) for kind in ("none", "true", "permuted")),
    *((300, gamma, kind) for gamma in (0.02, 0.025) for kind in ("none", "true")),
]


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
    return simulations.f1(own.columns_[0], toy.v != 0), simulations.f1(oracle.columns_[0], toy.v != 0), flagged


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for scale in (False, True):
        rows = Parallel(n_jobs=-1)(delayed(heteroscedastic_run)(scale, seed) for seed in range(runs))
        score, oracle, flagged = np.mean(rows, axis=0)
        print(f"heteroscedastic columns, scale={scale}: F1 {score:.3f}, oracle {oracle:.3f}, flagged {flagged:.2f}")
    for n_rows, gamma, kind in CASES:
        rows = Parallel(n_jobs=-1)(delayed(simulations.adaptive_run)(n_rows, gamma, kind, seed) for seed in range(runs))
        right, score, oracle, flagged, converged = np.mean(rows, axis=0)
        print(
            f"{n_rows} rows, noise {gamma:g}, graph {kind:8s}: sizes right {right:.2f}, F1 {score:.3f}, "
            f"oracle {oracle:.3f}, flagged {flagged:.2f}, converged {converged:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
