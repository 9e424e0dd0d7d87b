"""Pictures of a module, as a page draws them: heatmap, network, and small figures about its samples."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array, Floats, Indices, Matrix, checked
from netbic.association.one_variable import survival_curves
from netbic.association.variables import Variable
from netbic.estimators.inputs import check_same_data
from netbic.estimators.results import heaviest
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.files import add_files, read_bytes
from netbic.graph import Graph
from netbic.pl.base import Colours, apart, as_label, data_of, entries_of_parts, variable_strip
from netbic.pl.colours import diverging
from netbic.pl.network import layout
from netbic.storage.models import npz_arrays, npz_bytes

FILE = "heatmaps.npz"
_MOST_GENES, _MOST_SAMPLES = 300, 400
_MOST_CELLS = 800_000  # of all modules, so that the report has a few megabytes at most
_MOST_NAMES = 20  # so many lines of text fit beside the lowest heatmap
LEVELS, _NO_VALUE = 127, -128
_STRONG = 98  # percentile of the absolute values at which the colour scale ends

# Small figures about the samples are positions in SVG drawings that the templates write: a figure of matplotlib would
# take 50 to 100 ms and 12 to 70 kB; there are hundreds of these, of 2 to 6 kB each.
Figure = dict[str, Any]  # what a template needs: positions, texts, colours
_GROUPS: Final = {"down": "#2166AC", "": "#CDCDCD", "up": "#B2182B"}  # in the order in which bars are stacked
_ACROSS, _UP, _BINS = 600, 120, 40  # width of histograms and box plots; height and bins of histograms
_MOST_LEVELS, _ROW = 12, 26  # of box plots
_MOST_POINTS, _JITTER = 300, 16  # samples of a box plot that are drawn; the height over which they are spread
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly
_MOST_STRIPS = 4
_SURVIVAL: Final[dict[str, Any]] = {"box": (0, -58, 514, 384), "left": 72, "width": 428, "height": 210}
_STYLES: Final = {"up": "up", "high": "up", "down": "down", "low": "down", "others": "others"}

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
        return coloured(self.values)

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
    values = entries_of_parts(model, data_of(model, X), [(samples, genes) for genes, samples in members])
    found = list[Heatmap]()
    for part, (genes, samples) in zip(values, members, strict=True):
        seen = np.abs(part[np.isfinite(part)])
        limit = (float(np.percentile(seen, _STRONG)) if seen.size else 0.0) or 1.0
        levels = np.nan_to_num(np.clip(part.T / limit, -1, 1) * LEVELS, nan=_NO_VALUE)
        found.append(Heatmap(np.rint(levels).astype(np.int8), limit, genes.astype(np.int32), samples.astype(np.int32)))
    return found


def _picked(vector: Array, count: int, spaced: bool = True) -> Indices:
    """The largest weights; if all are members and `spaced`, weights at equal distances in their order."""
    members = heaviest(vector)
    if not spaced or members.size < vector.size:
        members = members[:count]
    order = members[np.argsort(-vector[members], kind="stable")]
    return order[np.linspace(0, order.size - 1, min(count, order.size)).round().astype(np.intp)]


def png(pixels: NDArray[np.uint8], palette: bytes | None = None) -> str:
    """An image as a PNG in a data URI: numbers of the colours in a palette, or red, green and blue in a third axis."""
    height, width = pixels.shape[:2]
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each begins with the kind of its filter: 0, none
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 if palette is None else 3, 0, 0, 0))]
    chunks += [] if palette is None else [(b"PLTE", palette)]
    chunks += [(b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    content = b"".join(
        struct.pack(">I", len(chunk)) + name + chunk + struct.pack(">I", zlib.crc32(name + chunk))
        for name, chunk in chunks
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + content).decode()


def coloured(values: NDArray[np.int8]) -> str:
    """Levels from -127 to 127 as an image; -128 is grey."""
    palette = bytes([150, 150, 150]) + diverging(np.linspace(0, 1, 2 * LEVELS + 1)).tobytes()
    return png(values.view(np.uint8) ^ np.uint8(128), palette)


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
    """Labels of the nodes with the largest weights, on any side of them.

    They cover neither each other nor a node, and no other node is nearer.
    """
    labels = list[dict[str, Any]]()
    centres = np.array([(node["x"], node["y"]) for node in nodes], dtype=float).reshape(-1, 2)
    radii = np.array([node["radius"] for node in nodes], dtype=float)
    taken = np.hstack([centres - radii[:, None], centres + radii[:, None]])  # boxes
    for number, node in enumerate(nodes[: 3 * _LABELS]):
        name, x, y, away = str(names[node["at"]]), node["x"], node["y"], node["radius"] + 4
        text = name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"
        width = float(_LETTER * len(text))
        beside, above = _LINE / 2, away + _LINE / 2
        sides: list[tuple[float, float, str]] = [(x - away - width, y, "end"), (x + away, y, "start")]
        sides = sides if x > WIDTH / 2 else sides[::-1]  # first the side that is farther from the edge
        sides += [(x - width / 2, y - above, "middle"), (x - width / 2, y + above, "middle")]
        for left, middle, anchor in sides:
            box = np.array([left, middle - beside, left + width, middle + beside])
            inside = box[0] >= 0 and box[1] >= 0 and box[2] <= WIDTH and box[3] <= HEIGHT
            nearest = np.argmin(np.linalg.norm(centres - np.clip(centres, box[:2], box[2:]), axis=1) - radii)
            is_free = not ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any()
            if inside and is_free and nearest == number:
                at = {"start": left, "middle": left + width / 2, "end": left + width}[anchor]
                labels.append({"x": round(at), "y": round(middle) + 8, "anchor": anchor, "text": text})
                taken = np.vstack([taken, box])
                break
        if len(labels) == _LABELS:
            break
    return labels


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, six at most: multiples of 1, 2 or 5 times a power of ten."""
    if low == high:
        return [low]
    widest = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(widest))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= widest)
    first = math.floor(low / step)
    multiples = (float(f"{k * step:.12g}") for k in range(first, first + 8))
    return [tick for tick in multiples if low <= tick <= high]


