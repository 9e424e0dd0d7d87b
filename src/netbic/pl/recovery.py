"""Performance of methods as a setting changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from netbic.errors import InputError
from netbic.pl.canvas import PALETTE, SMALL, axes_for, despine
from netbic.pl.names import LITERAL, label_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS: Final = "os^vDPX"


def recovery(
    table: pd.DataFrame,
    *,
    x: str = "x",
    method: str = "method",
    value: str = "value",
    spread: str | None = None,
    colours: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot one curve per method from a tidy table.

    Parameters
    ----------
    table : DataFrame
        One row per point; or several, of repeated runs: then means are drawn, with standard errors as bars.
    x, method, value : str
        Columns with the horizontal position, the method, and the vertical position.
    spread : str, optional
        Column with the half lengths of the error bars.
    colours : mapping, optional
        Colours of some methods; others get colours of the palette, in the order of the table.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic, pandas as pd
    >>> table = pd.DataFrame({"noise": [1, 2, 1, 2], "method": ["a", "a", "b", "b"], "f1": [0.9, 0.7, 0.8, 0.4]})
    >>> ax = netbic.pl.recovery(table, x="noise", value="f1")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    curves = _curves(table, x, method, value, spread)
    ax = axes_for(ax, (5.5, 4.0))
    for number, (name, part) in enumerate(curves.groupby("method", sort=False)):
        colour = (colours or {}).get(str(name), PALETTE[number % len(PALETTE)])
        ax.errorbar(
            part["x"], part["value"], part["spread"], color=colour, marker=_MARKERS[number % len(_MARKERS)], ms=5,
            lw=1.4, elinewidth=0.9, label=label_text(name, 40).lstrip("_") or "?",
        )  # fmt: skip
    ax.set_xlabel(label_text(x, 40), **LITERAL)
    ax.set_ylabel(label_text(value, 40), **LITERAL)
    despine(ax)
    for text in ax.legend(frameon=False, fontsize=SMALL).get_texts():
        text.set(**LITERAL)
    return ax


def _curves(table: pd.DataFrame, x: str, method: str, value: str, spread: str | None) -> pd.DataFrame:
    """Columns `method`, `x`, `value` and `spread`, one row per point, ordered along each curve."""
    if missing := [name for name in (x, method, value, spread) if name is not None and name not in table]:
        known = ", ".join(map(str, table.columns))
        raise InputError(f"the table has no column {missing[0]!r} (there are: {known}): set x, method or value")
    if table.empty:
        raise InputError("the table has no rows")
    named = pd.DataFrame({"method": table[method], "x": table[x], "value": table[value]})
    named["spread"] = 0.0 if spread is None else table[spread]
    groups = named.groupby(["method", "x"], sort=False)
    points = groups["value"].agg(["mean", "sem"]).reset_index()
    points = points.rename(columns={"mean": "value", "sem": "spread"}).fillna({"spread": 0.0})
    if spread is not None:
        points["spread"] = groups["spread"].mean().to_numpy()
    order = {name: number for number, name in enumerate(named["method"].unique())}
    return points.sort_values(["method", "x"], key=lambda part: part.map(order) if part.name == "method" else part)
