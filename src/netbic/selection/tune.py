"""How sparse and how smooth: settings that explain what was not fitted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import clone

from netbic import __version__
from netbic.estimators import AXES, SparseGraphSVD, axis_names, check_count, has_holes
from netbic.graphs import Graph, match
from netbic.selection.checkpoint import Checkpoint, Outcome, seed_of
from netbic.selection.choice import RULES, choice, printable, standard_errors, verdict
from netbic.selection.criteria import CRITERIA, Maker, check_varies, trials
from netbic.selection.fits import Fitters, Here, Jobs, fitters, quiet
from netbic.selection.grid import Grid, named, points_of
from netbic.selection.resampling import seeded
from netbic.storage import settings_of
from netbic.study import digest

_PARTS = 4  # portions of a fold per process
_SHARED = (
    "center",
    "scale",
    "missing",
    "low_memory",
    "solver",
    "clip",
)  # points that agree in these share a prepared matrix

Progress = Callable[[int, int], Any]
Portion = tuple[int, list[int]]  # a fold and points
Search = tuple[list[SparseGraphSVD], list[Maker]]  # a model per point, a maker per fold


@dataclass(frozen=True)
class Tuning:
    """Settings chosen from a grid.

    Attributes
    ----------
    best_params_ : dict
    best_index_ : int
        The chosen point's place in `cv_results_`.
    best_score_ : float
        Its mean score. Under the one-standard-error rule another point may have a larger one.
    best_estimator_ : SparseGraphSVD
        Fitted to all of X.
    cv_results_ : dict of arrays
        As that of scikit-learn's GridSearchCV: `params`, `param_*`, `split*_test_score`, `mean_test_score`,
        `std_test_score`, `rank_test_score`; also `mean_modules`, the number found, and `mean_row_share` and
        `mean_column_share`, the members of all modules as shares of the axis.
    verdict : str
        One plain sentence or two: what was chosen, and which sizes the data do not identify.
    """

    best_params_: dict[str, Any]
    best_index_: int
    best_score_: float
    best_estimator_: SparseGraphSVD
    cv_results_: dict[str, Any] = field(repr=False)
    verdict: str

    @property
    def table(self) -> pd.DataFrame:
        """A row per point: its settings, mean `score`, the `standard_error` over folds, and which one is `chosen`."""
        table = pd.DataFrame([printable(point) for point in self.cv_results_["params"]])
        table["score"] = self.cv_results_["mean_test_score"]
        table["standard_error"] = standard_errors(self.cv_results_)
        table["chosen"] = np.arange(len(table)) == self.best_index_
        return table


def tune(
    model: SparseGraphSVD,
    X: Any,
    grid: Grid | None = None,
    *,
    criterion: str = "held_out",
    n_folds: int = 5,
    rule: str = "one_se",
    checkpoint: Path | str | None = None,
    progress: Progress | None = None,
    random_state: Any = None,
    n_jobs: Jobs = None,
) -> Tuning:
    """Choose sizes, smoothness or any other setting by how well modules explain what was not fitted.

    Parameters
    ----------
    model : SparseGraphSVD
        What the grid leaves open. Its graphs are matched to X as `fit` does it.
    X : array, DataFrame or sparse matrix
        Sparse for "held_out" and "bic" only; with missing values for "held_out" and "wold" only, and only if the
        model's `missing` says what to do with them.
    grid : dict of lists, or list of such dicts, optional
        As for scikit-learn's ParameterGrid. Default: five sizes on each axis up to all there are, and smoothness 0,
        .05, .1 and .25 where the model has a graph. Sizes are those for all of X and shrink with what is fitted of it.
    criterion : {"held_out", "wold", "gabriel", "bic"}
        "held_out": variance of held-out samples explained by the modules' features, plus that of held-out features
        explained by their samples. "wold": held-out entries. "gabriel": a held-out corner, predicted from the rest
        (use `rule="best"`). "bic": the literature's; it keeps far too few members.
    n_folds : int
        Folds of samples and of features; for "wold" so many times a tenth of the entries is held out.
    rule : {"one_se", "best"}
        "one_se": the simplest point whose mean score is within one standard error (over folds, of the difference) of
        the best; simplest are the fewest members (as shares of both axes), then the least smoothness. "best": the
        largest mean score.
    checkpoint : path, optional
        A file that every finished fit is appended to. Called again with the same file, after any interruption, the
        tuning goes on and comes to the same result.
    progress : function, optional
        Called with the numbers of finished and of all fits after each of them, in the thread that called.
    random_state : None, int or numpy.random.Generator
        Deals the folds; and seeds the random starts of a model (`n_init`) whose own `random_state` is no integer.
    n_jobs : int or "dask", optional
        Processes over points, or the workers of the present Dask client; the answer does not depend on it. Each holds a
        fold.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, center=None)
    >>> tuning = netbic.selection.tune(model, toy.X, {"n_columns": [10, 30, 50, 70, 100]}, random_state=0)
    >>> tuning.best_params_
    {'n_columns': 50}
    """
    _check_words(model, criterion, n_folds, rule)
    workers = fitters(X, n_jobs, processes=True)  # not threads: half of a fit is Python, and two take longer than one
    with quiet():  # the last fit makes its own remarks
        values, seed = _values(model, X, criterion), _seed(random_state, checkpoint)
        points = points_of(model, grid, values.shape)
        models = _models(model, points, values.shape, axis_names(X), seed)
        makers = trials(criterion, values, n_folds, seed, max(each.n_components for each in models))
        _check_folds(models, points, makers)
        task = _task(models, values, criterion, n_folds, seed)
        with Checkpoint(checkpoint, task) as kept:
            _fit_all(models, makers, kept, progress or (lambda done, total: None), workers)
    results = _results(points, kept.known, len(makers))
    index = choice(results, models, rule)
    fitted = clone(model).set_params(**points[index]).fit(X)
    said = verdict(results, index, values.shape, predicts=criterion in ("wold", "gabriel"))
    return Tuning(points[index], index, float(results["mean_test_score"][index]), fitted, results, said)


# --------------------------------------------------------------------------------------------------------------------
# What was asked for
# --------------------------------------------------------------------------------------------------------------------


def _check_words(model: Any, criterion: str, n_folds: int, rule: str) -> None:
    if not isinstance(model, SparseGraphSVD):
        raise TypeError(f"model={model!r}: a SparseGraphSVD is needed (GridSearchCV takes pipelines)")
    for name, value, known in (("criterion", criterion, CRITERIA), ("rule", rule, RULES)):
        if value not in known:
            raise ValueError(f"{name}={value!r} is not known: choose one of {', '.join(map(repr, known))}")
    check_count("n_folds", n_folds)


def _values(model: SparseGraphSVD, X: Any, criterion: str) -> Any:
    """X as a validated array without names."""
    values = clone(model).set_params(row_graph=None, column_graph=None)._validated(X, reset=True)
    if sp.issparse(values) and criterion in ("wold", "gabriel"):
        raise ValueError(f"criterion={criterion!r} needs a dense X: use 'held_out'")
    if criterion in ("gabriel", "bic") and has_holes(values):
        raise ValueError(f"criterion={criterion!r} needs an X without missing values: use 'held_out' or 'wold'")
    return values


def _models(
    model: SparseGraphSVD, points: list[dict[str, Any]], shape: tuple[int, int], names: tuple[Any, Any], seed: int
) -> list[SparseGraphSVD]:
    """A model for every point, once it is sure to go with X; graphs matched by position (each once), starts seeded."""
    matched: dict[tuple[str, int], Graph] = {}
    models = []
    for point in points:
        words = model.get_params(deep=False) | point | {"n_jobs": None, "verbose": 0}
        with named(point):
            for axis, size, known in zip(AXES, shape, names, strict=True):
                if (graph := words[f"{axis}_graph"]) is not None:
                    place = axis, id(graph)
                    if place not in matched:
                        matched[place] = Graph(match(graph, size, known, axis).weights)
                    words[f"{axis}_graph"] = matched[place]
            models.append(seeded(type(model)(**words), seed))
            models[-1].check(shape)
    return models


def _seed(random_state: Any, checkpoint: Path | str | None) -> int:
    """The seed of the folds; without a random_state that of the checkpoint, so that it can be gone on with."""
    kept = seed_of(checkpoint) if random_state is None else None
    return int(np.random.default_rng(random_state).integers(2**31)) if kept is None else kept


def _task(models: list[SparseGraphSVD], X: Any, criterion: str, n_folds: int, seed: int) -> dict[str, Any]:
    """All that decides the outcomes, as JSON has it."""
    stored = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    described = json.dumps([_described(model.get_params(deep=False)) for model in models])
    return {
        "netbic": __version__,
        "criterion": criterion,
        "n_folds": n_folds,
        "seed": seed,
        "model and grid": hashlib.blake2b(described.encode(), digest_size=16).hexdigest(),
        "X": digest(*stored, np.array(X.shape)),
    }


def _described(words: dict[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them; graphs by their digests."""
    graphs = {name: value.weights for name, value in words.items() if isinstance(value, Graph)}
    return settings_of(words) | {name: digest(w.data, w.indices, w.indptr) for name, w in graphs.items()}


