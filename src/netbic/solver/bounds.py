"""Upper bounds of F, which tell how much better the best module can be than one that was found.

F(u, v) = u'Xv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - P1(u) - P2(v) on the unit spheres. Its parts are bounded apart:

- the graph: w'Mw <= max(lambda_max(M), 0);
- the penalties: P >= its smallest value on the sphere (`Penalty.smallest_value`);
- the data: u'Xv is at most the largest singular value of X (`spectral_bound`, free after a fit). If numbers of entries
  are restricted, `sparse_bounds` has closer ones. If an L1 norm is, |x_i'v| <= a_i for each row x_i, where a_i is the
  largest product of |x_i| with a vector that the column penalty admits (`Penalty.largest_product`), and so
  u'Xv - P1(u) <= max a'u - P1(u), whose maximiser is the threshold of the row penalty. The same holds for columns.

The smallest of the bounds is used. All are bounds for the residual in which a module was searched for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from netbic.arrays import Floats, Indices
from netbic.operators import Corrected
from netbic.penalties import Penalty
from netbic.solver.half_step import Side
from netbic.solver.sparse_bounds import Columns, largest_eigenvalue, quadratic_bound, squared_norm_bound
from netbic.solver.vectors import State, Vector

SHORT_SIDE: Final = 4096  # up to this many rows or columns matrices of this size are made
_CHUNK: Final = 1 << 22  # entries that are dense at a time
_MOST: Final = 1 << 25  # entries of the columns (or rows) that are kept: 256 MB


def has_bound(side: Side, vector: Vector, operator: Corrected) -> bool:
    """Whether the side of a solution has an objective: no chosen size (unless a fallback was used), nothing imputed."""
    chosen = vector.choice is not None and not vector.choice.fallback
    return side.penalty.has_objective and not chosen and not operator.imputes


def relative_gap(objective: float, bound: float) -> float:
    """The share of the bound by which F could be larger: F >= (1 - gap) bound; NaN unless both are positive.

    A share has no meaning if F is negative, as a Laplacian with a large smoothness can make it.

    Examples
    --------
    >>> relative_gap(8.0, 10.0), relative_gap(-8.0, 10.0)
    (0.2, nan)
    """
    if not (objective > 0 and 0 < bound < np.inf):
        return np.nan
    return max(0.0, float((bound - objective) / bound))


def spectral_bound(largest_value: float, rows: Side, columns: Side) -> float:
    """The bound of F by the largest singular value of the matrix."""
    return largest_value + sum(_own_part(side) for side in (rows, columns))


def objective_bound(operator: Corrected, rows: Side, columns: Side, state: State, largest_value: float) -> float:
    """The smallest bound of F that is known for a matrix; `state` is a module found, near which it is closest.

    If there are more than 4,096 rows and columns, it is the spectral bound, or that by the norms of rows or columns.
    """
    own = _own_part(rows) + _own_part(columns)
    bounds = [largest_value + own]
    if min(operator.shape) <= SHORT_SIDE:
        bounds.append(_sparse_bound(operator, rows, columns, state) + own)
    for side, other, lines in _lines(operator, rows, columns):
        values = _largest_of(side.penalty, lines) - other.penalty.smallest_value()
        bounds.append(values + _graph_part(rows) + _graph_part(columns))
    return min(bounds)


def _graph_part(side: Side) -> float:
    """Upper bound of the graph part of F."""
    return 0.5 * side.amplification


def _own_part(side: Side) -> float:
    """Upper bound of the graph part of F minus the penalty."""
    return _graph_part(side) - side.penalty.smallest_value()


def _largest_of(penalty: Penalty, products: Floats) -> float:
    """Upper bound of c'x - P(x), c being the products."""
    kept = penalty.threshold(products)
    if not kept.support.size:  # no product exceeds the weight of the penalty
        return penalty.largest_product(products) - penalty.smallest_value()
    values = kept.values / np.linalg.norm(kept.values)
    return float(products[kept.support] @ values) - penalty.value(values)


