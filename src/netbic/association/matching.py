"""Matching the rows of a sample table to the samples of the modules, with a summary of what matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from netbic.association.variables import without_controls
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
    table = check_table(table)
    table = table.set_axis([without_controls(str(name)) for name in table.columns], axis=1)
    if table.columns.has_duplicates:
        repeated = table.columns[table.columns.duplicated()][0]
        raise InputError(f"the sample table has several columns {shown(repeated)}: rename or remove them")
    names, keys, table, column = _common_names(samples, table)
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


def check_table(table: object) -> pd.DataFrame:
    """The sample table; an error if it is not a table."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"the sample table is a {type(table).__name__}: give a pandas DataFrame")
    return table


def _common_names(
    samples: pd.Index[Any], table: pd.DataFrame
) -> tuple[pd.Index[Any], pd.Index[Any], pd.DataFrame, str]:
    """Names of samples and rows, the table without the names, and their column.

    Names are compared as they are or, if more of them are then equal, without spaces around them and without ".0".
    """
    ways = [_by_names(samples, table, way) for way in (str, _name)]
    names, keys, column, _ = max(ways, key=lambda found: (found[-1], found[-2] == ""))  # rather the index
    return names, keys, table if column == "" else table.drop(columns=column), column


def _by_names(
    samples: pd.Index[Any], table: pd.DataFrame, way: Callable[[object], str]
) -> tuple[pd.Index[Any], pd.Index[Any], str, int]:
    """Names of the samples and of the rows, the column of the latter ("": the index), and how many are equal."""
    names = pd.Index([way(name) for name in samples], dtype=object)
    keys, column, known = [way(name) for name in table.index], "", set(names)
    best = len(known.intersection(keys))
    for each in table.columns:
        values = table[each]
        if values.dtype.kind in "OSUiu" or isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype):
            common = len(known.intersection(way(value) for value in values.dropna().unique()))
            if common > best:
                best, column, keys = common, str(each), [way(value) for value in values]
    return names, pd.Index(keys, dtype=object), column, best


def _n_common(names: pd.Index[Any], others: pd.Index[Any]) -> int:
    return len(set(names).intersection(_name(other) for other in others))


def _name(value: object) -> str:
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(value).strip())


def _no_common(names: pd.Index[Any], keys: pd.Index[Any], table: pd.DataFrame) -> InputError:
    if _n_common(names, table.columns):
        return InputError(
            f"the samples ({_some(names)}) are in the columns of the sample table: exchange rows and columns, so that "
            "it has a row for each sample"
        )
    reason = _reason(tuple(names), tuple(keys)) or "Use the same names in both"
    examples = f"fit: {_some(names)}; table: {_some(keys)}"
    return InputError(one_line(f"no sample of the fit is in the sample table ({examples}). {reason}"))


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
