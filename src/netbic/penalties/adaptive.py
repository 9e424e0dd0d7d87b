"""A penalty that chooses how many entries to keep and the weight of the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import ClassVar, Self

import numpy as np

from netbic.arrays import Floats
from netbic.penalties.base import DataDriven, Kept, Penalty
from netbic.penalties.choice import Choice
from netbic.penalties.gradation import evidence_of_gradation
from netbic.penalties.located import located_choice
from netbic.penalties.mixture import fit_mixture
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

    def check(self, size: int, axis: str) -> None:
        """An axis needs five entries; gate and clip must be numbers, and fallback a size."""
        if size < self.smallest:
            few = f"{self!r} but X (or the part of it that is fitted) has {size} {axis}s"
            raise ValueError(f"{few}: at least {self.smallest} are needed to separate two groups")
        for name, value in (("gate", self.gate), ("clip", 1.0 if self.clip is None else self.clip)):
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not 0 < value < np.inf:
                raise ValueError(f"{self!r}: {name} must be a finite number above 0")
        if self.fallback is not None:
            whole = isinstance(self.fallback, Integral) and not isinstance(self.fallback, bool)
            if not whole or not 1 <= self.fallback <= size:
                raise ValueError(f"{self!r} but X has {size} {axis}s: choose a fallback from 1 to {size}, or None")

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
