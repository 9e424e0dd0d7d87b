"""Expression matrices, networks, gene sets and tables, read and checked; nothing is written here."""

from netbic.readers.characters import check_characters
from netbic.readers.expression import (
    Expression,
    TenX,
    as_matrix,
    check_names,
    check_options,
    file_format,
    float_type,
    number_table,
    parts_of_10x,
    read_expression,
    stored_numbers,
)
from netbic.readers.gene_sets import GeneSets, read_gene_sets
from netbic.readers.lazy import BLOCK_BYTES, RowSource, as_floats, open_expression, row_source, store_source
from netbic.readers.names import ENSEMBL, renaming, without_version
from netbic.readers.networks import Network, NetworkSummary, read_network
from netbic.readers.parquet import not_parquet, open_parquet
from netbic.readers.stores import WHOLE, StoredMatrix, describe, foreign_files, is_store, stored_columns
from netbic.readers.tables import NameArray, NumberTable, number_pieces
from netbic.readers.text import MISSING, single_spaced, text_pieces
from netbic.readers.unpacking import check_archive

__all__ = [
    "BLOCK_BYTES",
    "ENSEMBL",
    "MISSING",
    "WHOLE",
    "Expression",
    "GeneSets",
    "NameArray",
    "Network",
    "NetworkSummary",
    "NumberTable",
    "RowSource",
    "StoredMatrix",
    "TenX",
    "as_floats",
    "as_matrix",
    "check_archive",
    "check_characters",
    "check_names",
    "check_options",
    "describe",
    "file_format",
    "float_type",
    "foreign_files",
    "is_store",
    "not_parquet",
    "number_pieces",
    "number_table",
    "open_expression",
    "open_parquet",
    "parts_of_10x",
    "read_expression",
    "read_gene_sets",
    "read_network",
    "renaming",
    "row_source",
    "single_spaced",
    "store_source",
    "stored_columns",
    "stored_numbers",
    "text_pieces",
    "without_version",
]
