"""Kaplan-Meier curves of the samples in which a module is high and low."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Bools, Floats
from netbic.association import Variable, kaplan_meier, two_groups
from netbic.report.samples import SampleScores

_LEFT, _RIGHT, _TOP, _WIDTH, _HEIGHT = 62, 22, 58, 430, 210  # margins, and the size of the area of the curves
_MOST_TICKS = 6
_CLASSES = {"up": "up", "high": "up", "down": "down", "low": "down", "others": "others"}


class Curve(NamedTuple):
    """One group: its name, how it is drawn, its curve and its censored samples as SVG paths, and who is at risk."""

    name: str
    style: str
    path: str
    censored: str
    n: int
    n_events: int
    at_risk: list[int]


class SurvivalPlot(NamedTuple):
    """Two Kaplan-Meier curves with their axes, in the units of the drawing."""

    variable: str
    q: float
    curves: list[Curve]
    ticks: list[tuple[float, str]]  # positions and labels of times
    split: str  # "median", "groups" or "others": what the curves compare
    log_rank: dict[str, Any] | None
    cox: dict[str, Any] | None
    test: str = ""  # of the smallest q-value
    kind: str = "survival"
    left: int = _LEFT
    top: int = _TOP
    width: int = _WIDTH
    height: int = _HEIGHT

    @property
    def box(self) -> tuple[int, int]:
        """Width and height of the drawing."""
        return _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + 116


def survival_plot(scores: SampleScores, variable: Variable, q: float, tests: pd.DataFrame) -> SurvivalPlot | None:
    """The curves of the groups of the log-rank test; None if there is only one group.

    Parameters
    ----------
    scores : SampleScores
        With the groups that were tested.
    variable : Variable
        Times and events.
    tests : DataFrame
        The rows of associations.tsv of this module and variable.
    """
    known = variable.known & np.isfinite(scores.scores)
    times, events = variable.values[known], np.asarray(variable.events)[known]
    split = two_groups(scores.scores[known], scores.groups[known])
    if not split.first.any() or not split.second.any() or times.max() <= 0:
        return None
    ticks = _ticks(float(times.max()))
    end = max(float(times.max()), ticks[-1])
    curves = [
        _curve(name, times[own], events[own], end, ticks)
        for name, own in zip(split.names, (split.first, split.second), strict=True)
    ]
    places = [(round(_LEFT + _WIDTH * tick / end, 1), f"{tick:,g}") for tick in ticks]
    kind = {"low": "median", "others": "others"}.get(split.names[1], "groups")
    return SurvivalPlot(variable.name, q, curves, places, kind, _test(tests, "log-rank"), _test(tests, "Cox"))


def _test(tests: pd.DataFrame, name: str) -> dict[str, Any] | None:
    """The row of a test, if it was made and is defined."""
    own = tests[tests["test"].astype(str).str.startswith(name) & tests["p"].notna()]
    return None if own.empty else {str(key): value for key, value in own.iloc[0].to_dict().items()}


def _ticks(longest: float) -> list[float]:
    """Round times from zero, six at most."""
    power = 10.0 ** math.floor(math.log10(longest))
    steps = (share * power for share in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0))
    step = next(step for step in steps if longest / step < _MOST_TICKS)
    return [number * step for number in range(int(longest / step) + 1)]


def _curve(name: str, times: Floats, events: Bools, end: float, ticks: list[float]) -> Curve:
    table = kaplan_meier(times, events)
    x = np.round(_LEFT + _WIDTH * table["time"].to_numpy() / end, 1)
    y = np.round(_TOP + _HEIGHT * (1 - table["survival"].to_numpy()), 1)
    falls, lost = (table[name].to_numpy() > 0 for name in ("n_events", "n_censored"))
    steps = "".join(f"H{at:g}V{to:g}" for at, to in zip(x[falls], y[falls], strict=True))
    marks = "".join(f"M{at:g} {to:g}v-6" for at, to in zip(x[lost], y[lost], strict=True))
    at_risk = [int((times >= tick).sum()) for tick in ticks]
    path = f"M{_LEFT} {_TOP}{steps}H{x[-1]:g}"
    return Curve(name, _CLASSES[name], path, marks, times.size, int(events.sum()), at_risk)
