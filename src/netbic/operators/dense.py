"""A dense matrix, stored in both memory orders: gathering rows and gathering columns both read contiguous memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import get_blas_funcs

from netbic.arrays import Array, Floats, Indices, scatter
from netbic.operators.base import DataOperator, RowReduction, as_operator

_FULL_SHARE = 0.45  # above this share of kept lines the full product beats gathering
_LONG_LINE = 4096
_SMALL_CORRECTION = 1e-2  # offsets below this share of X are subtracted from its Gram matrix afterwards
_SUMMED_ENTRIES, _SUMMED_ROWS = 1 << 15, 64  # partial sums in the precision of X, added in double precision
_BLOCK_ENTRIES = 1 << 20  # entries per block of a pass over the data: 8 MB in double precision


class DenseOperator(DataOperator):
    """A dense array as an operator. It is never written to, and not copied in a memory order that it has already.

    Parameters
    ----------
    X : array of shape (n, p), float32 or float64
    low_memory : bool
        Keep X in its own memory order only: gathering across it is then slow.
    """

    can_be_cut = True

    def __init__(self, X: Array, low_memory: bool = False) -> None:
        super().__init__(X.shape, X.dtype)
        self._rows = X if low_memory else np.ascontiguousarray(X)
        self._columns = X.T if low_memory else np.ascontiguousarray(X.T)
        self._column_sums: Floats | None = None

    def for_one_start(self) -> PackedOperator:
        """The same matrix with a cache for one sequence of slowly changing supports."""
        return PackedOperator(self._rows, self._columns)

    def stored_rows(self) -> Array:
        """The whole matrix."""
        return self._rows

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """Some rows and columns as a dense array, read along memory."""
        if self._columns.flags.c_contiguous:
            lines = self._columns.take(columns, axis=0)
            return (lines if np.array_equal(rows, np.arange(self.shape[0])) else lines.take(rows, axis=1)).T
        return self._rows[np.ix_(rows, columns)]  # entry by entry: whole lines could be all of X

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v, reading the supported columns only."""
        return _combine(self._columns, self._rows, support, values)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u, reading the supported rows only."""
        return _combine(self._rows, self._columns, support, values)

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """X'w and w, for w = weights * (X v - offsets)."""
        images = np.asarray(self._rows @ vectors.astype(self.dtype, copy=False), dtype=np.float64)
        images -= offsets
        images *= weights
        products = self._rows.T @ images.astype(self.dtype, copy=False)
        return np.asarray(products, dtype=np.float64), images

    def left_products(self, vectors: Floats) -> Floats:
        """X'u for the columns u of an array, in double precision, a block of rows at a time."""
        products = np.zeros((vectors.shape[1], self.shape[1]))
        for part in _blocks(self._rows):
            products += vectors[part].T @ self._rows[part].astype(np.float64, copy=False)
        return products

    def row_sums(self) -> Floats:
        """Sum of each row, in double precision."""
        return np.asarray(self._rows.sum(axis=1, dtype=np.float64))

    def column_sums(self) -> Floats:
        """Sum of each column: partial sums in the precision of X, added in double precision."""
        if self._column_sums is None:
            sums = np.zeros(self.shape[1])
            for start in range(0, self.shape[0], _SUMMED_ROWS):
                block = self._rows[start : start + _SUMMED_ROWS]
                sums += np.ones(len(block), dtype=block.dtype) @ block
            # Single precision is not enough if the means make up most of X: every entry is then converted first.
            enough = self._rows.dtype == np.float64 or (
                np.isfinite(sums).all() and sums @ sums <= 0.5 * self.shape[0] * self._raw_square
            )
            self._column_sums = sums if enough else np.asarray(self._rows.sum(axis=0, dtype=np.float64))
        return self._column_sums

    @cached_property
    def _raw_square(self) -> float:
        """Sum of squares, by partial sums."""
        parts = np.array_split(self._rows.ravel(order="K"), 1 + self._rows.size // _SUMMED_ENTRIES)
        with np.errstate(over="ignore"):
            total = sum(float(part @ part) for part in parts)
        if np.isfinite(total):
            return total
        return sum(float(np.square(part, dtype=np.float64).sum()) for part in parts)  # too large for single precision

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum of squares of each column after subtracting both offsets, a block of rows at a time."""
        squares = np.zeros(self.shape[1])
        for part in _blocks(self._rows):
            block = self._rows[part] - column_offsets
            if row_offsets.any():
                block -= row_offsets[part, None]
            squares += np.einsum("ij,ij->j", block, block)
        return squares

    def squared_norm(self, row_offsets: Floats, column_offsets: Floats, factors: Floats | None) -> float:
        """Squared norm after offsets and factors, from the sums of X unless they would cancel."""
        if factors is None and not row_offsets.any():
            raw = self._raw_square
            centred = raw - float(column_offsets @ (2 * self.column_sums() - self.shape[0] * column_offsets))
            if centred > (1e-2 if self._rows.dtype == np.float64 else 0.5) * raw:
                return centred
        return super().squared_norm(row_offsets, column_offsets, factors)

    def reduce_rows(self, reduction: RowReduction) -> Any:
        """The result of a reduction over all rows."""
        return reduction.over(self._rows)

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y Y' or Y'Y for Y = X diag(factors) - left right', summed over blocks of the other axis."""
        lines, inner, outer = (self._rows, left, right) if on_rows else (self._columns, right, left)
        total = np.zeros((lines.shape[0], lines.shape[0]), dtype=dtype, order="F")
        (syrk,) = get_blas_funcs(("syrk",), (total,))
        plain = bool((factors == 1).all())
        if plain and lines.dtype == dtype and lines.flags.forc:
            raw: Array = syrk(1.0, lines.T, trans=1) if lines.flags.c_contiguous else syrk(1.0, lines)
            if np.sum(inner**2) * np.sum(outer**2) <= _SMALL_CORRECTION * np.trace(raw):
                (syr2,) = get_blas_funcs(("syr2",), (raw,))
                squares = outer.T @ outer
                for k, image in enumerate((lines @ outer.astype(dtype)).T):
                    other = (image - 0.5 * (squares[k] @ inner.T)).astype(raw.dtype)
                    raw = syr2(-1.0, other, inner[:, k].astype(raw.dtype), a=raw, overwrite_a=True)
                return raw
        centred = inner.shape[1] == 1 and bool((inner == 1).all())  # the usual correction, without a product
        for part in _blocks(lines.T):
            block = lines[:, part]
            if not plain:
                block = block * (factors[part] if on_rows else factors[:, None])
            offsets = outer[part].T if centred else inner @ outer[part].T
            block = np.subtract(block, offsets, dtype=dtype, casting="same_kind")
            total = syrk(1.0, block.T, trans=1, beta=1.0, c=total, overwrite_c=True)
        return total


as_operator.register(np.ndarray, DenseOperator)


class PackedOperator(DenseOperator):
    """The same matrix for supports that change little from call to call: supported lines stay in contiguous memory."""

    def __init__(self, rows: Array, columns: Array) -> None:
        super().__init__(rows, low_memory=True)
        self._columns = columns
        self._row_cache, self._column_cache = PackedLines(rows), PackedLines(columns)

    def reset_cache(self) -> None:
        """Make the products that follow independent, to the last bit, of those computed before."""
        self._row_cache.reset()
        self._column_cache.reset()

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v."""
        if support.size >= _FULL_SHARE * self.shape[1]:
            return super().matvec(support, values)
        return self._column_cache.combine(support, values)

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u."""
        if support.size >= _FULL_SHARE * self.shape[0]:
            return super().rmatvec(support, values)
        return self._row_cache.combine(support, values)


class PackedLines:
    """Combinations of a few lines of an array. Lines that were part of the last combination are not read again."""

    def __init__(self, lines: Array) -> None:
        self.lines = lines
        self._slot_of = np.full(lines.shape[0], -1, dtype=np.intp)
        self._line_in = np.empty(0, dtype=np.intp)
        self._packed = np.empty((0, lines.shape[1]), dtype=lines.dtype)
        self._last: Indices | None = None  # the last support, and the slots of its lines
        self._slots = np.empty(0, dtype=np.intp)

    def reset(self) -> None:
        """Empty the cache, and with it the order in which lines are stored and summed."""
        self._last = None
        self._slot_of[self._line_in] = -1
        self._line_in = np.empty(0, dtype=np.intp)

    def combine(self, support: Indices, values: Floats) -> Floats:
        """Sum of values[i] * lines[support[i]]."""
        if support is not self._last:
            self._pack(support)
            self._last, self._slots = support, self._slot_of[support]
        weights = np.empty(support.size, dtype=self.lines.dtype)
        weights[self._slots] = values
        return np.asarray(weights @ self._packed, dtype=np.float64)

    def _pack(self, support: Indices) -> None:
        """Store the lines of `support` contiguously, reading only those that are not in the cache."""
        slots = self._slot_of[support]
        new = support[slots < 0]
        if support.size != self._line_in.size or 2 * new.size > support.size:
            if support.size != len(self._packed):
                self._packed = np.empty((support.size, self.lines.shape[1]), dtype=self.lines.dtype)
            self._slot_of[self._line_in] = -1
            self._line_in = support.copy()
            self._slot_of[support] = np.arange(support.size)
            if self.lines.flags.c_contiguous:
                np.take(self.lines, support, axis=0, out=self._packed, mode="clip")
            else:
                self._packed[:] = self.lines[support]  # np.take would copy all of a strided array first
            return
        if not new.size:
            return
        # New lines are put into the slots of those that are not in `support`.
        free = np.ones(support.size, dtype=bool)
        free[slots[slots >= 0]] = False
        vacated = np.flatnonzero(free)
        self._slot_of[self._line_in[vacated]] = -1
        self._line_in[vacated] = new
        self._slot_of[new] = vacated
        if self.lines.shape[1] < _LONG_LINE:
            self._packed[vacated] = self.lines[new]
            return
        for slot, line in zip(vacated.tolist(), new.tolist(), strict=True):  # without a temporary copy of long lines
            self._packed[slot] = self.lines[line]


def _combine(lines: Array, across: Array, support: Indices, values: Floats) -> Floats:
    """Sum of values[i] * lines[support[i]]; `across` is the transpose of `lines`."""
    values = values.astype(lines.dtype, copy=False)
    if support.size < _FULL_SHARE * lines.shape[0]:
        return np.asarray(values @ lines[support], dtype=np.float64)
    return np.asarray(across @ scatter(support, values, lines.shape[0]), dtype=np.float64)


def _blocks(lines: Array) -> list[slice]:
    step = max(1, min(_BLOCK_ENTRIES, lines.size // 16) // lines.shape[1])  # a block stays small beside X
    return [slice(start, start + step) for start in range(0, lines.shape[0], step)]
