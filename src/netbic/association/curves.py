"""Kaplan-Meier curves of the samples in which a module is high and low, with the tests that go with them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats
from netbic.association.module_tests import Scores, all_tests, two_groups
from netbic.association.results import Result
from netbic.association.survival import kaplan_meier
from netbic.association.variables import Variable


class SurvivalCurves(NamedTuple):
    """Two groups of samples: their names, the samples at risk, their curves, and the tests.

    Attributes
    ----------
    names : pair of str
        "up" and "down"; the only side and "others"; or "high" and "low", the halves of a gradient (median split).
    times : pair of arrays
        Times of the samples of each group.
    curves : pair of DataFrame
        Of `kaplan_meier`.
    log_rank : Result
        Of the two groups, with the hazard ratio of the first one against the second one.
    cox : Result
        Of the scores themselves, with the hazard ratio per standard deviation.
    """

    names: tuple[str, str]
    times: tuple[Floats, Floats]
    curves: tuple[pd.DataFrame, pd.DataFrame]
    log_rank: Result
    cox: Result

    @property
    def is_median_split(self) -> bool:
        """Whether the groups are the halves of a gradient."""
        return self.names == ("high", "low")

    def at_risk(self, moments: Floats) -> list[list[int]]:
        """The number of samples of each group that are observed at some times without an event before."""
        return [[int((times >= moment).sum()) for moment in moments] for times in self.times]


def survival_curves(scores: Floats, groups: Array, variable: Variable) -> SurvivalCurves | None:
    """The curves of the two groups that the log-rank test of `associate` compares; None if there is only one group.

    Parameters
    ----------
    scores : array
        Scores of all samples in a module.
    groups : array
        "up", "down" or "" of each sample.
    variable : Variable
        Times and events (`read_variables` with `survival`).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from netbic.association import read_variables
    >>> table = pd.DataFrame({"days": [5.0, 8, 9, 12, 15, 20], "event": [1, 1, 1, 0, 1, 0]})
    >>> (survival,) = read_variables(table, variables=[], survival=("days", "event"))
    >>> found = survival_curves(np.array([3.0, 2, 1, -1, -2, -3]), np.full(6, ""), survival)
    >>> found.names, found.at_risk(np.array([0, 10])), round(found.log_rank.p, 3)
    (('high', 'low'), [[3, 0], [3, 3]], 0.025)
    """
    known = variable.known & np.isfinite(scores)
    times, events = variable.values[known], np.asarray(variable.events)[known]
    split = two_groups(scores[known], groups[known])
    if not split.first.any() or not split.second.any():
        return None
    tests = {row.test.partition(",")[0]: row.result for row in all_tests(Scores(scores, groups), variable)}
    first, second = ((times[own], kaplan_meier(times[own], events[own])) for own in (split.first, split.second))
    return SurvivalCurves(
        split.names, (first[0], second[0]), (first[1], second[1]), tests["log-rank"], tests["Cox score"]
    )
