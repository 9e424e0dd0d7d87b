"""What is exported: a fitted model, and the tables of its folder where they exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pandas as pd

from netbic.association import matched_scores, stored_samples
from netbic.enrichment import module_names
from netbic.errors import unusable
from netbic.estimators import SparseGraphSVD, fitted_model, heaviest, is_model, names_of
from netbic.exports.text import plain_names
from netbic.files import read_table
from netbic.selection import SampleGroups
from netbic.storage import load_modules, sides_of, summary_table

Source: TypeAlias = "SparseGraphSVD | Path | str | Results"
SIDES: Final = ("up", "down")
# Tables of a folder, and the columns without which they are not what netbic wrote.
_TABLES: Final[dict[str, set[str]]] = {
    "summary": {"module"},
    "gene_sets": {"module", "term", "q_value"},
    "verdicts": {"module", "verdict"},
    "samples": {"module", "sample", "score", "group"},
    "associations": {"module", "variable"},
}


@dataclass(frozen=True)
class Results:
    """A fitted model and tables about its modules, as the functions of this package export them.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted.
    tables : mapping of str to DataFrame, optional
        Tables about the modules, as in the folder of a fit: "summary", "gene_sets" (of `enrichment.gene_sets`),
        "verdicts" (of `selection.verdicts`), "samples" (of `selection.sample_groups`) and "associations".
    sample_info : DataFrame, optional
        What is known about the samples, with their names as index.
    folder : path, optional
        The folder of the fit.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=1, strength=2, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=60).fit(study.expression)
    >>> results = netbic.exports.Results.of(model, study.expression)
    >>> [len(names) for names in results.samples_by_side(0).values()]
    [24, 16]
    >>> results.genes(0).columns.tolist()
    ['name', 'weight', 'side']
    """

    model: SparseGraphSVD
    tables: Mapping[str, pd.DataFrame]
    sample_info: pd.DataFrame | None = None
    folder: Path | None = None

    @classmethod
    def of(cls, source: Source, X: Any = None) -> Self:
        """The results of a model, or of the folder of a fit; the scores of a model are known if X is given."""
        if isinstance(source, cls):
            return source
        if is_model(source):
            model = fitted_model(source)
            tables = {} if X is None else {"samples": SampleGroups.find(model, X).table}
            return cls(model, tables)
        if not isinstance(source, (str, Path)):
            raise TypeError(f"source={type(source).__name__}: expected a fitted model or the folder of a fit")
        folder = Path(source)
        model = load_modules(folder)
        found = {name: _table(folder / f"{name}.tsv", columns) for name, columns in _TABLES.items()}
        known = {name: table for name, table in found.items() if table is not None}
        return cls(model, known, stored_samples(folder), folder)

    @property
    def n_modules(self) -> int:
        """The number of modules."""
        return int(self.model.n_components_)

    @cached_property
    def names(self) -> list[str]:
        """The names of the modules, see `netbic.enrichment.module_names`."""
        return module_names(self.model, self.tables.get("gene_sets"))

    @cached_property
    def verdicts(self) -> list[str]:
        """The verdict on each module; "" if it is not known."""
        table = self.tables.get("verdicts", self.tables.get("summary", pd.DataFrame({"module": []})))
        if "verdict" not in table:
            return [""] * self.n_modules
        known = table.set_index("module")["verdict"].to_dict()
        return [text if isinstance(text := known.get(k), str) else "" for k in range(self.n_modules)]

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row per module: the summary of the folder, or of the model."""
        return self.tables["summary"] if "summary" in self.tables else summary_table(self.model)

    @cached_property
    def gene_names(self) -> list[str]:
        """The names of all genes: text in one line, all different."""
        return plain_names(names_of(self.model, "columns"), "gene")

    @cached_property
    def sample_names(self) -> list[str]:
        """The names of all samples: text in one line, all different."""
        return plain_names(names_of(self.model, "rows"), "sample")

    def genes(self, module: int) -> pd.DataFrame:
        """`name`, `weight` and `side` of the genes of a module, largest absolute weight first; positions as index."""
        weights = self.model.components_[module]
        order = heaviest(weights)
        own = weights[order].astype(float)
        names = [self.gene_names[at] for at in order]
        return pd.DataFrame({"name": names, "weight": own, "side": sides_of(own)}, index=order)

    def scores(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Scores and groups of all samples, a row per module; None if they are not known."""
        known = matched_scores(self.tables.get("samples"), self.n_modules, names_of(self.model, "rows"))
        return None if known is None else (known[0].to_numpy().T, known[1].to_numpy().T)

    def samples_by_side(self, module: int) -> dict[str, list[str]]:
        """The samples in which a module is up and down, the most extreme ones first; empty lists for a gradient."""
        if (known := self.scores()) is not None:
            values, sides = known[0][module], known[1][module]
        else:
            values = self.model.left_vectors_[:, module]
            selected = not self.model.rows_[module].all()
            sides = sides_of(values) if selected else np.full(values.shape, "", dtype=object)
        order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
        return {side: [self.sample_names[at] for at in order if sides[at] == side] for side in SIDES}


def label_of(module: int) -> str:
    """What people read for a module that tables number from 0."""
    return f"Module {module + 1}"


def _table(path: Path, columns: set[str]) -> pd.DataFrame | None:
    """A table of the folder, if it exists."""
    if not path.is_file():
        return None
    try:
        table = read_table(path)
    except (ValueError, OSError):
        raise unusable(path, "cannot be read as a table", "netbic did not write it: fit again") from None
    if missing := sorted(columns - set(table.columns)):
        raise unusable(path, f"has no column {missing[0]}", "netbic did not write it: fit again")
    return table
