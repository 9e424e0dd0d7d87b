"""Singular values of the modules, and of data with random signs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netbic.pl.canvas import GREY, PALETTE, SMALL, axes_for, despine, integer_ticks, set_title
from netbic.pl.source import fitted
from netbic.selection import ModuleCount

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike


def singular_values(
    model: ModelLike, count: ModuleCount | None = None, *, key: str = "netbic", ax: Axes | None = None
) -> Axes:
    """Plot the singular values of the modules, and the number of significant modules.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    count : ModuleCount, optional
        The result of `selection.n_modules`. Its modules are found without a graph, after clipping extreme entries and
        scaling samples to similar noise, so their singular values (triangles, filled if significant) differ slightly
        from those of the model; the dashed line is the mean of data with random signs.
    key : str
        Key of the modules in an AnnData object (`key_added` of `tl.modules`).
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(4, n_rows=40, n_columns=60).fit(study.expression)
    >>> count = netbic.selection.n_modules(model, study.expression, random_state=0)
    >>> netbic.pl.singular_values(model, count).get_title(loc="left")
    '2 modules stand out; the next does not (p = ...).'
    """
    found = fitted(model, key)
    if count is not None and not isinstance(count, ModuleCount):
        raise TypeError(f"count={type(count).__name__}: expected the result of selection.n_modules")
    ax = axes_for(ax, (5.5, 4.0))
    numbers = np.arange(1, found.n_components_ + 1)
    ax.plot(numbers, found.singular_values_, "o-", color=PALETTE[0], ms=5, lw=1, label="modules of the model")
    if count is not None:
        _draw_count(ax, count)
        ax.legend(frameon=False, fontsize=SMALL)
    ax.set(xlabel="module", ylabel="singular value d")
    ax.set_ylim(bottom=0)
    integer_ticks(ax.xaxis)
    despine(ax)
    title = f"{found.n_components_} modules" if count is None else count.verdict
    set_title(ax, title)
    return ax


def _draw_count(ax: Axes, count: ModuleCount) -> None:
    """The tested modules, the mean of data with random signs, and a line after the last significant module."""
    table = count.table
    numbers, values = table["module"].to_numpy() + 1, table["statistic"].to_numpy()
    significant = numbers <= count.n
    colour = PALETTE[5]
    ax.plot(numbers, table["expected"], ls="--", marker=".", color=GREY, lw=1, label="random signs (mean)")
    ax.plot(numbers, values, color=colour, lw=0.8, alpha=0.6, label="_tested")
    for mask, face, label in ((significant, colour, "tested, stands out"), (~significant, "white", "tested, does not")):
        if mask.any():
            label += f" (p {'<=' if face == colour else '='} {table['p_value'][mask].max():.2g})"
            ax.scatter(numbers[mask], values[mask], marker="^", s=36, c=face, edgecolors=colour, label=label, zorder=3)
    if not count.exhausted:
        ax.axvline(count.n + 0.5, color="0.3", lw=0.8, ls=":", label="_stop")
