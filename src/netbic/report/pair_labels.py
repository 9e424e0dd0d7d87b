"""What is known about the samples, on the page about pairs of two tables: sentences, and colours of the points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from netbic.arrays import Array
from netbic.association import LEVEL, Variable, in_words, main_tests, stored_record, stored_samples, stored_variables
from netbic.pl import variable_colours
from netbic.report.scatter import Colouring
from netbic.report.settings import Rows, sample_rows
from netbic.report.strips import MISSING, OTHER
from netbic.report.tables import read_associations

_SENTENCES = 6


@dataclass(frozen=True)
class PairLabels:
    """The tests of associations.tsv, the variables of sample_info.tsv, and what associations.json says about both."""

    tests: pd.DataFrame
    variables: list[Variable]
    rows: Rows
    notes: list[str]

    @classmethod
    def of(cls, folder: Path, samples: Array) -> Self | None:
        """Those of a folder; None if there are none."""
        tests, info = read_associations(folder, ("pair", "table")), stored_samples(folder)
        if tests is None or tests.empty:
            return None
        record = stored_record(folder)
        notes, rows = [str(note) for note in record.get("notes", [])], sample_rows(record)
        if info is None or [*map(str, info.index)] != [*map(str, samples)]:
            missing = "points have no colours, because sample_info.tsv is missing or about other samples"
            return cls(tests, [], rows, [*notes, f"{missing}: run netbic associate again"])
        variables, problems = stored_variables(info, record)
        return cls(tests, variables, rows, [*notes, *(f"not shown: {problem}" for problem in problems)])

    def sentences(self, pair: int) -> list[str]:
        """The associations of a pair, the strongest first."""
        found = self._found(pair)
        shown = [f"{row['variable']}: {in_words(row)}" for row in found.head(_SENTENCES).to_dict("records")]
        return [*shown, f"and {len(found) - _SENTENCES} more (associations.tsv)"] if len(found) > _SENTENCES else shown

    def colouring(self, pair: int) -> Colouring | None:
        """Colours by the label with the strongest association; None if there is no such label."""
        labels = {each.name: each for each in self.variables if each.kind == "categorical"}
        name = next((str(name) for name in self._found(pair)["variable"] if str(name) in labels), None)
        if name is None:
            return None
        variable, chosen = labels[name], variable_colours(self.variables)[name]
        colours = list(_colours(variable, chosen))
        further = [(label, colour) for label, colour in (("other", OTHER), ("missing", MISSING)) if colour in colours]
        texts = ["missing" if np.isnan(value) else variable.levels[int(value)] for value in variable.values]
        return Colouring(name, texts, colours, [*chosen.items(), *further])

    def _found(self, pair: int) -> pd.DataFrame:
        main = main_tests(self.tests[self.tests["pair"] == pair])
        return main[main["q"] <= LEVEL]


def _colours(variable: Variable, chosen: dict[str, str]) -> Iterator[str]:
    for value in variable.values:
        yield MISSING if np.isnan(value) else chosen.get(variable.levels[int(value)], OTHER)
