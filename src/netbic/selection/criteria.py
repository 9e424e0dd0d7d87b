"""What tells good settings from bad ones: four criteria, each as trials that a model is fitted to and judged by.

held_out
    Fit a block without some samples and some features. The modules' features are judged by the share of the variance of
    the held-out samples that they explain, their samples by that of the held-out features; both shares are added.
gabriel
    The same block, but the corner that was held out twice is predicted from the other three (Owen and Perry 2009).
wold
    Fit with a tenth of the entries held out and predict those (Wold 1978).
bic
    Fit everything and count members: the criterion of Lee et al. (2010), summed over modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.base import clone

from netbic.estimators import AXES, Prepared, SparseGraphSVD, has_holes, observed_scores, scoring, span
from netbic.graphs import Graph
from netbic.operators import Corrected, Preparation, as_operator, learn_from_observed
from netbic.selection.resampling import Floats, Indices, cut, folds, in_proportion
from netbic.solver import Module

CRITERIA: Final = ("held_out", "wold", "gabriel", "bic")
_ENTRIES_HELD_OUT = 0.1

Judge = Callable[[list[Module]], float]


class Trial(Protocol):
    """One fold: what to fit, and how to judge the modules found there. Larger is better."""

    X: Any

    def fitting(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """The model for this fold's X."""

    def judge(self, prepared: Prepared, model: SparseGraphSVD) -> Judge:
        """The function that judges modules."""


Maker = Callable[[], Trial]


def trials(criterion: str, X: Any, n_folds: int, seed: int, n_components: int) -> list[Maker]:
    """The folds of a criterion, to be made one at a time: each holds a copy of most of X."""
    if criterion == "bic":
        return [partial(Whole, X, n_components)]
    if criterion == "wold":
        if n_folds < 2:
            raise ValueError(f"n_folds={n_folds}: at least 2 are needed")
        return [partial(Entries, X, [seed, fold]) for fold in range(n_folds)]
    kind = Block if criterion == "held_out" else Corner
    rows = folds(X.shape[0], n_folds, [seed, 0])
    columns = folds(X.shape[1], n_folds, [seed, 1], "features")
    return [partial(kind, X, *held) for held in zip(rows, columns, strict=True)]


