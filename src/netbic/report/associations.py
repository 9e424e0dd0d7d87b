"""What is known about the samples: the sample table, a grid of modules by variables, and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from netbic.association.stored import stored_variables
from netbic.association.variables import Variable
from netbic.association.words import (
    LEVEL,
    Words,
    best_modules,
    direction,
    is_main,
    is_survival,
    main_tests,
    mark,
    membership_tests,
    numbers,
    one_row_each,
    reliability,
    unit_of,
)
from netbic.errors import some_names
from netbic.pl.tables import effect_grid

_MOST_COLUMNS, _SENTENCES, _MODULES = 24, 2, 6


@dataclass(frozen=True)
class SampleTable:
    """The variables that were tested, and all tests (associations.tsv)."""

    variables: list[Variable]
    tests: pd.DataFrame
    record: dict[str, Any] = field(default_factory=dict)  # associations.json
    not_shown: list[str] = field(default_factory=list)  # variables that were tested but cannot be read, with reasons

    @classmethod
    def of(
        cls, info: pd.DataFrame | None, tests: pd.DataFrame | None, record: dict[str, Any], n_samples: int
    ) -> Self | None:
        """The tables of a run; None if there are none, or if they are about other samples."""
        if info is None or tests is None or len(info) != n_samples:
            return None
        tested = set(tests["variable"].astype(str))
        found, problems = stored_variables(info, record)
        return cls([variable for variable in found if variable.name in tested], tests, record, problems)

    def strongest(self, module: int) -> list[tuple[Variable, float, str]]:
        """Variables, smallest q-values in a module and their tests, by q; NaN and "" if no test is defined."""
        tests = self.tests[(self.tests["module"] == module) & self.tests["q"].notna()]
        best = tests.sort_values("q", kind="stable").drop_duplicates("variable")
        found = {
            str(row["variable"]): (float(row["q"]), f"{row['test']}, {row['level']}" if row["level"] else row["test"])
            for row in best.to_dict("records")
        }
        rows = [(variable, *found.get(variable.name, (np.nan, ""))) for variable in self.variables]
        return sorted(rows, key=lambda row: np.nan_to_num(row[1], nan=np.inf))


def association_grid(table: pd.DataFrame | None, n_modules: int, verdicts: Words) -> dict[str, Any] | None:
    """Modules (rows) by the levels of variables (columns) with the smallest q-values; None if there is nothing to show.

    Pairs have a row for each table, so that `n_modules` is twice their number. A cell has a text, a colour (0 to 6, 3:
    none) and a title. Doubtful modules have the palest colours.
    """
    if table is None or not (grid := effect_grid(table, _MOST_COLUMNS)).columns:
        return None
    unit, (_, labels) = unit_of(table), one_row_each(table)
    rows: list[list[dict[str, Any] | None]] = [[None] * len(grid.columns) for _ in range(n_modules)]
    per_row = 2 if unit == "pair" else 1
    words = [verdicts.get(1 + at // per_row, "") for at in range(n_modules)]
    for (module, column), row in grid.cells.items():
        if 1 <= module <= n_modules:
            signed, stars = float(row["signed"]), row["stars"]
            darkest = 3 if reliability(words[module - 1]) < 2 else 1
            shade = int(np.clip(round(3 * abs(signed)), 1, darkest)) if stars else 0
            ends = f"{row['ci_low']:.2f} to {row['ci_high']:.2f}" if np.isfinite(row["ci_low"]) else ""
            effect = f"{row['effect_name']} {row['effect']:.3g}{f' (95% interval {ends})' * bool(ends)}"
            title = f"{row['column']}, {unit} {labels[module - 1]}: {effect}, q = {row['q']:.1g}, n = {int(row['n']):,}"
            colour = 3 + (shade if signed > 0 else -shade)
            rows[module - 1][column] = {"text": row["text"] + stars, "colour": colour, "title": title}
    marks = [(mark(word), reliability(word)) for word in words]
    about = {"n_left_out": grid.n_left_out, "marks": marks, "scales": grid.scales}
    return {"columns": grid.columns, "rows": rows, "labels": labels} | about


@dataclass(frozen=True)
class Beside:
    """What is known beside the tests of associations.tsv: adjusted tests, and the same associations in another study.

    Attributes
    ----------
    adjusted : dict of DataFrame
        Tests of the modules or pairs by the covariates that they are adjusted for, in words.
    study : str
        The other study.
    repeated : DataFrame, optional
        replication_associations.tsv.
    record : dict
        replication.json: `adjusted_for`, and `go_with_survival`, the categories that survival differs by there.
    """

    adjusted: dict[str, pd.DataFrame] = field(default_factory=dict)
    study: str = ""
    repeated: pd.DataFrame | None = None
    record: Mapping[str, Any] = field(default_factory=dict)

    def remarks(self, row: Mapping[Any, Any]) -> tuple[str, ...]:
        """What is known about an association, in words: adjusted effects, and whether it holds in the other study."""

        def of(table: pd.DataFrame) -> dict[Any, Any] | None:
            same = table["level"].fillna("") == row["level"]
            for name in ("variable", *(("pair", "table") if "pair" in row else ("module",))):
                same &= table[name] == row[name]
            found = table[same]
            return None if found.empty else found.iloc[0].to_dict()

        found = list[str]()
        for names, table in self.adjusted.items():
            if (own := of(table[is_main(table.fillna({"level": ""})) & table["q"].notna()])) is not None:
                found.append(f"adjusted for {names}: {_effect(own)}")
        own = None if self.repeated is None else of(self.repeated)
        if own is not None and own["q"] <= LEVEL and np.isfinite(own["p_other"]):
            there = own | {"effect_name": own.get("effect_name_other", own["effect_name"])}
            there |= {"effect": own["effect_other"], "q": own["q_other"]}
            found.append(f"{'holds' if own['holds'] else 'does not hold'} in {self.study}: {_effect(there)}")
        return tuple(found)

    @property
    def sentence(self) -> str:
        """Which associations hold in the other study; "" if none was tested there."""
        if self.repeated is None:
            return ""
        found = self.repeated[self.repeated["q"] <= LEVEL]
        tested, holding = found[found["p_other"].notna()], found[found["holds"].astype(bool)]
        if tested.empty:
            return ""
        modules = {str(name): own["module"].unique().tolist() for name, own in holding.groupby("variable", sort=False)}
        parts = [
            f"{name} with module{'s' * (len(own) > 1)} {some_names(own, _MODULES, quoted=False)}"
            for name, own in modules.items()
        ]
        which = f": {'; '.join(parts)}" if parts else ""
        count = f"{len(holding):,} of {len(tested):,} associations that could be tested there"
        text = f"In {self.study}, {count} hold{'s' * (len(holding) == 1)}{which}."
        return f"{text}{self._caution()}" if is_survival(tested).any() else text

    def _caution(self) -> str:
        """That survival is not adjusted in the other study, and what it differs by there; "" if it is adjusted."""
        if self.record.get("adjusted_for", ["unknown"]):
            return ""
        driven: Mapping[str, list[str]] = self.record.get("go_with_survival") or {}
        if not (names := list(dict.fromkeys(name for own in driven.values() for name in own))):
            return " Survival is not adjusted there."
        verb, them = ("goes", "it") if len(names) == 1 else ("go", "them")
        which = some_names(names, _MODULES, quoted=False)
        return f" Survival is not adjusted there, but {which} {verb} with it: test again, adjusted for {them}."


class Finding(NamedTuple):
    """An association of a module or pair in words, and whether it is significant; `remarks` of `Beside`."""

    text: str
    found: bool = True
    remarks: tuple[str, ...] = ()


def findings(table: pd.DataFrame | None, beside: Beside | None = None) -> dict[int, list[Finding]]:
    """The strongest associations of each module or pair in words, one for each of two variables at most.

    They are those with the scores. That with survival follows in any case, if it was tested.
    """
    if table is None or table.empty:
        return {}
    unit = unit_of(table)
    main = main_tests(table, [unit, "variable"]).sort_values("q", kind="stable")
    both = main[main["q"] <= LEVEL].drop_duplicates([unit, "variable"])
    listed = both.groupby(unit).head(_SENTENCES)
    survival, order = main[is_survival(main)], {name: at for at, name in enumerate(table["variable"].unique())}
    weak = np.where(survival["q"] <= LEVEL, -1, survival["variable"].map(order))  # the first one that was given
    survival = survival.assign(_weak=weak).sort_values("_weak", kind="stable").drop_duplicates(unit)
    known = listed.loc[is_survival(listed), unit]
    found = dict[int, list[Finding]]()
    for row in pd.concat([listed, survival[~survival[unit].isin(known)]]).to_dict("records"):
        said, is_found = _statement(row), bool(row["q"] <= LEVEL)
        text = f"{row['level']}{' is ' * bool(row['level'])}{said}" if is_found else f"no association {_numbers(row)}"
        remarks = beside.remarks(row) if beside is not None and is_found else ()
        found.setdefault(int(row[unit]), []).append(Finding(f"{row['variable']}: {text}", is_found, remarks))
    return found


def group_findings(table: pd.DataFrame | None) -> dict[int, list[str]]:
    """Labels that are more frequent among samples that are up or down, by module, the strongest first."""
    found = dict[int, list[str]]()
    if table is not None and len(table):
        unit, own = unit_of(table), membership_tests(table)
        for row in own.drop_duplicates([unit, "variable"]).to_dict("records"):
            found.setdefault(int(row[unit]), []).append(f"{row['variable']}: {row['level']} is {_statement(row)}")
    return {number: texts[:_SENTENCES] for number, texts in found.items()}


def is_survival_unadjusted(table: pd.DataFrame | None, record: Mapping[str, Any]) -> bool:
    """Whether survival was tested without adjustment for other variables."""
    return table is not None and not record.get("adjusted_for") and bool(is_survival(table).any())


class AnswerLine(NamedTuple):
    """The module or pair that goes best with a label, a number or survival; None if there is none."""

    label: str
    module: int | None
    mark: str  # "doubtful" or "repeats 1"
    text: str
    remarks: tuple[str, ...] = ()  # of `Beside`


def answer_lines(
    table: pd.DataFrame | None, verdicts: Mapping[int, str], beside: Beside | None = None
) -> tuple[list[AnswerLine], int]:
    """The answers of `best_modules` as lines, and how many are left out."""
    if table is None or table.empty:
        return [], 0
    unit, (answers, n_left_out) = unit_of(table), best_modules(table, verdicts)
    lines = list[AnswerLine]()
    for answer in answers:
        label = f"{answer.variable}: {answer.level}" if answer.level else answer.variable
        number = int(answer.row[unit])
        word = verdicts.get(number, "")
        if answer.found:
            remarks = () if beside is None else beside.remarks(answer.row)
            lines.append(AnswerLine(label, number, word if reliability(word) else "", _statement(answer.row), remarks))
        else:
            lines.append(AnswerLine(label, None, "", f"no {unit} (smallest q = {float(answer.row['q']):.2g})"))
    return lines, n_left_out


def _statement(row: dict[Any, Any]) -> str:
    """What the module says about it, with effect and q-value."""
    place = f" in {row['table']}" if "table" in row and row["level"] else ""
    of_score = f" with {'its score in ' + str(row['table']) if 'table' in row else 'it'}" * (not row["level"])
    return f"{direction(row)}{place}{of_score} {_numbers(row)}"


def _numbers(row: dict[Any, Any]) -> str:
    """Effect and q-value in parentheses."""
    return f"({_effect(row)})"


def _effect(row: dict[Any, Any]) -> str:
    """Effect and q-value."""
    effect, q = numbers(row).rsplit(", ", 1)
    effect = effect.replace(" -", " \N{MINUS SIGN}").replace(" inf", " \N{INFINITY}")
    return f"{effect}, {q}"
