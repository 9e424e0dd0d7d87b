"""The network of a module, and the layout of small graphs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, zip_longest
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.arrays import Floats, kind_of
from netbic.errors import InputError
from netbic.estimators.inputs import one_blas_thread
from netbic.estimators.results import heaviest, names_of, position_of
from netbic.graph import Graph, match
from netbic.pl import base, fitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NODES = 500  # more cannot be distinguished, and their layout takes too long
_SMALLEST_NODE, _LARGEST_NODE = 4.0, 150.0  # areas in square points
_NODES_SHARE = 0.09  # of the area of the axes, if all nodes had the largest size
_NEIGHBOURS = 3  # of each gene in a coexpression network
_TRIES = 3  # labels that are tried, for each that is written
# Positions of a label relative to its node; the first free one is used.
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))
_DISTANCES = (1.0, 1.5, 2.5, 4.0)
_MAP, _BAR, _AROUND = 5.2, 1.4, 0.9  # inches of a map: width; its colour bar and ticks; title and ticks
_MARGINS = (1.24, 1.16)  # of the axes around the nodes
_MAX_ITER, _TOLERANCE = 200, 1e-4  # of the layout


@base.plot
def network(
    model: base.ModelLike,
    module: int = 1,
    *,
    X: Any = None,
    graph: object = None,
    n_labels: int = 10,
    seed: int = 0,
    positions: Any = None,
    names: Sequence[str] | None = None,
    feature_name: str | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot the graph between the genes of a module, or their coexpression if the model has no graph.

    The colour of a node is its signed weight, the size the absolute weight. Edges that inhibit are dashed.
    Members without an edge to another member are drawn in rows below. Labels are given to the members with the largest
    weights and to those with the most edges inside the module in turn; a label that would cover a node or another label
    is left out, and the next member gets one. Of a module with more than 500 genes, those with the 500 largest weights
    are drawn. In a coexpression network, each gene has edges to the three genes of the module with which it has the
    largest absolute correlations in the data as they were fitted; edges of negative correlations are dashed. The title
    then says so: such a network shows how the genes hang together, it is no evidence for the module.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    $module
    X : array, DataFrame, sparse matrix or AnnData, optional
        The data of the fit, for the coexpression of the genes; used if there is no graph. Not needed if `model` is an
        AnnData object.
    graph : graph-like, optional
        Default: the graph of the fit. Matched by name if both have names.
    n_labels : int
        Maximum number of labels.
    seed : int
        Random seed of the layout.
    positions : array or DataFrame of two columns, optional
        Where the features are, for example the coordinates of sensors, instead of a layout: a row for each feature of
        the model, or for each name. Other features are drawn as small grey points.
    $names
    $feature_name
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60, column_graph=study.network).fit(study.expression)
    >>> netbic.pl.network(model, 2).get_title(loc="left")
    'Module 2: 60 features, ... edges'
    """
    found = base.fitted(model, key)
    at = position_of(module, found.n_components_)
    everyone, noun = heaviest(found.components_[at]), base.noun_of(model, "columns", feature_name)
    members = everyone[:_MOST_NODES]
    weights = found.components_[at, members]
    whole = found.graphs_["columns"]
    if graph is not None:
        whole = match(graph, int(found.n_features_in_), found.names_["columns"], "column")
    if whole is None and X is None and kind_of(model) != "anndata":
        without = f"the model was fitted without a graph of its {noun}"
        raise InputError(f"{without}: give one (`graph`), or the data for the coexpression of the {noun} (`X`)")
    if whole is None:
        data = base.data_of(model, X, key)
        inside = _coexpressed(base.entries(found, data, np.arange(len(found.left_vectors_)), members))
    else:
        inside = whole.subgraph(members)
    degrees = inside.degrees
    everywhere = None if positions is None else _places(positions, found)
    placed = layout(inside.weights, seed) if everywhere is None else everywhere[members]
    ax = base.axes_for(ax, (6.5, 5.5) if everywhere is None else _size_of(everywhere), given)
    areas = _draw(ax, placed, inside.weights, weights)
    if everywhere is not None:
        ax.scatter(
            everywhere[:, 0], everywhere[:, 1], s=_SMALLEST_NODE, color="0.8", zorder=0
        )  # the same extent for every module
        ax.set_aspect("equal")
    elif (degrees == 0).any():
        alone = placed[degrees == 0]
        text, corner = f"{len(alone)} without an edge in the module", tuple(alone.min(axis=0))
        ax.annotate(text, corner, (0, -12), textcoords="offset points", va="top", size=fitting.small(), color="0.35")
    if everywhere is None:
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    shown = f"{everyone.size:,}" if members.size == everyone.size else f"{members.size} of {everyone.size:,}"
    name = "" if names is None else names[at]
    edges = f"{inside.n_edges:,} edges"
    facts = edges if whole is not None else f"coexpression ({edges} to the most correlated {noun})"
    base.module_title(ax, module, name, f"{shown} {noun}, {facts}")
    base.write_labels(ax, given)
    fitting.apply_layout(ax)
    genes = names_of(found, "columns")[members]
    # Members with the largest weights and with the most edges in turn; members are ordered by weight.
    hubs = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)]
    turns = (pick for turn in zip_longest(range(weights.size), hubs.tolist()) for pick in turn if pick is not None)
    labels = {k: base.label_text(genes[k]) for k in list(dict.fromkeys(turns))[: _TRIES * max(n_labels, 0)]}
    _write_labels(ax, placed, areas, labels, n_labels)
    return ax


