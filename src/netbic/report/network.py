"""The network of a module: positions of nodes, edges and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.graph import Graph
from netbic.pl import layout

WIDTH, HEIGHT = 1000, 720
_MARGIN = 36
_MOST_NODES, _MOST_EDGES = 300, 1500
_LABELS, _LETTER, _LINE = 12, 15, 28
_LONGEST_LABEL = 18


class Node(NamedTuple):
    """A member; `at` is its rank among the genes of the module, by decreasing weight."""

    at: int
    x: int
    y: int
    radius: int
    colour: int
    neighbours: int


class Label(NamedTuple):
    """A name next to a node."""

    x: int
    y: int
    anchor: str
    text: str


@dataclass(frozen=True)
class Subnetwork:
    """The members of a module with a neighbour in it, and the edges between them."""

    nodes: list[Node]
    edges: NDArray[Any]  # (n, 2) ranks among the genes of the module
    labels: list[Label]
    n_edges: int
    n_alone: int
    hub_share: float
    inhibit: NDArray[Any]  # which edges do

    def path(self, inhibit: bool = False) -> str:
        """All edges that activate (or that inhibit) as one SVG path."""
        positions = {node.at: f"{node.x} {node.y}" for node in self.nodes}
        edges = self.edges[self.inhibit == inhibit]
        return "".join(f"M{positions[int(a)]}L{positions[int(b)]}" for a, b in edges)


def subnetwork(
    graph: Graph, members: NDArray[Any], weights: NDArray[Any], names: Sequence[object], seed: int = 0
) -> Subnetwork:
    """Lay out the genes of a module, given by decreasing weight.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> from netbic.report.network import subnetwork
    >>> path = netbic.Graph(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    >>> drawn = subnetwork(path, np.array([2, 1, 0]), np.array([0.8, -0.5, 0.3]), np.array(["c", "b", "a"]))
    >>> [node.neighbours for node in drawn.nodes], drawn.edges.tolist(), drawn.n_alone
    ([1, 2, 1], [[0, 1], [1, 2]], 0)
    """
    inside = graph.subgraph(members)
    neighbours = inside.degrees
    joined = np.flatnonzero(neighbours)[:_MOST_NODES]
    part = inside.subgraph(joined).weights
    positions = _scaled(layout(part, seed).positions) * [WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN] + _MARGIN
    nodes = [
        Node(int(at), int(x), int(y), *_style(weights[at], weights), int(neighbours[at]))
        for at, (x, y) in zip(joined, np.rint(positions), strict=True)
    ]
    pairs, inhibit = _heaviest_edges(part, np.abs(weights[joined]))
    return Subnetwork(
        nodes,
        joined[pairs],
        _labels(nodes, names),
        n_edges=inside.n_edges,
        n_alone=int(np.count_nonzero(neighbours == 0)),
        hub_share=_hub_share(inside),
        inhibit=inhibit,
    )


def _style(weight: float, weights: NDArray[Any]) -> tuple[int, int]:
    """Radius by absolute weight; colour 0 (most negative) to 6 by the signed square root of the weight."""
    part = weight / np.abs(weights).max()
    return round(5 + 13 * abs(part)), round(3 + 3 * np.sign(part) * np.sqrt(abs(part)))


def _scaled(positions: NDArray[Any]) -> NDArray[Any]:
    """Scale to the unit square; a line is centred in it."""
    if not len(positions):
        return positions
    low, reach = positions.min(axis=0), np.ptp(positions, axis=0)
    return np.where(reach > 0, (positions - low) / np.where(reach > 0, reach, 1.0), 0.5)


def _heaviest_edges(part: sp.csr_array, magnitudes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both ends of the edges to draw, and which of them inhibit."""
    edges = part.tocoo()
    once = edges.row < edges.col
    pairs = np.column_stack([edges.row, edges.col])[once]
    order = np.sort(np.argsort(-magnitudes[pairs].prod(axis=1), kind="stable")[:_MOST_EDGES])
    return pairs[order], edges.data[once][order] < 0


def _hub_share(inside: Graph, n_hubs: int = 3) -> float:
    """Share of the edges that involve the three members with the most neighbours."""
    if not inside.n_edges:
        return 0.0
    hubs = np.argsort(-inside.degrees, kind="stable")[:n_hubs]
    others = np.setdiff1d(np.arange(inside.n_nodes), hubs)
    return 1 - inside.subgraph(others).n_edges / inside.n_edges


def _labels(nodes: list[Node], names: Sequence[object]) -> list[Label]:
    """Labels of the nodes with the largest weights that do not overlap."""
    labels: list[Label] = []
    taken: list[tuple[float, float, float, float]] = []
    for node in nodes[: 3 * _LABELS]:
        label, box = _beside(node, str(names[node.at]))
        if len(labels) < _LABELS and not any(_overlap(box, other) for other in taken):
            labels.append(label)
            taken.append(box)
    return labels


def _beside(node: Node, name: str) -> tuple[Label, tuple[float, float, float, float]]:
    text = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
    width, left = _LETTER * len(text), node.x > WIDTH / 2
    x = node.x - node.radius - 4 if left else node.x + node.radius + 4
    start = x - width if left else x
    return Label(x, node.y + 8, "end" if left else "start", text), (
        start,
        node.y - _LINE / 2,
        start + width,
        node.y + 14,
    )


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
