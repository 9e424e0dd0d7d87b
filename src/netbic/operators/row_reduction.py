"""Reading a corrected matrix a few rows at a time, written out: for what products cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp

from netbic.operators.base import Floats

_SLAB_ENTRIES = 1 << 20  # entries written out at a time: 8 MB


class Look(NamedTuple):
    """A look at every row of Y = X diag(factors) - left right', which is written out a few rows at a time."""

    function: Callable[[Floats, int], Any]  # of some rows of Y, and the number of the first of them
    combine: Callable[[Any, Any], Any]  # of what came of some rows, and of the rows that follow them
    factors: Floats | None
    left: Floats
    right: Floats

    def over(self, rows: Any, first: int = 0) -> Any:
        """What comes of an X, an array or CSR, whose first row has this number."""
        step = max(1, _SLAB_ENTRIES // max(rows.shape[1], 1))
        total: Any = None
        for start in range(0, rows.shape[0], step):
            part = slice(start, min(start + step, rows.shape[0]))
            slab = rows[part].toarray() if is_sparse(rows) else rows[part]
            slab = slab * (1.0 if self.factors is None else self.factors) - self.left[part] @ self.right.T
            found = self.function(slab, first + start)
            total = found if total is None else self.combine(total, found)
        return total


def aligned(X: Any) -> Any:
    """The same array where the processor likes it: what came over a network may lie anywhere, and is multiplied slowly.

    It is multiplied in another order, too, so that last digits would depend on who did the work.
    """
    return X if is_sparse(X) or X.flags.aligned else X.copy(order="K")


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix."""
    return bool(sp.issparse(X))
