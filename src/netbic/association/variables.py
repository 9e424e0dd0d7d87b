"""The sample table: which row is which sample, what its columns are, and which samples belong together."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd

from netbic.arrays import Bools, Floats, Indices
from netbic.association.guesses import (
    MOST_LEVELS,
    is_batch,
    is_mostly_unique,
    is_staged_number,
    label_without_place,
    numbers_rows,
    order_of,
    says_identifier,
    says_unit,
)
from netbic.association.survival import FoundSurvival, find_survival
from netbic.association.values import WRITTEN, as_numbers, is_events, label, read_events, without_controls
from netbic.errors import InputError, one_line, shown, some_names
from netbic.io.tables import is_plain_number

CATEGORICAL, ORDERED, NUMERIC, SURVIVAL, LEFT_OUT = "categorical", "ordered", "numeric", "survival", "left out"
TYPES: Final = (CATEGORICAL, ORDERED, NUMERIC)
_FEWEST = 3  # samples with a value
_DATE = "a date or duration: write it as a number, such as days since the first one"
_DATES = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(\D|$)|\d{1,2}([-/.])\d{1,2}\2\d{4}$")
_FEW_LEVELS = 10  # values of a category that may be written like numbers ("10%", "50%")
_LISTED = 8  # columns of a sample table in an error
_FEW = 0.5  # share of the samples below which a reason is looked for
_FEWEST_UNITS, _LEAST_REPEATED = 3, 0.05  # groups of at least two samples; the share of the samples that is in them
_MANY_UNITS, _LARGEST_UNIT = 12, 10  # more groups than a category has, with so many samples on average at most
_COARSER = 3  # such groups per level of a variable
Types = Mapping[str, "str | Sequence[object]"]
Survival = tuple[str, str] | Sequence[tuple[str, str]] | Literal["none"]


@dataclass(frozen=True)
class Variable:
    """A column of a sample table, or a pair of them (survival), as numbers.

    Attributes
    ----------
    name : str
    kind : {"categorical", "ordered", "numeric", "survival", "left out"}
    reason : str
        How the kind was found, in words.
    values : array
        Numbers or times; for levels their positions in `levels`. NaN where the value is missing.
    levels : tuple of str
    events : array of bool
        For survival: whether the event was seen.
    event : str
        For survival: the column with the events.
    """

    name: str
    kind: str
    reason: str
    values: Floats = field(repr=False)
    levels: tuple[str, ...] = ()
    events: Bools | None = field(default=None, repr=False)
    event: str = ""

    @property
    def known(self) -> Bools:
        """Which samples have a value."""
        return ~np.isnan(self.values)

    def record(self) -> dict[str, Any]:
        """A row of the table of variables."""
        listed = (" < " if self.kind == ORDERED else ", ").join(self.levels)
        counts = {"n_levels": len(self.levels), "n": int(self.known.sum()), "missing": int((~self.known).sum())}
        return {"name": self.name, "type": self.kind, "reason": self.reason, "levels": listed, **counts}

    def columns(self) -> Floats:
        """Columns of a design matrix: the numbers, or an indicator of every level but the first; NaN if missing."""
        if self.kind == NUMERIC:
            return np.asarray(self.values[:, None])
        indicators: Floats = (self.values[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        indicators[~self.known] = np.nan
        return indicators


def variable_line(record: dict[Any, Any]) -> str:
    """A variable, its type and its levels (a row of the table of variables) as a line of text."""
    listed, between = str(record["levels"]), " < " if record["type"] == ORDERED else ", "
    listed = listed if len(listed) <= 100 else f"{listed[:100].rsplit(between, 1)[0]}{between}..."
    number = int(record["missing"])
    missing = f"; missing in {number:,} sample{'s' * (number != 1)}" if number else ""
    return f"{record['name']}: {record['type']} ({record['reason']}){': ' * bool(listed)}{listed}{missing}"


# Columns


def read_variables(
    table: pd.DataFrame,
    *,
    variables: str | Iterable[str] | None = None,
    types: Types | None = None,
    survival: Survival | None = None,
    adjust: str | Iterable[str] | None = None,
    studies: pd.Series[Any] | None = None,
) -> list[Variable]:
    """The columns of a sample table with their types; an error if one that was asked for cannot be used.

    Survival times are found by name (`find_survival`) unless they are given. If `survival` is "none", columns of an
    endpoint are left out, except for those that `variables`, `types` or `adjust` name. If each study was
    centred, `studies` are the studies of the rows: columns with one value in each study, such as the name of the study,
    are left out unless they were asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": list("mfmf"), "age": [30, 41, 52, 63], "centre": "one"})
    >>> [(variable.name, variable.kind) for variable in read_variables(table)]
    [('sex', 'categorical'), ('age', 'numeric'), ('centre', 'left out')]
    """
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    pairs, types, covariates = survival_pairs(survival), dict(types or {}), listed_names(adjust)
    asked = None if variables is None else listed_names(variables)
    of_survival = [each for pair in pairs for each in pair]
    given = {"survival": of_survival, "variables": asked or [], "types": types, "adjust": covariates}
    for parameter, names in given.items():
        check_known(names, table.columns, parameter)
    found_survival = FoundSurvival()
    if survival is None:
        found_survival = find_survival(table, {*types, *covariates})
        pairs = [pair for pair in found_survival.pairs if asked is None or {*asked} & {*pair}]
        of_survival = [each for pair in pairs for each in pair]
    else:
        found_survival = find_survival(table, {*types, *covariates, *(asked or ()), *of_survival})
    if asked == [] and not pairs:
        raise InputError("no variable is named (`variables`): name columns, or omit it to test all", ["variables"])
    if both := [name for name in asked or () if name in covariates]:
        raise InputError(
            f"{shown(both[0])} is to be tested (`variables`) and adjusted for (`adjust`): remove it from one of them",
            ["variables", "adjust"],
        )
    if on_outcome := [name for name in covariates if name in of_survival]:
        raise InputError(
            f"{shown(on_outcome[0])} belongs to the survival times (`survival`) and cannot be adjusted for (`adjust`): "
            "this would condition on the outcome; remove it from one of them",
            ["survival", "adjust"],
        )
    listed = [name for name in (table.columns if asked is None else asked) if name not in of_survival]
    uses = dict.fromkeys([*types, *(asked or ())], "tested") | dict.fromkeys(covariates, "adjusted for")
    other = f"survival times that {'were not asked for (`survival`)' if pairs else 'are ignored (`survival=none`)'}"
    others = {name: other for pair in found_survival.pairs for name in pair}
    not_tested = found_survival.left_out | (others if survival is not None else {})
    found = list[Variable]()
    for name in dict.fromkeys([*listed, *covariates]):
        column = table[name]
        if isinstance(column, pd.DataFrame):
            raise InputError(f"the sample table has {column.shape[1]} columns {shown(name)}: rename or remove them")
        if name in not_tested and name not in types:
            variable = _left_out(column, not_tested[name])
        else:
            variable = as_type(column, types[name]) if name in types else guess(column, asked=name in uses)
        if name in found_survival.without_times and name not in types and variable.kind != LEFT_OUT:
            variable = replace(variable, reason=f"{variable.reason}; events without a column of times")
        if name in uses and variable.kind == LEFT_OUT:
            remedy = "give its type (`types`) or leave it out" if "identifier" in variable.reason else "leave it out"
            remedy = "or leave it out" if ": write" in variable.reason else remedy
            raise InputError(f"{shown(name)} cannot be {uses[name]}: {variable.reason}; {remedy}", ["types"])
        if studies is not None and name not in uses and variable.kind != LEFT_OUT:
            values = pd.Series(variable.values).groupby(studies.to_numpy())
            if values.nunique().le(1).all():
                reason = "the same in all samples of each study, and each study is centred"
                variable = replace(variable, kind=LEFT_OUT, reason=reason, levels=())
        found.append(variable)
    guessed = "" if survival else "; found by their names, `survival=none` ignores them"
    times = [survival_times(table, *pair) for pair in pairs]
    return found + [replace(each, reason=f"{each.reason}{guessed}") for each in times]


def listed_names(given: str | Iterable[str] | None) -> list[str]:
    """Names of columns, each once; a single one may be given as text."""
    return [given] if isinstance(given, str) else list(dict.fromkeys(given or ()))


def survival_pairs(given: Survival | None) -> list[tuple[str, str]]:
    """Pairs of a time and an event, of one pair or several."""
    if given is None or given == "none":
        return []
    pairs: list[Any] = [given] if given and isinstance(given[0], str) else list(given)
    if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
        raise InputError(f"survival={given!r}: name two columns, the time and the event (`survival`)", ["survival"])
    found = list(dict.fromkeys((str(pair[0]), str(pair[1])) for pair in pairs))
    times = [time for time, _ in found]
    if twice := [time for time in times if times.count(time) > 1]:
        raise InputError(
            f"{shown(twice[0])} is the time of {times.count(twice[0])} events (`survival`), and results are named "
            "after it: copy the column under another name",
            ["survival"],
        )
    return found


def check_known(names: Iterable[str], known: Iterable[object], parameter: str) -> None:
    """Raise if a name is not that of a column; the error lists columns, the most similar ones first."""
    columns = [str(name) for name in known]
    for name in names:
        if name not in columns:
            lowered = {column.lower(): column for column in columns}
            close = [lowered[each] for each in get_close_matches(name.lower(), lowered, 3, 0.6)]
            listed = list(dict.fromkeys([*close, *columns]))[:_LISTED]
            it_has = ", ".join([*listed, *["..."] * (len(columns) > len(listed))])
            meant = f" (did you mean {close[0]}?)" if close else ""
            raise InputError(
                f"the sample table has no column {shown(name)} (`{parameter}`): it has {it_has}{meant}", [parameter]
            )


def guess(column: pd.Series[Any], asked: bool = False) -> Variable:
    """A column with the type that its name and values suggest.

    Columns that were asked for are left out only if they cannot be tested: names of donors are labels then.
    """
    kind = column.dtype
    if column.notna().sum() == 0:
        return _left_out(column, "all values are missing")
    if isinstance(kind, pd.CategoricalDtype):
        return _levels(column, ORDERED, "ordered categories") if kind.ordered else _labels(column, asked)
    if pd.api.types.is_bool_dtype(kind):
        return _levels(column, CATEGORICAL, "true or false")
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return _left_out(column, _DATE)
    column = as_numbers(column)
    if not pd.api.types.is_numeric_dtype(column.dtype):
        reason = _numbers_in_disguise(column)
        return _left_out(column, reason) if reason else _labels(column, asked)
    distinct = column.nunique()
    if distinct <= 2:
        return _levels(column, CATEGORICAL, f"{distinct} different numbers")
    if is_staged_number(column):
        return _levels(column, ORDERED, f"whole numbers of a stage or grade; {_as(column, NUMERIC)} tests numbers")
    names_units = says_identifier(column.name) and bool((column.dropna() % 1 == 0).all())
    if not asked and (numbers_rows(column) or (names_units and is_mostly_unique(column))):
        what = "the numbers of the rows" if numbers_rows(column) else "hardly any value occurs again"
        return _left_out(column, f"an identifier: {what}; {_as(column, NUMERIC)} tests it")
    if is_batch(column) or (names_units and distinct <= MOST_LEVELS and not is_mostly_unique(column)):
        reason = f"{distinct} different whole numbers that name groups; {_as(column, NUMERIC)} tests numbers"
        return _levels(column, CATEGORICAL, reason)
    return _numeric(column, "numbers")


def _labels(column: pd.Series[Any], asked: bool) -> Variable:
    """Text as categories, or as ordered levels if they are those of a known scale."""
    found = _levels(column, CATEGORICAL, "")
    if found.kind == LEFT_OUT:
        return found
    if not asked and says_identifier(column.name) and is_mostly_unique(column):
        return _left_out(column, f"an identifier: hardly any value occurs again; {_as(column, CATEGORICAL)} tests it")
    if order := order_of(column.name, found.levels):
        reason = f"a known order; {_as(column, CATEGORICAL)} ignores it"
        if order.not_assessed:
            number = int(np.isin(found.values, [found.levels.index(each) for each in order.not_assessed]).sum())
            names = some_names(order.not_assessed, quoted=False)
            reason += f"; {names} ({number:,} sample{'s' * (number != 1)}) has no place in it: taken as missing"
        labels = column.map(label, na_action="ignore").astype(object)
        return _levels(labels.astype(pd.CategoricalDtype(list(order.levels), ordered=True)), ORDERED, reason)
    if alone := label_without_place(column.name, found.levels):
        hint = f"{found.reason}; ordered if {shown(alone)} is made a missing value"
        return replace(found, reason=hint)
    return found


def _as(column: pd.Series[Any], kind: str) -> str:
    """How to give the type of a column."""
    return f"`types={shlex.quote(f'{column.name}={kind}')}`"


def _numbers_in_disguise(column: pd.Series[Any]) -> str:
    """What a column of text is if its values are dates, or numbers in a form that is not read; "" if neither."""
    known = [each for each in column.dropna().map(label) if each]
    labels = list(dict.fromkeys(known))
    if labels and all(map(_DATES.match, labels)):
        return _DATE
    if len(labels) <= _FEW_LEVELS and len(labels) < len(known):
        return ""
    others = [each for each in labels if not is_plain_number(each)]
    kinds = {next((text for form, text in WRITTEN.items() if form.fullmatch(each)), "") for each in others}
    return "" if "" in kinds or not others else f"{sorted(kinds)[0]} ({shown(others[0])})"


def as_type(column: pd.Series[Any], kind: str | Sequence[object]) -> Variable:
    """A column with a given type, or with ordered levels in a given order; an error if it has another one."""
    name, reason = str(column.name), "as given"
    if not isinstance(kind, str):
        order = [label(level) for level in kind]
        if twice := [each for each in order if order.count(each) > 1]:
            raise InputError(
                f"the levels of {shown(name)} contain {shown(twice[0])} more than once (`types`): name each level once",
                ["types"],
            )
        labels = column.map(label, na_action="ignore").astype(object)
        if scale := order_of(name, list(labels.dropna().unique())):  # NX is missing, unless it was named
            labels = labels.where(~labels.isin(set(scale.not_assessed) - set(order)))
        if wrong := [each for each in labels.dropna().unique() if each not in order]:
            raise InputError(
                f"{shown(name)} has the value {shown(wrong[0])}, which is not among the levels {', '.join(order)}: "
                "name all levels (`types`), or make it a missing value (`na_values`)",
                ["types", "na_values"],
            )
        return _levels(labels.astype(pd.CategoricalDtype(order, ordered=True)), ORDERED, reason)
    if kind not in TYPES:
        known = ", ".join(TYPES)
        raise InputError(
            f"{shown(kind)} is not a type of variable ({shown(name)}): choose {known} (`types`)", ["types"]
        )
    if kind == NUMERIC:
        return _numeric(as_numbers(column, strict=True), reason)
    if kind == ORDERED and not (isinstance(column.dtype, pd.CategoricalDtype) and column.cat.ordered):
        column = as_numbers(column)
        by_number = pd.api.types.is_numeric_dtype(column.dtype)
        reason = f"as given, in {'the order of the numbers' if by_number else 'alphabetical order'}"
    return _levels(column, kind, reason)


def survival_times(table: pd.DataFrame, time: str, event: str) -> Variable:
    """Times and events of two columns as one variable, named after the time.

    Events may be 0 and 1, True and False, alive and dead and the like, or text that begins with "0:" and "1:".
    """
    if is_events(table[time]) and not is_events(table[event]):
        raise InputError(f"{shown(time)} contains events, not times: name the time first (`survival`)", ["survival"])
    times = as_numbers(table[time], strict=True).to_numpy(dtype=np.float64, na_value=np.nan)
    events, times = read_events(table[event]), np.where(np.isfinite(times), times, np.nan)
    if (negative := times < 0).any():
        raise InputError(
            f"{shown(time)} has {negative.sum():,} negative times (for example {times[negative][0]:g}): correct or "
            "remove them; times count from the start of the observation"
        )
    times[np.isnan(events)] = np.nan
    known = ~np.isnan(times)
    if not known.any():
        raise InputError(f"no sample has both a time ({shown(time)}) and an event ({shown(event)}): check the columns")
    n_events = int((events[known] == 1).sum())
    if not n_events:
        raise InputError(
            f"{shown(event)} has no event (all {known.sum():,} values are 0), so survival cannot be tested: check the "
            "column"
        )
    return Variable(time, SURVIVAL, f"event: {event}, {n_events:,} seen", times, events=events == 1, event=event)


def _levels(column: pd.Series[Any], kind: str, reason: str) -> Variable:
    """Categories or ordered levels; left out if there are too few or too many, or if every value is different."""
    labels = column
    if not isinstance(column.dtype, pd.CategoricalDtype):
        numeric = pd.api.types.is_numeric_dtype(column.dtype)
        labels = (column if numeric else column.map(label, na_action="ignore")).astype("category")
    of_categories = [label(level) for level in labels.cat.categories]
    used = set(labels.cat.codes.unique().tolist())
    names = tuple(dict.fromkeys(name for code, name in enumerate(of_categories) if name and code in used))
    places = {name: place for place, name in enumerate(names)} | {"": np.nan}  # an empty label is a missing value
    values = np.array([*(places.get(name, np.nan) for name in of_categories), np.nan])[labels.cat.codes.to_numpy()]
    n_known = int((~np.isnan(values)).sum())
    if len(names) < 2:
        return _left_out(column, f"all values are the same ({shown(names[0])})" if names else "all values are missing")
    text = labels.cat.categories.dtype.kind == "O"
    if text and len(names) == n_known and n_known >= _FEWEST and reason != "as given":
        return _left_out(column, "every value is different: it looks like an identifier")
    if len(names) > MOST_LEVELS:
        return _left_out(column, f"{len(names):,} different values (at most {MOST_LEVELS} levels are tested)")
    return Variable(str(column.name), kind, reason or f"text with {len(names)} different values", values, names)


def _numeric(column: pd.Series[Any], reason: str) -> Variable:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    values[~np.isfinite(values)] = np.nan
    known = values[~np.isnan(values)]
    if known.size < _FEWEST or np.ptp(known) == 0:
        few = f"only {known.size} values" if known.size < _FEWEST else f"all values are the same ({known[0]:g})"
        return _left_out(column, few)
    return Variable(str(column.name), NUMERIC, reason, values)


def _left_out(column: pd.Series[Any], reason: str) -> Variable:
    return Variable(str(column.name), LEFT_OUT, reason, np.where(column.notna(), 0.0, np.nan))


# Rows


@dataclass(frozen=True)
class SampleMatch:
    """How the rows of a sample table were matched to samples.

    Attributes
    ----------
    table : DataFrame
        A row for every sample, in the order of the samples; missing values where a sample has no row.
    n_rows : int
        Rows of the given table.
    matched : int
        Samples with a row.
    column : str
        Where the names were found: "" for the index.
    unmatched, unused : tuple of str
        Samples without a row, and rows without a sample.
    advice : str
        A likely reason why names differ, or "".
    """

    table: pd.DataFrame = field(repr=False)
    n_rows: int
    matched: int
    column: str = ""
    unmatched: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    advice: str = ""

    def lines(self) -> Iterator[str]:
        """The summary as lines of text."""
        n_samples, named = len(self.table), f", names of samples in {shown(self.column)}" if self.column else ""
        n_columns = self.table.shape[1]
        yield f"sample table: {self.n_rows:,} rows x {n_columns:,} column{'s' * (n_columns != 1)}{named}"
        share = f"{self.matched / n_samples:.0%}" if self.matched == n_samples else f"{self.matched / n_samples:.1%}"
        yield f"matched: {self.matched:,} of {n_samples:,} samples ({share})"
        for names, what in ((self.unmatched, "samples without a row"), (self.unused, "rows of other samples")):
            if names:
                yield f"{what}: {len(names):,} ({some_names(names)})"
        if self.advice:
            yield self.advice


def match_samples(samples: pd.Index[Any], table: pd.DataFrame) -> SampleMatch:
    r"""Find the row of every sample in a table, by its index or by the column that has the most names in common.

    Names are compared as they are or, if more of them are then equal, without spaces around them and without ".0".

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"patient": ["b", "a", "d"], "grade": [1, 2, 3]})
    >>> found = match_samples(pd.Index(["a", "b", "c"]), table)
    >>> print(*found.lines(), sep="\n")
    sample table: 3 rows x 1 column, names of samples in 'patient'
    matched: 2 of 3 samples (66.7%)
    samples without a row: 1 ('c')
    rows of other samples: 1 ('d')
    """
    table = check_table(table)
    table = table.set_axis([without_controls(str(name)) for name in table.columns], axis=1)
    if table.columns.has_duplicates:
        repeated = table.columns[table.columns.duplicated()][0]
        raise InputError(f"the sample table has several columns {shown(repeated)}: rename or remove them")
    best, names, keys, column = (-1, False), samples, samples, ""
    for way in (str, _name):
        of_samples = pd.Index([way(name) for name in samples], dtype=object)
        known = set(of_samples)
        for place in ("", *table.columns):  # "": the index, which is preferred
            values = table[place] if place else pd.Series(table.index)
            texts = values.dtype.kind in "OSUiu" or isinstance(values.dtype, pd.CategoricalDtype | pd.StringDtype)
            if place and not texts:
                continue
            equal = len(known.intersection(way(value) for value in values.dropna().unique())), not place
            if equal > best:
                best, names, column = equal, of_samples, place
                keys = pd.Index([way(value) for value in values], dtype=object)
    table = table if column == "" else table.drop(columns=column)
    common = keys.isin(names)
    if not common.any():
        if set(names).intersection(map(_name, table.columns)):
            raise InputError(
                f"the samples ({some_names(names)}) are in the columns of the sample table: exchange rows and columns, "
                "so that it has a row for each sample"
            )
        reason = _reason(tuple(names), tuple(keys)) or "Use the same names in both"
        examples = f"fit: {some_names(names)}; table: {some_names(keys)}"
        raise InputError(one_line(f"no sample of the fit is in the sample table ({examples}). {reason}"))
    if (twice := keys[common].duplicated()).any():
        raise InputError(
            f"sample {shown(keys[common][twice][0])} occurs more than once in the sample table "
            f"({int(twice.sum()):,} rows too many): keep one row for each sample"
        )
    if _name(header := column or table.index.name or "") in set(map(_name, names)):
        raise InputError(
            f"the sample table has no line with names of columns: {shown(str(header))} in its first line is a sample; "
            "add a first line such as sample, age, sex"
        )
    own = table[common].set_axis(keys[common]).reindex(names).set_axis(samples)
    unmatched, unused = tuple(names[~names.isin(keys)]), tuple(keys[~common])
    advice = _reason(unmatched, unused) if unused and len(unmatched) > _FEW * len(names) else ""
    return SampleMatch(own, len(table), len(names) - len(unmatched), column, unmatched, unused, advice)


def check_table(table: object) -> pd.DataFrame:
    """The sample table; an error if it is not a table."""
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"the sample table is a {type(table).__name__}: give a pandas DataFrame")
    return table


def _name(value: object) -> str:
    return re.sub(r"^(-?\d+)\.0$", r"\1", str(value).strip())


def _reason(names: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Why names may differ: the first way of writing them in which more than half of the fewer agree."""
    ways: dict[str, Callable[[str], str]] = {
        "capital letters": str.lower,
        "characters such as '-', '.' and '_'": lambda name: re.sub(r"[^0-9a-z]+", "-", name.lower()).strip("-"),
        "an X before the number, as R adds it": lambda name: re.sub(r"^x(?=\d)", "", name.lower()),
        "their ends: one side has patients, the other samples of them": lambda name: name[:12].upper(),  # TCGA
    }
    for difference, simplified in ways.items():
        own, theirs = ({simplified(name) for name in each} for each in (names, others))
        if len(own & theirs) > _FEW * min(len(own), len(theirs)):
            example = next(name for name in names if simplified(name) in theirs)
            partner = next(other for other in others if simplified(other) == simplified(example))
            return f"Names differ in {difference} ({shown(example)} and {shown(partner)}): make them the same"
    return ""


