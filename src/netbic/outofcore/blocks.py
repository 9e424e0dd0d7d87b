"""A Dask array as blocks of rows that are visited where they lie.

A visit loads a block (from disk, or from a worker's memory), does one thing with it and lets it go; what comes back is
small. Blocks that fit into the workers' memory together are kept there, others are loaded for every visit.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from netbic.arrays import checked, n_masked
from netbic.operators import DenseOperator, Floats, SparseOperator, aligned, is_sparse
from netbic.outofcore.executors import BlockError, Cluster, Threads, current_workers, itself

_HELD_SHARE = 0.4  # blocks are kept in memory up to this share of it
_CARRIED_BYTES = 1 << 29  # most that may be sent to workers beside blocks
_JOINED_BYTES = 1 << 28  # largest block of whole rows that is put together from pieces without being asked for


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array (Dask is not imported to find out)."""
    return any(f"{kind.__module__}.{kind.__qualname__}" == "dask.array.core.Array" for kind in type(X).__mro__)


class RowBlocks:
    """Blocks of whole rows of a Dask array.

    Parameters
    ----------
    X : dask array of shape (n, p)
        Blocks are NumPy arrays or SciPy's sparse matrices; anything but single precision is taken as double.
    hold : bool
        Keep blocks in memory where they fit; False for one visit and no more.

    Attributes
    ----------
    shape, dtype
    bounds : ndarray
        Block b has the rows from bounds[b] to bounds[b + 1].
    """

    def __init__(self, X: Any, hold: bool = True) -> None:
        X = _of_whole_rows(X)
        self._may_hold = hold
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = np.dtype(X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        heights = np.array(X.chunks[0], dtype=np.intp)
        self.bounds = np.concatenate([[0], np.cumsum(heights[heights > 0])])
        self._count = [0]  # shared by all views of the same blocks
        self._through: Callable[[Any], Any] | None = None
        blocks = [block for block, height in zip(_delayed(X), heights, strict=True) if height]
        holders = _workers_that_hold(X)
        self.workers: Threads | Cluster = holders or current_workers()
        if holders is not None:
            self._sources, self._held = holders.hold(blocks), True
            return
        recipes = Recipe.of(blocks, self.workers)
        if isinstance(self.workers, Cluster):
            recipes = [recipe.packed(self.name_of(number)) for number, recipe in enumerate(recipes)]
        self._sources, self._held = self.workers.each(itself, recipes), False

    def _hold(self) -> None:
        """Have the blocks in memory from now on."""
        names = [self.name_of(number) for number in range(self.n_blocks)]
        self._sources, self._held = self.workers.each(_loaded, names, self._sources), True

    def _fits(self, nbytes: int) -> bool:
        return self._may_hold and nbytes <= _HELD_SHARE * self.workers.memory

    @contextmanager
    def released(self) -> Iterator[None]:
        """Hold nothing any more afterwards, whatever happens."""
        try:
            yield
        finally:
            self._sources = []

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.bounds) - 1

    @property
    def passes(self) -> float:
        """How often the data have been read so far: blocks visited, in units of all blocks."""
        return self._count[0] / self.n_blocks

    def through(self, change: Callable[[Any], Any]) -> Self:
        """The same blocks, each changed whenever it is loaded."""
        made = copy.copy(self)
        made._through = change
        made.__dict__.pop("summary", None)
        return made

    def parts(self, vector: NDArray[Any], which: Sequence[int] | None = None) -> list[NDArray[Any]]:
        """A vector (or matrix) over all rows, cut into the pieces that belong to blocks."""
        numbers = range(self.n_blocks) if which is None else which
        return [vector[self.bounds[b] : self.bounds[b + 1]] for b in numbers]

    def each(
        self, function: Callable[..., Any], *arguments: Sequence[Any], which: Sequence[int] | None = None
    ) -> list[Any]:
        """Handles of function(block, its arguments), for the blocks of these numbers."""
        return self.workers.each(_visit, *self._visits(function, arguments, which))

    def total(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *arguments: Sequence[Any],
        which: Sequence[int] | None = None,
    ) -> Any:
        """function(block, its arguments) of all blocks, combined."""
        return self.workers.total(_visit, combine, *self._visits(function, arguments, which))

    def stacked(self, function: Callable[..., Any], *shared: Any) -> NDArray[Any]:
        """function(block, the same arguments for all), one below the other."""
        arguments = [[self.workers.share(value)] * self.n_blocks for value in shared]
        return np.concatenate(self.workers.collect(self.each(function, *arguments)))

    def _visits(
        self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], which: Sequence[int] | None
    ) -> list[Sequence[Any]]:
        if not self._held and self._fits(self.shape[0] * self.shape[1] * self.dtype.itemsize):
            self._hold()
        numbers = list(range(self.n_blocks) if which is None else which)
        self._count[0] += len(numbers)
        names = [self.name_of(number) for number in numbers]
        sources = [self._sources[number] for number in numbers]
        promised = [(int(self.bounds[b + 1] - self.bounds[b]), self.shape[1], self.dtype) for b in numbers]
        fixed = [[value] * len(numbers) for value in (function, self._through)]
        return [names, sources, promised, *fixed, *arguments]

    def name_of(self, number: int) -> str:
        """A block in words."""
        return f"block {number} (rows {self.bounds[number]} to {self.bounds[number + 1] - 1})"

    def block_of(self, row: int) -> int:
        """The number of the block that has this row."""
        return int(np.searchsorted(self.bounds, row, side="right")) - 1

    @property
    def is_sparse(self) -> bool:
        """Whether any block is."""
        return self.summary.n_sparse > 0

    @cached_property
    def summary(self) -> Summary:
        """What one pass tells about all blocks; those that fit into memory together then stay there."""
        summary: Summary = self.total(summarised, Summary.plus, self.bounds[:-1].tolist())
        if not (summary.fault or self._held) and self._fits(summary.nbytes):
            self._hold()
        return summary

    def check_finite(self) -> None:
        """Raise if any entry is NaN or infinite, naming the first such one and its block."""
        if self.summary.fault:
            row, column, value = self.summary.fault
            what, remedy = ("NaN", "in a Dask array none may be missing") if np.isnan(value) else ("infinity", "")
            raise ValueError(
                f"X contains {what}: row {row}, column {column}, in {self.name_of(self.block_of(row))}. "
                f"Fill such entries (e.g. with their column's mean) or drop them first{remedy and f': {remedy}'}"
            )


