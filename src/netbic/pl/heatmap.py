"""Heatmap of the data, with genes and samples ordered by module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Floats, Indices
from netbic.errors import InputError
from netbic.estimators.results import names_of, position_of
from netbic.pl import base, fitting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# As shares of the height or width of the heatmap:
_LANE, _STRIP, _WIDEST, _TALLEST, _GAP = 0.02, 0.03, 0.15, 0.45, 0.008
_SHARP = 500_000  # entries up to which cells are drawn sharply; more are averaged per pixel
_SHARP_STRIP = 500  # the same for members in a strip
_PARTS = 40  # of a strip of many samples, each sorted by level
_WIDTH, _HEIGHT, _HIGHEST = 7.0, 6.0, 10.0  # inches, without the legend
_BELOW = 1.5  # inches of the height for title, label and colour bar
_CAPTION = 1.4  # height of a lane with a caption, in lines before the layout
_FINE = 4  # lines of a lane that is averaged per pixel
_LINE = 10.0  # points, height of a strip with a caption in text of 8 points
_NUMBERS = 28.0  # points at the right of the data for the numbers of the modules
_BESIDE, _LED = 5.0, 13.0  # points between the data and the numbers: beside their blocks, and with lines to them
_LETTER = 0.075  # inches, in text of 8 points
_LEGEND_SHARE = 0.45  # of the width of the figure that a legend with names of modules may take
_FEW = 5  # lanes that a figure of the usual height has room for
_NUMBER = 1.4  # height of the number of a block, relative to the size of its text


@base.plot
def heatmap(
    model: base.ModelLike,
    X: Any = None,
    *,
    modules: Iterable[int] | None = None,
    n_others: int = 0,
    annotation: Any = None,
    colours: base.Colours | None = None,
    names: Sequence[str] | None = None,
    feature_name: str | None = None,
    key: str = "netbic",
    ax: Axes | None = None,
    **given: Unpack[base.Labels],
) -> Axes:
    """Plot the data of the genes (rows) and samples (columns) of the modules.

    A gene of several modules is drawn once, in the module where its absolute weight is largest; a sample in the module
    where its score is most extreme, relative to those of the other members. Genes are ordered by decreasing weight,
    samples by decreasing score. Above and beside the data is a lane for each module, in which all its members are
    marked: marks outside the block of the module are overlaps. If a module keeps all samples, its lane shows their
    scores instead (red: positive, blue: negative). Values are those that were fitted (centred and scaled); the colour
    scale is symmetric around zero and ends at the 98th percentile of the absolute values. Names of genes are written
    where they fit, starting with those with the largest weights; names of samples if all fit.

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
        What is known about the samples: each column is drawn as a strip above the data. The index contains the names of
        the samples; those without a row are missing (light grey). Of more than 500 samples, neighbours are sorted by
        level, so that a strip shows how many there are of each: a fortieth of its width at a time. If `model` is an
        AnnData object, also names of columns of its obs.
    $colours
    names : list of str, optional
        Names of all modules, e.g. of `netbic.enrichment.module_names`: those that are drawn are listed in the legend.
    $feature_name
    $key
    $ax

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(150, 700, n_modules=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(2, n_rows=40, n_columns=60).fit(study.expression)
    >>> ax = netbic.pl.heatmap(model, study.expression, n_others=20)
    >>> ax.get_ylabel()
    '110 features of 2 modules, and 20 others'
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    found = base.fitted(model, key)
    numbers = range(1, found.n_components_ + 1) if modules is None else modules
    asked = [numbers] if isinstance(numbers, Integral) else numbers
    chosen = list(dict.fromkeys(position_of(module, found.n_components_) for module in asked))
    if not chosen:
        raise InputError("there are no modules to draw: fit a model that finds some, or choose at least one")
    data = base.data_of(model, X, key)
    genes = module_order(found.components_[chosen], n_others)
    drawn = module_order(found.rows_[chosen].astype(np.float64), n_others).members
    values = base.entries(found, data, drawn, genes.members)  # blocks of a Dask array are read once
    if found.diffusion_:
        scores = base.scores_of(found, data, np.arange(len(found.left_vectors_)))[drawn][:, chosen].T
    else:
        scores = observed_scores(values, found.components_[chosen][:, genes.members])
    order = module_order(standardised(scores, found.rows_[chosen][:, drawn]), n_others)
    samples, scores = order._replace(members=drawn[order.members]), scores[:, order.members]
    values = values[order.members].T
    strips = base.annotation_strips(annotation, model, names_of(found, "rows"), colours)
    inks, written = zip(*(base.module_colours(k) for k in chosen), strict=True)
    named = [] if names is None or len(chosen) == 1 else list(zip(chosen, inks, strict=True))
    listed = [(f"{k + 1}: {names[k]}", ink) for k, ink in named] if names is not None else []
    legend = [("module", listed)] * bool(listed) + [(strip.name, strip.legend) for strip in strips]
    ax = base.axes_for(ax, _size(legend, len(chosen)), given)

    limit, shades = base.symmetric_limit(values), colormaps[base.DIVERGING].with_extremes(bad="0.85")
    smoothing = "none" if values.size <= _SHARP else "antialiased"
    image = ax.imshow(values, cmap=shades, vmin=-limit, vmax=limit, aspect="auto", interpolation=smoothing)
    is_z_score = found.scale_power == 1 and found.center == "columns"
    label = "z-score" if is_z_score else "value" if found.center is None else "centred value"
    below: Any = {"location": "bottom", "shrink": 0.35, "aspect": 18, "anchor": (1.0, 0.5)}
    base.colour_bar(image, ax, label, extend="both", **below)
    captions = _draw_lanes(ax, genes, samples, scores, [str(k + 1) for k in chosen], inks, written)
    captions += _draw_strips(ax, strips, samples.members, genes.members.size)
    if len(chosen) > 1:
        for k in range(len(chosen)):
            (top, bottom), (left, right) = genes.bounds[k : k + 2], samples.bounds[k : k + 2]
            size = right - left, bottom - top
            ax.add_patch(Rectangle((left - 0.5, top - 0.5), *size, fill=False, ec="black", lw=0.8, clip_on=False))
    if legend and listed and _width(legend) > _LEGEND_SHARE * ax.figure.bbox.width / base.pixels(ax, 72):
        legend = legend[1:]  # a figure this small has no room for the names of modules
    if legend:
        height = float(ax.figure.get_window_extent().height) / base.pixels(ax, 72) - _BELOW
        base.draw_legend(ax, legend, height, _NUMBERS)
    for write, order, noun in (
        (ax.set_ylabel, genes, base.noun_of(model, "columns", feature_name)),
        (ax.set_xlabel, samples, base.noun_of(model, "rows", None)),
    ):
        n, n_more = int(order.bounds[-1]), order.members.size - int(order.bounds[-1])
        of_modules = f" of {len(chosen)} modules" * (order is genes and len(chosen) > 1)
        write(f"{n:,} {noun}{of_modules}" + (f", and {n_more:,} others" if n_more else ""))
    if len(chosen) == 1:
        base.module_title(ax, chosen[0] + 1, "" if names is None else names[chosen[0]], "")
    base.write_labels(ax, given)
    ax.tick_params(length=2, pad=1)
    ax.spines[:].set_visible(False)
    for _ in range(2):  # names make the data area smaller, so that fewer of them may fit
        fitting.apply_layout(ax)
        for which, axis, order in (("x", "rows", samples), ("y", "columns", genes)):
            own, places = names_of(found, axis)[order.members], range(order.members.size)
            base.name_ticks(ax, which, places, own, order.weight, some=which == "y")
    _write_captions(ax, captions)
    if len(chosen) > 1:
        _number_blocks(ax, genes.bounds, [str(k + 1) for k in chosen], inks, written)
    return ax


def _width(legend: list[tuple[str, list[tuple[str, str]]]]) -> float:
    """The width of one column of a legend, in inches."""
    letters = max((len(text) for heading, entries in legend for text in (heading, *(text for text, _ in entries))))
    return 0.4 + _LETTER * min(letters, 48) * fitting.small() / 8


def _size(legend: list[tuple[str, list[tuple[str, str]]]], n_lanes: int) -> tuple[float, float]:
    """Width and height of a new figure with this legend and a lane for each module, in inches."""
    texts = [text for heading, entries in legend for text in (heading, *(text for text, _ in entries))]
    letters = min(max(map(len, texts), default=0), 48)
    height = max(_HEIGHT + max(n_lanes - _FEW, 0) * _LINE / 72, len(texts) * base.legend_line() + _BELOW)
    height = min(height, _HIGHEST)
    columns = base.legend_columns(len(texts), height - _BELOW)
    return _WIDTH + columns * (0.4 + _LETTER * letters) * bool(legend), height


def observed_scores(values: Floats, weights: NDArray[Any]) -> Floats:
    """Scores of samples (rows) in modules, a row per module; as in `module_scores` if entries are missing."""
    seen = np.isfinite(values)
    products, observed = np.where(seen, values, 0.0) @ weights.T, seen @ (weights**2).T
    return np.where(observed > 0, products / np.maximum(observed, np.finfo(float).tiny), np.nan).T


def standardised(scores: Floats, members: NDArray[np.bool_]) -> Floats:
    """Scores, a row per module, divided by the root mean square of its members; 0 only for others."""
    known, tiny = np.where(members, np.nan_to_num(scores), 0.0), float(np.finfo(np.float64).eps)
    squares = (known**2).sum(axis=1, keepdims=True) / np.maximum(members.sum(axis=1, keepdims=True), 1)
    sizes = known / np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))
    return np.where(members, np.where(np.abs(sizes) < tiny, tiny, sizes), 0.0)


