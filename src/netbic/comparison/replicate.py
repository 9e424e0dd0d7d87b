"""Replication: how far each module holds in another study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.spatial import KDTree
from scipy.stats import t

from netbic.arrays import (
    Array,
    Floats,
    Indices,
    Matrix,
    RandomState,
    check_in_memory,
    check_range,
    checked,
    is_sparse,
    kind_of,
    stored_values,
)
from netbic.comparison.names import common_names, no_common_names, shared_samples, text_names
from netbic.enrichment import adjust_p_values, repeated_in_rows
from netbic.errors import InputError, some_names
from netbic.estimators.inputs import axis_names
from netbic.estimators.parameters import check_count
from netbic.estimators.prediction import MIN_FEATURES, enough_features, scored_modules
from netbic.estimators.results import name_features, names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.operators.base import as_operator

STRONG, WEAK, NOT_REPLICATED = "strong", "weak", "not replicated"
TOO_FEW = "too few to tell"
LEVEL = 0.05  # largest q-value of a module that holds
EXCESS = {STRONG: 0.1, WEAK: 0.05}  # by how much its features have to correlate more than random ones
AGREEMENT = {STRONG: 0.8, WEAK: 0.7}  # share of the features that keep their direction
N_LEADING = 20  # features with the largest weights, which are judged by themselves
MIN_LEADING, MIN_SAMPLES = 3, 10
_OTHERS = 2  # features to draw random sets from, for each feature of a module
_COLUMNS = [
    *("module", "verdict", "n_features", "n_available"),
    *("density", "ci_low", "ci_high", "density_expected", "loading_correlation", "p_loadings", "sign_agreement"),
    *("p", "q", "n_leading", "n_leading_available", "leading_density", "leading_expected", "p_leading"),
    "reason",
]
_ROUNDING = 1e-10  # of the largest entry: a feature that varies less is constant
MIN_OBSERVED = 3  # entries of a feature
_SMALLEST_POOL = 100  # features that may replace a feature
_REFERENCE = 500  # features whose correlations with all others measure how connected these are
_CONFIDENCE = 0.95
_DIGITS = 9  # differences of traits beyond these are rounding errors


@dataclass(frozen=True)
class Replication:
    """How far every module holds in another study.

    Attributes
    ----------
    table : DataFrame
        A row per module.

        - `module`: its number, from 1.
        - `verdict`: "strong", "weak", "not replicated" or "too few to tell" (features or samples).
        - `n_features`: features of the module; `n_available`: those that the other study has too (and that vary there),
          by which the module is judged.
        - `density`: mean correlation of pairs of these features, with the sign that their weights predict; `ci_low`,
          `ci_high`: its 95 % confidence interval; `density_expected`: the mean of random sets.
        - `loading_correlation`: of the weights with the covariances of these features with the score of the others;
          `p_loadings`: compared with random sets.
        - `sign_agreement`: share of these features that move with the score of the others in the expected direction.
        - `p`: of density, loadings and signs together, compared with random sets; `q` (Benjamini-Hochberg).
        - `n_leading`: its features with the largest weights (up to 20); `n_leading_available`; `leading_density`,
          `leading_expected`, `p_leading`: the same for these alone (NaN if fewer than 3 are available).
        - `reason`: the verdict as a sentence.
    scores : DataFrame
        The scores of the samples of the other study, with mean 0 and standard deviation 1, a column per module
        (`standardised_scores`; NaN if too few features of the module are there).
    n_features : int
        Features that both studies have.
    n_samples : int
        Samples of the other study that were used.
    n_shared : int
        How many of these seem to be samples of the fit too, by their names. They are no independent evidence.
    n_missing : int
        Missing entries, which were replaced by the mean of their feature.
    """

    table: pd.DataFrame
    scores: pd.DataFrame
    n_features: int
    n_samples: int
    n_shared: int = 0
    n_missing: int = 0
    feature_name: str = "feature"

    @property
    def verdict(self) -> str:
        """One plain sentence; before it, that the studies share samples, and after it, that entries are missing."""
        return self.verdict_beside({})

    def verdict_beside(self, verdicts: Mapping[int, str]) -> str:
        """The same, with what is known of modules that are replicated, but doubtful in the fit (by its verdicts)."""
        if self.table.empty:
            return "The model has no modules, so there is none to look for in the other study."
        found = self.table["verdict"].tolist()
        words = {STRONG: "replicated", WEAK: "weakly replicated", NOT_REPLICATED: "not replicated"}
        doubtful = self.table["module"].map(lambda module: verdicts.get(module) == "doubtful")
        believed = self.table.loc[doubtful & self.table["verdict"].isin([STRONG, WEAK]), "module"]
        parts = list[str]()
        for kind, text in words.items():
            if count := found.count(kind):
                unsure = int((self.table.loc[believed.index, "verdict"] == kind).sum())
                of_them = f" ({unsure} of them doubtful in the fit)" * (unsure > 0)
                parts.append(f"{count} {'is' if count == 1 else 'are'} {text}{of_them}")
        parts += [f"{found.count(TOO_FEW)} cannot be judged"] * (TOO_FEW in found)
        samples = f"{self.n_samples:,} sample{'s' * (self.n_samples != 1)}"
        given = f"{self.n_features:,} {self.feature_name}s in common, {samples}"
        text = f"Of {len(found)} module{'s' * (len(found) != 1)}, {', '.join(parts)} in the other study ({given})."
        if self.n_shared:
            shared = "all" if self.n_shared == self.n_samples else f"{self.n_shared:,} of"
            text = f"Not independent: {shared} {samples} may be in the first study too, by name. {text}"
        elif len(believed):
            which, one = some_names(believed.tolist(), quoted=False), len(believed) == 1
            its, it, is_, list_ = ("its", "it is", "is", "list") if one else ("their", "they are", "are", "lists")
            text += (
                f" Module{'s' * (not one)} {which} {is_} doubtful in the fit, but {its} {self.feature_name}s move "
                f"together here too: {it} hardly noise, but the {list_} of {self.feature_name}s {is_} unsure."
            )
        if self.n_missing:
            text += f" {filled_line(self.n_missing, self.feature_name)}."
        return text

    def __repr__(self) -> str:
        lines = [f"  {module}  {reason}" for module, reason in self.table[["module", "reason"]].to_numpy()]
        return "\n".join([self.verdict, *lines])


def replicate(
    model: Any,
    X_other: Any,
    *,
    features: Sequence[Any] | None = None,
    samples: Sequence[Any] | None = None,
    new_samples_only: bool = False,
    n_draws: int = 1000,
    random_state: RandomState = None,
    feature_name: str = "feature",
) -> Replication:
    """Judge how far each module of a fitted model holds in another study.

    The features of a module should move together there as well, in the directions that their weights say. This is
    compared with random sets of features: each feature of the module is replaced by another one that has similar mean,
    variance and connectivity (mean squared correlation with other features) in the other study, and that takes over its
    weight. Random sets therefore follow the factors that many features of that study follow.

    A module that moves together more than expected by chance (q at most 0.05) is graded by how much:

    - *strong*: its features correlate by at least 0.1 more than random ones (and by at least 0.05, the lower end of the
      confidence interval), at least 80 % move with the others in the expected direction, and its leading features
      (those with the 20 largest weights, of which at least 3 are there) correlate by at least 0.1 more than random
      ones, too (p at most 0.05).
    - *weak*: they correlate by at least 0.05 more, and at least 70 % move in the expected direction. If they correlate
      by less than 0.1 more, the loadings have to agree with the weights (p at most 0.05). Its leading features, if at
      least 5 are there, correlate by at least 0.05 more than random ones, too (p at most 0.05).
    - *not replicated* otherwise.

    At least 5 of its features, 10 samples, and twice as many other features as it has itself are needed to tell.

    Parameters
    ----------
    model : SparseGraphSVD, or a fitted search such as GridSearchCV
    X_other : DataFrame, array, sparse matrix or AnnData of shape (n_samples, n_features)
        The other study, preprocessed like the data of the fit (logarithms of expression, for example). Features are
        matched by name and centred and scaled in this study; if the model subtracts the mean of every sample, this is
        done here too. Missing entries are replaced by the mean of their feature.
    features, samples : sequence of names, optional
        Names of the columns and rows. Default: those of a DataFrame or AnnData object. Columns of an array without
        names are taken for the features of the fit, in the same order.
    new_samples_only : bool
        Leave out samples of the other study that seem to be samples of the fit, because their names are the same or
        one is the beginning of the other ("TCGA-A1-A0SD" and "TCGA-A1-A0SD-01").
    n_draws : int
        Random sets per module.
    random_state : None, int or numpy.random.Generator
    feature_name : str
        The word for features in reasons and columns: with "gene", `n_genes`.

    Returns
    -------
    Replication
        With a `table` and the `verdict` as a sentence.

    See Also
    --------
    compare : match the modules of two fits.
    netbic.comparison.repeat_associations : test whether associations with labels and survival hold there, too.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 800, n_modules=2, module_samples=100, strength=1.5, random_state=0)
    >>> half, other = study.expression[:150], study.expression[150:].copy()
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(half)
    >>> netbic.replicate(model, other, random_state=0).table["verdict"].tolist()
    ['strong', 'strong']
    >>> other.columns = other.columns[::-1]  # the same values for other features
    >>> netbic.replicate(model, other, random_state=0).table["verdict"].tolist()
    ['not replicated', 'not replicated']
    """
    check_count("n_draws", n_draws)
    model, generator = fitted_model(model), np.random.default_rng(random_state)
    X, feature_names, sample_names = _matrix_and_names(X_other, features, samples)
    kept, n_shared = np.arange(X.shape[0]), 0  # samples to use, and how many of them are samples of the fit
    if sample_names is not None and model.names_["rows"] is not None:
        shared = shared_samples(text_names(model.names_["rows"]), sample_names)
        n_shared = int(shared.sum())
        if new_samples_only and shared.all():
            raise InputError(
                f"all {kept.size:,} samples of X_other are samples of the fit: give another study, or "
                "`new_samples_only=False`",
                ["new_samples_only"],
            )
        if new_samples_only:
            kept, n_shared = np.flatnonzero(~shared), 0
    at, columns = _matched_features(model, feature_names, X.shape[1])
    X = X[:, columns][kept]
    study, varying = OtherStudy.of(X, model.center in ("rows", "both"))
    traits = [study.means, study.lengths, study.connectivity(generator)]
    rows = [
        judge_module(study, traits, own, at[varying], n_draws, generator, feature_name)
        for own in model.components_.astype(np.float64)
    ]
    table = pd.DataFrame(rows, columns=_COLUMNS).assign(module=np.arange(1, len(rows) + 1))
    table["q"] = adjust_p_values(table["p"])
    judged = [_verdict(row, feature_name) for row in table.to_dict("records")]
    table["verdict"], table["reason"] = (pd.Series([each[k] for each in judged], dtype=object) for k in range(2))
    scores = study.scores(model.components_, at[varying])
    names = None if sample_names is None else sample_names[kept]
    found = pd.DataFrame(scores, index=names, columns=pd.Index(range(1, len(rows) + 1), name="module"))
    numbers = at.size, kept.size, n_shared, n_missing(X)
    return Replication(name_features(table, feature_name), found, *numbers, feature_name)


def standardised_scores(
    model: Any, X: Any, features: Sequence[Any] | None = None, *, feature_name: str = "feature"
) -> Floats:
    """Scores of samples of another study or platform, a column per module, without the means of the fit.

    Every feature is centred and scaled to variance 1 in these samples, and multiplied with its weight; the sums are
    then scaled to standard deviation 1. Missing entries are replaced by the mean of their feature. Scores are NaN for
    modules of which fewer than 5 features (unless a module has no others) or fewer than a fifth vary here.

    Parameters
    ----------
    model, X, features : as `model`, `X_other` and `features` of :func:`netbic.replicate`
    feature_name : str
        The word for features in messages.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> scores = netbic.comparison.standardised_scores(model, 100 + 3 * study.expression)
    >>> scores.shape, bool(abs(scores.mean()) < 1e-9), bool(abs(scores.std() - 1) < 1e-9)
    ((200, 1), True, True)
    """
    model = fitted_model(model)
    X, names, _ = _matrix_and_names(X, features, None)
    at, columns = _matched_features(model, names, X.shape[1])
    study, varying = OtherStudy.of(X[:, columns], model.center in ("rows", "both"))
    there = np.isin(np.arange(model.n_features_in_), at[varying])
    scored_modules(model, there, names, "are missing or constant, and not used", feature_name)
    return study.scores(model.components_, at[varying])


def _matrix_and_names(
    X: Any, features: Sequence[Any] | None, samples: Sequence[Any] | None
) -> tuple[Matrix, Array | None, Array | None]:
    """The matrix, and the names of its columns and rows as text if they are known."""
    known: tuple[Any, Any] = (None, None)
    if kind_of(X) == "anndata":
        X, known = X.X, (X.obs_names, X.var_names)
    check_in_memory(X, "replication is judged on data in memory")
    if kind_of(X) == "table":
        known = axis_names(X)
    X = checked(X, "X_other")
    X = X.tocsr() if is_sparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X_other has shape {X.shape}: a matrix with samples in rows is needed")
    if not np.isfinite(X.data if is_sparse(X) else X[~np.isnan(X)]).all():
        raise InputError("X_other has infinite entries (or, if it is sparse, missing ones): remove or replace them")
    check_range(X, "X_other")
    names = [own if given is None else given for given, own in ((samples, known[0]), (features, known[1]))]
    for own, size, what in zip(names, X.shape, ("samples", "features"), strict=True):
        if own is not None and len(own) != size:
            raise InputError(f"{what} has {len(own):,} names but X_other has {size:,} {what}: one name each is needed")
    rows, columns = (None if own is None else text_names(own) for own in names)
    return X, columns, rows


def _matched_features(model: SparseGraphSVD, names: Array | None, size: int) -> tuple[Indices, Indices]:
    """Positions of the features in common among the features of the model, and among the columns of X_other."""
    if names is None or (model.names_["columns"] is None and size == model.n_features_in_):
        if size != model.n_features_in_:
            raise InputError(
                f"X_other has {size:,} columns without names but the model has {model.n_features_in_:,} features: give "
                "a DataFrame, or the names (`features`)",
                ["features"],
            )
        return np.arange(size), np.arange(size)
    own = text_names(names_of(model, "columns"))
    at, columns = common_names(own, names, ("the fit", "X_other"))
    if not np.isin(at, np.flatnonzero(model.columns_.any(axis=0))).any() and model.n_components_:
        raise no_common_names(own[model.columns_.any(axis=0)], names)
    return at, columns


def n_missing(X: Matrix) -> int:
    """How many entries are missing."""
    return int(np.count_nonzero(np.isnan(stored_values(X))))


def filled_line(number: int, feature_name: str) -> str:
    """What was done with missing entries, as a sentence without its full stop."""
    many = f"{number:,} missing values are" if number != 1 else "1 missing value is"
    return f"{many} replaced by the mean of {'their' if number != 1 else 'its'} {feature_name}"


# The verdict on a module


def judge_module(
    study: OtherStudy,
    traits: list[Floats],
    module: Floats,
    at: Indices,
    n_draws: int,
    generator: np.random.Generator,
    feature_name: str,
) -> dict[str, Any]:
    """A row of the table for the weights of a module; `at` are the features of the study among those of the model."""
    weights, leading = module[at], leading_only(module)[at] != 0
    members, size = np.flatnonzero(weights), int(np.count_nonzero(module))
    available, others = members.size, weights.size - members.size
    row: dict[str, Any] = {"n_features": size, "n_available": available, "reason": "", "p": np.nan}
    row |= {"n_leading": min(size, N_LEADING), "n_leading_available": int(leading.sum()), "leading_density": np.nan}
    if study.n_samples < MIN_SAMPLES:
        row["reason"] = f"number of samples in the other study: {study.n_samples}, at least {MIN_SAMPLES} are needed"
    elif available < MIN_FEATURES:
        vary = f"{available} of its {size} {feature_name}s (that vary)"
        row["reason"] = f"the other study has {vary}, at least {MIN_FEATURES} are needed"
    elif others < _OTHERS * available:
        needed = f"at least {_OTHERS * available:,} are needed for {available:,} {feature_name}s"
        row["reason"] = f"random sets can be drawn from only {others:,} other {feature_name}s, {needed}"
    else:
        row |= preservation(study, traits, members, weights[members], n_draws, generator)
        row["ci_low"], row["ci_high"] = density_interval(study.features(members), np.sign(weights[members]))
        if (top := np.flatnonzero(leading)).size >= MIN_LEADING:
            own = preservation(study, traits, top, weights[top], n_draws, generator)
            row |= {"leading_density": own["density"], "leading_expected": own["density_expected"]}
            row["p_leading"] = own["p_density"]
    return row


def leading_only(module: Floats) -> Floats:
    """The weights of the features with the largest absolute weights; those of others are 0."""
    order = np.argsort(-np.abs(module), kind="stable")[:N_LEADING]
    leading = np.zeros_like(module)
    leading[order] = module[order]
    return leading


def _verdict(found: dict[Any, Any], feature_name: str) -> tuple[str, str]:
    """The verdict on a module, and the same as a sentence."""
    if np.isnan(found["q"]):
        return TOO_FEW, f"Cannot be judged: {found['reason']}."
    problems = {grade: list(_problems(found, grade, feature_name)) for grade in (STRONG, WEAK)}
    grade = next((grade for grade, own in problems.items() if not own), NOT_REPLICATED)
    interval = f"95 % interval {found['ci_low']:z.2f} to {found['ci_high']:z.2f}"
    text = (
        f"{found['n_available']:,} of its {found['n_features']:,} {feature_name}s correlate by {found['density']:z.2f}"
    )
    text += f" ({interval}; random {feature_name}s by {found['density_expected']:z.2f}, q {found['q']:.2g})"
    text += f", {found['sign_agreement']:.0%} of them move as expected"
    if not np.isnan(found["leading_density"]):
        there = f"{found['n_leading_available']} of the {found['n_leading']} leading {feature_name}s"
        text += f"; {there} by {found['leading_density']:z.2f}"
    words = {STRONG: "Replicated", WEAK: "Weakly replicated", NOT_REPLICATED: "Not replicated"}
    why = problems.get({WEAK: STRONG, NOT_REPLICATED: WEAK}.get(grade, ""), [])
    missing = f" {'Not strong' if grade == WEAK else 'Not enough'}: {'; '.join(why)}." if why else ""
    return grade, f"{words[grade]}: {text}.{missing}".replace("%", " %").replace("  %", " %")


def _problems(found: dict[Any, Any], grade: str, feature_name: str) -> Iterator[str]:
    """What keeps a module from a grade."""
    excess = found["density"] - found["density_expected"]
    if found["q"] > LEVEL:
        yield f"all this may be chance (q {found['q']:.2g})"
    if excess < EXCESS[grade]:
        yield f"its {feature_name}s correlate {_more(excess)} ({EXCESS[grade]:g} is needed)"
    elif grade == STRONG and found["ci_low"] - found["density_expected"] < EXCESS[WEAK]:
        yield "the interval is wide"
    elif excess < EXCESS[STRONG] and found["p_loadings"] > LEVEL:
        yield f"so little counts only if loadings agree with the weights beyond chance (p {found['p_loadings']:.2g})"
    if found["sign_agreement"] < AGREEMENT[grade]:
        yield f"{AGREEMENT[grade]:.0%} have to move in the expected direction"
    if np.isnan(found["leading_density"]):
        if grade == STRONG:
            there = f"{found['n_leading_available']} of its {found['n_leading']} leading {feature_name}s"
            yield f"only {there} are there"
    elif grade == STRONG or found["n_leading_available"] >= MIN_FEATURES:
        excess = found["leading_density"] - found["leading_expected"]
        if excess < EXCESS[grade]:
            yield f"its leading {feature_name}s correlate {_more(excess)} ({EXCESS[grade]:g} is needed)"
        elif found["p_leading"] > LEVEL:
            yield f"as much as its leading {feature_name}s, random ones may correlate too (p {found['p_leading']:.2g})"


def _more(excess: float) -> str:
    """How much more than random features some correlate, if that is too little.

    It is rounded down: 0.098 as 0.09, because 0.10 would seem to be enough.
    """
    down = np.floor(round(100 * excess, 9)) / 100
    return f"by only {down:.2f} more than random ones" if down > 0 else "hardly more than random ones"


def preservation(
    study: OtherStudy,
    traits: list[Floats],
    members: Indices,
    weights: Floats,
    n_draws: int,
    generator: np.random.Generator,
) -> dict[str, float]:
    """Density, loadings and signs of a module in a study, compared with random sets: columns of `Replication.table`.

    Every feature of a random set replaces a feature of the module, has similar traits in this study, and takes over its
    weight. Factors that many features follow therefore move random sets as well. The three numbers count together, each
    in standard deviations of random sets.
    """
    weights, size = weights / np.linalg.norm(weights), members.size
    sets = np.vstack([members, matched_sets(traits, members, n_draws, generator)])
    signs, centred = np.sign(weights), weights - weights.mean()
    found = np.empty((3, len(sets)))
    for number, own in enumerate(sets):
        squared, loadings = study.project(own, weights, signs)
        on_others = loadings - weights  # on the score of the other features
        spread = np.linalg.norm(centred) * np.linalg.norm(on_others - on_others.mean())
        correlation = centred @ on_others / spread if spread > _ROUNDING else np.nan
        found[:, number] = (squared - size) / (size * (size - 1)), correlation, np.mean(np.sign(on_others) == signs)
    means, spreads = found[:, 1:].mean(axis=1, keepdims=True), found[:, 1:].std(axis=1, keepdims=True)
    told = np.flatnonzero(spreads.ravel() > _ROUNDING)  # not loadings of equal weights
    together = np.sum((found[told] - means[told]) / spreads[told], axis=0)
    chance = [float(np.mean(values >= values[0] - _ROUNDING)) for values in (*found, together)]
    return {
        **dict(zip(("density", "loading_correlation", "sign_agreement"), found[:, 0].tolist(), strict=True)),
        "density_expected": float(means[0, 0]),
        "p_density": chance[0],
        "p_loadings": chance[1] if 1 in told else np.nan,
        "p": chance[3],
    }


def density_interval(features: Floats, signs: Floats) -> tuple[float, float]:
    """The 95 % confidence interval of the density: the jackknife over samples, on Fisher's scale of such correlations.

    `features` are centred and of length 1, in rows. Without sample t, products of two features are smaller by a z_i z_j
    with a = n / (n - 1), and so are their squared lengths. The mean correlation r of k features is compared as
    log((1 + (k - 1) r) / (1 - r)).
    """
    size, n = features.shape
    a = n / (n - 1)
    scaled = signs[:, None] / np.sqrt(np.maximum(1 - a * features**2, _ROUNDING))
    products = np.einsum("it,it->t", scaled, (features @ features.T) @ scaled)
    squared = np.append(products - a * np.einsum("it,it->t", scaled, features) ** 2, np.sum((signs @ features) ** 2))
    squared = np.clip(squared, size * _ROUNDING, size**2 * (1 - _ROUNDING))  # |sum of features|^2: k to k^2
    *without, whole = np.log(squared * (size - 1) / (size**2 - squared))
    error = np.std(without) * np.sqrt(n - 1)
    ends = np.exp(whole + t.ppf([(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2], n - 1) * error)
    low, high = (ends - 1) / (ends + size - 1)
    return float(low), float(high)


@dataclass(frozen=True)
class OtherStudy:
    """The varying features of a study, as a matrix of shape (n_features, n_samples) that is dense or sparse.

    A dense matrix holds features that are centred and scaled to length 1. Those of a sparse one are centred and scaled
    in products only, so that it stays sparse. `row_means` are subtracted from every feature first.
    """

    matrix: Matrix
    means: Floats
    lengths: Floats
    row_means: Floats

    @classmethod
    def of(cls, X: Matrix, center_rows: bool) -> tuple[Self, Indices]:
        """The study, and the columns of X that it has: constant and hardly observed features are left out.

        Missing entries are replaced by the mean of their feature.
        """
        X = X.astype(np.float64) if is_sparse(X) else fill_missing(np.asarray(X, dtype=np.float64))
        n_samples, means = X.shape[0], np.asarray(X.mean(axis=0)).ravel()
        row_means = np.asarray(X.mean(axis=1)).ravel() - means.mean() if center_rows else np.zeros(n_samples)
        lengths, largest = np.zeros(means.size), np.zeros(means.size)
        if min(X.shape):
            lengths = np.sqrt(as_operator(X, low_memory=True).column_squares(row_means, means))
            most = abs(X).max(axis=0)
            largest = np.asarray(most.toarray() if is_sparse(most) else most, dtype=np.float64).ravel()
        kept = np.flatnonzero(lengths > _ROUNDING * np.sqrt(n_samples) * np.maximum(largest, np.finfo(float).tiny))
        if is_sparse(X):
            return cls(X.T.tocsr()[kept], means[kept], lengths[kept], row_means), kept
        matrix = (X.T[kept] - means[kept, None] - row_means) / lengths[kept, None]
        return cls(np.ascontiguousarray(matrix), means[kept], lengths[kept], row_means), kept

    @property
    def n_samples(self) -> int:
        """Samples."""
        return int(self.row_means.size)

    def features(self, at: Indices) -> Floats:
        """Some features, centred and scaled to length 1, as rows."""
        if not is_sparse(self.matrix):
            return np.asarray(self.matrix[at])
        values = self.matrix[at].toarray()
        return np.asarray((values - self.means[at, None] - self.row_means) / self.lengths[at, None])

    def project(self, at: Indices, weights: Floats, signs: Floats) -> tuple[float, Floats]:
        """|signs Z|^2 and Z Z' weights, where the rows of Z are some features, centred and scaled to length 1."""
        part = self.matrix[at]
        if not is_sparse(part):
            summed = signs @ part
            return float(summed @ summed), part @ (weights @ part)
        both = np.column_stack([signs, weights]) / self.lengths[at, None]
        sums = part.T @ both - self.means[at] @ both - np.outer(self.row_means, both.sum(axis=0))
        loadings = (part @ sums[:, 1] - self.means[at] * sums[:, 1].sum() - self.row_means @ sums[:, 1]) / self.lengths[
            at
        ]
        return float(sums[:, 0] @ sums[:, 0]), np.asarray(loadings)

    def connectivity(self, generator: np.random.Generator) -> Floats:
        """The mean squared correlation of every feature with (at most 500) others."""
        size = self.means.size
        others = np.sort(generator.choice(size, min(size, _REFERENCE), replace=False))
        reference = self.features(others).T
        products = np.asarray(self.matrix @ reference)
        if is_sparse(self.matrix):
            products = (products - self.row_means @ reference) / self.lengths[:, None]  # the columns sum to zero
        return np.asarray(np.mean(products**2, axis=1)) if size else np.zeros(0)

    def scores(self, weights: Floats, at: Indices) -> Floats:
        """Scores of the samples on modules (rows of `weights`), with mean 0 and standard deviation 1.

        `at` are the features of the study among those of the modules.
        """
        found = np.full((self.n_samples, len(weights)), np.nan)
        available, sizes = np.count_nonzero(weights[:, at], axis=1), np.count_nonzero(weights, axis=1)
        for module in np.flatnonzero(enough_features(available, sizes) & (available > 0)):
            own = weights[module, at].astype(np.float64)
            members = np.flatnonzero(own)
            score = own[members] @ self.features(members)
            spread = score.std()
            found[:, module] = score / spread if spread > 0 else np.nan
        return found


