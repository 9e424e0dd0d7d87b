"""Parts of the data, models for them, and modules of one fit matched to those of another."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.validation import check_array

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState, checked, stored_values, without_names
from netbic.estimators.inputs import axis_names, has_missing
from netbic.estimators.pairs import TwoTableModel, in_order_of, validated_x, validated_y
from netbic.estimators.parameters import AXES
from netbic.estimators.prediction import observed_scores, span
from netbic.estimators.svd import SparseGraphSVD
from netbic.graph import Graph, match
from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler
from netbic.penalties import Penalty

SIDES = ("x", "y")  # the features of the first and of the second of two tables
Parameters = dict[str, Any]  # of an estimator, by name
Model = TypeVar("Model", bound=SparseGraphSVD | TwoTableModel)
Names = tuple[Array | None, ...]  # of each axis, such as rows and columns
_FURTHER = 2  # modules that are searched for beyond the number of the whole fit, at least


def folds(size: int, n_folds: int, random_state: RandomState, what: str = "samples", fewest: int = 2) -> list[Indices]:
    """Held-out samples (or features) of each fold: a random partition into parts of nearly equal size."""
    if not 2 <= n_folds <= size // fewest:
        most, number = max(size // fewest, 2), {2: "two", 3: "three"}[fewest]
        raise ValueError(f"{n_folds} folds of {size} {what}: choose 2 to {most}, so that each holds {number} {what}")
    order = np.random.default_rng(random_state).permutation(size)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def draw_half_of_groups(generator: np.random.Generator, groups: Indices, studies: Indices | None = None) -> Indices:
    """A random half of the groups of samples (a number per sample, from 0), or of those of every study."""
    order = np.asarray(generator.permutation(groups.max() + 1))
    if studies is None:
        return order[: order.size // 2]
    first = np.unique(groups, return_index=True)[1]  # a group in several studies counts in one of them
    return order[np.argsort(studies[first][order], kind="stable")][::2]


def complement(held_out: Indices, size: int) -> Indices:
    """The indices that are not held out."""
    return np.setdiff1d(np.arange(size), held_out)


def draw_seed(random_state: RandomState) -> int:
    """An integer seed drawn from a random state."""
    return int(np.random.default_rng(random_state).integers(2**31))


# Models for all of the data, by position


def seeded(model: Model, seed: int) -> Model:
    """A clone with an integer `random_state`, so that its random starts do not depend on the order of the fits."""
    made: Model = clone(model)
    return made if isinstance(model.random_state, Integral) else made.set_params(random_state=seed)


def size_names(model: SparseGraphSVD | TwoTableModel) -> dict[str, str]:
    """The parameters with the numbers of members, by axis."""
    return {"x": "n_x", "y": "n_y"} if isinstance(model, TwoTableModel) else {"row": "n_rows", "column": "n_columns"}


def fitted_to(model: SparseGraphSVD, X: Matrix, covariates: Any = None) -> SparseGraphSVD:
    """The model, fitted to X; covariates are given to `fit` only if there are any."""
    made: SparseGraphSVD = model.fit(X) if covariates is None else model.fit(X, covariates=covariates)
    return made


def graphs_by_position(
    parameters: Parameters,
    shape: tuple[int, ...],
    names: Names,
    matched: dict[tuple[str, int], Graph] | None = None,
    axes: tuple[str, ...] = AXES,
) -> Parameters:
    """The graphs and the penalties of groups among a model's parameters, matched to the axes of X, without names.

    `matched` holds graphs of earlier calls, by axis and identity, so that each is matched once. For a model of two
    tables, `shape` and `names` are those of the features of X and of Y, the axes "x" and "y".
    """
    found: Parameters = {}
    matched = {} if matched is None else matched
    for axis, size, known in zip(axes, shape, names, strict=True):
        if (graph := parameters[f"{axis}_graph"]) is not None:
            key = axis, id(graph)
            if key not in matched:
                matched[key] = match(graph, size, known, axis if axis in AXES else "feature").renamed(None)
            found[f"{axis}_graph"] = matched[key]
        penalty = parameters[f"{axis}_penalty"]
        if isinstance(penalty, Penalty) and penalty.n_groups() is not None:
            found[f"{axis}_penalty"] = penalty.for_names(known, size, axis).for_part(np.arange(size), size)
    return found


def by_position(fitted: SparseGraphSVD, X: Matrix, sparse_format: str) -> tuple[SparseGraphSVD, Matrix]:
    """A clone of a fitted model whose graphs match X by position, and the values of X without names."""
    options = {"accept_sparse": sparse_format, "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    values = check_array(without_names(checked(X)), **options)
    names = fitted.names_["rows"], fitted.names_["columns"]
    graphs = graphs_by_position(fitted.get_params(deep=False), values.shape, names)
    made: SparseGraphSVD = clone(fitted).set_params(n_jobs=None, verbose=0, scale=fitted.scale_power, **graphs)
    return made.set_params(n_components=n_asked(fitted)), values


def n_asked(fitted: SparseGraphSVD) -> int:
    """The number of modules that a model was asked for, or found if that came from the data."""
    given = fitted.n_components
    return max(fitted.n_components_, 1) if isinstance(given, str) else int(given)


def n_searched_again(model: SparseGraphSVD, number: int) -> int:
    """How many modules to search for in some of the samples, to find `number` modules again.

    Modules of similar strength are found in another order, and the last ones later; a joint search divides what is left
    in another way.
    """
    return number + max(_FURTHER, 2 * number // 5 if model.is_joint else number // 3)


# Models for part of the data


def for_part(model: SparseGraphSVD, axis: str, kept: Indices, size: int) -> SparseGraphSVD:
    """A clone for some entries of an axis: sizes in proportion, L1 bounds (of unit vectors) to the root of the share.

    Groups contain those of their members that are kept.
    """
    made: SparseGraphSVD = clone(model)
    count, penalty = getattr(model, f"n_{axis}s"), getattr(model, f"{axis}_penalty")
    if count is not None:
        made.set_params(**{f"n_{axis}s": max(1, round(count * (len(kept) / size)))})
    if isinstance(penalty, Penalty):
        made.set_params(**{f"{axis}_penalty": penalty.for_part(kept, size)})
    return made


def restrict(model: SparseGraphSVD, axis: str, kept: Indices, size: int) -> SparseGraphSVD:
    """A clone for some of the rows or columns ("row", "column"): sizes in proportion, the induced subgraph."""
    made = for_part(model, axis, kept, size)
    if (graph := getattr(model, f"{axis}_graph")) is not None:
        made.set_params(**{f"{axis}_graph": match(graph, size, None, axis).subgraph(kept).renamed(None)})
    return made


def fill_unobserved(part: Matrix) -> Matrix:
    """A part in which every row and column has an observed entry: means, which carry no signal, where all are NaN."""
    if not has_missing(part):
        return part
    part = part.copy()
    unseen = np.isnan(part).all(axis=0)
    part[:, unseen] = np.nanmean(part)
    blank = np.isnan(part[:, ~unseen]).all(axis=1)
    part[blank] = np.nanmean(part[~blank], axis=0)
    return part


def explained_share(
    X: Matrix, scaling: Scaler, axis: str, design: Floats | None = None, *, may_be_constant: bool = False
) -> Callable[[Floats], float]:
    """A function: the share of the variance of X that vectors over its rows or columns (`axis`) explain.

    An X that does not vary is an error unless it `may_be_constant`; then nothing is explained.
    """
    missing = has_missing(X)
    if missing:
        scaled = scaling.apply(X, design)
        lines = scaled.T if axis == "row" else scaled
        squares = float(np.nansum(lines**2))
    else:
        operator = scaling.operator(as_operator(X), design, fitted=False)
        product, size = (operator.rmatvec, X.shape[0]) if axis == "row" else (operator.matvec, X.shape[1])
        squares, every = operator.squared_norm, np.arange(size)
    total = max(squares, np.finfo(float).tiny) if may_be_constant else check_varies(squares, X)

    def share(vectors: Floats) -> float:
        if not len(vectors):
            return 0.0
        if missing:
            return 1 - float(np.nansum((lines - observed_scores(lines, vectors) @ vectors) ** 2)) / total
        images = (product(every, q) for q in span(vectors).T)
        return sum(float(np.sum(np.square(image, dtype=np.float64))) for image in images) / total

    return share


def check_varies(squares: float, X: Matrix, what: str = "held-out") -> float:
    """The sum of squares of the fitted or held-out part of a split, which must be more than rounding error."""
    largest = float(np.nanmax(np.abs(stored_values(X)), initial=0.0))
    if not squares > X.shape[0] * X.shape[1] * (16 * float(np.finfo(X.dtype).eps) * largest) ** 2:
        raise ValueError(f"its {what} part does not vary: use fewer folds, or drop constant samples and features")
    return squares


# Two tables


def check_second_table(model: Any, Y: Any) -> bool:
    """Whether the model is one of two tables; raise unless its second table, and no other, is given."""
    found = getattr(model, "best_estimator_", model)
    name, two = type(found).__name__, isinstance(found, TwoTableModel)
    if Y is not None and not two:
        raise TypeError(f"Y is given, but {name} takes one table: use SparseGraphPLS or SparseGraphCCA")
    if two and Y is None:
        raise ValueError(f"{name} needs two tables: give the second one as Y=...")
    return two


def pairs_by_position(model: TwoTableModel, X: Any, Y: Any) -> tuple[TwoTableModel, Matrix, Matrix]:
    """A clone whose graphs match the features by position, and the values of two tables with samples in one order."""
    made: TwoTableModel = clone(model).set_params(n_jobs=None, verbose=0)
    names = axis_names(X)[1], axis_names(Y)[1]
    if Y is not None:
        Y = in_order_of(X, Y)
    X, (Y, _) = validated_x(made, X, reset=True), validated_y(made, Y, reset=True)
    graphs = graphs_by_position(made.get_params(deep=False), (X.shape[1], Y.shape[1]), names, axes=SIDES)
    return made.set_params(**graphs), X, Y


# Matching modules


def partners(similarities: Floats) -> Indices:
    """The column matched to each row so that the sum of similarities is largest; -1 for rows without a column."""
    matched = np.full(similarities.shape[0], -1, dtype=np.intp)
    rows, columns = linear_sum_assignment(-similarities)
    matched[rows] = columns
    return matched


def match_rows(similarities: Floats) -> tuple[Indices, Floats]:
    """The `partners`, and the similarity of each row to its partner (0 if there is none)."""
    matched = partners(similarities)
    padded = np.pad(similarities, ((0, 0), (0, 1)))  # index -1, no partner, points to the last column
    return matched, padded[np.arange(matched.size), matched]


def geometric_mean(one: Floats, other: Floats) -> Floats:
    """Of the cosines (or correlations) of two pairs of vectors; 0 where their signs disagree."""
    return np.sqrt(np.clip(one * other, 0.0, 1.0))


def cosines(some: Array, others: Array) -> Floats:
    """Between rows; 0 for a row of zeros."""
    units = []
    for rows in (some, others):
        lengths = np.linalg.norm(rows.astype(np.float64, copy=False), axis=1, keepdims=True)
        units.append(rows / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(units[0] @ units[1].T)


def correlation(some: Floats, others: Floats) -> Floats:
    """Correlations between the rows of two arrays; 0 for constant rows."""
    return cosines(*(rows - rows.mean(axis=1, keepdims=True) for rows in (some, others)))


def match_scores(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Indices, Floats]:
    """For each pair of one fit the pair of another fit with the most similar scores, one to one, and the similarity.

    Scores are those of the same samples in X and in Y, a column per pair. The similarity is the geometric mean of the
    correlations of the scores of X and of those of Y. -1: there is no partner.
    """
    return match_rows(geometric_mean(*(correlation(a.T, b.T) for a, b in zip(one, other, strict=True))))
