"""Matching the rows of a sample table to the samples of the modules, with a summary of what matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from netbic.errors import InputError, one_line, shown

_NAMED = 3  # names shown of those that do not match
_FEW = 0.5  # share of the samples below which a reason is looked for
_WAYS: list[tuple[str, Callable[[str], str]]] = [
    ("capital letters", str.lower),
    ("characters such as '-', '.' and '_'", lambda name: re.sub(r"[^0-9a-z]+", "-", name.lower()).strip("-")),
    ("an X before the number, as R adds it", lambda name: re.sub(r"^x(?=\d)", "", name.lower())),
    ("their ends: one side has patients, the other samples of them", lambda name: name[:12].upper()),  # TCGA
]


@dataclass(frozen=True)
class SampleMatch:
    """How the rows of a sample table were matched to samples.

    Attributes
    ----------
    table : DataFrame
        A row for every sample, in the order of the samples; missing values where a sample has no row.
    n_rows : int
        Rows of the given table.
    matched : int
        Samples with a row.
    column : str
        Where the names were found: "" for the index.
    unmatched, unused : tuple of str
        Samples without a row, and rows without a sample.
    advice : str
        A likely reason why names differ, or "".
    """

    table: pd.DataFrame = field(repr=False)
    n_rows: int
    matched: int
    column: str = ""
    unmatched: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    advice: str = ""

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        n_samples, named = len(self.table), f", names of samples in {shown(self.column)}" if self.column else ""
        n_columns = self.table.shape[1]
        yield f"sample table: {self.n_rows:,} rows x {n_columns:,} column{'s' * (n_columns != 1)}{named}"
        share = f"{self.matched / n_samples:.0%}" if self.matched == n_samples else f"{self.matched / n_samples:.1%}"
        yield f"matched: {self.matched:,} of {n_samples:,} samples ({share})"
        for names, what in ((self.unmatched, "samples without a row"), (self.unused, "rows of other samples")):
            if names:
                yield f"{what}: {len(names):,} ({_some(names)})"
        if self.advice:
            yield self.advice


def match_samples(samples: pd.Index[Any], table: pd.DataFrame) -> SampleMatch:
    r"""Find the row of every sample in a table, by its index or by the column that has the most names in common.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"patient": ["b", "a", "d"], "grade": [1, 2, 3]})
    >>> found = match_samples(pd.Index(["a", "b", "c"]), table)
    >>> print(*found.lines(), sep="\n")
    sample table: 3 rows x 1 column, names of samples in 'patient'
    matched: 2 of 3 samples (66.7%)
    samples without a row: 1 ('c')
    rows of other samples: 1 ('d')
    """
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"the sample table is a {type(table).__name__}: give a pandas DataFrame")
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    if table.columns.has_duplicates:
        repeated = table.columns[table.columns.duplicated()][0]
        raise InputError(f"the sample table has several columns {shown(repeated)}: rename or remove them")
    names = pd.Index([str(name) for name in samples], dtype=object)
    table, column = _by_names(names, table)
    keys = pd.Index([_name(key) for key in table.index], dtype=object)
    common = keys.isin(names)
    if not common.any():
        raise _no_common(names, keys, table)
    if (twice := keys[common].duplicated()).any():
        raise InputError(
            f"sample {shown(keys[common][twice][0])} occurs more than once in the sample table "
            f"({int(twice.sum()):,} rows too many): keep one row for each sample"
        )
    own = table[common].set_axis(keys[common]).reindex(names).set_axis(samples)
    unmatched, unused = tuple(names[~names.isin(keys)]), tuple(keys[~common])
    few = len(unmatched) > _FEW * len(names)
    advice = _reason(unmatched, unused) if few and unused else ""
    return SampleMatch(own, len(table), len(names) - len(unmatched), column, unmatched, unused, advice)


def _by_names(names: pd.Index[Any], table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The table with the names of the samples as its index, and the column that they were in ("": the index)."""
    best, column, known = _n_common(names, table.index), "", set(names)
    for each in table.columns:
        values = table[each]
        if values.dtype.kind in "OSUiu" or isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
            common = len(known.intersection(_name(value) for value in values.dropna().unique()))
            if common > best:
                best, column = common, each
    if column == "":
        return table, ""
    return table.set_index(column), str(column)


def _n_common(names: pd.Index[Any], others: pd.Index[Any]) -> int:
    return len(set(names).intersection(_name(other) for other in others))


def _name(value: object) -> str:
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()  # type: ignore[call-overload]


def _no_common(names: pd.Index[Any], keys: pd.Index[Any], table: pd.DataFrame) -> InputError:
    if _n_common(names, table.columns):
        return InputError(
            f"the samples ({_some(names)}) are in the columns of the sample table: exchange rows and columns, so that "
            "it has a row for each sample"
        )
    reason = _reason(tuple(names), tuple(keys)) or "Use the same names in both"
    examples = f"modules: {_some(names)}; table: {_some(keys)}"
    return InputError(one_line(f"no sample of the modules is in the sample table ({examples}). {reason}"))


def _reason(names: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Why names may differ: the first way of writing them in which more than half of the fewer agree."""
    for difference, simplified in _WAYS:
        own, theirs = ({simplified(name) for name in each} for each in (names, others))
        if len(own & theirs) > _FEW * min(len(own), len(theirs)):
            example = next(name for name in names if simplified(name) in theirs)
            partner = next(other for other in others if simplified(other) == simplified(example))
            return f"Names differ in {difference} ({shown(example)} and {shown(partner)}): make them the same"
    return ""


def _some(names: Any) -> str:
    return ", ".join(shown(str(name)) for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
