"""Settings a newcomer can trust: chosen where the data identify them, stated where they do not, with the reasons."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import checked
from netbic.estimators import SparseGraphSVD, check_count, refuse_anndata, unwrapped
from netbic.methods import usual_sizes
from netbic.penalties import DOUBTS, AdaptiveSupport
from netbic.selection.fits import Jobs, fitters
from netbic.selection.graph_value import graph_value
from netbic.selection.n_modules import n_modules
from netbic.selection.resampling import seeded

_DENSE_ENTRIES = 100_000_000  # up to so many entries a sparse matrix is written out, to be permuted
_DOUBTED = 0.4  # share of modules without a size to rely on above which none is relied on
_SIZES = ("n_rows", "n_columns", "row_penalty", "column_penalty")


@dataclass(frozen=True)
class Chosen:
    """Settings and the reasons for them.

    Attributes
    ----------
    settings : dict
        Parameters for `SparseGraphSVD.set_params`.
    reasons : tuple of str
        A sentence or two each on sizes, number of modules and graph.
    identified : bool
        Whether the data identify the sizes.
    """

    settings: dict[str, Any]
    reasons: tuple[str, ...]
    identified: bool


class _Step(NamedTuple):
    settings: dict[str, Any]
    reason: str
    none: bool = False  # whether no module stands out


def choose_settings(
    model: SparseGraphSVD,
    X: Any,
    *,
    most: int = 10,
    n_permutations: int = 19,
    n_rewired: int = 19,
    random_state: Any = None,
    n_jobs: Jobs = None,
) -> Chosen:
    """Choose sizes, number of modules and smoothness for a model.

    - Sizes: by `AdaptiveSupport` where it identifies them in three of five modules or more; otherwise 200 features (at
      most a fifth) and a tenth of the samples, as a resolution to look at. Sizes that the model has stay.
    - Number of modules: those that stand out against permuted data (`n_modules`), at most `most`.
    - Smoothness: the model's own if the graph helps to explain unseen samples (`graph_value`), 0 if not. Where
      `AdaptiveSupport` chooses the sizes it weighs the graph as well.

    The budget, with the defaults: 222 fits of one module, 2 of up to ten and, if there is a graph, 420 of up to ten to
    four fifths of the samples.

    Parameters
    ----------
    model : SparseGraphSVD
        With the graph, centring and all that is to stay.
    X : array, DataFrame or sparse matrix
    most : int
        Modules to look for at most.
    n_permutations, n_rewired : int
        See `n_modules` and `graph_value`.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads, or the workers of the present Dask client; the answer does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> chosen = netbic.selection.choose_settings(netbic.SparseGraphSVD(center=None), toy.X, random_state=0)
    >>> chosen.settings
    {'row_penalty': AdaptiveSupport(), 'column_penalty': AdaptiveSupport(), 'n_components': 1}
    >>> print(chosen.reasons[1])
    Number of modules: 1 module stands out; the next does not (p = ...).
    """
    refuse_anndata(X)
    check_count("most", most)
    fitters(X, n_jobs)  # refused before anything is tried
    seed = int(np.random.default_rng(random_state).integers(2**31))
    model = seeded(unwrapped(model), seed)
    X = checked(X, missing=model.missing)
    counting = {"most": most, "n_permutations": n_permutations, "random_state": seed, "n_jobs": n_jobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks are about trials here; the final fit says its own
        values = _written_out(X)
        model.prepared(X)  # bad data are refused before anything is tried
        doubt = None if _has_sizes(model) else _unsuitable(model, values.shape)
        if doubt == "":
            found = _adaptive(model, X, values, counting)
            if not isinstance(found, str):
                return _chosen([*found, *_on_row_graph(model)], identified=True)
            doubt = found
        sizes = _stated(model, values.shape, doubt)
        told = clone(model).set_params(**sizes.settings)
        number = _number(told, values, counting)
        told.set_params(**number.settings)
        graph = [] if model.column_graph is None else [_graph(told, X, values.shape[0], n_rewired, seed, n_jobs)]
    return _chosen([sizes, number, *graph, *_on_row_graph(model)], identified=False)


def _chosen(steps: list[_Step], identified: bool) -> Chosen:
    return Chosen(_merged(steps), tuple(step.reason for step in steps), identified)


def _on_row_graph(model: SparseGraphSVD) -> list[_Step]:
    if model.row_graph is None:
        return []
    return [_Step({}, "Graph of the samples: it was not judged and counts as the model says.")]


def _merged(steps: list[_Step]) -> dict[str, Any]:
    return {name: value for step in steps for name, value in step.settings.items()}


def _written_out(X: Any) -> NDArray[Any]:
    """X as an array whose columns can be permuted."""
    is_sparse: bool = sp.issparse(X)
    if not is_sparse:
        return np.asarray(X)
    if X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
        shape = f"{X.shape[0]:,} x {X.shape[1]:,}"
        raise ValueError(
            f"X is sparse, and {shape} are too many entries to permute: choose settings on fewer features "
            "(e.g. the most variable ones) or state them"
        )
    return np.asarray(X.toarray())


def _has_sizes(model: SparseGraphSVD) -> bool:
    return any(getattr(model, word) is not None for word in _SIZES)


def _unsuitable(model: SparseGraphSVD, shape: tuple[int, ...]) -> str:
    """Why sizes cannot be chosen for such a model; nothing if they can."""
    if min(shape) < AdaptiveSupport.smallest:
        return f"there are too few of them: {min(shape)}"
    has_graph = model.row_graph is not None or model.column_graph is not None
    if has_graph and (model.signs == "signed" or "laplacian" in model.graph_term):
        asked = f"signs={model.signs!r} and graph_term={model.graph_term!r}"
        return f"with {asked} they cannot be chosen"
    return "solver='monotone' cannot choose them" if model.solver == "monotone" else ""


def _adaptive(model: SparseGraphSVD, X: Any, values: NDArray[Any], counting: dict[str, Any]) -> list[_Step] | str:
    """Sizes, number and graph where the data identify the sizes; otherwise a word on why they do not.

    Where features differ in noise they are brought to one scale.
    """
    penalties: dict[str, Any] = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport()}
    for axis in ("row", "column"):
        if getattr(model, f"{axis}_smoothness"):  # the penalty's to choose; a stated 0 stays
            penalties[f"{axis}_smoothness"] = None
    chooses = clone(model).set_params(n_components=1, **penalties)
    doubt = _doubt(chooses.fit(X))
    if doubt == "uneven" and not model.scale:
        penalties["scale"] = True
        doubt = _doubt(chooses.set_params(scale=True).fit(X))
    if doubt:
        return DOUBTS[doubt].format(axis="candidate")
    number = _number(clone(model).set_params(scale=chooses.scale), values, counting)
    if number.none:
        return DOUBTS["faint"]
    if doubt := _doubt(chooses.set_params(**number.settings).fit(X)):
        return DOUBTS[doubt].format(axis="candidate")
    number = _without_faint(chooses, number)
    kept = slice(number.settings["n_components"])
    samples, features = (_span(masks[kept].sum(axis=1)) for masks in (chooses.rows_, chooses.columns_))
    scaled = " after scaling, as features differ in noise" if "scale" in penalties else ""
    found = f"{samples} samples, {features} features per module"
    sizes = _Step(penalties, f"Sizes: the data identify them{scaled} ({found}).")
    if model.column_graph is None:
        return [sizes, number]
    used = (chooses.choices_.query("axis == 'columns'")["sigma"] > 0)[kept]
    graph = f"Graph: it makes the scores likelier in {used.sum()} of {used.size} modules and counts in those."
    return [sizes, number, _Step({}, graph)]


def _span(sizes: NDArray[Any]) -> str:
    return str(sizes.min()) if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"


def _doubts(fitted: SparseGraphSVD) -> pd.Series[str]:
    """The first doubt about each module, samples first; nothing where there is none."""
    by_module = fitted.choices_.groupby("module")["doubt"]
    return by_module.agg(lambda words: next((word for word in words if word), ""))


def _without_faint(fitted: SparseGraphSVD, number: _Step) -> _Step:
    """Leave out modules at the end that noise alone could reach: a test at level .05 lets some through."""
    doubts = _doubts(fitted).tolist()
    kept = len(doubts)
    while kept > 1 and doubts[kept - 1] == "faint":
        kept -= 1
    if kept == len(doubts):
        return number
    left_out = f" {len(doubts) - kept} at the end, which noise alone could reach as well, are left out."
    return _Step({"n_components": kept}, number.reason + left_out)


def _doubt(fitted: SparseGraphSVD) -> str:
    """Why too many modules have no size that can be relied on; nothing if enough of them have."""
    doubts = _doubts(fitted)
    doubtful = doubts[doubts != ""]
    if doubts.size and len(doubtful) <= _DOUBTED * doubts.size:
        return ""
    return str(doubtful.mode().iloc[0]) if len(doubtful) else "collapsed"


def _stated(model: SparseGraphSVD, shape: tuple[int, ...], doubt: str | None) -> _Step:
    usual = dict(zip(("n_rows", "n_columns"), usual_sizes(*shape), strict=True))
    settings = {
        f"n_{axis}s": usual[f"n_{axis}s"]
        for axis in ("row", "column")
        if getattr(model, f"n_{axis}s") is None and getattr(model, f"{axis}_penalty") is None
    }
    words = {"n_rows": "samples", "n_columns": "features"}
    kept = " and ".join(f"{settings[name]} {what}" for name, what in words.items() if name in settings)
    if doubt is None:
        rest = f"; {kept} per module as a resolution to look at" if kept else ""
        return _Step(settings, f"Sizes: as they were stated{rest}.")
    why = f"the data do not identify them ({doubt})"
    return _Step(settings, f"Sizes: {why}; {kept} per module are kept as a resolution to look at.")


def _number(model: SparseGraphSVD, values: NDArray[Any], counting: dict[str, Any]) -> _Step:
    count = n_modules(model, values, **counting)
    reason = f"Number of modules: {count.verdict}"
    if not count.n:
        reason += " One is kept all the same: take it for what noise looks like."
    return _Step({"n_components": max(count.n, 1)}, reason, count.n == 0)


def _graph(model: SparseGraphSVD, X: Any, n_samples: int, n_rewired: int, seed: int, n_jobs: Jobs) -> _Step:
    if n_samples < 4:
        return _Step({"column_smoothness": 0.0}, "Graph: there are too few samples to judge it; it has no say.")
    n_folds = min(5, n_samples // 2)
    value = graph_value(model, X, n_rewired=n_rewired, n_folds=n_folds, random_state=seed, n_jobs=n_jobs)
    if not value.helps:
        return _Step({"column_smoothness": 0.0}, f"Graph: {value.verdict} It has no say in the fit (smoothness 0).")
    tracking = value.degree.loc[value.degree["tracks"], "module"].tolist()
    warning = f" Beware: modules {tracking} follow the number of neighbours." if tracking else ""
    return _Step({}, f"Graph: {value.verdict}{warning}")


class AutoSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A SparseGraphSVD that chooses its own settings, by `choose_settings`.

    Once fitted it serves wherever a fitted model does (`netbic.save`, enrichment, pictures, ...), which then takes its
    `best_estimator_`.

    Parameters
    ----------
    estimator : SparseGraphSVD, optional
        With the graph, centring and all that is to stay.
    most, n_permutations, n_rewired, random_state, n_jobs
        As for `choose_settings`.

    Attributes
    ----------
    best_estimator_ : SparseGraphSVD
        Fitted with the chosen settings.
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
        random_state: Any = None,
        n_jobs: Jobs = None,
    ) -> None:
        self.estimator = estimator
        self.most = most
        self.n_permutations = n_permutations
        self.n_rewired = n_rewired
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose settings and fit with them."""
        model = SparseGraphSVD() if self.estimator is None else self.estimator
        words = {name: value for name, value in self.get_params(deep=False).items() if name != "estimator"}
        chosen = choose_settings(model, X, **words)
        self.best_params_, self.reasons_ = chosen.settings, chosen.reasons
        self.best_estimator_ = clone(model).set_params(**chosen.settings).fit(X)
        self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        else:
            self.__dict__.pop("feature_names_in_", None)  # an earlier fit's
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Scores of samples on the modules, as `SparseGraphSVD.transform` gives them."""
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.transform(X)
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Share of variance explained, as `SparseGraphSVD.score` gives it."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.best_estimator_.n_components_)
