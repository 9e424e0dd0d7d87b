"""Several studies in one fit: each centred and scaled by itself, and weighted.

The rows of study s become w_s (x - mean_s - covariates) F_s, with a weight w_s and a diagonal F_s of factors. This is
what a fit to X' = w_s X F_s with indicators of the studies as covariates does. The studies of a fit are therefore a
scaling of the rows (a sparse matrix stays sparse), and further columns of the design matrix.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.linalg import orth

from netbic.arrays import (
    Array,
    Floats,
    Indices,
    Matrix,
    check_in_memory,
    checked,
    is_sparse,
    kind_of,
    stored_values,
)
from netbic.errors import InputError, shown
from netbic.estimators.covariates import (
    Covariate,
    CovariateCoding,
    Design,
    as_table,
    basis_of,
    check_complete,
    holds_numbers,
    is_missing,
    learn_covariates,
    some_names,
    text_labels,
)
from netbic.estimators.inputs import has_missing, names_of_index
from netbic.operators import Corrected, Scaler, as_operator, learn_from_observed
from netbic.solver import REPEATED

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

_STUDY: Final = "study"  # the column of the design matrix
_FEWEST: Final = 2  # samples of a study: a single one is zero after centring
_LIMIT: Final = 2.0  # times as much as random genes, from which on a module lives in a study
_FEWEST_JUDGED: Final = 10  # samples of a study in which modules are judged
_MOST_GENES: Final = 200  # of a module, the heaviest ones
_RANDOM_SETS: Final = 10
_NEAR: Final = 0.05  # share of the genes, ranked by variance, among which random genes are drawn
_DRAWS: Final = 10  # until there are as many different random genes as a module has
_POWER_STEPS: Final = 20
_SAMPLES_PER_SCORE: Final = 3  # of a study, for every earlier score that is regressed out


@dataclass(frozen=True, eq=False)
class StudyScaling:
    """How the samples of each study are scaled: `study_scaling_` of a model that was fitted to several studies.

    Attributes
    ----------
    names : tuple of str
        The studies, sorted.
    weights : array of shape (n_studies,)
        By which all entries of a study are multiplied.
    factors : array of shape (n_studies, n_features), optional
        By which the columns of a study are multiplied: inverse standard deviations within the study. None if columns
        are not scaled.
    covariates : tuple of str
        Names of the covariates, whose effects are removed within each study.
    """

    names: tuple[str, ...]
    weights: Floats
    factors: Floats | None = None
    covariates: tuple[str, ...] = ()

    def numbers(self, labels: Any) -> Indices:
        """The position of each label in `names`; an error for a study that was not in the fit."""
        found = pd.Index(self.names).get_indexer(pd.Index(labels))
        if (found < 0).any():
            new = shown(str(labels[int((found < 0).argmax())]))
            raise InputError(
                f"study {new} is not one of the fit ({some_names(self.names)}), so that its means are not known: fit "
                "with it, or use netbic.replicate",
                ["studies"],
            )
        return np.asarray(found, dtype=np.intp)

    def apply(self, X: Matrix, numbers: Indices, columns: Indices | slice = slice(None)) -> Matrix:
        """X' = w_s X F_s for rows of these studies; `columns` are the features that the columns of X are."""
        if self.factors is None and (self.weights == 1).all():
            return X
        if is_sparse(X):
            rows = sp.csr_array(X)
            of_entries = np.repeat(numbers, np.diff(rows.indptr))
            by = self.weights[of_entries]
            if self.factors is not None:
                by = by * self.factors[:, columns][of_entries, rows.indices]
            return sp.csr_array((rows.data * by.astype(X.dtype), rows.indices, rows.indptr), shape=rows.shape)
        if kind_of(X) == "table":
            return pd.DataFrame(self.apply(X.to_numpy(), numbers, columns), index=X.index, columns=X.columns)
        scaled = np.array(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        for study, weight in enumerate(self.weights):
            own = numbers == study
            scaled[own] *= weight if self.factors is None else weight * self.factors[study, columns]
        return scaled

    def undo(self, X: Array, numbers: Indices) -> Array:
        """X from X'."""
        restored = np.array(X)
        for study, weight in enumerate(self.weights):
            restored[numbers == study] /= weight if self.factors is None else weight * self.factors[study]
        return restored


class StudyInput(NamedTuple):
    """The data of a fit after the scaling of studies, which is None for one study; `labels` is then None too."""

    X: Any
    coding: CovariateCoding | None = None
    design: Floats | None = None
    scaling: StudyScaling | None = None
    labels: Array | None = None


# ----------------------------------------------------------------------------------------------------------------
# A fit
# ----------------------------------------------------------------------------------------------------------------


def as_matrix(X: Any, studies: Any) -> tuple[Any, Any]:
    """X and the labels of its samples; a mapping of names to matrices is stacked."""
    if not isinstance(X, Mapping) or kind_of(X) != "other":  # a sparse matrix may be a mapping, too
        return X, studies
    if studies is not None:
        raise InputError("X is a dict of studies, so that `studies` is known: omit it", ["studies"])
    stacked = stack_studies(X)
    return stacked.X, stacked.studies


def study_input(model: SparseGraphSVD, X: Any, studies: Any, covariates: Any, names: Array | None) -> StudyInput:
    """The validated data of a fit as they are searched, with the design matrix of covariates and studies."""
    if studies is None:
        return StudyInput(X, *learn_covariates(covariates, X.shape[0], names))
    if model.center != "columns":
        raise InputError(f"center={model.center!r} but each study is centred by itself: use center='columns'")
    if kind_of(X) not in ("dense", "sparse"):
        what = "a Dask array" if kind_of(X) == "blocks" else f"a {type(X).__name__}"
        raise InputError(f"X is {what}, whose studies cannot be scaled: give an array or a sparse matrix in memory")
    labels = study_labels(studies, int(X.shape[0]), names)
    levels, numbers, counts = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    if len(levels) < 2:
        raise InputError(f"studies has one label only, {shown(str(levels[0]))}: fit without `studies`", ["studies"])
    if (counts < _FEWEST).any():
        raise InputError(
            f"study {some_names(levels[counts < _FEWEST].tolist())} has one sample, of which nothing is left after "
            "centring: leave it out, or add samples",
            ["studies"],
        )
    table = pd.DataFrame({_STUDY: pd.Categorical(labels.astype(str), categories=levels.tolist())})
    own: tuple[str, ...] = ()
    if covariates is not None:
        given, is_table = as_table(covariates, len(labels), names)
        check_complete(given, names)
        own = tuple(map(str, given.columns))
        for name in own:
            values = given[name].reset_index(drop=True)
            Covariate.learn(name, values, is_table)  # for its warnings and errors
            for study in levels:
                table[f"{name} in {study}"] = _only_within(values, labels == study, None)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "covariates with one value")  # as of a batch in one study only
        coding, design = CovariateCoding.learn(table, len(labels), None)
    scaling = _learn_scaling(model, X, numbers, design, levels.tolist(), own)
    return StudyInput(scaling.apply(X, numbers), coding, design, scaling, labels)


