"""Draw the README's picture: `make pictures`.

Modules of the ovarian tumours that are part of netbic: six of them in all samples, survival with one of them, and what
goes with each module.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import netbic
from netbic import pl

IMAGES = Path(__file__).parent / "images"
N_MODULES, CILIA = 15, 3


def main():
    cohort = netbic.datasets.ovarian()
    X, info = cohort.expression, cohort.sample_info
    model = netbic.SparseGraphSVD(N_MODULES, random_state=0).fit(X)
    tests = netbic.associate(model, X, info)
    figure = plt.figure(figsize=(16, 6.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.05))
    top, bottom = right.subplots(2, 1, height_ratios=(1.0, 1.35))
    heatmap = {"modules": [1, 2, 3, 4, 5, 6], "n_others": 0, "annotation": info[["tissue", "stage"]]}
    pl.heatmap(model, X, **heatmap, ax=left.subplots(), title="Six modules of 172 ovarian tissues")
    pl.survival(model, CILIA, X=X, table=info, ax=top)
    pl.associations(tests, ax=bottom)
    figure.savefig(IMAGES / "demo.png", dpi=105)


if __name__ == "__main__":
    main()
