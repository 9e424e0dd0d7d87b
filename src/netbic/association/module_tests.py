"""The tests of one module with one variable, without and with covariates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from netbic.arrays import Array, Bools, Floats
from netbic.association.contingency import chi_squared, fisher
from netbic.association.correlation import pearson, spearman
from netbic.association.cox import cox
from netbic.association.linear import linear_model, standardised_difference
from netbic.association.rank_tests import kruskal_wallis, mann_whitney
from netbic.association.results import UNDEFINED, Result
from netbic.association.survival import log_rank
from netbic.association.variables import CATEGORICAL, NUMERIC, SURVIVAL, Variable, codes

SIDES = ("up", "down")


class Row(NamedTuple):
    """A test: level ("" for the whole variable), name of the test, samples, name of the effect, result."""

    level: str
    test: str
    n: int
    effect_name: str
    result: Result


class Scores(NamedTuple):
    """Scores of the samples of one module, and their groups ("up", "down", "")."""

    values: Floats
    groups: Array

    def of(self, rows: Bools) -> Scores:
        """Some samples."""
        return Scores(self.values[rows], self.groups[rows])


def all_tests(scores: Scores, variable: Variable, design: Floats | None = None) -> Iterator[Row]:
    """All tests of a module with a variable, of the samples for which everything is known.

    Parameters
    ----------
    scores : Scores
    variable : Variable
    design : array of shape (n_samples, n_columns), optional
        Covariates for which the tests are adjusted. Tests of groups are then left out.
    """
    known = variable.known & ~np.isnan(scores.values)
    if design is not None:
        known &= ~np.isnan(design).any(axis=1)
        design = design[known]
    own = scores.of(known)
    if variable.kind == CATEGORICAL:
        yield from _categorical(own, variable, known, design)
    elif variable.kind == SURVIVAL:
        yield from _survival(own, variable, known, design)
    else:
        yield from _ordered(own, variable, known, design)


def _categorical(scores: Scores, variable: Variable, known: Bools, design: Floats | None) -> Iterator[Row]:
    levels, n = codes(variable, known), scores.values.size
    if design is not None:
        yield Row("", "linear model", n, "partial eta squared", linear_model(scores.values, levels, design))
        for code, level in enumerate(variable.levels):
            found = standardised_difference(scores.values, levels == code, design)
            yield Row(level, "linear model, level", n, "standardised difference", found)
        return
    yield Row("", "Kruskal-Wallis", n, "epsilon squared", kruskal_wallis(scores.values, levels))
    for code, level in enumerate(variable.levels):
        yield Row(level, "Mann-Whitney", n, "AUC", mann_whitney(scores.values, levels == code))
    groups = [group for group in (*SIDES, "") if (scores.groups == group).any()]
    if len(groups) > 1:
        yield from _membership(scores, variable.levels, levels, groups)


def _membership(scores: Scores, names: tuple[str, ...], levels: Array, groups: list[str]) -> Iterator[Row]:
    """Counts of up, down and neither over the levels: all at once unless there are two of each, and level by level."""
    n = scores.values.size
    if len(groups) > 2 or len(names) > 2:
        counts = [np.bincount(levels[scores.groups == group], minlength=len(names)) for group in groups]
        found, simulated = chi_squared(np.array(counts, dtype=np.int64))
        yield Row("", f"chi-squared{', Monte Carlo' * simulated}", n, "Cramer's V", found)
    sides = [side for side in SIDES if side in groups][: 1 if "" not in groups else 2]  # up and down: one says both
    for side in sides:
        for code, level in enumerate(names):
            yield Row(level, f"Fisher, {side}", n, "odds ratio", fisher(scores.groups == side, levels == code))


def _ordered(scores: Scores, variable: Variable, known: Bools, design: Floats | None) -> Iterator[Row]:
    values, n, partial = variable.values[known], scores.values.size, "partial " * (design is not None)
    found = spearman(scores.values, values, design) if n > 2 else UNDEFINED
    yield Row("", f"{partial}Spearman", n, f"{partial}Spearman rho", found)
    if variable.kind == NUMERIC:
        found = pearson(scores.values, values, design) if n > 2 else UNDEFINED
        yield Row("", f"{partial}Pearson", n, f"{partial}Pearson r", found)


def _survival(scores: Scores, variable: Variable, known: Bools, design: Floats | None) -> Iterator[Row]:
    times, n = variable.values[known], scores.values.size
    events = np.zeros(n, dtype=bool) if variable.events is None else variable.events[known]
    sd = float(np.std(scores.values, ddof=1)) if n > 1 else 0.0
    model = cox(times, events, scores.values / sd, design) if sd > 0 else None
    found = UNDEFINED if model is None else Result(model.score, model.p(model.score), *model.hazard_ratio())
    yield Row("", "Cox score", n, "hazard ratio per sd", found)
    if design is None:
        yield _of_two_groups(scores, times, events)


def _of_two_groups(scores: Scores, times: Floats, events: Bools) -> Row:
    """Log-rank test and hazard ratio of two groups."""
    split = two_groups(*scores)
    kept = split.first | split.second
    effect = f"hazard ratio {'/'.join(split.names)}"
    if not split.first.any() or not split.second.any():
        return Row("", split.test, int(kept.sum()), effect, UNDEFINED)
    inside = split.first[kept]
    found = log_rank(times[kept], events[kept], inside.astype(np.intp))
    model = cox(times[kept], events[kept], inside.astype(np.float64))
    ratio = (np.nan, np.nan, np.nan) if model is None else model.hazard_ratio()
    return Row("", split.test, int(kept.sum()), effect, Result(found.statistic, found.p, *ratio))


class TwoGroups(NamedTuple):
    """The samples that a log-rank test compares, the name of the test, and the names of the groups."""

    first: Bools
    second: Bools
    test: str
    names: tuple[str, str]


def two_groups(scores: Floats, groups: Array) -> TwoGroups:
    """The groups of a log-rank test: up and down; the only side and all others; or, of a gradient, its halves.

    Parameters
    ----------
    scores : array
        Scores of the samples of a module, without missing values.
    groups : array
        "up", "down" or "" of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> split = two_groups(np.array([1.0, 2, 3, 4]), np.array(["", "", "", ""]))
    >>> split.test, split.names, split.first.tolist()
    ('log-rank, median split', ('high', 'low'), [False, False, True, True])
    """
    up, down = (groups == side for side in SIDES)
    if up.any() and down.any():
        return TwoGroups(up, down, "log-rank", SIDES)
    if up.any() or down.any():
        side, own = ("up", up) if up.any() else ("down", down)
        return TwoGroups(own, ~own, f"log-rank, {side} against others", (side, "others"))
    high = scores > np.median(scores) if scores.size else up
    return TwoGroups(high, ~high, "log-rank, median split", ("high", "low"))
