"""Compare the modules of two fits: which are the same, which are new, which are gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats, Indices, RandomState, kind_of
from netbic.association.stored import stored_scores
from netbic.comparison.names import common_names, no_common_names, text_names
from netbic.errors import InputError, shown, unusable
from netbic.estimators.parameters import check_count
from netbic.estimators.results import name_features, names_of
from netbic.estimators.svd import fitted_model, is_model
from netbic.selection.resampling import partners
from netbic.storage.models import load_modules

Labels = tuple[str, str]  # what the two fits are called
SAME, SIMILAR, NEW, GONE, NOT_COMPARABLE = "same", "similar", "new", "gone", "not comparable"
SAME_FROM: Final = 0.7  # similarity
FEATURES_FROM: Final = 0.5  # agreement of the features of two modules that are the same
SIMILAR_FROM: Final = 0.3
_MIN_FEATURES = 3  # of a module that the other fit has too
_MIN_SAMPLES = 5  # in common
_LEVEL = 0.05  # share of random relabellings in which any pair of modules exceeds its chance level
_ROUNDING = 1e-12  # squared length of a part of a row of length 1 that is constant
_UNINFORMATIVE = 0.95  # chance level from which a similarity says nothing
_INTEGERS = ("module_a", "module_b", "sign", "features_a", "features_b", "features_in_common")
_NUMBERS = ("similarity", "jaccard", "cosine", "score_correlation", "sample_jaccard", "p_features")
_COLUMNS = [
    *("module_a", "module_b", "status", "sign", "similarity", "features_a", "features_b", "features_in_common"),
    *("jaccard", "cosine", "score_correlation", "sample_jaccard", "p_features", "reason"),
]


@dataclass(frozen=True)
class Comparison:
    """The modules of two fits, matched one to one.

    Attributes
    ----------
    table : DataFrame
        A row per pair of matched modules, in the order of the first fit, then a row per module of the second fit that
        has no counterpart.

        - `module_a`, `module_b`: numbers, from 1; missing where a module has no counterpart.
        - `status`: "same", "similar", "gone" (only in the first fit), "new" (only in the second), or "not comparable"
          (too few features and samples in common).
        - `sign`: 1, or -1 if up and down are exchanged.
        - `similarity`: 0 (by chance) to 1 (identical), see `compare`.
        - `features_a`, `features_b`: numbers of features; `features_in_common`: of both modules; `jaccard`: their
          number divided by that of all features of the two modules (among features that both fits have).
        - `cosine`: of the weights of the features; `score_correlation`: of the scores of common samples;
          `sample_jaccard`: overlap of the groups of samples (missing where a module has all samples).
        - `p_features`: how often any two modules would be as similar if the features of one fit were random ones.
        - `reason`: the row as a sentence.
    similarity : dict of DataFrame
        All pairs of modules: `"similarity"`, `"cosine"`, `"jaccard"`, `"score_correlation"` and `"sample_jaccard"`.
    n_features, n_samples : int
        Features and samples that both fits have.
    labels : tuple of str
        What the two fits are called.
    """

    table: pd.DataFrame
    similarity: Mapping[str, pd.DataFrame]
    n_features: int
    n_samples: int
    labels: Labels = ("a", "b")
    feature_name: str = "feature"

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        (first, second), status = self.labels, self.table["status"].tolist()
        words = {
            SAME: "the same in both",
            SIMILAR: "similar",
            GONE: f"only in {first}",
            NEW: f"only in {second}",
            NOT_COMPARABLE: "not comparable",
        }
        counts = [(status.count(kind), text) for kind, text in words.items() if kind in status]
        parts = [f"{number} {'is' if number == 1 else 'are'} {text}" for number, text in counts]
        n_first, n_second = self.similarity["similarity"].shape
        compared = f"Of {n_first} module{'s' * (n_first != 1)} of {first} and {n_second} of {second}"
        given = f"{self.n_features:,} {self.feature_name}s and {self.n_samples:,} samples in common"
        return f"{compared}, {', '.join(parts) or 'none'} ({given})."

    def __repr__(self) -> str:
        return "\n".join([self.verdict, *(f"  {reason}" for reason in self.table["reason"])])


def compare(
    a: Any,
    b: Any,
    *,
    key: str = "netbic",
    same_samples: bool = False,
    labels: Labels | None = None,
    n_draws: int = 1000,
    random_state: RandomState = 0,
    feature_name: str = "feature",
) -> Comparison:
    """Match the modules of two fits one to one, and say which are the same, similar, new or gone.

    Modules are matched by their features and, if the fits have samples in common, by the scores of these samples. The
    sign of a module is arbitrary and does not matter. Two numbers are computed for every pair of modules: the absolute
    cosine of the weights over the features that both fits have, and the absolute correlation of the scores. What they
    reach by chance is found by permuting the names of the features or samples of one fit: the chance levels of all
    pairs are such that in 95 % of the permutations no pair exceeds its own. The agreement of two modules is (observed -
    chance) / (1 - chance), which is 0 for modules of random features of the same sizes and 1 for identical ones, and
    their similarity is the mean of the agreements of features and samples (if only one is known, that one).

    Matched modules are *the same* if their similarity is at least 0.7 and the agreement of their features at least 0.5,
    and *similar* from 0.3. Modules of the first fit that are matched to none are *gone*, those of the second one *new*.
    Modules with different features but the same scores are therefore similar: they are the same contrast of samples.

    Parameters
    ----------
    a, b : fitted model, AnnData object after `tl.modules`, or output folder of `netbic fit`
        Folders know the scores of all samples. For models and AnnData objects their weights (left vectors) are used.
    key : str
        Key of the modules in AnnData objects.
    same_samples : bool
        The samples are the same ones, in the same order: for models that were fitted to arrays without names.
    labels : tuple of str, optional
        What sentences call the two fits. Default: the names of the folders, or a and b.
    n_draws : int
        Permutations.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    Comparison
        With a `table`, the matrices of `similarity`, and the `verdict` as a sentence.

    See Also
    --------
    replicate : look for the modules in another study, without fitting it.
    pl.comparison : the similarities as a heatmap.

    Examples
    --------
    >>> import netbic
    >>> study = netbic.simulate.cohort(200, 500, n_modules=2, strength=1.2, random_state=0)
    >>> model = netbic.SparseGraphSVD(3, n_columns=60).fit(study.expression)
    >>> fewer = netbic.SparseGraphSVD(2, n_columns=50).fit(study.expression)
    >>> found = netbic.compare(model, fewer)
    >>> found.table[["module_a", "module_b", "status"]].to_numpy().tolist()
    [[1, 1, 'same'], [2, 2, 'same'], [3, <NA>, 'gone']]
    >>> print(found.verdict)
    Of 3 modules of a and 2 of b, 2 are the same in both, 1 is only in a (500 features and 200 samples in common).
    """
    check_count("n_draws", n_draws)
    first, second = NamedModules.of(a, key), NamedModules.of(b, key)
    labels, generator = labels or _labels(a, b), np.random.default_rng(random_state)
    pairs = _Pairs(first, second, labels, f"{feature_name}s", same_samples, n_draws, generator)
    # One to one, so that the sum of similarities is largest; similar ones only.
    known = np.nan_to_num(pairs.matrices["similarity"])
    matched = {i: j for i, j in enumerate(partners(known).tolist()) if j >= 0 and known[i, j] >= SIMILAR_FROM}
    rows = [pairs.match(i, matched[i]) if i in matched else pairs.alone(0, i) for i in range(len(known))]
    rows += [pairs.alone(1, j) for j in range(known.shape[1]) if j not in matched.values()]
    types = dict.fromkeys(_INTEGERS, "Int64") | dict.fromkeys(_NUMBERS, "float64")
    table = name_features(pd.DataFrame(rows, columns=_COLUMNS).astype(types), feature_name)
    index, columns = (pd.RangeIndex(1, size + 1, name=name) for name, size in zip("ab", known.shape, strict=True))
    frames = {name: pd.DataFrame(values, index=index, columns=columns) for name, values in pairs.matrices.items()}
    return Comparison(table, frames, pairs.n_features, pairs.n_samples, labels, feature_name)


def _labels(a: Any, b: Any) -> Labels:
    """The names of two folders, or as much of their paths as distinguishes them."""
    if not (isinstance(a, str | Path) and isinstance(b, str | Path)):
        return "a", "b"
    names = Path(a).name, Path(b).name
    paths = str(a), str(b)
    return names if names[0] != names[1] else paths if paths[0] != paths[1] else ("a", "b")


@dataclass(frozen=True)
class NamedModules:
    """Modules in rows, features and samples in columns."""

    weights: Floats
    scores: Floats  # of the samples, or their weights where scores are not known
    in_group: Bools  # samples that belong to the module: selected by the fit, or up or down
    features: Array | None  # names
    samples: Array | None

    @classmethod
    def of(cls, source: Any, key: str = "netbic") -> Self:
        """Those of a fitted model, of an AnnData object after `tl.modules`, or of a folder of `netbic fit`."""
        if kind_of(source) == "anndata":
            if key not in source.varm or not {key, f"X_{key}"} & {*source.obsm}:
                raise InputError(
                    f"the AnnData object has no modules {shown(key)}: run tl.modules first, or give their key"
                )
            weights = np.asarray(source.varm[key], dtype=np.float64).T
            of_cells = key if key in source.obsm else f"X_{key}"  # weights only if they are not the scores
            left = np.asarray(source.obsm[of_cells], dtype=np.float64).T
            used = np.asarray(source.varm[f"{key}_preparation"]["used"] == 1)  # others were not part of the fit
            names = text_names(source.var_names[used]), text_names(source.obs_names)
            return cls(weights[:, used], left, left != 0, *names)
        folder = Path(source) if isinstance(source, str | Path) else None
        if folder is None and not is_model(source):
            raise TypeError(
                f"{type(source).__name__} has no modules: give a fitted SparseGraphSVD, an AnnData object after "
                "tl.modules or the output folder of netbic fit"
            )
        model = fitted_model(source) if folder is None else load_modules(folder)
        scores = np.asarray(model.left_vectors_.T, dtype=np.float64)
        in_group = scores != 0
        # A folder of netbic.save has no samples.tsv, and a fit without modules an empty one.
        if folder is not None and (path := folder / "samples.tsv").is_file() and model.n_components_:
            known, groups = stored_scores(folder, names_of(model, "rows"))
            if [int(module) for module in known.columns] != list(range(1, model.n_components_ + 1)):
                raise unusable(path, "does not belong to the model of this folder", "it was changed: fit again")
            grouped = (groups != "").to_numpy(dtype=bool).T
            scores, in_group = known.to_numpy().T, np.where(grouped.any(axis=1, keepdims=True), grouped, in_group)
        features, samples = (
            None if (own := model.names_[axis]) is None else text_names(own) for axis in ("columns", "rows")
        )
        return cls(np.asarray(model.components_, dtype=np.float64), scores, in_group, features, samples)


class _Pairs:
    """All pairs of modules of two fits: matrices with those of the first fit in rows, of the second one in columns."""

    def __init__(
        self,
        a: NamedModules,
        b: NamedModules,
        labels: Labels,
        noun: str,  # features, or what they are
        same_samples: bool,
        n_draws: int,
        generator: np.random.Generator,
    ) -> None:
        in_a, in_b = _common_features(a, b, labels, noun)
        at_a, at_b = _common_samples(a, b, same_samples)
        if not in_a.size and not at_a.size:
            raise no_common_names(*(np.empty(0) if fit.features is None else fit.features for fit in (a, b)))
        self.labels, self.noun, self.n_features, self.n_samples = labels, noun, in_a.size, at_a.size
        weights = a.weights[:, in_a], b.weights[:, in_b]
        some, others = (
            np.where(np.count_nonzero(each, axis=1, keepdims=True) >= _MIN_FEATURES, each, 0.0) for each in weights
        )
        self.features = features = Agreement.between(some, others, n_draws, generator)
        scores = Agreement.between(a.scores[:, at_a], b.scores[:, at_b], n_draws, generator, centre=True)
        # The mean of both agreements; if only one is known, that one. If they have different signs, they contradict
        # each other, and only the larger one counts.
        parts = np.stack([features.agreement, scores.agreement])
        signs = np.sign(np.nan_to_num(np.stack([features.cosine, scores.cosine])))
        values, n_known = np.nan_to_num(parts), np.sum(~np.isnan(parts), axis=0)
        self.sign = np.take_along_axis(signs, values.argmax(axis=0)[None], axis=0)[0]
        total = np.where(signs == self.sign, values, 0.0).sum(axis=0)
        similarity = np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan)
        self.sizes = np.count_nonzero(a.weights, axis=1), np.count_nonzero(b.weights, axis=1)
        self.shared, jaccard = _overlaps(weights[0] != 0, weights[1] != 0)
        groups = a.in_group[:, at_a], b.in_group[:, at_b]
        has_group = (rows.any(axis=1) & ~rows.all(axis=1) for rows in groups)  # not for all samples, or none
        sample_jaccard = np.where(np.logical_and.outer(*has_group), _overlaps(*groups)[1], np.nan)
        self.matrices = {"similarity": similarity, "cosine": features.cosine, "jaccard": jaccard}
        self.matrices |= {"score_correlation": scores.cosine, "sample_jaccard": sample_jaccard}

    def match(self, i: int, j: int) -> dict[str, Any]:
        """The row of two modules that are matched."""
        features = np.nan_to_num(self.features.agreement[i, j], nan=1.0)  # not known: samples decide
        same = bool(self.matrices["similarity"][i, j] >= SAME_FROM and features >= FEATURES_FROM)
        turned = ", with up and down exchanged" if self.sign[i, j] < 0 else ""
        relation = f"{'is' if same else 'is similar to'} module {j + 1} of {self.labels[1]}{turned}"
        return {
            "module_a": i + 1,
            "module_b": j + 1,
            "status": SAME if same else SIMILAR,
            "sign": int(self.sign[i, j]),
            "features_a": self.sizes[0][i],
            "features_b": self.sizes[1][j],
            "features_in_common": self.shared[i, j],
            "p_features": self.features.p[i, j],
            "reason": f"Module {i + 1} of {self.labels[0]} {relation}: {self._in_words(i, j)}.",
            **{name: values[i, j] for name, values in self.matrices.items()},
        }

    def alone(self, side: int, module: int) -> dict[str, Any]:
        """The row of a module of the first (0) or second (1) fit without a counterpart."""
        similarities = self.matrices["similarity"].take(module, axis=side)
        letter, status = "ab"[side], (GONE, NEW)[side]
        row = {f"module_{letter}": module + 1, f"features_{letter}": self.sizes[side][module]}
        subject, other = f"Module {module + 1} of {self.labels[side]}", self.labels[1 - side]
        if not similarities.size:
            return row | {"status": status, "reason": f"{subject} is only there: {other} has no modules."}
        if np.isnan(similarities).all():
            few = f"too few of its {self.noun} and samples are in {other}"
            return row | {"status": NOT_COMPARABLE, "reason": f"{subject} cannot be compared: {few}."}
        closest = int(np.nan_to_num(similarities).argmax())
        words = self._in_words(*((module, closest) if side == 0 else (closest, module)))
        reason = f"{subject} is only there (closest is module {closest + 1} of {other}: {words})."
        return row | {"status": status, "similarity": similarities[closest], "reason": reason}

    def _in_words(self, i: int, j: int) -> str:
        first, second = self.sizes[0][i], self.sizes[1][j]
        sizes = f"{first}" if first == second else f"{first} and {second}"
        text, score = f"{self.shared[i, j]} of {sizes} {self.noun} in common", self.matrices["score_correlation"][i, j]
        return text if np.isnan(score) else f"{text}, correlation of scores {abs(score):.2f}"


def _common_features(a: NamedModules, b: NamedModules, labels: Labels, noun: str) -> tuple[Indices, Indices]:
    """Positions of the features in common; without names, the features of both fits if there are equally many."""
    if a.features is not None and b.features is not None:
        return common_names(a.features, b.features, labels, noun)
    sizes = a.weights.shape[1], b.weights.shape[1]
    if (a.features is None) != (b.features is None) or sizes[0] != sizes[1]:
        problem = f"{sizes[0]:,} and {sizes[1]:,} features, not all of them with names"
        raise InputError(f"the fits have {problem}, so they cannot be matched: fit both to DataFrames")
    return np.arange(sizes[0]), np.arange(sizes[0])


def _common_samples(a: NamedModules, b: NamedModules, same_samples: bool) -> tuple[Indices, Indices]:
    """Positions of the samples in common; none if too few to correlate scores, or if names are repeated."""
    sizes = a.scores.shape[1], b.scores.shape[1]
    if same_samples and sizes[0] != sizes[1]:
        raise InputError(f"same_samples=True but the fits have {sizes[0]:,} and {sizes[1]:,} samples")
    if same_samples:
        return np.arange(sizes[0]), np.arange(sizes[0])
    none = np.empty(0, dtype=np.intp)
    if a.samples is None or b.samples is None or any(len(set(each)) < each.size for each in (a.samples, b.samples)):
        return none, none
    found = common_names(a.samples, b.samples, ("a", "b"))
    return found if found[0].size >= _MIN_SAMPLES else (none, none)


class Agreement(NamedTuple):
    """Similarities of the modules of one fit (rows) and another one (columns); NaN where they are not defined.

    What two modules reach by chance is such that, if names are permuted at random, no pair exceeds its own chance level
    in 95 % of permutations.
    """

    cosine: Floats  # signed: of weights, or the correlation of scores
    agreement: Floats  # (|cosine| - chance) / (1 - chance), from 0 (by chance) to 1 (identical)
    p: Floats  # share of permutations in which any pair is as far above what it reaches on average as this one

    @classmethod
    def between(
        cls, some: Floats, others: Floats, n_draws: int, generator: np.random.Generator, centre: bool = False
    ) -> Self:
        """Of vectors in rows, whose entries belong to the same features or samples in the same order."""
        first, second = _unit_rows(some, centre), _unit_rows(others, centre)
        known, theirs = np.isfinite(some), np.isfinite(others)
        is_complete = not centre or (known.all() and theirs.all())
        cosine = np.clip(first @ second.T if is_complete else _correlations(first, second, known, theirs), -1.0, 1.0)
        defined = np.logical_and.outer(*(np.asarray(rows.any(axis=1)) for rows in (first, second)))
        if not is_complete:
            defined &= known.astype(np.intp) @ theirs.T.astype(np.intp) >= _MIN_SAMPLES
        if not cosine.size or not first.shape[1]:
            empty = np.full(cosine.shape, np.nan)
            return cls(empty, empty, empty)
        used = np.flatnonzero(second.any(axis=0) | (not is_complete))
        by_chance, columns = np.empty((n_draws, *cosine.shape)), second[:, used].T
        for draw in range(n_draws):  # the entries of all rows of the second fit are permuted in the same way
            order = generator.permutation(first.shape[1])[: used.size]
            own = first[:, order]
            by_chance[draw] = np.abs(
                own @ columns if is_complete else _correlations(own, second, known[:, order], theirs)
            )
        means, spreads = by_chance.mean(axis=0), by_chance.std(axis=0)
        unit = np.where(spreads > 0, spreads, np.inf)
        furthest = np.where(defined, (by_chance - means) / unit, -np.inf).max(axis=(1, 2))
        chance = np.minimum(means + np.quantile(furthest, 1 - _LEVEL) * spreads, 1.0) if defined.any() else means
        reached = furthest[:, None, None] >= (np.abs(cosine) - means) / unit - 1e-9
        agreement = np.maximum(np.abs(cosine) - chance, 0.0) / np.maximum(1 - chance, 1e-12)
        unknown = ~defined | (chance > _UNINFORMATIVE) | (spreads == 0)
        agreement = np.where(unknown, np.nan, np.minimum(agreement, 1.0))
        p_values = np.where(unknown, np.nan, (1 + reached.sum(axis=0)) / (1 + n_draws))
        return cls(np.where(defined, cosine, np.nan), agreement, p_values)


def _unit_rows(rows: Array, centre: bool) -> Floats:
    """Rows of length 1; constant rows are 0.

    With `centre` they are centred, so that cosines are correlations, and missing entries are 0; otherwise rows that are
    not finite are 0.
    """
    known = np.isfinite(rows)
    rows = np.where(known if centre else known.all(axis=1, keepdims=True), rows, 0.0)
    if centre and rows.size:
        means = rows.sum(axis=1, keepdims=True) / np.maximum(known.sum(axis=1, keepdims=True), 1)
        centred = np.where(known, rows - means, 0.0)
        lengths, before = (np.linalg.norm(each, axis=1, keepdims=True) for each in (centred, rows))
        rows = np.where(lengths <= 1e-12 * before, 0.0, centred)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _correlations(some: Floats, others: Floats, known: Bools, theirs: Bools) -> Floats:
    """Between `_unit_rows`, each pair over the entries that both rows have; 0 if one is constant there."""
    a, b, in_a, in_b = some, others.T, known.astype(np.float64), theirs.T.astype(np.float64)
    n, sums = np.maximum(in_a @ in_b, 1.0), (a @ in_b, in_a @ b)
    spreads = a**2 @ in_b - sums[0] ** 2 / n, in_a @ b**2 - sums[1] ** 2 / n
    product = np.where(np.minimum(*spreads) > _ROUNDING, spreads[0] * spreads[1], np.inf)
    return np.asarray((a @ b - sums[0] * sums[1] / n) / np.sqrt(product))


def _overlaps(some: Bools, others: Bools) -> tuple[Array, Floats]:
    """Number of members in common and Jaccard index of sets (rows); the index of two empty sets is NaN."""
    shared = some.astype(np.intp) @ others.T.astype(np.intp)
    union = some.sum(axis=1)[:, None] + others.sum(axis=1) - shared
    return shared, np.divide(shared, union, out=np.full(shared.shape, np.nan), where=union > 0)
