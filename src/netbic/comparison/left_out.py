"""Every study in turn as the other one: modules found without it are looked for in it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import (
    Array,
    Bools,
    Floats,
    Indices,
    Matrix,
    RandomState,
    check_in_memory,
    checked,
    is_sparse,
    jaccard,
)
from netbic.comparison.replicate import (
    LEVEL,
    MIN_LEADING,
    MIN_SAMPLES,
    TOO_FEW,
    OtherStudy,
    judge_module,
    leading_only,
    preservation,
)
from netbic.enrichment import adjust_p_values
from netbic.errors import InputError, plural
from netbic.estimators.covariates import as_table, covariate_names
from netbic.estimators.inputs import axis_names, check_same_data
from netbic.estimators.parameters import check_count
from netbic.estimators.prediction import MIN_FEATURES, module_scores
from netbic.estimators.results import name_features
from netbic.estimators.studies import RELATIVE_STRENGTH
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.selection.fits import Fits, Jobs, Progress
from netbic.selection.resampling import (
    draw_seed,
    for_part,
    graphs_by_position,
    match_rows,
    n_asked,
    n_searched_again,
)

REPLICATED, NOT_REPLICATED = "replicated", "not replicated"
NOT_FOUND: Final = "not found without it"
_FOUND_FROM = 0.6  # smallest |correlation| of scores of a module that is found again, as for verdicts
_DRAWS_IN_OTHERS = 20  # random sets in each study of a fit: only their mean is used
_NUMBERS = ["strength", "density", "ci_low", "ci_high", "density_expected", "q"]
_LEFT_OUT_COLUMNS = ["module", "study", "verdict", "score", "n_features", "overlap", *_NUMBERS, "reason"]


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The result of `leave_one_study_out`.

    Attributes
    ----------
    table : DataFrame
        A row per module and study.

        - `verdict`: "replicated" or "not replicated" in the study that was left out, "not found without it" if the
          other studies give no similar module, or "too few to tell" (features or samples).
        - `n_features`: how many features the module found without the study has; `overlap`: the Jaccard index of its
          features and those of the module of the whole fit.
        - `score`: absolute correlation, in the other studies, of the scores of the module with those of the module
          found without the study.
        - `strength`: how much the features of the module found without the study move together in it, compared with the
          other studies (1: as much, 0: no more than random features).
        - `density`, `ci_low`, `ci_high`, `density_expected`: the mean correlation of its features in the study, its
          95 % confidence interval, and that of random sets, as for :func:`netbic.replicate`; `q`: compared with them.
        - `reason`: the verdict as a sentence.
    study_name : str
        The word for studies in sentences.
    """

    table: pd.DataFrame
    study_name: str = "study"

    @property
    def counts(self) -> pd.Series[int]:
        """In how many studies each module is replicated without having been fitted to them."""
        return (self.table["verdict"] == REPLICATED).astype(int).groupby(self.table["module"]).sum()

    @property
    def verdict(self) -> str:
        """One line per module."""
        if self.table.empty:
            return f"The model has no modules, so there is none to look for in a {self.study_name} left out."
        return "\n".join(f"module {module}: {line}" for module, line in self.summary.items())

    @property
    def summary(self) -> pd.Series[str]:
        """In which studies each module is replicated, in words; the index has the numbers of the modules."""
        many = plural(self.study_name)
        lines = {}
        for module, part in self.table.groupby("module", sort=True):
            own, few = (part.loc[part["verdict"] == kind, "study"].tolist() for kind in (REPLICATED, TOO_FEW))
            names = f" ({', '.join(own)})" if 0 < len(own) < len(part) else ""
            unknown = f"; {len(few)} with too few samples or features to tell ({', '.join(few)})" if few else ""
            lines[module] = f"replicated in {len(own)} of {len(part)} {many} left out{names}{unknown}"
        return pd.Series(lines, dtype=object)

    def __repr__(self) -> str:
        return self.verdict


