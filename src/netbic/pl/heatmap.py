"""Heatmap of the data, with rows and columns ordered by module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Indices
from netbic.errors import InputError
from netbic.estimators.results import names_of, position_of
from netbic.pl import base

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LANE, _ANNOTATION, _WIDEST_STRIP, _GAP = 0.02, 0.03, 0.12, 0.008  # as shares of the height or width of the heatmap
_SHARP = 500_000  # entries up to which cells are drawn sharply; more are averaged per pixel
_SHARP_STRIP = 500  # the same for members in a strip


@base.documented
def heatmap(
    model: base.ModelLike,
    X: Any = None,
    *,
    modules: Iterable[int] | None = None,
    n_others: int = 0,
    annotation: Any = None,
    colours: base.Colours | None = None,
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
        Numbers of the modules to draw, from 1, in this order. Default: all.
    n_others : int
        Number of samples, and of genes, that belong to no module, for comparison.
    annotation : DataFrame, Series, or list of str, optional
        What is known about the samples: each column is drawn as a strip at the right, with a legend. The index contains
        the names of the samples; those without a row are missing (light grey). If `model` is an AnnData object, also
        names of columns of its obs.
    $colours
    names : list of str, optional
        Names of all modules, e.g. of `netbic.enrichment.module_names`: those that are drawn are listed below.
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60).fit(study.expression)
    >>> ax = netbic.pl.heatmap(model, study.expression, n_others=20)
    >>> ax.get_xlabel()
    '110 genes of 2 modules, and 20 others'
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    found = base.fitted(model, key)
    numbers = range(1, found.n_components_ + 1) if modules is None else modules
    listed = [numbers] if isinstance(numbers, Integral) else numbers
    chosen = list(dict.fromkeys(position_of(module, found.n_components_) for module in listed))
    if not chosen:
        raise InputError("there are no modules to draw: fit a model that finds some, or choose at least one")
    weights = [found.left_vectors_.T[chosen], found.components_[chosen]]
    rows, columns = (module_order(own, n_others) for own in weights)
    values = base.entries(found, base.data_of(model, X, key), rows.members, columns.members)
    known = base.annotation_strips(annotation, model, names_of(found, "rows"), colours)
    ax = base.axes_for(ax, (8.0, 6.0 + (0.16 * len(chosen) if names is not None else 0.0)))

    limit, shades = base.symmetric_limit(values), colormaps[base.DIVERGING].with_extremes(bad="0.85")
    smoothing = "none" if values.size <= _SHARP else "antialiased"
    image = ax.imshow(values, cmap=shades, vmin=-limit, vmax=limit, aspect="auto", interpolation=smoothing)
    is_z_score = found.scale_power == 1 and found.center == "columns"
    label = "z-score" if is_z_score else "value" if found.center is None else "centred value"
    below: dict[str, Any] = {"anchor": (0.0, 0.0), "shrink": 0.4} if known else {}  # the legend is above
    base.colour_bar(image, ax, label, extend="both", **below)
    inks = [base.MODULES[k % len(base.MODULES)] for k in chosen]
    _draw_lanes(ax, [rows, columns], weights, inks)
    for k in range(len(chosen)):
        (top, bottom), (left, right) = rows.bounds[k : k + 2], columns.bounds[k : k + 2]
        size = right - left, bottom - top
        ax.add_patch(Rectangle((left - 0.5, top - 0.5), *size, fill=False, ec="black", lw=0.8, clip_on=False))
    if known:
        _draw_annotation(ax, known, rows.members, columns.members.size)

    for write, order, noun in ((ax.set_xlabel, columns, "genes"), (ax.set_ylabel, rows, "samples")):
        n, n_others = int(order.bounds[-1]), order.members.size - int(order.bounds[-1])
        of_modules = f"{n:,} {noun} of {len(chosen)} module{'s' * (len(chosen) > 1)}"
        write(of_modules + (f", and {n_others:,} others" if n_others else ""))
    if names is not None:
        lines = "\n".join(base.label_text(f"{k + 1}: {names[k]}", 100) for k in chosen)
        _write(ax, lines, (0, 0), (0, -5), xycoords=("axes fraction", ax.xaxis.label), va="top")
    ax.tick_params(length=2, pad=1)
    ax.spines[:].set_visible(False)
    for _ in range(2):  # names make the data area smaller, so that fewer of them may fit
        base.apply_layout(ax)
        for which, axis, order in (("x", "columns", columns), ("y", "rows", rows)):
            own = names_of(found, axis)[order.members]
            base.name_ticks(ax, which, range(order.members.size), own, order.weight)
    # Numbers of the modules above their blocks; where not all fit, those of the larger modules.
    middles, widest = (columns.bounds[:-1] + columns.bounds[1:] - 1) / 2, max(len(str(module + 1)) for module in chosen)
    in_pixels = ax.transData.transform(np.column_stack([middles, middles]))[:, 0]
    gap = base.pixels(ax, base.SMALL) * (0.7 * widest + 0.3)
    for k in base.apart(in_pixels, np.diff(columns.bounds), gap):
        style = {"ha": "center", "va": "bottom", "weight": "bold", "color": inks[k]}
        _write(ax, str(chosen[k] + 1), (middles[k], ax.get_ylim()[1]), (0, 2), **style)
    return ax


class Order(NamedTuple):
    """One axis of a heatmap: by module, within a module by decreasing signed weight; then those of no module."""

    members: Indices  # positions of what is drawn, in order
    bounds: Indices  # the block of module k is `bounds[k]` to `bounds[k + 1]`
    belongs: NDArray[np.bool_]  # (n_modules, n_drawn): all memberships, including overlaps
    weight: NDArray[Any]  # largest absolute weight of each, 0 for those of no module


def module_order(weights: NDArray[Any], n_others: int = 0) -> Order:
    """Every member once, in the module where its weight is largest; weights are signed, with one row per module."""
    sizes = np.abs(weights)
    home, heaviest = sizes.argmax(axis=0), sizes.max(axis=0)
    parts = []
    for module, vector in enumerate(weights):
        own = np.flatnonzero((home == module) & (heaviest > 0))
        parts.append(own[np.argsort(-vector[own], kind="stable")])
    bounds = np.cumsum([0, *(part.size for part in parts)])
    others = np.flatnonzero(heaviest == 0)
    few = others[np.linspace(0, others.size - 1, min(n_others, others.size)).astype(np.intp)]
    members = np.concatenate([*parts, few]).astype(np.intp)
    return Order(members, bounds, weights[:, members] != 0, heaviest[members])


def _draw_lanes(ax: Axes, orders: list[Order], weights: list[NDArray[Any]], inks: list[str]) -> None:
    """One lane per module to the left of the data and above it, inside the same axes.

    Members have the colour of the module, others are light grey. Where everything is a member, the weights are shown.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    colours, both = np.array([to_rgb(ink) for ink in inks]), list[NDArray[Any]]()
    for order, own in zip(orders, weights, strict=True):
        lanes = np.where(order.belongs[:, :, None], colours[:, None, :], 0.95)
        for k in np.flatnonzero((own != 0).all(axis=1)):
            drawn = own[k, order.members]
            lanes[k] = colormaps[base.DIVERGING](0.5 + 0.5 * drawn / base.symmetric_limit(drawn))[:, :3]
        both.append(lanes)
    height, width = (order.members.size for order in orders)
    share = min(_LANE * len(inks), _WIDEST_STRIP)
    top, left = -0.5 - _GAP * height, -0.5 - _GAP * width
    shades = "none" if max(height, width) <= _SHARP_STRIP else "antialiased"
    options: dict[str, Any] = {"aspect": "auto", "interpolation": shades}
    ax.imshow(both[1], extent=(-0.5, width - 0.5, top, top - share * height), **options)
    ax.imshow(both[0].swapaxes(0, 1), extent=(left - share * width, left, height - 0.5, -0.5), **options)
    ax.set(xlim=(left - share * width, width - 0.5), ylim=(height - 0.5, top - share * height))


