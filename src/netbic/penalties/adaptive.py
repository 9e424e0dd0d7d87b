"""A penalty that chooses how many entries to keep and the weight of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbic.arrays import Floats
from netbic.penalties.base import DataDriven, Kept
from netbic.penalties.choice import Choice
from netbic.penalties.located import located_choice
from netbic.penalties.mixture import fit_mixture


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

    If sizes do not converge within 400 iterations of a start, the last ones are kept and `converged_` is False.

    The penalty also finds modules in pure noise: use `selection.n_modules` to test whether there are any.

    Parameters
    ----------
    gate : float, default=6
        The graph is used if it improves twice the log-likelihood by at least this much.
    clip : float or None, default=3
        Clip entries of a dense X at this number of robust standard deviations of their column before the fit: single
        outliers would be found as modules.

    Examples
    --------
    >>> import netbic
    >>> toy = netbic.simulate.paper(0.03, random_state=0)
    >>> adaptive = netbic.AdaptiveSupport()
    >>> model = netbic.SparseGraphSVD(1, row_penalty=adaptive, column_penalty=adaptive, center=None)
    >>> model.set_params(row_graph=toy.row_graph, column_graph=toy.column_graph).fit(toy.X).choices_["size"].tolist()
    [51, 50]
    """

    chooses_size: ClassVar[bool] = True
    smallest: ClassVar[int] = 5  # size of an axis
    gate: float = 6.0
    clip: float | None = 3.0  # type: ignore[misc]

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

    def check(self, size: int, axis: str) -> None:
        """An axis needs five entries; gate and clip must be numbers."""
        if size < self.smallest:
            few = f"{self!r} but X (or the part of it that is fitted) has {size} {axis}s"
            raise ValueError(f"{few}: at least {self.smallest} are needed to separate two groups")
        for name, value in (("gate", self.gate), ("clip", 1.0 if self.clip is None else self.clip)):
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not 0 < value < np.inf:
                raise ValueError(f"{self!r}: {name} must be a finite number above 0")

    def check_graph(self, axis: str, smoothness: float | None, graph_term: str, signs: str) -> None:
        """The weight of the graph must be left to the penalty, and the graph term must reward edges."""
        if smoothness:
            raise ValueError(
                f"{axis}_smoothness={smoothness!r} but the {axis} penalty AdaptiveSupport chooses it: "
                "leave it at None, or set it to 0 to ignore the graph"
            )
        if signs == "signed" or "laplacian" in graph_term:
            raise ValueError(
                f"AdaptiveSupport cannot use a {axis}_graph with signs={signs!r} and graph_term={graph_term!r}: "
                "use signs='absolute' and 'normalized' or 'adjacency'"
            )
