"""Tools for AnnData and MuData: modules of cells and genes, stored as scanpy stores its results.

The page "AnnData and scanpy" lists what is stored where.
"""

from netbic.tl.meaning import associate, enrich
from netbic.tl.modalities import from_mudata, pairs
from netbic.tl.objects import from_anndata, matrix_of, store, to_anndata
from netbic.tl.tools import (
    leave_one_study_out,
    modules,
    n_modules,
    sample_groups,
    score,
    stability,
    verdicts,
)

__all__ = [
    "associate",
    "enrich",
    "from_anndata",
    "from_mudata",
    "leave_one_study_out",
    "matrix_of",
    "modules",
    "n_modules",
    "pairs",
    "sample_groups",
    "score",
    "stability",
    "store",
    "to_anndata",
    "verdicts",
]


def __dir__() -> list[str]:
    return sorted(__all__)
