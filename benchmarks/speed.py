"""netbic compared with other methods in one run, as ratios of times: absolute times depend on the machine.

make bench      (minutes; writes docs/benchmarks.md and docs/images/benchmarks.png)

Every time is the fastest of several runs on one BLAS thread, after a warm-up. Memory is the peak measured by
tracemalloc during a fit, without the matrix itself.
"""

import os
import shutil
import subprocess
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import FixedLocator, NullLocator
from sklearn.cluster import SpectralBiclustering
from sklearn.decomposition import MiniBatchSparsePCA, TruncatedSVD
from threadpoolctl import threadpool_limits

import waiting
from netbic import L0, SparseGraphSVD
from netbic.operators.dense import DenseOperator
from netbic.operators.sparse import SparseOperator
from netbic.simulate import recovery
from netbic.solver.half_step import Side, Vector, rounds
from problems import cells, colorectal, literal_algorithm_2, planted, random_graph

DOCS = Path(__file__).parents[1] / "docs"
SETTINGS = {"n_rows": 50, "n_columns": 200, "graph_term": "adjacency", "smoothness_scale": "relative"}


def fastest(run, times=4):
    """Seconds of the fastest run, and its result."""
    best, result = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def in_turn(runs):
    """Seconds of the fastest run of each, in turn, so that other load on the machine affects all alike."""
    seconds = dict.fromkeys(runs, np.inf)
    for turn in range(max(times for _, times in runs.values())):
        for name, (run, times) in runs.items():
            if turn < times:
                seconds[name] = min(seconds[name], fastest(run, 1)[0])
    return seconds


def peak(run):
    """Peak of the bytes allocated during a run."""
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def against_peers(X, graph, literal_modules=2):
    """Times relative to TruncatedSVD(40, randomized), a row per method."""
    sigma = 0.2 * np.linalg.norm(X - X.mean(axis=0), 2) / graph.term("adjacency").scale
    runs = {
        "netbic, 40 modules": (lambda: SparseGraphSVD(40, column_graph=graph, **SETTINGS).fit(X), 8),
        "TruncatedSVD(40, randomized)": (lambda: TruncatedSVD(40, random_state=0).fit(X), 8),
        "TruncatedSVD(40, arpack)": (lambda: TruncatedSVD(40, algorithm="arpack").fit(X), 1),
        "SpectralBiclustering(40)": (lambda: SpectralBiclustering(40, random_state=0).fit(X - X.min() + 1), 1),
        "MiniBatchSparsePCA(2), 20 iterations": (lambda: MiniBatchSparsePCA(2, max_iter=20, random_state=0).fit(X), 1),
        "Algorithm 2 as printed": (lambda: literal_algorithm_2(X, graph.weights, literal_modules, 50, 200, sigma), 1),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = in_turn(runs)
    seconds["Algorithm 2 as printed"] *= 40 / literal_modules
    table = pd.DataFrame({"method": seconds.keys(), "seconds": seconds.values()})
    table["time / TruncatedSVD"] = table["seconds"] / seconds["TruncatedSVD(40, randomized)"]
    return table.drop(columns="seconds")


def precision_and_memory(X, graph):
    """Time and memory in single and double precision, with and without `low_memory`."""
    single = X.astype(np.float32)
    runs = {
        "float64": (X, {}),
        "float32": (single, {}),
        "float64, low_memory": (X, {"low_memory": True}),
        "float32, low_memory": (single, {"low_memory": True}),
    }
    models = {name: SparseGraphSVD(40, column_graph=graph, **SETTINGS, **mode) for name, (_, mode) in runs.items()}
    fits = {name: (lambda name=name: models[name].fit(runs[name][0])) for name in runs}
    seconds = in_turn({name: (fit, 20) for name, fit in fits.items()})
    rows = [(name, peak(fits[name]) / runs[name][0].nbytes, seconds[name] / seconds["float64"]) for name in runs]
    table = pd.DataFrame(rows, columns=["mode", "peak beyond X / X", "time / float64"])
    same = [np.array_equal(models[name].columns_, models["float64"].columns_) for name in table["mode"]]
    table["same supports"] = same
    return table


class CountingOperator(SparseOperator):
    """Counts passes: X v and X'u with full vectors, one or several; a subset of rows or columns counts as its share."""

    passes = 0.0

    def matvec(self, support, values):
        self._count(support.size / self.shape[1])
        return super().matvec(support, values)

    def rmatvec(self, support, values):
        self._count(support.size / self.shape[0])
        return super().rmatvec(support, values)

    def normal(self, *given):
        CountingOperator.passes += 1.0
        return super().normal(*given)

    def _count(self, share):
        CountingOperator.passes += 0.5 * (share if share < 0.3 else 1.0)


def sparse_passes():
    """Passes, memory and recovery on a large sparse matrix."""
    X, truth = cells()
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    model = SparseGraphSVD(10, n_rows=500, n_columns=200)
    with mock.patch("netbic.estimators.inputs.as_operator", lambda X, low_memory=False: CountingOperator(X)):
        most = peak(lambda: model.fit(X))
    found = recovery(model.columns_, truth)["f1"]
    return {
        "shape": f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / np.prod(X.shape):.1%} filled",
        "passes (products)": round(CountingOperator.passes, 1),
        "peak memory beyond X / X": round(most / size, 2),
        "planted modules found (F1 > 0.9)": f"{int((found > 0.9).sum())} of {len(found)}",
    }


