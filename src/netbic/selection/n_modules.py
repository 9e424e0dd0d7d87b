"""The number of modules: each is tested in turn against residuals with random signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.linalg import eigh, orth
from sklearn.base import clone

from netbic.arrays import Floats, Matrix, RandomState, checked, is_sparse
from netbic.estimators import SparseGraphSVD, basis_of, check_count, training_design, unwrapped
from netbic.operators import Scaler, as_operator, learn_from_observed, winsorised
from netbic.selection.fits import FitExecutor, Jobs, executor_for, quiet
from netbic.selection.resampling import fallback_penalties, seeded

_REFITS = 3  # few, so that a single outlier cannot dominate a module
_FITTED = 1e-9  # share of its variance that is left of a sample that is fitted exactly
_MOST_SCALING = 2.0  # natural logarithm of the largest factor by which a sample is scaled
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
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over copies, or the workers of the current Dask client; the result does not depend on it.

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
    by_chance, centred = np.full(1, np.inf), model.center in ("columns", "both")
    with quiet():
        design = training_design(model, X, covariates)
        basis = None if design is None else basis_of(design)
        residual = _prepared(model, X, basis)
        for module in range(most):
            # Winsorised, because heavy tails would make single entries look like modules.
            values, means = evened(residual, centred, basis)
            leading = _leading(single, values)
            if leading.d <= by_chance.max():  # copies of an earlier residual vary more: exceeding all of them is enough
                by_chance = _by_chance(single, values, means, n_permutations, seed, executor)
            p_value = (1 + int((by_chance >= leading.d).sum())) / (1 + n_permutations)
            rows.append((module, leading.d, float(by_chance.mean()), p_value))
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
    """A clone that finds one module in a prepared matrix, without graphs, of a fixed size if there is a fallback."""
    made: SparseGraphSVD = clone(model).set_params(
        **fallback_penalties(model), n_components=1, center=None, scale=False, row_graph=None, column_graph=None,
        row_smoothness=None, column_smoothness=None, smoothing=None, n_jobs=None,
    )  # fmt: skip
    return made


def _prepared(model: SparseGraphSVD, X: Matrix, basis: Floats | None) -> Floats:
    """X centred and scaled as the model does it, with missing entries replaced by column means."""
    X = checked(X, missing=model.missing)
    if is_sparse(X):
        raise ValueError("X is sparse, and its signs cannot be flipped: give X.toarray(), of fewer features if needed")
    values = np.asarray(X, dtype=np.float64)
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


def evened(X: Floats, centred: bool, basis: Floats | None = None) -> tuple[Floats, Floats]:
    """X with samples (rows) scaled to similar noise, winsorised; and the shape of column means in it.

    A column with mean m and noise s_i in sample i becomes m / s_i plus noise. So the means of columns that were
    `centred` are removed again by regressing out 1 / s_i, the shape of the means: their errors would look like a module
    of the samples with little noise. If covariates with this `basis` were removed from X, the same holds for them, and
    the shapes of the means and of all covariates are returned, as orthonormal columns.
    """
    if basis is not None:
        return _evened_without(X, centred, basis)
    shape = 1 / noise_of_samples(X)
    shape /= np.linalg.norm(shape)
    if not centred:
        means = X.mean(axis=0)
        scaled = means + (X - means) * (np.sqrt(len(X)) * shape)[:, None]
        return winsorised(scaled), np.full(len(X), 1 / np.sqrt(len(X)))
    values = winsorised(X * (np.sqrt(len(X)) * shape)[:, None])
    return values - np.outer(shape, shape @ values), shape


def _evened_without(X: Floats, centred: bool, basis: Floats) -> tuple[Floats, Floats]:
    """`evened` for data from which covariates were removed."""
    n = len(X)
    constant = np.full((n, 1), 1 / np.sqrt(n))
    removed = np.hstack([constant, basis])
    means = 0.0 if centred else X.mean(axis=0)
    weights = 1 / noise_of_samples((X - means) * _without_leverage(removed)[:, None])
    weights *= np.sqrt(n) / np.linalg.norm(weights)
    values = winsorised(means + (X - means) * weights[:, None])
    if centred:
        shapes = orth(weights[:, None] * removed)
        return values - shapes @ (shapes.T @ values), shapes
    scaled = weights[:, None] * basis
    shapes = orth(scaled - scaled.mean(axis=0))
    return values - shapes @ (shapes.T @ values), np.hstack([constant, shapes])


def _without_leverage(shapes: Floats) -> Floats:
    """Factors that give residuals of a regression on orthonormal columns the variance of the errors.

    Samples that are fitted exactly, such as the only one of a batch, have no residuals: their factor is 0.
    """
    left = 1 - np.einsum("ij,ij->i", shapes, shapes)
    return np.where(left > _FITTED, 1 / np.sqrt(np.maximum(left, _FITTED)), 0.0)


def noise_of_samples(X: Floats) -> Floats:
    """The noise of every sample, relative to the others; 1 if samples differ by no more than chance.

    It is the root mean square of its winsorised, standardised entries, shrunk towards the mean of all samples by the
    share of its variation that is expected by chance: if samples do not differ, they are not scaled, because that would
    only scale down the samples of modules.
    """
    centred = winsorised(X)
    centred = centred - centred.mean(axis=0)
    deviations = centred.std(axis=0)
    squares = (centred / np.where(deviations > 0, deviations, np.inf)) ** 2
    noise = squares.mean(axis=1)
    known = noise > 0
    if not known.any():
        return np.ones(len(X))
    logs = np.log(np.where(known, noise, 1.0)) / 2
    by_chance = float((squares.var(axis=1)[known] / noise[known] ** 2).mean()) / (4 * X.shape[1])
    kept = max(0.0, 1 - by_chance / max(float(logs[known].var()), np.finfo(float).tiny))
    logs = np.where(known, np.clip(kept * (logs - logs[known].mean()), -_MOST_SCALING, _MOST_SCALING), 0.0)
    return np.asarray(np.exp(logs))


def with_random_signs(X: Floats, means: Floats, generator: np.random.Generator) -> Floats:
    """A copy in which every entry is as far from the mean of its column as in X, above or below it at random.

    `means` is the shape of the column means: a unit vector, constant unless samples were scaled. The copy has the same
    means as X. With covariates, `means` has several orthonormal columns: the shapes of everything that was removed.
    """
    if means.ndim > 1:
        fitted = means @ (means.T @ X)
        signs = generator.choice(np.array([-1.0, 1.0]), X.shape)
        flipped = (X - fitted) * signs * _without_leverage(means)[:, None]
        return np.asarray(fitted + flipped - means @ (means.T @ flipped))
    n, fitted = X.shape[0], np.outer(means, means @ X)
    flipped = (X - fitted) * generator.choice(np.array([-1.0, 1.0]), X.shape)
    # Removing means takes one degree of freedom each time; the data have lost only one.
    return np.asarray(fitted + (flipped - np.outer(means, means @ flipped)) * np.sqrt(n / max(n - 1, 1)))


def _by_chance(
    model: SparseGraphSVD, X: Floats, means: Floats, n_copies: int, seed: int, executor: FitExecutor
) -> Floats:
    """Singular values of the leading modules of copies of X with random signs."""
    seeds = [(seed, number) for number in range(n_copies)]
    return np.array(list(executor.map(_value_by_chance, (model, X, means), seeds)))


def _value_by_chance(data: tuple[SparseGraphSVD, Floats, Floats], seed: tuple[int, int]) -> float:
    model, X, means = data
    return _leading(model, with_random_signs(X, means, np.random.default_rng(seed))).d


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
