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
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from netbic.arrays import Floats, check_in_memory, is_sparse
from netbic.enrichment import is_decided, sequential_p_values
from netbic.estimators.inputs import one_blas_thread
from netbic.operators.executors import BlockError, ClusterError, ClusterExecutor, current_executor

Jobs = int | str | None
Progress = Callable[[int, int], object]  # called with the numbers of finished fits and of all fits

_SMALL, _MOST_ENTRIES = 1_000_000, 1_000_000_000  # entries of X, and of its copies in all threads together, by default
_POLLING = 60.0  # seconds without a finished fit after which the state of the cluster is checked


class Fits:
    """Runs independent fits to X, in threads (or `processes`) or on a cluster, and reports how many are finished.

    `left` is the number of fits that will follow those of the current call of `map`, as far as it is known.
    """

    def __init__(self, X: Any, n_jobs: Jobs, progress: Progress | None = None, *, processes: bool = False) -> None:
        advice = " or its most variable columns, then fit the whole matrix with the parameters that were chosen"
        check_in_memory(X, "parameters are chosen and judged on data in memory", advice)
        if n_jobs is not None and n_jobs != "dask" and (not isinstance(n_jobs, Integral) or n_jobs == 0):
            what = "processes" if processes else "threads"
            raise ValueError(f"n_jobs={n_jobs!r}: a number of {what} is needed, -1 for all cores, or 'dask'")
        self._processes, self._progress, self._done, self.left = processes, progress, 0, 0
        self._cluster: ClusterExecutor | None = None
        self.n_parallel = local_jobs(X, n_jobs)  # fits that run at the same time; 1 only for fits in the calling thread
        if processes:  # each has a copy of the data
            self.n_parallel = min(self.n_parallel, int(cpu_count()))
        if n_jobs == "dask":
            if find_spec("distributed") is None:
                raise ImportError("n_jobs='dask' needs Dask: pip install 'netbic[dask]'")
            executor = current_executor()
            if not isinstance(executor, ClusterExecutor):
                raise ValueError("n_jobs='dask' but there is no Dask client: create one, e.g. distributed.Client()")
            self._cluster, self.n_parallel = executor, max(2, executor.n_threads)  # more workers may join

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
        if self._cluster is None:
            options = {} if self._processes else {"prefer": "threads"}
            run = Parallel(self.n_parallel, **options, return_as="generator" if in_order else "generator_unordered")
            results = run(delayed(_one_fit)(fit, data, job) for job in jobs)
        else:
            results = _map_on_cluster(self._cluster, fit, data, jobs, in_order)
        others = sum(map(n_fits, jobs))
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

    def permutation_test(
        self,
        strength: Callable[[Any, Any], float],
        data: Any,
        observed: float,
        seed: tuple[int, ...],
        most: int,
        enough: int | None,
    ) -> tuple[Floats, float]:
        """Strengths `strength(data, (*seed, number))` of permuted data, and the p-value of the observed one.

        There are at most `most`; no more are made once `enough` of them are as strong. Where they run does not matter.
        """
        found, value = np.empty(0), np.array([observed])
        size = most if enough is None else self.n_parallel
        while found.size < most and not is_decided(value, found[None], enough):
            seeds = [(*seed, number) for number in range(found.size, min(found.size + size, most))]
            found = np.append(found, list(self.map(strength, data, seeds)))
        if enough is not None:  # those after the last one that was needed depend on the number of threads
            found = found[: 1 + np.searchsorted(np.cumsum(found >= observed), enough)]
        return found, float(sequential_p_values(value, found[None], most, enough)[0])


def _map_on_cluster(cluster: Any, fit: Any, data: Any, jobs: Sequence[Any], in_order: bool) -> Any:
    """Data are sent to the scheduler once, and from there to each worker, which releases collected results."""
    from distributed import wait
    from distributed.protocol.pickle import dumps

    (shared,) = cluster.map(_unpickle, [dumps(data)])
    waiting = cluster.map(_one_fit, [fit] * len(jobs), [shared] * len(jobs), jobs)
    try:
        while waiting:
            if in_order:
                ready = list(takewhile(lambda future: future.done(), waiting))
            else:
                with suppress(Exception):  # errors of the cluster are explained when results are collected
                    wait(waiting, timeout=_POLLING, return_when="FIRST_COMPLETED")
                ready = [future for future in waiting if future.done()]
            ready = ready or waiting[:1]
            keys = {future.key for future in ready}
            waiting = [future for future in waiting if future.key not in keys]
            yield from cluster.gather(ready)
    except BlockError:
        raise ClusterError(
            "every worker that took one of the fits died, most likely because memory was short: give workers more "
            "memory, or one thread each"
        ) from None


def _unpickle(data: bytes) -> Any:
    """Unpickle in a task: a worker that fails to unpickle the arguments of a task would stop without a message."""
    try:
        return loads(data)
    except (ImportError, AttributeError) as problem:
        raise ClusterError(f"a worker cannot read the model or the data: {problem}; give workers that module") from None


def _one_fit(fit: Callable[[Any, Any], Any], data: Any, job: Any) -> Any:
    with quiet():
        return fit(data, job)


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
