"""A dense matrix, kept in both memory orders so that gathering rows and gathering columns both read whole lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netbic.operators.base import Floats, Indices

_FULL_SHARE = 0.45  # above this share of kept rows or columns the full product beats gathering
_BLOCK_ENTRIES = 1 << 18  # entries per block of a pass over the data: 2 MB in double precision


class DenseOperator:
    """A dense array as an operator; never written to, and not copied in the memory order it already has."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.epsilon = float(np.finfo(X.dtype).eps)
        self._by_row = np.ascontiguousarray(X)
        self._by_column = np.ascontiguousarray(X.T)

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v, reading the supported columns only."""
        return _combine(self._by_column, self._by_row, support, values)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u, reading the supported rows only."""
        return _combine(self._by_row, self._by_column, support, values)

    def row_sums(self) -> Floats:
        """Sum of each row, in double precision."""
        return np.asarray(self._by_row.sum(axis=1, dtype=np.float64))

    def column_sums(self) -> Floats:
        """Sum of each column, in double precision."""
        return np.asarray(self._by_column.sum(axis=1, dtype=np.float64))

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum of squares of each column after subtracting both offsets, a block of rows at a time."""
        squares = np.zeros(self.shape[1])
        step = max(1, _BLOCK_ENTRIES // self.shape[1])
        for start in range(0, self.shape[0], step):
            block = self._by_row[start : start + step] - column_offsets
            block -= row_offsets[start : start + step, None]
            squares += np.einsum("ij,ij->j", block, block)
        return squares


def _combine(lines: NDArray[Any], across: NDArray[Any], support: Indices, values: Floats) -> Floats:
    """Sum of values[i] * lines[support[i]]; `across` holds the transpose of `lines`, row by row as well."""
    values = values.astype(lines.dtype, copy=False)
    if support.size < _FULL_SHARE * lines.shape[0]:
        return np.asarray(values @ lines[support], dtype=np.float64)
    full = np.zeros(lines.shape[0], dtype=lines.dtype)
    full[support] = values
    return np.asarray(across @ full, dtype=np.float64)
