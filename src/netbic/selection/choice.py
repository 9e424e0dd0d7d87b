"""From scores over folds to one point of the grid, and a description of the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from netbic.arrays import Floats
from netbic.estimators import AXES, SparseGraphSVD, TwoTables, smoothness_of
from netbic.selection.grid import Parameters
from netbic.selection.resampling import SIDES

Results = dict[str, Any]  # as GridSearchCV.cv_results_

RULES: Final = ("one_se", "best")
_SCORES: Final = {
    "held_out": "the share of the variance of held-out samples that is explained, plus that of held-out features",
    "correlation": "the correlation of the scores of both tables in held-out samples, averaged over the pairs",
}


class AxisSize(NamedTuple):
    """The size of an axis, and what it consists of in plain words."""

    size: int
    units: str


def split_scores(results: Results) -> Floats:
    """Scores by point and fold."""
    n_folds = sum(name.startswith("split") for name in results)
    return np.column_stack([results[f"split{fold}_test_score"] for fold in range(n_folds)])


def standard_errors(results: Results) -> Floats:
    """Standard error over folds of every point's mean score; zero if there is a single fold."""
    scores = split_scores(results)
    n_folds = scores.shape[1]
    return scores.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))


def standard_error_of_difference(results: Results) -> float:
    """Standard error over folds of the difference between the best point and another: the median over the others."""
    scores = split_scores(results)
    n_points, n_folds = scores.shape
    if n_points < 2 or n_folds < 2:
        return 0.0
    best = int(results["mean_test_score"].argmax())
    differences = scores[best] - np.delete(scores, best, axis=0)
    return float(np.median(differences.std(axis=1, ddof=1))) / float(np.sqrt(n_folds))


def choice(results: Results, models: Sequence[SparseGraphSVD | TwoTables], rule: str) -> int:
    """The index of the best point or, for "one_se", of the simplest one within one standard error of it.

    Simplest means fewest members of all modules, as shares of both axes, then least smoothness. The standard error is
    that of the difference to the best point: that of a score itself includes the variation between folds, which all
    points share, and is far too large where few of many samples are members. It is one number for all points, because
    few folds give a poor estimate for each.
    """
    means = results["mean_test_score"]
    best = int(means.argmax())
    if rule == "best":
        return best
    within = means >= means[best] - standard_error_of_difference(results)
    members = np.round(sum(results[f"mean_{axis}_share"] for axis in _axes(models[0])), 9)
    smoothness = np.array([_smoothness(model) for model in models])
    order = np.lexsort((-means, smoothness, members))
    return int(order[within[order]][0])


def _axes(model: SparseGraphSVD | TwoTables) -> tuple[str, ...]:
    return SIDES if isinstance(model, TwoTables) else AXES


def _smoothness(model: SparseGraphSVD | TwoTables) -> float:
    """Smoothness on both axes together; the default where none is given."""
    axes = [(getattr(model, f"{axis}_graph"), getattr(model, f"{axis}_smoothness")) for axis in _axes(model)]
    return sum(smoothness_of(given, model.smoothness_scale) for graph, given in axes if graph is not None)


def verdict(results: Results, index: int, sizes: Mapping[str, AxisSize], criterion: str) -> tuple[str, tuple[str, ...]]:
    """What was chosen, the best point if that is another, and the names of sizes that the data do not identify.

    `sizes` are those of the axes, by the name of the parameter that selects part of it.
    """
    points, means = results["params"], results["mean_test_score"]
    best = int(means.argmax())
    summary = f"Chosen: {_shown(points[index])} (score {means[index]:.4g}), "
    if index != best:
        summary += (
            f"the simplest of {len(points):,} settings within one standard error of the best, "
            f"{_shown(points[best])} (score {means[best]:.4g})."
        )
    else:
        summary += "the only setting tried." if len(points) == 1 else f"the best of {len(points):,} settings."
    summary += f" The score is {_SCORES[criterion]}."
    if criterion == "correlation" and means[best] <= 0:
        summary += " No setting finds pairs that are correlated in held-out samples."
    sentences, unidentified = _at_edges(results, index, sizes)
    return " ".join([summary, *sentences]), unidentified


def _at_edges(results: Results, index: int, sizes: Mapping[str, AxisSize]) -> tuple[list[str], tuple[str, ...]]:
    """A sentence per size whose chosen value is at an edge of the grid, or whose score increases up to it."""
    sentences, unidentified = [], []
    for name, (size, units) in sizes.items():
        values = [size if point.get(name) is None else point[name] for point in results["params"]]
        tried = sorted(set(values)) if f"param_{name}" in results else []
        peaks = [results["mean_test_score"][np.equal(values, value)].max() for value in tried]
        rising = bool(np.all(np.diff(peaks) > 0))
        if len(tried) > 1 and (rising or values[index] == tried[-1]):
            largest = f"all {size:,} {units}" if tried[-1] == size else f"{tried[-1]:,} of {size:,} {units}"
            advice = "choose the module size you want to study" if tried[-1] == size else "try larger values"
            unidentified.append(name)
            sentences.append(
                f"The data do not identify {name}: the best value is the largest tried ({largest}); {advice}."
            )
        elif len(tried) > 1 and values[index] == tried[0] > 1:
            sentences.append(f"The smallest {name} tried is chosen ({tried[0]:,}): try smaller values.")
    return sentences, tuple(unidentified)


def _shown(point: Parameters) -> str:
    values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in printable(point).items()}
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "the model as given"


def printable(point: Parameters) -> Parameters:
    """A point as shown in tables: values other than numbers and strings by their repr."""
    plain = (int, float, str, bool, type(None))
    return {name: value if isinstance(value, plain) else repr(value) for name, value in point.items()}
