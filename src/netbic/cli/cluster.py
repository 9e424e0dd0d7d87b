"""The Dask cluster of a command: on this machine or elsewhere."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

_LEAST_MEMORY = 400_000_000  # bytes: a worker takes about 200 MB before any data
_IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # also for restarted workers
_SECONDS = 10  # to wait for an answer of the scheduler


def read_in_blocks(
    dask: str | None, workers: int | None, memory: str | None, block_rows: int | None, *, auto: bool, missing: str
) -> dict[str, Any]:
    """Start or reach the cluster of a command, until its end; how to open the data."""
    if dask is None:
        for option, value in (("workers", workers), ("memory", memory)):
            if value is not None:
                raise click.UsageError(f"--dask-{option} needs --dask local")
        if block_rows is not None:
            raise click.UsageError("--block-rows needs --dask")
        return {}
    if auto:
        raise click.UsageError("--auto needs the matrix in memory: omit --dask, or give --genes and --samples")
    if missing != "error":
        raise click.UsageError("--dask does not support missing entries: fill them, or omit --dask")
    click.get_current_context().with_resource(client_of(dask, workers, memory))
    return {"lazy": True, "block_rows": block_rows}


@contextmanager
def client_of(where: str | None, n_workers: int | None = None, memory: str | None = None) -> Iterator[Client | None]:
    """A client of workers on this machine ("local") or of the scheduler at an address; None without `where`."""
    if where is None:
        yield None
        return
    from netbic.errors import import_optional

    distributed, dask = import_optional("distributed", "dask", "--dask"), import_optional("dask", "dask", "--dask")
    import_optional("dask.array", "dask", "--dask")
    for name in [*logging.root.manager.loggerDict, "distributed", "asyncio", "tornado"]:
        if name.split(".")[0] in ("distributed", "asyncio", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # errors that matter are reported by this command
    warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
    with ExitStack() as closing:
        # A client that cannot connect, or that lost its cluster, does not reset Dask's configuration.
        closing.callback(dask.config.set, scheduler=dask.config.get("scheduler", None))
        if where == "local":
            address: LocalCluster | str = closing.enter_context(_local(distributed, n_workers, memory))
        else:
            _check_address(where, n_workers, memory)
            address = where
        yield closing.enter_context(_client(distributed, address))


def _local(distributed: ModuleType, n_workers: int | None, memory: str | None) -> LocalCluster:
    """Workers on this machine: processes with one thread each, so that none waits for another."""
    from dask.system import CPU_COUNT
    from dask.utils import parse_bytes

    try:
        limit: str | int = "auto" if memory is None else parse_bytes(memory)
    except ValueError:
        raise click.UsageError(f"--dask-memory {memory} is not a size: use e.g. 2GB or 500MiB") from None
    if isinstance(limit, int) and limit < _LEAST_MEMORY:
        raise click.UsageError(f"--dask-memory {memory} is too small: a worker needs at least 400MB")
    count = n_workers or CPU_COUNT
    try:
        with _ignoring_ctrl_c():
            return distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                memory_limit=limit,
                dashboard_address="127.0.0.1:0",  # any free port, on this machine only: 8787 may be in use
                silence_logs=logging.CRITICAL + 1,
                preload=[_IGNORE_CTRL_C],
            )
    except (RuntimeError, OSError) as problem:  # a worker or its nanny died or did not answer; no port, no process
        what = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
        raise click.ClickException(
            f"--dask local: the {count} Dask workers could not be started ({what}), probably because there was not "
            "enough memory or they were killed: try again, or use fewer workers (--dask-workers)"
        ) from None


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """Let processes started meanwhile ignore Ctrl-C: this process handles it, and they end with this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_address(where: str, n_workers: int | None, memory: str | None) -> None:
    if "://" not in where:
        raise click.UsageError(
            f"--dask {where} is not an address: use 'local' or a scheduler's address such as tcp://host:8786"
        )
    if n_workers is not None or memory is not None:
        raise click.UsageError("--dask-workers and --dask-memory are for --dask local only: omit them")


def _client(distributed: ModuleType, address: LocalCluster | str) -> Client:
    try:
        if isinstance(address, str):  # a client that cannot connect would otherwise stay the current one of Dask
            distributed.Client(address, timeout=_SECONDS, set_as_default=False).close()
        return distributed.Client(address, timeout=_SECONDS)
    except ValueError as problem:  # an unknown scheme, no port
        what = " ".join(str(problem).split())
        raise click.UsageError(f"--dask {address}: {what}: use an address such as tcp://host:8786") from None
    except OSError as problem:
        raise click.ClickException(
            f"--dask {address}: no Dask scheduler answered within {_SECONDS} seconds ({type(problem).__name__}): start "
            "one (dask scheduler, and dask worker on every machine), or use --dask local for this machine"
        ) from None