@dataclass(frozen=True)
class Scale:
    """Where numbers between two ends are drawn: from `start` on, over a `length` (upwards if negative)."""

    low: float
    high: float
    start: float
    length: float
    log: bool = False

    def at(self, number: float) -> float:
        """The position of a number."""
        low, high, number = map(math.log if self.log else float, (self.low, self.high, number))
        return round(self.start + self.length * (number - low) / ((high - low) or 1.0), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Positions and labels of round numbers."""
        numbers = round_ticks(self.low, self.high)
        if self.log:
            powers = [10.0**k for k in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)]
            for digits in (range(1, 10), (1, 2, 5), (1,)):
                within = [k * power for power in powers for k in digits if self.low <= k * power <= self.high]
                if len(within) <= 8:
                    break
            numbers = within if len(within) >= 3 else numbers
        return [(self.at(number), as_label(number)) for number in numbers]


@dataclass(frozen=True)
class SampleScores:
    """Scores of all samples in a module, and their groups ("up", "down" or "")."""

    scores: Floats
    groups: NDArray[Any]

    def members(self, group: str) -> Indices:
        """Positions of the samples of a group, the most extreme score first."""
        own = np.flatnonzero(self.groups == group)
        return own[np.argsort(-np.abs(self.scores[own]), kind="stable")]

    @property
    def is_gradient(self) -> bool:
        """Whether the samples form no groups."""
        return not (self.groups != "").any()

    @property
    def histogram(self) -> Figure | None:
        """A histogram of the scores, stacked by group; None if all are missing."""
        finite = np.isfinite(self.scores)
        if not finite.any():
            return None
        low, high = min(float(self.scores[finite].min()), 0.0), max(float(self.scores[finite].max()), 0.0)
        high = high if high > low else low + 1.0
        edges = np.linspace(low, high, _BINS + 1)
        counts = np.array([np.histogram(self.scores[finite & (self.groups == g)], edges)[0] for g in _GROUPS])
        tallest, width, bars = max(1, int(counts.sum(axis=0).max())), _ACROSS / _BINS, list[Figure]()
        for at, of_groups in enumerate(counts.T.tolist()):
            top = float(_UP)
            for group, count in zip(_GROUPS, of_groups, strict=True):
                if count:
                    height = count / tallest * _UP
                    top -= height
                    kind = f", {group}" if group else ""
                    text = f"{count} sample{'s' * (count > 1)}{kind}: {edges[at]:.3g} to {edges[at + 1]:.3g}"
                    bar = {
                        "x": round(at * width, 1),
                        "y": round(top, 1),
                        "width": width - 1,
                        "height": round(height, 1),
                    }
                    bars.append({**bar, "group": group, "text": text})
        zero = -low / (high - low) * _ACROSS
        return {"bars": bars, "zero": zero, "low": low, "high": high, "width": _ACROSS, "height": _UP}

    def strip(self, samples: NDArray[Any]) -> str:
        """The groups of some samples as an image of one line."""
        return line_of_colours(_GROUPS[group] for group in self.groups[samples])


def line_of_colours(colours: Iterable[str]) -> str:
    """An image of one line, from colours as #RRGGBB."""
    return png(np.array([[tuple(bytes.fromhex(colour[1:])) for colour in colours]], dtype=np.uint8))


def box_plot(scores: Floats, variable: Variable, q: float, test: str = "") -> Figure | None:
    """Scores by level, ordered ones in their order, others by their medians; None for one level or many.

    `q` and `test` are the smallest q-value of this variable and its test.
    """
    known = variable.known & np.isfinite(scores)
    groups = [(level, scores[known & (variable.values == at)]) for at, level in enumerate(variable.levels)]
    groups = [(level, own) for level, own in groups if own.size]
    if not 2 <= len(groups) <= _MOST_LEVELS:
        return None
    scale = Scale(min(float(scores[known].min()), 0.0), max(float(scores[known].max()), 0.0), 0.0, _ACROSS)
    if variable.kind != "ordered":
        groups.sort(key=lambda pair: float(np.median(pair[1])))
    boxes, share = list[Figure](), min(1.0, _MOST_POINTS / sum(own.size for _, own in groups))
    for level, own in groups:
        ends = ("low", "first", "median", "third", "high")
        places = zip(ends, map(scale.at, np.quantile(own, [0, 0.25, 0.5, 0.75, 1])), strict=True)
        boxes.append({"label": level, "n": own.size, **dict(places), "points": _points(own, share, scale)})
    drawn = {"boxes": boxes, "zero": scale.at(0.0), "ticks": scale.ticks, "width": _ACROSS, "row": _ROW}
    return {"kind": "boxes", "variable": variable.name, "q": q, "test": test, "all": share == 1.0, **drawn}


def _points(scores: Floats, share: float, scale: Scale) -> str:
    """A share of the samples as a path of dots, with the lowest and the highest; neighbours have different heights."""
    few = np.unique(np.linspace(0, scores.size - 1, max(math.ceil(share * scores.size), 2)).astype(np.intp))
    heights = _ROW / 2 + _JITTER * ((np.arange(few.size) + 1) * _GOLDEN % 1 - 0.5)
    points = zip(np.sort(scores)[few].tolist(), heights.tolist(), strict=True)
    return "".join(f"M{round(scale.at(score))} {round(height)}h0" for score, height in points)


def survival_plot(scores: SampleScores, variable: Variable, q: float, test: str, tests: pd.DataFrame) -> Figure | None:
    """Kaplan-Meier curves of the groups of the log-rank test; None if there is only one group.

    `tests` are the rows of associations.tsv of this module and variable.
    """
    found = survival_curves(scores.scores, scores.groups, variable)
    longest = float(np.max(variable.values, where=variable.known & np.isfinite(scores.scores), initial=0.0))
    if found is None or longest <= 0:
        return None
    ticks, (left, width, height) = round_ticks(0.0, longest), (_SURVIVAL[side] for side in ("left", "width", "height"))
    curves = list[Figure]()
    for name, table, at_risk in zip(found.names, found.curves, found.at_risk(np.array(ticks)), strict=True):
        x = np.round(left + width * table["time"].to_numpy() / longest, 1)
        y = np.round(height * (1 - table["survival"].to_numpy()), 1)
        falls, lost = table["n_events"].to_numpy() > 0, table["n_censored"].to_numpy() > 0
        steps = "".join(f"H{at:g}V{to:g}" for at, to in zip(x[falls], y[falls], strict=True))
        marks = "".join(f"M{at:g} {to:g}v-6" for at, to in zip(x[lost], y[lost], strict=True))
        curve = {"name": name, "style": _STYLES[name], "at_risk": at_risk, "censored": marks}
        curve["path"] = f"M{left} 0{steps}H{x[-1]:g}"
        counts = {"n": int(table["n_at_risk"].iloc[0]), "n_events": int(table["n_events"].sum())}
        curves.append(curve | counts)
    made = tests[tests["p"].notna()]
    of_kinds = [made[made["test"].astype(str).str.startswith(name)] for name in ("log-rank", "Cox")]
    log_rank, cox = (None if own.empty else own.iloc[0].to_dict() for own in of_kinds)
    split = {"low": "median", "others": "others"}.get(found.names[1], "groups")
    places = [(round(left + width * tick / longest, 1), f"{tick:,g}") for tick in ticks]
    shares = [(height * (100 - share) / 100, f"{share}%") for share in (0, 25, 50, 75, 100)]
    axes = {"x_title": variable.name, "x_ticks": places, "y_title": "without the event", "y_ticks": shares}
    drawn = {"curves": curves, "split": split, "log_rank": log_rank, "cox": cox, **axes, **_SURVIVAL}
    return {"kind": "survival", "variable": variable.name, "q": q, "test": test, **drawn}


def strips(variables: list[Variable], samples: NDArray[Any], colours: Colours) -> list[Figure]:
    """The first few variables that are labels or numbers: an image with a colour per sample, and a legend.

    `samples` are those of the heatmap, as positions in the table; `colours` are those of `netbic.pl`, so that a label
    has the same colour in all modules and in plots.
    """
    shown = [variable for variable in variables if variable.kind in ("categorical", "ordered", "numeric")]
    made = [variable_strip(variable, colours) for variable in shown[:_MOST_STRIPS]]
    return [
        {"variable": one.name, "image": line_of_colours(one.colours[samples]), "legend": one.legend} for one in made
    ]
