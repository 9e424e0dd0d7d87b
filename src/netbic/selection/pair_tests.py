"""Tests of the pairs of two tables: permutation p-values, and correlations in samples that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Floats, Indices, RandomState
from netbic.enrichment import is_decided, sequential_p_values
from netbic.estimators import TwoTables, axis_names, check_count
from netbic.selection.finished import Finished, Progress, TrackedExecutor, tracked
from netbic.selection.fits import Jobs, quiet
from netbic.selection.pair_nulls import PreparedTables, Strengths, strata_of
from netbic.selection.pair_tables import PairTables, check_folds, matched_pairs, two_table_model
from netbic.selection.resampling import complement, draw_seed, folds, seeded

_LEVEL = 0.05  # early stopping does not change whether a p-value is at most this
_ENOUGH = 3
_LEFT = 4  # samples more than pairs, so that something is left to permute


@dataclass(frozen=True, repr=False)
class PairTests:
    """Which pairs of two tables are more than chance.

    Attributes
    ----------
    table : DataFrame
        A row per pair: `pair`; its strength `d`; the `correlation` of its scores in the samples of the fit, which is
        too large; `held_out_correlation` and its `standard_error` over folds; `p_value`, which includes the p-values of
        earlier pairs; `n_permutations`, how many were needed.
    reference : SparseGraphPLS or SparseGraphCCA
        The model fitted to all samples; its pairs are the ones tested.
    """

    table: pd.DataFrame
    reference: TwoTables

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if self.table.empty:
            return "No pair was found, so there is none to test."
        total, n = len(self.table), int((self.table["p_value"] <= _LEVEL).sum())
        last = self.table["p_value"].iloc[min(n, total - 1)]
        tested = f"{total} pair{'s' * (total != 1)}"
        if n == total:
            who = {1: "The only pair is", 2: "Both pairs are"}.get(total, f"All {tested} are")
            return f"{who} stronger than expected by chance (p <= {_shown(last)})."
        if n == 0:
            return f"No pair is stronger than expected by chance (p = {_shown(last)} for the first)."
        verb = "is" if n == 1 else "are"
        return f"{n} of {tested} {verb} stronger than expected by chance; the next is not (p = {_shown(last)})."

    @property
    def sentences(self) -> list[str]:
        """A sentence for each pair."""
        return [_sentence(row) for row in self.table.to_dict("records")]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {sentence}" for sentence in self.sentences)])


def _shown(p: float) -> str:
    return f"{p:.2g}"


def _sentence(row: dict[Any, Any]) -> str:
    """What is known about one pair."""
    error = f" (standard error {row['standard_error']:.2f})" if np.isfinite(row["standard_error"]) else ""
    judged = "stronger than expected by chance" if row["p_value"] <= _LEVEL else "no stronger than expected by chance"
    return (
        f"Pair {row['pair'] + 1} is {judged} (p = {_shown(row['p_value'])}); the correlation of its scores is "
        f"{row['correlation']:.2f} in the samples of the fit and {row['held_out_correlation']:.2f}{error} in others."
    )


def pair_tests(
    model: TwoTables,
    X: Any,
    Y: Any,
    *,
    n_permutations: int = 999,
    n_folds: int = 5,
    strata: Any = None,
    early_stopping: bool = True,
    progress: Progress | None = None,
    finished: Finished | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> PairTests:
    """Test every pair of two tables against tables whose samples are permuted, and in samples that were not fitted.

    The model is fitted to tables in which the samples of Y are permuted: X and Y keep their own structure, but are
    independent. The p-value of the first pair is the share of permutations whose leading pair is as strong (d) as the
    first pair of the data. That is exact if samples are exchangeable. Later pairs are tested in the tables that are
    left after the scores of earlier pairs were removed; what is left of n samples is mapped to n - 1 - k dimensions
    first (Huh and Jhun 2001), because residuals themselves are not exchangeable. The test of a later pair is therefore
    approximate. A p-value is at least as large as those of earlier pairs: a pair counts only if all earlier ones do.

    For the held-out correlation the model is fitted without one fold of the samples after another, its pairs are
    matched to those of the whole fit by the correlation of their scores, and their scores are correlated in the fold.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        Its settings must not have been chosen on the same data, or the p-values are too small. Graphs are used for
        permuted tables as well. With `deflation="hotelling"` later pairs are tested in tables from which the scores of
        earlier pairs were removed.
    X, Y : arrays, DataFrames or sparse matrices
        Two tables of the same samples, as for `SparseGraphPLS.fit`. Dense copies are made of sparse tables.
    n_permutations : int
        The largest number of permutations per pair. The smallest possible p-value is 1 / (n_permutations + 1).
    n_folds : int
        Folds for the held-out correlation.
    strata : array of shape (n_samples,), optional
        Labels such as batches. Samples are permuted only within strata, so that differences between strata which both
        tables have in common do not count as evidence. The residuals of later pairs are then permuted themselves.
    early_stopping : bool
        Make no more permutations once so many are as strong as the pair that p > 0.05 is certain: 50 of 999. If that
        happens at permutation l, p = 50 / l (Besag and Clifford 1991), otherwise p = (1 + b) / (1 + n_permutations)
        where b are as strong. Both are valid, and whether p <= 0.05 is the same as with all permutations.
    progress, finished
        As for `n_modules`.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over permutations (default: all cores, unless X is small), or the workers of the current Dask client;
        the result does not depend on it.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphPLS(2, n_x=8, n_y=5)
    >>> tests = netbic.selection.pair_tests(model, X, Y, n_permutations=99, random_state=0)
    >>> tests.verdict
    '1 of 2 pairs is stronger than expected by chance; the next is not (p = ...).'
    """
    model = two_table_model(model)
    check_count("n_permutations", n_permutations)
    check_count("n_folds", n_folds)
    seed = draw_seed(random_state)
    fits = tracked(X, n_jobs, "pair_tests", progress, finished)
    enough = max(_ENOUGH, int(np.ceil(_LEVEL * (1 + n_permutations)))) if early_stopping else None
    fitted = seeded(model, seed).fit(X, Y)  # warnings of the fit are shown
    if fitted.n_components_ > (most := len(fitted.x_scores_) - _LEFT):
        raise ValueError(
            f"{fitted.n_components_} pairs but only {len(fitted.x_scores_)} samples: at most {max(most, 0)} pairs can "
            "be tested. Use a smaller n_components"
        )
    with quiet():
        tables = PairTables.of(fitted, X, Y)
        check_folds(n_folds, tables.n_samples)
        prepared = PreparedTables.of(tables, fitted, strata_of(strata, tables.n_samples, axis_names(X)[0]))
        fits.left = n_permutations * fitted.n_components_
        held_out = held_out_correlations(tables, fitted, n_folds, seed, fits)
        found = []
        for pair in range(fitted.n_components_):
            fits.part, fits.left = f"pair {pair + 1}", n_permutations * (fitted.n_components_ - pair - 1)
            found.append(_p_value(prepared.after(pair), n_permutations, enough, (seed, pair), fits))
    return PairTests(_table(fitted, held_out, found), fitted)


def _table(fitted: TwoTables, held_out: Floats, found: list[tuple[float, int]]) -> pd.DataFrame:
    """All results, a row per pair."""
    p_values, numbers = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return pd.DataFrame(
        {
            "pair": np.arange(fitted.n_components_),
            "d": fitted.singular_values_,
            "correlation": fitted.correlations_,
            "held_out_correlation": held_out.mean(axis=0),
            "standard_error": held_out.std(axis=0, ddof=1) / np.sqrt(len(held_out)),
            "p_value": np.maximum.accumulate(p_values),
            "n_permutations": numbers.astype(np.intp),
        }
    )


def _p_value(
    problem: Strengths, n_most: int, enough: int | None, seed: tuple[int, int], fits: TrackedExecutor
) -> tuple[float, int]:
    """The p-value of the leading pair, and the number of permutations needed; the executor does not matter."""
    observed, by_chance = np.array([problem.observed()]), np.empty(0)
    size = n_most if enough is None else max(fits.n_parallel, 1)
    while by_chance.size < n_most and not is_decided(observed, by_chance[None], enough):
        seeds = [(*seed, number) for number in range(by_chance.size, min(by_chance.size + size, n_most))]
        by_chance = np.append(by_chance, list(fits.map(_permuted, problem, seeds)))
    if enough is not None:
        by_chance = by_chance[: 1 + np.searchsorted(np.cumsum(by_chance >= observed), enough)]
    return float(sequential_p_values(observed, by_chance[None], n_most, enough)[0]), by_chance.size


def _permuted(problem: Strengths, seed: tuple[int, ...]) -> float:
    return problem.permuted(seed)


def held_out_correlations(
    tables: PairTables, fitted: TwoTables, n_folds: int, seed: int, fits: TrackedExecutor
) -> Floats:
    """The correlations of the scores of every pair (columns) in each fold (rows); 0 where a pair is not found."""
    parts = folds(tables.n_samples, n_folds, [seed, 0])
    scores = fitted.x_scores_, fitted.y_scores_
    fits.part = "held out"
    return np.array([fold.correlations for fold in fits.map(_in_fold, (tables, scores), parts)])


class _Fold(NamedTuple):
    """The correlations of all pairs in one fold."""

    correlations: Floats


def _in_fold(data: tuple[PairTables, tuple[Floats, Floats]], held_out: Indices) -> _Fold:
    """Fit without a fold, and match the pairs in the samples that were fitted."""
    tables, scores = data
    rest = complement(held_out, tables.n_samples)
    fitted = tables.fitted_to(rest)
    known = scores[0][rest], scores[1][rest]
    matched, _ = matched_pairs(known, (fitted.x_scores_, fitted.y_scores_))
    return _Fold(np.append(tables.correlations(fitted, held_out), 0.0)[matched])  # -1: no partner
