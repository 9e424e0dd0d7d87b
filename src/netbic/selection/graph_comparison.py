"""Models with different graphs, fitted to the same folds and scored on the samples that were held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from netbic.arrays import Array, Bools, Floats, Indices, Matrix
from netbic.estimators import SearchInput, SparseGraphSVD
from netbic.selection.criteria import explained_share
from netbic.selection.fits import FitExecutor
from netbic.selection.grid import Parameters
from netbic.selection.matching import mean_overlap
from netbic.selection.resampling import complement, folds, restrict
from netbic.solver import Module

Kind = str | int  # the graph itself ("true"), none ("none"), or the number of a rewired graph
Place = tuple[int, int]  # a repeat and a fold
Job = tuple[Sequence[Kind], Sequence[Place]]

_JOBS_PER_THREAD = 3  # with fewer of them, threads would wait for the last one


def n_fits_of(job: Job) -> int:
    """The number of fits of a job."""
    graphs, places = job
    return len(graphs) * len(places)


class FoldFits(NamedTuple):
    """Fits with some graphs to some folds; the first two axes of each array are graphs and folds.

    Attributes
    ----------
    scores : array of shape (g, f)
        Share of the variance of held-out samples explained.
    members : array of shape (g, f, K, p / 8)
        A bit for every feature of every module.
    n_found : array of shape (g, f)
        Number of modules found.
    """

    scores: Floats
    members: NDArray[np.uint8]
    n_found: Indices


@dataclass(frozen=True)
class FoldFitter:
    """A model whose graphs match X by position, and partitions of the samples into folds.

    Every repeat is another partition; the same seed gives the same folds, so that graphs can be compared fold by fold.
    A graph of the rows is restricted to the samples of the fold, and `n_rows` is reduced in proportion. Effects of
    covariates (`design`, a row per sample) are estimated in the samples of the fold, too.
    """

    model: SparseGraphSVD
    X: Matrix
    n_folds: int
    seed: int
    design: Floats | None = None

    def fits(self, job: Job) -> FoldFits:
        """Fit models with some graphs to some folds."""
        models = [self._with(kind) for kind in job[0]]
        found = [self._fold(models, repeat, fold) for repeat, fold in job[1]]
        scores, members, n_found = (np.stack(parts, axis=1) for parts in zip(*found, strict=True))
        return FoldFits(scores, members, n_found)

    def _with(self, kind: Kind) -> SparseGraphSVD:
        """The model with another graph."""
        changes: Parameters = {}
        if kind == "none":
            changes = {"column_graph": None, "column_smoothness": None, "diffusion": None}
        elif kind != "true":
            changes = {"column_graph": self.model.column_graph.rewire([self.seed, int(kind)])}
        made: SparseGraphSVD = clone(self.model).set_params(**changes)
        return made

    def _fold(self, models: list[SparseGraphSVD], repeat: int, fold: int) -> tuple[Floats, Array, Indices]:
        """Scores, members and numbers of modules of fits to one fold."""
        n, p = self.X.shape
        held_out = folds(n, self.n_folds, [self.seed, repeat])[fold]
        kept = complement(held_out, n)
        scores, n_found = np.empty(len(models)), np.zeros(len(models), dtype=np.intp)
        members = np.zeros((len(models), self.model.n_components, p), dtype=bool)
        prepared: SearchInput | None = None
        for number, model in enumerate(models):
            part = restrict(model, "row", kept, n)
            if prepared is None or self.model.diffusion is not None:  # smoothed data depend on the graph
                prepared = part.prepared(self.X[kept], None if self.design is None else self.design[kept])
            modules = part.modules_of(prepared)
            scores[number], n_found[number] = self._score(modules, prepared, held_out), len(modules)
            for mask, module in zip(members[number], modules, strict=False):
                mask[module.v.support] = True
        return scores, np.packbits(members, axis=-1), n_found

    def _score(self, modules: list[Module], prepared: SearchInput, held_out: Indices) -> float:
        """Share of the variance of held-out samples, which are not smoothed, that modules explain."""
        if not modules:
            return 0.0
        X, design = self.X[held_out], None
        if self.design is not None and prepared.coding is not None:
            design = prepared.coding.encode(self.design[held_out], len(held_out), None)
        share = explained_share(X, prepared.scaler, "column", design, may_be_constant=True)
        return share(np.array([module.v.full() for module in modules]))


class GraphComparison:
    """Fits with different graphs, made as they are needed."""

    def __init__(self, fitter: FoldFitter, executor: FitExecutor) -> None:
        self._fitter, self._executor = fitter, executor
        self._scores: dict[Kind, dict[Place, float]] = {}
        self._members: dict[Kind, dict[Place, Bools]] = {}

    def extend(self, kinds: Iterable[Kind], n_repeats: int) -> None:
        """Fit models with these graphs to all folds of so many repeats, unless that was done before."""
        jobs = self._jobs(list(kinds), n_repeats)
        for (graphs, places), fits in zip(jobs, self._executor.map(FoldFitter.fits, self._fitter, jobs), strict=True):
            self._store(graphs, places, fits)

    def _jobs(self, kinds: list[Kind], n_repeats: int) -> list[Job]:
        """A rewired graph is made once, for all folds; others are compared fold by fold: they share a matrix."""
        every = [(repeat, fold) for repeat in range(n_repeats) for fold in range(self._fitter.n_folds)]
        left = {kind: [place for place in every if place not in self._scores.get(kind, {})] for kind in kinds}
        jobs: list[Job] = [((kind,), places) for kind, places in left.items() if isinstance(kind, int) and places]
        others = [kind for kind in kinds if isinstance(kind, str)]
        places = left[others[0]] if others else []
        shared = len(places) >= _JOBS_PER_THREAD * self._executor.n_parallel
        groups = [others] if shared else [[kind] for kind in others]
        return jobs + [(group, [place]) for place in places for group in groups]

    def _store(self, graphs: Sequence[Kind], places: Sequence[Place], fits: FoldFits) -> None:
        masks = np.unpackbits(fits.members, axis=-1, count=self._fitter.X.shape[1]).astype(bool)
        for g, kind in enumerate(graphs):
            scores, members = self._scores.setdefault(kind, {}), self._members.setdefault(kind, {})
            for f, place in enumerate(places):
                scores[place] = float(fits.scores[g, f])
                members[place] = masks[g, f, : fits.n_found[g, f]]

    def rewired(self) -> list[Kind]:
        """The numbers of the rewired graphs that were fitted."""
        return [kind for kind in self._scores if isinstance(kind, int)]

    def scores(self, kind: Kind) -> Floats:
        """Shares of the variance explained: (n_repeats, n_folds)."""
        known = self._scores[kind]
        return np.array([known[place] for place in sorted(known)]).reshape(-1, self._fitter.n_folds)

    def share(self, kind: Kind) -> float:
        """Their mean; of a graph with fewer repeats than the true one, that of the true one and the mean difference."""
        own, true = self.scores(kind), self.scores("true")
        return float(own.mean() + true.mean() - true[: len(own)].mean()) if len(own) < len(true) else float(own.mean())

    def overlap(self, kind: Kind) -> float:
        """Mean Jaccard index of the features of modules of successive folds, matched one to one."""
        known = self._members[kind]
        pairs = [(before, at) for before, at in zip(sorted(known), sorted(known)[1:], strict=False) if at[1]]
        return float(np.mean([mean_overlap(known[before], known[at]) for before, at in pairs]))
