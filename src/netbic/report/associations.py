"""Associations of modules with the sample table: a grid of modules by variables, and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from netbic.association import signed_effects

LEVEL: Final = 0.05  # largest q-value of an association that is stated
_STARS = ((0.001, "***"), (0.01, "**"), (LEVEL, "*"))
_MOST_COLUMNS = 24
_SENTENCES = 2
_MINUS = "\N{MINUS SIGN}"


class Cell(NamedTuple):
    """An association in the grid: its text, its colour (0 to 6, 3: none), and the numbers behind it."""

    text: str
    colour: int
    title: str


@dataclass(frozen=True)
class AssociationGrid:
    """Modules (rows) by levels of variables (columns)."""

    columns: list[str]
    rows: list[list[Cell | None]]
    n_left_out: int = 0  # columns

    @classmethod
    def of(cls, table: pd.DataFrame | None, n_modules: int) -> AssociationGrid | None:
        """The columns with the smallest q-values, in the order of the table; None if there is nothing to show."""
        drawn = pd.DataFrame() if table is None else signed_effects(table)
        if drawn.empty:
            return None
        best = drawn.groupby("column", sort=False)["q"].min().nsmallest(_MOST_COLUMNS).index
        columns = [column for column in dict.fromkeys(drawn["column"]) if column in set(best)]
        rows: list[list[Cell | None]] = [[None] * len(columns) for _ in range(n_modules)]
        places = {column: at for at, column in enumerate(columns)}
        for row in drawn.to_dict("records"):
            if row["column"] in places and np.isfinite(row["signed"]) and 0 <= row["module"] < n_modules:
                rows[int(row["module"])][places[row["column"]]] = _cell(row)
        return cls(columns, rows, drawn["column"].nunique() - len(columns))


def _cell(row: dict[Any, Any]) -> Cell:
    signed, q = float(row["signed"]), float(row["q"])
    stars = next((stars for limit, stars in _STARS if q <= limit), "")
    colour = 3 + (1 if signed > 0 else -1) * int(np.clip(round(3 * abs(signed)), 1, 3)) if stars else 3
    between = "" if not np.isfinite(row["ci_low"]) else f" (95% interval {row['ci_low']:.2f} to {row['ci_high']:.2f})"
    title = f"{row['column']}, module {int(row['module']) + 1}: {row['effect_name']} {row['effect']:.3g}{between}"
    return Cell(_minus(f"{signed:.2f}") + stars, colour, f"{title}, q = {q:.1g}, n = {int(row['n']):,}")


def findings(table: pd.DataFrame | None, module: int) -> list[str]:
    """The strongest associations of a module in words, one for each of two variables at most.

    Associations with the scores come first. A label of samples of which some are up and others down has none: it is
    found by the tests of groups.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    >>> table = pd.DataFrame([(0, "pam50", "Basal", "Mann-Whitney", 0.05, "AUC", 1e-9)], columns=columns)
    >>> findings(table, 0)
    ['pam50: Basal lower (AUC 0.05, q = 1e-09)']
    """
    if table is None or table.empty:
        return []
    table = table[table["module"] == module]
    drawn = signed_effects(table)
    own = drawn[drawn["q"] <= LEVEL]
    own = own.assign(away=own["signed"].abs()).sort_values(["q", "away"], ascending=[True, False], kind="stable")
    grouped = table[table["test"].astype(str).str.startswith("Fisher") & (table["effect"] > 1) & (table["q"] <= LEVEL)]
    both = pd.concat([own, _with_sides(grouped)]).drop_duplicates("variable")
    return [_sentence(row) for row in both.head(_SENTENCES).to_dict("records")]


def _with_sides(tests: pd.DataFrame) -> pd.DataFrame:
    """The stronger one of the tests of up and of down of each level, with the sides at which it is significant."""
    sides = tests["test"].str.removeprefix("Fisher, ").groupby([tests["variable"], tests["level"]])
    together = sides.transform(lambda own: " and ".join(own)) if len(tests) else tests["test"]
    return tests.assign(sides=together).sort_values("q", kind="stable")


def _sentence(row: dict[Any, Any]) -> str:
    level, effect = str(row["level"] or ""), float(row["effect"])
    more = row["signed"] > 0
    if str(row["test"]).startswith("Fisher"):
        what = f"{row['variable']}: {level} more often {row['sides']}"
    elif level:
        what = f"{row['variable']}: {level} {'higher' if more else 'lower'}"
    elif str(row["effect_name"]).startswith("hazard"):
        what = f"{row['variable']}: risk {'rises' if more else 'falls'} with it"
    else:
        what = f"{row['variable']}: {'rises' if more else 'falls'} with it"
    digits = 2 if min(abs(effect), abs(1 - effect)) >= 0.005 else 4  # two would hide that an effect is not complete
    number = _minus(f"{effect:.{digits}f}") if np.isfinite(effect) else "\N{INFINITY}"
    q = float(row["q"])
    return f"{what} ({row['effect_name']} {number}, {f'q = {q:.1g}' if q > 0 else 'q < 1e-300'})"


def distinct_terms(terms: list[dict[str, Any]], most: int = 3, shared: float = 0.5) -> list[dict[str, Any]]:
    """The most significant gene sets, without those that consist mostly of genes of one before.

    Examples
    --------
    >>> terms = [{"name": "mitosis", "genes": "A, B, C"}, {"name": "cell cycle", "genes": "A, B"}]
    >>> [term["name"] for term in distinct_terms(terms)]
    ['mitosis']
    """
    kept: list[tuple[set[str], dict[str, Any]]] = []
    for term in terms:
        genes = set(str(term["genes"]).split(", "))
        if all(len(genes & other) < shared * min(len(genes), len(other)) for other, _ in kept):
            kept.append((genes, term))
        if len(kept) == most:
            break
    return [term for _, term in kept]


def _minus(text: str) -> str:
    return text.replace("-", _MINUS) if text.startswith("-") else text
