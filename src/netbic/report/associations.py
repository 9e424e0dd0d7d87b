"""Associations of modules with the sample table: a grid of modules by variables, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.association import (
    LEVEL,
    Answer,
    best_modules,
    direction,
    main_tests,
    membership_tests,
    numbers,
    reliability,
    signed_effects,
)

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
    main = main_tests(table).sort_values("q", kind="stable")
    both = pd.concat([main[main["q"] <= LEVEL], membership_tests(table)]).drop_duplicates("variable")
    return [f"{row['variable']}:{_of_level(row)} {_statement(row)}" for row in both.head(_SENTENCES).to_dict("records")]


class AnswerLine(NamedTuple):
    """The module that goes best with a label, a number or survival; None if there is none."""

    label: str
    module: int | None  # as it is numbered in the page
    mark: str  # "doubtful" or "repeats 1"
    text: str


def answer_lines(table: pd.DataFrame | None, verdicts: Mapping[int, str]) -> tuple[list[AnswerLine], int]:
    """The answers of `netbic.association.best_modules` as lines, and how many are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["module", "variable", "level", "test", "effect", "effect_name", "q"]
    >>> table = pd.DataFrame([(2, "age", "", "Spearman", 0.5, "Spearman rho", 1e-9)], columns=columns)
    >>> answer_lines(table, {2: "doubtful"})[0][0]
    AnswerLine(label='age', module=3, mark='doubtful', text='rises with it (Spearman rho 0.50, q = 1e-09)')
    """
    if table is None or table.empty:
        return [], 0
    answers, n_left_out = best_modules(table, verdicts)
    return [_line(answer, verdicts) for answer in answers], n_left_out


def _line(answer: Answer, verdicts: Mapping[int, str]) -> AnswerLine:
    label = f"{answer.variable}: {answer.level}" if answer.level else answer.variable
    number, word = int(answer.row["module"]), verdicts.get(int(answer.row["module"]), "")
    if answer.found:
        return AnswerLine(label, number + 1, word if reliability(word) else "", _statement(answer.row))
    return AnswerLine(label, None, "", f"no module (smallest q = {float(answer.row['q']):.2g})")


def _of_level(row: dict[Any, Any]) -> str:
    return f" {row['level']}" if row["level"] else ""


def _statement(row: dict[Any, Any]) -> str:
    """What the module says about it, with effect and q-value."""
    effect, q = numbers(row).rsplit(", ", 1)
    effect = effect.replace(" -", f" {_MINUS}").replace(" inf", " \N{INFINITY}")
    return f"{direction(row)}{' with it' * (not row['level'])} ({effect}, {q})"


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
