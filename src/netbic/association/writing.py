"""Associations as files in the folder of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd

from netbic.association.associations import Associations, wide
from netbic.errors import unusable
from netbic.files import add_files, json_bytes, read_table, table_bytes

TABLE, SAMPLES, RECORD = "associations.tsv", "sample_info.tsv", "associations.json"
WRITTEN: Final = (TABLE, SAMPLES, RECORD)
_SCORES, _VERDICTS = "samples.tsv", "verdicts.tsv"


def write_associations(found: Associations, folder: Path) -> None:
    """Write associations.tsv, sample_info.tsv and associations.json; all appear at the same time.

    sample_info.tsv has a row for each sample, in the order of samples.tsv, and their names in its first column.
    associations.json contains the table of variables, the covariates and how many samples were matched.
    """
    record: dict[str, Any] = {
        "samples": len(found.match.table),
        "matched": found.match.matched,
        "adjusted_for": list(found.adjusted_for),
        "variables": [{str(key): value for key, value in row.items()} for row in found.variables.to_dict("records")],
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
    table = table.reset_index(drop=True)
    table.insert(0, name, [str(sample) for sample in found.match.table.index])
    return table


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


def stored_scores(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and groups, samples by modules, of the fit in a folder."""
    path = folder / _SCORES
    if not path.is_file():
        raise unusable(path, "does not exist", "give the folder of a fit (netbic fit), or fit again with this version")
    try:
        table = read_table(path)
    except (ValueError, OSError):
        raise unusable(path, "cannot be read as a table", "fit again") from None
    if missing := [name for name in ("module", "sample", "score", "group") if name not in table]:
        raise unusable(path, f"has no column {missing[0]}", "fit again")
    return wide(table)
