"""Texts that fit: a new figure is measured, and drawn again with smaller text if something is cut or covered."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from netbic.errors import InputError, import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    Size = tuple[float, float]

SMALLEST: Final = 5.0  # points
_SMALL, _TINY = 0.8, 0.65  # sizes of text, relative to that of titles and labels of axes
_STEPS = (1.0, 0.9, 0.8, 0.7)  # font sizes that are tried, relative to the usual one; then the smallest
_LARGER, _MOST_STEPS = 1.2, 8  # sizes of the figure
_LEAST, _GOOD = 0.25, 0.4  # of the figure that the data have in both directions; height before text becomes smaller
_TRIMMED = 0.03  # of the height of a line at both sides, where there is hardly any ink
_TOUCHING = 1.0  # pixels by which texts may overlap
_MARGIN = 0.02  # of the figure, at the end of a line
_DPI = 300  # of print: at fewer, letters of small text are rounded to whole pixels
_BROKEN = WeakKeyDictionary[Any, tuple[str, str]]()  # what was broken into lines, before and after


def usual() -> float:
    """The size of titles and labels of axes in points: matplotlib's `font.size`."""
    return float(import_optional("matplotlib", "plot", "a plot").rcParams["font.size"])


def small() -> float:
    """The size of all other text, in points."""
    return max(_SMALL * usual(), SMALLEST)


def tiny() -> float:
    """The size of numbers in cells, in points."""
    return max(_TINY * usual(), SMALLEST)


def fitted_figure(draw: Callable[[Size | None], Axes], size: Size | None) -> Axes:
    """Draw a new figure of a size, with text as small as needed, or of the usual size (None), or larger if needed."""
    pyplot = import_optional("matplotlib.pyplot", "plot", "a plot")
    largest = usual()
    least = min(largest, SMALLEST / _SMALL)
    fonts = [*(step * largest for step in _STEPS if step * largest > least), least]

    tried = list[float]()  # width and height of the last figure

    def drawn(size: Size | None, font: float, share: float = _LEAST) -> Axes | None:
        """The axes if all texts fit."""
        with pyplot.rc_context({"font.size": font, "figure.dpi": _DPI}):
            ax = draw(size)
            tried[:] = figure_of(ax).get_size_inches().tolist()
            has_fitted = fits(ax, share)
        if has_fitted:
            figure_of(ax).set_dpi(pyplot.rcParams["figure.dpi"])
            apply_layout(ax)
            return ax
        pyplot.close(ax.figure)
        return None

    smaller = [*((font, _GOOD) for font in fonts), (least, _LEAST)]
    for font, share in smaller if size is not None else [(largest, _LEAST)]:
        if (ax := drawn(size, font, share)) is not None:
            return ax
    (width, height), font = tried, least if size is not None else largest
    too_small = f"size={width:g} x {height:g} inches is too small for the texts of this figure"
    for step in range(1, _MOST_STEPS + 1):
        factor = _LARGER**step
        if (ax := drawn((_rounded(width * factor), _rounded(height * factor)), font)) is None:
            continue
        if size is None:
            return ax
        pyplot.close(ax.figure)
        needed = _rounded(width * factor), _rounded(height * factor)
        for less in ((width, needed[1]), (needed[0], height)):  # one side may be enough
            if (ax := drawn(less, font)) is not None:
                pyplot.close(ax.figure)
                needed = less
                break
        raise InputError(f"{too_small}: use at least {needed[0]:g} x {needed[1]:g}", ["size"])
    if size is None:  # names that fit nowhere: better than no figure
        return draw(None)
    raise InputError(f"{too_small}, and so are larger ones: draw fewer modules or variables", ["size"])


def _rounded(inches: float) -> float:
    return float(np.ceil(10 * inches - 1e-6) / 10)


def figure_of(ax: Axes) -> Figure:
    """The whole figure, also of axes in a part of one."""
    return ax.figure.canvas.figure


def _left_title(ax: Axes) -> Text:
    found: Text = ax._left_title  # type: ignore[attr-defined]  # there is no other way to its size
    return found


def apply_layout(ax: Axes) -> bool:
    """Run the layout engine of the figure, so that positions in pixels are final; whether there was room.

    Titles and labels of the axes that are longer than the figure get several lines.
    """
    figure = figure_of(ax)
    ax.get_xlim(), ax.get_ylim()  # computes automatic limits
    has_room = _executed(figure)
    longest = (_left_title(ax), 0), (ax.xaxis.label, 0), (ax.yaxis.label, 1)
    if sum(wrap_text(ax, text, along) for text, along in longest):
        has_room = _executed(figure)
    ax.apply_aspect()
    return has_room


