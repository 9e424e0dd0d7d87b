"""The report: the results of a fit as one HTML file, which can be opened offline and sent by e-mail."""

from netbic.report.page import missing_library, write_report
from netbic.report.pictures import write_heatmaps
from netbic.report.words import from_one as from_one
from netbic.report.words import in_genes as in_genes

__all__ = ["missing_library", "write_heatmaps", "write_report"]


def __dir__() -> list[str]:
    return sorted(__all__)
