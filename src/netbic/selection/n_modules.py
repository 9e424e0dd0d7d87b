"""How many modules: test them one after another against permuted residuals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from netbic.decomposition import SparseGraphSVD, check_count, one_blas_thread
from netbic.operators import Preparation, as_operator, winsorised

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModuleCount:
    """How many modules stand out.

    Attributes
    ----------
    n : int
        Modules before the first that does not stand out.
    table : DataFrame
        A row per module tested: `module`, `statistic` (its singular value d), `expected` (mean of the permuted ones),
        `p_value`.
    exhausted : bool
        Whether all modules that were to be tested stand out: there may be more.
    """

    n: int
    table: pd.DataFrame
    exhausted: bool

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if self.exhausted:
            return f"At least {self.n} modules stand out; no more were tested."
        last = self.table["p_value"].iloc[-1]
        return f"{self.n} modules stand out; the next does not (p = {last:.2g})."


def n_modules(
    model: SparseGraphSVD,
    X: Any,
    *,
    most: int = 20,
    n_permutations: int = 19,
    level: float = 0.05,
    random_state: Any = None,
    n_jobs: int | None = None,
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
        p-values are too small.
    X : array or DataFrame without missing values
    most : int
        Modules to test at most.
    n_permutations : int
        19 reach p = .05.
    level : float
    random_state : None, int or numpy.random.Generator
    n_jobs : int, optional
        Threads over permutations; the answer does not depend on it.

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
    single = clone(model).set_params(
        n_components=1, center=None, scale=False, row_graph=None, column_graph=None, n_jobs=None,
        row_smoothness=None, column_smoothness=None,
    )  # fmt: skip
    seeds = np.random.default_rng(random_state).integers(2**31, size=most)
    rows: list[tuple[int, float, float, float]] = []
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        residual = _prepared(model, X)
        for module in range(most):
            drawn_in = winsorised(residual)  # heavier tails would make single entries look like modules
            leading = clone(single).fit(drawn_in)
            chance = _permuted_values(single, drawn_in, n_permutations, int(seeds[module]), n_jobs)
            own = _value(leading)
            p_value = (1 + int((chance >= own).sum())) / (1 + n_permutations)
            rows.append((module, own, float(chance.mean()), p_value))
            if p_value > level:
                break
            u, v = leading.left_vectors_[:, 0], leading.components_[0]
            residual = residual - float(u @ residual @ v) * np.outer(u, v)
    table = pd.DataFrame(rows, columns=["module", "statistic", "expected", "p_value"])
    standing = int((table["p_value"] <= level).sum())
    return ModuleCount(standing, table, standing == most)


def _prepared(model: SparseGraphSVD, X: Any) -> Floats:
    """The matrix as the model would see it."""
    values = np.asarray(X, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError("X has missing values: fill them first, e.g. with their column's mean")
    preparation = Preparation.learn(as_operator(values, low_memory=True), model.center, model.scale)
    return preparation.apply(values)


def _permuted_values(model: SparseGraphSVD, X: Floats, n_permutations: int, seed: int, n_jobs: int | None) -> Floats:
    """Singular values of the leading modules of copies of X, every column permuted within itself."""

    def value(number: int) -> float:
        return _value(clone(model).fit(np.random.default_rng([seed, number]).permuted(X, axis=0)))

    return np.array(Parallel(n_jobs=n_jobs, prefer="threads")(delayed(value)(k) for k in range(n_permutations)))


def _value(fitted: SparseGraphSVD) -> float:
    return float(fitted.singular_values_[0]) if fitted.n_components_ else 0.0
