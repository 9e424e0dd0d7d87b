"""A Dask array as blocks of whole rows, on which functions are run one block at a time.

A block is loaded (from disk, or from the memory of a worker), a function is applied to it, and it is released again;
the results are small. If all blocks fit into the memory of the workers they are kept there, otherwise they are loaded
every time.
"""

from __future__ import annotations

import copy
import hashlib
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from netbic.arrays import (
    Array,
    Bools,
    Floats,
    Indices,
    Matrix,
    buffers,
    checked,
    is_sparse,
    kind_of,
    n_masked,
    stored_values,
)
from netbic.operators.base import aligned, as_operator
from netbic.operators.executors import (
    BlockError,
    BlockExecutor,
    ClusterExecutor,
    Combine,
    Function,
    Handle,
    current_executor,
    identity,
)

_HELD_SHARE = 0.4  # blocks are kept in memory up to this share of it
_CARRIED_BYTES = 1 << 29  # most bytes that may be sent to workers in addition to blocks
_DIGEST_BITS = 128
_JOINED_BYTES = 1 << 28  # largest block of whole rows that is put together from chunks of columns

DaskArray = Any  # Dask has no types


class RowBlocks:
    """Blocks of whole rows of a Dask array: NumPy arrays or SciPy sparse matrices, in single or double precision.

    Block b has the rows from bounds[b] to bounds[b + 1]. The `executor` are the workers that have X in memory, or the
    current Dask client, or threads. Blocks that fit are kept in memory, unless `hold` is False: they are read once.
    """

    def __init__(self, X: DaskArray, hold: bool = True) -> None:
        X = _of_whole_rows(X)
        self._may_hold = hold
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = np.dtype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        heights = np.array(X.chunks[0], dtype=np.intp)
        self.bounds = np.concatenate([[0], np.cumsum(heights[heights > 0])])
        self._count = [0]  # shared by all views of the same blocks
        self._changes: list[tuple[Any, ...]] = [()] * self.n_blocks  # functions of blocks, and arguments of each
        delayed = X.to_delayed(optimize_graph=True).ravel()
        blocks = [block for block, height in zip(delayed, heights, strict=True) if height]
        try:
            from distributed import futures_of

            futures = futures_of(X)
        except ImportError:
            futures = []
        holder = ClusterExecutor(futures[0].client) if futures else None  # some of X is in its memory already
        self.executor: BlockExecutor = holder or current_executor()
        if holder is not None:
            self._sources, self._held = holder.hold(blocks), True
            return
        names = [self.name_of(number) for number in range(self.n_blocks)]
        self._sources, self._held = self.executor.map(identity, block_tasks(blocks, names, self.executor)), False

    def _hold_if_they_fit(self, nbytes: int) -> None:
        """Keep the blocks, which have this size together, in memory from now on."""
        if self._may_hold and not self._held and nbytes <= _HELD_SHARE * self.executor.memory:
            names = [self.name_of(number) for number in range(self.n_blocks)]
            self._sources, self._held = self.executor.map(_loaded, names, self._sources), True

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    @property
    def passes(self) -> float:
        """How often the data have been read: the number of blocks read, divided by the number of blocks."""
        return self._count[0] / self.n_blocks

    def with_transform(self, change: Function, of_rows: Array | None = None) -> Self:
        """The same blocks, with a function applied to each whenever it is loaded.

        `of_rows` has a line per row of the matrix; those of the block are then the second argument of the function.
        """
        made = copy.copy(self)
        made._changes = [(change,)] * self.n_blocks
        if of_rows is not None:
            made._changes = [(change, own) for own in self.split(of_rows)]
        made.__dict__.pop("summary", None)
        return made

    def split(self, values: Array) -> list[Array]:
        """An array with one line per row of the matrix, split by blocks."""
        return np.split(values, self.bounds[1:-1])

    def map(self, function: Function, *arguments: Sequence[Any], which: Sequence[int] | None = None) -> list[Handle]:
        """Handles of function(block, its arguments), for all blocks or for those of the numbers `which`."""
        return self.executor.map(_applied, *self._tasks(function, arguments, which))

    def map_reduce(
        self, function: Function, combine: Combine, *arguments: Sequence[Any], which: Sequence[int] | None = None
    ) -> Any:
        """The values of `map`, combined in order."""
        return self.executor.map_reduce(_applied, combine, *self._tasks(function, arguments, which))

    def map_concatenate(self, function: Function, *shared: Any) -> Array:
        """The arrays function(block, shared arguments), concatenated."""
        arguments = [[self.executor.broadcast(value)] * self.n_blocks for value in shared]
        return np.concatenate(self.executor.gather(self.map(function, *arguments)))

    def _tasks(
        self, function: Function, arguments: Sequence[Sequence[Any]], which: Sequence[int] | None
    ) -> list[Sequence[Any]]:
        self._hold_if_they_fit(self.shape[0] * self.shape[1] * self.dtype.itemsize)
        numbers = list(range(self.n_blocks) if which is None else which)
        self._count[0] += len(numbers)
        names = [self.name_of(number) for number in numbers]
        sources = [self._sources[number] for number in numbers]
        expected = [(int(self.bounds[b + 1] - self.bounds[b]), self.shape[1], self.dtype) for b in numbers]
        changes = [self._changes[number] for number in numbers]
        return [names, sources, expected, [function] * len(numbers), changes, *arguments]

    def name_of(self, number: int) -> str:
        """The name of a block in messages."""
        return f"block {number} (rows {self.bounds[number]} to {self.bounds[number + 1] - 1})"

    @property
    def is_sparse(self) -> bool:
        """Whether any block is sparse."""
        return self.summary.n_sparse > 0

    @cached_property
    def summary(self) -> Summary:
        """Summary of all blocks, from one pass; blocks that fit into memory then stay there."""
        summary: Summary = self.map_reduce(summarised, Summary.plus, self.bounds[:-1].tolist())
        if not summary.fault:
            self._hold_if_they_fit(summary.nbytes)
        return summary

    def check_finite(self) -> None:
        """Raise if any entry is NaN or infinite, naming the first such entry and its block."""
        if self.summary.fault:
            row, column, value = self.summary.fault
            block = self.name_of(int(np.searchsorted(self.bounds, row, side="right")) - 1)
            raise ValueError(
                f"X contains {'NaN' if np.isnan(value) else 'infinity'}: row {row}, column {column}, in {block}. Fill "
                "such entries (e.g. with their column's mean) or drop them first: a Dask array must not have missing "
                "or infinite entries"
            )


