"""A matrix in blocks of rows on disk or on a cluster, as an operator.

Products send a vector to every block and bring a vector back. A vector that is zero outside a small support needs few
lines of X, and these change little from one round to the next: they are kept packed beside the blocks, and the blocks
themselves are read again only when other lines are wanted. X'u reads no block without a row of u's support.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.operators import (
    DataOperator,
    DenseOperator,
    Floats,
    Indices,
    Look,
    SparseOperator,
    aligned,
    as_operator,
    is_sparse,
)
from netbic.outofcore.blocks import RowBlocks
from netbic.outofcore.executors import packing_limit

_GROUPS = 16  # into which rows are put together for the products of every pair of them
_LIKELY = 5  # times as many lines are packed as are wanted
_PACKED_SHARE = 0.25  # lines are packed up to this share of all


class ChunkedOperator:
    """Blocks of rows as an operator.

    No digit of a product depends on what was multiplied before.

    Parameters
    ----------
    blocks : RowBlocks
    """

    def __init__(self, blocks: RowBlocks) -> None:
        self.blocks = blocks
        self.shape = blocks.shape
        self.epsilon = float(np.finfo(blocks.dtype).eps)
        self._workers = blocks.workers
        self._limit = packing_limit(blocks.workers)
        self._columns = np.empty(0, dtype=np.intp)
        self._column_packs: list[Any] = []
        self._row_packs: dict[int, tuple[Indices, Any]] = {}
        self.scores: dict[str, Floats] = {}  # of rows and columns: those with large ones are packed beside the wanted

    def for_one_start(self) -> ChunkedOperator:
        """The same blocks with packed lines of its own."""
        return ChunkedOperator(self.blocks)

    # ------------------------------------------------------------------------------------------------------------
    # Products
    # ------------------------------------------------------------------------------------------------------------

    def matvec(self, support: Indices, values: Floats) -> Floats:
        """X v: from packed columns where they are few, else one pass."""
        values = np.ascontiguousarray(values, dtype=self.blocks.dtype)
        if not is_few(support.size, self.shape[1]):
            return self._from_all(times, spread(support, values, self.shape[1]))
        if not self._packs(support.size, self.shape[1]):
            return self._from_all(times_columns, (support, values))
        self.expect(support)
        weights = self._for_all((_places(support, self._columns), values))
        parts = self._workers.each(times_packed, self._column_packs, weights)
        return np.concatenate(self._workers.collect(parts))

    def expect(self, columns: Indices) -> None:
        """Have these columns packed, in one pass, before products with some of them are asked for."""
        if np.isin(columns, self._columns, assume_unique=True).all() or not self._packs(columns.size, self.shape[1]):
            return
        self._columns = self._and_likely(columns, "columns")
        self._column_packs = self.blocks.each(columns_of, self._for_all(self._columns))

    def _and_likely(self, wanted: Indices, axis: str) -> Indices:
        """The wanted lines and those of the next largest scores, if there is room; no digit depends on these."""
        among = self.shape[axis == "columns"]
        room = min(_PACKED_SHARE * among, self._limit / self._line_bytes(among))
        count = min(_LIKELY * wanted.size, int(room)) - wanted.size
        if axis not in self.scores or count <= 0:
            return wanted
        sizes = np.abs(self.scores[axis])
        return np.union1d(wanted, np.argpartition(sizes, among - count)[among - count :])

    def rmatvec(self, support: Indices, values: Floats) -> Floats:
        """X'u: from packed rows where they are few, else one pass over the blocks that have any."""
        values = np.ascontiguousarray(values, dtype=self.blocks.dtype)
        starts = np.searchsorted(support, self.blocks.bounds)
        active = np.flatnonzero(np.diff(starts))
        if not active.size:
            return np.zeros(self.shape[1])
        rows = [support[starts[b] : starts[b + 1]] - self.blocks.bounds[b] for b in active]
        weights = [values[starts[b] : starts[b + 1]] for b in active]
        if not self._packs(support.size, self.shape[0]):
            product = times_rows if is_few(support.size, self.shape[0]) else times_left
            return np.asarray(self.blocks.total(product, add, rows, weights, which=active.tolist()))
        packs, places = self._packed_rows(active.tolist(), rows)
        return np.asarray(self._workers.total(times_left_packed, add, packs, places, weights))

    def _packed_rows(self, active: list[int], rows: list[Indices]) -> tuple[list[Any], list[Indices | None]]:
        """Packed rows of the active blocks, and where in them those are that are wanted (None: all)."""
        known = self._row_packs
        if sum(packed.size for packed, _ in known.values()) * self._line_bytes(self.shape[0]) > self._limit:
            known = {b: pack for b, pack in known.items() if b in set(active)}
        stale = [at for at, b in enumerate(active) if b not in known or not np.isin(rows[at], known[b][0]).all()]
        if stale:
            packed = self._with_likely_rows([active[at] for at in stale], [rows[at] for at in stale])
            fresh = self.blocks.each(rows_of, packed, which=[active[at] for at in stale])
            known.update({active[at]: (own, pack) for at, own, pack in zip(stale, packed, fresh, strict=True)})
        self._row_packs = known
        places = [_places(wanted, known[b][0]) for b, wanted in zip(active, rows, strict=True)]
        return [known[b][1] for b in active], places

    def _with_likely_rows(self, numbers: list[int], rows: list[Indices]) -> list[Indices]:
        """For some blocks the wanted rows, and those that are likely to be wanted soon."""
        bounds = self.blocks.bounds
        likely = self._and_likely(
            np.concatenate([own + bounds[b] for b, own in zip(numbers, rows, strict=True)]), "rows"
        )
        starts = np.searchsorted(likely, bounds)
        return [likely[starts[b] : starts[b + 1]] - bounds[b] for b in numbers]

    def _packs(self, count: int, among: int) -> bool:
        """Whether so many lines are packed: few, and small beside the workers' memory. No digit depends on it."""
        return is_few(count, among) and count * self._line_bytes(among) <= self._limit

    def _line_bytes(self, among: int) -> int:
        """Bytes of a row or a column, of which there are so many."""
        return self.shape[0] * self.shape[1] // among * self.blocks.dtype.itemsize

    def products(self, right: Floats) -> Floats:
        """X V, transposed, in one pass."""
        return np.ascontiguousarray(self._from_all(times, right.astype(self.blocks.dtype, copy=False)).T)

    def normal(self, values: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """X'w and w, for w = Xv - offsets, in one pass."""
        v = self._for_all(values.astype(self.blocks.dtype, copy=False))
        product, image = self.blocks.total(normal_product, add_and_append, v, self.blocks.parts(offsets))
        return product, image

    def _for_all(self, value: Any) -> list[Any]:
        """A value that every block needs, sent once."""
        return [self._workers.share(value)] * self.blocks.n_blocks

    def _from_all(self, function: Callable[..., Any], value: Any) -> Floats:
        return np.concatenate(self._workers.collect(self.blocks.each(function, self._for_all(value))))

    # ------------------------------------------------------------------------------------------------------------
    # Summaries
    # ------------------------------------------------------------------------------------------------------------

    def row_sums(self) -> Floats:
        """Sum of each row."""
        return self.blocks.summary.row_sums

    def column_sums(self) -> Floats:
        """Sum of each column."""
        return self.shape[0] * self.blocks.summary.means

    def column_squares(self, row_offsets: Floats, column_offsets: Floats) -> Floats:
        """Sum of squares of each column after subtracting both offsets; no pass where there are none for rows."""
        if not row_offsets.any():
            summary = self.blocks.summary
            return summary.squares + self.shape[0] * (summary.means - column_offsets) ** 2
        offsets = self.blocks.parts(row_offsets), self._for_all(column_offsets)
        return np.asarray(self.blocks.total(squares_of, add, *offsets))

    def squared_norm(self, row_offsets: Floats, column_offsets: Floats, factors: Floats | None) -> float:
        """Squared norm after offsets and factors."""
        squares = self.column_squares(row_offsets, column_offsets)
        return float(squares.sum() if factors is None else squares @ factors**2)

    def gram(self, on_rows: bool, factors: Floats, left: Floats, right: Floats, dtype: Any) -> NDArray[Any]:
        """Y Y' or Y'Y for Y = X diag(factors) - left right'.

        Y'Y takes one pass. Y Y' needs every pair of rows: (g + 1) / 2 passes for g groups of blocks, and one more.
        """
        if not on_rows and self.blocks.is_sparse:
            return self._sparse_gram(factors, left, right, dtype)
        lefts, correction = self.blocks.parts(left), self._for_all((factors, right, dtype))
        if not on_rows:
            return np.asfortranarray(self.blocks.total(gram_of, add, lefts, correction))
        bounds, total = self.blocks.bounds, np.zeros((self.shape[0],) * 2, dtype=dtype, order="F")
        for group in self._groups():
            later = list(range(group[0], self.blocks.n_blocks))
            parts = self.blocks.each(corrected_rows, [lefts[b] for b in group], correction[: len(group)], which=group)
            (mine,) = self._workers.each(stacked, [parts])
            pieces = self.blocks.each(
                crossed, [lefts[c] for c in later], correction[: len(later)], [mine] * len(later), which=later
            )
            rows = slice(bounds[group[0]], bounds[group[-1] + 1])
            total[rows, bounds[group[0]] :] = np.hstack(self._workers.collect(pieces))
        return total

    def _groups(self) -> list[list[int]]:
        """Neighbouring blocks that are multiplied with all others together: few, where memory is short."""
        count = self.blocks.n_blocks
        largest = int(np.diff(self.blocks.bounds).max()) * self._line_bytes(self.shape[0])
        size = max(1, min(-(-count // _GROUPS), int(self._limit // max(largest, 1))))
        return [list(range(at, min(at + size, count))) for at in range(0, count, size)]

    def _sparse_gram(self, factors: Floats, left: Floats, right: Floats, dtype: Any) -> NDArray[Any]:
        """F X'X F - (F X'L) R' - R (F X'L)' + R (L'L) R': only what is sparse is made in every block."""
        parts = self.blocks.parts(left), [dtype] * self.blocks.n_blocks
        raw, images = self.blocks.total(raw_gram, add_both, *parts)
        total = raw.astype(np.float64)
        if (factors != 1).any():
            total *= factors
            total *= factors[:, None]
        if right.size:
            crossing = (factors[:, None] * images) @ right.T
            total += right @ (left.T @ left) @ right.T - crossing - crossing.T
        return np.asfortranarray(total, dtype=dtype)

    def scan(self, look: Look) -> Any:
        """What comes of a look at every row."""
        looks = self._for_all(look._replace(left=look.left[:0]))
        firsts = self.blocks.bounds[:-1].tolist()
        return self.blocks.total(looked_at, look.combine, looks, self.blocks.parts(look.left), firsts)


# ----------------------------------------------------------------------------------------------------------------
# What is done to one block, or to lines packed from it
# ----------------------------------------------------------------------------------------------------------------


def is_few(count: int, among: int) -> bool:
    """Whether so many lines of a matrix are gathered before they are multiplied."""
    return count <= _PACKED_SHARE * among


def _places(wanted: Indices, packed: Indices) -> Indices | None:
    """Where the wanted lines are among the packed ones; None if they are all of them."""
    return None if wanted.size == packed.size else np.searchsorted(packed, wanted)


def times(block: Any, v: NDArray[Any]) -> Floats:
    """X v."""
    return np.asarray(block @ aligned(v), dtype=np.float64)


def times_columns(block: Any, columns_and_values: tuple[Indices, NDArray[Any]]) -> Floats:
    """X v, for a v with these values in these few columns."""
    columns, values = columns_and_values
    return times(columns_of(block, columns), values)


def times_rows(block: Any, rows: Indices, values: NDArray[Any]) -> Floats:
    """X'u, for a u with these values in these few rows."""
    return times_left_packed(rows_of(block, rows), None, values)


def times_left(block: Any, rows: Indices, values: NDArray[Any]) -> Floats:
    """X'u, for a u with these values in these rows."""
    u = aligned(values) if rows.size == block.shape[0] else spread(rows, values, block.shape[0])
    return np.asarray(block.T @ u, dtype=np.float64)


def normal_product(block: Any, v: NDArray[Any], offsets: Floats) -> tuple[Floats, Floats]:
    """X'w and w, for w = Xv - offsets."""
    w = times(block, v) - offsets
    return np.asarray(block.T @ w.astype(block.dtype), dtype=np.float64), w


def columns_of(block: Any, columns: Indices) -> Any:
    """Some columns, to be kept."""
    return block[:, columns] if is_sparse(block) else np.asfortranarray(block[:, columns])


def rows_of(block: Any, rows: Indices) -> Any:
    """Some rows, to be kept."""
    return block[rows]


def times_packed(columns: Any, places_and_values: tuple[Indices | None, NDArray[Any]]) -> Floats:
    """X v, from the columns at these places of a pack."""
    places, values = places_and_values
    return times(aligned(columns) if places is None else columns_of(columns, places), values)


def times_left_packed(rows: Any, places: Indices | None, values: NDArray[Any]) -> Floats:
    """X'u, from the rows at these places of a pack."""
    return np.asarray((aligned(rows) if places is None else rows[places]).T @ aligned(values), dtype=np.float64)


def squares_of(block: Any, row_offsets: Floats, column_offsets: Floats) -> Floats:
    """Sums of squares of the columns after subtracting both offsets."""
    return np.asarray(block_operator(block).column_squares(row_offsets, column_offsets))


def gram_of(block: Any, left: Floats, correction: tuple[Floats, Floats, Any]) -> NDArray[Any]:
    """Y'Y for Y = X diag(factors) - left right'."""
    factors, right, dtype = correction
    return np.asarray(block_operator(block).gram(False, factors, left, right, dtype))


def corrected_rows(block: Any, left: Floats, correction: tuple[Floats, Floats, Any]) -> tuple[Any, Floats]:
    """X diag(factors) and what is left to subtract; for a dense X that is done already."""
    factors, right, dtype = correction
    scaled = block if (factors == 1).all() else block * factors
    if is_sparse(block):
        return sp.csr_array(scaled), left
    return np.subtract(scaled, left @ right.T, dtype=dtype, casting="same_kind"), np.zeros_like(left)


def stacked(parts: Sequence[tuple[Any, Floats]]) -> tuple[Any, Floats]:
    """Corrected rows of some blocks, one below the other; dense unless all are sparse."""
    left = np.concatenate([left for _, left in parts])
    if all(is_sparse(rows) for rows, _ in parts):
        return sp.csr_array(sp.vstack([rows for rows, _ in parts], format="csr")), left
    return np.concatenate([_written(rows) for rows, _ in parts]), left


def crossed(
    block: Any, left: Floats, correction: tuple[Floats, Floats, Any], other: tuple[Any, Floats]
) -> NDArray[Any]:
    """Z Y' for the corrected rows Y of this block and Z of another."""
    (mine, l_mine), (theirs, l_theirs), right = corrected_rows(block, left, correction), other, correction[1]
    product = _written(theirs @ mine.T) - (theirs @ right) @ l_mine.T - l_theirs @ (mine @ right).T
    return np.asarray(product + l_theirs @ (right.T @ right) @ l_mine.T)


def raw_gram(block: Any, left: Floats, dtype: Any) -> tuple[NDArray[Any], Floats]:
    """X'X and X' left."""
    return _written(block.T @ block).astype(dtype, copy=False), np.asarray(block.T @ left)


def _written(product: Any) -> NDArray[Any]:
    return np.asarray(product.toarray() if is_sparse(product) else product)


def looked_at(block: Any, look: Look, left: Floats, first: int) -> Any:
    """What comes of a look at every row."""
    return look._replace(left=left).over(block, first)


def block_operator(block: Any) -> Any:
    """A block as an operator of its own."""
    return SparseOperator(block) if is_sparse(block) else DenseOperator(block, low_memory=True)


def add(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The sum."""
    return np.asarray(one + other)


def add_both(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Two sums."""
    return one[0] + other[0], one[1] + other[1]


def add_and_append(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The sum of what belongs to columns, and one after the other what belongs to rows."""
    return one[0] + other[0], np.concatenate([one[1], other[1]])


def spread(support: Indices, values: NDArray[Any], size: int) -> NDArray[Any]:
    """A supported vector written out."""
    full = np.zeros(size, dtype=values.dtype)
    full[support] = values
    return full


@as_operator.register
def _chunked(X: RowBlocks, low_memory: bool = False) -> DataOperator:
    return ChunkedOperator(X)
