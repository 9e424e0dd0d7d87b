"""Axes, colours and text sizes of all plots. The colours can be distinguished by colour-blind readers."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.errors import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar

Floats = NDArray[Any]

# The palette of Okabe and Ito without black (used for outlines) and yellow (hardly visible on white).
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31")
# Labels of samples, in strips and lanes: as in the report.
LABELS: Final = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# Modules: ten colours that differ from each other and from those of labels, dark enough for numbers on white.
MODULES: Final = (
    *("#332288", "#5F9E2E", "#C2185B", "#8C6D31", "#00B8A9"),
    *("#A05AD0", "#1B4D3E", "#88264B", "#B89B7A", "#6E6E6E"),
)
DIVERGING: Final = "RdBu_r"
SEQUENTIAL: Final = "cividis"
POSITIVE, NEGATIVE, GREY, ALARM = "#B2182B", "#2166AC", "0.6", "#D55E00"
SMALL: Final = 8.0  # points; size of all text but axis labels and titles


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes to draw into: `ax`, or those of a new figure of `size` inches."""
    if ax is None:
        pyplot = import_optional("matplotlib.pyplot", "plot", "a plot")
        made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
        return made
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax={type(ax).__name__}: expected matplotlib axes, e.g. one of plt.subplots(1, 2)[1]")
    return ax


def apply_layout(ax: Axes) -> None:
    """Run the layout engine of the figure, so that positions in pixels are final."""
    figure = ax.figure.canvas.figure
    ax.get_xlim(), ax.get_ylim()  # computes automatic limits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are raised again when the figure is drawn
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
        ax.apply_aspect()


def pixels(ax: Axes, points: float) -> float:
    """A size in points, in pixels."""
    return points * float(ax.figure.dpi) / 72


def module_colour(module: int) -> str:
    """The colour of a module; after ten modules the colours are repeated."""
    return MODULES[module % len(MODULES)]


def symmetric_limit(values: Floats, share: float = 0.98) -> float:
    """A limit of a symmetric colour scale that outliers do not change; 1 if all values are zero or missing."""
    known = np.abs(values[np.isfinite(values)])
    if not known.size:
        return 1.0
    limit = float(np.quantile(known, share))
    return limit or float(known.max()) or 1.0


def set_title(ax: Axes, text: str, **options: Any) -> None:
    """A small title, aligned to the left."""
    ax.set_title(text, loc="left", size=SMALL + 2, **options)


def module_title(module: int, name: str, facts: str) -> str:
    """The title of a plot of one module, numbered from 1; a name gets a line of its own."""
    return f"Module {module + 1}: {name}\n{facts}" if name else f"Module {module + 1}: {facts}"


def despine(ax: Axes) -> None:
    """Hide the lines at the top and on the right."""
    ax.spines[["top", "right"]].set_visible(False)


def integer_ticks(axis: Axis) -> None:
    """Place ticks of an axis only at integers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def colour_bar(mappable: ScalarMappable, ax: Axes, label: str, **options: Any) -> Colorbar:
    """A slim colour bar next to the axes."""
    bar = ax.figure.colorbar(mappable, ax=ax, **{"shrink": 0.5, "aspect": 20, "pad": 0.02} | options)
    bar.set_label(label, size=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    return bar
