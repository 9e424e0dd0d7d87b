"""Published data that are part of the package: bacteria, tumours and cells for examples that need no download."""

from netbic.datasets.excerpts import Compendium, TumourCohort, ecoli, ovarian, t_cells

__all__ = ["Compendium", "TumourCohort", "ecoli", "ovarian", "t_cells"]


def __dir__() -> list[str]:
    return sorted(__all__)
