"""How well modules found in some samples explain others."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone

from netbic.estimators import SparseGraphSVD
from netbic.graphs import Graph, match
from netbic.penalties import L1Ball, Penalty

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]


class HeldOut(NamedTuple):
    """Share of the variance of held-out samples explained, (n_repeats, n_folds); overlap of one fold's with the next's.

    The overlap is the mean Jaccard index of the modules' features, matched one to one.
    """

    scores: Floats
    overlap: float


def folds(size: int, n_folds: int, random_state: Any, what: str = "samples") -> list[Indices]:
    """Held-out samples (or features) of each fold: a random partition into parts of equal size (but for one)."""
    if not 2 <= n_folds <= size // 2:
        most = max(size // 2, 2)
        raise ValueError(f"{n_folds} folds of {size} {what}: choose 2 to {most}, so that each holds two {what}")
    order = np.random.default_rng(random_state).permutation(size)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def held_out_scores(
    model: SparseGraphSVD, X: NDArray[Any], n_folds: int = 5, n_repeats: int = 1, seed: int = 0
) -> HeldOut:
    """How well modules of some samples explain the others, and how alike they are from fold to fold.

    Parameters
    ----------
    model : SparseGraphSVD
        How to fit; clones of it are fitted. A graph of the rows is cut to the samples in use, and `n_rows` shrinks with
        their number.
    X : array of shape (n_samples, n_features)
    n_folds, n_repeats : int
        Every repeat is another partition into folds.
    seed : int
        The same seed gives the same folds, so that two models can be compared fold by fold.
    """
    scores = np.empty((n_repeats, n_folds))
    overlaps: list[float] = []
    for repeat in range(n_repeats):
        before: Bools | None = None
        for fold, part in enumerate(folds(X.shape[0], n_folds, [seed, repeat])):
            inside = np.setdiff1d(np.arange(X.shape[0]), part)
            fitted = restrict(model, "row", inside, X.shape[0]).fit(X[inside])
            scores[repeat, fold] = fitted.score(X[part])
            overlaps += [] if before is None else [mean_overlap(before, fitted.columns_)]
            before = fitted.columns_
    return HeldOut(scores, float(np.mean(overlaps)))


def mean_overlap(some: Bools, others: Bools) -> float:
    """Mean Jaccard index of sets (rows) matched one to one so that it is largest; 0 where one has no partner."""
    shared = some.astype(int) @ others.T.astype(int)
    together = some.sum(axis=1)[:, None] + others.sum(axis=1) - shared
    alike = shared / np.maximum(together, 1)
    return float(alike[linear_sum_assignment(-alike)].sum() / max(*alike.shape, 1))


def restrict(model: SparseGraphSVD, axis: str, inside: Indices, size: int) -> SparseGraphSVD:
    """A clone for some of the rows or columns ("row", "column"): sizes in proportion, their graph cut to them."""
    made = in_proportion(model, axis, len(inside) / size)
    if (graph := getattr(model, f"{axis}_graph")) is not None:
        made.set_params(**{f"{axis}_graph": cut(match(graph, size, None, axis), inside)})
    return made


def seeded(model: SparseGraphSVD, seed: int) -> SparseGraphSVD:
    """A clone whose random starts, if it makes any, do not depend on when and where it is fitted."""
    made: SparseGraphSVD = clone(model)
    return made if isinstance(model.random_state, Integral) else made.set_params(random_state=seed)


def in_proportion(model: SparseGraphSVD, axis: str, share: float) -> SparseGraphSVD:
    """A clone for a share of an axis: counts shrink with it, L1 bounds (of unit vectors) with its root."""
    made: SparseGraphSVD = clone(model)
    count, penalty = getattr(model, f"n_{axis}s"), getattr(model, f"{axis}_penalty")
    if count is not None:
        made.set_params(**{f"n_{axis}s": max(1, round(count * share))})
    if isinstance(penalty, L1Ball):
        made.set_params(**{f"{axis}_penalty": replace(penalty, bound=max(1.0, penalty.bound * np.sqrt(share)))})
    elif isinstance(penalty, Penalty) and (kept := penalty.size()) is not None:
        smaller: Any = replace(penalty, k=max(1, round(kept * share)))  # type: ignore[call-arg]
        made.set_params(**{f"{axis}_penalty": smaller})
    return made


def cut(graph: Graph, inside: Indices) -> Graph:
    """The graph between some of its nodes."""
    return Graph(graph.subgraph(inside).weights)
