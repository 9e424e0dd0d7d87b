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
from itertools import product
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
    check_range,
    checked,
    is_sparse,
    kind_of,
    stored_values,
    to_dense,
)
from netbic.errors import InputError, plural, shown, some_names
from netbic.estimators.covariates import (
    Covariate,
    CovariateCoding,
    Design,
    as_table,
    basis_of,
    complete_columns,
    holds_numbers,
    in_order_of_samples,
    is_missing,
    text_labels,
)
from netbic.estimators.inputs import has_missing, holds_studies, names_of_index
from netbic.operators.base import as_operator
from netbic.operators.corrected import Corrected, Scaler
from netbic.operators.masked import learn_from_observed
from netbic.solver.search import SIMILAR, correlations

if TYPE_CHECKING:
    from netbic.estimators.svd import SparseGraphSVD

_STUDY: Final = "study"  # the column of the design matrix
_FEWEST: Final = 2  # samples of a study: a single one is zero after centring
RELATIVE_STRENGTH: Final = 0.25  # smallest strength of a module, relative to other studies: half of the amplitude
_FEWEST_JUDGED: Final = 10  # samples of a study in which modules are judged
_MOST_FEATURES: Final = 200  # of a module, the heaviest ones
_RANDOM_SETS: Final = 20
_Z: Final = 2.0  # standard deviations of random sets by which features move together more than by chance
_NEAR: Final = 0.05  # share of the features, ranked by variance, among which random features are drawn
_DRAWS: Final = 10  # until there are as many different random features as a module has
_POWER_STEPS: Final = 20
_ROUNDING: Final = 1e-12  # of the variance
_SAMPLES_PER_SCORE: Final = 3  # of a study, for every earlier score that is regressed out


@dataclass(frozen=True, eq=False)
class StudyScaling:
    """How the samples of each study are scaled: `study_scaling_` of a model that was fitted to several studies."""

    names: tuple[str, ...]  # of the studies, sorted
    weights: Floats  # a number per study, by which all its entries are multiplied
    factors: Floats | None = None  # (n_studies, n_features), inverse standard deviations; None if not scaled
    covariates: tuple[str, ...] = ()  # whose effects are removed within each study

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
    """The data of a fit after the scaling of studies; for one study, `scaling` and `labels` are None."""

    X: Any
    coding: CovariateCoding | None = None
    design: Floats | None = None
    scaling: StudyScaling | None = None
    labels: Array | None = None


# A fit


def as_matrix(X: Any, studies: Any) -> tuple[Any, Any]:
    """X and the labels of its samples; a mapping of names to matrices is stacked."""
    if not holds_studies(X):
        return X, studies
    if studies is not None:
        raise InputError("X is a dict of studies, so that `studies` is known: omit it", ["studies"])
    return stack_studies(X)


def study_input(model: SparseGraphSVD, X: Any, studies: Any, covariates: Any, names: Array | None) -> StudyInput:
    """The validated data of a fit as they are searched, with the design matrix of covariates and studies."""
    if studies is None and covariates is None:
        return StudyInput(X)
    if studies is None:
        coding, design = CovariateCoding.learn(covariates, X.shape[0], names)
        return StudyInput(X, coding, design if coding.columns else None)
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
            f"study {some_names(levels[counts < _FEWEST])} has one sample, of which nothing is left after centring: "
            "leave it out, or add samples",
            ["studies"],
        )
    given, is_table = pd.DataFrame(index=np.arange(len(labels))), True
    if covariates is not None:
        given, is_table = as_table(covariates, len(labels), names)
        complete_columns(given, given.columns, names)
    own = tuple(map(str, given.columns))
    for name in own:
        Covariate.learn(name, given[name], is_table)  # for its warnings and errors
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "covariates with one value")  # as of a batch in one study only
        coding, design = CovariateCoding.learn(_within_studies(given, labels, levels.tolist()), len(labels), None)
    norms, factors = np.empty(len(levels)), np.ones((len(levels), X.shape[1]))
    for study, name in enumerate(levels):
        rows = numbers == study
        norms[study], factors[study] = _scaling_within(model, X[rows], basis_of(design[rows]), str(name))
    scaling = StudyScaling(
        tuple(levels.tolist()), np.sqrt(norms.mean() / norms), factors if model.scale_power else None, own
    )
    return StudyInput(scaling.apply(X, numbers), coding, design, scaling, labels)


