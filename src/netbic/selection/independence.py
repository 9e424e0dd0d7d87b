"""What makes evidence from other samples, or from random features, look stronger than it is: others that are alike.

Samples in the order of time or of replicates are no independent evidence, and neighbouring features with common noise
move together anywhere.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd

from netbic.arrays import Floats, Matrix
from netbic.estimators.prediction import module_scores
from netbic.estimators.svd import SparseGraphSVD
from netbic.selection.halves import Splits

FEWEST_SAMPLES: Final = 20  # fewer leave fewer than ten in each half
_ALIKE = 0.4  # median correlation of successive samples of a time series
_DRIFT = 2.0  # times as much as between successive samples that scores change over a tenth of a slow series
_PATCHES = 0.04  # mean correlation of neighbours in the graph, beyond random features, that makes patches
_FEWEST_EDGES, _MOST_EDGES = 30, 1000  # by which it is known


def alike(model: SparseGraphSVD, X: Matrix, sample_name: str) -> str:
    """How successive samples are alike, in words; "" if they are not."""
    if (r := successive_correlation(X)) >= _ALIKE:
        return f"the median feature correlates by {r:.2f} with itself one {sample_name} later"
    lag, times = drift(module_scores(model, X)) if model.n_components_ else (1, 0.0)
    if times < _DRIFT:
        return ""
    return f"scores of modules change {times:.1f} times as much over {lag} {sample_name}s as from one to the next"


def drift(scores: Floats) -> tuple[int, float]:
    """A tenth of the samples (5 to 50), and how many times scores change over so many compared with the next one.

    It is the median over modules of medians over samples, which do not see a few jumps, as between sorted groups. It is
    1 if samples are independent, and large if scores follow a slow trend, also under noise that hides the trend from
    one sample to the next.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).standard_normal((200, 3))
    >>> lag, times = drift(noise)
    >>> lag, round(times, 1), drift(noise + np.linspace(0, 30, 200)[:, None])[1] > 2
    (20, 1.0, True)
    """
    lag = int(np.clip(len(scores) // 10, 5, 50))
    if len(scores) < FEWEST_SAMPLES:
        return lag, 1.0
    near, far = (np.nanmedian(np.abs(scores[k:] - scores[:-k]), axis=0) for k in (1, lag))
    return lag, float(np.median(far[near > 0] / near[near > 0])) if (near > 0).any() else 1.0


def successive_correlation(X: Any, n_features: int = 200) -> float:
    """The median correlation of a feature with itself one sample later, in a dense table; 0 for other data.

    It is that of an autoregressive series, r, whose differences correlate by -(1 - r) / 2. Differences do not see
    batches, studies and groups in which the samples are sorted.
    """
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    if not isinstance(values, np.ndarray) or len(values) < FEWEST_SAMPLES:
        return 0.0
    some = np.unique(np.linspace(0, values.shape[1] - 1, n_features).astype(int))
    some = np.asarray(values[:, some], dtype=float)
    steps = np.nan_to_num(np.diff(some, axis=0))
    squares = (steps**2).sum(axis=0)
    if not (varies := squares > 0).any():
        return 0.0
    return float(1 + 2 * np.median((steps[1:] * steps[:-1]).sum(axis=0)[varies] / squares[varies]))


def patches(weights: Floats, splits: Splits, feature_name: str) -> str:
    """A remark if neighbours in the graph are alike everywhere, so that any patch of the graph is found again."""
    graph = splits.model.column_graph
    if graph is None or not len(weights) or splits.X.shape[0] < FEWEST_SAMPLES:
        return ""
    random, (tails, heads, _), p = np.random.default_rng(splits.seed), graph.edges(), splits.X.shape[1]
    members = weights != 0
    outside = np.flatnonzero(~(members[:, tails] & members[:, heads]).any(axis=0))
    if outside.size < _FEWEST_EDGES:
        return ""
    at = random.choice(outside, min(outside.size, _MOST_EDGES), replace=False)
    ends = tails[at], heads[at]
    used, where = np.unique(np.concatenate([*ends, random.integers(p, size=2 * at.size)]), return_inverse=True)
    part = splits.part(np.arange(splits.X.shape[0]))
    basis = np.linalg.qr(np.vstack([part.scores(weights), part.depth]).T)[0]
    rest = part.columns(used)
    rest -= basis @ (basis.T @ rest)
    rest /= np.maximum(np.linalg.norm(rest, axis=0), np.finfo(float).tiny)
    one, two, three, four = np.split(where, 4)
    near, far = (float(np.einsum("ij,ij->j", rest[:, a], rest[:, b]).mean()) for a, b in ((one, two), (three, four)))
    if near - far < max(_PATCHES, 4 / math.sqrt(len(rest) * at.size)):
        return ""
    return (
        f"Neighbours in the graph are correlated outside of these modules, too (by {near:.2f}, random {feature_name}s "
        f"by {far:.2f}): where all neighbours vary together, any patch of them is found again."
    )
