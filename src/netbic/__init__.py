"""netbic: network-coherent biclusters by sparse graph-regularized SVD.

>>> import netbic
>>> netbic.SparseGraphSVD(n_components=1, n_rows=5, n_columns=5)
SparseGraphSVD(n_columns=5, n_components=1, n_rows=5)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from netbic import (
        association,
        comparison,
        datasets,
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
    from netbic.comparison.left_out import leave_one_study_out
    from netbic.comparison.replicate import replicate
    from netbic.errors import InputError
    from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
    from netbic.estimators.studies import stack_studies
    from netbic.estimators.svd import SparseGraphSVD
    from netbic.graph import Graph
    from netbic.methods import method
    from netbic.penalties import (
        L0,
        L1,
        SCAD,
        AdaptiveLasso,
        BeyondBulk,
        Dense,
        GroupL0,
        KeepSoft,
        L1Ball,
    )
    from netbic.storage.models import load, save

# Where public names are defined; they are loaded on first use, so that `import netbic` stays light.
_HOMES = {
    "netbic.association.associate": ["associate"],
    "netbic.comparison.compare": ["compare"],
    "netbic.comparison.left_out": ["leave_one_study_out"],
    "netbic.comparison.replicate": ["replicate"],
    "netbic.errors": ["InputError"],
    "netbic.estimators.pairs": ["SparseGraphCCA", "SparseGraphPLS"],
    "netbic.estimators.studies": ["stack_studies"],
    "netbic.estimators.svd": ["SparseGraphSVD"],
    "netbic.graph": ["Graph"],
    "netbic.methods": ["method"],
    "netbic.penalties": [
        *(
            "L0",
            "L1",
            "SCAD",
            "AdaptiveLasso",
            "BeyondBulk",
            "Dense",
            "GroupL0",
            "KeepSoft",
            "L1Ball",
        ),
    ],
    "netbic.storage.models": ["load", "save"],
}
_INNER = ["files", "operators", "solver", "storage"]  # packages for extensions and the command line

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
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
    "datasets",
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
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    if name in __all__ or name in _INNER:
        return import_module(f"netbic.{name}")
    raise AttributeError(f"module 'netbic' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
