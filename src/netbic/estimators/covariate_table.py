"""Tables of covariates: their samples matched and checked, and the columns that encode each covariate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from pandas.api import types

from netbic.arrays import Array, Bools, Floats
from netbic.errors import InputError, shown
from netbic.estimators.inputs import names_of_index

_CODES: Final = range(3, 11)  # numbers of different integers that look like the codes of groups
_NAMED: Final = 3  # samples or levels in a message


@dataclass(frozen=True)
class Covariate:
    """One covariate: a number, or a category with several levels.

    Attributes
    ----------
    name : str
    levels : tuple of str, optional
        Of a category; the first one is the reference. None for a number.
    mean, deviation : float
        By which a number is standardised.
    """

    name: str
    levels: tuple[str, ...] | None = None
    mean: float = 0.0
    deviation: float = 1.0

    @property
    def columns(self) -> list[str]:
        """Names of its columns in the design matrix."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels[1:]]

    def encode(self, values: pd.Series[Any]) -> Floats:
        """Its columns, for these samples."""
        if self.levels is None:
            return ((_numbers(self.name, values) - self.mean) / self.deviation)[:, None]
        labels = text_labels(values)
        new = sorted(set(labels.tolist()) - set(self.levels))
        if new:
            known = ", ".join(map(shown, self.levels[:10])) + (", ..." if len(self.levels) > 10 else "")
            raise InputError(
                f"covariate {shown(self.name)} has the level {shown(new[0])}, which no sample of the fit has "
                f"({known}): its effect is not known, fit a model to samples with this level, too"
            )
        return np.asarray(labels[:, None] == np.array(self.levels[1:], dtype=object)[None, :], dtype=np.float64)


