"""Sparsity penalties: which entries of a vector stay, and how large they are."""

from netbic.penalties.adaptive import DOUBTS as DOUBTS
from netbic.penalties.adaptive import AdaptiveSupport, Choice, reach_of_noise
from netbic.penalties.base import Kept, Penalty
from netbic.penalties.thresholds import L0, L1, SCAD, AdaptiveLasso, ChosenByBIC, Dense, KeepSoft, L1Ball, largest

__all__ = [
    "L0",
    "L1",
    "SCAD",
    "AdaptiveLasso",
    "AdaptiveSupport",
    "Choice",
    "ChosenByBIC",
    "Dense",
    "KeepSoft",
    "Kept",
    "L1Ball",
    "Penalty",
    "largest",
    "reach_of_noise",
]
