"""Heatmap of the data, with rows and columns ordered by module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from netbic.estimators import SparseGraphSVD, names_of
from netbic.pl.annotation import Colours, Strip, annotation_table, draw_legend, strips
from netbic.pl.canvas import (
    DIVERGING,
    SMALL,
    apply_layout,
    axes_for,
    colour_bar,
    module_colour,
    pixels,
    symmetric_limit,
)
from netbic.pl.names import LITERAL, apart, label_text, name_ticks
from netbic.pl.order import Order, module_order
from netbic.pl.source import AXIS_NOUNS, chosen_modules, data_of, entries, fitted, weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netbic.pl.source import ModelLike

_LANE, _ANNOTATION, _WIDEST_STRIP, _GAP = 0.02, 0.03, 0.12, 0.008  # as shares of the height or width of the heatmap
_SHARP = 500_000  # entries up to which cells are drawn sharply; more are averaged per pixel
_SHARP_STRIP = 500  # the same for members in a strip


def heatmap(
    model: ModelLike,
    X: Any = None,
    *,
    modules: Iterable[int] | None = None,
    n_others: int = 0,
    annotation: Any = None,
    colours: Colours | None = None,
    names: Sequence[str] | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
) -> Axes:
    """Plot the data of the samples and genes of the modules, ordered by module.

    A member of several modules is drawn once, in the module where its absolute weight is largest. The coloured strips
    have one lane per module, in which all its members are marked: marks outside the block of the module are overlaps.
    If a module keeps all samples, its lane shows their weights instead (red: positive, blue: negative).
    Within a block, members are ordered by decreasing signed weight. Values are those that were fitted (centred and
    scaled); the colour scale is symmetric around zero and ends at the 98th percentile of the absolute values. Names are
    written where they fit, starting with the members with the largest weights.

    Parameters
    ----------
    model : SparseGraphSVD or AnnData
        A fitted model, or an object after `tl.modules`.
    X : array, DataFrame, sparse matrix or AnnData
        The data of the fit; not needed if `model` is an AnnData object. Matched by name if both have names. Of a sparse
        X only the part that is drawn is converted to dense.
    modules : list of int, optional
        Modules to draw, in this order, numbered from 0; labels count from 1. Default: all.
    n_others : int
        Number of samples, and of genes, that belong to no module, for comparison.
    annotation : DataFrame, Series, or list of str, optional
        What is known about the samples: each column is drawn as a strip at the right, with a legend. The index contains
        the names of the samples; those without a row are missing (light grey). If `model` is an AnnData object, also
        names of columns of its obs.
    colours : dict of dict, optional
        Colours of levels, by column of the annotation and level: `{"sex": {"f": "#E69F00", "m": "#0072B2"}}`.
    names : list of str, optional
        Names of all modules, e.g. of `netbic.enrichment.module_names`: those that are drawn are listed below.
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
    >>> ax = netbic.pl.heatmap(model, study.expression, n_others=20)
    >>> ax.get_xlabel()
    '110 genes of 2 modules, and 20 others'
    """
    found = fitted(model, key)
    chosen = chosen_modules(found, modules)
    weights = [weights_of(found, axis)[chosen] for axis in ("rows", "columns")]
    rows, columns = (module_order(own, n_others) for own in weights)
    values = entries(found, data_of(model, X, key), rows.members, columns.members)
    known = [] if annotation is None else strips(annotation_table(annotation, model, names_of(found, "rows")), colours)
    ax = axes_for(ax, (8.0, 6.0 + (0.16 * len(chosen) if names is not None else 0.0)))
    _draw_values(ax, values, found, above=bool(known))
    _draw_strips(ax, rows, columns, [_lanes(*side, chosen) for side in zip((rows, columns), weights, strict=True)])
    _draw_blocks(ax, rows, columns)
    _draw_annotation(ax, known, rows.members, columns.members.size)
    ax.set_xlabel(_counted(columns, "columns"))
    if names is not None:
        _list_modules(ax, [label_text(f"{k + 1}: {names[k]}", 100) for k in chosen])
    ax.set_ylabel(_counted(rows, "rows"))
    ax.tick_params(length=2, pad=1)
    ax.spines[:].set_visible(False)
    for _ in range(2):  # names make the data area smaller, so that fewer of them may fit
        apply_layout(ax)
        _write_names(ax, found, rows, columns)
    _number_modules(ax, columns, chosen)
    return ax


def _counted(order: Order, axis: str) -> str:
    own = int(order.bounds[-1])
    others = order.members.size - own
    modules = len(order.belongs)
    text = f"{own:,} {AXIS_NOUNS[axis]} of {modules} module{'s' * (modules > 1)}"
    return text + (f", and {others:,} others" if others else "")


def _draw_values(ax: Axes, values: NDArray[Any], model: SparseGraphSVD, above: bool) -> None:
    """The values, with a colour bar; at the bottom if a legend comes above it."""
    from matplotlib import colormaps

    limit = symmetric_limit(values)
    colours = colormaps[DIVERGING].with_extremes(bad="0.85")
    shades = "none" if values.size <= _SHARP else "antialiased"
    image = ax.imshow(values, cmap=colours, vmin=-limit, vmax=limit, aspect="auto", interpolation=shades)
    label = (
        "z-score" if model.scale and model.center == "columns" else "value" if model.center is None else "centred value"
    )
    colour_bar(image, ax, label, extend="both", **{"anchor": (0.0, 0.0), "shrink": 0.4} if above else {})


def _draw_strips(ax: Axes, rows: Order, columns: Order, lanes: list[NDArray[Any]]) -> None:
    """One lane per module above and to the left of the data, inside the same axes."""
    height, width = rows.members.size, columns.members.size
    share = min(_LANE * len(lanes[0]), _WIDEST_STRIP)
    top, left = -0.5 - _GAP * height, -0.5 - _GAP * width
    shades = "none" if max(height, width) <= _SHARP_STRIP else "antialiased"
    options: dict[str, Any] = {"aspect": "auto", "interpolation": shades}
    ax.imshow(lanes[1], extent=(-0.5, width - 0.5, top, top - share * height), **options)
    ax.imshow(lanes[0].swapaxes(0, 1), extent=(left - share * width, left, height - 0.5, -0.5), **options)
    ax.set(xlim=(left - share * width, width - 0.5), ylim=(height - 0.5, top - share * height))


def _draw_annotation(ax: Axes, known: list[Strip], samples: NDArray[Any], width: int) -> None:
    """One strip per variable at the right of the data, inside the same axes, with its name below, and a legend."""
    share = min(_ANNOTATION, _WIDEST_STRIP / max(len(known), 1)) * width
    left, height = width - 0.5 + _GAP * width, len(samples)
    limits = ax.get_xlim(), ax.get_ylim()
    shades = "none" if height <= _SHARP_STRIP else "antialiased"
    for strip in known:
        extent = (left, left + share, height - 0.5, -0.5)
        ax.imshow(strip.colours[samples][:, None], extent=extent, aspect="auto", interpolation=shades)
        ax.annotate(
            label_text(strip.name), (left + share / 2, height - 0.5), (0, -3), textcoords="offset points", rotation=90,
            ha="center", va="top", size=SMALL, annotation_clip=False, **LITERAL,
        )  # fmt: skip
        left += share + _GAP * width / 2
    ax.set(xlim=(limits[0][0], left if known else limits[0][1]), ylim=limits[1])
    if known:
        draw_legend(ax, known)


def _lanes(order: Order, weights: NDArray[Any], chosen: list[int]) -> NDArray[Any]:
    """Colours of a strip, one row per module: the colour of the module for its members, light grey for others.

    Where everything is a member, the weights are shown.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(module_colour(module)) for module in chosen])
    lanes: NDArray[Any] = np.where(order.belongs[:, :, None], colours[:, None, :], 0.95)
    for k in np.flatnonzero((weights != 0).all(axis=1)):
        drawn = weights[k, order.members]
        lanes[k] = colormaps[DIVERGING](0.5 + 0.5 * drawn / symmetric_limit(drawn))[:, :3]
    return lanes