def study_labels(studies: Any, n_samples: int, names: Array | None) -> Array:
    """The label of each sample as text; a Series, or a table of one column, is matched by name if both have names."""
    if isinstance(studies, pd.DataFrame):
        if studies.shape[1] != 1:
            raise InputError(f"studies is a table with {studies.shape[1]} columns: give one of them", ["studies"])
        studies = studies.iloc[:, 0]
    series = studies if isinstance(studies, pd.Series) else pd.Series(np.ravel(np.asarray(studies, dtype=object)))
    own = names_of_index(series.index)
    if own is not None and names is not None and not np.array_equal(own, names):
        index = pd.Index(own)
        if not index.is_unique:
            twice = shown(str(index[index.duplicated()][0]))
            raise InputError(
                f"sample {twice} occurs twice in studies, so that labels cannot be matched by name: give every sample "
                "one label, or labels without names in the order of X",
                ["studies"],
            )
        series = series.reindex(pd.Index(names))
    if len(series) != n_samples:
        raise InputError(
            f"studies has {len(series):,} label{'s' * (len(series) != 1)} but X has {n_samples:,} samples: one label "
            "per sample is needed",
            ["studies"],
        )
    if (at := is_missing(series)).size:
        listed = some_names([str(place if names is None else names[place]) for place in at])
        raise InputError(
            f"studies has no label for {at.size:,} sample{'s' * (at.size != 1)} ({listed}): give every sample the name "
            "of its study, or leave these samples out",
            ["studies"],
        )
    return text_labels(series)


