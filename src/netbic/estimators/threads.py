"""Threads that BLAS may use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """The solver's products are small: more BLAS threads than one only get in each other's way."""
    limit: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limit
