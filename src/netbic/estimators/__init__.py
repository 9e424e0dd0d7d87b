"""SparseGraphSVD, the estimator, and what other packages may ask of a fitted model."""

from netbic.estimators.choices import CHOSEN
from netbic.estimators.estimator import AXES, DEFAULT_SMOOTHNESS, SparseGraphSVD
from netbic.estimators.fitted import (
    check_same_data,
    fitted_model,
    heaviest,
    is_model,
    matched_graph,
    names_of,
    unwrapped,
)
from netbic.estimators.prepared import Prepared
from netbic.estimators.projection import observed_scores, scoring, span
from netbic.estimators.stable_modules import StableModules
from netbic.estimators.threads import one_blas_thread
from netbic.estimators.words import axis_names, check_count, has_holes, is_anndata, is_number, refuse_anndata

__all__ = [
    "AXES",
    "CHOSEN",
    "DEFAULT_SMOOTHNESS",
    "Prepared",
    "SparseGraphSVD",
    "StableModules",
    "axis_names",
    "check_count",
    "check_same_data",
    "fitted_model",
    "has_holes",
    "heaviest",
    "is_anndata",
    "is_model",
    "is_number",
    "matched_graph",
    "names_of",
    "observed_scores",
    "one_blas_thread",
    "refuse_anndata",
    "scoring",
    "span",
    "unwrapped",
]
