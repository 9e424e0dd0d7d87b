"""What counts as noise: ranks and paired differences of methods, with intervals."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType

import numpy as np
import pandas as pd

DRAWS, LEVEL, LEAST_UNITS, LEAST_SETS = 2000, 0.95, 5, 3

NOISE = f"""
Methods are compared on units: a data set (or scenario) and a seed. The seed is that of the method and of the
simulation, split or subsample. Intervals hold the middle {100 * LEVEL:g} % of {DRAWS:,} bootstrap draws. In each draw,
data sets are drawn with replacement, then seeds within each of them, and all methods are compared on the same draw. The
first is the method with the best mean of those that took part in all units. Another method is within noise of the first
if the interval of their paired difference contains 0; with fewer than {LEAST_UNITS} units or {LEAST_SETS} data sets
there is no interval. Intervals say how much a result depends on the choice among our data sets and seeds. A few data
sets say little about others, and subsamples of one data set are more alike than new ones would be: intervals are rather
too short.

Of netbic, the defaults are ranked. Variants of a method (netbic told the number of modules, with a network, or without
its scaling of the features; ICA with that scaling) are shown beside it, without a rank: several entries of one method
would push others down.

A unit in which a method crashed, or reached the limit of time or memory, counts as the worst value of the task, for
means and for ranks. A method that is not meant for the data of a unit ("not meant") is not compared there.
"""


def main_values(table: pd.DataFrame, task: ModuleType) -> pd.DataFrame:
    """Units x methods: the figure that ranks. It is the worst one if a fit did not finish, NaN if it was not meant."""
    table = table[table["figure"] == task.FIGURE]
    values, status = (table.pivot(index="unit", columns="method", values=name) for name in ("value", "status"))  # noqa: PD010 (nothing is aggregated)
    worst = np.nanmin([np.nanmin(values.to_numpy(), initial=np.inf), getattr(task, "WORST", np.inf)])
    return values.mask(status.isin(["crashed", "timed out"]), worst if np.isfinite(worst) else 0.0)


def draws(units: pd.Index, seed: int = 0) -> np.ndarray:
    """Number of times that each unit is in each bootstrap sample: of data sets, then of seeds within them."""
    rng = np.random.default_rng(seed)
    codes, names = pd.factorize(units.str.rpartition("/").get_level_values(0))
    taken = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=DRAWS)
    weights = np.zeros((DRAWS, len(units)))
    for code in range(len(names)):
        own = np.flatnonzero(codes == code)
        weights[:, own] = rng.multinomial(taken[:, code] * len(own), np.full(len(own), 1 / len(own))) / len(own)
    return weights


def interval(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of a mean over units; units without a value are left out."""
    known = ~np.isnan(values)
    if known.sum() < LEAST_UNITS or not weights.size:
        return np.nan, np.nan
    total = weights[:, known].sum(axis=1)
    means = (weights[:, known] @ values[known])[total > 0] / total[total > 0]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def compared(values: pd.DataFrame, variants: Collection[str] = ()) -> pd.DataFrame:
    """Per method: mean, paired difference to the first with its interval, mean rank with its interval; best first.

    The first is the method with the best mean of those that took part in all units. `variants` have no rank.
    """
    values = values.dropna(axis=1, how="all")
    if values.empty:  # none of the methods takes part
        return pd.DataFrame()
    entries = values.drop(columns=list(variants), errors="ignore")
    ranks, weights = entries.rank(axis=1, ascending=False).reindex(columns=values.columns), draws(values.index)
    if values.index.str.rpartition("/").get_level_values(0).nunique() < LEAST_SETS:
        weights = weights[:, :0]
    complete = entries.dropna(axis=1)
    first = (entries if complete.empty else complete).mean().idxmax()
    rows = {}
    for method, own in values.items():
        difference = own - values[first]
        low, high = interval(difference.to_numpy(), weights)
        rank_low, rank_high = interval(ranks[method].to_numpy(), weights)
        rows[method] = {"mean": own.mean(), "difference": difference.mean(), "low": low, "high": high}
        rows[method] |= {"rank": ranks[method].mean(), "rank_low": rank_low, "rank_high": rank_high}
        rows[method]["noise"] = bool(np.isnan(low) or low <= 0 <= high)
    table = pd.DataFrame(rows).T.infer_objects()
    table.insert(0, "is_first", table.index == first)
    return table.sort_values(["is_first", "mean"], ascending=False)
