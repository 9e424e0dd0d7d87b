"""Grid search for models of two tables, scored by the correlation of the scores of X and of Y in held-out samples."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from netbic.arrays import Indices
from netbic.estimators import TwoTables, axis_names
from netbic.files import JsonValue
from netbic.graph import Graph
from netbic.selection.checkpoints import task_of
from netbic.selection.choice import AxisSize
from netbic.selection.fits import FitExecutor
from netbic.selection.grid import Grid, Parameters, named, points_of
from netbic.selection.outcomes import Fit, GridFits, Outcome, TuningProblem
from netbic.selection.pair_tables import PairTables, check_folds
from netbic.selection.resampling import SIDES, complement, folds, graphs_by_position, seeded


def pair_problem(model: TwoTables, X: Any, Y: Any, grid: Grid | None, n_folds: int, seed: int) -> TuningProblem:
    """The settings of a model of two tables, to be compared by held-out correlation."""
    tables = PairTables.of(model, X, Y)
    check_folds(n_folds, tables.n_samples)
    sizes = tables.X.shape[1], tables.Y.shape[1]
    points = points_of(model, grid, sizes)
    models = _models(model, tables, points, (axis_names(X)[1], axis_names(Y)[1]), seed)
    fits = _PairFits(tables, models, folds(tables.n_samples, n_folds, [seed, 0]))
    settings: dict[str, JsonValue] = {"n_folds": n_folds}
    task = task_of("tuning", settings, models, tables.X, seed, None, tables.Y)
    axes = {f"n_{side}": AxisSize(size, f"features of {side.upper()}") for side, size in zip(SIDES, sizes, strict=True)}
    return TuningProblem(points, fits, task, axes, ("pairs", "x_share", "y_share"), "correlation")


def _models(
    model: TwoTables, tables: PairTables, points: list[Parameters], names: tuple[Any, Any], seed: int
) -> list[TwoTables]:
    """A checked model for every point, with seeded starts and graphs matched by position (each once)."""
    matched: dict[tuple[str, int], Graph] = {}
    sizes, models = (tables.X.shape[1], tables.Y.shape[1]), []
    for point in points:
        parameters = model.get_params(deep=False) | point | {"n_jobs": None, "verbose": 0}
        with named(point):
            parameters |= graphs_by_position(parameters, sizes, names, matched, SIDES)
            models.append(seeded(type(model)(**parameters), seed))
            models[-1].axes(tables.X, tables.Y)
    return models


class _Job(NamedTuple):
    fold: int
    point: int


@dataclass(frozen=True)
class _PairFits(GridFits):
    """A model per point of the grid, to be fitted without each fold of the samples."""

    tables: PairTables
    models: list[TwoTables]
    folds: list[Indices]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.folds)

    def run(self, finished: Container[tuple[int, int]], executor: FitExecutor) -> Iterator[Fit]:
        """Every fit but the finished ones."""
        jobs = [_Job(fold, point) for point, fold in self.every if (point, fold) not in finished]
        yield from executor.map(_fit, self, jobs)


def _fit(fits: _PairFits, job: _Job) -> Fit:
    """The mean correlation of all pairs in a fold; pairs that are not found count as 0."""
    held_out = fits.folds[job.fold]
    tables = fits.tables.with_model(fits.models[job.point])
    fitted = tables.fitted_to(complement(held_out, tables.n_samples))
    score = float(tables.correlations(fitted, held_out).sum()) / tables.model.n_components
    shares = (float(np.sum(support)) / support.shape[1] for support in (fitted.x_support_, fitted.y_support_))
    outcome = Outcome(score, fitted.n_components_, *shares)
    return Fit(job.fold, job.point, outcome)
