"""Similarity of two sets of modules, in relation to that of modules with random genes or samples."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from netbic.arrays import Array, Bools, Floats

_LEVEL = 0.05  # share of random relabellings in which any pair of modules exceeds its chance level
_UNINFORMATIVE = 0.95  # chance level from which a similarity says nothing


class Agreement(NamedTuple):
    """Similarities of the modules of one fit (rows) and another one (columns).

    Attributes
    ----------
    cosine : array
        Signed: of weights, or the correlation of scores. NaN where it is not defined.
    chance : array
        |cosine| that two modules reach by chance: if names are permuted at random, no pair exceeds its chance level in
        95 % of permutations.
    agreement : array
        (|cosine| - chance) / (1 - chance), from 0 (by chance) to 1 (identical). NaN where it is not defined.
    p : array
        Share of permutations in which any pair is as far above what it reaches on average as this one.
    """

    cosine: Floats
    chance: Floats
    agreement: Floats
    p: Floats

    @classmethod
    def between(cls, some: Floats, others: Floats, n_draws: int, generator: np.random.Generator) -> Self:
        """Of vectors in rows, whose entries belong to the same genes or samples in the same order."""
        first, second = _unit_rows(some), _unit_rows(others)
        cosine = np.clip(first @ second.T, -1.0, 1.0)
        defined = np.logical_and.outer(*(np.asarray(rows.any(axis=1)) for rows in (first, second)))
        if not cosine.size or not first.shape[1]:
            empty = np.full(cosine.shape, np.nan)
            return cls(empty, empty, empty, empty)
        by_chance = np.abs(_permuted_cosines(first, second, n_draws, generator))
        means, spreads = by_chance.mean(axis=0), by_chance.std(axis=0)
        unit = np.where(spreads > 0, spreads, np.inf)
        furthest = np.where(defined, (by_chance - means) / unit, -np.inf).max(axis=(1, 2))
        chance = np.minimum(means + np.quantile(furthest, 1 - _LEVEL) * spreads, 1.0) if defined.any() else means
        reached = furthest[:, None, None] >= (np.abs(cosine) - means) / unit - 1e-9
        agreement = np.maximum(np.abs(cosine) - chance, 0.0) / np.maximum(1 - chance, 1e-12)
        unknown = ~defined | (chance > _UNINFORMATIVE) | (spreads == 0)
        agreement = np.where(unknown, np.nan, np.minimum(agreement, 1.0))
        p_values = np.where(unknown, np.nan, (1 + reached.sum(axis=0)) / (1 + n_draws))
        return cls(np.where(defined, cosine, np.nan), np.where(defined, chance, np.nan), agreement, p_values)


def _unit_rows(rows: Array) -> Floats:
    """Rows of length 1; rows that are not finite or have no entries are 0."""
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _permuted_cosines(some: Floats, others: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
    """Cosines after permuting the entries of `others`, the same way for all its rows."""
    used = np.flatnonzero(others.any(axis=0))
    columns = others[:, used].T
    found = np.empty((n_draws, len(some), len(others)))
    for draw in range(n_draws):
        places = generator.permutation(some.shape[1])[: used.size]
        found[draw] = some[:, places] @ columns
    return found


def correlated_rows(scores: Floats) -> Floats:
    """Rows with mean 0, so that cosines are correlations; constant rows are 0, rows with missing entries NaN."""
    centred = scores - scores.mean(axis=1, keepdims=True) if scores.size else scores
    spread = np.linalg.norm(centred, axis=1, keepdims=True) if scores.size else scores
    constant = spread <= 1e-12 * np.linalg.norm(scores, axis=1, keepdims=True) if scores.size else spread
    return np.asarray(np.where(constant, 0.0, centred) if scores.size else centred)


def overlaps(some: Bools, others: Bools) -> tuple[Array, Floats]:
    """Number of members in common and Jaccard index of sets (rows); the index of two empty sets is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> shared, jaccard = overlaps(np.array([[True, True, False]]), np.array([[False, True, True], [False] * 3]))
    >>> shared.tolist(), jaccard.round(2).tolist()
    ([[1, 0]], [[0.33, 0.0]])
    """
    shared = some.astype(np.intp) @ others.T.astype(np.intp)
    union = some.sum(axis=1)[:, None] + others.sum(axis=1) - shared
    return shared, np.divide(shared, union, out=np.full(shared.shape, np.nan), where=union > 0)


def combined(genes: Agreement, samples: Agreement) -> tuple[Floats, Floats]:
    """Mean of both agreements, and the sign of the relation; if only one is known, that one.

    If the two have different signs they contradict each other, and only the larger one counts.
    """
    parts = np.stack([genes.agreement, samples.agreement])
    signs = np.sign(np.nan_to_num(np.stack([genes.cosine, samples.cosine])))
    known, values = ~np.isnan(parts), np.nan_to_num(parts)
    larger = values.argmax(axis=0)[None]
    sign = np.take_along_axis(signs, larger, axis=0)[0]
    values = np.where(signs == sign, values, 0.0)
    number = known.sum(axis=0)
    return np.where(number > 0, values.sum(axis=0) / np.maximum(number, 1), np.nan), sign
