"""Executors of independent fits: threads or processes of this machine, or the workers of a Dask cluster.

A fit is a function of data that all fits share and of a small job (a seed, or some indices). The data are sent once,
and results do not depend on the executor.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from numbers import Integral
from pickle import loads
from threading import Lock
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from netbic.arrays import check_in_memory, is_sparse
from netbic.estimators import one_blas_thread
from netbic.operators import BlockError, ClusterError, ClusterExecutor, current_executor

Jobs = int | str | None
Fit = Callable[[Any, Any], Any]

_SMALL, _MOST_ENTRIES = 1_000_000, 1_000_000_000  # entries of X, and of its copies in all threads together, by default
_POLLING = 60.0  # seconds without a finished fit after which the state of the cluster is checked


class FitExecutor(ABC):
    """Runs independent fits."""

    @property
    @abstractmethod
    def n_parallel(self) -> int:
        """Number of fits that run at the same time; 1 only for fits in the calling thread."""

    @abstractmethod
    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """`fit(data, job)` for every job, in order or as they are finished.

        `fit` is a function of a module, which is sent by its name.
        """


def executor_for(X: Any, n_jobs: Jobs, processes: bool = False) -> FitExecutor:
    """The executor of fits to X: `n_jobs` threads (or processes), or the current Dask client ("dask")."""
    advice = " or its most variable columns, then fit the whole matrix with the parameters that were chosen"
    check_in_memory(X, "parameters are chosen and judged on data in memory", advice)
    if n_jobs == "dask":
        return DaskExecutor(_current_cluster())
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        what = "processes" if processes else "threads"
        raise ValueError(f"n_jobs={n_jobs!r}: a number of {what} is needed, -1 for all cores, or 'dask'")
    return LocalExecutor(local_jobs(X, n_jobs), processes)


def _current_cluster() -> ClusterExecutor:
    if find_spec("distributed") is None:
        raise ImportError("n_jobs='dask' needs Dask: pip install 'netbic[dask]'")
    executor = current_executor()
    if not isinstance(executor, ClusterExecutor):
        raise ValueError("n_jobs='dask' but there is no Dask client: create one, e.g. distributed.Client()")
    return executor


def local_jobs(X: Any, n_jobs: Jobs) -> int:
    """The number of threads (or processes) of this machine that `n_jobs` allows; one if fits are made elsewhere.

    None: as `joblib.parallel_config` says; otherwise one within a worker of joblib or if X is small (fits are then
    mostly Python, and processes take longer to start), and all cores, as far as memory allows, if it is not.
    """
    if n_jobs is not None:
        return 1 if isinstance(n_jobs, str) else int(effective_n_jobs(n_jobs))
    backend, configured = get_active_backend()
    if configured is not None:
        return int(effective_n_jobs(configured))
    n_entries = int(X.nnz) if is_sparse(X) else int(np.prod(np.shape(X)))
    if backend.nesting_level or n_entries < _SMALL:
        return 1
    return max(1, min(int(cpu_count()), _MOST_ENTRIES // n_entries))


@dataclass(frozen=True)
class LocalExecutor(FitExecutor):
    """Threads or processes of this machine."""

    n_jobs: int
    processes: bool

    @property
    def n_parallel(self) -> int:
        """`n_jobs`; for processes, each of which has a copy of the data, at most the number of cores."""
        return min(self.n_jobs, int(cpu_count())) if self.processes else self.n_jobs

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """Results, in order or as they are finished."""
        options = {} if self.processes else {"prefer": "threads"}
        run = Parallel(self.n_parallel, **options, return_as="generator" if in_order else "generator_unordered")
        results: Iterator[Any] = run(delayed(_one_fit)(fit, data, job) for job in jobs)
        return results


@dataclass(frozen=True)
class DaskExecutor(FitExecutor):
    """The workers of a Dask cluster. Data are sent to the scheduler once, and from there to each worker."""

    cluster: ClusterExecutor

    @property
    def n_parallel(self) -> int:
        """Number of threads of all current workers, at least two: more workers may join."""
        return max(2, self.cluster.n_threads)

    def map(self, fit: Fit, data: Any, jobs: Sequence[Any], in_order: bool = True) -> Iterator[Any]:
        """Results, in order or as they are finished; workers release results that were collected."""
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
                "every worker that took one of the fits died, most likely because memory was short: give workers more "
                "memory, or one thread each"
            ) from None


def _ready(waiting: list[Any], in_order: bool) -> list[Any]:
    """Finished futures (in order: those before the first unfinished one); the first future if there are none."""
    from distributed import wait

    if in_order:
        return list(takewhile(lambda future: future.done(), waiting)) or waiting[:1]
    with suppress(Exception):  # errors of the cluster are explained when results are collected
        wait(waiting, timeout=_POLLING, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()] or waiting[:1]


def _unpacked(data: bytes) -> Any:
    """Unpickle in a task: a worker that fails to unpickle the arguments of a task would stop without a message."""
    try:
        return loads(data)
    except (ImportError, AttributeError) as problem:
        raise ClusterError(f"a worker cannot read the model or the data: {problem}; give workers that module") from None


def _one_fit(fit: Fit, data: Any, job: Any) -> Any:
    with quiet():
        return fit(data, job)


@contextmanager
def quiet() -> Iterator[None]:
    """Run with one BLAS thread, because the last digits depend on their number, and without warnings of single fits.

    Both are settings of the whole process: the first thread that enters sets them, the last that leaves resets them.
    """
    _no_warnings.enter()
    try:
        with one_blas_thread():
            yield
    finally:
        _no_warnings.leave()


class _NoWarnings:
    def __init__(self) -> None:
        self._lock, self._inside, self._filters = Lock(), 0, ExitStack()

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._filters.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._filters.close()


_no_warnings = _NoWarnings()
