"""One verdict per pair of two tables, and a confidence for each of its features, by samples that were not used.

The samples are divided into folds, several times, and the model is fitted without one fold after another. Each time,
every sample has scores by a fit that did not use it. The correlation of these scores, over all samples, is what the
pair is worth in other samples. Its standard error, on Fisher's scale, has two parts: that of a correlation of so many
samples (by its influence function, which a few extreme samples make large), and how much the correlations of the
divisions differ.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from netbic.arrays import Array, Bools, Floats, Indices, Matrix, is_sparse
from netbic.estimators.covariates import basis_of
from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.results import heaviest
from netbic.selection.confidence import confidence_by_chance
from netbic.selection.fits import Fits
from netbic.selection.resampling import SIDES, complement, fill_unobserved, folds, match_scores

LEVEL: Final = 0.05
_FURTHER = 2  # pairs that are searched for beyond those of the whole fit: their order may change
_FEWEST = 3  # samples of a fold
_SIMILAR = 0.6  # correlation of scores from which a pair is found again
_FOUND = 0.5  # smallest share of fits in which a pair is found again
_WITHIN = 1.96  # standard errors of a 95 % interval
_LARGEST = 0.9999  # correlation, so that Fisher's z is finite
_CORRELATED = 0.3  # of a strong pair, the smallest held-out correlation in the interval
RELIABLE: Final = 0.8  # of a strong pair, the smallest mean confidence of the features of either table
SURE: Final = 0.5  # confidence from which a feature is rather right than not
_UNRELIABLE = 0.4  # below which the features should not be interpreted one by one


_ORDERS = 99  # random orders of the samples, for what correlations of features are by chance
# Any two samples have a part in the scores of each other. If a pair is nothing but noise, its scores in one table
# follow the other table by chance with up to twice the variance that scores of independent samples would have.
_MUTUAL = math.sqrt(2)
_FEATURES = ["pair", "table", "name", "weight", "found_again", "correlation", "confidence"]


class Fold(NamedTuple):
    """What a fit without one fold says about every pair."""

    scores: tuple[Floats, Floats]  # of the samples of the fold in both tables, 0 where the pair is not found
    signs: tuple[Array, Array]  # of the weights of both tables, a row per pair
    found: Bools  # whether the pair is found again


Data = tuple[TwoTableModel, Matrix, Matrix, TwoTableModel]  # model, both tables, model fitted to all samples


def fit_without(data: Data, held_out: Indices) -> Fold:
    """Fit the model without a fold; its pairs are matched to the given ones in the samples of the fit."""
    model, X, Y, reference = data
    rest = complement(held_out, X.shape[0])
    made = clone(model).set_params(n_components=reference.n_components_ + _FURTHER)
    design = reference.covariates_
    of_fit, of_others = (None if design is None else design.to_numpy()[part] for part in (rest, held_out))
    fitted = made.fit(fill_unobserved(X[rest]), fill_unobserved(Y[rest]), covariates=of_fit)
    known = reference.x_scores_[rest], reference.y_scores_[rest]
    own = fitted.x_scores_, fitted.y_scores_
    matched, similarity = match_scores(known, own)
    # The sign of a pair is arbitrary. -1, no partner, becomes a column of zeros.
    turned = np.array([np.sign(known[0][:, k] @ own[0][:, at]) if at >= 0 else 0.0 for k, at in enumerate(matched)])
    scores, signs = [], []
    new_scores = fitted.transform(X[held_out], Y[held_out], covariates=of_others)
    for side, new, fit_scores in zip(SIDES, new_scores, own, strict=True):
        spread = np.maximum(fit_scores.std(axis=0), np.finfo(float).tiny)
        scores.append(np.pad(new / spread, ((0, 0), (0, 1)))[:, matched] * turned)
        weights = np.pad(getattr(fitted, f"{side}_weights_"), ((0, 0), (0, 1))).T[matched]
        signs.append((np.sign(weights) * turned[:, None]).astype(np.int8))
    return Fold((scores[0], scores[1]), (signs[0], signs[1]), similarity >= _SIMILAR)


class HeldOut(NamedTuple):
    """All fits without a fold; arrays of scores have the shape (divisions, samples, pairs)."""

    scores: tuple[Floats, Floats]
    same_sign: tuple[Floats, Floats]  # share of the fits with a weight of the same sign, a row per pair
    found: Floats  # share of the fits in which each pair is found again
    n_left: int  # samples less the degrees of freedom of covariates

    @classmethod
    def of(cls, data: Data, n: tuple[int, int], seed: int, fits: Fits) -> HeldOut:
        """Fits without each of n[0] folds, in n[1] random divisions of the samples."""
        reference, size = data[3], data[1].shape[0]
        (n_folds, n_repeats), n_pairs = n, reference.n_components_
        parts = [folds(size, n_folds, [seed, repeat], fewest=_FEWEST) for repeat in range(n_repeats)]
        jobs = [(repeat, part) for repeat, own in enumerate(parts) for part in own if n_pairs]
        scores = np.zeros((2, n_repeats, size, n_pairs))
        given = [np.sign(getattr(reference, f"{side}_weights_").T) for side in SIDES]
        same, found = [np.zeros(signs.shape) for signs in given], np.zeros(n_pairs)
        for (repeat, part), fold in zip(jobs, fits.map(fit_without, data, [job[1] for job in jobs]), strict=True):
            for table in range(2):
                scores[table, repeat, part] = fold.scores[table]
                same[table] += (fold.signs[table] == given[table]) & (given[table] != 0)
            found += fold.found
        n_fits, (x, y) = max(len(jobs), 1), without_covariates(reference, scores)
        n_left = size - (0 if reference.covariates_ is None else reference.covariates_.shape[1])
        return cls((x, y), (same[0] / n_fits, same[1] / n_fits), found / n_fits, n_left)

    def first(self, n: int) -> HeldOut:
        """The first n pairs alone."""
        x, y = (scores[:, :, :n] for scores in self.scores)
        same = self.same_sign[0][:n], self.same_sign[1][:n]
        return HeldOut((x, y), same, self.found[:n], self.n_left)

    def correlations(self) -> pd.DataFrame:
        """The held-out correlation of every pair, with its 95 % interval."""
        n = self.n_left
        x, y = (_standardised(scores) for scores in self.scores)
        r = np.clip(np.mean(x * y, axis=1), -_LARGEST, _LARGEST)  # a row per division
        influence = x * y - r[:, None] * (x**2 + y**2) / 2
        errors = influence.std(axis=1) / (1 - r**2) / math.sqrt(max(n - 3, 1))
        z, sampling = np.arctanh(r), np.maximum(errors.mean(axis=0), 1 / math.sqrt(max(n - 3, 1)))
        between = z.std(axis=0, ddof=1) if len(z) > 1 else 0.0
        error, mean = np.hypot(sampling, between), z.mean(axis=0)
        ends = (np.tanh(mean + sign * _WITHIN * error) for sign in (-1, 1))
        columns = ("held_out_correlation", "held_out_low", "held_out_high")
        return pd.DataFrame(dict(zip(columns, (np.tanh(mean), *ends), strict=True)))

    def means(self) -> tuple[Floats, Floats]:
        """The scores of every sample in both tables, means over the divisions, in standard deviations."""
        x, y = (_standardised(_standardised(scores).mean(axis=0)[None])[0] for scores in self.scores)
        return x, y

    def features(
        self, tables: tuple[Matrix, Matrix], reference: TwoTableModel, names: list[Array], seed: int
    ) -> pd.DataFrame:
        """`found_again`, held-out `correlation` and `confidence` of the features of every pair, largest weight first.

        A feature is correlated with the scores of the *other* table, means over the divisions, beyond earlier pairs:
        their scores are regressed out of the features.
        """
        parts = list[pd.DataFrame]()
        orders = _orders(self.scores[0].shape[1], seed)
        factors = np.where(self.correlations()["held_out_low"] > 0, 1.0, _MUTUAL)
        for at, (side, table) in enumerate(zip(SIDES, reference.table_names_, strict=True)):
            earlier = reference.y_scores_ if (side, reference.deflation) == ("y", "canonical") else reference.x_scores_
            others, columns = self.means()[1 - at], _Columns.of(tables[at], earlier)
            for pair, (vector, again) in enumerate(
                zip(getattr(reference, f"{side}_weights_").T, self.same_sign[at], strict=True)
            ):
                r, z = columns.correlations(others[:, pair][None], pair)
                by_chance = factors[pair] * columns.correlations(others[:, pair][orders], pair)[1]
                # A correlation of the other sign speaks against the feature.
                sure = np.where(z[0] * vector < 0, 0.0, confidence_by_chance(z[0], by_chance))
                own = heaviest(vector)
                numbers = {"found_again": again[own], "correlation": r[0, own], "confidence": sure[own]}
                about = {"pair": pair + 1, "table": table, "name": names[at][own], "weight": vector[own]}
                parts.append(pd.DataFrame(about | numbers))
        found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_FEATURES)
        return found.sort_values("pair", kind="stable", ignore_index=True)


def without_covariates(model: TwoTableModel, scores: Floats) -> Floats:
    """Scores of all samples (the last axis but one) without the effects of the covariates of the fit.

    The effects in held-out samples differ from those in the samples of a fit by the errors of both, which the samples
    of a batch have in common.
    """
    if model.covariates_ is None:
        return scores
    basis = basis_of(model.covariates_.to_numpy())
    return np.asarray(scores - basis @ (basis.T @ scores))


def _standardised(scores: Floats) -> Floats:
    """Mean 0 and variance 1 over the samples (axis 1); constant scores are 0."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def _orders(size: int, seed: int) -> Indices:
    """Random orders of the samples, a row each."""
    generator = np.random.default_rng([seed, _ORDERS])
    return np.array([generator.permutation(size) for _ in range(_ORDERS)])


