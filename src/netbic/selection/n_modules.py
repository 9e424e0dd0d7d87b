"""The number of modules: each is tested in turn against residuals with random signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import eigh
from sklearn.base import clone

from netbic.arrays import Array, Floats, Matrix, RandomState, checked, is_sparse
from netbic.enrichment import is_decided, sequential_p_values
from netbic.estimators import SparseGraphSVD, axis_names, basis_of, check_count, training_design, unwrapped
from netbic.operators import Scaler, as_operator, learn_from_observed
from netbic.selection.finished import Finished, Progress, tracked
from netbic.selection.fits import FitExecutor, Jobs, local_jobs, quiet
from netbic.selection.random_signs import EvenedData, Evening, with_random_signs
from netbic.selection.resampling import fallback_penalties, graphs_by_position, seeded

_AS_FITS = 3  # finding a module and preparing the residual takes about as long as so many copies
_REFITS = 3  # few, so that a single outlier cannot dominate a module
_ENOUGH = 3  # copies that are stronger than a module after which it does not stand out
SIZES = ("n_rows", "n_columns", "row_penalty", "column_penalty")
COMPARED_WITH = "data with the same distances from each feature's mean but random signs"


@dataclass(frozen=True, repr=False)
class ModuleCount:
    """How many modules stand out.

    Attributes
    ----------
    n : int
        Modules before the first that does not stand out.
    table : DataFrame
        A row per module tested: `module`, `statistic` (its singular value d in the winsorised residual, whose samples
        are scaled to similar noise), `expected` (mean of the copies with random signs), `p_value`, and `q_value`
        (Benjamini and Hochberg's, over the modules tested).
    exhausted : bool
        Whether all modules tested stand out: there may be more.
    """

    n: int
    table: pd.DataFrame
    exhausted: bool

    def __repr__(self) -> str:
        return f"{self.verdict} Compared with {COMPARED_WITH}.\n{self.table.to_string(index=False)}"

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
    covariates: Any = None,
    most: int = 20,
    n_permutations: int = 19,
    level: float = 0.05,
    early_stopping: bool = True,
    progress: Progress | None = None,
    finished: Finished | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> ModuleCount:
    """Count the modules that stand out against noise of the same size.

    Modules are found one after another, without a graph (a graph finds modules in any data). The residual of X after
    the previous modules is compared with copies in which every entry keeps its distance from the mean of its column,
    and only the sign of the difference is random. So the test conditions on the noise of every feature, every sample
    and every entry: features and samples may differ in variance, and noise may have heavy tails or, after winsorising,
    be skewed. It assumes that entries are independent if there is no module. Correlated samples (e.g. of a time series)
    or features (e.g. neighbours on a chromosome) count as modules, and so does a dependence of the mean on the
    sequencing depth, which is left in the logarithms of low counts whose depths differ several-fold.

    First, samples are scaled to similar noise, as far as their noise differs by more than chance, and entries beyond
    three robust standard deviations of their column are winsorised. The test stops at the first module whose singular
    value does not exceed all but a share `level` of those of the copies. A module that exceeds all copies of an earlier
    residual, which vary more, is not compared with copies of its own.

    Parameters
    ----------
    model : SparseGraphSVD
        Its sizes (or penalties), centring and scaling are used. They must not have been chosen on the same data, or the
        p-values are too small. Of an `AdaptiveSupport` with a fallback, this size is used. Without any, modules are
        dense: the singular pairs of X.
    X : array or DataFrame
        Missing entries, where the model allows them, are replaced by the mean of their column (of the batch, if that is
        a covariate).
    covariates : as for `SparseGraphSVD.fit`, optional
        Removed from X and from its copies. Default: those of the model, if it was fitted to X.
    most : int
        Maximum number of modules to test.
    n_permutations : int
        Number of copies with random signs. The smallest possible p-value is 1 / (n_permutations + 1): 0.05 for 19.
    level : float
        Significance level of each test.
    early_stopping : bool
        Make no more copies once three of them (or more, where `level` and `n_permutations` are larger) are stronger
        than the module, which then does not stand out: p = 3 / l if copy l is the third one (Besag and Clifford 1991).
        The number of modules is the same as with all copies, and the p-values are as valid: P(p <= a) <= a for every a
        if a residual without a module and its copies are exchangeable.
    progress : function, optional
        Called after each fit, in the calling thread, with the number of finished fits and the number of all fits, as
        far as it is known: it may increase, and the last fits may not be needed.
    finished : mutable mapping, optional
        Results of finished fits: those in it are not computed again, others are added. If it is stored somewhere, an
        interrupted computation can be continued; data and parameters must then be the same.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over copies (default: all cores, unless X is small), or the workers of the current Dask client; the
        result does not depend on it.

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
    single = seeded(_single(model, X), int(generator.integers(2**31)))
    enough = max(_ENOUGH, int(np.ceil(level * (1 + n_permutations)))) if early_stopping else None
    test = _Test(single, n_permutations, enough, executor := tracked(X, n_jobs, "n_modules", progress, finished))
    rows: list[tuple[int, float, float, float]] = []
    with quiet():
        design = training_design(model, X, covariates)
        basis = None if design is None else basis_of(design)
        residual = _prepared(model, X, basis)
        # Winsorised, because heavy tails would make single entries look like modules.
        evening = Evening(residual, model.center in ("columns", "both"), basis, local_jobs(X, n_jobs))
        for module in range(most):
            leading, expected, p_value = test(evening.apply(residual), generator)
            executor.finish(f"module {module + 1}", _AS_FITS * (most - module - 1), _AS_FITS)
            rows.append((module, leading.d, expected, p_value))
            if p_value > level:
                break
            _deflate(residual, leading, evening)
    return _count(rows, level, most)


def _count(rows: list[tuple[int, float, float, float]], level: float, most: int) -> ModuleCount:
    """The modules that stand out among those tested."""
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


def _single(model: SparseGraphSVD, X: Matrix) -> SparseGraphSVD:
    """A clone that finds one module in a prepared matrix, without graphs, of a fixed size if there is a fallback."""
    made: SparseGraphSVD = clone(model).set_params(
        **fallback_penalties(model), n_components=1, center=None, scale=False, row_graph=None, column_graph=None,
        row_smoothness=None, column_smoothness=None, diffusion=None, n_jobs=None,
    )  # fmt: skip
    made.set_params(**graphs_by_position(made.get_params(deep=False), np.shape(X), axis_names(X)))
    return made


def _prepared(model: SparseGraphSVD, X: Matrix, basis: Floats | None) -> Array:
    """A copy of X centred and scaled as the model does it, with missing entries replaced by column means."""
    X = checked(X, missing=model.missing)
    if is_sparse(X):
        raise ValueError("X is sparse, and its signs cannot be flipped: give X.toarray(), of fewer features if needed")
    values = np.asarray(X)
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)
    if (missing := np.isnan(values)).any():
        if model.missing == "error":
            raise ValueError("X has missing values: fill them first, or use missing='ignore' to take column means")
        values = np.where(missing.all(axis=0), 0.0, values)
        expected = np.nanmean(values, axis=0)
        if basis is not None:
            known = learn_from_observed(values, "columns", False, basis)
            expected = known.undo(np.zeros_like(values), basis)
        values = np.where(missing, expected, values)
    scaler = Scaler.learn(as_operator(values, low_memory=True), model.center, model.scale, basis)
    return scaler.apply(values, basis)