@dataclass(frozen=True)
class Summary:
    """Sums over the entries of some rows: sums of squares are about the means of just these rows."""

    n_rows: int
    nbytes: int
    n_sparse: int
    largest: float
    means: Floats
    squares: Floats
    row_sums: Floats
    fault: tuple[int, int, float] | None  # row, column and value of the first entry that is not finite

    def plus(self, other: Summary) -> Summary:
        """The rows of both (Chan, Golub and LeVeque 1983: nothing cancels)."""
        n = self.n_rows + other.n_rows
        apart = other.means - self.means
        with np.errstate(over="ignore"):  # the range of X is checked where that matters
            between = apart**2 * (self.n_rows * other.n_rows / n)
        return Summary(
            n,
            self.nbytes + other.nbytes,
            self.n_sparse + other.n_sparse,
            max(self.largest, other.largest),
            self.means + apart * (other.n_rows / n),
            self.squares + other.squares + between,
            np.concatenate([self.row_sums, other.row_sums]),
            self.fault or other.fault,
        )


def summarised(block: Any, first_row: int) -> Summary:
    """The summary of one block."""
    n, p = block.shape
    fault = _not_finite(block)
    if fault is not None:
        row, column, value = fault
        nothing = np.zeros(p)
        return Summary(n, 0, 0, 0.0, nothing, nothing, np.zeros(n), (int(first_row) + row, column, value))
    data = SparseOperator(block) if is_sparse(block) else DenseOperator(block, low_memory=True)
    stored = block.data if is_sparse(block) else block
    largest = max(float(stored.max(initial=0)), -float(stored.min(initial=0)))
    with np.errstate(over="ignore", invalid="ignore"):
        means = data.column_sums() / n
        squares = data.column_squares(np.zeros(n), means)
    return Summary(n, _nbytes(block), is_sparse(block) * n, largest, means, squares, data.row_sums(), None)


def _not_finite(block: Any) -> tuple[int, int, float] | None:
    """Row, column and value of the first entry that is not finite."""
    stored = block.data if is_sparse(block) else block
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(stored.sum(dtype=np.float64)):
            return None
    if is_sparse(block):
        places = np.flatnonzero(~np.isfinite(stored))
        rows, columns = np.searchsorted(block.indptr, places, side="right") - 1, block.indices[places]
    else:
        rows, columns = np.nonzero(~np.isfinite(block))
    return (int(rows[0]), int(columns[0]), float(block[rows[0], columns[0]])) if len(rows) else None


def _nbytes(block: Any) -> int:
    parts = (block.data, block.indices, block.indptr) if is_sparse(block) else (block,)
    return sum(part.nbytes for part in parts)


class Recipe:
    """How to load one block: the part of a Dask graph that makes it."""

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self._graph, self._key = graph, key

    @classmethod
    def of(cls, blocks: Sequence[Any], workers: Threads | Cluster) -> list[Recipe]:
        """For each of Dask's delayed blocks the tasks it needs, and no others; what all of them need is done once."""
        from dask.optimization import cull

        whole: dict[Any, Any] = {}
        for block in blocks:
            whole.update(block.__dask_graph__())
        shared = _needed_by_all([cull(whole, [block.key]) for block in blocks])
        whole |= _values(whole, shared, workers, len(blocks))
        return [cls(cull(whole, [block.key])[0], block.key) for block in blocks]

    def load(self) -> Any:
        """The block."""
        from dask.local import get_sync

        return get_sync(self._graph, self._key)

    def packed(self, name: str) -> PackedRecipe:
        """The recipe as bytes."""
        from distributed.protocol.pickle import dumps

        try:
            return PackedRecipe(dumps((self._graph, self._key)))
        except Exception as problem:  # whatever is in there has its own way to refuse
            raise BlockError(
                f"{name} cannot be sent to a worker ({' '.join(str(problem).split())}): make it of data, and by "
                "functions, that can be pickled, e.g. from files"
            ) from None


