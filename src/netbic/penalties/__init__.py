"""Sparsity penalties: which entries of a vector stay, and how large they are."""

from netbic.penalties.adaptive import AdaptiveSupport
from netbic.penalties.base import DataDriven, Kept, Penalty
from netbic.penalties.choice import DOUBTS as DOUBTS
from netbic.penalties.choice import Choice, reach_of_noise
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
    "KeepSoft",
    "Kept",
    "L1Ball",
    "Penalty",
    "largest",
    "reach_of_noise",
]
