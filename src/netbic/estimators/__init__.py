"""The estimators, and the access of other packages to a fitted model."""

from netbic.estimators.pairs import SparseGraphCCA, SparseGraphPLS
from netbic.estimators.studies import stack_studies
from netbic.estimators.svd import SparseGraphSVD

__all__ = ["SparseGraphCCA", "SparseGraphPLS", "SparseGraphSVD", "stack_studies"]