# Samples that belong together


@dataclass(frozen=True)
class Averages:
    """Samples with the same values in some columns of a sample table, such as the cells of a donor."""

    numbers: Indices  # the group of each sample; -1 if one of its values is missing
    table: pd.DataFrame  # a row per group: the columns that have one value in each of them, and averages of numbers
    by: tuple[str, ...]
    averaged: tuple[str, ...] = ()  # numbers that differ inside groups
    differing: tuple[str, ...] = ()  # other columns that do and could be tested

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        by: Iterable[str],
        needed: Iterable[str] = (),
        *,
        types: Types | None = None,
        survival: Survival | None = None,
        sample_name: str = "sample",
    ) -> Self:
        """Group the rows of a table; an error if a column that is needed has several values in a group.

        Numbers are averaged, unless their type (`types`) is another one, or they are survival times.
        """
        by, outcome = list(by), [name for pair in survival_pairs(survival) for name in pair]
        check_known(by, table.columns, "by")
        known = table[by].notna().all(axis=1).to_numpy()
        if not known.any():
            raise InputError(f"no sample has a value of {' and '.join(by)} (`by`): give other columns", ["by"])
        numbers = np.full(len(table), -1, dtype=np.intp)
        numbers[known] = table.loc[known, by].groupby(by, observed=True, sort=False).ngroup()
        own, sets = table[known], numbers[known]
        _check_by(own, by, int(sets.max()) + 1, sample_name)
        varying = [name for name in own.columns if not own[name].groupby(sets).nunique(dropna=False).le(1).all()]
        kinds = {name: (types or {}).get(name, guess(own[name], name in {*needed}).kind) for name in varying}
        averaged = [name for name in varying if kinds[name] == NUMERIC and name not in outcome]
        if several := [name for name in [*needed, *outcome] if name in varying and name not in averaged]:
            raise InputError(
                f"{shown(several[0])} has several values among {sample_name}s of the same {' and '.join(by)}: "
                "add it to `by`",
                ["by"],
            )
        first = own[~pd.Series(sets).duplicated().to_numpy()].copy()  # in the order of the groups
        for name in averaged:
            first[name] = as_numbers(own[name]).astype(np.float64).groupby(sets).mean().to_numpy()
        differing = [name for name in varying if name not in averaged]
        tested = tuple(str(name) for name in differing if kinds[name] != LEFT_OUT)
        return cls(numbers, first.drop(columns=differing), tuple(by), tuple(map(str, averaged)), tested)

    def of_scores(self, scores: pd.DataFrame) -> pd.DataFrame:
        """The averages of scores, a row per group."""
        known = self.numbers >= 0
        return scores[known].groupby(self.numbers[known]).mean().set_axis(self.table.index, axis=0)

    def described(self, variables: Iterable[Variable]) -> Iterator[Variable]:
        """The variables of the table of averages; reasons say what became of a column."""
        for variable in variables:
            reason = variable.reason
            if variable.name in self.by and variable.kind == LEFT_OUT and "identifier" in reason:
                reason = "each of its values is one average"
            elif variable.name in self.averaged:
                reason = f"{reason}, averaged like the scores"
            yield replace(variable, reason=reason)

    def note(self, sample_name: str = "sample") -> str:
        """What is compared, in words."""
        n_left_out = int((self.numbers < 0).sum())
        left_out = f"; {n_left_out:,} {sample_name}s without a value are left out" if n_left_out else ""
        groups = f"averages of {len(self.table):,} groups of {sample_name}s with the same {' and '.join(self.by)}"
        numbers = f"; so are numbers that differ in a group ({some_names(self.averaged, _LISTED, quoted=False)})"
        return f"tests compare {groups}{left_out}{numbers * bool(self.averaged)}"

    def differing_note(self, sample_name: str = "sample") -> str:
        """Which columns are not tested because they differ inside groups, in words."""
        names, several = some_names(self.differing, _LISTED, quoted=False), len(self.differing) > 1
        which = f"{names} {'differ' if several else 'differs'} among {sample_name}s of the same {' and '.join(self.by)}"
        return f"{which}, and {'are' if several else 'is'} not tested: test single {sample_name}s, without `by`"


