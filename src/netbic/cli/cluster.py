"""The Dask cluster that a command is to use: on this machine or elsewhere."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import click

_LEAST_MEMORY = 400_000_000  # bytes: a worker takes about 200 MB before any data
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # for workers that are restarted later
_SECONDS = 10  # that a scheduler may take to answer

_OPTIONS = [
    click.option(
        "--dask",
        metavar="local|ADDRESS",
        help="Leave the matrix in its file and have Dask workers read it block by block: of this machine, or of the "
        "scheduler at an address such as tcp://host:8786. Needs .zarr (netbic convert), .h5ad, .npy or Parquet with "
        "--samples-in-rows.",
    ),
    click.option("--dask-workers", type=click.IntRange(1), help="Workers of --dask local [default: one per core]."),
    click.option(
        "--dask-memory", metavar="SIZE", help="Memory of each of them, e.g. 2GB [default: an equal share of all]."
    ),
    click.option("--block-rows", type=click.IntRange(1), help="Samples per block, with --dask [default: about 64 MB]."),
]


def runs_on_dask(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where blocks are read."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def lazily(words: dict[str, Any]) -> dict[str, Any]:
    """Take those options out of a command's, start or reach the cluster, and say how to open the data."""
    where, n_workers, memory, block_rows = (
        words.pop(name) for name in ("dask", "dask_workers", "dask_memory", "block_rows")
    )
    if where is None:
        for name, given in (("workers", n_workers), ("memory", memory)):
            if given is not None:
                raise click.UsageError(f"--dask-{name} is about --dask local: give that too")
        if block_rows is not None:
            raise click.UsageError("--block-rows is about --dask: give that too")
        return {}
    if words["auto"]:
        raise click.UsageError("--auto needs the matrix in memory: leave out --dask, or state the sizes")
    if words["missing"] != "error":
        raise click.UsageError("with --dask no value may be missing: fill them, or leave out --dask")
    click.get_current_context().with_resource(client_of(where, n_workers, memory))
    return {"lazy": True, "block_rows": block_rows}


@contextmanager
def client_of(where: str | None, n_workers: int | None = None, memory: str | None = None) -> Iterator[Any]:
    """A client of workers on this machine ("local") or of the scheduler at an address; None where none is asked for."""
    if where is None:
        yield None
        return
    from netbic.errors import extra

    distributed, dask = extra("distributed", "dask", "--dask"), extra("dask", "dask", "--dask")
    extra("dask.array", "dask", "--dask")
    for name in [*logging.root.manager.loggerDict, "distributed", "asyncio", "tornado"]:
        if name.split(".")[0] in ("distributed", "asyncio", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what matters we say ourselves
    warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
    with ExitStack() as closing:
        # A client that cannot be made, or whose cluster has gone, does not take back what it has set.
        closing.callback(dask.config.set, scheduler=dask.config.get("scheduler", None))
        if where == "local":
            address: Any = closing.enter_context(_local(distributed, n_workers, memory))
        else:
            _check_address(where, n_workers, memory)
            address = where
        yield closing.enter_context(_client(distributed, address))


def _local(distributed: Any, n_workers: int | None, memory: str | None) -> Any:
    """Workers of this machine: processes of one thread each, so that none waits for another."""
    from dask.system import CPU_COUNT
    from dask.utils import parse_bytes

    try:
        limit: Any = "auto" if memory is None else parse_bytes(memory)
    except ValueError:
        raise click.UsageError(f"--dask-memory {memory}: a size such as 2GB or 500MiB is needed") from None
    if limit != "auto" and limit < _LEAST_MEMORY:
        raise click.UsageError(f"--dask-memory {memory} is too little to start with: a worker needs 400MB at least")
    count = n_workers or CPU_COUNT
    try:
        with _deaf():
            return distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                memory_limit=limit,
                dashboard_address="127.0.0.1:0",  # any free port, for this machine alone: 8787 may be taken
                silence_logs=logging.CRITICAL + 1,
                preload=[_DEAF],
            )
    except (RuntimeError, OSError) as problem:  # a worker or its nanny died or never answered; no port, no process
        what = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
        raise click.ClickException(
            f"--dask local: the {count} Dask workers could not be started ({what}), most likely for want of memory or "
            "because they were killed: try again, or with fewer of them (--dask-workers)"
        ) from None


@contextmanager
def _deaf() -> Iterator[None]:
    """Have processes that are started meanwhile ignore Ctrl-C: it is for us, and they end with us."""
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
        raise click.UsageError(f"--dask {where}: 'local', or a scheduler's address such as tcp://host:8786, is needed")
    if n_workers is not None or memory is not None:
        raise click.UsageError("--dask-workers and --dask-memory are about --dask local: the cluster has its own")


def _client(distributed: Any, address: Any) -> Any:
    try:
        return distributed.Client(address, timeout=_SECONDS)
    except ValueError as problem:  # an unknown scheme, no port
        what = " ".join(str(problem).split())
        raise click.UsageError(f"--dask {address}: {what}: an address such as tcp://host:8786 is needed") from None
    except OSError as problem:
        raise click.ClickException(
            f"--dask {address}: no Dask scheduler answered within {_SECONDS} seconds ({type(problem).__name__}): start "
            "one (dask scheduler, and dask worker on every machine), or use --dask local for this machine"
        ) from None
