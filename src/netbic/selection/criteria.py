"""Criteria for choosing parameters, each as data splits: a model is fitted to one part and scored on the other.

held_out
    Some samples and some features are held out. The score is the share of the variance of the held-out samples
    explained by the modules' features, plus that of the held-out features explained by the modules' samples.
gabriel
    The same split, but the corner held out on both axes is predicted from the other three blocks (Owen and Perry 2009).
wold
    A tenth of the entries is held out and predicted (Wold 1978).
bic
    Nothing is held out: the Bayesian information criterion of Lee et al. (2010), summed over modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.base import clone

from netbic.arrays import Array, Floats, Indices, Matrix, stored_values
from netbic.estimators import AXES, SearchInput, SparseGraphSVD, has_missing, observed_scores, scoring, span
from netbic.graph import Graph
from netbic.operators import Corrected, Scaler, as_operator, learn_from_observed
from netbic.selection.resampling import complement, folds, for_part, induced
from netbic.solver import Module

CRITERIA: Final = ("held_out", "wold", "gabriel", "bic")
_SHARE_OF_ENTRIES = 0.1

Scorer = Callable[[list[Module]], float]


class Split:
    """What to fit (`X`), and how to score the modules found there. A larger score is better."""

    X: Matrix
    covariates: Floats | None = None  # of the rows of X

    def training_model(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """The model for this split's X: a clone."""
        made: SparseGraphSVD = clone(model)
        return made

    def scorer(self, prepared: SearchInput, model: SparseGraphSVD) -> Scorer:
        """The function that scores modules."""
        raise NotImplementedError


SplitFactory = Callable[[], Split]


def splits(
    criterion: str, X: Matrix, n_folds: int, seed: int, n_components: int, covariates: Floats | None = None
) -> list[SplitFactory]:
    """The splits of a criterion, to be made one at a time: each holds a copy of most of X."""
    if criterion == "bic":
        return [partial(AllData, X, n_components, covariates)]
    if criterion == "wold":
        if n_folds < 2:
            raise ValueError(f"n_folds={n_folds}: at least 2 are needed")
        return [partial(Entries, X, [seed, fold], covariates) for fold in range(n_folds)]
    kind = Block if criterion == "held_out" else Corner
    rows = folds(X.shape[0], n_folds, [seed, 0])
    columns = folds(X.shape[1], n_folds, [seed, 1], "features")
    return [partial(kind, X, *held_out, covariates) for held_out in zip(rows, columns, strict=True)]


class Block(Split):
    """Some samples and some features are held out, each with the fitted part of the other axis."""

    def __init__(self, X: Matrix, held_rows: Indices, held_columns: Indices, covariates: Floats | None = None) -> None:
        rows, columns = complement(held_rows, X.shape[0]), complement(held_columns, X.shape[1])
        self._shape, self._kept = X.shape, (rows, columns)
        self.X = submatrix(X, rows, columns)
        self._samples, self._features = submatrix(X, held_rows, columns), submatrix(X, rows, held_columns)
        self._subgraphs: dict[Graph, Graph] = {}
        if covariates is not None:
            self.covariates = covariates[rows]
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


class Corner(Block):
    """The same block; the corner held out on both axes is predicted."""

    def __init__(self, X: Matrix, held_rows: Indices, held_columns: Indices, covariates: Floats | None = None) -> None:
        super().__init__(X, held_rows, held_columns, covariates)
        self._corner = submatrix(X, held_rows, held_columns)

    def scorer(self, prepared: SearchInput, model: SparseGraphSVD) -> Scorer:
        """1 - |A - B V+ D^-1 U+ C|^2 / |A|^2 for the corner A, held-out samples B and held-out features C."""
        own, other = prepared.design, self._held_design(prepared)
        scaling = learn_scaling(self._features, model, own)
        corner, features = scaling.apply(self._corner, other), scaling.apply(self._features, own)
        samples = prepared.scaler.apply(self._samples, other)
        total = check_varies(_sum_of_squares(corner), corner)

        def score(modules: list[Module]) -> float:
            if not modules:
                return 0.0
            values = np.array([module.d for module in modules])
            u, v = _vectors(modules, "u"), _vectors(modules, "v")
            predicted = (samples @ scoring(v) / values) @ (scoring(u).T @ features)
            return 1 - _sum_of_squares(corner - predicted) / total

        return score