def _check_folds(models: list[SparseGraphSVD], points: list[dict[str, Any]], makers: list[Maker]) -> None:
    """Raise if a fold does not vary, or a point does not fit into it; before anything is fitted."""
    for fold, make in enumerate(makers):
        trial = make()
        for model, point in zip(models, points, strict=True) if fold == 0 else ():  # the smallest block
            with named(point):
                trial.fitting(model).check(trial.X.shape)
        try:
            for group in _groups(models, range(len(models))):
                prepared = trial.fitting(models[group[0]]).prepared(trial.X)
                check_varies(prepared.operator.squared_norm, trial.X, "fits")
                trial.judge(prepared, models[group[0]])
        except ValueError as problem:
            raise ValueError(f"fold {fold + 1} of {len(makers)}: {problem}") from None


# --------------------------------------------------------------------------------------------------------------------
# Fits
# --------------------------------------------------------------------------------------------------------------------


def _fit_all(
    models: list[SparseGraphSVD], makers: list[Maker], kept: Checkpoint, progress: Progress, workers: Fitters
) -> None:
    """Fit every point to every fold; in each process one fold at a time is in memory."""
    total = len(models) * len(makers)
    portions = list(_portions(models, len(makers), kept.known, workers.at_once))
    for fold, point, outcome in _finished(portions, models, makers, workers):
        kept.keep(point, fold, outcome)
        progress(len(kept.known), total)


