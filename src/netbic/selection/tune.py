"""Grid search for sizes and smoothness, scored by how well modules explain data that were not fitted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableMapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Floats, Indices, Matrix, RandomState, buffers, check_choice
from netbic.estimators.covariates import covariates_of, training_design
from netbic.estimators.inputs import axis_names, learn_scaler, validated
from netbic.estimators.pairs import TwoTableModel, paired_correlations
from netbic.estimators.parameters import AXES, check_count, smoothness_of
from netbic.estimators.svd import SearchInput, SparseGraphSVD
from netbic.graph import Graph
from netbic.io.dataset import digest
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    Parameters,
    check_second_table,
    check_varies,
    complement,
    draw_seed,
    explained_share,
    fill_unobserved,
    fitted_to,
    folds,
    for_part,
    graphs_by_position,
    n_asked,
    pairs_by_position,
    seeded,
    size_names,
)
from netbic.solver.search import Module
from netbic.storage.models import settings_of
from netbic.storage.runs import Pieces, Task, read_task

Grid = Mapping[str, Any] | list[Mapping[str, Any]]
Results = dict[str, Any]  # as GridSearchCV.cv_results_
Outcome = tuple[float, int, float, float]  # score, number of modules, and their members as shares of both axes
Batch = tuple[int, list[int]]  # a fold and points of the grid
Fit = tuple[int, int, Outcome]  # point, fold and outcome

RULES: Final = ("one_se", "best")
_BATCHES = 4  # batches of a fold per process
_PREPARATION = ("center", "scale_power", "missing", "low_memory", "solver")  # equal in models that share a matrix
# By scale; in units of the leading singular value ("relative") the quality drops steeply beyond 0.5 on real data.
_SMOOTHNESS = {"module": [0.0, 0.25, 0.5, 0.75], "relative": [0.0, 0.05, 0.1, 0.25], "absolute": [0.0, 0.05, 0.1, 0.25]}
_RIDGES = [0.1, 0.3, 0.6, 0.9]
_FEWEST, _N_SIZES = 5, 5  # features of the smallest size of the default grid, and number of its sizes
_FEWEST_OF_PAIRS = 3  # samples of a fold of two tables: a correlation of two is 1 or -1


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return self.verdict

    @property
    def table(self) -> pd.DataFrame:
        """A row per point: its parameters, mean `score`, the `standard_error` over folds, and which one is `chosen`."""
        table = pd.DataFrame([printable(point) for point in self.cv_results_["params"]])
        table["score"] = self.cv_results_["mean_test_score"]
        scores = _split_scores(self.cv_results_)
        table["standard_error"] = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
        table["chosen"] = np.arange(len(table)) == self.best_index_
        return table


def tune(
    model: SparseGraphSVD | TwoTableModel,
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
    feature_name: str = "feature",
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
        model has `n_rows`), smoothness 0, 0.25, 0.5 and 0.75 where the model has a graph (0, 0.05, 0.1 and 0.25 unless
        `smoothness_scale="module"`), and four values of the ridge for `covariance="ridge"`. Sizes are those for all of
        X; they are reduced in proportion to the part of X that is fitted.
    Y : array, DataFrame or sparse matrix
        The second table, for SparseGraphPLS and SparseGraphCCA. The score is then the correlation of the scores of both
        tables in held-out samples, averaged over the pairs.
    covariates : as for `SparseGraphSVD.fit`, optional
        Their effects are estimated in the part of X (and of Y) that is fitted, and removed from the held-out part.
        Default: those of the model, if it was fitted to X.
    n_folds : int
        Folds of samples and of features.
    rule : {"one_se", "best"}
        "one_se": the simplest point (fewest members, then least smoothness) whose mean score is within one standard
        error (over folds, of the difference) of the best. "best": the largest mean score.
    checkpoint : path, optional
        A folder for a small file per finished fit: after an interruption, a call with the same folder continues.
    progress : function, optional
        Called after each fit, in the calling thread, with the numbers of finished fits and of all fits.
    random_state : None, int or numpy.random.Generator
        Seed of the folds, and of the random starts of a model (`n_init`) whose own `random_state` is not an integer.
    n_jobs : int or "dask", optional
        As for `stability`.
    feature_name : str
        The word for features in the verdict.

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
    if not isinstance(model, (SparseGraphSVD, TwoTableModel)):
        raise TypeError(
            f"model={model!r}: a SparseGraphSVD is needed, or SparseGraphPLS or SparseGraphCCA for two tables "
            "(GridSearchCV takes pipelines)"
        )
    check_choice("rule", rule, RULES)
    check_count("n_folds", n_folds)
    two = check_second_table(model, Y)
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    fits = Fits(X, n_folds * len(_points_of(model, grid, shape)), n_jobs)
    with quiet():  # warnings of the final fit are shown
        header = read_task(checkpoint, "tuning") if random_state is None and checkpoint is not None else None
        seed = draw_seed(random_state) if header is None else int(header["data"]["seed"])
        design = training_design(model, X, covariates)
        given = covariates_of(model, X, covariates)
        search = _Search(model, X, Y, grid, n_folds, seed, design)
        if isinstance(model, SparseGraphSVD) and model.n_components == "auto":  # the same number for all settings
            model = clone(model).set_params(n_components=n_asked(fitted_to(seeded(model, seed), X, given)))
            for one in search.models:
                one.set_params(n_components=model.n_components)
        pieces: MutableMapping[str, bytes] = {} if checkpoint is None else Pieces(checkpoint, search.task(seed))
        outcomes: dict[tuple[int, int], Outcome] = {}
        for point, fold in product(range(len(search.points)), range(n_folds)):
            with suppress(KeyError, ValueError, TypeError):  # a fit that is missing or damaged is repeated
                score, number, rows, columns = json.loads(pieces[f"{point}-{fold}"])
                outcomes[point, fold] = float(score), int(number), float(rows), float(columns)
        for point, fold, outcome in search.run(frozenset(outcomes), fits):
            outcomes[point, fold] = outcome
            pieces[f"{point}-{fold}"] = json.dumps(outcome).encode()
            if progress is not None:
                progress(len(outcomes), len(search.points) * n_folds)
    points, results = search.points, search.results(outcomes)
    index = choose_point(results, search.models, rule)
    best = clone(model).set_params(**points[index])
    fitted = best.fit(X, Y, covariates=given) if two else fitted_to(best, X, given)
    text, unidentified = describe_choice(results, index, search.sizes, feature_name)
    return Tuning(points[index], index, float(results["mean_test_score"][index]), fitted, results, text, unidentified)


# The grid


def default_grid(model: SparseGraphSVD | TwoTableModel, shape: tuple[int, int]) -> Parameters:
    """Sizes up to the whole axis where no penalty is set, and smoothness where there is a graph.

    Numbers of samples are tried only if the model has one: otherwise it keeps all of them. For a model of two tables,
    `shape` has the numbers of features of X and of Y, and the ridge is tried where the model has one.
    """
    grid: Parameters = {}
    covariance = model.get_params(deep=False).get("covariance")
    for (axis, name), size in zip(size_names(model).items(), shape, strict=True):
        keeps_all = covariance == "full" or (axis == "row" and model.n_rows is None)
        if getattr(model, f"{axis}_penalty") is None and not keeps_all:
            fewest = min(size, max(_FEWEST, size / (16 if axis == "row" else 64)))
            grid[name] = np.unique(np.geomspace(fewest, size, _N_SIZES).round().astype(int)).tolist()
        if getattr(model, f"{axis}_graph") is not None:
            grid[f"{axis}_smoothness"] = _SMOOTHNESS[model.smoothness_scale]
    return grid | ({"ridge": _RIDGES} if covariance == "ridge" else {})


def _points_of(model: SparseGraphSVD | TwoTableModel, grid: Grid | None, shape: tuple[int, int]) -> list[Parameters]:
    """Every point of a grid (the default one depends on the shape of X), with known parameter names."""
    from sklearn.model_selection import ParameterGrid  # takes long to load

    grid = default_grid(model, shape) if grid is None else grid
    if isinstance(grid, Mapping):
        grid = [grid]
    if not isinstance(grid, (list, tuple)) or not all(isinstance(part, Mapping) for part in grid):
        raise ValueError(f"grid={grid!r}: a dict of lists is needed, or a list of such dicts")
    for name, values in (item for part in grid for item in part.items()):
        if isinstance(values, str) or not (isinstance(values, Sized) and np.iterable(values)):
            raise ValueError(f"grid[{name!r}]={values!r}: a list of values is needed, e.g. [{values!r}]")
        if len(values) == 0:
            raise ValueError(f"grid[{name!r}] is empty: give at least one value, or leave it out")
    points = list(ParameterGrid([{name: list(values) for name, values in part.items()} for part in grid]))
    known = model.get_params(deep=False)
    for point in points:
        point.update({name: value.item() for name, value in point.items() if isinstance(value, np.generic)})
        if unknown := sorted(set(point) - set(known)):
            raise ValueError(
                f"{unknown[0]!r} is no parameter of {type(model).__name__}: choose among {', '.join(known)}"
            )
    if not isinstance(model, TwoTableModel) and any("n_components" in point for point in points):
        raise ValueError(
            "the grid has n_components, but more modules always explain more of held-out data: leave it out; "
            'n_components="auto" or selection.n_modules choose the number'
        )
    if not points or points == [{}]:
        size = list(size_names(model).values())[-1]
        raise ValueError(f"the grid is empty: give at least one value to one parameter, e.g. {{'{size}': [50, 200]}}")
    return points


@contextmanager
def _named(point: Parameters) -> Iterator[None]:
    """Add the point of the grid to error messages."""
    try:
        yield
    except (ValueError, TypeError) as problem:
        shown = ", ".join(f"{name}={value!r}" for name, value in point.items())
        raise type(problem)(f"grid point {shown}: {problem}") from None


# The fits


class _Search:
    """A model per point of the grid, with seeded starts and graphs matched by position, to be fitted without each fold.

    Some samples and some features of one table are held out in each fold, or some samples of two tables.
    """

    def __init__(
        self, model: Any, X: Any, Y: Any, grid: Grid | None, n_folds: int, seed: int, design: Floats | None = None
    ) -> None:
        self.two, names, axes = isinstance(model, TwoTableModel), axis_names(X), size_names(model)
        if self.two:
            names = names[1], axis_names(Y)[1]
            _, X, Y = pairs_by_position(model, X, Y)
            shape, units = (X.shape[1], Y.shape[1]), ("features of X", "features of Y")
            self.held_out: list[Any] = folds(X.shape[0], n_folds, [seed, 0], fewest=_FEWEST_OF_PAIRS)
        else:
            X = validated(clone(model).set_params(row_graph=None, column_graph=None), X, reset=True)
            shape, units = X.shape, ("samples", "")
            rows, columns = folds(shape[0], n_folds, [seed, 0]), folds(shape[1], n_folds, [seed, 1], "features")
            self.held_out = list(zip(rows, columns, strict=True))
        # Of each axis, and of what, by the name of the parameter that selects part of it.
        self.sizes = dict(zip(axes.values(), zip(shape, units, strict=True), strict=True))
        self.columns = ("pairs" if self.two else "modules", *(f"{axis}_share" for axis in axes))  # of an outcome
        self.X, self.Y, self.design = X, Y, design
        self.points, self.models = _points_of(model, grid, shape), list[Any]()
        matched: dict[tuple[str, int], Graph] = {}  # each graph is matched once
        for point in self.points:
            parameters = model.get_params(deep=False) | point | {"n_jobs": None, "verbose": 0}
            with _named(point):
                parameters |= graphs_by_position(parameters, shape, names, matched, tuple(axes))
                self.models.append(seeded(type(model)(**parameters), seed))
                self.models[-1].check(shape)
        for fold in range(0 if self.two else n_folds):
            self._check_fold(fold)

    def _check_fold(self, fold: int) -> None:
        """Raise, before anything is fitted, if a fold of one table does not vary or a model does not suit it."""
        block = Block(self.X, self.held_out[fold], self.design)
        for model, point in zip(self.models, self.points, strict=True) if fold == 0 else ():  # the smallest block
            with _named(point):
                block.training_model(model).check(block.X.shape)
        try:
            for group in self.groups(range(len(self.models))):
                prepared, _ = block.prepare(self.models[group[0]])
                check_varies(prepared.operator.squared_norm, block.X, "fitted")
        except ValueError as problem:
            raise ValueError(f"fold {fold + 1} of {len(self.held_out)}: {problem}") from None

    def groups(self, points: Iterable[int]) -> list[list[int]]:
        """Points that share a prepared matrix."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for point in points:
            model = self.models[point]
            key = (point,) if self.two else tuple(getattr(model, name) for name in _PREPARATION)
            if not self.two and model.diffusion is not None:  # on the graph and, if it is chosen, on other parameters
                key += model.diffusion, id(model.column_graph), point if model.diffusion == "cv" else -1
            groups.setdefault(key, []).append(point)
        return list(groups.values())

    def fits(self, batch: Batch) -> Iterator[Fit]:
        """Fit points that share a prepared matrix to a fold."""
        fold, points = batch
        if self.two:
            yield points[0], fold, self._fit_pairs(self.models[points[0]], self.held_out[fold])
            return
        block = Block(self.X, self.held_out[fold], self.design)
        prepared, score = block.prepare(self.models[points[0]])
        n, p = prepared.operator.shape
        for point in points:
            modules = block.training_model(self.models[point]).modules_of(prepared)
            rows = sum(module.u.support.size for module in modules) / n
            columns = sum(module.v.support.size for module in modules) / p
            yield point, fold, (score(modules), len(modules), rows, columns)

    def _fit_pairs(self, model: TwoTableModel, held_out: Indices) -> Outcome:
        """The score is the mean correlation of all pairs in the fold; pairs that are not found count as 0."""
        rest = complement(held_out, self.X.shape[0])
        parts = [None if self.design is None else self.design[part] for part in (rest, held_out)]
        tables = fill_unobserved(self.X[rest]), fill_unobserved(self.Y[rest])
        fitted = clone(model).fit(*tables, covariates=parts[0])
        scores = fitted.transform(self.X[held_out], self.Y[held_out], covariates=parts[1])
        correlations = paired_correlations(*scores)
        x, y = (float(np.sum(support)) / support.shape[1] for support in (fitted.x_support_, fitted.y_support_))
        return float(correlations.sum()) / fitted.n_components, fitted.n_components_, x, y

    def task(self, seed: int) -> Task:
        """Everything that determines the results, so that an interrupted search is continued only with the same."""
        parameters = []
        for each in (model.get_params(deep=False) for model in self.models):
            graphs = {name: value.weights for name, value in each.items() if isinstance(value, Graph)}
            digests = {name: digest(w.data, w.indices, w.indptr) for name, w in graphs.items()}
            parameters.append(settings_of(each) | digests)
        hashed = hashlib.blake2b(json.dumps(parameters).encode(), digest_size=16).hexdigest()
        tables = {"X": self.X, "Y": self.Y, "covariates": self.design}
        known = {name: values for name, values in tables.items() if values is not None}
        data = {name: digest(*buffers(values), np.array(values.shape)) for name, values in known.items()}
        return Task("tuning", {"n_folds": len(self.held_out)}, {"seed": seed, "model and grid": hashed, **data})

    def run(self, finished: Container[tuple[int, int]], fits: Fits) -> Iterator[Fit]:
        """Every fit but the finished ones; each process holds one fold at a time."""
        batches: list[Batch] = []
        for fold in range(len(self.held_out)):
            remaining = [point for point in range(len(self.points)) if (point, fold) not in finished]
            for group in self.groups(remaining):
                n_batches = min(len(group), 1 if fits.n_parallel == 1 else _BATCHES * fits.n_parallel)
                # Interleaved, because neighbouring points of the grid take about the same time.
                batches += [(fold, group[at::n_batches]) for at in range(n_batches)]
        if fits.n_parallel == 1:  # in this process: each fit is saved when it is finished, not each batch
            return chain.from_iterable(map(self.fits, batches))
        return chain.from_iterable(fits.map(_list_of_fits, self, batches, in_order=False))

    def results(self, known: Mapping[tuple[int, int], Outcome]) -> Results:
        """The outcomes by point and fold as in GridSearchCV.cv_results_."""
        from scipy.stats import rankdata

        points, n_folds = self.points, len(self.held_out)
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
        for name, number in zip(self.columns, range(1, 4), strict=True):
            results[f"mean_{name}"] = outcomes[:, :, number].mean(axis=1)
        return results


