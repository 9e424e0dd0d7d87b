"""The Dask cluster that a command is to use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

_SECONDS = 10  # that a scheduler may take to answer


@contextmanager
def client_of(word: str | None) -> Iterator[Any]:
    """A client of workers on this machine ("local") or of the scheduler at an address; None where none is asked for."""
    if word is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        raise click.ClickException("--dask needs Dask: pip install 'netbic[dask]'") from None
    if word == "local":
        words = {"processes": True, "threads_per_worker": 1, "silence_logs": "ERROR", "dashboard_address": ":0"}
        with distributed.LocalCluster(**words) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    with _connected(distributed, word) as client:
        yield client


def _connected(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=_SECONDS)
    except (OSError, ValueError) as problem:
        raise click.ClickException(
            f"--dask {address}: no Dask scheduler answered within {_SECONDS} seconds ({type(problem).__name__}): give "
            "its address, e.g. tcp://10.0.0.1:8786, or --dask local for this machine"
        ) from None
