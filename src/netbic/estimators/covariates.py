"""Covariates of a fit: a table of batches, ages and so on as a design matrix, for its samples and for new ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import orth

from netbic.arrays import Array, Floats, Indices
from netbic.errors import InputError, shown
from netbic.estimators.covariate_table import Covariate, as_table, check_complete, covariate_of, encoded, some_names
from netbic.estimators.inputs import check_one_matrix, names_of_index

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD

_DEPENDENT: Final = 1e-7  # share of a column's length outside the span of earlier ones, below which it is dropped
_FEWEST_LEFT: Final = 2  # dimensions that covariates and the mean have to leave


class Design(NamedTuple):
    """A design matrix that is encoded already, a row per sample, and how it was encoded.

    It can be given as `covariates` to the fit of a model, and to the methods of a model with the same coding.
    """

    values: Floats
    coding: CovariateCoding


@dataclass(frozen=True)
class CovariateCoding:
    """How a table of covariates becomes a design matrix: `covariate_coding_` of a fitted model.

    Categories become indicators of all levels but the first, numbers are standardised. Columns that are constant, or
    determined by earlier ones, are left out, and the mean in the samples of the fit is subtracted from the others.

    Attributes
    ----------
    covariates : tuple of Covariate
    columns : tuple of str
        Names of the columns of the design matrix.
    kept : tuple of int
        Their positions among all columns of all covariates.
    means : tuple of float
        What is subtracted from them.
    is_table : bool
        Whether covariates were given as a table, whose columns have names.
    """

    covariates: tuple[Covariate, ...]
    columns: tuple[str, ...]
    kept: tuple[int, ...]
    means: tuple[float, ...]
    is_table: bool

    @classmethod
    def learn(cls, covariates: Any, n_samples: int, names: Array | None) -> tuple[CovariateCoding, Floats]:
        """The coding and the design matrix for the samples of a fit; `names` are those of the rows of X."""
        if isinstance(covariates, Design):
            return covariates.coding, covariates.values
        table, is_table = as_table(covariates, n_samples, names)
        check_complete(table, names)
        found = tuple(covariate_of(str(name), table[name], is_table) for name in table.columns)
        coded = encoded(found, table)
        labels = [column for each in found for column in each.columns]
        means = coded.mean(axis=0) if coded.size else np.zeros(coded.shape[1])
        kept = _independent(coded, means, labels, [each.name for each in found if not each.columns])
        if len(kept) >= n_samples - _FEWEST_LEFT:
            raise InputError(
                f"covariates have {len(kept)} degrees of freedom, which leave nothing of {n_samples} samples: use "
                "fewer covariates, or merge levels with few samples"
            )
        chosen = tuple(labels[at] for at in kept)
        made = cls(found, chosen, tuple(kept.tolist()), tuple(means[kept].tolist()), is_table)
        return made, np.ascontiguousarray(coded[:, kept] - means[kept])

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
        if absent := [name for name in wanted if name not in table]:
            raise InputError(
                f"covariate {shown(absent[0])} of the fit is not a column of the table, which has "
                f"{some_names(list(table.columns))}: add it"
            )
        table = table[wanted]
        check_complete(table, names)
        return np.ascontiguousarray(encoded(self.covariates, table)[:, list(self.kept)] - np.array(self.means))

    def record(self) -> dict[str, Any]:
        """Everything as JSON."""
        each = [
            {"name": one.name, "mean": one.mean, "deviation": one.deviation, "levels": one.levels and list(one.levels)}
            for one in self.covariates
        ]
        own = {"columns": list(self.columns), "kept": list(self.kept), "means": list(self.means)}
        return {"covariates": each, "is_table": self.is_table, **own}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> CovariateCoding:
        """The coding that `record` described; an error if it cannot be one."""
        try:
            each = tuple(
                Covariate(
                    str(one["name"]),
                    None if one["levels"] is None else tuple(map(str, one["levels"])),
                    float(one["mean"]),
                    float(one["deviation"]),
                )
                for one in record["covariates"]
            )
            columns, kept = tuple(map(str, record["columns"])), tuple(map(int, record["kept"]))
            made = cls(each, columns, kept, tuple(map(float, record["means"])), bool(record["is_table"]))
            labels = [column for one in each for column in one.columns]
            whole = [labels[at] for at in kept] == list(columns) and len(made.means) == len(columns)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            whole = False
        if not whole:
            raise InputError("the covariates of the model are not described correctly: it was changed, fit again")
        return made


def _independent(coded: Floats, means: Floats, labels: Sequence[str], constant: list[str]) -> Indices:
    """Positions of columns that are neither constant nor determined by earlier ones; there is a warning for others.

    `constant` names further covariates, which have no column because they have one level only.
    """
    basis = np.empty((coded.shape[1], len(coded)))
    kept, dependent = list[int](), list[str]()
    for at, label in enumerate(labels):
        centred = coded[:, at] - means[at]
        length = float(np.linalg.norm(centred))
        if length <= 1e-10 * max(float(np.linalg.norm(coded[:, at])), np.finfo(float).tiny):
            constant.append(label)
            continue
        rest = centred / length
        for _ in range(2):  # Gram-Schmidt, applied twice
            rest = rest - (basis[: len(kept)] @ rest) @ basis[: len(kept)]
        outside = float(np.linalg.norm(rest))
        if outside <= _DEPENDENT:
            dependent.append(label)
            continue
        basis[len(kept)] = rest / outside
        kept.append(at)
    if constant:
        warnings.warn(f"covariates with one value for all samples have no effect: {some_names(constant)}", stacklevel=5)
    if dependent:
        warnings.warn(
            "covariates that the others determine are left out, which does not change the result: "
            f"{some_names(dependent)}",
            stacklevel=5,
        )
    return np.array(kept, dtype=np.intp)


def learn_covariates(
    covariates: Any, n_samples: int, names: Array | None
) -> tuple[CovariateCoding | None, Floats | None]:
    """The coding and the design matrix for a fit; no design matrix if no covariate has an effect."""
    if covariates is None:
        return None, None
    coding, design = CovariateCoding.learn(covariates, n_samples, names)
    return coding, design if coding.columns else None


def store_covariates(model: SparseGraphSVD, coding: CovariateCoding | None, design: Floats | None) -> None:
    """Set the fitted attributes of a model that describe its covariates."""
    model.covariate_coding_, model.covariates_ = coding, None
    if coding is not None:
        rows = model.names_["rows"]
        values = np.empty((len(model.left_vectors_), 0)) if design is None else design
        model.covariates_ = pd.DataFrame(values, index=None if rows is None else rows, columns=list(coding.columns))


def design_of_new(model: SparseGraphSVD, covariates: Any, n_samples: int, names: Array | None) -> Floats | None:
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
            f"the model was fitted with covariates ({some_names([each.name for each in coding.covariates])}): give "
            "those of these samples, too (`covariates`)",
            ["covariates"],
        )
    return coding.encode(covariates, n_samples, names)


def covariates_of(model: SparseGraphSVD, X: Any, covariates: Any = None) -> Design | None:
    """Covariates for a fit of (a clone of) a model to X: as given, or those of the model if it was fitted to X."""
    check_one_matrix(X)
    n_samples, names = int(X.shape[0]), names_of_index(getattr(X, "index", None))
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
    own = model.names_["rows"]
    if len(known.values) != n_samples or (names is not None and own is not None and not np.array_equal(names, own)):
        raise InputError(
            "the model was fitted with covariates, to other samples than those in X: give those of these samples, too "
            "(`covariates`)",
            ["covariates"],
        )
    return known


def own_covariates(model: SparseGraphSVD) -> Design | None:
    """The covariates of the samples that a fitted model was fitted to, or of those that are left of them."""
    if model.covariates_ is None or model.covariate_coding_ is None:
        return None
    return Design(np.asarray(model.covariates_.to_numpy(dtype=np.float64)), model.covariate_coding_)


def covariate_names(model: SparseGraphSVD) -> list[str]:
    """Names of the covariates that a model was fitted with; the indicators of studies are not among them."""
    if model.study_scaling_ is not None:
        return list(model.study_scaling_.covariates)
    return [] if model.covariate_coding_ is None else [each.name for each in model.covariate_coding_.covariates]


def training_design(model: SparseGraphSVD, X: Any, covariates: Any = None) -> Floats | None:
    """The design matrix of `covariates_of`, to be cut together with X; None if there are no covariates.

    Parts of its rows can be given to `fit` as `covariates`.
    """
    found = covariates_of(model, X, covariates)
    return None if found is None or not found.coding.columns else found.values


def basis_of(design: Floats) -> Floats:
    """An orthonormal basis of the columns of a design matrix of some samples, after subtracting their means."""
    centred = design - design.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    varying = lengths > 1e-10 * np.linalg.norm(design, axis=0)
    return np.asarray(orth(centred[:, varying] / lengths[varying], rcond=_DEPENDENT))


def check_part(design: Floats | None, n_samples: int, what: str) -> None:
    """Raise if part of the samples would be explained by the covariates alone."""
    if design is not None and design.shape[1] >= n_samples - _FEWEST_LEFT:
        raise InputError(
            f"covariates have {design.shape[1]} degrees of freedom, which leave nothing of {what} of {n_samples} "
            "samples: use fewer covariates, or merge levels with few samples"
        )
