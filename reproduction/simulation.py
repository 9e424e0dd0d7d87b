"""Figure 1: sensitivity of the methods on simulated data, and controls without signal.

X = u v' + gamma noise, 100 x 100, with 50 planted rows and columns; the first 50 vertices of the graphs are densely
connected.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from netbic.graph import Graph
from netbic.methods import method
from netbic.simulate import PaperSimulation, paper

GAMMAS: Final = tuple(round(0.02 + 0.005 * step, 3) for step in range(9))
OURS: Final = "netbic (auto, 10 starts)"
FIGURE_METHODS: Final = ("sgSVD*", "sgSVD", "L0SVD", "ALSVD", "SCADSVD", OURS)
CONTROL_GAMMA: Final = 0.06
SIGMA: Final = 0.1


@dataclass(frozen=True)
class Problem:
    """A matrix, its graphs, the columns with signal (if any), and the densely connected columns."""

    X: NDArray[np.float64]
    row_graph: Graph
    column_graph: Graph
    truth: NDArray[np.bool_] | None
    block: NDArray[np.bool_]


def as_published(toy: PaperSimulation) -> Problem:
    """The design of the paper: the signal is on the densely connected vertices."""
    return Problem(toy.X, toy.row_graph, toy.column_graph, toy.v != 0, toy.v != 0)


def without_signal(toy: PaperSimulation) -> Problem:
    """Noise alone: what is found comes from the graph."""
    return replace(as_published(toy), X=toy.X - np.outer(toy.u, toy.v), truth=None)


def off_the_block(toy: PaperSimulation) -> Problem:
    """The signal on the other vertices: the graph is misleading."""
    return replace(as_published(toy), X=toy.X[::-1, ::-1].copy(), truth=(toy.v != 0)[::-1])


def on_permuted_graphs(toy: PaperSimulation, seed: int) -> Problem:
    """The same graphs with permuted vertices: they contain no information on the signal."""
    generator = np.random.default_rng(seed)
    rows, columns = (generator.permutation(graph.n_nodes) for graph in (toy.row_graph, toy.column_graph))
    return replace(
        as_published(toy),
        row_graph=Graph(toy.row_graph.weights[rows][:, rows]),
        column_graph=Graph(toy.column_graph.weights[columns][:, columns]),
        block=(toy.v != 0)[columns],
    )


CONTROLS: Final[dict[str, Callable[[PaperSimulation, int], Problem]]] = {
    "as published": lambda toy, seed: as_published(toy),
    "no signal": lambda toy, seed: without_signal(toy),
    "signal off the dense block": lambda toy, seed: off_the_block(toy),
    "graphs permuted": on_permuted_graphs,
}


def found_columns(problem: Problem, name: str, seed: int) -> NDArray[np.bool_]:
    """The 50 columns that a method selects, with sigma 0.1 on both sides."""
    options: dict[str, Any] = {"n_rows": 50, "n_columns": 50}
    if name == OURS:
        options |= {"solver": "auto", "n_init": 10, "random_state": seed}
        name = "sgSVD*"
    if "sg" in name:
        options |= {"row_graph": problem.row_graph, "column_graph": problem.column_graph}
        options |= {"row_sigma": SIGMA, "column_sigma": SIGMA}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the published iteration may cycle, and the graph's share is large here
        model = method(name, **options).fit(problem.X)
    return np.asarray(model.columns_[0])


def sensitivities(
    replicates: int = 50,
    *,
    gammas: Sequence[float] = GAMMAS,
    methods: Sequence[str] = FIGURE_METHODS,
    seed: int = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Sensitivity (share of the planted columns that are found): `signs`, `gamma`, `method`, `mean`, `sem`.

    With 50 of 100 planted and 50 selected, the specificity is the same number.
    """
    cases = [(signs, gamma, seed + k) for signs in ("same", "random") for gamma in gammas for k in range(replicates)]

    def one(signs: str, gamma: float, number: int) -> dict[str, Any]:
        toy = paper(gamma, signs=signs, random_state=number)
        problem = as_published(toy)
        shares = {name: float(found_columns(problem, name, number)[toy.v != 0].mean()) for name in methods}
        return {"signs": signs, "gamma": gamma, **shares}

    rows = Parallel(n_jobs=n_jobs)(delayed(one)(*case) for case in cases)
    long = pd.DataFrame(rows).melt(["signs", "gamma"], var_name="method", value_name="sensitivity")
    return long.groupby(["signs", "gamma", "method"], sort=False)["sensitivity"].agg(["mean", "sem"]).reset_index()


def controls(
    replicates: int = 50,
    *,
    methods: Sequence[str] = ("sgSVD*", "sgSVD", "L0SVD", OURS),
    seed: int = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Results with an uninformative or misleading graph (random signs, gamma 0.06).

    Columns `control`, `method`, `in_block` (share of the selected columns that are densely connected; 0.5 by chance)
    and `sensitivity` (share of the planted columns that are found; NaN without signal).
    """

    def one(number: int) -> list[tuple[str, str, float, float]]:
        toy = paper(CONTROL_GAMMA, random_state=number)
        rows = []
        for control, change in CONTROLS.items():
            problem = change(toy, number)
            for name in methods:
                kept = found_columns(problem, name, number)
                found = np.nan if problem.truth is None else float(kept[problem.truth].mean())
                rows.append((control, name, float(problem.block[kept].mean()), found))
        return rows

    results = Parallel(n_jobs=n_jobs)(delayed(one)(seed + k) for k in range(replicates))
    table = pd.DataFrame(
        [row for rows in results for row in rows], columns=["control", "method", "in_block", "sensitivity"]
    )
    return table.groupby(["control", "method"], sort=False).mean().reset_index()


def toy_vectors(seed: int = 1) -> pd.DataFrame:
    """Figure 1A: the true v and the estimates of three methods at gamma 0.06: `position`, `method`, `value`."""
    toy = paper(CONTROL_GAMMA, random_state=seed)
    graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph, "row_sigma": SIGMA, "column_sigma": SIGMA}
    parts = [pd.DataFrame({"position": np.arange(100), "method": "truth", "value": toy.v})]
    for name in ("sgSVD*", "sgSVD", "L0SVD"):
        options: dict[str, Any] = graphs if "sg" in name else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            v = method(name, n_rows=50, n_columns=50, **options).fit(toy.X).components_[0]
        v = v if v @ toy.v >= 0 else -v
        parts.append(pd.DataFrame({"position": np.arange(100), "method": name, "value": v}))
    return pd.concat(parts, ignore_index=True)
