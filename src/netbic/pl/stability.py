"""How often halves of the data select a module's members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from netbic.errors import InputError
from netbic.pl.canvas import PALETTE, SMALL, axes_for, bare
from netbic.pl.source import WORDS, check_axis, check_module
from netbic.selection import AxisStability, Stability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def stability(result: Stability, module: int = 0, *, axis: str = "columns", ax: Axes | None = None) -> Axes:
    """Draw selection frequencies, the most frequent first, with the threshold from which a member is stable.

    It is also the path over all thresholds: at any height, the curve says how many would be stable there. Members of
    the module found in all data are filled, others open; those never selected are left out.

    Parameters
    ----------
    result : Stability
        What `selection.stability` returned.
    module : int
        Modules count from 0.
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
    'Module 1: ... stable features (at most ... by chance)'
    """
    part = _judged(result, axis)
    module = check_module(result.reference, module)
    frequency = part.frequency.to_numpy()[:, module]
    member = np.asarray(getattr(result.reference, f"{axis}_"))[module]
    order = np.lexsort((~member, -frequency))
    order = order[: max(np.count_nonzero(frequency), 1)]
    ax = axes_for(ax, (5.5, 4.0))
    ranks, colour = np.arange(1, order.size + 1), PALETTE[0]
    ax.step(ranks, frequency[order], where="mid", color=colour, lw=0.8, label="_path")
    for mask, face, said in ((member[order], colour, "in the module"), (~member[order], "white", "not in it")):
        ax.scatter(ranks[mask], frequency[order][mask], s=14, c=face, edgecolors=colour, lw=0.8, label=said, zorder=3)
    _draw_threshold(ax, float(part.threshold[module]))
    ax.set(xlabel=f"{WORDS[axis]}, most frequent first", ylabel="share of halves that select it", ylim=(0, 1.03))
    bare(ax)
    ax.legend(frameon=False, fontsize=SMALL, loc="upper right")
    n_stable, chance = int(part.members[module].sum()), float(part.false[module])
    said = f"Module {module}: {n_stable} stable {WORDS[axis]} (at most {chance:.2g} by chance)"
    ax.set_title(said, loc="left", size=SMALL + 2)
    return ax


def _judged(result: Any, axis: str) -> AxisStability:
    if not isinstance(result, Stability):
        raise TypeError(f"result={type(result).__name__}: what selection.stability returns is needed")
    part = result.columns if check_axis(axis) == "columns" else result.rows
    if part is None:
        raise InputError(f"the model keeps all {WORDS[axis]}, so their stability was not judged: choose the other axis")
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
