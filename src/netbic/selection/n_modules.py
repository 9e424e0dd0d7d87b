"""The number of modules: each is tested in turn against residuals with random signs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.linalg import eigh, orth
from sklearn.base import clone

from netbic.arrays import Array, Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators.covariates import basis_of, training_design
from netbic.estimators.inputs import axis_names
from netbic.estimators.parameters import check_count
from netbic.estimators.svd import SparseGraphSVD, unwrapped
from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler, winsorised
from netbic.operators.masked import learn_from_observed
from netbic.selection.fits import Fits, Jobs, Progress, quiet
from netbic.selection.resampling import graphs_by_position, seeded

_AS_FITS = 3  # finding a module and preparing the residual takes about as long as so many copies
_REFITS = 3  # few, so that a single outlier cannot dominate a module
_ENOUGH = 3  # copies that are stronger than a module after which it does not stand out
_SIZES = ("n_rows", "n_columns", "row_penalty", "column_penalty")
_COMPARED_WITH = "data with the same distances from each feature's mean but random signs"
_FITTED = 1e-9  # share of its variance that is left of a sample that is fitted exactly
_MOST_SCALING = 2.0  # natural logarithm of the largest factor by which a sample is scaled
_MOST_ENTRIES = 100_000_000  # of a sparse matrix that is made dense
_BLOCK = 256  # columns that are processed at a time: they stay in the cache


@dataclass(frozen=True, repr=False)
class ModuleCount:
    """How many modules stand out.

    Attributes
    ----------
    n : int
        Modules before the first that does not stand out.
    table : DataFrame
        A row per module tested: `module`, `statistic` (its singular value d in the winsorised residual, whose samples
        are scaled to similar noise), `expected` (mean of the copies with random signs; those of an earlier residual if
        the module exceeds them all), `p_value`, and `q_value`
        (Benjamini and Hochberg's, over the modules tested).
    exhausted : bool
        Whether all modules tested stand out: there may be more.
    """

    n: int
    table: pd.DataFrame
    exhausted: bool

    def __repr__(self) -> str:
        return f"{self.verdict} Compared with {_COMPARED_WITH}.\n{self.table.to_string(index=False)}"

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
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> ModuleCount:
    """Count the modules that stand out against noise of the same size.

    Modules are found one after another, without a graph (a graph finds modules in any data). The residual of X after
    the previous modules is compared with copies in which every entry keeps its distance from the mean of its column,
    and only the sign of the difference is random. Features and samples may therefore differ in variance, and noise may
    have heavy tails. The test assumes that entries are independent if there is no module: correlated samples (e.g. of a
    time series) or features (e.g. neighbours on a chromosome) count as modules, and so does a dependence of the mean on
    the sequencing depth, which is left in the logarithms of low counts whose depths differ several-fold.

    First, samples are scaled to similar noise, as far as their noise differs by more than chance, and entries beyond
    three robust standard deviations of their column are winsorised. The test stops at the first module whose singular
    value does not exceed all but a share `level` of those of the copies.

    Parameters
    ----------
    model : SparseGraphSVD
        Its sizes (or penalties), centring and scaling are used; if they were chosen on the same data, p-values are too
        small. Without any, `BeyondBulk` chooses the features.
    X : array, DataFrame or sparse matrix
        A sparse matrix is made dense, in single precision: up to 100 million entries are supported. Missing entries,
        where the model allows them, are replaced by the mean of their column (of the batch, if that is a covariate).
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
        The number of modules is the same as with all copies, and the p-values are as valid.
    progress : function, optional
        Called after each fit, in the calling thread, with the number of finished fits and the number of all fits, as
        far as it is known: it may increase, and the last fits may not be needed.
    random_state, n_jobs
        As for `stability`.

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
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: a number between 0 and 1 is needed")
    if (smallest := 1 / (1 + n_permutations)) > level:
        raise ValueError(
            f"n_permutations={n_permutations}: no p-value can be below {smallest:.2g}, so no module can be significant "
            f"(p <= {level:g}): use at least {int(np.ceil(1 / level)) - 1}"
        )
    model = unwrapped(model)
    generator = np.random.default_rng(random_state)
    # One module of a prepared matrix, without graphs.
    single: SparseGraphSVD = clone(model).set_params(
        n_components=1, center=None, scale=False, row_graph=None, column_graph=None, row_smoothness=None,
        column_smoothness=None, diffusion=None, n_jobs=None, search="sequential",
    )  # fmt: skip
    single.set_params(**graphs_by_position(single.get_params(deep=False), np.shape(X), axis_names(X)))
    single = seeded(single, int(generator.integers(2**31)))
    enough = max(_ENOUGH, int(np.ceil(level * (1 + n_permutations)))) if early_stopping else None
    fits = Fits(X, most * n_permutations, n_jobs, progress)
    rows: list[tuple[int, float, float, float]] = []
    with quiet():
        design = training_design(model, X, covariates)
        basis = None if design is None else basis_of(design)
        residual = _prepared(model, X, basis)
        n_threads = 1 if n_jobs == "dask" else fits.n_parallel
        # Winsorised, because heavy tails would make single entries look like modules.
        evening = Evening(residual, model.center in ("columns", "both"), basis, n_threads)
        by_chance, of_copies = np.full(1, np.inf), 1.0  # strengths of the leading modules of copies, and their norm
        removed: list[Floats] = []  # sample vectors of dense modules: what is left has fewer degrees of freedom
        for module in range(most):
            values, means = evening.apply(residual)
            if removed:
                means = orth(np.column_stack([means, *removed]))
            d, u, v = _leading(single, values)
            seed, p_value = int(generator.integers(2**31)), 1 / (1 + n_permutations)
            # Copies of an earlier residual vary more, unless fewer entries are winsorised now: exceeding all is enough.
            norm = float(np.linalg.norm(values))
            if d <= by_chance.max() * max(norm / of_copies, 1.0):
                data, of_copies = (single, values, means), norm
                by_chance, p_value = fits.permutation_test(_strength, data, d, (seed,), n_permutations, enough)
            fits.left = _AS_FITS * (most - module - 1)
            fits.count(_AS_FITS)
            rows.append((module + 1, d, float(by_chance.mean()), p_value))
            if p_value > level:
                break
            _deflate(residual, u, v, evening)
            removed += [u] * bool(v.all())
    from scipy.stats import false_discovery_control

    table = pd.DataFrame(rows, columns=["module", "statistic", "expected", "p_value"])
    table["q_value"] = false_discovery_control(table["p_value"])
    n_significant = int((table["p_value"] <= level).sum())
    return ModuleCount(n_significant, table, n_significant == most)


def _prepared(model: SparseGraphSVD, X: Matrix, basis: Floats | None) -> Array:
    """A copy of X centred and scaled as the model does it, with missing entries replaced by column means."""
    X = checked(X, missing=model.missing)
    if is_sparse(X):
        if np.prod(X.shape) > _MOST_ENTRIES:
            raise ValueError(
                f"X is sparse and has {X.shape[0]:,} x {X.shape[1]:,} entries, and random signs leave none zero: at "
                f"most {_MOST_ENTRIES:,} are supported. Give fewer features or samples, or let SparseGraphSVD('auto') "
                "count the modules that are found again in halves of the samples"
            )
        X = X.astype(np.float32).toarray()
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
    power = clone(model).scaled_for(values).scale_power
    scaler = Scaler.learn(as_operator(values, low_memory=True), model.center, power, basis)
    return scaler.apply(values, basis)


def _strength(data: tuple[SparseGraphSVD, Array, Floats], seed: tuple[int, ...]) -> float:
    """The singular value of the leading module of one copy."""
    model, values, means = data
    return _leading(model, with_random_signs(values, means, np.random.default_rng(seed)))[0]


def _leading(model: SparseGraphSVD, X: Array) -> tuple[float, Floats, Floats]:
    """Singular value and vectors of the leading module; zeros if there is none."""
    if any(getattr(model, name) is not None for name in _SIZES):
        fitted = clone(model).fit(X)
        if not fitted.n_components_:
            return 0.0, np.zeros(X.shape[0]), np.zeros(X.shape[1])
        return float(fitted.singular_values_[0]), fitted.left_vectors_[:, 0], fitted.components_[0]
    # The dense module, without iterating to it.
    if X.shape[0] > X.shape[1]:
        d, v, u = _leading(model, X.T)
        return d, u, v
    last = X.shape[0] - 1
    u = eigh(X @ X.T, subset_by_index=[last, last], check_finite=False)[1][:, 0]
    v = X.T @ u
    d = float(np.linalg.norm(v))
    return d, u, v / d if d > 0 else v


def _deflate(residual: Array, u: Floats, v: Floats, evening: Evening) -> None:
    """Subtract a module that was found in winsorised data, refitted to the data themselves on its own members.

    Otherwise strong modules, whose entries are winsorised, would leave remainders that look like further modules.
    """
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


# Samples of similar noise, and random signs; the precision of X is kept


def _powers(X: Array) -> Floats:
    """Sums over columns of the second and fourth powers of winsorised, standardised entries."""
    values = winsorised(X)
    values -= values.mean(axis=0)
    deviations = values.std(axis=0)
    values /= np.where(deviations > 0, deviations, np.inf)
    values *= values
    squares = values.sum(axis=1, dtype=np.float64)
    values *= values
    return np.array([squares, values.sum(axis=1, dtype=np.float64)])


def _by_blocks(function: Callable[[Array], Array], X: Array, n_threads: int) -> list[Array]:
    """A function of some columns, for one block of columns after another."""
    blocks = [X[:, start : start + _BLOCK] for start in range(0, X.shape[1], _BLOCK)]
    found: list[Array] = Parallel(n_jobs=n_threads, prefer="threads")(delayed(function)(block) for block in blocks)
    return found


class Evening:
    """Scale samples (rows) to similar noise and winsorise entries, again after columns have changed.

    `centred` says whether the columns of X were centred, `basis` is an orthonormal basis of covariates that were
    removed from X. The number of threads does not affect the result.
    """

    def __init__(self, X: Array, centred: bool, basis: Floats | None = None, n_threads: int = 1) -> None:
        self._centred, self._basis, self._n_threads = centred, basis, n_threads
        self._constant = np.full((len(X), 1), 1 / np.sqrt(len(X)))
        self._n_columns = X.shape[1]
        # Columns are winsorised and standardised, each on its own: if some change, only their part of the sums does.
        self._sums = np.sum(_by_blocks(_powers, self._errors(X), n_threads), axis=0)

    def replace(self, before: Array, after: Array) -> None:
        """Take into account that some columns of X have changed."""
        self._sums = self._sums + (_powers(self._errors(after)) - _powers(self._errors(before)))

    def _errors(self, X: Array) -> Array:
        """X, in which the residuals of a regression on covariates have the variance of the errors."""
        if self._basis is None:
            return X
        factors = _without_leverage(np.hstack([self._constant, self._basis]))
        return ((X - self._means(X)) * factors[:, None]).astype(X.dtype, copy=False)

    def _means(self, X: Array) -> Floats | float:
        return 0.0 if self._centred else X.mean(axis=0)

    def apply(self, X: Array) -> tuple[Array, Floats]:
        """The scaled and winsorised X, and the shape of the column means, a unit vector.

        A column with mean m and noise s_i in sample i becomes m / s_i plus noise. So the means of columns that were
        centred are removed again by regressing out 1 / s_i, the shape of the means: their errors would look like a
        module of the samples with little noise. The same holds for covariates: the shapes of everything that was
        removed are then returned, as orthonormal columns.
        """
        weights = 1 / _noise(self._sums / self._n_columns, self._n_columns)
        weights *= np.sqrt(len(X)) / np.linalg.norm(weights)
        if self._basis is None:
            shape = weights[:, None] / np.sqrt(len(weights))
            removed, means = (shape, shape[:, 0]) if self._centred else (shape[:, :0], self._constant[:, 0])
        elif self._centred:
            removed = means = orth(weights[:, None] * np.hstack([self._constant, self._basis]))
        else:
            scaled = weights[:, None] * self._basis
            removed = orth(scaled - scaled.mean(axis=0))
            means = np.hstack([self._constant, removed])

        def even(part: Array) -> Array:
            centres = self._means(part)
            scaled = winsorised((centres + (part - centres) * weights[:, None]).astype(X.dtype, copy=False))
            return np.asarray(scaled - removed @ (removed.T @ scaled), dtype=X.dtype)

        return np.hstack(_by_blocks(even, X, self._n_threads)), means


def _noise(powers: Floats, n_columns: int) -> Floats:
    """The noise of every sample, relative to the others; 1 if samples differ by no more than chance.

    It is the root mean square of its winsorised, standardised entries, shrunk towards the mean of all samples by
    the share of its variation that is expected by chance: if samples do not differ, they are not scaled, because
    that would only scale down the samples of modules.
    """
    noise, fourth = powers
    known = noise > 0
    if not known.any():
        return np.ones(len(noise))
    variances = np.maximum(fourth - noise**2, 0.0)
    logs = np.log(np.where(known, noise, 1.0)) / 2
    by_chance = float((variances[known] / noise[known] ** 2).mean()) / (4 * n_columns)
    kept = max(0.0, 1 - by_chance / max(float(logs[known].var()), np.finfo(float).tiny))
    logs = np.where(known, np.clip(kept * (logs - logs[known].mean()), -_MOST_SCALING, _MOST_SCALING), 0.0)
    return np.asarray(np.exp(logs))


def _without_leverage(shapes: Floats) -> Floats:
    """Factors that give residuals of a regression on orthonormal columns the variance of the errors.

    Samples that are fitted exactly, such as the only one of a batch, have no residuals: their factor is 0.
    """
    left = 1 - np.einsum("ij,ij->i", shapes, shapes)
    return np.where(left > _FITTED, 1 / np.sqrt(np.maximum(left, _FITTED)), 0.0)


def with_random_signs(X: Array, means: Floats, generator: np.random.Generator) -> Array:
    """A copy in which every entry is as far from the mean of its column as in X, above or below it at random.

    `means` is the shape of the column means: a unit vector, constant unless samples were scaled. The copy has the same
    means as X. With covariates, `means` has several orthonormal columns: the shapes of everything that was removed.
    """
    n = len(X)
    shapes = means.reshape(n, -1).astype(X.dtype)
    # Removing means takes one degree of freedom each time; the data have lost only one.
    factors = _without_leverage(means) if means.ndim > 1 else np.full(n, np.sqrt(n / max(n - 1, 1)))
    fitted = shapes.T @ X
    copy: Array = shapes @ fitted
    np.subtract(X, copy, out=copy)
    signs = generator.integers(2, size=X.shape, dtype=np.int8)
    signs *= 2
    signs -= 1
    copy *= signs
    copy *= factors[:, None].astype(X.dtype)
    copy += shapes @ (fitted - shapes.T @ copy)
    return copy
