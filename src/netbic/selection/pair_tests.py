"""Tests of the pairs of two tables: permutation p-values, and correlations in samples that were not fitted.

The null distribution of the strength d of a pair: tables whose samples are permuted against each other.

The first pair: the samples (rows) of Y are permuted, which keeps the structure of both tables and only breaks the link
between them. If samples are exchangeable and the tables independent, every order is equally likely, and the test exact.

A later pair: the scores of earlier pairs have been projected out of the tables, which leaves n samples with fewer
degrees of freedom. Residuals are not exchangeable: permuted, those of X and of Y overlap in fewer dimensions than they
do in truth, so that the strength of permuted tables is too small. Therefore the n residuals are first mapped to the
n - 1 - k dimensions that are left (Huh and Jhun 2001; Winkler, Renaud, Smith and Nichols 2020), by orthonormal bases of
the complements of the removed directions. If different directions were removed from X and from Y, the bases are rotated
to be as close to each other as possible. The dimensions are exchangeable if samples are normal, and nearly so if not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState
from netbic.estimators.inputs import axis_names
from netbic.estimators.pairs import TwoTableModel, paired_correlations
from netbic.estimators.parameters import check_count, iteration_settings
from netbic.operators.corrected import Corrected
from netbic.operators.cross import Table
from netbic.operators.dense import DenseOperator
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import (
    complement,
    draw_seed,
    fill_unobserved,
    folds,
    match_scores,
    pairs_by_position,
    seeded,
)
from netbic.selection.technical import carriers
from netbic.solver.pairs import PairSearch
from netbic.solver.search import Axis
from netbic.solver.solve import Settings

_LEVEL = 0.05  # early stopping does not change whether a p-value is at most this
FEWEST_PERMUTATIONS: Final = 19  # with fewer, p is always above 0.05
_ENOUGH = 3
_FEWEST = 3  # samples of a fold: a correlation of two is 1 or -1
_LEFT = 4  # samples more than pairs, so that something is left to permute


@dataclass(frozen=True, repr=False)
class PairTests:
    """Which pairs of two tables are more than chance.

    Attributes
    ----------
    table : DataFrame
        A row per pair: `pair`; its strength `d`; the `correlation` of its scores in the samples of the fit, which is
        too large; `held_out_correlation` and its `standard_error` over folds; `p_value`, which includes the p-values of
        earlier pairs; `n_permutations`, how many were needed; `carried_by`, the one or two samples that carry the pair
        (at least 60 % of the products of its scores), "" if none do.
    reference : SparseGraphPLS or SparseGraphCCA
        The model fitted to all samples; its pairs are the ones tested.
    """

    table: pd.DataFrame
    reference: TwoTableModel

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        return pairs_verdict(self.table)

    @property
    def sentences(self) -> list[str]:
        """A sentence for each pair."""
        return [pair_sentence(row) for row in self.table.to_dict("records")]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {sentence}" for sentence in self.sentences)])


def pairs_verdict(table: pd.DataFrame) -> str:
    """How many pairs of the table of `PairTests` are more than chance, as one sentence."""
    if table.empty:
        return "No pair was found, so there is none to test."
    total, n = len(table), int((table["p_value"] <= _LEVEL).sum())
    last = f"{table['p_value'].iloc[min(n, total - 1)]:.2g}"
    tested = f"{total} pair{'s' * (total != 1)}"
    if n == total:
        who = {1: "The only pair is", 2: "Both pairs are"}.get(total, f"All {tested} are")
        return f"{who} stronger than expected by chance (p <= {last})."
    if n == 0:
        return f"No pair is stronger than expected by chance (p = {last} for the first)."
    verb = "is" if n == 1 else "are"
    return f"{n} of {tested} {verb} stronger than expected by chance; the next is not (p = {last})."


def pair_sentence(row: dict[Any, Any]) -> str:
    """A row of the table of `PairTests` as a sentence."""
    error = f" (standard error {row['standard_error']:.2f})" if np.isfinite(row["standard_error"]) else ""
    judged = "stronger" if row["p_value"] <= _LEVEL else "no stronger"
    carried = f" It is carried by few samples: {row['carried_by']}. Look at them, and fit without them."
    return (
        f"Pair {row['pair']} is {judged} than expected by chance "
        f"(p = {row['p_value']:.2g}); the correlation of its scores is {row['correlation']:.2f} in the samples "
        f"of the fit and {row['held_out_correlation']:.2f}{error} in others.{carried if row['carried_by'] else ''}"
    )


def pair_tests(
    model: TwoTableModel,
    X: Any,
    Y: Any,
    *,
    n_permutations: int = 999,
    n_folds: int = 5,
    strata: Any = None,
    early_stopping: bool = True,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> PairTests:
    """Test every pair of two tables against tables whose samples are permuted, and in samples that were not fitted.

    The p-value of the first pair is the share of tables with permuted samples of Y whose leading pair is as strong (d)
    as the first pair of the data, which is exact if samples are exchangeable. Later pairs are tested in the tables that
    are left after the scores of earlier pairs were removed, mapped to n - 1 - k dimensions (Huh and Jhun 2001); this
    test is approximate. A p-value is at least as large as those of earlier pairs: a pair counts only if these do.

    For the held-out correlation the model is fitted without one fold of the samples after another, its pairs are
    matched to those of the whole fit by the correlation of their scores, and their scores are correlated in the fold.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        If its settings were chosen on the same data, p-values are too small. Graphs are used for permuted tables, too.
    X, Y : arrays, DataFrames or sparse matrices
        Two tables of the same samples, as for `SparseGraphPLS.fit`. Dense copies are made of sparse tables.
    n_permutations : int
        The largest number of permutations per pair. The smallest possible p-value is 1 / (n_permutations + 1).
    n_folds : int
        Folds for the held-out correlation.
    strata : array of shape (n_samples,), optional
        Labels such as batches, within which samples are permuted: differences between strata are then no evidence. The
        residuals of later pairs are then permuted themselves.
    early_stopping : bool
        Make no more permutations once so many are as strong as the pair that p > 0.05 is certain: 50 of 999. If that
        happens at permutation l, p = 50 / l (Besag and Clifford 1991), otherwise p = (1 + b) / (1 + n_permutations)
        where b are as strong.
    progress : function, optional
        As for `n_modules`.
    random_state, n_jobs
        As for `stability`.

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
    found = getattr(model, "best_estimator_", model)
    if not isinstance(found, TwoTableModel):
        raise TypeError(
            f"model={type(model).__name__}: a model of two tables is needed, SparseGraphPLS or SparseGraphCCA, or a "
            "fitted search that has one as best_estimator_"
        )
    check_count("n_permutations", n_permutations)
    if n_permutations < FEWEST_PERMUTATIONS:
        smallest = f"{1 / (1 + n_permutations):.2g}"
        raise ValueError(
            f"n_permutations={n_permutations}: no p-value can be below {smallest}, so no pair can be significant: use "
            f"at least {FEWEST_PERMUTATIONS}"
        )
    check_count("n_folds", n_folds)
    seed = draw_seed(random_state)
    fits = Fits(X, n_folds + n_permutations * found.n_components, n_jobs, progress)
    enough = max(_ENOUGH, int(np.ceil(_LEVEL * (1 + n_permutations)))) if early_stopping else None
    names = getattr(found, "table_names_", ("X", "Y"))
    fitted = seeded(found, seed).fit(X, Y, table_names=names)  # warnings of the fit are shown
    if fitted.n_components_ > (most := len(fitted.x_scores_) - _LEFT):
        raise ValueError(
            f"{fitted.n_components_} pairs but only {len(fitted.x_scores_)} samples: at most {max(most, 0)} pairs can "
            "be tested. Use a smaller n_components"
        )
    with quiet():
        samples = axis_names(X)[0]
        model, X, Y = pairs_by_position(fitted, X, Y)
        parts = folds(X.shape[0], n_folds, [seed, 0], fewest=_FEWEST)
        prepared = prepare_tables(model, X, Y, strata_of(strata, X.shape[0], samples))
        fits.left = n_permutations * fitted.n_components_
        held_out = np.array(list(fits.map(_correlations_in_fold, (model, X, Y, fitted), parts)))
        p_values, numbers = [], []
        for pair in range(fitted.n_components_):
            fits.left = n_permutations * (fitted.n_components_ - pair - 1)
            tables = without_pairs(prepared, fitted, pair)
            limits = (seed, pair), n_permutations, enough
            by_chance, p_value = fits.permutation_test(strength, tables, strength(tables), *limits)
            p_values.append(p_value)
            numbers.append(by_chance.size)
    table = pd.DataFrame({"pair": np.arange(1, fitted.n_components_ + 1), "d": fitted.singular_values_})
    table["correlation"], table["held_out_correlation"] = fitted.correlations_, held_out.mean(axis=0)
    table["standard_error"] = held_out.std(axis=0, ddof=1) / np.sqrt(len(held_out))
    table["p_value"] = np.maximum.accumulate(np.array(p_values, dtype=np.float64))
    table["n_permutations"] = np.array(numbers, dtype=np.intp)
    names = np.arange(len(fitted.x_scores_)) if samples is None else samples
    scores = zip(fitted.x_scores_.T, fitted.y_scores_.T, strict=True)
    table["carried_by"] = [", ".join(str(names[at]) for at in carriers(*pair)) for pair in scores]
    return PairTests(table, fitted)


