"""Which columns of a sample table are the time and the event of a survival endpoint, by their names and values.

A wrong guess is worse than none: names must say the endpoint, and values must say which of them is the event.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.association.values import PLAIN_EVENTS, as_numbers, is_events, label, read_events
from netbic.errors import InputError, shown

TIME, EVENT = "time", "event"
_SHORT: Final = {
    *("os", "pfs", "pfi", "rfs", "rfi", "dfs", "dfi", "dss", "css", "bcss", "ttp", "ttr", "ttf", "efs", "mfs", "dmfs"),
    *("ddfs", "drfs", "idfs", "lrfs"),
}
_SEEN: Final = {"death", "dead", "died", "deceased", "relapse", "recurrence", "progression", "metastasis", "metastases"}
_WRITTEN_OUT: Final = {"survival", "surv", "vital", *_SEEN}
_FOLLOWED: Final = {"follow", "up", "followup", "fu", "last", "contact"}
_DETAILS: Final = {"overall", "free", "disease", "specific", "cancer", "distant", "local"}
_DEATH: Final = {"os", "overall", "survival", "surv", "vital", "death", "dead", "died", "deceased", *_FOLLOWED}
_SAYS_DEATH: Final = _DEATH - {"survival", "surv", *_FOLLOWED}
_OF_THE_SAME_TIME: Final = {"dss", "css", "bcss"}  # as deaths of all causes
_UNITS: Final = {"days", "months", "mos", "mo", "weeks", "years", "yrs", "time"}
_UNIT: Final = {"t", "day", "month", "week", "year", "yr"}  # with an abbreviation only: year of death
_LONG_UNITS: Final = {
    **{"day": "days", "week": "weeks", "month": "months", "year": "years"},
    **{unit: unit for unit in ("days", "weeks", "months", "years")},
    **{"mos": "months", "mo": "months", "yrs": "years", "yr": "years"},
}
_IN_WORDS: Final = {
    "os": "overall survival",
    "pfs": "progression-free survival",
    "pfi": "progression-free interval",
    "rfs": "relapse-free survival",
    "rfi": "relapse-free interval",
    "dfs": "disease-free survival",
    "dfi": "disease-free interval",
    "dss": "disease-specific survival",
    "css": "cancer-specific survival",
    "efs": "event-free survival",
    "mfs": "metastasis-free survival",
    "dmfs": "distant metastasis-free survival",
}
_EVENT_WORDS: Final = {"event", "events", "status", "stat", "censor", "censored", "censoring", "cens", "indicator"}
_FILLERS: Final = {"to", "until", "in", "the", "patient", "donor", "clinical", "demographic", "diagnoses"}
_GLUED = re.compile(
    rf"({'|'.join(sorted(_SHORT, key=len, reverse=True))}|fu|surv)({'|'.join(_UNITS)}|event|status|stat)"
)
# Names in which 1 or "yes" may also mean the opposite of an event.
_AMBIGUOUS = re.compile(r"surviv|vital|alive|free|cens")
_ALL_SEEN = "a column with the time of the event or, without an event, of the last contact is needed"


class Role(NamedTuple):
    """What the name of a column says: the endpoint, and whether it has times, events or either."""

    endpoint: str  # "" if the name says only that these are times, or events
    words: frozenset[str]  # of the endpoint
    kind: str  # "time", "event", or "" if the values have to decide

    @property
    def is_followed(self) -> bool:
        """Whether the name says how long samples were observed, but not until what."""
        return self.words <= _FOLLOWED


@dataclass(frozen=True)
class FoundSurvival:
    """Survival endpoints that were found.

    Attributes
    ----------
    pairs : list of (str, str)
        Columns with the time and the event.
    left_out : dict
        Columns that belong to an endpoint but cannot be tested, with the reason.
    without_times : list of str
        Columns with events of an endpoint of which no column has the times.
    possible : tuple of (str, str), optional
        If there is no pair: two columns that may be one, although their names do not say of what.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    without_times: list[str] = field(default_factory=list)
    possible: tuple[str, str] | None = None


