"""Associations inside each level of a column, such as those of a disease inside each cell type."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.association.associate import Associations, associate_scores, with_q_values
from netbic.association.guesses import MOST_LEVELS
from netbic.association.values import label
from netbic.association.variables import (
    LEFT_OUT,
    ORDERED,
    SURVIVAL,
    SampleMatch,
    Variable,
    check_known,
    listed_names,
    read_variables,
    repeated_measures,
    survival_pairs,
)
from netbic.errors import InputError, shown, some_names

_FEWEST_AVERAGED = 10  # cells of a donor in a level, if donors have many


def associate_within(
    scores: pd.DataFrame,
    groups: pd.DataFrame | None,
    match: SampleMatch,
    within: str,
    asked: dict[str, Any],
    sample_name: str,
) -> Associations:
    """The tests of `associate_scores` inside each level of a column, of one variable at a time.

    `asked` are `variables`, `types`, `survival`, `adjust` and `by` as for `associate_scores`. Types are those that the
    columns have in all samples.
    """
    labels, own = _levels(match.table, within, asked), match.table.drop(columns=within, errors="ignore")
    levels, covariates, by = sorted(labels.dropna().unique()), asked["adjust"], listed_names(asked["by"])
    few, notes = _few(own, by, labels, sample_name) if by else (np.zeros(len(own), dtype=bool), [])
    known = read_variables(own, **{name: value for name, value in asked.items() if name != "by"})
    known = [variable for variable in known if variable.kind != LEFT_OUT]
    tested = [variable for variable in known if variable.name not in (*covariates, *by)]
    types = {each.name: list(each.levels) if each.kind == ORDERED else each.kind for each in known}
    events = dict(survival_pairs(asked["survival"]))
    tables, problems, order = list[pd.DataFrame](), dict[str, str](), dict[str, tuple[str, ...]]()
    for variable, level in product(tested, levels):
        inside, title = (labels == level).to_numpy() & ~few, _title(variable.name, level)
        if not inside.any():
            problems[title] = f"no {' and '.join(by)} has enough {sample_name}s"
            continue
        part = scores[inside], None if groups is None else groups[inside], own[inside]
        # A covariate that is the same everywhere in a level has no effect to adjust for.
        adjust = [name for name in covariates if len(own.loc[inside, name].dropna().unique()) > 1]
        try:
            with warnings.catch_warnings(action="ignore"):  # of repeated measures: they are counted in all samples
                found = associate_scores(*part, **_one(variable, events, types, adjust), adjust=adjust, by=by or None)
        except InputError as problem:
            problems[title] = str(problem)
            continue
        tables.append(found.table.assign(within=level))
        order[title] = found.levels.get(variable.name, ())
    if not tables:
        raise InputError(next(iter(problems.values()), f"no variable can be tested inside the levels of {within}"))
    repeated = [] if by else list(repeated_measures(own, tested, sample_name))
    for each in repeated:
        warnings.warn(each, UserWarning, stacklevel=4)
    notes = [*notes, f"tests are those inside each level of {within}; q-values count all levels together"]
    if n_unknown := int(labels.isna().sum()):
        notes.append(f"{n_unknown:,} {sample_name}s without a value of {within} are left out")
    notes += [f"{title} is not tested: {why}" for title, why in problems.items()]
    records = pd.DataFrame([variable.record() for variable in known])
    about = tuple(covariates), (*notes, *repeated), tuple(events.items()), tuple(by), order
    return Associations(_table(tables), records, match, *about)


def _few(
    table: pd.DataFrame, by: list[str], labels: pd.Series[Any], sample_name: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Which samples are too few for an average inside their level, and a note for each level.

    If donors have dozens of cells, the average of a few is mostly noise. Replicates of a sample are few everywhere: all
    of them are used.
    """
    check_known(by, table.columns, "by")
    known = table[by].notna().all(axis=1) & labels.notna()
    units = table.loc[known, by].astype(str).agg(" ".join, axis=1)
    fewest = min(_FEWEST_AVERAGED, int(units.value_counts().median()) // 3) if known.any() else 0
    sizes = units.groupby([labels[known], units]).transform("size").reindex(table.index)
    few, notes = (sizes < fewest).to_numpy(), []
    for level, own in units[few[known]].groupby(labels[known][few[known]]):
        names = own.unique()
        what = f"{len(names):,} of {units[labels[known] == level].nunique():,} averages"
        notes.append(
            f"{level}: {what} are left out, those of fewer than {fewest} {sample_name}s ({some_names(names, 3)})"
        )
    return few, notes


def _levels(table: pd.DataFrame, within: str, asked: dict[str, Any]) -> pd.Series[Any]:
    """The level of each sample as text; an error if the column cannot be used."""
    check_known([within], table.columns, "within")
    if within in (*listed_names(asked["variables"]), *asked["adjust"]):
        raise InputError(f"{shown(within)} is the same in all samples inside a level of it (`within`)", ["within"])
    labels = table[within].astype(object).map(label, na_action="ignore")
    if not 0 < (n := labels.nunique()) <= MOST_LEVELS:
        raise InputError(f"{shown(within)} has {n:,} levels (`within`): 1 to {MOST_LEVELS} are needed", ["within"])
    return labels


def _one(variable: Variable, events: dict[str, str], types: dict[str, Any], adjust: list[str]) -> dict[str, Any]:
    """What `associate_scores` is asked to test a single variable."""
    if variable.kind == SURVIVAL:
        asked: dict[str, Any] = {"variables": [], "survival": (variable.name, events[variable.name])}
    else:
        asked = {"variables": [variable.name]}
    return asked | {"types": {name: types[name] for name in (*asked["variables"], *adjust)}}


def _title(name: str, level: str) -> str:
    """What a variable is called inside a level."""
    return f"{name} within {level}"


def _table(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """All tests, with q-values that count all levels, and names that tell the levels apart."""
    table = with_q_values(pd.concat(tables, ignore_index=True))
    names = zip(table["variable"], table["within"], strict=True)
    table["variable"] = np.array([_title(*each) for each in names], dtype=object)
    table.insert(2, "within", table.pop("within"))
    return table
