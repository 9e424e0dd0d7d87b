"""How many modules: directions of X beyond noise, and modules that are found again in halves of the samples.

`JointSearch` searches for that many modules together, or for a given number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq, linear_sum_assignment, minimize_scalar

from netbic.arrays import Floats, Indices
from netbic.operators.corrected import Corrected
from netbic.solver.half_step import Side
from netbic.solver.joint import (
    SURPLUS,
    Subspace,
    imputed,
    joint_modules,
    joint_vectors,
    leading_subspace,
    subspaces_by_passes,
)
from netbic.solver.search import Axis, Module
from netbic.solver.solve import Settings

FOUND_AGAIN: Final = 0.6  # absolute correlation of the scores of two modules that are the same
_PIECE = 0.9  # absolute correlation from which a module of a half is a piece of a stronger one
_MARGIN = 1.25  # modules that are searched for, per direction beyond noise
MOST_MODULES: Final = 100
_SPLITS = 3  # one if XX' is too large
_ROUNDS = 16  # of a search in a half, after the first ones
_SHARES = (0.1, 0.2, 0.35, 0.5, 0.75)  # of this number, for the curve
_FEWEST_SAMPLES = 8  # in which halves say something
_LARGEST = 3  # searches of a single split whose results are averaged
_FEW = 4  # directions per module above which more modules are worth a look
_LARGEST_GRAM = 4096  # rows up to which XX' is kept for all halves


class Count(NamedTuple):
    """Directions beyond noise, modules that were searched for, and how many of them each split found again.

    `curve` has numbers of modules, and how many are found again in the first split if so many are searched for. If
    there is only one split, `found_again` are those of its largest searches, the smallest of which is for `fewest`.
    """

    directions: int
    searched: int
    found_again: list[int]
    curve: list[list[int]]
    fewest: int = 0

    @property
    def n(self) -> int:
        """The number of modules."""
        return round(float(np.mean(self.found_again))) if self.found_again else 0

    @property
    def sentence(self) -> str:
        """How the number was found.

        Examples
        --------
        >>> Count(12, 16, [9, 11, 10], []).sentence
        '12 directions of the data are stronger than noise; of 16 modules, 9 to 11 are found again in halves of the
        samples, 10 on average'
        """
        if not self.directions:
            return "no direction of the data is stronger than noise, or there are too few samples to tell"
        least, most = min(self.found_again), max(self.found_again)
        directions = f"{self.directions} direction{'s' * (self.directions > 1)} of the data"
        found = f"{least} to {most}" if least < most else f"{most}"
        average = f", {self.n} on average" if least < most else ""
        average += "" if self.n else "; only the strongest is kept, which its verdict judges in more halves"
        # Halves have half of the samples, and a search for few modules can mix several directions into one.
        is_few = _FEW * max(self.n, 1) < self.directions
        more = f"; few for so many directions: `n_components={ceil(self.directions / 2)}` searches for more, and "
        return (
            f"{directions} {'are' if self.directions > 1 else 'is'} stronger than noise; of "
            f"{f'{self.fewest} to ' * bool(self.fewest)}{self.searched} modules, "
            f"{found} {'is' if found == '1' else 'are'} found again in halves of the samples{average}"
            f"{f'{more}verdicts say which of them hold' if is_few else ''}"
        )


class JointSearch:
    """The search for all modules together, with the interface of `ModuleSearch`; `n_modules` None: from the data.

    If all `known` modules of an earlier search are given, nothing is searched for again. The number comes from
    `counted`: if the matrix was smoothed over a network, the one before, because smoothed noise has strong directions
    that come back in all halves.
    """

    def __init__(
        self,
        operator: Corrected,
        columns: Axis,
        settings: Settings,
        noise: float,
        n_modules: int | None,
        known: Sequence[Module] = (),
        counted: Corrected | None = None,
    ) -> None:
        self.ended = ""
        self.count: Count | None = None
        self._operator, self._columns, self._settings, self._noise = operator, columns, settings, noise
        self._n_modules, self._known = n_modules, known
        self._counted = operator if counted is None else counted

    def __iter__(self) -> Iterator[Module]:
        if len(self._known) == self._n_modules:
            yield from self._known
            return
        operator, space, wanted = self._operator, None, self._n_modules
        if wanted is None:
            space = leading_subspace(self._counted, min(MOST_MODULES, *operator.shape), self._noise)
            self.count = count_modules(self._counted, space, self._columns, self._settings)
            wanted = max(self.count.n, 1)
            space = space if self._counted is operator else None
        if operator.imputes:
            operator, space = imputed(operator, wanted, self._noise), None
        modules, self.ended = joint_modules(operator, self._columns, self._settings, wanted, self._noise, space)
        yield from modules


def noise_edge(variances: Floats, n: int, rows: Floats | None = None) -> float:
    """The largest singular value that n rows of independent noise with these column variances have, for large n and p.

    It is the upper end of the limiting spectrum (Silverstein and Choi 1995): the minimum over m of
    1 / m + (1 / n) sum_j t_j / (1 - t_j m) for 0 < m < 1 / max t_j is the largest eigenvalue of XX' / n. If entry i, j
    has the variance a_i t_j (`rows`: a, of mean 1), it is the minimum of A(y) / m (Paul and Silverstein 2009), where
    A(y) = mean a_i / (1 - a_i y), and y is the solution of y A(y) = (m / n) sum_j t_j / (1 - t_j m).
    """
    positive = variances[variances > 0]
    if not positive.size:
        return 0.0
    largest = float(positive.max())
    share = positive / largest

    def inverse(m: float) -> float:
        columns = float(np.sum(share / (1 - share * m))) / n
        if rows is None:
            return 1 / m + columns
        end = (1 - 1e-12) / float(rows.max())
        y = brentq(lambda y: y * float(np.mean(rows / (1 - rows * y))) - m * columns, 0.0, end)
        return float(np.mean(rows / (1 - rows * y))) / m

    found = minimize_scalar(inverse, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9})
    return float(np.sqrt(n * largest * found.fun))


def n_beyond_noise(space: Subspace, squares: Floats, n: int, rows: Floats | None = None) -> int:
    """Number of singular values beyond noise with the column variances of X, then with those that they leave."""
    found = 0
    for _ in range(2):
        explained = (space.values[:found] ** 2) @ space.right[:found] ** 2
        left = np.maximum(squares - explained, 0.0)
        edge = noise_edge(left / max(n - 1 - found, 1), n - 1, rows)
        found = max(found, int(np.count_nonzero(space.values > edge)))
    return found


def count_modules(operator: Corrected, space: Subspace, columns: Axis, settings: Settings) -> Count:
    """Search for a few more modules than there are directions beyond noise, in both halves of random splits.

    `space` is the leading subspace of the matrix.
    """
    n, p = operator.shape
    if n < _FEWEST_SAMPLES:
        return Count(0, 0, [], [])
    squares = operator.squared_lengths()[1]
    directions = n_beyond_noise(space, squares, n, operator.row_weights)
    if not directions:
        return Count(0, 0, [], [])
    searched = min(ceil(_MARGIN * directions) + 1, MOST_MODULES, max(n // 2 - 2, 1), p)
    n_splits = _SPLITS if n <= _LARGEST_GRAM else 1
    halves = _random_halves(n, n_splits)
    if n_splits == 1:  # which is not averaged: it should at least hardly depend on the order of the samples
        operator = operator.on(operator.data.in_double())  # rounding errors depend on the order, too
        halves = halves[_ranks(operator)]
    spaces = _subspaces(operator, halves, ceil(SURPLUS * searched))
    fewer = sorted({ceil(share * searched) for share in _SHARES} - {searched})
    # Searches, as pairs of a number of modules and a split: each in both halves.
    searches = [(number, 0) for number in fewer] + [(searched, split) for split in range(n_splits)]
    # The network has no part in the number.
    side = Side(columns.penalty.for_matrix(operator.squared_norm / 2, operator.n_entries // 2))
    rough = replace(settings, max_iter=_ROUNDS)  # enough to tell which modules are the same
    found = [
        _vectors(half, number, side, rough, squares)
        for number, split in searches
        for half in spaces[2 * split : 2 * split + 2]
    ]
    scores = operator.products([vector for vectors in found for vector in vectors])
    parts = np.split(scores, np.cumsum([len(vectors) for vectors in found])[:-1])
    shared = [_n_shared(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    curve = [[number, again] for (number, _), again in zip(searches[: len(fewer) + 1], shared, strict=False)]
    if n_splits == 1:
        largest = curve[-_LARGEST:]
        return Count(directions, searched, [again for _, again in largest], curve, largest[0][0])
    return Count(directions, searched, shared[len(fewer) :], curve)


def _random_halves(n: int, n_splits: int) -> Floats:
    """Two columns of 0 and 1 per split: the samples of each half."""
    halves = np.zeros((n, 2 * n_splits))
    for split in range(n_splits):
        for half, rows in enumerate(np.array_split(np.random.default_rng(split).permutation(n), 2)):
            halves[rows, 2 * split + half] = 1.0
    return halves


def _ranks(operator: Corrected) -> Indices:
    """The ranks of samples on a random direction of the features: the order of the samples does not matter."""
    p = operator.shape[1]
    scores = operator.products([(np.arange(p), np.random.default_rng(0).standard_normal(p))])[0]
    return np.asarray(np.argsort(np.argsort(scores, kind="stable"), kind="stable"))


def _vectors(
    half: Subspace, number: int, side: Side, settings: Settings, squares: Floats
) -> list[tuple[Indices, Floats]]:
    """The features of each module of a half, standardised and of equal weight: a single one must not be a module."""
    if not half.values.size:
        return []
    half = Subspace(half.values, half.right.astype(np.float32, copy=False))
    found = joint_vectors(half, side, number, settings)
    return [(v.support, np.sign(v.values) / np.sqrt(squares[v.support])) for v in found]


def _n_shared(one: Floats, other: Floats) -> int:
    """How many modules of two halves are the same, by their scores (rows)."""
    one, other = _distinct(one), _distinct(other)
    if not len(one) or not len(other):
        return 0
    similar = np.abs(np.corrcoef(one, other)[: len(one), len(one) :])
    return int(np.count_nonzero(similar[linear_sum_assignment(-similar)] >= FOUND_AGAIN))


def _distinct(scores: Floats) -> Floats:
    """The scores (rows) that are not nearly those of an earlier module: a piece of a large module is no other one."""
    scores = scores[np.ptp(scores, axis=1) > 0]
    similar = np.abs(np.corrcoef(scores)).reshape(len(scores), len(scores))
    kept: list[int] = []
    for number in range(len(scores)):
        if (similar[number, kept] < _PIECE).all():
            kept.append(number)
    return scores[kept]


def _subspaces(operator: Corrected, halves: Floats, rank: int) -> list[Subspace]:
    """The leading subspace of each half (a column of 0 and 1), centred: by XX', or by passes over X."""
    n, p = operator.shape
    rank = min(rank, n // 2 - 1, p)
    if n > min(p, _LARGEST_GRAM) or not operator.tracks_gram:
        return subspaces_by_passes(operator, rank, halves, centred=True)
    gram = operator.gram(True, 1.0, np.float64)
    gram = np.triu(gram) + np.triu(gram, 1).T
    spaces = list[Subspace]()
    for split in np.split(halves, halves.shape[1] // 2, axis=1):  # one pass over X each
        values, left = [], np.zeros((n, 2 * rank))
        for half, part in zip(split.T, np.split(left, 2, axis=1), strict=True):
            rows = np.flatnonzero(half)
            inner = gram[np.ix_(rows, rows)]
            inner = inner - inner.mean(axis=0)
            inner -= inner.mean(axis=1, keepdims=True)
            squares, vectors = eigh(inner, subset_by_index=[rows.size - rank, rows.size - 1])
            part[rows] = vectors[:, ::-1]
            own = np.sqrt(np.maximum(squares[::-1], 0.0))
            values.append(own[own > 1e-7 * own[0]])
        for own, right in zip(values, np.split(operator.left_products(left), 2), strict=True):
            spaces.append(Subspace(own, (right[: own.size] / own[:, None]).astype(np.float32)))
    return spaces
