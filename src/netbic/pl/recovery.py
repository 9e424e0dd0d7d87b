"""How much is found as a setting changes, method by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from netbic.errors import InputError
from netbic.pl.canvas import PALETTE, SMALL, axes_for, bare
from netbic.pl.names import LITERAL, shown_name

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
    """Draw a curve per method from a tidy table.

    Parameters
    ----------
    table : DataFrame
        A row per point; or several, of repeated runs: then means are drawn, with their standard errors as bars.
    x, method, value : str
        Columns: what is changed, whose curve it is, and the height.
    spread : str, optional
        Column of the bars' half lengths.
    colours : mapping, optional
        Colours of some methods; the others take those of the palette, in the table's order.
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
            lw=1.4, elinewidth=0.9, label=shown_name(name, 40).lstrip("_") or "?",
        )  # fmt: skip
    ax.set_xlabel(shown_name(x, 40), **LITERAL)
    ax.set_ylabel(shown_name(value, 40), **LITERAL)
    bare(ax)
    for text in ax.legend(frameon=False, fontsize=SMALL).get_texts():
        text.set(**LITERAL)
    return ax


def _curves(table: pd.DataFrame, x: str, method: str, value: str, spread: str | None) -> pd.DataFrame:
    """Columns `method`, `x`, `value` and `spread`, a row per point of a curve, along each curve."""
    if missing := [name for name in (x, method, value, spread) if name is not None and name not in table]:
        known = ", ".join(map(str, table.columns))
        raise InputError(f"the table has no column {missing[0]!r} (there are: {known}): name it in x, method or value")
    if table.empty:
        raise InputError("the table has no rows: there is nothing to draw")
    named = pd.DataFrame({"method": table[method], "x": table[x], "value": table[value]})
    named["spread"] = 0.0 if spread is None else table[spread]
    groups = named.groupby(["method", "x"], sort=False)
    points = groups["value"].agg(["mean", "sem"]).reset_index()
    points = points.rename(columns={"mean": "value", "sem": "spread"}).fillna({"spread": 0.0})
    if spread is not None:
        points["spread"] = groups["spread"].mean().to_numpy()
    order = {name: number for number, name in enumerate(named["method"].unique())}
    return points.sort_values(["method", "x"], key=lambda part: part.map(order) if part.name == "method" else part)
