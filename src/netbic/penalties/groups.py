r"""A penalty that keeps groups of entries, such as gene sets, and the choice of the groups.

A vector may be non-zero on a union of k groups. On such a union S the maximiser of c'x over unit vectors is
c_S / |c_S|, with the value |c_S|. So the best x belongs to the union with the largest sum of squared scores (maximum
coverage):

- *Disjoint groups*: that sum is the sum over the groups, and the k groups with the largest sums are the best.
- *Groups that share entries*: the problem is NP-hard. Groups are added greedily, k times the one that adds most: the
  sum is at least 1 - 1/e = 63% of the best one (Nemhauser, Wolsey and Fisher 1978), because what a group adds to a
  union never grows with the union. Then one chosen group is exchanged for another while that increases the sum. If at
  most 2,000 partial choices exist, branch and bound finds the best choice: no k groups add more to a union than the k
  largest amounts that single groups add to it.

The groups of the current vector are among the choices that are compared, hence c'x does not decrease, which is all that
a half step needs for F not to decrease.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Floats, Indices
from netbic.penalties.base import GroupShare, Kept, Penalty
from netbic.penalties.thresholds import largest

Label: TypeAlias = "str | int"
Members: TypeAlias = tuple[Label, ...]

_MOST_BRANCHES: Final = 2_000  # partial choices up to which the best choice is searched for
_PASSES = 10  # over all chosen groups, in search of exchanges
_BETTER: Final = 1 + 1e-12  # factor by which another choice must be better: the sums have rounding errors


@dataclass(frozen=True, repr=False)
class GroupL0(Penalty):
    """Keep `k` groups of entries, such as gene sets; entries in no group are never kept.

    For disjoint groups these are the k groups with the largest sums of squared scores, the exact maximiser. For groups
    that share entries the best union of k groups is found if at most 2,000 partial choices exist (2 of 2,000 groups,
    3 of 60, 4 of 23, any number of 12). Otherwise the choice is greedy, with exchanges, and its sum is at least 63% of
    the best one. The objective never decreases in any case. Which groups a module has is in `groups_` of the fitted
    model. Larger groups have larger sums of squares, also of noise.

    Parameters
    ----------
    groups : mapping of names to members, or sequence of groups
        Gene sets such as :func:`netbic.io.read_gene_sets` returns. Members are names, which are matched to those of X,
        or positions. Members that X lacks are left out, groups with the same members count once; both are said in a
        warning.
    k : int
        Number of groups to keep. Fewer are kept, with a warning, if no other group has a positive score to add.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> penalty = netbic.GroupL0({"a": [0, 1], "b": [2, 3], "c": [3, 4]}, k=1)
    >>> penalty
    GroupL0(groups=Groups(3 groups), k=1)
    >>> penalty.threshold(np.array([3.0, 0.0, 2.0, 2.0, 2.5])).support
    array([3, 4])
    """

    groups: Any
    k: int

    def __post_init__(self) -> None:
        groups = self.groups if isinstance(self.groups, Groups) else Groups(self.groups)
        object.__setattr__(self, "groups", groups)

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep the positive scores of the best groups unshrunk."""
        return self.update(magnitudes, None, None)[0]

    def update(self, magnitudes: Floats, support: Indices | None, groups: Indices | None) -> tuple[Kept, Indices]:
        """The same, with groups that are at least as good as given ones; and the groups."""
        coverage: Coverage = self.groups.coverage(magnitudes.size)
        scale = magnitudes.max(initial=0.0)  # so that squares cannot overflow
        weights = (np.maximum(magnitudes, 0.0) / scale) ** 2 if scale > 0 else np.zeros(magnitudes.size)
        chosen = coverage.best(weights, self.k, groups)
        kept = np.flatnonzero(coverage.covered(chosen) & (magnitudes > 0))
        return Kept(kept, magnitudes[kept]), chosen

    def n_groups(self) -> int:
        """Return k."""
        return self.k

    def described(self, weights: Floats, chosen: Indices) -> list[GroupShare]:
        """Name, size and share of the squared weights of each of the chosen groups, the largest share first."""
        coverage, squares, names = self.groups.coverage(weights.size), weights**2, list(self.groups)
        members = {str(names[group]): coverage.members(group) for group in chosen}
        rows = [GroupShare(name, own.size, float(squares[own].sum())) for name, own in members.items()]
        return sorted(rows, key=lambda row: -row.share)

    def for_names(self, names: Array | None, size: int, axis: str, table: str = "X") -> Self:
        """Match members to the names of the axis."""
        matched = self.groups.match(names, size, axis, table)
        return self if matched is self.groups else replace(self, groups=matched)

    def for_part(self, kept: Indices, size: int) -> Self:
        """The parts of the groups among these entries; those without any are left out."""
        groups = self.groups.among(kept, size)
        return replace(self, groups=groups, k=min(self.k, len(groups)))

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """Members must be positions below the size; k must be an integer from 1 to the number of groups."""
        positions, n_groups = self.groups.positions, len(self.groups)
        low, high = int(positions.min()), int(positions.max())
        if low < 0 or high >= size:
            raise ValueError(
                f"a group has the member {low if low < 0 else high} but {table} has {axis}s 0 to {size - 1}: count "
                f"from 0, or give {table} as a DataFrame whose {axis} names are the members"
            )
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool):
            raise TypeError(f"{self!r}: k must be an integer, got {self.k!r}")
        if not 1 <= self.k <= n_groups:
            raise ValueError(
                f"{self!r} but there are {n_groups:,} different groups with {axis}s of {table}: choose k from 1 to "
                f"{n_groups:,}"
            )


