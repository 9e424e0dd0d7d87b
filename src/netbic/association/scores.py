"""Scores and groups of samples in modules, from a table with a row for each module and sample (samples.tsv)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from netbic.errors import InputError, shown

_COLUMNS = ("module", "sample", "score", "group")


def wide(samples: pd.DataFrame, names: Iterable[object] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores and groups, samples by modules, from the table of `selection.sample_groups`.

    Rows are matched by module and by name, so that their order does not matter.

    Parameters
    ----------
    samples : DataFrame
        `module`, `sample`, `score` and `group`.
    names : iterable of str, optional
        The samples, in the order of the result. Default: those of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"module": [0, 1, 0, 1], "sample": list("aabb"), "score": [1.0, 2, 3, 4], "group": "up"})
    >>> wide(table)[0].to_dict("list")
    {0: [1.0, 3.0], 1: [2.0, 4.0]}
    """
    if missing := [name for name in _COLUMNS if name not in samples]:
        raise InputError(f"the table of scores has no column {missing[0]}: give the table of `sample_groups`")
    if samples.empty:
        raise InputError("there are no modules to compare with the sample table")
    modules = pd.Index(np.unique(samples["module"].to_numpy()), name="module")
    samples = samples.sort_values("module", kind="stable")
    own = samples["sample"].astype(str).to_numpy(dtype=object)
    first = own[: int((samples["module"] == modules[0]).sum())]
    order = first if names is None else np.array([str(name) for name in names], dtype=object)
    if not np.array_equal(own, np.tile(order, len(modules))):
        samples = samples.iloc[_places(samples["module"].to_numpy(), own, modules, order)]
    shape = (len(modules), order.size)
    scores, groups = (
        pd.DataFrame(values.to_numpy().reshape(shape).T, index=pd.Index(order, name="sample"), columns=modules)
        for values in (_numbers(samples["score"]), samples["group"].astype(object).fillna(""))
    )
    return scores, groups


def _places(of_rows: Any, own: Any, modules: pd.Index[Any], order: Any) -> Any:
    """The row of each module and sample; an error unless there is exactly one."""
    rows = pd.MultiIndex.from_arrays([of_rows, own])
    if rows.has_duplicates:
        module, sample = rows[rows.duplicated()][0]
        raise InputError(
            f"the table of scores has several rows of module {module} and sample {shown(str(sample))}: it must have "
            "one row for each module and sample"
        )
    places = rows.get_indexer(pd.MultiIndex.from_product([modules, order]))
    if (places < 0).any() or len(rows) != places.size:
        raise InputError(
            f"the table of scores has {len(rows):,} rows for {len(modules):,} modules and {len(order):,} samples: it "
            "must have one row for each module and sample"
        )
    return places


def _numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    try:
        return column.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError("the table of scores has scores that are not numbers: fit again") from None


def matched_scores(
    samples: pd.DataFrame | None, n_modules: int, names: Iterable[object]
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Scores and groups of the samples of a model, in their order; None if the table is about others or missing."""
    if samples is None or samples.empty:
        return None
    try:
        scores, groups = wide(samples, names)
    except InputError:
        return None
    return (scores, groups) if [int(module) for module in scores.columns] == list(range(n_modules)) else None
