"""Verdicts on sets of features that other programs have found, or that are known from other data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState
from netbic.errors import some_names
from netbic.estimators.inputs import axis_names, one_blas_thread
from netbic.estimators.svd import SparseGraphSVD
from netbic.identifiers import explain_mismatch
from netbic.operators.corrected import Corrected
from netbic.selection.fits import Jobs, Progress, quiet
from netbic.selection.halves import Part, Splits
from netbic.selection.resampling import draw_seed
from netbic.selection.verdicts import Verdicts, Words, called, group_numbers, judged
from netbic.solver.count import MOST_MODULES
from netbic.solver.half_step import Vector
from netbic.solver.search import Module

FEWEST = 5  # features of a set that the data have


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
) -> Verdicts:
    """Judge sets of features, such as the modules of another program, by the same evidence as modules of netbic.

    The score of a sample is the first principal component of the features of a set, after they have been divided by the
    square root of their standard deviations (by a larger power if most values are zero). If a set was found in these
    same data, its features were chosen because they move together here, in all samples: that they do so in other halves
    of them is no evidence. So the evidence is that of `verdicts`: a search in only half of the samples must find the
    set again, without knowing it. Sets that were found in other data (`found_elsewhere`) are not searched for: their
    weights come from one half, and all else is measured in the other one. The verdict on a set does not depend on the
    other sets (nothing is measured beyond other modules), unless there are more of them than the data have modules.

    Parameters
    ----------
    X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
    sets : mapping of sequences
        The features of each set: names or, if X has none, positions. Features that X does not have are left out; at
        least 5 have to remain.
    found_elsewhere : bool
        Whether the sets come from other data (from the literature or another study, for example), so that nothing about
        the samples in X was used to choose their features.
    groups, n_pairs, early_stopping, progress, random_state, n_jobs, feature_name : as for `verdicts`
    covariates, missing : as for `SparseGraphSVD`

    Returns
    -------
    Verdicts
        As of `verdicts`, with the name of each set in the column `set` of both tables, and `n_features` (of the set)
        and `n_available` (of these, in X). A set whose scores are those of another one has a verdict of its own, with
        the name of the other in `closest`. Sets with too few features in X are left out, with a warning.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> genes = study.expression.columns
    >>> sets = {"planted": genes[study.genes[0]], "arbitrary": genes[:40]}
    >>> netbic.selection.judge(study.expression, sets, random_state=0).table[["set", "verdict"]]
             set   verdict
    0    planted    strong
    1  arbitrary  doubtful
    """
    names = axis_names(X)[1]
    known = {name: _positions(members, names, int(X.shape[1])) for name, members in sets.items()}
    usable = {str(name): at for name, at in known.items() if at.size >= FEWEST}
    if not usable:
        largest = max((at.size for at in known.values()), default=0)
        what = f"none of the {len(sets)} sets has at least {FEWEST} {feature_name}s in X (at most {largest})"
        why = explain_mismatch([] if names is None else names, [*chain(*sets.values())], ("data", "sets"))
        remedy = f". {why.text()}" if why.is_known else ": give sets of the names (or positions) of its columns"
        raise ValueError(f"{what}{remedy}")
    if few := [str(name) for name, at in known.items() if at.size < FEWEST]:
        what = f"{len(few)} of {len(sets)} sets have fewer than {FEWEST} {feature_name}s in X and are not judged"
        warnings.warn(f"{what}: {some_names(few)}", stacklevel=2)
    seed = draw_seed(random_state)
    model = _as_modules(X, list(usable.values()), covariates, missing, seed)
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
    return _named(found, usable, sizes, feature_name)


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


def _as_modules(X: Matrix, sets: list[Indices], covariates: Any, missing: str, seed: int) -> SparseGraphSVD:
    """A fitted model whose modules are the given sets."""
    model = SparseGraphSVD(len(sets), missing=missing, random_state=seed)
    with quiet():
        operator = model.prepared(X, covariates).operator
        modules = [_module(operator, at) for at in sets]
        given = {} if covariates is None else {"covariates": covariates}
        for _ in model.iter_fit(X, modules, **given):  # nothing is left to be found
            pass
    return model


def _module(operator: Corrected, at: Indices) -> Module:
    vector = Vector(operator.shape[1], at, leading(operator.submatrix(np.arange(operator.shape[0]), at)))
    image = operator.products([(at, vector.values)])[0]
    return Module(Vector.of(image), vector, float(np.linalg.norm(image)), "converged", np.zeros(1), 0.0)


def leading(columns: Floats) -> Floats:
    """The right singular vector of the largest singular value; its largest entry is positive."""
    with one_blas_thread():
        vector = np.linalg.svd(columns.astype(np.float64), full_matrices=False)[2][0]
    return np.asarray(vector * np.sign(vector[np.abs(vector).argmax()]))


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


def _named(found: Verdicts, usable: Mapping[str, Indices], sizes: Mapping[str, int], feature_name: str) -> Verdicts:
    """The tables with the names of the sets instead of numbers of modules."""
    names = np.array(list(usable), dtype=object)
    table, features = found.table.copy(), found.features.copy()
    table.insert(0, "set", names)
    table.insert(2, f"n_{feature_name}s", [sizes[name] for name in names])
    table.insert(3, "n_available", [at.size for at in usable.values()])
    table["closest"] = [None if pd.isna(k) else names[k - 1] for k in table["closest"]]
    features.insert(0, "set", names[features["module"].to_numpy(dtype=int) - 1])
    return replace(found, table=table.drop(columns=["module", "repeats"]), features=features.drop(columns="module"))
