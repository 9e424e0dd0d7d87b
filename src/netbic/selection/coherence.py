"""How much the genes of a module move together in samples that were not used to find them.

The coherence of a vector v of weights in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the
weighted sum of genes, relative to what it would be if the genes were independent. The most extreme sample is left out:
the genes of one outlier move together by chance, and both halves of the samples may have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import eigh, orth

from netbic.arrays import Array, Floats, Indices, Matrix, is_sparse
from netbic.estimators import (
    SparseGraphSVD,
    as_one_study,
    basis_of,
    coherence,
    has_missing,
    heaviest,
    own_studies,
    training_design,
)
from netbic.operators import Scaler, as_operator, learn_from_observed, winsorised
from netbic.penalties import L0
from netbic.selection.complementary_pairs import observed
from netbic.selection.matching import partners
from netbic.selection.resampling import by_position, restrict, seeded

_MOST_GENES = 500  # of a module that are judged, the heaviest ones: their columns are dense
_RANDOM_SETS = 5  # of genes per module and half
_FURTHER = 2  # modules that are searched for in a half beyond the number of the whole fit, at least
_SAMPLES_PER_SCORE = 3  # of a half, for every earlier score that is regressed out


class HalfMeasures(NamedTuple):
    """The modules of a model, judged in one half of the samples by a fit to the other half; an entry per module.

    Attributes
    ----------
    score : array
        |correlation| of the module's scores with those of the module matched to it in the other half.
    ratio : array
        Coherence of the matched module relative to random genes, after regressing earlier scores out.
    ratio_alone : array
        The same without regressing anything out.
    genes : array
        Share of the module's genes in the matched one.
    """

    score: Floats
    ratio: Floats
    ratio_alone: Floats
    genes: Floats


class Half:
    """Some samples, centred and scaled by themselves, of which few columns are dense at a time.

    They are not smoothed, even if the model smooths them: diffusion alone makes neighbouring genes move together.
    """

    def __init__(self, part: Matrix, model: SparseGraphSVD, covariates: Floats | None = None) -> None:
        part = observed(part)
        basis = None if covariates is None else basis_of(covariates)
        if not is_sparse(part):
            part, basis = _complete(part, model.clip, basis)
        # Genes move together only around their means: columns are centred whatever the model does.
        center = "both" if model.center in ("rows", "both") else "columns"
        self._scaler = Scaler.learn(as_operator(part, low_memory=True), center, model.scale, basis)
        self._basis = np.empty((part.shape[0], 0)) if basis is None else basis
        self._effects = np.empty((0, part.shape[1])) if self._scaler.effects is None else self._scaler.effects
        self._row_means = np.asarray(part.mean(axis=1)).ravel() - self._scaler.offsets.mean()
        self._row_means -= self._basis @ self._effects.mean(axis=1)
        self._X = part.tocsc() if is_sparse(part) else part

    def scores(self, vectors: Array) -> Floats:
        """Centred scores, a row per vector."""
        products = np.asarray(self._scaler.project(self._X, vectors.T.astype(self._X.dtype)), dtype=np.float64)
        if self._basis.size:
            products -= self._basis @ self._scaler.project_effects(vectors.T)
        scores = products.T
        return np.asarray(scores - scores.mean(axis=1, keepdims=True))

    def columns(self, at: Indices, given: Floats) -> Floats:
        """Some columns after regressing scores (the rows of `given`) out."""
        part = self._X[:, at]
        values = np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64) - self._scaler.offsets[at]
        if self._basis.size:
            values -= self._basis @ self._effects[:, at]
        if self._scaler.rows:
            values -= self._row_means[:, None]
        if self._scaler.factors is not None:
            values *= self._scaler.factors[at]
        basis = orth(given.T) if len(given) else np.empty((len(values), 0))
        return np.asarray(values - basis @ (basis.T @ values))


def leading_weights(columns: Floats) -> Floats:
    """The leading right singular vector."""
    n, k = columns.shape
    gram = columns.T @ columns if k <= n else columns @ columns.T
    vector = eigh(gram, subset_by_index=[len(gram) - 1] * 2, check_finite=False)[1][:, 0]
    return np.asarray(vector if k <= n else columns.T @ vector)


def judged_genes(vector: Array) -> Indices:
    """The genes by which a module is judged: its members or, if they are more than half of all, the heaviest ones."""
    members, most = heaviest(vector), max(1, vector.size // 2)
    if members.size > most:
        squares = vector.astype(np.float64) ** 2
        effective = round(squares.sum() ** 2 / (squares**2).sum())  # their number if all weights were equal
        members = members[: min(effective, most)]
    return members[:_MOST_GENES]


@dataclass(frozen=True)
class HeldOutCoherence:
    """A model whose graphs match `X` by position, and modules (rows of `components`) to judge in halves of X.

    `groups` holds a number per sample, from 0: samples of one group stay in one half.
    """

    model: SparseGraphSVD
    X: Matrix
    components: Array
    groups: Indices
    covariates: Floats | None = None  # a row per sample
    studies: Indices | None = None  # a number per sample: halves are drawn within studies

    @classmethod
    def of(cls, fitted: SparseGraphSVD, X: Matrix, groups: Indices, seed: int) -> Self:
        """For the modules of a model fitted to X."""
        labels = own_studies(fitted)
        studies = None if labels is None else np.unique(labels.astype(str), return_inverse=True)[1]
        fitted, X = as_one_study(fitted, X)
        model, values = by_position(fitted, X, "csr")
        if model.diffusion == "cv":
            model.set_params(diffusion=fitted.diffusion_)  # as chosen once, for all halves
        _fix_sizes(model, fitted)
        covariates = training_design(fitted, X)
        return cls(seeded(model, seed), values, fitted.components_, groups, covariates, studies)

    def measured(self, seed: list[int]) -> HalfMeasures:
        """Fit a random half of the samples and judge the modules in the other half."""
        generator = np.random.default_rng(seed)
        inside = np.isin(self.groups, self._chosen_groups(generator))
        fitted, other = np.flatnonzero(inside), np.flatnonzero(~inside)
        found = self._refitted(fitted, int(generator.integers(2**31 - 1)))
        if not len(found):
            return HalfMeasures(*np.zeros((4, len(self.components))))
        comparison = _Comparison.of(self, found, self.half(fitted), self.half(other))
        return comparison.measures(self.components, generator)

    def _chosen_groups(self, generator: np.random.Generator) -> Indices:
        """A random half of the groups of samples, or of those of every study."""
        order = np.asarray(generator.permutation(self.groups.max() + 1))
        if self.studies is None:
            return order[: order.size // 2]
        first = np.unique(self.groups, return_index=True)[1]  # a group in several studies counts in one of them
        return order[np.argsort(self.studies[first][order], kind="stable")][::2]

    def half(self, kept: Indices | slice) -> Half:
        """Some samples, after centring and scaling."""
        return Half(self.X[kept], self.model, None if self.covariates is None else self.covariates[kept])

    def _refitted(self, kept: Indices, random_state: int) -> Floats:
        """Weights of the modules of some samples, a row each."""
        model = restrict(self.model, "row", kept, self.X.shape[0])
        # Modules of similar strength are found in another order in a half, and the last ones later.
        most = model.n_components + max(_FURTHER, model.n_components // 3)
        model.set_params(n_components=most, random_state=random_state)
        covariates = None if self.covariates is None else self.covariates[kept]
        modules = model.modules_of(model.prepared(observed(self.X[kept]), covariates))
        return np.array([module.v.full() for module in modules]).reshape(len(modules), self.X.shape[1])


def _fix_sizes(model: SparseGraphSVD, fitted: SparseGraphSVD) -> None:
    """Replace a penalty on genes that chooses sizes: other sizes in halves would look like other genes.

    The size is that of the largest module of the whole fit; of a smaller one as many genes are compared.
    """
    penalty = model.column_penalty
    if penalty is not None and penalty.chooses_size and fitted.n_components_:
        size = max(judged_genes(vector).size for vector in fitted.components_)
        model.set_params(column_penalty=L0(max(1, size), nonnegative=penalty.nonnegative))


@dataclass(frozen=True)
class _Comparison:
    """Modules `found` in the `fitted` half and matched (`partner`, -1: none) to given ones by scores in the `other`."""

    found: Floats
    partner: Indices
    score: Floats
    fitted: Half
    other: Half
    scores: tuple[Floats, Floats]  # of the modules found, in both halves
    fixed: bool  # whether all modules found have the same size

    @classmethod
    def of(cls, given: HeldOutCoherence, found: Floats, fitted: Half, other: Half) -> Self:
        scores = fitted.scores(found), other.scores(found)
        correlations = np.abs(correlation(other.scores(given.components), scores[1]))
        partner = partners(correlations)
        padded = np.pad(correlations, ((0, 0), (0, 1)))  # index -1, no partner, points to the last column
        fixed = len(set(np.count_nonzero(found, axis=1))) == 1
        return cls(found, partner, padded[np.arange(partner.size), partner], fitted, other, scores, fixed)

    def measures(self, components: Array, generator: np.random.Generator) -> HalfMeasures:
        """All measures of all modules."""
        rows = [self._of_one(components, k, generator) for k in range(len(components))]
        return HalfMeasures(self.score, *np.array(rows).T)

    def _of_one(self, components: Array, k: int, generator: np.random.Generator) -> tuple[float, float, float]:
        """Both ratios, and the share of genes found again."""
        if self.partner[k] < 0:
            return 0.0, 0.0, 0.0
        own, genes = judged_genes(components[k]), judged_genes(self.found[self.partner[k]])
        if self.fixed:
            own = own[: genes.size]
            genes = genes[: own.size]
        again = np.intersect1d(own, genes).size / max(own.size, genes.size)
        # Others than its own, of which a module of many genes would leave few out.
        others = np.setdiff1d(np.arange(components.shape[1]), genes)
        size = min(genes.size, others.size)
        sets = [generator.choice(others, size, replace=False) for _ in range(_RANDOM_SETS)] if size else []
        nothing, earlier = np.empty(0, dtype=np.intp), self._earlier(k)
        alone = self._ratio(k, genes, sets, nothing)
        return self._ratio(k, genes, sets, earlier) if earlier.size else alone, alone, again

    def _earlier(self, k: int) -> Indices:
        """Modules found that are matched to earlier ones; the most correlated with this one if samples are few."""
        earlier = self.partner[:k][self.partner[:k] >= 0]
        scores = self.scores[1]
        most = scores.shape[1] // _SAMPLES_PER_SCORE
        alike = np.abs(correlation(scores[earlier], scores[[self.partner[k]]])).ravel()
        return earlier[np.argsort(-alike, kind="stable")[:most]]

    def _ratio(self, k: int, genes: Indices, sets: list[Indices], earlier: Indices) -> float:
        """Coherence in the other half, relative to random genes; scores of `earlier` modules are regressed out."""
        in_fitted, in_other = self.scores[0][earlier], self.scores[1][earlier]
        own = coherence(self.other.columns(genes, in_other), self.found[self.partner[k]][genes])
        random = [
            coherence(self.other.columns(at, in_other), leading_weights(self.fitted.columns(at, in_fitted)))
            for at in sets
        ]
        expected = float(np.mean(random)) if random else 0.0
        return own / expected if expected > 0 else 0.0


def correlation(some: Floats, others: Floats) -> Floats:
    """Correlations between the rows of two arrays; 0 for constant rows."""
    units = []
    for rows in (some, others):
        centred = rows - rows.mean(axis=1, keepdims=True)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        units.append(centred / np.where(lengths > 0, lengths, 1.0))
    return np.asarray(units[0] @ units[1].T)


def _complete(part: Array, clip: float | None, basis: Floats | None) -> tuple[Array, Floats | None]:
    """A half without outliers and missing entries, and the basis of covariates that are still to be removed."""
    if basis is None or not basis.shape[1]:
        return _filled(part if clip is None else winsorised(part, clip)), None
    if clip is None and not has_missing(part):
        return part, basis
    rest = learn_from_observed(part, "columns", False, basis).apply(part, basis)
    return _filled(rest if clip is None else winsorised(rest, clip)), None


def _filled(part: Array) -> Array:
    """Missing entries replaced by the means of their columns."""
    if not has_missing(part):
        return part
    return np.where(np.isnan(part), np.nanmean(part, axis=0), part)
