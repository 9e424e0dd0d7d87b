"""Replication: how far each module holds in another study, or in a study that is left out of the fit."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.spatial import KDTree
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
    kind_of,
    leading_right_vector,
)
from netbic.enrichment import adjust_p_values, repeated_in_rows
from netbic.errors import InputError, shown
from netbic.estimators.covariates import as_table, covariate_names
from netbic.estimators.inputs import axis_names, check_same_data
from netbic.estimators.parameters import check_count
from netbic.estimators.prediction import module_scores
from netbic.estimators.results import name_features, names_of
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.operators.base import as_operator
from netbic.selection.resampling import (
    correlation,
    for_part,
    graphs_by_position,
    match_rows,
    n_asked,
    n_searched_again,
)

REPLICATED, PARTLY, NOT_REPLICATED = "replicated", "partly", "not replicated"
TOO_FEW = "too few to tell"
LEVEL = 0.05  # largest q-value of a module that holds
RATIO = 2.0  # times as much variance explained as in random features
AGREEMENT = 0.75  # share of the features that keep their direction
MIN_FEATURES, MIN_SAMPLES = 5, 10
_OTHERS = 2  # features to draw random sets from, for each feature of a module
_COLUMNS = [
    *("module", "verdict", "n_features", "n_available", "share_available"),
    *("variance_explained", "variance_expected", "ratio", "z", "p", "q"),
    *("density", "density_expected", "p_density", "loading_correlation", "p_loadings", "sign_agreement", "reason"),
]
_ROUNDING = 1e-10  # of the largest entry: a feature that varies less is constant
_ENTRIES = 4_000_000  # scores per batch
_MIN_OBSERVED = 3  # entries of a feature
_SMALLEST_POOL = 100  # features that may replace a feature
_DIGITS = 9  # differences of traits beyond these are rounding errors
NOT_FOUND = "not found without it"
_FOUND_FROM = 0.6  # smallest |correlation| of scores of a module that is found again, as for verdicts
_LEFT_OUT_COLUMNS = ["module", "study", "verdict", "score", "ratio", "q", "sign_agreement", "reason"]


@dataclass(frozen=True)
class Replication:
    """How far every module holds in another study.

    Attributes
    ----------
    table : DataFrame
        A row per module.

        - `module`: its number, from 1.
        - `verdict`: "replicated", "partly", "not replicated" or "too few to tell" (features or samples).
        - `n_features`: features of the module; `n_available` and `share_available`: those that the other study has too
          (and that vary there), by which the module is judged.
        - `variance_explained`: share of the variance of these features (each scaled to variance 1) along the weights of
          the module; `variance_expected`: the same for random features; `ratio` of the two; `z`: their distance in
          standard deviations of random features, by which modules can be ranked; `p` and `q` (Benjamini-Hochberg).
        - `density`: mean correlation of pairs of its features, with the sign that their weights predict;
          `density_expected` and `p_density`: the same for random features.
        - `loading_correlation`: of its weights with those fitted to the same features in the other study; `p_loadings`
          by permuting the weights among these features.
        - `sign_agreement`: share of its features that move with the others in the expected direction (0.5 by chance).
        - `reason`: the verdict as a sentence.
    n_features : int
        Features that both studies have.
    n_samples : int
        Samples of the other study that were used.
    n_shared : int
        How many of these seem to be samples of the fit too, by their names. They are no independent evidence.
    """

    table: pd.DataFrame
    n_features: int
    n_samples: int
    n_shared: int = 0
    feature_name: str = "feature"

    @property
    def verdict(self) -> str:
        """One plain sentence, and a second one if the studies share samples."""
        if self.table.empty:
            return "The model has no modules, so there is none to look for in the other study."
        found = self.table["verdict"].tolist()
        words = {REPLICATED: "replicated", PARTLY: "partly replicated", NOT_REPLICATED: "not replicated"}
        counts = [(found.count(kind), text) for kind, text in words.items() if kind in found]
        parts = [f"{number} {'is' if number == 1 else 'are'} {text}" for number, text in counts]
        parts += [f"{found.count(TOO_FEW)} cannot be judged"] * (TOO_FEW in found)
        used, shared = (f"{number:,} sample{'s' * (number != 1)}" for number in (self.n_samples, self.n_shared))
        given = f"{self.n_features:,} {self.feature_name}s in common, {used}"
        text = f"Of {len(found)} module{'s' * (len(found) != 1)}, {', '.join(parts)} in the other study ({given})."
        if self.n_shared:
            text += f" Not independent: {shared} of it may be in the first study too, by name."
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
    compared with random sets of features: each feature of the module is replaced by another one that has similar mean
    and variance in the other study, and that takes over its weight. Features of random sets also follow factors that
    all features follow.

    A module is *replicated* if its weights explain more of the variance of its features than expected by chance (q at
    most 0.05) and at least twice as much as in random features, and if at least 75 % of its features move with the
    others in the expected direction. It is *partly* replicated if only the first of these holds, and otherwise *not
    replicated*. At least 5 of its features, 10 samples, and twice as many other features as it has itself are needed to
    tell.

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

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 800, n_modules=2, module_samples=100, strength=1.5, random_state=0)
    >>> half, other = study.expression[:150], study.expression[150:].copy()
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(half)
    >>> netbic.replicate(model, other, random_state=0).table["verdict"].tolist()
    ['replicated', 'replicated']
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
    at, columns = _common_features(model, feature_names, X.shape[1])
    study, varying = OtherStudy.of(X[:, columns][kept], model.center in ("rows", "both"))
    weights = model.components_[:, at[varying]].astype(np.float64)
    rows: list[dict[str, Any]] = []
    for module, own in enumerate(weights):
        members, size = np.flatnonzero(own), int(np.count_nonzero(model.components_[module]))
        available, others = members.size, varying.size - members.size
        row: dict[str, Any] = {"module": module + 1, "n_features": size, "n_available": available, "reason": ""}
        row["share_available"] = available / size if size else np.nan
        if kept.size < MIN_SAMPLES:
            row["reason"] = f"number of samples in the other study: {kept.size}, at least {MIN_SAMPLES} are needed"
        elif available < MIN_FEATURES:
            vary = f"{available} of its {size} {feature_name}s (that vary)"
            row["reason"] = f"the other study has {vary}, at least {MIN_FEATURES} are needed"
        elif others < _OTHERS * available:
            needed = f"at least {_OTHERS * available:,} are needed for {available:,} {feature_name}s"
            row["reason"] = f"random sets can be drawn from only {others:,} other {feature_name}s, {needed}"
        else:
            row |= preservation(study, members, own[members], n_draws, generator)
        rows.append(row)
    table = pd.DataFrame(rows, columns=_COLUMNS)
    table["q"] = adjust_p_values(table["p"])
    judged = [_verdict(row, feature_name) for row in table.to_dict("records")]
    table["verdict"], table["reason"] = (pd.Series([each[k] for each in judged], dtype=object) for k in range(2))
    return Replication(name_features(table, feature_name), at.size, kept.size, n_shared, feature_name)


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
    names = [own if given is None else given for given, own in ((samples, known[0]), (features, known[1]))]
    for own, size, what in zip(names, X.shape, ("samples", "features"), strict=True):
        if own is not None and len(own) != size:
            raise InputError(f"{what} has {len(own):,} names but X_other has {size:,} {what}: one name each is needed")
    rows, columns = (None if own is None else text_names(own) for own in names)
    return X, columns, rows


def _common_features(model: SparseGraphSVD, names: Array | None, size: int) -> tuple[Indices, Indices]:
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
    at, columns = common_names(own, names)
    if not np.isin(at, np.flatnonzero(model.columns_.any(axis=0))).any() and model.n_components_:
        raise no_common_names(own[model.columns_.any(axis=0)], names)
    return at, columns


def _verdict(found: dict[Any, Any], feature_name: str) -> tuple[str, str]:
    """The verdict on a module, and the same as a sentence."""
    q, ratio, agreement = found["q"], found["ratio"], found["sign_agreement"]
    if np.isnan(q):
        return TOO_FEW, f"Cannot be judged: {found['reason']}."
    available, size = found["n_available"], found["n_features"]
    judged = f"{available} of its {size}" if available < size else f"its {size}"
    shares = f"it explains {found['variance_explained']:.0%} of the variance of {judged} {feature_name}s, against "
    shares += f"{found['variance_expected']:.0%} in random {feature_name}s"
    signs = "of them move in the expected direction"
    if q > LEVEL:
        verdict, text = NOT_REPLICATED, f"Not replicated: {shares} (q {q:.2g}), a difference that may be chance."
    elif ratio >= RATIO and agreement >= AGREEMENT:
        times = f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"
        verdict, text = REPLICATED, f"Replicated: {shares} ({times} as much, q {q:.2g}), and {agreement:.0%} {signs}."
    else:
        # What is too small is rounded down: 1.98 as 1.9, because "2.0 times" would seem to be enough.
        few, share = np.floor(np.round([10 * ratio, 100 * agreement], 9)) / [10, 100]
        weak = [f"this is only {few:.1f} times as much ({RATIO:g} times are needed)"] * (ratio < RATIO)
        weak += [f"only {share:.0%} {signs} ({AGREEMENT:.0%} are needed)"] * (agreement < AGREEMENT)
        verdict, text = PARTLY, f"Partly replicated: {shares} (q {q:.2g}), but {' and '.join(weak)}."
    return verdict, text.replace("%", " %")


def preservation(
    study: OtherStudy, members: Indices, weights: Floats, n_draws: int, generator: np.random.Generator
) -> dict[str, float]:
    """Judge a module in a study: columns of `Replication.table`.

    Every feature of a random set replaces a feature of the module, has similar mean and variance in this study, and
    takes over its weight. A factor that all features follow therefore moves random sets as well.
    """

    def p_value(values: Floats) -> float:
        """Of the first value among all."""
        return float((1 + np.sum(values[1:] >= values[0])) / values.size)

    weights, size = weights / np.linalg.norm(weights), members.size
    sets = np.vstack([members, matched_sets([study.means, study.lengths], members, n_draws, generator)])
    shares = study.energies(sets, weights) / size
    densities = (study.energies(sets, np.sign(weights)) - size) / (size * (size - 1))
    expected, spread = float(shares[1:].mean()), float(shares[1:].std())
    features = study.features(members)
    on_others = features @ (features.T @ weights) - weights  # loadings of every feature on the score of the others
    # The sign of fitted loadings is arbitrary: it is chosen so that their product with the weights is positive.
    loadings = leading_right_vector(features.T)
    loadings = loadings / (np.linalg.norm(loadings) or 1.0)
    permuted = np.vstack([weights, [generator.permutation(weights) for _ in range(n_draws)]])
    spreads, correlations = weights.std() * loadings.std(), None
    if spreads > 1e-12:
        correlations = permuted @ (loadings - loadings.mean()) / weights.size / spreads
        correlations *= np.where(permuted @ loadings >= 0, 1.0, -1.0)
    return {
        "variance_explained": float(shares[0]),
        "variance_expected": expected,
        "ratio": float(shares[0]) / expected,
        "z": (float(shares[0]) - expected) / spread if spread > 0 else np.nan,
        "p": p_value(shares),
        "density": float(densities[0]),
        "density_expected": float(densities[1:].mean()),
        "p_density": p_value(densities),
        "loading_correlation": np.nan if correlations is None else float(correlations[0]),
        "p_loadings": np.nan if correlations is None else p_value(correlations),
        "sign_agreement": float(np.mean(np.sign(on_others) == np.sign(weights))),
    }


@dataclass(frozen=True)
class OtherStudy:
    """The varying features of a study, as a matrix of shape (n_features, n_samples) that is dense or sparse.

    Features are centred and scaled to length 1 only in products, so that a sparse matrix stays sparse. `row_means` are
    subtracted from every feature first.
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
        X = X.astype(np.float64) if is_sparse(X) else _fill(np.asarray(X, dtype=np.float64))
        n_samples, means = X.shape[0], np.asarray(X.mean(axis=0)).ravel()
        row_means = np.asarray(X.mean(axis=1)).ravel() - means.mean() if center_rows else np.zeros(n_samples)
        lengths, largest = np.zeros(means.size), np.zeros(means.size)
        if min(X.shape):
            lengths = np.sqrt(as_operator(X, low_memory=True).column_squares(row_means, means))
            most = abs(X).max(axis=0)
            largest = np.asarray(most.toarray() if is_sparse(most) else most, dtype=np.float64).ravel()
        kept = np.flatnonzero(lengths > _ROUNDING * np.sqrt(n_samples) * np.maximum(largest, np.finfo(float).tiny))
        matrix = X.T.tocsr()[kept] if is_sparse(X) else np.ascontiguousarray(X.T[kept])
        return cls(matrix, means[kept], lengths[kept], row_means), kept

    def features(self, at: Indices) -> Floats:
        """Some features, centred and scaled to length 1, as rows."""
        part = self.matrix[at]
        values = part.toarray() if is_sparse(part) else part
        return np.asarray((values - self.means[at, None] - self.row_means) / self.lengths[at, None])

    def energies(self, sets: Indices, weights: Floats) -> Floats:
        """|sum_j weights_j z_j|^2 of every set (row), where z are its features, centred and scaled."""
        found = np.empty(len(sets))
        size = max(1, _ENTRIES // max(self.row_means.size, 1))
        for start in range(0, len(sets), size):
            part = sets[start : start + size]
            pointers = np.arange(0, part.size + 1, part.shape[1])
            products = sp.csr_array(
                ((weights / self.lengths[part]).ravel(), part.ravel(), pointers), shape=(len(part), len(self.means))
            )
            scores: Any = products @ self.matrix
            scores = scores.toarray() if is_sparse(scores) else scores
            offsets: Any = products @ self.means
            scores = scores - offsets[:, None] - np.outer(products.sum(axis=1), self.row_means)
            found[start : start + size] = np.einsum("ij,ij->i", scores, scores)
        return found


def _fill(values: Floats) -> Floats:
    """Missing entries replaced by the mean of the observed ones of their column; 0 if hardly any is observed."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    seen = np.sum(~missing, axis=0)
    filled = np.where(missing, np.where(missing, 0.0, values).sum(axis=0) / np.maximum(seen, 1), values)
    filled[:, seen < _MIN_OBSERVED] = 0.0
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


# Names of features and samples in two studies


def text_names(names: Any) -> Array:
    """Names as text."""
    return np.array([str(name) for name in names], dtype=object)


def common_names(some: Array, others: Array) -> tuple[Indices, Indices]:
    """Positions of the names in common, in the first and in the second list, in the order of the first."""
    for names in (some, others):
        index = pd.Index(names)
        if not index.is_unique:
            raise InputError(
                f"the name {shown(str(index[index.duplicated()][0]))} occurs more than once: rename or drop it"
            )
    at = pd.Index(others).get_indexer(pd.Index(some))
    first = np.flatnonzero(at >= 0)
    return first, np.asarray(at[first], dtype=np.intp)


def no_common_names(some: Array, others: Array) -> InputError:
    """The error for two studies without a common feature; it recognises names that differ in upper and lower case."""
    mine, theirs = (", ".join(map(shown, names[:3])) for names in (some, others))
    folded = {name.casefold() for name in others.tolist()}
    n_folded = sum(name.casefold() in folded for name in some.tolist())
    remedy = "translate the names of one study to those of the other"
    if n_folded:
        n_same = f"{n_folded:,} would be the same in lower case"
        remedy = f"{n_same}: if these are two species, translate the names of one to those of the other"
    return InputError(f"no name of the modules is in the other study ({mine}, ... and {theirs}, ...): {remedy}")


def shared_samples(fitted: Array, others: Array) -> Bools:
    """Which of the other samples seem to be among the fitted ones.

    Their names are the same, or one is the other one followed by "-", "." or "_" and more, as in TCGA's barcodes of
    patients and of their samples.
    """
    known, starts = set(fitted.tolist()), {start for name in fitted.tolist() for start in _starts(name)}
    return np.array(
        [name in known or name in starts or not known.isdisjoint(_starts(name)) for name in others.tolist()], dtype=bool
    )


def _starts(name: str) -> list[str]:
    """Everything before a separator, if it has a digit: "batch" is no name of a sample."""
    ends = (at for at, letter in enumerate(name) if letter in "-._")
    return [name[:end] for end in ends if any(map(str.isdigit, name[:end]))]


# Every study in turn as the other one


@dataclass(frozen=True, repr=False)
class LeftOut:
    """The result of `leave_one_study_out`.

    Attributes
    ----------
    table : DataFrame
        A row per module and study.

        - `verdict`: "replicated", "partly", "not replicated" or "too few to tell", as for
          :func:`netbic.replicate`, of the module that the other studies give; "not found without it" if they give none
          that is similar.
        - `score`: absolute correlation, in the other studies, of the scores of the module with those of the module
          found without the study.
        - `ratio`, `q`, `sign_agreement`, `reason`: as for :func:`netbic.replicate`.
    """

    table: pd.DataFrame

    @property
    def counts(self) -> pd.Series[int]:
        """In how many studies each module is replicated without having been fitted to them."""
        return (self.table["verdict"] == REPLICATED).astype(int).groupby(self.table["module"]).sum()

    @property
    def verdict(self) -> str:
        """One line per module."""
        total = self.table["study"].nunique()
        lines = []
        for module, part in self.table.groupby("module", sort=True):
            own = part.loc[part["verdict"] == REPLICATED, "study"].tolist()
            more = f" ({', '.join(own)})" if own else ""
            lines.append(f"module {module}: replicated in {len(own)} of {total} studies left out{more}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.verdict


def leave_one_study_out(
    model: Any, X: Any, *, covariates: Any = None, n_draws: int = 1000, random_state: RandomState = None
) -> LeftOut:
    """Fit without each study in turn, and look for the modules in the study that was left out.

    The modules of the other studies are matched one to one to those of the whole fit by the correlation of their scores
    in the other studies, and :func:`netbic.replicate` judges them in the study that was not used. A module that only
    one study has is not found without it, and not replicated in the others.

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
    random_state : None, int or numpy.random.Generator

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies((60, 80, 100), 400, lives=((0, 1, 2), (1,)), random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    >>> print(netbic.leave_one_study_out(model, simulated.X, random_state=0))
    module 1: replicated in 3 of 3 studies left out (study_1, study_2, study_3)
    module 2: replicated in 0 of 3 studies left out
    """
    model, generator = fitted_model(model), np.random.default_rng(random_state)
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
    labels, n_modules, tables = np.asarray(model.study_labels_), model.n_components_, []
    rows = X.iloc if isinstance(X, pd.DataFrame) else X
    for study in model.study_scaling_.names:
        kept = labels != study
        others = _fit_without(model, X, rows[np.flatnonzero(kept)], kept, labels, covariates)
        both = copy.copy(model)
        both.components_ = np.vstack([model.components_, others.components_])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X (has feature names|does not have valid)")
            scores = module_scores(both, X)[kept].T
        partner, found = match_rows(np.abs(correlation(scores[:n_modules], scores[n_modules:])))
        judged = replicate(others, rows[np.flatnonzero(~kept)], n_draws=n_draws, random_state=generator).table
        table = judged.reindex(partner).assign(module=np.arange(1, n_modules + 1), score=found, study=study)
        unlike = found < _FOUND_FROM
        table.loc[unlike, ["verdict", "reason"]] = NOT_FOUND, "The other studies have no module with similar scores."
        table.loc[unlike, ["ratio", "q", "sign_agreement"]] = np.nan
        tables.append(table)
    return LeftOut(pd.concat(tables).sort_values("module", kind="stable", ignore_index=True)[_LEFT_OUT_COLUMNS])


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