def _list_of_fits(search: _Search, batch: Batch) -> list[Fit]:
    return list(search.fits(batch))


class Block:
    """X to fit, and some samples and some features that are held out, each with the fitted part of the other axis."""

    def __init__(self, X: Matrix, held_out: tuple[Indices, Indices], covariates: Floats | None = None) -> None:
        held_rows, held_columns = held_out
        rows, columns = complement(held_rows, X.shape[0]), complement(held_columns, X.shape[1])
        self._shape, self._kept = X.shape, (rows, columns)
        self.X, self._samples, self._features = (
            np.ascontiguousarray(X[np.ix_(*part)]) if isinstance(X, np.ndarray) else X[part[0]][:, part[1]]
            for part in ((rows, columns), (held_rows, columns), (rows, held_columns))
        )
        self._subgraphs: dict[Graph, Graph] = {}
        self._covariates = None if covariates is None else covariates[rows]
        self._held_covariates = None if covariates is None else covariates[held_rows]

    def training_model(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """Sizes in proportion, and the subgraphs of the rows and columns that are fitted."""
        for axis, kept, size in zip(AXES, self._kept, self._shape, strict=True):
            model = for_part(model, axis, kept, size)
            if (graph := getattr(model, f"{axis}_graph")) is not None:
                if graph not in self._subgraphs:
                    self._subgraphs[graph] = graph.subgraph(kept).renamed(None)
                model.set_params(**{f"{axis}_graph": self._subgraphs[graph]})
        return model

    def prepare(self, model: SparseGraphSVD) -> tuple[SearchInput, Callable[[list[Module]], float]]:
        """What models fit, and a function: the variance of held-out samples explained by v, plus of features by u."""
        prepared = self.training_model(model).prepared(self.X, self._covariates)
        held_design, own = None, prepared.design
        if own is not None and prepared.coding is not None:  # encoded like those of the others
            held_design = prepared.coding.encode(self._held_covariates, self._samples.shape[0], None)
        power = clone(model).scaled_for(self._features).scale_power
        scaler = learn_scaler(self._features, model.center, power, own)
        of_samples = explained_share(self._samples, prepared.scaler, "column", held_design)
        of_features = explained_share(self._features, scaler, "row", own)

        def score(modules: list[Module]) -> float:
            u, v = (np.array([getattr(module, side).full() for module in modules]) for side in "uv")
            return of_samples(v) + of_features(u)

        return prepared, score


# The choice


def choose_point(results: Results, models: Sequence[SparseGraphSVD | TwoTableModel], rule: str) -> int:
    """The index of the best point or, for "one_se", of the simplest one within one standard error of it.

    Simplest means fewest members of all modules, as shares of both axes, then least smoothness. The standard error is
    that of the difference to the best point: that of a score itself includes the variation between folds, which all
    points share, and is far too large where few of many samples are members. It is one number for all points, because
    few folds give a poor estimate for each.
    """
    means, axes = results["mean_test_score"], size_names(models[0])
    best = int(means.argmax())
    if rule == "best":
        return best
    within = means >= means[best] - standard_error_of_difference(results)
    members = np.round(sum(results[f"mean_{axis}_share"] for axis in axes), 9)
    smoothness = [
        sum(
            smoothness_of(getattr(model, f"{axis}_smoothness"), model.smoothness_scale)
            for axis in axes
            if getattr(model, f"{axis}_graph") is not None
        )
        for model in models
    ]
    order = np.lexsort((-means, smoothness, members))
    return int(order[within[order]][0])


def _split_scores(results: Results) -> Floats:
    """Scores by point and fold."""
    n_folds = sum(name.startswith("split") for name in results)
    return np.column_stack([results[f"split{fold}_test_score"] for fold in range(n_folds)])


def standard_error_of_difference(results: Results) -> float:
    """Standard error over folds of the difference between the best point and another: the median over the others."""
    scores = _split_scores(results)
    if len(scores) < 2:
        return 0.0
    best = int(results["mean_test_score"].argmax())
    differences = scores[best] - np.delete(scores, best, axis=0)
    return float(np.median(differences.std(axis=1, ddof=1))) / float(np.sqrt(scores.shape[1]))


def describe_choice(
    results: Results, index: int, sizes: Mapping[str, tuple[int, str]], feature_name: str = "feature"
) -> tuple[str, tuple[str, ...]]:
    """What was chosen, the best point if that is another, and the names of sizes that the data do not identify.

    `sizes` are those of the axes and what they consist of ("" for features, which `feature_name` says), by the name of
    the parameter that selects part of each.
    """
    points, means = results["params"], results["mean_test_score"]
    best, of_pairs = int(means.argmax()), "n_x" in sizes
    summary = f"Chosen: {_shown(points[index])} (score {means[index]:.4g}), "
    if index != best:
        summary += (
            f"the simplest of {len(points):,} settings within one standard error of the best, "
            f"{_shown(points[best])} (score {means[best]:.4g})."
        )
    else:
        summary += "the only setting tried." if len(points) == 1 else f"the best of {len(points):,} settings."
    summary += " The score is " + (
        "the correlation of the scores of both tables in held-out samples, averaged over the pairs."
        if of_pairs
        else f"the share of the variance of held-out samples that is explained, plus that of held-out {feature_name}s."
    )
    if of_pairs and means[best] <= 0:
        summary += " No setting finds pairs that are correlated in held-out samples."
    unidentified = []
    for name, (size, units) in sizes.items():
        units = units or f"{feature_name}s"
        # Is the chosen value at an edge of the grid, or does the score increase up to it?
        values = [size if point.get(name) is None else point[name] for point in points]
        tried = sorted(set(values)) if f"param_{name}" in results else []
        peaks = [means[np.equal(values, value)].max() for value in tried]
        rising = bool(np.all(np.diff(peaks) > 0))
        if len(tried) > 1 and (rising or values[index] == tried[-1]):
            largest = f"all {size:,} {units}" if tried[-1] == size else f"{tried[-1]:,} of {size:,} {units}"
            advice = "choose the module size you want to study" if tried[-1] == size else "try larger values"
            unidentified.append(name)
            summary += f" The data do not identify {name}: the best value is the largest tried ({largest}); {advice}."
        elif len(tried) > 1 and values[index] == tried[0] > 1:
            summary += f" The smallest {name} tried is chosen ({tried[0]:,}): try smaller values."
    return summary, tuple(unidentified)


def _shown(point: Parameters) -> str:
    values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in printable(point).items()}
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "the model as given"


def printable(point: Parameters) -> Parameters:
    """A point as shown in tables: values other than numbers and strings by their repr."""
    plain = (int, float, str, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in point.items()}
