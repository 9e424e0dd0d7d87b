"""Compare methods that find modules: same data, same information, the defaults of everyone.

python -m benchmarks.field fit       run the fits that are missing; it may be stopped and started again
python -m benchmarks.field figures   tables of what was found, in benchmarks/field/results; prints them
python -m benchmarks.field page      write docs/field.md and docs/images/field.png from these tables

Fits are kept in .field. What has figures in the tables is not run again, so that work can go on without these files.
With --small, fits and tables are kept in .field/small, and no file of the repository is written. Real data are read
from the folder in NETBIC_DATA; without it, only tasks on simulated data are run.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import pandas as pd

from . import data, fits, page
from .figures import COLUMNS, FITS, Scope, earlier_table, figures_table, fits_table, missing, seed_of
from .tasks import NAMES, tasks

RESULTS = fits.HERE / "results"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks.field", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("step", choices=["fit", "figures", "page"])
    made.add_argument("--small", action="store_true", help="few problems, and one minute for a fit")
    made.add_argument("--tasks", nargs="+", choices=NAMES, default=list(NAMES), metavar="TASK", help=", ".join(NAMES))
    made.add_argument("--seeds", type=int, help="of each data set, the first so many (default: all)")
    made.add_argument("--methods", nargs="+", default=[], help="names of files in methods/, or paths of other files")
    made.add_argument("--jobs", type=int, default=1, help="fits at the same time")
    made.add_argument(
        "--again", action="store_true", help="also what is there: fits of a new version of a package, and their figures"
    )
    made.add_argument("--folder", type=Path, default=fits.ROOT / ".field", help="where fits are kept")
    made.add_argument("--seconds", type=float, help="limit of a fit (default: 1200, with --small 60)")
    made.add_argument("--gigabytes", type=float, default=fits.Limits().gigabytes, help="limit of a fit")
    return made


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    if given.small and given.step == "page":
        sys.exit("the page is that of the full benchmark: run without --small")
    try:
        chosen = fits.methods(given.methods)
    except ValueError as error:
        sys.exit(str(error))
    if not data.available():
        print("NETBIC_DATA is not the folder of real data: only simulated data are used")
    folder = given.folder / "small" if given.small else given.folder
    which = tasks(given.tasks)
    {"fit": fit, "figures": figures, "page": write_page}[given.step](given, which, chosen, folder)


def fit(given, which, chosen, folder):
    for method in chosen:
        if not method.python.exists():
            print(f"{method.name} is left out: there is no {method.python}; run make field-environments")
    limits = fits.Limits(given.seconds or (60 if given.small else fits.Limits().seconds), given.gigabytes)
    earlier = earlier_table((folder if given.small else RESULTS) / "figures.tsv", COLUMNS, given.again)
    todo = missing(which, chosen, Scope(given.small, given.seeds), folder, earlier, given.again)
    print(f"{len(todo)} fits to run", flush=True)
    fits.run_all(todo, folder, limits, given.jobs, lambda line: print(line, flush=True))


def figures(given, which, chosen, folder):
    results, scope = folder if given.small else RESULTS, Scope(given.small, given.seeds)
    results.mkdir(parents=True, exist_ok=True)
    paths = {name: results / f"{name}.tsv" for name in ("figures", "fits")}
    earlier = earlier_table(paths["figures"], COLUMNS, given.again)
    table = figures_table(which, chosen, scope, folder, earlier)
    fitted = table[table["status"] != "missing"]
    fitted.to_csv(paths["figures"], sep="\t", index=False, float_format="%.6g")
    of_fits = fits_table(which, chosen, scope, folder, earlier_table(paths["fits"], FITS, given.again))
    of_fits.to_csv(paths["fits"], sep="\t", index=False, float_format="%.4g")
    for name, task in which.items():
        own = fitted[fitted["task"] == name]
        if own["value"].notna().any():
            variants = [method.name for method in chosen if not method.ranked]
            print(f"\n## {name}\n\n{page.task_table(task, own, variants).to_string()}")
    lacking = table[table["status"] == "missing"].groupby("method").size()
    for method, number in lacking.items():
        print(f"{method}: {number} units have not been run")


def write_page(given, which, chosen, folder):
    figures, fitted = (pd.read_csv(RESULTS / f"{name}.tsv", sep="\t") for name in ("figures", "fits"))
    if given.seeds is not None:
        figures = figures[figures["unit"].map(seed_of) < given.seeds]
        fitted = fitted[fitted["seed"] < given.seeds]
    known = set(fitted["method"])
    page.write_page(which, figures, fitted, [method for method in chosen if method.name in known])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
