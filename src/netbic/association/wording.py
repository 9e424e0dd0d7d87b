"""Associations in words. Modules and pairs count from 1 here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from netbic.association.headlines import LEVEL, Words, distance, reliability, strongest

_SHOWN = 3  # associations per variable


def variable_line(record: dict[Any, Any]) -> str:
    """A variable, its type and its levels.

    Examples
    --------
    >>> record = {"name": "grade", "type": "ordered", "reason": "as given", "levels": "1 < 2 < 3", "missing": 2}
    >>> variable_line(record)
    'grade: ordered (as given): 1 < 2 < 3; missing in 2 samples'
    """
    levels = str(record["levels"])
    between = " < " if record["type"] == "ordered" else ", "
    listed = levels if len(levels) <= 100 else f"{levels[:100].rsplit(between, 1)[0]}{between}..."
    number = int(record["missing"])
    missing = f"; missing in {number:,} sample{'s' * (number != 1)}" if number else ""
    return f"{record['name']}: {record['type']} ({record['reason']}){': ' * bool(listed)}{listed}{missing}"


def strongest_lines(table: pd.DataFrame, verdicts: Words | None = None) -> Iterator[str]:
    """At most three associations per variable in words, or that there is none; doubtful modules are marked."""
    words = verdicts or {}
    for name, own in strongest(table, words).groupby("variable", sort=False):
        found = own[own["q"] <= LEVEL].head(_SHOWN)
        for row in found.to_dict("records"):
            yield f"{name}: {in_words(row, words)}"
        if found.empty and len(own):
            yield f"{name}: no association (q <= {LEVEL}); the strongest: {in_words(own.iloc[0].to_dict(), words)}"


def in_words(row: dict[Any, Any], verdicts: Words | None = None) -> str:
    """An association in words; a module that is doubtful or repeats another one is marked.

    Examples
    --------
    >>> row = {"module": 0, "level": "Basal", "effect": 0.012, "effect_name": "AUC", "q": 1e-40}
    >>> in_words(row)
    'Basal is lower in module 1 (AUC 0.01, q = 1e-40)'
    >>> row |= {"level": "", "effect": 1.5, "effect_name": "hazard ratio per sd", "q": 0.002}
    >>> in_words(row, {0: "doubtful"})
    'the risk rises with module 1 (doubtful), hazard ratio per sd 1.50, q = 0.002'
    """
    level, word = str(row["level"]), (verdicts or {}).get(int(row.get("module", -1)), "")
    mark = f" ({word})" if reliability(word) else ""
    place = f"{_place(row)}{mark}"
    what = f"{level} is {direction(row)} in {place}" if level else f"{direction(row)} with {place}"
    return f"{what}, {numbers(row)}" if mark else f"{what} ({numbers(row)})"


def _place(row: dict[Any, Any]) -> str:
    if "pair" in row:
        return f"pair {int(row['pair']) + 1}, table {int(row['table'])}"
    return f"module {int(row['module']) + 1}"


def direction(row: dict[Any, Any]) -> str:
    """What an association says about a level ("higher", "lower", "more often up"), a number or the risk.

    Examples
    --------
    >>> row = {"level": "", "test": "Cox score", "effect": 1.5, "effect_name": "hazard ratio per sd"}
    >>> direction(row), direction(row | {"level": "A", "test": "Mann-Whitney", "effect": 0.2, "effect_name": "AUC"})
    ('the risk rises', 'lower')
    """
    name, test = str(row["effect_name"]), str(row.get("test", ""))
    if test.startswith("Fisher"):
        often = "more" if float(row["effect"]) >= 1 else "less"
        return f"{often} often {row.get('sides', test.removeprefix('Fisher, '))}"
    more = distance(float(row["effect"]), name) > 0
    if str(row["level"]):
        return "higher" if more else "lower"
    return f"{'the risk ' * name.startswith('hazard')}{'rises' if more else 'falls'}"


def numbers(row: dict[Any, Any]) -> str:
    """The effect and its q-value.

    Examples
    --------
    >>> numbers({"effect": 0.0021, "effect_name": "AUC", "q": 6e-43})
    'AUC 0.0021, q = 6e-43'
    """
    q = float(row["q"])
    return f"{row['effect_name']} {_number(float(row['effect']))}, {f'q = {q:.1g}' if q > 0 else 'q < 1e-300'}"


def _number(effect: float) -> str:
    """Two decimals, more where they would hide that an effect is not complete."""
    return f"{effect:.2f}" if not 0 < min(abs(effect), abs(1 - effect)) < 0.005 else f"{effect:.4f}"
