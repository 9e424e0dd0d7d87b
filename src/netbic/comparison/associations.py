"""Associations of modules with labels, numbers and survival times, tested again in another study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.association.associate import associate_scores
from netbic.association.guesses import order_of
from netbic.association.survival import find_survival, role_of_name
from netbic.association.tests import log_rank
from netbic.association.values import label
from netbic.association.variables import (
    CATEGORICAL,
    NUMERIC,
    ORDERED,
    Survival,
    check_known,
    guess,
    listed_names,
    match_samples,
    survival_pairs,
    survival_times,
)
from netbic.association.words import (
    LEVEL,
    UNADJUSTED,
    Words,
    direction,
    is_main,
    is_survival,
    main_tests,
    mark,
    reliability,
)
from netbic.enrichment import adjust_p_values
from netbic.errors import InputError, one_line, shown, some_names

_TEST = ["variable", "level", "module"]
_NUMBERS = ["effect", "ci_low", "ci_high", "p", "q"]
_COLUMNS: Final = [
    *(*_TEST, "test", "effect_name", "n", *_NUMBERS),
    *("effect_name_other", "n_other", *(f"{name}_other" for name in _NUMBERS), "same_direction", "holds"),
]
_LISTED = 3  # of a variable: the strongest associations in the fit that are printed, and further ones that hold
_FEWEST, _CLEAR = 5, 0.01  # samples of a level; p-value of the log-rank test of a column that drives survival


@dataclass(frozen=True)
class RepeatedAssociations:
    """Associations of a fit, side by side with those in another study.

    Attributes
    ----------
    table : DataFrame
        A row per variable, level, module and test, the strongest in the fit first: `effect`, `ci_low`, `ci_high`, `p`,
        `q` and `n` of the fit; the same with `_other` in the other study, where q-values are adjusted for the
        associations of the variable that were found in the fit (q at most 0.05), or for all those that were not;
        `effect_name_other`, which differs if the tests are adjusted here only; `same_direction`; `holds` (found in the
        fit, in the same direction and with `q_other` at most 0.05).
    notes : tuple of str
        Which samples are in the table, and what could not be tested.
    verdicts : dict
        Verdicts on the modules in the fit, by their numbers: `lines` marks doubtful modules.
    adjusted_for : tuple of str
        Covariates of the tests in the other study.
    go_with_survival : dict
        Categories that survival differs by in the other study, by the column of the times, if nothing was adjusted for.
    """

    table: pd.DataFrame
    notes: tuple[str, ...] = ()
    verdicts: Words = field(default_factory=dict)
    adjusted_for: tuple[str, ...] = ()
    go_with_survival: dict[str, list[str]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """One sentence."""
        found = self.table[self.table["q"] <= LEVEL]
        tested = found[found["p_other"].notna()]
        if found.empty:
            return f"No association of the fit (q <= {LEVEL}) can hold here: none was found there."
        many = f"{len(found):,} association{'s' * (len(found) != 1)} of the fit (q <= {LEVEL})"
        same, holds = int(tested["same_direction"].sum()), int(tested["holds"].sum())
        text = f"Of {many}, {holds:,} hold{'s' * (holds == 1)} here (q <= {LEVEL}), {same:,} in the same direction"
        return (
            f"{text}, {len(found) - len(tested):,} cannot be tested here." if len(tested) < len(found) else f"{text}."
        )

    def lines(self) -> Iterator[str]:
        """The notes, the strongest associations of each variable that can be tested here, and the verdict."""
        yield from map(one_line, self.notes)
        known = self.table[self.table["p_other"].notna().groupby(self.table["variable"]).transform("any")]
        for name, own in known.groupby("variable", sort=False):
            trust = [reliability(self.verdicts.get(int(module), "")) for module in own["module"]]
            found = own.assign(_trust=trust)[own["q"] <= LEVEL].sort_values("_trust", kind="stable")
            others = found.iloc[_LISTED:]
            for row in [
                *found.head(_LISTED).to_dict("records"),
                *others[others["holds"]].head(_LISTED).to_dict("records"),
            ]:
                yield one_line(f"{name}: {_in_words(row, self.verdicts)}")
            holding = int(others["holds"].sum())
            n_more, n_hold = len(others) - min(holding, _LISTED), max(holding - _LISTED, 0)
            if found.empty:
                best = _in_words(own.iloc[0].to_dict(), self.verdicts)
                yield one_line(f"{name}: no association in the fit (q <= {LEVEL}); the strongest: {best}")
            elif n_more:
                which = f"{n_hold:,} of them hold{'s' * (n_hold == 1)}" if n_hold else "none of them holds"
                yield one_line(f"{name}: {n_more:,} more in the table, {which}")
        yield self.verdict
        if not self.adjusted_for and is_survival(known).any():
            yield UNADJUSTED


def repeat_associations(
    tested: pd.DataFrame,
    scores: pd.DataFrame,
    table: pd.DataFrame,
    *,
    record: Mapping[str, Any] | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    verdicts: Words | None = None,
) -> RepeatedAssociations:
    """Test in another study what was tested in the fit.

    Parameters
    ----------
    tested : DataFrame
        The `table` of :func:`netbic.associate`, or the content of associations.tsv.
    scores : DataFrame of shape (n_samples, n_modules)
        Of the samples of the other study: the `scores` of :func:`netbic.replicate`, which are standardised there. Its
        columns are the numbers of the modules.
    table : DataFrame
        A row per sample of the other study, matched by name. Its columns and levels have the names of the fit.
    record : dict, optional
        The content of associations.json: types of the variables, covariates, columns of survival. Default: types are
        guessed.
    survival : (str, str) or list of such pairs, optional
        Columns of the time and the event here, in the order of those of the fit, or of some endpoints that their names
        say. Default: those with the same names or, by their names, of the same endpoint (`os_days` for `os_months`).
    adjust : str or list of str, optional
        Columns of the table that the tests are adjusted for here. Default: as in the fit.
    verdicts : dict, optional
        Verdicts on the modules in the fit, by their numbers: doubtful modules are marked, and listed after others.

    Examples
    --------
    >>> import netbic, numpy as np, pandas as pd
    >>> study = netbic.simulate.cohort(300, 800, n_modules=1, module_samples=100, strength=2, random_state=0)
    >>> gene = study.expression.iloc[:, study.genes[0].argmax()]
    >>> labels = pd.DataFrame({"marker": np.where(gene > gene.median(), "high", "low")}, index=gene.index)
    >>> half, other = study.expression[:150], 10 + 3 * study.expression[150:]
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(half)
    >>> tested = netbic.associate(model, half, labels).table
    >>> scores = netbic.replicate(model, other, random_state=0).scores
    >>> netbic.comparison.repeat_associations(tested, scores, labels).verdict
    'Of 1 association of the fit (q <= 0.05), 1 holds here (q <= 0.05), 1 in the same direction.'
    """
    first = main_tests(tested.assign(level=tested["level"].fillna("").astype(str)))
    if first.empty:
        raise InputError("no association was tested in the fit: compare its modules with a sample table first")
    record, pairs = record or {}, survival_pairs(survival)
    match = match_samples(scores.index, table)
    matched, not_there = _survival_of_fit(match.table, record, pairs)
    notes = [*match.lines(), *not_there]
    of_fit, by = (list(record.get(key) or ()) for key in ("adjusted_for", "by"))
    asked, adjust = listed_names(adjust), listed_names(adjust) or of_fit
    for name in (*adjust, *by):
        if name not in matched:
            what = f"are {'adjusted for' if name in adjust else 'averages by'} {shown(name)}"
            remedy = "name another one (`adjust`)" if name in asked else "add it, or test the fit without it"
            raise InputError(
                f"the associations {'' if name in asked else 'of the fit '}{what}, which is no column of the sample "
                f"table of the other study: {remedy}"
            )
    if adjust:
        same = "as" if {*adjust} == {*of_fit} else "but for " + ", ".join(of_fit) if of_fit else "but not"
        notes.append(f"adjusted for {', '.join(adjust)} here, {same} in the fit")
    known = scores.loc[:, scores.notna().any()]
    if absent := [int(module) for module in scores.columns.difference(known.columns)]:
        notes.append(f"no scores here of module{'s' * (len(absent) != 1)} {some_names(absent, 8, quoted=False)}")
    types = {str(each["name"]): each for each in record.get("variables", ())}
    events = {str(time): str(event) for time, event in record.get("survival", ()) or pairs}
    parts, driven = list[pd.DataFrame](), dict[str, list[str]]()
    for variable in first["variable"].unique():
        name = str(variable)
        if missing := [column for column in (name, events.get(name, name)) if column not in matched]:
            notes.append(f"{name}: the sample table of the other study has no column {shown(missing[0])}")
            continue
        given = _types(matched[name], types.get(name))
        if other := _other_levels(matched[name], given):
            notes.append(f"{name}: {other}{_fitting_column(matched, name, given)}")
            continue
        if name in adjust:
            continue
        options: dict[str, Any] = {"variables": [name], "types": given}
        if name in events:
            options = {"variables": [], "survival": [(name, events[name])]}
        try:
            found = associate_scores(known, None, matched, **options, adjust=adjust, by=by or None)
        except InputError as problem:
            notes.append(f"{name}: {problem}")
            continue
        parts.append(found.table[is_main(found.table)].assign(variable=name))
        if name in events and not adjust:
            used = {*events, *events.values(), *(column for pair in pairs for column in pair), *by}
            if columns := _driven(matched, name, events[name], used):
                driven[name] = columns
                notes.append(f"{name}: {_driven_in_words(columns)}")
        wanted, here = (_levels(each, name) for each in (tested, found.table))
        if here and not wanted & here:
            notes.append(f"{name}: levels are {_listed(here)} here, and {_listed(wanted)} in the fit: rename them")
        elif wanted and not here and len(found.table):
            notes.append(f"{name}: numbers here, but levels in the fit ({_listed(wanted)}): use the same ones")
    both = _side_by_side(first, parts)
    return RepeatedAssociations(both, tuple(notes), dict(verdicts or {}), tuple(adjust), driven)


def _survival_of_fit(
    table: pd.DataFrame, record: Mapping[str, Any], pairs: Sequence[tuple[str, str]]
) -> tuple[pd.DataFrame, list[str]]:
    """The sample table with times and events named as in the fit."""
    there = [(str(time), str(event)) for time, event in record.get("survival", ())]
    check_known([name for pair in pairs for name in pair], table.columns, "survival")
    if pairs and record and not there:
        return table, ["survival was not tested in the fit: test it there first"]
    by_endpoint = _same_endpoints(there, pairs or find_survival(table).pairs)
    if there and pairs and len(pairs) != len(there) and len(by_endpoint) < len(pairs):
        of_fit = " and ".join(map(",".join, there))
        raise InputError(
            f"{len(pairs)} pairs of a time and an event are named (`survival`), but the fit has {len(there)} "
            f"({of_fit}): name as many, in this order, or give the columns the names of the fit",
            ["survival"],
        )
    matched = by_endpoint if len(pairs) != len(there) else dict(zip(there, pairs, strict=True))
    if not pairs:
        matched = {pair: own for pair, own in matched.items() if not {*pair} <= set(table)}
    names = {name: own for pair, here in matched.items() for name, own in zip(pair, here, strict=True)}
    notes = [f"{pair[0]}: {here[0]} and {here[1]} here, found by their names" for pair, here in matched.items()]
    return table.assign(**{name: table[own] for name, own in names.items()}), [] if pairs else notes


def _same_endpoints(
    there: Sequence[tuple[str, str]], here: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Pairs of a time and an event of the fit, and those whose names say the same endpoint, such as death."""
    known = {role.endpoint: pair for pair in here if (role := role_of_name(pair[0])) is not None and role.endpoint}
    roles = {pair: role_of_name(pair[0]) for pair in there}
    return {pair: known[role.endpoint] for pair, role in roles.items() if role is not None and role.endpoint in known}


