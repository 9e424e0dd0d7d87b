"""Where work on blocks of a matrix is done: threads of this process, or the workers of a Dask cluster.

Both do the same things: run a function on every block (what comes of it stays where it is), combine what came of the
blocks, and bring results here. Both combine in the same brackets, in the order of the blocks and not of arrival, so
that no digit depends on who did the work.
"""

from __future__ import annotations

import copy
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, Final, Protocol

_FAN_IN = 4  # partial results combined at a time: few, so that no worker has to hold many
_RETRIES = 2  # of a task that failed, for disks and networks that have moods
_GLANCE: float = 2.0  # seconds between looks at a cluster that has not answered yet
PATIENCE: float = 300.0  # seconds that a cluster may be without any worker
_COMPARED: Final = ("netbic", "numpy", "scipy", "dask", "distributed")
_MEMORY_TAKEN = 0.1  # share of all memory that one kind of packed lines may take

_log = logging.getLogger(__name__)


class BlockError(RuntimeError):
    """Work on one block of a matrix failed for good."""


class ClusterError(RuntimeError):
    """A Dask cluster cannot be used, or is not there any more."""


class Workers(Protocol):
    """Who does the work. Handles stand for values that may be elsewhere."""

    def share(self, value: Any) -> Any:
        """A handle of a value that many tasks take, sent once."""

    def each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Handles of `function` of the first arguments, of the second ones, and so on; arguments may be handles."""

    def total(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Sequence[Any]) -> Any:
        """What `each` would give, combined in order: a value, not a handle."""

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        """The values behind handles."""

    def results(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        """The results of some tasks of a Dask graph."""

    @property
    def memory(self) -> float:
        """Bytes that all workers may use together."""


class Threads:
    """Threads of this process, one per core. A handle is the value itself."""

    def __init__(self) -> None:
        self._count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._count, thread_name_prefix="netbic")

    def share(self, value: Any) -> Any:
        """The value."""
        return value

    def each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Results, in order."""
        return list(self._results(function, arguments))

    def total(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Sequence[Any]) -> Any:
        """Results combined as they come in, in order."""
        return bracketed(self._results(function, arguments), combine)

    def _results(self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> Any:
        """Results in order, no more than a few ahead of what has been asked for."""
        waiting = zip(*arguments, strict=True)
        started: list[Future[Any]] = [self._pool.submit(function, *one) for one in islice(waiting, 2 * self._count)]
        try:
            while started:
                yield started.pop(0).result()
                started += [self._pool.submit(function, *one) for one in islice(waiting, 1)]
        finally:
            for task in started:
                task.cancel()

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        """The values themselves."""
        return list(handles)

    def results(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        """The results of some tasks of a Dask graph."""
        from dask.threaded import get

        return list(get(graph, keys)) if keys else []

    @cached_property
    def memory(self) -> float:
        """Memory that was free when it was first asked for."""
        return free_memory()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pool"}


class Cluster:
    """The workers of a Dask cluster. A handle is a future.

    Everything sent is part of a task that the scheduler knows how to repeat, so that a worker that dies takes nothing
    with it that cannot be made again.
    """

    def __init__(self, client: Any) -> None:
        if client.asynchronous:
            raise ClusterError(
                "the present Dask client is asynchronous: give one that waits, Client(asynchronous=False)"
            )
        self._client = client
        with self._explaining():
            _check_versions(client)

    def share(self, value: Any) -> Any:
        """A future of the value."""
        (shared,) = self._submitted(itself, [[value]])
        return shared

    def each(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Futures, in order."""
        return self._submitted(function, arguments)

    def _submitted(
        self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], priority: int = 0
    ) -> list[Any]:
        from dask import config as dask_config

        name = f"netbic-{function.__name__.strip('_')}-{uuid.uuid4().hex}"
        keys = [f"{name}-{label}" for label in _labels(arguments[0])]
        words = {"key": keys, "pure": False, "retries": _RETRIES, "priority": priority}
        # What is large is meant to be part of a task, since what is scattered is lost with its worker: no warnings.
        with self._explaining(), dask_config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return list(self._client.map(function, *arguments, **words))

    def total(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Sequence[Any]) -> Any:
        """Results combined on the workers, a few at a time and before further blocks are begun."""
        parts = self._submitted(function, arguments)
        while len(parts) > 1:
            groups = [parts[at : at + _FAN_IN] for at in range(0, len(parts), _FAN_IN)]
            parts = self._submitted(_combined, [[combine] * len(groups), groups], priority=1)
        return self.collect(parts)[0]

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for futures, with an eye on the cluster, and bring their values here."""
        try:
            self._wait(handles)
            return list(self._client.gather(handles))
        except Exception as problem:
            # The client keeps the exception of a failed task; with its traceback it would keep all that we hold.
            raise self._explained(problem.with_traceback(None)) from None
        except BaseException:
            self._client.cancel(handles)  # or workers would go on for nobody
            raise

    def _wait(self, handles: Sequence[Any]) -> None:
        """Until all are there, or one has failed, or there is nobody left to wait for."""
        from distributed import wait

        alone_since = None
        while True:
            try:
                wait(handles, timeout=_GLANCE)
                return
            except TimeoutError:
                if any(handle.status == "error" for handle in handles):
                    return
                if self._n_workers():
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                    _log.warning("the Dask cluster %s has no worker: waiting for one", self._address)
                if alone_since is not None and time.monotonic() - alone_since > PATIENCE:
                    raise ClusterError(
                        f"the Dask cluster {self._address} has had no worker for {PATIENCE:.0f} seconds: start some"
                    ) from None

    def _n_workers(self) -> int:
        if self._client.status not in ("running", "connecting"):
            raise ClusterError(f"the Dask cluster {self._address} is gone: start it again")
        return len(self._client.scheduler_info(n_workers=-1)["workers"])

    @property
    def _address(self) -> str:
        scheduler = self._client.scheduler
        return str(scheduler.address) if scheduler is not None else "(closed)"

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Say what goes wrong between here and the scheduler, where no task has a part in it."""
        try:
            yield
        except OSError as problem:
            raise self._lost(problem) from None
        except Exception as problem:
            raise self._explained(problem) from None

    def _explained(self, problem: Exception) -> Exception:
        """What happened to the cluster, where the problem is one of its, otherwise the like of the problem."""
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        if isinstance(problem, KilledWorker):
            return BlockError(
                f"{str(problem.task).rsplit('-', 1)[-1]}: every worker that took it died "
                f"({problem.allowed_failures + 1} tries), most likely for want of memory: make blocks smaller, "
                "or give workers more memory"
            )
        if isinstance(problem, (BlockError, ClusterError)):
            return type(problem)(str(problem))
        lost = (CancelledError, CommClosedError, ConnectionError, TimeoutError)
        if isinstance(problem, lost) or self._client.status != "running":
            return self._lost(problem)
        try:
            return copy.copy(problem)
        except Exception:  # some exceptions cannot be made again
            return RuntimeError(f"{type(problem).__name__}: {problem}")

    def _lost(self, problem: Exception) -> ClusterError:
        return ClusterError(
            f"the Dask cluster {self._address} went away, or dropped the work it was given "
            f"({type(problem).__name__}): start it again"
        )

    def results(self, graph: dict[Any, Any], keys: list[Any]) -> list[Any]:
        """The results of some tasks of a Dask graph."""
        try:
            return list(self._client.get(graph, keys)) if keys else []
        except Exception as problem:
            raise self._explained(problem) from None

    @property
    def n_threads(self) -> int:
        """Threads that all workers have now."""
        with self._explaining():
            return sum(map(int, self._client.nthreads().values()))

    def hold(self, blocks: Sequence[Any]) -> list[Any]:
        """Futures of Dask's delayed blocks, as for what is in the workers' memory already."""
        with self._explaining():
            return list(self._client.compute(list(blocks), retries=_RETRIES))

    @property
    def memory(self) -> float:
        """What the workers' limits add up to; for those without one, what their machines have free."""
        with self._explaining():
            return self._memory()

    def _memory(self) -> float:
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        limited = sum(worker["memory_limit"] or 0 for worker in workers.values())
        hosts = {worker["host"]: address for address, worker in workers.items() if not worker["memory_limit"]}
        free = self._client.run(free_memory, workers=list(hosts.values()), on_error="return") if hosts else {}
        return float(limited + sum(each for each in free.values() if isinstance(each, float)))


def free_memory() -> float:
    """Bytes that this machine could still use; 4 GB where that cannot be told."""
    try:
        import psutil  # comes with distributed
    except ImportError:
        return _available() or 4e9
    return float(psutil.virtual_memory().available)


def _available() -> float | None:
    """The same as Linux tells it: free pages, and what only keeps copies of files."""
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return None


def current_workers() -> Threads | Cluster:
    """The cluster of the present Dask client, if there is one; otherwise (and within a worker's task) threads."""
    try:
        from distributed import get_client, get_worker
    except ImportError:
        return Threads()
    with suppress(ValueError):
        get_worker()
        return Threads()  # a task that waited for other tasks would keep their place
    with suppress(ValueError):
        return Cluster(get_client())
    return Threads()


def packing_limit(workers: Workers) -> float:
    """Bytes of lines that may be kept packed side by side on the workers."""
    return _MEMORY_TAKEN * workers.memory


def version_here(name: str) -> str:
    """The version of a package in this process."""
    return version(name)


def _check_versions(client: Any) -> None:
    """Raise unless the workers have what they are about to need, in the versions used here."""
    for name in _COMPARED:
        here = version_here(name)
        for worker, there in client.run(version, name, on_error="return").items():
            missing = isinstance(there, PackageNotFoundError)
            if missing or (isinstance(there, str) and there != here):  # other exceptions: the worker is dying
                found = "does not have it" if missing else f"has {there}"
                raise ClusterError(
                    f"{name} is {here} here but worker {worker} {found}: use the same environment on all workers"
                )


def _labels(firsts: Sequence[Any]) -> list[str]:
    """Names of tasks: the blocks they are about, where the first arguments are such names."""
    if all(isinstance(first, str) for first in firsts):
        return [str(first) for first in firsts]
    return [f"part {number} of {len(firsts)}" for number in range(len(firsts))]


def itself(value: Any) -> Any:
    """A value as the result of a task."""
    return value


def bracketed(parts: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Parts combined as a cluster would: groups of a few, then groups of these, and so on; few are held at a time."""
    levels: list[list[Any]] = [[]]
    for part in parts:
        levels[0].append(part)
        for number, level in enumerate(levels):
            if len(level) < _FAN_IN:
                break
            if number + 1 == len(levels):
                levels.append([])
            levels[number + 1].append(_combined(combine, level))
            level.clear()
    rest: list[Any] = []
    for level in levels:
        group = level + rest
        rest = [_combined(combine, group)] if group else []
    return rest[0]


def _combined(combine: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total
