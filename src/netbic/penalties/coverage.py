r"""Maximum coverage: the k groups of entries whose union has the largest sum of weights.

Entries have weights of at least zero, and groups may share entries. For disjoint groups the sum over a union is the sum
over its groups, so the k groups with the largest sums are the best. For groups that share entries the problem is
NP-hard. What is done then:

- *Greedy choice*: add the group that adds most, k times. Its sum is at least 1 - 1/e = 63% of the best one (Nemhauser,
  Wolsey and Fisher 1978), because what a group adds to a union never grows with the union.
- *Exchanges*: replace one chosen group by another one while that increases the sum.
- *Branch and bound*, if at most 2,000 partial choices exist (2 of 2,000 groups, 3 of 60, 4 of 23, any of 12): the
  result is the best choice. No k groups add more to a union S than the k largest amounts that single groups add to S,
  which is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Final

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Bools, Floats, Indices
from netbic.penalties.thresholds import largest

_MOST_BRANCHES: Final = 2_000  # partial choices up to which the best choice is searched for
_PASSES = 10  # over all chosen groups, in search of exchanges
BETTER: Final = 1 + 1e-12  # factor by which another choice must be better: the sums have rounding errors


class Coverage:
    """Groups of the entries of an axis.

    Parameters
    ----------
    incidence : csr_array of shape (n_groups, n_entries)
        1.0 where an entry belongs to a group.
    """

    def __init__(self, incidence: sp.csr_array) -> None:
        self.incidence = incidence

    @cached_property
    def is_disjoint(self) -> bool:
        """Whether no entry belongs to two groups."""
        used = self.incidence.indices
        return bool(np.unique(used).size == used.size)

    def members(self, group: int) -> Indices:
        """The entries of a group."""
        first, last = self.incidence.indptr[group : group + 2]
        return np.asarray(self.incidence.indices[first:last], dtype=np.intp)

    def covered(self, chosen: Sequence[int] | Indices) -> Bools:
        """Which entries belong to one of these groups."""
        mask = np.zeros(self.incidence.shape[1], dtype=bool)
        for group in chosen:
            mask[self.members(int(group))] = True
        return mask

    def total(self, chosen: Sequence[int] | Indices, weights: Floats) -> float:
        """The sum of weights in the union of these groups."""
        return float(weights[self.covered(chosen)].sum())

    def best(self, weights: Floats, k: int, previous: Indices | None = None) -> Indices:
        """At most k groups, in increasing order, with a large sum of weights in their union.

        The sum is not smaller than that of the `previous` choice, which is kept unless another one is better.
        """
        if self.is_disjoint:
            return largest(self.incidence @ weights, k)
        problem = _Problem(self, weights, k)
        found = problem.exchanged(problem.greedy())
        if previous is not None and problem.total(found) <= BETTER * problem.total(previous):
            found = problem.exchanged([int(group) for group in previous])
        if problem.is_small:
            found = problem.branch_and_bound(found)
        return np.sort(np.array(found, dtype=np.intp))

    def bound(self, weights: Floats, k: int) -> float:
        """An upper bound of the sum of weights in any union of k groups."""
        problem = _Problem(self, weights, k)
        left, covered = weights.copy(), 0.0
        bounds = [_sum_of_largest(self.incidence @ left, k)]
        for group in [] if self.is_disjoint else problem.greedy():
            covered += float(left[self.members(group)].sum())
            left[self.members(group)] = 0.0
            bounds.append(covered + _sum_of_largest(self.incidence @ left, k))
        return min(bounds)


def _sum_of_largest(gains: Floats, k: int) -> float:
    return float(gains.sum() if k >= gains.size else np.partition(gains, gains.size - k)[gains.size - k :].sum())


@dataclass(frozen=True)
class _Candidates:
    """The groups with the largest sums of weights; no other group has a larger sum than `others`."""

    groups: Indices
    incidence: sp.csr_array
    others: float


@dataclass(frozen=True)
class _Problem:
    """The choice of k groups for given weights."""

    coverage: Coverage
    weights: Floats
    k: int

    @cached_property
    def _sums(self) -> Floats:
        sums: Floats = self.coverage.incidence @ self.weights
        return sums

    def total(self, chosen: Sequence[int] | Indices) -> float:
        """The sum of weights in the union of these groups."""
        return self.coverage.total(chosen, self.weights)

    def _candidates(self, count: int) -> _Candidates:
        if count >= self._sums.size:
            return _Candidates(np.arange(self._sums.size), self.coverage.incidence, -1.0)
        edge = np.partition(self._sums, self._sums.size - count)[self._sums.size - count]
        inside = self._sums >= edge
        others = float(self._sums[~inside].max(initial=-1.0))
        groups = np.flatnonzero(inside)
        return _Candidates(groups, self.coverage.incidence[groups], others)

    @cached_property
    def _first_candidates(self) -> _Candidates:
        return self._candidates(4 * self.k + 100)

    def greedy(self) -> list[int]:
        """Add the group that adds most, until there are k or no group adds anything; ties go to the first group.

        Only the groups with the largest sums are examined while one of them adds more than any other group could.
        """
        chosen: list[int] = []
        left, candidates = self.weights.copy(), self._first_candidates
        while len(chosen) < self.k:
            gains = candidates.incidence @ left
            best = int(np.argmax(gains))
            if gains[best] <= candidates.others:
                candidates = self._candidates(4 * candidates.groups.size)
            elif gains[best] <= 0:
                break
            else:
                chosen.append(int(candidates.groups[best]))
                left[self.coverage.members(chosen[-1])] = 0.0
        return chosen

    def exchanged(self, chosen: list[int]) -> list[int]:
        """Replace one group after another by the candidate that adds most to the others, while the sum increases."""
        chosen, candidates = list(chosen), self._first_candidates
        counts = np.zeros(self.weights.size, dtype=np.intp)  # of chosen groups, for each entry
        for group in chosen:
            counts[self.coverage.members(group)] += 1
        for _ in range(_PASSES):
            before = list(chosen)
            for place, group in enumerate(chosen):
                own = self.coverage.members(group)
                counts[own] -= 1
                left = np.where(counts == 0, self.weights, 0.0)
                gains = candidates.incidence @ left
                best = int(np.argmax(gains))
                if gains[best] > BETTER * left[own].sum():
                    chosen[place] = int(candidates.groups[best])
                counts[self.coverage.members(chosen[place])] += 1
            if chosen == before:
                break
        return chosen

    @property
    def is_small(self) -> bool:
        """Whether the best choice can be found by branch and bound."""
        n_groups = int(np.count_nonzero(self._sums > 0))
        k = min(self.k, n_groups)
        return k > 1 and comb(n_groups, k - 1) <= _MOST_BRANCHES

    def branch_and_bound(self, known: list[int]) -> list[int]:
        """The best choice; the `known` one unless another is better."""
        search = _BranchAndBound(self.coverage, known, self.total(known))
        search.extend([], 0.0, self.weights, np.flatnonzero(self._sums > 0), min(self.k, self._sums.size))
        return search.best


@dataclass
class _BranchAndBound:
    """The best choice so far, and the sum of weights in its union."""

    coverage: Coverage
    best: list[int]
    most: float

    def extend(self, chosen: list[int], total: float, left: Floats, groups: Indices, n_more: int) -> None:
        """Add `n_more` of the `groups` to the chosen ones in every way that may give a larger sum.

        `left` are the weights of the entries that the chosen groups, whose sum is `total`, do not cover.
        """
        gains = (self.coverage.incidence @ left)[groups]
        order = np.argsort(-gains, kind="stable")
        groups, sums = groups[order], np.append(0.0, np.cumsum(gains[order]))
        for place, group in enumerate(groups.tolist()):
            last = min(place + n_more, groups.size)
            if total + sums[last] - sums[place] <= BETTER * self.most:
                return  # no choice among the groups from here on is better: they add less and less
            gain = float(gains[order[place]])
            if n_more == 1 or last - place == 1:
                self.best, self.most = [*chosen, group], total + gain
                return
            after = left.copy()
            after[self.coverage.members(group)] = 0.0
            self.extend([*chosen, group], total + gain, after, groups[place + 1 :], n_more - 1)
