"""How long `netbic fit` takes from a file to a report, and where the time goes.

make bench      (minutes; writes docs/benchmarks.md and docs/images/benchmarks.png; NETBIC_DATA adds real data)
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from threadpoolctl import threadpool_limits

import netbic
from problems import DATA, NETWORKS, cells

DOCS, HERE = Path(__file__).parents[1] / "docs", Path(__file__).parent
N_MODULES, TIMES = 10, 3
START = "start of Python and imports"
SVD, COPY = f"TruncatedSVD({2 * N_MODULES}) of the matrix", "a copy of the matrix"


class Study(NamedTuple):
    """Files of a study, and how its matrix is read."""

    expression: Path
    samples: Path
    sets: Path
    network: Path | None = None
    options: tuple[str, ...] = ()

    def command(self, out, *more):
        labels = ["--sample-info", self.samples, "--gene-sets", self.sets]
        return ["fit", self.expression, *labels, *self.options, *more, "--modules", N_MODULES, "--out", out]

    def matrix(self):
        steps = {option.removeprefix("--"): True for option in self.options}
        return netbic.io.open_dataset(self.expression, **steps).expression.matrix


def simulated(folder):
    """A simulated cohort, and sparse counts."""
    study = netbic.simulate.cohort(random_state=0)
    files = [folder / name for name in ("cohort.parquet", "cohort.tsv", "cohort.gmt", "network.parquet")]
    study.expression.T.rename_axis("gene").to_parquet(files[0])
    labels = {f"label_{k}": np.where(members, "in", "out") for k, members in enumerate(study.samples)}
    pd.DataFrame(labels, index=study.expression.index).rename_axis("sample").to_csv(files[1], sep="\t")
    genes = study.expression.columns
    write_sets(files[2], [genes[members] for members in study.genes])
    tails, heads, _ = study.network.edges()
    pd.DataFrame({"source": genes[tails], "target": genes[heads]}).to_parquet(files[3])
    yield "simulated cohort", Study(*files)

    if "NETBIC_DATA" not in os.environ:
        X, truth = cells(10_000, 3_000)
        obs = pd.DataFrame({"batch": np.random.default_rng(0).choice(["a", "b"], len(X.indptr) - 1)})
        counts = anndata.AnnData(X.ceil(), obs.set_axis(obs.index.astype(str)))
        counts.write_h5ad(folder / "cells.h5ad")
        write_sets(folder / "cells.gmt", [counts.var_names[members] for members in truth])
        files = folder / "cells.h5ad", folder / "cells.h5ad", folder / "cells.gmt"
        yield "simulated cells", Study(*files, options=("--cpm", "--log1p"))


def write_sets(path, sets):
    path.write_text("".join("\t".join([f"SET:{at}", f"set {at}", *genes]) + "\n" for at, genes in enumerate(sets)))


def real(folder):
    """Two studies of tumours, and single cells."""
    sets = folder / "go_bp_human.gmt.gz"
    for name, key, labels, network in (
        ("breast tumours", "agilent", "expr_tcga_brca_agilent2012_samples.tsv", "biogrid"),
        ("colorectal tumours", "coadread", "expr_tcga_coadread_samples.tsv", "pathway_commons"),
    ):
        yield name, Study(folder / DATA[key], folder / labels, sets, folder / NETWORKS[network])
    counts = folder / "sc_tcells_7donors.h5ad"
    yield "T cells", Study(counts, counts, sets, options=("--cpm", "--log1p"))


def run(*arguments):
    """What a Python process prints, and its process and wall seconds."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # modules are compiled once, as in an installation
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, *map(str, arguments)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, np.array([after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall])


def seconds_of(command):
    """Least process and wall seconds of a netbic command, after a warm-up."""
    return np.min([run("-m", "netbic", *command)[1] for _ in range(TIMES + 1)][1:], axis=0)


def stages_of(study, out):
    """Process and wall seconds of every stage, in the run that took the least process time after a warm-up."""
    runs = []
    for _ in range(TIMES + 1):
        printed, total = run(HERE / "stages.py", *study.command(out, "--quiet", "--force"))
        stages = {name: np.array(own) for name, own in json.loads(printed.splitlines()[-1]).items()}
        runs.append((total[0], {START: total - sum(stages.values())} | stages))
    return min(runs[1:], key=lambda each: each[0])[1]


