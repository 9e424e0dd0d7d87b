"""Scores of the samples in a module, from a model, an AnnData object, a table or the folder of a fit."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.arrays import Array, Floats
from netbic.errors import InputError
from netbic.estimators import module_scores
from netbic.exports import Results
from netbic.penalties import score_groups
from netbic.pl.source import check_module, data_of, fitted, model_columns


class SampleScores(NamedTuple):
    """Names, scores and groups (1: up, -1: down, 0: neither) of the samples; the module's number, and its name."""

    samples: Array
    values: Floats
    groups: NDArray[Any]
    number: int
    name: str = ""


def sample_scores(source: Any, X: Any, module: int, key: str) -> SampleScores:
    """The scores of a module; those of a model need the data."""
    if isinstance(source, (str, Path)):
        results = Results.of(source)
        number = check_module(results.model, module)
        if (table := results.tables.get("samples")) is None:
            raise InputError(f"{source} has no scores of the samples (samples.tsv): fit again with this version")
        return _of_table(table, number)._replace(name=results.names[number])
    if isinstance(source, pd.DataFrame):
        return _of_table(source, module)
    found = fitted(source, key)
    number, data = check_module(found, module), data_of(source, X, key)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they have been matched here
        values = module_scores(found, model_columns(found, data))[:, number]
    samples = np.arange(values.size) if data.rows is None else data.rows.to_numpy(dtype=object)
    return SampleScores(samples, values, score_groups(values).labels, number)


def _of_table(table: pd.DataFrame, module: int) -> SampleScores:
    if missing := [name for name in ("module", "sample", "score", "group") if name not in table]:
        raise InputError(f"the table has no column {missing[0]!r}: give that of selection.sample_groups")
    own = table[table["module"] == module]
    if own.empty:
        raise InputError(f"module={module!r} but the table has modules {sorted(set(table['module'].tolist()))}")
    groups = own["group"].map({"up": 1, "down": -1}).fillna(0).to_numpy(dtype=int)
    return SampleScores(own["sample"].to_numpy(dtype=object), own["score"].to_numpy(dtype=float), groups, int(module))
