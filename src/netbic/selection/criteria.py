"""The score of settings: how much of the variance of samples and features that were not fitted modules explain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from netbic.arrays import Array, Floats, Indices, Matrix, stored_values
from netbic.estimators import AXES, SearchInput, SparseGraphSVD, has_missing, observed_scores, span
from netbic.graph import Graph
from netbic.operators import Scaler, as_operator, learn_from_observed
from netbic.selection.resampling import complement, folds, for_part, induced
from netbic.solver import Module

Scorer = Callable[[list[Module]], float]


class Block:
    """Some samples and some features are held out, each with the fitted part of the other axis."""

    def __init__(self, X: Matrix, held_rows: Indices, held_columns: Indices, covariates: Floats | None = None) -> None:
        rows, columns = complement(held_rows, X.shape[0]), complement(held_columns, X.shape[1])
        self._shape, self._kept = X.shape, (rows, columns)
        self.X = submatrix(X, rows, columns)
        self._samples, self._features = submatrix(X, held_rows, columns), submatrix(X, rows, held_columns)
        self._subgraphs: dict[Graph, Graph] = {}
        self.covariates = None if covariates is None else covariates[rows]
        self._held_covariates = None if covariates is None else covariates[held_rows]

    def training_model(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """Sizes in proportion, and the subgraphs of the rows and columns that are fitted."""
        for axis, kept, size in zip(AXES, self._kept, self._shape, strict=True):
            model = for_part(model, axis, kept, size)
            if (graph := getattr(model, f"{axis}_graph")) is not None:
                if graph not in self._subgraphs:
                    self._subgraphs[graph] = induced(graph, kept)
                model.set_params(**{f"{axis}_graph": self._subgraphs[graph]})
        return model

    def scorer(self, prepared: SearchInput, model: SparseGraphSVD) -> Scorer:
        """Variance of held-out samples explained by v, plus that of held-out features explained by u."""
        of_samples = explained_share(self._samples, prepared.scaler, "column", self._held_design(prepared))
        own = prepared.design
        of_features = explained_share(self._features, learn_scaling(self._features, model, own), "row", own)
        return lambda modules: of_samples(_vectors(modules, "v")) + of_features(_vectors(modules, "u"))

    def _held_design(self, prepared: SearchInput) -> Floats | None:
        """The covariates of the held-out samples, encoded like those of the others."""
        if prepared.design is None or prepared.coding is None:
            return None
        return prepared.coding.encode(self._held_covariates, self._samples.shape[0], None)


SplitFactory = Callable[[], Block]


def splits(X: Matrix, n_folds: int, seed: int, covariates: Floats | None = None) -> list[SplitFactory]:
    """The splits of X, to be made one at a time: each holds a copy of most of X."""
    rows = folds(X.shape[0], n_folds, [seed, 0])
    columns = folds(X.shape[1], n_folds, [seed, 1], "features")
    return [partial(Block, X, *held_out, covariates) for held_out in zip(rows, columns, strict=True)]


def explained_share(
    X: Matrix, scaling: Scaler, axis: str, design: Floats | None = None, *, may_be_constant: bool = False
) -> Callable[[Floats], float]:
    """A function: the share of the variance of X that vectors over its rows or columns (`axis`) explain.

    An X that does not vary is an error unless it `may_be_constant`; then nothing is explained.
    """
    if has_missing(X):
        return _explained_share_of_observed(X, scaling, axis, design, may_be_constant)
    operator = scaling.operator(as_operator(X), design, fitted=False)
    product, size = (operator.rmatvec, X.shape[0]) if axis == "row" else (operator.matvec, X.shape[1])
    total, every = _total(operator.squared_norm, X, may_be_constant), np.arange(size)
    return lambda vectors: sum(_sum_of_squares(product(every, q)) for q in span(vectors).T) / total


def _explained_share_of_observed(
    X: Matrix, scaling: Scaler, axis: str, design: Floats | None, may_be_constant: bool
) -> Callable[[Floats], float]:
    scaled = scaling.apply(X, design)
    lines = scaled.T if axis == "row" else scaled
    total = _total(float(np.nansum(lines**2)), X, may_be_constant)

    def share(vectors: Floats) -> float:
        residual = lines - observed_scores(lines, vectors) @ vectors
        return 1 - float(np.nansum(residual**2)) / total

    return lambda vectors: share(vectors) if len(vectors) else 0.0


def _total(squares: float, X: Matrix, may_be_constant: bool) -> float:
    """The sum of squares of X as a divisor."""
    return max(squares, np.finfo(float).tiny) if may_be_constant else check_varies(squares, X)


def learn_scaling(X: Matrix, model: SparseGraphSVD, design: Floats | None = None) -> Scaler:
    """The model's centring and scaling, learnt from X, after covariates are removed."""
    if has_missing(X):
        return learn_from_observed(X, model.center, model.scale, design)
    return Scaler.learn(as_operator(X, low_memory=True), model.center, model.scale, design)


def submatrix(X: Matrix, rows: Indices, columns: Indices) -> Matrix:
    """Some rows and columns; sparse stays sparse."""
    return np.ascontiguousarray(X[np.ix_(rows, columns)]) if isinstance(X, np.ndarray) else X[rows][:, columns]


def _vectors(modules: list[Module], side: str) -> Floats:
    """The modules' vectors "u" or "v", a row each."""
    full = [getattr(module, side).full() for module in modules]
    return np.array(full) if full else np.empty((0, 0))


def _sum_of_squares(values: Array) -> float:
    return float(np.sum(np.square(values, dtype=np.float64)))


def check_varies(total: float, X: Matrix, what: str = "held-out") -> float:
    """The sum of squares of the fitted or held-out part of a split, which must be more than rounding error."""
    largest = float(np.nanmax(np.abs(stored_values(X)), initial=0.0))
    size = X.shape[0] * X.shape[1] if X.ndim == 2 else X.size
    if not total > size * (16 * float(np.finfo(X.dtype).eps) * largest) ** 2:
        raise ValueError(f"its {what} part does not vary: use fewer folds, or drop constant samples and features")
    return total
