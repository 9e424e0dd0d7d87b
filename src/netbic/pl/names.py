"""Names of any kind as text of a picture: on one line, of bearable length, never read as mathematics."""

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
_LARGEST, _SMALLEST, _LINE = 8.0, 5.0, 1.25  # points; and lines as multiples of the letters
_TOFU = "\N{WHITE SQUARE}"


def shown_name(name: Any, longest: int = _LONGEST) -> str:
    """A name as pictures have it: one line, cut in the middle, a square for what the font does not have."""
    plain = " ".join(one_line(str(name)).split())
    if len(plain) > longest:
        tail = longest // 3
        plain = plain[: longest - tail - 1] + "\N{HORIZONTAL ELLIPSIS}" + plain[-tail:]
    return plain if plain.isascii() else "".join(map(_drawn, plain))


def _drawn(letter: str) -> str:
    # Matplotlib warns of every letter its fonts lack, at a time when nobody knows where it came from.
    known = _letters(_fonts())
    return letter if ord(letter) in known else _TOFU if ord(_TOFU) in known else "?"


def _fonts() -> tuple[str, ...]:
    """Files of the fonts in use."""
    from matplotlib.font_manager import FontProperties, findfont

    return tuple(str(findfont(FontProperties(family=[family]))) for family in FontProperties().get_family())


@lru_cache(maxsize=4)
def _letters(fonts: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(font).get_charmap() for font in fonts))


def name_ticks(ax: Axes, which: str, positions: Iterable[float], names: Sequence[Any], priority: NDArray[Any]) -> None:
    """Write names on the "x" or "y" axis where they fit: all of them, or those that come first, never on each other.

    The axes' pixels are counted as they are now, so the figure's layout must have settled.
    """
    at = np.asarray(list(positions), dtype=float)
    kept, size = _that_fit(_along(ax, which, at), priority, pixels(ax, 1.0) * _LINE)
    labels = [shown_name(names[k]) for k in kept]
    words: dict[str, Any] = {"fontsize": size, **LITERAL} | ({"rotation": 90} if which == "x" else {})
    (ax.set_xticks if which == "x" else ax.set_yticks)(at[kept], labels, **words)


def _along(ax: Axes, which: str, at: NDArray[Any]) -> NDArray[Any]:
    """Places on an axis in pixels."""
    points = np.column_stack([at, np.full_like(at, ax.get_ylim()[0])])
    if which == "y":
        points = np.column_stack([np.full_like(at, ax.get_xlim()[0]), at])
    return np.asarray(ax.transData.transform(points))[:, 0 if which == "x" else 1]


def _that_fit(places: NDArray[Any], priority: NDArray[Any], line: float) -> tuple[NDArray[np.intp], float]:
    """Which names to write, and how large; `line` is the height of a line of letters of one point."""
    closest = float(np.diff(np.sort(places)).min(initial=np.inf)) / line
    if closest >= _SMALLEST:
        return np.arange(places.size), min(_LARGEST, closest)
    return apart(places, priority, line * (_SMALLEST + 1)), _SMALLEST + 1


def apart(places: NDArray[Any], priority: NDArray[Any], gap: float) -> NDArray[np.intp]:
    """Places at least `gap` from each other, taken by falling priority; their numbers, in order."""
    taken: list[float] = []
    kept = []
    for k in np.argsort(-np.asarray(priority), kind="stable").tolist():
        place = float(places[k])
        left = bisect.bisect(taken, place)
        near = taken[max(left - 1, 0) : left + 1]
        if all(abs(place - other) >= gap for other in near):
            taken.insert(left, place)
            kept.append(k)
    return np.sort(np.array(kept, dtype=np.intp))
