"""Modules in parts of the samples: a model is fitted to one part, and its modules are judged in the other one.

Everything that verdicts and confidences of features need is measured here: `Splits.halves` and `Splits.without` return
a `Measures` for every part in which modules are judged. The part of the fit is called A, the other one B.

The coherence of a vector v of weights in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the
weighted sum of features, relative to what it would be if they were independent. The sample with the largest (Bv)^2 is
left out: the features of one outlier move together by chance.
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

import numpy as np

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse
from netbic.estimators.covariates import basis_of, training_design
from netbic.estimators.inputs import has_missing, learn_scaler
from netbic.estimators.results import heaviest
from netbic.estimators.studies import as_one_study, coherence
from netbic.estimators.svd import SparseGraphSVD
from netbic.operators.base import as_operator, slabs
from netbic.operators.corrected import Corrected, Scaler
from netbic.operators.dense import DenseOperator
from netbic.operators.masked import learn_from_observed
from netbic.selection.resampling import (
    by_position,
    correlation,
    draw_half_of_groups,
    fill_unobserved,
    match_rows,
    n_searched_again,
    restrict,
    seeded,
)
from netbic.selection.technical import depth_of
from netbic.solver.joint import SURPLUS, Subspace, leading_subspace
from netbic.solver.search import SIMILAR

FEWEST_GROUPS: Final = 3  # of samples, of which each is left out in turn if they are too few for halves
_MOST_FEATURES = 500  # of a module by which its coherence is judged, the heaviest ones
_ROUNDS = 30  # of a joint search, after the first ones
_RANDOM_SETS = 20  # of features, for each module
_POOL = 1000  # features from which they are drawn
_UNRELATED, _MOST_SCORES = 0.1, 10  # correlation from which other modules are regressed out, and how many at most
_SAMPLES_PER_SCORE = 10  # of B, for each of these
_LARGEST_CORRELATION = 1 - 1e-6
_SAFE = 1e15  # largest entry, for squares in single precision
_LARGE = 1_000_000  # entries from which on single precision saves time
_EXPLAINED = 1e-9  # share of variance that is rounding error


class Measures(NamedTuple):
    """The modules of the whole fit, judged in one part of the samples; the first axis is that of the modules."""

    score: Floats  # |correlation| of the module's scores with those of the module matched to it
    coherence: Floats  # of the matched module, after regressing the scores of other ones out
    random: Floats  # the same of random features, a column per set
    selected: Array  # 1 or -1 for the features of the matched module, with the sign relative to the whole fit; or 0
    kme: Array  # correlation of every feature with the score that the other features give, in single precision
    degrees: Floats  # degrees of freedom of these correlations
    breadth: Floats  # product of the correlations in both parts, mean of random features; relative to its own in one

    @classmethod
    def empty(cls, n: int, p: int) -> Measures:
        """Zeros for n modules and p features: nothing is found again."""
        score, coherence, degrees, breadth = np.zeros((4, n))
        kme = np.zeros((n, p), np.float32)
        return cls(score, coherence, np.zeros((n, _RANDOM_SETS)), kme.astype(np.int8), kme, degrees, breadth)


class Splits:
    """A model whose graphs match `X` by position, and modules (rows of `components`) to judge in parts of X.

    `groups` holds a number per sample, from 0: samples of one group stay in one part. Halves are drawn within studies.
    """

    def __init__(self, fitted: SparseGraphSVD, X: Matrix, groups: Indices, seed: int) -> None:
        labels, self.groups, self.fitted, self.seed = fitted.study_labels_, groups, fitted, seed
        self.studies = None if labels is None else np.unique(labels.astype(str), return_inverse=True)[1]
        fitted, X = as_one_study(fitted, X)
        self.covariates, generator = training_design(fitted, X), np.random.default_rng(seed)
        model, self.X = by_position(fitted, X, "csr")
        if model.diffusion == "cv":
            model.set_params(diffusion=fitted.diffusion_)  # as chosen once, for all halves
        self.model, self.components = seeded(model, seed), fitted.components_.astype(np.float64)
        self.depth = depth_of(self.X)
        self.n_modules = len(self.components)  # that the search for modules of a part should find again
        p = self.components.shape[1]
        self.pool = np.sort(generator.choice(p, min(p, _POOL), replace=False))
        self.sets = [self._random_sets(generator, weights) for weights in self.components]
        self._lines = None if is_sparse(self.X) else _centred(self.X)
        # Usually, the matrix in which modules are judged is also the one that is searched.
        is_same = model.center in ("columns", "both") and model.diffusion is None and not has_missing(self.X)
        self._searches_parts = model.is_joint and is_same

    def _random_sets(self, generator: np.random.Generator, weights: Floats) -> Array:
        """Random sets of features that are not in a module: positions in the pool, a row per set.

        If nearly all features are in it, those by which it is not judged.
        """
        judged = judged_features(weights)
        others = np.flatnonzero(weights[self.pool] == 0)
        if others.size < judged.size:
            others = np.flatnonzero(~np.isin(self.pool, judged))
        size = min(judged.size, others.size // 2)  # sets of all others would be the same
        return np.array([generator.choice(others, size, replace=False) for _ in range(_RANDOM_SETS if size else 0)])

    def halves(self, job: tuple[int, int, tuple[int, ...]]) -> list[Measures]:
        """Two random halves of the groups of samples (or `which` of them), each judged by a fit to the other one."""
        *seed, which = job
        generator = np.random.default_rng(seed)
        inside = np.isin(self.groups, draw_half_of_groups(generator, self.groups, self.studies))
        starts = generator.integers(2**31 - 1, size=2).tolist()
        parts = [(inside, starts[0]), (~inside, starts[1])]
        return self._measure([parts[each] for each in which])

    def without(self, group: int) -> list[Measures]:
        """One group of samples, judged by a fit to the others."""
        return self._measure([(self.groups != group, group)])

    def _measure(self, parts: list[tuple[Array, int]]) -> list[Measures]:
        """For each part of the samples (a mask, and the random state of the fit): a fit to it, judged in the rest."""
        known = {inside.tobytes(): self.part(np.flatnonzero(inside)) for one, _ in parts for inside in (one, ~one)}
        found = []
        for inside, start in parts:
            part, rest = known[inside.tobytes()], known[(~inside).tobytes()]
            found.append(self._judge(self._refit(np.flatnonzero(inside), part, start), part, rest))
        return found

    def part(self, kept: Indices) -> Part:
        """Some samples, after centring and scaling."""
        # The mode spares a check of the indices.
        part = self.X[kept] if self._lines is None else self._lines.take(kept, axis=1, mode="clip").T
        depth = np.empty((0, kept.size)) if self.depth is None else self.depth[:, kept]
        return Part(part, self.model, None if self.covariates is None else self.covariates[kept], depth)

    def _refit(self, kept: Indices, part: Part, random_state: int) -> Floats:
        """Weights of the modules of some samples, a row each."""
        model, p = restrict(self.model, "row", kept, self.X.shape[0]), self.X.shape[1]
        number = n_searched_again(model, self.n_modules if model.is_joint else model.n_components)
        model.set_params(n_components=number, random_state=random_state)
        if model.is_joint:  # enough to tell which modules are the same
            model.set_params(max_iter=min(model.max_iter, _ROUNDS))
        if self._searches_parts:
            space = part.subspace(ceil(SURPLUS * number))
            found = model.vectors_in(space, (kept.size, p), part.squared_norm) if space.values.size else []
        else:
            covariates = None if self.covariates is None else self.covariates[kept]
            prepared = model.prepared(fill_unobserved(self.X[kept]), covariates)
            found = [module.v for module in model.modules_of(prepared)]
        return np.array([v.full() for v in found], np.float64).reshape(len(found), p)

    def _matched(self, alike: Floats) -> tuple[Indices, Floats]:
        """For each module, the one of a part that it is matched to, from the correlations of their scores, and that."""
        return match_rows(alike)

    def _removed(self, alike: Floats, k: int, most: int) -> Indices:
        """The modules to regress out: those correlated with module k that do not repeat it, the closest first."""
        others = np.flatnonzero((alike < SIMILAR) & (alike >= _UNRELATED) & (np.arange(alike.size) != k))
        return others[np.argsort(-alike[others], kind="stable")[: min(most, _MOST_SCORES)]]

    def _judge(self, vectors: Floats, fitted: Part, other: Part) -> Measures:
        """The modules of the whole fit, judged in one part by modules (`vectors`) of the other part."""
        known, made = other.scores(self.components), Measures.empty(*self.components.shape)
        if not len(vectors):
            return made
        partner, score = self._matched(np.abs(correlation(known, other.scores(vectors))))
        at = np.flatnonzero(partner >= 0)
        made.score[at] = score[at]
        in_fit = fitted.correlations(fitted.scores(vectors[partner[at]]))
        parts = zip(self.components[at], vectors[partner[at]], in_fit, strict=True)
        matched = np.array([resized(*each) for each in parts])
        signs = np.sign(np.einsum("ij,ij->i", matched, self.components[at]))
        made.selected[at] = np.sign(matched) * signs[:, None]
        scores, pool = other.scores(matched), other.columns(self.pool)
        products, of_known, of_depth = np.split(
            other.products(np.vstack([scores, known, other.depth])), [at.size, at.size + len(known)]
        )
        alike = np.abs(correlation(known, known))
        for number, k in enumerate(at):
            others = self._removed(alike[k], int(k), scores.shape[1] // _SAMPLES_PER_SCORE)
            vector = matched[number]
            beside = np.vstack([known[others], other.depth]), np.vstack([of_known[others], of_depth])
            found = other.partial_correlations(scores[number], products[number], vector, *beside)
            made.kme[k], made.degrees[k] = signs[number] * found, other.degrees - len(beside[0])
            basis = np.linalg.qr(beside[0].T)[0]
            # As many as in a random set: coherence grows with the number of features.
            judged = np.sort(judged_features(vector)[: self.sets[k].shape[-1] or None])
            made.coherence[k] = coherence(other.columns(judged), vector[judged, None], basis)[0]
            weights, sets = np.zeros((self.pool.size, _RANDOM_SETS)), self.sets[k]
            if sets.size:
                loads = in_fit[number][self.pool] * fitted.lengths[self.pool]
                weights[sets.T, np.arange(_RANDOM_SETS)] = loads[sets.T]
                made.random[k] = coherence(pool, weights, basis)
            outside = self.pool[(vector[self.pool] == 0) & (self.components[k, self.pool] == 0)]
            typical = float(np.mean(found[judged] ** 2))
            if outside.size and typical > 0:
                made.breadth[k] = float(np.mean(in_fit[number, outside] * found[outside])) / typical
        return made


def resized(own: Floats, found: Floats, loadings: Floats) -> Floats:
    """A module found again, with as many features as the module itself has.

    Its heaviest features are kept; if it has too few, those with the largest loadings follow.
    """
    size, support = int(np.count_nonzero(own)), heaviest(found)
    if size == support.size:
        return found
    vector, kept = np.zeros_like(found), support[:size]
    vector[kept] = found[kept]
    if kept.size < size:
        order = np.argsort(-np.abs(np.where(found == 0, loadings, 0.0)), kind="stable")[: size - kept.size]
        smallest = np.abs(found[kept]).min(initial=1.0)
        vector[order] = np.sign(loadings[order]) * smallest
    return vector


def _centred(X: Array) -> Array:
    """A dense matrix with centred columns, a row for each: in single precision, halves then lose no digits."""
    centred = learn_scaler(X, "columns", 0.0, None).apply(X)
    largest = max(float(np.nanmax(centred)), -float(np.nanmin(centred)))
    if centred.size > _LARGE and 1 / _SAFE < largest < _SAFE:
        centred = centred.astype(np.float32, copy=False)
    return np.ascontiguousarray(centred.T)


class Part:
    """Some samples, centred and scaled by themselves, in place; if they are sparse, few columns are dense at a time.

    They are not smoothed, even if the model smooths them: diffusion alone makes neighbouring features move together.
    """

    def __init__(
        self, part: Matrix, model: SparseGraphSVD, covariates: Floats | None = None, depth: Floats | None = None
    ) -> None:
        self.depth = np.empty((0, part.shape[0])) if depth is None else depth - depth.mean(axis=1, keepdims=True)
        design = None if covariates is None else basis_of(covariates)
        self.degrees = part.shape[0] - 1 - (0 if design is None else design.shape[1])
        self._lines: Array | None = None  # of dense samples: a row per feature
        # Features move together only around their means: columns are centred whatever the model does.
        rows = model.center in ("rows", "both")
        if is_sparse(part):
            data = as_operator(part)
            scaler = Scaler.learn(data, "both" if rows else "columns", model.scale_power, design)
            self._operator = scaler.operator(data, design)
            squares = self._operator.column_squares()
        else:
            part, design = _complete(part, design)
            self._lines, constant = part.T, np.full((len(part), 1), 1 / np.sqrt(len(part)))
            removed = constant if design is None else np.hstack([constant, design])
            squares = _scale(self._lines, removed.astype(part.dtype), model.scale_power, rows)
            self._operator = Corrected(DenseOperator(part, low_memory=True), float(squares.sum()))
        self.lengths = np.sqrt(np.maximum(squares, 0.0))  # of the columns

    def subspace(self, rank: int) -> Subspace:
        """The leading subspace."""
        noise = 4 * self._operator.data.epsilon * (self._operator.correction_norm() + np.linalg.norm(self.lengths))
        usual = 1 / _SAFE**2 < self.squared_norm < _SAFE**2
        products = lambda vectors: self.products(vectors.T)  # noqa: E731
        return leading_subspace(self._operator, rank, float(noise), products, is_scaled=usual)

    @property
    def squared_norm(self) -> float:
        """The sum of squares of all entries."""
        return self._operator.squared_norm

    def scores(self, vectors: Floats) -> Floats:
        """Centred scores, a row per vector."""
        supports = [np.flatnonzero(vector) for vector in vectors]
        products = self._operator.products([(at, v[at]) for at, v in zip(supports, vectors, strict=True)])
        return np.asarray(products - products.mean(axis=1, keepdims=True))

    def columns(self, at: Indices) -> Floats:
        """Some columns."""
        return np.asarray(self._operator.submatrix(np.arange(self._operator.shape[0]), at), dtype=np.float64)

    def products(self, scores: Floats) -> Floats:
        """Products of scores (rows) with every column."""
        if self._lines is None:
            return self._operator.left_products(scores.T)
        return np.ascontiguousarray((self._lines @ scores.T.astype(self._lines.dtype)).T, dtype=np.float64)

    def correlations(self, scores: Floats) -> Floats:
        """Correlations of scores (rows) with every column."""
        lengths = np.linalg.norm(scores, axis=1)[:, None] * self.lengths
        return np.asarray(self.products(scores) / np.maximum(lengths, np.finfo(float).tiny))

    def partial_correlations(
        self, score: Floats, products: Floats, vector: Floats, others: Floats, of_others: Floats
    ) -> Floats:
        """Correlation of every column with a score, both after regressing other scores (rows) out.

        `products` are those of the scores with the columns. For the members of the module (of its `vector` of weights),
        the score is the one that its other members give.
        """
        weights = np.linalg.pinv(others @ others.T) @ np.column_stack([others @ score, of_others])
        square = float(score @ score - score @ others.T @ weights[:, 0])
        squares = self.lengths**2 - np.einsum("ij,ij->j", of_others, weights[:, 1:])
        squares = np.where(squares > _EXPLAINED * self.lengths**2, squares, 0.0)  # of the columns
        found = products - weights[:, 0] @ of_others
        rest = np.maximum(square - 2 * vector * found + vector**2 * squares, 0.0)  # of the score without the column
        lengths = np.sqrt(rest * squares)
        usable = lengths > _EXPLAINED * np.sqrt(max(square, 0.0)) * self.lengths
        found = np.where(usable, found - vector * squares, 0.0) / np.where(usable, lengths, 1.0)
        return np.asarray(np.clip(found, -_LARGEST_CORRELATION, _LARGEST_CORRELATION))


def _scale(lines: Array, removed: Array, power: float, center_rows: bool) -> Floats:
    """Remove orthonormal columns from every line and divide by powers of standard deviations, in place.

    Returns the sums of squares of the lines. Lines that do not vary are not divided. With `center_rows`, the mean of
    all lines is subtracted before that, but standard deviations are those without it, as in `Scaler`.
    """
    squares, shift = np.empty(len(lines)), lines.mean(axis=0) if center_rows else np.zeros(0)
    if center_rows:
        shift -= removed @ (removed.T @ shift)
    for some in slabs(*lines.shape):  # small ones stay in the cache
        part = lines[some]
        raw = np.einsum("ij,ij->i", part, part)
        part -= (part @ removed) @ removed.T
        left = np.einsum("ij,ij->i", part, part).astype(np.float64)
        varies = left > (10 * np.finfo(lines.dtype).eps) ** 2 * raw
        factors = np.where(varies, left / lines.shape[1], 1.0) ** (-power / 2)
        if center_rows:
            part -= shift
            left = np.einsum("ij,ij->i", part, part).astype(np.float64)
        if power:
            part *= factors[:, None].astype(lines.dtype)
        squares[some] = left * factors**2
    return squares


def _complete(part: Array, design: Floats | None) -> tuple[Array, Floats | None]:
    """A half without missing entries, and the covariates that are still to be removed."""
    if not has_missing(part):
        return part, design
    part = fill_unobserved(part)
    if design is not None and design.shape[1]:
        part, design = learn_from_observed(part, "columns", False, design).apply(part, design), None
    return np.asfortranarray(np.where(np.isnan(part), np.nanmean(part, axis=0), part)), design


def judged_features(vector: Array) -> Indices:
    """The features by which a module is judged: its members or, if these are more than half of all, the heaviest."""
    members, most = heaviest(vector), max(1, vector.size // 2)
    if members.size > most:
        squares = vector.astype(np.float64) ** 2
        effective = round(squares.sum() ** 2 / (squares**2).sum())  # their number if all weights were equal
        members = members[: min(effective, most)]
    return members[:_MOST_FEATURES]