def find_survival(table: pd.DataFrame, skip: Collection[str] = ()) -> FoundSurvival:
    """The survival endpoints of a table, without the columns to `skip`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"OS.time": [3.0, 5, 9, 12], "OS": [1, 0, 1, 0], "er_status": [1, 0, 1, 1]})
    >>> find_survival(table).pairs
    [('OS.time', 'OS')]
    """
    table = table.loc[:, ~table.columns.duplicated()]
    columns = {str(name): column for name, column in table.items() if str(name) not in skip}
    roles = {name: role for name, column in columns.items() if (role := _role(column)) is not None}
    found = FoundSurvival()
    for endpoint in dict.fromkeys(role.endpoint for role in roles.values() if role.endpoint):
        own = {name: role for name, role in roles.items() if role.endpoint == endpoint}
        _pair_up(table, own, found)
    if found.pairs:
        return found
    free = {name: role for name, role in roles.items() if name not in found.left_out}
    times, events = ([name for name, role in free.items() if role.kind == kind] for kind in (TIME, EVENT))
    events = [name for name in events if not _ambiguity(name, table[name])]
    if len(times) == len(events) == 1 and not _problem(table, times[0], events[0]):
        return replace(found, possible=(times[0], events[0]))
    return found


def _pair_up(table: pd.DataFrame, roles: dict[str, Role], found: FoundSurvival) -> None:
    """Add the pair of one endpoint, and why other columns of it are not tested."""
    times, events = ([name for name, role in roles.items() if role.kind == kind] for kind in (TIME, EVENT))
    every = [(time, event) for time in times for event in events]
    every.sort(key=lambda pair: roles[pair[0]].words != roles[pair[1]].words)  # os_months and os_event come first
    problems = [(pair, _problem(table, *pair)) for pair in every]
    in_parts = any(problem == _ALL_SEEN for _, problem in problems)  # then others have the times of the last contact
    if in_parts or any("last" in roles[time].words for time in times):
        last = {time for time in times if "last" in roles[time].words or (in_parts and roles[time].is_followed)}
        problems = [(pair, _ALL_SEEN if pair[0] in last else problem) for pair, problem in problems]
    if pair := next((pair for pair, problem in problems if not problem), None):
        found.pairs.append(pair)
        reason = f"of the same endpoint as {pair[0]}, {pair[1]}; {_remedy('TIME,EVENT')}"
        found.left_out.update((name, reason) for name in (*times, *events) if name not in pair)
        return
    for (time, event), problem in reversed(problems):
        reason = f"survival ({time}, {event}), but {problem}; `types={event}=categorical` tests it like others"
        found.left_out.update(dict.fromkeys((time, event), reason))
    if not times and any(role.words & _SHORT for role in roles.values()):
        found.without_times.extend(events)
    for name in times if not events else ():
        role = role_of_name(name)
        if role is not None and role.kind and not role.is_followed:
            found.left_out[name] = f"times of survival without a column of events; {_remedy(f'{name},EVENT')}"


def _remedy(columns: str) -> str:
    return f"name the columns with `survival={columns}`"


def _role(column: pd.Series[Any]) -> Role | None:
    """What the name of a column says about survival, if its values agree; None if nothing."""
    role = role_of_name(str(column.name))
    if role is None:
        return None
    if role.kind == EVENT and not role.endpoint and _says_dead(column):
        return role._replace(endpoint="death", words=frozenset({"vital"}))
    if role.kind:
        return role if column.notna().any() else None
    kind = EVENT if is_events(column) and column.nunique() == 2 else TIME if _are_times(column) else ""
    return role._replace(kind=kind) if kind else None


def role_of_name(name: str) -> Role | None:
    """The endpoint and kind that a name says; None if one of its words is about something else.

    Examples
    --------
    >>> role_of_name("OS_MONTHS")[::2], role_of_name("overall_survival_status")[::2]
    (('death', 'time'), ('death', 'event'))
    >>> role_of_name("er_status"), role_of_name("os_version")
    (None, None)
    """
    words = [word for word in _words(name) if word not in _FILLERS]
    is_short = not _SHORT.isdisjoint(words)
    timed = [word for word in words if word in _UNITS or (is_short and word in _UNIT)]
    events = [word for word in words if word in _EVENT_WORDS or (is_short and word == "e")]
    about = frozenset(words) - {*timed, *events}
    known = _SHORT | _WRITTEN_OUT | _FOLLOWED | _DETAILS
    if not about <= known or len(about & _SHORT) > 1:
        return None
    kind = TIME if timed else EVENT if events else ""
    if not about:
        return Role("", about, kind) if words else None
    says = about & (_SHORT | _WRITTEN_OUT) or about >= {"disease", "free"} or (about <= _FOLLOWED and kind == TIME)
    return Role("death" if about <= _DEATH else " ".join(sorted(about)), about, kind) if says else None