def restarts(X, graph):
    """The time of 64 starts relative to 16."""
    times = []
    for n_init in (16, 64):
        model = SparseGraphSVD(2, column_graph=graph, n_init=n_init, random_state=0, **SETTINGS)
        times.append(fastest(lambda model=model: model.fit(X), 2)[0])
    return times[1] / times[0]


def _time_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cost_per_iteration():
    """Seconds per iteration and n k_v + p k_u, for different sizes and supports."""
    points = []
    for n, p, k_u, k_v in (
        (500, 4_000, 20, 50), (500, 4_000, 60, 200), (500, 4_000, 150, 800), (1_000, 8_000, 40, 100),
        (1_000, 8_000, 120, 400), (1_000, 8_000, 300, 1_600), (2_000, 16_000, 80, 200), (2_000, 16_000, 240, 800),
        (2_000, 16_000, 600, 3_200),
    ):  # fmt: skip
        operator = DenseOperator(planted(n, p, modules=4, rows=k_u, columns=k_v, height=0.6)).for_one_start()
        u, v = (Vector.of(np.random.default_rng(0).standard_normal(size)) for size in (n, p))
        states = rounds(operator, Side(L0(k_u)), Side(L0(k_v)), u, v)
        for _ in range(10):
            next(states)
        points.append((n * k_v + p * k_u, n * p, min(_time_of(lambda states=states: next(states)) for _ in range(40))))
    return np.array(points)


def slope(points):
    """Slope of log time against log work, and against log(np), together in one regression."""
    design = np.column_stack([np.log(points[:, 0]), np.log(points[:, 1]), np.ones(len(points))])
    return np.linalg.lstsq(design, np.log(points[:, 2]), rcond=None)[0]


def growth():
    """Time and memory of 10 modules as one size grows."""
    base = {"n": 400, "p": 5_000, "k": 100, "edges": 50_000}
    grown = {name: (value, 2 * value, 4 * value) for name, value in base.items()}
    rows = []
    for what, values in grown.items():
        for value in values:
            at = base | {what: value}
            X = planted(at["n"], at["p"], modules=10, rows=40, columns=at["k"])
            model = SparseGraphSVD(10, n_rows=40, n_columns=at["k"], column_graph=random_graph(at["p"], at["edges"]))
            seconds, _ = fastest(lambda model=model, X=X: model.fit(X), 3)
            rows.append((what, value, seconds, peak(lambda model=model, X=X: model.fit(X)) / 1e6))
    for share in (0.02, 0.04, 0.08):
        X, _ = cells(5_000, 4_000, share=share, modules=10, rows=200, columns=100)
        model = SparseGraphSVD(10, n_rows=200, n_columns=100)
        seconds, _ = fastest(lambda model=model, X=X: model.fit(X), 3)
        rows.append(("nnz (sparse)", X.nnz, seconds, peak(lambda model=model, X=X: model.fit(X)) / 1e6))
    return pd.DataFrame(rows, columns=["grown", "value", "seconds", "MB beyond X"])


