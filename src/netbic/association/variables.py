"""Types of the columns of a sample table: categories, ordered levels, numbers, survival times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.arrays import Bools, Floats, Indices
from netbic.errors import InputError, shown
from netbic.io import is_number, is_plain_number

CATEGORICAL, ORDERED, NUMERIC, SURVIVAL, LEFT_OUT = "categorical", "ordered", "numeric", "survival", "left out"
TYPES: Final = (CATEGORICAL, ORDERED, NUMERIC)
MOST_LEVELS: Final = 50
_FEWEST = 3  # samples with a value
_DATE = "a date or duration: write it as a number, such as days since the first one"
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(\D|$)")
_LISTED = 8  # columns of a sample table in an error
Types = Mapping[str, "str | Sequence[object]"]


@dataclass(frozen=True)
class Variable:
    """A column of a sample table, or a pair of them (survival), as numbers.

    Attributes
    ----------
    name : str
    kind : {"categorical", "ordered", "numeric", "survival", "left out"}
    reason : str
        How the kind was found, in words.
    values : array
        Numbers or times; for levels their positions in `levels`. NaN where the value is missing.
    levels : tuple of str
    events : array of bool
        For survival: whether the event was seen.
    """

    name: str
    kind: str
    reason: str
    values: Floats = field(repr=False)
    levels: tuple[str, ...] = ()
    events: Bools | None = field(default=None, repr=False)

    @property
    def known(self) -> Bools:
        """Which samples have a value."""
        return ~np.isnan(self.values)

    def record(self) -> dict[str, Any]:
        """A row of the table of variables."""
        listed = (" < " if self.kind == ORDERED else ", ").join(self.levels)
        counts = {"n_levels": len(self.levels), "n": int(self.known.sum()), "missing": int((~self.known).sum())}
        return {"name": self.name, "type": self.kind, "reason": self.reason, "levels": listed, **counts}

    def columns(self) -> Floats:
        """Columns of a design matrix: the numbers, or an indicator of every level but the first; NaN if missing."""
        if self.kind == NUMERIC:
            return np.asarray(self.values[:, None])
        indicators: Floats = (self.values[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        indicators[~self.known] = np.nan
        return indicators


def codes(variable: Variable, rows: Bools) -> Indices:
    """Positions of the levels of some samples, all of them with a value."""
    return variable.values[rows].astype(np.intp)


def guess(column: pd.Series[Any]) -> Variable:
    """A column with the type that its values suggest.

    Examples
    --------
    >>> import pandas as pd
    >>> for values in (["a", "b", "a"], [1.5, 2, 3], [0, 1, 1], ["p1", "p2", "p3"]):
    ...     found = guess(pd.Series(values, name="x"))
    ...     print(found.kind, "-", found.reason)
    categorical - text with 2 different values
    numeric - numbers
    categorical - 2 different numbers
    left out - every value is different: it looks like an identifier
    """
    kind = column.dtype
    if column.notna().sum() == 0:
        return _left_out(column, "all values are missing")
    if isinstance(kind, pd.CategoricalDtype):
        return _levels(column, ORDERED if kind.ordered else CATEGORICAL, "ordered categories" * bool(kind.ordered))
    if pd.api.types.is_bool_dtype(kind):
        return _levels(column, CATEGORICAL, "true or false")
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return _left_out(column, _DATE)
    if not pd.api.types.is_numeric_dtype(kind):
        column = _parsed(column)
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return _levels(column, CATEGORICAL, "")
    distinct = column.nunique()
    if distinct <= 2:
        return _levels(column, CATEGORICAL, f"{distinct} different numbers")
    return _numbers(column, "numbers")


def as_type(column: pd.Series[Any], kind: str | Sequence[object]) -> Variable:
    """A column with a given type, or with ordered levels in a given order; an error if it has another one.

    Examples
    --------
    >>> import pandas as pd
    >>> as_type(pd.Series(["low", "high", "low"], name="grade"), ["low", "high"]).values.tolist()
    [0.0, 1.0, 0.0]
    """
    name, reason = str(column.name), "as given"
    if not isinstance(kind, str):
        return _in_order(column, [label(level) for level in kind])
    if kind not in TYPES:
        known = ", ".join(TYPES)
        raise InputError(
            f"{shown(kind)} is not a type of variable ({shown(name)}): choose {known} (`types`)", ["types"]
        )
    if kind == NUMERIC:
        return _numbers(_parsed(column, strict=True), reason)
    if kind == ORDERED and not (isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered):
        parsed = _parsed(column)
        column = parsed if pd.api.types.is_numeric_dtype(parsed.dtype) else column
        reason = "as given, in the order of the numbers" if column is parsed else "as given, in alphabetical order"
    return _levels(column, kind, reason)


def survival_times(table: pd.DataFrame, time: str, event: str) -> Variable:
    """Times and events of two columns as one variable, named after the time.

    Events may be 0 and 1, True and False, or text that begins with "0:" and "1:".

    Examples
    --------
    >>> import pandas as pd
    >>> found = survival_times(pd.DataFrame({"days": [10, 20, 5], "dead": [1, 0, 1]}), "days", "dead")
    >>> found.values.tolist(), found.events.tolist()
    ([10.0, 20.0, 5.0], [True, False, True])
    """
    if is_events(table[time]) and not is_events(table[event]):
        raise InputError(f"{shown(time)} contains events, not times: name the time first (`survival`)", ["survival"])
    times, events = _parsed(table[time], strict=True).to_numpy(dtype=np.float64, na_value=np.nan), _events(table[event])
    times = np.where(np.isfinite(times), times, np.nan)
    if (negative := times < 0).any():
        raise InputError(
            f"{shown(time)} has {negative.sum():,} negative times (for example {times[negative][0]:g}): correct or "
            "remove them; times count from the start of the observation"
        )
    times[np.isnan(events)] = np.nan
    known = ~np.isnan(times)
    if not known.any():
        raise InputError(f"no sample has both a time ({shown(time)}) and an event ({shown(event)}): check the columns")
    if not (events[known] == 1).any():
        raise InputError(
            f"{shown(event)} has no event (all {known.sum():,} values are 0), so survival cannot be tested: check the "
            "column"
        )
    n_events = int((events[known] == 1).sum())
    return Variable(time, SURVIVAL, f"event: {event}, {n_events:,} seen", times, events=events == 1)


def is_events(column: pd.Series[Any]) -> bool:
    """Whether a column can be read as events."""
    try:
        return bool(np.isfinite(_events(column)).any())
    except InputError:
        return False


def _events(column: pd.Series[Any]) -> Floats:
    """1 for an event, 0 for none, NaN if missing."""
    known = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0}
    labels = column.map(label, na_action="ignore").astype(object)
    found = labels.map(lambda label: known.get(re.sub(r"^([01]):.*", r"\1", label.lower())), na_action="ignore")
    if (wrong := labels[labels.notna() & found.isna()].unique()).size:
        as_in_r = " (subtract 1 if 2 means seen)" if set(labels.dropna()) == {"1", "2"} else ""
        raise InputError(
            f"{shown(str(column.name))} has the value {shown(wrong[0])}, which is not an event: write 1 where the "
            f"event was seen and 0 where it was not{as_in_r}"
        )
    return np.asarray(found, dtype=np.float64)


def _levels(column: pd.Series[Any], kind: str, reason: str) -> Variable:
    labels = column if isinstance(column.dtype, pd.CategoricalDtype) else _categories(column)
    text = labels.cat.categories.dtype.kind == "O"
    of_categories = [label(level) for level in labels.cat.categories]
    used = set(labels.cat.codes.unique().tolist())
    names = tuple(dict.fromkeys(name for code, name in enumerate(of_categories) if name and code in used))
    places = {name: place for place, name in enumerate(names)} | {"": np.nan}  # an empty label is a missing value
    values = np.array([*(places.get(name, np.nan) for name in of_categories), np.nan])[labels.cat.codes.to_numpy()]
    n_known = int((~np.isnan(values)).sum())
    if len(names) < 2:
        return _left_out(column, f"all values are the same ({shown(names[0])})" if names else "all values are missing")
    if text and len(names) == n_known and n_known >= _FEWEST and reason != "as given":
        dates = all(_ISO_DATE.match(name) for name in names)
        return _left_out(column, _DATE if dates else "every value is different: it looks like an identifier")
    if len(names) > MOST_LEVELS:
        return _left_out(column, f"{len(names):,} different values (at most {MOST_LEVELS} levels are tested)")
    return Variable(str(column.name), kind, reason or f"text with {len(names)} different values", values, names)


def _categories(column: pd.Series[Any]) -> pd.Series[Any]:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        column = column.map(label, na_action="ignore")
    return column.astype("category")


def _in_order(column: pd.Series[Any], order: list[str]) -> Variable:
    labels = column.map(label, na_action="ignore").astype(object)
    if wrong := [label for label in labels.dropna().unique() if label not in order]:
        raise InputError(
            f"{shown(str(column.name))} has the value {shown(wrong[0])}, which is not among the levels "
            f"{', '.join(order)}: name all levels (`types`), or make it a missing value (`na_values`)",
            ["types", "na_values"],
        )
    kind = pd.CategoricalDtype(order, ordered=True)
    return _levels(pd.Series(labels.astype(kind), name=column.name), ORDERED, "as given")


def _numbers(column: pd.Series[Any], reason: str) -> Variable:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    values[~np.isfinite(values)] = np.nan
    known = values[~np.isnan(values)]
    if known.size < _FEWEST or np.ptp(known) == 0:
        few = f"only {known.size} values" if known.size < _FEWEST else f"all values are the same ({known[0]:g})"
        return _left_out(column, few)
    return Variable(str(column.name), NUMERIC, reason, values)


def _left_out(column: pd.Series[Any], reason: str) -> Variable:
    values = np.where(column.notna(), 0.0, np.nan)
    return Variable(str(column.name), LEFT_OUT, reason, values)


def _parsed(column: pd.Series[Any], strict: bool = False) -> pd.Series[Any]:
    """A column as numbers if all of its values are numbers; if it must be numbers, an error.

    Codes and identifiers that consist of digits (001, or more of them than a number keeps) are not numbers, unless they
    must be.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    labels = column.astype(object).map(label, na_action="ignore")
    labels = labels.where(labels != "")
    is_one = is_number if strict else is_plain_number
    wrong = [value for value in labels.dropna().unique() if not is_one(value)]
    if not wrong:
        return labels.map(float, na_action="ignore").astype(np.float64)
    if strict:
        raise InputError(
            f"{shown(str(column.name))} has the value {shown(wrong[0])}, which is not a number: write numbers, "
            "and leave unknown values empty"
        )
    return column


def label(value: object) -> str:
    r"""A value as text; whole numbers without a decimal point, control characters as escapes.

    Examples
    --------
    >>> label(2.0), label(" low "), label("red\x1b[31m")
    ('2', 'low', 'red\\x1b[31m')
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return without_controls(str(value).strip())


def without_controls(text: str) -> str:
    """Text with escapes for characters that no XML (a saved figure, a page) may contain."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def check_known(names: Iterable[str], known: Iterable[object], parameter: str) -> None:
    """Raise if a name is not that of a column; the error lists columns, the most similar ones first."""
    columns = [str(name) for name in known]
    for name in names:
        if name not in columns:
            lowered = {column.lower(): column for column in columns}
            close = [lowered[each] for each in get_close_matches(name.lower(), lowered, 3, 0.6)]
            listed = list(dict.fromkeys([*close, *columns]))[:_LISTED]
            it_has = ", ".join([*listed, *["..."] * (len(columns) > len(listed))])
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise InputError(
                f"the sample table has no column {shown(name)} (`{parameter}`): it has {it_has}{meant}", [parameter]
            )
