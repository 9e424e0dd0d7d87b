"""Reductions over the rows of a corrected matrix, of which a few rows are dense at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from netbic.arrays import Array, Floats, Matrix, is_sparse, to_dense

_SLAB_ENTRIES = 1 << 20  # entries that are dense at a time: 8 MB


class RowReduction(NamedTuple):
    """A reduction over all rows of Y = X diag(factors) - left right'.

    Parameters
    ----------
    function : callable
        Of some rows of Y (a dense array) and the index of the first of them.
    combine : callable
        Of the result for some rows and the result for the rows that follow them.
    factors : array of shape (p,), optional
    left, right : arrays of shape (n, r) and (p, r)
    """

    function: Callable[[Floats, int], Any]
    combine: Callable[[Any, Any], Any]
    factors: Floats | None
    left: Floats
    right: Floats

    def over(self, rows: Matrix, first: int = 0) -> Any:
        """The result for an array or CSR matrix X whose first row has the index `first`."""
        return self.over_slabs(lambda part: to_dense(rows[part]), rows.shape[0], first)

    def over_slabs(self, read: Callable[[slice], Array], n_rows: int, first: int = 0) -> Any:
        """The result for `n_rows` rows of X, of which `read` returns a slice as a dense array."""
        total: Any = None
        for part in slabs(n_rows, self.right.shape[0]):
            rows = read(part) * (1.0 if self.factors is None else self.factors) - self.left[part] @ self.right.T
            result = self.function(rows, first + part.start)
            total = result if total is None else self.combine(total, result)
        return total


def slabs(n_lines: int, length: int) -> list[slice]:
    """Slices of a few lines (rows or columns) of this length."""
    step = max(1, _SLAB_ENTRIES // max(length, 1))
    return [slice(start, min(start + step, n_lines)) for start in range(0, n_lines, step)]


def aligned(X: Matrix) -> Matrix:
    """The same array at an aligned address.

    Arrays received over a network may be unaligned: products with them are slow, and sum in another order, so that
    the last digits would depend on which machine computed them.
    """
    return X if is_sparse(X) or X.flags.aligned else X.copy(order="K")


def column_squares(rows: Floats, first: int) -> Floats:
    """Sum of squares of each column of some rows."""
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


def column_gram(rows: Floats, first: int) -> Floats:
    """Y'Y of some rows Y."""
    return np.asarray(rows.T @ rows)
