"""A matrix larger than the workers' memory: a fit of five modules, compared with the same number of raw passes.

    python benchmarks/out_of_core.py [GB] [--folder DIR] [--compressed] [--workers 2] [--memory 1GB]

Writes a dense float32 matrix of that size (default 8 GB) with 20,000 columns and five planted modules as zarr, fits
five modules with workers limited to `--memory` each, and prints the number of passes, the time, and the time of the
same number of passes that only read. Raw passes are timed before and after the fit; the fastest one is used.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster

import netbic
from netbic.operators.blocks import RowBlocks

COLUMNS, BLOCK_ROWS = 20_000, 1_000
N_MODULES, ROWS, MEMBERS, STRENGTH = 5, 500, 200, 1.0


def planted(n: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of one module; modules do not share any."""
    rng = np.random.default_rng([1, number])
    rows = np.sort(rng.choice(n // N_MODULES, ROWS, replace=False)) * N_MODULES + number
    return rows, np.arange(MEMBERS) + number * MEMBERS


def write(path: Path, n: int, compressed: bool) -> None:
    """Write noise and modules of decreasing strength, a block at a time."""
    compressors = {} if compressed else {"compressors": None}
    shape, chunks = (n, COLUMNS), (BLOCK_ROWS, COLUMNS)
    store = zarr.create_array(path, shape=shape, chunks=chunks, dtype="float32", **compressors)
    modules = [planted(n, number) for number in range(N_MODULES)]
    for first in range(0, n, BLOCK_ROWS):
        block = np.random.default_rng([0, first]).standard_normal((min(BLOCK_ROWS, n - first), COLUMNS), "float32")
        for number, (rows, columns) in enumerate(modules):
            here = rows[(rows >= first) & (rows < first + len(block))] - first
            block[here[:, None], columns] += STRENGTH * 0.93**number
        store[first : first + len(block)] = block


def read_only(block: np.ndarray) -> float:
    """Load a block and do nothing else."""
    return float(block[0, 0])


def raw_pass(X: da.Array) -> float:
    """Seconds for one pass that only reads."""
    blocks = RowBlocks(X)
    begun = time.perf_counter()
    blocks.executor.gather(blocks.map(read_only))
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("gigabytes", nargs="?", type=float, default=8.0)
    parser.add_argument("--folder")
    parser.add_argument("--compressed", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB")
    options = parser.parse_args()
    n = int(options.gigabytes * 1e9 / 4 / COLUMNS)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(options.folder or temporary) / f"planted-{n}{'-compressed' if options.compressed else ''}.zarr"
        if not path.exists():
            write(path, n, options.compressed)
        keywords = {"n_workers": options.workers, "threads_per_worker": 1, "memory_limit": options.memory}
        with LocalCluster(dashboard_address=":0", **keywords) as cluster, Client(cluster) as client:
            compare(da.from_zarr(path), client)


def compare(X: da.Array, client: Client) -> None:
    """Time a fit, and raw passes before and after it."""
    pids_before = sorted(info["pid"] for info in client.run(lambda: {"pid": __import__("os").getpid()}).values())
    raw = [raw_pass(X) for _ in range(3)]
    begun = time.perf_counter()
    model = netbic.SparseGraphSVD(N_MODULES, n_rows=ROWS, n_columns=MEMBERS, verbose=1).fit(X)
    taken = time.perf_counter() - begun
    raw += [raw_pass(X) for _ in range(3)]
    pids_after = sorted(info["pid"] for info in client.run(lambda: {"pid": __import__("os").getpid()}).values())
    found = [np.mean(model.columns_[number][planted(X.shape[0], number)[1]]) for number in range(model.n_components_)]
    print(f"shape {X.shape}, {X.nbytes / 1e9:.1f} GB, {X.numblocks[0]} blocks; dask {dask.__version__}")
    print(f"planted columns found per module: {np.round(found, 3)}; converged: {model.converged_}")
    print(f"fit: {taken:.1f} s, {model.passes_:.1f} passes; raw pass: {min(raw):.2f} s ({np.round(raw, 2)})")
    print(f"fit / the same number of raw passes: {taken / (model.passes_ * min(raw)):.2f}")
    print(f"workers restarted: {pids_before != pids_after}")


if __name__ == "__main__":
    main()