def _correlations_in_fold(data: tuple[TwoTableModel, Matrix, Matrix, TwoTableModel], held_out: Indices) -> Floats:
    """The correlations of the scores of every pair in a fold; 0 where a pair is not found.

    The model is fitted without the fold, and its pairs are matched to the given ones in the samples that were fitted.
    """
    model, X, Y, reference = data
    rest = complement(held_out, X.shape[0])
    fitted = clone(model).fit(fill_unobserved(X[rest]), fill_unobserved(Y[rest]))
    known = reference.x_scores_[rest], reference.y_scores_[rest]
    matched, _ = match_scores(known, (fitted.x_scores_, fitted.y_scores_))
    correlations = paired_correlations(*fitted.transform(X[held_out], Y[held_out]))
    return np.append(correlations, 0.0)[matched]  # -1: no partner


class PreparedTables(NamedTuple):
    """Two tables in which the leading pair is searched for."""

    x: Floats
    y: Floats
    axes: tuple[Axis, Axis]  # penalties and graph terms of the features
    settings: Settings
    strata: Indices | None  # rows are permuted among those with the same value


def prepare_tables(model: TwoTableModel, X: Matrix, Y: Matrix, strata: Indices | None = None) -> PreparedTables:
    """X and Y, centred, scaled and whitened as by the model."""
    x, y = (
        np.ascontiguousarray(table.columns(np.arange(table.shape[1])), dtype=np.float64)
        for table in (model.prepared(X, "X").table, model.prepared(Y, "Y").table)
    )
    axes = model.check((X.shape[1], Y.shape[1]))
    return PreparedTables(x, y, axes, iteration_settings(model, np.float64), strata)


