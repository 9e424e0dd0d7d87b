"""A small part of a matrix, in memory of its own that stays in the cache."""

from __future__ import annotations

import numpy as np

from netbic.arrays import Array, Floats, Indices


class SmallOperator:
    """The operator B - L'R for a small dense B.

    The lines of a support are copied together once, as long as the support does not change.

    Parameters
    ----------
    block : array of shape (n, p)
        B, in the precision of the data.
    left, right : arrays of shape (r, n) and (r, p)
        The layers L and R of the correction, one row each.
    """

    def __init__(self, block: Array, left: Floats, right: Floats) -> None:
        self.shape = (block.shape[0], block.shape[1])
        self._lines = np.ascontiguousarray(block.T)  # a row for each column of B
        self._left, self._right = left, np.ascontiguousarray(right.T)
        every_row, every_column = (np.arange(size) for size in self.shape)
        self._rows = every_row, self._lines, self._left
        self._columns = every_column, self._lines, self._right

    def plus(self, block: Array) -> SmallOperator:
        """The operator with an array added to B."""
        return SmallOperator(self._lines.T + block, self._left, self._right.T)

    def toarray(self) -> Floats:
        """All entries, in double precision."""
        entries: Floats = self._lines.T - self._left.T @ self._right.T
        return entries

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """The product with a vector that is zero outside `support` (increasing column indices)."""
        if not np.array_equal(support, self._columns[0]):
            self._columns = support, self._lines.take(support, axis=0), self._right.take(support, axis=0)
        _, lines, layers = self._columns
        product = np.asarray(values.astype(lines.dtype, copy=False) @ lines, dtype=np.float64)
        return product - (values @ layers) @ self._left

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """The product of the transpose with a vector that is zero outside `support` (increasing row indices)."""
        if not np.array_equal(support, self._rows[0]):
            self._rows = support, self._lines.take(support, axis=1), self._left.take(support, axis=1)
        _, lines, layers = self._rows
        product = np.asarray(lines @ values.astype(lines.dtype, copy=False), dtype=np.float64)
        return product - self._right @ (layers @ values)
