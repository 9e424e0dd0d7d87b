"""Tables whose samples are permuted against each other: the null distribution of the strength d of a pair.

The first pair: the samples (rows) of Y are permuted, which keeps the structure of both tables and only breaks the link
between them. If samples are exchangeable and the tables independent, every order is equally likely, and the test exact.

A later pair: the scores of earlier pairs have been projected out of the tables, which leaves n samples with fewer
degrees of freedom. Residuals are not exchangeable: permuted, those of X and of Y overlap in fewer dimensions than they
do in truth, so that the strength of permuted tables is too small. Therefore the n residuals are first mapped to the
n - 1 - k dimensions that are left (Huh and Jhun 2001; Winkler, Renaud, Smith and Nichols 2020), by orthonormal bases of
the complements of the removed directions. If different directions were removed from X and from Y, the bases are rotated
to be as close to each other as possible. The dimensions are exchangeable if samples are normal, and nearly so if not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats, Indices
from netbic.estimators import TwoTables, iteration_settings
from netbic.operators import Corrected, DenseOperator, Table
from netbic.selection.pair_tables import PairTables
from netbic.solver import Axis, PairSearch, Settings


@dataclass(frozen=True, eq=False)
class Strengths:
    """The strength of the leading pair of two prepared tables, in any order of the rows of Y.

    Attributes
    ----------
    x, y : arrays with the same number of rows
        Centred, scaled and whitened as by the model, after earlier pairs were removed.
    axes : tuple of Axis
        Penalties and graph terms of the features.
    settings : Settings
    strata : array, optional
        Rows are permuted among those with the same value.
    """

    x: Floats
    y: Floats
    axes: tuple[Axis, Axis]
    settings: Settings
    strata: Indices | None = None

    def observed(self) -> float:
        """In the given order."""
        return self._strength(self.y)

    def permuted(self, seed: tuple[int, ...]) -> float:
        """In a random order."""
        return self._strength(self.y[self._order(np.random.default_rng(seed))])

    def _order(self, generator: np.random.Generator) -> Indices:
        """A random permutation of the rows (of each stratum by itself)."""
        drawn = generator.permutation(len(self.y))
        if self.strata is None:
            return drawn
        order = np.empty_like(drawn)
        # Both sorts are stable: the rows of each stratum, in their own and in random order, take the same places.
        order[np.argsort(self.strata, kind="stable")] = drawn[np.argsort(self.strata[drawn], kind="stable")]
        return order

    def _strength(self, y: Floats) -> float:
        search = PairSearch(_table(self.x), _table(y), *self.axes, self.settings, "canonical", 0.0)
        pair = next(iter(search), None)
        return 0.0 if pair is None else pair.module.d


def _table(values: Floats) -> Table:
    return Table(Corrected(DenseOperator(values, low_memory=True), float(np.sum(np.square(values)))))


@dataclass(frozen=True, eq=False)
class PreparedTables:
    """Both tables as prepared by a model, from which the scores of earlier pairs are removed.

    Attributes
    ----------
    x, y : arrays
    x_scores, y_scores : arrays of shape (n_samples, n_pairs)
        What is removed from X and from Y after each pair.
    axes, settings, strata
        As for `Strengths`.
    """

    x: Floats
    y: Floats
    x_scores: Floats
    y_scores: Floats
    axes: tuple[Axis, Axis]
    settings: Settings
    strata: Indices | None

    @classmethod
    def of(cls, tables: PairTables, fitted: TwoTables, strata: Indices | None) -> Self:
        """For the pairs of a fitted model."""
        model = tables.model
        x, y = (_dense(model.prepared(values, name).table) for values, name in ((tables.X, "X"), (tables.Y, "Y")))
        removed = fitted.x_scores_ if model.deflation == "regression" else fitted.y_scores_
        axes, settings = model.axes(tables.X, tables.Y), iteration_settings(model, np.float64)
        return cls(x, y, fitted.x_scores_, removed, axes, settings, strata)

    def after(self, n_pairs: int) -> Strengths:
        """The tables that are left after so many pairs."""
        x, y = self.x, self.y
        if n_pairs:
            x_left, y_left = (_complement(scores[:, :n_pairs]) for scores in (self.x_scores, self.y_scores))
            if self.strata is None:
                x, y = x_left.T @ x, _rotated(y_left, x_left).T @ y
            else:  # rows have to remain samples
                x, y = x_left @ (x_left.T @ x), y_left @ (y_left.T @ y)
        return Strengths(x, y, self.axes, self.settings, self.strata)


def _dense(table: Table) -> Floats:
    return np.ascontiguousarray(table.columns(np.arange(table.shape[1])), dtype=np.float64)


def _complement(scores: Floats) -> Floats:
    """An orthonormal basis of what is orthogonal to the scores and to a constant, in columns."""
    n = len(scores)
    removed = np.column_stack([np.ones(n), scores])
    basis: Floats = np.linalg.qr(removed, mode="complete")[0][:, removed.shape[1] :]
    return basis


def _rotated(basis: Floats, target: Floats) -> Floats:
    """Another basis of the same space, as close as possible to a basis of a similar space."""
    left, _, right = np.linalg.svd(basis.T @ target)
    rotated: Floats = basis @ (left @ right)
    return rotated


def strata_of(labels: Any, n_samples: int, samples: Array | None = None) -> Indices | None:
    """Labels of the samples as numbers; a Series is matched by the names of the samples, if these have names."""
    if labels is None:
        return None
    if isinstance(labels, pd.Series) and samples is not None:
        if missing := [name for name in samples if name not in labels.index]:
            raise ValueError(f"strata has no label for {len(missing)} samples, e.g. {missing[0]!r}: give one for each")
        labels = labels.loc[samples]
    found = np.asarray(labels, dtype=object)
    if found.shape != (n_samples,):
        raise ValueError(f"strata has shape {found.shape} but there are {n_samples} samples: give a label for each")
    codes, _ = pd.factorize(found)
    if (codes < 0).any():
        raise ValueError(f"{int((codes < 0).sum())} labels of strata are missing: give a label for every sample")
    if np.bincount(codes).max() < 2:
        raise ValueError("every sample has its own stratum, so nothing can be permuted: give larger strata")
    return codes
