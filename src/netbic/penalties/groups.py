"""Named groups of entries, such as gene sets, and how they are matched to the rows or columns of a matrix."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Bools, Indices, is_sparse
from netbic.penalties.coverage import Coverage

Label: TypeAlias = "str | int"
Members: TypeAlias = tuple[Label, ...]


class Groups(Mapping[Label, Members]):
    """Groups of entries by name or by position; entries may belong to several groups. Immutable.

    Parameters
    ----------
    groups : mapping, sequence of groups, or boolean matrix
        A mapping of the name of each group to its members (such as :func:`netbic.io.read_gene_sets` returns), a
        sequence of such members (the groups are then numbered from 0), or a boolean array or DataFrame with a row per
        group and a column per entry (as many as X has, unless columns have names). Members are all names, or all
        positions.

    Examples
    --------
    >>> from netbic.penalties import Groups
    >>> sets = Groups({"repair": ["BRCA1", "BRCA2"], "cycle": ["CDK1", "BRCA1"]})
    >>> sets, sets["cycle"]
    (Groups(2 groups), ('CDK1', 'BRCA1'))
    """

    def __init__(self, groups: Any) -> None:
        given = list(_pairs(groups))
        pairs = [(_label(name, "a group"), _members(name, members)) for name, members in given]
        self._members: dict[Label, Members] = dict(pairs)
        self._width = _width(members for _, members in given)
        if len(self._members) < len(pairs):
            names = [name for name, _ in pairs]
            again = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the group {again!r} occurs twice: give each group its own name")
        if not pairs:
            raise ValueError("there are no groups: at least one is needed")
        kinds = {type(member) for members in self._members.values() for member in members}
        if len(kinds) > 1:
            raise TypeError("some members of the groups are names and others are positions: use one of both")
        self.is_numbered = kinds == {int}

    @classmethod
    def of(cls, groups: Any) -> Groups:
        """The groups themselves, or made of anything that describes groups."""
        return groups if isinstance(groups, Groups) else cls(groups)

    @classmethod
    def _from_positions(cls, names: Iterable[Label], members: Iterable[Indices]) -> Self:
        made = cls.__new__(cls)
        made._members = {name: tuple(own.tolist()) for name, own in zip(names, members, strict=True)}
        made.is_numbered, made._width = True, None
        return made

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

    @property
    def largest_position(self) -> int:
        """The largest position of a member."""
        return self._range[1]

    @property
    def smallest_position(self) -> int:
        """The smallest position of a member."""
        return self._range[0]

    @cached_property
    def _range(self) -> tuple[int, int]:
        positions = self._flat_positions
        return int(positions.min()), int(positions.max())

    @cached_property
    def _flat_positions(self) -> Indices:
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
            positions = self._flat_positions
            matrix = sp.csr_array((np.ones(positions.size), positions, ends), shape=(len(self), size))
            matrix.sort_indices()
            self._coverages[size] = Coverage(matrix)
        return self._coverages[size]

    @cached_property
    def _coverages(self) -> dict[int, Coverage]:
        return {}

    def matched(self, names: Array | None, size: int, axis: str) -> Groups:
        """The same groups by position, without members that the data lack; groups with the same members count once.

        Members are matched by name if the data have names of the same kind; otherwise integers are positions. Those of
        a boolean matrix without names are always positions.
        """
        self._check_width(size, axis)
        known = names if self._width is None else None
        if known is not None and self.is_numbered == np.issubdtype(known.dtype, np.integer):
            members, n_dropped, n_all = self._by_name(known, axis)
        elif self.is_numbered:
            own = (np.array(each, dtype=np.intp) for each in self._members.values())
            members, n_dropped, n_all = [np.sort(each) for each in own], 0, 0
        else:
            raise ValueError(
                f"the groups of {axis}s are given by name ({self._examples()}, ...) but the {axis}s of X have no such "
                "names: give X as a DataFrame, or groups of positions"
            )
        kept = {own.tobytes(): place for place, own in reversed(list(enumerate(members))) if own.size}
        places = sorted(kept.values())
        n_empty = sum(not own.size for own in members)
        if n_dropped or len(places) < len(self):
            _say(axis, n_dropped, n_all, n_empty, len(self) - n_empty - len(places), len(self))
        elif self.is_numbered and n_all == 0:
            return self
        labels = list(self._members)
        return Groups._from_positions([labels[place] for place in places], [members[place] for place in places])

    def _check_width(self, size: int, axis: str) -> None:
        if self._width is not None and self._width != size:
            raise ValueError(
                f"the boolean groups of {axis}s have {self._width:,} entries but X has {size:,} {axis}s: give one for "
                f"each {axis} of X, or a DataFrame whose columns have names"
            )

    def _by_name(self, names: Array, axis: str) -> tuple[list[Indices], int, int]:
        """Positions of the members of each group, how many different members are not found, and how many there are."""
        index = pd.Index(names)
        if not index.is_unique:
            again = index[index.duplicated()][0]
            raise ValueError(f"the {axis} name {again!r} of X occurs twice: groups need unique names")
        wanted = pd.Index(list(dict.fromkeys(member for own in self._members.values() for member in own)))
        found = dict(zip(wanted.tolist(), index.get_indexer(wanted).tolist(), strict=True))
        n_dropped = sum(position < 0 for position in found.values())
        if n_dropped == len(found):
            theirs = ", ".join(map(str, names[:3]))
            raise ValueError(
                f"no member of the {axis} groups is a {axis} of X: the groups have {self._examples()}, ...; X has "
                f"{theirs}, ... (use the same kind of names on both sides; transpose X if these are samples)"
            )
        positions = (sorted(found[member] for member in own) for own in self._members.values())
        return [np.array([p for p in own if p >= 0], dtype=np.intp) for own in positions], n_dropped, len(found)

    def _examples(self) -> str:
        first = dict.fromkeys(member for own in list(self._members.values())[:3] for member in own)
        return ", ".join(map(str, list(first)[:3]))

    def among(self, kept: Indices, size: int) -> Groups:
        """Groups of positions among some entries of the axis only; those without any are left out."""
        positions = np.full(size, -1, dtype=np.intp)
        positions[kept] = np.arange(kept.size)
        own = {name: positions[np.array(members, dtype=np.intp)] for name, members in self._members.items()}
        inside = {name: np.sort(each[each >= 0]) for name, each in own.items() if (each >= 0).any()}
        if not inside:
            raise ValueError(f"no group has a member among the {kept.size:,} of {size:,} entries that are fitted")
        return Groups._from_positions(inside, inside.values())


def _say(axis: str, n_dropped: int, n_all: int, n_empty: int, n_repeated: int, n_groups: int) -> None:
    """Warn about members and groups that are left out."""
    parts = []
    if n_dropped:
        parts.append(f"{n_dropped:,} of {n_all:,} members are not {axis}s of X")
    if n_empty:
        parts.append(f"{n_empty:,} of {n_groups:,} groups have no {axis} of X")
    if n_repeated:
        parts.append(f"{n_repeated:,} of {n_groups:,} groups have the same {axis}s as an earlier one")
    warnings.warn(f"{axis} groups: {'; '.join(parts)}: left out", stacklevel=8)


def _pairs(groups: Any) -> Iterable[tuple[Any, Any]]:
    """Names and members of groups of any kind."""
    if isinstance(groups, (str, Path)):
        raise TypeError(f"groups={str(groups)!r}: read the file first, with netbic.io.read_gene_sets")
    if isinstance(groups, pd.DataFrame):
        masks = _masks(groups.to_numpy())
        if groups.columns.equals(pd.RangeIndex(groups.shape[1])):  # no names
            return zip(groups.index.tolist(), masks, strict=True)
        return zip(groups.index.tolist(), (groups.columns[mask].tolist() for mask in masks), strict=True)
    if isinstance(groups, Mapping):
        return groups.items()
    if is_sparse(groups) or (isinstance(groups, np.ndarray) and _is_incidence(groups)):
        return enumerate(_masks(groups.toarray() if is_sparse(groups) else groups))
    if not isinstance(groups, Iterable):
        raise TypeError(f"groups={groups!r}: a mapping of names to members, or a sequence of groups, is needed")
    return enumerate(groups)


def _is_incidence(matrix: Array) -> bool:
    """Whether entries tell who belongs to a group; zeros and ones are hardly positions of the first two entries."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        return False
    return matrix.dtype == bool or bool(matrix.size and np.isin(matrix, (0, 1)).all())


