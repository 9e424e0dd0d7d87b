"""One verdict per module: whether it is found again in samples that were not used, or repeats an earlier one."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import Final, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from netbic.arrays import Bools, Floats, Indices, Matrix, RandomState
from netbic.estimators import SparseGraphSVD, check_count, check_same_data, fitted_model, is_number
from netbic.io import digest
from netbic.selection.coherence import HalfMeasures, HeldOutCoherence, correlation
from netbic.selection.finished import Finished, Progress, TrackedExecutor, tracked
from netbic.selection.fits import Jobs, quiet
from netbic.selection.matching import jaccard
from netbic.selection.resampling import draw_seed
from netbic.solver import LOW_RANK, REPEATED

TOO_FEW = "too few samples to tell"
FEWEST_SAMPLES: Final = 20  # fewer leave fewer than ten in each half
_MIN_PAIRS = 3
_MORE_PAIRS = 2  # pairs after which it is checked again whether more are needed
_SCORE, _RATIO, _SHARE = 0.6, 2.0, 0.5  # smallest score, ratio and share of genes of a module that is not in doubt
_OTHERWISE = 1 / 3  # share of the pairs with another verdict from which on a module is close to a limit
_COLUMNS = [
    "module", "verdict", "score", "ratio", "ratio_alone", "genes_found_again", "by_data_alone", "worst_rank",
    "repeats", "closest",
    "correlation", "gene_overlap", "sample_overlap", "reason",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Verdicts:
    """One verdict per module.

    Attributes
    ----------
    table : DataFrame
        A row per module. Numbers that depend on halves are medians over the pairs.

        - `module`: its number, from 0.
        - `verdict`: "strong", "moderate", "repeats k" (k counts from 1), "doubtful" or "too few samples to tell".
        - `score`: absolute correlation, in samples not used, of its scores with those of the module found again.
        - `ratio`: how many times as much as random genes the genes found again move together in samples not used,
          beyond the earlier modules (whose scores are regressed out); `ratio_alone`: earlier modules included.
        - `genes_found_again`: share of its genes.
        - `by_data_alone`: share of its genes that would be chosen without the graph; `worst_rank`: the worst rank of
          its 20 leading genes by the data alone (both as in `diagnostics_`).
        - `repeats`: the earlier module that it repeats; -1 if none.
        - `closest`: that module or, if there is none, the earlier one whose scores are most correlated (-1 for the
          first module); `correlation` of the scores of both in all samples; `gene_overlap` and `sample_overlap`:
          Jaccard indices of their members (`sample_overlap` is NaN if both keep all samples).
        - `reason`: the verdict as a sentence, in which modules are counted from 1; a second sentence if at least a
          third of the pairs of halves, each judged alone, agree on another verdict.
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
        counted = [
            (kinds.count("strong"), "is strong", "are strong"),
            (kinds.count("moderate"), "is moderate", "are moderate"),
            (kinds.count("repeats"), "repeats an earlier one", "repeat an earlier one"),
            (kinds.count("doubtful"), "is doubtful", "are doubtful"),
        ]
        parts = [f"{number} {one if number == 1 else more}" for number, one, more in counted if number]
        total = f"{len(kinds)} module{'s' * (len(kinds) != 1)}"
        return f"Of {total}, {', '.join(parts)} (judged in {self.n_pairs} pairs of halves of the samples)."

    def __repr__(self) -> str:
        lines = [f"  {number}  {reason}" for number, reason in enumerate(self.table["reason"], start=1)]
        return "\n".join([self.verdict, *lines])