def _check_by(table: pd.DataFrame, by: Sequence[str], n_groups: int, sample_name: str) -> None:
    """Raise if numbers make nearly every sample a group of its own."""
    if 2 * n_groups <= len(table):
        return
    for name in by:
        if guess(table[name]).kind == NUMERIC and not says_identifier(name):
            raise InputError(
                f"{' and '.join(by)} (`by`): this makes {n_groups:,} averages of {len(table):,} "
                f"{sample_name}s, because {shown(name)} is a number that hardly two of them share; name only columns "
                f"such as donor (numbers that are tested are averaged themselves)",
                ["by"],
            )


def repeated_measures(table: pd.DataFrame, variables: Iterable[Variable], sample_name: str = "sample") -> Iterator[str]:
    """Say which variables are the same in all samples of one donor, patient and the like.

    A treatment that is the same in all cells of a donor is a property of the donors: tests that count cells as
    independent have p-values that are far too small.
    """
    found: dict[str, list[str]] = {}
    units = {str(name): labels for name in table.columns if (labels := _units(table[name])) is not None}
    for variable in variables:
        fitting = [name for name, unit in units.items() if name != variable.name and _property_of(variable, unit)]
        if fitting and variable.kind != LEFT_OUT:
            best = min(fitting, key=lambda name: (not says_unit(name), units[name].nunique()))
            found.setdefault(best, []).append(variable.name)
    for name, names in found.items():
        if rest := [each for each in names if each not in found]:
            same = f"{some_names(rest, _LISTED, quoted=False)} {'is' if len(rest) == 1 else 'are'} the same"
            yield (
                f"{same} in all {sample_name}s of one {name} ({units[name].nunique():,} different ones): p-values "
                f"count {sample_name}s as independent, and are too small if those of one {name} are similar; test "
                f"their averages with `by={name}`"
            )


