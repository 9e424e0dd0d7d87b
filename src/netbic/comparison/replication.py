"""Replication: how far each module holds in another study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from netbic.arrays import Array, Floats, Indices, Matrix, RandomState, check_in_memory, checked, is_sparse, kind_of
from netbic.comparison.names import common_names, no_common_names, shared_samples, text_names
from netbic.comparison.other_study import OtherStudy
from netbic.comparison.preservation import UNKNOWN, Preservation, preservation
from netbic.errors import InputError
from netbic.estimators import SparseGraphSVD, axis_names, check_count, fitted_model, names_of

REPLICATED, PARTLY, NOT_REPLICATED = "replicated", "partly", "not replicated"
TOO_FEW = "too few genes or samples to tell"
LEVEL = 0.05  # largest q-value of a module that holds
RATIO = 2.0  # times as much variance explained as in random genes
AGREEMENT = 0.75  # share of the genes that keep their direction
MIN_GENES, MIN_SAMPLES = 5, 10
_OTHERS = 2  # genes to draw random sets from, for each gene of a module
_COLUMNS = [
    *("module", "verdict", "n_genes", "n_available", "share_available"),
    *("variance_explained", "variance_expected", "ratio", "z", "p", "q"),
    *("density", "density_expected", "p_density", "loading_correlation", "p_loadings", "sign_agreement", "reason"),
]


@dataclass(frozen=True)
class Replication:
    """How far every module holds in another study.

    Attributes
    ----------
    table : DataFrame
        A row per module.

        - `module`: its number, from 0.
        - `verdict`: "replicated", "partly", "not replicated" or "too few genes or samples to tell".
        - `n_genes`: genes of the module; `n_available` and `share_available`: those that the other study has too (and
          that vary there), by which the module is judged.
        - `variance_explained`: share of the variance of these genes (each scaled to variance 1) along the weights of
          the module; `variance_expected`: the same for random genes; `ratio` of the two; `z`: their distance in
          standard deviations of random genes, by which modules can be ranked; `p` and `q` (Benjamini-Hochberg).
        - `density`: mean correlation of pairs of its genes, with the sign that their weights predict;
          `density_expected` and `p_density`: the same for random genes.
        - `loading_correlation`: of its weights with those fitted to the same genes in the other study; `p_loadings` by
          permuting the weights among these genes.
        - `sign_agreement`: share of its genes that move with the others in the expected direction (0.5 by chance).
        - `reason`: the verdict as a sentence.
    n_genes : int
        Genes that both studies have.
    n_samples : int
        Samples of the other study that were used.
    n_shared : int
        How many of these seem to be samples of the fit too, by their names. They are no independent evidence.
    """

    table: pd.DataFrame
    n_genes: int
    n_samples: int
    n_shared: int = 0

    @property
    def verdict(self) -> str:
        """One plain sentence, and a second one if the studies share samples."""
        if self.table.empty:
            return "The model has no modules, so there is none to look for in the other study."
        found = self.table["verdict"].tolist()
        words = {REPLICATED: "replicated", PARTLY: "partly replicated", NOT_REPLICATED: "not replicated"}
        parts = [f"{found.count(kind)} {_are(found.count(kind))} {text}" for kind, text in words.items()]
        parts = [part for part in parts if not part.startswith("0 ")]
        if n_open := found.count(TOO_FEW):
            parts.append(f"{n_open} cannot be judged")
        given = f"{self.n_genes:,} genes in common, {_samples_in_words(self.n_samples)}"
        text = f"Of {len(found)} module{'s' * (len(found) != 1)}, {', '.join(parts)} in the other study ({given})."
        if self.n_shared:
            text += (
                f" Not independent: {_samples_in_words(self.n_shared)} of it may be in the first study too, by name."
            )
        return text

    def __repr__(self) -> str:
        lines = [f"  {number}  {reason}" for number, reason in enumerate(self.table["reason"], start=1)]
        return "\n".join([self.verdict, *lines])


def replicate(
    model: Any,
    X_other: Any,
    *,
    genes: Sequence[Any] | None = None,
    samples: Sequence[Any] | None = None,
    new_samples_only: bool = False,
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> Replication:
    """Judge how far each module of a fitted model holds in another study.

    The genes of a module should move together there as well, in the directions that their weights say. This is compared
    with random sets of genes: each gene of the module is replaced by another one that has similar mean and variance in
    the other study, and that takes over its weight. Genes of random sets also follow factors that all genes follow.

    A module is *replicated* if its weights explain more of the variance of its genes than expected by chance (q at most
    0.05) and at least twice as much as in random genes, and if at least 75 % of its genes move with the others in the
    expected direction. It is *partly* replicated if only the first of these holds, and otherwise *not replicated*. At
    least 5 of its genes, 10 samples, and twice as many other genes as it has itself are needed to tell.

    Parameters
    ----------
    model : SparseGraphSVD, or a fitted search such as AutoSVD
    X_other : DataFrame, array, sparse matrix or AnnData of shape (n_samples, n_genes)
        The other study, preprocessed like the data of the fit (logarithms of expression, for example). Genes are
        matched by name and centred and scaled in this study; if the model subtracts the mean of every sample, this is
        done here too. Missing entries are replaced by the mean of their gene.
    genes, samples : sequence of names, optional
        Names of the columns and rows. Default: those of a DataFrame or AnnData object. Columns of an array without
        names are taken for the features of the fit, in the same order.
    new_samples_only : bool
        Leave out samples of the other study that seem to be samples of the fit, because their names are the same or
        one is the beginning of the other ("TCGA-A1-A0SD" and "TCGA-A1-A0SD-01").
    n_draws : int
        Random sets per module.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Replication
        With a `table` and the `verdict` as a sentence.

    See Also
    --------
    compare : match the modules of two fits.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(300, 800, n_modules=2, module_samples=100, strength=1.5, random_state=0)
    >>> half, other = study.expression[:150], study.expression[150:].copy()
    >>> model = netbic.SparseGraphSVD(2, n_columns=60).fit(half)
    >>> netbic.replicate(model, other, random_state=0).table["verdict"].tolist()
    ['replicated', 'replicated']
    >>> other.columns = other.columns[::-1]  # the same values for other genes
    >>> netbic.replicate(model, other, random_state=0).table["verdict"].tolist()
    ['not replicated', 'not replicated']
    """
    check_count("n_draws", n_draws)
    model = fitted_model(model)
    X, gene_names, sample_names = _matrix_and_names(X_other, genes, samples)
    kept, n_shared = _samples(model, sample_names, X.shape[0], new_samples_only)
    at, columns = _common(model, gene_names, X.shape[1])
    study, varying = OtherStudy.of(X[:, columns][kept], model.center in ("rows", "both"))
    judged = _Judged(study, at[varying], n_draws, np.random.default_rng(random_state))
    return Replication(judged.table(model), at.size, kept.size, n_shared)


def _matrix_and_names(
    X: Any, genes: Sequence[Any] | None, samples: Sequence[Any] | None
) -> tuple[Matrix, Array | None, Array | None]:
    """The matrix, and the names of its columns and rows as text if they are known."""
    known: tuple[Any, Any] = (None, None)
    if kind_of(X) == "anndata":
        X, known = X.X, (X.obs_names, X.var_names)
    check_in_memory(X, "replication is judged on data in memory")
    if kind_of(X) == "table":
        known = axis_names(X)
    X = checked(X, "X_other")
    X = X.tocsr() if is_sparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise InputError(f"X_other has shape {X.shape}: a matrix with samples in rows and genes in columns is needed")
    if not np.isfinite(X.data if is_sparse(X) else X[~np.isnan(X)]).all():
        raise InputError("X_other has infinite entries (or, if it is sparse, missing ones): remove or replace them")
    found = []
    for given, own, size, what in ((genes, known[1], X.shape[1], "genes"), (samples, known[0], X.shape[0], "samples")):
        names = own if given is None else given
        if names is not None and len(names) != size:
            raise InputError(
                f"{what} has {len(names):,} names but X_other has {size:,} {what}: one name each is needed"
            )
        found.append(None if names is None else text_names(names))
    return X, found[0], found[1]


def _samples(model: SparseGraphSVD, names: Array | None, size: int, new_only: bool) -> tuple[Indices, int]:
    """The samples to use, and how many of them are samples of the fit."""
    own = model.names_["rows"]
    if names is None or own is None:
        return np.arange(size), 0
    shared = shared_samples(text_names(own), names)
    if not new_only:
        return np.arange(size), int(shared.sum())
    if shared.all():
        raise InputError(
            f"all {size:,} samples of X_other are samples of the fit: give another study, or `new_samples_only=False`",
            ["new_samples_only"],
        )
    return np.flatnonzero(~shared), 0


def _common(model: SparseGraphSVD, names: Array | None, size: int) -> tuple[Indices, Indices]:
    """Positions of the genes in common among the features of the model, and among the columns of X_other."""
    if names is None or (model.names_["columns"] is None and size == model.n_features_in_):
        if size != model.n_features_in_:
            raise InputError(
                f"X_other has {size:,} columns without names but the model has {model.n_features_in_:,} features: give "
                "a DataFrame, or the names (`genes`)",
                ["genes"],
            )
        return np.arange(size), np.arange(size)
    own = text_names(names_of(model, "columns"))
    at, columns = common_names(own, names, "gene")
    if not np.isin(at, np.flatnonzero(model.columns_.any(axis=0))).any() and model.n_components_:
        raise no_common_names(own[model.columns_.any(axis=0)], names)
    return at, columns


class _Judged(NamedTuple):
    """The other study, and the features of the model that its genes are."""

    study: OtherStudy
    features: Indices
    n_draws: int
    generator: np.random.Generator

    def table(self, model: SparseGraphSVD) -> pd.DataFrame:
        """`Replication.table`."""
        n_genes = np.count_nonzero(model.components_, axis=1)
        weights = model.components_[:, self.features].astype(np.float64)
        found = [self._module(row) for row in weights]
        q_values = _q_values(np.array([each.p for each in found]))
        rows: list[tuple[object, ...]] = []
        for module, (each, q_value) in enumerate(zip(found, q_values.tolist(), strict=True)):
            size, available = int(n_genes[module]), int(np.count_nonzero(weights[module]))
            verdict = _verdict(each, q_value)
            reason = _reason(verdict, each, q_value, _given(available, size))
            if verdict == TOO_FEW:
                reason = f"Cannot be judged: {self._lacking(available, size)}."
            share = available / size if size else np.nan
            numbers = (*each[:5], q_value, *each[5:])
            rows.append((module, verdict, size, available, share, *numbers, reason))
        return pd.DataFrame(rows, columns=_COLUMNS)

    def _module(self, weights: Floats) -> Preservation:
        members = np.flatnonzero(weights)
        if self._lacking(members.size, members.size):
            return UNKNOWN
        return preservation(self.study, members, weights[members], self.n_draws, self.generator)

    def _lacking(self, available: int, size: int) -> str:
        """What there is too little of, in words; nothing if a module can be judged."""
        if self.study.n_samples < MIN_SAMPLES:
            return f"number of samples in the other study: {self.study.n_samples}, at least {MIN_SAMPLES} are needed"
        if available < MIN_GENES:
            return f"the other study has {available} of its {size} genes (that vary), at least {MIN_GENES} are needed"
        others = self.features.size - available
        if others < _OTHERS * available:
            needed = f"at least {_OTHERS * available:,} are needed"
            return f"random sets can be drawn from only {others:,} other genes, {needed} for {available:,} genes"
        return ""


def _q_values(p_values: Floats) -> Floats:
    """Adjusted for the number of modules that could be judged; NaN for the others."""
    known = ~np.isnan(p_values)
    q_values = np.full(p_values.size, np.nan)
    if known.any():
        q_values[known] = false_discovery_control(p_values[known])
    return q_values


def _verdict(found: Preservation, q_value: float) -> str:
    if np.isnan(q_value):
        return TOO_FEW
    if q_value > LEVEL:
        return NOT_REPLICATED
    return REPLICATED if found.ratio >= RATIO and found.sign_agreement >= AGREEMENT else PARTLY


def _given(available: int, size: int) -> str:
    return f"its {size} genes" if available == size else f"{available} of its {size} genes"


def _reason(verdict: str, found: Preservation, q_value: float, genes: str) -> str:
    """The verdict as a sentence."""
    shares = f"{found.variance_explained:.0%} of the variance of {genes}"
    shares = f"it explains {shares}, against {found.variance_expected:.0%} in random genes"
    signs = f"{found.sign_agreement:.0%} of them move in the expected direction"
    times, q_text = _times(found.ratio), f"q {q_value:.2g}"
    if verdict == NOT_REPLICATED:
        text = f"Not replicated: {shares} ({q_text}), a difference that may be chance."
    elif verdict == REPLICATED:
        text = f"Replicated: {shares} ({times} as much, {q_text}), and {signs}."
    else:
        times = _times(_below(found.ratio, 10)) if found.ratio < RATIO else times
        signs = f"{_below(found.sign_agreement, 100):.0%} of them move in the expected direction"
        weak = [f"this is only {times} as much ({RATIO:g} times are needed)"] * (found.ratio < RATIO)
        weak += [f"only {signs} ({AGREEMENT:.0%} are needed)"] * (found.sign_agreement < AGREEMENT)
        text = f"Partly replicated: {shares} ({q_text}), but {' and '.join(weak)}."
    return text.replace("%", " %")


def _below(value: float, steps: int) -> float:
    """A value that is too small, rounded down: 1.98 as 1.9, because "2.0 times" would seem to be enough."""
    return float(np.floor(round(steps * value, 9)) / steps)


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"


def _samples_in_words(number: int) -> str:
    return f"{number:,} sample{'s' * (number != 1)}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