def _size_of(places: Floats) -> tuple[float, float]:
    """Width and height of a figure of these places, in inches, so that little of it is empty."""
    width, height = np.ptp(places, axis=0) * _MARGINS
    share = float(np.clip(height / width, 0.3, 2.0)) if width else 1.0
    across = _MAP if share <= 1 else _MAP / share**0.5
    return across + _BAR, share * across + _AROUND


def _places(positions: Any, found: Any) -> Floats:
    """Given positions of all features, in the order of the model."""
    names = names_of(found, "columns")
    if hasattr(positions, "reindex") and found.names_["columns"] is not None:
        positions = positions.reindex(names)
    places = np.asarray(positions, dtype=float)
    if places.shape != (len(names), 2):
        asked = f"give a row of two coordinates for each of the {len(names):,} features"
        raise InputError(f"positions have the shape {places.shape}: {asked}")
    if not np.isfinite(places).all():
        lacking = int((~np.isfinite(places)).any(axis=1).sum())
        raise InputError(f"positions of {lacking:,} features are missing or not finite: give two coordinates for each")
    return places


def _coexpressed(values: Floats) -> Graph:
    """The graph of genes (columns) that connects each to the few others with the largest absolute correlations."""
    filled = np.where(np.isfinite(values), values, 0.0)  # columns have the mean 0
    sizes = np.linalg.norm(filled, axis=0)
    correlations = filled.T @ filled / np.maximum(np.outer(sizes, sizes), np.finfo(float).tiny)
    np.fill_diagonal(correlations, 0.0)
    strengths = np.round(np.abs(correlations), 10)  # the same neighbours on every machine
    few = min(_NEIGHBOURS, len(strengths) - 1)
    kept = np.zeros(correlations.shape, dtype=bool)
    np.put_along_axis(kept, np.argsort(-strengths, axis=1, kind="stable")[:, :few], True, axis=1)
    return Graph(np.where((kept | kept.T) & (strengths > 0), np.sign(correlations), 0.0), signed=True)


