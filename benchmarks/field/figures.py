"""Tables of figures and of fits, from what was found."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pandas as pd

from . import data
from .fits import Method, found, record
from .tasks import Asked

KEYS = ["task", "unit", "method", "digest"]
COLUMNS = [*KEYS, "figure", "value", "status"]
FITS = ["method", "digest", "instance", "k", "seed", "status", "seconds", "wall", "GB", "modules", "message"]
ORDER = ("missing", "not meant", "timed out", "crashed")  # of a unit whose fits differ, the first of these


class Scope(NamedTuple):
    """Which units are used: of a few problems, and of the first seeds."""

    small: bool = False
    seeds: int | None = None


def units_of(task: ModuleType, scope: Scope) -> dict[str, list[Asked]]:
    """Units and their problems, without those of real data if there are none."""
    units = task.problems(scope.small)
    if scope.seeds is not None:
        units = {unit: asked for unit, asked in units.items() if seed_of(unit) < scope.seeds}
    if data.available():
        return units
    return {unit: asked for unit, asked in units.items() if not any(data.needs_files(one.instance) for one in asked)}


def seed_of(unit: str) -> int:
    return int(unit.rpartition("/")[2])


def units(tasks: dict[str, ModuleType], scope: Scope) -> list[tuple[str, str, list[Asked]]]:
    """Tasks, units and their problems. The first seeds come first, so that work that is stopped has all data sets."""
    every = [(name, *unit) for name, task in tasks.items() for unit in units_of(task, scope).items()]
    return sorted(every, key=lambda unit: seed_of(unit[1]))


def figures_table(
    tasks: dict[str, ModuleType], methods: list[Method], scope: Scope, folder: Path, earlier: pd.DataFrame
) -> pd.DataFrame:
    """A row per task, unit, method and figure; units that were not finished have no value, but a status.

    Rows of an earlier table are kept if the method has not changed since, and those of units that are not asked for.
    """
    kept = {key: own[["figure", "value", "status"]].to_numpy().tolist() for key, own in earlier.groupby(KEYS)}
    rows = [
        (*key, *row)
        for name, task in tasks.items()
        for unit, asked in units_of(task, scope).items()
        for method in methods
        for key in [(name, unit, method.name, method.digest)]
        for row in kept.get(key) or figures_of(task, method, asked, folder)
    ]
    return with_others(pd.DataFrame(rows, columns=COLUMNS), earlier, ["task", "unit", "method"])


def with_others(table: pd.DataFrame, earlier: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """And the rows of an earlier table with other keys."""
    others = ~pd.MultiIndex.from_frame(earlier[key]).isin(pd.MultiIndex.from_frame(table[key]))
    return pd.concat([table, earlier[others]], ignore_index=True) if others.any() else table


def earlier_table(path: Path, columns: list[str], again: bool) -> pd.DataFrame:
    """A table of an earlier run; an empty one if everything is computed again."""
    return pd.read_csv(path, sep="\t") if path.exists() and not again else pd.DataFrame(columns=columns)


def missing(
    tasks: dict[str, ModuleType], methods: list[Method], scope: Scope, folder: Path, earlier: pd.DataFrame, again: bool
) -> list[tuple[Method, Asked]]:
    """Fits to be run, problem by problem: neither they nor the figures of their units are there."""
    known = set(map(tuple, earlier[KEYS].to_numpy()))
    needed = [
        (method, one)
        for name, unit, asked in units(tasks, scope)
        for one in asked
        for method in methods
        if method.python.exists() and (name, unit, method.name, method.digest) not in known
    ]
    return [(method, one) for method, one in dict.fromkeys(needed) if again or record(method, one, folder) is None]


def figures_of(task: ModuleType, method: Method, asked: list[Asked], folder: Path):
    records = [record(method, one, folder) for one in asked]
    statuses = {known["status"] if known else "missing" for known in records}
    status = next((status for status in ORDER if status in statuses), "done")
    told = getattr(task, "ONLY_CHOOSING", False) and not method.chooses  # then its main figure is not compared
    names = {task.FIGURE: f"{task.FIGURE}, as told"} if told else {}
    if status != "done":
        return [(names.get(task.FIGURE, task.FIGURE), np.nan, status)]
    values = task.figures({one: found(method, one, folder) for one in asked}, data.load)
    return [(names.get(figure, figure), value, status) for figure, value in values.items()]


def fits_table(
    tasks: dict[str, ModuleType], methods: list[Method], scope: Scope, folder: Path, earlier: pd.DataFrame
) -> pd.DataFrame:
    kept = {tuple(row[:5]): row for row in earlier.astype(object).where(earlier.notna(), None).to_numpy().tolist()}
    rows = []
    for one in dict.fromkeys(one for *_, asked in units(tasks, scope) for one in asked):
        for method in methods:
            known = record(method, one, folder)
            key = method.name, method.digest, one.instance, one.k, one.seed
            if known is not None:
                numbers = [known.get(name) for name in ("seconds", "wall", "gigabytes", "modules")]
                rows.append((*key, known["status"], *numbers, known["message"]))
            elif key in kept:
                rows.append(tuple(kept[key]))
    table = pd.DataFrame(rows, columns=FITS)
    table = with_others(table, earlier, ["method", "instance", "k", "seed"])
    return table.astype({"k": "Int64", "modules": "Int64"})
