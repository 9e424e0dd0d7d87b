"""Reading a corrected matrix a few rows at a time, written out: for what products cannot tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

from netbic.operators.base import Floats

_SLAB_ENTRIES = 1 << 20  # entries written out at a time: 8 MB


def scan_rows(
    rows: Any,
    function: Callable[[Floats, int], Any],
    combine: Callable[[Any, Any], Any],
    factors: Floats | None,
    left: Floats,
    right: Floats,
    first: int = 0,
) -> Any:
    """Combine function(some rows of Y, number of the first) over all rows of Y = X diag(factors) - left right'.

    Parameters
    ----------
    rows : array or CSR of shape (n, p)
        X.
    first : int
        The number of its first row, where X is part of something larger.
    """
    step = max(1, _SLAB_ENTRIES // max(rows.shape[1], 1))
    total: Any = None
    for start in range(0, rows.shape[0], step):
        part = slice(start, min(start + step, rows.shape[0]))
        slab = rows[part].toarray() if is_sparse(rows) else rows[part]
        slab = slab * (1.0 if factors is None else factors) - left[part] @ right.T
        found = function(slab, first + start)
        total = found if total is None else combine(total, found)
    return total


def aligned(X: Any) -> Any:
    """The same array where the processor likes it: what came over a network may lie anywhere, and is multiplied slowly.

    It is multiplied in another order, too, so that last digits would depend on who did the work.
    """
    return X if is_sparse(X) or X.flags.aligned else X.copy(order="K")


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix."""
    return bool(sp.issparse(X))
