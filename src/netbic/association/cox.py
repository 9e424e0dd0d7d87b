"""Cox's proportional hazards model with a few covariates, fitted by Newton's method; ties as of Efron."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netbic.arrays import Bools, Floats
from netbic.association.tests import Residuals, Z

_MOST_STEPS, _MOST_HALVINGS = 50, 30
_CONVERGED = 1e-13  # relative change of the log likelihood
_FLAT = 50.0  # standard error of a standardised coefficient at which the likelihood has no maximum


@dataclass(frozen=True)
class CoxModel:
    """A fitted Cox model: coefficients of the tested columns, and three tests of them.

    Attributes
    ----------
    coefficients, covariance : arrays
        Log hazard ratios per unit of each tested column, and their covariance.
    log_likelihood, null_log_likelihood : float
        With and without the tested columns.
    score, wald, likelihood_ratio : float
        Statistics of the tests that all coefficients are 0, chi-squared with `df` degrees of freedom.
    df : int
    converged : bool
        False if the likelihood has no maximum, for example because all events are in one group. Coefficients are then
        infinite, the Wald test is not defined, but the other two tests are.
    """

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    null_log_likelihood: float
    score: float
    wald: float
    likelihood_ratio: float
    df: int
    converged: bool

    def p(self, statistic: float) -> float:
        """The p-value of one of the statistics."""
        from scipy.stats import chi2

        return float(chi2.sf(statistic, self.df))

    def hazard_ratio(self, column: int = 0) -> tuple[float, float, float]:
        """Hazard ratio per unit of a column, and its confidence interval; 0 or infinite if there is no maximum."""
        log_ratio, half = self.coefficients[column], Z * np.sqrt(self.covariance[column, column])
        with np.errstate(over="ignore"):
            ratio, low, high = np.exp([log_ratio, log_ratio - half, log_ratio + half])
        return float(ratio), float(low), float(high)


def cox(times: Floats, events: Bools, x: Floats, covariates: Floats | None = None) -> CoxModel | None:
    """Fit a Cox model and test the columns of x, given the covariates.

    Parameters
    ----------
    times : array
        Time until the event or, where none was seen, until the end of the observation.
    events : array of bool
        Whether the event was seen.
    x : array of shape (n_samples,) or (n_samples, n_columns)
    covariates : array of shape (n_samples, n_covariates), optional
        Columns that the model contains but that are not tested; they may be linearly dependent.

    Returns
    -------
    CoxModel or None
        None if nothing can be tested: no events, or a column of x is constant or explained by the covariates.

    Examples
    --------
    >>> import numpy as np
    >>> times, events = np.array([1.0, 2, 3, 4, 5, 6]), np.array([True, True, False, True, True, False])
    >>> model = cox(times, events, np.array([1.0, 0, 1, 1, 0, 0]))
    >>> round(model.hazard_ratio()[0], 4), round(model.p(model.score), 4)
    (2.9243, 0.3636)
    """
    columns = x.reshape(times.size, -1).astype(np.float64)
    removed, df = Residuals(times.size, covariates), columns.shape[1]
    sizes = np.array([np.sqrt(np.mean(removed(column) ** 2)) for column in columns.T])
    if not events.any() or not sizes.all():
        return None
    fixed = removed.basis[:, 1:] * np.sqrt(times.size)
    risks = _RiskSets(times, events, np.column_stack([(columns - columns.mean(axis=0)) / sizes, fixed]))
    null = _maximum(risks, np.zeros(df + fixed.shape[1]), df)
    full = _maximum(risks, null, 0)
    null_likelihood, gradient, information = risks.derivatives(null)
    likelihood, _, curvature = risks.derivatives(full)
    if not np.diag(information)[:df].all():
        return None
    covariance = np.linalg.pinv(curvature, hermitian=True)[:df, :df]
    flat = ~(np.diag(covariance) < _FLAT**2)
    converged = not flat.any() and np.linalg.matrix_rank(curvature) == full.size
    return CoxModel(
        np.where(flat, np.copysign(np.inf, full[:df]), full[:df] / sizes),
        covariance / np.outer(sizes, sizes) if converged else np.full((df, df), np.nan),
        likelihood,
        null_likelihood,
        score=float(gradient @ np.linalg.pinv(information, hermitian=True) @ gradient),
        wald=float(full[:df] @ np.linalg.solve(covariance, full[:df])) if converged else np.nan,
        likelihood_ratio=2 * (likelihood - null_likelihood),
        df=df,
        converged=bool(converged),
    )


def _maximum(risks: _RiskSets, start: Floats, first: int) -> Floats:
    """The coefficients with the largest likelihood, by Newton's method; those before `first` are not changed."""
    coefficients = start.copy()
    value, gradient, information = risks.derivatives(coefficients)
    for _ in range(_MOST_STEPS if first < start.size else 0):
        step = np.zeros_like(start)
        step[first:] = np.linalg.pinv(information[first:, first:], hermitian=True) @ gradient[first:]
        for _ in range(_MOST_HALVINGS):
            found = risks.derivatives(coefficients + step)
            if found[0] >= value - _CONVERGED * (1 + abs(value)):  # a last step may be lost in rounding errors
                break
            step /= 2
        else:
            break
        change, (value, gradient, information) = found[0] - value, found
        coefficients = coefficients + step
        if change <= _CONVERGED * (1 + abs(value)):
            break
    return coefficients