def _portions(
    models: list[SparseGraphSVD], n_folds: int, known: Container[tuple[int, int]], at_once: int
) -> Iterator[Portion]:
    """Folds, each with points that share a prepared matrix: all of them, or (for several processes) a part."""
    for fold in range(n_folds):
        left = [point for point in range(len(models)) if (point, fold) not in known]
        for group in _groups(models, left):
            n_parts = 1 if at_once == 1 else min(len(group), _PARTS * at_once)
            # Dealt out in turn: neighbours in the grid take about as long as each other.
            yield from ((fold, group[part::n_parts]) for part in range(n_parts))


def _groups(models: list[SparseGraphSVD], numbers: Iterable[int]) -> list[list[int]]:
    """Points that can share a prepared matrix."""
    groups: dict[Any, list[int]] = {}
    for number in numbers:
        groups.setdefault(tuple(getattr(models[number], name) for name in _SHARED), []).append(number)
    return list(groups.values())


def _finished(
    portions: list[Portion], models: list[SparseGraphSVD], makers: list[Maker], workers: Fitters
) -> Iterator[tuple[int, int, Outcome]]:
    """Fold, point and outcome of every fit as soon as it (or its portion, if it is fitted elsewhere) is finished."""
    search = models, makers
    # Nothing to wait for in this process: every fit is told, not only every portion.
    alone = isinstance(workers, Here) and workers.at_once == 1
    found = map(partial(_outcomes, search), portions) if alone else workers.each(_elsewhere, search, portions, False)
    for outcomes in found:
        yield from outcomes


def _elsewhere(search: Search, portion: Portion) -> list[tuple[int, int, Outcome]]:
    return list(_outcomes(search, portion))


def _outcomes(search: Search, portion: Portion) -> Iterator[tuple[int, int, Outcome]]:
    """What points that share a prepared matrix come to in one fold."""
    models, makers = search
    fold, points = portion
    trial = makers[fold]()
    prepared = trial.fitting(models[points[0]]).prepared(trial.X)
    judge = trial.judge(prepared, models[points[0]])
    n, p = prepared.operator.shape
    for point in points:
        modules = trial.fitting(models[point]).modules_of(prepared)
        rows = sum(module.u.support.size for module in modules) / n
        columns = sum(module.v.support.size for module in modules) / p
        yield fold, point, Outcome(judge(modules), len(modules), rows, columns)


def _results(points: list[dict[str, Any]], known: dict[tuple[int, int], Outcome], n_folds: int) -> dict[str, Any]:
    """The outcomes as GridSearchCV has them."""
    outcomes = np.array([[known[point, fold] for fold in range(n_folds)] for point in range(len(points))])
    scores = outcomes[:, :, 0]
    results: dict[str, Any] = {}
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
    for name, column in zip(("modules", "row_share", "column_share"), range(1, 4), strict=True):
        results[f"mean_{name}"] = outcomes[:, :, column].mean(axis=1)
    return results
