"""Associations as files in the folder of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd

from netbic.association.associations import Associations
from netbic.association.variables import label
from netbic.files import add_files, json_bytes, table_bytes

TABLE, SAMPLES, RECORD = "associations.tsv", "sample_info.tsv", "associations.json"
WRITTEN: Final = (TABLE, SAMPLES, RECORD)


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
    tables = {TABLE: found.table, SAMPLES: sample_info(found)}
    contents = {name: table_bytes(folder / name, table) for name, table in tables.items()}
    add_files(folder, contents | {RECORD: json_bytes(record)})


def sample_info(found: Associations) -> pd.DataFrame:
    """The matched sample table with the names of the samples as its first column."""
    table = found.match.table.set_axis([str(name) for name in found.match.table.columns], axis=1)
    name = "sample"
    while name in table.columns:
        name += "_name"
    table = table.apply(_as_read).reset_index(drop=True)
    table.insert(0, name, [str(sample) for sample in found.match.table.index])
    return table


def _as_read(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column with its values as the tests name them: the level 1 of a column of floats is not written as 1.0."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return column
    return column.astype(object).map(label, na_action="ignore")
