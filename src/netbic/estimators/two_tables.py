"""What SparseGraphPLS and SparseGraphCCA have in common: validate two tables, delegate to the solver, store."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from netbic.arrays import Array, Bools, Floats, check_choice
from netbic.estimators.inputs import axis_names
from netbic.estimators.pair_inputs import about, checked_starts, in_order_of, validated_x, validated_y
from netbic.estimators.pair_results import store_pairs
from netbic.estimators.parameters import AxisOptions, check_solver_parameters, iteration_settings
from netbic.estimators.search_input import ScalingOptions
from netbic.estimators.threads import one_blas_thread
from netbic.estimators.whitening import RidgeWhitening
from netbic.graph import Graph
from netbic.operators import Corrected, Scaler, Table
from netbic.penalties import Penalty
from netbic.solver import PAIR_DEFLATIONS, PAIR_WORDS, Axis, Pair, PairSearch, diagnostics

_SMALLEST, _LARGEST = 1e-140, 1e140  # of the product of both norms


class PreparedTable(NamedTuple):
    """One of two tables: centred, scaled and, for some models, whitened."""

    operator: Corrected
    noise: float  # the norm that rounding errors alone can reach
    scaler: Scaler
    whitening: RidgeWhitening | None = None

    @property
    def table(self) -> Table:
        """The table as the solver needs it."""
        return Table(self.operator, None if self.whitening is None else self.whitening.rows())

    @property
    def norm(self) -> float:
        """The Frobenius norm."""
        return float(np.sqrt(self.operator.squared_norm))


def _cross_noise(x: PreparedTable, y: PreparedTable) -> float:
    """The norm of the cross-product that rounding errors alone can reach; an error if products leave the range."""
    size = x.norm * y.norm
    if size and not _SMALLEST < size < _LARGEST:
        raise ValueError(
            f"products of the entries of X and Y leave the range of numbers (their norms are {x.norm:.3g} and "
            f"{y.norm:.3g}): use scale=True, or rescale both tables"
        )
    return x.noise * y.norm + y.noise * x.norm


# scikit-learn has no types: mypy cannot check its base classes.
class TwoTables(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators for two tables; see `SparseGraphPLS` for parameters and attributes."""

    x_weights_: Array
    y_weights_: Array
    x_scores_: Array
    y_scores_: Array
    x_loadings_: Array
    y_loadings_: Array
    x_rotations_: Array
    y_rotations_: Array
    x_support_: Bools
    y_support_: Bools
    singular_values_: Array
    correlations_: Floats
    n_components_: int
    n_iter_: int
    converged_: Bools
    objectives_: list[Floats]
    graph_share_: Floats
    names_: dict[str, Array | None]
    graphs_: dict[str, Graph | None]
    scalers_: dict[str, Scaler]

    n_components: int
    n_x: int | None
    n_y: int | None
    x_penalty: Penalty | None
    y_penalty: Penalty | None
    x_graph: Any
    y_graph: Any
    x_smoothness: float | None
    y_smoothness: float | None
    smoothness_scale: str
    graph_term: str
    signs: str
    deflation: str
    random_state: Any
    verbose: int

    @property
    @abstractmethod
    def _scales(self) -> bool:
        """Whether the features are scaled to unit standard deviation."""

    def _whitening(self, operator: Corrected, name: str) -> RidgeWhitening | None:
        """The whitening of a centred and scaled table; by default none."""
        return None

    def _check(self) -> None:
        """Raise if a parameter that does not depend on the data has no valid value."""
        check_solver_parameters(self)
        check_choice("deflation", self.deflation, PAIR_DEFLATIONS)

    def fit(self, X: Any, Y: Any = None, *, y: Any = None, y_start: Any = None) -> Self:
        """Find pairs of sparse vectors of the features of X and of Y.

        Parameters
        ----------
        X, Y : arrays, DataFrames or sparse matrices of shapes (n_samples, n_x_features) and (n_samples, n_y_features)
            Two tables of the same samples, which are matched by name if both have names, else by position. They are not
            modified. Sparse matrices are never made dense. A vector Y is a table with one feature.
        y : the name of Y in scikit-learn
        y_start : array of shape (n_y_features, n_components), optional
            Weights of Y from which each pair starts, in columns. None: the leading singular vectors of what is left of
            the cross-product.
        """
        self._store(*self._search(X, self._second(Y, y), y_start))
        return self

    @staticmethod
    def _second(Y: Any, y: Any) -> Any:
        """The second table, by either of its names."""
        if Y is not None and y is not None:
            raise ValueError("Y and y are both given: these are two names of the second table")
        return y if Y is None else Y

    def _store(self, pairs: list[Pair], x: PreparedTable, y: PreparedTable) -> None:
        """Set the fitted attributes."""
        store_pairs(self, pairs, x, y)

    def _search(self, X: Any, Y: Any, y_start: Any = None) -> tuple[list[Pair], PreparedTable, PreparedTable]:
        """Validate both tables and search for pairs; sets names and graphs."""
        self._check()
        names = {"samples": axis_names(X)[0], "x": axis_names(X)[1], "y": axis_names(Y)[1]}
        Y = in_order_of(X, Y) if Y is not None else None
        X = validated_x(self, X, reset=True)
        Y, self._y_is_vector = validated_y(self, Y, reset=True)
        (x_axis, x_graph), (y_axis, y_graph) = self._axis("x", X, names["x"]), self._axis("y", Y, names["y"])
        with one_blas_thread():
            x, y = self.prepared(X, "X"), self.prepared(Y, "Y")
            noise = _cross_noise(x, y)
            settings = iteration_settings(self, np.result_type(X, Y))
            deflation: Any = self.deflation  # a plain string to mypy; `_check` has verified it
            starts = checked_starts(y_start, Y.shape[1], self.n_components)
            search = PairSearch(x.table, y.table, x_axis, y_axis, settings, deflation, noise, starts)
            pairs: list[Pair] = []
            for _, pair in zip(range(self.n_components), search, strict=False):
                pairs.append(pair)
                if self.verbose:
                    print(f"pair {len(pairs)}: d = {pair.module.d:.6g}, {len(pair.module.objectives)} iterations")
        self.names_, self.graphs_ = names, {"x": x_graph, "y": y_graph}
        modules = [pair.module for pair in pairs]
        axes = x_axis, y_axis
        for message, category in diagnostics(modules, self.n_components, search.ended, *axes, settings, PAIR_WORDS):
            warnings.warn(message, category, stacklevel=3)
        return pairs, x, y

    def axes(self, X: Any, Y: Any) -> tuple[Axis, Axis]:
        """Penalties and graph terms of the features of two tables, whose graphs match them by position."""
        self._check()
        return self._axis("x", X, None)[0], self._axis("y", Y, None)[0]

    def _axis(self, side: str, table: Any, names: Array | None) -> tuple[Axis, Graph | None]:
        """The options of the features of one table, and its graph matched to them."""
        names_of_own = f"n_{side}", f"{side}_penalty", f"{side}_graph", f"{side}_smoothness"
        size, penalty, graph, smoothness = (getattr(self, name) for name in names_of_own)
        shared = self.smoothness_scale, self.graph_term, self.signs
        options = AxisOptions(side, size, penalty, graph, smoothness, *shared, centred=False)
        with about(side.upper()):
            return options.build(table.shape[1], names)

    def prepared(self, table: Any, name: str) -> PreparedTable:
        """A validated table, centred, scaled and whitened as by `fit`."""
        scaling = ScalingOptions("columns", self._scales, "error", clip=None, low_memory=False, ddof=1)
        with about(name):
            operator, noise, scaler = scaling.apply(table)
        return PreparedTable(operator, noise, scaler, self._whitening(operator, name))

    def transform(self, X: Any, Y: Any = None, *, y: Any = None) -> Any:
        """Scores of samples: those of X, or a tuple of the scores of X and of Y if both are given."""
        check_is_fitted(self)
        Y = self._second(Y, y)
        x_scores = self.scalers_["x"].project(validated_x(self, X, reset=False), self.x_rotations_)
        if Y is None:
            return x_scores
        Y, _ = validated_y(self, in_order_of(X, Y), reset=False)
        return x_scores, self.scalers_["y"].project(Y, self.y_rotations_)

    def fit_transform(self, X: Any, Y: Any = None, *, y: Any = None) -> Any:
        """Fit, and return the scores of the same samples in X and in Y; those in X alone if Y is a vector."""
        Y = self._second(Y, y)
        self.fit(X, Y)
        return self.transform(X) if self._y_is_vector else self.transform(X, Y)

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
        return tags