class Caption(NamedTuple):
    """What a strip or lane shows, its place on the axis of genes, and its colours; `fill` is "" if it has none."""

    place: float
    text: str
    ink: str = "black"
    fill: str = ""


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


def _draw_lanes(
    ax: Axes,
    genes: Order,
    samples: Order,
    scores: Floats,
    numbers: list[str],
    inks: Sequence[str],
    written: Sequence[str],
) -> list[Caption]:
    """One lane per module at the left of the data and above it, inside the same axes; captions of those above it.

    Members have the colour of the module, others are light grey; captions have this colour, with numbers `written` in
    another one. Where everything is a member, the scores are shown. A single module of all that is drawn has no lane.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    colours, both = np.array([to_rgb(ink) for ink in inks]), list[NDArray[Any]]()
    for order in (genes, samples):
        both.append(np.where(order.belongs[:, :, None], colours[:, None, :], 0.95))
    for k in np.flatnonzero(samples.belongs.all(axis=1)):
        drawn = scores[k]
        lane = colormaps[base.DIVERGING](0.5 + 0.5 * drawn / base.symmetric_limit(drawn))[:, :3]
        both[1][k] = np.where(np.isfinite(drawn)[:, None], lane, 0.85)
    height, width = genes.members.size, samples.members.size
    wanted = max(_LANE, _CAPTION * _one_line(ax)) * len(inks)
    share, tall = min(wanted, _WIDEST), min(wanted, _TALLEST)  # at the left of the data, and above it
    if len(inks) == 1:
        share = tall = max(_LANE, _one_line(ax))
    top, left = -0.5 - _GAP * height, -0.5 - _GAP * width
    drawn_as = list[dict[str, Any]]()
    for which, size in enumerate((height, width)):
        is_sharp = size <= _SHARP_STRIP
        if not is_sharp:
            bytes_of_lanes = np.rint(255 * both[which]).astype(np.uint8)
            both[which] = np.repeat(bytes_of_lanes, _FINE, axis=0)  # neighbouring lanes are hardly averaged
        drawn_as.append({"aspect": "auto", "interpolation": "none" if is_sharp else "antialiased"})
    ax.imshow(both[1], extent=(-0.5, width - 0.5, top, top - tall * height), **drawn_as[1])
    if len(inks) > 1 or not genes.belongs.all():
        ax.imshow(both[0].swapaxes(0, 1), extent=(left - share * width, left, height - 0.5, -0.5), **drawn_as[0])
        left -= share * width
    else:
        left = -0.5
    ax.set(xlim=(left, width - 0.5), ylim=(height - 0.5, top - tall * height))
    step = tall * height / len(inks)
    words = ["score" if samples.belongs.all() else "module"] if len(inks) == 1 else numbers
    return [
        Caption(top - tall * height + (k + 0.5) * step, word, *(colours_of if len(inks) > 1 else ("black", "")))
        for k, (word, colours_of) in enumerate(zip(words, zip(written, inks, strict=True), strict=True))
    ]


def _draw_strips(ax: Axes, strips: list[base.Strip], samples: NDArray[Any], height: int) -> list[Caption]:
    """One strip per variable above the lanes, the first one on top, inside the same axes; and their captions."""
    from matplotlib.colors import to_rgba_array

    if not strips:
        return []
    (start, end), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    share, gap = max(min(_STRIP, 2 * _WIDEST / len(strips)), _one_line(ax)) * height, _GAP * height
    is_sharp = len(samples) <= _SHARP_STRIP
    captions = list[Caption]()
    top -= gap
    for strip in reversed(strips):
        extent = (-0.5, len(samples) - 0.5, top, top - share)
        own = samples if is_sharp or strip.is_numeric else samples[_sorted_nearby(strip.codes[samples])]
        # Colours of levels must not be mixed: the legend has no such colour.
        shades = "none" if is_sharp else "antialiased" if strip.is_numeric else "nearest"
        ax.imshow(to_rgba_array(strip.colours[own])[None], extent=extent, aspect="auto", interpolation=shades)
        captions.append(Caption(top - share / 2, base.label_text(strip.name)))
        top -= share + gap / 2
    ax.set(xlim=(start, end), ylim=(bottom, top))
    return captions


def _sorted_nearby(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Positions, sorted by their codes within parts of the whole, each a fortieth of it.

    Examples
    --------
    >>> _sorted_nearby(np.array([1, 0, 1, 0] * 50))[:4].tolist()
    [1, 3, 0, 2]
    """
    return np.lexsort((codes, np.arange(codes.size) * _PARTS // codes.size))


def _one_line(ax: Axes) -> float:
    """The height of a line of text, as a share of the height of the axes before their layout."""
    return base.pixels(ax, _LINE) / float(ax.get_window_extent().height)


def _write_captions(ax: Axes, captions: list[Caption]) -> None:
    """What strips and lanes show, at their left; numbers of modules are made small enough for all to fit.

    Of others, those are written that fit above the names of genes, strips first. Numbers are beside these names: they
    are above the lanes of the genes.
    """
    lanes = [caption for caption in captions if caption.fill]
    heights = np.sort(_in_pixels(ax, np.array([caption.place for caption in lanes])))
    step = float(np.diff(heights).min()) / base.pixels(ax, 1) if len(lanes) > 1 else fitting.small()
    size = min(max(0.95 * step, fitting.SMALLEST), fitting.small())
    every = max(int(np.ceil(fitting.SMALLEST / max(step, 1e-9))), 1)  # second, third, ... lane
    for caption in lanes[::every]:
        box = {"fc": caption.fill, "ec": "none", "boxstyle": "square,pad=0.1"}
        style = {"ha": "right", "va": "center_baseline", "color": caption.ink, "size": size, "bbox": box}
        _write(ax, caption.text, (-0.5, caption.place), (-4, 0), **style)
    others = [caption for caption in captions if not caption.fill]
    names, places = np.asarray(ax.get_yticks(), dtype=float), np.array([caption.place for caption in others])
    priority = np.concatenate([np.full(names.size, len(others)), np.arange(len(others))])
    for k in base.apart(_in_pixels(ax, np.concatenate([names, places])), priority, base.pixels(ax, fitting.small())):
        if k >= names.size:
            caption = others[k - names.size]
            _write(ax, caption.text, (-0.5, caption.place), (-4, 0), ha="right", va="center", color=caption.ink)


def _number_blocks(ax: Axes, bounds: Indices, numbers: list[str], inks: Sequence[str], written: Sequence[str]) -> None:
    """Numbers of the modules at the right of their blocks; if not all fit, those of larger modules.

    Where blocks are too low for their numbers, these are spread, and lines lead from the blocks to them.
    """
    from matplotlib.lines import Line2D

    middles, right = (bounds[:-1] + bounds[1:] - 1) / 2, ax.get_xlim()[1]
    height = float(np.ptp(_in_pixels(ax, np.array([-0.5, bounds[-1] - 0.5])))) / base.pixels(ax, 1)
    size = min(fitting.small(), max(height / (_NUMBER * len(numbers)), fitting.SMALLEST))
    n_fitting = max(int(height / (_NUMBER * size)), 1)
    shown = np.sort(np.argsort(-np.diff(bounds), kind="stable")[:n_fitting])
    lines = bounds[-1] / height * size  # of genes in the height of a text
    half = _NUMBER / 2 * lines
    places = fitting.spread(middles[shown], _NUMBER * lines, half - 0.5, max(bounds[-1] - 0.5 - half, half))
    is_led = bool((np.abs(places - middles[shown]) > half / 2).any())
    away = _LED if is_led else _BESIDE
    if is_led:
        end = right + base.pixels(ax, away) / float(ax.get_window_extent().width) * float(np.ptp(ax.get_xlim()))
        for middle, place in zip(middles[shown], places, strict=True):
            line = Line2D([right, end], [middle, place], color="0.4", lw=0.6, clip_on=False, in_layout=False)
            ax.add_artist(line)
    for k, place in zip(shown, places, strict=True):
        box = {"fc": inks[k], "ec": "none", "boxstyle": "square,pad=0.1"}
        style = {"ha": "left", "va": "center_baseline", "weight": "bold", "color": written[k], "bbox": box}
        _write(ax, numbers[k], (right, place), (away, 0), **style | {"size": size})


def _in_pixels(ax: Axes, places: NDArray[Any]) -> NDArray[Any]:
    """Heights on the axis of genes, in pixels."""
    return np.asarray(ax.transData.transform(np.column_stack([np.zeros(places.size), places])))[:, 1]


def _write(ax: Axes, text: str, place: tuple[float, float], away: tuple[float, float], **style: Any) -> None:
    """Text at some points from a place; it may be outside the axes."""
    style = {"textcoords": "offset points", "size": fitting.small(), "annotation_clip": False, **base.LITERAL} | style
    ax.annotate(text, place, away, **style)
