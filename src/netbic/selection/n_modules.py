"""How many modules: test them one after another against permuted residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import eigh
from sklearn.base import clone

from netbic.arrays import checked
from netbic.estimators import SparseGraphSVD, check_count, refuse_anndata, unwrapped
from netbic.operators import Preparation, as_operator, winsorised
from netbic.selection.fits import Fitters, Jobs, fitters, quiet
from netbic.selection.resampling import seeded

Floats = NDArray[np.float64]

_REFITS = 3  # few, so that a single far entry cannot take a module over


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
        Whether all modules that were to be tested stand out: there may be more.
    """

    n: int
    table: pd.DataFrame
    exhausted: bool

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        standing = "1 module stands out" if self.n == 1 else f"{self.n} modules stand out"
        if self.exhausted:
            return f"At least {standing}; no more were tested."
        last = self.table["p_value"].iloc[-1]
        if not self.n:
            return f"No module stands out (the first: p = {last:.2g})."
        return f"{standing}; the next does not (p = {last:.2g})."


def n_modules(
    model: SparseGraphSVD,
    X: Any,
    *,
    most: int = 20,
    n_permutations: int = 19,
    level: float = 0.05,
    random_state: Any = None,
    n_jobs: Jobs = None,
) -> ModuleCount:
    """Count the modules that stand out against permuted data.

    Modules are sought one after another, without a graph (a graph finds something everywhere). What is left of X after
    the ones before is compared with copies of it in which every column is permuted within itself; entries beyond three
    robust standard deviations of their column are drawn in first. The first module whose singular value does not exceed
    all but a share `level` of the permuted ones ends the count.

    Parameters
    ----------
    model : SparseGraphSVD
        Its sizes (or penalties), centring and scaling are used. They must not have been chosen on the same data, or the
        p-values are too small. Without any, modules are dense: the singular pairs of X.
    X : array or DataFrame
        Missing values, where the model allows for them, are filled with their column's mean.
    most : int
        Modules to test at most.
    n_permutations : int
        19 reach p = .05.
    level : float
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over permutations, or the workers of the present Dask client; the answer does not depend on it.

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
    if not 1 / (1 + n_permutations) <= level < 1:
        least = int(np.ceil(1 / level)) - 1 if 0 < level < 1 else 19
        raise ValueError(f"level={level} cannot be reached with {n_permutations} permutations: use at least {least}")
    refuse_anndata(X)
    model = unwrapped(model)
    single = clone(model).set_params(
        n_components=1, center=None, scale=False, row_graph=None, column_graph=None, n_jobs=None,
        row_smoothness=None, column_smoothness=None,
    )  # fmt: skip
    generator = np.random.default_rng(random_state)
    seed = int(generator.integers(2**31))
    single = seeded(single, seed)
    rows: list[tuple[int, float, float, float]] = []
    workers = fitters(X, n_jobs)
    with quiet():
        residual = _prepared(model, X)
        for module in range(most):
            drawn_in = winsorised(residual)  # heavier tails would make single entries look like modules
            own, u, v = _leading(single, drawn_in)
            chance = _permuted_values(single, drawn_in, n_permutations, seed, workers)
            p_value = (1 + int((chance >= own).sum())) / (1 + n_permutations)
            rows.append((module, own, float(chance.mean()), p_value))
            if p_value > level:
                break
            residual, seed = _without(residual, u, v), int(generator.integers(2**31))
    table = pd.DataFrame(rows, columns=["module", "statistic", "expected", "p_value"])
    table["q_value"] = stats.false_discovery_control(table["p_value"])
    standing = int((table["p_value"] <= level).sum())
    return ModuleCount(standing, table, standing == most)


def _prepared(model: SparseGraphSVD, X: Any) -> Floats:
    """The matrix as the model would see it."""
    X = checked(X, missing=model.missing)
    if sp.issparse(X):
        raise ValueError("X is sparse and cannot be permuted as it is: give X.toarray(), of fewer features if need be")
    values = np.asarray(X, dtype=np.float64)
    if (holes := np.isnan(values)).any():
        if model.missing == "error":
            raise ValueError("X has missing values: fill them first, or use missing='ignore' to take column means")
        values = np.where(holes, np.nanmean(np.where(holes.all(axis=0), 0.0, values), axis=0), values)
    preparation = Preparation.learn(as_operator(values, low_memory=True), model.center, model.scale)
    return preparation.apply(values)


def _permuted_values(model: SparseGraphSVD, X: Floats, n_permutations: int, seed: int, workers: Fitters) -> Floats:
    """Singular values of the leading modules of copies of X, every column permuted within itself."""
    seeds = [(seed, number) for number in range(n_permutations)]
    return np.array(list(workers.each(_permuted_value, (model, X), seeds)))


def _permuted_value(data: tuple[SparseGraphSVD, Floats], seed: tuple[int, int]) -> float:
    model, X = data
    return _leading(model, np.random.default_rng(seed).permuted(X, axis=0))[0]


def _without(residual: Floats, u: Floats, v: Floats) -> Floats:
    """Take a module out of the data as they are: found in drawn-in data, it is fitted to them on its own members.

    Otherwise strong modules, whose entries have been drawn in, would leave remains that look like further modules.
    """
    rows, columns = u != 0, v != 0
    for _ in range(_REFITS):
        u = np.where(rows, residual @ v, 0.0)
        u /= max(float(np.linalg.norm(u)), np.finfo(float).tiny)
        v = np.where(columns, u @ residual, 0.0)
        d = max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        v /= d
    return residual - np.outer(d * u, v)


def _leading(model: SparseGraphSVD, X: Floats) -> tuple[float, Floats, Floats]:
    """d, u and v of the first module; zeros if there is none."""
    if all(getattr(model, word) is None for word in ("n_rows", "n_columns", "row_penalty", "column_penalty")):
        return _singular_pair(X)
    fitted = clone(model).fit(X)
    if not fitted.n_components_:
        return 0.0, np.zeros(X.shape[0]), np.zeros(X.shape[1])
    return float(fitted.singular_values_[0]), fitted.left_vectors_[:, 0], fitted.components_[0]


def _singular_pair(X: Floats) -> tuple[float, Floats, Floats]:
    """The leading singular pair: the dense module, without iterating to it."""
    if X.shape[0] > X.shape[1]:
        d, v, u = _singular_pair(X.T)
        return d, u, v
    last = X.shape[0] - 1
    u = eigh(X @ X.T, subset_by_index=[last, last], check_finite=False)[1][:, 0]
    v = X.T @ u
    d = float(np.linalg.norm(v))
    return d, u, v / d if d > 0 else v
