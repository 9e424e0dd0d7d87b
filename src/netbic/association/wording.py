"""Associations in words. Modules count from 1 here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

LEVEL: Final = 0.05  # largest q-value of an association
_SHOWN = 3  # associations per variable
_MAIN = ("Mann-Whitney", "linear model, level", "Spearman", "partial Spearman", "Cox score")
_NONE = {"AUC": 0.5}  # effects without an association, if not 0
_RATIOS = ("hazard ratio", "odds ratio")


def variable_line(record: dict[Any, Any]) -> str:
    """A variable, its type and its levels.

    Examples
    --------
    >>> record = {"name": "grade", "type": "ordered", "reason": "as given", "levels": "1, 2, 3", "missing": 2}
    >>> variable_line(record)
    'grade: ordered (as given): 1 < 2 < 3; missing in 2 samples'
    """
    levels = str(record["levels"])
    listed = levels if len(levels) <= 100 else f"{levels[:100].rsplit(', ', 1)[0]}, ..."
    if record["type"] == "ordered":
        listed = listed.replace(", ", " < ")
    number = int(record["missing"])
    missing = f"; missing in {number:,} sample{'s' * (number != 1)}" if number else ""
    return f"{record['name']}: {record['type']} ({record['reason']}){': ' * bool(listed)}{listed}{missing}"


def strongest(table: pd.DataFrame) -> pd.DataFrame:
    """The main test of every module and level (AUC, Spearman, Cox), the strongest of each variable first.

    A level is listed once, with the module that separates it best; of two levels the one with higher scores, because
    the other one says the same.
    """
    main = table[table["test"].isin(_MAIN) & table["p"].notna()]
    main = main[~((main["test"] == "linear model, level") & (main["level"] == ""))]
    away = [_distance(*pair) for pair in zip(main["effect"], main["effect_name"], strict=True)]
    main = main.assign(_away=[abs(each) for each in away], _lower=[each < 0 for each in away])
    main = main.sort_values(["p", "_away", "_lower"], ascending=[True, False, True], kind="stable")
    parts = []
    for _, own in main.groupby("variable", sort=False):
        levels = own["level"].nunique()
        if levels == 2:
            own = own[~own["_lower"]]
        parts.append(own if levels < 3 else own.drop_duplicates("level"))
    order = {name: at for at, name in enumerate(table["variable"].unique())}
    parts.sort(key=lambda own: order[own["variable"].iloc[0]] if len(own) else -1)
    return pd.concat(parts).drop(columns=["_away", "_lower"]) if parts else main.drop(columns=["_away", "_lower"])


def strongest_lines(table: pd.DataFrame) -> Iterator[str]:
    """At most three associations per variable in words, or that there is none."""
    for name, own in strongest(table).groupby("variable", sort=False):
        found = own[own["q"] <= LEVEL].head(_SHOWN)
        for row in found.to_dict("records"):
            yield f"{name}: {in_words(row)}"
        if found.empty and len(own):
            yield f"{name}: no association (q <= {LEVEL}); the strongest: {in_words(own.iloc[0].to_dict())}"


def in_words(row: dict[Any, Any]) -> str:
    """An association in words.

    Examples
    --------
    >>> row = {"module": 0, "level": "Basal", "effect": 0.012, "effect_name": "AUC", "q": 1.2e-40}
    >>> in_words(row)
    'Basal is lower in module 1 (AUC 0.01, q = 1e-40)'
    >>> in_words({"module": 1, "level": "", "effect": 1.5, "effect_name": "hazard ratio per sd", "q": 0.002})
    'the risk rises with module 2 (hazard ratio per sd 1.50, q = 0.002)'
    """
    module, level, name = f"module {int(row['module']) + 1}", str(row["level"]), str(row["effect_name"])
    more = _distance(float(row["effect"]), name) > 0
    q = float(row["q"])
    numbers = f"({name} {_number(float(row['effect']))}, {f'q = {q:.1g}' if q > 0 else 'q < 1e-300'})"
    if level:
        return f"{level} is {'higher' if more else 'lower'} in {module} {numbers}"
    if name.startswith(_RATIOS):
        return f"the risk {'rises' if more else 'falls'} with {module} {numbers}"
    return f"{'rises' if more else 'falls'} with {module} {numbers}"


def _number(effect: float) -> str:
    """Two decimals, more where they would hide that an effect is not complete."""
    return f"{effect:.2f}" if not 0 < min(abs(effect), abs(1 - effect)) < 0.005 else f"{effect:.4f}"


def _distance(effect: float, name: str) -> float:
    """How far an effect is from none, with its sign."""
    return effect - (1.0 if name.startswith(_RATIOS) else _NONE.get(name, 0.0))
