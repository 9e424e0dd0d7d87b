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
from netbic.report.tables import read_associations

_SENTENCES = 6
_OTHER, _MISSING = "#7A7A7A", "#D4D4D4"


@dataclass(frozen=True)
class PairLabels:
    """The tests of associations.tsv and the variables of sample_info.tsv."""

    tests: pd.DataFrame
    variables: list[Variable]

    @classmethod
    def of(cls, folder: Path, samples: Array) -> Self | None:
        """Those of a folder; None if there are none, or if they are about other samples."""
        tests, info = read_associations(folder, ("pair", "table")), stored_samples(folder)
        if tests is None or info is None or [*map(str, info.index)] != [*map(str, samples)]:
            return None
        return cls(tests, stored_variables(info, stored_record(folder))[0])

    def sentences(self, pair: int) -> list[str]:
        """The associations of a pair, the strongest first."""
        return [f"{row['variable']}: {in_words(row)}" for row in self._found(pair).to_dict("records")][:_SENTENCES]

    def colouring(self, pair: int) -> Colouring | None:
        """Colours by the label with the strongest association; None if there is no such label."""
        labels = {each.name: each for each in self.variables if each.kind == "categorical"}
        name = next((str(name) for name in self._found(pair)["variable"] if str(name) in labels), None)
        if name is None:
            return None
        variable, chosen = labels[name], variable_colours(self.variables)[name]
        colours = list(_colours(variable, chosen))
        further = [(label, colour) for label, colour in (("other", _OTHER), ("missing", _MISSING)) if colour in colours]
        return Colouring(name, colours, [*chosen.items(), *further])

    def _found(self, pair: int) -> pd.DataFrame:
        main = main_tests(self.tests[self.tests["pair"] == pair])
        return main[main["q"] <= LEVEL].drop_duplicates(["table", "variable", "level"])


def _colours(variable: Variable, chosen: dict[str, str]) -> Iterator[str]:
    for value in variable.values:
        yield _MISSING if np.isnan(value) else chosen.get(variable.levels[int(value)], _OTHER)
