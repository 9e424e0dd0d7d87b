"""Selections in random complementary pairs of halves (Shah and Samworth 2013), each module matched to a given one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from netbic.arrays import Floats, Indices, Matrix
from netbic.estimators import SparseGraphSVD, check_part, has_missing, training_design
from netbic.selection.fits import FitExecutor
from netbic.selection.matching import MIN_SIMILARITY, Layers, jaccard, match_modules
from netbic.selection.resampling import by_position, fitted_to, restrict

_FEWEST = 4  # two for each half: a single sample is 0 after centring


@dataclass(frozen=True)
class SelectionCounts:
    """Sums over halves, an entry or row per module.

    Attributes
    ----------
    counts : int array of shape (K, size)
        Halves in which a candidate is a member of the matched module, where that is similar enough.
    selected : array of shape (K,)
        Members of the matched modules, similar or not.
    found : array of shape (K,)
        Halves in which the matched module is similar enough.
    overlap : array of shape (K,)
        Jaccard indices with those.
    counts_of_pairs : int array of shape (K, size)
        The same as `counts`, of the pairs in both halves of which the matched module is similar enough.
    pairs : array of shape (K,)
        The number of those pairs.
    """

    counts: NDArray[np.int64]
    selected: Floats
    found: Floats
    overlap: Floats
    counts_of_pairs: NDArray[np.int64]
    pairs: Floats

    def __add__(self, other: SelectionCounts) -> SelectionCounts:
        return SelectionCounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True)
class ComplementaryPairs:
    """A model, data, and modules (`layers`) to search for in halves of the data.

    The graphs of `model` match `X` by position. `axis` ("columns" or "rows") is the one whose selections are counted;
    the other one is halved. If `rewired`, graphs are rewired at random for every pair.
    """

    model: SparseGraphSVD
    X: Matrix
    layers: Layers
    axis: str
    rewired: bool = False
    covariates: Floats | None = None  # a row per sample

    @classmethod
    def of(cls, fitted: SparseGraphSVD, X: Matrix, axis: str) -> Self:
        """For the modules of a model fitted to X."""
        model, values = by_position(fitted, X, "csr" if axis == "columns" else "csc")
        halved, size = ("samples", values.shape[0]) if axis == "columns" else ("features", values.shape[1])
        if size < _FEWEST:
            raise ValueError(f"X has {size} {halved}: at least {_FEWEST} are needed, two for each half")
        covariates = training_design(fitted, X)
        if axis == "columns":
            check_part(covariates, size // 2, "a half")
        return cls(model, values, Layers.of(fitted), axis, covariates=covariates)

    @property
    def size(self) -> int:
        """Number of candidates."""
        return int(self.X.shape[1] if self.axis == "columns" else self.X.shape[0])

    def count(self, n_pairs: int, seed: int, executor: FitExecutor) -> SelectionCounts:
        """Sum over pairs of halves; no fit is kept, and the executor does not change the result."""
        seeds = [[seed, self.axis == "rows", number] for number in range(n_pairs)]
        total: SelectionCounts = reduce(add, executor.map(ComplementaryPairs._pair, self, seeds))
        return total

    def _pair(self, seed: list[int]) -> SelectionCounts:
        generator = np.random.default_rng(seed)
        size = self.X.shape[0] if self.axis == "columns" else self.X.shape[1]
        order = generator.permutation(size)
        halves = [np.sort(half) for half in (order[: size // 2], order[size // 2 : 2 * (size // 2)])]
        starts = generator.integers(2**31 - 1, size=2).tolist()
        fits = replace(self, model=_rewired(self.model, generator)) if self.rewired else self
        one, two = (fits._half(half, start) for half, start in zip(halves, starts, strict=True))
        total, both = one + two, one.found * two.found
        return replace(total, counts_of_pairs=total.counts * both.astype(np.int64)[:, None], pairs=both)

    def _half(self, kept: Indices, random_state: int) -> SelectionCounts:
        (left, right), covariates = self.layers, self.covariates
        if self.axis == "columns":
            model, known, part = restrict(self.model, "row", kept, len(left)), Layers(left[kept], right), self.X[kept]
            covariates = None if covariates is None else covariates[kept]
        else:
            model = restrict(self.model, "column", kept, right.shape[1])
            known, part = Layers(left, right[:, kept]), self.X[:, kept]
        return self._compared(known, fitted_to(model.set_params(random_state=random_state), observed(part), covariates))

    def _compared(self, known: Layers, fitted: SparseGraphSVD) -> SelectionCounts:
        matches = match_modules(known, Layers.of(fitted))
        no_members = np.zeros(self.size, dtype=bool)  # the last row, which -1, no partner, points to
        members = np.vstack([getattr(fitted, f"{self.axis}_"), no_members])[matches.partner]
        found = matches.similarity >= MIN_SIMILARITY
        reference = self.layers.right if self.axis == "columns" else self.layers.left.T
        counted = members & found[:, None]
        overlap = found * jaccard(reference != 0, counted)
        selected = members.sum(axis=1).astype(np.float64)
        counts, none = counted.astype(np.int64), np.zeros(len(found))  # a half alone is no pair
        return SelectionCounts(counts, selected, found.astype(np.float64), overlap, np.zeros_like(counts), none)


def _rewired(model: SparseGraphSVD, generator: np.random.Generator) -> SparseGraphSVD:
    """A clone with rewired graphs, in which every node keeps its number of neighbours."""
    graphs = {name: graph for name in ("row_graph", "column_graph") if (graph := getattr(model, name)) is not None}
    rewired = {name: graph.rewire(generator) for name, graph in graphs.items()}
    made: SparseGraphSVD = clone(model).set_params(**rewired)
    return made


def observed(part: Matrix) -> Matrix:
    """A half in which every row and column has an observed entry: means, which carry no signal, where all are NaN."""
    if not has_missing(part):
        return part
    part = part.copy()
    unseen = np.isnan(part).all(axis=0)
    part[:, unseen] = np.nanmean(part)
    blank = np.isnan(part[:, ~unseen]).all(axis=1)
    part[blank] = np.nanmean(part[~blank], axis=0)
    return part
