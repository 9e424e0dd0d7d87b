"""SparseGraphPLS and SparseGraphCCA: pairs of sparse vectors of the features of two tables of the same samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from netbic.arrays import Array, Floats, check_choice, checked, is_sparse, kind_of, without_names
from netbic.errors import some_names
from netbic.estimators.covariates import CovariateCoding, design_of_new, store_covariates
from netbic.estimators.inputs import axis_names, has_missing, one_blas_thread, scale_data, validated_table
from netbic.estimators.parameters import build_axis, check_solver_parameters, is_number, iteration_settings
from netbic.operators.corrected import Corrected, Scaler
from netbic.operators.cross import Table, Whitening
from netbic.operators.masked import learn_from_observed
from netbic.penalties import Penalty
from netbic.solver.pairs import PAIR_DEFLATIONS, Pair, PairSearch
from netbic.solver.search import Axis, diagnostics, pair_words

COVARIANCES = ("diagonal", "ridge", "full")
MISSING = ("error", "ignore")
_SMALLEST, _LARGEST = 1e-140, 1e140  # of the product of both norms
_RANK = 1e-10  # squared singular values below this share of the largest one are zero


class PreparedTable(NamedTuple):
    """One of two tables: centred, scaled and, for some models, whitened."""

    operator: Corrected
    noise: float  # the norm that rounding errors alone can reach
    scaler: Scaler
    whitening: RidgeWhitening | None

    @property
    def table(self) -> Table:
        """The table as the solver needs it."""
        return Table(self.operator, None if self.whitening is None else self.whitening.rows)


# scikit-learn has no types: mypy cannot check its base classes.
class TwoTableModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators for two tables; see `SparseGraphPLS` for parameters and attributes."""

    n_components: int
    deflation: str
    missing: str
    scale: bool = True

    # Set by `fit`. Earlier versions of netbic stored models without them.
    covariates_: pd.DataFrame | None = None
    covariate_coding_: CovariateCoding | None = None
    study_scaling_: None = None  # two tables are one study

    def _whitening(self, operator: Corrected, name: str) -> RidgeWhitening | None:
        """The whitening of a centred and scaled table; by default none."""
        return None

    def _check(self) -> None:
        """Raise if a parameter that does not depend on the data has no valid value."""
        check_solver_parameters(self)
        check_choice("deflation", self.deflation, PAIR_DEFLATIONS)
        check_choice("missing", self.missing, MISSING)

    def fit(
        self,
        X: Any,
        Y: Any = None,
        *,
        y: Any = None,
        covariates: Any = None,
        y_start: Any = None,
        table_names: tuple[str, str] = ("X", "Y"),
    ) -> Self:
        """Find pairs of sparse vectors of the features of X and of Y.

        Parameters
        ----------
        X, Y : arrays, DataFrames or sparse matrices of shapes (n_samples, n_x_features) and (n_samples, n_y_features)
            Two tables of the same samples, which are matched by name if both have names, else by position. They are not
            modified. Sparse matrices are never made dense. A vector Y is a table with one feature.
        y : the name of Y in scikit-learn
        covariates : DataFrame, or array of numbers of shape (n_samples, n_covariates), optional
            Their effects are removed from both tables before the search, as by `SparseGraphSVD.fit`. Rows are matched
            to the samples of X.
        y_start : array of shape (n_y_features, n_components), optional
            Weights of Y from which each pair starts, in columns. None: the leading singular vectors of what is left of
            the cross-product.
        table_names : pair of str
            What the tables are called in sentences, tables and figures, such as ("RNA", "protein").
        """
        self._check()
        self.table_names_ = _check_names(table_names)
        Y = self._second(Y, y)
        names = {"samples": axis_names(X)[0], "x": axis_names(X)[1], "y": axis_names(Y)[1]}
        Y = in_order_of(X, Y) if Y is not None else None
        X = validated_x(self, X, reset=True)
        Y, self._y_is_vector = validated_y(self, Y, reset=True)
        x_axis, x_graph = build_axis(self, "x", X.shape[1], names["x"])
        y_axis, y_graph = build_axis(self, "y", Y.shape[1], names["y"])
        coding, design = None, None
        if covariates is not None:
            coding, design = CovariateCoding.learn(covariates, X.shape[0], names["samples"])
        with one_blas_thread():
            tables = self.prepared(X, "X", design), self.prepared(Y, "Y", design)
            norms = [float(np.sqrt(table.operator.squared_norm)) for table in tables]
            size = norms[0] * norms[1]
            if size and not _SMALLEST < size < _LARGEST:
                raise ValueError(
                    f"products of the entries of X and Y leave the range of numbers (their norms are {norms[0]:.3g} "
                    f"and {norms[1]:.3g}): use scale=True, or rescale both tables"
                )
            # Of the cross-product, by rounding errors alone.
            noise = tables[0].noise * norms[1] + tables[1].noise * norms[0]
            settings = iteration_settings(self, np.result_type(X, Y))
            deflation: Any = self.deflation  # a plain string to mypy; `_check` has verified it
            starts = _check_starts(y_start, Y.shape[1], self.n_components)
            x, y = (table.table for table in tables)
            search = PairSearch(x, y, x_axis, y_axis, settings, deflation, noise, starts)
            pairs: list[Pair] = []
            for _, pair in zip(range(self.n_components), search, strict=False):
                pairs.append(pair)
                if self.verbose:
                    print(f"pair {len(pairs)}: d = {pair.module.d:.6g}, {len(pair.module.objectives)} iterations")
        self.names_, self.graphs_ = names, {"x": x_graph, "y": y_graph}
        found, words = ([pair.module for pair in pairs], self.n_components, search.ended), pair_words(table_names)
        for message, category in diagnostics(*found, x_axis, y_axis, settings, words):
            warnings.warn(message, category, stacklevel=2)
        self._store(pairs, *tables)
        store_covariates(self, coding, design, X.shape[0])
        return self

    @staticmethod
    def _second(Y: Any, y: Any) -> Any:
        """The second table, by either of its names."""
        if Y is not None and y is not None:
            raise ValueError("Y and y are both given: these are two names of the second table")
        return y if Y is None else Y

    def check(self, shape: tuple[int, int]) -> tuple[Axis, Axis]:
        """Check the parameters for two tables with so many features (by position); options of both axes."""
        self._check()
        return build_axis(self, "x", shape[0], None)[0], build_axis(self, "y", shape[1], None)[0]

    def prepared(self, table: Any, name: str, design: Floats | None = None) -> PreparedTable:
        """A validated table, without the effects of covariates, centred, scaled and whitened as by `fit`."""
        design = None if design is None or not design.shape[1] else design
        if has_missing(table):
            scaler = learn_from_observed(table, "columns", self.scale, design, ddof=1, name=name)
            operator, noise, _ = scale_data(_filled(scaler, table, design), center=None, name=name)
        else:
            operator, noise, scaler = scale_data(table, design, scale=self.scale, ddof=1, name=name)
        return PreparedTable(operator, noise, scaler, self._whitening(operator, name))

    def scores_of(self, side: str, table: Any, design: Floats | None = None) -> Array:
        """Scores of samples by a validated table of the features of X ("x") or of Y ("y").

        `design` has the covariates of the samples, if the model was fitted with covariates.
        """
        scaler, rotations = self.scalers_[side], getattr(self, f"{side}_rotations_")
        if has_missing(table):
            return np.asarray(_filled(scaler, table, design) @ rotations)
        scores = scaler.project(table, rotations)
        if design is not None and scaler.effects is not None:
            scores = scores - design @ scaler.project_effects(rotations)
        return scores

    def residuals(self, side: str, table: Any, features: Any = slice(None)) -> Any:
        """Some features of the samples of the fit without the effects of the covariates; not centred or scaled."""
        if self.covariates_ is None or (effects := self.scalers_[side].effects) is None:
            return table
        values = table.toarray() if is_sparse(table) else table
        return values - self.covariates_.to_numpy() @ effects[:, features]

    def _design_of(self, X: Any, covariates: Any) -> Floats | None:
        """The covariates of samples that the fitted model is applied to, as a design matrix."""
        return design_of_new(self, covariates, _num_samples(X), axis_names(X)[0])

    def _store(self, pairs: list[Pair], x: PreparedTable, y: PreparedTable) -> None:
        """Set the fitted attributes that describe the pairs."""
        modules, (n, p), q = [pair.module for pair in pairs], x.operator.shape, y.operator.shape[1]
        self.x_weights_ = _columns([module.u.full() for module in modules], p)
        self.y_weights_ = _columns([module.v.full() for module in modules], q)
        self.x_support_, self.y_support_ = self.x_weights_.T != 0, self.y_weights_.T != 0
        self.x_scores_ = _columns([pair.x_scores for pair in pairs], n)
        self.y_scores_ = _columns([pair.y_scores for pair in pairs], n)
        predictor = self.x_scores_ if self.deflation == "regression" else self.y_scores_
        # Least-squares coefficients of each feature on the scores of each pair by itself: X't / t't.
        self.x_loadings_ = x.table.left_products(self.x_scores_).T / np.sum(self.x_scores_**2, axis=0)
        self.y_loadings_ = y.table.left_products(predictor).T / np.sum(predictor**2, axis=0)
        self.x_rotations_ = _rotations(x, self.x_weights_, None if self.deflation == "hotelling" else self.x_loadings_)
        self.y_rotations_ = _rotations(y, self.y_weights_, self.y_loadings_ if self.deflation == "canonical" else None)
        if self.deflation == "regression":  # the scores of Y itself, not of what earlier pairs leave
            self.y_scores_ = _columns([y.table.matvec(module.v.support, module.v.values) for module in modules], n)
        self.singular_values_ = np.array([module.d for module in modules])
        self.correlations_ = paired_correlations(self.x_scores_, self.y_scores_)
        self.n_components_ = len(modules)
        self.objectives_ = [module.objectives for module in modules]
        self.n_iter_ = max([1, *map(len, self.objectives_)])
        self.converged_ = np.array([module.outcome == "converged" for module in modules], dtype=bool)
        self.graph_share_ = np.array([module.graph_share for module in modules])
        self.scalers_ = {"x": x.scaler, "y": y.scaler}

    def transform(self, X: Any, Y: Any = None, *, y: Any = None, covariates: Any = None) -> Any:
        """Scores of samples: those of X, or a tuple of the scores of X and of Y if both are given.

        A model that was fitted with covariates needs those of these samples.
        """
        check_is_fitted(self)
        Y, values = self._second(Y, y), validated_x(self, X, reset=False)
        design = self._design_of(X, covariates)
        x_scores = self.scores_of("x", values, design)
        if Y is None:
            return x_scores
        Y, _ = validated_y(self, in_order_of(X, Y), reset=False)
        return x_scores, self.scores_of("y", Y, design)

    def fit_transform(self, X: Any, Y: Any = None, *, y: Any = None, covariates: Any = None) -> Any:
        """Fit, and return the scores of the same samples in X and in Y; those in X alone if Y is a vector."""
        Y = self._second(Y, y)
        self.fit(X, Y, covariates=covariates)
        return self.transform(X, None if self._y_is_vector else Y, covariates=covariates)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "x_weights_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


