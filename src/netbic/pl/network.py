"""A module's subnetwork."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, heaviest, matched_graph, names_of
from netbic.graphs import Graph, match
from netbic.pl.canvas import DIVERGING, SMALL, axes_for, colour_bar, pixels, settle
from netbic.pl.layout import Layout, layout
from netbic.pl.names import LITERAL, shown_name
from netbic.pl.source import check_module, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Indices = NDArray[np.intp]

_MOST_NODES = 500  # more can neither be told apart nor placed in seconds
_SMALLEST_NODE, _LARGEST_NODE = 4.0, 150.0  # areas, in square points
_NODES_SHARE = 0.09  # of the axes, if all were as large as the largest
# Where a label may stand: beside the node, above or below it, at its corners; the first that is free is taken.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))


def network(
    model: Any,
    module: int = 0,
    *,
    graph: Any = None,
    n_labels: int = 10,
    seed: int = 0,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Draw the graph between the features of a module.

    Colours are signed weights, sizes their magnitudes. Members without an edge to another stand in rows below. Named
    are the heaviest members and those with the most edges inside the module, half of each; a name that would cover
    another is left out. Of a module of more than 500 features the heaviest 500 are drawn.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    module : int
        Modules count from 0.
    graph : graph-like, optional
        Default: the graph the model was fitted with. Matched by name where both sides have names.
    n_labels : int
        Names to write at most.
    seed : int
        The same seed gives the same picture.
    key : str
        The modules' key in an AnnData object (`key_added` of `tl.modules`).
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60, column_graph=study.network).fit(study.expression)
    >>> netbic.pl.network(model, 1).get_title(loc="left")
    'Module 1: 60 features, ... edges'
    """
    found = fitted(model, key)
    everyone = heaviest(found.components_[check_module(found, module)])
    members = everyone[:_MOST_NODES]
    weights = found.components_[module, members]
    inside = _graph_of(found, graph).subgraph(members)
    edges = inside.weights
    placed = layout(edges, seed)
    ax = axes_for(ax, (6.5, 5.5))
    _draw_edges(ax, placed.places, edges)
    areas = _draw_nodes(ax, placed, weights)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    shown = f"{everyone.size:,}" if members.size == everyone.size else f"{members.size} heaviest of {everyone.size:,}"
    ax.set_title(f"Module {module}: {shown} features, {inside.n_edges:,} edges", loc="left", size=SMALL + 2)
    settle(ax)
    names = names_of(found, "columns")[members]
    labels = {int(k): shown_name(names[k]) for k in _labelled(weights, edges, n_labels)}
    _write_labels(ax, placed.places, areas, labels)
    return ax


def _graph_of(model: SparseGraphSVD, graph: Any) -> Graph:
    if graph is not None:
        return match(graph, int(model.n_features_in_), model.names_["columns"], "column")
    own = matched_graph(model, "column")
    if own is None:
        raise InputError("the model was fitted without a graph of its features: give one, network(model, graph=...)")
    return own


def _draw_edges(ax: Axes, places: NDArray[Any], edges: Any) -> None:
    from matplotlib.collections import LineCollection

    pairs = np.argwhere(np.triu(edges.toarray() != 0))
    faint = float(np.clip(12 / np.sqrt(len(pairs) + 1), 0.15, 0.9))
    ax.add_collection(LineCollection(list(places[pairs]), colors="0.6", linewidths=0.6, alpha=faint, zorder=1))


def _draw_nodes(ax: Axes, placed: Layout, weights: NDArray[Any]) -> NDArray[Any]:
    """Draw the nodes, say which have no edges, and return their areas."""
    sizes = np.abs(weights)
    largest = float(sizes.max(initial=0.0)) or 1.0
    room = ax.get_window_extent()
    share = _NODES_SHARE * room.width * room.height / pixels(ax, 1.0) ** 2 / max(sizes.size, 1)
    most = min(max(share, 2 * _SMALLEST_NODE), _LARGEST_NODE)
    areas: NDArray[Any] = _SMALLEST_NODE + (most - _SMALLEST_NODE) * sizes / largest
    nodes = ax.scatter(
        placed.places[:, 0], placed.places[:, 1], s=areas, c=weights, cmap=DIVERGING, vmin=-largest, vmax=largest,
        edgecolors="0.35", linewidths=0.5, zorder=2,
    )  # fmt: skip
    colour_bar(nodes, ax, "weight")
    ax.margins(0.12, 0.08)
    ax.set_aspect("equal", adjustable="datalim")
    if placed.isolated.any():
        alone = placed.places[placed.isolated]
        said = f"{len(alone)} without an edge in the module"
        at = (alone[:, 0].min(), alone[:, 1].min())
        ax.annotate(said, at, (0, -12), textcoords="offset points", va="top", size=SMALL, color="0.35")
    return areas


def _labelled(weights: NDArray[Any], edges: Any, n_labels: int) -> Indices:
    """The heaviest and the hubs in turn, each once; members come heaviest first."""
    degrees = np.diff(edges.indptr)
    hubs = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)]
    turns = (pick for turn in zip_longest(range(weights.size), hubs.tolist()) for pick in turn if pick is not None)
    return np.array(list(dict.fromkeys(turns))[: max(n_labels, 0)], dtype=np.intp)


def _write_labels(ax: Axes, places: NDArray[Any], areas: NDArray[Any], names: dict[int, str]) -> None:
    """Names beside their nodes, where they cover neither each other nor a named node; no other node, if possible."""
    radii = pixels(ax, 1.0) * np.sqrt(areas / np.pi)
    nodes = [_box(centre, radius) for centre, radius in zip(ax.transData.transform(places), radii, strict=True)]
    frame, written = ax.get_window_extent(), list[Any]()
    for k, name in names.items():
        text = ax.annotate(
            name, places[k], (0, 0), textcoords="offset points", size=SMALL, zorder=3, annotation_clip=False,
            bbox={"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.5}, **LITERAL,
        )  # fmt: skip
        distance = radii[k] / pixels(ax, 1.0) + 2
        all_others = [*written, *(node for j, node in enumerate(nodes) if j != k)]
        named = [*written, *(nodes[j] for j in names if j != k)]
        box = _free_place(text, all_others, distance, frame) or _free_place(text, named, distance, frame)
        if box is None:
            text.remove()
        else:
            written.append(box)


def _box(centre: NDArray[Any], radius: float) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox([centre - radius, centre + radius])


def _free_place(text: Any, taken: list[Any], distance: float, frame: Any) -> Any:
    """Try a label on all sides of its node; the box it got, or None."""
    across, upright = {1: "left", 0: "center", -1: "right"}, {1: "bottom", 0: "center", -1: "top"}
    for x, y in _SIDES:
        text.set(ha=across[round(x)], va=upright[round(y)], position=(x * distance, y * distance))
        box = text.get_window_extent()
        inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
        if inside and not any(box.overlaps(other) for other in taken):
            return box
    return None
