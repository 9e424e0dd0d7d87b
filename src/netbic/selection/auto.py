"""Automatic choice of sizes, number of modules and smoothness, with the reasons."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Matrix, RandomState, checked, is_sparse, to_dense
from netbic.estimators.covariates import covariates_of
from netbic.estimators.inputs import has_missing
from netbic.estimators.parameters import check_count
from netbic.estimators.svd import SparseGraphSVD, unwrapped
from netbic.methods import usual_settings, why_not_adaptive
from netbic.penalties import DIAGNOSTICS
from netbic.selection.fits import Fits, Jobs, Progress, local_jobs
from netbic.selection.graph_value import graph_value
from netbic.selection.n_modules import n_modules
from netbic.selection.resampling import Parameters, draw_seed, fitted_to, seeded

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
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
    feature_name: str = "feature",
) -> Chosen:
    """Choose sizes, number of modules and smoothness for a model.

    - Sizes: all samples are kept; the number of features is that which `AdaptiveSupport` identifies, module by module,
      and where it does not 1.5% of the features, 50 to 200, but at most a fifth of them. Features that differ in their
      noise are scaled if this makes sizes identifiable. Sizes that are set in the model are kept.
    - Number of modules: those that stand out against data with random signs (`n_modules`), at most `most`.
    - Graph: used as a term with the model's own smoothness, or for diffusion, if this helps to explain unseen
      samples (`graph_value`; the better one of both), otherwise not. Diffusion is considered if cross-validation
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
        Called after each fit of `n_modules` and of `graph_value`, as by these functions.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads (default: all cores, unless X is small), or the workers of the current Dask client; the result does not
        depend on it.
    feature_name : str
        The word for features in the reasons.

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
    Fits(X, n_jobs)  # bad n_jobs, and Dask arrays, are refused before anything is fitted
    seed = draw_seed(random_state)
    model = unwrapped(model)
    given = covariates_of(model, X, covariates)
    model = seeded(model, seed)
    X = checked(X, missing=model.missing)
    if is_sparse(X) and X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
        raise ValueError(
            f"X is sparse, and {X.shape[0]:,} x {X.shape[1]:,} are too many entries to make dense: choose settings on "
            "fewer features (e.g. the most variable ones) or set them yourself"
        )
    options = {"covariates": given, "progress": progress, "random_state": seed, "n_jobs": n_jobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about trial fits; the final fit gives its own
        model.prepared(X, given)  # bad data are refused before anything is fitted
        return _choose(model, X, {"most": most, "n_permutations": n_permutations}, n_rewired, options, feature_name)


def _choose(
    model: SparseGraphSVD, X: Matrix, limits: Any, n_rewired: int, options: dict[str, Any], feature_name: str
) -> Chosen:
    """Sizes as the data identify them (or as the model states them), number of modules and graph."""
    dense, covariates = to_dense(X), options["covariates"]
    settings: Parameters = {}
    sizes, adaptive, identified = "Sizes: as given.", False, False
    if model.n_columns is None and model.column_penalty is None:
        settings = usual_settings(dense.shape, model)
        if problem := why_not_adaptive(dense.shape, model):
            sizes = _not_identified(problem, settings["n_columns"], feature_name)
        else:
            adaptive = True
    trial = clone(model).set_params(**settings)
    if adaptive and not model.scale:
        # If features differ in noise, so that the first module has no size: does it have one if they are scaled?
        differ = _first_diagnostic(trial, X, covariates, scale=False) == ["heteroscedastic"]
        if differ and _first_diagnostic(trial, X, covariates, scale=True) == [""]:
            settings["scale"] = True
            trial.set_params(scale=True)
    count = n_modules(trial, dense, **limits, **options)
    n = max(count.n, 1)
    number = f"Number of modules, compared with data with random signs: {count.verdict[0].lower()}{count.verdict[1:]}"
    if not count.n:
        number += " One module is fitted anyway; it is probably noise."
    graph: tuple[Parameters, str] | None = None
    if not adaptive:
        if model.column_graph is not None:
            graph = _use_graph(trial.set_params(n_components=n), X, dense, n_rewired, options)
    else:
        choices = fitted_to(trial.set_params(n_components=n), X, covariates).choices_.query("axis == 'columns'")
        kept, diagnostics = len(choices), choices["diagnostic"].tolist()
        while count.n and kept > 1 and diagnostics[kept - 1] == "weak":  # a test at level 0.05 lets some through
            kept -= 1
        if weak := len(choices) - kept:
            n, choices = kept, choices.iloc[:kept]
            dropped = "The last one is" if weak == 1 else f"The last {weak} are"
            number += f" {dropped} left out, being no stronger than noise."
        own, penalty = choices[choices["diagnostic"] == ""], settings["column_penalty"]
        sizes = _sizes_in_words(choices, penalty.fallback, "scale" in settings, feature_name)
        identified = count.n > 0 and 2 * len(own) > len(choices)
        if model.column_graph is not None and count.n and len(own) == len(choices):
            used = f"Graph: used in {int((own['sigma'] > 0).sum())} of {len(choices)} modules"
            graph = {}, f"{used}, where it improves the likelihood."
        elif model.column_graph is not None:
            fixed = {"column_penalty": penalty.when_unreliable()}  # for which the graph is judged
            graph = _use_graph(trial.set_params(n_components=n, **fixed), X, dense, n_rewired, options)
            if graph[0].get("diffusion"):  # then `why_not_adaptive` has a reason
                size = f"Smoothed data do not identify sizes: all modules contain {penalty.fallback} {feature_name}s."
                graph, identified = (graph[0] | fixed, f"{graph[1]} {size}"), False
    settings, reasons = settings | {"n_components": n}, [sizes, number]
    if graph is not None:
        settings |= graph[0]
        reasons.append(graph[1])
    if model.row_graph is not None:
        reasons.append("Sample graph: used as given; whether it helps was not tested.")
    return Chosen(settings, tuple(reasons), identified)


def _first_diagnostic(model: SparseGraphSVD, X: Matrix, covariates: Any, scale: bool) -> list[str]:
    """Why the data do not identify the size of the first module; "" if they do."""
    fitted = fitted_to(clone(model).set_params(n_components=1, scale=scale), X, covariates)
    return list(fitted.choices_["diagnostic"])


def _use_graph(
    model: SparseGraphSVD, X: Matrix, dense: Array, n_rewired: int, options: dict[str, Any]
) -> tuple[Parameters, str]:
    """The model's smoothness, or diffusion, if the graph helps, otherwise 0; and the reason."""
    unused: Parameters = {"column_smoothness": 0.0} | ({} if model.diffusion is None else {"diffusion": None})
    n_samples = dense.shape[0]
    if n_samples < _MIN_SAMPLES:
        return unused, "Graph: not used (smoothness 0); there are too few samples to test whether it helps."
    uses: list[Parameters] = [{}] if model.diffusion is None else []  # as a term
    if not has_missing(X):
        trial = clone(model).set_params(
            diffusion=model.diffusion or "cv", column_smoothness=None, n_jobs=local_jobs(X, options["n_jobs"])
        )
        weight = float(trial.prepared(dense if is_sparse(X) else X, options["covariates"]).diffusion)
        uses += [{"diffusion": weight, "column_smoothness": None}] if weight else []
    options = options | {"n_rewired": n_rewired, "n_folds": min(5, n_samples // 2)}
    values = [graph_value(clone(model).set_params(**use), X, **options) for use in uses]
    if not uses:
        return unused, "Graph: not used; diffusion does not help to explain samples that were left out."
    settings, value = max(zip(uses, values, strict=True), key=lambda each: (each[1].helps, each[1].share))
    if not value.helps:
        return unused, f"Graph: not used (smoothness 0). {values[0].verdict}"
    how = f" to smooth the data (diffusion {settings['diffusion']:g})" if settings else ""
    reason = f"Graph: used{how}. {value.verdict}"
    if hubs := " and ".join(f"module {k}" for k in value.degree.loc[value.degree["tracks"], "module"]):
        reason += f" In {hubs}, membership is correlated with the number of neighbours: interpret with care."
    return settings, reason


def _sizes_in_words(choices: pd.DataFrame, fallback: int, scaled: bool, feature_name: str) -> str:
    """Where the sizes in `choices_` come from; `fallback` is that of modules whose size the data do not identify."""
    identified = choices[choices["diagnostic"] == ""]
    found = [key for key in DIAGNOSTICS if key in set(choices["diagnostic"])]
    problems = "; ".join(DIAGNOSTICS[key].format(axis=feature_name) for key in found)
    if identified.empty:
        return _not_identified(problems or DIAGNOSTICS["weak"], fallback, feature_name)
    low, high = identified["size"].min(), identified["size"].max()
    features = f"{low if low == high else f'{low} to {high}'} {feature_name}s"
    after = f" after scaling the {feature_name}s, whose noise differs" if scaled else ""
    if len(identified) == len(choices):
        return f"Sizes: the data identify them{after} ({features} per module; all samples are kept)."
    return (
        f"Sizes: identified in {len(identified)} of {len(choices)} modules{after} ({features}); "
        f"{fallback} {feature_name}s in the others ({problems})."
    )


def _not_identified(problem: str, n_columns: int, feature_name: str) -> str:
    return (
        f"Sizes: the data do not identify them ({problem}); {n_columns} {feature_name}s per module are used. Choose "
        "another size to see smaller or larger modules."
    )


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
