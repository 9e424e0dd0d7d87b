"""Associations of modules with what is known about the samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from netbic.arrays import Bools, Floats
from netbic.association.averages import Averages, repeated_measures
from netbic.association.headlines import Words
from netbic.association.linear import Residuals
from netbic.association.matching import SampleMatch, check_table, match_samples
from netbic.association.module_tests import Scores, all_tests
from netbic.association.removed import Removed
from netbic.association.sample_table import Survival, design_of, listed_names, read_variables, survival_pairs
from netbic.association.scores import wide
from netbic.association.variables import LEFT_OUT, ORDERED, SURVIVAL, Types, Variable, is_events
from netbic.association.wording import strongest_lines, variable_line
from netbic.errors import InputError, one_line
from netbic.estimators import axis_names, fitted_model
from netbic.selection import SampleGroups

COLUMNS = ["module", "variable", "level", "test", "n", "effect", "effect_name", "ci_low", "ci_high", "p", "q", "q_all"]
_TIME = re.compile(r"time|days|months|years|surv", re.IGNORECASE)
_EVENT = re.compile(r"event|status|censor|dead|death|deceased|vital|recurr|relapse", re.IGNORECASE)


@dataclass(frozen=True)
class Associations:
    """Associations of modules with variables.

    Attributes
    ----------
    table : DataFrame
        A row per module, variable, level and test: `module`, `variable`, `level` ("" for the whole variable), `test`,
        `n` (samples), `effect`, `effect_name`, `ci_low`, `ci_high` (95 % confidence interval, NaN if there is none),
        `p`, `q` (adjusted for all modules and levels of the same test of the same variable, by Benjamini and
        Hochberg), `q_all` (adjusted for all tests of the table).
    variables : DataFrame
        A row per column of the sample table: `name`, `type`, `reason`, `levels`, `n_levels`, `n`, `missing`.
    match : SampleMatch
        Which samples were found in the table; `match.table` is the table of all samples, in their order.
    adjusted_for : tuple of str
        Covariates.
    notes : tuple of str
        What else should be known.
    survival : tuple of (str, str)
        Columns with times and events.
    by : tuple of str
        Columns; averages of samples with the same values of them were tested.
    levels : dict
        The levels of each variable that has some, in their order.
    """

    table: pd.DataFrame
    variables: pd.DataFrame
    match: SampleMatch = field(repr=False)
    adjusted_for: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    survival: tuple[tuple[str, str], ...] = ()
    by: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def lines(self, verdicts: Words | None = None) -> Iterator[str]:
        """The summary as lines of text: matching, variables, and the strongest associations of each variable."""
        yield from self.match.lines()
        yield from (one_line(variable_line(record)) for record in self.variables.to_dict("records"))
        yield from self.findings(verdicts)

    def findings(self, verdicts: Words | None = None) -> Iterator[str]:
        """The notes and the strongest associations of each variable as lines of text.

        With verdicts (by the number of the module from 0), doubtful modules are marked, and listed after others.
        """
        if self.adjusted_for:
            not_tested = "; groups of samples are not tested" if "module" in self.table else ""
            yield f"adjusted for {', '.join(self.adjusted_for)}{not_tested}"
        yield from map(one_line, self.notes)
        yield from map(one_line, strongest_lines(self.table, verdicts))


def associate(
    model: Any,
    X: Any,
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
    covariates: Any = None,
) -> Associations:
    """Test which modules are associated with labels, numbers and survival times of the samples.

    The tests use the scores of the samples, Xv, and, if they form groups (`selection.sample_groups`), which samples
    are up or down.

    - Categories: Kruskal-Wallis test; for every level against the rest the Mann-Whitney test with the AUC; for groups
      the chi-squared test (with simulated p-values if expected counts are below 5) and, by level, Fisher's exact test
      with the odds ratio.
    - Numbers: Spearman and Pearson correlations. Ordered levels: the Spearman correlation.
    - Survival: score test of a Cox model with the hazard ratio per standard deviation of the scores; log-rank test of
      up against down, or of the halves of the samples ("median split") if there are no groups.

    Parameters
    ----------
    model : SparseGraphSVD or a fitted search such as AutoSVD
    X : DataFrame or array of shape (n_samples, n_features)
        The data of the fit, or other samples of the same features.
    table : DataFrame
        A row per sample, matched by name: the index, or a column of names. If X has no names, rows are matched by
        their order.
    variables : str or list of str, optional
        Columns to test. Default: all that can be tested.
    types : dict, optional
        Types of columns: "categorical", "ordered", "numeric", or the list of levels in their order. Default: guessed.
    survival : (str, str) or list of such pairs, optional
        The columns with the time and the event (1 seen, 0 not seen).
    adjust : str or list of str, optional
        Columns that the tests are adjusted for: partial correlations, linear models and Cox models are used instead.
        Covariates that were removed in the fit are added if they took more than 5 % of the degrees of freedom (not
        with `by`).
    by : str or list of str, optional
        Columns such as "donor" of which samples with the same values belong together (cells of a donor, repeated
        measurements of a patient): the averages of their scores are tested. Columns with several values in one average
        are left out, and so are samples of which a value of `by` is missing. Groups (up, down) are not tested.
    covariates : as for `SparseGraphSVD.fit`, optional
        If the model was fitted with covariates, those of the samples in X: their effects are removed from X before the
        scores are computed. Not needed for the samples of the fit.

    Returns
    -------
    Associations

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> labels = pd.DataFrame({"subtype": np.where(study.samples[0], "A", "B")}, index=study.expression.index)
    >>> found = netbic.associate(model, study.expression, labels)
    >>> found.table[found.table["test"] == "Mann-Whitney"][["level", "effect_name", "n"]].to_dict("records")
    [{'level': 'A', 'effect_name': 'AUC', 'n': 200}, {'level': 'B', 'effect_name': 'AUC', 'n': 200}]
    """
    names, own = axis_names(X)[0], check_table(table)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if by_order := names is None:
        if len(table) != n_samples:
            raise InputError(
                f"X has no sample names and {n_samples:,} rows, but the sample table has {len(table):,}: give a "
                "DataFrame with the names of the samples as its index"
            )
        names, own = np.arange(n_samples), table.set_axis(range(n_samples))
    scores, groups = wide(SampleGroups.find(model, X, names=list(names), covariates=covariates).table)
    options: dict[str, Any] = {"variables": variables, "types": types, "survival": survival, "adjust": adjust}
    found = associate_scores(scores, groups, own, **options, by=by, removed=Removed.of(fitted_model(model)))
    if not by_order:
        return found
    return replace(found, match=replace(found.match, table=found.match.table.set_axis(table.index)))


def associate_scores(
    scores: pd.DataFrame,
    groups: pd.DataFrame | None,
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
    removed: Removed | None = None,
) -> Associations:
    r"""The same as `associate`, for scores that are known.

    Parameters
    ----------
    scores : DataFrame of shape (n_samples, n_modules)
        Its columns are the numbers of the modules, or have other names in the order of the modules (as in
        `netbic.get.scores_df`).
    groups : DataFrame of the same shape, optional
        "up", "down" or "" of each sample. Default: no groups.
    table, variables, types, survival, adjust, by : as for `associate`
    removed : Removed, optional
        The covariates that were removed in the fit.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> samples = [f"s{k}" for k in range(8)]
    >>> scores = pd.DataFrame({0: np.arange(8.0)}, index=samples)
    >>> found = associate_scores(scores, None, pd.DataFrame({"sex": list("ffffmmmm")}, index=samples))
    >>> print(*found.lines(), sep="\n")
    sample table: 8 rows x 1 column
    matched: 8 of 8 samples (100%)
    sex: categorical (text with 2 different values): f, m
    sex: m is higher in module 1 (AUC 1.00, q = 0.03)
    """
    if not pd.api.types.is_integer_dtype(scores.columns):
        scores = scores.set_axis(range(scores.shape[1]), axis=1)
        groups = None if groups is None else groups.set_axis(scores.columns, axis=1)
    match, note = match_samples(scores.index, table), ""
    described, averages = match.table, None
    if removed is not None and by is None:  # degrees of freedom of samples, not of their averages
        asked = None if variables is None else listed_names(variables)
        adjust, note = removed.adjustment(listed_names(adjust), asked, [*map(str, described.columns)], len(scores))
    covariates = tuple(listed_names(adjust))
    if by is not None:
        averages = Averages.of(described, listed_names(by), [*listed_names(variables), *covariates, *_flat(survival)])
        scores, groups, described = averages.mean(scores), None, averages.table
    studies = None if removed is None else removed.studies_of(described.index)
    options: dict[str, Any] = {"variables": variables, "types": types, "survival": survival, "adjust": adjust}
    chosen = read_variables(described, **options, studies=studies)
    tested = [variable for variable in chosen if variable.kind != LEFT_OUT and variable.name not in covariates]
    design = design_of([variable for variable in chosen if variable.name in covariates])
    rows = _all_tests(scores, groups, tested, design)
    result = adjusted_for_multiplicity(pd.DataFrame(rows, columns=COLUMNS[:-2]))
    records = pd.DataFrame([variable.record() for variable in chosen], columns=_record_columns())
    notes = [note, *(_survival_notes(described) if not survival else ())]
    notes += [] if removed is None else [*removed.remarks(result)]
    notes += [*_undefined_notes(tested, design, result, covariates), *_dependence(described, tested, averages)]
    levels = {variable.name: variable.levels for variable in chosen if variable.levels}
    pairs, grouped = tuple(survival_pairs(survival)), () if averages is None else averages.by
    return Associations(result, records, match, covariates, tuple(filter(None, notes)), pairs, grouped, levels)


def _all_tests(
    scores: pd.DataFrame, groups: pd.DataFrame | None, tested: list[Variable], design: Floats | None
) -> list[dict[str, Any]]:
    """A row per variable, module, level and test."""
    kept = pd.DataFrame("", index=scores.index, columns=scores.columns) if groups is None else groups
    rows: list[dict[str, Any]] = []
    for variable in tested:
        for module in scores.columns:
            own = Scores(scores[module].to_numpy(dtype=np.float64), kept[module].to_numpy(dtype=object))
            for level, test, n, effect_name, found in all_tests(own, variable, design):
                place = {"module": module, "variable": variable.name, "level": level, "test": test, "n": n}
                interval = {"ci_low": found.low, "ci_high": found.high}
                effect = {"effect": found.effect, "effect_name": effect_name}
                rows.append(place | effect | interval | {"p": found.p})
    return rows


def _flat(survival: Survival | None) -> list[str]:
    return [name for pair in survival_pairs(survival) for name in pair]


def _dependence(table: pd.DataFrame, tested: list[Variable], averages: Averages | None) -> Iterator[str]:
    """Which averages are tested, or which variables should be tested in averages."""
    if averages is not None:
        yield averages.note()
        return
    for names, column, number in repeated_measures(table, tested):
        same = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} the same in all samples of one {column}"
        yield (
            f"{same} ({number:,} different ones): p-values count samples as independent, and are too small if those of "
            f"one {column} are similar; test their averages with `by={column}`"
        )


def _record_columns() -> list[str]:
    return list(Variable("", LEFT_OUT, "", np.empty(0)).record())


def adjusted_for_multiplicity(table: pd.DataFrame) -> pd.DataFrame:
    """Add `q` (within each test of a variable) and `q_all` (over all rows), by Benjamini and Hochberg.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"variable": ["a", "a", "b"], "test": "Spearman", "p": [0.01, 0.04, 0.03]})
    >>> adjusted_for_multiplicity(table)["q"].tolist()
    [0.02, 0.04, 0.03]
    """
    kinds = [table["variable"], table["test"].astype(str).str.split(",").str[0]]
    within = table["p"].groupby(kinds, group_keys=False).transform(_adjusted) if len(table) else table["p"]
    return table.assign(q=within, q_all=_adjusted(table["p"]))


def _adjusted(p: pd.Series[Any]) -> pd.Series[Any]:
    known = p.notna()
    adjusted = pd.Series(np.nan, index=p.index, dtype=np.float64)
    if known.any():
        adjusted[known] = false_discovery_control(p[known].to_numpy(dtype=np.float64))
    return adjusted


def _survival_notes(table: pd.DataFrame) -> Iterator[str]:
    times, events = ([str(name) for name in table.columns if kind.search(str(name))] for kind in (_TIME, _EVENT))
    events = [name for name in events if is_events(table[name])]
    times = [name for name in times if name not in events and pd.api.types.is_numeric_dtype(table[name].dtype)]
    if times and events:
        yield f"{times[0]} and {events[0]} look like survival: test them with `survival={times[0]},{events[0]}`"


def _undefined_notes(
    tested: list[Variable], design: Floats | None, result: pd.DataFrame, covariates: Sequence[str]
) -> Iterator[str]:
    """Why no test of a variable is defined, if there are covariates."""
    if design is None:
        return
    defined, names = set(result.loc[result["p"].notna(), "variable"]), ", ".join(covariates)
    for variable in tested:
        if variable.name in defined:
            continue
        known = variable.known & ~np.isnan(design).any(axis=1)
        n = int(known.sum())
        removed = Residuals(n, design[known]) if n else None
        if removed is not None and removed.rank < n and _is_explained(variable, known, removed):
            yield f"{variable.name} is explained completely by the covariates ({names}): it cannot be tested"
        else:
            both = f"{n:,} sample{'s have' if n != 1 else ' has'} a value of it and of all covariates ({names})"
            yield f"{variable.name} cannot be tested: {both}"


def _is_explained(variable: Variable, known: Bools, removed: Residuals) -> bool:
    if variable.kind == SURVIVAL:
        return False
    values = variable.values[:, None] if variable.kind == ORDERED else variable.columns()
    return not any(removed(column).any() for column in values[known].T)
