"""Pictures: matplotlib axes in, matplotlib axes out; for models and for AnnData alike.

Every function draws into `ax` (a figure of its own if that is None) and returns the axes; none shows or saves anything.
"""

from netbic.pl.convergence import convergence
from netbic.pl.enrichment import enrichment
from netbic.pl.heatmap import heatmap
from netbic.pl.layout import layout as layout
from netbic.pl.loadings import loadings
from netbic.pl.network import network
from netbic.pl.recovery import recovery
from netbic.pl.singular_values import singular_values
from netbic.pl.stability import stability
from netbic.pl.tuning import tuning

__all__ = [
    "convergence",
    "enrichment",
    "heatmap",
    "loadings",
    "network",
    "recovery",
    "singular_values",
    "stability",
    "tuning",
]
