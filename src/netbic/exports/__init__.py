"""Modules in the formats of other programs: GMT, lists, workbooks, GCT, GraphML and Cytoscape.

Every function takes a fitted model, the folder of a fit, or :class:`Results`, and writes files that appear complete or
not at all. In names of files, sets, sheets and labels, modules count from 1.
"""

from netbic.exports.gct import write_expression_gct, write_scores_gct
from netbic.exports.gmt import write_gmt
from netbic.exports.lists import write_lists
from netbic.exports.membership import write_membership
from netbic.exports.networks import write_cytoscape
from netbic.exports.results import Results
from netbic.exports.workbook import write_workbook

__all__ = [
    "Results",
    "write_cytoscape",
    "write_expression_gct",
    "write_gmt",
    "write_lists",
    "write_membership",
    "write_scores_gct",
    "write_workbook",
]


def __dir__() -> list[str]:
    return sorted(__all__)
