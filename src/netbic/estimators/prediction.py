"""What a fitted model says about samples: scores, reconstructions, and the variance that its modules explain."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Floats, checked, kind_of
from netbic.errors import InputError
from netbic.estimators.covariates import design_of_new
from netbic.estimators.inputs import axis_names
from netbic.estimators.new_samples import explained_share, scores_of
from netbic.estimators.studies import study_of_new, with_studies

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD
    from netbic.operators import Scaler


# scikit-learn has no types: mypy cannot check its base classes.
class Prediction(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of `SparseGraphSVD` that apply a fitted model to samples."""

    def fit_transform(
        self: SparseGraphSVD, X: Any, y: object = None, *, covariates: Any = None, studies: Any = None
    ) -> Array:
        """Fit, and return the scores of the same samples."""
        X, studies = with_studies(X, studies)
        known = {"covariates": covariates, "studies": studies}
        given = {name: value for name, value in known.items() if value is not None}  # subclasses need not know them
        scores: Array = self.fit(X, y, **given).transform(X, **given)
        return scores

    def transform(self: SparseGraphSVD, X: Any, *, covariates: Any = None, studies: Any = None) -> Array:
        """Least-squares scores of samples on the modules' features: (X - mean) V'(VV')^+.

        If the data were smoothed in the fit, new samples are smoothed in the same way. If the model was fitted with
        covariates, those of these samples are needed, and the effects found in the fit are subtracted. If it was fitted
        to several studies, the study of each sample is needed: samples are centred and scaled like those of their
        study in the fit. A study that was not in the fit is an error.
        """
        check_is_fitted(self)
        return scores_of(self, *_validated(self, X, covariates, studies))

    def inverse_transform(self: SparseGraphSVD, X: ArrayLike, *, covariates: Any = None, studies: Any = None) -> Array:
        """Reconstruct samples from scores, in the units of the training data (smooth if these were smoothed).

        The effects of covariates are added if they are given; otherwise samples are reconstructed as if they had the
        mean covariates of the fit. If the model was fitted to several studies, the study of each sample is needed.
        """
        check_is_fitted(self)
        scores = np.asarray(checked(X, "scores"))
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(f"scores have shape {scores.shape}: (n_samples, {self.n_components_}) is needed")
        if self.study_scaling_ is not None:
            numbers, own = study_of_new(self, studies, covariates, len(scores), None)
            return self.study_scaling_.undo(self.scaler_.undo(scores @ self.components_, own), numbers)
        design = None if covariates is None else design_of_new(self, covariates, len(scores), None)
        return self.scaler_.undo(scores @ self.components_, design)

    def score(self: SparseGraphSVD, X: Any, y: object = None, *, covariates: Any = None, studies: Any = None) -> float:
        """Share of the variance of X (centred and scaled as the training data, never smoothed) that modules explain.

        If the model was fitted with covariates, or to several studies, those of these samples are needed; effects of
        covariates do not count as variance of X.
        """
        check_is_fitted(self)
        return explained_share(self, *_validated(self, X, covariates, studies))

    def get_submatrix(self: SparseGraphSVD, i: int, data: Any) -> Any:
        """The entries of `data` in the rows and columns of module i; of a Dask array no others are read."""
        rows, columns = self.get_indices(i)
        if kind_of(data) == "operator":
            return data.submatrix(rows, columns)
        if kind_of(data) == "dask":
            return data[rows][:, columns].compute()
        return BiclusterMixin.get_submatrix(self, i, checked(data))

    @property
    def preparation_(self: SparseGraphSVD) -> Scaler:
        """Earlier name of `scaler_`."""
        warnings.warn("preparation_ is called scaler_ now", FutureWarning, stacklevel=2)
        return self.scaler_

    @property
    def covariate_effects_(self: SparseGraphSVD) -> pd.DataFrame | None:
        """Coefficients of the covariates in every feature: a row per column of `covariates_`; None without any."""
        check_is_fitted(self)
        if self.covariates_ is None:
            return None
        effects = np.empty((0, self.n_features_in_)) if self.scaler_.effects is None else self.scaler_.effects
        return pd.DataFrame(effects, index=self.covariates_.columns, columns=self.names_["columns"])

    @property
    def _n_features_out(self: SparseGraphSVD) -> int:
        return int(self.n_components_)


def _validated(model: SparseGraphSVD, X: Any, covariates: Any, studies: Any) -> tuple[Any, Floats | None]:
    """Samples, and their covariates as a design matrix."""
    X, studies = with_studies(X, studies)
    names, X = axis_names(X)[0], model._validated(X, reset=False)
    if model.study_scaling_ is None:
        if studies is not None:
            raise InputError("studies are given, but the model was fitted to one study: omit them", ["studies"])
        return X, design_of_new(model, covariates, int(X.shape[0]), names)
    numbers, design = study_of_new(model, studies, covariates, int(X.shape[0]), names)
    return model.study_scaling_.apply(X, numbers), design
