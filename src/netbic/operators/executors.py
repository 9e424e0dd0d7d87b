"""Executors: threads of this process, or the workers of a Dask cluster.

Both run a function on every block of a matrix, combine the results of all blocks, and collect results here. Results are
handles: values, or futures of values in the memory of a worker. Handles may be arguments of other functions. Both
executors use the same tree reduction, in the order of the blocks, so that results do not depend on the executor, to the
last bit.
"""

from __future__ import annotations

import copy
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property, reduce
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, Final

from joblib import cpu_count

_FAN_IN = 4  # partial results combined at a time: few, so that no worker holds many
_LEVELS = 16  # of a tree reduction: enough for 4^16 blocks
_RETRIES = 2  # of a failed task, for temporary errors of disks and networks
_POLLING: float = 2.0  # seconds between checks of a cluster while waiting for results
NO_WORKER_TIMEOUT: float = 300.0  # seconds that a cluster may be without workers
_COMPARED: Final = ("netbic", "numpy", "scipy", "dask", "distributed")

_log = logging.getLogger(__name__)

Handle = Any  # a value, or a future of a value in the memory of a worker
Function = Callable[..., Any]
Combine = Callable[[Any, Any], Any]


class BlockError(RuntimeError):
    """Work on one block of a matrix failed, and so did all retries."""


class ClusterError(RuntimeError):
    """A Dask cluster cannot be used, or is no longer available."""


class ThreadExecutor:
    """Threads of this process, one per core. A handle is the value itself."""

    is_remote = False  # whether functions and arguments are sent to other processes

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(int(cpu_count()), thread_name_prefix="netbic")

    def broadcast(self, value: Any) -> Handle:
        """A handle of a value that many tasks need; it is sent once."""
        return value

    def map(self, function: Function, *arguments: Sequence[Any]) -> list[Handle]:
        """Handles of `function` of the first arguments, of the second arguments, and so on."""
        return list(self._results(function, arguments))

    def map_reduce(self, function: Function, combine: Combine, *arguments: Sequence[Any]) -> Any:
        """The values of `map`, combined in order by a tree reduction while others are computed."""
        return tree_reduce(self._results(function, arguments), combine)

    def _results(self, function: Function, arguments: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """Results in order; few tasks are started ahead, so that few results are in memory."""
        waiting = zip(*arguments, strict=True)
        started: list[Future[Any]] = [self._pool.submit(function, *one) for one in islice(waiting, 2 * cpu_count())]
        try:
            while started:
                yield started.pop(0).result()
                started += [self._pool.submit(function, *one) for one in islice(waiting, 1)]
        finally:
            for task in started:
                task.cancel()

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """The values of handles."""
        return list(handles)

    def compute(self, graph: Mapping[Any, Any], keys: list[Any]) -> list[Any]:
        """The results of some tasks of a Dask graph."""
        from dask.threaded import get

        return list(get(graph, keys)) if keys else []

    @cached_property
    def memory(self) -> float:
        """Bytes of memory that were free when this was first read."""
        return free_memory()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}


