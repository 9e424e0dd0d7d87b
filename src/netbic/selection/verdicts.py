"""One verdict per module, and a confidence for each of its features, by samples that were not used."""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState, jaccard
from netbic.errors import plural, some_names
from netbic.estimators.inputs import check_same_data
from netbic.estimators.parameters import check_count
from netbic.estimators.results import heaviest, name_features, names_of
from netbic.estimators.studies import study_labels
from netbic.estimators.svd import SparseGraphSVD, fitted_model
from netbic.selection.confidence import confidence, confidence_in_set
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.halves import FEWEST_GROUPS, Measures, Splits
from netbic.selection.independence import FEWEST_SAMPLES, alike, patches
from netbic.selection.resampling import correlation, draw_seed
from netbic.selection.technical import Followed, SampleProperties, carriers
from netbic.solver.search import LOW_RANK, REPEATED, SIMILAR

TOO_FEW: Final = "too few samples to tell"
BROAD: Final = "broad axis"
KINDS: Final = ("strong", "moderate", BROAD, "repeats", "doubtful")  # of verdicts, the best first
_FEWEST_IN_GROUP = 10  # samples of a group that is left out
_MIN_PAIRS = 3
_MORE_PAIRS = 2  # after which it is checked again whether verdicts change
_SCORE = 0.6  # smallest correlation of the scores of a module found again
_Z = 5.0  # standard deviations of random features by which those of a module move together more
_STRONG, _MODERATE = 0.8, 0.4  # smallest mean confidence of the features
_BREADTH = 0.15  # of a broad axis: squared correlation of other features, relative to its own ones
_TOGETHER = 2.0  # coherence of random features on a broad axis
_BY_DATA = 0.5  # smallest share of features that would be chosen without the graph
_COLUMNS = [
    "module", "verdict", "score", "ratio", "z", "confidence", "features_found_again", "kme_by_chance", "breadth",
    "by_data_alone", "worst_rank", "repeats", "closest", "correlation", "feature_overlap", "sample_overlap",
    "technical", "reason",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Verdicts:
    """One verdict per module, and a confidence for each of its features.

    Attributes
    ----------
    table : DataFrame
        A row per module. Numbers that depend on halves are means over the halves.

        - `module`: its number, from 1.
        - `verdict`: "strong", "moderate", "broad axis", "repeats k" (another module), "doubtful" or "too few samples to
          tell".
        - `score`: absolute correlation, in samples not used, of its scores with those of the module found again.
        - `ratio`: how many times as much as random features its features move together in samples not used, beyond
          other modules; `z`: the difference in standard deviations of random features.
        - `confidence`: mean of its features, the share of them that is expected to be right.
        - `features_found_again`: share of its features in the module found again, mean over the halves.
        - `kme_by_chance`: the absolute kME that 5 % of the other features exceed.
        - `breadth`: how much other features follow it: the product of their correlations with the score in both halves,
          relative to the squared correlation of its own features.
        - `by_data_alone`: share of its features that would be chosen without the graph; `worst_rank`: the worst rank of
          its 20 leading features by the data alone (both as in `diagnostics_`).
        - `repeats`: the earlier module that it repeats; missing if none.
        - `closest`: that module or, if there is none, the earlier one whose scores are most correlated (none for
          the first module); `correlation` of the scores of both in all samples; `feature_overlap` and `sample_overlap`:
          Jaccard indices of their members (`sample_overlap` is NaN if both keep all samples).
        - `technical`: what its scores follow, if it may be technical, and the one or two samples that carry it; empty
          otherwise.
        - `reason`: the verdict in words.
    features : DataFrame
        A row per module and feature, the most confident first: `module`, `feature`, `weight`, `found_again` (share of
        the halves in which the feature is found again with the same sign), `kme` (its correlation with the score that
        the other features give, in samples not used, beyond other modules) and `confidence` (that this correlation is
        not chance, from 0 to 1: one minus the local false discovery rate among all features).
    n_pairs : int
        Number of pairs of halves, or of groups that were left out in turn.
    unit : str
        What `n_pairs` counts, in words.
    hint : str
        What to do if modules follow the mean of the samples, and a remark if neighbours in the graph are alike
        everywhere; usually empty.
    """

    table: pd.DataFrame
    features: pd.DataFrame
    n_pairs: int
    unit: str = "pairs of halves of the samples"
    hint: str = ""

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        return verdict_sentence(self.table, f" (judged in {self.n_pairs} {self.unit})")

    def __repr__(self) -> str:
        lines = [f"  {module}  {reason}" for module, reason in self.table.iloc[:, [0, -1]].to_numpy()]
        return "\n".join([self.verdict, *lines, *[self.hint] * bool(self.hint)])


def kind_of_verdict(verdict: str) -> str:
    """One of `KINDS`, without the number of the module that is repeated; "unknown" if it could not be judged."""
    return next((kind for kind in KINDS if verdict == kind or verdict.startswith(f"{kind} ")), "unknown")


def verdict_sentence(table: pd.DataFrame, how: str = "") -> str:
    """How many modules have which verdict, as one sentence."""
    if table.empty:
        return "No module was found in X, so there is none to judge."
    if (table["verdict"] == TOO_FEW).all():
        return str(table["reason"].iloc[0])
    kinds = [kind_of_verdict(verdict) for verdict in table["verdict"]]
    words = {kind: (f"is {kind}", f"are {kind}") for kind in KINDS}
    words |= {BROAD: ("is a broad axis", "are broad axes"), "repeats": ("repeats another one", "repeat another one")}
    technical = table["technical"].fillna("").str.startswith("may be") if "technical" in table else [False] * len(kinds)
    unsure = [kind for kind, own in zip(kinds, technical, strict=True) if own and kind != "doubtful"]
    parts = [
        f"{kinds.count(kind)} {words[kind][kinds.count(kind) > 1]}"
        + f" ({unsure.count(kind)} of them may be technical)" * (kind in unsure)
        for kind in KINDS
        if kind in kinds
    ]
    return f"Of {len(kinds)} module{'s' * (len(kinds) != 1)}, {', '.join(parts)}{how}."


def verdicts(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    groups: ArrayLike | None = None,
    n_pairs: int = 12,
    early_stopping: bool = True,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
    feature_name: str = "feature",
    sample_name: str = "sample",
) -> Verdicts:
    """Judge every module of a fitted model, and each of its features, in samples that were not used to find it.

    The samples are split at random into two halves, several times. The model is fitted to each half (sizes of sample
    groups in proportion, and about a third more modules), and its modules are matched one to one to those
    of the whole fit by the correlation of their scores in the *other* half, where all numbers are measured. A module
    found again has as many features as the module itself. The scores of other modules whose correlation with its own is
    0.1 to 0.7 are regressed out.

    A module is *doubtful* if its scores are not found again (mean correlation below 0.6), or if its features move
    together no more than random ones (by less than five standard deviations of sets of as many random features,
    weighted by their covariance with the module in the half of the fit). Otherwise it *repeats* an earlier one if the
    scores of both are correlated (0.9 or more) in all samples. It is *strong* if the mean confidence of its features is
    at least 0.8 and no one or two samples carry it, and *moderate* if it is at least 0.4 (or if it would be strong, but
    one of two parts of the evidence alone says doubtful); it is less by one step if the
    graph has chosen the features (fewer than half would be chosen without it, or one of the 20 leading ones is not
    among the first 200 by the data alone). It is a *broad axis* if other features follow it, too (breadth of 0.15
    or more), even if random ones move together as much: its scores can be interpreted, a list of features cannot. A
    module that follows the mean of the samples, as the depth of sequencing gives it, is doubtful or a broad axis.

    Samples (or `groups` of them) are assumed to be independent: replicates, cells of one donor and time series have to
    be given as groups. A module that is found again is a pattern of the data, whatever its cause: batches form modules
    as well, unless they are covariates of the model, which are removed from each half. Halves of several studies are
    drawn within each.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted to X. Clones of it are fitted to halves.
    X : array, DataFrame or sparse matrix
        The same data.
    groups : array of shape (n_samples,), optional
        Labels of samples that belong together, such as cells of a donor, and stay in the same half. If there are fewer
        than 20 groups, each group of at least 10 samples is left out in turn instead; at least 3 such groups are
        needed. A module is then doubtful if one group has most of the evidence, and too little is left without it. It
        is not strong if its features do not move together in the median group. Reasons call groups by the name of a
        Series: "donors left out of the search".
    n_pairs : int
        Pairs of halves, at least 3.
    early_stopping : bool
        Make no further fits when two more pairs have changed no verdict and none is close to a limit.
    progress : function, optional
        Called after each pair, in the calling thread, with the numbers of finished pairs and of all pairs.
    random_state, n_jobs
        As for `stability`.
    feature_name : str
        The word for features in reasons and columns: with "gene", `genes_found_again` and `gene_overlap`.
    sample_name : str
        The word for samples in reasons, such as "cell".

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    >>> found = netbic.selection.verdicts(model, study.expression, random_state=0)
    >>> found.table["verdict"].tolist()
    ['strong', 'strong', 'doubtful']
    >>> print(found.table["reason"][0])
    Strong: in samples not used to find it, its features move together ... % of them are expected to be right.
    >>> list(found.features.columns)
    ['module', 'feature', 'weight', 'found_again', 'kme', 'confidence']
    """
    model = fitted_model(model)
    check_same_data(model, X)
    numbers, labels = group_numbers(groups, X.shape[0], model.names_["rows"])
    if groups is None and (seen := alike(model, X, sample_name)):
        warnings.warn(
            f"successive {sample_name}s are alike ({seen}): if they are replicates or a time series, noise can be "
            f"called strong; give replicates, or blocks of time points, as `groups`",
            stacklevel=2,
        )
    seed = draw_seed(random_state)
    with quiet():
        splits = Splits(model, X, numbers, seed)
    words = Words(feature_name, sample=sample_name, groups=called(groups, sample_name), labels=labels)
    return judged(splits, n_pairs, words, early_stopping=early_stopping, progress=progress, n_jobs=n_jobs)


def judged(
    splits: Splits,
    n_pairs: int,
    words: Words,
    *,
    early_stopping: bool,
    progress: Progress | None,
    n_jobs: Jobs,
) -> Verdicts:
    """The verdicts on the modules of some splits, whose groups were given if words have a name for them."""
    check_count("n_pairs", n_pairs)
    if n_pairs < _MIN_PAIRS:
        raise ValueError(f"n_pairs={n_pairs}: at least {_MIN_PAIRS} are needed")
    model, seed = splits.fitted, splits.seed
    fits = Fits(splits.X, 2 * n_pairs, n_jobs, progress, n_modules=model.n_components_)
    with quiet():
        n_covariates = 0 if splits.covariates is None else splits.covariates.shape[1]
        plan = Plan.of(splits.groups, n_covariates, groups=words.groups, sample=words.sample)
        evidence, nothing = _Evidence(splits.components), not model.n_components_ or plan.too_few
        measured = iter(()) if nothing else plan.measured(splits, fits, seed, n_pairs)
        known = _Known.of(model, splits, plan, seed, words)  # meanwhile, other processes make the first fits
        for pair in measured:
            evidence.add(pair)
            if early_stopping and not plan.left_out.size and evidence.is_decided(known):
                break
        found = _judgements(evidence, known)
    words = replace(words, left_out=bool(plan.left_out.size))
    table = _table(found, evidence.total(), known, model, plan.too_few, words)
    hint = " ".join(filter(None, [_hint(known, model, words), patches(known.weights, splits, words.feature)]))
    return Verdicts(table, _features(evidence, found, model, words.feature), evidence.n_pairs, plan.unit, hint)


def called(groups: Any, sample_name: str = "sample") -> str:
    """What groups of samples are called, in the plural: by the name of a Series; "" if none are given."""
    if groups is None:
        return ""
    name = getattr(groups, "name", None)
    return plural(name) if isinstance(name, str) else f"groups of {sample_name}s"


def group_numbers(groups: Any, n_samples: int, names: Array | None) -> tuple[Indices, list[str]]:
    """A number per sample, from 0: that of its group, or its own; and the labels of groups that were given.

    A Series is matched by name.
    """
    if groups is None:
        return np.arange(n_samples, dtype=np.intp), []
    numbers, labels = pd.factorize(study_labels(groups, n_samples, names, "groups"))
    return np.asarray(numbers, dtype=np.intp), [str(label) for label in labels]


@dataclass(frozen=True)
class Plan:
    """How samples are split: in halves, or with some groups (`left_out`) left out in turn; why not, if too few."""

    left_out: Indices
    too_few: str
    unit: str

    @classmethod
    def of(cls, numbers: Indices, n_covariates: int = 0, *, groups: str = "", sample: str = "sample") -> Plan:
        """Halves of groups of samples (a number per sample) or, if these are fewer than 20 but large, each of them.

        `groups` is what they are called, if they were given.
        """
        sizes = np.bincount(numbers)
        needed = FEWEST_SAMPLES + 2 * n_covariates  # covariates count in each half
        in_group = _FEWEST_IN_GROUP + n_covariates
        large = np.flatnonzero(sizes >= in_group)
        if sizes.size >= needed:
            return cls(large[:0], "", f"pairs of halves of the {groups or f'{sample}s'}")
        if groups and large.size >= FEWEST_GROUPS:
            return cls(large, "", f"{groups}, each left out in turn")
        given = f"{sizes.size} {groups or f'{sample}s'}"
        given += f" and {n_covariates} degrees of freedom of covariates" if n_covariates else ""
        also = f", or {FEWEST_GROUPS} groups of at least {in_group} {sample}s" if groups else ""
        return cls(large[:0], f"Too few {sample}s to tell: {given}, at least {needed}{also} are needed.", "")

    @property
    def smallest_sd(self) -> float:
        """The standard deviation of mean values of independent samples, each in units of its own.

        Two complementary halves have all samples, twice as many as one; every sample is in one of the groups.
        """
        return float(1 / np.sqrt(max(self.left_out.size, 2)))

    def measured(self, splits: Splits, fits: Fits, seed: int, n_pairs: int) -> Iterator[list[Measures]]:
        """The measures of every pair of halves (or of every group); fits begin at once."""
        if self.left_out.size:
            return fits.map(Splits.without, splits, self.left_out.tolist())
        # Many processes judge one half each: some work is then done twice, but fewer of them wait.
        parts = [(0,), (1,)] if fits.n_parallel > _MIN_PAIRS else [(0, 1)]
        jobs = [(seed, number, which) for number in range(n_pairs) for which in parts]
        return _joined(fits.map(Splits.halves, splits, jobs), len(parts))


def _joined(lists: Generator[list[Measures], None, None], n: int) -> Iterator[list[Measures]]:
    """Every `n` lists as one."""
    with closing(lists):
        while some := list(islice(lists, n)):
            yield list(chain.from_iterable(some))


class _Sums(NamedTuple):
    """Sums of the measures of some parts of the samples; the first axis is that of the modules."""

    n: int
    score: Floats
    coherence: Floats
    random: Floats
    breadth: Floats
    found_again: Floats  # parts in which a feature is found again with the same sign
    kme: Floats
    z: Floats  # Fisher's z of the correlations, in units of its standard deviation
    each: dict[int, Floats]  # the coherence of every group, its own in the first column, then that of random features

    @classmethod
    def of(cls, one: Measures, signs: Floats, number: int) -> _Sums:
        """One part of the samples; `signs` are those of the weights, `number` that of the pair (or group)."""
        # Fisher's z of n samples has the variance 1 / (n - 3).
        z = np.sqrt(np.maximum(one.degrees - 2, 1))[:, None] * np.arctanh(one.kme)
        again = (one.selected == signs) & (signs != 0)
        each = {number: np.column_stack([one.coherence, one.random])}
        return cls(1, one.score, one.coherence, one.random, one.breadth, again * 1.0, one.kme.astype(float), z, each)

    def plus(self, other: _Sums) -> _Sums:
        """The sums of both."""
        own: list[Any] = [*self[:-1]]
        sums = [one + another for one, another in zip(own, other[:-1], strict=True)]
        return _Sums._make([*sums, self.each | other.each])


class _Evidence:
    """The measures of all pairs of halves (or groups) so far, summed over every second one."""

    def __init__(self, weights: Floats) -> None:
        self._signs, self._sums, self.n_pairs = np.sign(weights), list[_Sums](), 0
        self._verdicts: list[str] | None = None  # when it was last asked whether they are decided

    def add(self, pair: Sequence[Measures]) -> None:
        """Add the measures of one more pair (or group)."""
        new = reduce(_Sums.plus, [_Sums.of(one, self._signs, self.n_pairs) for one in pair])
        if self.n_pairs < 2:
            self._sums.append(new)
        else:
            at = self.n_pairs % 2
            self._sums[at] = self._sums[at].plus(new)
        self.n_pairs += 1

    def is_decided(self, known: _Known) -> bool:
        """Whether two more pairs have changed no verdict, and every second pair alone gives the same ones."""
        if self.n_pairs < _MIN_PAIRS or (self.n_pairs - _MIN_PAIRS) % _MORE_PAIRS:
            return False
        before, self._verdicts = self._verdicts, _words(self.total(), known)
        return self._verdicts == before and all(_words(part, known) == before for part in self.parts())

    def total(self) -> _Sums | None:
        """The sums over all pairs; None without any."""
        return reduce(_Sums.plus, self._sums) if self._sums else None

    def parts(self) -> list[_Sums]:
        """The sums over every second pair, if there are enough."""
        return self._sums if self.n_pairs > _MIN_PAIRS else []


class _Known(NamedTuple):
    """What is known of the modules without halves."""

    weights: Floats
    correlations: Floats  # of the scores of all modules, in all samples
    by_data: Floats  # `by_data_alone` and `worst_rank`
    followed: list[Followed]
    carried: list[list[str]]  # the samples that carry a module
    plan: Plan
    may_repeat: bool  # whether a module that repeats another one gets no verdict of its own
    searched: bool  # whether the modules were found in these data

    @classmethod
    def of(cls, model: SparseGraphSVD, splits: Splits, plan: Plan, seed: int, words: Words) -> _Known:
        """Correlations of scores, and what may be technical about them."""
        every = splits.part(np.arange(splits.groups.size))
        scores = every.scores(splits.components)
        properties = SampleProperties(splits.X, model.names_["columns"], np.random.default_rng(seed))
        known = zip(scores, splits.components != 0, every.correlations(scores), strict=True)
        followed = [properties.followed_by(*one) for one in known]
        names = names_of(model, "rows")
        enough = not plan.too_few  # two of few samples carry a module by chance
        carried = [[str(names[at]) for at in carriers(score)] if enough else [] for score in scores]
        by_data = model.diagnostics_[["by_data_alone", "worst_rank"]].to_numpy(dtype=np.float64)
        alike = correlation(scores, scores)
        may_repeat = words.names is None
        return cls(splits.components, alike, by_data, followed, carried, plan, may_repeat, words.searched)


# From measures to verdicts


@dataclass(frozen=True)
class _Judgement:
    """What is known about one module, and the verdict."""

    verdict: str
    searched: bool = True  # whether the module was found in these data
    repeats: int = -1  # the module that is repeated
    alone: str = ""  # the verdict if it repeated none
    score: float = np.nan
    ratio: float = np.nan
    z: float = np.nan
    confidence: float = np.nan
    found_again: float = np.nan
    breadth: float = np.nan
    of_random: float = np.nan  # how much random features move together
    by_data_alone: float = np.nan
    worst_rank: float = np.nan
    of_features: Floats | None = None  # confidence of every feature
    closest_other: str = ""  # the verdict by part of the evidence, if it is another one
    without_most: float = np.inf  # z without the group whose features move together most
    carrier: int = -1  # that group, if it has most of the evidence and too little is left without it
    typical: float = np.inf  # z in the median group

    @property
    def is_broad(self) -> bool:
        """Whether other features follow it, too: random ones move together, or less than its own, but with it.

        A set that was given need not be complete: it is broad only if its own features do not stand out.
        """
        if not self.searched:
            return self.breadth >= _BREADTH and self.z >= _Z and self.confidence < _MODERATE
        return self.breadth >= _BREADTH and (self.z >= _Z or self.of_random >= _TOGETHER)

    @property
    def by_graph(self) -> bool:
        """Whether the graph has chosen the features."""
        return self.by_data_alone < _BY_DATA or self.worst_rank > LOW_RANK


def _judgements(evidence: _Evidence, known: _Known) -> list[_Judgement]:
    """Every module judged by all measures, and by every second pair or group of them.

    A module that is doubtful by part of the evidence alone is not strong.
    """
    total = evidence.total()
    if total is None:
        return [_Judgement(TOO_FEW, by_data_alone=own[0], worst_rank=own[1]) for own in known.by_data.tolist()]
    judged, parts = _judged_by(total, known), [_judged_by(part, known) for part in evidence.parts()]
    for k, one in enumerate(judged):
        if one.carrier >= 0:  # parts are not asked whether one group carries the module
            continue
        others = sorted({part[k].verdict for part in parts} - {one.verdict}, key="doubtful".__eq__)
        verdict = "moderate" if one.verdict == "strong" and "doubtful" in others else one.verdict
        judged[k] = replace(one, verdict=verdict, closest_other=others[-1] if others else "")
    return judged


def _words(sums: _Sums | None, known: _Known) -> list[str]:
    """The verdict of every module by some measures."""
    return [] if sums is None else [one.verdict for one in _judged_by(sums, known)]


def _judged_by(sums: _Sums, known: _Known) -> list[_Judgement]:
    """Every module judged by some measures; a module can repeat an earlier one that is not doubtful."""
    judged: list[_Judgement] = []
    for k in range(len(known.weights)):
        one = _evidence(sums, known, k)
        redundant = np.flatnonzero(np.abs(known.correlations[k, :k]) >= REPEATED)
        # One that repeats nothing itself is the better reference.
        order = sorted(redundant, key=lambda j: (judged[j].repeats >= 0, -abs(known.correlations[k, j])))
        repeats = next((int(j) for j in order if known.may_repeat and judged[j].verdict != "doubtful"), -1)
        own = _verdict(one, -1, known.followed[k], bool(known.carried[k]))["verdict"]
        judged.append(replace(one, **_verdict(one, repeats, known.followed[k], bool(known.carried[k])), alone=own))
    return judged


def _evidence(sums: _Sums, known: _Known, k: int) -> _Judgement:
    """The numbers of one module: means over the parts of the samples."""
    n, weights, members = sums.n, known.weights[k], known.weights[k] != 0
    own, random, z = float(sums.coherence[k]) / n, sums.random[k] / n, sums.z[k] / n
    expected = float(random.mean())
    sure = confidence(z, members, known.plan.smallest_sd) if known.searched else confidence_in_set(z, members)
    found = np.where(np.sign(z) == np.sign(weights), sure, 0.0)
    # Some of the groups alone are too few to look at each of them.
    is_whole = bool(n) and n == known.plan.left_out.size
    by_group = _by_group(np.array([sums.each[at][k] for at in range(n)]), known.plan.left_out) if is_whole else {}
    return _Judgement(
        "",
        **by_group,
        searched=known.searched,
        score=float(sums.score[k]) / n,
        ratio=own / expected if expected > 0 else 0.0,
        z=_standardised(np.array([own, *random])),
        confidence=float(found[members].mean()) if members.any() else 0.0,
        found_again=float(sums.found_again[k, members].mean()) / n if members.any() else 0.0,
        breadth=float(sums.breadth[k]) / n,
        of_random=expected,
        by_data_alone=known.by_data[k, 0],
        worst_rank=known.by_data[k, 1],
        of_features=found,
    )


def _by_group(coherence: Floats, groups: Indices) -> dict[str, Any]:
    """Whether features move together in most groups, and the group that has most of the evidence if it is needed.

    `coherence` has a row for each group, its own in the first column, then that of random features.
    """
    excess = coherence[:, 0] - coherence[:, 1:].mean(axis=1)
    most = int(excess.argmax())
    without = _standardised(np.delete(coherence, most, axis=0).mean(axis=0))
    carries = without < _Z and 2 * excess[most] >= np.maximum(excess, 0.0).sum()
    typical = _standardised(np.median(coherence, axis=0))
    return {"without_most": without, "carrier": int(groups[most]) if carries else -1, "typical": typical}


def _standardised(coherence: Floats) -> float:
    """By how many standard deviations of random features (all but the first entry) the first entry exceeds them."""
    spread = float(coherence[1:].std(ddof=1))
    return float(coherence[0] - coherence[1:].mean()) / spread if spread > 0 else 0.0


def _verdict(one: _Judgement, repeats: int, followed: Followed, carried: bool) -> dict[str, Any]:
    """The verdict, and the module that is repeated (-1: none)."""
    if one.score < _SCORE or (one.z < _Z and not one.is_broad):
        return {"verdict": "doubtful", "repeats": -1}
    if one.carrier >= 0 and not one.is_broad:
        return {"verdict": "doubtful", "repeats": -1}
    if repeats >= 0:
        return {"verdict": f"repeats {repeats + 1}", "repeats": repeats}
    if one.is_broad:
        return {"verdict": BROAD, "repeats": -1}
    if one.confidence < _MODERATE or followed.is_depth:
        return {"verdict": "doubtful", "repeats": -1}
    steps = int(one.by_graph) + int(one.confidence < _STRONG or carried or one.typical < _Z)
    return {"verdict": ("strong", "moderate", "doubtful")[steps], "repeats": -1}


def _features(
    evidence: _Evidence, judged: Sequence[_Judgement], model: SparseGraphSVD, feature_name: str
) -> pd.DataFrame:
    """`Verdicts.features`."""
    names, parts, sums = names_of(model, "columns"), [], evidence.total()
    for k, (one, weights) in enumerate(zip(judged, model.components_, strict=True)):
        at = heaviest(weights)
        table = pd.DataFrame({"module": k + 1, feature_name: names[at], "weight": weights[at]})
        found = np.full((3, at.size), np.nan)
        if sums is not None and one.of_features is not None:
            means = sums.found_again[k, at] / sums.n, np.sign(weights[at]) * sums.kme[k, at] / sums.n
            found = np.array([*means, one.of_features[at]])
        table["found_again"], table["kme"], table["confidence"] = found
        parts.append(table.sort_values(["confidence", "kme"], ascending=False, kind="stable"))
    columns = ["module", feature_name, "weight", "found_again", "kme", "confidence"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _table(
    judged: Sequence[_Judgement],
    sums: _Sums | None,
    known: _Known,
    model: SparseGraphSVD,
    too_few: str,
    words: Words,
) -> pd.DataFrame:
    """`Verdicts.table`; `too_few` is the reason if nothing could be judged."""
    rows: list[tuple[object, ...]] = []
    for k, one in enumerate(judged):
        closest, correlated, features, samples = -1, np.nan, np.nan, np.nan
        if k:
            closest = one.repeats if one.repeats >= 0 else int(np.abs(known.correlations[k, :k]).argmax())
            correlated = float(known.correlations[k, closest])
            sides = model.columns_, model.rows_
            features, samples = (float(jaccard(side[[k]], side[[closest]])[0]) for side in sides)
            if model.rows_[[k, closest]].all():  # the overlap of all samples says nothing
                samples = np.nan
        technical = _technical(known.followed[k], known.carried[k], words.sample)
        reason, other = too_few, words.module(closest)
        if one.verdict != TOO_FEW:
            reason = words.reason(one, known.followed[k], bool(known.carried[k]))
            if one.repeats >= 0:
                reason = f"{_repetition(other, correlated, features, samples, words)} By itself, it is {one.alone}."
            reason += f" {technical[0].upper()}{technical[1:]}." if technical else ""
            if one.verdict not in ("doubtful", f"repeats {one.repeats + 1}") and abs(correlated) >= SIMILAR:
                reason += f" Its scores are similar to those of {other} (correlation {correlated:.2f})."
            limit = one.closest_other
            reason += f" Close to the limit: part of the evidence alone says {limit}." if limit else ""
        by_chance = np.nan
        if sums is not None and not (members := known.weights[k] != 0).all():
            by_chance = float(np.quantile(np.abs(sums.kme[k, ~members]) / sums.n, 0.95))
        numbers = one.score, one.ratio, one.z, one.confidence, one.found_again, by_chance, one.breadth
        alike = one.repeats + 1, closest + 1, correlated, features, samples
        rows.append((k + 1, one.verdict, *numbers, one.by_data_alone, one.worst_rank, *alike, technical, reason))
    table = pd.DataFrame(rows, columns=_COLUMNS)
    for name in ("repeats", "closest"):  # 0: none
        table[name] = table[name].where(table[name] > 0).astype("Int64")
    return name_features(table, words.feature)


# Verdicts in words


def _technical(followed: Followed, carried: list[str], sample: str = "sample") -> str:
    """What a module follows, and which samples carry it; "" if nothing is known.

    Examples
    --------
    >>> _technical(Followed("the mean of the samples", -0.84), ["s7"])
    "may be technical: its scores follow the mean of the samples (correlation -0.84); one sample carries it: 's7'"
    """
    parts = []
    if followed.name:
        name = followed.name.replace("samples", f"{sample}s")
        parts.append(f"may be technical: its scores follow {name} (correlation {followed.correlation:.2f})")
    if carried:
        who = f"one {sample} carries" if len(carried) == 1 else f"two {sample}s carry"
        parts.append(f"{who} it: {some_names(carried)}")
    return "; ".join(parts)


def _hint(known: _Known, model: SparseGraphSVD, words: Words) -> str:
    """What to do if modules follow what all features have in common."""
    n = sum(one.is_mean for one in known.followed)
    if not n or model.center != "columns" or model.covariates_ is not None:
        return ""
    which = f"{n} module{'s follow' if n > 1 else ' follows'}"
    return f'{which} the mean of the {words.sample}s: center="both" removes it, so that what is beyond it can be seen.'


def _down(value: float, digits: int = 0) -> str:
    """A number rounded down, as one that is too small must not seem to be enough."""
    return f"{math.floor(value * 10**digits + 1e-9) / 10**digits:.{digits}f}"


@dataclass(frozen=True)
class Words:
    """How verdicts speak of features and of modules: by number or, if they were given, by name.

    Modules that were given, and found in other data, are not searched for.
    """

    feature: str = "feature"
    names: Sequence[str] | None = None
    searched: bool = True
    sample: str = "sample"
    groups: str = ""  # what groups of samples are called, if they were given
    labels: Sequence[str] = ()  # of these groups
    left_out: bool = False  # whether each group is left out in turn

    def module(self, k: int) -> str:
        """Module k in a sentence."""
        return f"module {k + 1}" if self.names is None else some_names([self.names[k]])

    def reason(self, one: _Judgement, followed: Followed, carried: bool) -> str:
        """The verdict as a sentence, unless the module repeats another one."""
        features, samples = f"{self.feature}s", f"{self.sample}s"
        unused = f"{samples} not used to find it" if self.searched else f"other {samples}"
        unused = f"{self.groups} left out of the search" if self.left_out and self.searched else unused
        if one.score < _SCORE:
            limits = f"correlation of scores {_down(one.score, 2)}, at least {_SCORE:g} is needed"
            if not self.searched:
                return f"Doubtful: weights from half of the {samples} do not give the same scores ({limits})."
            fewer = f"without some {self.groups}" if self.left_out else f"in only half of the {samples}"
            return f"Doubtful: a search {fewer} does not find it again ({limits})."
        right = f"{_down(100 * one.confidence)} % of them are expected to be right"
        times = f"{one.ratio:.1f} times" if one.ratio < 10 else f"{one.ratio:.0f} times"
        together = f"in {unused}, its {features} move together {times} as much as random {features}"
        if one.verdict == BROAD:
            share = f"{_down(100 * one.breadth)} % as much as its own"
            if not self.searched:
                others = f"but only {right}: others follow its score as well (on average {share})"
                use = f"Many {features} share the score: do not take it for the activity of this set alone."
                return f"Broad axis: {together}, {others}. {use}"
            listed = f"the list of {features}" + ", which has only those that follow it most" * (self.names is None)
            use = f"Interpret the scores of {samples}, not {listed}."
            limit = f"{100 * _BREADTH:.0f} % is the limit"
            return f"Broad axis: other {features} follow it as well (on average {share}, {limit}). {use}"
        if one.z < _Z:
            return f"Doubtful: its {features} {_too_little(one.z, features)} in {unused}."
        if one.carrier >= 0:
            group = self.labels[one.carrier]
            what = f"carried by {group}: without it, its {features} {_too_little(one.without_most, features)}"
            return f"Doubtful: {what} in {unused}."
        if one.confidence < _MODERATE:
            return f"Doubtful: its {features} do not stand out from the others ({right})."
        if followed.is_depth:
            depth = ", as the depth of sequencing gives it" if self.feature == "gene" else ""
            return f"Doubtful: it is hardly more than the mean of each {self.sample}{depth}."
        if one.verdict == "strong":
            return f"Strong: {together}; {right}."
        causes = [f"only {right}"] if one.confidence < _STRONG else [f"few {samples} carry it"] if carried else []
        if one.typical < _Z:
            causes.append(f"in half of the {self.groups} they {_too_little(one.typical, features)}")
        if one.by_data_alone < _BY_DATA:
            share = _down(100 * one.by_data_alone)
            causes.append(f"only {share} % of its {features} would be chosen without the graph")
        elif one.by_graph:
            causes.append(
                f"the graph puts a {self.feature} on top whose rank by the data alone is {one.worst_rank:,.0f}"
            )
        if not causes:  # it would be strong otherwise
            return f"{one.verdict.capitalize()}: {together}; {right}."
        return f"{one.verdict.capitalize()}: {together}, but {' and '.join(causes)}."


def _too_little(z: float, features: str) -> str:
    """That features move together too little, by the standard deviations of random ones.

    Examples
    --------
    >>> _too_little(3.21, "genes")
    'do not move together clearly more than random genes (3.2 standard deviations, 5 are needed)'
    >>> _too_little(-18.2, "genes")
    'move together less than random genes'
    """
    if z < 0:
        return f"move together {'less' if z <= -_Z else 'no more'} than random {features}"
    beyond = f"{_down(z, 1)} standard deviations, {_Z:g} are needed"
    return f"do not move together clearly more than random {features} ({beyond})"


def _repetition(other: str, correlated: float, features: float, samples: float, words: Words) -> str:
    """The repeated module, the correlation of the scores, and how many members are the same.

    Examples
    --------
    >>> print(_repetition("module 1", -0.95, 0.1, 0.5, Words("gene")))
    Repeats module 1: it is high in samples in which module 1 is low (correlation of scores -0.95); 10 % of their genes
    and 50 % of their samples are in both.
    """
    alike = f"it is high and low in similar {words.sample}s as {other}"
    alike = alike if correlated > 0 else f"it is high in {words.sample}s in which {other} is low"
    shared = f"{features:.0%} of their {words.feature}s"
    both = shared if np.isnan(samples) else f"{shared} and {samples:.0%} of their {words.sample}s"
    shared = both.replace("%", " %")
    return f"Repeats {other}: {alike} (correlation of scores {correlated:.2f}); {shared} are in both."
