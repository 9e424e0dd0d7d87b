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

Covariates: if they are groups, samples are permuted within them. Their effects are the same in every such order, so
that the test of the first pair remains exact. Otherwise covariates are directions that are removed before all pairs.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState
from netbic.estimators.covariates import check_part, covariates_of, training_design
from netbic.estimators.inputs import axis_names
from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.parameters import check_count, iteration_settings
from netbic.operators.corrected import Corrected
from netbic.operators.cross import Table
from netbic.operators.dense import DenseOperator
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.pair_verdicts import (
    LEVEL,
    SURE,
    HeldOut,
    is_doubtful,
    judge_pair,
    pairs_verdict,
)
from netbic.selection.resampling import SIDES, draw_seed, folds, pairs_by_position, seeded
from netbic.selection.technical import carriers, extreme_sample
from netbic.solver.pairs import PairSearch
from netbic.solver.search import Axis
from netbic.solver.solve import Settings
from netbic.storage.tables import HELD_OUT, feature_names, pair_scores_table, sample_names

FEWEST_PERMUTATIONS: Final = 19  # with fewer, p is always above 0.05
_ENOUGH = 3
_FEWEST = 3  # samples of a fold: a correlation of two is 1 or -1
_LEFT = 4  # samples more than pairs, so that something is left to permute


@dataclass(frozen=True, repr=False)
class PairTests:
    """Which pairs of two tables are more than chance, and which of their features can be relied on.

    Attributes
    ----------
    table : DataFrame
        A row per pair.

        - `pair`: its number, from 1; `verdict`: "strong", "moderate" or "doubtful".
        - `d`: its strength; `correlation` of its scores in the samples of the fit, which is too large.
        - `held_out_correlation`: that in samples that were not used to find it; `held_out_low` and `held_out_high`: its
          95 % interval.
        - `p_value` of the pair by itself; `p_value_with_earlier`: the largest one of this and all earlier pairs;
          `n_permutations`, how many were needed. No p-value is below 1 / (n_permutations + 1), which means that no
          permutation was as strong.
        - `found_again`: share of the fits without a fold in which the pair is found again.
        - `confidence_1`, `confidence_2`: mean confidence of its features of X and of Y.
        - `carried_by`: the one or two samples that carry the pair (at least 60 % of the products of its scores), "" if
          none do.
        - `n_sure_1`, `n_sure_2`: how many of them have a confidence of at least 0.5.
        - `extreme_samples`: further samples that make a quarter of the variance of the scores in a table, or more.
        - `reason`: the verdict in words.
    features : DataFrame
        A row per pair and feature, largest absolute weight first: `pair`, `table`, `name`, `weight`, `found_again`
        (share of the fits without a fold in which it has a weight of the same sign), `correlation` (with the held-out
        scores in the *other* table, beyond earlier pairs) and `confidence` (that this correlation is not chance, from 0
        to 1: one minus the local false discovery rate among all features of its table, by scores in random order).
    scores : DataFrame
        A row per pair and sample: `pair`, `sample`, `held_out_1` and `held_out_2`, its scores in X and Y by fits that
        did not use it, means over the divisions, in standard deviations. Labels are compared with them
        (`netbic.association.associate_pairs`). They correlate more than `held_out_correlation` says, which is that of
        single divisions: means have smaller errors.
    reference : SparseGraphPLS or SparseGraphCCA
        The model fitted to all samples; its pairs are the ones tested.
    """

    table: pd.DataFrame
    features: pd.DataFrame
    scores: pd.DataFrame
    reference: TwoTableModel

    @property
    def verdict(self) -> str:
        """How many pairs have which verdict, and how many are more than chance."""
        return pairs_verdict(self.table)

    @property
    def sentences(self) -> list[str]:
        """A sentence for each pair."""
        return [f"Pair {pair}. {reason}" for pair, reason in zip(self.table["pair"], self.table["reason"], strict=True)]

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {sentence}" for sentence in self.sentences)])


