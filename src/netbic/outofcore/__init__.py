"""Matrices in blocks of rows, on disk or on a cluster: the operator, and the executors that visit the blocks."""

from netbic.outofcore.blocks import RowBlocks, is_dask
from netbic.outofcore.executors import BlockError, Cluster, ClusterError, current_workers, free_memory
from netbic.outofcore.map_blocks import by_blocks, of_columns
from netbic.outofcore.operator import ChunkedOperator
from netbic.outofcore.scan import Scan, scan

__all__ = [
    "BlockError",
    "ChunkedOperator",
    "Cluster",
    "ClusterError",
    "RowBlocks",
    "Scan",
    "by_blocks",
    "current_workers",
    "free_memory",
    "is_dask",
    "of_columns",
    "scan",
]
