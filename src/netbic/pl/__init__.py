"""Plots of models, of AnnData objects, and of results of `netbic.selection`, `netbic.enrichment` and `netbic.compare`.

Every function draws into the matplotlib axes `ax` (None: a new figure) and returns them. It neither shows nor saves
the figure.
"""

from netbic.pl.annotation import variable_colours as variable_colours
from netbic.pl.associations import associations
from netbic.pl.comparison import comparison
from netbic.pl.enrichment import enrichment
from netbic.pl.heatmap import heatmap
from netbic.pl.layout import layout as layout
from netbic.pl.loadings import loadings
from netbic.pl.names import apart as apart
from netbic.pl.network import network
from netbic.pl.pair_scores import pairs
from netbic.pl.scores import scores
from netbic.pl.stability import stability
from netbic.pl.survival import survival
from netbic.pl.tuning import tuning

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
