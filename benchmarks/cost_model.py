"""What a pass over blocks costs: a model with three numbers, measured on small passes and checked on larger ones.

    python benchmarks/cost_model.py [--folder DIR]

A visit of a block takes `task` seconds, `read` seconds per byte loaded and `multiply` seconds per entry multiplied, and
visits are shared out among workers. Handing out tasks (`hand_out` seconds each) is work of client and scheduler, and is
not. The four numbers come from tiny blocks and from one store read by one worker; what they predict for other sizes
and for two workers is printed beside what is measured, each the fastest of several.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster

from netbic.operators import ChunkedOperator, RowBlocks, blocks

REPEATS = 5
COLUMNS, BLOCK_ROWS = 10_000, 1_000


@dataclass
class Costs:
    """Seconds: per task and worker, per task in all, per byte loaded, per entry multiplied."""

    task: float
    hand_out: float
    read: float
    multiply: float

    def of(self, n_blocks: int, nbytes: float, entries: float, n_workers: int, products: int) -> float:
        """Seconds for one pass."""
        shared = n_blocks * self.task + nbytes * self.read + products * entries * self.multiply
        return shared / n_workers + n_blocks * self.hand_out


def store(folder: Path, n: int) -> Path:
    """A dense matrix of n rows, written if it is not there."""
    path = folder / f"dense-{n}.zarr"
    if not path.exists():
        X = zarr.create_array(path, shape=(n, COLUMNS), chunks=(BLOCK_ROWS, COLUMNS), dtype="float32", compressors=None)
        noise = np.random.default_rng(0).standard_normal((BLOCK_ROWS, COLUMNS), dtype=np.float32)
        for first in range(0, n, BLOCK_ROWS):
            X[first : first + BLOCK_ROWS] = np.roll(noise, first // BLOCK_ROWS, axis=1)
    return path


def fastest(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def touched(block: Any) -> float:
    return float(block[0, 0])


def passes(X: da.Array) -> tuple[float, float, float]:
    """Seconds of a pass that only reads, of X v and of X'(X v)."""
    rows = RowBlocks(X)
    operator = ChunkedOperator(rows)
    v, offsets = np.random.default_rng(1).standard_normal(X.shape[1]), np.zeros(X.shape[0])
    every = np.arange(X.shape[1])
    return (
        fastest(lambda: rows.workers.collect(rows.each(touched))),
        fastest(lambda: operator.matvec(every, v)),
        fastest(lambda: operator.normal(v, offsets)),
    )


def calibrated(folder: Path) -> Costs:
    """From tiny blocks and from one store, with one worker."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        tiny = da.zeros((400, 10), chunks=(1, 10))
        empty, *_ = passes(tiny)
        X = da.from_zarr(store(folder, 10_000))
        raw, _, twice = passes(X)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        shared, *_ = passes(tiny)
    task = max(2 * (empty - shared) / 400, 0.0)
    hand_out = empty / 400 - task
    read = (raw - X.numblocks[0] * empty / 400) / X.nbytes
    return Costs(task, hand_out, read, max(twice - raw, 1e-9) / 2 / X.size)


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--folder")
    asked = words.parse_args()
    blocks._HELD_SHARE = 0.0  # everything is read from disk
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.folder or temporary)
        costs = calibrated(folder)
        print(f"task {1e3 * costs.task:.2f} ms, handed out in {1e3 * costs.hand_out:.2f} ms")
        print(f"read {1e-9 / costs.read:.2f} GB/s, multiply {1e-9 / costs.multiply:.2f} G entries/s")
        print("| store | workers | pass | predicted s | measured s | ratio |\n| --- | --- | --- | --- | --- | --- |")
        for n_workers in (1, 2):
            words_of = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
            with LocalCluster(**words_of) as cluster, Client(cluster):
                for n in (5_000, 20_000, 40_000):
                    X = da.from_zarr(store(folder, n))
                    for products, (name, measured) in enumerate(zip(("read", "Xv", "X'Xv"), passes(X), strict=True)):
                        line(
                            f"{X.nbytes / 1e9:.1f} GB dense",
                            n_workers,
                            name,
                            costs.of(X.numblocks[0], X.nbytes, X.size, n_workers, products),
                            measured,
                        )


def line(what: str, n_workers: int, name: str, predicted: float, measured: float) -> None:
    print(f"| {what} | {n_workers} | {name} | {predicted:.2f} | {measured:.2f} | {measured / predicted:.2f} |")


if __name__ == "__main__":
    main()
