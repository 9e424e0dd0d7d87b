"""Which modules keep coming back, from random starts and in halves of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.estimators import SparseGraphSVD, check_count, unwrapped
from netbic.selection.complementary_pairs import ComplementaryPairs
from netbic.selection.fits import Jobs, fitters, quiet
from netbic.selection.matching import ALIKE, Bools, Layers, partners, similarity
from netbic.selection.resampling import seeded
from netbic.solver import Direction, Module, ModuleSearch, Settings, random_direction


@dataclass(frozen=True)
class Consensus:
    """Modules that different fits agree on, the ones seen most often first.

    Attributes
    ----------
    table : DataFrame
        A row per module: `module`, `starts` and `halves` (shares of the random starts and of the halves of the samples
        that have it), `similarity` (mean over the starts that have it; 1: the same), `n_rows`, `n_columns`.
    rows, columns : bool ndarrays of shapes (n_modules, n_samples) and (n_modules, n_features)
        Members, in the fit that had the module first.
    """

    table: pd.DataFrame
    rows: Bools
    columns: Bools

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        often = int(((self.table["starts"] > 0.5) & (self.table["halves"] > 0.5)).sum())
        return f"{often} of {len(self.table)} modules come back from most random starts and in most halves."


def consensus(
    model: SparseGraphSVD,
    X: Any,
    *,
    n_starts: int = 20,
    n_pairs: int = 10,
    random_state: Any = None,
    n_jobs: Jobs = None,
) -> Consensus:
    """Ask which modules keep coming back when the solver starts elsewhere, and when it sees half of the samples.

    The model is fitted to all of X from the leading singular pair, as always, and from random directions. Modules of
    different fits are matched one to one; what matches none (similarity below .5) joins the list. Every module of the
    list is then sought in halves of the samples.

    Parameters
    ----------
    model : SparseGraphSVD
        n_starts + 1 clones are fitted to X and 2 * n_pairs to halves.
    X : array, DataFrame or sparse matrix
    n_starts : int
        Fits from random directions.
    n_pairs : int
        Pairs of disjoint halves.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over fits, or the workers of the present Dask client; the answer does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60)
    >>> found = netbic.selection.consensus(model, study.expression, n_starts=5, n_pairs=5, random_state=0)
    >>> found.verdict
    '2 of ... modules come back from most random starts and in most halves.'
    """
    model = unwrapped(model)
    check_count("n_starts", n_starts)
    check_count("n_pairs", n_pairs)
    seeds = np.random.default_rng(random_state).integers(2**31 - 1, size=n_starts + 1).tolist()
    wandering = _FromRandomStarts(**clone(model).set_params(n_jobs=None, verbose=0).get_params(deep=False))
    workers = fitters(X, n_jobs)
    with quiet():
        reference = seeded(model, seeds[0]).fit(X)
        halving = ComplementaryPairs.of(reference, X, "columns")
        gathered = _Gathered(Layers.of(reference))
        for found in workers.each(_layers, (wandering, X), seeds[1:]):
            gathered.add(found)
        tally = replace(halving, layers=gathered.layers).tally(n_pairs, seeds[0], workers)
    return gathered.counted(n_starts, tally.found / (2 * n_pairs))


def _layers(data: tuple[SparseGraphSVD, Any], seed: int) -> Layers:
    """The modules of a fit to X from the random directions of a seed."""
    wandering, X = data
    return Layers.of(clone(wandering).set_params(random_state=seed).fit(X))


class _Gathered:
    """Modules of one fit after another, each distinct one once, with how often it was seen."""

    def __init__(self, first: Layers) -> None:
        self.layers = first
        self._seen = np.zeros(len(first.right))
        self._closeness = np.zeros(len(first.right))

    def add(self, found: Layers) -> None:
        """Match the modules of one more fit; what matches none is new."""
        alike = similarity(found, self.layers)
        matched = partners(alike)
        closeness = np.pad(alike, ((0, 0), (0, 1)))[np.arange(matched.size), matched]
        again = closeness >= ALIKE
        self._seen[matched[again]] += 1
        self._closeness[matched[again]] += closeness[again]
        new = np.flatnonzero(~again)
        self.layers = Layers(
            np.hstack([self.layers.left, found.left[:, new]]), np.vstack([self.layers.right, found.right[new]])
        )
        self._seen = np.append(self._seen, np.ones(new.size))
        self._closeness = np.append(self._closeness, np.ones(new.size))

    def counted(self, n_starts: int, halves: Any) -> Consensus:
        """The account, most seen first."""
        rows, columns = self.layers.left.T != 0, self.layers.right != 0
        table = pd.DataFrame(
            {
                "starts": self._seen / n_starts,
                "halves": halves,
                "similarity": self._closeness / np.maximum(self._seen, 1),
                "n_rows": rows.sum(axis=1),
                "n_columns": columns.sum(axis=1),
            }
        )
        order = np.lexsort([-table["halves"], -table["starts"]])
        table = table.iloc[order].reset_index(drop=True)
        table.insert(0, "module", np.arange(len(table)))
        return Consensus(table, rows[order], columns[order])


class _RandomStarts(ModuleSearch):
    """A search whose first start, too, is a random direction."""

    def _next(self, leading: Direction, number: int) -> Module | None:
        generator = np.random.default_rng([self._settings.seed, number])
        return super()._next(random_direction(leading, generator), number)


class _FromRandomStarts(SparseGraphSVD):
    _search: ClassVar[type[ModuleSearch]] = _RandomStarts

    def _settings(self, dtype: Any) -> Settings:
        return replace(super()._settings(dtype), seed=int(self.random_state))
