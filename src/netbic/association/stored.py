"""Associations in the folder of a fit: what is written there, and scores, verdicts and sample table read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.association.associate import Associations, wide
from netbic.association.values import label
from netbic.association.variables import (
    CATEGORICAL,
    LEFT_OUT,
    NUMERIC,
    ORDERED,
    Variable,
    as_type,
    survival_times,
)
from netbic.enrichment import adjust_p_values
from netbic.errors import InputError, shown, some_names, unusable
from netbic.files import add_files, json_bytes, read_json, read_table, table_bytes
from netbic.storage.tables import read_results_table

TABLE, SAMPLES, RECORD = "associations.tsv", "sample_info.tsv", "associations.json"
_LISTED: Final = 8
_AGAIN = "run netbic associate again"


class OtherTests(InputError):
    """Tests that cannot be added to those in a folder, because they were made in another way."""


def files_of_associations(name: str = "") -> tuple[str, str]:
    """The files with the tests and with what is known about them; those beside the usual ones have a name."""
    if name and not re.fullmatch(r"[A-Za-z0-9][\w-]*", name, re.ASCII):
        raise InputError(f"{shown(name)} cannot be part of the name of a file: use letters, digits, - and _ (`name`)")
    return (f"associations_{name}.tsv", f"associations_{name}.json") if name else (TABLE, RECORD)


def write_associations(found: Associations, folder: Path, *, name: str = "", force: bool = False) -> str:
    """Add tests to associations.tsv, sample_info.tsv and associations.json in a folder; all appear at the same time.

    Earlier tests of other variables remain, those of the same variables are replaced. q_all is computed again for all
    tests of the table. sample_info.tsv has a row for each sample, in the order of samples.tsv, and their names in its
    first column. associations.json contains the table of variables, the covariates and how many samples were matched.

    Parameters
    ----------
    found : Associations
    folder : Path
    name : str, optional
        Write associations_NAME.tsv and associations_NAME.json instead, beside the usual ones.
    force : bool
        Remove all earlier tests.

    Returns
    -------
    str
        What was written, in words.
    """
    table_name, record_name = files_of_associations(name)
    record: dict[str, Any] = {
        "samples": len(found.match.table),
        "matched": found.match.matched,
        "adjusted_for": list(found.adjusted_for),
        "variables": [
            {str(key): value for key, value in row.items()} | {"levels": list(found.levels.get(str(row["name"]), ()))}
            for row in found.variables.to_dict("records")
        ],
        "notes": list(found.notes),
        "of_batches": list(found.of_batches),
        "survival": [list(pair) for pair in found.survival],
    }
    if found.by:
        record["by"] = list(found.by)
    written = _Written(found.table, _samples_table(found.match.table), record, tests_in_words(found.table))
    if (folder / table_name).is_file() and not force:
        written = _added(written, folder, name)
    tables = {table_name: written.tests} | ({} if name else {SAMPLES: written.samples})
    contents = {each: table_bytes(folder / each, content) for each, content in tables.items()}
    add_files(folder, contents | {record_name: json_bytes(written.record)})
    return f"{table_name}: {written.said}"


class _Written(NamedTuple):
    """What is written: tests, samples, what is known about the variables, and what is said about it."""

    tests: pd.DataFrame
    samples: pd.DataFrame
    record: dict[str, Any]
    said: str


def _added(new: _Written, folder: Path, name: str) -> _Written:
    """New tests with the earlier ones of other variables; an error if these were made in another way."""
    table_name, record_name = files_of_associations(name)
    earlier, before = read_table(folder / table_name), stored_record(folder, record_name)
    way, way_before = _way(new.record), _way(before) if before else f"that {record_name} does not describe"
    if way != way_before:
        raise OtherTests(f"{folder / table_name} has tests {way_before}; these are {way}")
    tested, said = set(new.tests["variable"]), new.said
    remaining = earlier[~earlier["variable"].isin(tested)]
    kept = set(remaining["variable"])
    if again := [variable for variable in earlier["variable"].unique() if variable in tested]:
        said += f", those of {some_names(again, _LISTED, quoted=False)} in place of earlier ones"
    if kept:
        said += f", added to {tests_in_words(remaining)}"
    tests = pd.concat([remaining.astype({"level": object}).fillna({"level": ""}), new.tests]) if kept else new.tests
    samples = new.samples
    if not name and (folder / SAMPLES).is_file():
        of_kept = kept | {event for time, event in before["survival"] if time in kept}
        samples = _with_columns(samples, read_table(folder / SAMPLES, as_text=True), of_kept)
    # Of pairs, the data are not read again: what was said of their batches still holds.
    said_again = new.record | {"of_batches": before.get("of_batches", [])} if "pair" in new.tests else new.record
    record = _with_earlier(said_again, before, kept)
    return _Written(tests.assign(q_all=adjust_p_values(tests["p"].astype(np.float64))), samples, record, said)


def tests_in_words(table: pd.DataFrame) -> str:
    """How many tests of how many variables a table has."""
    n_variables = table["variable"].nunique()
    return f"{len(table):,} test{'s' * (len(table) != 1)} of {n_variables} variable{'s' * (n_variables != 1)}"


def _way(record: dict[str, Any]) -> str:
    """How variables were tested, in words."""
    adjusted, by = (", ".join(map(str, record.get(key) or ())) for key in ("adjusted_for", "by"))
    what = f"averages of samples with the same {by}" if by else "single samples"
    return f"of {what}, {f'adjusted for {adjusted}' if adjusted else 'not adjusted'}"


def _samples_table(matched: pd.DataFrame) -> pd.DataFrame:
    """The table of samples as it is written: the names in the first column, values as the tests name them."""
    name = "sample"
    while name in matched:
        name += "_name"
    columns: dict[str, Any] = {name: [str(sample) for sample in matched.index]}
    for each, column in matched.items():
        is_date = column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype)
        # The level 1 of a column of floats is not written as 1.0.
        values = column if is_date else column.astype(object).map(label, na_action="ignore")
        columns[str(each)] = values.to_numpy()
    return pd.DataFrame(columns)


def _with_earlier(record: dict[str, Any], before: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    """What is known about all variables, if the tests of some earlier ones remain."""
    variables = {each["name"]: each for each in before["variables"]}
    variables |= {each["name"]: each for each in record["variables"] if each["name"] not in kept}
    for event in (event for _, event in record["survival"] if event not in kept):
        variables.pop(event, None)
    survival = [list(pair) for pair in before["survival"] if pair[0] in kept] + record["survival"]
    notes = {
        kind: list(dict.fromkeys([*(before.get(kind, []) if kept else []), *record[kind]]))
        for kind in ("notes", "of_batches")
    }
    return record | {"variables": list(variables.values()), "survival": survival} | notes


def _with_columns(samples: pd.DataFrame, earlier: pd.DataFrame, kept: set[str]) -> pd.DataFrame:
    """A table of samples with the columns of an earlier one: those of tests that remain, and those that it lacks."""
    if list(earlier.iloc[:, 0]) != list(samples.iloc[:, 0]):
        return samples
    own = {name: earlier[name] for name in earlier.columns[1:] if name in kept or name not in samples}
    return samples.assign(**{name: column.replace("", None).to_numpy() for name, column in own.items()})


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
    """The verdicts on the modules or pairs of a folder ("strong", "repeats 1", ...); empty if there are none.

    Of pairs of two tables, they are in pairs.tsv, if the pairs were tested.
    """
    path, unit = folder / "verdicts.tsv", "module"
    if (pairs := folder / "pairs.tsv").is_file():
        path, unit = pairs, "pair"
    if not path.is_file():
        return {}
    try:
        table = read_table(path)
        if unit == "pair" and "verdict" not in table:
            return {}
        return {int(number): str(word) for number, word in zip(table[unit], table["verdict"], strict=True)}
    except (ValueError, KeyError, OSError):
        raise unusable(path, "cannot be read as a table of verdicts", "fit again") from None


def stored_record(folder: Path, name: str = RECORD) -> dict[str, Any]:
    """The content of associations.json, which describes the variables; empty if it does not exist or was changed."""
    if not (folder / name).is_file():
        return {}
    content: Any = read_json(folder / name)
    try:
        variables = [{"name": each["name"], "type": each["type"], **each} for each in content["variables"]]
        return {**content, "variables": variables, "survival": [(time, event) for time, event in content["survival"]]}
    except (TypeError, KeyError, ValueError):
        return {}


def adjusted_tests(folder: Path) -> dict[str, pd.DataFrame]:
    """The adjusted tests beside associations.tsv (`write_associations` with a name), by their covariates in words."""
    found = dict[str, pd.DataFrame]()
    for path in sorted(folder.glob("associations_*.json")):
        names, table = stored_record(folder, path.name).get("adjusted_for"), path.with_suffix(".tsv")
        if names and table.is_file():
            found.setdefault(", ".join(map(str, names)), read_table(table))
    return found


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
        # Samples that belong to no average may have further levels, and values such as NX no place in the order.
        if levels and (content.get("by") or record["type"] == ORDERED):
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