def study_labels(studies: Any, n_samples: int, names: Array | None, what: str = "studies") -> Array:
    """The label of each sample as text; a Series, or a table of one column, is matched by name if both have names."""
    if isinstance(studies, pd.DataFrame):
        if studies.shape[1] != 1:
            raise InputError(f"{what} is a table with {studies.shape[1]} columns: give one of them", [what])
        studies = studies.iloc[:, 0]
    series = studies if isinstance(studies, pd.Series) else pd.Series(np.ravel(np.asarray(studies, dtype=object)))
    series = in_order_of_samples(series, n_samples, names, what)
    if (at := is_missing(series)).size:
        raise InputError(
            f"{what} has no label for {at.size:,} sample{'s' * (at.size != 1)} "
            f"({some_names(at if names is None else names[at])}): give every sample one, or leave these samples out",
            [what],
        )
    return text_labels(series)


def _scaling_within(model: SparseGraphSVD, X: Matrix, basis: Floats, name: str) -> tuple[float, Floats]:
    """The squared norm of one study, centred, scaled and without covariates, and the factors of its columns."""
    within, factors = basis if basis.shape[1] else None, np.ones(X.shape[1])
    check_range(X, f"study {shown(name)}")
    if has_missing(X):
        varies = ~np.isnan(X).all(axis=0)  # a feature may be missing in one of the studies
        scaler = learn_from_observed(X[:, varies], "columns", model.scale_power, within)
        factors[varies] = 1.0 if scaler.factors is None else scaler.factors
        norm = float(np.nansum(scaler.apply(X[:, varies], within).astype(np.float64) ** 2))
    else:
        data = as_operator(X, low_memory=True)
        scaler = Scaler.learn(data, "columns", model.scale_power, within)
        factors[:] = 1.0 if scaler.factors is None else scaler.factors
        norm = scaler.operator(data, within).squared_norm
    rounding, values = 10 * float(np.finfo(X.dtype).eps), stored_values(X)
    scaled = values * (factors[X.indices] if is_sparse(X) else factors)
    if not norm > rounding**2 * float(np.nansum(np.square(scaled))):
        raise InputError(f"study {shown(name)} does not vary, at least not beyond its covariates: leave it out")
    return norm, factors


def _within_studies(
    covariates: pd.DataFrame, labels: Array, studies: Sequence[str], coded: Sequence[Covariate] = ()
) -> pd.DataFrame:
    """The study of each sample, and every covariate within every study (`coded` in a fit, or not yet).

    Samples of other studies have the mean, or the reference level, of this study.
    """
    table = pd.DataFrame({_STUDY: pd.Categorical(labels.astype(str), categories=list(studies))})
    fitted = {each.name: each for each in coded}
    for name, study in product(covariates.columns, studies):
        values, own, known = covariates[name], labels == study, fitted.get(f"{name} in {study}")
        if holds_numbers(values) if known is None else known.levels is None:
            inside: Any = values.to_numpy(dtype=np.float64)
            outside = inside[own].mean() if known is None else known.mean
        else:
            inside = text_labels(values)
            outside = min(inside[own]) if known is None else (known.levels or ("",))[0]
        table[f"{name} in {study}"] = np.where(own, inside, outside)
    return table


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
    if (covariates is not None) != bool(scaling.covariates):
        wanted = f"with covariates ({some_names(scaling.covariates)})" if scaling.covariates else "without covariates"
        raise InputError(
            f"the model was fitted {wanted}: give these samples' covariates in the same way (`covariates`)"
        )
    given = pd.DataFrame(index=np.arange(len(labels)))
    if covariates is not None:
        given = complete_columns(as_table(covariates, len(labels), names)[0], scaling.covariates, names)
    table = _within_studies(given, labels, scaling.names, coding.covariates)
    return numbers, coding.encode(table, len(labels), None)


def rescaled(model: SparseGraphSVD, X: Matrix, rows: Any = slice(None), columns: Any = slice(None)) -> Matrix:
    """X' for some samples (and features) of the fit, to which `scaler_` applies; X itself if there is one study."""
    scaling, labels = model.study_scaling_, model.study_labels_
    if scaling is None or labels is None:
        return X
    return scaling.apply(X, scaling.numbers(labels)[rows], columns)


