"""A grid search as such: settings to compare, a score for each of them and each fold, and the table of all scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from netbic.estimators import SparseGraphSVD, TwoTables
from netbic.selection.choice import AxisSize, Results
from netbic.selection.fits import FitExecutor
from netbic.selection.grid import Parameters
from netbic.storage import Task


class Outcome(NamedTuple):
    """The outcome of one fit: its score, the number of modules, and their members as shares of rows and of columns.

    For two tables: the number of pairs, and shares of the features of X and of Y.
    """

    score: float
    modules: int
    rows: float
    columns: float


class Fit(NamedTuple):
    """A finished fit: its fold, its point of the grid, and the outcome."""

    fold: int
    point: int
    outcome: Outcome


class GridFits(ABC):
    """A model per point of the grid, to be fitted to every split."""

    models: Sequence[SparseGraphSVD | TwoTables]

    @property
    @abstractmethod
    def n_folds(self) -> int:
        """Number of splits."""

    @property
    def every(self) -> list[tuple[int, int]]:
        """Point and fold of every fit."""
        return [(point, fold) for fold in range(self.n_folds) for point in range(len(self.models))]

    @abstractmethod
    def run(self, finished: Container[tuple[int, int]], executor: FitExecutor) -> Iterator[Fit]:
        """Every fit but the finished ones."""


@dataclass(frozen=True)
class TuningProblem:
    """What to compare.

    Attributes
    ----------
    points : list of dict
        The points of the grid.
    fits : GridFits
    task : Task
        What determines the results, for checkpoints.
    sizes : dict
        Sizes of the axes, by the name of the parameter that selects part of each.
    columns : tuple of str
        Names of the number of modules and of their shares of both axes, for the results.
    criterion : str
        The score.
    """

    points: list[Parameters]
    fits: GridFits
    task: Task
    sizes: Mapping[str, AxisSize]
    columns: tuple[str, str, str]
    criterion: str


def results_of(problem: TuningProblem, known: Mapping[tuple[int, int], Outcome]) -> Results:
    """The outcomes by point and fold as in GridSearchCV.cv_results_."""
    points, n_folds = problem.points, problem.fits.n_folds
    outcomes = np.array([[known[point, fold] for fold in range(n_folds)] for point in range(len(points))])
    scores = outcomes[:, :, 0]
    results: Results = {}
    for name in sorted({name for point in points for name in point}):
        column: Any = np.ma.masked_all(len(points), dtype=object)  # type: ignore[no-untyped-call]
        for number, point in enumerate(points):
            if name in point:
                column[number] = point[name]
        results[f"param_{name}"] = column
    results["params"] = points
    results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(n_folds)}
    results["mean_test_score"], results["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
    results["rank_test_score"] = rankdata(-results["mean_test_score"], method="min").astype(np.int32)
    for name, number in zip(problem.columns, range(1, 4), strict=True):
        results[f"mean_{name}"] = outcomes[:, :, number].mean(axis=1)
    return results