class _Columns(NamedTuple):
    """The features of a table, for correlations with scores of samples: observed values only."""

    values: Floats  # centred; 0 where a value is missing
    seen: Floats | None  # 1 where a value is observed; None if all are
    basis: Floats  # orthonormal, of the scores of earlier pairs

    @classmethod
    def of(cls, table: Matrix, earlier: Floats) -> _Columns:
        """Prepare a table; `earlier` scores have a column per pair."""
        values = np.asarray(table.toarray() if is_sparse(table) else table, dtype=np.float64)
        basis, seen = np.linalg.qr(earlier - earlier.mean(axis=0))[0], ~np.isnan(values)
        if seen.all():
            return cls(values - values.mean(axis=0), None, basis)
        centred = np.nan_to_num(values - np.nansum(values, axis=0) / np.maximum(seen.sum(axis=0), 1))
        return cls(centred, seen.astype(np.float64), basis)

    def correlations(self, scores: Floats, pair: int) -> tuple[Floats, Floats]:
        """Correlations with scores (rows), and Fisher's z in units of its standard deviation without a relation.

        The scores of earlier pairs are regressed out of the features. Each feature has the standard deviation that
        belongs to its own number of observed values: among few of them, a correlation is large by chance.
        """
        left = self.values - self.basis[:, :pair] @ (self.basis[:, :pair].T @ self.values)
        squares, n = np.sum(scores**2, axis=1, keepdims=True), np.full(left.shape[1], len(left))
        if self.seen is not None:
            left *= self.seen
            squares, n = scores**2 @ self.seen, self.seen.sum(axis=0)
        sizes = np.sqrt(squares * np.sum(left**2, axis=0))
        r = np.clip(scores @ left / np.where(sizes > 0, sizes, 1.0), -_LARGEST, _LARGEST)
        return r, np.arctanh(r) * np.sqrt(np.maximum(n - 3.0, 0.0))


