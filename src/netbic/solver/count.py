"""How many modules: directions of X beyond noise, and modules that are found again in halves of the samples."""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment, minimize_scalar

from netbic.arrays import Floats, Indices
from netbic.operators.corrected import Corrected
from netbic.solver.joint import SURPLUS, Subspace, leading_subspace, solve_jointly
from netbic.solver.search import Axis
from netbic.solver.solve import Settings

FOUND_AGAIN: Final = 0.6  # absolute correlation of the scores of two modules that are the same
_MARGIN = 1.25  # modules that are searched for, per direction beyond noise
_MOST = 100  # modules at most
_SPLITS = 3


class Count(NamedTuple):
    """Directions beyond noise, modules that were searched for, and how many of them each split found again."""

    directions: int
    searched: int
    found_again: list[int]

    @property
    def n(self) -> int:
        """The number of modules."""
        return round(float(np.mean(self.found_again))) if self.found_again else 0


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


def count_modules(operator: Corrected, columns: Axis, settings: Settings, noise: float = 0.0) -> Count:
    """Search for a few more modules than there are directions beyond noise, in both halves of random splits."""
    n, p = operator.shape
    squares = operator.squared_lengths()[1]
    edge = noise_edge(squares / max(n - 1, 1), n - 1)
    rank, space = 32, None
    while space is None or (space.values.size == rank and space.values[-1] > edge and rank < ceil(_MOST / _MARGIN)):
        rank = min(2 * rank, n, p) if space is not None else min(rank, n, p)
        space = leading_subspace(operator, rank, noise)
        if rank == min(n, p):
            break
    directions = int(np.count_nonzero(space.values > edge))
    searched = min(ceil(_MARGIN * directions) + 1, _MOST, max(n // 2 - 2, 1), p)
    deviations = np.sqrt(np.maximum(squares, np.finfo(float).tiny))
    gram = None
    if n <= p and operator.tracks_gram:
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
            scores.append(operator.products(vectors))
        similar = np.abs(np.corrcoef(*scores)[: len(scores[0]), len(scores[0]) :])
        found.append(int(np.count_nonzero(similar[linear_sum_assignment(-similar)] >= FOUND_AGAIN)))
    return Count(directions, searched, found)


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
    return Subspace(left[:, kept], values[kept], operator.left_products(left[:, kept]) / values[kept, None])