def _executed(figure: Figure) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # that the axes have no room
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
    return not any("constrained_layout not applied" in str(one.message) for one in caught)


def wrap_text(ax: Axes, text: Text, along: int = 0) -> bool:
    """Break the lines of a text that is longer than the figure is wide (0) or high (1); whether it was."""
    words = text.get_text()
    if not words.strip():
        return False
    box, frame = text.get_window_extent().get_points()[:, along], ax.figure.bbox.get_points()[:, along]
    if text.get_horizontalalignment() == "left":
        room = frame[1] - box[0]
    else:  # in the middle of the axes
        room = 2 * min(box.mean() - frame[0], frame[1] - box.mean())
    room -= _MARGIN * (frame[1] - frame[0])
    if not 0 < room < box[1] - box[0]:
        return False
    source, broken = _BROKEN.get(text, ("", ""))
    most = max(int(max(map(len, words.split("\n"))) * room / (box[1] - box[0])) - 1, 8)
    source = source if words == broken else words
    broken = "\n".join(part for line in source.split("\n") for part in wrap(line, most))
    text.set_text(broken)
    _BROKEN[text] = source, broken
    return True


class _Box(NamedTuple):
    """A rectangle around a text: its middle and half of its sides in pixels, and the directions of the sides."""

    middle: NDArray[Any]
    half: NDArray[Any]
    sides: NDArray[Any]  # a row each

    def corners(self) -> NDArray[Any]:
        found: NDArray[Any] = self.middle + np.array(list(product((-1, 1), (-1, 1)))) * self.half @ self.sides
        return found

    def overlaps(self, other: _Box) -> bool:
        """Whether no line separates the two (one along a side would, if there is any)."""
        for direction in (*self.sides, *other.sides):
            one, two = self.corners() @ direction, other.corners() @ direction
            if min(one.max(), two.max()) - max(one.min(), two.min()) <= _TOUCHING:
                return False
        return True


def fits(ax: Axes, height: float = _LEAST) -> bool:
    """Whether the axes have room, and no text or legend of their figure is cut or covers another one."""
    figure = figure_of(ax)
    if not (apply_layout(ax) and apply_layout(ax)):  # it must not shrink further
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are raised again when the figure is drawn
        figure.draw_without_rendering()  # colour bars get their places
    frame, window = figure.bbox, ax.get_window_extent()
    if window.width < _LEAST * frame.width or window.height < height * frame.height:
        return False
    if ax.get_legend() is not None and _covers_data(ax):
        return False
    boxes = [_box_of(text) for text in texts_of(figure)]
    for legend in (each.get_legend() for each in figure.axes):
        if legend is not None:
            boxes.append(_upright(legend.get_window_extent().get_points()))
    if not boxes:
        return True
    corners = np.array([box.corners() for box in boxes])
    low, high = corners.min(axis=1), corners.max(axis=1)
    if (low < -_TOUCHING).any() or (high > np.asarray(frame.max) + _TOUCHING).any():
        return False
    near = ((low[:, None] < high[None]) & (low[None] < high[:, None])).all(axis=2)
    return not any(boxes[i].overlaps(boxes[j]) for i, j in np.argwhere(np.triu(near, 1)).tolist())


def texts_of(figure: Figure) -> Iterator[Text]:
    """All texts that are seen, except those in legends."""
    for ax in figure.axes:
        if not ax.get_visible():
            continue
        own = [*(text for text in ax.texts if text.get_alpha() != 0), ax.title, _left_title(ax)]
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            low, high = sorted(axis.get_view_interval())
            margin = 1e-9 * (high - low)
            ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
            own += [axis.label, *(label for place, label in ticks if low - margin <= place <= high + margin)]
        yield from (text for text in own if text.get_visible() and text.get_text().strip())


def _upright(points: NDArray[Any]) -> _Box:
    return _Box(points.mean(axis=0), np.diff(points, axis=0)[0] / 2, np.eye(2))


def _box_of(text: Text) -> _Box:
    points = text.get_window_extent().get_points()
    angle = text.get_rotation()
    if angle % 90:  # the box of the text before its rotation has the same middle
        text.set_rotation(0)
        half = np.diff(text.get_window_extent().get_points(), axis=0)[0] / 2
        text.set_rotation(angle)
        turn = np.deg2rad(angle)
        sides = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        box = _Box(points.mean(axis=0), half, sides)
    else:
        box = _upright(points)
    across = 0 if angle % 180 == 90 else 1  # the height of the lines
    n_lines = text.get_text().count("\n") + 1
    trimmed = box.half.copy()
    trimmed[across] *= 1 - 2 * _TRIMMED / n_lines
    return box._replace(half=trimmed)


