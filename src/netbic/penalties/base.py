"""What a penalty is: each is a small class of its own.

A penalty sees only magnitudes: the non-negative scores c of a half step. `threshold` answers which entries stay and
how large they are before the vector is brought to unit length. Signs, graphs and data are the solver's business.

`has_objective` says whether normalise(threshold(c)) maximises c'x - value(x) over the unit sphere. Only then does the
solver's objective F exist and only then can it promise that F never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Kept(NamedTuple):
    """What a threshold leaves: indices in increasing order and their magnitudes, all positive."""

    support: Indices
    values: Floats


@dataclass(frozen=True, repr=False)
class Penalty:
    """Base of all penalties, which are frozen dataclasses.

    `nonnegative` (by keyword) restricts the vector to non-negative entries: the `upos`/`vpos` of PMD.
    """

    has_objective: ClassVar[bool] = True
    clip: ClassVar[float | None] = None  # robust standard deviations beyond which entries of X are drawn in first
    nonnegative: bool = field(default=False, kw_only=True)

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr and getattr(self, f.name) != f.default)
        plain = ((name, value.item() if isinstance(value, np.generic) else value) for name, value in given)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in plain)})"

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep and shrink entries of a vector of scores; scores at or below zero are never kept."""
        raise NotImplementedError

    def value(self, magnitudes: Floats) -> float:
        """What the objective F subtracts for a unit vector with these non-zero magnitudes."""
        return 0.0

    def check(self, size: int, axis: str) -> None:
        """Raise ValueError if the penalty cannot be used on an axis ("row" or "column") of this size."""

    def for_matrix(self, squared_norm: float, n_entries: int) -> Penalty:
        """Return the penalty for a matrix of this squared Frobenius norm; only data-driven penalties differ."""
        return self

    def size(self) -> int | None:
        """Return how many entries are asked for, or None if the penalty does not fix that."""
        return None
