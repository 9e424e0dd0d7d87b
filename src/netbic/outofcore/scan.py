"""What one pass over a matrix in blocks of rows tells about its columns and rows, and a digest of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netbic.outofcore.blocks import RowBlocks, Summary, summarised

_BITS = 128


@dataclass(frozen=True)
class Scan:
    """Sums and extremes over some rows."""

    summary: Summary
    lowest: NDArray[Any]  # of each column
    highest: NDArray[Any]
    digest: int

    def plus(self, other: Scan) -> Scan:
        """The rows of both."""
        return Scan(
            self.summary.plus(other.summary),
            np.fmin(self.lowest, other.lowest),
            np.fmax(self.highest, other.highest),
            (self.digest + other.digest) % (1 << _BITS),
        )

    def of_columns(self, kept: NDArray[Any]) -> Scan:
        """The same of some columns."""
        summary = replace(self.summary, means=self.summary.means[kept], squares=self.summary.squares[kept])
        return replace(self, summary=summary, lowest=self.lowest[kept], highest=self.highest[kept])

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of each column."""
        return self.summary.squares / self.summary.n_rows

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of each column."""
        return self.summary.means

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Columns in which nothing varies."""
        return np.asarray(~(self.highest > self.lowest))


def scan(matrix: Any) -> Scan:
    """One pass over a Dask array, which keeps nothing of it."""
    blocks = RowBlocks(matrix, hold=False)
    result: Scan = blocks.total(_scanned, Scan.plus, blocks.bounds[:-1].tolist())
    return result


def _scanned(block: Any, first_row: int) -> Scan:
    if isinstance(block, np.ndarray):
        with np.errstate(invalid="ignore"):
            lowest, highest = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    else:
        lowest, highest = (getattr(block, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    return Scan(summarised(block, first_row), lowest, highest, _digest(block, first_row))


def _digest(block: Any, first_row: int) -> int:
    """A sum of digests of numbered rows, so that it does not depend on where blocks are cut."""
    total = 0
    for at, parts in enumerate(_rows(block), start=int(first_row)):
        row = hashlib.blake2b(at.to_bytes(8, "little"), digest_size=_BITS // 8)
        for part in parts:
            row.update(part.data)
        total += int.from_bytes(row.digest(), "little")
    return total % (1 << _BITS)


def _rows(block: Any) -> Any:
    if isinstance(block, np.ndarray):
        return ((row,) for row in np.ascontiguousarray(block))
    bounds, indices = block.indptr.tolist(), block.indices.astype(np.int64, copy=False)
    return ((block.data[a:b], indices[a:b]) for a, b in pairwise(bounds))
