"""Plots of models, of AnnData objects, and of results of `netbic.selection`, `netbic.enrichment` and `netbic.compare`.

Every function draws into the matplotlib axes `ax` (None: a new figure) and returns them. It neither shows nor saves
the figure.
"""

from netbic.pl.heatmap import heatmap
from netbic.pl.network import network
from netbic.pl.pairs import pair_loadings, pairs
from netbic.pl.scores import loadings, scores, survival
from netbic.pl.tables import associations, comparison, enrichment, n_modules, stability, tuning

__all__ = [
    "associations",
    "comparison",
    "enrichment",
    "heatmap",
    "loadings",
    "n_modules",
    "network",
    "pair_loadings",
    "pairs",
    "scores",
    "stability",
    "survival",
    "tuning",
]
