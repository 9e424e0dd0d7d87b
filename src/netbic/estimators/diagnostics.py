"""What may be wrong with the modules of a fitted model: a table with a row per module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from netbic.arrays import Array, Floats, Indices
from netbic.solver import REPEATED, Module, correlations

DIAGNOSTIC_NUMBERS: Final = (
    "graph_weight",
    "worst_rank",
    "by_data_alone",
    "recurrent",
    "repeats",
    "correlation",
    "gene_overlap",
    "sample_overlap",
)
_LEADING = 10  # features with the largest weights of a module
_LISTED = 5  # names in a warning
_FEWEST = 4  # modules from which on it means something to lead half of them


def diagnostics_table(modules: Sequence[Module], scores: Floats) -> pd.DataFrame:
    """The table `diagnostics_` of a model; `scores` are the products Xv, a row per module."""
    leading = [_leading(module.v.support, module.v.values) for module in modules]
    recurrent = _recurrent(leading)
    rows = []
    for number, module in enumerate(modules):
        repeats, largest = most_similar(scores[number], scores[:number])
        overlaps = (np.nan, np.nan)
        if repeats >= 0:
            overlaps = _overlaps(module, modules[repeats])
        graph = module.graph_weight, module.worst_rank, module.by_data_alone
        among_recurrent = int(np.isin(leading[number], recurrent).sum())
        earlier = repeats if largest >= REPEATED else -1
        rows.append((number, *graph, among_recurrent, earlier, largest, *overlaps))
    return pd.DataFrame(rows, columns=["module", *DIAGNOSTIC_NUMBERS])


def diagnostics_from(numbers: Floats | None, n_modules: int) -> pd.DataFrame:
    """The table from its columns as an array; unknown numbers (NaN) if there is none."""
    if numbers is None:
        numbers = np.full((n_modules, len(DIAGNOSTIC_NUMBERS)), np.nan)
    table = pd.DataFrame(numbers, columns=list(DIAGNOSTIC_NUMBERS))
    for name, unknown in (("worst_rank", 0), ("recurrent", 0), ("repeats", -1)):
        table[name] = table[name].fillna(unknown).astype(np.int64)
    table.insert(0, "module", np.arange(n_modules))
    return table


def leading_features(vector: Floats) -> Indices:
    """Positions of the ten largest absolute entries of a vector that are not zero, largest first."""
    kept = np.flatnonzero(vector)
    return _leading(kept, vector[kept])


def _leading(support: Indices, values: Floats) -> Indices:
    leading: Indices = support[np.argsort(-np.abs(values), kind="stable")[:_LEADING]]
    return leading


def recurrent_features(vectors: Sequence[Floats]) -> Indices:
    """Features among the ten leading ones of at least half of the modules (none if there are fewer than four)."""
    return _recurrent([leading_features(vector) for vector in vectors])


def _recurrent(leading: Sequence[Indices]) -> Indices:
    if len(leading) < _FEWEST:
        return np.empty(0, dtype=np.intp)
    counts = np.bincount(np.concatenate(leading))
    return np.flatnonzero(2 * counts >= len(leading))


def recurrence(components: Array, names: Array | None) -> str | None:
    """A warning if features lead half of the modules or more; modules with few features are not examined."""
    if min((np.count_nonzero(vector) for vector in components), default=0) < 2 * _LEADING:
        return None
    found = [str(position if names is None else names[position]) for position in recurrent_features(list(components))]
    if not found:
        return None
    listed = ", ".join(found[:_LISTED]) + (f" and {len(found) - _LISTED} more" if len(found) > _LISTED else "")
    verb = "is" if len(found) == 1 else "are"
    return (
        f"{listed} {verb} among the ten leading columns of half of the modules or more (recurrent in diagnostics_): "
        "fit without the graph to see whether this comes from the data; `scale=True` reduces the weight of columns "
        "with a large variance"
    )


def most_similar(scores: Floats, earlier: Floats) -> tuple[int, float]:
    """The earlier module with the largest absolute correlation of scores, and that correlation; (-1, 0) if none."""
    if not len(earlier):
        return -1, 0.0
    similar = np.abs(correlations(scores, earlier))
    best = int(np.argmax(similar))
    return best, float(similar[best])


def _overlaps(one: Module, other: Module) -> tuple[float, float]:
    """Jaccard indices of the features and of the samples of two modules.

    Two modules that keep all samples have the same ones, whatever their scores are: then the second one is NaN.
    """
    keep_all = one.u.support.size == other.u.support.size == one.u.size
    return _jaccard(one.v.support, other.v.support), np.nan if keep_all else _jaccard(one.u.support, other.u.support)


def _jaccard(one: Indices, other: Indices) -> float:
    """Size of the intersection of two sets of indices relative to that of their union."""
    common = np.intersect1d(one, other, assume_unique=True).size
    union = one.size + other.size - common
    return common / union if union else 0.0