class Block:
    """Some samples and some features held out, each with all that was fitted of the other axis."""

    def __init__(self, X: Any, held_rows: Indices, held_columns: Indices) -> None:
        self._sizes = X.shape
        self._held = held_rows, held_columns
        self._inside = tuple(np.setdiff1d(np.arange(s), h) for s, h in zip(X.shape, self._held, strict=True))
        rows, columns = self._inside
        self.X = part(X, rows, columns)
        self._samples, self._features = part(X, held_rows, columns), part(X, rows, held_columns)
        self._cut_graphs: dict[Graph, Graph] = {}

    def fitting(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """Sizes in proportion, graphs cut to what is in use."""
        for axis, inside, size in zip(AXES, self._inside, self._sizes, strict=True):
            model = in_proportion(model, axis, len(inside) / size)
            if (graph := getattr(model, f"{axis}_graph")) is not None:
                if graph not in self._cut_graphs:
                    self._cut_graphs[graph] = cut(graph, inside)
                model.set_params(**{f"{axis}_graph": self._cut_graphs[graph]})
        return model

    def judge(self, prepared: Prepared, model: SparseGraphSVD) -> Judge:
        """Variance of held-out samples explained by v, plus that of held-out features explained by u."""
        of_samples = explained_share(self._samples, prepared.preparation, "column")
        of_features = explained_share(self._features, learnt(self._features, model), "row")
        return lambda modules: of_samples(_vectors(modules, "v")) + of_features(_vectors(modules, "u"))


class Corner(Block):
    """The same block; judged is the corner that is held out on both axes."""

    def __init__(self, X: Any, held_rows: Indices, held_columns: Indices) -> None:
        super().__init__(X, held_rows, held_columns)
        self._corner = part(X, held_rows, held_columns)

    def judge(self, prepared: Prepared, model: SparseGraphSVD) -> Judge:
        """1 - |A - B V+ D^-1 U+ C|^2 / |A|^2 for the corner A, held-out samples B and held-out features C."""
        preparation = learnt(self._features, model)
        corner, features = preparation.apply(self._corner), preparation.apply(self._features)
        samples = prepared.preparation.apply(self._samples)

        def score(modules: list[Module]) -> float:
            if not modules:
                return 0.0
            values = np.array([module.d for module in modules])
            u, v = _vectors(modules, "u"), _vectors(modules, "v")
            return 1 - _square(corner - (samples @ scoring(v) / values) @ (scoring(u).T @ features)) / total

        total = check_varies(_square(corner), corner)
        return score


class Entries:
    """A random tenth of the entries held out."""

    def __init__(self, X: Any, seed: Sequence[int]) -> None:
        hidden = (np.random.default_rng(seed).random(X.shape) < _ENTRIES_HELD_OUT) & ~np.isnan(X)
        self._rows, self._columns = np.nonzero(hidden)
        self._values = X[hidden]
        self.X = np.where(hidden, np.nan, X)

    def fitting(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """Holes are ignored, unless they are to be imputed."""
        made: SparseGraphSVD = clone(model)
        return made.set_params(missing="ignore") if model.missing == "error" else made

    def judge(self, prepared: Prepared, model: SparseGraphSVD) -> Judge:
        """1 - |held out - predicted|^2 / |held out|^2, the modules' heights fitted to the observed entries."""
        values = self._prepared_values(prepared.preparation)
        observed = np.nan_to_num(prepared.preparation.apply(self.X))
        missing = np.nonzero(np.isnan(self.X))
        total = check_varies(_square(values), values)

        def score(modules: list[Module]) -> float:
            u, v = _vectors(modules, "u"), _vectors(modules, "v")
            unseen = u[:, missing[0]] * v[:, missing[1]]
            gram = (u @ u.T) * (v @ v.T) - unseen @ unseen.T
            heights = np.linalg.lstsq(gram, np.sum((u @ observed) * v, axis=1), rcond=None)[0]
            return 1 - _square(values - heights @ (u[:, self._rows] * v[:, self._columns])) / total

        return lambda modules: score(modules) if modules else 0.0

    def _prepared_values(self, preparation: Preparation) -> Floats:
        """The held-out entries, prepared by what was observed beside them."""
        values: Floats = self._values - preparation.offsets[self._columns]
        if preparation.rows:
            values -= np.nanmean(self.X - preparation.offsets, axis=1)[self._rows]
        return values if preparation.factors is None else values * preparation.factors[self._columns]


class Whole:
    """Everything is fitted; what counts is how much is left against how many members that took."""

    def __init__(self, X: Any, n_components: int) -> None:
        if n_components >= min(X.shape):
            raise ValueError(f"criterion='bic' needs n_components={n_components} below the shorter side of X {X.shape}")
        self.X, self._n_components = X, n_components

    def fitting(self, model: SparseGraphSVD) -> SparseGraphSVD:
        """A clone."""
        made: SparseGraphSVD = clone(model)
        return made

    def judge(self, prepared: Prepared, model: SparseGraphSVD) -> Judge:
        """Minus BIC: residual / (np variance) + log(np) / (np) * members; the variance is what a dense SVD leaves."""
        operator = prepared.operator
        n, p = operator.shape
        squares = np.square(svds(_linear(operator), k=self._n_components, v0=np.ones(min(n, p)))[1])
        freedom = n * p - self._n_components * (n + p - self._n_components)
        variance = max(operator.squared_norm - float(squares.sum()), np.finfo(float).tiny) / freedom

        def score(modules: list[Module]) -> float:
            members = sum(module.u.support.size + module.v.support.size for module in modules)
            return -(_left_over(operator, modules) / variance + float(np.log(n * p)) * members) / (n * p)

        return score


def explained_share(X: Any, preparation: Preparation, axis: str) -> Callable[[Floats], float]:
    """A function: the share of the variance of X that some vectors of its rows or columns (`axis`) explain."""
    if has_holes(X):
        return _explained_share_of_observed(X, preparation, axis)
    operator = preparation.operator(as_operator(X))
    product, size = (operator.rmatvec, X.shape[0]) if axis == "row" else (operator.matvec, X.shape[1])
    total, every = check_varies(operator.squared_norm, X), np.arange(size)
    return lambda vectors: sum(_square(product(every, q)) for q in span(vectors).T) / total


def _explained_share_of_observed(X: Any, preparation: Preparation, axis: str) -> Callable[[Floats], float]:
    prepared = preparation.apply(X)
    lines = prepared.T if axis == "row" else prepared
    total = check_varies(float(np.nansum(lines**2)), X)

    def share(vectors: Floats) -> float:
        rest = lines - observed_scores(lines, vectors) @ vectors
        return 1 - float(np.nansum(rest**2)) / total

    return lambda vectors: share(vectors) if len(vectors) else 0.0


def learnt(X: Any, model: SparseGraphSVD) -> Preparation:
    """The model's centring and scaling, of features by their own values."""
    if has_holes(X):
        return learn_from_observed(X, model.center, model.scale)
    return Preparation.learn(as_operator(X, low_memory=True), model.center, model.scale)


def part(X: Any, rows: Indices, columns: Indices) -> Any:
    """Some rows and columns; sparse stays sparse."""
    return np.ascontiguousarray(X[np.ix_(rows, columns)]) if isinstance(X, np.ndarray) else X[rows][:, columns]


def _vectors(modules: list[Module], side: str) -> Floats:
    """The modules' vectors "u" or "v", a row each."""
    full = [getattr(module, side).full() for module in modules]
    return np.array(full) if full else np.empty((0, 0))


def _square(values: NDArray[Any]) -> float:
    return float(np.sum(np.square(values, dtype=np.float64)))


def check_varies(total: float, X: Any, what: str = "holds out") -> float:
    """The sum of squares of what a fold fits or holds out, which must be more than rounding error."""
    largest = float(np.nanmax(np.abs(X if isinstance(X, np.ndarray) else X.data), initial=0.0))
    size = X.shape[0] * X.shape[1] if X.ndim == 2 else X.size
    if not total > size * (16 * float(np.finfo(X.dtype).eps) * largest) ** 2:
        raise ValueError(f"what it {what} does not vary: use fewer folds, or drop constant samples and features")
    return total


def _left_over(operator: Corrected, modules: list[Module]) -> float:
    """|X - sum of d uv'|^2."""
    u, v, d = _vectors(modules, "u"), _vectors(modules, "v"), np.array([module.d for module in modules])
    images = [operator.matvec(module.v.support, module.v.values) for module in modules]
    fitted = sum(d_k * float(u_k @ image) for d_k, u_k, image in zip(d, u, images, strict=True))
    return (
        operator.squared_norm - 2 * fitted + float(d @ ((u @ u.T) * (v @ v.T)) @ d)
        if modules
        else operator.squared_norm
    )


def _linear(operator: Corrected) -> LinearOperator:
    every_row, every_column = map(np.arange, operator.shape)
    return LinearOperator(
        shape=operator.shape,
        dtype=np.float64,
        matvec=lambda v: operator.matvec(every_column, v.ravel()),
        rmatvec=lambda u: operator.rmatvec(every_row, u.ravel()),
    )
