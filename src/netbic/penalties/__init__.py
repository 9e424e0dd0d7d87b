"""Sparsity penalties: which entries of a vector are kept, and how large they are."""

from netbic.penalties.base import GroupShare, Kept, Penalty
from netbic.penalties.bulk import BeyondBulk
from netbic.penalties.groups import GroupL0, Groups
from netbic.penalties.thresholds import L0, L1, SCAD, AdaptiveLasso, ChosenByBIC, Dense, KeepSoft, L1Ball, largest

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "BeyondBulk",
    "ChosenByBIC",
    "Dense",
    "GroupL0",
    "GroupShare",
    "Groups",
    "KeepSoft",
    "Kept",
    "L1Ball",
    "Penalty",
    "largest",
]


def __dir__() -> list[str]:
    return sorted(__all__)
