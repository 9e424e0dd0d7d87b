"""How time and memory grow with the number of cells: measured, and extrapolated to ten million.

    python benchmarks/growth.py [cells ...]      (default: 10,000, 100,000 and 1,000,000; half an hour, 16 GB)

5,000 genes, 8 % filled, ten planted modules: sparse in memory, and from a Zarr store that two workers of a Dask cluster
read in blocks. Every number of cells is measured in a process of its own. Prints the table of docs/large-data.md.
"""

import ctypes
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import anndata
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

import netbic

N_GENES, FILLED, N_MODULES, MEMBERS, SHARE, BLOCK = 5_000, 0.08, 10, 100, 0.05, 10_000
EXTRAPOLATED = 10_000_000
SVD, MATRIX, CLUSTER = f"TruncatedSVD({2 * N_MODULES})", "the matrix", "two workers of a cluster"
JUDGED, MOST_JUDGED = "`tl.verdicts`", 200_000  # cells: beyond, they need more memory than most machines have


def block(number, n_cells=BLOCK):
    """Some cells: a gene of a module is twice as high in its cells, and seen more often."""
    rng = np.random.default_rng([0, number])
    places = np.cumsum(rng.geometric(FILLED, int(n_cells * N_GENES * FILLED * 1.02)), dtype=np.int64) - 1
    places = places[places < n_cells * N_GENES]
    rows, columns = np.divmod(places, N_GENES)
    values = rng.lognormal(0, 0.5, places.size).astype(np.float32)
    module = np.where(columns < N_MODULES * MEMBERS, columns // MEMBERS, -1)
    active = rng.random((n_cells, N_MODULES + 1)) < SHARE
    active[:, -1] = False
    values[active[rows, module]] *= 2
    cells, modules = np.nonzero(active[:, :-1])
    genes = rng.integers(0, MEMBERS, (cells.size, MEMBERS // 3)) + modules[:, None] * MEMBERS
    more = np.repeat(cells, genes.shape[1]), genes.ravel()
    extra = sp.coo_array((np.ones(genes.size, np.float32), more), (n_cells, N_GENES))
    return (sp.coo_array((values, (rows, columns)), (n_cells, N_GENES)).tocsr() + extra.tocsr()).astype(np.float32)


def tasks(adata):
    """What is measured in memory, by name; verdicts are those of the fit before."""

    def fit(scale):
        return lambda: netbic.tl.modules(adata, n_modules=N_MODULES, scale=scale, random_state=0)

    return {
        SVD: lambda: TruncatedSVD(2 * N_MODULES, random_state=0).fit(adata.X),
        "`tl.modules`, `scale=False`": fit(False),
        "`tl.modules`, `scale=True`": fit(True),
        "`tl.modules`": fit(None),
        JUDGED: lambda: netbic.tl.verdicts(adata, random_state=0, n_jobs=1),
    }


def peak():
    """The most memory since the last `forget_peak`, in GB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1e6


def forget_peak():
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measured(n):
    """Process seconds of every task, the least of three runs (with many cells, of one), and GB beyond its start."""
    adata = anndata.AnnData(sp.vstack([sp.csr_matrix(block(k)) for k in range(n // BLOCK)], format="csr"))
    X = adata.X
    found = {MATRIX: (0.0, (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e9)}
    with threadpool_limits(1, user_api="blas"):
        for name, task in tasks(adata).items():
            if n > MOST_JUDGED and name == JUDGED:
                continue
            seconds, gigabytes = [], []
            for _ in range(3 if n <= 100_000 else 1):
                forget_peak()
                before, begun = peak(), time.process_time()
                task()
                seconds.append(time.process_time() - begun)
                gigabytes.append(peak() - before)
            found[name] = min(seconds), max(gigabytes)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "cells.zarr"
        adata.write_zarr(store)
        names = [np.flatnonzero(line) for line in fitted(X).columns_]
        begun = time.perf_counter()
        blocks = fitted(netbic.io.open_expression(store).matrix, cluster=True)
        found[CLUSTER] = (time.perf_counter() - begun, 0.0)
        same = all(np.array_equal(np.flatnonzero(line), own) for line, own in zip(blocks.columns_, names, strict=True))
    return found | {"same": same, "passes": blocks.passes_}


def fitted(X, *, cluster=False):
    """A fit, of a Dask array on two workers."""
    model = netbic.SparseGraphSVD(N_MODULES, scale=True, random_state=0)
    if not cluster:
        return model.fit(X)
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "4GB", "dashboard_address": ":0"}
    with LocalCluster(**options) as local, Client(local):
        return model.fit(X)


def main():
    sizes = [int(word) for word in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    found = {}
    for n in sizes:
        command = [sys.executable, __file__, "--measure", str(n)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found[n] = json.loads(printed.splitlines()[-1])
        print(f"{n:,} cells: {found[n]}", file=sys.stderr, flush=True)
    print(*table(found), sep="\n")


def table(found):
    """Lines of a table in Markdown; the last column continues the line through the two largest numbers of cells."""
    names = [name for name in found[min(found)] if name not in ("same", "passes")]
    yield "| cells | " + " | ".join([f"{n:,}" for n in found] + [f"*{EXTRAPOLATED:,}*"]) + " |"
    yield "| --- |" + " ---: |" * (len(found) + 1)
    for name in names:
        small, large = sorted(n for n in found if name in found[n])[-2:]
        pairs = np.array([found[small][name], found[large][name]])
        grown = pairs[1] + (pairs[1] - pairs[0]) * (EXTRAPOLATED - large) / (large - small)
        row = [written(*found[n][name]) if name in found[n] else "" for n in found] + [f"*{written(*grown)}*"]
        yield f"| {name} | " + " | ".join(row) + " |"
    same, passes = ({n: each[what] for n, each in found.items()} for what in ("same", "passes"))
    yield f"\nThe same modules in blocks as in memory: {same}; passes: {passes}"


def written(seconds, gigabytes):
    parts = {f"{seconds:,.3g} s": seconds, f"{gigabytes:,.2g} GB": gigabytes}
    return " / ".join(text for text, number in parts.items() if number > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        with warnings.catch_warnings(action="ignore"):
            print(json.dumps(measured(int(sys.argv[2]))))
    else:
        main()
