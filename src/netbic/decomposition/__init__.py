"""SparseGraphSVD, the estimator, and what it shares with the rooms below it."""

from netbic.decomposition.choices import CHOSEN
from netbic.decomposition.estimator import AXES, DEFAULT_SMOOTHNESS, SparseGraphSVD
from netbic.decomposition.prepared import Prepared
from netbic.decomposition.threads import one_blas_thread
from netbic.decomposition.words import axis_names, check_count, has_holes, is_anndata, is_number, refuse_anndata

__all__ = [
    "AXES",
    "CHOSEN",
    "DEFAULT_SMOOTHNESS",
    "Prepared",
    "SparseGraphSVD",
    "axis_names",
    "check_count",
    "has_holes",
    "is_anndata",
    "is_number",
    "one_blas_thread",
    "refuse_anndata",
]
