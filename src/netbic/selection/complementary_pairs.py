"""What fits to random halves of the data select: pairs of disjoint halves, each module matched to a given one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array

from netbic.arrays import checked
from netbic.estimators import SparseGraphSVD, matched_graph
from netbic.graphs import Graph
from netbic.selection.fits import Fitters
from netbic.selection.matching import ALIKE, Floats, Indices, Layers, jaccard, partners, similarity
from netbic.selection.resampling import restrict

_FEWEST = 4  # two for each half, or centring leaves nothing of it


@dataclass(frozen=True)
class SelectionCounts:
    """Sums over halves, an entry or row per module.

    Attributes
    ----------
    counts : int array of shape (K, size)
        Halves in which a candidate is in the module that is matched to this one and alike.
    selected : array of shape (K,)
        Members of the modules matched, alike or not.
    found : array of shape (K,)
        Halves in which a module alike was found.
    overlap : array of shape (K,)
        Jaccard indices with those.
    """

    counts: NDArray[np.int64]
    selected: Floats
    found: Floats
    overlap: Floats

    def __add__(self, other: SelectionCounts) -> SelectionCounts:
        return SelectionCounts(
            self.counts + other.counts,
            self.selected + other.selected,
            self.found + other.found,
            self.overlap + other.overlap,
        )

    @classmethod
    def empty(cls, n_modules: int, size: int) -> Self:
        """Before the first half."""
        return cls(np.zeros((n_modules, size), dtype=np.int64), *np.zeros((3, n_modules)))


@dataclass(frozen=True)
class ComplementaryPairs:
    """A model, data and modules (`layers`) to be found again in halves of the data.

    `model` and `X` match by position: names would have to be cut along with every half.
    """

    model: SparseGraphSVD
    X: Any
    layers: Layers
    axis: str

    @classmethod
    def of(cls, fitted: SparseGraphSVD, X: Any, axis: str) -> Self:
        """For the modules of a model fitted to X; `axis` ("columns" or "rows") is the one selections are counted on."""
        values = check_array(
            checked(X), accept_sparse="csr" if axis == "columns" else "csc", dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )  # fmt: skip
        halved, size = ("samples", values.shape[0]) if axis == "columns" else ("features", values.shape[1])
        if size < _FEWEST:
            raise ValueError(f"X has {size} {halved}: at least {_FEWEST} are needed, two for each half")
        words: dict[str, Any] = {"n_jobs": None, "verbose": 0}
        for side in ("row", "column"):
            graph = matched_graph(fitted, side)
            words[f"{side}_graph"] = None if graph is None else Graph(graph.weights)
        return cls(clone(fitted).set_params(**words), values, Layers.of(fitted), axis)

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(self.X.shape[1] if self.axis == "columns" else self.X.shape[0])

    def tally(self, n_pairs: int, seed: int, fitters: Fitters) -> SelectionCounts:
        """Count over pairs of halves. Fits are counted and dropped; numbers do not depend on who fits."""
        seeds = [[seed, self.axis == "rows", number] for number in range(n_pairs)]
        return sum(
            fitters.each(ComplementaryPairs._pair, self, seeds),
            SelectionCounts.empty(len(self.layers.right), self.size),
        )

    def _pair(self, seed: list[int]) -> SelectionCounts:
        generator = np.random.default_rng(seed)
        whole = self.X.shape[0] if self.axis == "columns" else self.X.shape[1]
        order = generator.permutation(whole)
        one, other = (np.sort(half) for half in (order[: whole // 2], order[whole // 2 : 2 * (whole // 2)]))
        starts = generator.integers(2**31 - 1, size=2).tolist()
        return self._half(one, starts[0]) + self._half(other, starts[1])

    def _half(self, inside: Indices, random_state: int) -> SelectionCounts:
        if self.axis == "columns":
            model, known = restrict(self.model, "row", inside, self.X.shape[0]), self.layers.on(rows=inside)
            part = self.X[inside]
        else:
            model, known = restrict(self.model, "column", inside, self.X.shape[1]), self.layers.on(columns=inside)
            part = self.X[:, inside]
        fitted = model.set_params(random_state=random_state).fit(_observed(part))
        return self._compared(known, fitted)

    def _compared(self, known: Layers, fitted: SparseGraphSVD) -> SelectionCounts:
        alike = similarity(known, Layers.of(fitted))
        matched = partners(alike)
        # A last column and row of nothing is what -1, no partner, points at.
        closeness = np.pad(alike, ((0, 0), (0, 1)))[np.arange(matched.size), matched]
        masks = np.vstack([getattr(fitted, f"{self.axis}_"), np.zeros(self.size, dtype=bool)])[matched]
        found = closeness >= ALIKE
        full = self.layers.right if self.axis == "columns" else self.layers.left.T
        kept = masks & found[:, None]
        selected = masks.sum(axis=1).astype(np.float64)
        return SelectionCounts(
            kept.astype(np.int64), selected, found.astype(np.float64), found * jaccard(full != 0, kept)
        )


def _observed(part: Any) -> Any:
    """A half in which every row and column has an entry: what a half saw nothing of holds the mean, no signal."""
    if sp.issparse(part) or not np.isnan(part).any():
        return part
    part = part.copy()
    unseen = np.isnan(part).all(axis=0)
    part[:, unseen] = np.nanmean(part)
    blank = np.isnan(part[:, ~unseen]).all(axis=1)
    part[blank] = np.nanmean(part[~blank], axis=0)
    return part