class SparseGraphPLS(RegressorMixin, TwoTableModel):  # type: ignore[misc]
    """Sparse partial least squares of two tables, with a prior graph on the features of either.

    Each component is a pair of sparse unit vectors u (features of X) and v (features of Y) that maximises ::

        u'X'Yv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - penalties,

    the covariance of the scores Xu and Yv (times n - 1) plus graph terms, with the solver of `SparseGraphSVD`. Tables
    are deflated before the next pair is searched for. Without sparsity and graphs these are PLS-SVD ("hotelling"), PLS
    in canonical mode ("canonical") and PLS regression ("regression").

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs to search for. The search ends with a warning if only rounding error is left.
    n_x, n_y : int, optional
        Number of features of X / Y in each pair (the L0 penalty). None: all, or as determined by the penalty.
    x_penalty, y_penalty : Penalty, optional
        A penalty object instead of a number, as for `SparseGraphSVD`. `BeyondBulk` takes the number of features from
        the data; penalties that choose it by BIC keep too many, as the noise of X'Y is not independent.
    x_graph, y_graph : Graph, sparse or dense array, networkx or igraph graph, or edge DataFrame, optional
        Prior graph of the features of X / Y. Matched by name if both the table and the graph have names.
    x_smoothness, y_smoothness : float, optional
        Weight of the graph; None: 0.6 with a graph (0.2 unless `smoothness_scale="module"`).
    smoothness_scale, graph_term, signs
        As for `SparseGraphSVD`.
    deflation : {"regression", "canonical", "hotelling"}, default="regression"
        With scores t = Xu and s = Yv: "regression" removes t from X and from Y (what X predicts of Y), "canonical"
        removes t from X and s from Y, "hotelling" subtracts d uv' from the cross-product X'Y, as PMA does.
    missing : {"error", "ignore"}, default="error"
        Treatment of missing entries (NaN). "ignore": means and standard deviations are those of the observed entries,
        and a missing entry adds nothing to scores and covariances, as if it were the mean of its feature. Tables with
        missing entries are dense.
    scale : bool, default=True
        Scale all features to unit standard deviation. They are always centred.
    solver, n_init, max_iter, tol, random_state, n_jobs, verbose
        As for `SparseGraphSVD`.

    Attributes
    ----------
    x_weights_, y_weights_ : ndarrays of shapes (n_x_features, n_components_) and (n_y_features, n_components_)
        The unit vectors u and v of every pair, in columns. The largest entry of each u is positive.
    x_support_, y_support_ : bool ndarrays of shapes (n_components_, n_x_features) and (n_components_, n_y_features)
        Which features belong to each pair.
    x_scores_, y_scores_ : ndarrays of shape (n_samples, n_components_)
        Scores of the samples, as `transform` gives them.
    x_loadings_, y_loadings_ : ndarrays
        Coefficients of every feature on the scores of each pair.
    x_rotations_, y_rotations_ : ndarrays
        Weights that give the scores of centred and scaled tables; those of `x_weights_` give scores of deflated ones.
    y_coefficients_ : ndarray of shape (n_components_, n_y_features)
        Least-squares coefficients of the (centred and scaled) features of Y on the scores of X.
    coef_ : ndarray of shape (n_y_features, n_x_features)
    intercept_ : ndarray of shape (n_y_features,)
        ``predict(X) = X @ coef_.T + intercept_``.
    singular_values_ : ndarray of shape (n_components_,)
        d = u'X'Yv in the deflated tables.
    correlations_ : ndarray of shape (n_components_,)
        Correlation of the scores of both tables. It is too large on the samples of the fit, as u and v were chosen for
        it: use `netbic.selection.pair_tests` for a p-value and the correlation in other samples.
    n_components_ : int
    n_iter_, converged_, objectives_, graph_share_
        As for `SparseGraphSVD`.
    names_, graphs_, scalers_ : dict
        Names of the "samples" and of the features "x" and "y"; graphs and scalers of "x" and "y".
    covariates_, covariate_coding_
        As for `SparseGraphSVD`.
    table_names_ : tuple of str
        What both tables are called.
    feature_names_in_, n_features_in_
        Those of X.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphPLS(1, n_x=8, n_y=5).fit(X, Y)
    >>> np.flatnonzero(model.y_support_[0])
    array([0, 1, 2, 3, 4])
    """

    y_coefficients_: Array

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_x: int | None = None,
        n_y: int | None = None,
        x_penalty: Penalty | None = None,
        y_penalty: Penalty | None = None,
        x_graph: Any = None,
        y_graph: Any = None,
        x_smoothness: float | None = None,
        y_smoothness: float | None = None,
        smoothness_scale: str = "module",
        graph_term: str = "modularity",
        signs: str = "absolute",
        deflation: str = "regression",
        missing: str = "error",
        scale: bool = True,
        solver: str = "auto",
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components, self.n_x, self.n_y = n_components, n_x, n_y
        self.x_penalty, self.y_penalty = x_penalty, y_penalty
        self.x_graph, self.y_graph = x_graph, y_graph
        self.x_smoothness, self.y_smoothness = x_smoothness, y_smoothness
        self.smoothness_scale, self.graph_term, self.signs = smoothness_scale, graph_term, signs
        self.deflation, self.missing, self.scale = deflation, missing, scale
        self.solver, self.n_init, self.max_iter, self.tol = solver, n_init, max_iter, tol
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    def _check(self) -> None:
        super()._check()
        check_choice("scale", self.scale, (False, True))

    def _store(self, pairs: list[Pair], x: PreparedTable, y: PreparedTable) -> None:
        super()._store(pairs, x, y)
        if self.deflation == "regression":  # the scores of X are orthogonal, and so is each coefficient a loading
            self.y_coefficients_ = self.y_loadings_.T
        else:
            self.y_coefficients_ = y.operator.left_products(np.asarray(np.linalg.pinv(self.x_scores_).T, np.float64))

    def predict(self, X: Any, *, covariates: Any = None) -> Array:
        """Y of samples: the least-squares prediction from the scores of X, in the units of Y.

        A model that was fitted with covariates needs those of these samples; the prediction has their effects.
        """
        check_is_fitted(self)
        values, design = validated_x(self, X, reset=False), self._design_of(X, covariates)
        predicted = self.scalers_["y"].undo(self.scores_of("x", values, design) @ self.y_coefficients_, design)
        return predicted[:, 0] if self._y_is_vector else predicted

    def score(self, X: Any, Y: Any = None, *, y: Any = None, covariates: Any = None) -> float:
        """The mean of R^2 of the predictions over the features of Y, in these samples."""
        from sklearn.metrics import r2_score  # takes long to load

        check_is_fitted(self)
        values, _ = validated_y(self, in_order_of(X, self._second(Y, y)), reset=False)
        values = values if isinstance(values, np.ndarray) else values.toarray()
        predicted = self.predict(X, covariates=covariates).reshape(len(values), -1)
        if not has_missing(values):
            return float(r2_score(values, predicted))
        known = [~np.isnan(column) for column in values.T]  # a feature needs two observed values to have an R^2
        parts = [r2_score(values[own, j], predicted[own, j]) for j, own in enumerate(known) if own.sum() > 1]
        return float(np.mean(parts))

    @property
    def coef_(self) -> Array:
        """Coefficients of the features of X: ``predict(X) = X @ coef_.T + intercept_``; made when asked for.

        With covariates, this is the prediction for samples whose covariates are the means of those of the fit.
        """
        check_is_fitted(self)
        x, y = self.scalers_["x"], self.scalers_["y"]
        effects = self.y_coefficients_ if y.factors is None else self.y_coefficients_ / y.factors
        rotations = self.x_rotations_ if x.factors is None else self.x_rotations_ * x.factors[:, None]
        return np.asarray(effects.T @ rotations.T)

    @property
    def intercept_(self) -> Array:
        """The prediction for a sample of zeros."""
        return np.asarray(self.scalers_["y"].offsets - self.coef_ @ self.scalers_["x"].offsets)


