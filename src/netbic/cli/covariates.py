"""Covariates from the columns of a sample table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

import netbic

if TYPE_CHECKING:
    import pandas as pd

_CODES = 10  # up to so many different whole numbers are the codes of groups, unless their type is given
_LISTED = 5


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
    for name in names:
        if name not in matched.columns:
            known = ", ".join(map(str, matched.columns[:10])) + (", ..." if matched.shape[1] > 10 else "")
            raise click.UsageError(f"--covariates {name}: the sample table has no such column (it has {known})")
    return pd.DataFrame({name: _typed(matched[name], types.get(name)) for name in names}, index=pd.Index(samples))


def _typed(column: pd.Series[Any], kind: Any) -> Any:
    """The values of a column as groups or numbers."""
    from pandas.api import types

    numeric = types.is_numeric_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    whole = numeric and bool((column.dropna() % 1 == 0).all())
    few = whole and 2 < column.nunique() <= _CODES
    if kind == "numeric":
        return column.astype(float).to_numpy()
    if (kind is not None or few) and not column.isna().any():
        return (column.astype("Int64") if whole else column).astype(str).astype("category").to_numpy()
    return column.astype(float).to_numpy() if numeric else column.to_numpy(dtype=object)


def covariate_lines(coding: Any) -> Iterator[str]:
    """How each covariate of a fitted model was used."""
    for one in coding.covariates:
        if one.levels is None:
            yield f"covariate {one.name}: a number"
            continue
        more = f" and {len(one.levels) - _LISTED} more" if len(one.levels) > _LISTED else ""
        yield f"covariate {one.name}: {len(one.levels)} groups ({', '.join(one.levels[:_LISTED])}{more})"
