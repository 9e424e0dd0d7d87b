"""Expression matrices, networks, gene sets and tables, read and checked; nothing is written here."""

from netbic.readers.characters import check_characters
from netbic.readers.expression import Expression, check_names, file_format, read_expression
from netbic.readers.gene_sets import GeneSets, read_gene_sets
from netbic.readers.lazy import BLOCK_BYTES, RowSource, as_floats, open_expression, store_source
from netbic.readers.matrices import NameArray, Step, as_matrix, float_type
from netbic.readers.names import ENSEMBL, look_exchanged, renaming, without_version
from netbic.readers.networks import Network, NetworkSummary, read_network
from netbic.readers.options import ExpressionOptions, NetworkOptions, check_keywords, with_changes
from netbic.readers.parquet import not_parquet, number_table, open_parquet
from netbic.readers.sample_info import NA_VALUES, read_obs, read_sample_info
from netbic.readers.stores import WHOLE, StoredMatrix, describe, foreign_files, is_store, stored_columns
from netbic.readers.tables import NumberTable, number_pieces
from netbic.readers.tenx import TenX
from netbic.readers.text import MISSING, Progress, is_number, is_plain_number, text_pieces
from netbic.readers.unpacking import check_archive

__all__ = [
    "BLOCK_BYTES",
    "ENSEMBL",
    "MISSING",
    "NA_VALUES",
    "WHOLE",
    "Expression",
    "ExpressionOptions",
    "GeneSets",
    "NameArray",
    "Network",
    "NetworkOptions",
    "NetworkSummary",
    "NumberTable",
    "Progress",
    "RowSource",
    "Step",
    "StoredMatrix",
    "TenX",
    "as_floats",
    "as_matrix",
    "check_archive",
    "check_characters",
    "check_keywords",
    "check_names",
    "describe",
    "file_format",
    "float_type",
    "foreign_files",
    "is_number",
    "is_plain_number",
    "is_store",
    "look_exchanged",
    "not_parquet",
    "number_pieces",
    "number_table",
    "open_expression",
    "open_parquet",
    "read_expression",
    "read_gene_sets",
    "read_network",
    "read_obs",
    "read_sample_info",
    "renaming",
    "store_source",
    "stored_columns",
    "text_pieces",
    "with_changes",
    "without_version",
]
