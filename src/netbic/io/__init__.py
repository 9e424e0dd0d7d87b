"""Files and data sets: expression matrices, networks, gene sets, sample tables, read and matched by name."""

from netbic.errors import InputError
from netbic.files import FolderInUse, finished_record, locked, read_json, read_table, write_json, write_table
from netbic.io.characters import check_characters
from netbic.io.checks import Finding, check_expression
from netbic.io.dataset import Dataset, digest, open_dataset
from netbic.io.expression import Expression, check_names, file_format, read_expression
from netbic.io.gene_sets import GeneSets, read_gene_sets
from netbic.io.lazy import BLOCK_BYTES, RowSource, as_floats, open_expression, store_source
from netbic.io.matching import Alignment, align, with_names
from netbic.io.matrices import NameArray, Step, as_matrix, float_type
from netbic.io.named_fit import fit_by_name
from netbic.io.names import ENSEMBL, look_exchanged, renaming, without_version
from netbic.io.networks import Network, NetworkSummary, read_network
from netbic.io.options import ExpressionOptions, NetworkOptions, check_keywords, with_changes
from netbic.io.parquet import not_parquet, number_table, open_parquet
from netbic.io.preprocessing import PreparedExpression, prepare
from netbic.io.sample_info import NA_VALUES, read_obs, read_sample_info
from netbic.io.scores import scores_by_name, scores_table
from netbic.io.stores import WHOLE, StoredMatrix, describe, foreign_files, is_store, stored_columns
from netbic.io.study_options import DatasetOptions, MatchingOptions, PreprocessingOptions
from netbic.io.tables import NumberTable, number_pieces
from netbic.io.tenx import TenX
from netbic.io.text import MISSING, Progress, is_number, is_plain_number, text_pieces
from netbic.io.to_zarr import convert
from netbic.io.two_tables import SampleMatching, TwoTables, in_features, match_samples, open_two_tables, table_lines
from netbic.io.unpacking import check_archive

__all__ = [
    "BLOCK_BYTES",
    "ENSEMBL",
    "MISSING",
    "NA_VALUES",
    "WHOLE",
    "Alignment",
    "Dataset",
    "DatasetOptions",
    "Expression",
    "ExpressionOptions",
    "Finding",
    "FolderInUse",
    "GeneSets",
    "InputError",
    "MatchingOptions",
    "NameArray",
    "Network",
    "NetworkOptions",
    "NetworkSummary",
    "NumberTable",
    "PreparedExpression",
    "PreprocessingOptions",
    "Progress",
    "RowSource",
    "SampleMatching",
    "Step",
    "StoredMatrix",
    "TenX",
    "TwoTables",
    "align",
    "as_floats",
    "as_matrix",
    "check_archive",
    "check_characters",
    "check_expression",
    "check_keywords",
    "check_names",
    "convert",
    "describe",
    "digest",
    "file_format",
    "finished_record",
    "fit_by_name",
    "float_type",
    "foreign_files",
    "in_features",
    "is_number",
    "is_plain_number",
    "is_store",
    "locked",
    "look_exchanged",
    "match_samples",
    "not_parquet",
    "number_pieces",
    "number_table",
    "open_dataset",
    "open_expression",
    "open_parquet",
    "open_two_tables",
    "prepare",
    "read_expression",
    "read_gene_sets",
    "read_json",
    "read_network",
    "read_obs",
    "read_sample_info",
    "read_table",
    "renaming",
    "scores_by_name",
    "scores_table",
    "store_source",
    "stored_columns",
    "table_lines",
    "text_pieces",
    "with_changes",
    "with_names",
    "without_version",
    "write_json",
    "write_table",
]


def __dir__() -> list[str]:
    return sorted(__all__)
