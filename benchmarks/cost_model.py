"""A cost model of passes over blocks, with a few parameters that are estimated on some passes and tested on others.

    python benchmarks/cost_model.py [--folder DIR]

A task on a block takes `task` seconds, `read` seconds per byte loaded and `multiply` seconds per entry multiplied;
tasks are distributed over workers. Scheduling (`schedule` seconds per task) happens in client and scheduler and is not
distributed. The parameters are estimated with tiny blocks, and with one store and two matrices in memory with one
worker. Predicted and measured times for other sizes and for two workers are printed, each the fastest of several.
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
import scipy.sparse as sp
import zarr
from distributed import Client, LocalCluster

from netbic.operators import ChunkedOperator, RowBlocks, blocks

REPEATS, TINY, FILLED = 5, 400, 0.05
COLUMNS, BLOCK_ROWS = 10_000, 1_000
CLUSTER = {"threads_per_worker": 1, "dashboard_address": ":0"}


@dataclass
class Costs:
    """Seconds: per task and worker, per task in all, per byte loaded, per entry multiplied (dense, sparse)."""

    task: float
    schedule: float
    read: float
    dense: float
    sparse: float

    def of(self, n_blocks: int, nbytes: float, entries: float, n_workers: int, sparse: bool = False) -> float:
        """Seconds for one pass."""
        shared = n_blocks * self.task + nbytes * self.read + entries * (self.sparse if sparse else self.dense)
        return shared / n_workers + n_blocks * self.schedule


def store(folder: Path, n: int) -> da.Array:
    """A dense matrix of n rows on disk, written if it does not exist."""
    path = folder / f"dense-{n}.zarr"
    if not path.exists():
        X = zarr.create_array(path, shape=(n, COLUMNS), chunks=(BLOCK_ROWS, COLUMNS), dtype="float32", compressors=None)
        for first in range(0, n, BLOCK_ROWS):
            X[first : first + BLOCK_ROWS] = dense_block(first)
    return da.from_zarr(path)


def dense_block(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((BLOCK_ROWS, COLUMNS), dtype=np.float32)


def sparse_block(number: int) -> sp.csr_array:
    """A block with more rows, which takes about as many bytes as a dense one."""
    rng, height = np.random.default_rng(number), 10 * BLOCK_ROWS
    return sp.random_array((height, COLUMNS), density=FILLED, format="csr", dtype=np.float32, rng=rng)


def in_memory(make: Callable[[int], Any], count: int) -> da.Array:
    """Blocks in the workers' memory."""
    meta = sp.csr_array((0, 0), dtype=np.float32) if make is sparse_block else np.empty((0, 0), dtype=np.float32)
    height = make(0).shape[0]
    numbers = da.arange(count, chunks=1)
    made = numbers.map_blocks(
        lambda at: make(int(at[0])), chunks=((height,) * count, (COLUMNS,)), new_axis=1, meta=meta
    )
    return made.persist()


def fastest(work: Callable[[], Any]) -> float:
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def touched(block: Any) -> float:
    return float(block[0, 0])


def read(X: da.Array) -> float:
    """Seconds of a pass that only reads."""
    rows = RowBlocks(X)
    return fastest(lambda: rows.executor.gather(rows.map(touched)))


def multiplied(X: da.Array) -> float:
    """Seconds of X'(X v): two products in one pass."""
    operator = ChunkedOperator(RowBlocks(X))
    v = np.random.default_rng(1).standard_normal(X.shape[1])
    return fastest(lambda: operator.normal(v, lambda images: images))


def calibrate(folder: Path) -> Costs:
    """Estimated with tiny blocks, one store and two matrices in memory."""
    tiny = da.zeros((TINY, 10), chunks=(1, 10))
    with LocalCluster(n_workers=2, **CLUSTER) as cluster, Client(cluster):
        shared = read(tiny)
    with LocalCluster(n_workers=1, **CLUSTER) as cluster, Client(cluster):
        alone = read(tiny)
        X = store(folder, 10_000)
        raw = read(X)
        dense, sparse = multiplied(in_memory(dense_block, 10)), multiplied(in_memory(sparse_block, 6))
    task = max(2 * (alone - shared) / TINY, 0.0)
    overhead = alone / TINY
    return Costs(
        task,
        overhead - task,
        (raw - X.numblocks[0] * overhead) / X.nbytes,
        (dense - 10 * overhead) / (2 * 10 * BLOCK_ROWS * COLUMNS),
        (sparse - 6 * overhead) / (2 * 6 * 10 * BLOCK_ROWS * COLUMNS * FILLED),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder")
    options = parser.parse_args()
    blocks._HELD_SHARE = 0.0  # no block is kept in memory between passes
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        costs = calibrate(folder)
        print(
            f"task {1e3 * costs.task:.2f} ms, scheduled in {1e3 * costs.schedule:.2f} ms; "
            f"read {1e-9 / costs.read:.2f} GB/s, "
            f"multiply {1e-9 / costs.dense:.2f} (dense), {1e-9 / costs.sparse:.2f} (CSR) G entries/s"
        )
        print("| matrix | workers | pass | predicted s | measured s | ratio |\n| --- | --- | --- | --- | --- | --- |")
        for n_workers in (1, 2):
            with LocalCluster(n_workers=n_workers, **CLUSTER) as cluster, Client(cluster):
                check(folder, costs, n_workers)


def check(folder: Path, costs: Costs, n_workers: int) -> None:
    """Print predicted and measured times."""
    for n in (5_000, 20_000, 40_000):
        X, name = store(folder, n), f"{4e-9 * n * COLUMNS:.1f} GB dense on disk"
        print_row(name, n_workers, "read", costs.of(X.numblocks[0], X.nbytes, 0, n_workers), read(X))
        print_row(name, n_workers, "X'Xv", costs.of(X.numblocks[0], X.nbytes, 2 * X.size, n_workers), multiplied(X))
    for count in (5, 20):
        entries = count * BLOCK_ROWS * COLUMNS
        predicted = costs.of(count, 0, 2 * entries, n_workers)
        print_row(
            f"{4e-9 * entries:.1f} GB dense in memory",
            n_workers,
            "X'Xv",
            predicted,
            multiplied(in_memory(dense_block, count)),
        )
    for count in (4, 16):
        entries = count * 10 * BLOCK_ROWS * COLUMNS * FILLED
        predicted = costs.of(count, 0, 2 * entries, n_workers, sparse=True)
        print_row(
            f"{8e-9 * entries:.1f} GB CSR in memory",
            n_workers,
            "X'Xv",
            predicted,
            multiplied(in_memory(sparse_block, count)),
        )


def print_row(matrix: str, n_workers: int, name: str, predicted: float, measured: float) -> None:
    print(f"| {matrix} | {n_workers} | {name} | {predicted:.2f} | {measured:.2f} | {measured / predicted:.2f} |")


if __name__ == "__main__":
    main()
