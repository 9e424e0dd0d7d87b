"""Files and data sets: expression matrices, networks, gene sets, sample tables, read and matched by name."""

from netbic.errors import InputError
from netbic.files import FolderInUse, finished_record, locked, read_json, read_table, write_json, write_table
from netbic.io.checks import Finding, check_expression
from netbic.io.conversion import convert
from netbic.io.dataset import (
    Dataset,
    PairedDatasets,
    SampleMatching,
    check_keywords,
    digest,
    fit_by_name,
    in_features,
    open_dataset,
    open_paired_datasets,
    scores_by_name,
    scores_table,
    table_lines,
)
from netbic.io.expression import READING, Expression, as_floats, open_expression, read_expression
from netbic.io.matching import Alignment, align, with_names
from netbic.io.names import renaming
from netbic.io.networks import Network, NetworkSummary, read_network
from netbic.io.preprocessing import PreparedExpression, prepare
from netbic.io.samples import GeneSets, read_gene_sets, read_sample_info
from netbic.io.stores import open_store
from netbic.io.tables import as_matrix
from netbic.io.text import check_characters, is_number, is_plain_number

__all__ = [
    "READING",
    "Alignment",
    "Dataset",
    "Expression",
    "Finding",
    "FolderInUse",
    "GeneSets",
    "InputError",
    "Network",
    "NetworkSummary",
    "PairedDatasets",
    "PreparedExpression",
    "SampleMatching",
    "align",
    "as_floats",
    "as_matrix",
    "check_characters",
    "check_expression",
    "check_keywords",
    "convert",
    "digest",
    "finished_record",
    "fit_by_name",
    "in_features",
    "is_number",
    "is_plain_number",
    "locked",
    "open_dataset",
    "open_expression",
    "open_paired_datasets",
    "open_store",
    "prepare",
    "read_expression",
    "read_gene_sets",
    "read_json",
    "read_network",
    "read_sample_info",
    "read_table",
    "renaming",
    "scores_by_name",
    "scores_table",
    "table_lines",
    "with_names",
    "write_json",
    "write_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