class Entries(Split):
    """A random tenth of the entries is held out."""

    def __init__(self, X: Matrix, seed: Sequence[int], covariates: Floats | None = None) -> None:
        self.covariates = covariates
        held_out = (np.random.default_rng(seed).random(X.shape) < _SHARE_OF_ENTRIES) & ~np.isnan(X)
        self._rows, self._columns = np.nonzero(held_out)
        self._values = X[held_out]
        self.X = np.where(held_out, np.nan, X)

    def training_model(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """Missing entries are ignored, unless the model imputes them."""
        made = super().training_model(model)
        return made.set_params(missing="ignore") if model.missing == "error" else made

    def scorer(self, prepared: SearchInput, model: SparseGraphSVD) -> Scorer:
        """1 - |held out - predicted|^2 / |held out|^2; the modules' d are fitted to the observed entries."""
        values = self._scaled_values(prepared.scaler, prepared.design)
        observed = np.nan_to_num(prepared.scaler.apply(self.X, prepared.design))
        missing = np.nonzero(np.isnan(self.X))
        total = check_varies(_sum_of_squares(values), values)

        def score(modules: list[Module]) -> float:
            if not modules:
                return 0.0
            u, v = _vectors(modules, "u"), _vectors(modules, "v")
            unseen = u[:, missing[0]] * v[:, missing[1]]
            gram = (u @ u.T) * (v @ v.T) - unseen @ unseen.T
            d = np.linalg.lstsq(gram, np.sum((u @ observed) * v, axis=1), rcond=None)[0]
            return 1 - _sum_of_squares(values - d @ (u[:, self._rows] * v[:, self._columns])) / total

        return score

    def _scaled_values(self, scaling: Scaler, design: Floats | None) -> Floats:
        """The held-out entries, centred and scaled by the observed ones."""
        values: Floats = self._values - scaling.offsets[self._columns]
        effects = 0.0 if design is None or scaling.effects is None else design @ scaling.effects
        if isinstance(effects, np.ndarray):
            values -= effects[self._rows, self._columns]
        if scaling.rows:
            values -= np.nanmean(self.X - scaling.offsets - effects, axis=1)[self._rows]
        return values if scaling.factors is None else values * scaling.factors[self._columns]


class AllData(Split):
    """Nothing is held out: the residual is weighed against the number of members."""

    def __init__(self, X: Matrix, n_components: int, covariates: Floats | None = None) -> None:
        if n_components >= min(X.shape):
            raise ValueError(
                f"n_components={n_components} is too large for criterion='bic' and an X of shape {X.shape}: "
                f"choose at most {min(X.shape) - 1}"
            )
        self.X, self._n_components, self.covariates = X, n_components, covariates

    def scorer(self, prepared: SearchInput, model: SparseGraphSVD) -> Scorer:
        """Minus BIC: residual / (np variance) + log(np) / (np) * members; the variance is that of a dense SVD."""
        operator = prepared.operator
        n, p = operator.shape
        squares = np.square(svds(_linear(operator), k=self._n_components, v0=np.ones(min(n, p)))[1])
        left = n if prepared.design is None else n - prepared.design.shape[1]
        freedom = left * p - self._n_components * (left + p - self._n_components)
        variance = max(operator.squared_norm - float(squares.sum()), np.finfo(float).tiny) / freedom

        def score(modules: list[Module]) -> float:
            members = sum(module.u.support.size + module.v.support.size for module in modules)
            return -(_residual(operator, modules) / variance + float(np.log(n * p)) * members) / (n * p)

        return score


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


def _residual(operator: Corrected, modules: list[Module]) -> float:
    """|X - sum of d uv'|^2."""
    if not modules:
        return operator.squared_norm
    u, v, d = _vectors(modules, "u"), _vectors(modules, "v"), np.array([module.d for module in modules])
    images = [operator.matvec(module.v.support, module.v.values) for module in modules]
    fitted = sum(d_k * float(u_k @ image) for d_k, u_k, image in zip(d, u, images, strict=True))
    return float(operator.squared_norm - 2 * fitted + d @ ((u @ u.T) * (v @ v.T)) @ d)


def _linear(operator: Corrected) -> LinearOperator:
    every_row, every_column = map(np.arange, operator.shape)
    return LinearOperator(
        shape=operator.shape,
        dtype=np.float64,
        matvec=lambda v: operator.matvec(every_column, v.ravel()),
        rmatvec=lambda u: operator.rmatvec(every_row, u.ravel()),
    )