kind_of.register(RowBlocks, lambda X: "blocks")


@dataclass(frozen=True)
class Summary:
    """Sums over the entries of some rows; sums of squares are about the means of these rows."""

    n_rows: int
    nbytes: int
    n_sparse: int
    n_nonzero: int
    largest: float
    means: Floats
    squares: Floats
    row_sums: Floats
    fault: tuple[int, int, float] | None  # row, column and value of the first entry that is not finite

    def plus(self, other: Summary) -> Summary:
        """The summary of the rows of both (Chan, Golub and LeVeque 1983: without cancellation)."""
        n = self.n_rows + other.n_rows
        difference = other.means - self.means
        with np.errstate(over="ignore"):  # the range of X is checked elsewhere
            between = difference**2 * (self.n_rows * other.n_rows / n)
        return Summary(
            n,
            self.nbytes + other.nbytes,
            self.n_sparse + other.n_sparse,
            self.n_nonzero + other.n_nonzero,
            max(self.largest, other.largest),
            self.means + difference * (other.n_rows / n),
            self.squares + other.squares + between,
            np.concatenate([self.row_sums, other.row_sums]),
            self.fault or other.fault,
        )


def summarised(block: Matrix, first_row: int) -> Summary:
    """The summary of one block."""
    n, p = block.shape
    stored = stored_values(block)
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(stored.sum(dtype=np.float64))
    if not finite:
        if is_sparse(block):
            places = np.flatnonzero(~np.isfinite(stored))
            rows, columns = np.searchsorted(block.indptr, places, side="right") - 1, block.indices[places]
        else:
            rows, columns = np.nonzero(~np.isfinite(block))
        if len(rows):  # otherwise only the sum is not finite
            fault = (int(first_row) + int(rows[0]), int(columns[0]), float(block[rows[0], columns[0]]))
            return Summary(n, 0, 0, 0, 0.0, np.zeros(p), np.zeros(p), np.zeros(n), fault)
    data = as_operator(block, low_memory=True)
    largest = max(float(stored.max(initial=0)), -float(stored.min(initial=0)))
    with np.errstate(over="ignore", invalid="ignore"):
        means = data.column_sums() / n
        squares = data.column_squares(np.zeros(n), means)
    nbytes = sum(part.nbytes for part in buffers(block))
    rest = largest, means, squares, data.row_sums(), None
    return Summary(n, nbytes, is_sparse(block) * n, int(np.count_nonzero(stored)), *rest)


