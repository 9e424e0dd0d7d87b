"""Comparison: modules of two fits matched to each other, and modules looked for in another study."""

from netbic.comparison.compare import Comparison, compare
from netbic.comparison.replicate import LeftOut, Replication, leave_one_study_out, replicate

__all__ = ["Comparison", "LeftOut", "Replication", "compare", "leave_one_study_out", "replicate"]
