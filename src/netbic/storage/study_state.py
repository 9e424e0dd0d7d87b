"""The studies of a fitted model as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, StudyNumbers, StudyScaling, studies_table
from netbic.files import Record
from netbic.storage.npz import Arrays

STUDY_NUMBERS = ("study_d", "study_share", "study_ratio")  # of shape (n_modules, n_studies)
_DAMAGED = "the studies of the model are not described correctly: it was changed, fit again"


def study_record(model: SparseGraphSVD) -> Record | None:
    """Names of the studies and of the covariates within them as JSON; None for one study."""
    scaling = model.study_scaling_
    return None if scaling is None else {"names": list(scaling.names), "covariates": list(scaling.covariates)}


def study_arrays(model: SparseGraphSVD) -> Arrays:
    """The study of each sample, weights and factors, and the table of modules and studies; nothing for one study."""
    scaling, labels, table = model.study_scaling_, model.study_labels_, model.studies_
    if scaling is None or labels is None or table is None:
        return {}
    shape = (model.n_components_, len(scaling.names))
    arrays: Arrays = {"study_of_samples": scaling.numbers(labels).astype(np.int64), "study_weights": scaling.weights}
    if scaling.factors is not None:
        arrays["study_factors"] = scaling.factors
    numbers = (table[name.removeprefix("study_")].to_numpy(dtype=np.float64) for name in STUDY_NUMBERS)
    return arrays | {name: values.reshape(shape) for name, values in zip(STUDY_NUMBERS, numbers, strict=True)}


def set_studies(model: SparseGraphSVD, record: Any, arrays: Arrays) -> None:
    """Set the fitted attributes of a model that describe its studies, from what the functions above returned."""
    if record is None:
        if "study_weights" in arrays:
            raise InputError(_DAMAGED)
        return
    needed = {"study_of_samples", "study_weights", *STUDY_NUMBERS}
    names = record.get("names") if isinstance(record, dict) else None
    if not isinstance(names, list) or not needed <= set(arrays) or len(names) != arrays["study_weights"].size:
        raise InputError(_DAMAGED)
    numbers = arrays["study_of_samples"]
    if numbers.size and numbers.max() >= len(names):
        raise InputError(_DAMAGED)
    known = tuple(map(str, names)), arrays["study_weights"], arrays.get("study_factors")
    scaling = StudyScaling(*known, tuple(map(str, record.get("covariates", []))))
    model.study_scaling_, model.study_labels_ = scaling, np.array(scaling.names, dtype=object)[numbers]
    model.studies_ = studies_table(model, scaling, StudyNumbers(*(arrays[name] for name in STUDY_NUMBERS)))
