"""What a test returns."""

from __future__ import annotations

from math import nan
from typing import Final, NamedTuple

CONFIDENCE: Final = 0.95
Z: Final = 1.959963984540054  # normal quantile of (1 + CONFIDENCE) / 2


class Result(NamedTuple):
    """A test: its statistic, p-value and effect, with a confidence interval where there is one (NaN otherwise)."""

    statistic: float
    p: float
    effect: float
    low: float = nan
    high: float = nan


UNDEFINED: Final = Result(nan, nan, nan)  # a test that the data do not allow
