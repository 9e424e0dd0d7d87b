"""Draw the README's picture: `make pictures`.

Left: a simulated cohort, ordered by the modules found in it. Middle: one of them in the network.
Right: how much of the planted genes is found as the signal grows, with the graph, with a degree-preserving rewired one,
and without.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from netbic import SparseGraphSVD, pl
from netbic.simulate import cohort, recovery

IMAGES = Path(__file__).parent / "images"
COLOURS = {"with the graph": "#0072B2", "rewired graph": "#E69F00", "no graph": "#777777"}
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SEEDS = range(16)
SIGNAL, FOUND = "signal (sd of the noise)", "planted genes found (mean F1)"


def fit(study, graph):
    return SparseGraphSVD(5, n_columns=60, column_graph=graph).fit(study.expression)


def power():
    """A row per strength, graph and cohort."""
    rows = []
    for strength in STRENGTHS:
        for study in (cohort(strength=strength, random_state=seed) for seed in SEEDS):
            graphs = dict(zip(COLOURS, (study.network, study.network.rewire(0), None), strict=True))
            for name, graph in graphs.items():
                found = recovery(fit(study, graph).columns_, study.genes)
                rows.append((strength, name, found["f1"].mean()))
    return pd.DataFrame(rows, columns=[SIGNAL, "method", FOUND])


def main():
    study = cohort(strength=1.0, random_state=0)
    model = fit(study, study.network)
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(15, 4.8), width_ratios=(1.3, 1.1, 0.9), layout="constrained"
    )
    pl.heatmap(model, study.expression, n_others=40, ax=left, title="Modules found in a simulated cohort")
    pl.network(model, 2, ax=middle)
    curves = power().groupby([SIGNAL, "method"])[FOUND].agg(["mean", "sem"])
    for name, colour in COLOURS.items():
        own = curves.xs(name, level="method")
        right.errorbar(
            own.index, own["mean"], own["sem"], color=colour, marker="o", ms=5, lw=1.4, elinewidth=0.9, label=name
        )
    right.set(xlabel=SIGNAL, ylabel=FOUND, ylim=(0, 1.02))
    right.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False, fontsize=8)
    right.set_title("The structure of the graph helps, not its hubs", loc="left", size=10)
    figure.savefig(IMAGES / "demo.png", dpi=120)


if __name__ == "__main__":
    main()
