"""Convergence of the objective of each module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.estimators import SparseGraphSVD
from netbic.pl.canvas import (
    ALARM,
    GREY,
    PALETTE,
    SEQUENTIAL,
    SMALL,
    axes_for,
    colour_bar,
    despine,
    integer_ticks,
    module_colour,
    set_title,
)
from netbic.pl.source import chosen_modules, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike

_CONVERGED: Final[dict[str, Any]] = {"lw": 1.2, "marker": "o", "ms": 4}
_NOT_CONVERGED: Final[dict[str, Any]] = {"lw": 1.2, "marker": "x", "ms": 8, "mew": 2, "ls": ":"}


def convergence(
    model: ModelLike, *, modules: Iterable[int] | None = None, key: str = "netbic", ax: Axes | None = None
) -> Axes:
    """Plot the distance of the objective F of each module from its final value, by iteration.

    The distance is relative, `|F - F_final| / |F_final|`, on a logarithmic scale. Distances below a tenth of the
    tolerance are drawn there. The lines of modules that did not converge end in a cross, one iteration before the last,
    and are labelled in the legend.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    modules : list of int, optional
        Numbered from 0; labels count from 1. Default: all.
    key : str
        Key of the modules in an AnnData object (`key_added` of `tl.modules`).
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.05, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=50, n_columns=50, column_graph=toy.column_graph).fit(toy.X)
    >>> netbic.pl.convergence(model).get_title(loc="left")
    '2 of 2 modules converged'
    """
    found = fitted(model, key)
    chosen = chosen_modules(found, modules)
    ax = axes_for(ax, (5.5, 4.0))
    tolerance = float(found.tol)
    lines = {}
    for module, colour in zip(chosen, _colours(ax, chosen), strict=True):
        converged = bool(found.converged_[module])
        gaps = np.maximum(relative_gaps(found.objectives_[module]), tolerance / 10)
        if not converged:  # its final value is unknown, so the last distance is not 0
            gaps = gaps[:-1] if gaps.size > 1 else np.ones(1)
        style = {"color": colour, "label": f"module {module + 1}"} | (_CONVERGED if converged else _NOT_CONVERGED)
        lines[module] = ax.plot(np.arange(1, gaps.size + 1), gaps, markevery=[-1], **style)[0]
    ax.axhline(tolerance, color=GREY, lw=0.8, ls="--", label="_tolerance")
    ax.set_yscale("log")
    ax.set(xlabel="iteration", ylabel="relative distance to the final F")
    integer_ticks(ax.xaxis)
    despine(ax)
    _label(ax, found, lines)
    return ax


def relative_gaps(objectives: NDArray[Any]) -> NDArray[np.float64]:
    """Distance of F from its last value, relative to that value.

    Examples
    --------
    >>> relative_gaps([8.0, 9.0, 10.0]).tolist()
    [0.2, 0.1, 0.0]
    """
    values = np.asarray(objectives, dtype=np.float64)
    last = values[-1] if values.size else 1.0
    return np.abs(values - last) / (abs(last) or 1.0)


def _colours(ax: Axes, chosen: list[int]) -> list[Any]:
    """A colour per module: of the palette, or of a sequential scale if there are more modules."""
    if len(chosen) <= len(PALETTE):
        return [module_colour(module) for module in chosen]
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(min(chosen) + 1, max(chosen) + 1), colormaps[SEQUENTIAL])
    colour_bar(scale, ax, "module")
    return list(scale.to_rgba(np.asarray(chosen, dtype=float) + 1))


def _label(ax: Axes, model: SparseGraphSVD, lines: dict[int, Any]) -> None:
    """Label the modules that did not converge; all modules, if they are few."""
    chosen = list(lines)
    failed = [module for module in chosen if not model.converged_[module]]
    set_title(ax, f"{len(chosen) - len(failed)} of {len(chosen)} modules converged")
    for module in failed:
        lines[module].set_label(f"module {module + 1}: not converged")
        if len(chosen) > len(PALETTE):
            lines[module].set(color=ALARM, linestyle="-")
    named = chosen if len(chosen) <= len(PALETTE) else failed[:12]
    if named:
        ax.legend(handles=[lines[module] for module in named], frameon=False, fontsize=SMALL)
