"""Compare methods that find modules: one table per task.

NETBIC_DATA=... python -m benchmarks.field --tasks regulons tumours --methods netbic ica --seeds 2
"""

import argparse
import warnings
from time import process_time

import numpy as np
import pandas as pd

from .methods import METHODS
from .tasks import TASKS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=2, help="repetitions: seeds of methods, simulations and halves")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for task in given.tasks:
        rows = {}
        for name in given.methods:
            begin = process_time()
            runs = [TASKS[task](METHODS[name], seed) for seed in range(given.seeds)]
            rows[name] = pd.DataFrame(runs).mean()
            rows[name]["seconds"] = (process_time() - begin) / given.seeds
        table = pd.DataFrame(rows)
        figures = table.drop(index="seconds")
        if task.startswith("planted"):
            better = figures.apply(
                lambda row: [(row > value + 1e-9).sum() for value in row], axis=1, result_type="expand"
            )
            table.loc["mean"] = figures.mean()
            table.loc["first or second"] = (np.asarray(better) < 2).sum(axis=0)
        print(f"\n## {task}\n\n{TASKS[task].__doc__}\n")
        print(table.round(3).to_string())


if __name__ == "__main__":
    main()
