"""Tasks: each is a module with a docstring for the page, `problems(small)` and `figures(found, load)`.

`problems` gives the problems that each unit needs; a unit is a data set and a seed, "DATA SET/SEED". `figures` gives
the figures of one method on one unit, of which `FIGURE` is the one that ranks methods. Larger is better.
`ONLY_CHOOSING` is true if the figure compares methods that choose the number of modules only.
`WORST`, if a task has it, is the value of a method that did not finish. `SHOWN` is what tables show of a mean or of a
difference, and `DIFFERENCE` names the latter.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import numpy as np

NAMES = ("regulons", "planted", "labels", "halves", "studies", "survival", "noise", "speed")


class Asked(NamedTuple):
    """A problem: an instance (data.py), the number of modules that is told, and the seed of the method."""

    instance: str
    k: int | None
    seed: int


class Fitted(NamedTuple):
    """What a method found (problem.py), process seconds and peak memory."""

    weights: np.ndarray
    members: np.ndarray
    scores: np.ndarray | None = None
    seconds: float = np.nan
    gigabytes: float = np.nan


def tasks(names=NAMES):
    return {name: import_module(f"{__name__}.{name}") for name in names}