def _lines(operator: Corrected, rows: Side, columns: Side) -> Iterator[tuple[Side, Side, Floats]]:
    """For both axes its side, the other one, and the largest product of each line with a vector of the other side."""
    large = min(operator.shape) > SHORT_SIDE
    if large:
        squares = operator.squared_lengths()
        yield rows, columns, np.sqrt(squares[0])
        yield columns, rows, np.sqrt(squares[1])
        return
    counts = (side.penalty.most_entries(size) for side, size in zip((rows, columns), operator.shape, strict=True))
    positive = rows.penalty.nonnegative and columns.penalty.nonnegative
    if all(count is not None for count in counts) and not positive:
        return  # the bounds for numbers of entries are closer
    for on_rows, side, other in ((True, rows, columns), (False, columns, rows)):
        yield side, other, _line_products(operator, on_rows, other.penalty, positive)


def _line_products(operator: Corrected, on_rows: bool, other: Penalty, positive: bool) -> Floats:
    products = []
    for chunk in _chunks(operator.shape[0 if on_rows else 1], operator.shape[1 if on_rows else 0]):
        block = _block(operator, chunk, on_rows)
        sizes = np.maximum(block, 0.0) if positive else np.abs(block)
        products += [other.largest_product(line) for line in sizes]
    return np.array(products)


def _chunks(n_lines: int, length: int) -> list[Indices]:
    step = max(1, _CHUNK // max(length, 1))
    return [np.arange(first, min(first + step, n_lines)) for first in range(0, n_lines, step)]


def _block(operator: Corrected, lines: Indices, on_rows: bool) -> Floats:
    """Some rows (columns) of the matrix, a row each."""
    if on_rows:
        return operator.submatrix(lines, np.arange(operator.shape[1]))
    return operator.submatrix(np.arange(operator.shape[0]), lines).T


def _sparse_bound(operator: Corrected, rows: Side, columns: Side, state: State) -> float:
    """Upper bound of u'Xv by the numbers of entries that the penalties allow."""
    sides = (rows, state.u), (columns, state.v)
    on_rows = operator.shape[0] > operator.shape[1]  # whether the lines of the long axis are rows
    (long, _), (short, vector) = sides if on_rows else sides[::-1]
    n_lines, size = max(operator.shape), min(operator.shape)
    k, n_entries = long.penalty.most_entries(n_lines), short.penalty.most_entries(size)
    n_entries = None if n_entries == size else n_entries
    if k is not None and k < n_lines:
        lines = _long_lines(operator, on_rows, vector, k, n_entries)
        return float(np.sqrt(squared_norm_bound(lines, k, vector.full(), n_entries)))
    gram = np.zeros((size, size))
    for chunk in _chunks(n_lines, size):
        block = _block(operator, chunk, on_rows)
        gram += block.T @ block
    if n_entries is None:
        return float(np.sqrt(max(largest_eigenvalue(gram), 0.0))) * (1 + 1e-9)
    return float(np.sqrt(quadratic_bound(gram, vector.full(), n_entries)))


def _long_lines(operator: Corrected, on_rows: bool, vector: Vector, k: int, n_entries: int | None) -> Columns:
    """The lines of the long axis that can matter: the longest ones, as many as are kept in memory."""
    squares = operator.squared_lengths()[0 if on_rows else 1]
    most = max(_MOST // vector.size, k + 1)
    order = np.argsort(-squares, kind="stable")
    least = float(squares[order[most]]) if most < order.size else 0.0
    kept = np.sort(order[:most])
    chunks = [kept[chunk] for chunk in _chunks(kept.size, vector.size)]
    lines = np.vstack([_block(operator, chunk, on_rows) for chunk in chunks])
    return Columns.of(lines.T, vector.full(), n_entries, least)
