"""Grids, time axes and sensors: which graph term, and how much smoothing.

`python -m benchmarks.grids` prints the tables of docs/any-matrix.md: F1 of the features of planted modules (mean over
four modules and eight data sets of 150 samples), the share of features without a neighbour in their module, and the
number of connected pieces of a module. Sizes come from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph

import netbic

SEEDS, SAMPLES, SIDE, TIMES, SENSORS = 8, 150, 20, 300, 300
TERMS = ("modularity", "normalized", "adjacency", "laplacian", "normalized_laplacian")
SETTINGS: dict[str, dict[str, Any] | None] = {
    "no graph": None,
    **{f'graph_term="{term}"': {"graph_term": term} for term in TERMS},
    "column_smoothness=0.9": {"column_smoothness": 0.9},
    **{f"diffusion={weight}": {"diffusion": weight} for weight in (0.3, 0.5, 0.7, 0.9)},
    'diffusion="cv"': {"diffusion": "cv"},
    "diffusion=0.5, column_smoothness=0.6": {"diffusion": 0.5, "column_smoothness": 0.6},
}
Data = tuple[sp.csr_array, np.ndarray]  # the graph, and the weights of the features in each module


def pixel_grid() -> sp.csr_array:
    """Pixels with the pixels beside, above and below."""
    line = sp.diags_array([1.0, 1.0], offsets=[1, -1], shape=(SIDE, SIDE))
    return sp.csr_array(sp.kron(line, sp.eye_array(SIDE)) + sp.kron(sp.eye_array(SIDE), line))


def blocks(seed: int) -> Data:
    """Squares of 6 x 6 pixels."""
    weights = np.zeros((4, SIDE, SIDE))
    for number, (row, column) in enumerate(product((2, 12), repeat=2)):
        weights[number, row : row + 6, column : column + 6] = 1
    return pixel_grid(), weights.reshape(4, -1)


def bumps(seed: int) -> Data:
    """Round spots of pixels, of which those with at least 0.4 of the highest weight are members."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    places = product((5, 14), repeat=2)
    weights = [np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / 12.5).ravel() for row, column in places]
    return pixel_grid(), np.array(weights)


def pulses(seed: int) -> Data:
    """Smooth pulses on a time axis."""
    graph = sp.csr_array(sp.diags_array([1.0, 1.0], offsets=[1, -1], shape=(TIMES, TIMES)))
    return graph, np.array([np.exp(-((np.arange(TIMES) - time) ** 2) / 128) for time in (50, 110, 190, 250)])


def regions(seed: int) -> Data:
    """The thirty sensors nearest to a place, in the graph of the six nearest neighbours."""
    places = np.random.default_rng(seed).random((SENSORS, 2))
    graph = kneighbors_graph(places, 6)
    centres = np.array([*product((0.25, 0.75), repeat=2)])
    ranks = np.linalg.norm(places[None] - centres[:, None], axis=2).argsort(axis=1).argsort(axis=1)
    return sp.csr_array(graph.maximum(graph.T)), (ranks < 30) * 1.0


def shuffled(seed: int) -> Data:
    """The squares, with a graph of which the pixels are in random order: it says nothing."""
    graph, weights = blocks(seed)
    order = np.random.default_rng(seed).permutation(SIDE**2)
    return sp.csr_array(graph[order][:, order]), weights


KINDS: dict[str, tuple[Callable[[int], Data], float, float]] = {  # with a weak and a strong signal
    "grid, blocks": (blocks, 0.35, 0.8),
    "grid, spots": (bumps, 0.5, 1.2),
    "time, pulses": (pulses, 0.5, 1.2),
    "sensors, regions": (regions, 0.35, 0.8),
    "grid, useless graph": (shuffled, 0.35, 0.8),
}


def measured(make: Callable[[int], Data], strength: float, options: dict[str, Any] | None) -> Iterator[list[float]]:
    """F1, the share of isolated members, and the number of pieces, for each data set."""
    for seed in range(SEEDS):
        (graph, weights), random = make(seed), np.random.default_rng(100 + seed)
        X = strength * random.standard_normal((SAMPLES, 4)) @ weights
        X += random.standard_normal(X.shape)
        given = {} if options is None else {"column_graph": netbic.Graph(graph)} | options
        members = netbic.SparseGraphSVD(4, **given).fit(X).columns_
        truth = weights >= 0.4
        both = (members[:, None] & truth[None]).sum(axis=2)
        f1 = 2 * both / (members.sum(axis=1)[:, None] + truth.sum(axis=1)[None])
        inside = [graph[own][:, own] for own in members]
        alone = [float(np.mean(part.sum(axis=1) == 0)) for part in inside]
        pieces = [connected_components(part)[0] for part in inside]
        yield [float(f1.max(axis=0).mean()), float(np.mean(alone)), float(np.mean(pieces))]


def main() -> None:
    """Print a table for weak and one for strong signals."""
    for at, title in ((1, "weak"), (2, "strong")):
        print(f"\n{title} signal\n\n| | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 1)}")
        for label, options in SETTINGS.items():
            cells = []
            for make, *strengths in KINDS.values():
                f1, alone, pieces = np.mean([*measured(make, strengths[at - 1], options)], axis=0)
                cells.append(f"{f1:.2f} ({100 * alone:.0f} %, {pieces:.1f})")
            print(f"| `{label}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
