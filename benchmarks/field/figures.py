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


def all_problems(tasks: dict[str, ModuleType], scope: Scope) -> list[Asked]:
    """Without repetitions; those of the first seed come first, so that work that is stopped compares all data sets."""
    units = [unit for task in tasks.values() for unit in units_of(task, scope).items()]
    return list(dict.fromkeys(one for _, asked in sorted(units, key=lambda unit: seed_of(unit[0])) for one in asked))


def figures_table(tasks: dict[str, ModuleType], methods: list[Method], scope: Scope, folder: Path) -> pd.DataFrame:
    """A row per task, unit, method and figure; units that were not finished have no value, but a status."""
    rows = [
        (name, unit, method.name, *row)
        for name, task in tasks.items()
        for unit, asked in units_of(task, scope).items()
        for method in methods
        for row in figures_of(task, method, asked, folder)
    ]
    return pd.DataFrame(rows, columns=["task", "unit", "method", "figure", "value", "status"])


def figures_of(task: ModuleType, method: Method, asked: list[Asked], folder: Path):
    records = [record(method, one, folder) for one in asked]
    statuses = {known["status"] if known else "missing" for known in records}
    status = next((status for status in ORDER if status in statuses), "done")
    if status != "done":
        return [(task.FIGURE, np.nan, status)]
    values = task.figures({one: found(method, one, folder) for one in asked}, data.load)
    return [(figure, value, status) for figure, value in values.items()]


def fits_table(methods: list[Method], problems: list[Asked], folder: Path) -> pd.DataFrame:
    rows = []
    for asked in problems:
        for method in methods:
            known = record(method, asked, folder)
            if known is not None:
                numbers = [known.get(name, np.nan) for name in ("seconds", "wall", "gigabytes", "modules")]
                rows.append((method.name, *asked, known["status"], *numbers, known["message"]))
    names = ["method", "instance", "k", "seed", "status", "seconds", "wall", "GB", "modules", "message"]
    return pd.DataFrame(rows, columns=names).astype({"k": "Int64", "modules": "Int64"})
