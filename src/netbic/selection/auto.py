"""Automatic choice of sizes, number of modules and smoothness, with the reasons."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Matrix, RandomState, checked, is_sparse, to_dense
from netbic.estimators import Design, SparseGraphSVD, check_count, covariates_of, has_missing, unwrapped
from netbic.methods import usual_settings, why_not_adaptive
from netbic.selection.finished import Finished
from netbic.selection.fits import Jobs, executor_for, local_jobs
from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.grid import Parameters
from netbic.selection.identified_sizes import Sizes, not_identified
from netbic.selection.n_modules import n_modules
from netbic.selection.resampling import draw_seed, fitted_to, seeded

StageProgress = Callable[[str, int, int], object]

_DENSE_ENTRIES = 100_000_000  # a sparse matrix with up to this many entries is made dense, to flip signs
_MIN_SAMPLES = 4  # for folds of two samples each


@dataclass(frozen=True)
class Chosen:
    """Chosen parameters and the reasons for them.

    Attributes
    ----------
    settings : dict
        Parameters for `SparseGraphSVD.set_params`.
    reasons : tuple of str
        A sentence or two each on sizes, number of modules and graph.
    identified : bool
        Whether the data identify the sizes of most modules.
    """

    settings: Parameters
    reasons: tuple[str, ...]
    identified: bool


def choose_settings(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    covariates: Any = None,
    most: int = 10,
    n_permutations: int = 19,
    n_rewired: int = 19,
    progress: StageProgress | None = None,
    finished: Finished | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Chosen:
    """Choose sizes, number of modules and smoothness for a model.

    - Sizes: all samples are kept; the number of features is that which `AdaptiveSupport` identifies, module by module,
      and where it does not 1.5% of the features, 50 to 200, but at most a fifth of them. Features that differ in their
      noise are scaled if this makes sizes identifiable. Sizes that are set in the model are kept.
    - Number of modules: those that stand out against data with random signs (`n_modules`), at most `most`.
    - Graph: used as a term with the model's own smoothness, or for diffusion of the data, if this helps to explain
      unseen samples (`graph_value`; the better one of both), otherwise not. Diffusion is considered if cross-validation
      chooses it (`diffusion="cv"`). If `AdaptiveSupport` identifies all sizes, it chooses the smoothness as well.

    With the defaults, this takes 4 to 200 fits of one module for the number of modules (usually 25 to 50) and, if there
    is a graph and the data do not identify all sizes, 6 to 54 fits for the weight of the diffusion, and 10 to 420 fits
    of all modules to four fifths of the samples (twice as many if cross-validation suggests diffusion): usually 10 to
    40 if the graph does not help, and 65 to 140 if it does.

    Parameters
    ----------
    model : SparseGraphSVD
        With the graph, centring and all parameters that are to be kept.
    X : array, DataFrame or sparse matrix
    covariates : as for `SparseGraphSVD.fit`, optional
        Default: those of the model, if it was fitted to X.
    most : int
        Maximum number of modules.
    n_permutations, n_rewired : int
        See `n_modules` and `graph_value`.
    progress : function, optional
        Called when a stage begins and after each fit, in the calling thread, with the name of the stage ("sizes",
        "number", "diffusion" or "graph"), the number of its finished fits and the number of all its fits, as far as it
        is known. "sizes" counts modules; it begins again when their number is known.
    finished : mutable mapping, optional
        Results of finished fits: those in it are not computed again, others are added. If it is stored somewhere, an
        interrupted choice can be continued; data and parameters must then be the same.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads (default: all cores, unless X is small), or the workers of the current Dask client; the result does not
        depend on it.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> chosen = netbic.selection.choose_settings(netbic.SparseGraphSVD(center=None), toy.X, random_state=0)
    >>> chosen.settings
    {'column_penalty': AdaptiveSupport(clip=None, fallback=20), 'n_components': 1}
    >>> print(chosen.reasons[1])
    Number of modules, compared with data with random signs: ...
    """
    check_count("most", most)
    executor_for(X, n_jobs)  # bad n_jobs, and Dask arrays, are refused before anything is fitted
    seed = draw_seed(random_state)
    model = unwrapped(model)
    given = covariates_of(model, X, covariates)
    model = seeded(model, seed)
    X = checked(X, missing=model.missing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about trial fits; the final fit gives its own
        dense = _dense(X)
        model.prepared(X, given)  # bad data are refused before anything is fitted
        numbers = (most, n_permutations, n_rewired, seed)
        return _Chooser(model, X, dense, given, *numbers, n_jobs, progress or _silent, finished).choose()


def _silent(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def _dense(X: Matrix) -> Array:
    """X as an array whose signs can be flipped."""
    if is_sparse(X) and X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
        shape = f"{X.shape[0]:,} x {X.shape[1]:,}"
        raise ValueError(
            f"X is sparse, and {shape} are too many entries to make dense: choose settings on fewer features "
            "(e.g. the most variable ones) or set them yourself"
        )
    return to_dense(X)


class _Step(NamedTuple):
    """Parameters, and the reason for them."""

    settings: Parameters
    reason: str


@dataclass(frozen=True)
class _Chooser:
    """A model, data (`dense` is X as an array), and the options of `choose_settings`."""

    model: SparseGraphSVD
    X: Matrix
    dense: Array
    covariates: Design | None
    most: int
    n_permutations: int
    n_rewired: int
    seed: int
    n_jobs: Jobs
    progress: StageProgress
    finished: Finished | None

    def choose(self) -> Chosen:
        """Sizes as the data identify them (or as the model states them), number of modules and graph."""
        steps, identified = self._steps()
        if self.model.row_graph is not None:
            steps.append(_Step({}, "Sample graph: used as given; whether it helps was not tested."))
        settings = {name: value for step in steps for name, value in step.settings.items()}
        return Chosen(settings, tuple(step.reason for step in steps), identified)

    def _steps(self) -> tuple[list[_Step], bool]:
        if self.model.n_columns is not None or self.model.column_penalty is not None:
            return self._with_fixed_sizes(_Step({}, "Sizes: as given.")), False
        settings = usual_settings(self.dense.shape, self.model)
        if reason := why_not_adaptive(self.dense.shape, self.model):
            return self._with_fixed_sizes(_Step(settings, not_identified(reason, settings["n_columns"]))), False
        return self._with_adaptive_sizes(settings)

    def _with_adaptive_sizes(self, settings: Parameters) -> tuple[list[_Step], bool]:
        """Sizes as the data identify them, number of modules and graph; and whether most sizes are identified."""
        penalty = settings["column_penalty"]
        model = clone(self.model).set_params(n_components=1, **settings)
        self.progress("sizes", 0, self.most)
        if self._needs_scaling(model):
            settings["scale"] = True
        model.set_params(**settings)
        number = self._number(model)
        stands_out = bool(number.settings)
        if not stands_out:
            number = _Step({"n_components": 1}, f"{number.reason} One module is fitted anyway; it is probably noise.")
        self.progress("sizes", 0, number.settings["n_components"])
        fitted = self._fitted(model.set_params(**number.settings))
        self.progress("sizes", model.n_components, model.n_components)
        number = _without_weak(fitted, number) if stands_out else number
        model.set_params(**number.settings)
        sizes = Sizes.of(fitted, number.settings["n_components"], penalty.fallback)
        steps = [_Step(settings, sizes.reason(scaled="scale" in settings)), number]
        identified = stands_out and 2 * sizes.n_identified > sizes.n
        if self.model.column_graph is None:
            return steps, identified
        if stands_out and sizes.n_identified == sizes.n:
            return [*steps, _Step({}, sizes.graph_reason)], identified
        fixed = {"column_penalty": penalty.when_unreliable()}  # for which the graph is judged
        graph = self._graph(model.set_params(**fixed))
        if graph.settings.get("diffusion"):  # then `why_not_adaptive` has a reason
            size = f"Smoothed data do not identify sizes: all modules contain {penalty.fallback} features."
            return [*steps, _Step(graph.settings | fixed, f"{graph.reason} {size}")], False
        return [*steps, graph], identified

    def _needs_scaling(self, model: SparseGraphSVD) -> bool:
        """Whether the first module has no size because features differ in noise, and has one if they are scaled."""
        if self.model.scale or self._fitted(clone(model)).choices_["diagnostic"].tolist() != ["heteroscedastic"]:
            return False
        scaled = self._fitted(clone(model).set_params(scale=True))
        return bool(scaled.choices_["diagnostic"].tolist() == [""])

    def _fitted(self, model: SparseGraphSVD) -> SparseGraphSVD:
        return fitted_to(model, self.X, self.covariates)

    def _with_fixed_sizes(self, sizes: _Step) -> list[_Step]:
        """The given sizes, number of modules and graph."""
        model = clone(self.model).set_params(**sizes.settings)
        number = self._number(model)
        if not number.settings:
            number = _Step({"n_components": 1}, f"{number.reason} One module is fitted anyway; it is probably noise.")
        model.set_params(**number.settings)
        self.progress("sizes", model.n_components, model.n_components)
        return [sizes, number] + ([] if model.column_graph is None else [self._graph(model)])

    def _number(self, model: SparseGraphSVD) -> _Step:
        """The number of modules that stand out; no settings if there are none."""
        number, verdict = self._once("number", lambda: self._counted(model))
        reason = f"Number of modules, compared with data with random signs: {verdict[0].lower()}{verdict[1:]}"
        return _Step({"n_components": number} if number else {}, reason)

    def _counted(self, model: SparseGraphSVD) -> tuple[int, str]:
        self.progress("number", 0, self.most)
        count = n_modules(
            model, self.dense, covariates=self.covariates, most=self.most, n_permutations=self.n_permutations,
            progress=partial(self.progress, "number"), finished=self.finished, random_state=self.seed,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        return count.n, count.verdict

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        """The result of a step as JSON: of a choice that was interrupted after it, or a new one."""
        if self.finished is None:
            return compute()
        if name not in self.finished:
            self.finished[name] = json.dumps(compute())
        return json.loads(self.finished[name])

    def _graph(self, model: SparseGraphSVD) -> _Step:
        """The model's smoothness if the graph helps, otherwise 0."""
        unused: Parameters = {"column_smoothness": 0.0} | ({} if model.diffusion is None else {"diffusion": None})
        n_samples = self.dense.shape[0]
        if n_samples < _MIN_SAMPLES:
            return _Step(unused, "Graph: not used (smoothness 0); there are too few samples to test whether it helps.")
        uses = [(use, self._value(clone(model).set_params(**use))) for use in self._uses(model)]
        if not uses:
            return _Step(unused, "Graph: not used; diffusion does not help to explain samples that were left out.")
        settings, value = max(uses, key=lambda use: (use[1].helps, use[1].share))
        if not value.helps:
            return _Step(unused, f"Graph: not used (smoothness 0). {uses[0][1].verdict}")
        how = f" to smooth the data (diffusion {settings['diffusion']:g})" if settings else ""
        reason = f"Graph: used{how}. {value.verdict}"
        if hubs := " and ".join(f"module {k + 1}" for k in value.degree.loc[value.degree["tracks"], "module"]):
            reason += f" In {hubs}, membership is correlated with the number of neighbours: interpret with care."
        return _Step(settings, reason)

    def _value(self, model: SparseGraphSVD) -> GraphValue:
        self.progress("graph", 0, 2)
        return graph_value(
            model, self.X, covariates=self.covariates, n_rewired=self.n_rewired,
            n_folds=min(5, self.dense.shape[0] // 2), progress=partial(self.progress, "graph"),
            finished=self.finished, random_state=self.seed, n_jobs=self.n_jobs,
        )  # fmt: skip

    def _uses(self, model: SparseGraphSVD) -> list[Parameters]:
        """Uses of the graph to be tested: as a term, and for diffusion if cross-validation chooses any."""
        as_term: list[Parameters] = [{}] if model.diffusion is None else []
        if has_missing(self.X):
            return as_term
        self.progress("diffusion", 0, 1)
        weight = self._once("diffusion", lambda: self._diffusion(model))
        self.progress("diffusion", 1, 1)
        return as_term + ([{"diffusion": weight, "column_smoothness": None}] if weight else [])

    def _diffusion(self, model: SparseGraphSVD) -> float:
        """The weight that cross-validation chooses."""
        n_jobs = local_jobs(self.X, self.n_jobs)
        trial = clone(model).set_params(diffusion=model.diffusion or "cv", column_smoothness=None, n_jobs=n_jobs)
        return float(trial.prepared(self.dense if is_sparse(self.X) else self.X, self.covariates).diffusion)


def _without_weak(fitted: SparseGraphSVD, number: _Step) -> _Step:
    """Drop the last modules if they are no stronger than noise: a test at level 0.05 lets some through."""
    found = fitted.choices_.query("axis == 'columns'")["diagnostic"].tolist()
    kept = len(found)
    while kept > 1 and found[kept - 1] == "weak":
        kept -= 1
    if kept == len(found):
        return number
    dropped = "The last one is" if kept == len(found) - 1 else f"The last {len(found) - kept} are"
    return _Step({"n_components": kept}, f"{number.reason} {dropped} left out, being no stronger than noise.")


class AutoSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A SparseGraphSVD that chooses its own parameters by `choose_settings`.

    Once fitted, it can be used wherever a fitted model can (`netbic.save`, enrichment, plots, ...): its
    `best_estimator_` is then used.

    Parameters
    ----------
    estimator : SparseGraphSVD, optional
        With the graph, centring and all parameters that are to be kept.
    most, n_permutations, n_rewired, random_state, n_jobs
        As for `choose_settings`.

    Attributes
    ----------
    best_estimator_ : SparseGraphSVD
        Fitted with the chosen parameters.
    best_params_ : dict
    reasons_ : tuple of str
    feature_names_in_, n_features_in_
        Those of `best_estimator_`.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.02, random_state=0)
    >>> auto = netbic.selection.AutoSVD(netbic.SparseGraphSVD(center=None), random_state=0).fit(toy.X)
    >>> auto.best_estimator_.get_shape(0), auto.transform(toy.X).shape
    ((100, 50), (100, 1))
    """

    def __init__(
        self,
        estimator: SparseGraphSVD | None = None,
        *,
        most: int = 10,
        n_permutations: int = 19,
        n_rewired: int = 19,
        random_state: RandomState = None,
        n_jobs: Jobs = None,
    ) -> None:
        self.estimator = estimator
        self.most = most
        self.n_permutations = n_permutations
        self.n_rewired = n_rewired
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Matrix, y: object = None, *, covariates: Any = None) -> Self:
        """Choose parameters and fit with them; `covariates` as for `SparseGraphSVD.fit`."""
        model = SparseGraphSVD() if self.estimator is None else self.estimator
        options = self.get_params(deep=False)
        del options["estimator"]
        chosen = choose_settings(model, X, covariates=covariates, **options)
        self.best_params_, self.reasons_ = chosen.settings, chosen.reasons
        self.best_estimator_ = fitted_to(clone(model).set_params(**chosen.settings), X, covariates)
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features; as in scikit-learn, there is no such attribute if X had no names."""
        names: Array = self.best_estimator_.feature_names_in_
        return names

    def fit_transform(self, X: Matrix, y: object = None, *, covariates: Any = None) -> Array:
        """Fit, and return the scores of the same samples."""
        scores: Array = self.fit(X, y, covariates=covariates).transform(X, covariates=covariates)
        return scores

    def transform(self, X: Matrix, *, covariates: Any = None) -> Array:
        """Scores of samples on the modules, as `SparseGraphSVD.transform` gives them."""
        check_is_fitted(self)
        scores: Array = self.best_estimator_.transform(X, covariates=covariates)
        return scores

    def score(self, X: Matrix, y: object = None, *, covariates: Any = None) -> float:
        """Share of variance explained, as `SparseGraphSVD.score` gives it."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, covariates=covariates))

    @property
    def _n_features_out(self) -> int:
        return int(self.best_estimator_.n_components_)
