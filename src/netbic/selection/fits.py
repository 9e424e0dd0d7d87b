"""Independent fits: in threads or processes of this machine, or on the workers of a Dask cluster.

A fit is a function of data that all fits share and of a small job (a seed, or some indices). The data are sent once,
and results do not depend on where the fits run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
Progress = Callable[[int, int], object]  # called with the numbers of finished fits and of all fits

_SMALL, _MOST_ENTRIES = 1_000_000, 1_000_000_000  # entries of X, and of its copies in all threads together, by default
_POLLING = 60.0  # seconds without a finished fit after which the state of the cluster is checked


class Fits:
    """Runs independent fits to X, and reports how many are finished.

    Parameters
    ----------
    X : the data, in memory
    n_jobs : int or "dask", optional
        Threads (or `processes`), or the workers of the current Dask client. Default: see `local_jobs`.
    progress : function, optional
        Called in the calling thread after every fit, with the number of finished fits and the number of all fits, as
        far as it is known.
    processes : bool

    Attributes
    ----------
    left : int
        Fits that will follow those of the current call of `map`, as far as it is known.
    """

    def __init__(self, X: Any, n_jobs: Jobs, progress: Progress | None = None, *, processes: bool = False) -> None:
        advice = " or its most variable columns, then fit the whole matrix with the parameters that were chosen"
        check_in_memory(X, "parameters are chosen and judged on data in memory", advice)
        if n_jobs is not None and n_jobs != "dask" and (not isinstance(n_jobs, Integral) or n_jobs == 0):
            what = "processes" if processes else "threads"
            raise ValueError(f"n_jobs={n_jobs!r}: a number of {what} is needed, -1 for all cores, or 'dask'")
        self._cluster = _current_cluster() if n_jobs == "dask" else None
        self._n_jobs, self._processes = local_jobs(X, n_jobs), processes
        self._progress, self._done, self.left = progress, 0, 0

    @property
    def n_parallel(self) -> int:
        """Number of fits that run at the same time; 1 only for fits in the calling thread."""
        if self._cluster is not None:
            return max(2, self._cluster.n_threads)  # more workers may join
        # Each process has a copy of the data.
        return min(self._n_jobs, int(cpu_count())) if self._processes else self._n_jobs

    def map(
        self,
        fit: Callable[[Any, Any], Any],
        data: Any,
        jobs: Sequence[Any],
        *,
        in_order: bool = True,
        n_fits: Callable[[Any], int] = lambda job: 1,
    ) -> Iterator[Any]:
        """`fit(data, job)` for every job, in order or as they are finished; `n_fits` is the number of fits of a job.

        `fit` is a function of a module, which is sent by its name.
        """
        others = sum(map(n_fits, jobs))
        results = (self._locally if self._cluster is None else self._on_cluster)(fit, data, jobs, in_order)
        try:
            for job, result in zip(jobs, results, strict=True):
                others -= n_fits(job)
                self.count(n_fits(job), others)
                yield result
        finally:
            with quiet():  # without joblib's warning about results that are not used, after an interruption
                results.close()

    def count(self, n_fits: int, others: int = 0) -> None:
        """Report finished fits, or work of the caller that takes as long as so many; `others` are under way."""
        self._done += n_fits
        if self._progress is not None:
            self._progress(self._done, self._done + others + self.left)

    def _locally(self, fit: Any, data: Any, jobs: Sequence[Any], in_order: bool) -> Any:
        options = {} if self._processes else {"prefer": "threads"}
        run = Parallel(self.n_parallel, **options, return_as="generator" if in_order else "generator_unordered")
        return run(delayed(_one_fit)(fit, data, job) for job in jobs)

    def _on_cluster(self, fit: Any, data: Any, jobs: Sequence[Any], in_order: bool) -> Any:
        """Data are sent to the scheduler once, and from there to each worker, which releases collected results."""
        from distributed.protocol.pickle import dumps

        cluster: Any = self._cluster
        (shared,) = cluster.map(_unpickle, [dumps(data)])
        waiting = cluster.map(_one_fit, [fit] * len(jobs), [shared] * len(jobs), jobs)
        try:
            while waiting:
                ready = _ready(waiting, in_order)
                keys = {future.key for future in ready}
                waiting = [future for future in waiting if future.key not in keys]
                yield from cluster.gather(ready)
        except BlockError:
            raise ClusterError(
                "every worker that took one of the fits died, most likely because memory was short: give workers more "
                "memory, or one thread each"
            ) from None


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


def _current_cluster() -> ClusterExecutor:
    if find_spec("distributed") is None:
        raise ImportError("n_jobs='dask' needs Dask: pip install 'netbic[dask]'")
    executor = current_executor()
    if not isinstance(executor, ClusterExecutor):
        raise ValueError("n_jobs='dask' but there is no Dask client: create one, e.g. distributed.Client()")
    return executor


def _ready(waiting: list[Any], in_order: bool) -> list[Any]:
    """Finished futures (in order: those before the first unfinished one); the first future if there are none."""
    from distributed import wait

    if in_order:
        return list(takewhile(lambda future: future.done(), waiting)) or waiting[:1]
    with suppress(Exception):  # errors of the cluster are explained when results are collected
        wait(waiting, timeout=_POLLING, return_when="FIRST_COMPLETED")
    return [future for future in waiting if future.done()] or waiting[:1]


def _unpickle(data: bytes) -> Any:
    """Unpickle in a task: a worker that fails to unpickle the arguments of a task would stop without a message."""
    try:
        return loads(data)
    except (ImportError, AttributeError) as problem:
        raise ClusterError(f"a worker cannot read the model or the data: {problem}; give workers that module") from None


def _one_fit(fit: Callable[[Any, Any], Any], data: Any, job: Any) -> Any:
    with quiet():
        return fit(data, job)


_lock, _inside, _filters = Lock(), [0], ExitStack()


@contextmanager
def quiet() -> Iterator[None]:
    """Run with one BLAS thread, because the last digits depend on their number, and without warnings of single fits.

    Both are settings of the whole process: the first thread that enters sets them, the last that leaves resets them.
    """
    with _lock:
        if not _inside[0]:
            _filters.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        _inside[0] += 1
    try:
        with one_blas_thread():
            yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                _filters.close()