class ClusterExecutor:
    """The workers of a Dask cluster. A handle is a future.

    Everything that is sent is part of a task, which the scheduler can repeat: a worker that dies loses no data.
    """

    is_remote = True

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise ClusterError(
                "the current Dask client is asynchronous: give a synchronous one, Client(asynchronous=False)"
            )
        self._client = client
        for name in _COMPARED:
            with self._explained_errors():
                here, elsewhere = version(name), client.run(version, name, on_error="return")
            for worker, there in elsewhere.items():
                missing = isinstance(there, PackageNotFoundError)
                if missing or (isinstance(there, str) and there != here):  # other exceptions: the worker is dying
                    found = "does not have it" if missing else f"has {there}"
                    raise ClusterError(
                        f"{name} is {here} here but worker {worker} {found}: use the same environment on all workers"
                    )

    def broadcast(self, value: Any) -> Handle:
        """A handle of a value that many tasks need; it is sent once."""
        return self.map(identity, [value])[0]

    def map(self, function: Function, *arguments: Sequence[Any], priority: int = 0) -> list[Handle]:
        """Futures, in order; a task is called as its block, if the first arguments are names of blocks."""
        from dask import config as dask_config

        name, firsts = f"netbic-{function.__name__.strip('_')}-{uuid.uuid4().hex}", arguments[0]
        named = all(isinstance(first, str) for first in firsts)
        labels = firsts if named else [f"part {number} of {len(firsts)}" for number in range(len(firsts))]
        options = {"key": [f"{name}-{label}" for label in labels], "pure": False, "retries": _RETRIES}
        # Large arguments are part of tasks on purpose, because scattered data are lost with their worker: no warnings.
        with self._explained_errors(), dask_config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return list(self._client.map(function, *arguments, **options, priority=priority))

    def map_reduce(self, function: Function, combine: Combine, *arguments: Sequence[Any]) -> Any:
        """Results combined on the workers, with priority over further blocks."""
        parts = self.map(function, *arguments)
        while len(parts) > 1:
            groups = [parts[at : at + _FAN_IN] for at in range(0, len(parts), _FAN_IN)]
            parts = self.map(reduce, [combine] * len(groups), groups, priority=1)
        return self.gather(parts)[0]

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for futures while watching the cluster, and collect their values."""
        try:
            with self._explained_errors(of_task=True):
                self._wait(handles)
                return list(self._client.gather(handles))
        except (KeyboardInterrupt, SystemExit):
            self._client.cancel(handles)  # nobody needs these results any more
            raise

    def _wait(self, handles: Sequence[Handle]) -> None:
        """Until all futures are finished, one has failed, or the cluster has had no worker for too long."""
        from distributed import wait

        idle_since = None
        while True:
            with suppress(TimeoutError):
                wait(handles, timeout=_POLLING)
                return
            if any(handle.status == "error" for handle in handles):
                return
            if self._client.status not in ("running", "connecting"):
                raise ClusterError(f"the Dask cluster {self._address} is gone: start it again")
            if self._client.scheduler_info(n_workers=-1)["workers"]:
                idle_since = None
            elif idle_since is None:
                idle_since = time.monotonic()
                _log.warning("the Dask cluster %s has no worker: waiting for one", self._address)
            elif time.monotonic() - idle_since > NO_WORKER_TIMEOUT:
                raise ClusterError(
                    f"the Dask cluster {self._address} has had no worker for {NO_WORKER_TIMEOUT:.0f} seconds: "
                    "start workers"
                )

    @property
    def _address(self) -> str:
        scheduler = self._client.scheduler
        return str(scheduler.address) if scheduler is not None else "(closed)"

    @contextmanager
    def _explained_errors(self, of_task: bool = False) -> Iterator[None]:
        """Errors say what happened to the cluster; an OSError `of_task` is one of reading a block."""
        try:
            yield
        except Exception as problem:
            # The client keeps the exception of a failed task, and its traceback would keep all our local variables.
            raise self._explain(problem.with_traceback(None), of_task) from None

    def _explain(self, problem: Exception, of_task: bool) -> Exception:
        """The error to raise instead: a copy, unless the problem is one of the cluster."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        if isinstance(problem, KilledWorker):
            return BlockError(
                f"{str(problem.task).rsplit('-', 1)[-1]}: every worker that took it died "
                f"({problem.allowed_failures + 1} tries), most likely because memory was short: use smaller blocks, "
                "or give workers more memory"
            )
        if isinstance(problem, (BlockError, ClusterError)):
            return type(problem)(str(problem))
        lost = (ConnectionError, TimeoutError) if of_task else (OSError,)
        if isinstance(problem, (CancelledError, CommClosedError, *lost)) or self._client.status != "running":
            return ClusterError(
                f"the Dask cluster {self._address} went away, or cancelled the tasks it was given "
                f"({type(problem).__name__}): start it again"
            )
        try:
            return copy.copy(problem)
        except Exception:  # some exceptions cannot be copied
            return RuntimeError(f"{type(problem).__name__}: {problem}")

    def compute(self, graph: Mapping[Any, Any], keys: list[Any]) -> list[Any]:
        """The results of some tasks of a Dask graph."""
        with self._explained_errors(of_task=True):
            return list(self._client.get(graph, keys)) if keys else []

    @property
    def n_threads(self) -> int:
        """Number of threads of all current workers."""
        with self._explained_errors():
            return sum(map(int, self._client.nthreads().values()))

    def hold(self, blocks: Sequence[Any]) -> list[Handle]:
        """Futures of Dask's delayed blocks that are in the memory of the workers already."""
        with self._explained_errors():
            return list(self._client.compute(list(blocks), retries=_RETRIES))

    @property
    def memory(self) -> float:
        """The sum of the workers' memory limits; for workers without a limit, the free memory of their machines."""
        with self._explained_errors():
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            limited = sum(worker["memory_limit"] or 0 for worker in workers.values())
            hosts = {worker["host"]: address for address, worker in workers.items() if not worker["memory_limit"]}
            free = self._client.run(free_memory, workers=list(hosts.values()), on_error="return") if hosts else {}
        return float(limited + sum(each for each in free.values() if isinstance(each, float)))


BlockExecutor = ThreadExecutor | ClusterExecutor


def current_executor() -> BlockExecutor:
    """The cluster of the current Dask client, if there is one; otherwise, and within tasks of a worker, threads."""
    try:
        from distributed import get_client, get_worker
    except ImportError:
        return ThreadExecutor()
    with suppress(ValueError):
        get_worker()
        return ThreadExecutor()  # a task that waits for other tasks would block a thread of the worker
    with suppress(ValueError):
        return ClusterExecutor(get_client())
    return ThreadExecutor()


def free_memory() -> float:
    """Bytes of memory that are available on this machine; 4 GB if that is unknown."""
    try:
        import psutil  # comes with distributed
    except ImportError:
        with suppress(OSError), open("/proc/meminfo", encoding="ascii") as lines:
            return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), 4e9)
        return 4e9
    return float(psutil.virtual_memory().available)


def identity(value: Any) -> Any:
    """The value itself, as the result of a task."""
    return value


def tree_reduce(parts: Iterable[Any], combine: Combine) -> Any:
    """Combine groups of a few parts, then groups of the results, and so on; few parts are in memory at a time."""

    def combine_groups(parts: Iterator[Any]) -> Iterator[Any]:
        while group := list(islice(parts, _FAN_IN)):
            yield reduce(combine, group)

    for _ in range(_LEVELS):
        parts = combine_groups(iter(parts))
    return next(iter(parts))
