"""Tests of scores from which covariates were removed in the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from netbic.association.headlines import LEVEL
from netbic.estimators import SparseGraphSVD, names_of

_SMALL: Final = 0.05  # share of the degrees of freedom whose loss hardly changes a p-value: 0.05 becomes 0.056


class Removed(NamedTuple):
    """Covariates that were removed from the data of a fit, how many degrees of freedom they took, and its studies."""

    names: tuple[str, ...]
    freedom: int
    studies: pd.Series[Any] | None = None  # of each sample of the fit, if each study was centred

    @classmethod
    def of(cls, model: SparseGraphSVD) -> Removed | None:
        """Those of a model; None if it was fitted without covariates."""
        coding = model.covariate_coding_
        if coding is None:
            return None
        labels = model.study_labels_
        studies = None if labels is None else pd.Series(labels, index=pd.Index(names_of(model, "rows")))
        return cls(tuple(str(one.name) for one in coding.covariates), len(coding.kept), studies)

    def studies_of(self, samples: pd.Index) -> pd.Series[Any] | None:
        """The study of each sample; None if there is one study, or some samples were not in the fit."""
        if self.studies is None or not samples.isin(self.studies.index).all():
            return None
        return self.studies[~self.studies.index.duplicated()].reindex(samples)

    def adjustment(
        self, adjust: Sequence[str], variables: Sequence[str] | None, columns: Sequence[Any], n_samples: int
    ) -> tuple[list[str], str]:
        """What the tests are to be adjusted for, and a note for the user (empty if there is nothing to say).

        Scores without the effects of covariates vary less than independent ones. If the covariates took many degrees
        of freedom, tests of the scores alone would have too small p-values, and so they are adjusted for them, too.
        """
        if self.freedom <= _SMALL * n_samples:
            return list(adjust), ""
        names = [name for name in self.names if name not in (variables or ()) and name not in adjust]
        known = [name for name in names if name in columns]
        taken = f"removed in the fit and took {self.freedom} of {n_samples:,} degrees of freedom"
        if absent := ", ".join(name for name in names if name not in columns):
            return [*adjust, *known], f"p-values are too small: {absent} (not in the sample table): {taken}"
        return [*adjust, *known], f"the tests are adjusted for {', '.join(known)}: {taken}" if known else ""

    def remarks(self, table: pd.DataFrame) -> Iterator[str]:
        """What associations with a removed covariate mean, if there are any."""
        for name in table.loc[table["q"] <= LEVEL, "variable"].unique():
            if name in self.names:
                yield f"{name}: its mean effect was removed before the search; a difference in spread can remain"
