"""SparseGraphCCA: pairs of sparse vectors with a large correlation of their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import check_choice
from netbic.estimators.pair_results import paired_correlations
from netbic.estimators.parameters import is_number
from netbic.estimators.two_tables import TwoTables
from netbic.estimators.whitening import RidgeWhitening
from netbic.operators import Corrected
from netbic.penalties import Penalty

COVARIANCES = ("diagonal", "ridge", "full")


class SparseGraphCCA(TwoTables):
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
    n_components_, n_iter_, converged_, objectives_, graph_share_, names_, graphs_, scalers_
        As for `SparseGraphPLS`.

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
        self.deflation = deflation
        self.solver, self.n_init, self.max_iter, self.tol = solver, n_init, max_iter, tol
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose

    @property
    def _scales(self) -> bool:
        return True

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
        whitening = RidgeWhitening.of(operator, self.ridge if self.covariance == "ridge" else 0.0)
        n, p = operator.shape
        if self.covariance == "full" and n <= p + 1:
            raise ValueError(
                f"covariance='full' but {name} has {n} samples and {p} features: more samples than features are "
                "needed. Use covariance='ridge' or 'diagonal'"
            )
        return whitening

    def score(self, X: Any, Y: Any = None, *, y: Any = None) -> float:
        """Mean correlation of the scores of X and of Y over all pairs, in these samples."""
        check_is_fitted(self)
        scores = self.transform(X, self._second(Y, y))
        return float(np.mean(paired_correlations(*scores))) if self.n_components_ else 0.0
