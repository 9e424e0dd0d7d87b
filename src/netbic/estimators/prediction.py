"""What a fitted model says about samples: scores, reconstructions, and the variance that its modules explain.

Modules are not orthogonal: `transform` gives least-squares scores, and the explained variance is adjusted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import orth
from sklearn.base import BiclusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Bools, Floats, Indices, checked, kind_of
from netbic.errors import InputError, some_names
from netbic.estimators.covariates import design_of_new, training_design
from netbic.estimators.inputs import axis_names, has_missing, validated
from netbic.estimators.results import DEPENDENT, names_of, triangle_of
from netbic.estimators.studies import as_matrix, as_one_study, study_of_new
from netbic.graph import Graph
from netbic.identifiers import explain_mismatch, hardly_match
from netbic.operators.base import as_operator
from netbic.operators.blocks import compute_rows
from netbic.operators.smoothing import Smoother

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

MIN_FEATURES: Final = 5  # of a module that other data have: with fewer, it is neither scored nor judged
_LEAST_AVAILABLE = 0.2  # share of the features of a module without which it is not scored
_LEAST_OBSERVED = 0.1  # share of the squared entries of v without which a score is not computed
_LISTED = 3  # modules that lack features, in a message


# scikit-learn has no types: mypy cannot check its base classes.
class Prediction(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Methods of `SparseGraphSVD` that apply a fitted model to samples."""

    def fit_transform(
        self: SparseGraphSVD, X: Any, y: object = None, *, covariates: Any = None, studies: Any = None
    ) -> Array:
        """Fit, and return the scores of the same samples."""
        X, studies = as_matrix(X, studies)
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
        X, design = _validated(self, X, covariates, studies)
        if self.diffusion_:
            check_complete(X)
        if self.missing != "error" and has_missing(X):
            return observed_scores(self.scaler_.apply(X, design), self.components_)
        return _projected(self, X, score_directions(self), design)

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
        X, design = _validated(self, X, covariates, studies)
        if self.missing != "error" and has_missing(X):
            scaled = self.scaler_.apply(X, design)
            residual = scaled - observed_scores(scaled, self.components_) @ self.components_
            total = float(np.nansum(np.square(scaled)))
            return 1 - float(np.nansum(np.square(residual))) / total if total > 0 else 0.0
        projected = _projected(self, X, span(self.components_.astype(np.float64)), design)
        total = self.scaler_.operator(as_operator(X, low_memory=True), design, fitted=False).squared_norm
        return float(np.sum(projected.astype(np.float64) ** 2)) / total if total > 0 else 0.0

    def get_submatrix(self: SparseGraphSVD, i: int, data: Any) -> Any:
        """The entries of `data` in the rows and columns of module i; of a Dask array no others are read."""
        rows, columns = self.get_indices(i)
        if kind_of(data) == "operator":
            return data.submatrix(rows, columns)
        if kind_of(data) == "dask":
            return data[rows][:, columns].compute()
        return BiclusterMixin.get_submatrix(self, i, checked(data))

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
    X, studies = as_matrix(X, studies)
    names, X = axis_names(X)[0], validated(model, X, reset=False)
    if model.study_scaling_ is None:
        if studies is not None:
            raise InputError("studies are given, but the model was fitted to one study: omit them", ["studies"])
        return X, design_of_new(model, covariates, int(X.shape[0]), names)
    numbers, design = study_of_new(model, studies, covariates, int(X.shape[0]), names)
    return model.study_scaling_.apply(X, numbers), design


def _projected(model: SparseGraphSVD, X: Any, directions: Array, design: Floats | None) -> Array:
    """Products of centred and scaled rows with some directions."""
    products = compute_rows(X, model.scaler_.project, directions.astype(X.dtype, copy=False))
    if design is None or model.scaler_.effects is None:
        return products
    return np.asarray(products - design @ model.scaler_.project_effects(directions), dtype=products.dtype)


def module_scores(model: SparseGraphSVD, X: Any, covariates: Any = None) -> Floats:
    """Scores Xv of samples, a column per module, where X is centred, scaled and smoothed as in the fit.

    Each module is scored on its own: `transform` gives the least-squares scores on all modules together. With missing
    entries, a score is the least-squares score on the observed ones, and NaN if they have less than a tenth of the
    weight of the module. The `covariates` of a model that was fitted with any are needed for other samples than those
    of the fit.
    """
    given, names = X, axis_names(X)[0]
    X = validated(model, X, reset=False)
    of_fit = covariates is None and model.covariates_ is not None
    model, X = as_one_study(model, X)
    if of_fit:
        design = training_design(model, X if names is None else given)
    else:
        design = design_of_new(model, covariates, X.shape[0], names)
    components = model.components_.astype(np.float64)
    if model.diffusion_:
        check_complete(X)
    if has_missing(X):
        # The sum of x v over observed entries, divided by that of v^2: what imputation with the prediction of the
        # module converges to.
        scaled = model.scaler_.apply(X, design)
        seen = ~np.isnan(scaled)
        products, observed = np.where(seen, scaled, 0.0) @ components.T, seen @ (components**2).T
        return np.where(observed < _LEAST_OBSERVED, np.nan, products / np.maximum(observed, _LEAST_OBSERVED))
    scores = np.asarray(_projected(model, X, own_directions(model), design), dtype=np.float64)
    if of_fit and design is not None:
        # In the fit, scores are not correlated with the covariates; if they are, these are other samples.
        products = np.abs(design.T @ scores)
        sizes = np.outer(np.linalg.norm(design, axis=0), np.linalg.norm(scores, axis=0))
        sizes += np.linalg.norm(model.scaler_.offsets) * np.sqrt(len(scores))
        if (products > 10 * float(np.finfo(X.dtype).eps) ** 0.5 * sizes).any():
            raise InputError(
                "X are not the samples of the fit, and the model was fitted with covariates: give those of X, too "
                "(`covariates`)",
                ["covariates"],
            )
    return scores


