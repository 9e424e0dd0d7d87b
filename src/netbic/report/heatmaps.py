"""Heatmaps of the modules: their values are stored in a small file after the fit, and drawn in the report."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Array, Floats, Indices, Matrix, checked, kind_of, to_dense
from netbic.errors import import_optional
from netbic.estimators import SparseGraphSVD, check_same_data, fitted_model, heaviest, rescaled
from netbic.files import add_files, read_bytes
from netbic.operators import RowBlocks, Scaler
from netbic.pl import apart
from netbic.storage import npz_arrays, npz_bytes

Members = tuple[Indices, Indices]  # positions of genes and of samples

FILE = "heatmaps.npz"
_MOST_GENES, _MOST_SAMPLES = 300, 400
_MOST_CELLS = 800_000  # of all modules, so that the report has a few megabytes at most
_MOST_NAMES = 20  # so many lines of text fit beside the lowest heatmap
_LEVELS = 127
_MISSING = -128
_STRONG = 98  # percentile of the absolute values at which the colour scale ends


@dataclass(frozen=True)
class Heatmap:
    """Preprocessed values of the members of a module in 255 levels, positive weights first on both axes.

    `values` (genes x samples, int8) times `limit` / 127 are the values; -128 is a missing entry.
    """

    values: NDArray[np.int8]
    limit: float
    genes: NDArray[np.int32]  # columns of the matrix
    samples: NDArray[np.int32]  # rows of the matrix


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
    >>> from netbic.report.heatmaps import read_heatmaps
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
    for module, heatmap in enumerate(_heatmaps(model, X)):
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


def _heatmaps(model: SparseGraphSVD, X: Matrix) -> list[Heatmap]:
    members = _shown(model)
    if kind_of(X) == "dask":
        values = _from_blocks(model, RowBlocks(X, hold=False), members)
    else:
        rows = X.iloc if kind_of(X) == "table" else X
        designs = [_design(model, samples) for _, samples in members]
        values = [
            _members(rescaled(model, to_dense(rows[samples], np.float64), samples), genes, model.scaler_, design)
            for (genes, samples), design in zip(members, designs, strict=True)
        ]
    return [_heatmap(part.T, genes, samples) for part, (genes, samples) in zip(values, members, strict=True)]


def _shown(model: SparseGraphSVD) -> list[Members]:
    """Genes and samples in the heatmap of each module, by decreasing weight."""
    sizes = np.column_stack([model.columns_.sum(axis=1), model.rows_.sum(axis=1)])
    sizes = np.minimum(sizes, [_MOST_GENES, _MOST_SAMPLES])
    share = min(1.0, float(np.sqrt(_MOST_CELLS / max(sizes.prod(axis=1).sum(), 1))))
    counts = np.ceil(share * sizes).astype(np.intp)
    return [
        (_picked(model.components_[k], n_genes, spaced=False), _picked(model.left_vectors_[:, k], n_samples))
        for k, (n_genes, n_samples) in enumerate(counts.tolist())
    ]


def _picked(vector: Array, count: int, spaced: bool = True) -> Indices:
    """The largest weights; if all are members and `spaced`, weights at equal distances in their order."""
    members = heaviest(vector)
    if not spaced or members.size < vector.size:
        members = members[:count]
    order = members[np.argsort(-vector[members], kind="stable")]
    return order[np.linspace(0, order.size - 1, min(count, order.size)).round().astype(np.intp)]


def _heatmap(values: Array, genes: Indices, samples: Indices) -> Heatmap:
    seen = np.abs(values[np.isfinite(values)])
    limit = float(np.percentile(seen, _STRONG)) if seen.size else 0.0
    limit = limit if limit > 0 else 1.0
    levels = np.nan_to_num(np.clip(values / limit, -1, 1) * _LEVELS, nan=_MISSING)
    return Heatmap(np.rint(levels).astype(np.int8), limit, genes.astype(np.int32), samples.astype(np.int32))


def _design(model: SparseGraphSVD, samples: Indices) -> Floats | None:
    """The covariates of some samples of the fit."""
    return None if model.covariates_ is None else model.covariates_.to_numpy(dtype=np.float64)[samples]


def _members(rows: Matrix, genes: Indices, scaler: Scaler, design: Floats | None) -> Floats:
    """Values of some genes, from complete rows, because row means may have to be subtracted."""
    return np.asarray(scaler.apply(to_dense(rows, np.float64), design)[:, genes])


def _from_blocks(model: SparseGraphSVD, blocks: RowBlocks, members: Sequence[Members]) -> list[Floats]:
    """The same from blocks of rows, each of which is read once for all modules."""
    owners = [np.searchsorted(blocks.bounds, samples, side="right") - 1 for _, samples in members]
    which = np.unique(np.concatenate(owners)).tolist() if owners else []
    rows = [
        [samples[own == block] - blocks.bounds[block] for own, (_, samples) in zip(owners, members, strict=True)]
        for block in which
    ]
    shared = [
        [blocks.executor.broadcast(value)] * len(which) for value in ([genes for genes, _ in members], model.scaler_)
    ]
    firsts = blocks.bounds[which].tolist()
    designs = [[_design(model, own + first) for own in each] for each, first in zip(rows, firsts, strict=True)]
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
    return [_members(block[own], other, scaler, design) for own, other, design in each]


def row_names(heatmap: Heatmap, genes: Indices, weights: Array, names: Sequence[str]) -> list[tuple[float, str]]:
    """Names of genes beside their rows: the middle of the row as a percentage of the height, and the name.

    Those with the largest absolute weights are named, as many as can be read.

    Parameters
    ----------
    heatmap : Heatmap
    genes : array of int
        Positions of the genes of the module, in any order.
    weights, names : array, sequence of str
        Of these genes.
    """
    known = {int(gene): (abs(float(weight)), name) for gene, weight, name in zip(genes, weights, names, strict=True)}
    rows = [known[int(gene)] for gene in heatmap.genes]
    middles = 100 * (np.arange(heatmap.genes.size) + 0.5) / max(heatmap.genes.size, 1)
    shown = apart(middles, np.array([weight for weight, _ in rows]), 100 / _MOST_NAMES)
    return [(round(float(middles[k]), 2), str(rows[k][1])) for k in shown]


def picture(values: NDArray[np.int8]) -> str:
    """The values as a PNG in a data URI: red above zero, blue below, grey if missing."""
    image = import_optional("PIL.Image", "report", "a report").fromarray(values.astype(np.int16).astype(np.uint8) ^ 128)
    image.putpalette(_palette())
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _palette() -> bytes:
    """Colours of the levels -128 (missing) to 127."""
    colours = import_optional("matplotlib", "report", "a report").colormaps["RdBu_r"](
        np.linspace(0, 1, 2 * _LEVELS + 1)
    )
    red_to_blue = np.rint(255 * colours[:, :3]).astype(np.uint8)
    return bytes([150, 150, 150]) + bytes(red_to_blue.tobytes())


def scale_picture() -> str:
    """The colour scale, from the lowest to the highest value."""
    return picture(np.arange(-_LEVELS, _LEVELS + 1, dtype=np.int8)[None])