def _learn_scaling(
    model: SparseGraphSVD,
    X: Matrix,
    numbers: Indices,
    design: Floats,
    names: Sequence[str],
    covariates: tuple[str, ...],
) -> StudyScaling:
    """Weights and factors of every study."""
    norms, factors = np.empty(len(names)), np.ones((len(names), X.shape[1]))
    for study, name in enumerate(names):
        own = numbers == study
        part, basis = X[own], basis_of(design[own])
        within = basis if basis.shape[1] else None
        if has_missing(part):
            varies = ~np.isnan(part).all(axis=0)  # a gene may be missing in one of the studies
            scaler = learn_from_observed(part[:, varies], "columns", model.scale, within)
            factors[study, varies] = 1.0 if scaler.factors is None else scaler.factors
            norms[study] = float(np.nansum(scaler.apply(part[:, varies], within).astype(np.float64) ** 2))
        else:
            data = as_operator(part, low_memory=True)
            scaler = Scaler.learn(data, "columns", model.scale, within)
            factors[study] = 1.0 if scaler.factors is None else scaler.factors
            norms[study] = scaler.operator(data, within).squared_norm
        rounding = 10 * float(np.finfo(X.dtype).eps)
        if not norms[study] > rounding**2 * float(np.nansum(np.square(stored_values(part), dtype=np.float64))):
            raise InputError(f"study {shown(name)} does not vary, at least not beyond its covariates: leave it out")
    return StudyScaling(tuple(names), np.sqrt(norms.mean() / norms), factors if model.scale else None, covariates)


def _only_within(values: pd.Series[Any], own: Array, known: Covariate | None) -> Any:
    """A covariate within one study: samples of others have the mean, or the reference level, of this study."""
    if holds_numbers(values) if known is None else known.levels is None:
        numbers = values.to_numpy(dtype=np.float64)
        return np.where(own, numbers, numbers[own].mean() if known is None else known.mean)
    texts = text_labels(values)
    reference = min(texts[own]) if known is None else (known.levels or ("",))[0]
    return np.where(own, texts, reference)


def study_of_new(
    model: SparseGraphSVD, studies: Any, covariates: Any, n_samples: int, names: Array | None
) -> tuple[Indices, Floats]:
    """The number of the study of each of some samples that a model is applied to, and their design matrix."""
    scaling, coding = model.study_scaling_, model.covariate_coding_
    if scaling is None or coding is None or studies is None:
        known = "" if scaling is None else f" ({some_names(scaling.names)})"
        raise InputError(
            f"the model was fitted to several studies{known}: say which one each sample belongs to (`studies`)",
            ["studies"],
        )
    labels = study_labels(studies, n_samples, names)
    numbers = scaling.numbers(labels)
    if isinstance(covariates, Design):
        return numbers, covariates.values
    table = pd.DataFrame({_STUDY: pd.Categorical(labels.astype(str), categories=list(scaling.names))})
    if (covariates is not None) != bool(scaling.covariates):
        wanted = f"with covariates ({some_names(scaling.covariates)})" if scaling.covariates else "without covariates"
        raise InputError(
            f"the model was fitted {wanted}: give these samples' covariates in the same way (`covariates`)"
        )
    if covariates is not None:
        given, _ = as_table(covariates, len(labels), names)
        if absent := [name for name in scaling.covariates if name not in given]:
            raise InputError(f"covariate {shown(absent[0])} of the fit is not a column of the table: add it")
        check_complete(given, names)
        coded = {each.name: each for each in coding.covariates}
        for name in scaling.covariates:
            values = given[name].reset_index(drop=True)
            for study in scaling.names:
                within = f"{name} in {study}"
                table[within] = _only_within(values, labels == study, coded[within])
    return numbers, coding.encode(table, len(labels), None)


def store_studies(model: SparseGraphSVD, scaling: StudyScaling, operator: Corrected) -> None:
    """Set `studies_` of a model that was fitted to several studies; `operator` is its matrix before diffusion."""
    found = study_numbers(operator, model.components_, scaling.numbers(model.study_labels_), len(scaling.names))
    model.studies_ = studies_table(model, scaling, found)


def own_studies(model: SparseGraphSVD) -> Array | None:
    """The study of each sample that a model was fitted to; None if it was fitted to one study."""
    return model.study_labels_