def repeated_units(table: pd.DataFrame) -> list[str]:
    """The columns that name donors and the like, of which there are several samples each."""
    return [str(name) for name in table.columns if says_unit(name) and _units(table[name]) is not None]


def _units(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """The labels of a column if samples with the same label may be those of one donor; None otherwise.

    The name says so, or there are many labels with few samples each, which a category never has.
    """
    is_whole, named = pd.api.types.is_integer_dtype(column.dtype), says_unit(column.name)
    if pd.api.types.is_numeric_dtype(column.dtype) and not (named and is_whole):
        return None
    sizes = column.value_counts()
    sizes, repeated = sizes[sizes > 0], sizes[sizes >= 2]
    enough = repeated.size >= _FEWEST_UNITS and repeated.sum() >= _LEAST_REPEATED * sizes.sum()
    many = sizes.size >= _MANY_UNITS and 2 * repeated.size >= sizes.size and sizes.mean() <= _LARGEST_UNIT
    return column.astype(object) if enough and (named or many) else None


def _property_of(variable: Variable, unit: pd.Series[Any]) -> bool:
    """Whether a variable has one value in all samples with the same label, and fewer values than there are labels.

    Labels whose name does not say that they stand for donors must be three times as many as the levels: levels of a
    finer category are no donors.
    """
    known = variable.known & unit.notna().to_numpy()
    values, sets = pd.Series(variable.values[known]), unit.to_numpy()[known]
    n_sets, n_values = pd.Series(sets).nunique(), values.nunique()
    if variable.kind in (CATEGORICAL, ORDERED) and n_sets < (
        1 + n_values if says_unit(unit.name) else _COARSER * n_values
    ):
        return False
    return n_sets >= _FEWEST_UNITS and bool(values.groupby(sets).nunique().le(1).all())
