"""In which studies a module lives: per study, its singular value, and how much its genes move together there.

The coherence of weights v in a centred matrix B is |Bv|^2 / sum_g v_g^2 |B_g|^2: the variance of the weighted sum of
genes, relative to what it would be if the genes were independent. A module was found with the samples of a study, so
that its weights fit the noise of this study, too. Coherence is therefore measured in one half of the samples of the
study, with weights fitted to the other half and to the other studies, and compared with that of random genes of similar
variance, whose weights are fitted in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import orth

from netbic.arrays import Floats, Indices
from netbic.operators import Corrected
from netbic.solver import REPEATED

if TYPE_CHECKING:
    from netbic.estimators.estimator import SparseGraphSVD
    from netbic.estimators.studies import StudyScaling

LIMIT: Final = 2.0  # times as much as random genes, from which on a module lives in a study
FEWEST_SAMPLES: Final = 10  # of a study in which modules are judged
_MOST_GENES: Final = 200  # of a module, the heaviest ones
_RANDOM_SETS: Final = 10
_NEAR: Final = 0.05  # share of the genes, ranked by variance, among which random genes are drawn
_DRAWS: Final = 10  # until there are as many different random genes as a module has
_POWER_STEPS: Final = 20
_SAMPLES_PER_SCORE: Final = 3  # of a study, for every earlier score that is regressed out


class StudyNumbers(NamedTuple):
    """Numbers of shape (n_modules, n_studies): d_s = |X_s v|, share of the variance of the study, and the ratio."""

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
    judged = _Judged.of(operator, scores, of_columns, numbers, n_studies)
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
            "lives_here": found.ratio.ravel() >= LIMIT,
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
    return [_in_words(part) for _, part in table.groupby("module", sort=True)]


def _in_words(part: pd.DataFrame) -> str:
    own, total = part.loc[part["lives_here"], "study"].tolist(), len(part)
    unknown = int(part["ratio"].isna().sum())
    more = f"; {unknown} with too few samples to tell" if unknown else ""
    if not own:
        return f"clear in none of {total} studies{more}"
    if len(own) == total:
        return f"shared by {total} of {total} studies"
    text = f"private to {own[0]}" if len(own) == 1 else f"shared by {len(own)} of {total} studies ({', '.join(own)})"
    return text + more


@dataclass(frozen=True)
class _Judged:
    """The matrix, the scores of all modules, and the halves of every study."""

    operator: Corrected
    scores: Floats
    ranked: Indices  # all genes, by variance
    studies: list[Indices]
    halves: list[list[Indices]]  # positions within the study

    @classmethod
    def of(cls, operator: Corrected, scores: Floats, variances: Floats, numbers: Indices, n_studies: int) -> _Judged:
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
        bases = [_basis(self.scores[self._earlier(k)][:, own]) for own in self.studies]
        own = self._coherences(bases, members, component[members].astype(np.float64))
        random = [self._coherences(bases, each, generator.standard_normal(each.size)) for each in sets if each.size]
        if not random:
            return np.full(len(self.studies), np.nan)
        expected = np.mean(random, axis=0)
        few = np.array([own.size < FEWEST_SAMPLES for own in self.studies])
        return np.where(few | ~(expected > 0), np.nan, own / np.where(expected > 0, expected, 1.0))

    def _coherences(self, bases: list[Floats], genes: Indices, start: Floats) -> Floats:
        """Coherence of some genes in every study, in halves that were not used to fit the weights."""
        columns = _columns(self.operator, genes)
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


def _columns(operator: Corrected, genes: Indices) -> Floats:
    """Some columns of the centred, scaled and weighted matrix."""
    base, factors, left, right = operator.parts()
    columns = base.submatrix(np.arange(operator.shape[0]), genes).astype(np.float64)
    return np.asarray(columns * (1.0 if factors is None else factors[genes]) - left @ right[genes].T)


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


def _basis(scores: Floats) -> Floats:
    """An orthonormal basis of earlier scores in one study, of as many of them as there are enough samples for."""
    scores = scores[: scores.shape[1] // _SAMPLES_PER_SCORE]
    return np.asarray(orth(scores.T)) if scores.any() else np.empty((scores.shape[1], 0))


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
