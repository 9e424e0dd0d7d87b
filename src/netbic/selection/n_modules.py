"""The number of modules: each is tested in turn against permuted residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import eigh
from sklearn.base import clone

from netbic.arrays import Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators import SparseGraphSVD, check_count, unwrapped
from netbic.operators import Scaler, as_operator, winsorised
from netbic.selection.fits import FitExecutor, Jobs, executor_for, quiet
from netbic.selection.resampling import seeded

_REFITS = 3  # few, so that a single outlier cannot dominate a module
SIZES = ("n_rows", "n_columns", "row_penalty", "column_penalty")


@dataclass(frozen=True)
class ModuleCount:
    """How many modules stand out.

    Attributes
    ----------
    n : int
        Modules before the first that does not stand out.
    table : DataFrame
        A row per module tested: `module`, `statistic` (its singular value d), `expected` (mean of the permuted ones),
        `p_value`, and `q_value` (Benjamini and Hochberg's, over the modules tested).
    exhausted : bool
        Whether all modules tested stand out: there may be more.
    """

    n: int
    table: pd.DataFrame
    exhausted: bool

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        counted = "1 module stands out" if self.n == 1 else f"{self.n} modules stand out"
        if self.exhausted:
            return f"At least {counted}; no more were tested."
        last = self.table["p_value"].iloc[-1]
        if not self.n:
            return f"No module stands out (p = {last:.2g} for the first)."
        return f"{counted}; the next does not (p = {last:.2g})."


def n_modules(
    model: SparseGraphSVD,
    X: Matrix,
    *,
    most: int = 20,
    n_permutations: int = 19,
    level: float = 0.05,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> ModuleCount:
    """Count the modules that stand out against permuted data.

    Modules are found one after another, without a graph (a graph finds modules in any data). The residual of X after
    the previous modules is compared with copies in which every column is permuted on its own; entries beyond three
    robust standard deviations of their column are winsorised first. The test stops at the first module whose singular
    value does not exceed all but a share `level` of the permuted ones.

    Parameters
    ----------
    model : SparseGraphSVD
        Its sizes (or penalties), centring and scaling are used. They must not have been chosen on the same data, or the
        p-values are too small. Without any, modules are dense: the singular pairs of X.
    X : array or DataFrame
        Missing entries, where the model allows them, are replaced by the mean of their column.
    most : int
        Maximum number of modules to test.
    n_permutations : int
        The smallest possible p-value is 1 / (n_permutations + 1): 0.05 for 19.
    level : float
        Significance level of each test.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over permutations, or the workers of the current Dask client; the result does not depend on it.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 1000, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(n_rows=40, n_columns=60)
    >>> netbic.selection.n_modules(model, study.expression, random_state=0).verdict
    '2 modules stand out; the next does not (p = ...).'
    """
    check_count("most", most)
    check_count("n_permutations", n_permutations)
    _check_level(level, n_permutations)
    model = unwrapped(model)
    generator = np.random.default_rng(random_state)
    seed = int(generator.integers(2**31))
    single, executor = seeded(_single(model), seed), executor_for(X, n_jobs)
    rows: list[tuple[int, float, float, float]] = []
    with quiet():
        residual = _prepared(model, X)
        for module in range(most):
            # Winsorised, because heavy tails would make single entries look like modules.
            values = winsorised(residual)
            leading, permuted = _leading(single, values), _permuted(single, values, n_permutations, seed, executor)
            p_value = (1 + int((permuted >= leading.d).sum())) / (1 + n_permutations)
            rows.append((module, leading.d, float(permuted.mean()), p_value))
            if p_value > level:
                break
            residual, seed = _deflated(residual, leading), int(generator.integers(2**31))
    table = pd.DataFrame(rows, columns=["module", "statistic", "expected", "p_value"])
    table["q_value"] = stats.false_discovery_control(table["p_value"])
    n_significant = int((table["p_value"] <= level).sum())
    return ModuleCount(n_significant, table, n_significant == most)


def _check_level(level: float, n_permutations: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: a number between 0 and 1 is needed")
    if (smallest := 1 / (1 + n_permutations)) > level:
        raise ValueError(
            f"n_permutations={n_permutations}: no p-value can be below {smallest:.2g}, so no module can be significant "
            f"(p <= {level:g}): use at least {int(np.ceil(1 / level)) - 1}"
        )


def _single(model: SparseGraphSVD) -> SparseGraphSVD:
    """A clone that finds one module in a prepared matrix, without graphs."""
    made: SparseGraphSVD = clone(model).set_params(
        n_components=1, center=None, scale=False, row_graph=None, column_graph=None, n_jobs=None,
        row_smoothness=None, column_smoothness=None, smoothing=None,
    )  # fmt: skip
    return made


def _prepared(model: SparseGraphSVD, X: Matrix) -> Floats:
    """X centred and scaled as the model does it, with missing entries replaced by column means."""
    X = checked(X, missing=model.missing)
    if is_sparse(X):
        raise ValueError("X is sparse and cannot be permuted: give X.toarray(), of fewer features if needed")
    values = np.asarray(X, dtype=np.float64)
    if (missing := np.isnan(values)).any():
        if model.missing == "error":
            raise ValueError("X has missing values: fill them first, or use missing='ignore' to take column means")
        values = np.where(missing, np.nanmean(np.where(missing.all(axis=0), 0.0, values), axis=0), values)
    return Scaler.learn(as_operator(values, low_memory=True), model.center, model.scale).apply(values)


class _Triplet(NamedTuple):
    """Singular value and vectors of a module; zeros if there is none."""

    d: float
    u: Floats
    v: Floats


def _permuted(model: SparseGraphSVD, X: Floats, n_permutations: int, seed: int, executor: FitExecutor) -> Floats:
    """Singular values of the leading modules of copies of X in which every column is permuted on its own."""
    seeds = [(seed, number) for number in range(n_permutations)]
    return np.array(list(executor.map(_permuted_value, (model, X), seeds)))


def _permuted_value(data: tuple[SparseGraphSVD, Floats], seed: tuple[int, int]) -> float:
    model, X = data
    return _leading(model, np.random.default_rng(seed).permuted(X, axis=0)).d


def _deflated(residual: Floats, module: _Triplet) -> Floats:
    """Subtract a module that was found in winsorised data, refitted to the data themselves on its own members.

    Otherwise strong modules, whose entries are winsorised, would leave remainders that look like further modules.
    """
    _, u, v = module
    rows, columns = u != 0, v != 0
    for _ in range(_REFITS):
        u = np.where(rows, residual @ v, 0.0)
        u /= max(float(np.linalg.norm(u)), np.finfo(float).tiny)
        v = np.where(columns, u @ residual, 0.0)
        d = max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        v /= d
    return residual - np.outer(d * u, v)


def _leading(model: SparseGraphSVD, X: Floats) -> _Triplet:
    if all(getattr(model, name) is None for name in SIZES):
        return _leading_singular_pair(X)
    fitted = clone(model).fit(X)
    if not fitted.n_components_:
        return _Triplet(0.0, np.zeros(X.shape[0]), np.zeros(X.shape[1]))
    return _Triplet(float(fitted.singular_values_[0]), fitted.left_vectors_[:, 0], fitted.components_[0])


def _leading_singular_pair(X: Floats) -> _Triplet:
    """The dense module, without iterating to it."""
    if X.shape[0] > X.shape[1]:
        d, v, u = _leading_singular_pair(X.T)
        return _Triplet(d, u, v)
    last = X.shape[0] - 1
    u = eigh(X @ X.T, subset_by_index=[last, last], check_finite=False)[1][:, 0]
    v = X.T @ u
    d = float(np.linalg.norm(v))
    return _Triplet(d, u, v / d if d > 0 else v)
