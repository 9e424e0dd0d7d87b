"""Two tables of the same samples by position, and models that are fitted to some of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from netbic.arrays import Array, Floats, Indices, Matrix
from netbic.estimators import TwoTables, axis_names, in_order_of, paired_correlations, validated_x, validated_y
from netbic.selection.matching import partners
from netbic.selection.resampling import SIDES, graphs_by_position

_FEWEST = 3  # samples of a fold: a correlation of two is 1 or -1


def two_table_model(model: object) -> TwoTables:
    """The model itself, or the best one of a search (`Tuning`, or one of scikit-learn)."""
    found = getattr(model, "best_estimator_", model)
    if isinstance(found, TwoTables):
        return found
    raise TypeError(
        f"model={type(model).__name__}: a model of two tables is needed, SparseGraphPLS or SparseGraphCCA, or a fitted "
        "search that has one as best_estimator_"
    )


@dataclass(frozen=True, eq=False)
class PairTables:
    """A model, whose graphs match the features by position, and the values of two tables with samples in one order."""

    model: TwoTables
    X: Matrix
    Y: Matrix

    @classmethod
    def of(cls, model: TwoTables, X: Any, Y: Any) -> Self:
        """For tables that are validated as by `fit`."""
        made: TwoTables = clone(model).set_params(n_jobs=None, verbose=0)
        names = axis_names(X)[1], axis_names(Y)[1]
        if Y is not None:
            Y = in_order_of(X, Y)
        X, (Y, _) = validated_x(made, X, reset=True), validated_y(made, Y, reset=True)
        graphs = graphs_by_position(made.get_params(deep=False), (X.shape[1], Y.shape[1]), names, axes=SIDES)
        return cls(made.set_params(**graphs), X, Y)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    def with_model(self, model: TwoTables) -> Self:
        """Another model of the same tables."""
        return replace(self, model=model)

    def fitted_to(self, samples: Indices, random_state: int | None = None) -> TwoTables:
        """A clone of the model, fitted to some of the samples."""
        model: TwoTables = clone(self.model)
        if random_state is not None:
            model.set_params(random_state=random_state)
        return model.fit(self.X[samples], self.Y[samples])

    def correlations(self, fitted: TwoTables, samples: Indices) -> Floats:
        """Correlations of the scores of every pair of a fitted model in some of the samples."""
        return paired_correlations(*fitted.transform(self.X[samples], self.Y[samples]))


def check_folds(n_folds: int, n_samples: int) -> None:
    """Raise unless every fold has enough samples for a correlation."""
    if not 2 <= n_folds <= n_samples // _FEWEST:
        raise ValueError(
            f"n_folds={n_folds} but there are {n_samples} samples: choose 2 to {max(n_samples // _FEWEST, 2)}, so that "
            f"each fold has {_FEWEST} samples"
        )


def matched_pairs(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Indices, Floats]:
    """For each pair of one fit the pair of another fit with the most similar scores, one to one, and the similarity.

    Scores are those of the same samples in X and in Y. The similarity is the geometric mean of the correlations of the
    scores of X and of those of Y; 0 if one of them has another sign than the other. -1: there is no partner.
    """
    x, y = (_correlations(a, b) for a, b in zip(one, other, strict=True))
    similarity = np.sqrt(np.clip(x * y, 0.0, 1.0))
    matched = partners(similarity)
    padded = np.pad(similarity, ((0, 0), (0, 1)))
    return matched, padded[np.arange(matched.size), matched]


def _correlations(some: Array, others: Array) -> Floats:
    """Between columns; 0 for a constant one."""
    units = []
    for columns in (some, others):
        centred = columns - columns.mean(axis=0)
        lengths = np.linalg.norm(centred, axis=0)
        units.append(centred / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(units[0].T @ units[1])
