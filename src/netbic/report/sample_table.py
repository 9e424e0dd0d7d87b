"""The sample table of a run: its variables as the tests read them, and which of them each module is associated with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from netbic.arrays import Floats
from netbic.association import Variable, stored_variables

LEVELS, SURVIVAL = ("categorical", "ordered"), "survival"


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
        """The variables with the smallest q-values of their tests in a module, and these tests, the smallest q first.

        NaN and "" if no test is defined.
        """
        tests = self.tests[(self.tests["module"] == module) & self.tests["q"].notna()]
        best = tests.sort_values("q", kind="stable").drop_duplicates("variable")
        rows = {str(row["variable"]): row for row in best.to_dict("records")}
        found = [(variable, *_smallest(rows.get(variable.name))) for variable in self.variables]
        return sorted(found, key=lambda each: np.nan_to_num(each[1], nan=np.inf))

    def adjusted_for(self) -> list[str]:
        """Covariates of the tests."""
        return [str(name) for name in self.record.get("adjusted_for", [])]

    def for_script(self) -> dict[str, Any]:
        """Labels and numbers of all samples, for tooltips: levels and their positions, or numbers; null if missing."""
        return {
            variable.name: {"levels": list(variable.levels), "values": _values(variable.values)}
            for variable in self.variables
            if variable.kind != SURVIVAL
        }


def _smallest(row: dict[Any, Any] | None) -> tuple[float, str]:
    """The q-value of a test, and the names of the test and the level."""
    if row is None:
        return np.nan, ""
    return float(row["q"]), f"{row['test']}, {row['level']}" if row["level"] else str(row["test"])


def _values(values: Floats) -> list[float | int | None]:
    rounded = [None if np.isnan(value) else float(f"{value:.4g}") for value in values.tolist()]
    return [int(value) if value is not None and value.is_integer() else value for value in rounded]
