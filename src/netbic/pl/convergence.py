"""How the objective of each module came to rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.estimators import SparseGraphSVD
from netbic.pl.canvas import (
    ALARM,
    PALETTE,
    QUIET,
    SEQUENTIAL,
    SMALL,
    axes_for,
    bare,
    colour_bar,
    count_in_whole,
    module_colour,
)
from netbic.pl.source import chosen_modules, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SETTLED: Final[dict[str, Any]] = {"lw": 1.2, "marker": "o", "ms": 4}
_UNSETTLED: Final[dict[str, Any]] = {"lw": 1.2, "marker": "x", "ms": 8, "mew": 2, "ls": ":"}


def convergence(
    model: Any, *, modules: Iterable[int] | None = None, key: str = "netbic", ax: Axes | None = None
) -> Axes:
    """Draw how far the objective F of each module was from its last value, round by round.

    The gap is relative, `|F - F_last| / |F_last|`, on a logarithmic scale that ends at a tenth of the tolerance, where
    smaller ones are drawn too. Modules that did not converge end in a cross, one round before their last, and are named
    in the legend.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
    modules : list of int, optional
        Default: all.
    key : str
        The modules' key in an AnnData object (`key_added` of `tl.modules`).
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
        settled = bool(found.converged_[module])
        gaps = np.maximum(relative_gaps(found.objectives_[module]), tolerance / 10)
        if not settled:  # how much is missing at the end is not known; of a single round, nothing is
            gaps = gaps[:-1] if gaps.size > 1 else np.ones(1)
        words = {"color": colour, "label": f"module {module}"} | (_SETTLED if settled else _UNSETTLED)
        lines[module] = ax.plot(np.arange(1, gaps.size + 1), gaps, markevery=[-1], **words)[0]
    ax.axhline(tolerance, color=QUIET, lw=0.8, ls="--", label="_tolerance")
    ax.set_yscale("log")
    ax.set(xlabel="round", ylabel="gap to the last F (relative)")
    count_in_whole(ax.xaxis)
    bare(ax)
    _say(ax, found, lines)
    return ax


def relative_gaps(objectives: NDArray[Any]) -> NDArray[np.float64]:
    """Distance of F from its last value, as a share of that.

    Examples
    --------
    >>> relative_gaps([8.0, 9.0, 10.0]).tolist()
    [0.2, 0.1, 0.0]
    """
    values = np.asarray(objectives, dtype=np.float64)
    last = values[-1] if values.size else 1.0
    return np.abs(values - last) / (abs(last) or 1.0)


def _colours(ax: Axes, chosen: list[int]) -> list[Any]:
    """A colour per module: of the palette, or where it is too short by their numbers."""
    if len(chosen) <= len(PALETTE):
        return [module_colour(module) for module in chosen]
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = ScalarMappable(Normalize(min(chosen), max(chosen)), colormaps[SEQUENTIAL])
    colour_bar(scale, ax, "module")
    return list(scale.to_rgba(np.asarray(chosen, dtype=float)))


def _say(ax: Axes, model: SparseGraphSVD, lines: dict[int, Any]) -> None:
    """Which modules did not converge; and which is which, if they are few."""
    chosen = list(lines)
    failed = [module for module in chosen if not model.converged_[module]]
    ax.set_title(f"{len(chosen) - len(failed)} of {len(chosen)} modules converged", loc="left", size=SMALL + 2)
    for module in failed:
        lines[module].set_label(f"module {module}: not converged")
        if len(chosen) > len(PALETTE):
            lines[module].set(color=ALARM, linestyle="-")
    named = chosen if len(chosen) <= len(PALETTE) else failed[:12]
    if named:
        ax.legend(handles=[lines[module] for module in named], frameon=False, fontsize=SMALL)
