"""Sparsity penalties: which entries of a vector are kept, and how large they are."""

from netbic.penalties.adaptive import AdaptiveSupport
from netbic.penalties.base import DataDriven, GroupShare, Kept, Penalty
from netbic.penalties.choice import DIAGNOSTICS as DIAGNOSTICS
from netbic.penalties.choice import Choice, expected_noise_norm
from netbic.penalties.group_sparsity import EdgeL0, GroupL0, GroupPenalty
from netbic.penalties.groups import Groups
from netbic.penalties.score_groups import ScoreGroups, score_groups
from netbic.penalties.thresholds import L0, L1, SCAD, AdaptiveLasso, ChosenByBIC, Dense, KeepSoft, L1Ball, largest

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "AdaptiveSupport",
    "Choice",
    "ChosenByBIC",
    "DataDriven",
    "Dense",
    "EdgeL0",
    "GroupL0",
    "GroupPenalty",
    "GroupShare",
    "Groups",
    "KeepSoft",
    "Kept",
    "L1Ball",
    "Penalty",
    "ScoreGroups",
    "expected_noise_norm",
    "largest",
    "score_groups",
]


def __dir__() -> list[str]:
    return sorted(__all__)