def judge_pair(row: dict[Any, Any], tables: tuple[str, str]) -> tuple[str, str]:
    """The verdict on a pair, "strong", "moderate" or "doubtful", and the reason in words, from what was measured."""
    low = row["held_out_low"]
    held_out = f"{held_out_text(row)} in samples not used to find it, and {row['correlation']:.2f} in those that were"
    measured = f"{_chance_text(row)}; the correlation of its scores is {held_out}"
    sure = [(float(row[f"confidence_{number}"]), name) for number, name in enumerate(tables, start=1)]
    features = " and ".join(f"{100 * mean:.0f}% of its features of {name}" for mean, name in sure)
    if why := _doubts(row):
        return "doubtful", f"Doubtful: {measured}{''.join(f'; {doubt}' for doubt in why)}."
    if row["p_value"] > LEVEL:
        shown = f"its permutation test alone does not show it ({p_text(row)})"
        measured = f"{shown}, but the correlation of its scores is {held_out}"
    text = f"{measured}; {features} are related to the other table"
    numbers = dict(zip(tables, (row.get(f"n_sure_{number}", 0) for number in (1, 2)), strict=True))
    surer = {name: f" ({n:.0f} have a confidence of at least {SURE:g})" * (n > 0) for name, n in numbers.items()}
    unreliable, few = (
        "its list of features of {} cannot be relied on",
        f"fewer than {100 * RELIABLE:.0f}% of its features of {{}} are related to the other table",
    )
    against = [unreliable.format(name) + surer[name] for mean, name in sure if mean < _UNRELIABLE]
    against += [few.format(name) + surer[name] for mean, name in sure if _UNRELIABLE <= mean < RELIABLE]
    against += [f"p > {LEVEL:g}"] * (row["p_value"] > LEVEL)
    against += [f"its correlation in other samples may be below {_CORRELATED:g}"] * (low < _CORRELATED)
    if row["carried_by"]:
        against.append(f"few samples carry it: {row['carried_by']} (look at them, and fit without them)")
    extreme = f" Most extreme: {row['extreme_samples']}; look at the sample." if row.get("extreme_samples") else ""
    if against:
        return "moderate", f"Moderate: {text}. Not strong, because {', and '.join(against)}.{extreme}"
    return "strong", f"Strong: {text}.{extreme}"


