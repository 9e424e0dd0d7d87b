"""Independent fits: in this thread, in threads or processes of this machine, or on the workers of a Dask cluster.

A fit is a function of data that all fits share and of a small job (a seed, or some indices). The data are sent once,
and results do not depend on where the fits run.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from itertools import takewhile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from numbers import Integral
from pickle import HIGHEST_PROTOCOL, dumps, loads
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from netbic.arrays import Floats, check_in_memory, is_sparse
from netbic.enrichment import is_decided, sequential_p_values
from netbic.errors import how_to_install
from netbic.estimators.inputs import one_blas_thread
from netbic.operators.executors import BlockError, ClusterError, ClusterExecutor, current_executor

Jobs = int | str | None
Progress = Callable[[int, int], object]  # called with the numbers of finished fits and of all fits

# Work is measured in entries of a dense X times fits of ten modules; 80 million take about a second.
_USUAL = 10
_PER_FIT = 500_000  # entries that take as long as the part of a fit that does not depend on the size of X
_SPARSE = 20  # times as long take those that a sparse X stores
_START = 120_000_000  # the work that is done while processes start
_COPY = 2_000_000  # the same for every copy of this process
_WORTH_THREADS = 1_000_000  # entries of X
_THREADS, _GAIN = 2, 1.25  # and how much faster two are than one: much of a fit is Python
_MOST_ENTRIES = 1_000_000_000  # of X, in all threads or processes together, by default
_POLLING = 60.0  # seconds without a finished fit after which the state of the cluster is checked


class Fits:
    """Runs about `n_fits` independent fits of `n_modules` to X where that is fastest, and counts the finished ones.

    They run in the calling thread if all of them take a second or so, in two threads if starting processes would take
    longer than they save, in processes, or on a cluster. On Linux, processes are copies of this one, which start at
    once and share its memory, unless it has other threads (as in a notebook); others share X by memory mapping.
    `n_parallel` is the number that run at the same time. What `joblib.parallel_config` says is followed.

    `left` is the number of fits that will follow those of the current call of `map`, as far as it is known.
    """

    def __init__(
        self, X: Any, n_fits: int, n_jobs: Jobs, progress: Progress | None = None, *, n_modules: int = _USUAL
    ) -> None:
        advice = " or its most variable columns, then fit the whole matrix with the parameters that were chosen"
        check_in_memory(X, "parameters are chosen and judged on data in memory", advice)
        if n_jobs is not None and n_jobs != "dask" and (not isinstance(n_jobs, Integral) or n_jobs == 0):
            raise ValueError(f"n_jobs={n_jobs!r}: a number of processes is needed, -1 for all cores, or 'dask'")
        self._progress, self._done, self.left = progress, 0, 0
        self._cluster: ClusterExecutor | None = None
        self.n_parallel, self._in_processes = _local_jobs(X, n_fits, n_jobs, n_modules)
        if n_jobs == "dask":
            if find_spec("distributed") is None:
                raise ImportError(f"n_jobs='dask' needs Dask: {how_to_install('dask')}")
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
    ) -> Generator[Any, None, None]:
        """`fit(data, job)` for every job, in order or as they are finished; `n_fits` is the number of fits of a job.

        `fit` is a function of a module, which is sent by its name. Fits start at once, before the first result is
        asked for (in the calling thread, when it is); if the generator is closed, no more are started.
        """
        if self._in_processes and _can_copy():
            results = _map_on_copies(min(self.n_parallel, len(jobs)), fit, data, jobs)
        elif self._cluster is None:
            hint = "processes" if self._in_processes else "threads"
            order = "generator" if in_order else "generator_unordered"
            run = Parallel(self.n_parallel, prefer=hint, return_as=order, pre_dispatch="n_jobs")
            results = run(delayed(_one_fit)(fit, data, job) for job in jobs)
        else:
            results = _map_on_cluster(self._cluster, fit, data, jobs, in_order)
        return self._counted(results, jobs, n_fits)

    def _counted(
        self, results: Generator[Any, None, None], jobs: Sequence[Any], n_fits: Callable[[Any], int]
    ) -> Generator[Any, None, None]:
        """The results, each of which is reported."""
        others = sum(map(n_fits, jobs))
        try:
            for job, result in zip(jobs, results, strict=True):
                others -= n_fits(job)
                self.count(n_fits(job), others)
                yield result
        except (TerminatedWorkerError, EOFError):
            raise MemoryError(
                f"a process that made one of {self.n_parallel} fits at a time was killed, most likely because memory "
                "was short: give fewer processes (n_jobs)"
            ) from None
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
        with closing(self.map(strength, data, [(*seed, number) for number in range(most)])) as results:
            for one in results:
                found = np.append(found, one)
                if is_decided(value, found[None], enough):
                    break
        return found, float(sequential_p_values(value, found[None], most, enough)[0])


def _can_copy() -> bool:
    """Whether this process can be copied: a lock that another thread holds would never be released in the copy."""
    return sys.platform == "linux" and threading.active_count() == 1 and get_active_backend()[1] is None


def _map_on_copies(n: int, fit: Any, data: Any, jobs: Sequence[Any]) -> Generator[Any, None, None]:
    """Results in order, from copies of this process, of which each makes every n-th fit."""
    context = get_context("fork")
    receivers, copies = list[Connection](), list[BaseProcess]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _interrupts())  # Python ignores an exception while it is copied
    try:
        with quiet():
            for first in range(n):
                receiver, sender = context.Pipe(duplex=False)
                receivers.append(receiver)
                given = fit, data, jobs[first::n], sender, [*receivers]
                copies.append(context.Process(target=_send_fits, args=given, daemon=True))
                copies[-1].start()
                sender.close()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _received(receivers, copies, len(jobs))


def _interrupts() -> set[signal.Signals]:
    return {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}  # not all of them are known on Windows


def _received(receivers: list[Connection], copies: list[BaseProcess], n_jobs: int) -> Generator[Any, None, None]:
    try:
        for number in range(n_jobs):
            failed, found = receivers[number % len(receivers)].recv()
            if failed:
                raise found
            yield found
    finally:
        for receiver, copy in zip(receivers, copies, strict=True):
            copy.terminate()
            copy.join()
            receiver.close()


def _send_fits(fit: Any, data: Any, jobs: Sequence[Any], sender: Connection, receivers: list[Connection]) -> None:
    """What a copy does: it makes some of the fits while results are sent. It ends if nobody receives them any more."""
    global _is_copy
    _is_copy = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the original process is interrupted, and ends the copies
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _interrupts())
    for receiver in receivers:
        receiver.close()
    with ThreadPoolExecutor(1) as sending:
        last: Future[Any] | None = None
        for job in jobs:
            try:
                found = dumps((False, _one_fit(fit, data, job)), HIGHEST_PROTOCOL)
            except Exception as problem:
                found = dumps((True, problem))
            if last is not None and last.done() and isinstance(last.exception(), OSError):
                return
            last = sending.submit(sender.send_bytes, found)


def _map_on_cluster(cluster: Any, fit: Any, data: Any, jobs: Sequence[Any], in_order: bool) -> Any:
    """Data are sent to the scheduler once, and from there to each worker, which releases collected results."""
    from distributed import wait
    from distributed.protocol import pickle

    (shared,) = cluster.map(_unpickle, [pickle.dumps(data)])
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


def _local_jobs(X: Any, n_fits: int, n_jobs: Jobs, n_modules: int = _USUAL) -> tuple[int, bool]:
    """How many of some fits run at the same time on this machine, and whether in processes."""
    matrices = list(X.values()) if isinstance(X, Mapping) else [X]
    n_entries = sum(int(one.nnz if is_sparse(one) else np.prod(np.shape(one))) for one in matrices)
    cost = n_entries * (_SPARSE if is_sparse(matrices[0]) else 1)
    backend, configured = get_active_backend()
    if n_jobs is not None:
        most = 1 if isinstance(n_jobs, str) else int(effective_n_jobs(n_jobs))  # "dask": made elsewhere
    elif configured is not None:
        most = int(effective_n_jobs(configured))
    elif backend.nesting_level or _is_copy:  # within a worker
        most = 1
    else:
        most = max(1, min(int(cpu_count()), _MOST_ENTRIES // max(n_entries, 1)))
    most, work = max(1, min(most, n_fits)), n_fits * (cost + _PER_FIT) * max(1.0, n_modules / _USUAL)
    in_processes = work / most + (most * _COPY if _can_copy() else _START) < work / _GAIN
    if in_processes or configured is not None:
        return most, in_processes
    return min(most, _THREADS if cost >= _WORTH_THREADS else 1), False


_is_copy = False  # whether this process is a copy that makes fits for another one
_lock, _inside, _filters = threading.Lock(), [0], ExitStack()


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
