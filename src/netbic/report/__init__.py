"""The report: the results of a fit as one HTML file, which can be opened offline and sent by e-mail."""

from netbic.report.contents import from_one as from_one
from netbic.report.contents import in_genes as in_genes
from netbic.report.heatmaps import write_heatmaps
from netbic.report.page import missing_library, write_report

__all__ = ["missing_library", "write_heatmaps", "write_report"]


def __dir__() -> list[str]:
    return sorted(__all__)
