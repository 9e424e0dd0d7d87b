"""Automatic choice of sizes, number of modules and smoothness, with the reasons."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Matrix, RandomState, checked, is_sparse, to_dense
from netbic.estimators import AXES, SparseGraphSVD, check_count, has_missing, unwrapped
from netbic.methods import usual_sizes
from netbic.penalties import DIAGNOSTICS, AdaptiveSupport
from netbic.selection.fits import Jobs, executor_for
from netbic.selection.graph_value import GraphValue, graph_value
from netbic.selection.grid import Parameters
from netbic.selection.n_modules import SIZES, n_modules
from netbic.selection.resampling import draw_seed, seeded

_DENSE_ENTRIES = 100_000_000  # a sparse matrix with up to this many entries is made dense, to flip signs
_UNRELIABLE = 0.4  # share of modules without a reliable size above which none is relied on
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
        Whether the data identify the sizes.
    """

    settings: Parameters
    reasons: tuple[str, ...]
    identified: bool


def choose_settings(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    most: int = 10,
    n_permutations: int = 19,
    n_rewired: int = 19,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Chosen:
    """Choose sizes, number of modules and smoothness for a model.

    - Sizes: by `AdaptiveSupport` if it identifies them in at least three of five modules; otherwise 200 features (at
      most a fifth) and a tenth of the samples. Sizes that are set in the model are kept.
    - Number of modules: those that stand out against data with random signs (`n_modules`), at most `most`.
    - Graph: used as a term with the model's own smoothness, or for smoothing the data, if this helps to explain unseen
      samples (`graph_value`; the better one of both), otherwise not. Smoothing is considered if cross-validation
      chooses it (`smoothing="cv"`). Where `AdaptiveSupport` chooses the sizes, it chooses the smoothness as well.

    With the defaults, this takes 222 fits of one module, 2 of up to ten and, if there is a graph, 440 of up to ten to
    four fifths of the samples (or 900 if smoothing is tested, too).

    Parameters
    ----------
    model : SparseGraphSVD
        With the graph, centring and all parameters that are to be kept.
    X : array, DataFrame or sparse matrix
    most : int
        Maximum number of modules.
    n_permutations, n_rewired : int
        See `n_modules` and `graph_value`.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads, or the workers of the current Dask client; the result does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> chosen = netbic.selection.choose_settings(netbic.SparseGraphSVD(center=None), toy.X, random_state=0)
    >>> chosen.settings
    {'row_penalty': AdaptiveSupport(), 'column_penalty': AdaptiveSupport(), 'n_components': 1}
    >>> print(chosen.reasons[1])
    Number of modules, compared with data with random signs: 1 module stands out; the next does not (p = ...).
    """
    check_count("most", most)
    executor_for(X, n_jobs)  # bad n_jobs, and Dask arrays, are refused before anything is fitted
    seed = draw_seed(random_state)
    model = seeded(unwrapped(model), seed)
    X = checked(X, missing=model.missing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about trial fits; the final fit gives its own
        dense = _dense(X)
        model.prepared(X)  # bad data are refused before anything is fitted
        return _Chooser(model, X, dense, most, n_permutations, n_rewired, seed, n_jobs).choose()


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


class _Unreliable(Exception):
    """Why `AdaptiveSupport` cannot choose the sizes."""


@dataclass(frozen=True)
class _Chooser:
    """A model, data (`dense` is X as an array), and the options of `choose_settings`."""

    model: SparseGraphSVD
    X: Matrix
    dense: Array
    most: int
    n_permutations: int
    n_rewired: int
    seed: int
    n_jobs: Jobs

    def choose(self) -> Chosen:
        """Adaptive sizes where the data identify them, otherwise the sizes of the model or default ones."""
        steps, identified = self._steps()
        if self.model.row_graph is not None:
            steps.append(_Step({}, "Sample graph: used as given; whether it helps was not tested."))
        settings = {name: value for step in steps for name, value in step.settings.items()}
        return Chosen(settings, tuple(step.reason for step in steps), identified)

    def _steps(self) -> tuple[list[_Step], bool]:
        if any(getattr(self.model, name) is not None for name in SIZES):
            return self._with_fixed_sizes(None), False
        try:
            self._check_adaptive()
            return self._with_adaptive_sizes(), True
        except _Unreliable as reason:
            return self._with_fixed_sizes(str(reason)), False

    def _check_adaptive(self) -> None:
        """Raise _Unreliable if `AdaptiveSupport` cannot be used with this model."""
        model = self.model
        for size, noun in zip(self.dense.shape, ("samples", "features"), strict=True):
            if size < AdaptiveSupport.smallest:
                raise _Unreliable(f"there are only {size} {noun}")
        has_graph = model.row_graph is not None or model.column_graph is not None
        if has_graph and (model.signs == "signed" or "laplacian" in model.graph_term):
            raise _Unreliable(f"with signs={model.signs!r} and graph_term={model.graph_term!r} they cannot be chosen")
        if model.solver == "monotone":
            raise _Unreliable("solver='monotone' cannot choose them")

    def _with_adaptive_sizes(self) -> list[_Step]:
        """Sizes, number of modules and graph; features that differ in noise are scaled."""
        settings: Parameters = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport()}
        for axis in AXES:
            if getattr(self.model, f"{axis}_smoothness"):  # chosen by the penalty, unless it is 0
                settings[f"{axis}_smoothness"] = None
        adaptive = clone(self.model).set_params(n_components=1, **settings)
        if _problem(adaptive.fit(self.X)) == "heteroscedastic" and not self.model.scale:
            settings["scale"] = True
            adaptive.set_params(scale=True).fit(self.X)
        _check_reliable(adaptive)
        number = self._number(clone(self.model).set_params(scale=adaptive.scale))
        if not number.settings:
            raise _Unreliable(DIAGNOSTICS["weak"])
        _check_reliable(adaptive.set_params(**number.settings).fit(self.X))
        number = _without_weak(adaptive, number)
        kept = slice(number.settings["n_components"])
        steps = [_Step(settings, _adaptive_sizes(adaptive, kept, "scale" in settings)), number]
        if self.model.column_graph is not None:
            used = (adaptive.choices_.query("axis == 'columns'")["sigma"] > 0)[kept]
            steps.append(
                _Step({}, f"Graph: used in {used.sum()} of {used.size} modules, where it improves the likelihood.")
            )
        return steps

    def _with_fixed_sizes(self, unreliable: str | None) -> list[_Step]:
        """The model's sizes, or defaults for those it leaves open; number of modules and graph."""
        sizes = self._fixed_sizes(unreliable)
        model = clone(self.model).set_params(**sizes.settings)
        number = self._number(model)
        if not number.settings:
            number = _Step({"n_components": 1}, f"{number.reason} One module is fitted anyway; it is probably noise.")
        model.set_params(**number.settings)
        return [sizes, number] + ([] if model.column_graph is None else [self._graph(model)])

    def _fixed_sizes(self, unreliable: str | None) -> _Step:
        usual = dict(zip(("n_rows", "n_columns"), usual_sizes(*self.dense.shape), strict=True))
        settings = {
            f"n_{axis}s": usual[f"n_{axis}s"]
            for axis in AXES
            if getattr(self.model, f"n_{axis}s") is None and getattr(self.model, f"{axis}_penalty") is None
        }
        nouns = {"n_rows": "samples", "n_columns": "features"}
        defaults = " and ".join(f"{settings[name]} {noun}" for name, noun in nouns.items() if name in settings)
        if unreliable is None:
            default = f", and the default of {defaults} per module" if defaults else ""
            return _Step(settings, f"Sizes: as given{default}.")
        return _Step(
            settings,
            f"Sizes: the data do not identify them ({unreliable}); {defaults} per module are used. Choose other sizes "
            "to see smaller or larger modules.",
        )

    def _number(self, model: SparseGraphSVD) -> _Step:
        """The number of modules that stand out; no settings if there are none."""
        count = n_modules(
            model, self.dense, most=self.most, n_permutations=self.n_permutations, random_state=self.seed,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        reason = (
            f"Number of modules, compared with data with random signs: {count.verdict[0].lower()}{count.verdict[1:]}"
        )
        return _Step({"n_components": count.n} if count.n else {}, reason)

    def _graph(self, model: SparseGraphSVD) -> _Step:
        """The model's smoothness if the graph helps, otherwise 0."""
        unused: Parameters = {"column_smoothness": 0.0} | ({} if model.smoothing is None else {"smoothing": None})
        n_samples = self.dense.shape[0]
        if n_samples < _MIN_SAMPLES:
            return _Step(unused, "Graph: not used (smoothness 0); there are too few samples to test whether it helps.")
        uses = [(use, self._value(clone(model).set_params(**use))) for use in self._uses(model)]
        if not uses:
            return _Step(unused, "Graph: not used; smoothing does not help to explain samples that were left out.")
        settings, value = max(uses, key=lambda use: (use[1].helps, use[1].share))
        if not value.helps:
            return _Step(unused, f"Graph: not used (smoothness 0). {uses[0][1].verdict}")
        how = f" to smooth the data (smoothing {settings['smoothing']:g})" if settings else ""
        reason = f"Graph: used{how}. {value.verdict}"
        if hubs := " and ".join(f"module {k}" for k in value.degree.loc[value.degree["tracks"], "module"]):
            reason += f" In {hubs}, membership is correlated with the number of neighbours: interpret with care."
        return _Step(settings, reason)

    def _value(self, model: SparseGraphSVD) -> GraphValue:
        return graph_value(
            model, self.X, n_rewired=self.n_rewired, n_folds=min(5, self.dense.shape[0] // 2), random_state=self.seed,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def _uses(self, model: SparseGraphSVD) -> list[Parameters]:
        """Uses of the graph to be tested: as a term, and for smoothing if cross-validation chooses any."""
        as_term: list[Parameters] = [{}] if model.smoothing is None else []
        if has_missing(self.X):
            return as_term
        trial = clone(model).set_params(smoothing=model.smoothing or "cv", column_smoothness=None, n_jobs=None)
        weight = float(trial.fit(self.dense if is_sparse(self.X) else self.X).smoothing_)
        return as_term + ([{"smoothing": weight, "column_smoothness": None}] if weight else [])


def _adaptive_sizes(fitted: SparseGraphSVD, kept: slice, scaled: bool) -> str:
    ranges = []
    for members in (fitted.rows_, fitted.columns_):
        low, high = np.sort(members[kept].sum(axis=1))[[0, -1]]
        ranges.append(str(low) if low == high else f"{low} to {high}")
    after = " after scaling the features, whose noise differs" if scaled else ""
    return f"Sizes: the data identify them{after} ({ranges[0]} samples and {ranges[1]} features per module)."


def _diagnostics(fitted: SparseGraphSVD) -> pd.Series[str]:
    """The first diagnostic of each module, samples before features; empty where the size is reliable."""
    by_module = fitted.choices_.groupby("module")["diagnostic"]
    return by_module.agg(lambda found: next((each for each in found if each), ""))


def _without_weak(fitted: SparseGraphSVD, number: _Step) -> _Step:
    """Drop the last modules if they are no stronger than noise: a test at level 0.05 lets some through."""
    found = _diagnostics(fitted).tolist()
    kept = len(found)
    while kept > 1 and found[kept - 1] == "weak":
        kept -= 1
    if kept == len(found):
        return number
    dropped = "The last one is" if kept == len(found) - 1 else f"The last {len(found) - kept} are"
    return _Step({"n_components": kept}, f"{number.reason} {dropped} left out, being no stronger than noise.")


def _problem(fitted: SparseGraphSVD) -> str:
    """The most frequent diagnostic if too many modules have one; otherwise empty."""
    found = _diagnostics(fitted)
    unreliable = found[found != ""]
    if found.size and len(unreliable) <= _UNRELIABLE * found.size:
        return ""
    return str(unreliable.mode().iloc[0]) if len(unreliable) else "collapsed"


def _check_reliable(fitted: SparseGraphSVD) -> None:
    if problem := _problem(fitted):
        axes = fitted.choices_.loc[fitted.choices_["diagnostic"] == problem, "axis"]
        noun = "sample" if (axes == "rows").sum() > len(axes) / 2 else "feature"
        raise _Unreliable(DIAGNOSTICS[problem].format(axis=noun))


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
    ((50, 50), (100, 1))
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

    def fit(self, X: Matrix, y: object = None) -> Self:
        """Choose parameters and fit with them."""
        model = SparseGraphSVD() if self.estimator is None else self.estimator
        options = self.get_params(deep=False)
        del options["estimator"]
        chosen = choose_settings(model, X, **options)
        self.best_params_, self.reasons_ = chosen.settings, chosen.reasons
        self.best_estimator_ = clone(model).set_params(**chosen.settings).fit(X)
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features; as in scikit-learn, there is no such attribute if X had no names."""
        names: Array = self.best_estimator_.feature_names_in_
        return names

    def transform(self, X: Matrix) -> Array:
        """Scores of samples on the modules, as `SparseGraphSVD.transform` gives them."""
        check_is_fitted(self)
        scores: Array = self.best_estimator_.transform(X)
        return scores

    def score(self, X: Matrix, y: object = None) -> float:
        """Share of variance explained, as `SparseGraphSVD.score` gives it."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.best_estimator_.n_components_)
