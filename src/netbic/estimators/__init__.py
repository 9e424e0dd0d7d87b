"""The estimators, and the access of other packages to a fitted model."""

from netbic.deprecation import earlier_names
from netbic.estimators.cca import SparseGraphCCA
from netbic.estimators.covariates import (
    CovariateCoding,
    Design,
    basis_of,
    check_part,
    covariates_of,
    design_of_new,
    own_covariates,
    store_covariates,
    training_design,
)
from netbic.estimators.diagnostics import DIAGNOSTIC_NUMBERS, diagnostics_from, leading_features, recurrent_features
from netbic.estimators.estimator import SparseGraphSVD
from netbic.estimators.fitted import (
    check_same_data,
    fitted_model,
    heaviest,
    is_model,
    names_of,
    unwrapped,
)
from netbic.estimators.inputs import axis_names, has_missing
from netbic.estimators.new_samples import module_scores, score_directions
from netbic.estimators.parameters import AXES, check_count, is_number, smoothness_of
from netbic.estimators.pls import SparseGraphPLS
from netbic.estimators.projection import observed_scores, scoring, span
from netbic.estimators.results import store_choices
from netbic.estimators.search_input import SearchInput
from netbic.estimators.stable_modules import StableModules
from netbic.estimators.threads import one_blas_thread

__all__ = [
    "AXES",
    "DIAGNOSTIC_NUMBERS",
    "CovariateCoding",
    "Design",
    "SearchInput",
    "SparseGraphCCA",
    "SparseGraphPLS",
    "SparseGraphSVD",
    "StableModules",
    "axis_names",
    "basis_of",
    "check_count",
    "check_part",
    "check_same_data",
    "covariates_of",
    "design_of_new",
    "diagnostics_from",
    "fitted_model",
    "has_missing",
    "heaviest",
    "is_model",
    "is_number",
    "leading_features",
    "module_scores",
    "names_of",
    "observed_scores",
    "one_blas_thread",
    "own_covariates",
    "recurrent_features",
    "score_directions",
    "scoring",
    "smoothness_of",
    "span",
    "store_choices",
    "store_covariates",
    "training_design",
    "unwrapped",
]

__getattr__ = earlier_names("netbic.estimators", {"Prepared": "netbic.estimators.SearchInput"})
