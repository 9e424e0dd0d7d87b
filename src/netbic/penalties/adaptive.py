r"""A penalty that chooses how many entries to keep and the weight of the graph, by a mixture model of scores.

    z ~ (1 - pi) N(0, g^2) + pi (1/2) [N(m, g^2 + t^2) + N(-m, g^2 + t^2)],        logit pi = a + b x,

where x is the product of the graph term with the current members. A posterior above one half is the rule
|z| + sigma x > level of the paper, with sigma = b g^2 / m. The model is fitted by expectation-maximisation (EM) from
several splits of the scores; the fit with the largest likelihood is kept. EM is slow where members and others overlap,
so its steps are extrapolated (SQUAREM; Varadhan and Roland 2008), which takes less than half of the time. Many scores
are fitted in groups of similar size.

- *Centred axes*: if every column of X has mean zero, so has z = Xv: a group of 30 % of the rows at +7 leaves the others
  at -3. A mixture in which the others are at zero takes most rows for members then, and none if the groups are of equal
  size. `located_choice` looks for groups with free locations instead (`netbic.penalties.score_groups`).
- *Gradation*: the mixture has a gap between members and others. It is compared with two mixtures of as many others and
  members without a gap: members from N(0, t^2) or uniform on [-b, b], each with the noise of the others. If one of them
  explains the scores, the weights of members decrease to zero (`evidence_of_gradation`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log, pi
from numbers import Integral
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from scipy import optimize, special

from netbic.arrays import Floats
from netbic.penalties.base import Choice, DataDriven, Kept, Penalty
from netbic.penalties.score_groups import score_groups
from netbic.penalties.thresholds import L0


@dataclass(frozen=True, repr=False)
class AdaptiveSupport(DataDriven):
    """Choose the size and the weight of the graph in every half step, by a mixture model of members and others.

    The scores of members are distributed around +-m, those of the others around 0, and entries with more members among
    their neighbours are more probably members. Entries with a posterior above one half are kept: the rule of the paper,
    with k and sigma chosen together. If the graph does not improve the likelihood, it is not used (sigma = 0). There is
    no objective. The fitted attributes `choices_` and `posteriors_` hold the choices, with a diagnostic if the scores
    do not separate members from others, as is common for real expression data, which are dense rather than sparse.

    Rows of a matrix with centred columns are treated differently, because the scores of others are not around 0 then:
    if the scores of all rows form groups, the smaller group is kept (or both outer ones of three groups).

    If sizes do not converge within 400 iterations of a start (1,200 while missing entries are imputed), the last ones
    are kept and `converged_` is False.

    Where the data do not identify the size of a module (its `diagnostic` is not empty), a `fallback` size can be used
    instead: as many entries are then kept as by `L0`, with the smoothness of the model, and `choices_` tells so.

    The penalty also finds modules in pure noise: use `selection.n_modules` to test whether there are any.

    Parameters
    ----------
    gate : float, default=6
        The graph is used if it improves twice the log-likelihood by at least this much.
    clip : float or None, default=3
        Clip entries of a dense X at this number of robust standard deviations of their column before the fit: single
        outliers would be found as modules.
    fallback : int, optional
        The size of modules whose size is not identified.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> adaptive = netbic.AdaptiveSupport()
    >>> model = netbic.SparseGraphSVD(1, row_penalty=adaptive, column_penalty=adaptive, center=None)
    >>> model.set_params(row_graph=toy.row_graph, column_graph=toy.column_graph).fit(toy.X).choices_["size"].tolist()
    [51, 50]
    >>> model = netbic.SparseGraphSVD(1, column_penalty=netbic.AdaptiveSupport(fallback=20)).fit(toy.X @ toy.X)
    >>> model.choices_[["size", "fallback", "diagnostic"]].values.tolist()
    [[20, True, 'dense']]
    """

    chooses_size: ClassVar[bool] = True
    smallest: ClassVar[int] = 5  # size of an axis
    gate: float = 6.0
    clip: float | None = 3.0  # type: ignore[misc]
    fallback: int | None = None

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep entries with a posterior above one half, unshrunk, without a graph."""
        support = self.choose(magnitudes, None).support
        support = support[magnitudes[support] > 0]
        return Kept(support, magnitudes[support])

    def choose(self, scores: Floats, smoothed: Floats | None) -> Choice:
        """Choose the members, given signed scores and the product of the graph term with the current members."""
        best = plain = fit_mixture(scores, None)
        if smoothed is not None and np.ptp(smoothed) > 0:
            guided = fit_mixture(scores, smoothed)
            if 2 * (guided.likelihood - plain.likelihood) >= self.gate and guided.slope > 0:
                best = guided
        sigma = best.slope * best.noise / best.mean if best.slope > 0 else 0.0
        posterior = np.where(scores > 0, best.posterior, 0.0) if self.nonnegative else best.posterior
        return Choice(posterior, sigma, float(np.sqrt(best.noise)))

    def choose_groups(self, scores: Floats) -> Choice | None:
        """Choose the members among centred scores, if these form clear groups."""
        found = located_choice(scores)
        if found is None or (self.nonnegative and (scores[found.support] <= 0).any()):
            return None
        return found

    def gradation(self, scores: Floats) -> float:
        """Evidence that members without a gap explain the scores."""
        return evidence_of_gradation(scores)

    def when_unreliable(self) -> Penalty | None:
        """`L0` with the fallback size, if there is one."""
        return None if self.fallback is None else L0(int(self.fallback), nonnegative=self.nonnegative)

    def for_share(self, share: float) -> Self:
        """The fallback shrinks in proportion."""
        return self if self.fallback is None else replace(self, fallback=max(1, round(self.fallback * share)))

    def check(self, size: int, axis: str, table: str = "X") -> None:
        """An axis needs five entries; gate and clip must be numbers, and fallback a size."""
        if size < self.smallest:
            few = f"{self!r} but {table} (or the part of it that is fitted) has {size} {axis}s"
            raise ValueError(f"{few}: at least {self.smallest} are needed to separate two groups")
        for name, value in (("gate", self.gate), ("clip", 1.0 if self.clip is None else self.clip)):
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not 0 < value < np.inf:
                raise ValueError(f"{self!r}: {name} must be a finite number above 0")
        if self.fallback is not None:
            whole = isinstance(self.fallback, Integral) and not isinstance(self.fallback, bool)
            if not whole or not 1 <= self.fallback <= size:
                raise ValueError(
                    f"{self!r} but {table} has {size} {axis}s: choose a fallback from 1 to {size}, or None"
                )

    def check_graph(self, axis: str, smoothness: float | None, graph_term: str, signs: str) -> None:
        """The weight of the graph must be left to the penalty, and the graph term must reward edges."""
        if smoothness and self.fallback is None:
            raise ValueError(
                f"{axis}_smoothness={smoothness!r} but the {axis} penalty AdaptiveSupport chooses it: "
                "leave it at None, set it to 0 to ignore the graph, or give a fallback size to which it applies"
            )
        if signs == "signed" or "laplacian" in graph_term:
            raise ValueError(
                f"AdaptiveSupport cannot use a {axis}_graph with signs={signs!r} and graph_term={graph_term!r}: "
                f"set the size (n_{axis}s), or use signs='absolute' and graph_term='modularity', 'normalized' or "
                "'adjacency'"
            )


