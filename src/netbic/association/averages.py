"""Averages of samples that belong together, such as the cells of a donor, and columns that suggest to use them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from netbic.arrays import Indices
from netbic.association.variables import LEFT_OUT, NUMERIC, SURVIVAL, Variable, check_known
from netbic.errors import InputError, shown

_UNIT = re.compile(
    r"donor|patient|subject|individual|participant|animal|mouse|mice|family|replicate|pair", re.IGNORECASE
)
_FEWEST, _COARSER = 3, 3  # groups of at least two samples; groups per level of a variable


@dataclass(frozen=True)
class Averages:
    """Samples with the same values in some columns of a sample table.

    Attributes
    ----------
    numbers : array of int
        The group of each sample; -1 if one of its values is missing.
    table : DataFrame
        A row per group: the columns that have one value in each of them.
    by : tuple of str
    """

    numbers: Indices = field(repr=False)
    table: pd.DataFrame = field(repr=False)
    by: tuple[str, ...]

    @classmethod
    def of(cls, table: pd.DataFrame, by: Iterable[str], needed: Iterable[str] = ()) -> Self:
        """Group the rows of a table; an error if a column that is needed has several values in a group.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"donor": list("aabb"), "age": [50, 50, 60, 60], "cell": range(4)})
        >>> found = Averages.of(table, ["donor"])
        >>> found.table.columns.tolist(), found.mean(pd.DataFrame({0: [1.0, 2.0, 3.0, 5.0]}))[0].tolist()
        (['donor', 'age'], [1.5, 4.0])
        """
        by, needed = list(by), list(needed)
        check_known(by, table.columns, "by")
        known = table[by].notna().all(axis=1).to_numpy()
        if not known.any():
            raise InputError(f"no sample has a value of {' and '.join(by)} (`by`): give other columns", ["by"])
        numbers = np.full(len(table), -1, dtype=np.intp)
        numbers[known] = table.loc[known, by].groupby(by, observed=True, sort=False).ngroup()
        own, sets = table[known], numbers[known]
        constant = [name for name in own.columns if own[name].groupby(sets).nunique(dropna=False).le(1).all()]
        if varying := [name for name in needed if name in own.columns and name not in constant]:
            raise InputError(
                f"{shown(varying[0])} has several values among samples of the same {' and '.join(by)}: add it to `by`",
                ["by"],
            )
        first = own[~pd.Series(sets).duplicated().to_numpy()]  # in the order of the groups
        return cls(numbers, first[constant], tuple(by))

    def mean(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Mean scores of the groups, in the order of `table`."""
        known = self.numbers >= 0
        return scores[known].groupby(self.numbers[known]).mean().set_axis(self.table.index, axis=0)

    def note(self) -> str:
        """What is tested, in words."""
        left_out = int((self.numbers < 0).sum())
        without = f"; {left_out:,} samples without a value are left out" if left_out else ""
        means = f"averages of {len(self.table):,} groups of samples with the same {' and '.join(self.by)}"
        return f"tests compare {means}{without}; columns with several values in a group are not tested"


def repeated_measures(table: pd.DataFrame, variables: Iterable[Variable]) -> Iterator[tuple[list[str], str, int]]:
    """Variables that are the same in all samples with the same value of another column, that column, its values.

    A treatment that is the same in all cells of a donor is a property of the donors: tests that count cells as
    independent have p-values that are far too small. The column has at least three values that occur more than once,
    and fewer values than half of the samples. If its name does not say that it stands for donors or the like, it must
    have three times as many values as the variable has levels: a coarser version of a label is no reason for a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> from netbic.association import read_variables
    >>> table = pd.DataFrame({"donor": list("aaabbbccc"), "drug": list("xxxxxxyyy"), "cell": list("pqppqpqqp")})
    >>> list(repeated_measures(table, read_variables(table)))
    [(['drug'], 'donor', 3)]
    """
    tested = [each for each in variables if each.kind not in (LEFT_OUT, SURVIVAL)]
    found: dict[str, list[str]] = {}
    units = {name: column for name in table.columns if (column := _unit(table[name])) is not None}
    for variable in tested:
        fitting = [name for name, unit in units.items() if name != variable.name and _nested(variable, unit)]
        if fitting:
            best = min(fitting, key=lambda name: (not _UNIT.search(name), units[name].nunique()))
            found.setdefault(best, []).append(variable.name)
    for name, names in found.items():
        if rest := [each for each in names if each not in found]:
            yield rest, name, int(units[name].nunique())


def _unit(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """A column that may say which samples belong together."""
    named = bool(_UNIT.search(str(column.name)))
    if pd.api.types.is_numeric_dtype(column.dtype) and not (named and pd.api.types.is_integer_dtype(column.dtype)):
        return None
    sizes = column.value_counts()
    enough = (sizes >= 2).sum() >= _FEWEST and 2 * (sizes > 0).sum() < column.notna().sum()
    return column.astype(object) if enough else None


def _nested(variable: Variable, unit: pd.Series[Any]) -> bool:
    known = variable.known & unit.notna().to_numpy()
    values, sets = pd.Series(variable.values[known]), unit.to_numpy()[known]
    n_sets, n_values = pd.Series(sets).nunique(), values.nunique()
    if n_sets < _FEWEST or not values.groupby(sets).nunique().le(1).all():
        return False
    if _UNIT.search(str(unit.name)):
        return variable.kind == NUMERIC or n_sets > n_values
    return bool(n_sets >= _COARSER * n_values)
