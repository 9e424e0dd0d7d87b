"""Which modules are found again, from random starts and in halves of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Bools, Floats, Matrix, RandomState
from netbic.estimators import Design, SparseGraphSVD, check_count, covariates_of, unwrapped
from netbic.selection.complementary_pairs import ComplementaryPairs
from netbic.selection.fits import Jobs, executor_for, quiet
from netbic.selection.matching import MIN_SIMILARITY, Layers, match_modules, share_of_modules
from netbic.selection.resampling import fitted_to, seeded
from netbic.solver import Direction, Module, ModuleSearch, Settings, random_direction


@dataclass(frozen=True)
class Consensus:
    """Modules that different fits have in common, those found most often first.

    Attributes
    ----------
    table : DataFrame
        A row per module: `module`, `starts` and `halves` (shares of the random starts and of the halves of the samples
        in which it is found), `similarity` (mean over those starts; 1: identical), `n_rows`, `n_columns`.
    rows, columns : bool ndarrays of shapes (n_modules, n_samples) and (n_modules, n_features)
        Members, in the first fit in which the module is found.
    """

    table: pd.DataFrame
    rows: Bools
    columns: Bools

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        often = int(((self.table["starts"] > 0.5) & (self.table["halves"] > 0.5)).sum())
        return f"{share_of_modules(often, len(self.table))} found from most random starts and in most halves."


def consensus(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    covariates: Any = None,
    n_starts: int = 20,
    n_pairs: int = 10,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Consensus:
    """Find the modules that do not depend on the start of the solver, nor on which half of the samples is fitted.

    The model is fitted to all of X from the leading singular pair, as usual, and from random directions. Modules of
    different fits are matched one to one; a module without a match (similarity below 0.5) is added to the list. Every
    module of the list is then searched for in halves of the samples.

    Parameters
    ----------
    model : SparseGraphSVD
        n_starts + 1 clones are fitted to X and 2 * n_pairs to halves.
    X : array, DataFrame or sparse matrix
    covariates : as for `SparseGraphSVD.fit`, optional
        Cut into halves together with X. Default: those of the model, if it was fitted to X.
    n_starts : int
        Fits from random directions.
    n_pairs : int
        Pairs of disjoint halves.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over fits (default: all cores, unless X is small), or the workers of the current Dask client; the
        result does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60)
    >>> found = netbic.selection.consensus(model, study.expression, n_starts=5, n_pairs=5, random_state=0)
    >>> found.verdict
    '2 of ... modules are found from most random starts and in most halves.'
    """
    model = unwrapped(model)
    check_count("n_starts", n_starts)
    check_count("n_pairs", n_pairs)
    seeds = np.random.default_rng(random_state).integers(2**31 - 1, size=n_starts + 1).tolist()
    restarted = _FromRandomStarts(**clone(model).set_params(n_jobs=None, verbose=0).get_params(deep=False))
    executor = executor_for(X, n_jobs)
    with quiet():
        given = covariates_of(model, X, covariates)
        reference = fitted_to(seeded(model, seeds[0]), X, given)
        pairs = ComplementaryPairs.of(reference, X, "columns")
        distinct = _DistinctModules(Layers.of(reference))
        for found in executor.map(_fitted_layers, (restarted, X, given), seeds[1:]):
            distinct.add(found)
        counts = replace(pairs, layers=distinct.layers).count(n_pairs, seeds[0], executor)
    return distinct.result(n_starts, counts.found / (2 * n_pairs))


def _fitted_layers(data: tuple[SparseGraphSVD, Matrix, Design | None], seed: int) -> Layers:
    """The modules of a fit to X from the random directions of a seed."""
    restarted, X, covariates = data
    return Layers.of(fitted_to(clone(restarted).set_params(random_state=seed), X, covariates))


class _DistinctModules:
    """The distinct modules of several fits, with the number of fits in which each is found."""

    def __init__(self, first: Layers) -> None:
        self.layers = first
        self._n_found = np.zeros(len(first.right))
        self._similarity = np.zeros(len(first.right))

    def add(self, found: Layers) -> None:
        """Match the modules of one more fit; those without a match are added."""
        matches = match_modules(found, self.layers)
        again = matches.similarity >= MIN_SIMILARITY
        self._n_found[matches.partner[again]] += 1
        self._similarity[matches.partner[again]] += matches.similarity[again]
        left, right = self.layers
        self.layers = Layers(np.hstack([left, found.left[:, ~again]]), np.vstack([right, found.right[~again]]))
        ones = np.ones(np.count_nonzero(~again))
        self._n_found, self._similarity = np.append(self._n_found, ones), np.append(self._similarity, ones)

    def result(self, n_starts: int, halves: Floats) -> Consensus:
        """The result, most frequent modules first; `halves` are the shares of halves with each module."""
        rows, columns = self.layers.left.T != 0, self.layers.right != 0
        table = pd.DataFrame(
            {
                "starts": self._n_found / n_starts,
                "halves": halves,
                "similarity": self._similarity / np.maximum(self._n_found, 1),
                "n_rows": rows.sum(axis=1),
                "n_columns": columns.sum(axis=1),
            }
        )
        order = np.lexsort([-table["halves"], -table["starts"]])
        table = table.iloc[order].reset_index(drop=True)
        table.insert(0, "module", np.arange(len(table)))
        return Consensus(table, rows[order], columns[order])


class _RandomStarts(ModuleSearch):
    """A search whose first start is a random direction as well."""

    def _next(self, leading: Direction, number: int) -> Module | None:
        generator = np.random.default_rng([self._settings.seed, number])
        return super()._next(random_direction(leading, generator), number)


class _FromRandomStarts(SparseGraphSVD):
    _search: ClassVar[type[ModuleSearch]] = _RandomStarts

    def _settings(self, dtype: Any) -> Settings:
        return replace(super()._settings(dtype), seed=int(self.random_state))