# ---- texts that are moved or left out ------------------------------------------------------------------------------


def fit_into_cells(ax: Axes, texts: Sequence[Text], shorter: Sequence[str]) -> None:
    """Make the texts of the cells of a table smaller until they fit; if they cannot, write shorter ones, or none."""
    apply_layout(ax)
    corners = ax.transData.transform([(0, 0), (1, 1)])
    cell = np.abs(np.diff(corners, axis=0)[0])
    for words in (None, shorter, [""] * len(texts)):
        if words is not None:
            for text, word in zip(texts, words, strict=True):
                text.set_text(word)
        sizes = [np.diff(text.get_window_extent().get_points(), axis=0)[0] for text in texts if text.get_text()]
        largest = np.max([np.ones(2), *sizes], axis=0) * np.array([1.05, 1 - 2 * _TRIMMED])
        size = min(1.0, *(cell / largest).tolist()) * tiny()
        if size >= SMALLEST:
            break
    for text in texts:
        text.set_fontsize(size)


def spread(places: NDArray[Any], gap: float, low: float, high: float) -> NDArray[Any]:
    """Increasing places that are moved as little as possible, so that they are `gap` apart, between two ends."""
    from sklearn.isotonic import isotonic_regression

    steps = gap * np.arange(places.size)
    found = isotonic_regression(places - steps, y_min=low, y_max=max(high - gap * (places.size - 1), low))
    return np.asarray(found + steps)


def place_legend(ax: Axes, **style: Any) -> None:
    """A legend in a corner of the axes where it covers neither data nor text, or above the axes.

    It is called last: a title moves up for it.
    """
    small_text: dict[str, Any] = {"fontsize": small(), "title_fontsize": small()}
    look = {"frameon": False, "markerscale": 0.8} | small_text | style
    for corner in ("upper right", "lower left", "upper left", "lower right"):
        ax.legend(loc=corner, **look)
        apply_layout(ax)
        (low, high), frame = _legend_box(ax), ax.get_window_extent().get_points()
        if (low >= frame[0] - 1).all() and (high <= frame[1] + 1).all() and not _covers_data(ax):
            return
    n_entries = len(ax.get_legend_handles_labels()[1])
    room = float(ax.figure.bbox.x1 - frame[0, 0])
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2, "borderpad": 0.2}
    for n_columns in range(n_entries, 0, -1):
        box = ax.legend(**above, ncols=n_columns, **look).get_window_extent()
        if box.width <= room:
            break
    pad = float(box.height) * 72 / float(ax.figure.dpi) + 4
    title = _left_title(ax)
    legend: Any = ax.get_legend()
    legend.set_in_layout(not title.get_text().strip())  # a title reserves its height; the axes stay as wide as they are
    ax.set_title(title.get_text(), loc="left", pad=pad, size=title.get_fontsize(), parse_math=title.get_parse_math())


def _legend_box(ax: Axes) -> NDArray[Any]:
    legend: Any = ax.get_legend()
    return np.asarray(legend.get_window_extent().get_points())


def _covers_data(ax: Axes) -> bool:
    """Whether the legend lies over lines, markers or texts of its axes."""
    (low, high), points = _legend_box(ax), _drawn_points(ax)
    return bool(((low - 2 < points) & (points < high + 2)).all(axis=1).any())


def _drawn_points(ax: Axes) -> NDArray[Any]:
    """Points on all lines, markers and corners of texts of the axes, in pixels."""
    from matplotlib.cbook import STEP_LOOKUP_MAP
    from matplotlib.collections import LineCollection

    shares = np.linspace(0, 1, 50)[:, None]
    found = [np.empty((0, 2))]
    for line in ax.lines:
        x, y = STEP_LOOKUP_MAP[str(line.get_drawstyle())](*map(np.asarray, line.get_data()))
        corners = np.asarray(line.get_transform().transform(np.column_stack([x, y]).astype(float)))
        found.append(corners)
        if str(line.get_linestyle()) != "None":
            found += [start + shares * (end - start) for start, end in pairwise(corners)]
    for each in ax.collections:
        if isinstance(each, LineCollection):  # error bars
            for segment in each.get_segments():
                start, end = np.asarray(each.get_transform().transform(segment))[[0, -1]]
                found.append(start + shares * (end - start))
        found.append(np.asarray(each.get_offset_transform().transform(np.ma.getdata(each.get_offsets()).astype(float))))
    for text in ax.texts:
        (left, bottom), (right, top) = text.get_window_extent().get_points()
        across, up = np.linspace(left, right, 20), np.linspace(bottom, top, 5)
        found.append(np.array(list(product(across, up))))
    return np.concatenate(found)
