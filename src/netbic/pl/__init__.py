"""Plots of models, of AnnData objects, and of results of `netbic.selection`, `netbic.enrichment` and `netbic.compare`.

Every function draws into the matplotlib axes `ax` (None: a new figure) and returns them. It neither shows nor saves
the figure.
"""

from netbic.pl.associations import associations
from netbic.pl.associations import effect_grid as effect_grid
from netbic.pl.base import apart as apart
from netbic.pl.base import variable_colours as variable_colours
from netbic.pl.heatmap import heatmap
from netbic.pl.network import layout as layout
from netbic.pl.network import network
from netbic.pl.scores import groups_in_words as groups_in_words
from netbic.pl.scores import loadings, pairs, scores
from netbic.pl.survival import survival
from netbic.pl.tables import comparison, enrichment, stability, tuning

__all__ = [
    "associations",
    "comparison",
    "enrichment",
    "heatmap",
    "loadings",
    "network",
    "pairs",
    "scores",
    "stability",
    "survival",
    "tuning",
]
