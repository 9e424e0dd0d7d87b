"""Sparsity penalties: which entries of a vector are kept, and how large they are."""

from netbic.penalties.base import DataDriven, GroupShare, Kept, Penalty
from netbic.penalties.bulk import BeyondBulk
from netbic.penalties.groups import GroupL0, Groups
from netbic.penalties.score_groups import ScoreGroups, score_groups
from netbic.penalties.thresholds import L0, L1, SCAD, AdaptiveLasso, ChosenByBIC, Dense, KeepSoft, L1Ball, largest

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "BeyondBulk",
    "ChosenByBIC",
    "DataDriven",
    "Dense",
    "GroupL0",
    "GroupShare",
    "Groups",
    "KeepSoft",
    "Kept",
    "L1Ball",
    "Penalty",
    "ScoreGroups",
    "largest",
    "score_groups",
]


def __dir__() -> list[str]:
    return sorted(__all__)
