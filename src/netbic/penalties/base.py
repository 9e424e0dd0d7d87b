"""The contract of a penalty: everything that the solver, tuning and storage ask of one, with its default.

A penalty sees only magnitudes: the non-negative scores c of a half step. `threshold` returns which entries are kept and
how large they are before the vector is normalised. Signs, graphs and data are handled by the solver.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from netbic.arrays import Array, Floats, Indices
from netbic.errors import InputError


class Kept(NamedTuple):
    """Result of a threshold: indices in increasing order and their magnitudes, all positive."""

    support: Indices
    values: Floats


class GroupShare(NamedTuple):
    """A group of entries in a module: its name, its number of entries, and their share of the squared weights."""

    group: str
    size: int
    share: float


@dataclass(frozen=True, repr=False)
class Penalty:
    """Base class of all penalties, which are frozen dataclasses.

    A penalty must implement `threshold`; everything else has a default.

    Parameters
    ----------
    nonnegative : bool, default=False
        Restrict the vector to non-negative entries (`upos` and `vpos` of PMD). By keyword only.

    Attributes
    ----------
    has_objective : bool
        Whether the normalised threshold of c maximises c'x - value(x) over the unit sphere (or, with `update`, does not
        decrease it). Only then does the objective F exist, and only then does the solver guarantee that F never
        decreases.
    sizes_from_data : bool
        Whether the size of a module is set in the first rounds of the search, by `fixed_for`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True, repr=False)
    ... class Above(Penalty):
    ...     level: float
    ...
    ...     def threshold(self, magnitudes):
    ...         support = np.flatnonzero(magnitudes > self.level)
    ...         return Kept(support, magnitudes[support])
    >>> Above(1.5).threshold(np.array([3.0, 1.0, 2.0])).support
    array([0, 2])
    """

    has_objective: ClassVar[bool] = True
    sizes_from_data: ClassVar[bool] = False
    nonnegative: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr and getattr(self, f.name) != f.default)
        plain = ((name, value.item() if isinstance(value, np.generic) else value) for name, value in given)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain)})"

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep and shrink entries of a vector of scores; scores at or below zero are never kept."""
        raise NotImplementedError(f"{type(self).__name__} has no threshold(magnitudes): every penalty needs it")

    def update(
        self, magnitudes: Floats, support: Indices | None, groups: Indices | None
    ) -> tuple[Kept, Indices | None]:
        """Threshold the scores of a half step; what is kept, and the groups of entries, for a penalty of groups.

        `support` and `groups` are those of the current vector, which satisfies the penalty, or None. The support may
        only be used to find the same entries faster. The kept scores of a penalty of groups must have at least the norm
        of the scores in these groups. By default the threshold, without groups.
        """
        return self.threshold(magnitudes), None

    def value(self, magnitudes: Floats) -> float:
        """What the objective F subtracts for a unit vector with these non-zero magnitudes."""
        return 0.0

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """Raise ValueError if the penalty cannot be used on an axis ("row" or "column") of this size."""

    def for_names(self, names: Array | None, size: int, axis: str, table: str = "X") -> Self:
        """The penalty for an axis ("row" or "column") of this size with these names; only penalties of groups differ.

        It is called before `check`.
        """
        return self

    def for_part(self, kept: Indices, size: int) -> Self:
        """The penalty for some entries of an axis of this size, as in a fold. The default depends on their share."""
        return self.for_share(len(kept) / size)

    def n_groups(self) -> int | None:
        """Number of groups of entries to keep, or None if the penalty has no groups."""
        return None

    def described(self, weights: Floats, chosen: Indices) -> list[GroupShare]:
        """Describe the groups that `update` chose for a vector with these weights."""
        return []

    def size(self) -> int | None:
        """Number of entries to keep, or None if the penalty does not fix it."""
        return None

    def resized(self, k: int) -> Self:
        """The same penalty for another size. The default replaces the field `k`.

        Fits to a part of the data call it if `size` returns a number.
        """
        if "k" not in (f.name for f in fields(self)):
            raise NotImplementedError(
                f"{type(self).__name__} has no resized(k): fits to a part of the data need it; implement resized"
            )
        changed: dict[str, Any] = {"k": k}
        return replace(self, **changed)

    def for_share(self, share: float) -> Self:
        """The penalty for a share of the entries of its axis, as in a fold or in half of the samples.

        By default a size shrinks in proportion and a penalty without a size stays the same.
        """
        size = self.size()
        return self if size is None else self.resized(max(1, round(size * share)))

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """The penalty for a matrix of this squared Frobenius norm; only data-driven penalties differ."""
        return self

    def fixed_for(self, magnitudes: Floats, *, core: bool = False) -> Penalty:
        """The penalty with the size that these scores suggest, for a penalty with `sizes_from_data`.

        With `core`, the size of the part with the largest scores, which determines a direction best.
        """
        return self

    def restricted(self) -> Penalty | None:
        """The penalty for vectors that are zero outside some entries; None (the default) if there is no such penalty.

        Its threshold sees the scores of these entries only, and must give the maximiser among such vectors. The solver
        then iterates on a small part of X between rounds on all of X.
        """
        return None


@dataclass(frozen=True, repr=False)
class NotSaved(Penalty):
    """A penalty of the user in a model that was loaded: its code is not known, so that nothing can be fitted."""

    description: str

    def __repr__(self) -> str:
        return self.description

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """Raise an error: a fit begins."""
        raise InputError(
            f"{self.description}: the code of this penalty was not saved with the model; give the model the penalty "
            "again (`set_params`) before a fit"
        )

    def threshold(self, magnitudes: Floats) -> Kept:
        """Never reached: `for_matrix` comes before."""
        raise TypeError(self.description)
