"""A large sparse matrix as CSR blocks on two workers, compared with the same matrix in memory.

    python benchmarks/sparse_blocks.py [rows] [columns] [share of non-zero entries]

20 blocks of counts with three planted modules (default 200,000 x 20,000, 3 % non-zero). Prints both times and the
largest difference between the vectors; supports must be identical.
"""

from __future__ import annotations

import sys
import time
from functools import partial

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

import netbic

N_BLOCKS, N_MODULES, ROWS, MEMBERS = 20, 3, 400, 150


def block(number: int, height: int, width: int, share: float) -> sp.csr_array:
    """Counts at random positions, and part of every module."""
    rng = np.random.default_rng([number, height])
    count = int(share * height * width)
    places = rng.integers(0, height, count), rng.integers(0, width, count)
    values = rng.poisson(1.0, count) + 1.0
    rows, columns, more = [places[0]], [places[1]], [values]
    for module in range(N_MODULES):
        members = np.arange(ROWS // N_BLOCKS) * 3 + module
        genes = np.arange(MEMBERS) + 2 * MEMBERS * module
        r, c = (grid.ravel() for grid in np.meshgrid(members, genes, indexing="ij"))
        rows, columns = [*rows, r], [*columns, c]
        more.append(rng.poisson(1.2 - 0.2 * module, r.size) * 1.0)
    made = sp.coo_array((np.concatenate(more), (np.concatenate(rows), np.concatenate(columns))), (height, width))
    return made.tocsr()


def timed(model: netbic.SparseGraphSVD, X: object) -> tuple[netbic.SparseGraphSVD, float]:
    begun = time.perf_counter()
    return model.fit(X), time.perf_counter() - begun


def main() -> None:
    n, p = (int(word) for word in (sys.argv[1:3] or (200_000, 20_000)))
    share = float(sys.argv[3]) if len(sys.argv) > 3 else 0.03
    make = partial(block, height=n // N_BLOCKS, width=p, share=share)
    model = netbic.SparseGraphSVD(N_MODULES, n_rows=ROWS, n_columns=MEMBERS)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "5GB", "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        shape = (n // N_BLOCKS, p)
        blocks = [da.from_delayed(dask.delayed(make)(number), shape, float) for number in range(N_BLOCKS)]
        blockwise, seconds_blockwise = timed(model, da.concatenate(blocks))
        left, right = blockwise.left_vectors_.copy(), blockwise.components_.copy()
        rows, columns, passes = blockwise.rows_, blockwise.columns_, blockwise.passes_
    X = sp.vstack([make(number) for number in range(N_BLOCKS)], format="csr")
    local, seconds_local = timed(model, X)
    print(f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} entries")
    print(f"supports identical: {np.array_equal(rows, local.rows_) and np.array_equal(columns, local.columns_)}")
    apart = max(np.abs(left - local.left_vectors_).max(), np.abs(right - local.components_).max())
    planted = [
        local.columns_[k, 2 * MEMBERS * k : 2 * MEMBERS * k + MEMBERS].mean() for k in range(local.n_components_)
    ]
    print(f"largest difference between vectors {apart:.1e}; planted columns found: {np.round(planted, 3)}")
    print(f"in blocks {seconds_blockwise:.1f} s ({passes:.1f} passes), in memory {seconds_local:.1f} s")


if __name__ == "__main__":
    main()