def _masks(matrix: Array) -> Bools:
    if matrix.dtype != bool:
        raise TypeError(
            f"a matrix of groups must be boolean, a row per group, but its type is {matrix.dtype}: give "
            "matrix.astype(bool), or lists of positions"
        )
    return matrix


def _width(members: Iterable[Any]) -> int | None:
    """The number of entries of the axis that groups given as booleans are made for; None for others."""
    widths = {own.size for own in members if isinstance(own, np.ndarray) and own.dtype == bool}
    if len(widths) > 1:
        raise ValueError(f"groups of booleans have {min(widths):,} to {max(widths):,} entries: one per entry is needed")
    return widths.pop() if widths else None


def _members(name: object, members: Any) -> Members:
    """The different members of a group."""
    if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
        raise TypeError(f"group {name!r} is {members!r}: a sequence of its members is needed")
    if isinstance(members, np.ndarray) and members.dtype == bool:
        members = np.flatnonzero(members)
    own = tuple(dict.fromkeys(_label(member, f"a member of group {name!r}") for member in members))
    if not own:
        raise ValueError(f"group {name!r} is empty: leave it out")
    return own


def _label(value: Any, what: str) -> Label:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    raise TypeError(f"{what} is {value!r}, a {type(value).__name__}: use names (text) or positions (integers)")
