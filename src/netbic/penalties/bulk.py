"""Sizes from the data: the entries beyond the bulk of the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtri

from netbic.arrays import Floats
from netbic.penalties.base import Kept, Penalty
from netbic.penalties.thresholds import L0, largest

CORE: Final = 0.7  # `share` while modules are searched for: their largest weights determine the direction best
_USUAL = 20  # entries if too few stand out
_MAD = 1.4826  # a standard deviation in units of the median absolute value of normal numbers


@dataclass(frozen=True, repr=False)
class BeyondBulk(Penalty):
    """Keep the entries that stand out: beyond the bulk of all scores, and comparable with the largest ones.

    An entry is beyond the bulk if its magnitude exceeds what one of as many normal numbers would reach, with the
    standard deviation estimated from the median magnitude. Of these, from the largest on, those are kept that have at
    least `share` times the mean of the ones before them.

    Parameters
    ----------
    share : float, default=0.5
    least : int, default=5
        Number of entries that have to stand out. If fewer do, the end of the module is unknown, and the 20 largest
        entries are kept: the scores of more entries are more reproducible.
    most : float, default=0.25
        Share of all entries that are kept at most (but `least` entries in any case).

    Examples
    --------
    >>> import numpy as np, netbic
    >>> scores = np.abs(np.random.default_rng(0).standard_normal(1000))
    >>> scores[:20] += 8
    >>> netbic.BeyondBulk().threshold(scores).support.size
    20
    """

    has_objective: ClassVar[bool] = False
    sizes_from_data: ClassVar[bool] = True
    share: float = 0.5
    least: int = 5
    most: float = 0.25

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep the entries that stand out, unshrunk."""
        support = largest(magnitudes, self.size_for(magnitudes))
        return Kept(support, magnitudes[support])

    def n_standing_out(self, magnitudes: Floats) -> int:
        """Number of entries that stand out, at most `most` of all."""
        beyond = -np.sort(-magnitudes[magnitudes > _edge(magnitudes)])[: max(int(self.most * magnitudes.size), 1)]
        means = np.cumsum(beyond) / np.arange(1, beyond.size + 1)
        smaller = np.flatnonzero(beyond[1:] < self.share * means[:-1])
        return int(smaller[0]) + 1 if smaller.size else beyond.size

    def size_for(self, magnitudes: Floats, otherwise: int = _USUAL) -> int:
        """Number of entries to keep: those that stand out, or `otherwise` if they are too few."""
        size = self.n_standing_out(magnitudes)
        if size < self.least:
            size = max(min(otherwise, int(self.most * magnitudes.size)), self.least)
        return min(size, magnitudes.size)

    def fixed_for(self, magnitudes: Floats, *, core: bool = False) -> Penalty:
        """The L0 penalty with the number of entries that stand out; with `core`, of the largest among them."""
        if core:
            size = replace(self, share=max(self.share, CORE)).size_for(magnitudes, self.least)
        else:
            size = self.size_for(magnitudes)
        return L0(size, nonnegative=self.nonnegative)

    def size_reason(self, size: int, n_standing_out: int, n_entries: int) -> str:
        """Why a module has so many entries.

        Examples
        --------
        >>> BeyondBulk().size_reason(20, 3, 1000)
        'only 3 stand out, at least 5 are needed: the 20 largest weights'
        """
        if n_standing_out < self.least:
            return f"only {n_standing_out} stand out, at least {self.least} are needed: the {size} largest weights"
        if size >= max(int(self.most * n_entries), 1):
            return f"the largest size: {self.most:.0%} of all (`most` of BeyondBulk allows more)"
        return "so many stand out from the others"

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """`share` and `most` lie between 0 and 1, `least` is at least 1."""
        for name, value in (("share", self.share), ("most", self.most)):
            if not 0 < value <= 1:
                raise ValueError(f"{name}={value!r} of BeyondBulk: choose a number above 0, and at most 1")
        if not (isinstance(self.least, (int, np.integer)) and self.least >= 1):
            raise ValueError(f"least={self.least!r} of BeyondBulk: choose an integer of at least 1")


def _edge(magnitudes: Floats) -> float:
    """What the largest of as many normal numbers would reach, with the median magnitude of these ones."""
    return float(-ndtri(0.5 / magnitudes.size) * _MAD * _median(magnitudes))


def _median(values: Floats) -> float:
    """The median of finite values (np.median takes ten times as long, as it looks for missing ones)."""
    middle = values.size // 2
    if values.size % 2:
        return float(np.partition(values, middle)[middle])
    return float(np.partition(values, [middle - 1, middle])[middle - 1 : middle + 1].mean())