def _draw(ax: Axes, positions: Floats, edges: sp.csr_array, weights: NDArray[Any]) -> NDArray[Any]:
    """Draw edges and nodes, and return the areas of the nodes."""
    from matplotlib.collections import LineCollection

    upper = np.triu(edges.toarray())
    alpha = float(np.clip(12 / np.sqrt(np.count_nonzero(upper) + 1), 0.15, 0.9))
    for which, style in ((upper > 0, "solid"), (upper < 0, "dashed")):
        if which.any() or style == "solid":
            look: dict[str, Any] = {"colors": "0.6", "linewidths": 0.6, "linestyles": style}
            ax.add_collection(LineCollection(list(positions[np.argwhere(which)]), alpha=alpha, zorder=1, **look))
    sizes = np.abs(weights)
    largest = float(sizes.max(initial=0.0)) or 1.0
    window = ax.get_window_extent()
    share = _NODES_SHARE * window.width * window.height / base.pixels(ax, 1.0) ** 2 / max(sizes.size, 1)
    most = min(max(share, 2 * _SMALLEST_NODE), _LARGEST_NODE)
    areas: NDArray[Any] = _SMALLEST_NODE + (most - _SMALLEST_NODE) * sizes / largest
    colours: dict[str, Any] = {"c": weights, "cmap": base.DIVERGING, "vmin": -largest, "vmax": largest}
    x, y = positions.T
    nodes = ax.scatter(x, y, s=areas, edgecolors="0.35", linewidths=0.5, zorder=2, **colours)
    base.colour_bar(nodes, ax, "weight")
    ax.margins(*((share - 1) / 2 for share in _MARGINS))
    ax.set_aspect("equal", adjustable="datalim")
    return areas