def as_one_study(model: SparseGraphSVD, X: Any) -> tuple[SparseGraphSVD, Any]:
    """The modules of several studies as those of one study with covariates, and its data.

    The samples of each study are scaled and weighted, and indicators of the studies are covariates. Functions that do
    not know several studies, such as `n_modules` and `graph_value`, can be used with both. If the model was fitted to
    one study, model and data are returned unchanged.

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
    if model.study_labels_ is None or len(model.study_labels_) != X.shape[0]:
        raise InputError("the model was fitted to several studies, to other samples than those in X: give the same X")
    return without_studies(model), rescaled(model, X)


def without_studies(model: SparseGraphSVD) -> SparseGraphSVD:
    """The model as that of one study with covariates, for data that were scaled already."""
    made = copy.copy(model)
    made.scale, made.study_scaling_, made.study_labels_ = False, None, None
    return made


# In which studies a module lives


class StudyNumbers(NamedTuple):
    """Numbers of shape (n_modules, n_studies)."""

    d: Floats  # |X_s v|
    share: Floats  # of the variance of the study
    ratio: Floats  # of the coherence to that of random features
    z: Floats  # their difference in standard deviations of the coherences of random sets


def study_numbers(operator: Corrected, components: Floats, numbers: Indices, n_studies: int) -> StudyNumbers:
    """The numbers of all modules; `operator` is the centred, scaled and weighted matrix of all studies.

    The coherence of weights v in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the weighted sum
    of features, relative to what it would be if the features were independent. A module was found with the samples of a
    study, so that its weights fit the noise of this study, too. Coherence is therefore measured in one half of the
    samples of the study, with weights fitted to the other half and to the other studies. The ratio compares it with
    that of random features of similar variance, whose weights are fitted in the same way.
    """
    vectors = [(at := np.flatnonzero(row), row[at].astype(np.float64)) for row in components]
    scores = operator.products(vectors)
    of_rows, variances = operator.squared_lengths()
    squares = np.array([np.bincount(numbers, row**2, minlength=n_studies) for row in scores]).reshape(-1, n_studies)
    totals = np.maximum(np.bincount(numbers, of_rows, minlength=n_studies), np.finfo(float).tiny)
    generator = np.random.default_rng(0)
    studies = [np.flatnonzero(numbers == study) for study in range(n_studies)]
    orders = [generator.permutation(own.size) for own in studies]
    halves = [[order[: order.size // 2], order[order.size // 2 :]] for order in orders]
    # Variances of scaled columns differ by rounding errors only: their order is random.
    rounded = np.round(variances / max(float(variances.max(initial=0.0)), np.finfo(float).tiny), 8)
    ranked = np.lexsort((generator.permutation(variances.size), rounded))
    few = np.array([own.size < _FEWEST_JUDGED for own in studies])
    ratios, z = np.full((2, len(components), n_studies), np.nan)
    for k, component in enumerate(components):
        members = np.argsort(-np.abs(component), kind="stable")[: min(np.count_nonzero(component), _MOST_FEATURES)]
        generator = np.random.default_rng([k, 1])
        sets = [_similar(ranked, component, members, generator) for _ in range(_RANDOM_SETS)]
        # Earlier scores are regressed out, but not those that this module repeats, and of each study only as many as
        # there are enough samples for.
        earlier = scores[:k][np.abs(correlations(scores[k], scores[:k])) < SIMILAR]
        kept = [earlier[: own.size // _SAMPLES_PER_SCORE, own] for own in studies]
        bases = [np.asarray(orth(each.T)) if each.any() else np.empty((each.shape[1], 0)) for each in kept]
        parts = list(zip(studies, bases, halves, strict=True))
        own = _coherences(operator, parts, members, component[members].astype(np.float64))
        random = [
            _coherences(operator, parts, each, generator.standard_normal(each.size)) for each in sets if each.size
        ]
        if random:
            expected, spread = np.mean(random, axis=0), np.std(random, axis=0, ddof=1)
            known = ~few & (expected > 0) & (spread > 0)
            ratios[k] = np.where(known, own / np.where(known, expected, 1.0), np.nan)
            z[k] = np.where(known, (own - expected) / np.where(known, spread, 1.0), np.nan)
    return StudyNumbers(np.sqrt(squares), squares / totals, ratios, z)


def _similar(ranked: Indices, component: Floats, members: Indices, generator: np.random.Generator) -> Indices:
    """As many other features of similar variance as a module has; fewer if there are not enough."""
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


def _coherences(operator: Corrected, parts: list[Any], features: Indices, start: Floats) -> Floats:
    """Coherence of some features in every study, in halves that were not used to fit the weights.

    `parts` are, for each study, its samples, a basis of what is regressed out, and the halves (positions within it).
    """
    base, factors, left, right = operator.parts()
    columns = base.submatrix(np.arange(operator.shape[0]), features).astype(np.float64)
    columns = np.asarray(columns * (1.0 if factors is None else factors[features]) - left @ right[features].T)
    halves = []  # two per study
    for samples, basis, positions in parts:
        own = columns[samples] - basis @ (basis.T @ columns[samples])
        halves += [own[half] for half in positions]
    grams = [half.T @ half for half in halves]
    total = np.sum(grams, axis=0)
    loadings = [_leading(total - gram, start) for gram in grams]
    each = [coherence(half, own[:, None])[0] for half, own in zip(halves, loadings, strict=True)]
    return np.asarray(np.reshape(each, (-1, 2)).mean(axis=1))


def _leading(gram: Floats, vector: Floats) -> Floats:
    """The leading eigenvector, by power iteration."""
    for _ in range(_POWER_STEPS):
        vector = gram @ vector
        length = float(np.linalg.norm(vector))
        if not length > 0:
            return np.ones_like(vector)
        vector = vector / length
    return vector


def coherence(columns: Floats, weights: Floats, basis: Floats | None = None) -> Floats:
    """|Bv|^2 / sum_g v_g^2 |B_g|^2 of each column v of weights, without the sample with the largest (Bv)^2.

    B are the columns after regressing an orthonormal basis out. The features of one outlier move together by chance. It
    is 0 if nothing varies.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1.0, -1.0, 1.0, -1.0])
    >>> coherence(np.column_stack([one, one, one]), np.ones((3, 1)))
    array([3.])
    """
    basis = np.empty((len(columns), 0)) if basis is None else basis
    inner, squared = basis.T @ columns, weights**2
    together = (columns @ weights - basis @ (inner @ weights)) ** 2
    most = together.argmax(axis=0)
    rows = columns[most] - basis[most] @ inner  # the residuals of all samples are never formed
    squares = np.einsum("ij,ij->j", columns, columns) - np.einsum("ij,ij->j", inner, inner)
    expected = squares @ squared - np.einsum("kj,jk->k", rows**2, squared)
    found = together.sum(axis=0) - together[most, np.arange(most.size)]
    varies = expected > _ROUNDING * (squares @ squared)
    return np.asarray(np.where(varies, found / np.where(varies, expected, 1.0), 0.0))


def studies_table(model: SparseGraphSVD, scaling: StudyScaling, found: StudyNumbers) -> pd.DataFrame:
    """A row per module and study: `module`, `study`, `n_samples`, `d`, `share`, `ratio`, `z` and `lives_here`.

    A module lives in a study if its features move together clearly more than random ones, and at least a quarter as
    much beyond these as in the study in which they do so most. An absolute limit of the ratio would depend on the size
    of the module and, in sparse data, on counting noise.
    """
    n_modules, n_studies = found.d.shape
    table = pd.DataFrame({"module": np.repeat(np.arange(1, n_modules + 1), n_studies)})
    table["study"] = np.tile(np.array(scaling.names, dtype=object), n_modules)
    table["n_samples"] = np.tile([int(np.sum(model.study_labels_ == name)) for name in scaling.names], n_modules)
    for name, values in found._asdict().items():
        table[name] = values.ravel()
    beyond = table["ratio"] - 1
    most = beyond.groupby(table["module"]).transform("max")
    return table.assign(lives_here=(table["z"] >= _Z) & (beyond >= RELATIVE_STRENGTH * most))


def shared_by(table: pd.DataFrame, study_name: str = "study") -> list[str]:
    """Where each module lives, in words: shared by 2 of 3 studies (a, b)."""
    texts, many = [], plural(study_name)
    for _, part in table.groupby("module", sort=True):
        own, total = part.loc[part["lives_here"], "study"].tolist(), len(part)
        unknown = int(part["ratio"].isna().sum())
        more = f"; {unknown} with too few samples to tell" if unknown else ""
        if not own:
            texts.append(f"clear in none of {total} {many}{more}")
        elif len(own) == total:
            texts.append(f"shared by {total} of {total} {many}")
        elif len(own) == 1:
            texts.append(f"clear in {own[0]} only{more}")
        else:
            texts.append(f"shared by {len(own)} of {total} {many} ({', '.join(own)}){more}")
    return texts


# Stacking


class StackedStudies(NamedTuple):
    """The samples of all studies (a DataFrame, array or CSR matrix), and the study of each."""

    X: Any
    studies: Array


def stack_studies(studies: Mapping[str, Any]) -> StackedStudies:
    """Stack the matrices of several studies, with the features that all of them have.

    Parameters
    ----------
    studies : mapping of names to DataFrames, arrays or sparse matrices
        At least two, with samples in rows. Features of DataFrames are matched by name, in the order of the first one.
        Columns of arrays and sparse matrices are the same features in the same order.

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
    """
    if not holds_studies(studies):
        raise InputError(
            f"studies are given as a {type(studies).__name__}: give a dict of their names and matrices, such as "
            '{"one": X_one, "other": X_other}'
        )
    if len(studies) < 2:
        given = "one study is given" if studies else "no study is given"
        raise InputError(f"{given}: at least two are needed; the matrix of a single one is given to `fit` itself")
    for name, X in studies.items():
        study = f"study {shown(str(name))}"
        check_in_memory(X, f"{study} is to be stacked with others")
        if kind_of(X) not in ("table", "dense", "sparse"):
            raise InputError(
                f"{study} is a {type(X).__name__}: give a DataFrame, an array or a sparse matrix, with samples in rows "
                "(netbic.io.read_expression reads files)"
            )
        if len(X.shape) != 2 or 0 in X.shape:
            raise InputError(
                f"{study} has the shape {X.shape}: a matrix of samples (rows) and features (columns) is needed"
            )
    labels = np.repeat(np.array([str(name) for name in studies], dtype=object), [X.shape[0] for X in studies.values()])
    without_names = [name for name, X in studies.items() if kind_of(X) != "table"]
    if not without_names:
        return StackedStudies(_stack_by_name(studies), labels)
    if len(without_names) < len(studies):
        without = shown(str(without_names[0]))
        raise InputError(f"study {without} has no names of features but others have: give DataFrames, or arrays")
    parts = [checked(X, f"study {shown(str(name))}") for name, X in studies.items()]
    if len({X.shape[1] for X in parts}) > 1:
        listed = ", ".join(f"{shown(str(name))}: {X.shape[1]:,}" for name, X in studies.items())
        raise InputError(
            f"studies have different numbers of columns ({listed}): give DataFrames to match features by name"
        )
    if all(map(is_sparse, parts)):
        return StackedStudies(sp.vstack(parts, format="csr"), labels)
    return StackedStudies(np.vstack([to_dense(X) for X in parts]), labels)


def _stack_by_name(studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The features that all studies have, in the order of the first one; samples keep their names if these differ."""
    for name, X in studies.items():
        if not X.columns.is_unique:
            twice = shown(str(X.columns[X.columns.duplicated()][0]))
            raise InputError(
                f"study {shown(str(name))} has two columns {twice}: merge them, e.g. X.T.groupby(level=0).mean().T"
            )
    tables = list(studies.values())
    common, samples = tables[0].columns, [names_of_index(X.index) for X in tables]
    named = all(names is not None for names in samples)
    for X in tables:
        common = common[common.isin(X.columns)]
    if not len(common):
        examples = ", ".join(f"{shown(str(name))}: {shown(str(X.columns[0]))}" for name, X in studies.items())
        in_rows = named and set.intersection(*(set(X.index) for X in tables))
        remedy = "are features in rows? Use X.T" if in_rows else "use the same names of features"
        raise InputError(f"no feature is in all {len(studies)} studies ({examples}, ...): {remedy}")
    stacked = pd.concat([X[common] for X in tables])
    if not named:
        return stacked.reset_index(drop=True)
    index = pd.Index(np.concatenate([np.asarray(names, dtype=object) for names in samples]))
    if not index.is_unique:
        index = pd.Index([f"{name}:{sample}" for name, X in studies.items() for sample in X.index])
    return stacked.set_axis(index, axis=0)
