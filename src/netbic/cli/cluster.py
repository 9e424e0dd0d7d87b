"""The Dask cluster of a command: on this machine or elsewhere."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

_IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # also for restarted workers
_SECONDS = 10  # to wait for an answer of the scheduler


@contextmanager
def client_of(where: str | None, n_workers: int | None = None) -> Iterator[Client | None]:
    """A client of workers on this machine ("local") or of the scheduler at an address; None without `where`."""
    if where is None:
        yield None
        return
    from netbic.errors import import_optional

    distributed, dask = import_optional("distributed", "dask", "--dask"), import_optional("dask", "dask", "--dask")
    import_optional("dask.array", "dask", "--dask")
    if where != "local" and "://" not in where:
        raise click.UsageError(
            f"--dask {where} is not an address: use 'local' or a scheduler's address such as tcp://host:8786"
        )
    for name in [*logging.root.manager.loggerDict, "distributed", "asyncio", "tornado"]:
        if name.split(".")[0] in ("distributed", "asyncio", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # errors that matter are reported by this command
    warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
    with ExitStack() as closing:
        # A client that cannot connect, or that lost its cluster, does not reset Dask's configuration.
        closing.callback(dask.config.set, scheduler=dask.config.get("scheduler", None))
        address = closing.enter_context(_local(distributed, n_workers)) if where == "local" else where
        try:
            if isinstance(address, str):  # a client that cannot connect would otherwise stay the current one of Dask
                distributed.Client(address, timeout=_SECONDS, set_as_default=False).close()
            client = distributed.Client(address, timeout=_SECONDS)
        except ValueError as problem:  # an unknown scheme, no port
            what = " ".join(str(problem).split())
            raise click.UsageError(f"--dask {where}: {what}: use an address such as tcp://host:8786") from None
        except OSError as problem:
            raise click.ClickException(
                f"--dask {where}: no Dask scheduler answered within {_SECONDS} seconds ({type(problem).__name__}): "
                "start one (dask scheduler, and dask worker on every machine), or use --dask local for this machine"
            ) from None
        yield closing.enter_context(client)


def _local(distributed: Any, n_workers: int | None) -> LocalCluster:
    """Workers on this machine: processes with one thread each, so that none waits for another."""
    from joblib import effective_n_jobs

    count = effective_n_jobs(n_workers or -1)
    before = None
    if threading.current_thread() is threading.main_thread():
        # Processes started meanwhile ignore Ctrl-C: this process handles it, and they end with this process.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port, on this machine only: 8787 may be in use
            silence_logs=logging.CRITICAL + 1,
            preload=[_IGNORE_CTRL_C],
        )
    except (RuntimeError, OSError) as problem:  # a worker or its nanny died or did not answer; no port, no process
        what = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
        raise click.ClickException(
            f"--dask local: the {count} Dask workers could not be started ({what}), probably because there was not "
            "enough memory or they were killed: try again, or use fewer workers (--jobs)"
        ) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
