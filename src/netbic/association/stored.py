"""Scores and sample table of a fit, read from its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from netbic.association.scores import wide
from netbic.association.variables import CATEGORICAL, LEFT_OUT, NUMERIC, ORDERED, Variable, as_type, survival_times
from netbic.association.writing import RECORD, SAMPLES
from netbic.errors import InputError, shown, unusable
from netbic.files import read_json, read_table

_SCORES, _VERDICTS = "samples.tsv", "verdicts.tsv"
_AGAIN = "run netbic associate again"


def stored_scores(folder: Path, names: Iterable[object] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and groups, samples by modules, of the fit in a folder; the samples as named, or as in its table."""
    path = folder / _SCORES
    if not path.is_file():
        raise unusable(path, "does not exist", "give the folder of a fit (netbic fit), or fit again with this version")
    try:
        table = read_table(path)
    except (ValueError, OSError):
        raise unusable(path, "cannot be read as a table", "fit again") from None
    if missing := [name for name in ("module", "sample", "score", "group") if name not in table]:
        raise unusable(path, f"has no column {missing[0]}", "fit again")
    try:
        return wide(table, names)
    except InputError as problem:
        raise unusable(path, str(problem), "fit again") from None


def stored_verdicts(folder: Path) -> dict[int, str]:
    """The verdicts on the modules of the fit in a folder ("strong", "repeats 1", ...); empty if there are none."""
    path = folder / _VERDICTS
    if not path.is_file():
        return {}
    try:
        table = read_table(path)
        return {int(module): str(word) for module, word in zip(table["module"], table["verdict"], strict=True)}
    except (ValueError, KeyError, OSError):
        raise unusable(path, "cannot be read as a table of verdicts", "fit again") from None


def stored_samples(folder: Path) -> pd.DataFrame | None:
    """The sample table of a folder, with the names of the samples as index; None if there is none.

    Numbers, categories and ordered levels have the types that they had in the tests; other columns are text.
    """
    path = folder / SAMPLES
    if not path.is_file():
        return None
    try:
        text = read_table(path, as_text=True)
    except (ValueError, OSError):
        raise unusable(path, "cannot be read as a table", _AGAIN) from None
    if not text.shape[1]:
        raise unusable(path, "has no columns", _AGAIN)
    table = text.iloc[:, 1:].set_axis(pd.Index(text.iloc[:, 0], name=text.columns[0]))
    table = table.where(table != "")
    content = stored_record(folder)
    for record in _records(content):
        name, levels = str(record.get("name")), record.get("levels")
        if name in table and content.get("by"):  # samples that belong to no average may have further levels
            table[name] = table[name].where(table[name].isin(levels)) if levels else table[name]
        if name in table and isinstance(levels, list) and levels and set(table[name].dropna()) <= set(levels):
            kind = pd.CategoricalDtype(levels, ordered=record.get("type") == ORDERED)
            table[name] = table[name].astype(kind)
        elif name in table and record.get("type") == NUMERIC:
            with suppress(ValueError):
                table[name] = table[name].astype(object).astype(np.float64)
    return table


def stored_record(folder: Path) -> dict[str, Any]:
    """The content of associations.json, which describes the variables; empty if it does not exist."""
    content = read_json(folder / RECORD) if (folder / RECORD).is_file() else {}
    return content if isinstance(content, dict) else {}


def stored_variables(table: pd.DataFrame, record: dict[str, Any]) -> tuple[list[Variable], list[str]]:
    """The variables of a stored sample table as they were tested, and why others of them cannot be shown.

    Parameters
    ----------
    table : DataFrame
        As of `stored_samples`.
    record : dict
        As of `stored_record`.
    """
    found, problems = list[Variable](), list[str]()
    for name, read in _readers(table, record):
        try:
            variable = read()
        except (InputError, ValueError, KeyError) as problem:
            problems.append(f"{shown(name)} ({problem})")
            continue
        if variable.kind != LEFT_OUT:
            found.append(variable)
        else:
            problems.append(f"{shown(name)} ({variable.reason})")
    return found, problems


def _readers(table: pd.DataFrame, record: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Variable]]]:
    """The name of each variable that was tested, and a function that returns it."""
    for each in _records(record):
        name = str(each.get("name"))
        if each.get("type") in (CATEGORICAL, ORDERED):
            yield name, partial(_levels, table, name, str(each["type"]))
        elif each.get("type") == NUMERIC:
            yield name, partial(_numbers, table, name)
    for pair in (pair for pair in _listed(record, "survival") if isinstance(pair, list) and len(pair) == 2):
        yield str(pair[0]), partial(survival_times, table.astype(object), str(pair[0]), str(pair[1]))


def _records(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in _listed(record, "variables") if isinstance(each, dict)]


def _listed(record: dict[str, Any], name: str) -> list[Any]:
    """An entry of a record, which may have been changed."""
    return found if isinstance(found := record.get(name), list) else []


def _numbers(table: pd.DataFrame, name: str) -> Variable:
    return as_type(table[name], NUMERIC)


def _levels(table: pd.DataFrame, name: str, kind: str) -> Variable:
    column = table[name]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        raise InputError(f"sample_info.tsv has other levels than associations.json: {_AGAIN}")
    values = column.cat.codes.to_numpy().astype(np.float64)
    values[values < 0] = np.nan
    return Variable(name, kind, "as tested", values, tuple(map(str, column.cat.categories)))