def pair_tests(
    model: TwoTableModel,
    X: Any,
    Y: Any,
    *,
    covariates: Any = None,
    most: int | None = None,
    n_permutations: int = 999,
    n_folds: int = 5,
    n_repeats: int = 10,
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
    test is approximate.

    For the verdict, the model is fitted without one fold of the samples after another, in several random divisions, and
    its pairs are matched to those of the whole fit by the correlation of their scores. All numbers are measured in
    samples that were not used. A pair is *doubtful* if the 95 % interval of its held-out correlation has 0, if it is
    found again in less than half of these fits, or if p > 0.05 and this interval does not lie above 0.3. It is *strong*
    if p <= 0.05, the interval lies above 0.3, the mean confidence of its features is at least 0.8 in both tables, and
    no one or two samples carry it; otherwise *moderate*.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        If its settings were chosen on the same data, p-values are too small. Graphs are used for permuted tables, too.
    X, Y : arrays, DataFrames or sparse matrices
        Two tables of the same samples, as for `SparseGraphPLS.fit`. Dense copies are made of sparse tables.
    covariates : as for `SparseGraphPLS.fit`, optional
        Their effects are removed from both tables, in each part of the samples that is fitted anew. Default: those of
        the model, if it was fitted to X.
    most : int, optional
        Search for pairs until two in a row are doubtful, and for `most` of them at most, instead of
        `model.n_components`. These two are the last of the table.
    n_permutations : int
        The largest number of permutations per pair. The smallest possible p-value is 1 / (n_permutations + 1).
    n_folds, n_repeats : int
        Folds, and random divisions of the samples into folds, for all that is held out.
    strata : array of shape (n_samples,), optional
        Labels such as batches, within which samples are permuted: differences between strata are then no evidence.
        Default: samples with the same covariates, if these are groups of at least two samples on average.
    early_stopping : bool
        Make no more permutations once so many are as strong as the pair that p > 0.05 is certain: 5 % of
        `n_permutations`. If that happens at permutation l, p = b / l (Besag and Clifford 1991), otherwise
        p = (1 + b) / (1 + n_permutations), where b are as strong.
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
    'Of 2 pairs, 1 is moderate, 1 is doubtful. 1 is stronger than expected by chance (p <= 0.05).'
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
    check_count("n_repeats", n_repeats)
    seed, given = draw_seed(random_state), covariates_of(found, X, covariates)
    if most is not None:
        check_count("most", most)
        found = clone(found).set_params(n_components=min(most, _num_samples(X) - _LEFT))
    enough = max(_ENOUGH, int(np.ceil(LEVEL * (1 + n_permutations)))) if early_stopping else None
    limits = Limits(n_permutations, enough, until_doubtful=most is not None)
    fits = Fits(X, n_folds * n_repeats + n_permutations * found.n_components, n_jobs, progress)
    names = getattr(found, "table_names_", getattr(model, "table_names_", ("X", "Y")))
    with nullcontext() if most is None else quiet():  # warnings of the fit are shown
        fitted = seeded(found, seed).fit(X, Y, covariates=given, table_names=names)
    if fitted.n_components_ > (most_pairs := len(fitted.x_scores_) - _LEFT):
        raise ValueError(
            f"{fitted.n_components_} pairs but only {len(fitted.x_scores_)} samples: at most {max(most_pairs, 0)} "
            "pairs can be tested. Use a smaller n_components"
        )
    with quiet():
        samples = axis_names(X)[0]
        model, values, others = pairs_by_position(fitted, X, Y)
        folds(values.shape[0], n_folds, 0, fewest=_FEWEST)  # raises before the long part
        design, size = training_design(fitted, X), values.shape[0]
        check_part(design, size * (n_folds - 1) // n_folds, "a part of ")
        alike = groups_of(fitted) if strata is None else strata_of(strata, size, samples)
        prepared = prepare_tables(model, values, others, alike, design)
        fits.left = n_permutations * fitted.n_components_
        held_out = HeldOut.of((model, values, others, fitted), (n_folds, n_repeats), seed, fits)
        p_values, numbers = _p_values(prepared, fitted, limits, seed, fits, held_out)
        if len(p_values) < fitted.n_components_:  # the same pairs, without those that are not tested
            fitted = seeded(found, seed).set_params(n_components=len(p_values))
            fitted.fit(X, Y, covariates=given, table_names=names)
            held_out = held_out.first(len(p_values))
        fits.left = 0
        all_names = [feature_names(fitted, side) for side in SIDES]
        residuals = fitted.residuals("x", values), fitted.residuals("y", others)
        features = held_out.features(residuals, fitted, all_names, seed)
    own = np.array(p_values, dtype=np.float64)
    tested: dict[str, Array] = {"p_value": own, "p_value_with_earlier": np.maximum.accumulate(own)}
    tested["n_permutations"] = np.array(numbers, dtype=np.intp)
    return PairTests(
        _judged(fitted, held_out, features, tested), features, _held_out_scores(fitted, held_out.means()), fitted
    )


def _held_out_scores(fitted: TwoTableModel, scores: tuple[Floats, Floats]) -> pd.DataFrame:
    """The held-out scores of `PairTests`."""
    table = pair_scores_table(fitted)[["pair", "sample"]]
    return table.assign(**{name: own.T.ravel() for name, own in zip(HELD_OUT, scores, strict=True)})


def _judged(fitted: TwoTableModel, held_out: HeldOut, features: pd.DataFrame, tested: dict[str, Array]) -> pd.DataFrame:
    """The table of `PairTests`."""
    table = pd.DataFrame({"pair": np.arange(1, fitted.n_components_ + 1), "d": fitted.singular_values_})
    table = table.assign(correlation=fitted.correlations_, **held_out.correlations(), **tested)
    table["found_again"] = held_out.found
    for number, name in enumerate(fitted.table_names_, start=1):
        means = features[features["table"] == name].groupby("pair")["confidence"].mean()
        table[f"confidence_{number}"] = means.reindex(table["pair"]).to_numpy()
        sure = features[(features["table"] == name) & (features["confidence"] >= SURE)].groupby("pair").size()
        table[f"n_sure_{number}"] = sure.reindex(table["pair"], fill_value=0).to_numpy()
    names, scores = sample_names(fitted), zip(fitted.x_scores_.T, fitted.y_scores_.T, strict=True)
    table["carried_by"] = [", ".join(str(names[at]) for at in carriers(*pair)) for pair in scores]
    table["extreme_samples"] = [_extreme_samples(fitted, pair, table["carried_by"][pair]) for pair in range(len(table))]
    judged = [judge_pair(row, fitted.table_names_) for row in table.to_dict("records")]
    table.insert(1, "verdict", [verdict for verdict, _ in judged])
    return table.assign(reason=[reason for _, reason in judged])


def _extreme_samples(fitted: TwoTableModel, pair: int, carried_by: str) -> str:
    """The samples that make a quarter of the variance of the scores in a table, unless they carry the pair."""
    names, parts = sample_names(fitted), list[str]()
    for scores, table in zip((fitted.x_scores_, fitted.y_scores_), fitted.table_names_, strict=True):
        found = extreme_sample(scores[:, pair])
        if found is not None and (name := str(names[found[0]])) not in carried_by.split(", "):
            parts.append(f"{name} makes {100 * found[1]:.0f}% of the variance of the scores in {table}")
    return ", ".join(parts)


class Limits(NamedTuple):
    """When permutations, and tests of further pairs, end."""

    n_permutations: int  # at most
    enough: int | None  # as strong as the pair
    until_doubtful: bool  # whether the second of two doubtful pairs in a row is the last


def _p_values(
    prepared: PreparedTables, fitted: TwoTableModel, limits: Limits, seed: int, fits: Fits, held_out: HeldOut
) -> tuple[list[float], list[int]]:
    """The p-value of each pair by itself, and its number of permutations."""
    p_values, numbers, doubtful = list[float](), list[int](), list[bool]()
    lows = held_out.correlations()["held_out_low"].tolist()
    for pair in range(fitted.n_components_):
        fits.left = limits.n_permutations * (fitted.n_components_ - pair - 1)
        tables = without_pairs(prepared, fitted, pair)
        number = limits.n_permutations, limits.enough
        by_chance, p_value = fits.permutation_test(strength, tables, strength(tables), (seed, pair), *number)
        p_values.append(p_value)
        numbers.append(by_chance.size)
        doubtful.append(is_doubtful(p_value, lows[pair], float(held_out.found[pair])))
        if limits.until_doubtful and doubtful[-2:] == [True, True]:
            break
    return p_values, numbers


class PreparedTables(NamedTuple):
    """Two tables in which the leading pair is searched for."""

    x: Floats
    y: Floats
    axes: tuple[Axis, Axis]  # penalties and graph terms of the features
    settings: Settings
    strata: Indices | None  # rows are permuted among those with the same value
    design: Floats  # covariates (columns), without whose effects both tables are


def prepare_tables(
    model: TwoTableModel, X: Matrix, Y: Matrix, strata: Indices | None = None, design: Floats | None = None
) -> PreparedTables:
    """X and Y without the effects of covariates, centred, scaled and whitened as by the model."""
    x, y = (
        np.ascontiguousarray(table.columns(np.arange(table.shape[1])), dtype=np.float64)
        for table in (model.prepared(X, "X", design).table, model.prepared(Y, "Y", design).table)
    )
    axes = model.check((X.shape[1], Y.shape[1]))
    covariates = np.empty((len(x), 0)) if design is None else design
    return PreparedTables(x, y, axes, iteration_settings(model, np.float64), strata, covariates)


def without_pairs(tables: PreparedTables, fitted: TwoTableModel, n_pairs: int) -> PreparedTables:
    """The tables after the scores of the first pairs of a fitted model were removed."""
    if not n_pairs and (tables.strata is not None or not tables.design.shape[1]):
        return tables
    always = np.insert(tables.design, 0, 1.0, axis=1)
    of_y = fitted.x_scores_ if fitted.deflation == "regression" else fitted.y_scores_
    # Orthonormal bases of what is orthogonal to the scores, covariates and a constant, in columns.
    removed = [np.column_stack([always, scores[:, :n_pairs]]) for scores in (fitted.x_scores_, of_y)]
    x_left, y_left = (np.linalg.qr(each, mode="complete")[0][:, each.shape[1] :] for each in removed)
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


def groups_of(fitted: TwoTableModel) -> Indices | None:
    """Samples with the same covariates as numbers; None if covariates are numbers or identify most samples."""
    coding, design = fitted.covariate_coding_, fitted.covariates_
    if coding is None or design is None or any(each.levels is None for each in coding.covariates):
        return None
    _, numbers = np.unique(design.to_numpy(), axis=0, return_inverse=True)
    return None if 2 * (numbers.max() + 1) > numbers.size else np.asarray(numbers.ravel(), dtype=np.intp)


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
