"""Make the pictures of the tutorials on real data: `make pictures`, where NETBIC_DATA names their folder.

The code of the pages is run in a temporary folder, and the pictures that it draws are kept. The report is photographed
by Chromium (playwright, as for the browser tests).
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import anndata
import matplotlib.pyplot as plt
import pandas as pd
from PIL import Image
from sklearn.manifold import TSNE

import netbic

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))

from support.pages import run_page  # noqa: E402 (found in the folder added above)
from support.tutorials import DONORS, link_data, text_of  # noqa: E402 (likewise)


def keep(picture, name, width=1000):
    """Save a picture with few colours, which makes the file small."""
    image = Image.open(picture).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    image.quantize(200, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


def photograph(report, picture, height):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": height}, reduced_motion="reduce")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)
        browser.close()


def draw_cells(adata, picture):
    """The cells in two dimensions, four times."""
    places = TSNE(random_state=0).fit_transform(adata.obsm["X_netbic"])
    figure, axes = plt.subplots(1, 4, figsize=(13, 4.2), layout="constrained")
    for ax, key in zip(axes, ("cell_type", "condition", "module_4", "module_6"), strict=True):
        values = adata.obs[key]
        if key.startswith("module"):
            drawn = ax.scatter(*places.T, s=2, c=values, cmap="viridis", rasterized=True)
            figure.colorbar(drawn, ax=ax, shrink=0.7)
        else:
            for level in values.unique():
                ax.scatter(*places[values == level].T, s=2, label=level)
            ax.legend(fontsize=7, markerscale=4, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0))
        ax.set(title=key, xticks=[], yticks=[])
    figure.savefig(picture, dpi=100)


def tumours(data):
    link_data("breast-tumours", Path(), data)
    run_page(text_of("breast-tumours"))
    photograph(Path("brca/report.html"), "report.png", height=808)
    for name in ("report", "associations", "scores", "survival"):
        keep(f"{name}.png", f"tutorial-{name}")


def cells(data):
    link_data("single-cells", Path(), data)
    run_page(text_of("single-cells").partition(DONORS)[0])
    keep("associations.png", "tutorial-cell-associations")
    draw_cells(anndata.read_h5ad("cells.h5ad"), "cells.png")
    keep("cells.png", "tutorial-cells", width=1300)


def pairs(data):
    """The scores of both pairs of `docs/two-tables.md`, whose code does not draw them."""
    genes, lipids = (pd.read_parquet(data / f"small_nutrimouse_{name}.parquet").T for name in ("genes", "lipids"))
    labels = pd.read_csv(data / "small_nutrimouse_samples.tsv", sep="\t", index_col=0).loc[genes.index]
    model = netbic.SparseGraphCCA(2, n_x=20, n_y=5, covariance="ridge", ridge=0.5)
    model.fit(genes, lipids, table_names=("genes", "lipids"))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for pair, (ax, key) in enumerate(zip(axes, ("genotype", "diet"), strict=True), start=1):
        netbic.pl.pairs(model, pair, annotation=labels[key], ax=ax)
    figure.savefig("pairs.png", dpi=100)
    keep("pairs.png", "two-tables")


def main():
    if not os.environ.get("NETBIC_DATA"):
        print("the pictures of the tutorials need real data and are not redrawn: set NETBIC_DATA to their folder")
        return
    data = Path(os.environ["NETBIC_DATA"]).resolve()
    for draw in (tumours, cells, pairs):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            draw(data)


if __name__ == "__main__":
    main()