class _RiskSets:
    """The partial likelihood: every event is compared with the samples at risk at its time."""

    def __init__(self, times: Floats, events: Bools, x: Floats) -> None:
        order = np.argsort(-times, kind="stable")  # those at risk at a time come before it
        times, events, self.x = times[order], events[order], x[order]
        new_time = np.r_[True, times[1:] != times[:-1]]
        self.last = np.r_[np.flatnonzero(new_time)[1:], times.size]  # one beyond those at risk, by moment
        self.moment = np.cumsum(new_time) - 1
        self.events, self.moments = np.flatnonzero(events), self.moment[events]
        counts = np.bincount(self.moments, minlength=self.last.size)
        # Efron: the k-th of d simultaneous events counts the others of them as partly gone.
        place = np.arange(self.events.size) - np.searchsorted(self.moments, self.moments)
        self.gone = place / counts[self.moments]

    def derivatives(self, coefficients: Floats) -> tuple[float, Floats, Floats]:
        """Log partial likelihood, its gradient, and the information matrix."""
        x, n_moments = self.x, self.last.size
        linear = x @ coefficients
        linear -= linear.max()  # the likelihood depends on differences only
        weights = np.exp(linear)
        weighted = weights[:, None] * np.column_stack([np.ones(len(x)), x])
        at_risk = np.cumsum(weighted, axis=0)[self.last - 1]
        tied = np.zeros((n_moments, weighted.shape[1]))
        np.add.at(tied, self.moments, weighted[self.events])
        totals = at_risk[self.moments] - self.gone[:, None] * tied[self.moments]
        size, mean = totals[:, 0], totals[:, 1:] / totals[:, :1]
        likelihood = float(np.sum(linear[self.events]) - np.sum(np.log(size)))
        gradient = x[self.events].sum(axis=0) - mean.sum(axis=0)
        # For each sample, the sum of 1 / size over the events for which it is at risk: with these, the second moments
        # of all risk sets are summed without an array of one matrix per sample.
        inverse, partly = (
            np.bincount(self.moments, weights=each / size, minlength=n_moments)
            for each in (np.ones(size.size), self.gone)
        )
        shares = np.cumsum(inverse[::-1])[::-1][self.moment]
        shares[self.events] -= partly[self.moments]
        second = x.T @ ((weights * shares)[:, None] * x)
        return likelihood, gradient, second - mean.T @ mean
