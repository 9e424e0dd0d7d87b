"""Size of a report, and how fast Chromium shows it: 20 modules, 12 variables, 500 samples, 12,000 genes.

python benchmarks/report_size.py [--modules 20] [--samples 500] [--genes 12000] [--repeats 5] [--keep FOLDER]

Needs playwright and Chromium. Times are those of the Performance API from the start of the navigation, in a fresh
browser context each: first contentful paint, DOMContentLoaded and load.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import netbic

TIMES = """() => {
    const [page] = performance.getEntriesByType("navigation");
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return { paint: paint.startTime, interactive: page.domContentLoadedEventEnd, load: page.loadEventEnd };
}"""


def write_study(folder, n_samples, n_genes, seed):
    """Expression with planted modules, a network, gene sets, and a table of twelve variables and survival."""
    study = netbic.simulate.cohort(
        n_samples, n_genes, n_modules=8, module_samples=60, module_genes=150, random_state=seed
    )
    generator, X = np.random.default_rng(seed), study.expression
    X.T.rename_axis("gene").to_parquet(folder / "expression.parquet")
    genes = np.array(X.columns, dtype=object)
    tails, heads, _ = study.network.edges()
    pd.DataFrame({"source": genes[tails], "target": genes[heads]}).to_parquet(folder / "network.parquet")
    sets = [genes[mask][:100] for mask in study.genes] * 10 + [generator.choice(genes, 50) for _ in range(400)]
    lines = ["\t".join([f"SET:{at:05}", f"a gene set with the number {at}", *own]) for at, own in enumerate(sets)]
    (folder / "sets.gmt").write_text("\n".join(lines))
    table = {
        f"label_{k}": np.where(study.samples[k], "in", generator.choice(["a", "b", "c"], n_samples)) for k in range(6)
    }
    table |= {f"number_{k}": generator.normal(size=n_samples).round(3) for k in range(5)}
    table |= {"days": generator.integers(1, 4000, n_samples), "event": generator.integers(0, 2, n_samples)}
    pd.DataFrame(table, index=X.index).rename_axis("sample").to_csv(folder / "samples.tsv", sep="\t")


def fit(folder, n_modules):
    """Run the command; the folder with its results."""
    files = [folder / "expression.parquet", "--graph", folder / "network.parquet", "--gene-sets", folder / "sets.gmt"]
    labels = ["--sample-info", folder / "samples.tsv", "--survival", "days,event"]
    options = ["--modules", n_modules, "--out", folder / "out", "--quiet", "--force"]
    subprocess.run([sys.executable, "-m", "netbic", "fit", *map(str, files + labels + options)], check=True)
    return folder / "out"


def measure(browser, report):
    """Times in milliseconds of one visit."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    times = page.evaluate(TIMES)
    context.close()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("modules", 20), ("samples", 500), ("genes", 12_000), ("repeats", 5), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=Path, help="folder for the files, so that the report can be looked at")
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_study(folder, chosen.samples, chosen.genes, chosen.seed)
        report = fit(folder, chosen.modules) / "report.html"
        print(f"size: {report.stat().st_size / 1e6:.2f} MB")
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            times = pd.DataFrame([measure(browser, report.resolve()) for _ in range(chosen.repeats)])
            browser.close()
        print("milliseconds (median, largest)")
        print(pd.DataFrame({"median": times.median(), "largest": times.max()}).round().to_string())


if __name__ == "__main__":
    main()
