"""Comparison: modules of two fits matched to each other, and modules looked for in another study."""

from netbic.comparison.replication import Replication, replicate
from netbic.comparison.two_fits import Comparison, compare

__all__ = ["Comparison", "Replication", "compare", "replicate"]


def __dir__() -> list[str]:
    return sorted(__all__)