def verdicts(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    groups: ArrayLike | None = None,
    n_pairs: int = 10,
    early_stopping: bool = True,
    time_budget: float | None = None,
    progress: Progress | None = None,
    finished: Finished | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> Verdicts:
    """Judge every module of a fitted model in samples that were not used to find it.

    The samples are split at random into two halves, several times. The model is fitted to one half with its own
    settings (sizes in proportion, a graph of the samples restricted to it, a third more modules), and its modules are
    matched one to one to those of the whole fit by the correlation of their scores in the *other* half. There, the
    genes of a module found again should move together more than as many random genes (others than its own), whose
    weights are fitted to the first half as well.

    A module is *doubtful* if its scores are not found again (correlation below 0.6), or if its genes move together less
    than twice as much as random genes. Otherwise it *repeats* an earlier one if the scores of both are correlated (0.7
    or more) in all samples; it is *strong* if half of its genes or more are found again and half or more would be
    chosen without the graph (all of its 20 leading genes being among the first 200 by the data alone), *moderate* if
    one of these holds, and doubtful if neither does.

    Samples (or `groups` of them) are assumed to be independent: replicates and time series have to be given as groups.
    A module that is found again is a pattern of the data, whatever its cause: batches of samples form modules as well,
    unless the model was fitted with batches as covariates. Covariates of the model are removed from each half. Halves
    of several studies (`fit(X, studies=...)`) are drawn within each study, and centred study by study.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted to X. `n_pairs` clones of it are fitted to halves.
    X : array, DataFrame or sparse matrix
        The same data.
    groups : array of shape (n_samples,), optional
        Labels of samples that belong together, such as replicates or time points of a patient: samples with the same
        label stay in the same half.
    n_pairs : int
        Pairs of halves, at least 3.
    early_stopping : bool
        Make no further fits when more than half of `n_pairs` agree on which side of every limit each module is: the
        verdicts are then those of all pairs, because medians cannot cross a limit any more. The numbers are medians
        over the pairs used (`Verdicts.n_pairs`).
    time_budget : float, optional
        Seconds after which no further pair of halves is started, except the first 3. `Verdicts.n_pairs` is the number
        used; results then depend on the speed of the machine.
    progress : function, optional
        Called after each pair, in the calling thread, with the numbers of finished pairs and of all pairs.
    finished : mutable mapping, optional
        Results of finished pairs: those in it are not computed again, others are added. If it is stored somewhere, an
        interrupted computation can be continued; data and parameters must then be the same.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over pairs (default: all cores, unless X is small), or the workers of the current Dask client; the
        result does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    >>> found = netbic.selection.verdicts(model, study.expression, random_state=0)
    >>> found.table["verdict"].tolist()
    ['strong', 'strong', 'doubtful']
    >>> print(found.table["reason"][0])
    Strong: in samples not used to find it, its genes move together ... random genes; ... % of them are found again.
    """
    check_count("n_pairs", n_pairs)
    if n_pairs < _MIN_PAIRS:
        raise ValueError(f"n_pairs={n_pairs}: at least {_MIN_PAIRS} are needed")
    if time_budget is not None and not (is_number(time_budget) and time_budget > 0):
        raise ValueError(f"time_budget={time_budget!r}: a number of seconds above 0 is needed, or None")
    model = fitted_model(model)
    check_same_data(model, X)
    seed, numbers = draw_seed(random_state), _numbered(groups, X.shape[0])
    executor = tracked(X, n_jobs, f"verdicts {digest(numbers)}", progress, finished)
    n_units = int(numbers.max()) + 1
    with quiet():
        judged = HeldOutCoherence.of(model, X, numbers, seed)
        n_covariates = 0 if judged.covariates is None else judged.covariates.shape[1]
        enough = n_units - 2 * n_covariates >= FEWEST_SAMPLES and model.n_components_ > 0  # they count in each half
        relations = _Relations.of(model, judged)
        schedule = _Schedule(n_pairs if enough else 0, time_budget, relations if early_stopping else None)
        measures = schedule.run(judged, seed, executor)
    alone = model.diagnostics_[["by_data_alone", "worst_rank"]].to_numpy(dtype=np.float64)
    units = "samples" if groups is None else "groups of samples"
    given = f"{n_units} {units}" + (f" and {n_covariates} degrees of freedom of covariates" if n_covariates else "")
    too_few = f"Too few samples to tell: {given}, at least {FEWEST_SAMPLES + 2 * n_covariates} are needed."
    return Verdicts(_table(measures, relations, alone, too_few), len(measures))


def _numbered(groups: ArrayLike | None, n_samples: int) -> Indices:
    """A number per sample, the same for samples of one group."""
    if groups is None:
        return np.arange(n_samples)
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise ValueError(f"groups has shape {labels.shape}: one label for each of the {n_samples} samples is needed")
    if pd.isna(labels).any():
        raise ValueError("groups has missing labels: give every sample a label, its own if it belongs to no group")
    return np.asarray(pd.factorize(labels)[0], dtype=np.intp)


@dataclass(frozen=True)
class _Schedule:
    """Pairs of halves within a time budget; with the relations of modules, no more than the verdicts need."""

    n_pairs: int
    time_budget: float | None
    relations: _Relations | None = None

    def run(self, judged: HeldOutCoherence, seed: int, executor: TrackedExecutor) -> list[HalfMeasures]:
        """The measures of every pair."""
        start, found = perf_counter(), list[HalfMeasures]()
        while not self._is_decided(found) and (size := self._next_batch(len(found), perf_counter() - start)):
            seeds = [[seed, number] for number in range(len(found), len(found) + size)]
            executor.left = self.n_pairs - len(found) - size
            found += executor.map(HeldOutCoherence.measured, judged, seeds)
        return found

    def _next_batch(self, done: int, seconds: float) -> int:
        """How many pairs to run next, given the time of those done."""
        left = self.n_pairs - done
        if self.relations is not None:
            left = min(left, max(max(self.n_pairs // 2 + 1, _MIN_PAIRS) - done, _MORE_PAIRS))
        if self.time_budget is None:
            return left
        affordable = int((self.time_budget - seconds) / seconds * done) if done else _MIN_PAIRS
        return max(0, min(left, affordable))

    def _is_decided(self, found: list[HalfMeasures]) -> bool:
        """Whether the medians of all pairs will be on the same side of every limit as now, for every module."""
        if self.relations is None or len(found) < max(self.n_pairs // 2 + 1, _MIN_PAIRS):
            return False
        score, ratio, ratio_alone, genes = np.array(found).swapaxes(0, 1)
        redundant = np.array([self.relations.redundant_with(k).size > 0 for k in range(score.shape[1])])
        ratio = np.where(redundant, ratio_alone, ratio)
        above = np.array([score >= _SCORE, ratio >= _RATIO, genes >= _SHARE]).sum(axis=1)
        high, low = 2 * above > self.n_pairs, 2 * (len(found) - above) > self.n_pairs
        doubtful, found_again = low[0] | low[1], high[0] & high[1]
        return bool((doubtful | (found_again & (high[2] | low[2]))).all())


class _Relation(NamedTuple):
    """A module beside an earlier one: the correlation of their scores, and the overlap of their members."""

    closest: int
    correlation: float
    gene_overlap: float
    sample_overlap: float


@dataclass(frozen=True)
class _Relations:
    """Correlations of scores in all samples (K x K), and the members of every module."""

    correlations: Floats
    rows: Bools
    columns: Bools

    @classmethod
    def of(cls, model: SparseGraphSVD, judged: HeldOutCoherence) -> Self:
        scores = judged.half(slice(None)).scores(judged.components)
        return cls(correlation(scores, scores), model.rows_, model.columns_)

    def redundant_with(self, k: int) -> Indices:
        """Earlier modules with correlated scores, the most correlated one first."""
        earlier = np.abs(self.correlations[k, :k])
        order = np.argsort(-earlier, kind="stable")
        return order[earlier[order] >= REPEATED]

    def to(self, k: int, other: int) -> _Relation:
        """The relation of module k to another one (-1: to the earlier one with the most correlated scores)."""
        if k == 0:
            return _Relation(-1, np.nan, np.nan, np.nan)
        other = other if other >= 0 else int(np.abs(self.correlations[k, :k]).argmax())
        genes, samples = (float(jaccard(side[[k]], side[[other]])[0]) for side in (self.columns, self.rows))
        if self.rows[[k, other]].all():  # the overlap of all samples says nothing
            samples = np.nan
        return _Relation(other, float(self.correlations[k, other]), genes, samples)


class _Evidence(NamedTuple):
    """Medians over pairs of halves for one module."""

    score: float
    ratio: float
    ratio_alone: float
    genes_found_again: float
    by_data_alone: float
    worst_rank: float

    @property
    def is_graph_driven(self) -> bool:
        """Whether the graph rather than the data chose the genes; unknown for models of earlier versions."""
        return self.by_data_alone < _SHARE or self.worst_rank > LOW_RANK

    @property
    def by_graph(self) -> str:
        """The part of the graph in words."""
        if self.by_data_alone < _SHARE:
            return f"only {self.by_data_alone:.0%} of them would be chosen without the graph"
        return f"the graph puts a gene on top whose rank by the data alone is {self.worst_rank:,.0f}"

    def ratio_to_judge(self, redundant: bool) -> float:
        """The ratio by which a module is judged: nothing would be left of a redundant one beyond the earlier ones."""
        return self.ratio_alone if redundant else self.ratio


def _table(measures: list[HalfMeasures], relations: _Relations, alone: Floats, too_few: str) -> pd.DataFrame:
    """`Verdicts.table`; `too_few` is the reason if there are no measures."""
    n_modules = len(alone)
    medians = np.median(measures, axis=0) if measures else np.full((len(HalfMeasures._fields), n_modules), np.nan)
    rows: list[tuple[object, ...]] = []
    known: list[str] = []
    for k, numbers in enumerate(zip(*medians.tolist(), *alone.T.tolist(), strict=True)):
        evidence = _Evidence(*numbers)
        verdict, repeats = _judged(evidence, relations.redundant_with(k), known)
        relation = relations.to(k, repeats)
        single = [_Evidence(*(float(values[k]) for values in pair), *numbers[-2:]) for pair in measures]
        others = [_judged(pair, relations.redundant_with(k), known)[0] for pair in single]
        reason = _reason(verdict, evidence, relation) + _close(verdict, others) if measures else too_few
        known.append(verdict)
        rows.append((k, verdict, *evidence, repeats, *relation, reason))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _judged(evidence: _Evidence, redundant: Indices, known: list[str]) -> tuple[str, int]:
    """The verdict, given those of earlier modules, and the module that is repeated (-1: none)."""
    if np.isnan(evidence.score):
        return TOO_FEW, -1
    if evidence.score < _SCORE or evidence.ratio_to_judge(redundant.size > 0) < _RATIO:
        return "doubtful", -1
    # A module cannot repeat a doubtful one; one that repeats nothing itself is the better reference.
    repeated = sorted((j for j in redundant if known[j] != "doubtful"), key=lambda j: known[j].startswith("repeats"))
    if repeated:
        return f"repeats {repeated[0] + 1}", int(repeated[0])
    # NaN: a model saved by an earlier version does not know which genes the data alone would choose.
    n_small = (evidence.genes_found_again < _SHARE) + evidence.is_graph_driven
    return ("strong", "moderate", "doubtful")[n_small], -1


def _reason(verdict: str, evidence: _Evidence, relation: _Relation) -> str:
    """The verdict as a sentence."""
    ratio = evidence.ratio_to_judge(abs(relation.correlation) >= REPEATED)
    if verdict == "doubtful":
        return f"Doubtful: {_doubt(evidence, ratio)}."
    if verdict.startswith("repeats"):
        return _repetition(relation)
    beyond = "" if evidence.ratio_alone >= _RATIO else ", once the signals of earlier modules are removed"
    together = (
        f"in samples not used to find it, its genes move together {_times(ratio)} as much as random genes{beyond}"
    )
    again = evidence.genes_found_again
    if verdict == "strong":
        return f"Strong: {together}; {again:.0%} of them are found again.".replace("%", " %")
    weak = f"only {again:.0%} of them are found again" if again < _SHARE else evidence.by_graph
    return f"Moderate: {together}, but {weak}.".replace("%", " %")


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


def _doubt(evidence: _Evidence, ratio: float) -> str:
    if evidence.score < _SCORE:
        limits = f"correlation of scores {evidence.score:.2f}, at least {_SCORE:g} is needed"
        return f"a search in only half of the samples does not find it again ({limits})"
    if ratio < _RATIO:
        beyond = "once the signals of earlier modules are removed, " if evidence.ratio_alone >= _RATIO else ""
        ratio = math.floor(10 * ratio) / 10  # 1.98 is written as 1.9: "2.0 times" would seem to be enough
        limits = f"{_times(ratio)} as much as random genes ({_RATIO:g} times are needed)"
        return f"{beyond}its genes move together only {limits} in samples not used to find it"
    text = f"only {evidence.genes_found_again:.0%} of its genes are found again, and {evidence.by_graph}"
    return text.replace("%", " %")


def _repetition(relation: _Relation) -> str:
    """The repeated module, the correlation of the scores, and how many members are the same.

    Examples
    --------
    >>> print(_repetition(_Relation(0, -0.95, 0.1, 0.5)))
    Repeats module 1: it is high in samples in which module 1 is low (correlation of scores -0.95); 10 % of their genes
    and 50 % of their samples are in both.
    """
    other = f"module {relation.closest + 1}"
    alike = f"it is high and low in similar samples as {other}"
    opposite = f"it is high in samples in which {other} is low"
    same = f"{alike if relation.correlation > 0 else opposite} (correlation of scores {relation.correlation:.2f})"
    samples = "" if np.isnan(relation.sample_overlap) else f" and {relation.sample_overlap:.0%} of their samples"
    shared = f"{relation.gene_overlap:.0%} of their genes{samples}".replace("%", " %")
    return f"Repeats {other}: {same}; {shared} are in both."


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"