class Groups(Mapping[Label, Members]):
    """Groups of entries by name or by position; entries may belong to several groups. Immutable.

    Parameters
    ----------
    groups : mapping or sequence of groups
        A mapping of the name of each group to its members (such as :func:`netbic.io.read_gene_sets` returns), or a
        sequence of such members (the groups are then numbered from 0). Members are all names, or all positions.

    Examples
    --------
    >>> from netbic.penalties import Groups
    >>> sets = Groups({"repair": ["BRCA1", "BRCA2"], "cycle": ["CDK1", "BRCA1"]})
    >>> sets, sets["cycle"]
    (Groups(2 groups), ('CDK1', 'BRCA1'))
    """

    def __init__(self, groups: Any) -> None:
        if isinstance(groups, (str, Path)):
            raise TypeError(f"groups={str(groups)!r}: read the file first, with netbic.io.read_gene_sets")
        if getattr(groups, "ndim", 1) == 2:
            raise TypeError(
                "groups are a matrix: give the members of each group, e.g. [np.flatnonzero(row) for row in matrix], or "
                "a mapping of names to members"
            )
        if not isinstance(groups, Iterable):
            raise TypeError(f"groups={groups!r}: a mapping of names to members, or a sequence of groups, is needed")
        given = groups.items() if isinstance(groups, Mapping) else enumerate(groups)
        self._members = {_label(name, "a group"): _members(name, members) for name, members in given}
        self._coverages: dict[int, Coverage] = {}
        if not self._members:
            raise ValueError("there are no groups: at least one is needed")
        kinds = {type(member) for members in self._members.values() for member in members}
        if len(kinds) > 1:
            raise TypeError("some members of the groups are names and others are positions: use one of both")
        self.is_numbered = kinds == {int}

    def __getitem__(self, name: Label) -> Members:
        return self._members[name]

    def __iter__(self) -> Iterator[Label]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __hash__(self) -> int:
        return hash(frozenset(self._members))

    def __repr__(self) -> str:
        return f"Groups({len(self):,} groups)"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @cached_property
    def positions(self) -> Indices:
        """The members of all groups, one group after another."""
        flat = [member for members in self._members.values() for member in members]
        if not self.is_numbered:
            raise ValueError(
                f"the members of the groups are names ({flat[0]!r}, ...), which have to be matched to those of the "
                "data first: fit a model, or give positions"
            )
        return np.array(flat, dtype=np.intp)

    def coverage(self, size: int) -> Coverage:
        """Groups of positions as an incidence matrix for an axis of this size; made once."""
        if size not in self._coverages:
            ends = np.cumsum([0, *(len(members) for members in self._members.values())])
            matrix = sp.csr_array((np.ones(ends[-1]), self.positions, ends), shape=(len(self), size))
            matrix.sort_indices()
            self._coverages[size] = Coverage(matrix)
        return self._coverages[size]

    def match(self, names: Array | None, size: int, axis: str, table: str = "X") -> Groups:
        """The same groups by position, without members that the data lack; groups with the same members count once.

        Members are matched by name if the data have names of the same kind; otherwise integers are positions.
        """
        wanted = list(dict.fromkeys(member for own in self._members.values() for member in own))
        position: dict[Label, Any] = dict(zip(wanted, wanted, strict=True))
        mine, missing = ", ".join(map(str, wanted[:3])), set[Label]()
        by_name = names is not None and self.is_numbered == np.issubdtype(np.asarray(names).dtype, np.integer)
        if by_name:
            index = pd.Index(np.asarray(names))
            if not index.is_unique:
                again = index[index.duplicated()][0]
                raise ValueError(f"the {axis} name {again!r} of {table} occurs twice: groups need unique names")
            position = dict(zip(wanted, index.get_indexer(pd.Index(wanted)).tolist(), strict=True))
            missing = {member for member in wanted if position[member] < 0}
            if len(missing) == len(wanted):
                raise ValueError(
                    f"no member of the {axis} groups is a {axis} of {table}: the groups have {mine}, ...; {table} has "
                    f"{', '.join(map(str, index[:3]))}, ... (use the same kind of names on both sides; transpose "
                    f"{table} if these are samples)"
                )
        elif not self.is_numbered:
            raise ValueError(
                f"the groups of {axis}s are given by name ({mine}, ...) but the {axis}s of {table} have no "
                f"such names: give {table} as a DataFrame, or groups of positions"
            )
        found = {
            name: np.array(sorted(position[member] for member in own if member not in missing), dtype=np.intp)
            for name, own in self._members.items()
        }
        first = {own.tobytes(): name for name, own in reversed(found.items()) if own.size}  # of equal groups
        kept = {name: own for name, own in found.items() if first.get(own.tobytes()) == name}
        n_groups, n_empty = len(self), sum(not own.size for own in found.values())
        n_same, of_groups = n_groups - n_empty - len(kept), f"of {n_groups:,} groups have"
        notes = {
            f"{len(missing):,} of {len(wanted):,} members are not {axis}s of {table}": len(missing),
            f"{n_empty:,} {of_groups} no {axis} of {table}": n_empty,
            f"{n_same:,} {of_groups} the same {axis}s as an earlier one": n_same,
        }
        if any(notes.values()):
            said = "; ".join(note for note, number in notes.items() if number)
            warnings.warn(f"{axis} groups: {said}: left out", stacklevel=7)
        return Groups(kept) if by_name or any(notes.values()) else self

    def among(self, kept: Indices, size: int) -> Groups:
        """Groups of positions among some entries of the axis only; those without any are left out."""
        positions = np.full(size, -1, dtype=np.intp)
        positions[kept] = np.arange(kept.size)
        own = {name: positions[np.array(members, dtype=np.intp)] for name, members in self._members.items()}
        inside = {name: np.sort(each[each >= 0]) for name, each in own.items() if (each >= 0).any()}
        if not inside:
            raise ValueError(f"no group has a member among the {kept.size:,} of {size:,} entries that are fitted")
        return Groups(inside)


