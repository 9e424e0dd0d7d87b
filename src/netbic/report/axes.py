"""Round numbers for the axes of drawings."""

from __future__ import annotations

from netbic.errors import import_optional

_MOST_TICKS = 6


def round_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends."""
    locator = import_optional("matplotlib.ticker", "report", "a report").MaxNLocator(
        _MOST_TICKS - 1, steps=[1, 2, 5, 10]
    )
    return [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]


def as_label(number: float, digits: int = 6) -> str:
    """A number without trailing zeros, with a typographic minus sign.

    Examples
    --------
    >>> as_label(-0.50), as_label(1234.5678, 3)
    ('\N{MINUS SIGN}0.5', '1.23e+03')
    """
    return f"{number:z.{digits}g}".replace("-", "\N{MINUS SIGN}")
