"""Comparison: modules of two fits matched to each other, and modules looked for in another study."""

from netbic.comparison.associations import RepeatedAssociations, repeat_associations
from netbic.comparison.compare import Comparison, compare
from netbic.comparison.left_out import LeftOut, leave_one_study_out
from netbic.comparison.replicate import Replication, replicate, standardised_scores

__all__ = [
    "Comparison",
    "LeftOut",
    "RepeatedAssociations",
    "Replication",
    "compare",
    "leave_one_study_out",
    "repeat_associations",
    "replicate",
    "standardised_scores",
]