def in_memory(calculate):
    """Least process and wall seconds of a calculation on one BLAS thread, after a warm-up."""
    found = []
    with threadpool_limits(1, user_api="blas"):
        for _ in range(TIMES + 1):
            begun = time.process_time(), time.perf_counter()
            calculate()
            found.append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
    return np.min(found[1:], axis=0)


def draw(stages, path):
    """Process time of each study as a bar of its stages."""
    figure, ax = plt.subplots(figsize=(10, 0.6 * len(stages) + 1.6), layout="constrained")
    table = pd.DataFrame({name: {stage: own[0] for stage, own in each.items()} for name, each in stages.items()}).T
    table.iloc[::-1].plot.barh(stacked=True, ax=ax, width=0.7, cmap="tab20")
    ax.set_xlabel("seconds from file to report (process time)")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def markdown(rows, heads):
    """A table of process and wall seconds, of which short ones have more digits."""

    def written(seconds):
        return " / ".join(f"{each:.{2 if each >= 0.1 else 3}f}" for each in seconds)

    lines = [["", *heads], ["---", *["---:"] * len(heads)]]
    lines += [[name, *map(written, own)] for name, own in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def processor():
    """The name of the processor, where the system tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


PAGE = """# Benchmarks

How long from a file to the report, and where does the time go? Written by `make bench`; what is found is on another
page: [evidence](evidence.md).

Times are process time (of all cores together) / wall time in seconds. Processor: {processor}.
Every command was run {times} times after a warm-up: the stages are those of the run with the least process time,
all other times are the least ones. Other work on the machine makes wall times longer, and process times hardly.

## From file to report

`netbic fit` with `--modules {n_modules}`, `--sample-info` and `--gene-sets`; single cells with `--cpm` and `--log1p`.
The last two rows, on one BLAS thread, are for comparison.

{stages}

![Stages of netbic fit](images/benchmarks.png)

{sizes}

## Other commands

{where}.

{commands}
"""


def main():
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings(action="ignore"):
        folder = Path(temporary)
        studies = dict(simulated(folder))
        if data := os.environ.get("NETBIC_DATA"):
            studies |= real(Path(data))
        stages, beside, sizes = {}, {}, []
        for name, study in studies.items():
            stages[name] = stages_of(study, folder / name)
            X = study.matrix()
            svd = in_memory(lambda X=X: TruncatedSVD(2 * N_MODULES, random_state=0).fit(X))
            beside[name] = {SVD: svd, COPY: in_memory(X.copy)}
            sizes.append(f"{name}: {X.shape[0]:,} x {X.shape[1]:,}")
            print(name, *(f"{what}: {own.round(2)}" for what, own in stages[name].items()), sep="\n  ", flush=True)
        rows = {stage: [own[stage] for own in stages.values()] for stage in next(iter(stages.values()))}
        rows["**from file to report**"] = [sum(own.values()) for own in stages.values()]
        rows |= {what: [own[what] for own in beside.values()] for what in (SVD, COPY)}
        last = [name for name, study in studies.items() if study.network is not None][-1]
        with_network = studies[last].command(folder / "network", "--graph", studies[last].network, "--force")
        commands = {
            "`netbic --version`": ["--version"],
            "`netbic report`": ["report", folder / last],
            "`netbic plot heatmap`": ["plot", folder / last, "heatmap", "--out", folder / "heatmap.png", "--force"],
            "`netbic fit` as above and with `--graph`": with_network,
        }
        page = PAGE.format(
            processor=processor(),
            times=TIMES,
            n_modules=N_MODULES,
            stages=markdown(rows, list(studies)),
            sizes=f"Samples x genes: {'; '.join(sizes)}.",
            where=f"On the {last}",
            commands=markdown({name: [seconds_of(own)] for name, own in commands.items()}, ["process / wall"]),
        )
    draw(stages, DOCS / "images" / "benchmarks.png")
    (DOCS / "benchmarks.md").write_text(page)


if __name__ == "__main__":
    main()
