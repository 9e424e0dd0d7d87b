"""How well modules found in some samples explain others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from netbic.decomposition import SparseGraphSVD
from netbic.graphs import match
from netbic.penalties import L1Ball, Penalty

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def folds(n_samples: int, n_folds: int, random_state: Any) -> list[Indices]:
    """Held-out samples of each fold: a random partition into parts of equal size (but for one)."""
    if not 2 <= n_folds <= n_samples // 2:
        most = max(n_samples // 2, 2)
        raise ValueError(f"{n_folds} folds of {n_samples} samples: choose 2 to {most}, so that each holds two samples")
    order = np.random.default_rng(random_state).permutation(n_samples)
    return [np.sort(part) for part in np.array_split(order, n_folds)]


def held_out_scores(
    model: SparseGraphSVD, X: NDArray[Any], n_folds: int = 5, n_repeats: int = 1, seed: int = 0
) -> Floats:
    """Share of the variance of held-out samples explained by modules of the others: (n_repeats, n_folds).

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

    Remarks of the fits are not silenced here: threads share the filters of warnings, so that is the caller's to do.
    """
    scores = np.empty((n_repeats, n_folds))
    for repeat in range(n_repeats):
        for fold, part in enumerate(folds(X.shape[0], n_folds, [seed, repeat])):
            inside = np.setdiff1d(np.arange(X.shape[0]), part)
            fitted = on_fewer_rows(model, inside, X.shape[0]).fit(X[inside])
            scores[repeat, fold] = fitted.score(X[part])
    return scores


def on_fewer_rows(model: SparseGraphSVD, inside: Indices, n_rows: int) -> SparseGraphSVD:
    """A clone for some of the rows: the row graph cut to them, `n_rows` (or the row penalty's size) in proportion."""
    return _on_part(model, "row", inside, n_rows)


def on_fewer_columns(model: SparseGraphSVD, inside: Indices, n_columns: int) -> SparseGraphSVD:
    """A clone for some of the columns: the column graph cut to them, `n_columns` (or the penalty's size) likewise."""
    return _on_part(model, "column", inside, n_columns)


def _on_part(model: SparseGraphSVD, axis: str, inside: Indices, size: int) -> SparseGraphSVD:
    made: SparseGraphSVD = clone(model)
    share = len(inside) / size
    count, penalty, graph = (getattr(model, word) for word in (f"n_{axis}s", f"{axis}_penalty", f"{axis}_graph"))
    if count is not None:
        made.set_params(**{f"n_{axis}s": max(1, round(count * share))})
    if penalty is not None:
        made.set_params(**{f"{axis}_penalty": _in_proportion(penalty, share)})
    if graph is not None:
        weights = match(graph, size, None, axis).weights
        made.set_params(**{f"{axis}_graph": weights[inside][:, inside]})
    return made


def _in_proportion(penalty: Penalty, share: float) -> Penalty:
    """The same penalty for a share of the axis: counts shrink with it, L1 bounds (of unit vectors) with its root."""
    if isinstance(penalty, L1Ball):
        return replace(penalty, bound=max(1.0, penalty.bound * np.sqrt(share)))
    count = penalty.size() if isinstance(penalty, Penalty) else None
    return penalty if count is None else replace(penalty, k=max(1, round(count * share)))  # type: ignore[call-arg]