# --- The mixture of members and others ---

_SPLITS = (0.15, 0.5, 0.75)  # shares of members at the start
_SMALL_SPLITS = (0.005, 0.03, 0.15, 0.5)  # of many scores
_STEPS, _CLOSE = 60, 1e-4  # maximal number, and the increase of the log-likelihood at which to stop
_TRIAL, _PROMISING = 8, 2  # steps after which only the best splits are continued, and their number
_FARTHEST = 64.0  # extrapolation, in units of a step
_EXTREME = 30.0  # largest absolute logarithm of m, g^2 and t^2 (of scores with unit mean square) after it
_PRIOR = 40.0  # number of observations that the prior of t is worth; its mean is m / 6
_RIDGE = 0.5  # on b in units of x's standard deviation: b would diverge if x separates the members
_STEEPEST = 12.0  # largest abs(a) and abs(b)
_MANY = 1500  # scores from which on they are grouped (without x)
_SINGLE, _GROUPS = 300, 500  # largest scores that are not grouped, and number of groups of the others
_LOG_2: Final = log(2)


class Mixture(NamedTuple):
    """A fitted mixture: the posterior of membership, log-likelihood, m, g^2 and b."""

    posterior: Floats
    likelihood: float
    mean: float
    noise: float
    slope: float


class Scores(NamedTuple):
    """Magnitudes of scores, their squares, and how many scores each stands for."""

    size: Floats
    squares: Floats
    counts: Floats


