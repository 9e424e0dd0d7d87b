"""Independent fits: in threads or processes of this machine, or on the workers of a Dask cluster.

A fit is a function of data that all fits share and of a job of its own (a seed, some indices). Data travel once, jobs
are small, and results do not depend on who did the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from numbers import Integral
from pickle import loads
from threading import Lock
from typing import Any, Protocol

from joblib import cpu_count, effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from netbic.arrays import check_in_memory
from netbic.estimators import one_blas_thread
from netbic.outofcore import BlockError, ClusterError, ClusterExecutor, current_executor

Jobs = int | str | None
Fit = Callable[[Any, Any], Any]

_LULL = 60.0  # seconds without a finished fit after which the first one is waited for, with an eye on the cluster


class Executor(Protocol):
    """Who fits."""

    @property
    def n_parallel(self) -> int:
        """Fits at the same time."""

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """`fit(data, job)` for every job, in order or as they are finished.

        `fit` is a function of a module: it is sent by its name.
        """


def executor_for(X: Any, n_jobs: Jobs, processes: bool = False) -> Executor:
    """Who fits to X: `n_jobs` threads (or processes), or the present Dask client's workers ("dask")."""
    advice = " or its most variable columns, then fit the whole matrix with the parameters that were chosen"
    check_in_memory(X, "parameters are chosen and judged on data in memory", advice)
    if n_jobs == "dask":
        return DaskExecutor(_present_cluster())
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        what = "processes" if processes else "threads"
        raise ValueError(f"n_jobs={n_jobs!r}: a number of {what} is needed, -1 for all cores, or 'dask'")
    return LocalExecutor(n_jobs, processes)


def _present_cluster() -> ClusterExecutor:
    if find_spec("distributed") is None:
        raise ImportError("n_jobs='dask' needs Dask: pip install 'netbic[dask]'")
    executor = current_executor()
    if not isinstance(executor, ClusterExecutor):
        raise ValueError("n_jobs='dask' but there is no Dask client: create one, e.g. distributed.Client()")
    return executor


@dataclass(frozen=True)
class LocalExecutor:
    """Threads or processes of this machine."""

    n_jobs: int | None
    processes: bool

    @property
    def n_parallel(self) -> int:
        """As many as asked for; of processes, which hold data of their own, no more than there are cores."""
        asked = int(effective_n_jobs(self.n_jobs))
        return min(asked, int(cpu_count())) if self.processes else asked

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """Results, in order or as they are finished."""
        found = "generator" if in_order else "generator_unordered"
        words = {"n_jobs": self.n_parallel} if self.processes else {"n_jobs": self.n_jobs, "prefer": "threads"}
        results: Iterator[Any] = Parallel(**words, return_as=found)(delayed(_one_fit)(fit, data, job) for job in jobs)
        return results


@dataclass(frozen=True)
class DaskExecutor:
    """The workers of a Dask cluster. Data go to the scheduler once, and from there to each worker that needs them."""

    cluster: ClusterExecutor

    @property
    def n_parallel(self) -> int:
        """Threads that all workers have now, and at least two: more workers may come."""
        return max(2, self.cluster.n_threads)

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """Results, in order or as they are finished; whatever was brought here is dropped there."""
        from distributed.protocol.pickle import dumps

        (shared,) = self.cluster.map(_unpacked, [dumps(data)])
        waiting = self.cluster.map(_one_fit, [fit] * len(jobs), [shared] * len(jobs), jobs)
        try:
            while waiting:
                ready = _ready(waiting, in_order)
                keys = {future.key for future in ready}
                waiting = [future for future in waiting if future.key not in keys]
                yield from self.cluster.gather(ready)
        except BlockError:
            raise ClusterError(
                "every worker that took one of the fits died, most likely for want of memory: give workers more of it, "
                "or one thread each"
            ) from None


def _ready(waiting: list[Any], in_order: bool) -> list[Any]:
    """Futures that have finished (in order: before the first that has not); one to be waited for if there is none."""
    from distributed import wait

    if in_order:
        return list(takewhile(lambda future: future.done(), waiting)) or waiting[:1]
    with suppress(Exception):  # whatever is wrong with the cluster is said by who collects
        wait(waiting, timeout=_LULL, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()] or waiting[:1]


def _unpacked(data: bytes) -> Any:
    """Unpacked in a task of its own: a worker that cannot read what Dask itself sends it drops out without a word."""
    try:
        return loads(data)
    except (ImportError, AttributeError) as problem:
        raise ClusterError(f"a worker cannot read the model or the data: {problem}; give workers that module") from None


def _one_fit(fit: Fit, data: Any, job: Any) -> Any:
    with quiet():
        return fit(data, job)


@contextmanager
def quiet() -> Iterator[None]:
    """One BLAS thread, since the last digits depend on it; and no remarks of fits, which are about trials.

    Both are settings of the whole process: the first thread that comes makes them, the last to leave takes them back.
    """
    _settings.enter()
    try:
        with one_blas_thread():  # where BLAS uses OpenMP the limit is this thread's own
            yield
    finally:
        _settings.leave()


class _Settings:
    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._filters, self._limit = ExitStack(), ExitStack()
        # One thread limits and frees BLAS, since a limit may be taken back only by the thread that made it.
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix="netbic-blas")

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._keeper.submit(lambda: self._limit.enter_context(one_blas_thread())).result()
                self._filters.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.close()
                self._keeper.submit(self._limit.close).result()


_settings = _Settings()
