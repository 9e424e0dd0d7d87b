"""The report: one HTML file that shows what a fit found, to be opened from disk and mailed."""

from netbic.report.heatmaps import write_heatmaps
from netbic.report.page import missing_library, write_report

__all__ = ["missing_library", "write_heatmaps", "write_report"]
