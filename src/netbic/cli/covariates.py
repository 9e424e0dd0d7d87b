"""Covariates from the columns of a sample table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import netbic
from netbic.cli.associate import given_types, sample_table_of
from netbic.cli.command import echo

if TYPE_CHECKING:
    import pandas as pd

    from netbic.io import Dataset

_CODES = 10  # up to so many different whole numbers are the codes of groups, unless their type is given
_LISTED = 5

covariates_option = click.option(
    "--covariates",
    metavar="NAME,...",
    help="Columns of the sample table (batch, age, ...) whose effects are removed from the data before the search.",
)


studies_option = click.option(
    "--studies",
    metavar="NAME",
    help="Column of the sample table with the study of each sample: each study is centred and scaled by itself, and "
    "modules are judged in each of them.",
)


@dataclass(frozen=True)
class CovariateOptions:
    """Covariates without tests of other columns of the sample table."""

    sample_info: str | None
    covariates: str | None
    types: tuple[str, ...]

    def check(self) -> None:
        """Refuse a sample table that would not be used."""
        if self.sample_info is not None and not covariate_names(self.covariates):
            raise click.UsageError("--sample-info is used for covariates only: add --covariates, or omit it")

    def read(self, expression: str, samples: Any, silent: bool) -> pd.DataFrame | None:
        """The covariates of the samples; how the sample table was matched is printed."""
        names = covariate_names(self.covariates)
        path = sample_table_of(self.sample_info, expression)
        if not names or path is None:
            return read_covariates(names, None, samples, {})
        import pandas as pd

        match = netbic.association.match_samples(pd.Index(samples), netbic.io.read_sample_info(path, na_values=()))
        for line in match.lines():
            echo(line, silent)
        if types := given_types(self.types):
            netbic.association.read_variables(match.table, variables=types, types=types)  # an error if one is wrong
        return read_covariates(names, match.table, samples, types)


def covariate_names(text: str | None) -> list[str]:
    """The names in the value of --covariates."""
    return list(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def read_covariates(
    names: list[str], table: pd.DataFrame | None, samples: Any, types: Mapping[str, Any]
) -> pd.DataFrame | None:
    """The covariates of the samples, in their order; None if there are none.

    Whole numbers of which there are few different ones are groups, unless `types` says that they are numbers: groups
    include a linear effect, numbers do not include any other.
    """
    if not names:
        return None
    if table is None:
        raise click.UsageError("--covariates needs a sample table: use --sample-info")
    import pandas as pd

    matched = netbic.association.match_samples(pd.Index(samples), table).table
    netbic.association.check_known(names, matched.columns, "covariates")
    return pd.DataFrame({name: _typed(matched[name], types.get(name)) for name in names}, index=pd.Index(samples))


def read_studies(name: str | None, table: pd.DataFrame | None, samples: Any) -> Any:
    """The study of each sample, a column of the sample table; None if there is one study."""
    if name is None:
        return None
    if table is None:
        raise click.UsageError("--studies needs a sample table: use --sample-info")
    import pandas as pd

    from netbic.estimators import study_labels

    matched = netbic.association.match_samples(pd.Index(samples), table).table
    netbic.association.check_known([name], matched.columns, "studies")
    study_labels(matched[name], len(matched), matched.index.to_numpy())  # an error if one is missing
    return pd.Series(matched[name].to_numpy(), index=pd.Index(samples), name=name)


def study_lines(studies: Any) -> list[str]:
    """How many samples each study has."""
    if studies is None:
        return []
    counts = studies.astype(str).value_counts().sort_index()
    more = f" and {len(counts) - _LISTED} more" if len(counts) > _LISTED else ""
    each = ", ".join(f"{study}: {count:,}" for study, count in counts.iloc[:_LISTED].items())
    return [f"{len(counts)} studies ({each}{more}), each centred and scaled by itself"]


def fingerprint(study: Dataset, covariates: pd.DataFrame | None, studies: pd.Series[Any] | None) -> dict[str, str]:
    """Digests of the data of a fit."""
    from netbic.io import digest

    columns = [] if covariates is None else [covariates[name] for name in covariates]
    given = {"covariates": columns, "studies": [] if studies is None else [studies]}
    own = {
        name: digest(*(column.astype(str).to_numpy(dtype=object) for column in each))
        for name, each in given.items()
        if each
    }
    return study.fingerprint() | own


def _typed(column: pd.Series[Any], kind: Any) -> Any:
    """The values of a column as groups or numbers; categories are groups."""
    import pandas as pd
    from pandas.api import types

    if isinstance(column.dtype, pd.CategoricalDtype):
        if kind != "numeric":
            return column.astype(object).where(column.isna(), column.astype(str)).to_numpy(dtype=object)
        column = pd.to_numeric(column.astype(object))
    numeric = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    whole = numeric and bool((column.dropna() % 1 == 0).all())
    few = whole and 2 < column.nunique() <= _CODES
    if kind == "numeric":
        return column.astype(float).to_numpy()
    if (kind is not None or few) and not column.isna().any():
        return (column.astype("Int64") if whole else column).astype(str).astype("category").to_numpy()
    return column.astype(float).to_numpy() if numeric else column.to_numpy(dtype=object)


def coded_lines(covariates: pd.DataFrame | None) -> list[str]:
    """How each covariate is used; an error if one cannot be used."""
    if covariates is None:
        return []
    from netbic.estimators import CovariateCoding

    coding, _ = CovariateCoding.learn(covariates, len(covariates), covariates.index.to_numpy())
    return list(covariate_lines(coding))


def covariate_lines(coding: Any) -> Iterator[str]:
    """How each covariate of a fitted model was used."""
    for one in coding.covariates:
        if one.levels is None:
            yield f"covariate {one.name}: a number"
            continue
        more = f" and {len(one.levels) - _LISTED} more" if len(one.levels) > _LISTED else ""
        yield f"covariate {one.name}: {len(one.levels)} groups ({', '.join(one.levels[:_LISTED])}{more})"
