"""What a fitted model says about samples: scores, reconstructions, and the variance that its modules explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Floats, checked
from netbic.estimators.covariates import design_of_new
from netbic.estimators.inputs import axis_names
from netbic.estimators.new_samples import explained_share, scores_of

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD


# scikit-learn has no types: mypy cannot check its base classes.
class Prediction(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of `SparseGraphSVD` that apply a fitted model to samples."""

    def fit_transform(self: SparseGraphSVD, X: Any, y: object = None, *, covariates: Any = None) -> Array:
        """Fit, and return the scores of the same samples."""
        given = {} if covariates is None else {"covariates": covariates}  # subclasses need not know them
        scores: Array = self.fit(X, y, **given).transform(X, **given)
        return scores

    def transform(self: SparseGraphSVD, X: Any, *, covariates: Any = None) -> Array:
        """Least-squares scores of samples on the modules' features: (X - mean) V'(VV')^+.

        If the data were smoothed in the fit, new samples are smoothed in the same way. If the model was fitted with
        covariates, those of these samples are needed, and the effects found in the fit are subtracted.
        """
        check_is_fitted(self)
        return scores_of(self, *_validated(self, X, covariates))

    def inverse_transform(self: SparseGraphSVD, X: ArrayLike, *, covariates: Any = None) -> Array:
        """Reconstruct samples from scores, in the units of the training data (smooth if these were smoothed).

        The effects of covariates are added if they are given; otherwise samples are reconstructed as if they had the
        mean covariates of the fit.
        """
        check_is_fitted(self)
        scores = np.asarray(checked(X, "scores"))
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(f"scores have shape {scores.shape}: (n_samples, {self.n_components_}) is needed")
        design = None if covariates is None else design_of_new(self, covariates, len(scores), None)
        return self.scaler_.undo(scores @ self.components_, design)

    def score(self: SparseGraphSVD, X: Any, y: object = None, *, covariates: Any = None) -> float:
        """Share of the variance of X (centred and scaled as the training data, never smoothed) that modules explain.

        If the model was fitted with covariates, those of these samples are needed; their effects do not count as
        variance of X.
        """
        check_is_fitted(self)
        return explained_share(self, *_validated(self, X, covariates))

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


def _validated(model: SparseGraphSVD, X: Any, covariates: Any) -> tuple[Any, Floats | None]:
    """Samples, and their covariates as a design matrix."""
    names, X = axis_names(X)[0], model._validated(X, reset=False)
    return X, design_of_new(model, covariates, int(X.shape[0]), names)
