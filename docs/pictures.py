"""Draw the README's picture: `make pictures`.

Left: the demo's cohort, rows and columns ordered by the modules netbic found in it. Right: how much of the planted
genes is found as the signal grows, with the graph, with a degree-preserving rewired one, and without.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from netbic import SparseGraphSVD
from netbic.simulate import cohort, recovery

IMAGES = Path(__file__).parent / "images"
COLOURS = {"with the graph": "#0072B2", "rewired graph": "#E69F00", "no graph": "#777777"}
STRENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SEEDS = range(16)


def fit(study, graph):
    return SparseGraphSVD(5, n_rows=40, n_columns=60, column_graph=graph).fit(study.expression)


def module_order(vectors, n_others):
    """Members module by module, negative ones first, then a few that belong to none; and where modules end."""
    order, edges = [], [0]
    for vector in vectors:
        members = [i for i in np.argsort(vector) if vector[i] and i not in order]
        order += members
        edges.append(len(order))
    others = [i for i in range(vectors.shape[1]) if i not in order][:n_others]
    return order + others, edges


def draw_modules(ax, study, model):
    rows, row_edges = module_order(model.left_vectors_.T, 60)
    columns, column_edges = module_order(model.components_, 120)
    Z = study.expression.to_numpy()
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    image = ax.imshow(Z[np.ix_(rows, columns)], cmap="RdBu_r", vmin=-2.5, vmax=2.5, aspect="auto", interpolation="none")
    for k in range(5):
        width, height = np.diff(column_edges)[k], np.diff(row_edges)[k]
        box = plt.Rectangle((column_edges[k] - 0.5, row_edges[k] - 0.5), width, height, fill=False, lw=1.5)
        ax.add_patch(box)
        label = {"ha": "center", "va": "bottom", "size": 8, "bbox": {"fc": "white", "ec": "none", "pad": 1.0}}
        ax.text(column_edges[k] + width / 2, row_edges[k] - 4, f"module {k}", **label)
    ax.set(xticks=[], yticks=[], xlabel="genes (modules first)", ylabel="samples (modules first)")
    ax.set_title("Modules found in a simulated cohort", loc="left", size=10, pad=16)
    plt.colorbar(image, ax=ax, shrink=0.5, label="z-score", ticks=[-2, 0, 2])


def draw_power(ax):
    curves = {name: [] for name in COLOURS}
    for strength in STRENGTHS:
        studies = [cohort(strength=strength, random_state=seed) for seed in SEEDS]
        graphs = {
            "with the graph": lambda study: study.network,
            "rewired graph": lambda study: study.network.rewire(0),
            "no graph": lambda study: None,
        }
        for name, graph in graphs.items():
            scores = [recovery(fit(study, graph(study)).columns_, study.genes)["f1"].mean() for study in studies]
            curves[name].append(np.mean(scores))
    for name, scores in curves.items():
        ax.plot(STRENGTHS, scores, marker="o", color=COLOURS[name], label=name)
    ax.set(xlabel="signal (sd of the noise)", ylabel="planted genes recovered (mean F1)", ylim=(0, 1.02))
    ax.set_title("The structure of the graph helps, not its hubs", loc="left", size=10, pad=16)
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)


def main():
    study = cohort(strength=1.0, random_state=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=(1.35, 1), layout="constrained")
    draw_modules(left, study, fit(study, study.network))
    draw_power(right)
    figure.savefig(IMAGES / "demo.png", dpi=150)


if __name__ == "__main__":
    main()
