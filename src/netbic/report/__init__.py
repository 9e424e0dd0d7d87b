"""The report: the results of a fit as one HTML file, which can be opened offline and sent by e-mail."""

from netbic.report.page import missing_library, write_report
from netbic.report.pictures import write_heatmaps

__all__ = ["missing_library", "write_heatmaps", "write_report"]


def __dir__() -> list[str]:
    return sorted(__all__)