def leave_one_study_out(
    model: Any,
    X: Any,
    *,
    covariates: Any = None,
    n_draws: int = 1000,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
    feature_name: str = "feature",
    study_name: str = "study",
) -> LeftOut:
    """Fit without each study in turn, and look for the modules in the study that was left out.

    One fit per study is made: with many samples, it takes as long as so many fits of them, unless `n_jobs` runs several
    at a time.

    The modules of the other studies are matched one to one to those of the whole fit by the correlation of their scores
    in the other studies (0.6 or more). A module is *replicated* in the study that was not used

    - if its features move together there more than random features of similar mean, variance and connectivity do (q at
      most 0.05, and p at most 0.05 for its 20 leading features), and
    - if they do so at least a quarter as much as in the other studies (`strength`), all of them and the leading ones:
      the activity of the module then has at least half of its standard deviation there.

    Counting noise makes all correlations of sparse data small, but equally so in all studies: that is why the limit is
    relative to the other studies, not an absolute one as for :func:`netbic.replicate`. A module that only one study has
    is not found without it, and not replicated in the others.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted with `studies`; one clone of it per study is fitted (with a third more modules).
    X : array, DataFrame or sparse matrix
        The same data (stacked: for a dict, `netbic.stack_studies(...).X`).
    covariates : as for `SparseGraphSVD.fit`, optional
        Needed if the model was fitted with covariates. Their effects are removed from the studies of each fit.
    n_draws : int
        Random sets of features per module.
    progress : function, optional
        Called after each study, in the calling thread, with the numbers of finished and of all studies.
    random_state : None, int or numpy.random.Generator
    n_jobs : as for `netbic.selection.stability`
    feature_name, study_name : str
        The words for features and studies in sentences, such as "gene" and "donor".

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies((60, 80, 100), 400, lives=((0, 1, 2), (1,)), random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    >>> print(netbic.leave_one_study_out(model, simulated.X, random_state=0))
    module 1: replicated in 3 of 3 studies left out
    module 2: replicated in 0 of 3 studies left out
    """
    model = fitted_model(model)
    if model.study_scaling_ is None:
        raise InputError("the model was fitted to one study: fit it with `studies`, one label per sample", ["studies"])
    check_same_data(model, X)
    check_in_memory(X, "a study is left out of data in memory")
    check_count("n_draws", n_draws)
    if bool(covariate_names(model)) != (covariates is not None):
        had = "with" if covariate_names(model) else "without"
        raise InputError(f"the model was fitted {had} covariates: give the same ones (`covariates`)", ["covariates"])
    if model.row_graph is not None:
        raise InputError("studies cannot be left out of a graph of the samples: fit without `row_graph`")
    if covariates is not None:
        covariates = as_table(covariates, int(X.shape[0]), axis_names(X)[0])[0]
    labels, seed = np.asarray(model.study_labels_), draw_seed(random_state)
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    names = model.study_scaling_.names
    generator = np.random.default_rng(seed)
    studies = {name: _Study.of(rows[np.flatnonzero(labels == name)], generator) for name in names}
    search = _Search(model, X, labels, covariates, studies, n_draws, seed, (feature_name, study_name))
    fits = Fits(X, len(names), n_jobs, progress, n_modules=model.n_components_)
    table = pd.concat(fits.map(_Search.without, search, list(names)))
    table = table.sort_values("module", kind="stable", ignore_index=True)
    return LeftOut(name_features(table[_LEFT_OUT_COLUMNS], feature_name), study_name)


@dataclass(frozen=True)
class _Search:
    """What every study that is left out needs."""

    model: SparseGraphSVD
    X: Any
    labels: Array
    covariates: pd.DataFrame | None
    studies: dict[str, _Study]
    n_draws: int
    seed: int
    words: tuple[str, str]  # for features and studies

    def without(self, study: str) -> pd.DataFrame:
        """A row per module: whether it is found without a study, and how it does there."""
        model, n_modules, kept = self.model, self.model.n_components_, self.labels != study
        generator = np.random.default_rng([self.seed, list(self.studies).index(study)])
        rows = self.X.iloc if isinstance(self.X, pd.DataFrame) else self.X
        others = _fit_without(model, self.X, rows[np.flatnonzero(kept)], kept, self.labels, self.covariates)
        both = copy.copy(model)
        both.components_ = np.vstack([model.components_, others.components_])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X (has feature names|does not have valid)")
            scores = module_scores(both, self.X)[kept].T
        known = pd.DataFrame(scores.T).corr(min_periods=3)  # over samples in which both are known
        similar = np.abs(np.nan_to_num(known.to_numpy()[:n_modules, n_modules:]))
        partner, found = match_rows(similar)
        components = others.components_.astype(np.float64)
        judged = [
            _judge(self.studies, study, components[at], self.n_draws, generator, self.words[0]) if at >= 0 else {}
            for at in np.where(found < _FOUND_FROM, -1, partner)
        ]
        members = np.vstack([components, np.zeros_like(components[:1])])[partner] != 0  # none without a partner
        about: dict[str, Any] = {"module": np.arange(1, n_modules + 1), "study": study, "score": found}
        about |= {"n_features": members.sum(axis=1), "overlap": jaccard(members, model.components_ != 0)}
        table = pd.DataFrame(judged, index=range(n_modules), columns=_JUDGED).assign(**about)
        table["q"] = adjust_p_values(table["p"])
        table["shared"] = (members & (model.components_ != 0)).sum(axis=1)
        words = [_verdict(row, study, *self.words) for row in table.to_dict("records")]
        table["verdict"], table["reason"] = (pd.Series([each[k] for each in words], dtype=object) for k in range(2))
        return table


_JUDGED: Final = [
    *("n_features", "n_available", "density", "ci_low", "ci_high", "density_expected", "p", "strength"),
    *("n_leading_available", "p_leading", "leading_strength", "reason"),
]


