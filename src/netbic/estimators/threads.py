"""Number of BLAS threads."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from threading import Lock, local
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread(AbstractContextManager[object]):
    """BLAS is limited to one thread while any fit is inside.

    Fits in several threads, and iterations over modules, may overlap: the number of threads is restored when the last
    of them has left. (`ThreadpoolController.limit` would then restore the limit of another fit.) Libraries that
    use OpenMP have a number per thread, which is restored when the last fit of that thread has left.
    """

    def __init__(self) -> None:
        self._lock, self._count, self._depth = Lock(), 0, local()
        self._libraries: list[tuple[Any, int]] = []  # and their usual numbers of threads

    def __enter__(self) -> None:
        with self._lock:
            if not self._count:
                self._libraries = [(library, library.num_threads) for library in _blas().lib_controllers]
            self._count += 1
            self._depth.here = self._inside_here() + 1
            for library, _ in self._libraries:
                library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1
            self._depth.here = max(self._inside_here() - 1, 0)  # a generator may be closed by another thread
            for library, usual in self._libraries:
                per_process = library.info()["threading_layer"] == "pthreads"
                if not (self._count if per_process else self._depth.here):
                    library.set_num_threads(usual)

    def _inside_here(self) -> int:
        """Number of fits of this thread that are inside."""
        return getattr(self._depth, "here", 0)


@cache
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


_one_thread = _OneThread()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: the products of the solver are too small for more."""
    return _one_thread
