"""Matrices in blocks of rows, on disk or on a cluster: the operator, and the executors of functions of blocks."""

from netbic.outofcore.blocks import RowBlocks, is_dask
from netbic.outofcore.executors import (
    BlockError,
    BlockExecutor,
    ClusterError,
    ClusterExecutor,
    ThreadExecutor,
    current_executor,
    free_memory,
)
from netbic.outofcore.operator import ChunkedOperator
from netbic.outofcore.rowwise import compute_rows, map_rows, passes, released, select_columns
from netbic.outofcore.statistics import ColumnStatistics, column_statistics

__all__ = [
    "BlockError",
    "BlockExecutor",
    "ChunkedOperator",
    "ClusterError",
    "ClusterExecutor",
    "ColumnStatistics",
    "RowBlocks",
    "ThreadExecutor",
    "column_statistics",
    "compute_rows",
    "current_executor",
    "free_memory",
    "is_dask",
    "map_rows",
    "passes",
    "released",
    "select_columns",
]
