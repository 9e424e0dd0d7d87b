"""The values of a column of a sample table as text, as numbers, or as events."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.errors import InputError, shown
from netbic.io.tables import is_number, is_plain_number

# Numbers in a form that is not read: what they are, and what to write.
WRITTEN: Final = {
    re.compile(r"[+-]?\d+(,\d+)+(\.\d+)?"): "numbers with a comma: write 1.5 for one and a half, 1000 for a thousand",
    re.compile(r"[+-]?\d+([.,]\d+)?\s*%"): "percentages: write the numbers without %",
    re.compile(r"[<>\u2264\u2265]=?\s*\d+([.,]\d+)?"): "numbers beyond a limit: write a number, such as the limit, or "
    "leave them empty",
}
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
PLAIN_EVENTS: Final = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "no": 0.0, "yes": 1.0}
_SEEN = (
    *("event", "dead", "deceased", "died", "death", "relapse", "relapsed", "recurrence", "recurred", "progression"),
    *("progressed", "recurred/progressed", "metastasis"),
)
_NOT_SEEN = (
    *("no event", "censored", "alive", "living", "disease free", "diseasefree", "disease-free", "event free"),
    *("no relapse", "relapse free", "no recurrence", "recurrence free", "no progression", "progression free"),
    "no metastasis",
)
_EVENTS: Final = PLAIN_EVENTS | dict.fromkeys(_SEEN, 1.0) | dict.fromkeys(_NOT_SEEN, 0.0)


def label(value: object) -> str:
    """A value as text; whole numbers without a decimal point, control characters as escapes."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return without_controls(str(value).strip())


def without_controls(text: str) -> str:
    """Text with escapes for characters that no XML (a saved figure, a page) may contain."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def as_numbers(column: pd.Series[Any], strict: bool = False) -> pd.Series[Any]:
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
        written = next((text for form, text in WRITTEN.items() if form.fullmatch(wrong[0])), "")
        remedy = written.partition(": ")[2] or "write numbers, and leave unknown values empty"
        raise InputError(f"{shown(str(column.name))} has the value {shown(wrong[0])}, which is not a number: {remedy}")
    return column


def whole_numbers(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """The known values of a column if all are whole numbers of at least 0 (none of them true or false)."""
    numbers = as_numbers(column)
    if not pd.api.types.is_numeric_dtype(numbers.dtype) or pd.api.types.is_bool_dtype(numbers.dtype):
        return None
    known = numbers.dropna().astype(np.float64)
    return known if len(known) and bool(((known >= 0) & (known % 1 == 0)).all()) else None


def read_events(column: pd.Series[Any]) -> Floats:
    """1 for an event, 0 for none, NaN if missing; an error if the values say anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> read_events(pd.Series(["0:LIVING", "1:DECEASED", None])).tolist()
    [0.0, 1.0, nan]
    >>> read_events(pd.Series(["alive", "Dead"])).tolist()
    [0.0, 1.0]
    """
    labels = column.map(label, na_action="ignore").astype(object)
    labels = labels.where(labels != "")
    found = labels.map(_event, na_action="ignore")
    if (wrong := labels[labels.notna() & found.isna()].unique()).size:
        as_in_r = " (subtract 1 if 2 means seen)" if set(labels.dropna()) == {"1", "2"} else ""
        raise InputError(
            f"{shown(str(column.name))} has the value {shown(wrong[0])}, which is not an event: write 1 where the "
            f"event was seen and 0 where it was not{as_in_r}"
        )
    return np.asarray(found, dtype=np.float64)


def _event(text: str) -> float | None:
    return _EVENTS.get(re.sub(r"^([01]):.*", r"\1", text.lower()))


def is_events(column: pd.Series[Any]) -> bool:
    """Whether a column can be read as events."""
    try:
        return bool(np.isfinite(read_events(column)).any())
    except InputError:
        return False
