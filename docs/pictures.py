"""Draw the README's picture and those of the tutorials: `make pictures`.

The code of the tutorials is run in a temporary folder, and the pictures that it draws are kept. The report is
photographed by Chromium (playwright, as for the browser tests). The picture of two tables needs real data: NETBIC_DATA
names their folder.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from PIL import Image

import netbic
from netbic import pl

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
DATA = Path(os.environ["NETBIC_DATA"]).resolve() if os.environ.get("NETBIC_DATA") else None
N_MODULES, CILIA = 15, 3
sys.path.insert(0, str(DOCS.parent / "tests"))

from support.commands import run  # noqa: E402 (found in the folder added above)
from support.pages import run_page  # noqa: E402 (likewise)


def readme():
    """Modules of ovarian tissues: six of them in all samples, survival with one, and what goes with each module."""
    cohort = netbic.datasets.ovarian()
    X, info = cohort.expression, cohort.sample_info
    model = netbic.SparseGraphSVD(N_MODULES, random_state=0).fit(X)
    tests = netbic.associate(model, X, info)
    figure = plt.figure(figsize=(16, 6.8), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.05))
    top, bottom = right.subplots(2, 1, height_ratios=(1.0, 1.35))
    heatmap = {"modules": [1, 2, 3, 4, 5, 6], "n_others": 0, "annotation": info[["tissue", "stage"]]}
    pl.heatmap(model, X, **heatmap, feature_name="gene", ax=left.subplots(), title="Six modules of 172 ovarian tissues")
    pl.survival(model, CILIA, X=X, table=info, ax=top)
    pl.associations(tests, ax=bottom)
    figure.savefig(IMAGES / "demo.png", dpi=105)


def keep(picture, name, width=1000, few_colours=False):
    """Save a picture; few colours make the file small, but would change those of thin lines and small points."""
    image = Image.open(picture).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    if few_colours:
        image = image.quantize(200, dither=Image.Dither.NONE)
    image.save(IMAGES / f"{name}.png", optimize=True)


def photograph(report, picture, height):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": height}, reduced_motion="reduce")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


def tumours():
    run_page((DOCS / "tutorials" / "tumours.md").read_text())
    photograph(Path("ovarian/report.html"), "report.png", height=1000)
    options = ["--module", "9", "--annotate", "histology,stage", "--size", "9", "6"]
    run("plot", "ovarian", "heatmap", *options, "--out", "heatmap.png")  # the page writes a PDF
    for name in ("report", "associations", "scores", "survival", "heatmap"):
        keep(f"{name}.png", f"tutorial-{name}", few_colours=name == "report")


def cells():
    run_page((DOCS / "tutorials" / "single-cells.md").read_text())
    keep("cells.png", "tutorial-cells", width=1300)


def pairs():
    """The scores of both pairs of `docs/two-tables.md`, whose code does not draw them."""
    if DATA is None:
        print("the picture of two tables needs real data and is not redrawn: set NETBIC_DATA to their folder")
        return
    genes, lipids = (pd.read_parquet(DATA / f"small_nutrimouse_{name}.parquet").T for name in ("genes", "lipids"))
    labels = pd.read_csv(DATA / "small_nutrimouse_samples.tsv", sep="\t", index_col=0).loc[genes.index]
    model = netbic.SparseGraphCCA(2, n_x=20, n_y=5, covariance="ridge", ridge=0.5)
    model.fit(genes, lipids, table_names=("genes", "lipids"))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for pair, (ax, key) in enumerate(zip(axes, ("genotype", "diet"), strict=True), start=1):
        netbic.pl.pairs(model, pair, annotation=labels[key], ax=ax)
    figure.savefig("pairs.png", dpi=100)
    keep("pairs.png", "two-tables")


def main():
    plt.switch_backend("agg")
    for draw in (readme, tumours, cells, pairs):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            draw()


if __name__ == "__main__":
    main()
