"""Times until an event, some of them censored: Kaplan-Meier curves and the log-rank test."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import chi2

from netbic.arrays import Bools, Floats, Indices
from netbic.association.results import UNDEFINED, Result, Z


def kaplan_meier(times: Floats, events: Bools) -> pd.DataFrame:
    """Share of samples without an event, by time (Kaplan-Meier), with a confidence interval.

    Parameters
    ----------
    times : array
        Time until the event or, where none was seen, until the end of the observation.
    events : array of bool
        Whether the event was seen.

    Returns
    -------
    DataFrame
        A row per distinct time: `time`, `n_at_risk`, `n_events`, `n_censored`, `survival`, `ci_low`, `ci_high`
        (Greenwood's variance on the log scale, as of `survfit` in R; NaN where no sample survives).

    Examples
    --------
    >>> import numpy as np
    >>> curve = kaplan_meier(np.array([1.0, 2, 2, 3]), np.array([True, True, False, True]))
    >>> curve["survival"].round(3).tolist(), curve["n_at_risk"].tolist()
    ([0.75, 0.5, 0.0], [4, 3, 1])
    """
    moments, at = np.unique(times, return_inverse=True)
    seen = np.bincount(at, weights=events, minlength=moments.size).astype(np.int64)
    all_of = np.bincount(at, minlength=moments.size)
    at_risk = times.size - np.cumsum(all_of) + all_of
    curve = np.cumprod(1 - seen / np.maximum(at_risk, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        half = Z * np.sqrt(np.cumsum(seen / (at_risk * (at_risk - seen))))
        low, high = curve * np.exp(-half), np.minimum(curve * np.exp(half), 1.0)
    defined = curve > 0
    return pd.DataFrame(
        {
            "time": moments,
            "n_at_risk": at_risk,
            "n_events": seen,
            "n_censored": all_of - seen,
            "survival": curve,
            "ci_low": np.where(defined, low, np.nan),
            "ci_high": np.where(defined, high, np.nan),
        }
    )


def log_rank(times: Floats, events: Bools, groups: Indices, strata: Indices | None = None) -> Result:
    """Log-rank test of two or more groups, within strata if they are given; it has no effect size.

    Parameters
    ----------
    times, events : as for `kaplan_meier`
    groups, strata : arrays of int
        Numbered 0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> times, groups = np.array([1.0, 2, 3, 4, 5, 6]), np.array([0, 0, 0, 1, 1, 1])
    >>> round(log_rank(times, np.ones(6, dtype=bool), groups).p, 4)
    0.0246
    """
    n_groups = int(groups.max()) + 1 if groups.size else 0
    excess, variance = np.zeros(n_groups), np.zeros((n_groups, n_groups))
    for stratum in [0] if strata is None else np.unique(strata):
        own = np.ones(times.size, dtype=bool) if strata is None else strata == stratum
        more, spread = _excess(times[own], events[own], groups[own], n_groups)
        excess += more
        variance += spread
    kept = np.diag(variance) > 0
    rank = int(np.count_nonzero(kept)) - 1
    if rank < 1:
        return UNDEFINED
    statistic = float(excess[kept] @ np.linalg.pinv(variance[np.ix_(kept, kept)], hermitian=True) @ excess[kept])
    return Result(statistic, float(chi2.sf(statistic, rank)), np.nan)


def _excess(times: Floats, events: Bools, groups: Indices, n_groups: int) -> tuple[Floats, Floats]:
    """Events in each group beyond those expected at every time, and their covariance (hypergeometric)."""
    moments, at = np.unique(times, return_inverse=True)
    present, seen = np.zeros((2, moments.size, n_groups))
    np.add.at(present, (at, groups), 1)
    np.add.at(seen, (at, groups), events)
    at_risk = present[::-1].cumsum(axis=0)[::-1]
    with_events = seen.any(axis=1)
    at_risk, seen = at_risk[with_events], seen[with_events]
    totals, deaths = at_risk.sum(axis=1), seen.sum(axis=1)
    shares = at_risk / totals[:, None]
    factors = deaths * (totals - deaths) / np.maximum(totals - 1, 1)
    products = np.einsum("t,ti,tj->ij", factors, shares, shares)
    return (seen - deaths[:, None] * shares).sum(axis=0), np.diag(factors @ shares) - products
