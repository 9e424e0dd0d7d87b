"""Number of BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread: the products of the solver are too small for more."""
    limit: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limit