def fit_mixture(z: Floats, x: Floats | None) -> Mixture:
    """Fit the mixture; the best of several local maxima."""
    largest = float(np.abs(z).max(initial=0.0))
    if largest > 0 and not 1e-140 < largest < 1e140:  # squares would overflow or underflow
        found = fit_mixture(z / largest, x)
        return found._replace(mean=largest * found.mean, noise=largest * (largest * found.noise))
    scale = float(np.sqrt(np.mean(z * z)))
    if not scale > 0:
        return Mixture(np.zeros_like(z), 0.0, 0.0, 0.0, 0.0)
    sizes = np.abs(z / scale)
    every = Scores(sizes, sizes * sizes, np.ones(z.size))
    many = x is None and z.size >= _MANY
    spread = 1.0 if x is None else float(x.std())
    guide = None if x is None else (x - x.mean()) / spread
    best = _Likelihood(grouped(sizes) if many else every, guide).maximise(_SMALL_SPLITS if many else _SPLITS)
    posterior = _Likelihood(every, guide).at(best.parameters).posterior if many else best.posterior
    m, g2, _, _, b = best.parameters
    # The likelihood stays that of z / scale: it is compared between fits of the same scores only.
    return Mixture(posterior, best.likelihood, scale * m, scale**2 * g2, b / spread)


def grouped(z: Floats) -> Scores:
    """Scores in groups of similar magnitude; the largest ones are not grouped."""
    descending = -np.sort(-np.abs(z))
    singles = min(_SINGLE, z.size)
    steps = np.linspace(singles, z.size, min(_GROUPS, z.size - singles), endpoint=False).astype(np.intp)
    first = np.append(np.arange(singles), steps)
    counts = np.diff(np.append(first, z.size)).astype(np.float64)
    sums, squares = np.add.reduceat(descending, first), np.add.reduceat(descending**2, first)
    return Scores(sums / counts, squares / counts, counts)


class _Parameters(NamedTuple):
    """The parameters of a mixture; a and b refer to the standardised x."""

    m: float
    g2: float
    t2: float
    a: float
    b: float

    @classmethod
    def bounded(cls, m: float, g2: float, t2: float, a: float, b: float) -> _Parameters:
        """Within bounds that keep a group from collapsing to a point, and the probabilities from 0 and 1."""
        a, b = (min(max(value, -_STEEPEST), _STEEPEST) for value in (a, b))
        return cls(m, max(g2, 1e-3 * m * m), max(t2, 1e-4 * m * m), a, b)


class _Point(NamedTuple):
    """Parameters, and what is expected at them."""

    parameters: _Parameters
    likelihood: float
    posterior: Floats  # probability of membership of each score
    signed: Floats  # expected score of a member, with its sign
    prior: Floats | None  # probability of membership given x alone