def without_pairs(tables: PreparedTables, fitted: TwoTableModel, n_pairs: int) -> PreparedTables:
    """The tables after the scores of the first pairs of a fitted model were removed."""
    if not n_pairs:
        return tables
    of_y = fitted.x_scores_ if fitted.deflation == "regression" else fitted.y_scores_
    # Orthonormal bases of what is orthogonal to the scores and to a constant, in columns.
    removed = [np.insert(scores[:, :n_pairs], 0, 1.0, axis=1) for scores in (fitted.x_scores_, of_y)]
    x_left, y_left = (np.linalg.qr(each, mode="complete")[0][:, n_pairs + 1 :] for each in removed)
    if tables.strata is None:  # the basis of Y is rotated to be as close as possible to that of X
        left, _, right = np.linalg.svd(y_left.T @ x_left)
        return tables._replace(x=x_left.T @ tables.x, y=(y_left @ (left @ right)).T @ tables.y)
    # Rows have to remain samples.
    return tables._replace(x=x_left @ (x_left.T @ tables.x), y=y_left @ (y_left.T @ tables.y))


def strength(tables: PreparedTables, seed: tuple[int, ...] | None = None) -> float:
    """The strength d of the leading pair, in the given order of the rows of Y or, with a seed, in a random one."""
    y = tables.y if seed is None else tables.y[random_order(len(tables.y), tables.strata, seed)]
    x_table, y_table = (
        Table(Corrected(DenseOperator(values, low_memory=True), float(np.sum(np.square(values)))))
        for values in (tables.x, y)
    )
    pair = next(iter(PairSearch(x_table, y_table, *tables.axes, tables.settings, "canonical", 0.0)), None)
    return 0.0 if pair is None else pair.module.d


def random_order(size: int, strata: Indices | None, seed: tuple[int, ...]) -> Indices:
    """A random order, within strata if there are any."""
    drawn = np.random.default_rng(seed).permutation(size)
    if strata is None:
        return drawn
    order = np.empty_like(drawn)
    # Both sorts are stable: the rows of each stratum, in their own and in random order, take the same places.
    order[np.argsort(strata, kind="stable")] = drawn[np.argsort(strata[drawn], kind="stable")]
    return order


def strata_of(labels: Any, n_samples: int, samples: Array | None = None) -> Indices | None:
    """Labels of the samples as numbers; a Series is matched by the names of the samples, if these have names."""
    if labels is None:
        return None
    if isinstance(labels, pd.Series) and samples is not None:
        if missing := [name for name in samples if name not in labels.index]:
            raise ValueError(f"strata has no label for {len(missing)} samples, e.g. {missing[0]!r}: give one for each")
        labels = labels.loc[samples]
    found = np.asarray(labels, dtype=object)
    if found.shape != (n_samples,):
        raise ValueError(f"strata has shape {found.shape} but there are {n_samples} samples: give a label for each")
    codes, _ = pd.factorize(found)
    if (codes < 0).any():
        raise ValueError(f"{int((codes < 0).sum())} labels of strata are missing: give a label for every sample")
    if np.bincount(codes).max() < 2:
        raise ValueError("every sample has its own stratum, so nothing can be permuted: give larger strata")
    return codes
