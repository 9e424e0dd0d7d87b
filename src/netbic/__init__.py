"""netbic: network-coherent biclusters by sparse graph-regularized SVD.

>>> import netbic
>>> netbic.SparseGraphSVD(n_components=1, n_rows=5, n_columns=5)
SparseGraphSVD(n_columns=5, n_components=1, n_rows=5)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from netbic import enrichment, experiments, graphs, io, methods, penalties, pl, report, selection, simulate, tl
    from netbic.decomposition import SparseGraphSVD
    from netbic.graphs import Graph
    from netbic.io import InputError, load, save
    from netbic.methods import method
    from netbic.penalties import L0, L1, SCAD, AdaptiveLasso, AdaptiveSupport, Dense, KeepSoft, L1Ball

_PENALTIES = ["L0", "L1", "SCAD", "AdaptiveLasso", "AdaptiveSupport", "Dense", "KeepSoft", "L1Ball"]
_HOMES = {
    "SparseGraphSVD": "netbic.decomposition",
    "Graph": "netbic.graphs",
    "method": "netbic.methods",
    **dict.fromkeys(["InputError", "load", "save"], "netbic.io"),
    **dict.fromkeys(_PENALTIES, "netbic.penalties"),
}
_ROOMS = {"enrichment", "experiments", "graphs", "io", "methods", "penalties", "pl", "report", "selection"}
_ROOMS |= {"simulate", "tl"}

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "AdaptiveSupport",
    "Dense",
    "Graph",
    "InputError",
    "KeepSoft",
    "L1Ball",
    "SparseGraphSVD",
    "__version__",
    "enrichment",
    "experiments",
    "graphs",
    "io",
    "load",
    "method",
    "methods",
    "penalties",
    "pl",
    "report",
    "save",
    "selection",
    "simulate",
    "tl",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `import netbic` stays light."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"netbic.{name}")
    raise AttributeError(f"module 'netbic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
