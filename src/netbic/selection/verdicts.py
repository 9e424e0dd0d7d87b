"""One verdict per module: whether it is found again in samples that were not used, or repeats an earlier one.

The coherence of a vector v of weights in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the
weighted sum of features, relative to what it would be if they were independent. The most extreme sample is left out:
the features of one outlier move together by chance, and both halves of the samples may have one.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import orth

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState, is_sparse, jaccard, leading_right_vector
from netbic.estimators.covariates import basis_of, training_design
from netbic.estimators.inputs import check_same_data, has_missing
from netbic.estimators.parameters import check_count
from netbic.estimators.results import heaviest, name_features
from netbic.estimators.studies import as_one_study, coherence
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler
from netbic.operators.masked import learn_from_observed
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    by_position,
    correlation,
    draw_half_of_groups,
    draw_seed,
    fill_unobserved,
    match_rows,
    n_searched_again,
    restrict,
    seeded,
)
from netbic.solver.search import LOW_RANK, REPEATED

TOO_FEW = "too few samples to tell"
FEWEST_SAMPLES: Final = 20  # fewer leave fewer than ten in each half
_MIN_PAIRS = 3
_MORE_PAIRS = 2  # pairs after which it is checked again whether more are needed
_SCORE, _RATIO, _SHARE = 0.6, 2.0, 0.5  # smallest score, ratio and share of features of a module that is not in doubt
_OTHERWISE = 1 / 3  # share of the pairs with another verdict from which on a module is close to a limit
_MOST_FEATURES = 500  # of a module that are judged, the heaviest ones: their columns are dense
_RANDOM_SETS = 5  # of features per module and half
_SAMPLES_PER_SCORE = 3  # of a half, for every earlier score that is regressed out
_COLUMNS = [
    "module", "verdict", "score", "ratio", "ratio_alone", "features_found_again", "by_data_alone", "worst_rank",
    "repeats", "closest", "correlation", "feature_overlap", "sample_overlap", "reason",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Verdicts:
    """One verdict per module.

    Attributes
    ----------
    table : DataFrame
        A row per module. Numbers that depend on halves are medians over the pairs.

        - `module`: its number, from 1.
        - `verdict`: "strong", "moderate", "repeats k" (another module), "doubtful" or "too few samples to tell".
        - `score`: absolute correlation, in samples not used, of its scores with those of the module found again.
        - `ratio`: how many times as much as random features those found again move together in samples not used,
          beyond the earlier modules (whose scores are regressed out); `ratio_alone`: earlier modules included.
        - `features_found_again`: share of its features.
        - `by_data_alone`: share of its features that would be chosen without the graph; `worst_rank`: the worst rank of
          its 20 leading features by the data alone (both as in `diagnostics_`).
        - `repeats`: the earlier module that it repeats; missing if none.
        - `closest`: that module or, if there is none, the earlier one whose scores are most correlated (none for
          the first module); `correlation` of the scores of both in all samples; `feature_overlap` and `sample_overlap`:
          Jaccard indices of their members (`sample_overlap` is NaN if both keep all samples).
        - `reason`: the verdict as a sentence; a second sentence if at least a third of the pairs of halves, each judged
          alone, agree on another verdict.
    n_pairs : int
        Number of pairs of halves.
    """

    table: pd.DataFrame
    n_pairs: int

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if self.table.empty:
            return "No module was found in X, so there is none to judge."
        if (self.table["verdict"] == TOO_FEW).all():
            return str(self.table["reason"].iloc[0])
        kinds = self.table["verdict"].str.partition(" ")[0].tolist()
        words = {kind: (f"is {kind}", f"are {kind}") for kind in ("strong", "moderate", "repeats", "doubtful")}
        words["repeats"] = "repeats an earlier one", "repeat an earlier one"
        parts = [f"{kinds.count(kind)} {says[kinds.count(kind) > 1]}" for kind, says in words.items() if kind in kinds]
        total = f"{len(kinds)} module{'s' * (len(kinds) != 1)}"
        return f"Of {total}, {', '.join(parts)} (judged in {self.n_pairs} pairs of halves of the samples)."

    def __repr__(self) -> str:
        lines = [f"  {module}  {reason}" for module, reason in self.table[["module", "reason"]].to_numpy()]
        return "\n".join([self.verdict, *lines])


def verdicts(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    groups: ArrayLike | None = None,
    n_pairs: int = 10,
    early_stopping: bool = True,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
    feature_name: str = "feature",
) -> Verdicts:
    """Judge every module of a fitted model in samples that were not used to find it.

    The samples are split at random into two halves, several times. The model is fitted to one half (sizes in
    proportion, in a sequential search a third more modules), and its modules are matched one to one to those of the
    whole fit by the correlation of their scores in the *other* half. There, the features of a module found again should
    move together more than as many random features (others than its own), whose weights are fitted to the first half as
    well.

    A module is *doubtful* if its scores are not found again (correlation below 0.6), or if its features move together
    less than twice as much as random features. Otherwise it *repeats* an earlier one if the scores of both are
    correlated (0.7 or more) in all samples; it is *strong* if half of its features or more are found again and half or
    more would be chosen without the graph (all of its 20 leading features being among the first 200 by the data alone),
    *moderate* if one of these holds, and doubtful if neither does.

    Samples (or `groups` of them) are assumed to be independent: replicates and time series have to be given as groups.
    A module that is found again is a pattern of the data, whatever its cause: batches form modules as well, unless they
    are covariates of the model, which are removed from each half. Halves of several studies are drawn within each.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted to X. `n_pairs` clones of it are fitted to halves.
    X : array, DataFrame or sparse matrix
        The same data.
    groups : array of shape (n_samples,), optional
        Labels of samples that belong together, such as replicates of a patient, and stay in the same half.
    n_pairs : int
        Pairs of halves, at least 3.
    early_stopping : bool
        Make no further fits when more than half of `n_pairs` agree on which side of every limit each module is, so that
        medians cannot cross a limit any more. The numbers are medians over the pairs used (`Verdicts.n_pairs`).
    progress : function, optional
        Called after each pair, in the calling thread, with the numbers of finished pairs and of all pairs.
    random_state, n_jobs
        As for `stability`.
    feature_name : str
        The word for features in reasons and columns: with "gene", `genes_found_again` and `gene_overlap`.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    >>> found = netbic.selection.verdicts(model, study.expression, random_state=0)
    >>> found.table["verdict"].tolist()
    ['strong', 'strong', 'doubtful']
    >>> print(found.table["reason"][0])
    Strong: in samples not used to find it, its features move together ... % of them are found again.
    """
    check_count("n_pairs", n_pairs)
    if n_pairs < _MIN_PAIRS:
        raise ValueError(f"n_pairs={n_pairs}: at least {_MIN_PAIRS} are needed")
    model = fitted_model(model)
    check_same_data(model, X)
    labels = np.arange(X.shape[0]) if groups is None else np.asarray(groups)
    if labels.shape != (X.shape[0],):
        raise ValueError(f"groups has shape {labels.shape}: one label for each of the {X.shape[0]} samples is needed")
    if pd.isna(labels).any():
        raise ValueError("groups has missing labels: give every sample a label, its own if it belongs to no group")
    numbers = np.asarray(pd.factorize(labels)[0], dtype=np.intp)
    seed, n_units, fits = draw_seed(random_state), int(numbers.max()) + 1, Fits(X, n_jobs, progress)
    with quiet():
        halves = Halves(model, X, numbers, seed)
        n_covariates = 0 if halves.covariates is None else halves.covariates.shape[1]
        enough = n_units - 2 * n_covariates >= FEWEST_SAMPLES and model.n_components_ > 0  # they count in each half
        scores = halves.half(slice(None)).scores(halves.components)
        correlations = correlation(scores, scores)
        most, measures = n_pairs if enough else 0, list[HalfMeasures]()
        least = max(n_pairs // 2 + 1, _MIN_PAIRS)
        while (done := len(measures)) < most:
            if early_stopping and done >= least and _is_decided(measures, correlations, n_pairs):
                break
            size = min(most - done, max(least - done, _MORE_PAIRS)) if early_stopping else most - done
            fits.left = most - done - size
            measures += fits.map(Halves.measure, halves, [(seed, number) for number in range(done, done + size)])
    units = "samples" if groups is None else "groups of samples"
    given = f"{n_units} {units}" + (f" and {n_covariates} degrees of freedom of covariates" if n_covariates else "")
    too_few = f"Too few samples to tell: {given}, at least {FEWEST_SAMPLES + 2 * n_covariates} are needed."
    return Verdicts(_table(measures, correlations, model, too_few, feature_name), len(measures))


def _is_decided(found: list[HalfMeasures], correlations: Floats, n_pairs: int) -> bool:
    """Whether the medians of all pairs will be on the same side of every limit as now, for every module."""
    score, ratio, ratio_alone, features = np.array(found).swapaxes(0, 1)
    redundant = np.array([_redundant(correlations, k).size > 0 for k in range(score.shape[1])])
    ratio = np.where(redundant, ratio_alone, ratio)
    above = np.array([score >= _SCORE, ratio >= _RATIO, features >= _SHARE]).sum(axis=1)
    high, low = 2 * above > n_pairs, 2 * (len(found) - above) > n_pairs
    doubtful, found_again = low[0] | low[1], high[0] & high[1]
    return bool((doubtful | (found_again & (high[2] | low[2]))).all())


# Measures in halves of the samples


class HalfMeasures(NamedTuple):
    """Modules judged in one half of the samples by a fit to the other half; an entry per module."""

    score: Floats  # |correlation| of the module's scores with those of the module matched to it in the other half
    ratio: Floats  # coherence of the matched module relative to random features, after regressing earlier scores out
    ratio_alone: Floats  # the same without regressing anything out
    features: Floats  # share of the module's features in the matched one


class Halves:
    """A model whose graphs match `X` by position, and modules (rows of `components`) to judge in halves of X.

    `groups` holds a number per sample, from 0: samples of one group stay in one half. Halves are drawn within studies.
    """

    def __init__(self, fitted: SparseGraphSVD, X: Matrix, groups: Indices, seed: int) -> None:
        labels, self.groups = fitted.study_labels_, groups
        self.studies = None if labels is None else np.unique(labels.astype(str), return_inverse=True)[1]
        fitted, X = as_one_study(fitted, X)
        model, self.X = by_position(fitted, X, "csr")
        if model.diffusion == "cv":
            model.set_params(diffusion=fitted.diffusion_)  # as chosen once, for all halves
        self.model, self.components, self.covariates = (
            seeded(model, seed),
            fitted.components_,
            training_design(fitted, X),
        )

    def measure(self, seed: tuple[int, int]) -> HalfMeasures:
        """Fit a random half of the samples and judge the modules in the other half."""
        generator = np.random.default_rng(seed)
        inside = np.isin(self.groups, draw_half_of_groups(generator, self.groups, self.studies))
        found = self._refit(np.flatnonzero(inside), int(generator.integers(2**31 - 1)))
        if not len(found):
            return HalfMeasures(*np.zeros((4, len(self.components))))
        halves = self.half(np.flatnonzero(inside)), self.half(np.flatnonzero(~inside))
        scores = halves[0].scores(found), halves[1].scores(found)
        partner, score = match_rows(np.abs(correlation(halves[1].scores(self.components), scores[1])))
        fixed = len(set(np.count_nonzero(found, axis=1))) == 1  # all modules found have the same size
        rows = []
        for k, at in enumerate(partner):
            if at < 0:
                rows.append((0.0, 0.0, 0.0))
                continue
            own, features = judged_features(self.components[k]), judged_features(found[at])
            if fixed:
                own = own[: features.size]
                features = features[: own.size]
            again = np.intersect1d(own, features).size / max(own.size, features.size)
            # Random features are others than its own, of which a module of many features would leave few out.
            others = np.setdiff1d(np.arange(found.shape[1]), features)
            size = min(features.size, others.size)
            sets = [generator.choice(others, size, replace=False) for _ in range(_RANDOM_SETS)] if size else []
            # The scores of earlier modules are regressed out; the most correlated ones if samples are few.
            earlier = partner[:k][partner[:k] >= 0]
            alike = np.abs(correlation(scores[1][earlier], scores[1][[at]])).ravel()
            earlier = earlier[np.argsort(-alike, kind="stable")[: scores[1].shape[1] // _SAMPLES_PER_SCORE]]
            alone = _ratio(found[at], features, sets, halves, (scores[0][:0], scores[1][:0]))
            given = scores[0][earlier], scores[1][earlier]
            ratio = _ratio(found[at], features, sets, halves, given) if earlier.size else alone
            rows.append((ratio, alone, again))
        return HalfMeasures(score, *np.array(rows).T)

    def half(self, kept: Indices | slice) -> Half:
        """Some samples, after centring and scaling."""
        return Half(self.X[kept], self.model, None if self.covariates is None else self.covariates[kept])

    def _refit(self, kept: Indices, random_state: int) -> Floats:
        """Weights of the modules of some samples, a row each."""
        model = restrict(self.model, "row", kept, self.X.shape[0])
        number = len(self.components) if model.is_joint else model.n_components
        model.set_params(n_components=n_searched_again(model, number), random_state=random_state)
        covariates = None if self.covariates is None else self.covariates[kept]
        modules = model.modules_of(model.prepared(fill_unobserved(self.X[kept]), covariates))
        return np.array([module.v.full() for module in modules]).reshape(len(modules), self.X.shape[1])


def _ratio(
    weights: Floats, features: Indices, sets: list[Indices], halves: tuple[Half, Half], given: tuple[Floats, Floats]
) -> float:
    """Coherence of a module in the second half, relative to random `sets` whose weights the first half gives.

    Scores in both halves (`given`) are regressed out.
    """
    fitted, other = halves
    random = [coherence(other.columns(at, given[1]), leading_right_vector(fitted.columns(at, given[0]))) for at in sets]
    expected = float(np.mean(random)) if random else 0.0
    return coherence(other.columns(features, given[1]), weights[features]) / expected if expected > 0 else 0.0


class Half:
    """Some samples, centred and scaled by themselves, of which few columns are dense at a time.

    They are not smoothed, even if the model smooths them: diffusion alone makes neighbouring features move together.
    """

    def __init__(self, part: Matrix, model: SparseGraphSVD, covariates: Floats | None = None) -> None:
        part = fill_unobserved(part)
        basis = None if covariates is None else basis_of(covariates)
        if not is_sparse(part):
            part, basis = _complete(part, basis)
        # Features move together only around their means: columns are centred whatever the model does.
        center = "both" if model.center in ("rows", "both") else "columns"
        self._scaler = Scaler.learn(as_operator(part, low_memory=True), center, model.scale_power, basis)
        self._basis = np.empty((part.shape[0], 0)) if basis is None else basis
        self._effects = np.empty((0, part.shape[1])) if self._scaler.effects is None else self._scaler.effects
        self._row_means = np.asarray(part.mean(axis=1)).ravel() - self._scaler.offsets.mean()
        self._row_means -= self._basis @ self._effects.mean(axis=1)
        self._X = part.tocsc() if is_sparse(part) else part

    def scores(self, vectors: Array) -> Floats:
        """Centred scores, a row per vector."""
        products = np.asarray(self._scaler.project(self._X, vectors.T.astype(self._X.dtype)), dtype=np.float64)
        if self._basis.size:
            products -= self._basis @ self._scaler.project_effects(vectors.T)
        scores = products.T
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))

    def columns(self, at: Indices, given: Floats) -> Floats:
        """Some columns after regressing scores (the rows of `given`) out."""
        part = self._X[:, at]
        values = np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64) - self._scaler.offsets[at]
        if self._basis.size:
            values -= self._basis @ self._effects[:, at]
        if self._scaler.rows:
            values -= self._row_means[:, None]
        if self._scaler.factors is not None:
            values *= self._scaler.factors[at]
        basis = orth(given.T) if len(given) else np.empty((len(values), 0))
        return np.asarray(values - basis @ (basis.T @ values))


def _complete(part: Array, basis: Floats | None) -> tuple[Array, Floats | None]:
    """A half without missing entries, and the basis of covariates that are still to be removed."""
    if basis is not None and basis.shape[1]:
        if not has_missing(part):
            return part, basis
        part = learn_from_observed(part, "columns", False, basis).apply(part, basis)
    return np.where(np.isnan(part), np.nanmean(part, axis=0), part) if has_missing(part) else part, None


def judged_features(vector: Array) -> Indices:
    """The features by which a module is judged: its members or, if these are more than half of all, the heaviest."""
    members, most = heaviest(vector), max(1, vector.size // 2)
    if members.size > most:
        squares = vector.astype(np.float64) ** 2
        effective = round(squares.sum() ** 2 / (squares**2).sum())  # their number if all weights were equal
        members = members[: min(effective, most)]
    return members[:_MOST_FEATURES]


# Measures in words


class _Evidence(NamedTuple):
    """What is known about one module: by one pair of halves, or medians over all of them."""

    score: float
    ratio: float
    ratio_alone: float
    features_found_again: float
    by_data_alone: float
    worst_rank: float


def _redundant(correlations: Floats, k: int) -> Indices:
    """Earlier modules whose scores are correlated with those of module k, the most correlated one first."""
    earlier = np.abs(correlations[k, :k])
    order = np.argsort(-earlier, kind="stable")
    return order[earlier[order] >= REPEATED]


def _table(
    measures: list[HalfMeasures], correlations: Floats, model: SparseGraphSVD, too_few: str, feature_name: str
) -> pd.DataFrame:
    """`Verdicts.table`; `too_few` is the reason if there are no measures."""
    alone = model.diagnostics_[["by_data_alone", "worst_rank"]].to_numpy(dtype=np.float64)
    medians = np.median(measures, axis=0) if measures else np.full((len(HalfMeasures._fields), len(alone)), np.nan)
    rows: list[tuple[object, ...]] = []
    known: list[str] = []
    for k, by_data in enumerate(alone.tolist()):
        redundant, evidence = _redundant(correlations, k), _Evidence(*medians[:, k].tolist(), *by_data)
        verdict, repeats = _judged(evidence, redundant, known)
        closest, correlated, features, samples = -1, np.nan, np.nan, np.nan
        if k:
            closest = repeats if repeats >= 0 else int(np.abs(correlations[k, :k]).argmax())
            correlated = float(correlations[k, closest])
            sides = model.columns_, model.rows_
            features, samples = (float(jaccard(side[[k]], side[[closest]])[0]) for side in sides)
            if model.rows_[[k, closest]].all():  # the overlap of all samples says nothing
                samples = np.nan
        reason = too_few
        if measures:
            single = [_Evidence(*(float(values[k]) for values in pair), *by_data) for pair in measures]
            others = [_judged(pair, redundant, known)[0] for pair in single]
            if repeats >= 0:
                reason = _repetition(closest, correlated, features, samples, feature_name)
            else:
                reason = _reason(verdict, evidence, redundant.size > 0, feature_name)
            reason += _close(verdict, others)
        known.append(verdict)
        rows.append((k + 1, verdict, *evidence, repeats + 1, closest + 1, correlated, features, samples, reason))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    for name in ("repeats", "closest"):  # 0: none
        table[name] = table[name].where(table[name] > 0).astype("Int64")
    return name_features(table, feature_name)


def _judged(evidence: _Evidence, redundant: Indices, known: list[str]) -> tuple[str, int]:
    """The verdict, given those of earlier modules, and the module that is repeated (-1: none)."""
    if np.isnan(evidence.score):
        return TOO_FEW, -1
    # Nothing would be left of a redundant module beyond the earlier ones.
    ratio = evidence.ratio_alone if redundant.size else evidence.ratio
    if evidence.score < _SCORE or ratio < _RATIO:
        return "doubtful", -1
    # A module cannot repeat a doubtful one; one that repeats nothing itself is the better reference.
    repeated = sorted((j for j in redundant if known[j] != "doubtful"), key=lambda j: known[j].startswith("repeats"))
    if repeated:
        return f"repeats {repeated[0] + 1}", int(repeated[0])
    by_graph = evidence.by_data_alone < _SHARE or evidence.worst_rank > LOW_RANK
    return ("strong", "moderate", "doubtful")[(evidence.features_found_again < _SHARE) + by_graph], -1


def _reason(verdict: str, evidence: _Evidence, redundant: bool, feature_name: str) -> str:
    """The verdict as a sentence, unless the module repeats another one."""
    features, ratio = f"{feature_name}s", evidence.ratio_alone if redundant else evidence.ratio
    if verdict == "doubtful" and evidence.score < _SCORE:
        limits = f"correlation of scores {evidence.score:.2f}, at least {_SCORE:g} is needed"
        return f"Doubtful: a search in only half of the samples does not find it again ({limits})."
    if verdict == "doubtful" and ratio < _RATIO:
        beyond = "once the signals of earlier modules are removed, " if evidence.ratio_alone >= _RATIO else ""
        # 1.98 is written as 1.9: "2.0 times" would seem to be enough.
        limits = f"{math.floor(10 * ratio) / 10:.1f} times as much as random {features} ({_RATIO:g} times are needed)"
        return f"Doubtful: {beyond}its {features} move together only {limits} in samples not used to find it."
    by_graph = f"the graph puts a {feature_name} on top whose rank by the data alone is {evidence.worst_rank:,.0f}"
    if evidence.by_data_alone < _SHARE:
        by_graph = f"only {evidence.by_data_alone:.0%} of them would be chosen without the graph"
    share = f"{evidence.features_found_again:.0%}"
    if verdict == "doubtful":
        return f"Doubtful: only {share} of its {features} are found again, and {by_graph}.".replace("%", " %")
    beyond = "" if evidence.ratio_alone >= _RATIO else ", once the signals of earlier modules are removed"
    times = f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"
    together = f"in samples not used to find it, its {features} move together {times} as much as random {features}"
    if verdict == "strong":
        return f"Strong: {together}{beyond}; {share} of them are found again.".replace("%", " %")
    weak = f"only {share} of them are found again" if evidence.features_found_again < _SHARE else by_graph
    return f"Moderate: {together}{beyond}, but {weak}.".replace("%", " %")


def _close(verdict: str, of_pairs: list[str]) -> str:
    """A sentence if many pairs of halves, each judged alone, agree on another verdict.

    Examples
    --------
    >>> _close("doubtful", ["doubtful"] * 6 + ["strong"] * 4), _close("strong", ["strong"] * 7 + ["doubtful"] * 3)
    (' Close to the limit: 4 of 10 pairs of halves say strong.', '')
    """
    others = Counter(each for each in of_pairs if each != verdict).most_common(1)
    if not others or others[0][1] < _OTHERWISE * len(of_pairs):
        return ""
    return f" Close to the limit: {others[0][1]} of {len(of_pairs)} pairs of halves say {others[0][0]}."


def _repetition(closest: int, correlated: float, features: float, samples: float, feature_name: str) -> str:
    """The repeated module, the correlation of the scores, and how many members are the same.

    Examples
    --------
    >>> print(_repetition(0, -0.95, 0.1, 0.5, "gene"))
    Repeats module 1: it is high in samples in which module 1 is low (correlation of scores -0.95); 10 % of their genes
    and 50 % of their samples are in both.
    """
    other = f"module {closest + 1}"
    alike = f"it is high and low in similar samples as {other}"
    alike = alike if correlated > 0 else f"it is high in samples in which {other} is low"
    shared = f"{features:.0%} of their {feature_name}s"
    shared = (shared if np.isnan(samples) else f"{shared} and {samples:.0%} of their samples").replace("%", " %")
    return f"Repeats {other}: {alike} (correlation of scores {correlated:.2f}); {shared} are in both."
