"""A penalty that chooses how many entries stay and how much the graph counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from netbic.penalties.base import Floats, Indices, Kept, Penalty
from netbic.penalties.mixture import fit_mixture

_SATURATED = 0.9  # share of an axis from which on a module is not sparse
_FEWEST = 2
_FAINT = 1.05  # strength below which noise could have made a module: the bound holds on average, heavy tails go beyond
_UNEVEN = 0.3  # unevenness from which on loud entries push quiet members out
_TRUSTED = 0.8  # expected F1 below which a choice of members is not to be relied on


DOUBTS: Final = {
    "saturated": "nearly all {axis}s would be members",
    "collapsed": "hardly any {axis} stands out",
    "faint": "noise alone could reach as much",
    "uneven": "the noise of {axis}s differs too much",
    "overlapping": "members and others overlap",
}


@dataclass(frozen=True, eq=False)
class Choice:
    """What an `AdaptiveSupport` made of one vector of scores.

    Attributes
    ----------
    posterior : ndarray
        Probability of membership, per entry; NaN for entries that do not vary.
    sigma : float
        The weight of the graph that it amounts to (absolute, as in the paper); 0 where the graph was left out.
    noise : float
        Standard deviation of the scores of the others.
    strength : float
        The module's d, in units of what a module of its size could reach if all else in X were noise.
    unevenness : float
        Standard deviation of the logarithm of the entries' noise.
    """

    posterior: Floats
    sigma: float
    noise: float
    strength: float = np.inf
    unevenness: float = 0.0

    def among(self, candidates: NDArray[np.bool_]) -> Choice:
        """The same choice with entries put in that were no candidates."""
        posterior = np.full(candidates.size, np.nan)
        posterior[candidates] = self.posterior
        return replace(self, posterior=posterior)

    @property
    def support(self) -> Indices:
        """Entries with a posterior above one half; the two likeliest if there are fewer."""
        kept = np.flatnonzero(self.posterior > 0.5)
        if kept.size >= _FEWEST:
            return kept
        likeliest = np.argsort(-self.posterior, kind="stable")[:_FEWEST]
        return np.sort(likeliest[~np.isnan(self.posterior[likeliest])])

    @property
    def expected_f1(self) -> float:
        """The F1 that the posteriors promise: of precision and recall, their harmonic mean."""
        kept = self.support
        total = kept.size + float(np.nansum(self.posterior))
        return 2 * float(np.nansum(self.posterior[kept])) / total if total > 0 else 0.0

    @property
    def doubt(self) -> str:
        """Why the size is not to be relied on: a key of `DOUBTS`, or "" if it is."""
        if self.support.size > _SATURATED * np.count_nonzero(~np.isnan(self.posterior)):
            return "saturated"
        if np.count_nonzero(self.posterior > 0.5) <= _FEWEST:
            return "collapsed"
        if self.strength < _FAINT:
            return "faint"
        if self.unevenness > _UNEVEN:
            return "uneven"
        return "overlapping" if self.expected_f1 < _TRUSTED else ""


def reach_of_noise(size: int, kept: int) -> float:
    """Expected length of the `kept` largest of `size` standard normal numbers.

    The largest u'Zv over unit vectors with k and l non-zero entries, Z standard normal, is at most the sum of the two
    axes' lengths in expectation (Chevet's inequality).

    Examples
    --------
    >>> round(reach_of_noise(100, 100), 6), round(reach_of_noise(100, 1), 1)
    (10.0, 2.9)
    """
    edge = float(stats.norm.isf(kept / (2 * size)))
    return float(np.sqrt(size * (2 * edge * stats.norm.pdf(edge) + kept / size)))


@dataclass(frozen=True, repr=False)
class AdaptiveSupport(Penalty):
    """Choose size and weight of the graph in every half step, by a mixture of members and others.

    The scores of members scatter around +-m, those of the others around 0; members are the likelier, the more members
    they have as neighbours. Entries with a posterior above one half stay: the paper's rule, with its k and its sigma
    chosen together. Where the graph does not make the scores likelier, it is left out (sigma = 0). There is no
    objective. What was chosen is in the fitted model's `choices_` and `posteriors_`, with a word where the scores do
    not tell members from others; that is usual for real expression data, which are dense rather than sparse.

    Where sizes do not settle within 400 rounds of a start, the last ones are kept and `converged_` says so.

    The penalty always finds something, in noise as well: ask `selection.n_modules` whether a module is one.

    Parameters
    ----------
    gate : float, default=6
        Twice the gain in log-likelihood that a graph must bring to be used.
    clip : float or None, default=3
        Draw entries of a dense X in to so many robust standard deviations of their column before fitting: single far
        entries would be taken for modules.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> adaptive = netbic.AdaptiveSupport()
    >>> model = netbic.SparseGraphSVD(1, row_penalty=adaptive, column_penalty=adaptive, center=None)
    >>> model.set_params(row_graph=toy.row_graph, column_graph=toy.column_graph).fit(toy.X).choices_["size"].tolist()
    [51, 50]
    """

    has_objective: ClassVar[bool] = False
    smallest: ClassVar[int] = 5  # entries that an axis needs
    gate: float = 6.0
    clip: float | None = 3.0  # type: ignore[misc]
    noise_source: tuple[float, int] | None = field(default=None, repr=False, kw_only=True)

    def threshold(self, magnitudes: Floats) -> Kept:
        """Keep what is likelier a member than not, unshrunk, without a graph."""
        support = self.choose(magnitudes, None).support
        support = support[magnitudes[support] > 0]
        return Kept(support, magnitudes[support])

    def choose(self, scores: Floats, smoothed: Floats | None) -> Choice:
        """Who is a member, given the scores z and what the graph says (its product with the members so far)."""
        plain = fit_mixture(scores, None)
        best = plain
        if smoothed is not None and np.ptp(smoothed) > 0:
            guided = fit_mixture(scores, smoothed)
            if 2 * (guided.likelihood - plain.likelihood) >= self.gate and guided.slope > 0:
                best = guided
        sigma = best.slope * best.noise / best.mean if best.slope > 0 else 0.0
        posterior = np.where(scores > 0, best.posterior, 0.0) if self.nonnegative else best.posterior
        return Choice(posterior, sigma, float(np.sqrt(best.noise)))

    def for_matrix(self, squared_norm: float, n_entries: int) -> Self:
        """Tell the penalty the squared norm and the size of the matrix, for a first guess of the noise."""
        return replace(self, noise_source=(squared_norm, n_entries))

    def noise_beside(self, d: float) -> float:
        """Standard deviation of an entry of what a module of value d leaves of the matrix; 0 if nothing is known."""
        if self.noise_source is None:
            return 0.0
        squared_norm, n_entries = self.noise_source
        return float(np.sqrt(max(squared_norm - d * d, 0.0) / n_entries))

    @property
    def largest_noise(self) -> float:
        """A bound on the standard deviation of scores: the Frobenius norm of the matrix; infinite if it is unknown."""
        return np.inf if self.noise_source is None else float(np.sqrt(self.noise_source[0]))

    def check(self, size: int, axis: str) -> None:
        """An axis needs five entries; gate and clip must be numbers."""
        if size < self.smallest:
            few = f"{self!r} but X (or the part of it that is fitted) has {size} {axis}s"
            raise ValueError(f"{few}: at least {self.smallest} are needed to tell two groups")
        for name, value in (("gate", self.gate), ("clip", 1.0 if self.clip is None else self.clip)):
            _check_positive(self, name, value)


def _check_positive(penalty: Penalty, name: str, value: Any) -> None:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not 0 < value < np.inf:
        raise ValueError(f"{penalty!r}: {name} must be a finite number above 0")