class SparseGraphCCA(TwoTableModel):
    """Sparse canonical correlation analysis of two tables, with a prior graph on the features of either.

    The features of both tables are centred and scaled to unit standard deviation. Each pair of sparse unit vectors u
    and v then maximises ::

        u'R'Sv + (su/2) |u|'M1|u| + (sv/2) |v|'M2|v| - penalties,

    where R and S are the tables themselves (`covariance="diagonal"`, as in the R package PMA) or tables whose features
    were made uncorrelated ("ridge", "full").

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs to search for. The search ends with a warning if only rounding error is left.
    n_x, n_y, x_penalty, y_penalty, x_graph, y_graph, x_smoothness, y_smoothness
        Sizes, penalties and graphs of the features of X and of Y, as for `SparseGraphPLS`.
    covariance : {"diagonal", "ridge", "full"}, default="diagonal"
        "diagonal": correlations between the features of a table are ignored; recommended if there are more features
        than samples. "ridge": X becomes X C^-1/2 with C = (1 - ridge) C0 + ridge I and the correlation matrix C0 of its
        features (Y likewise); u and v are sparse vectors of these whitened features, each of which is as similar as
        possible to the feature that it stands for. "full": C = C0, the textbook solution; it needs more samples than
        features, and no sparsity.
    ridge : float, default=0.1
        For `covariance="ridge"`, above 0 and at most 1; 1 is the same as "diagonal".
    smoothness_scale, graph_term, signs
        As for `SparseGraphSVD`.
    deflation : {"canonical", "hotelling", "regression"}, default="canonical"
        As for `SparseGraphPLS`: "canonical" makes the scores of different pairs uncorrelated within each table,
        "hotelling" is the rule of PMA.
    missing
        As for `SparseGraphPLS`.
    solver, n_init, max_iter, tol, random_state, n_jobs, verbose
        As for `SparseGraphSVD`.

    Attributes
    ----------
    x_weights_, y_weights_ : ndarrays of shapes (n_x_features, n_components_) and (n_y_features, n_components_)
        The unit vectors u and v of every pair, in columns; of whitened features for "ridge" and "full".
    x_rotations_, y_rotations_ : ndarrays
        Weights of the (centred and scaled) features that give the scores.
    x_support_, y_support_, x_scores_, y_scores_, x_loadings_, y_loadings_, singular_values_, correlations_
        As for `SparseGraphPLS`.
    n_components_, n_iter_, converged_, objectives_, graph_share_, names_, graphs_, scalers_, table_names_
        As for `SparseGraphPLS`.
    covariates_, covariate_coding_
        As for `SparseGraphSVD`.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> common = random.standard_normal((60, 1))
    >>> X[:, :8] += common
    >>> Y[:, :5] += common
    >>> model = netbic.SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
    >>> np.flatnonzero(model.y_support_[0])
    array([0, 1, 2, 3, 4])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_x: int | None = None,
        n_y: int | None = None,
        x_penalty: Penalty | None = None,
        y_penalty: Penalty | None = None,
        x_graph: Any = None,
        y_graph: Any = None,
        x_smoothness: float | None = None,
        y_smoothness: float | None = None,
        covariance: str = "diagonal",
        ridge: float = 0.1,
        smoothness_scale: str = "module",
        graph_term: str = "modularity",
        signs: str = "absolute",
        deflation: str = "canonical",
        missing: str = "error",
        solver: str = "auto",
        n_init: int = 1,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components, self.n_x, self.n_y = n_components, n_x, n_y
        self.x_penalty, self.y_penalty = x_penalty, y_penalty
        self.x_graph, self.y_graph = x_graph, y_graph
        self.x_smoothness, self.y_smoothness = x_smoothness, y_smoothness
        self.covariance, self.ridge = covariance, ridge
        self.smoothness_scale, self.graph_term, self.signs = smoothness_scale, graph_term, signs
        self.deflation, self.missing = deflation, missing
        self.solver, self.n_init, self.max_iter, self.tol = solver, n_init, max_iter, tol
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    def _check(self) -> None:
        super()._check()
        check_choice("covariance", self.covariance, COVARIANCES)
        if self.covariance == "ridge" and not (is_number(self.ridge) and 0 < self.ridge <= 1):
            raise ValueError(f"ridge={self.ridge!r}: a number above 0 and at most 1 is needed")
        sparse = {name: getattr(self, name) for name in ("n_x", "n_y", "x_penalty", "y_penalty", "x_graph", "y_graph")}
        given = [name for name, value in sparse.items() if value is not None]
        if self.covariance == "full" and given:
            raise ValueError(
                f"covariance='full' and {given[0]}={sparse[given[0]]!r}: the textbook solution is not sparse. Use "
                "covariance='ridge' or 'diagonal', or leave out sizes, penalties and graphs"
            )

    def _whitening(self, operator: Corrected, name: str) -> RidgeWhitening | None:
        if self.covariance == "diagonal":
            return None
        n, p = operator.shape
        if self.covariance == "full" and n <= p + 1:
            raise ValueError(
                f"covariance='full' but {name} has {n} samples and {p} features: more samples than features are "
                "needed. Use covariance='ridge' or 'diagonal'"
            )
        return RidgeWhitening(operator, self.ridge if self.covariance == "ridge" else 0.0)

    def score(self, X: Any, Y: Any = None, *, y: Any = None, covariates: Any = None) -> float:
        """Mean correlation of the scores of X and of Y over all pairs, in these samples."""
        check_is_fitted(self)
        scores = self.transform(X, self._second(Y, y), covariates=covariates)
        return float(np.mean(paired_correlations(*scores))) if self.n_components_ else 0.0


class RidgeWhitening:
    """The map X -> X R^-1/2 with R = (1 - ridge) S + ridge I, where S is the covariance matrix of a prepared table X.

    With X = U D V' and n samples, X R^-1/2 = W X for W = U diag(g) U' and g = ((1 - ridge) D^2 / (n - 1) + ridge)^-1/2,
    so that X itself is not changed, and R is never formed. A ridge of 0 is the covariance matrix itself, on the space
    of the samples; 1 is no whitening.
    """

    def __init__(self, X: Corrected, ridge: float) -> None:
        on_rows, self.X = X.shape[0] <= X.shape[1], X
        squares, vectors = eigh(X.gram(on_rows, 1.0, np.float64), lower=False, check_finite=False)
        kept = squares > _RANK * squares[-1]
        self.squares, vectors = squares[kept], vectors[:, kept]
        if not on_rows:
            every = np.arange(X.shape[1])
            vectors = X.products([(every, vector) for vector in vectors.T]).T / np.sqrt(self.squares)
        gains = ((1 - ridge) * self.squares / (X.shape[0] - 1) + ridge) ** -0.5
        self.rows, self.outside = Whitening(vectors, gains), ridge**-0.5 if ridge else 0.0

    def coefficients(self, weights: Array) -> Floats:
        """R^-1/2 times the weights of whitened features, of shape (p, K): weights of the features themselves.

        R^-1/2 = ridge^-1/2 I + V diag(g - ridge^-1/2) V', and V'w = D^-1 U'Xw. Without a ridge, only the second term.
        """
        every, vectors = np.arange(self.X.shape[1]), self.rows.vectors
        images = self.X.products([(every, column) for column in np.asarray(weights, dtype=np.float64).T]).T
        inside = vectors @ (((self.rows.gains - self.outside) / self.squares)[:, None] * (vectors.T @ images))
        return np.asarray(self.outside * weights + self.X.left_products(inside).T)


def _filled(scaler: Scaler, table: Array, design: Floats | None = None) -> Array:
    """A table, centred and scaled; a missing entry is the mean of its feature, zero."""
    scaled = scaler.apply(table, design)
    scaled[np.isnan(scaled)] = 0
    return scaled


def _columns(vectors: list[Floats], size: int) -> Floats:
    return np.array(vectors).reshape(len(vectors), size).T


def _rotations(table: PreparedTable, weights: Floats, loadings: Floats | None) -> Floats:
    """R such that X R are the scores: W (P'W)^-1 if the scores of earlier pairs were projected out, else W."""
    rotations = weights
    if loadings is not None and weights.shape[1]:
        rotations = weights @ np.linalg.pinv(loadings.T @ weights)
    return rotations if table.whitening is None else table.whitening.coefficients(rotations)


def paired_correlations(x_scores: Floats, y_scores: Floats) -> Floats:
    """Correlations of corresponding columns; 0 where one of both is constant."""
    x, y = x_scores - x_scores.mean(axis=0), y_scores - y_scores.mean(axis=0)
    norms = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    return np.asarray(np.divide(np.sum(x * y, axis=0), norms, out=np.zeros(x.shape[1]), where=norms > 0))


# Validation of two tables, and matching of samples by name


def validated_x(model: TwoTableModel, X: Any, reset: bool) -> Any:
    """Check X as scikit-learn does: a dense or CSR matrix of floats."""
    with _two_tables("X", X, model.missing):
        X = checked(X, missing=model.missing)
        return _dense_if_missing(validated_table(model, X, reset, _options(model, reset)), "X")


def validated_y(model: TwoTableModel, Y: Any, reset: bool) -> tuple[Any, bool]:
    """Check Y likewise, and say whether it is a vector, which becomes a table with one column."""
    if Y is None:
        raise ValueError(f"{type(model).__name__} needs two tables: requires y to be passed, but the target y is None")
    with _two_tables("Y", Y, model.missing):
        values = checked(Y, "Y", missing=model.missing) if getattr(Y, "ndim", 2) == 2 else Y
        values = check_array(without_names(values), input_name="Y", ensure_2d=False, **_options(model, reset))
        _dense_if_missing(values, "Y")
    is_vector = values.ndim == 1
    values = values.reshape(-1, 1) if is_vector else values
    if reset:
        return values, is_vector
    known, names, expected = model.names_["y"], axis_names(Y)[1], len(model.y_weights_)
    if values.shape[1] != expected:
        raise ValueError(
            f"Y has {values.shape[1]} features but the model was fitted to {expected}: give the same features"
        )
    if known is not None and names is not None and not np.array_equal(known, names):
        at = int(np.flatnonzero(known != names)[0])
        raise ValueError(
            f"feature {at} of Y is {names[at]!r}, but it was {known[at]!r} in the fit: give the same features in the "
            "same order, e.g. Y[model.names_['y']]"
        )
    return values, is_vector


def _options(model: TwoTableModel, fitting: bool) -> dict[str, Any]:
    finite = True if model.missing == "error" else "allow-nan"
    options = {"dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": finite}
    return options | {"ensure_min_samples": 2 if fitting else 1}


def _dense_if_missing(table: Any, name: str) -> Any:
    """The table; an error if it is sparse and has missing entries."""
    if is_sparse(table) and has_missing(table):
        raise ValueError(f"{name} is sparse and has missing entries: drop those entries, or give a dense table")
    return table


@contextmanager
def _two_tables(name: str, table: Any, missing: str) -> Iterator[None]:
    """Errors about missing and infinite entries say which table has them, and what to do."""
    if (kind := kind_of(table)) in ("dask", "operator"):
        what = "a Dask array" if kind == "dask" else f"a {type(table).__name__}"
        raise TypeError(f"{name} is {what}: two tables have to be in memory, as arrays, DataFrames or sparse matrices")
    try:
        yield
    except ValueError as error:
        text = str(error).splitlines()[0] if str(error) else ""
        if "contains NaN" not in text and "contains infinity" not in text:
            raise
        is_missing = "contains NaN" in text and missing == "error"
        remedy = "use missing='ignore', or leave out these samples or features" if is_missing else "replace them"
        raise ValueError(f"{name} contains {'NaN' if 'NaN' in text else 'infinity'}: {remedy}") from None


def in_order_of(X: Any, Y: Any) -> Any:
    """Y with its samples in the order of X, if both have names; otherwise samples are matched by position."""
    one: Any = getattr(X, "index", None)
    other: Any = getattr(Y, "index", None)
    indexed = isinstance(one, pd.Index) and isinstance(other, pd.Index) and not one.equals(other)
    if indexed and one.is_unique and other.is_unique and len(one) == len(other) and one.isin(other).all():
        return Y.loc[one]  # the same labels, numbers included, in another order
    x_names, y_names = axis_names(X)[0], axis_names(Y)[0]
    if x_names is None or y_names is None or np.array_equal(x_names, y_names):
        if (n := _num_samples(X)) != (m := _num_samples(Y)):
            raise ValueError(
                f"X has {n} samples but Y has {m} (inconsistent numbers of samples): give the same samples in both"
            )
        return Y
    missing = []
    for names, others, table in ((x_names, y_names, "X"), (y_names, x_names, "Y")):
        index = pd.Index(names)
        if not index.is_unique:
            raise ValueError(
                f"sample {index[index.duplicated()][0]!r} occurs twice in {table}: samples are matched by name"
            )
        if len(only := index.difference(pd.Index(others), sort=False)):
            listed = some_names(only, quoted=False)
            missing.append(f"{len(only):,} of {len(names):,} samples of {table} are not in the other table: {listed}")
    remedy = "keep the samples of both, e.g. both = X.index.intersection(Y.index), and give X.loc[both] and Y.loc[both]"
    if not np.isin(x_names, y_names).any():
        remedy = "use the same names of samples in both; if samples are in columns, give X.T and Y.T"
    raise ValueError(f"X and Y have different samples ({'; '.join(missing)}): {remedy}")


def _check_names(names: tuple[str, str]) -> tuple[str, str]:
    """The names of both tables, if they are two different texts of one line."""
    known = [str(name).strip() for name in names] if isinstance(names, (tuple, list)) else []
    if len(known) != 2 or known[0] == known[1] or not all(name.isprintable() and name for name in known):
        raise ValueError(f"table_names={names!r}: two different names are needed, such as ('RNA', 'protein')")
    return known[0], known[1]


def _check_starts(y_start: Any, n_features: int, n_components: int) -> Floats | None:
    """The starts of all pairs, a row each."""
    if y_start is None:
        return None
    starts = check_array(y_start, input_name="y_start", dtype=np.float64)
    if starts.shape[0] != n_features or starts.shape[1] < n_components:
        raise ValueError(f"y_start has shape {starts.shape}: ({n_features}, {n_components}) is needed")
    if not starts.any(axis=0).all():
        raise ValueError("a column of y_start is zero: every pair needs a start")
    return np.asarray(starts.T)