def _draw_annotation(ax: Axes, known: list[base.Strip], samples: NDArray[Any], width: int) -> None:
    """One strip per variable at the right of the data, inside the same axes, with its name below, and a legend."""
    from matplotlib.colors import to_rgba_array

    share = min(_ANNOTATION, _WIDEST_STRIP / len(known)) * width
    left, height = width - 0.5 + _GAP * width, len(samples)
    start, limits = ax.get_xlim()[0], ax.get_ylim()
    shades = "none" if height <= _SHARP_STRIP else "antialiased"
    for strip in known:
        extent = (left, left + share, height - 0.5, -0.5)
        ax.imshow(to_rgba_array(strip.colours[samples])[:, None], extent=extent, aspect="auto", interpolation=shades)
        place = left + share / 2, height - 0.5
        _write(ax, base.label_text(strip.name), place, (0, -3), rotation=90, ha="center", va="top")
        left += share + _GAP * width / 2
    ax.set(xlim=(start, left), ylim=limits)
    base.draw_legend(ax, known)


def _write(ax: Axes, text: str, place: tuple[float, float], away: tuple[float, float], **style: Any) -> None:
    """Text at some points from a place; it may be outside the axes."""
    style = {"textcoords": "offset points", "size": base.SMALL, "annotation_clip": False, **base.LITERAL} | style
    ax.annotate(text, place, away, **style)
