"""Which associations are stated, and in which order: one rule for the command line and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

LEVEL: Final = 0.05  # largest q-value of an association that is stated
_MAIN = ("Mann-Whitney", "linear model, level", "Spearman", "partial Spearman", "Cox score")
_NONE = {"AUC": 0.5}  # effects without an association, if not 0
_RATIOS = ("hazard ratio", "odds ratio")
_MOST_ANSWERS = 12

Words = Mapping[int, str]  # verdicts, by the number of the module from 0


class Answer(NamedTuple):
    """The module that goes best with a label, a number or survival; `row` is its test."""

    variable: str
    level: str
    row: dict[Any, Any]

    @property
    def found(self) -> bool:
        """Whether there is such a module; otherwise the row is that of the smallest q-value."""
        return bool(self.row["q"] <= LEVEL)


def main_tests(table: pd.DataFrame) -> pd.DataFrame:
    """The test of the scores of every module and level (AUC, Spearman, Cox), by decreasing strength.

    Of two levels, the one with higher scores in the module is kept, because the other one says the same.
    """
    main = table[table["test"].isin(_MAIN) & table["p" if "p" in table else "q"].notna()]
    main = main[~((main["test"] == "linear model, level") & (main["level"] == ""))]
    away = np.array([distance(*pair) for pair in zip(main["effect"], main["effect_name"], strict=True)], dtype=float)
    main = main.assign(_away=np.abs(away), _lower=away < 0)
    two = main.groupby("variable")["level"].transform("nunique").eq(2) if len(main) else main["_lower"]
    main = main[~(two & main["_lower"])]
    by = ["p" if "p" in main else "q", "_away"]
    return main.sort_values(by, ascending=[True, False], kind="stable").drop(columns=["_away", "_lower"])


def membership_tests(table: pd.DataFrame) -> pd.DataFrame:
    """Levels that are more frequent among samples that are up or down, with the column `sides`; the strongest first.

    A label of samples of which some are up and others down is found by these tests only.
    """
    fisher = table["test"].astype(str).str.startswith("Fisher")
    tests = table[fisher & (table["effect"] > 1) & (table["q"] <= LEVEL)]
    sides = tests["test"].str.removeprefix("Fisher, ").groupby([tests["module"], tests["variable"], tests["level"]])
    together = sides.transform(lambda own: " and ".join(own)) if len(tests) else tests["test"]
    return tests.assign(sides=together).sort_values("q", kind="stable")


def reliability(word: str) -> int:
    """How far a module can be trusted: 0 unless it repeats another one (1) or is doubtful (2)."""
    return 2 if word == "doubtful" else 1 if word.startswith("repeats") else 0


def strongest(table: pd.DataFrame, verdicts: Words | None = None) -> pd.DataFrame:
    """The main test of every module and level, the strongest of each variable first.

    Significant associations come first, and among them those of modules that are neither doubtful nor repetitions. Of
    three and more levels, each is listed once, with its first module. Of pairs of two tables, the table with the
    stronger association is listed.
    """
    words, main = verdicts or {}, main_tests(table)
    if "pair" in main:
        main = main.drop_duplicates(["variable", "level", "pair"])
    open_ = ~(main["q"] <= LEVEL)
    modules = main["module"] if "module" in main else [-1] * len(main)  # there are no verdicts on pairs
    trust = [reliability(words.get(int(module), "")) for module in modules]
    main = main.assign(_open=open_, _trust=np.where(open_, 0, trust)).sort_values(["_open", "_trust"], kind="stable")
    parts = [own for name in table["variable"].unique() if len(own := main[main["variable"] == name])]
    parts = [own.drop_duplicates("level") if own["level"].nunique() > 2 else own for own in parts]
    return (pd.concat(parts) if parts else main).drop(columns=["_open", "_trust"])


def best_modules(table: pd.DataFrame, verdicts: Words | None = None) -> tuple[list[Answer], int]:
    """The module that goes best with each label, number and survival, and how many further ones are left out.

    Modules that are neither doubtful nor repetitions are preferred. A variable of which no level has a module gives one
    answer. At most 12 answers are given, those with the smallest q-values; of every variable at least one, if possible.
    """
    main, grouped = strongest(table, verdicts), membership_tests(table)
    answers = [answer for name in main["variable"].unique() for answer in _answers(str(name), main, grouped)]
    if len(answers) <= _MOST_ANSWERS:
        return answers, 0
    known = pd.DataFrame({"variable": [each.variable for each in answers], "q": [each.row["q"] for each in answers]})
    again = known.sort_values("q", kind="stable").groupby("variable").cumcount() > 0
    kept = sorted(known.assign(again=again).sort_values(["again", "q"], kind="stable").index[:_MOST_ANSWERS])
    return [answers[at] for at in kept], len(answers) - len(kept)


def _answers(variable: str, main: pd.DataFrame, grouped: pd.DataFrame) -> list[Answer]:
    """The answers about a variable: one per level if it has three or more, otherwise one."""
    own, groups = main[main["variable"] == variable], grouped[grouped["variable"] == variable]
    if own["level"].nunique() < 3:
        first = groups if len(groups) and not (own["q"] <= LEVEL).any() else own
        return [Answer(variable, str(row["level"]), row) for row in first.head(1).to_dict("records")]
    instead = {row["level"]: row for row in groups.drop_duplicates("level").to_dict("records")}
    rows = [row if row["q"] <= LEVEL else instead.get(row["level"], row) for row in own.to_dict("records")]
    answers = [Answer(variable, str(row["level"]), row) for row in rows]
    return answers if any(answer.found for answer in answers) else [answers[0]._replace(level="")]


def distance(effect: float, name: str) -> float:
    """How far an effect is from none, with its sign."""
    return effect - (1.0 if name.startswith(_RATIOS) else _NONE.get(name, 0.0))
