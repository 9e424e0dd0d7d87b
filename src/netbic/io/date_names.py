"""Gene names that a spreadsheet changed to dates: MARCH1 to 1-Mar, SEPT2 to 2-Sep or 2001-09-02."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("jan", "feb", "mar mär mrz mars", "apr", "may mai", "jun", "jul", "aug"),
            *("sep sept", "oct okt", "nov", "dec dez"),
        ),
        start=1,
    )
    for name in names.split()
}
_DAY_MONTH = re.compile(r"(\d{1,2})(?:-|\. ?)([^\W\d]{3,4})\.?(?:-\d{2,4})?$", re.IGNORECASE)  # 1-Mar, 01-Mar-01
_MONTH_DAY = re.compile(r"([A-Z][a-z]{2})-(\d{1,2})$")  # Mar-01
_ISO = re.compile(r"(?:19|20)\d\d-(\d\d)-(\d\d)(?:[ T]00:00(?::00(?:\.0+)?)?)?$")  # 2001-03-01 00:00:00
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(?:\d\d)?\d\d$")  # 3/1/2001, month or day first
_SERIAL = re.compile(r"\d{5}$")
_DAY_ZERO = date(1899, 12, 30)  # of the serial numbers of spreadsheets
_YEARS = range(1995, 2050)  # those in which a symbol can have become a date
_MOST = 100  # far more than the symbols that look like dates: otherwise these are dates and not genes


def genes_as_dates(genes: Sequence[str]) -> dict[str, str]:
    """Names that look like dates, each with the gene it stands for, such as "MARCHF1 (formerly MARCH1)"; "" if unknown.

    Numbers such as 44256 are taken for dates only if nearly all other names are not numbers, and only on days that
    stand for a gene; Entrez ids are numbers too.

    Examples
    --------
    >>> genes_as_dates(["TP53", "1-Mar", "2001-09-02 00:00:00", "MYC", "EGFR"])
    {'1-Mar': 'MARCHF1 (formerly MARCH1)', '2001-09-02 00:00:00': 'SEPTIN2 (formerly SEPT2)'}
    """
    names = [str(gene).strip() for gene in genes]
    numbers = [name for name in names if name.isdecimal()]
    found = {name: _gene(*day) for name in names if name[:1].isalnum() and (day := _day(name)) is not None}
    if len(numbers) <= min(_MOST, 0.05 * len(names)):
        found |= {name: gene for name in numbers if (day := _serial(name)) is not None and (gene := _gene(*day))}
    return found if len(found) <= min(_MOST, 0.5 * len(names)) else {}


def _day(name: str) -> tuple[int, int] | None:
    """Month and day of a name that looks like a date."""
    if (parts := _DAY_MONTH.match(name)) and parts[2].lower() in _MONTHS:
        return _valid(_MONTHS[parts[2].lower()], int(parts[1]))
    if (parts := _MONTH_DAY.match(name)) and parts[1].lower() in _MONTHS:
        return _valid(_MONTHS[parts[1].lower()], int(parts[2]))
    if parts := _ISO.match(name):
        return _valid(int(parts[1]), int(parts[2]))
    if parts := _SLASHES.match(name):
        first, second = int(parts[1]), int(parts[2])
        return _valid(first, second) if _gene(first, second) else _valid(second, first)
    return None


def _valid(month: int, day: int) -> tuple[int, int] | None:
    return (month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _serial(name: str) -> tuple[int, int] | None:
    """Month and day of the serial number of a date."""
    if not _SERIAL.match(name):
        return None
    when = _DAY_ZERO + timedelta(days=int(name))
    return (when.month, when.day) if when.year in _YEARS else None


def _gene(month: int, day: int) -> str:
    """The human gene whose earlier symbol spreadsheets read as this day."""
    if month == 3 and day <= 11:
        return f"MARCHF{day} (formerly MARCH{day})"
    if month == 9 and day <= 14:
        return f"SEPTIN{day} (formerly SEPT{day})"
    return {(9, 15): "SELENOF (formerly SEP15)", (12, 1): "DELEC1 (formerly DEC1)"}.get((month, day), "")
