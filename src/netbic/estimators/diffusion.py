"""Diffusion of the data over the network before the search: which weight, and what is multiplied by it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from netbic.arrays import Array, Floats, Indices
from netbic.estimators.parameters import is_number
from netbic.estimators.prediction import check_complete, smoother, span
from netbic.graph import Graph
from netbic.operators.corrected import Corrected
from netbic.operators.smoothing import Smoother, scaled_rows, smoothed, smoothed_rows
from netbic.penalties import Penalty

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

DIFFUSION_GRID: Final = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
_FOLDS, _REPEATS = 3, 3
_FEWEST_SAMPLES = 6  # two in each fold
# Diffusion is used if it explains a fifth more variance of samples that were left out, and two standard errors more:
# graphs with permuted nodes gain by chance, rewired ones up to a tenth by the degrees of their nodes.
_LEAST_GAIN, _LEAST_ERRORS = 0.2, 2
# With at most these shares of the gain in the first fold, or in the first repeat, no more fits are made. (In 258
# simulated data sets in which diffusion was used, its gain in the first fold was at least 0.08.)
_HOPELESS_FOLD, _HOPELESS = 0.25, 0.5


def smoother_of(
    model: SparseGraphSVD, operator: Corrected, X: Any, graph: Graph | None
) -> tuple[Smoother | None, pd.DataFrame | None]:
    """The smoother that the parameters ask for (None: no diffusion), and the scores if it was chosen.

    `operator` is the centred and scaled X, `graph` is the graph of its columns.
    """
    if model.diffusion is None or graph is None:
        return None, None
    if graph.is_signed:
        raise ValueError(
            f"diffusion={model.diffusion!r} but {graph.n_inhibiting:,} edges of the column_graph inhibit: diffusion "
            "replaces values by means over neighbours, which needs edges that activate. Use diffusion=None (the graph "
            "term of the model uses signs), or a graph without signs, e.g. column_graph.unsigned()"
        )
    check_complete(X)
    if is_number(model.diffusion):
        weight, scores = float(model.diffusion), None
    else:
        weight, scores = _cross_validate(model, operator, graph)
    return smoother(graph, weight), scores


def apply_smoother(operator: Corrected, by: Smoother | None, low_memory: bool) -> Corrected:
    """The smoothed matrix; the same one without a smoother."""
    return operator if by is None else smoothed(operator, by, low_memory)


def _cross_validate(model: SparseGraphSVD, operator: Corrected, graph: Graph) -> tuple[float, pd.DataFrame]:
    """The weight for which modules explain samples that were left out best, and the scores of all weights.

    The share of the variance of these samples, which are not smoothed, is compared. Rows are smoothed independently of
    each other: once for all folds.
    """
    if (X := scaled_rows(operator)) is None:
        raise ValueError(
            "diffusion='cv' needs a dense X: choose it on some of the samples, e.g. X[:500].toarray() or "
            "X[:500].compute(), and then give the number that was chosen (diffusion_)"
        )
    if X.shape[0] < _FEWEST_SAMPLES:
        raise ValueError(
            f"diffusion='cv' but X has {X.shape[0]} samples: at least {_FEWEST_SAMPLES} are needed, or give a number"
        )
    matrix = graph.term("normalized", relative=True).matrix
    parts = np.array_split(X, max(1, min(int(effective_n_jobs(model.n_jobs)), len(X))))
    run = Parallel(n_jobs=model.n_jobs, prefer="threads")
    found = run(delayed(smoothed_rows)(matrix, part, DIFFUSION_GRID[1:]) for part in parts)
    smooth = [X, *(np.concatenate(each) for each in zip(*found, strict=True))]
    if model.is_joint and isinstance(model.n_components, str):  # the same number for every weight
        plain = clone(model).set_params(diffusion=None, column_graph=None, column_smoothness=None, scale=False)
        model = clone(model).set_params(n_components=max(len(plain.modules_of(plain.prepared(X))), 1))
    scores = np.empty((0, len(DIFFUSION_GRID)))
    for repeat in range(_REPEATS):
        order = np.random.default_rng(repeat).permutation(X.shape[0])
        for part in np.array_split(order, _FOLDS):
            scores = np.vstack([scores, _fold_scores(model, graph, smooth, np.sort(part))])
            if len(scores) == 1 and _best_gain(scores)[1] <= _HOPELESS_FOLD * _LEAST_GAIN:
                break
        if len(scores) < _FOLDS or _best_gain(scores)[1] <= _HOPELESS * _LEAST_GAIN:
            break
    # Standard errors of the differences from no diffusion: repeats make them more precise, but are no more samples.
    errors = np.full(len(DIFFUSION_GRID), np.nan)
    if len(scores) > 1:
        errors = np.asarray((scores - scores[:, :1]).std(axis=0, ddof=1) / np.sqrt(_FOLDS))
    table = pd.DataFrame({"diffusion": DIFFUSION_GRID, "score": scores.mean(axis=0), "gain_error": errors})
    best, gain = _best_gain(scores)
    used = gain > _LEAST_GAIN and len(scores) == _REPEATS * _FOLDS
    used = used and gain * scores[:, 0].mean() > _LEAST_ERRORS * errors[best]
    return DIFFUSION_GRID[best] if used else 0.0, table


def _best_gain(scores: Floats) -> tuple[int, float]:
    """The best weight, and its gain over no diffusion relative to the score of that; a row of scores per fold."""
    means = scores.mean(axis=0)
    best = int(means.argmax())
    return best, float(means[best] / max(means[0], np.finfo(float).tiny) - 1)


def _fold_scores(model: SparseGraphSVD, graph: Graph, smooth: list[Array], held_out: Indices) -> list[float]:
    """For every weight, the share of the variance of held-out samples that modules of the others explain.

    The others are fitted by a clone with sizes in proportion; the graph of the samples is not used.
    """
    X = smooth[0]
    kept = np.setdiff1d(np.arange(len(X)), held_out)
    share = kept.size / len(X)
    part: SparseGraphSVD = clone(model).set_params(
        diffusion=None, column_graph=graph.renamed(None) if model.column_smoothness else None,
        row_graph=None, row_smoothness=None, search="joint" if model.is_joint else "sequential", scale=False,
        verbose=0, n_jobs=None,
        center="columns" if model.center in ("columns", "both") else None,
    )  # fmt: skip
    if model.n_rows is not None:
        part.set_params(n_rows=max(1, round(model.n_rows * share)))
    if isinstance(model.row_penalty, Penalty):
        part.set_params(row_penalty=model.row_penalty.for_share(share))
    unseen = X[held_out]
    if part.center is not None:
        unseen = unseen - X[kept].mean(axis=0)
    total = max(float(np.sum(np.square(unseen, dtype=np.float64))), np.finfo(float).tiny)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about trial fits
        run = Parallel(n_jobs=model.n_jobs, prefer="threads")
        fitted = run(delayed(clone(part).fit)(values[kept]) for values in smooth)
    spans = (span(each.components_.astype(np.float64)) for each in fitted)
    return [float(np.sum((unseen @ basis) ** 2)) / total for basis in spans]
