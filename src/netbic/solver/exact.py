"""The best submatrix with given numbers of rows and columns, by branch and bound: for tiny matrices.

Without a graph, a module with fixed numbers of rows and columns is a submatrix, and d its largest singular value. A
node of the search tree has rows and columns that must belong to the submatrix, and others that must not. Its bound is
that of `sparse_bounds` with W = rho I, on both axes one after another: rows and columns that must belong to it count in
full, the others less, and what they may lose is added. The node with the largest bound is divided next, so that at
every time the largest bound of a node is one of the whole problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from netbic.arrays import Array, Floats, Indices

_LEVELS: Final = np.array([0.0, 0.3, 0.6, 0.85, 1.0])  # of rho, in units of the k-th largest square
_EQUAL: Final = 1 + 1e-9  # values up to this ratio count as equal
_STEPS: Final = 10  # of the iteration that looks for better submatrices


class BestSubmatrix(NamedTuple):
    """The largest singular value found, an upper bound of all others, its rows and columns, and the number of nodes."""

    value: float
    bound: float
    rows: Indices
    columns: Indices
    n_nodes: int

    @property
    def certified(self) -> bool:
        """Whether no submatrix can be better (by more than rounding errors)."""
        return self.bound <= _EQUAL * self.value


@dataclass(order=True)
class _Node:
    """Rows and columns: 1 if they must belong to the submatrix, -1 if they must not, 0 if it is open."""

    key: float
    rows: Array = field(compare=False)
    columns: Array = field(compare=False)
    largest: tuple[int, int] = field(compare=False)  # axis and index of the entry to decide next

    @property
    def is_leaf(self) -> bool:
        """Whether everything is decided."""
        return not ((self.rows == 0).any() or (self.columns == 0).any())


def best_submatrix(
    X: Floats,
    n_rows: int,
    n_columns: int,
    max_nodes: int = 100_000,
    known: tuple[Indices, Indices] | None = None,
) -> BestSubmatrix:
    """The `n_rows` rows and `n_columns` columns of X with the largest singular value.

    Parameters
    ----------
    X : array
        A small matrix, such as 20 x 15.
    n_rows, n_columns : int
    max_nodes : int, default=100_000
        Nodes of the search tree after which the best submatrix so far is returned, with its bound.
    known : pair of arrays of positions, optional
        Rows and columns of a submatrix, at most `n_rows` and `n_columns`. What is returned is at least as good.

    Examples
    --------
    >>> import numpy as np
    >>> from netbic.solver import best_submatrix
    >>> X = np.random.default_rng(0).standard_normal((20, 15))
    >>> best = best_submatrix(X, 3, 3)
    >>> best.certified, best.rows.tolist(), best.columns.tolist()
    (True, [4, 10, 18], [0, 9, 14])
    """
    _check_number("n_rows", n_rows, X.shape[0])
    _check_number("n_columns", n_columns, X.shape[1])
    _check_number("max_nodes", max_nodes)
    turned = X.shape[0] < X.shape[1]  # the short axis, which has fewer sets, is decided first: here the columns
    search = _Search(X.T if turned else X, *((n_columns, n_rows) if turned else (n_rows, n_columns)))
    if known is not None:
        search.compare(*(known[::-1] if turned else known))
    found = search.run(max_nodes)
    return found._replace(rows=found.columns, columns=found.rows) if turned else found


def _check_number(name: str, value: int, most: int | None = None) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: an integer is needed")
    if value < 1 or (most is not None and value > most):
        where = "" if most is None else f" but X has {most:,} {name.removeprefix('n_')}"
        raise ValueError(f"{name}={value}{where}: choose {'at least 1' if most is None else f'1 to {most:,}'}")


class _Search:
    def __init__(self, X: Floats, n_rows: int, n_columns: int) -> None:
        self._X, self._sizes = np.asarray(X, dtype=np.float64), (n_rows, n_columns)
        self._value, self._supports = 0.0, (np.arange(n_rows), np.arange(n_columns))

    def run(self, max_nodes: int) -> BestSubmatrix:
        """Divide nodes until none can contain a better submatrix."""
        self._try(np.linalg.norm(self._X, axis=1))
        heap: list[_Node] = []
        self._push(heap, *(np.zeros(size, dtype=np.int8) for size in self._X.shape))
        n_nodes = 1
        while heap and -heap[0].key > _EQUAL * self._value and n_nodes < max_nodes:
            for rows, columns in _children(heappop(heap)):
                self._push(heap, rows, columns)
                n_nodes += 1
        bound = max(-heap[0].key if heap else 0.0, self._value)
        rows, columns = self._supports
        return BestSubmatrix(self._value, bound, rows, columns, n_nodes)

    def _push(self, heap: list[_Node], rows: Array, columns: Array) -> None:
        """Add a node, unless it cannot contain a better submatrix."""
        rows, columns = _completed(rows, self._sizes[0]), _completed(columns, self._sizes[1])
        node = self._examined(rows, columns)
        if not node.is_leaf and -node.key > _EQUAL * self._value:
            heappush(heap, node)

    def _examined(self, rows: Array, columns: Array) -> _Node:
        """The node with its bound; better submatrices near its relaxed solution are kept."""
        at_rows, at_columns = np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0)
        part = self._X[np.ix_(at_rows, at_columns)]
        square, left, right = _relaxed(part, rows[at_rows] == 1, columns[at_columns] == 1, self._sizes)
        start = np.zeros(len(rows))
        start[at_rows] = left
        self._try(start)
        axis, at, weights = (1, at_columns, right) if (columns == 0).any() else (0, at_rows, left)
        free = (columns if axis else rows)[at] == 0
        chosen = int(at[free][np.argmax(weights[free])]) if free.any() else -1
        return _Node(-float(np.sqrt(square)), rows, columns, (axis, chosen))

    def compare(self, rows: Indices, columns: Indices) -> None:
        """Keep a submatrix if it is better; further rows and columns, which cannot make it worse, complete it."""
        supports = tuple(
            np.sort(np.append(own, np.setdiff1d(np.arange(total), own)[: size - len(own)]))
            for own, total, size in zip((rows, columns), self._X.shape, self._sizes, strict=True)
        )
        value = float(np.linalg.norm(self._X[np.ix_(*supports)], 2))
        if value > self._value:
            self._value, self._supports = value, (supports[0], supports[1])

    def _try(self, left: Floats) -> None:
        """Alternate between both axes from row weights, and keep the submatrix if it is better."""
        for _ in range(_STEPS):
            rows = np.argsort(-np.abs(left), kind="stable")[: self._sizes[0]]
            right = left[rows] @ self._X[rows]
            columns = np.argsort(-np.abs(right), kind="stable")[: self._sizes[1]]
            left = self._X[:, columns] @ right[columns]
            left /= max(float(np.linalg.norm(left)), np.finfo(np.float64).tiny)
        self.compare(rows, columns)


def _children(node: _Node) -> Iterator[tuple[Array, Array]]:
    axis, index = node.largest
    for decision in (1, -1):
        both = node.rows.copy(), node.columns.copy()
        both[axis][index] = decision
        yield both


def _completed(decided: Array, size: int) -> Array:
    """Decide the open entries if there is only one way left."""
    n_in, n_open = int((decided == 1).sum()), int((decided == 0).sum())
    if n_in == size or n_in + n_open == size:
        decided = np.where(decided == 0, -1 if n_in == size else 1, decided).astype(np.int8)
    return decided


def _relaxed(part: Floats, rows_in: Array, columns_in: Array, sizes: tuple[int, int]) -> tuple[float, Floats, Floats]:
    """The smallest bound of the squared singular value over some rho, and weights of the rows and columns."""
    open_rows, open_columns = sizes[0] - int(rows_in.sum()), sizes[1] - int(columns_in.sum())
    column_squares = _largest_sums(part**2, rows_in, open_rows)
    rhos, shares = _shares(column_squares, columns_in, open_columns)
    scaled = part**2 @ shares.T  # squared norms of the rows of each scaled matrix
    grams, added = [], []
    for rho, share, squares in zip(rhos, shares, scaled.T, strict=True):
        taus, row_shares = _shares(squares, rows_in, open_rows)
        half = part * np.sqrt(share)
        grams.append(half.T @ (half * row_shares[:, :, None]))
        added.append(open_columns * rho + open_rows * taus)
    values, vectors = np.linalg.eigh(np.concatenate(grams))
    bounds = values[:, -1] + np.concatenate(added)
    best = int(np.argmin(bounds))
    right = vectors[best, :, -1] * np.sqrt(shares[best // len(_LEVELS)])
    return float(bounds[best]), part @ right, np.abs(vectors[best, :, -1])


def _largest_sums(squares: Floats, rows_in: Array, n_open: int) -> Floats:
    """For each column the sum of squares in the rows that must belong to the submatrix, and in the best others."""
    others = np.sort(squares[~rows_in], axis=0)
    return np.asarray(squares[rows_in].sum(axis=0) + others[len(others) - n_open :].sum(axis=0))


def _shares(squares: Floats, decided: Array, n_open: int) -> tuple[Floats, Floats]:
    """Levels rho, and the share 1 - rho / square of each entry that counts (1 for those that must belong)."""
    free = np.sort(squares[~decided])
    edge = free[free.size - n_open] if n_open else 0.0
    rhos = edge * _LEVELS
    rest = np.maximum(squares - rhos[:, None], 0.0) / np.maximum(squares, np.finfo(np.float64).tiny)
    shares = np.where(decided, 1.0, rest)
    return rhos, shares
