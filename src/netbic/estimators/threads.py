"""Number of BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: the products of the solver are too small for more."""
    limit: AbstractContextManager[object] = _threads().limit(limits=1, user_api="blas")
    return limit
