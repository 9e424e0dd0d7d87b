"""All tests of one module with one variable, and the survival curves of its groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats
from netbic.association import tests
from netbic.association.tests import UNDEFINED, Result
from netbic.association.variables import CATEGORICAL, NUMERIC, SURVIVAL, Variable


class Row(NamedTuple):
    """A test: level ("" for the whole variable), name of the test, samples, name of the effect, result."""

    level: str
    test: str
    n: int
    effect_name: str
    result: Result


def all_tests(scores: Floats, groups: Array, variable: Variable, design: Floats | None = None) -> Iterator[Row]:
    """All tests of a module with a variable, of the samples for which everything is known.

    `groups` holds "up", "down" or "" of each sample. If the tests are adjusted for covariates (the columns of
    `design`), tests of groups are left out.
    """
    known = variable.known & ~np.isnan(scores)
    if design is not None:
        known &= ~np.isnan(design).any(axis=1)
        design = design[known]
    scores, groups, values, n = scores[known], groups[known], variable.values[known], int(known.sum())
    if variable.kind == SURVIVAL:
        yield from _tests_of_survival(scores, groups, values, np.asarray(variable.events)[known], design)
        return
    if variable.kind != CATEGORICAL:
        partial = "partial " * (design is not None)
        found = tests.spearman(scores, values, design) if n > 2 else UNDEFINED
        yield Row("", f"{partial}Spearman", n, f"{partial}Spearman rho", found)
        if variable.kind == NUMERIC:
            found = tests.pearson(scores, values, design) if n > 2 else UNDEFINED
            yield Row("", f"{partial}Pearson", n, f"{partial}Pearson r", found)
        return
    levels, names = values.astype(np.intp), variable.levels
    if design is not None:
        yield Row("", "linear model", n, "partial eta squared", tests.linear_model(scores, levels, design))
        for code, level in enumerate(names):
            found = tests.standardised_difference(scores, levels == code, design)
            yield Row(level, "linear model, level", n, "standardised difference", found)
        return
    yield Row("", "Kruskal-Wallis", n, "epsilon squared", tests.kruskal_wallis(scores, levels))
    for code, level in enumerate(names):
        yield Row(level, "Mann-Whitney", n, "AUC", tests.mann_whitney(scores, levels == code))
    present = [group for group in ("up", "down", "") if (groups == group).any()]
    if len(present) > 2 or (len(present) == 2 and len(names) > 2):
        counts = [np.bincount(levels[groups == group], minlength=len(names)) for group in present]
        found, simulated = tests.chi_squared(np.array(counts, dtype=np.int64))
        yield Row("", f"chi-squared{', Monte Carlo' * simulated}", n, "Cramer's V", found)
    sides = {2: present[:1], 3: present[:2]}.get(len(present), [])  # of two groups, one says both
    for side, (code, level) in product(sides, enumerate(names)):
        yield Row(level, f"Fisher, {side}", n, "odds ratio", tests.fisher(groups == side, levels == code))


def _tests_of_survival(
    scores: Floats, groups: Array, times: Floats, events: Bools, design: Floats | None
) -> Iterator[Row]:
    """Score test of the scores; without covariates also the log-rank test and the hazard ratio of two groups."""
    sd = float(np.std(scores, ddof=1)) if scores.size > 1 else 0.0
    model = tests.cox(times, events, scores / sd, design) if sd > 0 else None
    found = UNDEFINED if model is None else Result(model.score, model.p(model.score), *model.hazard_ratio())
    yield Row("", "Cox score", scores.size, "hazard ratio per sd", found)
    if design is not None:
        return
    split = two_groups(scores, groups)
    kept = split.first | split.second
    inside, found = split.first[kept], UNDEFINED
    if split.first.any() and split.second.any():
        model = tests.cox(times[kept], events[kept], inside.astype(np.float64))
        ratio = (np.nan, np.nan, np.nan) if model is None else model.hazard_ratio()
        found = Result(*tests.log_rank(times[kept], events[kept], inside)[:2], *ratio)
    yield Row("", split.test, inside.size, f"hazard ratio {'/'.join(split.names)}", found)


class TwoGroups(NamedTuple):
    """The samples that a log-rank test compares, the name of the test, and the names of the groups."""

    first: Bools
    second: Bools
    test: str
    names: tuple[str, str]


def two_groups(scores: Floats, groups: Array) -> TwoGroups:
    """The groups of a log-rank test: up and down; the only side and all others; or, of a gradient, its halves.

    `groups` holds "up", "down" or "" of each sample; scores have no missing values.
    """
    up, down = (groups == side for side in ("up", "down"))
    if up.any() and down.any():
        return TwoGroups(up, down, "log-rank", ("up", "down"))
    if up.any() or down.any():
        side, own = ("up", up) if up.any() else ("down", down)
        return TwoGroups(own, ~own, f"log-rank, {side} against others", (side, "others"))
    high = scores > np.median(scores) if scores.size else up
    return TwoGroups(high, ~high, "log-rank, median split", ("high", "low"))


class SurvivalCurves(NamedTuple):
    """Two groups of samples (up and down, a side and others, or high and low), their curves, and the tests."""

    names: tuple[str, str]
    times: tuple[Floats, Floats]
    curves: tuple[pd.DataFrame, pd.DataFrame]  # of `kaplan_meier`
    tested: tuple[Floats, Array, Variable]  # scores, groups, survival times

    @property
    def log_rank(self) -> Result:
        """The test of the groups, with the hazard ratio of the first one against the second one."""
        return next(row.result for row in all_tests(*self.tested) if row.test.startswith("log-rank"))

    @property
    def cox(self) -> Result:
        """The test of the scores themselves, with the hazard ratio per standard deviation."""
        return next(row.result for row in all_tests(*self.tested) if row.test == "Cox score")

    @property
    def is_median_split(self) -> bool:
        """Whether the groups are the halves of a gradient."""
        return self.names == ("high", "low")

    def at_risk(self, moments: Floats) -> list[list[int]]:
        """The number of samples of each group that are observed at some times without an event before."""
        return [[int((times >= moment).sum()) for moment in moments] for times in self.times]


def survival_curves(scores: Floats, groups: Array, variable: Variable) -> SurvivalCurves | None:
    """The curves of the two groups that the log-rank test of `associate` compares; None if there is only one group."""
    known = variable.known & np.isfinite(scores)
    times, events = variable.values[known], np.asarray(variable.events)[known]
    split = two_groups(scores[known], groups[known])
    if not split.first.any() or not split.second.any():
        return None
    first, second = times[split.first], times[split.second]
    curves = tests.kaplan_meier(first, events[split.first]), tests.kaplan_meier(second, events[split.second])
    return SurvivalCurves(split.names, (first, second), curves, (scores, groups, variable))