def as_table(covariates: Any, n_samples: int, names: Array | None) -> tuple[pd.DataFrame, bool]:
    """The covariates with a row per sample, in their order, and whether they have names."""
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame("covariate" if covariates.name is None else covariates.name)
    if isinstance(covariates, pd.DataFrame):
        table = covariates.set_axis([str(name) for name in covariates.columns], axis=1)
        if not table.columns.is_unique:
            twice = shown(table.columns[table.columns.duplicated()][0])
            raise InputError(f"covariates have two columns called {twice}: rename one")
        return _in_order(table, n_samples, names), True
    try:
        values = np.asarray(covariates, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("covariates are no array of numbers: give text and categories as a DataFrame") from None
    if values.ndim != 2:
        raise InputError(
            f"covariates have shape {values.shape}: (n_samples, n_covariates) is needed, e.g. covariates.reshape(-1, 1)"
        )
    _check_length(len(values), n_samples)
    return pd.DataFrame(values, columns=[f"x{number}" for number in range(values.shape[1])]), False


def _in_order(table: pd.DataFrame, n_samples: int, names: Array | None) -> pd.DataFrame:
    """Rows in the order of the samples: by name if both have names, else by position."""
    own = names_of_index(table.index)
    if own is None or names is None or np.array_equal(own, names):
        _check_length(len(table), n_samples)
        return table
    index = pd.Index(own)
    if not index.is_unique:
        raise InputError(f"sample {shown(str(index[index.duplicated()][0]))} occurs twice in the covariates")
    at = index.get_indexer(pd.Index(names))
    absent = np.flatnonzero(at < 0)
    if absent.size:
        listed = some_names([str(names[place]) for place in absent])
        raise InputError(
            f"{absent.size} of {n_samples} samples have no covariates ({listed}; the table has "
            f"{some_names(list(own))}): add them, or leave these samples out of X"
        )
    return table.iloc[at]


def _check_length(given: int, n_samples: int) -> None:
    if given != n_samples:
        raise InputError(f"covariates have {given} rows but X has {n_samples} samples: one row per sample is needed")


def check_complete(table: pd.DataFrame, names: Array | None) -> None:
    """Raise if a covariate of a sample is missing."""
    for name in table.columns:
        missing = np.flatnonzero(_is_missing(table[name]))
        if missing.size:
            listed = some_names([str(at if names is None else names[at]) for at in missing])
            noun = "sample" if missing.size == 1 else "samples"
            raise InputError(
                f"covariate {shown(str(name))} is missing for {missing.size} {noun} ({listed}): fill it in, e.g. by a "
                "level 'unknown' or the median, or leave these samples out"
            )


def _is_missing(values: pd.Series[Any]) -> Bools:
    """Entries without a value; blank text too."""
    missing = values.isna().to_numpy(dtype=bool)
    if not types.is_numeric_dtype(values.dtype):
        missing = missing | (values.astype(str).str.strip() == "").to_numpy(dtype=bool)
    return np.asarray(missing)


def covariate_of(name: str, values: pd.Series[Any], is_table: bool) -> Covariate:
    """How a column is encoded."""
    if not holds_numbers(values):
        return Covariate(name, _levels(name, values))
    numbers = _numbers(name, values)
    different = np.unique(numbers).size
    if is_table and types.is_integer_dtype(values.dtype) and different in _CODES:
        warnings.warn(
            f"covariate {shown(name)} has {different} different integers and is used as a number: if they are codes of "
            "groups, give it as a category (.astype('category')), otherwise as .astype(float)",
            stacklevel=6,
        )
    deviation = float(numbers.std())
    scale = float(np.abs(numbers).max(initial=0.0))
    return Covariate(name, None, float(numbers.mean()), deviation if deviation > 1e-12 * scale else 1.0)


def holds_numbers(values: pd.Series[Any]) -> bool:
    """Whether a covariate is a number rather than a category; an error if it is neither."""
    kind = values.dtype
    if types.is_numeric_dtype(kind):  # True and False too
        return True
    if types.is_object_dtype(kind):
        return all(isinstance(each, (int, float, np.number)) for each in values)
    if isinstance(kind, pd.CategoricalDtype) or types.is_string_dtype(kind):
        return False
    raise InputError(f"covariate {shown(str(values.name))} has the type {kind}: give numbers, text or categories")


def _numbers(name: str, values: pd.Series[Any]) -> Floats:
    try:
        numbers = np.asarray(values.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        text = next((str(each) for each in values if not isinstance(each, (int, float, np.number))), "")
        raise InputError(
            f"covariate {shown(name)} was a number in the fit, but now has the value {shown(text)}: give numbers"
        ) from None
    if not np.isfinite(numbers).all():
        raise InputError(f"covariate {shown(name)} has values that are not finite: replace them")
    return numbers


def text_labels(values: pd.Series[Any]) -> Array:
    """Levels as text; whole numbers without a decimal point."""
    texts = [str(int(each)) if isinstance(each, float) and each.is_integer() else str(each).strip() for each in values]
    return np.array([*texts, ""], dtype=object)[:-1]  # an array of objects, even of equal lengths


def _levels(name: str, values: pd.Series[Any]) -> tuple[str, ...]:
    """The levels that occur, in the order of the categories, or sorted."""
    labels, counts = np.unique(text_labels(values).astype(str), return_counts=True)
    single = [str(label) for label in labels[counts == 1]]
    if len(labels) > 2 and 2 * len(single) > len(labels):
        raise InputError(
            f"covariate {shown(name)} has {len(labels):,} levels in {len(values):,} samples, and {len(single):,} of "
            "them occur once: leave it out if it identifies samples, or merge levels"
        )
    if single and len(labels) > 1:
        warnings.warn(
            f"covariate {shown(name)}: nothing is left of the only sample of a level ({some_names(single)})",
            stacklevel=7,
        )
    known = [str(label) for label in labels]
    if isinstance(values.dtype, pd.CategoricalDtype):
        order = list(dict.fromkeys(text_labels(pd.Series(values.cat.categories)).tolist()))
        known = [label for label in order if label in set(known)]
    return tuple(known)


def encoded(covariates: Sequence[Covariate], table: pd.DataFrame) -> Floats:
    """All columns of all covariates."""
    parts = [each.encode(table[each.name]) for each in covariates]
    return np.hstack([np.empty((len(table), 0)), *parts])


def some_names(names: Sequence[Any]) -> str:
    """The first names of many, for a message."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(shown(str(name)) for name in names[:_NAMED]) + more