def rescaled(model: SparseGraphSVD, X: Matrix, rows: Any = slice(None), columns: Any = slice(None)) -> Matrix:
    """X' for some samples (and features) of the fit, to which `scaler_` applies; X itself if there is one study."""
    scaling, labels = model.study_scaling_, model.study_labels_
    if scaling is None or labels is None:
        return X
    return scaling.apply(X, scaling.numbers(labels)[rows], columns)


def as_one_study(model: SparseGraphSVD, X: Any) -> tuple[SparseGraphSVD, Any]:
    """The modules of several studies as those of one study with covariates, and its data.

    The samples of each study are scaled and weighted, and indicators of the studies are covariates: a fit of the
    returned model to the returned data, with its own covariates, finds the same modules. Functions that do not know
    several studies, such as `n_modules` and `graph_value`, can be used with both. If the model was fitted to one study,
    model and data are returned unchanged.

    Parameters
    ----------
    model : SparseGraphSVD
        Fitted to X.
    X : array, DataFrame or sparse matrix

    Examples
    --------
    >>> import netbic
    >>> simulated = netbic.simulate.studies((60, 80), 300, lives=((0, 1),), background=0, random_state=0)
    >>> model = netbic.SparseGraphSVD(1, n_columns=50, scale=True).fit(simulated.X, studies=simulated.studies)
    >>> plain, data = netbic.selection.as_one_study(model, simulated.X)
    >>> netbic.selection.n_modules(plain, data, most=3, random_state=0).n
    1
    """
    if model.study_scaling_ is None:
        return model, X
    labels = own_studies(model)
    if labels is None or len(labels) != X.shape[0]:
        raise InputError("the model was fitted to several studies, to other samples than those in X: give the same X")
    return without_studies(model), rescaled(model, X)


def without_studies(model: SparseGraphSVD) -> SparseGraphSVD:
    """The model as that of one study with covariates, for data that were scaled already."""
    made = copy.copy(model)
    made.scale, made.study_scaling_, made.study_labels_ = False, None, None
    return made


# ----------------------------------------------------------------------------------------------------------------
# In which studies a module lives
# ----------------------------------------------------------------------------------------------------------------


class StudyNumbers(NamedTuple):
    """Numbers of shape (n_modules, n_studies): d_s = |X_s v|, share of the variance of the study, and the ratio.

    The coherence of weights v in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the weighted sum
    of genes, relative to what it would be if the genes were independent. A module was found with the samples of a
    study, so that its weights fit the noise of this study, too. Coherence is therefore measured in one half of the
    samples of the study, with weights fitted to the other half and to the other studies. The ratio compares it with
    that of random genes of similar variance, whose weights are fitted in the same way.
    """

    d: Floats
    share: Floats
    ratio: Floats


def study_numbers(operator: Corrected, components: Floats, numbers: Indices, n_studies: int) -> StudyNumbers:
    """The numbers of all modules; `operator` is the centred, scaled and weighted matrix of all studies."""
    vectors = [(at := np.flatnonzero(row), row[at].astype(np.float64)) for row in components]
    scores = operator.products(vectors)
    of_rows, of_columns = operator.squared_lengths()
    squares = np.array([np.bincount(numbers, row**2, minlength=n_studies) for row in scores]).reshape(-1, n_studies)
    totals = np.maximum(np.bincount(numbers, of_rows, minlength=n_studies), np.finfo(float).tiny)
    judged = _Halves.of(operator, scores, of_columns, numbers, n_studies)
    ratios = np.array([judged.ratios(k, row) for k, row in enumerate(components)]).reshape(-1, n_studies)
    return StudyNumbers(np.sqrt(squares), squares / totals, ratios)


def studies_table(model: SparseGraphSVD, scaling: StudyScaling, found: StudyNumbers) -> pd.DataFrame:
    """A row per module and study: `module`, `study`, `n_samples`, `d`, `share`, `ratio` and `lives_here`."""
    labels = pd.Series(model.study_labels_)
    n_modules, n_studies = found.d.shape
    return pd.DataFrame(
        {
            "module": np.repeat(np.arange(n_modules), n_studies),
            "study": np.tile(np.array(scaling.names, dtype=object), n_modules),
            "n_samples": np.tile([int((labels == name).sum()) for name in scaling.names], n_modules),
            "d": found.d.ravel(),
            "share": found.share.ravel(),
            "ratio": found.ratio.ravel(),
            "lives_here": found.ratio.ravel() >= _LIMIT,
        }
    )


