"""Statistics of the columns and rows of a matrix in blocks of rows, and a digest of it, from one pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from netbic.arrays import Array, Bools, Floats, Indices, Matrix
from netbic.operators.blocks import DaskArray, RowBlocks, Summary, summarised

_BITS = 128


@dataclass(frozen=True)
class ColumnStatistics:
    """Sums, minima and maxima over some rows, and a digest of the rows."""

    summary: Summary
    lowest: Array  # of each column
    highest: Array
    digest: int

    def plus(self, other: ColumnStatistics) -> ColumnStatistics:
        """The statistics of the rows of both."""
        return ColumnStatistics(
            self.summary.plus(other.summary),
            np.fmin(self.lowest, other.lowest),
            np.fmax(self.highest, other.highest),
            (self.digest + other.digest) % (1 << _BITS),
        )

    def select_columns(self, kept: Indices | Bools) -> ColumnStatistics:
        """The statistics of some columns, by index or mask."""
        summary = replace(self.summary, means=self.summary.means[kept], squares=self.summary.squares[kept])
        return replace(self, summary=summary, lowest=self.lowest[kept], highest=self.highest[kept])

    @property
    def variances(self) -> Floats:
        """Variance of each column."""
        return self.summary.squares / self.summary.n_rows

    @property
    def means(self) -> Floats:
        """Mean of each column."""
        return self.summary.means

    @property
    def constant(self) -> Bools:
        """Which columns are constant."""
        return np.asarray(~(self.highest > self.lowest))


def column_statistics(matrix: DaskArray) -> ColumnStatistics:
    """Statistics of a Dask array, from one pass; no block is kept in memory."""
    blocks = RowBlocks(matrix, hold=False)
    result: ColumnStatistics = blocks.map_reduce(_of_block, ColumnStatistics.plus, blocks.bounds[:-1].tolist())
    return result


def _of_block(block: Matrix, first_row: int) -> ColumnStatistics:
    if isinstance(block, np.ndarray):
        with np.errstate(invalid="ignore"):
            lowest, highest = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    else:
        lowest, highest = (getattr(block, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    return ColumnStatistics(summarised(block, first_row), lowest, highest, _digest(block, first_row))


def _digest(block: Matrix, first_row: int) -> int:
    """The sum of the digests of all rows, each with its index: it does not depend on the sizes of blocks."""
    total = 0
    for at, parts in enumerate(_rows(block), start=int(first_row)):
        row = hashlib.blake2b(at.to_bytes(8, "little"), digest_size=_BITS // 8)
        for part in parts:
            row.update(part.data)
        total += int.from_bytes(row.digest(), "little")
    return total % (1 << _BITS)


def _rows(block: Matrix) -> Iterator[tuple[Array, ...]]:
    if isinstance(block, np.ndarray):
        return ((row,) for row in np.ascontiguousarray(block))
    bounds, indices = block.indptr.tolist(), block.indices.astype(np.int64, copy=False)
    return ((block.data[a:b], indices[a:b]) for a, b in pairwise(bounds))