class BlockTask:
    """How to load one block: the part of a Dask graph that computes it and its key, pickled if it is sent to workers.

    It is unpickled only when the block is loaded, so that errors name the block.
    """

    def __init__(self, graph: Mapping[Any, Any], key: Any, name: str, is_remote: bool) -> None:
        self._content: Any = graph, key
        if is_remote:
            from distributed.protocol.pickle import dumps

            try:
                self._content = dumps(self._content)
            except Exception as problem:  # any object in the graph may refuse in its own way
                raise BlockError(
                    f"{name} cannot be sent to a worker ({' '.join(str(problem).split())}): make it from data and "
                    "functions that can be pickled, e.g. from files"
                ) from None

    def load(self) -> Any:
        """The block."""
        from dask.local import get_sync

        if isinstance(self._content, bytes):
            from distributed.protocol.pickle import loads

            return get_sync(*loads(self._content))
        return get_sync(*self._content)


def block_tasks(blocks: Sequence[Any], names: Sequence[str], executor: BlockExecutor) -> list[BlockTask]:
    """The tasks that each of Dask's delayed blocks needs; what all blocks need is computed here, once."""
    from dask._task_spec import DataNode
    from dask.optimization import cull
    from dask.sizeof import sizeof

    whole: dict[Any, Any] = {}
    for block in blocks:
        whole.update(block.__dask_graph__())
    parts = [cull(whole, [block.key]) for block in blocks]
    if len(parts) > 1:
        everywhere = set.intersection(*(set(graph) for graph, _ in parts))
        taken = [{key for task in set(needs) - everywhere for key in needs[task]} & everywhere for _, needs in parts]
        keys = sorted(set.intersection(*taken), key=str)
        values = {key: whole[key].value for key in keys if isinstance(whole[key], DataNode)}
        computed = [key for key in keys if key not in values]
        values |= dict(zip(computed, executor.compute(whole, computed), strict=True))
        for key, value in values.items():
            if executor.is_remote and sizeof(value) * len(blocks) > _CARRIED_BYTES:
                raise ValueError(
                    f"every block of X needs a whole {type(value).__name__} of {sizeof(value) / 1e6:,.0f} MB, which "
                    "would be sent with each: read blocks from a file, e.g. by netbic.io.open_expression or "
                    "X.to_zarr(path)"
                )
            whole[key] = DataNode(key, value)
    named = zip(blocks, names, strict=True)
    return [BlockTask(cull(whole, [block.key])[0], block.key, name, executor.is_remote) for block, name in named]


def _applied(
    name: str, source: Any, expected: tuple[int, int, DTypeLike], function: Function, change: Sequence[Any], *own: Any
) -> Any:
    """Load a block, as a NumPy array or CSR matrix of the expected shape and precision, and apply a function to it."""
    with named(name), np.errstate(over="ignore", invalid="ignore"):  # results are checked for such entries
        block = source.load() if isinstance(source, BlockTask) else source
        *shape, dtype = expected
        if block.shape != tuple(shape):
            raise ValueError(f"it has shape {block.shape}, but the Dask array says {tuple(shape)}")
        if masked := n_masked(block):
            raise ValueError(f"it is a masked array, and {masked:,} entries of it are missing: fill or drop them first")
        block = checked(block, "it")
        block = sp.csr_array(block, dtype=dtype) if is_sparse(block) else aligned(np.asarray(block, dtype=dtype))
        if change:
            block = change[0](block, *change[1:])
        return function(block, *own)


def _loaded(name: str, task: BlockTask) -> Any:
    with named(name):
        return task.load()


@contextmanager
def named(block: str) -> Iterator[None]:
    """Add the name of the block to errors."""
    try:
        yield
    except Exception as problem:
        what = " ".join(str(problem).split()) or "no details"
        raise BlockError(f"{block}: {type(problem).__name__}: {what}") from None