def shared_by(table: pd.DataFrame) -> list[str]:
    """Where each module lives, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> own = {"study": ["a", "b", "c"], "ratio": [3.0, 2.5, 1.0], "lives_here": [True, True, False]}
    >>> shared_by(pd.DataFrame({"module": 0} | own))
    ['shared by 2 of 3 studies (a, b)']
    """
    texts = []
    for _, part in table.groupby("module", sort=True):
        own, total = part.loc[part["lives_here"], "study"].tolist(), len(part)
        unknown = int(part["ratio"].isna().sum())
        more = f"; {unknown} with too few samples to tell" if unknown else ""
        if not own:
            texts.append(f"clear in none of {total} studies{more}")
        elif len(own) == total:
            texts.append(f"shared by {total} of {total} studies")
        elif len(own) == 1:
            texts.append(f"private to {own[0]}{more}")
        else:
            texts.append(f"shared by {len(own)} of {total} studies ({', '.join(own)}){more}")
    return texts


@dataclass(frozen=True)
class _Halves:
    """The matrix, the scores of all modules, and the halves of every study."""

    operator: Corrected
    scores: Floats
    ranked: Indices  # all genes, by variance
    studies: list[Indices]
    halves: list[list[Indices]]  # positions within the study

    @classmethod
    def of(cls, operator: Corrected, scores: Floats, variances: Floats, numbers: Indices, n_studies: int) -> _Halves:
        generator = np.random.default_rng(0)
        studies = [np.flatnonzero(numbers == study) for study in range(n_studies)]
        orders = [generator.permutation(own.size) for own in studies]
        halves = [[order[: order.size // 2], order[order.size // 2 :]] for order in orders]
        # Variances of scaled columns differ by rounding errors only: their order is random.
        rounded = np.round(variances / max(float(variances.max(initial=0.0)), np.finfo(float).tiny), 8)
        ranked = np.lexsort((generator.permutation(variances.size), rounded))
        return cls(operator, scores, ranked, studies, halves)

    def ratios(self, k: int, component: Floats) -> Floats:
        """How many times as much as random genes those of a module move together in each study."""
        members = np.argsort(-np.abs(component), kind="stable")[: min(np.count_nonzero(component), _MOST_GENES)]
        generator = np.random.default_rng([k, 1])
        sets = [_similar(self.ranked, component, members, generator) for _ in range(_RANDOM_SETS)]
        earlier = self.scores[self._earlier(k)]
        # Of earlier scores, as many are regressed out of a study as there are enough samples for.
        kept = [earlier[: own.size // _SAMPLES_PER_SCORE, own] for own in self.studies]
        bases = [np.asarray(orth(each.T)) if each.any() else np.empty((each.shape[1], 0)) for each in kept]
        own = self._coherences(bases, members, component[members].astype(np.float64))
        random = [self._coherences(bases, each, generator.standard_normal(each.size)) for each in sets if each.size]
        if not random:
            return np.full(len(self.studies), np.nan)
        expected = np.mean(random, axis=0)
        few = np.array([own.size < _FEWEST_JUDGED for own in self.studies])
        return np.where(few | ~(expected > 0), np.nan, own / np.where(expected > 0, expected, 1.0))

    def _coherences(self, bases: list[Floats], genes: Indices, start: Floats) -> Floats:
        """Coherence of some genes in every study, in halves that were not used to fit the weights."""
        base, factors, left, right = self.operator.parts()
        columns = base.submatrix(np.arange(self.operator.shape[0]), genes).astype(np.float64)
        columns = np.asarray(columns * (1.0 if factors is None else factors[genes]) - left @ right[genes].T)
        parts = [
            columns[own] - basis @ (basis.T @ columns[own]) for own, basis in zip(self.studies, bases, strict=True)
        ]
        grams = [
            [part[half].T @ part[half] for half in halves] for part, halves in zip(parts, self.halves, strict=True)
        ]
        total = np.sum([gram for each in grams for gram in each], axis=0)
        return np.array(
            [
                np.mean([coherence(part[half], _leading(total - own, start)) for half, own in zip(h, g, strict=True)])
                for part, h, g in zip(parts, self.halves, grams, strict=True)
            ]
        )

    def _earlier(self, k: int) -> Indices:
        """Earlier modules whose scores are regressed out: not those that this one repeats."""
        scores = self.scores[: k + 1] - self.scores[: k + 1].mean(axis=1, keepdims=True)
        lengths = np.maximum(np.linalg.norm(scores, axis=1), np.finfo(float).tiny)
        alike = np.abs(scores[:k] @ scores[k]) / (lengths[:k] * lengths[k])
        return np.flatnonzero(alike < REPEATED)


def coherence(columns: Floats, weights: Floats) -> float:
    """|Bv|^2 / sum_g v_g^2 |B_g|^2 without the sample with the largest (Bv)^2; 0 if nothing varies.

    The genes of one outlier move together by chance.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1.0, -1.0, 1.0, -1.0])
    >>> coherence(np.column_stack([one, one, one]), np.ones(3))
    3.0
    """
    together, apart = (columns @ weights) ** 2, columns**2 @ weights**2
    kept = np.arange(len(together)) != together.argmax()
    expected = float(apart[kept].sum())
    return float(together[kept].sum()) / expected if expected > 0 else 0.0


def _leading(gram: Floats, start: Floats) -> Floats:
    """The leading eigenvector, by power iteration."""
    for _ in range(_POWER_STEPS):
        start = gram @ start
        length = float(np.linalg.norm(start))
        if not length > 0:
            return np.ones_like(start)
        start = start / length
    return start


def _similar(ranked: Indices, component: Floats, members: Indices, generator: np.random.Generator) -> Indices:
    """As many other genes of similar variance as a module has; fewer if there are not enough."""
    others = ranked[component[ranked] == 0]
    place = np.empty(ranked.size, dtype=np.intp)
    place[ranked] = np.arange(ranked.size)
    at = np.searchsorted(place[others], place[members])
    reach, chosen = max(_NEAR * ranked.size, 10.0), np.empty(0, dtype=np.intp)
    for _ in range(_DRAWS if others.size else 0):
        drawn = np.rint(at + generator.uniform(-reach, reach, at.size)).astype(np.intp)
        chosen = np.union1d(chosen, np.clip(drawn, 0, others.size - 1))
        if chosen.size >= members.size:
            chosen = generator.choice(chosen, members.size, replace=False)
            break
    return np.asarray(others[chosen], dtype=np.intp)


# ----------------------------------------------------------------------------------------------------------------
# Stacking
# ----------------------------------------------------------------------------------------------------------------


class StackedStudies(NamedTuple):
    """The result of `stack_studies`.

    Attributes
    ----------
    X : DataFrame, array or CSR matrix
        The samples of all studies, one study below the other.
    studies : array of str
        The study of each sample.
    n_genes : dict
        The number of genes of each study before those in common were taken.
    """

    X: Any
    studies: Array
    n_genes: dict[str, int]

    @property
    def summary(self) -> str:
        """How many samples and genes there are, as a sentence."""
        sizes = pd.Series(self.studies).value_counts()
        each = ", ".join(f"{name}: {sizes[name]:,} x {number:,}" for name, number in self.n_genes.items())
        n_samples, n_genes = self.X.shape
        genes = f"{n_genes:,} gene{'s' * (n_genes != 1)}"
        return f"{len(self.n_genes)} studies with {n_samples:,} samples and {genes} in common ({each})."


def stack_studies(studies: Mapping[str, Any]) -> StackedStudies:
    """Stack the matrices of several studies, with the genes that all of them have.

    Parameters
    ----------
    studies : mapping of names to DataFrames, arrays or sparse matrices
        At least two, with samples in rows. Genes of DataFrames are matched by name, in the order of the first one.
        Columns of arrays and sparse matrices are the same genes in the same order.

    Returns
    -------
    StackedStudies
        `X` and `studies`, as `SparseGraphSVD.fit(X, studies=...)` takes them. If two studies have a sample of the same
        name, samples are called "study:sample".

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["TP53", "ESR1"])
    >>> other = pd.DataFrame([[5.0, 6.0], [7.0, 8.0]], index=["b", "c"], columns=["ESR1", "MYC"])
    >>> stacked = stack_studies({"one": one, "other": other})
    >>> stacked.X["ESR1"].to_dict()
    {'one:a': 2.0, 'one:b': 4.0, 'other:b': 5.0, 'other:c': 7.0}
    >>> stacked.studies.tolist()
    ['one', 'one', 'other', 'other']
    >>> print(stacked.summary)
    2 studies with 4 samples and 1 gene in common (one: 2 x 2, other: 2 x 2).
    """
    if not isinstance(studies, Mapping) or kind_of(studies) != "other":  # a sparse matrix may be a mapping, too
        raise InputError(
            f"studies are given as a {type(studies).__name__}: give a dict of their names and matrices, such as "
            '{"one": X_one, "other": X_other}'
        )
    if len(studies) < 2:
        given = "one study is given" if studies else "no study is given"
        raise InputError(f"{given}: at least two are needed; the matrix of a single one is given to `fit` itself")
    for name, X in studies.items():
        _check_matrix(f"study {shown(str(name))}", X)
    named = [kind_of(X) == "table" for X in studies.values()]
    if any(named) and not all(named):
        without = next(str(name) for name, known in zip(studies, named, strict=True) if not known)
        raise InputError(f"study {shown(without)} has no names of genes but others have: give DataFrames, or arrays")
    labels = np.repeat(np.array([str(name) for name in studies], dtype=object), [X.shape[0] for X in studies.values()])
    n_genes = {str(name): int(X.shape[1]) for name, X in studies.items()}
    return StackedStudies(_by_name(studies) if all(named) else _by_position(studies), labels, n_genes)


def _check_matrix(study: str, X: Any) -> None:
    """Raise unless the data of a study are a matrix in memory."""
    check_in_memory(X, f"{study} is to be stacked with others")
    if isinstance(X, (str, Path)):
        raise InputError(f"{study} is {shown(str(X))}: read the file first, with netbic.io.read_expression")
    if kind_of(X) not in ("table", "dense", "sparse"):
        what = "None" if X is None else f"a {type(X).__name__}"
        raise InputError(f"{study} is {what}: give a DataFrame, an array or a sparse matrix, with samples in rows")
    if len(X.shape) != 2 or 0 in X.shape:
        raise InputError(f"{study} has the shape {X.shape}: a matrix of samples (rows) and genes (columns) is needed")


def _by_name(studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The genes that all studies have, in the order of the first one."""
    for name, X in studies.items():
        if not X.columns.is_unique:
            twice = shown(str(X.columns[X.columns.duplicated()][0]))
            raise InputError(
                f"study {shown(str(name))} has two columns {twice}: merge them, e.g. X.T.groupby(level=0).mean().T"
            )
    first = next(iter(studies.values())).columns
    common = first[np.logical_and.reduce([first.isin(X.columns) for X in studies.values()])]
    if not len(common):
        examples = ", ".join(f"{shown(str(name))}: {shown(str(X.columns[0]))}" for name, X in studies.items())
        in_rows = False
        if all(names_of_index(X.index) is not None for X in studies.values()):
            index, *others = (X.index for X in studies.values())
            in_rows = bool(np.logical_and.reduce([index.isin(other) for other in others]).any())
        remedy = "are genes in rows? Use X.T" if in_rows else "use the same names of genes"
        raise InputError(f"no gene is in all {len(studies)} studies ({examples}, ...): {remedy}")
    stacked = pd.concat([X[common] for X in studies.values()])
    return stacked.set_axis(_sample_names(studies), axis=0)


def _sample_names(studies: Mapping[str, pd.DataFrame]) -> Any:
    """Names of all samples: as they are, or with the name of the study if one occurs twice; none if some have none."""
    known = [names_of_index(X.index) for X in studies.values()]
    if any(names is None for names in known):
        return pd.RangeIndex(sum(map(len, studies.values())))
    index = pd.Index(np.concatenate([np.asarray(names, dtype=object) for names in known]))
    if index.is_unique:
        return index
    return pd.Index([f"{name}:{sample}" for name, X in studies.items() for sample in X.index])


def _by_position(studies: Mapping[str, Any]) -> Any:
    parts = {name: checked(X, f"study {shown(str(name))}") for name, X in studies.items()}
    widths = {str(name): int(X.shape[1]) for name, X in parts.items()}
    if len(set(widths.values())) > 1:
        listed = ", ".join(f"{shown(name)}: {width:,}" for name, width in widths.items())
        raise InputError(
            f"studies have different numbers of columns ({listed}): give DataFrames to match genes by name"
        )
    if all(kind_of(X) == "sparse" for X in parts.values()):
        return sp.vstack(list(parts.values()), format="csr")
    dense = [X.toarray() if kind_of(X) == "sparse" else np.asarray(X) for X in parts.values()]
    return np.vstack(dense)
