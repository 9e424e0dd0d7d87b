"""netbic: network-coherent biclusters by sparse graph-regularized SVD.

>>> import netbic
>>> netbic.SparseGraphSVD(n_components=1, n_rows=5, n_columns=5)
SparseGraphSVD(n_columns=5, n_components=1, n_rows=5)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from netbic import (
        association,
        comparison,
        enrichment,
        exports,
        get,
        graph,
        io,
        methods,
        penalties,
        pl,
        report,
        selection,
        simulate,
        tl,
    )
    from netbic.association.associate import associate
    from netbic.comparison.compare import compare
    from netbic.comparison.replicate import leave_one_study_out, replicate
    from netbic.errors import InputError
    from netbic.estimators import SparseGraphCCA, SparseGraphPLS, SparseGraphSVD, stack_studies
    from netbic.graph import Graph
    from netbic.methods import method
    from netbic.penalties import (
        L0,
        L1,
        SCAD,
        AdaptiveLasso,
        AdaptiveSupport,
        BeyondBulk,
        Dense,
        GroupL0,
        KeepSoft,
        L1Ball,
    )
    from netbic.storage.models import load, save

_PENALTIES = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "AdaptiveSupport",
    "BeyondBulk",
    "Dense",
    "GroupL0",
    "KeepSoft",
    "L1Ball",
]
_HOMES = {
    "associate": "netbic.association",
    "SparseGraphCCA": "netbic.estimators",
    "SparseGraphPLS": "netbic.estimators",
    "SparseGraphSVD": "netbic.estimators",
    "Graph": "netbic.graph",
    "method": "netbic.methods",
    "InputError": "netbic.errors",
    "load": "netbic.storage",
    "save": "netbic.storage",
    "compare": "netbic.comparison",
    "leave_one_study_out": "netbic.comparison",
    "replicate": "netbic.comparison",
    "stack_studies": "netbic.estimators",
    **dict.fromkeys(_PENALTIES, "netbic.penalties"),
}
_PACKAGES = {
    "association",
    "comparison",
    "enrichment",
    "exports",
    "get",
    "graph",
    "io",
    "methods",
    "penalties",
    "pl",
    "report",
    "selection",
    "simulate",
    "tl",
}
_PACKAGES |= {"operators", "solver"}  # for extensions
_PACKAGES |= {"files", "storage"}  # for the command line

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "AdaptiveSupport",
    "BeyondBulk",
    "Dense",
    "Graph",
    "GroupL0",
    "InputError",
    "KeepSoft",
    "L1Ball",
    "SparseGraphCCA",
    "SparseGraphPLS",
    "SparseGraphSVD",
    "__version__",
    "associate",
    "association",
    "compare",
    "comparison",
    "enrichment",
    "exports",
    "get",
    "graph",
    "io",
    "leave_one_study_out",
    "load",
    "method",
    "methods",
    "penalties",
    "pl",
    "replicate",
    "report",
    "save",
    "selection",
    "simulate",
    "stack_studies",
    "tl",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `import netbic` stays light."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _PACKAGES:
        return import_module(f"netbic.{name}")
    raise AttributeError(f"module 'netbic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
