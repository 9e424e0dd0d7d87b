"""The estimators, and the access of other packages to a fitted model."""

from netbic.estimators.cca import SparseGraphCCA
from netbic.estimators.covariate_table import as_table
from netbic.estimators.covariates import (
    CovariateCoding,
    Design,
    basis_of,
    check_part,
    covariate_names,
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
from netbic.estimators.pair_inputs import in_order_of, validated_x, validated_y
from netbic.estimators.pair_results import paired_correlations
from netbic.estimators.parameters import AXES, check_count, is_number, iteration_settings, smoothness_of
from netbic.estimators.pls import SparseGraphPLS
from netbic.estimators.projection import observed_scores, scoring, span
from netbic.estimators.results import groups_table, store_choices
from netbic.estimators.search_input import SearchInput
from netbic.estimators.stable_modules import StableModules
from netbic.estimators.stacking import StackedStudies, stack_studies
from netbic.estimators.studies import (
    StudyScaling,
    as_one_study,
    own_studies,
    rescaled,
    study_labels,
    study_of_new,
    without_studies,
)
from netbic.estimators.study_table import StudyNumbers, shared_by, studies_table
from netbic.estimators.study_table import coherence as coherence
from netbic.estimators.threads import one_blas_thread
from netbic.estimators.two_tables import TwoTables

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
    "StackedStudies",
    "StudyNumbers",
    "StudyScaling",
    "TwoTables",
    "as_one_study",
    "as_table",
    "axis_names",
    "basis_of",
    "check_count",
    "check_part",
    "check_same_data",
    "covariate_names",
    "covariates_of",
    "design_of_new",
    "diagnostics_from",
    "fitted_model",
    "groups_table",
    "has_missing",
    "heaviest",
    "in_order_of",
    "is_model",
    "is_number",
    "iteration_settings",
    "leading_features",
    "module_scores",
    "names_of",
    "observed_scores",
    "one_blas_thread",
    "own_covariates",
    "own_studies",
    "paired_correlations",
    "recurrent_features",
    "rescaled",
    "score_directions",
    "scoring",
    "shared_by",
    "smoothness_of",
    "span",
    "stack_studies",
    "store_choices",
    "store_covariates",
    "studies_table",
    "study_labels",
    "study_of_new",
    "training_design",
    "unwrapped",
    "validated_x",
    "validated_y",
    "without_studies",
]