def endpoint_in_words(name: str) -> str:
    """What the curves of a column with times show, for the axis of a figure.

    Examples
    --------
    >>> endpoint_in_words("os_months"), endpoint_in_words("rfs_days"), endpoint_in_words("weeks")
    ('overall survival', 'relapse-free survival', 'share without the event')
    """
    words = set(_words(name))
    found = next((text for short, text in _IN_WORDS.items() if short in words), "")
    return found or ("overall survival" if words >= {"overall", "survival"} else "share without the event")


def unit_of_time(name: str) -> str:
    """The unit that the name of a column with times says: "days", "weeks", "months", "years" or "".

    Examples
    --------
    >>> unit_of_time("OS_MONTHS"), unit_of_time("days_to_death"), unit_of_time("OS.time")
    ('months', 'days', '')
    """
    return next((_LONG_UNITS[word] for word in _words(name) if word in _LONG_UNITS), "")


def mixed_endpoints(time: str, event: str) -> str:
    """A warning if the names of a time and an event say different endpoints; otherwise "".

    Examples
    --------
    >>> mixed_endpoints("os_months", "rfs_event")
    "'os_months' and 'rfs_event' are of different endpoints by their names: name the time and the event of one"
    >>> mixed_endpoints("os_months", "vital_status"), mixed_endpoints("months", "rfs_event")
    ('', '')
    """
    found = {role.endpoint: role.words for name in (time, event) if (role := role_of_name(name)) is not None}
    of_death = bool(found.get("death", frozenset()) & _SAYS_DEATH)
    others = [name for name, words in found.items() if name != "death" and (of_death or words & _SHORT)]
    differ = len(others) == 2 or (of_death and any(not found[name] <= _OF_THE_SAME_TIME for name in others))
    both = f"{shown(time)} and {shown(event)}"
    return f"{both} are of different endpoints by their names: name the time and the event of one" * differ


def _words(name: str) -> Iterator[str]:
    """The words of a name in small letters: OS.time, osTime and ostime have the same two."""
    for part in re.findall(r"[A-Za-z]+|\d+", name):
        if glued := _GLUED.fullmatch(part.lower()):
            yield from glued.groups()
        elif part.lower() in _SHORT:
            yield part.lower()
        else:
            yield from (word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", part))


def _says_dead(column: pd.Series[Any]) -> bool:
    """Whether the values are words for dead and alive."""
    known = {str(value).strip().lower() for value in column.dropna().unique()}
    return len(known) == 2 and bool(known & {"alive", "living"}) and bool(known & {"dead", "deceased", "died"})


def _are_times(column: pd.Series[Any]) -> bool:
    numbers = as_numbers(column)
    kind = numbers.dtype
    if not pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return False
    known = numbers[np.isfinite(numbers.astype(np.float64))]
    return known.nunique() > 2 and bool((known >= 0).all())


def _ambiguity(name: str, column: pd.Series[Any]) -> str:
    """Why it is not known which of two values is the event; "" if it is."""
    labels = {label(value).lower() for value in column.dropna().unique()} - {""}
    if not labels <= set(PLAIN_EVENTS):
        return ""
    lower, says_event = name.lower(), re.search(r"event(?!.?free)", name.lower()) is not None
    unclear = _AMBIGUOUS.search(lower) is not None and (not says_event or "cens" in lower)
    if labels & {"yes", "no"}:  # os_status: yes
        unclear |= not (says_event or _SEEN & {*_words(name)})
    values = " and ".join(sorted(labels))
    return f"{shown(name)} ({values}) does not say which value is the event: write event and censored" * unclear


def _problem(table: pd.DataFrame, time: str, event: str) -> str:
    """Why two columns cannot be the time and the event of an endpoint; "" if they can."""
    if not _are_times(table[time]):
        return f"{shown(time)} does not have times (numbers of at least 0, more than two different ones)"
    try:
        events = read_events(table[event])
    except InputError as problem:
        return str(problem)
    if ambiguity := _ambiguity(event, table[event]):
        return ambiguity
    known = np.isfinite(as_numbers(table[time]).to_numpy(dtype=np.float64, na_value=np.nan))
    n_seen, n_not_seen = (int((events[known] == value).sum()) for value in (1, 0))
    if not n_seen:
        return f"no sample with a time has the event ({shown(event)})"
    if not n_not_seen:
        return _ALL_SEEN
    return ""
