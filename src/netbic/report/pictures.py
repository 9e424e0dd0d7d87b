"""The heatmap and the network of a module: what the page draws, and values that are stored after the fit."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array, Floats, Indices, Matrix, checked, kind_of, to_dense
from netbic.errors import import_optional
from netbic.estimators import SparseGraphSVD, check_same_data, fitted_model, heaviest, rescaled
from netbic.files import add_files, read_bytes
from netbic.graph import Graph
from netbic.operators.blocks import RowBlocks
from netbic.operators.corrected import Scaler
from netbic.pl.base import apart
from netbic.pl.network import layout
from netbic.storage import npz_arrays, npz_bytes

FILE = "heatmaps.npz"
_MOST_GENES, _MOST_SAMPLES = 300, 400
_MOST_CELLS = 800_000  # of all modules, so that the report has a few megabytes at most
_MOST_NAMES = 20  # so many lines of text fit beside the lowest heatmap
_LEVELS, _MISSING = 127, -128
_STRONG = 98  # percentile of the absolute values at which the colour scale ends

WIDTH, HEIGHT = 1000, 720  # of the drawing of a network
_MARGIN = 36
_MOST_NODES, _MOST_EDGES, _HUBS = 300, 1500, 3
_LABELS, _LETTER, _LINE, _LONGEST_LABEL = 12, 15, 28, 18


@dataclass(frozen=True)
class Heatmap:
    """Preprocessed values of the members of a module in 255 levels, positive weights first on both axes.

    `values` (genes x samples, int8) times `limit` / 127 are the values; -128 is a missing entry.
    """

    values: NDArray[np.int8]
    limit: float
    genes: NDArray[np.int32]  # columns of the matrix
    samples: NDArray[np.int32]  # rows of the matrix

    @property
    def picture(self) -> str:
        """The values as an image: red above zero, blue below, grey if missing."""
        return _coloured(self.values)

    def row_names(self, genes: Indices, weights: Array, names: Sequence[str]) -> list[tuple[float, str]]:
        """Middles of rows, as percentages of the height, and names: of the largest weights, as many as can be read."""
        known = dict(zip(genes.tolist(), zip(np.abs(weights).tolist(), names, strict=True), strict=True))
        rows = [known[int(gene)] for gene in self.genes]
        middles = 100 * (np.arange(len(rows)) + 0.5) / max(len(rows), 1)
        shown = apart(middles, np.array([weight for weight, _ in rows]), 100 / _MOST_NAMES)
        return [(round(float(middles[k]), 2), str(rows[k][1])) for k in shown]


def write_heatmaps(folder: Path | str, model: SparseGraphSVD, X: Matrix) -> None:
    """Store the values of the heatmaps, so that a report can be written without the data.

    Parameters
    ----------
    folder : path
        Folder for the file `heatmaps.npz`. Of large modules only the members with the largest weights are stored; of a
        module that keeps all samples, samples at equal distances in the order of their weights.
    model : SparseGraphSVD
        Fitted to X.
    X : DataFrame, array, sparse array or Dask array

    Examples
    --------
    >>> import tempfile, netbic
    >>> from netbic.report.pictures import read_heatmaps
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, n_columns=40).fit(toy.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     netbic.report.write_heatmaps(folder, model, toy.X)
    ...     read_heatmaps(folder)[0].values.shape
    (40, 50)
    """
    model = fitted_model(model)
    X = checked(X)
    check_same_data(model, X)
    arrays: dict[str, Any] = {}
    for module, heatmap in enumerate(heatmaps_of(model, X)):
        arrays |= {f"{name}-{module}": getattr(heatmap, name) for name in ("values", "limit", "genes", "samples")}
    add_files(Path(folder), {FILE: npz_bytes(arrays)})


def read_heatmaps(folder: Path | str) -> list[Heatmap]:
    """The heatmaps that `write_heatmaps` stored; none if there is no such file."""
    path = Path(folder) / FILE
    if not path.is_file():
        return []
    arrays = npz_arrays(path, read_bytes(path))
    return [
        Heatmap(arrays[f"values-{k}"], float(arrays[f"limit-{k}"]), arrays[f"genes-{k}"], arrays[f"samples-{k}"])
        for k in range(len(arrays) // 4)
    ]


def heatmaps_of(model: SparseGraphSVD, X: Matrix) -> list[Heatmap]:
    """The heatmap of each module; blocks of a Dask array are read once for all modules."""
    sizes = np.column_stack([model.columns_.sum(axis=1), model.rows_.sum(axis=1)])
    sizes = np.minimum(sizes, [_MOST_GENES, _MOST_SAMPLES])
    share = min(1.0, float(np.sqrt(_MOST_CELLS / max(sizes.prod(axis=1).sum(), 1))))
    members = [
        (_picked(model.components_[k], n_genes, spaced=False), _picked(model.left_vectors_[:, k], n_samples))
        for k, (n_genes, n_samples) in enumerate(np.ceil(share * sizes).astype(np.intp).tolist())
    ]
    if kind_of(X) == "dask":
        values = _from_blocks(model, RowBlocks(X, hold=False), members)
    else:
        rows = X.iloc if kind_of(X) == "table" else X
        values = []
        for genes, own in members:
            whole = rescaled(model, to_dense(rows[own], np.float64), own)
            values.append(_preprocess(whole, genes, model.scaler_, _design(model, own)))
    found = list[Heatmap]()
    for part, (genes, samples) in zip(values, members, strict=True):
        seen = np.abs(part[np.isfinite(part)])
        limit = (float(np.percentile(seen, _STRONG)) if seen.size else 0.0) or 1.0
        levels = np.nan_to_num(np.clip(part.T / limit, -1, 1) * _LEVELS, nan=_MISSING)
        found.append(Heatmap(np.rint(levels).astype(np.int8), limit, genes.astype(np.int32), samples.astype(np.int32)))
    return found


def _picked(vector: Array, count: int, spaced: bool = True) -> Indices:
    """The largest weights; if all are members and `spaced`, weights at equal distances in their order."""
    members = heaviest(vector)
    if not spaced or members.size < vector.size:
        members = members[:count]
    order = members[np.argsort(-vector[members], kind="stable")]
    return order[np.linspace(0, order.size - 1, min(count, order.size)).round().astype(np.intp)]


def _design(model: SparseGraphSVD, samples: Indices) -> Floats | None:
    """The covariates of some samples of the fit."""
    return None if model.covariates_ is None else model.covariates_.to_numpy(dtype=np.float64)[samples]


def _preprocess(rows: Matrix, genes: Indices, scaler: Scaler, design: Floats | None) -> Floats:
    """Values of some genes, from complete rows, because row means may have to be subtracted."""
    return np.asarray(scaler.apply(to_dense(rows, np.float64), design)[:, genes])


def _from_blocks(model: SparseGraphSVD, blocks: RowBlocks, members: Sequence[tuple[Indices, Indices]]) -> list[Floats]:
    """The values of the genes and samples of each module, from blocks of rows."""
    owners = [np.searchsorted(blocks.bounds, samples, side="right") - 1 for _, samples in members]
    which = np.unique(np.concatenate(owners)).tolist() if owners else []
    rows, designs = list[list[Indices]](), list[list[Floats | None]]()
    for block in which:
        drawn = [samples[own == block] for own, (_, samples) in zip(owners, members, strict=True)]
        rows.append([own - blocks.bounds[block] for own in drawn])
        designs.append([_design(model, own) for own in drawn])
    everywhere = ([genes for genes, _ in members], model.scaler_)
    shared = [[blocks.executor.broadcast(value)] * len(which) for value in everywhere]
    parts = blocks.executor.gather(blocks.map(_of_block, rows, designs, *shared, which=which))
    values = [np.empty((samples.size, genes.size)) for genes, samples in members]
    for block, found in zip(which, parts, strict=True):
        for whole, own, part in zip(values, owners, found, strict=True):
            whole[own == block] = part
    return values


def _of_block(
    block: Matrix, rows: list[Indices], designs: list[Floats | None], genes: list[Indices], scaler: Scaler
) -> list[Floats]:
    each = zip(rows, genes, designs, strict=True)
    return [_preprocess(block[own], other, scaler, design) for own, other, design in each]


def png(pixels: Any, palette: bytes | None = None) -> str:
    """An array, or an image of Pillow, as a PNG in a data URI."""
    images, buffer = import_optional("PIL.Image", "report", "a report"), io.BytesIO()
    image = images.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels
    if palette is not None:
        image.putpalette(palette)
    image.save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def scale_picture() -> str:
    """The colour scale of heatmaps, from the lowest to the highest value."""
    return _coloured(np.arange(-_LEVELS, _LEVELS + 1, dtype=np.int8)[None])


def _coloured(values: NDArray[np.int8]) -> str:
    """Levels from -127 to 127 as an image; -128 is grey."""
    colours = import_optional("matplotlib", "report", "a report").colormaps["RdBu_r"]
    red_to_blue = np.rint(255 * colours(np.linspace(0, 1, 2 * _LEVELS + 1))[:, :3]).astype(np.uint8)
    palette = bytes([150, 150, 150]) + bytes(red_to_blue.tobytes())
    return png(values.astype(np.int16).astype(np.uint8) ^ 128, palette)


@dataclass(frozen=True)
class Subnetwork:
    """The members of a module with a neighbour in it, and the edges between them.

    `at` of a node is its rank among the genes of the module, by decreasing weight; edges are pairs of such ranks.
    """

    nodes: list[dict[Any, int]]  # at, x, y, radius, colour (0 to 6), neighbours
    edges: NDArray[Any]
    inhibit: NDArray[Any]  # which edges do
    labels: list[dict[str, Any]]  # x, y, anchor, text
    n_edges: int
    n_alone: int
    hub_share: float  # of the edges, that involve the three members with the most neighbours

    def path(self, inhibit: bool = False) -> str:
        """All edges that activate (or that inhibit) as one SVG path."""
        positions = {node["at"]: f"{node['x']} {node['y']}" for node in self.nodes}
        edges = self.edges[self.inhibit == inhibit]
        return "".join(f"M{positions[int(a)]}L{positions[int(b)]}" for a, b in edges)


def subnetwork(
    graph: Graph, members: NDArray[Any], weights: NDArray[Any], names: Sequence[object], seed: int = 0
) -> Subnetwork:
    """Lay out the genes of a module, given by decreasing weight."""
    inside = graph.subgraph(members)
    neighbours = inside.degrees
    joined = np.flatnonzero(neighbours)[:_MOST_NODES]
    part = inside.subgraph(joined).weights
    positions = layout(part, seed)
    low, reach = positions.min(axis=0, initial=np.inf), np.ptp(positions, axis=0) if len(positions) else np.ones(2)
    positions = np.where(reach > 0, (positions - low) / np.where(reach > 0, reach, 1.0), 0.5)  # a line is centred
    x, y = np.rint(positions * [WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN] + _MARGIN).T
    # The radius is given by the absolute weight, the colour by its signed square root.
    shares = weights[joined] / np.abs(weights).max(initial=0.0)
    look = {"radius": np.rint(5 + 13 * abs(shares)), "colour": np.rint(3 + 3 * np.sign(shares) * np.sqrt(abs(shares)))}
    table = pd.DataFrame({"at": joined, "x": x, "y": y, **look, "neighbours": neighbours[joined]})
    nodes = table.astype(int).to_dict("records")
    ends = part.tocoo()
    once = ends.row < ends.col
    pairs = np.column_stack([ends.row, ends.col])[once]
    heavy = np.sort(np.argsort(-np.abs(weights[joined])[pairs].prod(axis=1), kind="stable")[:_MOST_EDGES])
    hubs = np.argsort(-neighbours, kind="stable")[:_HUBS]
    elsewhere = inside.subgraph(np.setdiff1d(np.arange(inside.n_nodes), hubs)).n_edges
    return Subnetwork(
        nodes,
        joined[pairs[heavy]],
        ends.data[once][heavy] < 0,
        _labels(nodes, names),
        n_edges=inside.n_edges,
        n_alone=int(np.count_nonzero(neighbours == 0)),
        hub_share=1 - elsewhere / inside.n_edges if inside.n_edges else 0.0,
    )


def _labels(nodes: list[dict[Any, int]], names: Sequence[object]) -> list[dict[str, Any]]:
    """Labels of the nodes with the largest weights that do not overlap, on the side that is farther from the edge."""
    labels, taken = list[dict[str, Any]](), np.empty((0, 4))
    for node in nodes[: 3 * _LABELS]:
        name, y, away = str(names[node["at"]]), node["y"], node["radius"] + 4
        text = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
        width, left = _LETTER * len(text), node["x"] > WIDTH / 2
        x = node["x"] - away if left else node["x"] + away
        start = x - width if left else x
        box = np.array([start, y - _LINE / 2, start + width, y + 14])
        if not ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
            labels.append({"x": x, "y": y + 8, "anchor": "end" if left else "start", "text": text})
            taken = np.vstack([taken, box])
        if len(labels) == _LABELS:
            break
    return labels
