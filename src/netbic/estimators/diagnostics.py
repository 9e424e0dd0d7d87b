"""What may be wrong with the modules of a fitted model: a table with a row per module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats, Indices
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


def diagnostics_table(modules: Sequence[Module], scores: Floats, samples: Bools, supports: Bools) -> pd.DataFrame:
    """The table `diagnostics_` of a model.

    `scores` are the products Xv, a row per module; `samples` and `supports` say which rows and columns it has.
    """
    leaders = [_leading(module.v.support, module.v.values) for module in modules]
    recurrent = _recurrent(leaders)
    rows = []
    for number, module in enumerate(modules):
        repeats, largest = most_similar(scores[number], scores[:number])
        overlaps = (np.nan, np.nan)
        if repeats >= 0:
            both = samples[number], samples[repeats]
            # Two modules that keep all samples have the same ones, whatever their scores are.
            overlaps = jaccard(supports[number], supports[repeats]), np.nan if np.all(both) else jaccard(*both)
        graph = module.graph_weight, module.worst_rank, module.by_data_alone
        leading = int(np.isin(leaders[number], recurrent).sum())
        earlier = repeats if largest >= REPEATED else -1
        rows.append((number, *graph, leading, earlier, largest, *overlaps))
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
    """The same for a vector given by its non-zero entries."""
    leading: Indices = support[np.argsort(-np.abs(values), kind="stable")[:_LEADING]]
    return leading


def recurrent_features(vectors: Sequence[Floats]) -> Indices:
    """Features among the ten leading ones of at least half of the modules (none if there are fewer than four)."""
    return _recurrent([leading_features(vector) for vector in vectors])


def _recurrent(leaders: Sequence[Indices]) -> Indices:
    """Features that lead at least half of the modules, given the leading features of each."""
    if len(leaders) < _FEWEST:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(2 * np.bincount(np.concatenate(leaders)) >= len(leaders))


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


def jaccard(one: Bools, other: Bools) -> float:
    """Size of the intersection of two sets relative to that of their union."""
    union = int(np.count_nonzero(one | other))
    return int(np.count_nonzero(one & other)) / union if union else 0.0
