"""Whether batches, plates or donors differ in more features than by chance: in the data, not in the modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import f as f_distribution

from netbic.arrays import Floats, Indices, kind_of, to_dense
from netbic.association.variables import CATEGORICAL, guess
from netbic.association.words import batch_columns
from netbic.estimators.covariates import design_of_new
from netbic.estimators.inputs import axis_names
from netbic.estimators.pairs import TwoTableModel
from netbic.estimators.svd import SparseGraphSVD
from netbic.operators.blocks import select_columns
from netbic.operators.masked import regress_on_observed

_FEATURES: Final = 1000  # that are drawn at most; enough for a share
_SAMPLES: Final = 2000
_PERMUTATIONS: Final = 99  # features are correlated: chance alone can give a share far above 5 % of them
_LEVEL: Final = 0.05
_LEAST: Final = 0.1  # share that is worth a line
_FEWEST = 10  # degrees of freedom that are left for the variance within levels


def batch_effects(
    X: Any,
    samples: pd.DataFrame,
    variables: Iterable[str] = (),
    *,
    design: Floats | None = None,
    features: str = "features",
) -> Iterator[str]:
    """A line for each batch or donor between whose levels clearly more features of X differ than by chance.

    At most 1,000 features and 2,000 samples are drawn. A line needs 10 % of the features with p < 0.05 (F test), and
    more than with each of 99 permutations of the labels.

    Parameters
    ----------
    X : DataFrame, dense or sparse matrix, or Dask array
        Missing values are left out, feature by feature. There are no lines for an operator, which has no entries.
    samples : DataFrame
        A row per row of X, in the same order.
    variables : iterable of str
        Only these columns; none: all whose names say batch, plate, site, donor and the like.
    design : array of shape (n_samples, c), optional
        Covariates whose effects were removed in the fit: they are removed here, too.
    features : str
        What the columns of X are called.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> plates = pd.DataFrame({"plate": np.arange(60) % 3})
    >>> X = np.random.default_rng(0).standard_normal((60, 100))
    >>> list(batch_effects(X, plates))
    []
    >>> X[:, :50] += 2 * plates.to_numpy()
    >>> next(batch_effects(X, plates)).split(" (")[0]
    'plate: 55 % of the features differ between its 3 levels'
    """
    asked, kind = set(variables), kind_of(X)
    names = [name for name in batch_columns(samples) if not asked or name in asked]
    chosen = {name: guess(samples[name], asked=True) for name in names}
    chosen = {name: each for name, each in chosen.items() if each.kind == CATEGORICAL and len(each.levels) > 1}
    if not chosen or kind not in ("dense", "table", "sparse", "dask"):
        return
    rows, values = _drawn(X)
    values = _without_covariates(values, None if design is None else design[rows])
    n_removed = 0 if design is None else design.shape[1]
    for name, variable in chosen.items():
        known = variable.known[rows]
        labels = np.unique(variable.values[rows][known], return_inverse=True)[1]
        n_levels = int(labels.max(initial=-1)) + 1
        if n_levels < 2 or labels.size - n_levels - n_removed < max(_FEWEST, n_levels):
            continue
        test = _Test(values[known], n_removed)
        share, random = test.share(labels), np.random.default_rng(0)
        if share < _LEAST or any(test.share(random.permutation(labels)) >= share for _ in range(_PERMUTATIONS)):
            continue
        yield (
            f"{name}: {100 * share:.0f} % of the {features} differ between its {n_levels} levels "
            f"({100 * _LEVEL:.0f} % by chance): `covariates={name}` removes these differences"
        )


def removed_design(model: SparseGraphSVD | TwoTableModel, X: Any, covariates: Any = None) -> Floats | None:
    """The covariates of the samples in X as columns: those of the fit, or others; None without covariates."""
    if model.covariate_coding_ is None:
        return None
    if covariates is None and model.covariates_ is not None and len(model.covariates_) == X.shape[0]:
        return model.covariates_.to_numpy()
    return design_of_new(model, covariates, X.shape[0], axis_names(X)[0])


def _drawn(X: Any) -> tuple[Indices, Floats]:
    """Random samples and features of X, as a dense array; all of them if there are not many."""
    n, p = X.shape
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(p, min(p, _FEATURES), replace=False))
    rows = np.sort(random.choice(n, min(n, _SAMPLES), replace=False))
    if isinstance(X, pd.DataFrame):
        return rows, X.iloc[rows, columns].to_numpy(dtype=np.float64)
    part = select_columns(X, columns)[rows]
    return rows, to_dense(part.compute() if kind_of(X) == "dask" else part, np.float64)


def _without_covariates(values: Floats, design: Floats | None) -> Floats:
    """What the covariates leave of each feature, about zero; missing values stay missing."""
    design = np.empty((len(values), 0)) if design is None else design
    if np.isnan(values).any():
        means, effects = regress_on_observed(values, design)
        return values - means - design @ effects
    columns = np.column_stack([np.ones(len(values)), design])
    return np.asarray(values - columns @ np.linalg.lstsq(columns, values, rcond=None)[0])


class _Test:
    """F tests of all features (columns) for differences between levels, with what stays the same for all labels."""

    def __init__(self, values: Floats, n_removed: int) -> None:
        self._seen = (~np.isnan(values)).astype(np.float64)
        self._values = np.nan_to_num(values)
        self._squares, self._n_removed = np.einsum("ij,ij->j", self._values, self._values), n_removed

    def share(self, labels: Indices) -> float:
        """The share of features with p < 0.05 among those that can be tested."""
        indicators = sp.csr_array((np.ones(labels.size), (labels, np.arange(labels.size))))
        counts, sums = np.asarray(indicators @ self._seen), np.asarray(indicators @ self._values)
        n = counts.sum(axis=0)
        common = sums.sum(axis=0) ** 2 / np.maximum(n, 1)
        between = (sums**2 / np.maximum(counts, 1)).sum(axis=0) - common
        within = self._squares - common - between
        levels = (counts > 0).sum(axis=0)
        free = n - levels - self._n_removed
        tested = (levels > 1) & (free >= _FEWEST) & (within > 1e-9 * self._squares)
        if not tested.any():
            return 0.0
        freedom = (levels - 1)[tested], free[tested]
        ratios = between[tested] / freedom[0] / (within[tested] / freedom[1])
        return float(np.mean(f_distribution.sf(ratios, *freedom) < _LEVEL))
