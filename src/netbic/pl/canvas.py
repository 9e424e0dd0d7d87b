"""What all pictures share: axes, colours that colour-blind readers can tell apart, and their sizes in pixels."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.errors import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[Any]

# Okabe and Ito's palette without its black and yellow: the one is for outlines, the other is lost on white.
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31")
DIVERGING: Final = "RdBu_r"
SEQUENTIAL: Final = "cividis"
POSITIVE, NEGATIVE, QUIET, ALARM = "#B2182B", "#2166AC", "0.6", "#D55E00"
SMALL: Final = 8.0  # points, of all text but axis labels


def axes_for(ax: Any, size: tuple[float, float]) -> Axes:
    """The axes to draw into; a figure of its own, `size` inches, where none are given."""
    if ax is None:
        pyplot = extra("matplotlib.pyplot", "plot", "a picture")
        made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
        return made
    if not hasattr(ax, "transAxes"):
        raise TypeError(f"ax={type(ax).__name__}: matplotlib axes are needed, e.g. one of plt.subplots(1, 2)[1]")
    given: Axes = ax
    return given


def settle(ax: Axes) -> None:
    """Let the figure's layout come to rest, so that pixels can be counted."""
    figure = ax.figure.canvas.figure
    ax.get_xlim(), ax.get_ylim()  # limits that follow from the data are found when they are asked for
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said will be said when the figure is drawn
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
        ax.apply_aspect()


def pixels(ax: Axes, points: float) -> float:
    """So many points of text, in pixels."""
    return points * float(ax.figure.dpi) / 72


def module_colour(module: int) -> str:
    """The colour of a module; the palette comes round again, neighbours always differ."""
    return PALETTE[module % len(PALETTE)]


def spread_of(values: Floats, share: float = 0.98) -> float:
    """A symmetric limit for colours that a few far values do not move; 1 if there is nothing to tell apart."""
    known = np.abs(values[np.isfinite(values)])
    if not known.size:
        return 1.0
    limit = float(np.quantile(known, share))
    return limit or float(known.max()) or 1.0


def bare(ax: Axes) -> None:
    """Take away the lines on top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def count_in_whole(axis: Any) -> None:
    """Ticks of an axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def colour_bar(mappable: Any, ax: Axes, label: str, **words: Any) -> Any:
    """A slim colour bar beside the axes."""
    bar = ax.figure.colorbar(mappable, ax=ax, **{"shrink": 0.5, "aspect": 20, "pad": 0.02} | words)
    bar.set_label(label, size=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    return bar