class PackedRecipe(Recipe):
    """A recipe that is unpacked by the visit: what cannot be unpacked on a worker then is an error of that visit."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def load(self) -> Any:
        """The block."""
        from distributed.protocol.pickle import loads

        return Recipe(*loads(self._content)).load()


def _visit(
    name: str,
    source: Any,
    promised: tuple[int, int, Any],
    function: Callable[..., Any],
    change: Callable[[Any], Any] | None,
    *own: Any,
) -> Any:
    """Load a block, do one thing with it and let it go."""
    with named(name), np.errstate(over="ignore", invalid="ignore"):  # what is not finite is looked for in results
        block = as_matrix(source.load() if isinstance(source, Recipe) else source, *promised)
        return function(block if change is None else change(block), *own)


def _loaded(name: str, recipe: Recipe) -> Any:
    with named(name):
        return recipe.load()


@contextmanager
def named(block: str) -> Iterator[None]:
    """Say which block it was if something fails."""
    try:
        yield
    except Exception as problem:
        what = " ".join(str(problem).split()) or "no more is known"
        raise BlockError(f"{block}: {type(problem).__name__}: {what}") from None


def as_matrix(block: Any, height: int, width: int, dtype: Any) -> Any:
    """A block as a plain array or as CSR, of the size that was promised and the precision that is wanted."""
    if block.shape != (height, width):
        raise ValueError(f"it has shape {block.shape}, but the Dask array says {(height, width)}")
    if masked := n_masked(block):
        raise ValueError(f"it is a masked array, and {masked:,} entries of it are missing: fill or drop them first")
    block = checked(block, "it")
    return sp.csr_array(block, dtype=dtype) if is_sparse(block) else aligned(np.asarray(block, dtype=dtype))


def _delayed(X: Any) -> list[Any]:
    return list(X.to_delayed(optimize_graph=True).ravel())


def _needed_by_all(parts: Sequence[tuple[dict[Any, Any], dict[Any, Any]]]) -> list[Any]:
    """Tasks whose results every block takes, given each block's tasks and what these depend on."""
    if len(parts) < 2:
        return []
    everywhere = set.intersection(*(set(graph) for graph, _ in parts))
    taken = (
        {key for task, keys in needs.items() if task not in everywhere for key in keys} & everywhere
        for _, needs in parts
    )
    return sorted(set.intersection(*taken), key=str)


def _values(graph: dict[Any, Any], keys: list[Any], workers: Threads | Cluster, n_blocks: int) -> dict[Any, Any]:
    """The results of some tasks, as parts of a graph."""
    from dask._task_spec import DataNode

    given = {key: graph[key].value for key in keys if isinstance(graph[key], DataNode)}
    made = [key for key in keys if key not in given]
    values = given | dict(zip(made, workers.results(graph, made), strict=True))
    if isinstance(workers, Cluster):
        _check_carried(values, n_blocks)
    return {key: DataNode(key, value) for key, value in values.items()}


def _check_carried(values: dict[Any, Any], n_blocks: int) -> None:
    """Raise if what every block needs is too much to be sent with every block."""
    from dask.sizeof import sizeof

    for value in values.values():
        if sizeof(value) * n_blocks > _CARRIED_BYTES:
            raise ValueError(
                f"every block of X needs a whole {type(value).__name__} of {sizeof(value) / 1e6:,.0f} MB, which would "
                "be sent with each: have blocks read from a file, e.g. by netbic.io.open_expression or X.to_zarr(path)"
            )


def _workers_that_hold(X: Any) -> Cluster | None:
    """The cluster that has some of X in its memory already, if there is one."""
    try:
        from distributed import futures_of
    except ImportError:
        return None
    futures = futures_of(X)
    return Cluster(futures[0].client) if futures else None


def _of_whole_rows(X: Any) -> Any:
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
            f"X is cut into {X.numblocks[1]} pieces along its columns, and whole rows of a block would take "
            f"{height * width * X.dtype.itemsize / 1e9:.1f} GB: write it anew in blocks of whole rows, "
            "e.g. X.rechunk({0: 'auto', 1: -1}).to_zarr(path)"
        )
    warnings.warn(
        f"X is cut into {X.numblocks[1]} pieces along its columns: they are put together whenever rows are read. "
        "Blocks of whole rows, X.rechunk({1: -1}), are faster where X is stored so",
        stacklevel=2,
    )
    return X.rechunk({1: -1})
