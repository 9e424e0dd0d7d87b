"""Covariates of a fit: a table of batches, ages and so on as a design matrix, for its samples and for new ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types
from scipy.linalg import orth

from netbic.arrays import Array, Floats, Indices, check_range, n_masked
from netbic.errors import InputError, shown, some_names
from netbic.estimators.inputs import check_one_matrix, names_of_index

if TYPE_CHECKING:
    from netbic.estimators.pairs import TwoTableModel
    from netbic.estimators.svd import SparseGraphSVD

    Model: TypeAlias = SparseGraphSVD | TwoTableModel

_CODES: Final = range(3, 11)  # numbers of different integers that look like the codes of groups
_DEPENDENT: Final = 1e-7  # share of a column's length outside the span of earlier ones, below which it is dropped
_FEWEST_LEFT: Final = 2  # dimensions that covariates and the mean have to leave


class Design(NamedTuple):
    """A design matrix, and how it was encoded: `covariates` for a fit, or for a model with the same coding."""

    values: Floats
    coding: CovariateCoding


@dataclass(frozen=True)
class Covariate:
    """A number, which is standardised, or a category, the first of whose levels is the reference."""

    name: str
    levels: tuple[str, ...] | None = None  # None: a number
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def learn(cls, name: str, values: pd.Series[Any], is_table: bool) -> Covariate:
        """How a column is encoded; levels are in the order of the categories, or sorted."""
        if holds_numbers(values):
            numbers = _numbers(name, values)
            different = np.unique(numbers).size
            if is_table and types.is_integer_dtype(values.dtype) and _are_codes(numbers, different):
                warnings.warn(
                    f"covariate {shown(name)} has {different} different integers and is used as a number: if they are "
                    "codes of groups, give it as a category (.astype('category')), otherwise as .astype(float)",
                    stacklevel=6,
                )
            deviation, scale = float(numbers.std()), float(np.abs(numbers).max(initial=0.0))
            return cls(name, None, float(numbers.mean()), deviation if deviation > 1e-12 * scale else 1.0)
        labels, counts = np.unique(text_labels(values).astype(str), return_counts=True)
        single, known = labels[counts == 1].tolist(), labels.tolist()
        if len(labels) > 2 and 2 * len(single) > len(labels):
            raise InputError(
                f"covariate {shown(name)} has {len(labels):,} levels in {len(values):,} samples, and {len(single):,} "
                "of them occur once: leave it out if it identifies samples, or merge levels"
            )
        if single and len(labels) > 1:
            warnings.warn(
                f"covariate {shown(name)}: nothing is left of the only sample of a level ({some_names(single)})",
                stacklevel=6,
            )
        if isinstance(values.dtype, pd.CategoricalDtype):
            order = dict.fromkeys(text_labels(pd.Series(values.cat.categories)).tolist())
            known = [label for label in order if label in set(known)]
        return cls(name, tuple(known))

    @property
    def columns(self) -> list[str]:
        """Names of its columns in the design matrix."""
        return [self.name] if self.levels is None else [f"{self.name}={level}" for level in self.levels[1:]]

    def encode(self, values: pd.Series[Any]) -> Floats:
        """Its columns, for these samples."""
        if self.levels is None:
            return ((_numbers(self.name, values) - self.mean) / self.deviation)[:, None]
        labels = text_labels(values)
        if new := sorted(set(labels.tolist()) - set(self.levels)):
            raise InputError(
                f"covariate {shown(self.name)} has the level {shown(new[0])}, which no sample of the fit has "
                f"({some_names(self.levels, 10)}): its effect is not known, fit a model to samples with this level, too"
            )
        return pd.get_dummies(pd.Categorical(labels, categories=list(self.levels)), dtype=float).to_numpy()[:, 1:]


def _are_codes(numbers: Floats, different: int) -> bool:
    """Whether integers look like the codes of groups: few different ones, or 1 to 13, each of which is repeated."""
    lowest, highest = float(numbers.min()), float(numbers.max())
    counted = different > 2 and lowest in (0.0, 1.0) and highest - lowest < 1.5 * different
    return different in _CODES or (counted and 2 * different <= numbers.size)


@dataclass(frozen=True)
class CovariateCoding:
    """How a table of covariates becomes a design matrix: `covariate_coding_` of a fitted model.

    Categories become indicators of all levels but the first, numbers are standardised. Columns that are constant, or
    determined by earlier ones, are left out, and the mean in the samples of the fit is subtracted from the others.
    """

    covariates: tuple[Covariate, ...]
    columns: tuple[str, ...]  # of the design matrix
    kept: tuple[int, ...]  # their positions among all columns of all covariates
    means: tuple[float, ...]  # what is subtracted from them
    is_table: bool  # with names of columns

    @classmethod
    def learn(cls, covariates: Any, n_samples: int, names: Array | None) -> tuple[CovariateCoding, Floats]:
        """The coding and the design matrix for the samples of a fit; `names` are those of the rows of X."""
        if isinstance(covariates, Design):
            return covariates.coding, covariates.values
        table, is_table = as_table(covariates, n_samples, names)
        complete_columns(table, table.columns, names)
        found = tuple(Covariate.learn(str(name), table[name], is_table) for name in table.columns)
        coded = _encode(found, table)
        labels = [column for each in found for column in each.columns]
        means = coded.mean(axis=0) if coded.size else np.zeros(coded.shape[1])
        kept = _independent(coded - means, coded, labels, [each.name for each in found if not each.columns])
        design = np.ascontiguousarray(coded[:, kept] - means[kept])
        check_part(design, n_samples)
        return cls(found, tuple(labels[at] for at in kept), tuple(kept), tuple(means[kept].tolist()), is_table), design

    def encode(self, covariates: Any, n_samples: int, names: Array | None) -> Floats:
        """The design matrix for other samples."""
        if isinstance(covariates, Design):
            return covariates.values
        table, is_table = as_table(covariates, n_samples, names)
        wanted = [each.name for each in self.covariates]
        if self.is_table and not is_table:
            raise InputError(
                f"covariates are an array, but those of the fit had names ({some_names(wanted)}): give a DataFrame"
            )
        if not self.is_table:
            if table.shape[1] != len(wanted):
                raise InputError(f"covariates have {table.shape[1]} columns, but those of the fit had {len(wanted)}")
            table = table.set_axis(wanted, axis=1)
        table = complete_columns(table, wanted, names)
        return np.ascontiguousarray(_encode(self.covariates, table)[:, list(self.kept)] - np.array(self.means))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> CovariateCoding:
        """The coding from its fields as JSON."""
        columns, kept, means = (tuple(record[name]) for name in ("columns", "kept", "means"))
        each = [one | {"levels": one["levels"] and tuple(one["levels"])} for one in record["covariates"]]
        made = cls(tuple(Covariate(**one) for one in each), columns, kept, means, bool(record["is_table"]))
        labels = [column for one in made.covariates for column in one.columns]
        if tuple(labels[at] for at in kept) != columns or len(means) != len(columns):
            raise InputError("the covariates of the model are not described correctly: it was changed, fit again")
        return made


def _encode(covariates: Sequence[Covariate], table: pd.DataFrame) -> Floats:
    parts = [each.encode(table[each.name]) for each in covariates]
    return np.hstack([np.empty((len(table), 0)), *parts])


def _independent(centred: Floats, coded: Floats, labels: Sequence[str], constant: list[str]) -> list[int]:
    """Positions of columns that are neither constant nor determined by earlier ones; there is a warning for others.

    `constant` names further covariates, which have no column because they have one level only.
    """
    lengths = np.linalg.norm(centred, axis=0)
    varies = lengths > 1e-10 * np.maximum(np.linalg.norm(coded, axis=0), np.finfo(float).tiny)
    constant += [label for label, known in zip(labels, varies, strict=True) if not known]
    units = centred / np.where(varies, lengths, 1.0)
    kept, dependent, basis = list[int](), list[str](), np.empty((len(coded), 0))
    for at in np.flatnonzero(varies).tolist():
        rest = units[:, at]
        for _ in range(2):  # Gram-Schmidt, applied twice
            rest = rest - basis @ (basis.T @ rest)
        if (outside := float(np.linalg.norm(rest))) > _DEPENDENT:
            basis = np.column_stack([basis, rest / outside])
            kept.append(at)
        else:
            dependent.append(labels[at])
    if constant:
        warnings.warn(f"covariates with one value for all samples have no effect: {some_names(constant)}", stacklevel=5)
    if dependent:
        warnings.warn(
            "covariates that the others determine are left out, which does not change the result: "
            f"{some_names(dependent)}",
            stacklevel=5,
        )
    return kept


def check_part(design: Floats | None, n_samples: int, part: str = "") -> None:
    """Raise if the samples, or a part of them ("a half of "), would be explained by the covariates alone."""
    if design is not None and design.shape[1] >= n_samples - _FEWEST_LEFT:
        raise InputError(
            f"covariates have {design.shape[1]} degrees of freedom, which leave nothing of {part}{n_samples} samples: "
            "use fewer covariates, or merge levels with few samples"
        )


# Tables


def as_table(covariates: Any, n_samples: int, names: Array | None) -> tuple[pd.DataFrame, bool]:
    """The covariates in the order of the samples (by name if both have names), and whether they are a table."""
    if isinstance(covariates, pd.Series):
        covariates = covariates.to_frame("covariate" if covariates.name is None else covariates.name)
    is_table = isinstance(covariates, pd.DataFrame)
    if is_table:
        table = covariates.set_axis([str(name) for name in covariates.columns], axis=1)
        if not table.columns.is_unique:
            twice = shown(table.columns[table.columns.duplicated()][0])
            raise InputError(f"covariates have two columns called {twice}: rename one")
    else:
        if n_masked(covariates):
            raise InputError("covariates are a masked array with masked entries: fill them, or leave these samples out")
        try:
            values = np.asarray(covariates)
            if values.dtype.kind in "cmM":
                raise TypeError
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "covariates are no array of numbers: give text and categories as a DataFrame, dates as numbers"
            ) from None
        if values.ndim != 2:
            raise InputError(
                f"covariates have shape {values.shape}: (n_samples, n_covariates) is needed, e.g. "
                "covariates.reshape(-1, 1)"
            )
        table = pd.DataFrame(values, columns=[f"x{number}" for number in range(values.shape[1])])
    return in_order_of_samples(table, n_samples, names, "covariates"), is_table


def in_order_of_samples(table: Any, n_samples: int, names: Array | None, what: str) -> Any:
    """A table or Series with a row per sample: by name if both it and the samples have names, else by position."""
    own = names_of_index(table.index)
    if own is None or names is None or np.array_equal(own, names):
        if len(table) != n_samples:
            raise InputError(
                f"{what} have {len(table):,} rows but X has {n_samples:,} samples: one row per sample is needed"
            )
        return table
    index = pd.Index(own)
    if not index.is_unique:
        twice = shown(str(index[index.duplicated()][0]))
        raise InputError(f"sample {twice} occurs twice in {what}: give one row per sample")
    at = index.get_indexer(pd.Index(names))
    if (at < 0).any():
        absent = names[at < 0]
        raise InputError(
            f"{absent.size} of {n_samples} samples have no {what} ({some_names(absent)}; the table has "
            f"{some_names(own)}): add them, or leave these samples out of X"
        )
    return table.iloc[at]


def complete_columns(table: pd.DataFrame, wanted: Iterable[str], names: Array | None) -> pd.DataFrame:
    """These covariates; an error if one is not in the table, or is missing (or blank text) for a sample."""
    for name in wanted:
        if name not in table:
            raise InputError(
                f"covariate {shown(name)} of the fit is not a column of the table, which has "
                f"{some_names(table.columns)}: add it"
            )
        if (missing := is_missing(table[name])).size:
            listed = some_names(missing if names is None else names[missing])
            noun = "sample" if missing.size == 1 else "samples"
            raise InputError(
                f"covariate {shown(name)} is missing for {missing.size} {noun} ({listed}): fill it in, e.g. by a "
                "level 'unknown' or the median, or leave these samples out"
            )
    return table[list(wanted)]


def is_missing(values: pd.Series[Any]) -> Indices:
    """Positions of entries without a value; blank text too."""
    missing = values.isna().to_numpy(dtype=bool)
    if not types.is_numeric_dtype(values.dtype):
        missing = missing | (values.astype(str).str.strip() == "").to_numpy(dtype=bool)
    return np.flatnonzero(missing)


def holds_numbers(values: pd.Series[Any]) -> bool:
    """Whether a covariate is a number rather than a category; an error if it is neither."""
    kind = values.dtype
    if types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind):  # True and False too
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
    check_range(numbers, f"covariate {shown(name)}")
    return numbers


def text_labels(values: pd.Series[Any]) -> Array:
    """Levels as text; whole numbers without a decimal point."""
    texts = [str(int(each)) if isinstance(each, float) and each.is_integer() else str(each).strip() for each in values]
    return np.array([*texts, ""], dtype=object)[:-1]  # an array of objects, even of equal lengths


# Fitted models


def store_covariates(model: Model, coding: CovariateCoding | None, design: Floats | None, n_samples: int) -> None:
    """Set the fitted attributes of a model that describe its covariates."""
    model.covariate_coding_, model.covariates_ = coding, None
    if coding is not None:
        values = np.empty((n_samples, 0)) if design is None else design
        model.covariates_ = pd.DataFrame(values, index=_names_of_samples(model), columns=list(coding.columns))


def _names_of_samples(model: Model) -> Array | None:
    names: dict[str, Array | None] = model.names_
    return names["samples" if "samples" in names else "rows"]


def design_of_new(model: Model, covariates: Any, n_samples: int, names: Array | None) -> Floats | None:
    """The design matrix of samples that a fitted model is applied to; None if it was fitted without covariates."""
    coding = model.covariate_coding_
    if model.study_scaling_ is not None:
        raise InputError(
            f"the model was fitted to several studies ({some_names(model.study_scaling_.names)}): say which one each "
            "sample belongs to, e.g. model.transform(X, studies=labels)",
            ["studies"],
        )
    if coding is None:
        if covariates is not None:
            raise InputError("covariates are given, but the model was fitted without any: omit them, or fit with them")
        return None
    if covariates is None:
        if not coding.columns:
            return None
        raise InputError(
            f"the model was fitted with covariates ({some_names(covariate_names(model))}): give those of these "
            "samples, too (`covariates`)",
            ["covariates"],
        )
    return coding.encode(covariates, n_samples, names)


def covariates_of(model: Model, X: Any, covariates: Any = None) -> Design | None:
    """Covariates for a fit of (a clone of) a model to X: as given, or those of the model if it was fitted to X."""
    check_one_matrix(X)
    n_samples, names = int(np.shape(X)[0]), names_of_index(getattr(X, "index", None))
    if model.study_scaling_ is not None:
        raise InputError(
            "the model was fitted to several studies, which is not supported here: use selection.verdicts, "
            "netbic.leave_one_study_out, or the same model and data as one study (selection.as_one_study)"
        )
    if covariates is not None:
        coding, values = CovariateCoding.learn(covariates, n_samples, names)
        return Design(values, coding)
    if (known := own_covariates(model)) is None:
        return None
    own = _names_of_samples(model)
    if len(known.values) != n_samples or (names is not None and own is not None and not np.array_equal(names, own)):
        raise InputError(
            "the model was fitted with covariates, to other samples than those in X: give those of these samples, too "
            "(`covariates`)",
            ["covariates"],
        )
    return known


def own_covariates(model: Model) -> Design | None:
    """The covariates of the samples that a fitted model was fitted to, or of those that are left of them."""
    if model.covariates_ is None or model.covariate_coding_ is None:
        return None
    return Design(np.asarray(model.covariates_.to_numpy(dtype=np.float64)), model.covariate_coding_)


def covariate_names(model: Model) -> list[str]:
    """Names of the covariates that a model was fitted with; the indicators of studies are not among them."""
    if model.study_scaling_ is not None:
        return list(model.study_scaling_.covariates)
    return [] if model.covariate_coding_ is None else [each.name for each in model.covariate_coding_.covariates]


def training_design(model: Model, X: Any, covariates: Any = None) -> Floats | None:
    """The design matrix of `covariates_of`, of which parts can be given to `fit` with parts of X; None without any."""
    found = covariates_of(model, X, covariates)
    return None if found is None or not found.coding.columns else found.values


def basis_of(design: Floats) -> Floats:
    """An orthonormal basis of the columns of a design matrix of some samples, after subtracting their means."""
    centred = design - design.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    varying = lengths > 1e-10 * np.linalg.norm(design, axis=0)
    return np.asarray(orth(centred[:, varying] / lengths[varying], rcond=_DEPENDENT))
