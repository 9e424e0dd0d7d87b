"""How long the fits of a grid take: measured for some, expected for the others.

The time of a fit depends on the data: with all columns kept, it takes five times as long as with a tenth of them on
some data, and the same time on others. So the fits that are expected to be the slowest and the fastest are made first,
and every fit is timed where it runs. A setting that was fitted to another fold is expected to take the same time again.
For the others, times a + b w are fitted by least squares (a, b >= 0) to those that are known, w being the work of a
round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone

from netbic.arrays import Floats
from netbic.estimators import SparseGraphSVD
from netbic.selection.grid import Grid, points_of

_SHORTEST = 1e-3  # seconds; shorter times are not accurate
_GRAPH = 2.0  # a module with a graph is first searched for without it


def work_of(model: SparseGraphSVD, shape: tuple[int, int]) -> float:
    """The work of a round, relative to one with all rows and columns and no graph.

    Examples
    --------
    >>> import netbic
    >>> work_of(netbic.SparseGraphSVD(2, n_columns=25), (80, 100))
    0.25
    """
    kept = [size if count is None else min(count, size) for count, size in zip(_counts(model), shape, strict=True)]
    work = kept[0] / shape[0] * kept[1] / shape[1]
    weights = (model.row_graph, model.row_smoothness), (model.column_graph, model.column_smoothness)
    return work * _GRAPH if any(graph is not None and weight != 0 for graph, weight in weights) else work


def largest_share(model: SparseGraphSVD, grid: Grid, shape: tuple[int, int]) -> float:
    """The share of the slowest setting in the work of all settings of a grid.

    Examples
    --------
    >>> import netbic
    >>> largest_share(netbic.SparseGraphSVD(2), {"n_columns": [20, 30, 50]}, (80, 100))
    0.5
    """
    works = [work_of(clone(model).set_params(**point), shape) for point in points_of(model, grid, shape)]
    return max(works) / sum(works)


def _counts(model: SparseGraphSVD) -> tuple[int | None, int | None]:
    return model.n_rows, model.n_columns


class FitTimes:
    """Times of the fits of a grid to several folds.

    Parameters
    ----------
    works : list of float
        The work of each point of the grid (`work_of`).

    Examples
    --------
    >>> times = FitTimes([0.1, 0.5, 1.0])
    >>> times.add(0, 2.0)
    >>> times.add(2, 11.0)
    >>> round(times.expected([1, 2]))  # 1 + 10 w, and as measured
    17
    """

    def __init__(self, works: Sequence[float]) -> None:
        self._works = np.array(works)
        self._sums, self._counts = np.zeros(len(works)), np.zeros(len(works))

    def add(self, point: int, seconds: float) -> None:
        """A fit of a point has taken this time."""
        self._sums[point] += seconds
        self._counts[point] += 1

    @property
    def spent(self) -> float:
        """The time of all fits that were measured."""
        return float(self._sums.sum())

    def expected(self, points: Iterable[int]) -> float:
        """The time that fits of these points take, one after another; at least one fit has been measured."""
        return float(self._by_point()[list(points)].sum())

    def _by_point(self) -> Floats:
        measured = self._counts > 0
        means = self._sums[measured] / self._counts[measured]
        # Relative errors count, since the slowest settings are not all there is.
        terms = np.column_stack([np.ones(len(self._works)), self._works])
        weights = 1 / np.maximum(means, _SHORTEST)
        (a, b), _ = nnls(terms[measured] * weights[:, None], means * weights)
        times: Floats = a + b * self._works
        times[measured] = means
        return times