def distance_from_fit(model: SparseGraphSVD, scores: Floats) -> Floats:
    """How far the median sample is from the mean of the fit in each module, in standard deviations of its scores."""
    spreads = model.singular_values_ / np.sqrt(len(model.left_vectors_))
    medians = pd.DataFrame(np.abs(scores)).median().to_numpy()  # of the scores that are known
    return np.asarray(medians / np.maximum(spreads, np.finfo(float).tiny))


def enough_features(available: Indices, sizes: Indices) -> Bools:
    """Whether modules can be scored with the features that other data have of them; all are always enough."""
    return np.asarray((available >= np.minimum(MIN_FEATURES, sizes)) & (available >= _LEAST_AVAILABLE * sizes))


def scored_modules(
    model: SparseGraphSVD, there: Bools, names: Iterable[Any] | None, lack: str, feature_name: str
) -> Bools:
    """Which modules can be scored in other data, of which `there` says which features of the fit they have.

    It is an error if there is none. If the other data lack features of modules, a warning says of which modules; `lack`
    says what happens to these features. `names` are those of the features of the other data, if they have any.
    """
    used, many = model.columns_.any(axis=0), f"{feature_name}s"
    sizes, available = model.columns_.sum(axis=1), model.columns_[:, there].sum(axis=1)
    enough = enough_features(available, sizes)
    order = np.argsort(available / np.maximum(sizes, 1), kind="stable")
    found = [f"module {k + 1}: {available[k]:,} of {sizes[k]:,} {many}" for k in order if available[k] < sizes[k]]
    if not found:
        return enough
    listed = f"(found: {some_names(found, _LISTED, quoted=False)})"
    n_found, n_used = int(np.count_nonzero(used & there)), int(np.count_nonzero(used))
    known = [] if names is None else list(names)
    needed = f"at least a fifth of its {many}, and {MIN_FEATURES} or all of them, are needed"
    if enough.any():
        what = f"{n_used - n_found:,} of {n_used:,} {many} of the modules {lack} {listed}"
        if without := (np.flatnonzero(~enough) + 1).tolist():
            what += f"; no scores of module{'s' * (len(without) > 1)} "
            what += f"{some_names(without, 2 * _LISTED, quoted=False)} ({needed})"
    else:
        what = f"no module has enough {many} in these data {listed}: {needed}"
    if known and hardly_match(n_found, n_used, len(known)):
        what += f". {explain_mismatch(known, names_of(model, 'columns'), ('data', 'modules')).text()}"
    elif not enough.any():
        what += f". Give data with more {many} of the modules"
    if not enough.any():
        raise InputError(what)
    warnings.warn(what, stacklevel=4)
    return enough


def score_directions(model: SparseGraphSVD) -> Floats:
    """The matrix of shape (n_features, n_components_) that maps centred and scaled samples to their scores."""
    vectors = model.components_.astype(np.float64)
    triangle = triangle_of(vectors)
    if triangle is None:
        return _smoothed(model, np.asarray(np.linalg.pinv(vectors)))  # V'(VV')^+
    return _smoothed(model, np.linalg.solve(triangle, np.linalg.solve(triangle.T, vectors)).T)


def own_directions(model: SparseGraphSVD) -> Floats:
    """The same for the scores Xv of each module on its own."""
    return _smoothed(model, model.components_.T.astype(np.float64))


def _smoothed(model: SparseGraphSVD, directions: Floats) -> Floats:
    """Diffusion is symmetric: smoothed directions give the scores of smoothed samples."""
    by = smoother(model.graphs_["columns"], model.diffusion_)
    return directions if by is None else np.asarray(by.columns(directions))


def smoother(graph: Graph | None, weight: float) -> Smoother | None:
    """The smoother of this weight with the normalised term of a graph; None if it would change nothing."""
    if graph is None or not weight or not graph.n_edges:
        return None
    return Smoother(graph.term("normalized", relative=True).matrix, weight)


def check_complete(X: Any) -> None:
    """Raise if entries are missing: a missing entry has no neighbours to share its value with."""
    if has_missing(X):
        raise ValueError(
            "X has missing entries, which cannot be smoothed: fill them first, e.g. by sklearn.impute.SimpleImputer, "
            "or use diffusion=None"
        )


# Projection on modules


def observed_scores(scaled: Array, vectors: Array) -> Array:
    """Least-squares scores from the observed entries of each row (zeros for a row without any)."""
    scores = np.zeros((len(scaled), len(vectors)), dtype=scaled.dtype)
    for row, entries in enumerate(scaled):
        seen = ~np.isnan(entries)
        scores[row] = np.linalg.lstsq(vectors[:, seen].T, entries[seen], rcond=None)[0]
    return scores


def span(vectors: Floats) -> Floats:
    """An orthonormal basis (in columns) of the span of the rows, without nearly dependent directions."""
    return np.asarray(orth(vectors.T, rcond=DEPENDENT)) if len(vectors) else np.empty((vectors.shape[1], 0))
