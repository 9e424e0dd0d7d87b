"""The members of a module with the largest weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netbic.estimators import check_count, heaviest, names_of
from netbic.pl.canvas import NEGATIVE, POSITIVE, apply_layout, axes_for, despine, set_title
from netbic.pl.names import name_ticks
from netbic.pl.source import AXIS_NOUNS, check_axis, check_module, fitted, weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike


def loadings(
    model: ModelLike,
    module: int = 0,
    *,
    axis: str = "columns",
    n: int = 20,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot the weights of the members of a module with the largest absolute weights.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    module : int
        Modules are numbered from 0; titles count from 1.
    axis : {"columns", "rows"}
        Features or samples.
    n : int
        Maximum number of members.
    key : str
        Key of the modules in an AnnData object (`key_added` of `tl.modules`).
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60).fit(study.expression)
    >>> netbic.pl.loadings(model, 0, n=15).get_title(loc="left")
    'Module 1: 15 of 60 genes'
    """
    found = fitted(model, key)
    check_count("n", n)
    weights = weights_of(found, check_axis(axis))[check_module(found, module)]
    members = heaviest(weights)
    drawn = members[:n]
    values, positions = weights[drawn], np.arange(drawn.size)
    ax = axes_for(ax, (4.5, 1.0 + 0.2 * drawn.size))
    colours = np.where(values > 0, POSITIVE, NEGATIVE).tolist()
    ax.hlines(positions, 0, values, colors=colours, linewidths=1.2)
    ax.scatter(values, positions, c=colours, s=22, zorder=3)
    ax.axvline(0, color="0.3", lw=0.8)
    ax.set(ylim=(max(drawn.size, 1) - 0.4, -0.6), xlabel="weight")
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", nbins=6)
    despine(ax)
    shown = f"{drawn.size} of {members.size:,}" if drawn.size < members.size else f"{members.size:,}"
    set_title(ax, f"Module {module + 1}: {shown} {AXIS_NOUNS[axis]}")
    apply_layout(ax)
    name_ticks(ax, "y", positions, names_of(found, axis)[drawn], np.abs(values))
    return ax
