"""The scores of the samples in two tables, as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from netbic.arrays import Array, Floats
from netbic.report.axes import as_label, round_ticks

_LEFT, _TOP, _WIDTH, _HEIGHT = 62, 12, 400, 320
_RIGHT, _BELOW = 14, 52
_MOST = 2000  # samples that are drawn
_MANY = 300  # samples from which on points are smaller
_MARGIN = 0.05  # of the range of the scores, on either side


class Point(NamedTuple):
    """A sample."""

    x: float
    y: float
    text: str
    colour: str = ""


class Scatter(NamedTuple):
    """Positions of points and ticks in the drawing."""

    points: list[Point]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    n: int
    radius: float
    variable: str = ""  # by which points are coloured
    keys: tuple[tuple[str, str], ...] = ()  # label and colour
    left: int = _LEFT
    top: int = _TOP
    width: int = _WIDTH
    height: int = _HEIGHT
    box: tuple[int, int] = (_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BELOW)


class Colouring(NamedTuple):
    """A variable, its value and colour of each sample, and what the colours mean."""

    variable: str
    texts: list[str]
    colours: list[str]
    keys: list[tuple[str, str]]  # label and colour


def scatter(x: Floats, y: Floats, names: Array, colouring: Colouring | None = None) -> Scatter:
    """The drawing of scores in table 1 (horizontal) and table 2 (vertical); a random choice of very many samples."""
    size = len(x)
    shown = np.arange(size)
    if size > _MOST:
        shown = np.sort(np.random.default_rng(0).choice(size, _MOST, replace=False))
    x_range, y_range = _range(x), _range(y)
    columns, rows = _at(x, x_range, _LEFT, _WIDTH), _at(y, y_range, _TOP + _HEIGHT, -_HEIGHT)
    variable, texts, colours, keys = colouring or Colouring("", [""] * size, [""] * size, [])
    numbers = [f"{names[k]}: {as_label(x[k], 3)}, {as_label(y[k], 3)}" for k in range(size)]
    points = [Point(columns[k], rows[k], f"{numbers[k]} {texts[k]}".strip(), colours[k]) for k in shown]
    x_ticks, y_ticks = round_ticks(*x_range), round_ticks(*y_range)
    return Scatter(
        points,
        list(zip(_at(x_ticks, x_range, _LEFT, _WIDTH), map(as_label, x_ticks), strict=True)),
        list(zip(_at(y_ticks, y_range, _TOP + _HEIGHT, -_HEIGHT), map(as_label, y_ticks), strict=True)),
        size,
        4.5 if size <= _MANY else 2.5,
        variable,
        tuple(keys),
    )


def _range(values: Floats) -> tuple[float, float]:
    """A little more than the range of the values; not empty if they are all equal."""
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _at(values: Sequence[float] | Floats, ends: tuple[float, float], start: float, length: float) -> list[float]:
    low, high = ends
    return [round(start + length * (float(value) - low) / (high - low), 1) for value in values]
