"""Stability of pairs: which features of X and of Y are selected in random halves of the samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from netbic.arrays import Array, Bools, Floats, Indices, RandomState
from netbic.estimators import TwoTables, check_count
from netbic.selection.complementary_pairs import SelectionCounts
from netbic.selection.finished import Progress, tracked
from netbic.selection.fits import Jobs, quiet
from netbic.selection.matching import jaccard
from netbic.selection.pair_tables import PairTables, matched_pairs, two_table_model
from netbic.selection.resampling import SIDES, draw_seed, seeded
from netbic.selection.stability import AxisStability, ErrorLimit, expected_by_chance, shares_of

_FEWEST = 6  # three for each half: a correlation of two is 1 or -1
_SIMILAR = 0.6  # correlation of scores from which a pair is found again, as in `verdicts`
_FOUND = 0.5  # share of the halves above which a pair is said to be found again


@dataclass(frozen=True)
class PairStability:
    """How stable the pairs of two tables are.

    Attributes
    ----------
    reference : SparseGraphPLS or SparseGraphCCA
        The model fitted to all samples; its pairs are the ones assessed.
    x, y : AxisStability or None
        Selections of features of X and of Y, with a column (or entry) per pair; halves are those of the samples. None
        where the model keeps all features.
    """

    reference: TwoTables
    x: AxisStability | None
    y: AxisStability | None

    @property
    def table(self) -> pd.DataFrame:
        """A row per pair.

        `pair`; `found`, the share of halves in which it is found; and for features of X (`x`) and Y (`y`): `n_`, the
        members in the fit to all samples, `stable_`, the number of stable members, `false_`, the bound on the number of
        those expected by chance, and `overlap_`, the mean Jaccard index with the members in halves.
        """
        table = pd.DataFrame({"pair": np.arange(self.reference.n_components_)})
        for side, part in self._parts().items():
            table["found"] = part.found  # the same on both sides
            table[f"n_{side}"] = getattr(self.reference, f"{side}_support_").sum(axis=1)
            table[f"stable_{side}"] = part.members.sum(axis=1)
            table[f"false_{side}"] = part.false
            table[f"overlap_{side}"] = part.overlap
        return table

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        table = self.table
        if table.empty:
            return "No pair was found, so there is none to assess."
        kept = [
            f"{table[f'stable_{side}'].mean():.0f} of {table[f'n_{side}'].mean():.0f} features of {side.upper()} are "
            f"stable ({expected_by_chance(part)})"
            for side, part in self._parts().items()
        ]
        again, total = int((table["found"] > _FOUND).sum()), len(table)
        subject = f"{again} of {total} pair{'s' * (total != 1)} {'is' if 1 in (again, total) else 'are'}"
        return f"{subject} found again in most halves; {'per pair, ' * (total > 1)}{' and '.join(kept)}."

    def _parts(self) -> dict[str, AxisStability]:
        return {side: part for side in SIDES if (part := getattr(self, side)) is not None}

    def at(
        self,
        threshold: float | None = None,
        *,
        max_false: float | None = None,
        pcer: float | None = None,
        assumption: str = "unimodal",
    ) -> PairStability:
        """The same frequencies at another threshold or error (see `pair_stability`), without new fits."""
        limit = ErrorLimit(threshold, max_false, pcer, assumption)
        parts: dict[str, Any] = {side: part.at_limit(limit) for side, part in self._parts().items()}
        return replace(self, **parts)


def pair_stability(
    model: TwoTables,
    X: Any,
    Y: Any,
    *,
    n_pairs: int = 50,
    threshold: float | None = None,
    max_false: float | None = None,
    pcer: float | None = None,
    assumption: str = "unimodal",
    progress: Progress | None = None,
    random_state: RandomState = None,
    n_jobs: Jobs = None,
) -> PairStability:
    """Find the features of X and of Y that are selected in most halves of the samples.

    As `stability`, for two tables: the samples are split at random into two halves, many times; the model is fitted to
    each half, and its pairs are matched one to one to those of the fit to all samples by the correlation of their
    scores in the *other* half. A pair is found again if this correlation is at least 0.6 (the geometric mean of those
    of X and of Y). How often a feature is a member of it then (`frequency`) says how stable the feature is.

    Parameters
    ----------
    model : SparseGraphPLS or SparseGraphCCA
        2 * n_pairs clones of it are fitted to halves, and one to all samples.
    X, Y : as for `SparseGraphPLS.fit`
    n_pairs : int
        Pairs of disjoint halves of the samples.
    threshold, max_false, pcer, assumption
        Frequency from which a member is stable (default 0.75), or the error that determines it, as for `stability`.
    progress : function, optional
        Called after each pair of halves, in the calling thread, with the numbers of finished and of all of them.
    random_state : None, int or numpy.random.Generator
    n_jobs : int or "dask", optional
        Threads over pairs of halves (default: all cores, unless X is small), or the workers of the current Dask client;
        the result does not depend on it.

    Examples
    --------
    >>> import numpy as np, netbic
    >>> random = np.random.default_rng(0)
    >>> X, Y = random.standard_normal((60, 40)), random.standard_normal((60, 30))
    >>> Y[:, :5] += X[:, :8].sum(axis=1, keepdims=True)
    >>> model = netbic.SparseGraphPLS(1, n_x=8, n_y=5)
    >>> found = netbic.selection.pair_stability(model, X, Y, n_pairs=10, random_state=0)
    >>> found.y.frequency.shape
    (30, 1)
    >>> found.verdict
    '1 of 1 pair is found again in most halves; ...'
    """
    check_count("n_pairs", n_pairs)
    limit = ErrorLimit(threshold, max_false, pcer, assumption)
    model = two_table_model(model)
    sides = [side for side in SIDES if _selects(model, side)]
    if not sides:
        raise ValueError("the model keeps all features, so nothing is selected: give n_x or n_y")
    seed, fits = draw_seed(random_state), tracked(X, n_jobs, "pair_stability", progress)
    fitted: TwoTables = seeded(model, seed).fit(X, Y)  # warnings of the fit are shown
    with quiet():
        halves = _Halves(PairTables.of(fitted, X, Y), fitted)
        if halves.tables.n_samples < _FEWEST:
            raise ValueError(f"X has {halves.tables.n_samples} samples: at least {_FEWEST} are needed, three per half")
        counted = reduce(_sums, fits.map(_counts, halves, [(seed, number) for number in range(n_pairs)]))
    parts: dict[str, Any] = {"x": None, "y": None}
    for side, counts in zip(SIDES, counted, strict=True):
        if side in sides:
            parts[side] = shares_of(counts, _names(fitted, side), n_pairs).at_limit(limit)
    return PairStability(fitted, **parts)


def _sums(some: list[SelectionCounts], others: list[SelectionCounts]) -> list[SelectionCounts]:
    return [one + other for one, other in zip(some, others, strict=True)]


def _selects(model: TwoTables, side: str) -> bool:
    """Whether the model selects part of the features."""
    return getattr(model, f"n_{side}") is not None or getattr(model, f"{side}_penalty") is not None


def _names(fitted: TwoTables, side: str) -> Array:
    known = fitted.names_[side]
    return np.arange(getattr(fitted, f"{side}_support_").shape[1]) if known is None else known


class _Halves(NamedTuple):
    """Tables, and the model fitted to all of their samples."""

    tables: PairTables
    fitted: TwoTables


def _counts(halves: _Halves, seed: tuple[int, int]) -> list[SelectionCounts]:
    """Selections of features of X and of Y in two disjoint halves."""
    generator = np.random.default_rng(seed)
    n = halves.tables.n_samples
    order = generator.permutation(n)
    one, two = np.sort(order[: n // 2]), np.sort(order[n // 2 : 2 * (n // 2)])
    starts = generator.integers(2**31 - 1, size=2).tolist()
    found = [_half(halves, own, other, start) for own, other, start in ((one, two, starts[0]), (two, one, starts[1]))]
    totals = []
    for first, second in zip(*found, strict=True):
        total, both = first + second, first.found * second.found
        totals.append(replace(total, counts_of_pairs=total.counts * both.astype(np.int64)[:, None], pairs=both))
    return totals


def _half(halves: _Halves, own: Indices, other: Indices, random_state: int) -> list[SelectionCounts]:
    """Selections in one half, for pairs matched in the other one."""
    tables, reference = halves
    fitted = tables.fitted_to(own, random_state)
    known = reference.x_scores_[other], reference.y_scores_[other]
    matched, similarity = matched_pairs(known, fitted.transform(tables.X[other], tables.Y[other]))
    found = similarity >= _SIMILAR
    return [
        _selected(getattr(fitted, f"{side}_support_"), getattr(reference, f"{side}_support_"), matched, found)
        for side in SIDES
    ]


def _selected(support: Bools, reference: Bools, matched: Indices, found: Bools) -> SelectionCounts:
    members = np.vstack([support, np.zeros(support.shape[1], dtype=bool)])[matched]  # -1: no partner
    counted = members & found[:, None]
    counts, none = counted.astype(np.int64), np.zeros(len(found))  # a half alone is no pair
    overlap: Floats = found * jaccard(reference, counted)
    selected = members.sum(axis=1).astype(np.float64)
    return SelectionCounts(counts, selected, found.astype(np.float64), overlap, np.zeros_like(counts), none)
