"""Grid search for sizes and smoothness, scored by how well modules explain data that were not fitted."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Matrix, RandomState, check_choice
from netbic.estimators import (
    SparseGraphSVD,
    TwoTables,
    axis_names,
    check_count,
    covariates_of,
    training_design,
)
from netbic.files import JsonValue
from netbic.graph import Graph
from netbic.selection.checkpoints import seed_of, task_of
from netbic.selection.choice import RULES, AxisSize, Results, choice, printable, standard_errors, verdict
from netbic.selection.criteria import SplitFactory, check_varies, splits
from netbic.selection.finished import Progress
from netbic.selection.fits import FitExecutor, Jobs, executor_for, quiet
from netbic.selection.grid import Grid, Parameters, named, points_of
from netbic.selection.outcomes import Fit, GridFits, Outcome, TuningProblem, results_of
from netbic.selection.pair_tuning import pair_problem
from netbic.selection.resampling import Names, fitted_to, graphs_by_position, seeded
from netbic.storage import Pieces

_BATCHES = 4  # batches of a fold per process
_PREPARATION = ("center", "scale", "missing", "low_memory", "solver", "clip")  # equal in models that share a matrix

Batch = tuple[int, list[int]]  # a fold and points of the grid


@dataclass(frozen=True)
class Tuning:
    """The result of a grid search, with the names of scikit-learn's GridSearchCV.

    Attributes
    ----------
    best_params_ : dict
    best_index_ : int
        The chosen point's index in `cv_results_`.
    best_score_ : float
        Its mean score. Under the one-standard-error rule another point may have a larger one.
    best_estimator_ : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        Fitted to all of X (and Y).
    cv_results_ : dict of arrays
        As that of scikit-learn's GridSearchCV: `params`, `param_*`, `split*_test_score`, `mean_test_score`,
        `std_test_score`, `rank_test_score`; also `mean_modules`, the number found, and `mean_row_share` and
        `mean_column_share`, the members of all modules as shares of the axis (`mean_pairs`, `mean_x_share` and
        `mean_y_share` for two tables).
    verdict : str
        What was chosen, and which sizes the data do not identify, in plain words.
    unidentified : tuple of str
        Sizes ("n_rows", "n_columns"; "n_x", "n_y") that the data do not identify.
    """

    best_params_: Parameters
    best_index_: int
    best_score_: float
    best_estimator_: Any
    cv_results_: Results = field(repr=False)
    verdict: str
    unidentified: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """A row per point: its parameters, mean `score`, the `standard_error` over folds, and which one is `chosen`."""
        table = pd.DataFrame([printable(point) for point in self.cv_results_["params"]])
        table["score"] = self.cv_results_["mean_test_score"]
        table["standard_error"] = standard_errors(self.cv_results_)
        table["chosen"] = np.arange(len(table)) == self.best_index_
        return table


def tune(
    model: SparseGraphSVD | TwoTables,
    X: Matrix,
    grid: Grid | None = None,
    *,
    Y: Any = None,
    covariates: Any = None,
    n_folds: int = 5,
    rule: str = "one_se",
    checkpoint: Path | str | None = None,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Tuning:
    """Choose sizes, smoothness or any other parameter by how well modules explain data that were not fitted.

    Models are fitted without some samples and some features. The score of a setting is the share of the variance of
    the held-out samples that the modules' features explain, plus that of the held-out features that the modules'
    samples explain.

    Parameters
    ----------
    model : SparseGraphSVD, SparseGraphPLS or SparseGraphCCA
        The parameters that are not in the grid. Its graphs are matched to X as in `fit`.
    X : array, DataFrame or sparse matrix
        With missing values only if the model's `missing` says how to treat them.
    grid : dict of lists, or list of such dicts, optional
        As for scikit-learn's ParameterGrid. Default: five numbers of features up to all of them (and of samples, if the
        model has `n_rows`), and smoothness 0, 0.25, 0.5 and 0.75 where the model has a graph (0, 0.05, 0.1 and 0.25
        unless `smoothness_scale="module"`). Sizes are those for all of X; they are reduced in proportion to the part of
        X that is fitted. For two tables: five numbers of features of X and of Y, smoothness where there is a graph, and
        four values of the ridge for `covariance="ridge"`.
    Y : array, DataFrame or sparse matrix
        The second table, for SparseGraphPLS and SparseGraphCCA. The score is then the correlation of the scores of both
        tables in held-out samples, averaged over the pairs; `covariates` cannot be given.
    covariates : as for `SparseGraphSVD.fit`, optional
        Their effects are estimated in the part of X that is fitted, and removed from the held-out part. Default: those
        of the model, if it was fitted to X.
    n_folds : int
        Folds of samples and of features.
    rule : {"one_se", "best"}
        "one_se": the simplest point whose mean score is within one standard error (over folds, of the difference) of
        the best; simplest means fewest members (as shares of both axes), then least smoothness. "best": the largest
        mean score.
    checkpoint : path, optional
        A folder for a small file per finished fit. After an interruption, a call with the same folder continues the
        search and gives the same result.
    progress : function, optional
        Called after each fit, in the calling thread, with the numbers of finished fits and of all fits.
    random_state : None, int or numpy.random.Generator
        Seed of the folds, and of the random starts of a model (`n_init`) whose own `random_state` is not an integer.
    n_jobs : int or "dask", optional
        Processes over points (default: all cores, unless X is small), or the workers of the current Dask client; the
        result does not depend on it. Each holds a fold in memory.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, center=None)
    >>> tuning = netbic.selection.tune(model, toy.X, {"n_columns": [10, 30, 50, 70, 100]}, random_state=0)
    >>> tuning.best_params_
    {'n_columns': 50}

    Two tables:

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> pairs = netbic.SparseGraphCCA(1, n_y=5)
    >>> netbic.selection.tune(pairs, X, {"n_x": [2, 8, 40]}, Y=Y, random_state=0).best_params_
    {'n_x': 8}
    """
    _check_options(model, n_folds, rule)
    if two := isinstance(model, TwoTables) or Y is not None:
        _check_pair_options(model, Y, covariates)
    executor = executor_for(X, n_jobs, processes=True)  # half of a fit is Python: threads would be slower
    with quiet():  # warnings of the final fit are shown
        seed = seed_of("tuning", random_state, checkpoint)
        if isinstance(model, TwoTables):
            problem = pair_problem(model, X, Y, grid, n_folds, seed)
        else:
            problem = _problem(model, X, grid, covariates, n_folds, seed)
        outcomes = _outcomes_of(problem, checkpoint, executor, progress)
    points, results = problem.points, results_of(problem, outcomes)
    index = choice(results, problem.fits.models, rule)
    best = clone(model).set_params(**points[index])
    fitted = best.fit(X, Y) if two else fitted_to(best, X, covariates_of(model, X, covariates))
    text, unidentified = verdict(results, index, problem.sizes, problem.criterion)
    score = float(results["mean_test_score"][index])
    return Tuning(points[index], index, score, fitted, results, text, unidentified)


def _outcomes_of(
    problem: TuningProblem,
    checkpoint: Path | str | None,
    executor: FitExecutor,
    progress: Progress | None,
) -> dict[tuple[int, int], Outcome]:
    """The outcome of every fit, by point and fold: those kept in a folder, and others, which are added to it."""
    fits = problem.fits
    saved: MutableMapping[str, bytes] = {} if checkpoint is None else Pieces(checkpoint, problem.task)
    outcomes: dict[tuple[int, int], Outcome] = {}
    for point, fold in fits.every:
        with suppress(KeyError, ValueError, TypeError):  # a fit that is missing or damaged is repeated
            outcomes[point, fold] = Outcome(*json.loads(saved[f"{point}-{fold}"]))
    for fold, point, outcome in fits.run(frozenset(outcomes), executor):
        outcomes[point, fold] = outcome
        saved[f"{point}-{fold}"] = json.dumps(outcome).encode()
        if progress is not None:
            progress(len(outcomes), len(fits.every))
    return outcomes


def _problem(
    model: SparseGraphSVD, X: Matrix, grid: Grid | None, covariates: Any, n_folds: int, seed: int
) -> TuningProblem:
    """The settings of a model of one matrix, to be compared in so many folds."""
    values, design = _values(model, X), training_design(model, X, covariates)
    points = points_of(model, grid, values.shape)
    models = _models(model, points, values.shape, axis_names(X), seed)
    search = _Search(models, splits(values, n_folds, seed, design))
    search.check(points)
    settings: dict[str, JsonValue] = {"n_folds": n_folds}
    task = task_of("tuning", settings, models, values, seed, design)
    sizes = {f"n_{axis}": AxisSize(size, axis) for axis, size in zip(("rows", "columns"), values.shape, strict=True)}
    return TuningProblem(points, search, task, sizes, ("modules", "row_share", "column_share"), "held_out")


def _check_options(model: object, n_folds: int, rule: str) -> None:
    if not isinstance(model, (SparseGraphSVD, TwoTables)):
        raise TypeError(
            f"model={model!r}: a SparseGraphSVD is needed, or SparseGraphPLS or SparseGraphCCA for two tables "
            "(GridSearchCV takes pipelines)"
        )
    check_choice("rule", rule, RULES)
    check_count("n_folds", n_folds)


def _check_pair_options(model: object, Y: Any, covariates: Any) -> None:
    if not isinstance(model, TwoTables):
        raise TypeError(f"Y is given, but {type(model).__name__} takes one table: use SparseGraphPLS or SparseGraphCCA")
    if Y is None:
        raise ValueError(f"{type(model).__name__} needs two tables: give the second one as Y=...")
    if covariates is not None:
        raise ValueError("covariates are not supported for two tables: remove them from X and from Y before")


def _values(model: SparseGraphSVD, X: Matrix) -> Matrix:
    """X as a validated array without names."""
    return clone(model).set_params(row_graph=None, column_graph=None)._validated(X, reset=True)


def _models(
    model: SparseGraphSVD, points: list[Parameters], shape: tuple[int, int], names: Names, seed: int
) -> list[SparseGraphSVD]:
    """A checked model for every point, with seeded starts and graphs matched by position (each once)."""
    matched: dict[tuple[str, int], Graph] = {}
    models = []
    for point in points:
        parameters = model.get_params(deep=False) | point | {"n_jobs": None, "verbose": 0}
        with named(point):
            parameters |= graphs_by_position(parameters, shape, names, matched)
            models.append(seeded(type(model)(**parameters), seed))
            models[-1].check(shape)
    return models


@dataclass(frozen=True)
class _Search(GridFits):
    """A model per point of the grid, to be fitted to every split."""

    models: list[SparseGraphSVD]
    splits: list[SplitFactory]

    @property
    def n_folds(self) -> int:
        """Number of splits."""
        return len(self.splits)

    def check(self, points: list[Parameters]) -> None:
        """Raise if a split does not vary, or a model does not suit it; before anything is fitted."""
        for fold, make in enumerate(self.splits):
            split = make()
            for model, point in zip(self.models, points, strict=True) if fold == 0 else ():  # the smallest block
                with named(point):
                    split.training_model(model).check(split.X.shape)
            try:
                for group in self._groups(range(len(self.models))):
                    prepared = split.training_model(self.models[group[0]]).prepared(split.X, split.covariates)
                    check_varies(prepared.operator.squared_norm, split.X, "fitted")
                    split.scorer(prepared, self.models[group[0]])
            except ValueError as problem:
                raise ValueError(f"fold {fold + 1} of {len(self.splits)}: {problem}") from None

    def run(self, finished: Container[tuple[int, int]], executor: FitExecutor) -> Iterator[Fit]:
        """Every fit but the finished ones; each process holds one fold at a time."""
        batches = self._batches(finished, executor.n_parallel)
        if executor.n_parallel == 1:  # in this process: each fit is reported when it is finished, not each batch
            yield from chain.from_iterable(map(partial(_fits, self), batches))
        else:
            yield from chain.from_iterable(executor.map(_list_of_fits, self, batches, False))

    def _batches(self, finished: Container[tuple[int, int]], n_parallel: int) -> list[Batch]:
        """Folds with points that share a prepared matrix: all of them or, for several processes, some."""
        batches: list[Batch] = []
        for fold in range(len(self.splits)):
            remaining = [point for point in range(len(self.models)) if (point, fold) not in finished]
            for group in self._groups(remaining):
                n_batches = min(len(group), 1 if n_parallel == 1 else _BATCHES * n_parallel)
                # Interleaved, because neighbouring points of the grid take about the same time.
                batches += [(fold, group[at::n_batches]) for at in range(n_batches)]
        return batches

    def _groups(self, points: Iterable[int]) -> list[list[int]]:
        """Points that can share a prepared matrix."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for point in points:
            model = self.models[point]
            key = tuple(getattr(model, name) for name in _PREPARATION)
            if model.diffusion is not None:  # it depends on the graph and, if it is chosen, on the other parameters
                key += model.diffusion, id(model.column_graph), point if model.diffusion == "cv" else -1
            groups.setdefault(key, []).append(point)
        return list(groups.values())


def _fits(search: _Search, batch: Batch) -> Iterator[Fit]:
    """Fit the points of a batch, which share a prepared matrix, to their fold."""
    fold, points = batch
    split = search.splits[fold]()
    prepared = split.training_model(search.models[points[0]]).prepared(split.X, split.covariates)
    score = split.scorer(prepared, search.models[points[0]])
    n, p = prepared.operator.shape
    for point in points:
        modules = split.training_model(search.models[point]).modules_of(prepared)
        rows = sum(module.u.support.size for module in modules) / n
        columns = sum(module.v.support.size for module in modules) / p
        outcome = Outcome(score(modules), len(modules), rows, columns)
        yield Fit(fold, point, outcome)


def _list_of_fits(search: _Search, batch: Batch) -> list[Fit]:
    return list(_fits(search, batch))
