"""What a user waits for: fits, `netbic fit`, stability and the report, on this machine.

python benchmarks/waiting.py      (minutes; also a part of `make bench`; NETBIC_DATA adds tumours)

Fits of K modules take turns with TruncatedSVD(2 K), on one BLAS thread; each time is the fastest of several after a
warm-up. Sizes come from the data unless they are given.
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

GENES, SAMPLES = 200, 50
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


def fits(name, X, graph=None):
    """Times of fits relative to TruncatedSVD(2 K) for K modules."""
    settings = {"10 modules": (10, {}), "40 modules": (40, {})}
    if graph is not None:
        settings["40 modules, network"] = 40, {"column_graph": graph}
        settings[f"40 modules of {SAMPLES} x {GENES}, network, sequential"] = 40, {"column_graph": graph, **FIXED}
    rows = []
    for what, (n_modules, options) in settings.items():
        for data in (X, X.astype(np.float32)):
            model = SparseGraphSVD(n_modules, **options)
            runs = {
                "netbic": lambda model=model, data=data: model.fit(data),
                "svd": lambda data=data, n=n_modules: TruncatedSVD(2 * n, random_state=0).fit(data),
            }
            seconds = in_turn(runs)
            rows.append((name, what, str(data.dtype), seconds["netbic"] / seconds["svd"]))
    return pd.DataFrame(rows, columns=["data", "modules", "precision", "time / TruncatedSVD(2 K)"])


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
        tables = [fits("planted, 641 x 13,321", planted(), random_graph(13_321, 262_462))]
        if folder := os.environ.get("NETBIC_DATA"):
            tables.append(fits("colorectal tumours", *colorectal(Path(folder))))
        tables.append(fits("sparse, 50,000 x 5,000, 5% filled", cells(50_000, 5_000)[0]))
        yield "What one waits for: fits", f"Processor: {processor()}.", pd.concat(tables)
    with tempfile.TemporaryDirectory() as folder:
        yield "What one waits for: the command line, all cores", "", commands(Path(folder))


if __name__ == "__main__":
    for title, text, table in sections():
        print(f"\n{title}\n{text}", "" if table is None else f"\n{table.to_string(index=False)}", flush=True)
