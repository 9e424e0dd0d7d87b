"""What a user waits for: fits, `netbic fit`, stability and the report, on this machine.

python benchmarks/waiting.py      (minutes; also a part of `make bench`; NETBIC_DATA adds tumours)

Fits take turns with TruncatedSVD(40), on one BLAS thread; each time is the fastest of several after a warm-up. The
limit is the time in which the memory can deliver the bytes that a fit has to read at least: X once for the Gram matrix,
and for every module the rows and columns of its support twice, for the start and for the last iteration.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

import netbic
from netbic import SparseGraphSVD
from problems import cells, colorectal, planted, random_graph

N_MODULES, GENES, SAMPLES = 40, 200, 50
DEFAULTS = {"n_columns": GENES}
FIXED = {
    "n_rows": SAMPLES,
    "n_columns": GENES,
    "graph_term": "normalized",
    "smoothness_scale": "relative",
    "column_smoothness": 0.2,
    "deflation": "hotelling",
}


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_turn(runs, times=3):
    """Seconds of the fastest of several runs each, taking turns after a warm-up; warnings do not matter here."""
    seconds = dict.fromkeys(runs, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(times + 1):
            for name, run in runs.items():
                taken = seconds_of(run)
                seconds[name] = min(seconds[name], taken if turn else np.inf)
    return seconds


def bandwidth():
    """Bytes per second that a copy of a large array reads and writes."""
    source = np.ones(1 << 25)
    target = np.empty_like(source)
    return 2 * source.nbytes / min(seconds_of(lambda: np.copyto(target, source)) for _ in range(5))


def least_bytes(X, kept_rows):
    """Bytes that a fit has to read at least."""
    n, p = X.shape
    return X.itemsize * (n * p + N_MODULES * 2 * (kept_rows * p + GENES * n))


def fits(name, X, graph, rate):
    """Times of fits relative to TruncatedSVD(40), and to the limit of the memory."""
    single = X.astype(np.float32)
    kept = {"all samples kept (default)": (DEFAULTS, len(X)), f"{SAMPLES} samples kept": (FIXED, SAMPLES)}
    rows = []
    for sizes, (settings, rows_kept) in kept.items():
        for data in (X, single):
            model = SparseGraphSVD(N_MODULES, column_graph=graph, **settings)
            runs = {
                "netbic": lambda model=model, data=data: model.fit(data),
                "svd": lambda data=data: TruncatedSVD(N_MODULES, random_state=0).fit(data),
            }
            seconds = in_turn(runs)
            limit = least_bytes(data, rows_kept) / rate
            rows.append((name, sizes, str(data.dtype), seconds["netbic"] / seconds["svd"], seconds["netbic"] / limit))
    return pd.DataFrame(rows, columns=["data", "sizes", "precision", "time / TruncatedSVD(40)", "time / limit"])


def sparse_fit():
    """The time of ten modules of a sparse matrix, in units of a pass: one product with X and one with its transpose."""
    X, _ = cells(modules=0)
    v = np.ones(X.shape[1])
    one = min(seconds_of(lambda: X.T @ (X @ v)) for _ in range(3))
    fit = seconds_of(lambda: SparseGraphSVD(10, n_rows=500, n_columns=GENES).fit(X))
    return (
        f"Ten modules of noise, {X.shape[0]:,} x {X.shape[1]:,} and 5% filled, take as long as {fit / one:.0f} passes."
    )


def commands(folder):
    """Seconds of the command line with all cores."""
    cohort = netbic.simulate.cohort(random_state=0)
    study = {"expression": folder / "expression.parquet", "network": folder / "network.parquet"}
    cohort.expression.T.rename_axis("gene").to_parquet(study["expression"])
    genes = np.array(cohort.expression.columns, dtype=object)
    tails, heads, _ = cohort.network.edges()
    pd.DataFrame({"source": genes[tails], "target": genes[heads]}).to_parquet(study["network"])
    studies = {"simulated cohort, 400 x 3,000": tuple(study.values())}
    if data := os.environ.get("NETBIC_DATA"):
        tumours = {
            "breast tumours (Agilent) with BioGRID": ("expr_tcga_brca_agilent2012", "network_biogrid_3.4.133"),
            "colorectal tumours with Pathway Commons": ("expr_tcga_coadread_rnaseq", "network_pathway_commons_v7"),
        }
        studies |= {name: tuple(Path(data) / f"{file}.parquet" for file in files) for name, files in tumours.items()}
    rows = []
    for name, (expression, network) in studies.items():
        for what, options in {
            "modules, verdicts, report": [],
            "the same without a report": ["--no-report"],
        }.items():
            command = ["fit", expression, "--graph", network, *options, "--quiet", "--force", "--out", folder / "out"]
            rows.append((name, f"netbic fit: {what}", seconds_of(lambda command=command: run_netbic(command))))
    model = SparseGraphSVD(5, n_columns=60, column_graph=cohort.network)
    stable = seconds_of(lambda: netbic.selection.stability(model, cohort.expression, random_state=0))
    rows.append((next(iter(studies)), "selection.stability, 50 pairs of halves", stable))
    return pd.DataFrame(rows, columns=["data", "what", "seconds"])


def run_netbic(arguments):
    subprocess.run([sys.executable, "-m", "netbic", *map(str, arguments)], check=True, capture_output=True)


def processor():
    """The name of the processor, where the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def sections():
    """Title and contents of every section."""
    with threadpool_limits(1, user_api="blas"):
        rate = bandwidth()
        tables = [fits("planted, 641 x 13,321", planted(), random_graph(13_321, 262_462), rate)]
        if folder := os.environ.get("NETBIC_DATA"):
            tables.append(fits("colorectal tumours", *colorectal(Path(folder)), rate))
        about = f"Processor: {processor()}; a copy reads and writes {rate / 1e9:.0f} GB/s."
        yield f"What one waits for: {N_MODULES} modules of {GENES} genes with a network", about, pd.concat(tables)
        yield "What one waits for: sparse data", sparse_fit(), None
    with tempfile.TemporaryDirectory() as folder:
        yield "What one waits for: the command line, all cores", "", commands(Path(folder))


if __name__ == "__main__":
    for title, text, table in sections():
        print(f"\n{title}\n{text}", "" if table is None else f"\n{table.to_string(index=False)}", flush=True)
