"""Box plots of the scores of a module by the levels of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netbic.arrays import Floats
from netbic.association import Variable
from netbic.report.axes import as_label, round_ticks

_MOST_LEVELS = 12
_WIDTH, _ROW = 600, 26


class Box(NamedTuple):
    """The scores of the samples of a level: quartiles and extremes, as positions in the drawing."""

    label: str
    n: int
    low: float
    first: float
    median: float
    third: float
    high: float


class BoxPlot(NamedTuple):
    """Scores by the levels of a variable."""

    variable: str
    q: float
    boxes: list[Box]
    zero: float
    ticks: list[tuple[float, str]]  # positions and labels of scores
    test: str = ""  # of the smallest q-value
    kind: str = "boxes"
    width: int = _WIDTH
    row: int = _ROW


def box_plot(scores: Floats, variable: Variable, q: float) -> BoxPlot | None:
    """The boxes of the levels, ordered ones in their order, others by their medians; None for one or many levels."""
    known = variable.known & np.isfinite(scores)
    groups = [(level, scores[known & (variable.values == at)]) for at, level in enumerate(variable.levels)]
    groups = [(level, own) for level, own in groups if own.size]
    if not 2 <= len(groups) <= _MOST_LEVELS:
        return None
    low, high = min(float(scores[known].min()), 0.0), max(float(scores[known].max()), 0.0)

    def at(value: float) -> float:
        return round(_WIDTH * (value - low) / ((high - low) or 1.0), 1)

    if variable.kind != "ordered":
        groups.sort(key=lambda pair: float(np.median(pair[1])))
    boxes = [Box(level, own.size, *(at(each) for each in _five(own))) for level, own in groups]
    return BoxPlot(variable.name, q, boxes, at(0.0), [(at(tick), as_label(tick)) for tick in round_ticks(low, high)])


def _five(values: NDArray[Any]) -> Sequence[float]:
    return [float(each) for each in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])]
