"""False selections and power of `selection.stability`: planted modules, noise, and cases beyond the error bound.

python benchmarks/stability.py [runs]      (default 40, half of them for 300 x 2,000; noise seeds 0, 1, ...)

Signal and graph are fixed per setting. Per setting, axis and threshold: the number of stable members that are not
planted (false) and that halves select no more often than at random (low: mean frequency over runs at most q / p), both
means over runs; the bound on the latter; the share of planted members that are stable (power); false members
among the same number of largest weights of the fit to all data (cut false); and false members and power of that fit
itself, which has the planted size.
"""

import sys
from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse as sp
from joblib import Parallel, delayed

from netbic import SparseGraphSVD
from netbic.selection import stability
from netbic.selection.stability import expected_false
from netbic.simulate import paper
from problems import simulations

N_PAIRS = 50
THRESHOLDS = (0.6, 0.75, 0.9)
TERM = {"graph_term": "normalized", "smoothness_scale": "relative"}
STRONG = {"row_smoothness": 1.0, "column_smoothness": 1.0, "graph_term": "adjacency"}


def small(gamma, graph, signal=1.0, **parameters):
    """The paper's 100 x 100 with 50 x 50 planted."""
    toy = paper(gamma, random_state=0)
    parameters |= {"row_graph": toy.row_graph, "column_graph": toy.column_graph} if graph else {}
    model = SparseGraphSVD(1, n_rows=50, n_columns=50, center=None, **(TERM | parameters))
    return model, signal * np.outer(toy.u, toy.v)[None], np.full(100, gamma)


def large(gamma, graph, signal=1.0, spread=0.0, hubs=0, **parameters):
    """300 x 2,000 with 30 x 120 planted; a graph of the columns with 15 neighbours inside the block and 10 outside.

    `spread`: standard deviation of the logarithms of the columns' standard deviations. `hubs`: number of columns
    without signal that are connected to half of the block.
    """
    generator = np.random.default_rng(0)
    u, v = np.zeros(300), np.zeros(2000)
    u[:30], v[:120] = generator.choice([-1, 1], 30) / np.sqrt(30), generator.choice([-1, 1], 120) / np.sqrt(120)
    inside = np.arange(2000) < 120
    chance = np.where(np.outer(inside, inside), 15 / 120, 10 / 2000)
    chance[:120, 120 : 120 + hubs] = 0.5
    upper = np.triu(generator.random((2000, 2000)) < chance, 1)
    parameters |= {"column_graph": sp.csr_array((upper | upper.T).astype(float))} if graph else {}
    model = SparseGraphSVD(1, n_rows=30, n_columns=120, center=None, **(TERM | parameters))
    return model, signal * np.outer(u, v)[None], gamma * np.exp(spread * generator.standard_normal(2000))


def three(gamma):
    """Three modules of 20 x 20 in 100 x 100, d = 1, 0.8, 0.6, members drawn at random."""
    planted = simulations.three_modules(np.random.default_rng(0))
    return SparseGraphSVD(3, n_rows=20, n_columns=20, center=None), planted, np.full(100, gamma)


SETTINGS = {
    f"100 x 100, noise {gamma}{', graph' * graph}": partial(small, gamma, graph)
    for gamma in (0.03, 0.04, 0.05)
    for graph in (False, True)
}
SETTINGS |= {
    f"300 x 2,000, noise {gamma}{', graph' * graph}": partial(large, gamma, graph)
    for gamma in (0.02, 0.025)
    for graph in (False, True)
}
SETTINGS |= {
    "three modules, noise 0.03": partial(three, 0.03),
    "three modules, noise 0.04": partial(three, 0.04),
    "noise alone, 100 x 100": partial(small, 1, False, 0),
    "noise alone, 100 x 100, graph": partial(small, 1, True, 0),
    "noise alone, 100 x 100, strong graph": partial(small, 1, True, 0, **STRONG),
    "noise alone, 300 x 2,000": partial(large, 1, False, 0),
    "noise alone, 300 x 2,000, graph": partial(large, 1, True, 0),
    "300 x 2,000, unequal variances": partial(large, 0.01, False, spread=0.5),
    "300 x 2,000, unequal variances, scaled": partial(large, 0.01, False, spread=0.5, scale=True),
    "300 x 2,000, hubs beside the module": partial(large, 0.02, True, hubs=40, column_smoothness=1.0),
}


def one_run(setting, seed):
    """Per axis: frequencies, q, plain members, the planted members of each module, and weights; a row per module."""
    model, signal, deviations = SETTINGS[setting]()
    X = signal.sum(axis=0) + deviations * np.random.default_rng([1, seed]).standard_normal(signal.shape[1:])
    result = stability(model, X, n_pairs=N_PAIRS, random_state=seed)
    found = {}
    for axis, over in (("columns", 1), ("rows", 2)):
        part, planted = getattr(result, axis), (signal != 0).any(axis=over)
        plain = getattr(result.reference, f"{axis}_")
        # Each module is compared with the planted one with which it shares most members.
        shared = plain.astype(int) @ planted.T.astype(int)
        weights = result.reference.components_ if axis == "columns" else result.reference.left_vectors_.T
        found[axis] = part.frequency.to_numpy().T, part.selected, plain, planted[shared.argmax(axis=1)], abs(weights)
    return found


def summary(setting, runs):
    found = Parallel(n_jobs=2)(delayed(one_run)(setting, seed) for seed in range(runs))
    for axis in ("columns", "rows"):
        frequency, selected, plain, planted, weights = (
            np.array(part) for part in zip(*(run[axis] for run in found), strict=True)
        )
        p = frequency.shape[2]
        low = frequency.mean(axis=0) <= selected.mean(axis=0)[:, None] / p
        for threshold in THRESHOLDS:
            kept = frequency >= threshold - 1e-9
            ranks = (-weights).argsort(axis=2).argsort(axis=2)
            cut = ranks < kept.sum(axis=2, keepdims=True)
            bound = np.mean([expected_false(threshold, q, p, N_PAIRS) for q in selected.ravel()])
            yield {
                "setting": setting, "axis": axis, "threshold": threshold,
                "false": (kept & ~planted).sum(axis=2).mean(), "low": (kept & low).sum(axis=2).mean(), "bound": bound,
                "power": (kept & planted).sum() / max(planted.sum(), 1),
                "cut false": (cut & ~planted).sum(axis=2).mean(),
                "plain false": (plain & ~planted).sum(axis=2).mean(),
                "plain power": (plain & planted).sum() / max(planted.sum(), 1),
            }  # fmt: skip


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    chosen = [name for name in SETTINGS if len(sys.argv) < 3 or sys.argv[2] in name]
    for setting in chosen:
        table = pd.DataFrame(summary(setting, max(runs // 2, 1) if "2,000" in setting else runs))
        print(table.round(3).to_string(index=False, header=setting == chosen[0]), flush=True)


if __name__ == "__main__":
    main()