def is_doubtful(p_value: float, low: float, found_again: float) -> bool:
    """Whether a pair may be chance, by its p-value, the lower end of the held-out interval, and how often it is found.

    The strength of a pair of permuted tables is large where the features of each table are correlated, so that a later
    pair can be real although p is large. A correlation that is clearly above 0 in other samples is evidence enough.
    """
    return low <= 0 or found_again < _FOUND or (p_value > LEVEL and low <= _CORRELATED)


def _doubts(row: dict[Any, Any]) -> list[str]:
    """Why a pair is doubtful, besides its p-value; empty if it is not."""
    p_value, low, found_again = row["p_value"], row["held_out_low"], row["found_again"]
    if not is_doubtful(p_value, low, found_again):
        return []
    again = f"only {100 * found_again:.0f}% of the fits without a part of the samples find it again"
    others = ["it may be 0 there"] * (low <= 0)
    others += [f"it may be below {_CORRELATED:g} there"] * (0 < low <= _CORRELATED and p_value > LEVEL)
    return [*others, *[again] * (found_again < _FOUND)]


def _chance_text(row: dict[Any, Any]) -> str:
    """The comparison of a pair with permuted tables in words."""
    return f"{'stronger' if row['p_value'] <= LEVEL else 'no stronger'} than expected by chance ({p_text(row)})"


def held_out_text(row: dict[Any, Any]) -> str:
    """The held-out correlation of a pair with its interval: "0.61 (95% interval 0.30 to 0.80)"."""
    r, low, high = (f"{row[f'held_out_{name}']:.2f}" for name in ("correlation", "low", "high"))
    return f"{r} (95% interval {low} to {high})"


def p_text(row: dict[Any, Any]) -> str:
    """The p-value of a pair in words; the smallest one that the permutations allow is said to be that."""
    p, smallest = float(row["p_value"]), 1 / (1 + float(row["n_permutations"]))
    if p <= smallest * (1 + 1e-9):
        return f"p <= {smallest:.2g} with {row['n_permutations']:.0f} permutations"
    return f"p = {p:.2g}"


def pairs_verdict(table: pd.DataFrame) -> str:
    """How many pairs of the table of `PairTests` have which verdict, and how many are more than chance."""
    if table.empty:
        return "No pair was found, so there is none to test."
    total, n = len(table), int((table["p_value"] <= LEVEL).sum())
    kinds = [kind for kind in ("strong", "moderate", "doubtful") if (table["verdict"] == kind).any()]
    counts = {kind: int((table["verdict"] == kind).sum()) for kind in kinds}
    parts = ", ".join(f"{count} {'is' if count == 1 else 'are'} {kind}" for kind, count in counts.items())
    graded = f"Of {total} pairs, {parts}." if total > 1 else f"The only pair is {kinds[0]}."
    more = "" if table["verdict"].iloc[-1] == "doubtful" else ": there may be more pairs"
    if n == total:
        who = {1: "It is", 2: "Both are"}.get(total, f"All {total} are")
        largest = p_text(max(table.to_dict("records"), key=lambda row: float(row["p_value"])))
        return f"{graded} {who} stronger than expected by chance ({largest}){more}."
    if n == 0:
        who, first = ("It is no" if total == 1 else "None is"), p_text(table.to_dict("records")[0])
        return f"{graded} {who} stronger than expected by chance ({first}{' for the first' * (total > 1)}){more}."
    return f"{graded} {n} {'is' if n == 1 else 'are'} stronger than expected by chance (p <= {LEVEL:g}){more}."
