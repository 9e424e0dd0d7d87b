"""Selection frequencies of the members of a module in halves of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from netbic.errors import InputError
from netbic.pl.canvas import PALETTE, SMALL, axes_for, despine, set_title
from netbic.pl.source import AXIS_NOUNS, check_axis, check_module
from netbic.selection import AxisStability, Stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def stability(result: Stability, module: int = 0, *, axis: str = "columns", ax: Axes | None = None) -> Axes:
    """Plot selection frequencies in decreasing order, with the threshold above which a member is stable.

    For any threshold on the vertical axis, the curve shows how many members would be stable. Members of the module
    found in all data are filled, others are open; those that were never selected are not shown.

    Parameters
    ----------
    result : Stability
        The result of `selection.stability`.
    module : int
        Modules are numbered from 0; titles count from 1.
    axis : {"columns", "rows"}
        Features or samples.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60)
    >>> result = netbic.selection.stability(model, study.expression, n_pairs=10, random_state=0)
    >>> netbic.pl.stability(result, 1).get_title(loc="left")
    'Module 2: ... stable genes (at most ... by chance)'
    """
    part = _of_axis(result, axis)
    module = check_module(result.reference, module)
    frequency = part.frequency.to_numpy()[:, module]
    member = np.asarray(getattr(result.reference, f"{axis}_"))[module]
    order = np.lexsort((~member, -frequency))
    order = order[: max(np.count_nonzero(frequency), 1)]
    ax = axes_for(ax, (5.5, 4.0))
    ranks, colour = np.arange(1, order.size + 1), PALETTE[0]
    ax.step(ranks, frequency[order], where="mid", color=colour, lw=0.8, label="_path")
    for mask, face, label in ((member[order], colour, "in the module"), (~member[order], "white", "not in the module")):
        ax.scatter(ranks[mask], frequency[order][mask], s=14, c=face, edgecolors=colour, lw=0.8, label=label, zorder=3)
    _draw_threshold(ax, float(part.threshold[module]))
    ax.set(
        xlabel=f"{AXIS_NOUNS[axis]}, by decreasing frequency",
        ylabel="selection frequency in halves of the data",
        ylim=(0, 1.03),
    )
    despine(ax)
    ax.legend(frameon=False, fontsize=SMALL, loc="upper right")
    n_stable, chance = int(part.members[module].sum()), float(part.false[module])
    title = f"Module {module + 1}: {n_stable} stable {AXIS_NOUNS[axis]} (at most {chance:.2g} by chance)"
    set_title(ax, title)
    return ax


def _of_axis(result: Stability, axis: str) -> AxisStability:
    if not isinstance(result, Stability):
        raise TypeError(f"result={type(result).__name__}: expected the result of selection.stability")
    part = result.columns if check_axis(axis) == "columns" else result.rows
    if part is None:
        raise InputError(
            f"the model keeps all {AXIS_NOUNS[axis]}, so their stability was not estimated: choose the other axis"
        )
    return part


def _draw_threshold(ax: Axes, threshold: float) -> None:
    if np.isinf(threshold):
        ax.text(0.5, 0.5, "no threshold achieves the requested error", transform=ax.transAxes, ha="center", size=SMALL)
        return
    ax.axhline(threshold, color="0.3", lw=0.8, ls="--", label="_threshold")
    ax.annotate(
        f"threshold {threshold:.3g}", (1, threshold), (0, 2), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha="right", va="bottom", size=SMALL, color="0.3",
    )  # fmt: skip