def _types(column: pd.Series[Any], variable: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The type of a variable as in the fit, for `associate`; in its order also levels that the fit did not have."""
    name, kind = str(column.name), None if variable is None else variable["type"]
    if kind == ORDERED and variable is not None and variable.get("levels"):
        levels = [str(level) for level in variable["levels"]]
        both = order_of(name, list(dict.fromkeys([*levels, *column.dropna().map(label)])))
        if both is not None and [level for level in both.levels if level in levels] == levels:
            return {name: list(both.levels)}
        return {name: levels}
    return {name: kind} if kind in (CATEGORICAL, NUMERIC, ORDERED) else None


def _other_levels(column: pd.Series[Any], types: Mapping[str, Any] | None) -> str:
    """Why a column cannot be tested in the order of the levels of the fit; "" if it has no others."""
    levels: Any = (types or {}).get(str(column.name))
    others = [] if not isinstance(levels, list) else [each for each in _labels(column) if each not in levels]
    if not others:
        return ""
    named = f"{some_names(others, 5)} here {'is no level' if len(others) == 1 else 'are no levels'} of the fit"
    return f"{named} ({' < '.join(levels)}): rename them in the sample table, or leave them empty"


def _fitting_column(table: pd.DataFrame, name: str, types: Mapping[str, Any] | None) -> str:
    """Another column that may be meant: as many levels in an order and a similar name, or the same levels; else ""."""
    levels = list((types or {}).get(name, ()))
    for column in map(str, table.columns.drop(name)):
        own = guess(table[column])
        is_alike = own.kind == ORDERED and len(own.levels) == len(levels) and name.lower() in column.lower()
        if own.levels and ({*own.levels} <= {*levels} or is_alike):
            renamed = "" if {*own.levels} <= {*levels} else ", and its levels as in the fit"
            return f"; or call {shown(column)} ({' < '.join(own.levels)}) {name}{renamed}"
    return ""


def _driven(table: pd.DataFrame, time: str, event: str, used: set[str]) -> list[str]:
    """Which categories go with survival here, such as benign and malignant samples in one table."""
    survival, found = survival_times(table, time, event), list[str]()
    for column in map(str, table.columns):
        other = guess(table[column]) if column not in used and role_of_name(column) is None else None
        if other is None or other.kind not in (CATEGORICAL, ORDERED) or survival.events is None:
            continue
        known = survival.known & other.known
        times, events, codes = survival.values[known], survival.events[known], other.values[known]
        groups = [codes == code for code in range(len(other.levels))]
        tested = [group for group in groups if _FEWEST <= group.sum() <= len(group) - _FEWEST]
        if any(len(tested) * log_rank(times, events, group).p <= _CLEAR for group in tested):
            found.append(column)
    return found


def _driven_in_words(columns: list[str]) -> str:
    names, one = some_names(columns, _LISTED, quoted=False), len(columns) == 1
    return (
        f"{names} {'goes' if one else 'go'} with survival here (log-rank p <= {_CLEAR:g}): adjust for "
        f"{'it' if one else 'them'} (`adjust`), or give a table with the rows of comparable samples only"
    )


def _labels(column: pd.Series[Any]) -> list[str]:
    """The different values of a column as labels, without those of a known scale that mean "not assessed"."""
    labels = [str(each) for each in column.dropna().map(label).unique()]
    scale = order_of(str(column.name), labels)
    return labels if scale is None else [each for each in labels if each not in scale.not_assessed]


def _side_by_side(first: pd.DataFrame, parts: list[pd.DataFrame]) -> pd.DataFrame:
    """The tests of the fit, and the same tests in the other study."""
    columns = [*_TEST, "effect_name", "n", *_NUMBERS[:-1]]
    here = pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)
    table = first.merge(here, how="left", on=_TEST, suffixes=("", "_other"))
    there = [direction(row) for row in table.to_dict("records")]
    same = [direction(row | _other(row)) for row in table.to_dict("records")]
    known = table["p_other"].notna()
    table["same_direction"] = (np.array(there) == np.array(same)) & known if len(table) else known
    family = [table["variable"], table["q"] <= LEVEL]
    table["q_other"] = table["p_other"].groupby(family, group_keys=False).transform(adjust_p_values)
    table["holds"] = (table["q"] <= LEVEL) & table["same_direction"] & (table["q_other"] <= LEVEL)
    order = table.groupby("variable", sort=False).ngroup()
    return table.assign(_order=order).sort_values(["_order", "p"], kind="stable", ignore_index=True)[_COLUMNS]


def _in_words(row: dict[Any, Any], verdicts: Words) -> str:
    """An association there and here in words."""
    level, module = str(row["level"]), f"module {int(row['module'])}{mark(verdicts.get(int(row['module']), ''))}"
    what = f"{level} is {direction(row)} in {module}" if level else f"{direction(row)} with {module}"
    there = f"{row['effect_name']} {_effect(row)}, q = {row['q']:.1g}"
    if np.isnan(row["p_other"]):
        return f"{what}: {there} in the fit; cannot be tested here"
    other = _other(row)
    said = "holds" if row["holds"] else f"{'same' if row['same_direction'] else 'other'} direction"
    said = f"does not hold, {said}" if row["q"] <= LEVEL and not row["holds"] else said
    other_name = f"{other['effect_name']} " * (other["effect_name"] != row["effect_name"])
    return f"{what}: {there} in the fit; here {other_name}{_effect(other)}, q = {other['q']:.1g} ({said})"


def _other(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The test in the other study."""
    return {str(key).removesuffix("_other"): value for key, value in row.items() if str(key).endswith("_other")}


def _effect(row: Mapping[Any, Any]) -> str:
    interval = "" if np.isnan(row["ci_low"]) else f" [{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    return f"{row['effect']:.2f}{interval}"


def _levels(table: pd.DataFrame, variable: str) -> set[str]:
    """The levels of a variable in a table of tests."""
    return set(table.loc[table["variable"] == variable, "level"].dropna().astype(str)) - {""}


def _listed(levels: set[str]) -> str:
    return some_names(sorted(levels), 5, quoted=False) or "none"