def draw(points, slopes, table, path):
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    axes[0].loglog(points[:, 0], 1e3 * points[:, 2], "o", color="#0072B2")
    line = np.sort(points[:, 0])
    axes[0].loglog(line, 1e3 * points[:, 2].max() * line / line[-1], ":", color="#777777", label="slope 1")
    axes[0].set(xlabel="n k_v + p k_u", ylabel="milliseconds per iteration")
    axes[0].set_title(f"Log slope {slopes[0]:.2f} in the supports, {slopes[1]:.2f} in np", loc="left", size=10)
    axes[0].legend(frameon=False)
    for ax, column in zip(axes[1:], ("seconds", "MB beyond X"), strict=True):
        for (what, rows), mark in zip(table.groupby("grown", sort=False), "osv^D", strict=True):
            times, sizes = (rows[name] / rows[name].iloc[0] for name in (column, "value"))
            ax.loglog(sizes, times, marker=mark, label=what)
        ax.set(xlabel="times the smallest size", ylabel=f"times the smallest: {column}")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(FixedLocator([1, 2, 4, 8]))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        ax.legend(frameon=False)
    axes[1].set_title("Time of 10 modules as one size grows", loc="left", size=10)
    axes[2].set_title("Memory of 10 modules as one size grows", loc="left", size=10)
    figure.savefig(path, dpi=130)


R_SCRIPT = """
arguments <- commandArgs(trailingOnly = TRUE)
size <- as.integer(arguments[2:3])
X <- matrix(readBin(arguments[1], "double", prod(size)), size[1], size[2])
took <- function(run) cat(system.time(run)[["elapsed"]], "\\n")
if (arguments[4] == "PMA") took(PMA::PMD(X, type = "standard", sumabs = 0.3, K = 10, trace = FALSE))
if (arguments[4] == "s4vd") took(s4vd::ssvd(X, K = 1)) else invisible()
"""


def r_peers(X, graph):
    """PMA's PMD (10 layers) and s4vd's ssvd (1 layer, times 10), if these packages are installed."""
    own, _ = fastest(lambda: SparseGraphSVD(10, column_graph=graph, **SETTINGS).fit(X))
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "X.bin", Path(folder) / "peers.R"
        X.T.astype(np.float64).tofile(data)  # R reads column by column
        script.write_text(R_SCRIPT)
        for package, times in (("PMA", 1), ("s4vd", 10)):
            command = ["Rscript", script, data, *map(str, X.shape), package]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            took = f"{times * float(done.stdout) / own:.0f}" if done.returncode == 0 else "not installed"
            lines.append(f"- {package}: {took}")
    return "\n".join(lines)


def markdown(table):
    cells = table.map(lambda value: f"{value:.2f}" if isinstance(value, float) else str(value))
    rows = [table.columns, ["---"] * len(table.columns), *cells.to_numpy()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


INTRODUCTION = """# Benchmarks

Written by `make bench`. All methods were timed in one run on one BLAS thread, after a warm-up; each time is the fastest
of several. Except for the command line, only ratios are reported, because absolute times depend on the machine.
"Algorithm 2 as printed" is the published algorithm with a full SVD per module and dense products; it was timed on two
modules and scaled to forty.

The other scripts in `benchmarks/` measure what is found: [evidence](evidence.md).
"""


def sections():
    for title, text, table in waiting.sections():
        yield title, "\n\n".join(part for part in (text, "" if table is None else markdown(table)) if part)
    X, graph = planted(), random_graph(13_321, 262_462)
    title = "Simulated data: 641 x 13,321, 40 planted modules of 50 x 200, 262,462 edges, adjacency term"
    yield title, markdown(against_peers(X, graph))
    if folder := os.environ.get("NETBIC_DATA"):
        yield "TCGA colorectal tumours with Pathway Commons", markdown(against_peers(*colorectal(Path(folder))))
    yield "Precision and memory (simulated data)", markdown(precision_and_memory(X, graph))
    yield "Restarts", f"64 starts take {restarts(X, graph):.1f} times as long as 16, as they share their preparation."
    del X
    points, table = cost_per_iteration(), growth()
    slopes = slope(points)
    draw(points, slopes, table, DOCS / "images" / "benchmarks.png")
    text = f"The time of an iteration scales with n k_v + p k_u (log slope {slopes[0]:.2f}), not np ({slopes[1]:.2f})."
    yield "Cost of an iteration: time and memory", f"{text}\n\n![Cost](images/benchmarks.png)"
    facts = sparse_passes().items()
    yield "A large sparse matrix, centred implicitly", "\n".join(f"- {name}: {value}" for name, value in facts)
    if shutil.which("Rscript"):
        yield "R packages (10 modules, time relative to netbic)", r_peers(planted(), graph)


def main():
    page = INTRODUCTION
    with threadpool_limits(1, user_api="blas"):
        for title, text in sections():
            section = f"\n## {title}\n\n{text}\n"
            print(section, flush=True)
            page += section
    (DOCS / "benchmarks.md").write_text(page)


if __name__ == "__main__":
    main()