def _write_labels(ax: Axes, positions: Floats, areas: NDArray[Any], names: dict[int, str], most: int) -> None:
    """Labels next to their nodes that cover neither each other nor a node: the first `most` that fit.

    A label is tried on all sides of its node, then further away. A line connects it to its node if another one is
    nearer.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.0, foreground="white")]  # edges behind a label
    centres, radii = np.asarray(ax.transData.transform(positions)), base.pixels(ax, 1.0) * np.sqrt(areas / np.pi)
    frame = np.asarray(ax.get_window_extent().get_points()).ravel()
    taken = np.hstack([centres - radii[:, None], centres + radii[:, None]])  # boxes (x0, y0, x1, y1)
    horizontal, vertical = {1: "left", 0: "center", -1: "right"}, {1: "bottom", 0: "center", -1: "top"}
    for k, name in names.items():
        if len(taken) >= len(positions) + most:
            return
        text = ax.annotate(
            name, positions[k], (0, 0), textcoords="offset points", size=fitting.small(), zorder=3,
            annotation_clip=False, path_effects=halo, **base.LITERAL,
        )  # fmt: skip
        distance = radii[k] / base.pixels(ax, 1.0) + 2
        for times, (x, y) in product(_DISTANCES, _SIDES):
            away = times * distance
            text.set(ha=horizontal[round(x)], va=vertical[round(y)], position=(x * away, y * away))
            box = np.asarray(text.get_window_extent().get_points()).ravel()
            inside = (box[:2] >= frame[:2]).all() and (box[2:] <= frame[2:]).all()
            if inside and not ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
                taken = np.vstack([taken, box])
                nearest = np.linalg.norm(centres - np.clip(centres, box[:2], box[2:]), axis=1) - radii
                if nearest.argmin() != k:  # the label could be that of another node
                    ends = np.array([centres[k], np.clip(centres[k], box[:2], box[2:])])
                    line = Line2D(*ax.transData.inverted().transform(ends).T, color="0.2", lw=0.7, zorder=1.5)
                    ax.add_artist(line)
                break
        else:
            text.remove()


def layout(weights: sp.csr_array | Floats, seed: int = 0) -> Floats:
    """Positions of nodes whose Euclidean distances approximate the distances in the graph; isolated ones are below.

    The length of an edge is the square root of the smaller degree of its ends, so that the area of a clique is
    proportional to its size. Each connected component is placed separately (Gansner, Koren and North 2004: every
    iteration decreases the stress); components are then arranged side by side, the largest first.
    """
    from scipy.sparse.csgraph import connected_components, shortest_path

    ends = sp.coo_array(weights)
    degrees = np.bincount(ends.row, minlength=ends.shape[0])
    lengths = np.sqrt(np.minimum(degrees[ends.row], degrees[ends.col]))
    edges = sp.csr_array((lengths, (ends.row, ends.col)), shape=ends.shape)
    rng = np.random.default_rng(seed)
    _, part_of = connected_components(edges, directed=False)
    sizes = np.bincount(part_of, minlength=1)
    positions = np.zeros((edges.shape[0], 2))
    parts = [np.flatnonzero(part_of == part) for part in np.argsort(-sizes, kind="stable") if sizes[part] > 1]
    with one_blas_thread():
        for part in parts:
            placed = _stressed(shortest_path(edges[part][:, part]), rng)
            placed -= placed.mean(axis=0)
            # The longest side is horizontal: pages and screens are wider than high.
            positions[part] = placed @ np.linalg.svd(placed, full_matrices=False)[2].T
    _arrange(positions, parts, np.flatnonzero(degrees == 0))
    return positions


def _stressed(distances: Floats, rng: np.random.Generator) -> Floats:
    """Positions that minimise the sum of (|x_i - x_j| - d_ij)^2 / d_ij^2, by majorisation."""
    from scipy.spatial.distance import cdist

    n, itself = len(distances), np.diag_indices(len(distances))
    wanted = distances + np.eye(n)
    closeness = (1 / wanted**2) * (1 - np.eye(n))
    strength = closeness * wanted
    laplacian = np.diag(closeness.sum(axis=1)) - closeness
    inverse = np.linalg.inv(laplacian[1:, 1:])  # the position of the first node is fixed
    # The two leading coordinates of classical multidimensional scaling, and noise, or equal nodes would stay together.
    squared = distances**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(centred)
    leading = vectors[:, -2:][:, ::-1]
    leading *= np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(leading.shape[1])])
    positions: Floats = leading * np.sqrt(np.maximum(values[-2:][::-1], 0)) + rng.normal(scale=0.05, size=(n, 2))
    for _ in range(_MAX_ITER):
        apart = cdist(positions, positions)
        apart[itself] = 1
        pull = strength / np.maximum(apart, 1e-9, out=apart)
        target = pull.sum(axis=1)[:, None] * positions - pull @ positions
        moved = np.zeros_like(positions)
        moved[1:] = inverse @ target[1:]
        moved -= moved.mean(axis=0)
        step = np.abs(moved - positions).max()
        positions = moved
        if step < _TOLERANCE * np.abs(positions).max():
            break
    return positions


def _arrange(positions: Floats, parts: list[NDArray[np.intp]], alone: NDArray[np.intp]) -> None:
    """Components side by side in rows as wide as the largest, with equal margins; nodes without edges in rows below."""
    boxes = [np.ptp(positions[part], axis=0) + 1.0 for part in parts]
    width = max(boxes[0][0], float(np.sqrt(1.5 * sum(box.prod() for box in boxes)))) if boxes else 0.0
    x, y, row = 0.0, 0.0, 0.0
    for part, box in zip(parts, boxes, strict=True):
        if x and x + box[0] > width:
            x, y, row = 0.0, y - row, 0.0
        positions[part] += np.array([x, y - box[1]]) + 0.5 - positions[part].min(axis=0)
        x, row = x + box[0], max(row, box[1])
    others = np.delete(positions, alone, axis=0) if parts else np.zeros((1, 2))
    left, bottom = others.min(axis=0)
    width = max(float(np.ptp(others[:, 0])), 1.0)
    per_row = int(np.clip(np.ceil(np.sqrt(6 * alone.size)), 1, 30))
    step, number = width / max(per_row - 1, 1), np.arange(alone.size)
    positions[alone, 0] = left + number % per_row * step
    positions[alone, 1] = bottom - 0.08 * width - number // per_row * step
