"""Associations of modules with what is known about the samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import kind_of
from netbic.errors import InputError
from netbic.estimators import check_count
from netbic.pl import base

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes

    from netbic.association import Associations

_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_LEGEND = "* q \N{LESS-THAN OR EQUAL TO} 0.05, ** 0.01, *** 0.001"
_LONGEST_NAME = 72


def associations(
    table: Associations | pd.DataFrame | AnnData | str | Path,
    *,
    names: Sequence[str] | None = None,
    n_columns: int = 40,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot the associations of modules (rows) with variables of the samples (columns), as a heatmap of signed effects.

    Red means that the samples of a level, or with large values, have high scores in the module; blue that they have low
    scores. The colour is Spearman's correlation for numbers, 2 AUC - 1 for a level of a category against all others,
    and for survival times the binary logarithm of the hazard ratio per standard deviation of the scores, cut at 1: the
    risk doubles (red) or halves (blue). The same number is written in the cell, with one star for an adjusted p-value
    of up to 0.05, two up to 0.01 and three up to 0.001. Of a category with two levels, only the first one is drawn,
    because the second one is its opposite. Grey cells have no value.

    Parameters
    ----------
    table : Associations, DataFrame, AnnData after `tl.associate`, or folder of a fit
        The result of `netbic.associate` or its `table`, or the content of associations.tsv.
    names : list of str, optional
        Names of all modules, e.g. of `netbic.enrichment.module_names`.
    n_columns : int
        Maximum number of columns; those with the smallest adjusted p-values are drawn.
    key : str
        Key of the modules in an AnnData object.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic, pandas as pd
    >>> columns = ["module", "variable", "level", "effect", "effect_name", "q"]
    >>> rows = [(1, "er", "ER+", 0.94, "AUC", 1e-9), (1, "age", "", -0.1, "Spearman rho", 0.3)]
    >>> ax = netbic.pl.associations(pd.DataFrame(rows, columns=columns))
    >>> [text.get_text() for text in ax.texts]
    ['0.88***', '−0.10']
    """
    from netbic.association import Associations
    from netbic.get import associations_df

    check_count("n_columns", n_columns)
    if isinstance(table, Associations):
        table = table.table
    elif isinstance(table, (str, Path)) or kind_of(table) == "anndata":
        table = associations_df(table, key=key)
    elif not isinstance(table, pd.DataFrame):
        what = "the result of netbic.associate or its .table, an AnnData object, or the folder of a fit"
        raise TypeError(f"table={type(table).__name__}: expected {what}")
    grid = effect_grid(table, n_columns)
    if not grid.columns:
        ax = base.axes_for(ax, (4.0, 1.5))
        ax.text(0.5, 0.5, "no association has a direction", transform=ax.transAxes, ha="center", size=base.SMALL)
        ax.set_axis_off()
        return ax
    from matplotlib import colormaps

    columns, modules = grid.columns, sorted({int(module) for module in table["module"]})
    values = np.full((len(modules), len(columns)), np.nan)
    for (module, column), row in grid.cells.items():
        values[modules.index(module), column] = row["signed"]
    labels = [str(module) for module in modules]
    if names is not None and max(modules) > len(names):
        raise InputError(f"{len(names)} names are given but the table has module {max(modules)}: name all")
    if names is not None:
        labels = [base.label_text(f"{module}: {names[module - 1]}", _LONGEST_NAME) for module in modules]
    width = 2.0 + 0.06 * max(map(len, labels)) + 0.52 * len(columns)
    ax = base.axes_for(ax, (width, max(1.9 + 0.27 * len(modules), 3.2)))
    colours = colormaps[base.DIVERGING].with_extremes(bad="0.88")
    image = ax.imshow(values, cmap=colours, vmin=-1, vmax=1, aspect="auto", interpolation="none")
    style: dict[str, Any] = {"ha": "center", "va": "center", "size": base.SMALL - 1.5}
    for (module, column), row in grid.cells.items():
        ink = "white" if abs(row["signed"]) > 0.6 else "black"
        ax.text(column, modules.index(module), f"{row['text']}{row['stars']}", color=ink, **style)
    ax.set_yticks(range(len(modules)), labels, fontsize=base.SMALL, **base.LITERAL)
    rotated: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", **base.LITERAL}
    ax.set_xticks(range(len(columns)), [base.label_text(name, 32) for name in columns], fontsize=base.SMALL, **rotated)
    ax.set_ylabel("module")
    ax.set_title(_LEGEND, loc="right", size=base.SMALL - 1)
    base.without_frame(ax)
    base.colour_bar(image, ax, "\n".join(grid.scales), shrink=0.9)
    return ax


class EffectGrid(NamedTuple):
    """Modules by levels of variables: rows of the table by module and position of the column.

    Each has also `signed`, a number from -1 to 1, `text`, the same with two digits, and `stars` for its q-value.
    """

    columns: list[str]
    cells: dict[tuple[int, int], dict[Any, Any]]
    scales: list[str]  # what the numbers are
    n_left_out: int  # columns


def effect_grid(table: pd.DataFrame, most: int) -> EffectGrid:
    """The effects that have a direction, in the columns with the smallest q-values, in the order of the table."""
    from netbic.association import signed_effects

    drawn = signed_effects(table)
    if drawn.empty:
        return EffectGrid([], {}, [], 0)
    best = drawn.groupby("column", sort=False)["q"].min().nsmallest(most).index
    columns = [str(column) for column in dict.fromkeys(drawn["column"]) if column in best]
    places = {column: at for at, column in enumerate(columns)}
    shown = drawn[drawn["column"].isin(columns)]
    cells = dict[tuple[int, int], dict[Any, Any]]()
    for row in shown[np.isfinite(shown["signed"].astype(float))].to_dict("records"):
        text = f"{row['signed']:z.2f}".replace("-", base.MINUS)  # z: 0.00, not -0.00
        stars = next((stars for limit, stars in _STARS if row["q"] <= limit), "")
        cells[int(row["module"]), places[row["column"]]] = {**row, "text": text, "stars": stars}
    return EffectGrid(columns, cells, list(dict.fromkeys(shown["scale"])), drawn["column"].nunique() - len(columns))
