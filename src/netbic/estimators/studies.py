"""Several studies in one fit: each centred and scaled by itself, and weighted.

The rows of study s become w_s (x - mean_s - covariates) F_s, with a weight w_s and a diagonal F_s of factors. This is
what a fit to X' = w_s X F_s with indicators of the studies as covariates does. The studies of a fit are therefore a
scaling of the rows (a sparse matrix stays sparse), and further columns of the design matrix.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse, kind_of, stored_values
from netbic.errors import InputError, shown
from netbic.estimators.covariate_table import (
    Covariate,
    as_table,
    check_complete,
    covariate_of,
    holds_numbers,
    some_names,
    text_labels,
)
from netbic.estimators.covariates import CovariateCoding, Design, basis_of, learn_covariates
from netbic.estimators.inputs import has_missing, names_of_index
from netbic.estimators.stacking import stack_studies
from netbic.estimators.study_table import studies_table, study_numbers
from netbic.operators import Corrected, Scaler, as_operator, learn_from_observed

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD

_STUDY: Final = "study"  # the column of the design matrix
_FEWEST: Final = 2  # samples of a study: a single one is zero after centring


@dataclass(frozen=True, eq=False)
class StudyScaling:
    """How the samples of each study are scaled: `study_scaling_` of a model that was fitted to several studies.

    Attributes
    ----------
    names : tuple of str
        The studies, sorted.
    weights : array of shape (n_studies,)
        By which all entries of a study are multiplied.
    factors : array of shape (n_studies, n_features), optional
        By which the columns of a study are multiplied: inverse standard deviations within the study. None if columns
        are not scaled.
    covariates : tuple of str
        Names of the covariates, whose effects are removed within each study.
    """

    names: tuple[str, ...]
    weights: Floats
    factors: Floats | None = None
    covariates: tuple[str, ...] = ()

    def numbers(self, labels: Array) -> Indices:
        """The position of each label in `names`; an error for a study that was not in the fit."""
        found = pd.Index(self.names).get_indexer(pd.Index(labels))
        if (found < 0).any():
            new = shown(str(labels[int((found < 0).argmax())]))
            raise InputError(
                f"study {new} is not one of the fit ({some_names(self.names)}), so that its means are not known: fit "
                "with it, or use netbic.replicate",
                ["studies"],
            )
        return np.asarray(found, dtype=np.intp)

    def apply(self, X: Matrix, numbers: Indices, columns: Indices | slice = slice(None)) -> Matrix:
        """X' = w_s X F_s for rows of these studies; `columns` are the features that the columns of X are."""
        if self.factors is None and (self.weights == 1).all():
            return X
        if is_sparse(X):
            rows = sp.csr_array(X)
            of_entries = np.repeat(numbers, np.diff(rows.indptr))
            by = self.weights[of_entries]
            if self.factors is not None:
                by = by * self.factors[:, columns][of_entries, rows.indices]
            return sp.csr_array((rows.data * by.astype(X.dtype), rows.indices, rows.indptr), shape=rows.shape)
        if kind_of(X) == "table":
            return pd.DataFrame(self.apply(X.to_numpy(), numbers, columns), index=X.index, columns=X.columns)
        scaled = np.array(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        for study, weight in enumerate(self.weights):
            own = numbers == study
            scaled[own] *= weight if self.factors is None else weight * self.factors[study, columns]
        return scaled

    def undo(self, X: Array, numbers: Indices) -> Array:
        """X from X'."""
        restored = np.array(X)
        for study, weight in enumerate(self.weights):
            restored[numbers == study] /= weight if self.factors is None else weight * self.factors[study]
        return restored


class StudyInput(NamedTuple):
    """The data of a fit after the scaling of studies, which is None for one study; `labels` is then None too."""

    X: Any
    coding: CovariateCoding | None
    design: Floats | None
    scaling: StudyScaling | None = None
    labels: Array | None = None


# ----------------------------------------------------------------------------------------------------------------
# A fit
# ----------------------------------------------------------------------------------------------------------------


def with_studies(X: Any, studies: Any) -> tuple[Any, Any]:
    """X and the labels of its samples; a mapping of names to matrices is stacked."""
    if not isinstance(X, Mapping) or kind_of(X) != "other":  # a sparse matrix may be a mapping, too
        return X, studies
    if studies is not None:
        raise InputError("X is a dict of studies, so that `studies` is known: omit it", ["studies"])
    stacked = stack_studies(X)
    return stacked.X, stacked.studies


def study_input(model: SparseGraphSVD, X: Any, studies: Any, covariates: Any, names: Array | None) -> StudyInput:
    """The validated data of a fit as they are searched, with the design matrix of covariates and studies."""
    if studies is None:
        return StudyInput(X, *learn_covariates(covariates, X.shape[0], names))
    _check_model(model, X)
    labels = study_labels(studies, int(X.shape[0]), names)
    levels, counts = np.unique(labels.astype(str), return_counts=True)
    _check_levels(levels, counts)
    table, own = _learn_table(labels, levels.tolist(), covariates, names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "covariates with one value")  # as of a batch in one study only
        coding, design = CovariateCoding.learn(table, len(labels), None)
    numbers = np.searchsorted(levels, labels.astype(str))
    weights, factors = _learn_scaling(model, X, numbers, design, levels.tolist())
    scaling = StudyScaling(tuple(levels.tolist()), weights, factors, own)
    return StudyInput(scaling.apply(X, numbers), coding, design, scaling, labels)


def _check_model(model: SparseGraphSVD, X: Any) -> None:
    if model.center != "columns":
        raise InputError(f"center={model.center!r} but each study is centred by itself: use center='columns'")
    if kind_of(X) not in ("dense", "sparse"):
        what = "a Dask array" if kind_of(X) == "blocks" else f"a {type(X).__name__}"
        raise InputError(f"X is {what}, whose studies cannot be scaled: give an array or a sparse matrix in memory")


def study_labels(studies: Any, n_samples: int, names: Array | None) -> Array:
    """The label of each sample as text; a Series, or a table of one column, is matched by name if both have names."""
    series = _as_series(studies)
    own = names_of_index(series.index)
    if own is not None and names is not None and not np.array_equal(own, names):
        index = pd.Index(own)
        if not index.is_unique:
            twice = shown(str(index[index.duplicated()][0]))
            raise InputError(
                f"sample {twice} occurs twice in studies, so that labels cannot be matched by name: give every sample "
                "one label, or labels without names in the order of X",
                ["studies"],
            )
        series = series.reindex(pd.Index(names))
    if len(series) != n_samples:
        raise InputError(
            f"studies has {len(series):,} label{'s' * (len(series) != 1)} but X has {n_samples:,} samples: one label "
            "per sample is needed",
            ["studies"],
        )
    missing = series.isna().to_numpy(dtype=bool) | (series.astype(str).str.strip() == "").to_numpy(dtype=bool)
    if missing.any():
        at = np.flatnonzero(missing)
        listed = some_names([str(place if names is None else names[place]) for place in at])
        raise InputError(
            f"studies has no label for {at.size:,} sample{'s' * (at.size != 1)} ({listed}): give every sample the name "
            "of its study, or leave these samples out",
            ["studies"],
        )
    return text_labels(series)


def _as_series(studies: Any) -> pd.Series[Any]:
    """Labels with their names, if they have some."""
    if isinstance(studies, pd.DataFrame):
        if studies.shape[1] != 1:
            raise InputError(f"studies is a table with {studies.shape[1]} columns: give one of them", ["studies"])
        return studies.iloc[:, 0]
    return studies if isinstance(studies, pd.Series) else pd.Series(np.ravel(np.asarray(studies, dtype=object)))


def _check_levels(levels: Array, counts: Indices) -> None:
    if len(levels) < 2:
        raise InputError(f"studies has one label only, {shown(str(levels[0]))}: fit without `studies`", ["studies"])
    if (counts < _FEWEST).any():
        single = [str(level) for level in levels[counts < _FEWEST]]
        raise InputError(
            f"study {some_names(single)} has one sample, of which nothing is left after centring: leave it out, or add "
            "samples",
            ["studies"],
        )


def _learn_scaling(
    model: SparseGraphSVD, X: Matrix, numbers: Indices, design: Floats, names: Sequence[str]
) -> tuple[Floats, Floats | None]:
    """Weights and factors of every study."""
    norms, factors = np.empty(len(names)), np.ones((len(names), X.shape[1]))
    for study, name in enumerate(names):
        own = numbers == study
        norms[study], found = _one_study(X[own], basis_of(design[own]), model)
        factors[study] = 1.0 if found is None else found
        rounding = 10 * float(np.finfo(X.dtype).eps)
        if not norms[study] > rounding**2 * float(np.nansum(np.square(stored_values(X[own]), dtype=np.float64))):
            raise InputError(f"study {shown(name)} does not vary, at least not beyond its covariates: leave it out")
    return np.sqrt(norms.mean() / norms), factors if model.scale else None


def _one_study(X: Matrix, basis: Floats, model: SparseGraphSVD) -> tuple[float, Floats | None]:
    """The squared norm of a study after centring and scaling, and its factors."""
    design = basis if basis.shape[1] else None
    if has_missing(X):
        varies = ~np.isnan(X).all(axis=0)  # a gene may be missing in one of the studies
        scaler = learn_from_observed(X[:, varies], "columns", model.scale, design)
        factors = np.ones(X.shape[1])
        factors[varies] = 1.0 if scaler.factors is None else scaler.factors
        return float(np.nansum(scaler.apply(X[:, varies], design).astype(np.float64) ** 2)), factors
    data = as_operator(X, low_memory=True)
    scaler = Scaler.learn(data, "columns", model.scale, design)
    return scaler.operator(data, design).squared_norm, scaler.factors


# ----------------------------------------------------------------------------------------------------------------
# Covariates within each study
# ----------------------------------------------------------------------------------------------------------------


def _learn_table(
    labels: Array, levels: Sequence[str], covariates: Any, names: Array | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The studies and the covariates within each study as a table, and the names of the covariates."""
    table = pd.DataFrame({_STUDY: _as_category(labels, levels)})
    if covariates is None:
        return table, ()
    given, is_table = as_table(covariates, len(labels), names)
    check_complete(given, names)
    for name in given.columns:
        values = given[name].reset_index(drop=True)
        covariate_of(str(name), values, is_table)  # for its warnings and errors
        for study in levels:
            table[_within(str(name), study)] = _only_within(values, labels == study, None)
    return table, tuple(map(str, given.columns))


def _as_category(labels: Array, levels: Sequence[str]) -> Any:
    known: Any = list(levels)
    return pd.Categorical(labels.astype(str), categories=known)


def _within(name: str, study: str) -> str:
    return f"{name} in {study}"


def _only_within(values: pd.Series[Any], own: Array, known: Covariate | None) -> Any:
    """A covariate within one study: samples of others have the mean, or the reference level, of this study."""
    if holds_numbers(values) if known is None else known.levels is None:
        numbers = values.to_numpy(dtype=np.float64)
        return np.where(own, numbers, numbers[own].mean() if known is None else known.mean)
    texts = text_labels(values)
    reference = min(texts[own]) if known is None else (known.levels or ("",))[0]
    return np.where(own, texts, reference)


def study_of_new(
    model: SparseGraphSVD, studies: Any, covariates: Any, n_samples: int, names: Array | None
) -> tuple[Indices, Floats]:
    """The number of the study of each of some samples that a model is applied to, and their design matrix."""
    scaling, coding = model.study_scaling_, model.covariate_coding_
    if scaling is None or coding is None or studies is None:
        known = "" if scaling is None else f" ({some_names(scaling.names)})"
        raise InputError(
            f"the model was fitted to several studies{known}: say which one each sample belongs to (`studies`)",
            ["studies"],
        )
    labels = study_labels(studies, n_samples, names)
    return scaling.numbers(labels), _new_design(scaling, coding, labels, covariates, names)


def _new_design(
    scaling: StudyScaling, coding: CovariateCoding, labels: Array, covariates: Any, names: Array | None
) -> Floats:
    """The design matrix of other samples of the studies of a fit."""
    if isinstance(covariates, Design):
        return covariates.values
    table = pd.DataFrame({_STUDY: _as_category(labels, scaling.names)})
    if (covariates is not None) != bool(scaling.covariates):
        wanted = f"with covariates ({some_names(scaling.covariates)})" if scaling.covariates else "without covariates"
        raise InputError(
            f"the model was fitted {wanted}: give these samples' covariates in the same way (`covariates`)"
        )
    if covariates is not None:
        given, _ = as_table(covariates, len(labels), names)
        if absent := [name for name in scaling.covariates if name not in given]:
            raise InputError(f"covariate {shown(absent[0])} of the fit is not a column of the table: add it")
        check_complete(given, names)
        known = {each.name: each for each in coding.covariates}
        for name in scaling.covariates:
            for study in scaling.names:
                within = _within(name, study)
                table[within] = _only_within(given[name].reset_index(drop=True), labels == study, known[within])
    return coding.encode(table, len(labels), None)


# ----------------------------------------------------------------------------------------------------------------
# Fitted models
# ----------------------------------------------------------------------------------------------------------------


def store_studies(model: SparseGraphSVD, given: StudyInput, operator: Corrected) -> None:
    """Set the fitted attributes of a model that describe its studies; `operator` is its matrix before smoothing."""
    model.study_scaling_, model.study_labels_, model.studies_ = given.scaling, given.labels, None
    if given.scaling is not None and given.labels is not None:
        numbers = given.scaling.numbers(given.labels)
        found = study_numbers(operator, model.components_, numbers, len(given.scaling.names))
        model.studies_ = studies_table(model, given.scaling, found)


def own_studies(model: SparseGraphSVD) -> Array | None:
    """The study of each sample that a model was fitted to; None if it was fitted to one study."""
    return model.study_labels_


def rescaled(model: SparseGraphSVD, X: Matrix, rows: Any = slice(None), columns: Any = slice(None)) -> Matrix:
    """X' for some samples (and features) of the fit, to which `scaler_` applies; X itself if there is one study."""
    scaling, labels = model.study_scaling_, model.study_labels_
    if scaling is None or labels is None:
        return X
    return scaling.apply(X, scaling.numbers(labels)[rows], columns)


def as_one_study(model: SparseGraphSVD, X: Any) -> tuple[SparseGraphSVD, Any]:
    """The modules of several studies as those of one study with covariates, and its data.

    The samples of each study are scaled and weighted, and indicators of the studies are covariates: a fit of the
    returned model to the returned data, with its own covariates, finds the same modules. Functions that do not know
    several studies, such as `n_modules` and `graph_value`, can be used with both. If the model was fitted to one study,
    model and data are returned unchanged.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted to X.
    X : array, DataFrame or sparse matrix

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies((60, 80), 300, lives=((0, 1),), background=0, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    >>> plain, data = netbic.selection.as_one_study(model, simulated.X)
    >>> netbic.selection.n_modules(plain, data, most=3, random_state=0).n
    1
    """
    if model.study_scaling_ is None:
        return model, X
    labels = own_studies(model)
    if labels is None or len(labels) != X.shape[0]:
        raise InputError("the model was fitted to several studies, to other samples than those in X: give the same X")
    return without_studies(model), rescaled(model, X)


def without_studies(model: SparseGraphSVD) -> SparseGraphSVD:
    """The model as that of one study with covariates, for data that were scaled already."""
    made = copy.copy(model)
    made.scale, made.study_scaling_, made.study_labels_ = False, None, None
    return made