def fill_missing(values: Floats) -> Floats:
    """Missing entries replaced by the mean of the observed ones of their column; 0 if hardly any is observed."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    seen = np.sum(~missing, axis=0)
    filled = np.where(missing, np.where(missing, 0.0, values).sum(axis=0) / np.maximum(seen, 1), values)
    filled[:, seen < MIN_OBSERVED] = 0.0
    return np.asarray(filled)


def matched_sets(traits: list[Floats], members: Indices, n_draws: int, generator: np.random.Generator) -> Indices:
    """`n_draws` sets (rows) of different features, none of which is a member; column j holds replacements of member j.

    A replacement is drawn from the features whose ranks in all traits are closest to those of the member: at least 100
    of them and twice as many as there are members (at most a third of all features), so that a set without repetitions
    always exists. A trait that is the same for all features is ignored.
    """
    others = np.setdiff1d(np.arange(traits[0].size), members)
    n_pool, places = max(_SMALLEST_POOL, 2 * members.size), []
    for trait in traits:
        largest = np.abs(trait).max(initial=0.0)
        if np.ptp(trait) > 10.0**-_DIGITS * largest:
            # Ranks from 0 to 1; ties in random order, or the features nearest to a tie would always be the same ones.
            rounded = np.round(trait / largest, _DIGITS)  # the same for sparse and dense matrices
            order, ranks = np.lexsort([generator.random(trait.size), rounded]), np.empty(trait.size)
            ranks[order] = np.arange(trait.size) / max(trait.size - 1, 1)
            places.append(ranks)
    if not places or n_pool >= others.size:
        pools = np.tile(others, (members.size, 1))
    else:
        grid = np.column_stack(places)
        pools = others[KDTree(grid[others]).query(grid[members], k=n_pool)[1]]
    at = np.arange(len(pools))
    drawn = pools[at, generator.integers(pools.shape[1], size=(n_draws, at.size))]
    while (again := repeated_in_rows(drawn)).any():
        _, columns = np.nonzero(again)
        drawn[again] = pools[columns, generator.integers(pools.shape[1], size=columns.size)]
    return drawn
