"""SparseGraphPLS: pairs of sparse vectors with large covariance, and predictions of one table from the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, check_choice
from netbic.estimators.pair_inputs import in_order_of, validated_x, validated_y
from netbic.estimators.two_tables import PreparedTable, TwoTables
from netbic.penalties import Penalty
from netbic.solver import Pair


class SparseGraphPLS(RegressorMixin, TwoTables):  # type: ignore[misc]
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
        A penalty object instead of a number, as for `SparseGraphSVD`. `AdaptiveSupport` chooses the number of features;
        penalties that choose it by BIC keep too many, as the noise of X'Y is not independent.
    x_graph, y_graph : Graph, sparse or dense array, networkx or igraph graph, or edge DataFrame, optional
        Prior graph of the features of X / Y. Matched by name if both the table and the graph have names.
    x_smoothness, y_smoothness : float, optional
        Weight of the graph; None: 0.6 with a graph (0.2 unless `smoothness_scale="module"`).
    smoothness_scale, graph_term, signs
        As for `SparseGraphSVD`.
    deflation : {"regression", "canonical", "hotelling"}, default="regression"
        With scores t = Xu and s = Yv: "regression" removes t from X and from Y (what X predicts of Y), "canonical"
        removes t from X and s from Y, "hotelling" subtracts d uv' from the cross-product X'Y, as PMA does.
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
        self.deflation, self.scale = deflation, scale
        self.solver, self.n_init, self.max_iter, self.tol = solver, n_init, max_iter, tol
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    @property
    def _scales(self) -> bool:
        return self.scale

    def _check(self) -> None:
        super()._check()
        check_choice("scale", self.scale, (False, True))

    def _store(self, pairs: list[Pair], x: PreparedTable, y: PreparedTable) -> None:
        super()._store(pairs, x, y)
        if self.deflation == "regression":  # the scores of X are orthogonal, and so is each coefficient a loading
            self.y_coefficients_ = self.y_loadings_.T
        else:
            self.y_coefficients_ = y.operator.left_products(np.linalg.pinv(self.x_scores_).T)

    def predict(self, X: Any) -> Array:
        """Y of samples: the least-squares prediction from the scores of X, in the units of Y."""
        check_is_fitted(self)
        scores = self.scalers_["x"].project(validated_x(self, X, reset=False), self.x_rotations_)
        predicted = self.scalers_["y"].undo(scores @ self.y_coefficients_)
        return predicted[:, 0] if self._y_is_vector else predicted

    def score(self, X: Any, Y: Any = None, *, y: Any = None) -> float:
        """The mean of R^2 of the predictions over the features of Y, in these samples."""
        check_is_fitted(self)
        values, _ = validated_y(self, in_order_of(X, self._second(Y, y)), reset=False)
        values = values if isinstance(values, np.ndarray) else values.toarray()
        return float(r2_score(values, self.predict(X).reshape(len(values), -1)))

    @property
    def coef_(self) -> Array:
        """Coefficients of the features of X: ``predict(X) = X @ coef_.T + intercept_``; made when asked for."""
        check_is_fitted(self)
        x, y = self.scalers_["x"], self.scalers_["y"]
        effects = self.y_coefficients_ if y.factors is None else self.y_coefficients_ / y.factors
        rotations = self.x_rotations_ if x.factors is None else self.x_rotations_ * x.factors[:, None]
        return np.asarray(effects.T @ rotations.T)

    @property
    def intercept_(self) -> Array:
        """The prediction for a sample of zeros."""
        return np.asarray(self.scalers_["y"].offsets - self.coef_ @ self.scalers_["x"].offsets)
