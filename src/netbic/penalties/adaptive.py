"""A penalty that chooses how many entries to keep and the weight of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netbic.arrays import Floats
from netbic.penalties.base import DataDriven, Kept
from netbic.penalties.choice import Choice
from netbic.penalties.mixture import fit_mixture


@dataclass(frozen=True, repr=False)
class AdaptiveSupport(DataDriven):
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

    chooses_size: ClassVar[bool] = True
    smallest: ClassVar[int] = 5  # entries that an axis needs
    gate: float = 6.0
    clip: float | None = 3.0  # type: ignore[misc]

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

    def check(self, size: int, axis: str) -> None:
        """An axis needs five entries; gate and clip must be numbers."""
        if size < self.smallest:
            few = f"{self!r} but X (or the part of it that is fitted) has {size} {axis}s"
            raise ValueError(f"{few}: at least {self.smallest} are needed to tell two groups")
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
