"""From scores over folds to one point of the grid, and what to say of it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from netbic.estimators import DEFAULT_SMOOTHNESS, SparseGraphSVD

Floats = NDArray[np.float64]

RULES: Final = ("one_se", "best")


def split_scores(results: dict[str, Any]) -> Floats:
    """Scores by point and fold."""
    n_folds = sum(name.startswith("split") for name in results)
    return np.column_stack([results[f"split{fold}_test_score"] for fold in range(n_folds)])


def standard_errors(results: dict[str, Any]) -> Floats:
    """Standard error over folds of every point's mean score; zero where there is one fold only."""
    scores = split_scores(results)
    n_folds = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))


def standard_error_of_difference(results: dict[str, Any]) -> float:
    """Standard error, over folds, of the difference between the best point and another: the median over the others."""
    scores = split_scores(results)
    n_points, n_folds = scores.shape
    if n_points < 2 or n_folds < 2:
        return 0.0
    best = int(results["mean_test_score"].argmax())
    behind = scores[best] - np.delete(scores, best, axis=0)
    return float(np.median(behind.std(axis=1, ddof=1))) / float(np.sqrt(n_folds))


def choice(results: dict[str, Any], models: list[SparseGraphSVD], rule: str) -> int:
    """The best point, or ("one_se") the simplest whose mean is within one standard error of it.

    Simplest are the fewest members of all modules, as shares of both axes; then the least smoothness. The standard
    error is that of a difference to the best. A score's own counts how much folds differ, which all points share: where
    few of many samples are members it is far too large. It is one number for all points, since a handful of folds tells
    too little of each.
    """
    means = results["mean_test_score"]
    best = int(means.argmax())
    if rule == "best":
        return best
    within = means >= means[best] - standard_error_of_difference(results)
    members = np.round(results["mean_row_share"] + results["mean_column_share"], 9)
    smoothness = np.array([_smoothness(model) for model in models])
    order = np.lexsort((-means, smoothness, members))
    return int(order[within[order]][0])


def _smoothness(model: SparseGraphSVD) -> float:
    """How much the graphs count, both axes together; the default where none is given."""
    axes = ((model.row_graph, model.row_smoothness), (model.column_graph, model.column_smoothness))
    return float(sum((DEFAULT_SMOOTHNESS if given is None else given) for graph, given in axes if graph is not None))


def verdict(results: dict[str, Any], index: int, shape: tuple[int, int], predicts: bool) -> str:
    """What was chosen, what was best if that is another point, and which sizes the data do not identify.

    `predicts` says that a score of 0 is that of no prediction at all.
    """
    points, means = results["params"], results["mean_test_score"]
    best = int(means.argmax())
    of = "1 setting" if len(points) == 1 else f"{len(points):,} settings"
    said = f"Of {of} {_words(points[index])} is the best (score {means[index]:.4g})."
    if index != best:
        said = (
            f"Of {len(points):,} settings {_words(points[index])} is the simplest within one standard error of the "
            f"best (score {means[index]:.4g}; best: {_words(points[best])}, {means[best]:.4g})."
        )
    if predicts and means[best] <= 0:
        said += " No setting predicts what was held out any better than nothing would."
    return " ".join([said, *_unidentified(results, index, shape)])


def _unidentified(results: dict[str, Any], index: int, shape: tuple[int, int]) -> list[str]:
    """A sentence per size that is chosen at an edge of the grid, or keeps getting better up to it."""
    remarks = []
    for name, size in zip(("n_rows", "n_columns"), shape, strict=True):
        values = [size if point.get(name) is None else point[name] for point in results["params"]]
        tried = sorted(set(values)) if f"param_{name}" in results else []
        peaks = [results["mean_test_score"][np.equal(values, value)].max() for value in tried]
        rising = bool(np.all(np.diff(peaks) > 0))
        if len(tried) > 1 and (rising or values[index] == tried[-1]):
            axis = name.removeprefix("n_")
            edge = f"all {size:,} {axis}" if tried[-1] == size else f"{tried[-1]:,} of {size:,} {axis}"
            advice = "choose it as the resolution you want" if tried[-1] == size else "try larger ones"
            remarks.append(f"The data do not identify {name}: the best is at the edge of the grid ({edge}); {advice}.")
        elif len(tried) > 1 and values[index] == tried[0] > 1:
            remarks.append(f"The smallest {name} tried is chosen ({tried[0]:,}): try smaller ones.")
    return remarks


def _words(point: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in printable(point).items()) or "the model as it is"


def printable(point: dict[str, Any]) -> dict[str, Any]:
    """A point with what is no plain value written out, as tables show it."""
    plain = (int, float, str, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in point.items()}