def _of_whole_rows(X: DaskArray) -> DaskArray:
    """X in blocks of whole rows of known height."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: 2 are needed, samples in rows and features in columns")
    if 0 in X.shape:
        raise ValueError(f"X has {X.shape[0]} samples and {X.shape[1]} features: at least one of each is needed")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError("X has blocks of unknown size: call X.compute_chunk_sizes() first")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X has entries of type {X.dtype}: real numbers are needed")
    if X.numblocks[1] == 1:
        return X
    height, width = max(X.chunks[0]), X.shape[1]
    if height * width * X.dtype.itemsize > _JOINED_BYTES:
        raise ValueError(
            f"X is cut into {X.numblocks[1]} chunks along its columns, and whole rows of a block would take "
            f"{height * width * X.dtype.itemsize / 1e9:.1f} GB: write it again in blocks of whole rows, "
            "e.g. X.rechunk({0: 'auto', 1: -1}).to_zarr(path)"
        )
    warnings.warn(
        f"X is cut into {X.numblocks[1]} chunks along its columns: they are joined whenever rows are read. "
        "Storing X in blocks of whole rows, X.rechunk({1: -1}), is faster",
        stacklevel=2,
    )
    return X.rechunk({1: -1})


# --- Statistics of columns and rows, and a digest, from one pass ---


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
            (self.digest + other.digest) % (1 << _DIGEST_BITS),
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
    result: ColumnStatistics = blocks.map_reduce(_statistics_of, ColumnStatistics.plus, blocks.bounds[:-1].tolist())
    return result


def _statistics_of(block: Matrix, first_row: int) -> ColumnStatistics:
    if isinstance(block, np.ndarray):
        with np.errstate(invalid="ignore"):
            lowest, highest = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    else:
        lowest, highest = (getattr(block, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    return ColumnStatistics(summarised(block, first_row), lowest, highest, _digest(block, first_row))


def _digest(block: Matrix, first_row: int) -> int:
    """The sum of the digests of all rows, each with its index: it does not depend on the sizes of blocks."""
    lines: Iterable[tuple[Array, ...]]
    if isinstance(block, np.ndarray):
        lines = ((line,) for line in np.ascontiguousarray(block))
    else:
        indices = block.indices.astype(np.int64, copy=False)
        lines = ((block.data[a:b], indices[a:b]) for a, b in pairwise(block.indptr.tolist()))
    total = 0
    for at, parts in enumerate(lines, start=int(first_row)):
        row = hashlib.blake2b(at.to_bytes(8, "little"), digest_size=_DIGEST_BITS // 8)
        for part in parts:
            row.update(part.data)
        total += int.from_bytes(row.digest(), "little")
    return total % (1 << _DIGEST_BITS)


# --- Functions that treat every row alike, for matrices in memory and Dask arrays ---


def select_columns(X: Matrix, kept: Indices | Bools) -> Matrix:
    """Some columns of a matrix, by index or mask; tasks of a Dask array hold one bit per column."""
    if kind_of(X) != "dask":
        return X[:, kept]
    wanted = np.flatnonzero(kept) if kept.dtype == bool else np.asarray(kept)
    increasing = bool((np.diff(wanted) > 0).all())
    if wanted.size == X.shape[1] and increasing:
        return X
    mask = np.zeros(X.shape[1], dtype=bool)
    mask[wanted] = True
    return map_rows(X, _columns_of_rows, np.packbits(mask) if increasing else wanted, width=int(wanted.size))


def _columns_of_rows(block: Matrix, chosen: Array) -> Matrix:
    """Columns by index, or by a mask packed into bits."""
    if chosen.dtype == np.uint8:
        chosen = np.flatnonzero(np.unpackbits(chosen, count=block.shape[1]))
    return np.take(block, chosen, axis=1) if isinstance(block, np.ndarray) else block[:, chosen]


def map_rows(
    X: Matrix, function: Function, *arguments: Any, width: int | None = None, dtype: DTypeLike | None = None
) -> Matrix:
    """function(rows, arguments) of a matrix; for a Dask array of every block of rows, when it is read.

    `width` and `dtype` are those of the result, if they are not those of X.
    """
    if kind_of(X) != "dask":
        return function(X, *arguments)
    X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    chunks = (X.chunks[0], (X.shape[1] if width is None else width,))
    dtype = X.dtype if dtype is None else dtype
    meta = X._meta.astype(dtype)
    return X.map_blocks(function, *arguments, chunks=chunks, dtype=dtype, meta=meta, name=f"netbic-{uuid.uuid4().hex}")


def compute_rows(X: Matrix, function: Function, *arguments: Any) -> Array:
    """The array function(rows, arguments) of a matrix; of a Dask array or `RowBlocks`, from one pass over the blocks.

    Raises a ValueError that names the entry if a block has entries that are not finite.
    """
    X = RowBlocks(X, hold=False) if kind_of(X) == "dask" else X
    if not isinstance(X, RowBlocks):
        return np.asarray(function(X, *arguments))
    made = X.map_concatenate(function, *arguments)
    if not np.isfinite(made).all():
        X.check_finite()
    return made


@contextmanager
def released(X: Matrix | RowBlocks) -> Iterator[None]:
    """A context at the end of which the blocks of X are released, if it has any."""
    try:
        yield
    finally:
        if isinstance(X, RowBlocks):
            X._sources = []


def passes(X: Matrix | RowBlocks) -> float | None:
    """How often the blocks of X have been read; None for a matrix in memory."""
    return X.passes if isinstance(X, RowBlocks) else None
