"""The estimators, and the access of other packages to a fitted model."""

from netbic.estimators.covariates import CovariateCoding as CovariateCoding
from netbic.estimators.covariates import Design as Design
from netbic.estimators.covariates import as_table as as_table
from netbic.estimators.covariates import basis_of as basis_of
from netbic.estimators.covariates import covariate_names as covariate_names
from netbic.estimators.covariates import covariates_of as covariates_of
from netbic.estimators.covariates import design_of_new as design_of_new
from netbic.estimators.covariates import own_covariates as own_covariates
from netbic.estimators.covariates import store_covariates as store_covariates
from netbic.estimators.covariates import training_design as training_design
from netbic.estimators.inputs import axis_names as axis_names
from netbic.estimators.inputs import check_same_data as check_same_data
from netbic.estimators.inputs import has_missing as has_missing
from netbic.estimators.inputs import one_blas_thread as one_blas_thread
from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.estimators.parameters import check_count as check_count
from netbic.estimators.parameters import is_number as is_number
from netbic.estimators.parameters import smoothness_of as smoothness_of
from netbic.estimators.prediction import module_scores as module_scores
from netbic.estimators.prediction import score_directions as score_directions
from netbic.estimators.results import DIAGNOSTIC_NUMBERS as DIAGNOSTIC_NUMBERS
from netbic.estimators.results import diagnostics_from as diagnostics_from
from netbic.estimators.results import groups_table as groups_table
from netbic.estimators.results import heaviest as heaviest
from netbic.estimators.results import leading_features as leading_features
from netbic.estimators.results import name_features as name_features
from netbic.estimators.results import names_of as names_of
from netbic.estimators.results import position_of as position_of
from netbic.estimators.results import recurrent_features as recurrent_features
from netbic.estimators.results import store_choices as store_choices
from netbic.estimators.studies import StudyNumbers as StudyNumbers
from netbic.estimators.studies import StudyScaling as StudyScaling
from netbic.estimators.studies import as_one_study as as_one_study
from netbic.estimators.studies import rescaled as rescaled
from netbic.estimators.studies import shared_by as shared_by
from netbic.estimators.studies import stack_studies
from netbic.estimators.studies import studies_table as studies_table
from netbic.estimators.studies import study_labels as study_labels
from netbic.estimators.studies import study_of_new as study_of_new
from netbic.estimators.studies import without_studies as without_studies
from netbic.estimators.svd import SparseGraphSVD
from netbic.estimators.svd import fitted_model as fitted_model
from netbic.estimators.svd import is_model as is_model
from netbic.estimators.svd import unwrapped as unwrapped

__all__ = ["SparseGraphCCA", "SparseGraphPLS", "SparseGraphSVD", "stack_studies"]