def _members(name: object, members: Any) -> Members:
    """The different members of a group."""
    if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
        raise TypeError(f"group {name!r} is {members!r}: a sequence of its members is needed")
    if isinstance(members, np.ndarray) and members.dtype.kind in "iu":
        labels: Iterable[Label] = members.tolist()
    else:
        labels = (_label(member, f"a member of group {name!r}") for member in members)
    own = tuple(dict.fromkeys(labels))
    if not own:
        raise ValueError(f"group {name!r} is empty: leave it out")
    return own


def _label(value: Any, what: str) -> Label:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    raise TypeError(f"{what} is {value!r}, a {type(value).__name__}: use names (text) or positions (integers)")


class Coverage:
    """The choice of groups (rows of an incidence matrix) whose union has the largest sum of weights."""

    def __init__(self, incidence: sp.csr_array) -> None:
        self.incidence = incidence
        self.is_disjoint = bool(np.unique(incidence.indices).size == incidence.indices.size)

    def members(self, group: int) -> Indices:
        """The entries of a group."""
        first, last = self.incidence.indptr[group : group + 2]
        return np.asarray(self.incidence.indices[first:last], dtype=np.intp)

    def covered(self, chosen: Sequence[int] | Indices) -> Bools:
        """Which entries belong to one of these groups."""
        mask = np.zeros(self.incidence.shape[1], dtype=bool)
        for group in chosen:
            mask[self.members(group)] = True
        return mask

    def total(self, chosen: Sequence[int] | Indices, weights: Floats) -> float:
        """The sum of weights in the union of these groups."""
        return float(weights[self.covered(chosen)].sum())

    def best(self, weights: Floats, k: int, previous: Indices | None = None) -> Indices:
        """At most k groups, in increasing order, with a large sum of weights (at least 0) in their union.

        The sum is not smaller than that of the `previous` choice, which is kept unless another one is better.
        """
        sums: Floats = self.incidence @ weights
        if self.is_disjoint:
            return largest(sums, k)
        found = self.exchange(self.greedy(weights, k), weights, k)
        if previous is not None and self.total(found, weights) <= _BETTER * self.total(previous, weights):
            found = self.exchange(previous.tolist(), weights, k)
        n_groups = int(np.count_nonzero(sums > 0))
        most = min(k, n_groups)
        if most > 1 and comb(n_groups, most - 1) <= _MOST_BRANCHES:
            found = self.branch_and_bound(found, weights, k)
        return np.sort(np.array(found, dtype=np.intp))

    def greedy(self, weights: Floats, k: int) -> list[int]:
        """Add the group that adds most, until there are k or no group adds anything; ties go to the first group."""
        chosen: list[int] = []
        left = weights.copy()
        while len(chosen) < k:
            gains = self.incidence @ left
            best = int(np.argmax(gains))
            if gains[best] <= 0:
                break
            chosen.append(best)
            left[self.members(best)] = 0.0
        return chosen

    def exchange(self, chosen: list[int], weights: Floats, k: int) -> list[int]:
        """Replace one group after another by the group that adds most to the others, while the sum increases."""
        # Only the groups with the largest sums are candidates.
        sums = self.incidence @ weights
        first = max(sums.size - (4 * k + 100), 0)
        candidates = np.flatnonzero(sums >= np.partition(sums, first)[first])
        incidence, chosen = self.incidence[candidates], list(chosen)
        counts = np.zeros(weights.size, dtype=np.intp)  # of chosen groups, for each entry
        for group in chosen:
            counts[self.members(group)] += 1
        for _ in range(_PASSES):
            before = list(chosen)
            for place, group in enumerate(chosen):
                own = self.members(group)
                counts[own] -= 1
                left = np.where(counts == 0, weights, 0.0)
                gains = incidence @ left
                best = int(np.argmax(gains))
                if gains[best] > _BETTER * left[own].sum():
                    chosen[place] = int(candidates[best])
                counts[self.members(chosen[place])] += 1
            if chosen == before:
                break
        return chosen

    def branch_and_bound(self, known: list[int], weights: Floats, k: int) -> list[int]:
        """The best choice; the `known` one unless another is better."""
        best, most = known, self.total(known, weights)

        def extend(chosen: list[int], total: float, left: Floats, groups: Indices, n_more: int) -> None:
            """Add `n_more` of the `groups`, in every way that may be better; `left` are weights not yet covered."""
            nonlocal best, most
            gains = (self.incidence @ left)[groups]
            order = np.argsort(-gains, kind="stable")
            groups, sums = groups[order], np.append(0.0, np.cumsum(gains[order]))
            for place, group in enumerate(groups.tolist()):
                last = min(place + n_more, groups.size)
                if total + sums[last] - sums[place] <= _BETTER * most:
                    return  # no choice among the groups from here on is better: they add less and less
                gain = float(gains[order[place]])
                if n_more == 1 or last - place == 1:
                    best, most = [*chosen, group], total + gain
                    return
                after = left.copy()
                after[self.members(group)] = 0.0
                extend([*chosen, group], total + gain, after, groups[place + 1 :], n_more - 1)

        sums = self.incidence @ weights
        extend([], 0.0, weights, np.flatnonzero(sums > 0), min(k, sums.size))
        return best
