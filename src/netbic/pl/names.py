"""Names as labels of a plot: one line, limited length, never interpreted as mathematics."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.errors import one_line
from netbic.pl.canvas import pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LITERAL: Final[dict[str, Any]] = {"parse_math": False, "usetex": False}  # a $ is a $
_LONGEST = 24
_LARGEST, _SMALLEST, _LINE = 8.0, 5.0, 1.25  # font sizes in points, and line height relative to them
_SQUARE = "\N{WHITE SQUARE}"


def label_text(name: object, longest: int = _LONGEST) -> str:
    """A name as a label: one line, shortened in the middle, squares for characters that the font does not have."""
    plain = " ".join(one_line(str(name)).split())
    if len(plain) > longest:
        tail = longest // 3
        plain = plain[: longest - tail - 1] + "\N{HORIZONTAL ELLIPSIS}" + plain[-tail:]
    return plain if plain.isascii() else "".join(map(_drawn, plain))


def _drawn(letter: str) -> str:
    # Matplotlib warns about missing characters only when the figure is drawn, without saying where they are.
    known = _letters(_fonts())
    return letter if ord(letter) in known else _SQUARE if ord(_SQUARE) in known else "?"


def _fonts() -> tuple[str, ...]:
    """Files of the current fonts."""
    from matplotlib.font_manager import FontProperties, findfont

    return tuple(str(findfont(FontProperties(family=[family]))) for family in FontProperties().get_family())


@lru_cache(maxsize=4)
def _letters(fonts: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(font).get_charmap() for font in fonts))


def name_ticks(ax: Axes, which: str, positions: Iterable[float], names: Sequence[Any], priority: NDArray[Any]) -> None:
    """Write names on the "x" or "y" axis: all that fit without overlap, by decreasing priority.

    Uses the current size of the axes in pixels: call `apply_layout` before.
    """
    at = np.asarray(list(positions), dtype=float)
    kept, size = _that_fit(_along(ax, which, at), priority, pixels(ax, 1.0) * _LINE)
    labels = [label_text(names[k]) for k in kept]
    options: dict[str, Any] = {"fontsize": size, **LITERAL} | ({"rotation": 90} if which == "x" else {})
    (ax.set_xticks if which == "x" else ax.set_yticks)(at[kept], labels, **options)


def _along(ax: Axes, which: str, at: NDArray[Any]) -> NDArray[Any]:
    """Positions on an axis in pixels."""
    points = np.column_stack([at, np.full_like(at, ax.get_ylim()[0])])
    if which == "y":
        points = np.column_stack([np.full_like(at, ax.get_xlim()[0]), at])
    return np.asarray(ax.transData.transform(points))[:, 0 if which == "x" else 1]


def _that_fit(positions: NDArray[Any], priority: NDArray[Any], line: float) -> tuple[NDArray[np.intp], float]:
    """Which names to write and their font size; `line` is the height of a line in a font of one point."""
    closest = float(np.diff(np.sort(positions)).min(initial=np.inf)) / line
    if closest >= _SMALLEST:
        return np.arange(positions.size), min(_LARGEST, closest)
    return apart(positions, priority, line * (_SMALLEST + 1)), _SMALLEST + 1


def apart(positions: NDArray[Any], priority: NDArray[Any], gap: float) -> NDArray[np.intp]:
    """Indices of positions at least `gap` from each other, selected by decreasing priority."""
    taken: list[float] = []
    kept = []
    for k in np.argsort(-np.asarray(priority), kind="stable").tolist():
        position = float(positions[k])
        left = bisect.bisect(taken, position)
        near = taken[max(left - 1, 0) : left + 1]
        if all(abs(position - other) >= gap for other in near):
            taken.insert(left, position)
            kept.append(k)
    return np.sort(np.array(kept, dtype=np.intp))