def _draw_blocks(ax: Axes, rows: Order, columns: Order) -> None:
    """Outlines of the block of each module."""
    from matplotlib.patches import Rectangle

    for k in range(len(rows.belongs)):
        (top, bottom), (left, right) = rows.bounds[k : k + 2], columns.bounds[k : k + 2]
        ax.add_patch(
            Rectangle(
                (left - 0.5, top - 0.5), right - left, bottom - top, fill=False, ec="black", lw=0.8, clip_on=False
            )
        )


def _write_names(ax: Axes, model: SparseGraphSVD, rows: Order, columns: Order) -> None:
    for which, axis, order in (("x", "columns", columns), ("y", "rows", rows)):
        names = names_of(model, axis)[order.members]
        name_ticks(ax, which, range(order.members.size), names, order.weight)


def _list_modules(ax: Axes, lines: list[str]) -> None:
    """The names of the modules, below the label of the horizontal axis."""
    ax.annotate(
        "\n".join(lines), (0, 0), (0, -5), ("axes fraction", ax.xaxis.label), textcoords="offset points", va="top",
        size=SMALL, annotation_clip=False, **LITERAL,
    )  # fmt: skip


def _number_modules(ax: Axes, columns: Order, chosen: list[int]) -> None:
    """Numbers of the modules above their blocks; where not all fit, those of the larger modules."""
    middles = (columns.bounds[:-1] + columns.bounds[1:] - 1) / 2
    positions = ax.transData.transform(np.column_stack([middles, middles]))[:, 0]
    widest = max(len(str(module + 1)) for module in chosen)
    top = ax.get_ylim()[1]
    for k in apart(positions, np.diff(columns.bounds), pixels(ax, SMALL) * (0.7 * widest + 0.3)):
        ax.annotate(
            str(chosen[k] + 1), (middles[k], top), (0, 2), textcoords="offset points", ha="center", va="bottom",
            size=SMALL, weight="bold", color=module_colour(chosen[k]), annotation_clip=False,
        )  # fmt: skip