@dataclass(frozen=True)
class _Study:
    """The features of a study that vary (`at`), and the traits that random features share with those of modules."""

    data: OtherStudy
    at: Indices
    traits: list[Floats]

    @classmethod
    def of(cls, X: Any, generator: np.random.Generator) -> Self:
        matrix: Matrix = checked(X)
        data, at = OtherStudy.of(matrix if is_sparse(matrix) else np.asarray(matrix, dtype=np.float64), False)
        return cls(data, at, [data.means, data.lengths, data.connectivity(generator)])

    def excess(self, module: Floats, generator: np.random.Generator) -> float:
        """How much more the features of a module correlate than random ones; NaN if it cannot be told."""
        weights = module[self.at]
        members = np.flatnonzero(weights)
        if self.data.n_samples < MIN_SAMPLES or not MIN_LEADING <= members.size <= weights.size // 3:
            return np.nan
        found = preservation(self.data, self.traits, members, weights[members], _DRAWS_IN_OTHERS, generator)
        return found["density"] - found["density_expected"]


def _judge(
    studies: Mapping[str, _Study],
    study: str,
    module: Floats,
    n_draws: int,
    generator: np.random.Generator,
    feature_name: str,
) -> dict[str, Any]:
    """A row of the table for the weights of a module of the other studies, in the study that was left out."""
    own = studies[study]
    row = judge_module(own.data, own.traits, module, own.at, n_draws, generator, feature_name)
    if np.isnan(row["p"]):
        return row
    others = [each for name, each in studies.items() if name != study]
    sizes = np.array([each.data.n_samples for each in others], dtype=np.float64)
    for name, prefix, weights in (("strength", "", module), ("leading_strength", "leading_", leading_only(module))):
        there = np.array([each.excess(weights, generator) for each in others])
        known = ~np.isnan(there)
        usual = float(np.average(there[known], weights=sizes[known])) if known.any() else np.nan
        here = row[f"{prefix}density"] - row.get("leading_expected" if prefix else "density_expected", np.nan)
        row[name] = here / usual if usual > 0 else np.nan
    return row


def _verdict(found: Mapping[Any, Any], study: str, feature_name: str, study_name: str) -> tuple[str, str]:
    """The verdict on a module in a study that was left out, and the same as a sentence."""
    others = f"other {plural(study_name)}"
    if found["score"] < _FOUND_FROM:
        score = f"correlation of scores {found['score']:.2f}, at least {_FOUND_FROM:g} is needed"
        return NOT_FOUND, f"Not found without {study}: the {others} have no module with similar scores ({score})."
    if np.isnan(found["q"]):
        return TOO_FEW, f"Cannot be judged: {found['reason'].replace('the other study', study)}."
    problems = list(_problems(found, feature_name, others))
    text = f"the module found without {study} has {found['n_features']:,} {feature_name}s, {found['shared']:,} of them "
    text += "in this one"
    if problems:
        return NOT_REPLICATED, f"Not replicated: {text}; in {study}, {', and '.join(problems)}."
    times = f"{found['strength']:.2g} times as much as in the {others}"
    return REPLICATED, f"Replicated: {text}; in {study}, they move together {times} (q {found['q']:.2g})."


def _problems(found: Mapping[Any, Any], feature_name: str, others: str) -> Iterator[str]:
    """What keeps a module from being replicated."""
    if found["q"] > LEVEL:
        yield f"they do not move together beyond chance (q {found['q']:.2g})"
    if not np.isfinite(found["strength"]):
        yield f"in the {others} they move together no more than random {feature_name}s"
    elif found["strength"] < RELATIVE_STRENGTH:
        yield f"only {found['strength']:.2g} times as much as in the {others} ({RELATIVE_STRENGTH:g} is needed)"
    if found["n_leading_available"] < MIN_FEATURES:
        return
    weak = not found["leading_strength"] >= RELATIVE_STRENGTH
    if found["p_leading"] > LEVEL or weak:
        yield f"the leading ones less ({found['leading_strength']:.2g} times as much, p {found['p_leading']:.2g})"


def _fit_without(
    model: SparseGraphSVD, X: Any, part: Any, kept: Bools, labels: Array, covariates: pd.DataFrame | None
) -> SparseGraphSVD:
    """The model, fitted to the other studies.

    Groups of samples become known by position, because their names are looked up among the samples of all studies.
    Groups of features stay as they are: every fit has the same features.
    """
    given: dict[str, Any] = {"studies": labels[kept]} if len(set(labels[kept].tolist())) > 1 else {}
    if covariates is not None:
        given["covariates"] = covariates[kept]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # given by the whole fit already, as about modules that repeat others
        parameters = graphs_by_position(
            model.get_params(deep=False), X.shape[:1], (model.names_["rows"],), axes=("row",)
        )
        made = for_part(clone(model).set_params(**parameters), "row", np.flatnonzero(kept), kept.size)
        made.set_params(n_components=n_searched_again(model, n_asked(model)), verbose=0)
        made.fit(part.reset_index(drop=True) if isinstance(part, pd.DataFrame) else part, **given)
    return made
