"""Associations in the folder of a fit: what is written there, and scores, verdicts and sample table read from it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.association.associate import Associations, wide
from netbic.association.variables import (
    CATEGORICAL,
    LEFT_OUT,
    NUMERIC,
    ORDERED,
    Variable,
    as_type,
    label,
    survival_times,
)
from netbic.association.words import LEVEL, NOT_SIGNIFICANT
from netbic.errors import InputError, shown, unusable
from netbic.files import add_files, json_bytes, read_json, read_table, table_bytes
from netbic.storage.tables import read_results_table

TABLE, SAMPLES, RECORD = "associations.tsv", "sample_info.tsv", "associations.json"
WRITTEN: Final = (TABLE, SAMPLES, RECORD)
_AGAIN = "run netbic associate again"


def write_associations(found: Associations, folder: Path) -> None:
    """Write associations.tsv, sample_info.tsv and associations.json; all appear at the same time.

    sample_info.tsv has a row for each sample, in the order of samples.tsv, and their names in its first column.
    associations.json contains the table of variables, the covariates and how many samples were matched.
    """
    record: dict[str, Any] = {
        "samples": len(found.match.table),
        "matched": found.match.matched,
        "adjusted_for": list(found.adjusted_for),
        "variables": [
            {str(key): value for key, value in row.items()} | {"levels": list(found.levels.get(str(row["name"]), ()))}
            for row in found.variables.to_dict("records")
        ],
        "notes": list(found.notes),
        "survival": [list(pair) for pair in found.survival],
    }
    if found.by:
        record["by"] = list(found.by)
    matched, name = found.match.table, "sample"
    while name in matched:
        name += "_name"
    columns: dict[str, Any] = {name: [str(sample) for sample in matched.index]}
    for each, column in matched.items():
        is_date = column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype)
        # Values as the tests name them: the level 1 of a column of floats is not written as 1.0.
        values = column if is_date else column.astype(object).map(label, na_action="ignore")
        columns[str(each)] = values.to_numpy()
    tables = {TABLE: found.table, SAMPLES: pd.DataFrame(columns)}
    contents = {name: table_bytes(folder / name, table) for name, table in tables.items()}
    add_files(folder, contents | {RECORD: json_bytes(record)})


def stored_scores(
    folder: Path, names: Iterable[object] | None = None, n_modules: int | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and groups, samples by modules, of the fit in a folder; the samples as named, or as in its table.

    An error if these are not the samples that are named, or not so many modules.
    """
    path = folder / "samples.tsv"
    if (table := read_results_table(folder, "samples")) is None:
        raise unusable(path, "does not exist", "give the folder of a fit (netbic fit), or fit again")
    try:
        scores, groups = wide(table, names)
        if n_modules not in (None, scores.shape[1]):
            raise InputError(f"the table has scores of {scores.shape[1]:,} of the {n_modules:,} modules of the fit")
        return scores, groups
    except InputError as problem:
        raise unusable(path, str(problem), "fit again") from None


def stored_verdicts(folder: Path) -> dict[int, str]:
    """The verdicts on the modules of a folder ("strong", "repeats 1", ...); empty if there are none.

    Of pairs of two tables, those that are no stronger than expected by chance are "not significant".
    """
    path = folder / "verdicts.tsv"
    if (pairs := folder / "pairs.tsv").is_file():
        table = read_table(pairs)
        p_values: Any = table.get("p_value", [])
        return {int(number): NOT_SIGNIFICANT for number, p in zip(table["pair"], p_values, strict=False) if p > LEVEL}
    if not path.is_file():
        return {}
    try:
        table = read_table(path)
        return {int(module): str(word) for module, word in zip(table["module"], table["verdict"], strict=True)}
    except (ValueError, KeyError, OSError):
        raise unusable(path, "cannot be read as a table of verdicts", "fit again") from None


def stored_record(folder: Path) -> dict[str, Any]:
    """The content of associations.json, which describes the variables; empty if it does not exist or was changed."""
    if not (folder / RECORD).is_file():
        return {}
    content: Any = read_json(folder / RECORD)
    try:
        variables = [{"name": each["name"], "type": each["type"], **each} for each in content["variables"]]
        return {**content, "variables": variables, "survival": [(time, event) for time, event in content["survival"]]}
    except (TypeError, KeyError, ValueError):
        return {}


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
    table, content = table.where(table != ""), stored_record(folder)
    for record in content.get("variables", ()):
        name, levels = str(record["name"]), record.get("levels")
        if name not in table:
            continue
        if content.get("by") and levels:  # samples that belong to no average may have further levels
            table[name] = table[name].where(table[name].isin(levels))
        if levels and set(table[name].dropna()) <= set(levels):
            table[name] = table[name].astype(pd.CategoricalDtype(levels, ordered=record["type"] == ORDERED))
        elif record["type"] == NUMERIC:
            with suppress(ValueError):
                table[name] = table[name].astype(object).astype(np.float64)
    return table


def stored_variables(table: pd.DataFrame, record: dict[str, Any]) -> tuple[list[Variable], list[str]]:
    """The variables of `stored_samples` as they were tested (`stored_record`), and why others cannot be shown."""
    known = {CATEGORICAL, ORDERED, NUMERIC}
    tested = [each for each in record.get("variables", ()) if each["type"] in known]
    tested += [{"name": time, "event": event} for time, event in record.get("survival", ())]
    found, problems = list[Variable](), list[str]()
    for each in tested:
        name = str(each["name"])
        try:
            if "event" in each:
                variable = survival_times(table.astype(object), name, str(each["event"]))
            elif each["type"] != NUMERIC and not isinstance(table[name].dtype, pd.CategoricalDtype):
                raise InputError(f"sample_info.tsv has other levels than associations.json: {_AGAIN}")
            else:
                variable = as_type(table[name], each["type"])
        except (InputError, ValueError, KeyError) as problem:
            problems.append(f"{shown(name)} ({problem})")
            continue
        if variable.kind == LEFT_OUT:
            problems.append(f"{shown(name)} ({variable.reason})")
        else:
            found.append(variable)
    return found, problems
