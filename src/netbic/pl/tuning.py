"""Scores of all settings of a tuning, and the chosen one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from netbic.estimators import is_number
from netbic.pl.canvas import ALARM, GREY, PALETTE, SEQUENTIAL, SMALL, axes_for, colour_bar, despine, set_title
from netbic.pl.names import LITERAL, label_text
from netbic.selection import Tuning, printable, standard_error_of_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Scores(NamedTuple):
    table: pd.DataFrame
    settings: list[str]  # those that vary; the first is on the x axis
    level: float  # scores above are within one standard error of the best


def tuning(tuning: Tuning, *, ax: Axes | None = None) -> Axes:
    """Plot the score of every setting of a tuning.

    One parameter gives a curve with standard errors; the line is one standard error (of the difference) below the best.
    Two parameters give a surface, further ones a panel per value; dots mark settings within one standard error of the
    best. The star is the chosen setting.

    Parameters
    ----------
    tuning : Tuning
        The result of `selection.tune`.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_rows=50, center=None)
    >>> found = netbic.selection.tune(model, toy.X, {"n_columns": [10, 30, 50, 70, 100]}, random_state=0)
    >>> netbic.pl.tuning(found).get_title(loc="left")
    'chosen: n_columns=50'
    """
    if not isinstance(tuning, Tuning):
        raise TypeError(f"tuning={type(tuning).__name__}: expected the result of selection.tune")
    scores = _scores(tuning)
    wide = 5.5 if len(scores.settings) < 3 else 10.0
    ax = axes_for(ax, (wide, 4.0))
    (_draw_curve if len(scores.settings) == 1 else _draw_surface)(ax, scores)
    chosen = ", ".join(f"{name}={value}" for name, value in tuning.best_params_.items())
    above = 1.8 * SMALL * len(scores.settings[2:])  # for the titles of the panels
    set_title(ax, f"chosen: {label_text(chosen, 80)}", pad=6 + above, **LITERAL)
    return ax


def _scores(tuning: Tuning) -> _Scores:
    points = [printable(point) for point in tuning.cv_results_["params"]]
    settings = list(dict.fromkeys(name for point in points for name in point))
    table = pd.DataFrame({name: pd.Series([point.get(name) for point in points], dtype=object) for name in settings})
    table = table.join(tuning.table[["score", "standard_error", "chosen"]])
    varying = [name for name in settings if len(_values(table[name])) > 1] or settings[:1]
    usual = ["n_columns", "n_rows"]
    varying.sort(key=lambda name: usual.index(name) if name in usual else len(usual))
    level = float(table["score"].max()) - standard_error_of_difference(tuning.cv_results_)
    return _Scores(table, varying, level)


def _values(column: Iterable[Any]) -> list[Any]:
    """The different values of a parameter: numbers in increasing order, then others."""
    different = list(dict.fromkeys(column))
    return sorted(filter(is_number, different)) + [value for value in different if not is_number(value)]


def _draw_curve(ax: Axes, scores: _Scores) -> None:
    name, table = scores.settings[0], scores.table
    values = _values(table[name])
    positions = np.array([values.index(value) for value in table[name]])
    order = np.argsort(positions, kind="stable")
    line = table.iloc[order]
    ax.errorbar(positions[order], line["score"], line["standard_error"], marker="o", ms=4, lw=1.2, color=PALETTE[0])
    ax.axhline(scores.level, color=GREY, lw=0.8, ls="--", label="_one standard error")
    own = table["chosen"].to_numpy()
    ax.scatter(positions[own], table["score"][own], marker="*", s=180, c=ALARM, edgecolors="black", lw=0.5, zorder=4)
    ax.set_xticks(range(len(values)), [label_text(value) for value in values], **LITERAL)
    ax.set(xlabel=name, ylabel="score")
    despine(ax)


def _draw_surface(ax: Axes, scores: _Scores) -> None:
    x, y, *others = scores.settings
    table = scores.table
    across, up = _values(table[x]), _values(table[y])
    panels = list(product(*(_values(table[name]) for name in others)))
    step = len(across) + 1  # an empty column between panels
    in_panel = [panels.index(point) for point in zip(*(table[name] for name in others), strict=True)] if others else 0
    positions = np.array([across.index(value) for value in table[x]]) + step * np.asarray(in_panel)
    heights = np.array([up.index(value) for value in table[y]])
    _draw_cells(ax, positions, heights, table["score"].to_numpy(), (len(up), len(panels) * step - 1))
    _mark(ax, positions, heights, scores)
    ticks = [step * panel + place for panel in range(len(panels)) for place in range(len(across))]
    rotated: dict[str, Any] = {"rotation": 90} if len(ticks) > 8 else {}
    ax.set_xticks(
        ticks, [label_text(value, 12) for value in across * len(panels)], fontsize=SMALL, **LITERAL, **rotated
    )
    ax.set_yticks(range(len(up)), [label_text(value, 12) for value in up], fontsize=SMALL, **LITERAL)
    ax.set(xlabel=x, ylabel=y)
    for panel, values in enumerate(panels if others else ()):
        title = "\n".join(f"{name}={label_text(value, 16)}" for name, value in zip(others, values, strict=True))
        middle = step * panel + (len(across) - 1) / 2
        ax.text(middle, len(up) - 0.4, title, ha="center", va="bottom", size=SMALL, **LITERAL)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _draw_cells(
    ax: Axes, positions: NDArray[Any], heights: NDArray[Any], values: NDArray[Any], shape: tuple[int, int]
) -> None:
    surface = np.full(shape, np.nan)
    surface[heights, positions] = values
    image = ax.imshow(surface, cmap=SEQUENTIAL, origin="lower", aspect="auto", interpolation="none")
    colour_bar(image, ax, "score", shrink=0.8)


def _mark(ax: Axes, positions: NDArray[Any], heights: NDArray[Any], scores: _Scores) -> None:
    own = scores.table["chosen"].to_numpy()
    near = (scores.table["score"].to_numpy() >= scores.level) & ~own
    ax.scatter(positions[near], heights[near], s=10, c="black", zorder=3, label="within one standard error of the best")
    ax.scatter(
        positions[own], heights[own], marker="*", s=180, c=ALARM, edgecolors="black", lw=0.5, zorder=4, label="chosen"
    )
