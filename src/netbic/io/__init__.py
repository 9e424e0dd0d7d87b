"""Files and data sets: expression matrices, networks, gene sets, sample tables, read and matched by name."""

from netbic.files import FolderInUse, finished_record, locked, read_json, read_table, write_json, write_table
from netbic.io.checks import Finding, check_expression
from netbic.io.conversion import convert
from netbic.io.dataset import Dataset, open_dataset, scores_by_name, scores_table
from netbic.io.expression import Expression, open_expression, read_expression
from netbic.io.matching import Alignment, align
from netbic.io.names import read_id_map
from netbic.io.networks import Network, NetworkSummary, read_network
from netbic.io.preprocessing import PreparedExpression, prepare
from netbic.io.samples import GeneSets, read_gene_sets, read_sample_info

__all__ = [
    "Alignment",
    "Dataset",
    "Expression",
    "Finding",
    "FolderInUse",
    "GeneSets",
    "Network",
    "NetworkSummary",
    "PreparedExpression",
    "align",
    "check_expression",
    "convert",
    "finished_record",
    "locked",
    "open_dataset",
    "open_expression",
    "prepare",
    "read_expression",
    "read_gene_sets",
    "read_id_map",
    "read_json",
    "read_network",
    "read_sample_info",
    "read_table",
    "scores_by_name",
    "scores_table",
    "write_json",
    "write_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
