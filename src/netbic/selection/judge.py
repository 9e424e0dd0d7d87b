"""Verdicts on sets of features that other programs have found, or that are known from other data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState
from netbic.errors import some_names
from netbic.estimators.inputs import axis_names, one_blas_thread
from netbic.estimators.results import names_of
from netbic.estimators.svd import SparseGraphSVD
from netbic.identifiers import explain_mismatch
from netbic.operators.corrected import Corrected
from netbic.selection.fits import Jobs, Progress, quiet
from netbic.selection.halves import Part, Splits
from netbic.selection.resampling import draw_seed
from netbic.selection.verdicts import TOO_FEW, Verdicts, Words, called, group_numbers, judged
from netbic.solver.count import MOST_MODULES
from netbic.solver.half_step import Vector
from netbic.solver.search import Module

FEWEST = 5  # features of a set that the data have
OPPOSITE: Final = 0.3  # share of features with the opposite sign from which on it is said


@dataclass(frozen=True, repr=False)
class JudgedSets(Verdicts):
    """Verdicts on given sets, and the scores of the samples.

    Attributes
    ----------
    table, features : DataFrame
        As of `Verdicts`, with the name of each set in the column `set` instead of `module`. In `table` also
        `n_features` (of the set), `n_available` (of these, in X) and `opposite`: the share of the latter whose weight
        has the opposite sign. If it is large, the score is not the mean of the set. `closest` is the name of a set.
    n_pairs, unit
        As of `Verdicts`.
    scores : DataFrame of shape (n_samples, n_sets)
        The score of every set, whatever its verdict: a row per sample. Most weight has a positive sign.
    """

    scores: pd.DataFrame = field(kw_only=True)

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        return super().verdict.replace("module", "set")


def judge(
    X: Matrix,
    sets: Mapping[Any, Sequence[Any]],
    *,
    found_elsewhere: bool = False,
    groups: ArrayLike | None = None,
    covariates: Any = None,
    missing: str = "error",
    n_pairs: int = 12,
    early_stopping: bool = True,
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
    feature_name: str = "feature",
    names: tuple[ArrayLike, ArrayLike] | None = None,
) -> JudgedSets:
    """Judge sets of features, such as the modules of another program, by the same evidence as modules of netbic.

    The score of a sample is the first principal component of the features of a set, after they have been divided by the
    square root of their standard deviations (by a larger power if most values are zero). If a set was found in these
    same data, its features were chosen because they move together here, in all samples: that they do so in other halves
    of them is no evidence. So the evidence is that of `verdicts`: a search in only half of the samples must find the
    set again, without knowing it. The verdict on a set does not depend on the other sets (nothing is measured beyond
    other modules), unless there are more of them than the data have modules.

    Sets that were found in other data (`found_elsewhere`) are not searched for: their weights come from one half, and
    all else is measured in the other one. They need not be complete, so that features outside a set may follow its
    score, too. The confidence of a feature is that it follows the score more than features outside do: one minus the
    local false discovery rate among the features of the set, with those outside as controls. A set is a *broad axis* if
    its features move together more than random ones, but those outside follow the score nearly as much (breadth of
    0.15 or more, and a mean confidence below 0.4). It is *doubtful* if they do not move together more than random ones.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    sets : mapping of sequences
        The features of each set: names or, if X has none, positions. Features that X does not have are left out; at
        least 5 have to remain.
    found_elsewhere : bool
        Whether the sets come from other data (from the literature or another study, for example), so that nothing about
        the samples in X was used to choose their features. If it was, even noise may be called strong.
    groups, n_pairs, early_stopping, progress, random_state, n_jobs, feature_name : as for `verdicts`
    covariates, missing : as for `SparseGraphSVD`
    names : pair of array-likes, optional
        Names of samples and features, of a matrix without names, such as a sparse one.

    Returns
    -------
    JudgedSets
        The verdicts, and the scores of the samples. A set whose scores are those of another one has a verdict of its
        own. Sets with too few features in X are left out, with a warning.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> genes = study.expression.columns
    >>> sets = {"planted": genes[study.genes[0]], "arbitrary": genes[:40]}
    >>> found = netbic.selection.judge(study.expression, sets, random_state=0)
    >>> found.table[["set", "verdict"]]
             set   verdict
    0    planted    strong
    1  arbitrary  doubtful
    >>> found.scores.shape
    (200, 2)
    """
    columns = axis_names(X)[1] if names is None else np.asarray(names[1], dtype=object)
    known = {name: _positions(members, columns, int(X.shape[1])) for name, members in sets.items()}
    usable = {str(name): at for name, at in known.items() if at.size >= FEWEST}
    if not usable:
        largest = max((at.size for at in known.values()), default=0)
        what = f"none of the {len(sets)} sets has at least {FEWEST} {feature_name}s in X (at most {largest})"
        why = explain_mismatch([] if columns is None else columns, [*chain(*sets.values())], ("data", "sets"))
        remedy = f". {why.text()}" if why.is_known else ": give sets of the names (or positions) of its columns"
        raise ValueError(f"{what}{remedy}")
    if few := [str(name) for name, at in known.items() if at.size < FEWEST]:
        what = f"{len(few)} of {len(sets)} sets have fewer than {FEWEST} {feature_name}s in X and are not judged"
        warnings.warn(f"{what}: {some_names(few)}", stacklevel=2)
    seed = draw_seed(random_state)
    model = _as_modules(X, list(usable.values()), covariates, missing, seed, names)
    with quiet():
        numbers, labels = group_numbers(groups, X.shape[0], model.names_["rows"])
        splits = _SetSplits(model, X, numbers, seed)
        if found_elsewhere:
            splits.sets_to_learn = list(usable.values())
        else:
            splits.n_modules = _n_to_find(X, len(usable), covariates, missing)
    words = Words(feature_name, list(usable), searched=not found_elsewhere, groups=called(groups), labels=labels)
    options: Any = {"early_stopping": early_stopping, "progress": progress, "n_jobs": n_jobs}
    found = judged(splits, n_pairs, words, **options)
    sizes = {str(name): len(set(members)) for name, members in sets.items()}
    return _named(found, model, usable, sizes, feature_name)


def _positions(members: Sequence[Any], names: Array | None, n_features: int) -> Indices:
    """The features of a set that X has, in increasing order."""
    if names is None:
        found = np.unique(np.asarray(list(members), dtype=np.intp))
        if found.size and not 0 <= found[0] <= found[-1] < n_features:
            raise ValueError(f"a set has the column {found[-1] if found[0] >= 0 else found[0]}: X has {n_features}")
        return found
    at = pd.Index(names).get_indexer(pd.Index(list(members), dtype=object).unique())
    return np.sort(at[at >= 0])


def _n_to_find(X: Matrix, n_sets: int, covariates: Any, missing: str) -> int:
    """How many modules to search for: as many as the data have, and at least as many as there are sets."""
    model = SparseGraphSVD(missing=missing, random_state=0)
    fitted = model.fit(X) if covariates is None else model.fit(X, covariates=covariates)
    return min(max(fitted.n_components_, n_sets), MOST_MODULES)


def _as_modules(
    X: Matrix, sets: list[Indices], covariates: Any, missing: str, seed: int, names: Any = None
) -> SparseGraphSVD:
    """A fitted model whose modules are the given sets."""
    model = SparseGraphSVD(len(sets), missing=missing, random_state=seed)
    with quiet():
        operator = model.prepared(X, covariates).operator
        modules = [_module(operator, at) for at in sets]
        given = {} if covariates is None else {"covariates": covariates}
        for _ in model.iter_fit(X, modules, names=names, **given):  # nothing is left to be found
            pass
    return model


def _module(operator: Corrected, at: Indices) -> Module:
    vector = Vector(operator.shape[1], at, leading(operator.submatrix(np.arange(operator.shape[0]), at)))
    image = operator.products([(at, vector.values)])[0]
    return Module(Vector.of(image), vector, float(np.linalg.norm(image)), "converged", np.zeros(1), 0.0)


def leading(columns: Floats) -> Floats:
    """The right singular vector of the largest singular value; the sum of its entries is not negative."""
    with one_blas_thread():
        vector = np.linalg.svd(columns.astype(np.float64), full_matrices=False)[2][0]
    return np.asarray(-vector if vector.sum() < 0 else vector)


class _SetSplits(Splits):
    """Modules that were given: several may be matched to one module of a part, and none depends on the others.

    Those of `sets_to_learn` are not searched for: their weights are those of the part.
    """

    sets_to_learn: Sequence[Indices] = ()

    def _refit(self, kept: Indices, part: Part, random_state: int) -> Floats:
        if not self.sets_to_learn:
            return super()._refit(kept, part, random_state)
        found = np.zeros(self.components.shape)
        for vector, at in zip(found, self.sets_to_learn, strict=True):
            vector[at] = leading(part.columns(at))
        return found

    def _matched(self, alike: Floats) -> tuple[Indices, Floats]:
        every = np.arange(len(alike))
        partner = every if self.sets_to_learn else alike.argmax(axis=1)
        return partner, alike[every, partner]

    def _removed(self, alike: Floats, k: int, most: int) -> Indices:
        return np.empty(0, dtype=np.intp)


def _named(
    found: Verdicts, model: SparseGraphSVD, usable: Mapping[str, Indices], sizes: Mapping[str, int], feature_name: str
) -> JudgedSets:
    """The tables with the names of the sets instead of numbers of modules, and the scores."""
    names = np.array(list(usable), dtype=object)
    table, features = found.table.copy(), found.features.copy()
    opposite = (model.components_ < 0).sum(axis=1) / model.columns_.sum(axis=1)
    table.insert(0, "set", names)
    table.insert(2, f"n_{feature_name}s", [sizes[name] for name in names])
    table.insert(3, "n_available", [at.size for at in usable.values()])
    table.insert(4, "opposite", opposite)
    said = (opposite >= OPPOSITE) & (table["verdict"] != TOO_FEW)
    signs = [f" {share:.0%} of its {feature_name}s have the opposite sign.".replace("%", " %") for share in opposite]
    table["reason"] += np.where(said, signs, "")
    table["closest"] = [None if pd.isna(k) else names[k - 1] for k in table["closest"]]
    features.insert(0, "set", names[features["module"].to_numpy(dtype=int) - 1])
    scores = pd.DataFrame(model.left_vectors_ * model.singular_values_, names_of(model, "rows"), names)
    table, features = table.drop(columns=["module", "repeats"]), features.drop(columns="module")
    return JudgedSets(table, features, found.n_pairs, found.unit, scores=scores)
