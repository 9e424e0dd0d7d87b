"""How many modules: directions of X beyond noise, and modules that are found again in halves of the samples.

`JointSearch` searches for that many modules together, or for a given number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment, minimize_scalar

from netbic.arrays import Floats, Indices
from netbic.operators.corrected import Corrected
from netbic.solver.joint import SURPLUS, Subspace, imputed, joint_modules, leading_subspace, solve_jointly
from netbic.solver.search import Axis, Module
from netbic.solver.solve import Settings

FOUND_AGAIN: Final = 0.6  # absolute correlation of the scores of two modules that are the same
_PIECE = 0.9  # absolute correlation from which a module of a half is a piece of a stronger one
_MARGIN = 1.25  # modules that are searched for, per direction beyond noise
MOST_MODULES: Final = 100
_SPLITS = 3
_FEWEST_SAMPLES = 8  # in which halves say something
_LARGEST_GRAM = 4096  # rows up to which XX' is kept for all halves


class Count(NamedTuple):
    """Directions beyond noise, modules that were searched for, and how many of them each split found again."""

    directions: int
    searched: int
    found_again: list[int]

    @property
    def n(self) -> int:
        """The number of modules."""
        return round(float(np.mean(self.found_again))) if self.found_again else 0

    @property
    def sentence(self) -> str:
        """How the number was found.

        Examples
        --------
        >>> Count(12, 16, [9, 11, 10]).sentence
        '12 directions of the data are stronger than noise; of 16 modules, 9 to 11 are found again in halves of the
        samples, 10 on average'
        """
        if not self.directions:
            return "no direction of the data is stronger than noise, or there are too few samples to tell"
        least, most = min(self.found_again), max(self.found_again)
        directions = f"{self.directions} direction{'s' * (self.directions > 1)} of the data"
        found = f"{least} to {most}" if least < most else f"{most}"
        return (
            f"{directions} {'are' if self.directions > 1 else 'is'} stronger than noise; of {self.searched} modules, "
            f"{found} are found again in halves of the samples, {self.n} on average"
        )


class JointSearch:
    """The search for all modules together, with the interface of `ModuleSearch`; `n_modules` None: from the data."""

    def __init__(
        self, operator: Corrected, columns: Axis, settings: Settings, noise: float, n_modules: int | None
    ) -> None:
        self.ended = ""
        self.count: Count | None = None
        self._data, self._how, self._n_modules = (operator, columns, noise), settings, n_modules

    def __iter__(self) -> Iterator[Module]:
        operator, columns, noise = self._data
        if self._n_modules is None:
            self.count = count_modules(operator, columns, self._how, noise)
        wanted = max(self.count.n, 1) if self.count is not None else self._n_modules or 1
        if operator.imputes:
            operator = imputed(operator, wanted, noise)
        modules, self.ended = joint_modules(operator, columns, self._how, wanted, noise)
        yield from modules


def noise_edge(variances: Floats, n: int) -> float:
    """The largest singular value that n rows of independent noise with these column variances have, for large n and p.

    It is the upper end of the limiting spectrum (Silverstein and Choi 1995): the minimum over m of
    1 / m + (1 / n) sum_j t_j / (1 - t_j m) for 0 < m < 1 / max t_j is the largest eigenvalue of XX' / n.
    """
    positive = variances[variances > 0]
    if not positive.size:
        return 0.0
    largest = float(positive.max())
    share = positive / largest

    def inverse(m: float) -> float:
        return 1 / m + float(np.sum(share / (1 - share * m))) / n

    found = minimize_scalar(inverse, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-9})
    return float(np.sqrt(n * largest * found.fun))


def n_beyond_noise(space: Subspace, squares: Floats, n: int) -> int:
    """Number of singular values beyond noise with the column variances of X, then with those that they leave."""
    found = 0
    for _ in range(2):
        explained = (space.values[:found] ** 2) @ space.right[:found] ** 2
        left = np.maximum(squares - explained, 0.0)
        edge = noise_edge(left / max(n - 1 - found, 1), n - 1)
        found = max(found, int(np.count_nonzero(space.values > edge)))
    return found


def count_modules(operator: Corrected, columns: Axis, settings: Settings, noise: float = 0.0) -> Count:
    """Search for a few more modules than there are directions beyond noise, in both halves of random splits."""
    n, p = operator.shape
    if n < _FEWEST_SAMPLES:
        return Count(0, 0, [])
    squares = operator.squared_lengths()[1]
    space = leading_subspace(operator, min(MOST_MODULES, n - 1, p), noise)
    directions = n_beyond_noise(space, squares, n)
    searched = min(ceil(_MARGIN * directions) + 1, MOST_MODULES, max(n // 2 - 2, 1), p)
    deviations = np.sqrt(np.maximum(squares, np.finfo(float).tiny))
    gram = None
    if n <= min(p, _LARGEST_GRAM) and operator.tracks_gram:
        gram = operator.gram(True, 1.0, np.float64)
        gram = np.triu(gram) + np.triu(gram, 1).T
    found = []
    for split in range(_SPLITS if directions else 0):
        order = np.random.default_rng([settings.seed, split]).permutation(n)
        scores = []
        for rows in np.array_split(order, 2):
            half = subspace_of_rows(operator, np.sort(rows), ceil(SURPLUS * searched), gram)
            asked = columns.side(float(half.values[0]), operator.squared_norm / 2, operator.n_entries // 2)
            _, state, _, _ = solve_jointly(half, asked, min(searched, half.values.size), settings)
            # Features of equal weight: a single one of large variance is no module.
            vectors = [(v.support, np.sign(v.values) / deviations[v.support]) for v in state.vectors if v.support.size]
            scores.append(_distinct(operator.products(vectors)))
        if not all(map(len, scores)):
            found.append(0)
            continue
        similar = np.abs(np.corrcoef(scores[0], scores[1])[: len(scores[0]), len(scores[0]) :])
        found.append(int(np.count_nonzero(similar[linear_sum_assignment(-similar)] >= FOUND_AGAIN)))
    return Count(directions, searched, found)


def _distinct(scores: Floats) -> Floats:
    """The scores (rows) that are not nearly those of an earlier module: a piece of a large module is no other one."""
    similar = np.abs(np.corrcoef(scores)).reshape(len(scores), len(scores))
    kept: list[int] = []
    for number in range(len(scores)):
        if (similar[number, kept] < _PIECE).all():
            kept.append(number)
    return scores[kept]


def subspace_of_rows(operator: Corrected, rows: Indices, rank: int, gram: Floats | None) -> Subspace:
    """The leading subspace of some rows, centred; `gram` is XX' of all rows, if it is known."""
    n, p = operator.shape
    rank = min(rank, rows.size - 1, p)
    left = np.zeros((n, rank))
    if gram is not None:
        inner = gram[np.ix_(rows, rows)]
        inner = inner - inner.mean(axis=0)
        inner -= inner.mean(axis=1, keepdims=True)
        squares, vectors = eigh(inner, subset_by_index=[rows.size - rank, rows.size - 1])
        left[rows] = vectors[:, ::-1]
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
    else:
        directions = np.random.default_rng(0).standard_normal((rank, p))
        every = np.arange(p)
        for _ in range(6):
            basis = np.linalg.qr(directions.T)[0].T
            images = operator.products([(every, line) for line in basis])[:, rows]
            images -= images.mean(axis=1, keepdims=True)
            vectors, values, _ = np.linalg.svd(images.T, full_matrices=False)
            left[rows] = vectors
            directions = operator.left_products(left)
    kept = values > 1e-7 * values[0]
    return Subspace(values[kept], operator.left_products(left[:, kept]) / values[kept, None])
