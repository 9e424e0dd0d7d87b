"""Write the groups of samples and the verdicts of a fitted model as tables to its folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from netbic.files import add_files, table_bytes
from netbic.selection.groups import SampleGroups
from netbic.selection.verdicts import Verdicts

SAMPLES, VERDICTS, SUMMARY = "samples.tsv", "verdicts.tsv", "summary.tsv"


class Judgement(NamedTuple):
    """The groups of samples of every module and, unless they were not asked for, the verdicts."""

    groups: SampleGroups
    verdicts: Verdicts | None

    @property
    def summary(self) -> pd.DataFrame:
        """Columns for the summary of the modules: `sample_kind`, `n_up`, `n_down` and, if known, `verdict`."""
        groups = self.groups.summary
        table = pd.DataFrame({"sample_kind": groups["kind"], "n_up": groups["up"], "n_down": groups["down"]})
        return table if self.verdicts is None else table.assign(verdict=self.verdicts.table["verdict"])

    def write(self, folder: Path, summary: pd.DataFrame | None = None) -> None:
        """Write samples.tsv, verdicts.tsv and, if it is given, summary.tsv; all appear at the same time."""
        tables = {SAMPLES: self.groups.table} | ({} if summary is None else {SUMMARY: summary})
        if self.verdicts is not None:
            tables[VERDICTS] = self.verdicts.table
        add_files(folder, {name: table_bytes(folder / name, table) for name, table in tables.items()})