class _Triplet(NamedTuple):
    """Singular value and vectors of a module; zeros if there is none."""

    d: float
    u: Floats
    v: Floats


class _Test:
    """Compare the leading module of one residual after another with those of copies with random signs.

    At most `n_copies` copies are made of a residual; no more if `enough` of them are as strong as the module.
    """

    def __init__(self, model: SparseGraphSVD, n_copies: int, enough: int | None, executor: FitExecutor) -> None:
        self._model, self._n_copies, self._enough, self._executor = model, n_copies, enough, executor
        self._by_chance = np.full(1, np.inf)

    def __call__(self, data: EvenedData, generator: np.random.Generator) -> tuple[_Triplet, float, float]:
        """The module, the mean strength of the copies, and the p-value."""
        leading, seed = _leading(self._model, data.values), int(generator.integers(2**31))
        # Copies of an earlier residual vary more: exceeding all of them is enough.
        if leading.d <= self._by_chance.max():
            self._by_chance = self._strengths(data, leading.d, seed)
        d, by_chance = np.array([leading.d]), self._by_chance[None]
        p_value = sequential_p_values(d, by_chance, self._n_copies, self._enough)[0]
        return leading, float(self._by_chance.mean()), float(p_value)

    def _strengths(self, data: EvenedData, d: float, seed: int) -> Floats:
        """Singular values of the leading modules of copies, as many as are needed; the executor does not matter."""
        found = np.empty(0)
        size = self._n_copies if self._enough is None else self._executor.n_parallel
        while found.size < self._n_copies and not is_decided(np.array([d]), found[None], self._enough):
            seeds = [(seed, number) for number in range(found.size, min(found.size + size, self._n_copies))]
            found = np.append(found, list(self._executor.map(_strength, (self._model, data), seeds)))
        return found if self._enough is None else found[: 1 + np.searchsorted(np.cumsum(found >= d), self._enough)]


def _strength(data: tuple[SparseGraphSVD, EvenedData], seed: tuple[int, int]) -> float:
    """The singular value of the leading module of one copy."""
    model, (values, means) = data
    return _leading(model, with_random_signs(values, means, np.random.default_rng(seed))).d


def _deflate(residual: Array, module: _Triplet, evening: Evening) -> None:
    """Subtract a module that was found in winsorised data, refitted to the data themselves on its own members.

    Otherwise strong modules, whose entries are winsorised, would leave remainders that look like further modules.
    """
    _, u, v = module
    rows, columns = u != 0, np.flatnonzero(v)
    before, v = residual[:, columns], v[columns]
    for _ in range(_REFITS):
        u = np.where(rows, before @ v, 0.0)
        u /= max(float(np.linalg.norm(u)), np.finfo(float).tiny)
        v = u @ before
        d = max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        v /= d
    after = (before - np.outer(d * u, v)).astype(residual.dtype, copy=False)
    evening.replace(before, after)
    residual[:, columns] = after


def _leading(model: SparseGraphSVD, X: Array) -> _Triplet:
    if all(getattr(model, name) is None for name in SIZES):
        return _leading_singular_pair(X)
    fitted = clone(model).fit(X)
    if not fitted.n_components_:
        return _Triplet(0.0, np.zeros(X.shape[0]), np.zeros(X.shape[1]))
    return _Triplet(float(fitted.singular_values_[0]), fitted.left_vectors_[:, 0], fitted.components_[0])


def _leading_singular_pair(X: Array) -> _Triplet:
    """The dense module, without iterating to it."""
    if X.shape[0] > X.shape[1]:
        d, v, u = _leading_singular_pair(X.T)
        return _Triplet(d, u, v)
    last = X.shape[0] - 1
    u = eigh(X @ X.T, subset_by_index=[last, last], check_finite=False)[1][:, 0]
    v = X.T @ u
    d = float(np.linalg.norm(v))
    return _Triplet(d, u, v / d if d > 0 else v)
