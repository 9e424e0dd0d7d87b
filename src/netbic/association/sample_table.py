"""The columns of a sample table that are tested, and those that tests are adjusted for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.association.variables import LEFT_OUT, Types, Variable, as_type, check_known, guess, survival_times
from netbic.errors import InputError, shown

_BETWEEN: Final = "the same in all samples of each study, and each study is centred"
Survival = tuple[str, str] | Sequence[tuple[str, str]]


def read_variables(
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    studies: pd.Series[Any] | None = None,
) -> list[Variable]:
    """The columns of a sample table with their types; an error if one that was asked for cannot be used.

    If each study was centred, `studies` are the studies of the rows: columns with one value in each study, such as the
    name of the study, are left out unless they were asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": list("mfmf"), "age": [30, 41, 52, 63], "centre": "one"})
    >>> [(variable.name, variable.kind) for variable in read_variables(table)]
    [('sex', 'categorical'), ('age', 'numeric'), ('centre', 'left out')]
    """
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    pairs, types, covariates = survival_pairs(survival), dict(types or {}), listed_names(adjust)
    asked = None if variables is None else listed_names(variables)
    check_known([each for pair in pairs for each in pair], table.columns, "survival")
    for names, parameter in ((asked or [], "variables"), (types, "types"), (covariates, "adjust")):
        check_known(names, table.columns, parameter)
    _check_asked(asked, pairs, covariates)
    of_survival = {name for pair in pairs for name in pair}
    listed = [name for name in (table.columns if asked is None else asked) if name not in of_survival]
    uses = dict.fromkeys([*types, *(asked or ())], "tested") | dict.fromkeys(covariates, "adjusted for")
    found = [_variable(table, name, types, uses.get(name)) for name in dict.fromkeys([*listed, *covariates])]
    if studies is not None:
        found = [each if each.name in uses else _within_studies(each, studies) for each in found]
    found += [survival_times(table, *pair) for pair in pairs]
    return found


def listed_names(given: str | Iterable[str] | None) -> list[str]:
    """Names of columns, each once; a single one may be given as text."""
    return [given] if isinstance(given, str) else list(dict.fromkeys(given or ()))


def _check_asked(asked: list[str] | None, pairs: list[tuple[str, str]], covariates: list[str]) -> None:
    """Raise if nothing is left to test by what was asked for."""
    if asked is None or pairs:
        return
    if not asked:
        raise InputError("no variable is named (`variables`): name columns, or omit it to test all", ["variables"])
    if set(asked) <= set(covariates):
        raise InputError(
            f"{shown(asked[0])} is to be tested (`variables`) and adjusted for (`adjust`): remove it from one of them",
            ["variables", "adjust"],
        )


def survival_pairs(given: Survival | None) -> list[tuple[str, str]]:
    """Pairs of a time and an event, of one pair or several."""
    if given is None:
        return []
    pairs = [given] if given and isinstance(given[0], str) else list(given)
    if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
        raise InputError(f"survival={given!r}: name two columns, the time and the event (`survival`)", ["survival"])
    return [(str(pair[0]), str(pair[1])) for pair in pairs]


def _variable(table: pd.DataFrame, name: str, types: dict[str, Any], use: str | None) -> Variable:
    """A column as it is used; an error if that was asked for and is not possible."""
    column = table[name]
    if isinstance(column, pd.DataFrame):
        raise InputError(f"the sample table has {column.shape[1]} columns {shown(name)}: rename or remove them")
    found = as_type(column, types[name]) if name in types else guess(column)
    if use is not None and found.kind == LEFT_OUT:
        remedy = "give its type (`types`) or leave it out" if "identifier" in found.reason else "leave it out"
        remedy = "or leave it out" if "write it" in found.reason else remedy
        raise InputError(f"{shown(name)} cannot be {use}: {found.reason}; {remedy}", ["types"])
    return found


def _within_studies(variable: Variable, studies: pd.Series[Any]) -> Variable:
    """The variable; left out if it has one value in each study."""
    if variable.kind == LEFT_OUT or pd.Series(variable.values).groupby(studies.to_numpy()).nunique().gt(1).any():
        return variable
    return replace(variable, kind=LEFT_OUT, reason=_BETWEEN, levels=())


def design_of(covariates: list[Variable]) -> Floats | None:
    """The covariates as columns; an error if they leave nothing to test."""
    if not covariates:
        return None
    design = np.column_stack([variable.columns() for variable in covariates])
    complete = design[~np.isnan(design).any(axis=1)]
    rank = int(np.linalg.matrix_rank(complete - complete.mean(axis=0))) if len(complete) else 0
    if len(complete) - rank < 3 + 1:
        names = ", ".join(variable.name for variable in covariates)
        raise InputError(
            f"the covariates ({names}) leave nothing to test: {len(complete):,} samples have all of them, and they "
            f"have {rank:,} degrees of freedom; adjust for fewer (`adjust`)",
            ["adjust"],
        )
    return design
