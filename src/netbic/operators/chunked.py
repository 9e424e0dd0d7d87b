"""A matrix in blocks of rows on disk or on a cluster, as an operator.

For a product, a vector is sent to every block and a vector is returned. A vector that is zero outside a small support
needs few lines (rows or columns) of X, which change little from one iteration to the next: these lines are cached
beside the blocks ("packed"), and the blocks are read again only if other lines are needed. X'u reads only blocks with
rows in the support of u.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add, getitem
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse, scatter, to_dense
from netbic.operators.base import DataOperator, RowReduction, aligned, as_operator, join_square_sums
from netbic.operators.blocks import RowBlocks
from netbic.operators.executors import Handle

_CACHE_SHARE = 0.1  # share of the memory that packed rows, and packed columns, may use
_GROUPS = 16  # of blocks, for the products of every pair of rows
_PREFETCHED = 5  # times as many lines are packed as are needed
_PACKED_SHARE = 0.25  # lines are packed up to this share of all lines

Correction = tuple[Floats, Floats, DTypeLike]  # factors and right of Y = X diag(factors) - left right', and a dtype


class ChunkedOperator(DataOperator):
    """Blocks of rows as an operator. Products do not depend, to the last bit, on those computed before."""

    can_be_cut = True
    prefetches = True

    def __init__(self, blocks: RowBlocks) -> None:
        self.blocks = blocks
        super().__init__(blocks.shape, blocks.dtype)
        self._executor = blocks.executor
        self._limit = _CACHE_SHARE * blocks.executor.memory  # bytes of packed rows, and of packed columns
        self._columns = np.empty(0, dtype=np.intp)
        self._column_packs: list[Handle] = []
        self._row_packs: dict[int, tuple[Indices, Handle]] = {}
        self._scores: dict[str, Floats] = {}  # of rows and columns: those with large ones are prefetched

    def for_one_start(self) -> ChunkedOperator:
        """The same blocks with another cache."""
        return ChunkedOperator(self.blocks)

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v: from packed columns if the support is small, otherwise in one pass."""
        values = np.ascontiguousarray(values, dtype=self.dtype)
        if not is_few(support.size, self.shape[1]):
            return self.blocks.map_concatenate(times, scatter(support, values, self.shape[1]))
        if not self._packs(support.size, self.shape[1]):
            return self.blocks.map_concatenate(
                lambda block, at, own: times(columns_of(block, at), own), support, values
            )
        self.prefetch(support)
        weights = self._for_all((_positions(support, self._columns), values))
        parts = self._executor.map(times_packed, self._column_packs, weights)
        return np.concatenate(self._executor.gather(parts))

    def prefetch(self, columns: Indices, rows: Indices | None = None) -> None:
        """Pack these columns, and these rows, in one pass, before products with some of them."""
        if self._has(columns) or not self._packs(columns.size, self.shape[1]):
            return
        columns = self._lines_to_pack(columns, "columns")
        if rows is None or not self._packs(rows.size, self.shape[0]):
            self._pack(columns)
            return
        own, every = self._split_rows(self._lines_to_pack(rows, "rows")), range(self.blocks.n_blocks)
        self._column_packs, self._row_packs = [], {}  # their memory is free before others are packed
        packs = self.blocks.map(lambda block, at, own: (columns_of(block, at), block[own]), self._for_all(columns), own)
        self._columns, self._column_packs = columns, self._executor.map(getitem, packs, [0 for _ in every])
        of_rows = self._executor.map(getitem, packs, [1 for _ in every])
        self._row_packs = {b: (own[b], of_rows[b]) for b in every if own[b].size}

    def _pack(self, columns: Indices) -> None:
        """Pack these columns, and no others."""
        self._columns, self._column_packs = columns, self.blocks.map(columns_of, self._for_all(columns))

    def _split_rows(self, rows: Indices) -> list[Indices]:
        """For each block, those of some (increasing) rows that it has, counted from its first row."""
        bounds = self.blocks.bounds
        parts = np.split(rows, np.searchsorted(rows, bounds[1:-1]))
        return [part - first for part, first in zip(parts, bounds[:-1], strict=True)]

    def _has(self, columns: Indices) -> bool:
        """Whether these columns are packed."""
        return bool(self._column_packs) and bool(np.isin(columns, self._columns).all())

    def prefetch_hint(self, axis: str, scores: Floats) -> None:
        """Receive scores of all "rows" or "columns": those with large absolute scores are likely to be read next."""
        self._scores[axis] = scores

    def _lines_to_pack(self, wanted: Indices, axis: str) -> Indices:
        """The wanted lines and, as memory allows, those with the next largest scores."""
        among = self.shape[axis == "columns"]
        most = min(_PACKED_SHARE * among, self._limit / self._line_bytes(among))
        count = min(_PREFETCHED * wanted.size, int(most)) - wanted.size
        if axis not in self._scores or count <= 0:
            return wanted
        sizes = np.abs(self._scores[axis])
        return np.union1d(wanted, np.argpartition(sizes, among - count)[among - count :])

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u: from packed rows if the support is small, otherwise in one pass over the blocks that have any."""
        values = np.ascontiguousarray(values, dtype=self.dtype)
        active, rows, weights = self._by_block(support, values)
        if not active:
            return np.zeros(self.shape[1])
        if not self._packs(support.size, self.shape[0]):
            few = [is_few(support.size, self.shape[0])] * len(active)
            return np.asarray(self.blocks.map_reduce(times_left, add, rows, weights, few, which=active))
        known = self._row_packs
        if sum(packed.size for packed, _ in known.values()) * self._line_bytes(self.shape[0]) > self._limit:
            known = {b: pack for b, pack in known.items() if b in set(active)}
        stale = [at for at, b in enumerate(active) if b not in known or not np.isin(rows[at], known[b][0]).all()]
        if stale:
            numbers = [active[at] for at in stale]
            wanted = np.concatenate([rows[at] + self.blocks.bounds[active[at]] for at in stale])
            split = self._split_rows(self._lines_to_pack(wanted, "rows"))
            packed = [split[b] for b in numbers]
            fresh = self.blocks.map(getitem, packed, which=numbers)
            known.update({b: (own, pack) for b, own, pack in zip(numbers, packed, fresh, strict=True)})
        self._row_packs = known
        packs = [known[b][1] for b in active]
        positions = [_positions(wanted, known[b][0]) for b, wanted in zip(active, rows, strict=True)]
        return np.asarray(self._executor.map_reduce(times_left_packed, add, packs, positions, weights))

    def _packs(self, count: int, among: int) -> bool:
        """Whether this number of lines is packed: if it is few, and little memory. Results do not depend on it."""
        return is_few(count, among) and count * self._line_bytes(among) <= self._limit

    def _line_bytes(self, among: int) -> int:
        """Bytes of one of this number of lines."""
        return self.shape[0] * self.shape[1] // among * self.dtype.itemsize

    def products(self, vectors: Sequence[tuple[Indices, Floats]]) -> Floats:
        """X v for several vectors v, in one pass; one row per vector."""
        right = np.zeros((self.shape[1], len(vectors)), dtype=self.dtype)
        for number, (support, values) in enumerate(vectors):
            right[support, number] = values
        return np.ascontiguousarray(self.blocks.map_concatenate(times, right).T)

    def left_products(self, vectors: Floats) -> Floats:
        """X'u for the columns u of an array, in one pass; one row per vector."""

        def products(block: Matrix, own: Floats) -> Floats:
            return as_operator(block, low_memory=True).left_products(aligned(own))

        return np.asarray(self.blocks.map_reduce(products, add, self.blocks.split(vectors)))

    def normal(self, vectors: Floats, offsets: Floats, weights: Floats | float = 1.0) -> tuple[Floats, Floats]:
        """X'w and w, for w = weights * (X v - offsets), in one pass."""

        def product(block: Matrix, v: Array, offsets: Floats, weights: Floats) -> tuple[Floats, Floats]:
            w = weights * (times(block, v) - offsets)
            return np.asarray(block.T @ w.astype(block.dtype), dtype=np.float64), w

        def add_and_append(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            return one[0] + other[0], np.concatenate([one[1], other[1]])

        v = self._for_all(vectors.astype(self.dtype, copy=False))
        shape = self.shape[0], *vectors.shape[1:]
        own = (self.blocks.split(np.broadcast_to(each, shape)) for each in (offsets, weights))
        products, images = self.blocks.map_reduce(product, add_and_append, v, *own)
        return products, images

    def submatrix(self, rows: Indices, columns: Indices) -> Array:
        """Some rows and columns as a dense array, from packed columns or the blocks that have any of the rows.

        If all rows are asked for, the columns are packed: products with them follow.
        """
        order = np.argsort(rows, kind="stable")
        active, own, _ = self._by_block(rows[order], order)
        if len(rows) == self.shape[0] and not self._has(columns) and self._packs(len(columns), self.shape[1]):
            self._pack(np.sort(columns))
        if self._has(columns):
            positions = self._for_all(np.searchsorted(self._columns, columns))[: len(active)]
            parts = self._executor.map(part_of, [self._column_packs[b] for b in active], own, positions)
        else:
            parts = self.blocks.map(part_of, own, self._for_all(columns)[: len(active)], which=active)
        made = np.empty((len(rows), len(columns)), dtype=self.dtype)
        made[order] = np.concatenate([made[:0], *self._executor.gather(parts)])
        return made

    def _by_block(self, support: Indices, values: Array) -> tuple[list[int], list[Indices], list[Array]]:
        """Blocks that have some of these (increasing) rows, and for each its own rows and values."""
        bounds = self.blocks.bounds
        starts = np.searchsorted(support, bounds)
        active = np.flatnonzero(np.diff(starts)).tolist()
        rows = [support[starts[b] : starts[b + 1]] - bounds[b] for b in active]
        return active, rows, [values[starts[b] : starts[b + 1]] for b in active]

    def _for_all(self, value: Any) -> list[Handle]:
        """A value that every block needs; it is sent once."""
        return [self._executor.broadcast(value)] * self.blocks.n_blocks

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return self.blocks.summary.row_sums

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return self.shape[0] * self.blocks.summary.means

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum of squares of each column after subtracting both offsets; no pass is needed if row offsets are zero."""
        if not row_offsets.any():
            summary = self.blocks.summary
            return summary.squares + self.shape[0] * (summary.means - column_offsets) ** 2

        def squares(block: Matrix, of_rows: Floats, of_columns: Floats) -> Floats:
            return as_operator(block, low_memory=True).column_squares(of_rows, of_columns)

        offsets = self.blocks.split(row_offsets), self._for_all(column_offsets)
        return np.asarray(self.blocks.map_reduce(squares, add, *offsets))

    def squared_lengths(self, factors: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
        """Sums of squares of the rows and of the columns of Y = X diag(factors) - left right'."""

        def lengths(block: Matrix, left: Floats, shared: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            return as_operator(block, low_memory=True).squared_lengths(shared[0], left, shared[1])

        lefts, shared = self.blocks.split(left), self._for_all((factors, right))
        joined: tuple[Floats, Floats] = self.blocks.map_reduce(lengths, join_square_sums, lefts, shared)
        return joined

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y Y' or Y'Y for Y = X diag(factors) - left right'.

        Y'Y takes one pass. Y Y' needs every pair of rows: (g + 1) / 2 passes for g groups of blocks, and one more.
        """
        if not on_rows:
            return self._column_gram(factors, left, right, dtype)
        lefts, correction = self.blocks.split(left), self._for_all((factors, right, dtype))
        bounds, total = self.blocks.bounds, np.zeros((self.shape[0],) * 2, dtype=dtype, order="F")
        count, largest = self.blocks.n_blocks, int(np.diff(bounds).max()) * self._line_bytes(self.shape[0])
        size = max(1, min(-(-count // _GROUPS), int(self._limit // max(largest, 1))))  # as memory allows
        for group in (list(range(at, min(at + size, count))) for at in range(0, count, size)):
            later = list(range(group[0], self.blocks.n_blocks))
            own = self.blocks.map(corrected_rows, [lefts[b] for b in group], correction[: len(group)], which=group)
            (mine,) = self._executor.map(stacked, [own])
            pieces = self.blocks.map(
                crossed, [lefts[c] for c in later], correction[: len(later)], [mine] * len(later), which=later
            )
            rows = slice(bounds[group[0]], bounds[group[-1] + 1])
            total[rows, bounds[group[0]] :] = np.hstack(self._executor.gather(pieces))
        return total

    def _column_gram(self, factors: Floats, left: Floats, right: Floats, dtype: DTypeLike) -> Array:
        """Y'Y; sparse blocks are never made dense."""

        def gram_of(block: Matrix, left: Floats, shared: Correction) -> Array:
            factors, right, dtype = shared
            return as_operator(block, low_memory=True).gram(False, factors, left, right, dtype)

        def raw_gram(block: Matrix, left: Floats) -> tuple[Array, Floats]:
            return to_dense(block.T @ block).astype(dtype, copy=False), np.asarray(block.T @ left)

        def add_both(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            return one[0] + other[0], one[1] + other[1]

        lefts = self.blocks.split(left)
        if not self.blocks.is_sparse:
            shared = self._for_all((factors, right, dtype))
            return np.asfortranarray(self.blocks.map_reduce(gram_of, add, lefts, shared))
        raw, images = self.blocks.map_reduce(raw_gram, add_both, lefts)
        gram = raw.astype(np.float64)
        if (factors != 1).any():
            gram *= factors
            gram *= factors[:, None]
        if right.size:  # F X'X F - (F X'L) R' - R (F X'L)' + R (L'L) R'
            crossing = (factors[:, None] * images) @ right.T
            gram += right @ (left.T @ left) @ right.T - crossing - crossing.T
        return np.asfortranarray(gram, dtype=dtype)

    def reduce_rows(self, reduction: RowReduction) -> Any:
        """The result of a reduction over all rows."""

        def reduced(block: Matrix, shared: RowReduction, left: Floats, first: int) -> Any:
            return shared._replace(left=left).over(block, first)

        shared = self._for_all(reduction._replace(left=reduction.left[:0]))
        lefts, firsts = self.blocks.split(reduction.left), self.blocks.bounds[:-1].tolist()
        return self.blocks.map_reduce(reduced, reduction.combine, shared, lefts, firsts)


# --- Functions of one block, or of lines packed from it ---


def is_few(count: int, among: int) -> bool:
    """Whether this number of lines is gathered before the product."""
    return count <= _PACKED_SHARE * among


def _positions(wanted: Indices, packed: Indices) -> Indices | None:
    """Positions of the wanted lines among the packed ones; None if they are the same."""
    return None if wanted.size == packed.size else np.searchsorted(packed, wanted)


def times(block: Matrix, v: Array) -> Floats:
    """X v."""
    return np.asarray(block @ aligned(v), dtype=np.float64)


def times_left(block: Matrix, rows: Indices, values: Array, few: bool) -> Floats:
    """X'u, for a u with these values in these rows, which are gathered if they are few."""
    if few:
        return times_left_packed(block[rows], None, values)
    u = aligned(values) if rows.size == block.shape[0] else scatter(rows, values, block.shape[0])
    return np.asarray(block.T @ u, dtype=np.float64)


def columns_of(block: Matrix, columns: Indices) -> Matrix:
    """Some columns, contiguous in memory."""
    return block[:, columns] if is_sparse(block) else np.asfortranarray(block[:, columns])


def times_packed(columns: Matrix, positions_and_values: tuple[Indices | None, Array]) -> Floats:
    """X v, from the packed columns at these positions."""
    positions, values = positions_and_values
    return times(aligned(columns) if positions is None else columns_of(columns, positions), values)


def times_left_packed(rows: Matrix, positions: Indices | None, values: Array) -> Floats:
    """X'u, from the packed rows at these positions."""
    return np.asarray((aligned(rows) if positions is None else rows[positions]).T @ aligned(values), dtype=np.float64)


def corrected_rows(block: Matrix, left: Floats, correction: Correction) -> tuple[Matrix, Floats]:
    """X diag(factors), and the left factor that is still to be subtracted (zero for a dense X)."""
    factors, right, dtype = correction
    scaled = block if (factors == 1).all() else block * factors
    if is_sparse(block):
        return sp.csr_array(scaled), left
    return np.subtract(scaled, left @ right.T, dtype=dtype, casting="same_kind"), np.zeros_like(left)


def stacked(parts: Sequence[tuple[Matrix, Floats]]) -> tuple[Matrix, Floats]:
    """Corrected rows of some blocks, concatenated; dense unless all are sparse."""
    left = np.concatenate([left for _, left in parts])
    if all(is_sparse(rows) for rows, _ in parts):
        return sp.csr_array(sp.vstack([rows for rows, _ in parts], format="csr")), left
    return np.concatenate([to_dense(rows) for rows, _ in parts]), left


def crossed(block: Matrix, left: Floats, correction: Correction, other: tuple[Matrix, Floats]) -> Array:
    """Z Y' for the corrected rows Y of this block and Z of another."""
    (mine, l_mine), (theirs, l_theirs), right = corrected_rows(block, left, correction), other, correction[1]
    product = to_dense(theirs @ mine.T) - (theirs @ right) @ l_mine.T - l_theirs @ (mine @ right).T
    return np.asarray(product + l_theirs @ (right.T @ right) @ l_mine.T)


def part_of(block: Matrix, rows: Indices, columns: Indices) -> Array:
    """Some rows and columns as a dense array."""
    return to_dense(block[rows][:, columns])


as_operator.register(RowBlocks, lambda X, low_memory=False: ChunkedOperator(X))