class _Likelihood:
    """The likelihood of scores, and the steps that increase it."""

    def __init__(self, scores: Scores, x: Floats | None) -> None:
        self._scores, self._x = scores, x
        self._squared_x = None if x is None else x * x
        self._total = float(np.add.reduce(scores.counts))

    def maximise(self, splits: tuple[float, ...]) -> _Point:
        """The best point from several splits; only the most promising ones are continued to the end."""
        trials = [self._climb(self._split(share), _TRIAL) for share in splits]
        promising = sorted(trials, key=lambda trial: -trial[1].likelihood)[:_PROMISING]
        further = [self._climb(last, _STEPS) for last, _ in promising]
        return max((best for _, best in (*further, *promising)), key=lambda point: point.likelihood)

    def _split(self, share: float) -> _Point:
        """A start: the largest `share` of the scores as members."""
        scores = self._scores
        order = np.argsort(-scores.size, kind="stable")
        sizes, counts = scores.size[order], scores.counts[order]
        n_members = max(2, int(share * self._total))
        inside = int(np.searchsorted(np.cumsum(counts), n_members, side="left")) + 1
        w, rest = counts[:inside], counts[inside:]
        m = float(w @ sizes[:inside] / np.add.reduce(w))
        g2 = max(float(rest @ sizes[inside:] ** 2) / max(float(np.add.reduce(rest)), 1.0), 1e-4 * m * m)
        t2 = max(float(w @ (sizes[:inside] - m) ** 2 / np.add.reduce(w)) - g2, 0.01 * m * m)
        return self.at(_Parameters(m, g2, t2, 0.0, 0.0))

    def _climb(self, point: _Point, n_steps: int) -> tuple[_Point, _Point]:
        """Cycles of two steps of EM, extrapolated if the likelihood allows it; the last and the most likely point.

        The steps themselves may decrease the likelihood, because of the prior of t and the ridge on b: the last point
        need not be the best.
        """
        best = point
        for _ in range(n_steps // 2):
            one = self.at(self._step(point))
            two = self._step(one)
            point = self.at(_extrapolate(point.parameters, one.parameters, two))
            if point.likelihood < one.likelihood:
                point = self.at(two)
            before, best = best, max(best, one, point, key=lambda each: each.likelihood)
            if best.likelihood - before.likelihood < _CLOSE:
                break
        return point, best

    def at(self, parameters: _Parameters) -> _Point:
        """What is expected at some parameters (the E step)."""
        m, g2, t2, a, b = parameters
        size, squares, counts = self._scores
        variance = g2 + t2
        exponent = (m / variance) * size
        decay = np.exp(-2 * exponent)
        ratio = exponent + np.log1p(decay)  # log(2 cosh); then the ratio of the densities of members and others
        ratio += (0.5 / g2 - 0.5 / variance) * squares
        ratio += 0.5 * (log(g2 / variance) - m * m / variance) - _LOG_2
        if self._x is None:
            prior, others = None, self._total * float(np.logaddexp(0, a))
            ratio += a
        else:
            eta = a + b * self._x
            prior, softplus = _expit(eta)
            others = float(np.add.reduce(softplus))  # -log(1 - pi)
            ratio += eta
        posterior, softplus = _expit(ratio)
        softplus -= (0.5 / g2) * squares
        likelihood = float(counts @ softplus) - others - 0.5 * self._total * log(2 * pi * g2)
        return _Point(parameters, likelihood, posterior, size * ((1 - decay) / (1 + decay)), prior)

    def _step(self, point: _Point) -> _Parameters:
        """The parameters after a step of EM (the M step): m, g^2 and t^2 given the posterior, then a and b.

        a and b take a damped Newton step for logit P = a + b x, with a ridge on b.
        """
        inner, squares = point.posterior * self._scores.counts, self._scores.squares
        outer = self._scores.counts - inner
        total = float(inner @ point.signed)
        inside, outside = max(float(np.add.reduce(inner)), 1e-12), max(float(np.add.reduce(outer)), 1e-12)
        m = max(total / inside, 1e-6)
        variance = (float(inner @ squares) - 2 * m * total) / inside + m * m
        g2 = max(float(outer @ squares) / outside, 1e-3 * m * m)
        t2 = (inside * (variance - g2) + _PRIOR * (m / 6) ** 2) / (inside + _PRIOR)
        x, p, (_, _, _, a, b) = self._x, point.prior, point.parameters
        if x is None or p is None or self._squared_x is None:
            share = min(max(float(point.posterior @ self._scores.counts) / self._total, 1e-3), 1 - 1e-3)
            return _Parameters.bounded(m, g2, t2, log(share / (1 - share)), 0.0)
        w, missed = p * (1 - p) + 1e-6, point.posterior - p
        first, mixed, second = float(np.add.reduce(w)), float(w @ x), float(w @ self._squared_x) + _RIDGE
        of_a, of_b = float(np.add.reduce(missed)), float(missed @ x) - _RIDGE * b
        steps = np.array([second * of_a - mixed * of_b, first * of_b - mixed * of_a]) / (first * second - mixed**2)
        of_a, of_b = np.clip(steps, -1.0, 1.0).tolist()
        return _Parameters.bounded(m, g2, t2, a + of_a, b + of_b)


def _extrapolate(zero: _Parameters, one: _Parameters, two: _Parameters) -> _Parameters:
    """Beyond two steps of EM, in the direction in which they become shorter."""
    start, first, second = (np.array([log(m), log(g2), log(t2), a, b]) for m, g2, t2, a, b in (zero, one, two))
    step, change = first - start, second - 2 * first + start
    length = min(float(np.sqrt(step @ step)) / max(float(np.sqrt(change @ change)), 1e-300), _FARTHEST)
    if length <= 1:
        return two
    far = np.clip(start + 2 * length * step + length**2 * change, -_EXTREME, _EXTREME)
    m, g2, t2, a, b = far.tolist()
    return _Parameters.bounded(exp(m), exp(g2), exp(t2), a, b)


def _expit(x: Floats) -> tuple[Floats, Floats]:
    """1 / (1 + exp(-x)) and log(1 + exp(x)), from one exponential."""
    decay = np.exp(-np.abs(x))
    softplus: Floats = np.maximum(x, 0) + np.log1p(decay)
    return np.where(x >= 0, 1.0, decay) / (1 + decay), softplus


# --- Members of an axis whose scores are centred ---

_PARAMETERS = 4  # of the mixture with others at zero: m, g, t and pi


def located_choice(scores: Floats) -> Choice | None:
    """The members of clear groups with free locations; None if there are no groups, or if the others are at zero.

    Members are all groups but the bulk (see `score_groups`); of two groups of similar size, the smaller one. Groups
    with free locations have to describe the scores better, by BIC, than members at +-m and others at zero do. Between
    members above and members below, the others have to be off zero by at least their standard deviation.
    """
    found = score_groups(scores)
    if found.is_gradient:
        return None
    bulk = np.flatnonzero(found.directions == 0)
    others = int(bulk[0]) if bulk.size else int(np.argmax(found.sizes))
    posterior = 1 - found.probabilities[:, others]
    noise = float(np.std(scores[posterior <= 0.5]))
    at_zero = found.means.size == 3 and abs(found.means[others]) < noise
    # BIC of one normal group minus that of members at +-m and others at zero
    standard = scores / np.sqrt(np.mean(scores**2))
    normal = -scores.size * (float(np.log(2 * np.pi * standard.var())) + 1)
    gain = 2 * fit_mixture(standard, None).likelihood - normal - (_PARAMETERS - 2) * float(np.log(scores.size))
    if at_zero or found.gain <= gain:
        return None
    return Choice(posterior, 0.0, noise, free_locations=True)


# --- Members without a gap ---

_Density = Callable[[Scores, float, float], Floats]

_OPTIONS: Any = {"maxiter": 400, "fatol": 0.02, "xatol": 5e-3}
_ALLOWANCES = (1.0, -2.0)  # log-likelihood by which a gap has to be better than normal and than uniform members
_CLEAR_F1 = 0.9  # expected F1 from which on members are found although there is no gap


def evidence_of_gradation(z: Floats) -> float:
    """Log-likelihood of the better mixture without a gap, minus that with a gap; 0 if a gap explains the scores.

    A gap has to be more likely than normal members by 1, because these are the special case m = 0 of the mixture;
    uniform members have to be more likely than a gap by 2, because their range resembles members with unequal weights.
    It is also 0 if weights decrease without a gap, but are so large that nearly all members stand out from noise.
    """
    fitted = fit_mixture(z, None)
    scale = float(np.sqrt(np.mean(z * z)))
    members = float(fitted.posterior.sum())
    if not (0 < scale < np.inf and 0 < members < z.size):
        return 0.0
    width = float(np.sqrt(3 * (fitted.posterior @ (z * z)) / members)) / scale
    scores, noise = grouped(z / scale), float(np.sqrt(fitted.noise)) / scale
    fits = [_fit_without_gap(scores, density, noise, width, members / z.size) for density in (_normal, _uniform)]
    evidence, f1 = max(
        (likelihood - fitted.likelihood + allowance, expected_f1)
        for (likelihood, expected_f1), allowance in zip(fits, _ALLOWANCES, strict=True)
    )
    return evidence if evidence > 0 and f1 < _CLEAR_F1 else 0.0


def _fit_without_gap(
    scores: Scores, density: _Density, noise: float, width: float, share: float
) -> tuple[float, float]:
    """Log-likelihood of the best mixture whose members have this density, and their expected F1, from a start."""

    def densities(parameters: Floats) -> tuple[Floats, Floats]:
        g, width = np.exp(np.clip(parameters[:2], -12, 12))
        others = special.log_expit(-parameters[2]) - 0.5 * (scores.squares / g**2) - np.log(g * np.sqrt(2 * np.pi))
        return others, special.log_expit(parameters[2]) + density(scores, g, width)

    def loss(parameters: Floats) -> float:
        return -float(scores.counts @ np.logaddexp(*densities(parameters)))

    starts = [
        np.array([np.log(noise), np.log(width), special.logit(start)])
        for start in (share, min(2 * share, 0.5 + share / 2))
    ]
    fits = (optimize.minimize(loss, start, method="Nelder-Mead", options=_OPTIONS) for start in starts)
    best = min(fits, key=lambda fit: float(fit.fun))
    others, members = densities(best.x)
    posterior = special.expit(members - others)
    kept = scores.counts * (posterior > 0.5)
    total = float(np.add.reduce(kept) + scores.counts @ posterior)
    return -float(best.fun), 2 * float(kept @ posterior) / total


def _normal(scores: Scores, noise: float, width: float) -> Floats:
    """Logarithm of the density of N(0, width^2 / 3) with noise; a uniform distribution has the same variance."""
    variance = noise**2 + width**2 / 3
    return np.asarray(-0.5 * (scores.squares / variance + np.log(2 * np.pi * variance)))


def _uniform(scores: Scores, noise: float, width: float) -> Floats:
    """Logarithm of the density of a uniform distribution on [-width, width] with noise."""
    below = special.ndtr((scores.size + width) / noise) - special.ndtr((scores.size - width) / noise)
    return np.asarray(np.log(np.maximum(below, 1e-300) / (2 * width)))
