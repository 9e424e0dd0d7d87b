"""Matrices that are accessed by products with sparse vectors.

The solver sees a matrix as an :class:`Operator`, which multiplies vectors that are zero outside a support from either
side. :class:`DataOperator` is the base class of the data themselves. :class:`Corrected` adds centring, scaling and
deflation as column factors and low-rank corrections, so that the data are never changed. :class:`Scaler` computes the
corrections for the parameters `center` and `scale`.
"""

from netbic.operators.base import DataOperator, Operator
from netbic.operators.blocks import RowBlocks, is_dask
from netbic.operators.corrected import Corrected
from netbic.operators.cross import Cross, CrossOperator, Table, Whitening
from netbic.operators.dense import DenseOperator
from netbic.operators.dispatch import as_operator
from netbic.operators.executors import (
    BlockError,
    BlockExecutor,
    ClusterError,
    ClusterExecutor,
    ThreadExecutor,
    current_executor,
    free_memory,
)
from netbic.operators.masked import Masked, learn_from_observed
from netbic.operators.operator import ChunkedOperator
from netbic.operators.row_reduction import RowReduction
from netbic.operators.row_reduction import aligned as aligned
from netbic.operators.rowwise import compute_rows, map_rows, passes, released, select_columns
from netbic.operators.scaler import CENTERS, Scaler, winsorised
from netbic.operators.smoothing import SmoothedOperator, Smoother, scaled_rows, smoothed, smoothed_rows
from netbic.operators.sparse import SparseOperator
from netbic.operators.statistics import ColumnStatistics, column_statistics

__all__ = [
    "CENTERS",
    "BlockError",
    "BlockExecutor",
    "ChunkedOperator",
    "ClusterError",
    "ClusterExecutor",
    "ColumnStatistics",
    "Corrected",
    "Cross",
    "CrossOperator",
    "DataOperator",
    "DenseOperator",
    "Masked",
    "Operator",
    "RowBlocks",
    "RowReduction",
    "Scaler",
    "SmoothedOperator",
    "Smoother",
    "SparseOperator",
    "Table",
    "ThreadExecutor",
    "Whitening",
    "as_operator",
    "column_statistics",
    "compute_rows",
    "current_executor",
    "free_memory",
    "is_dask",
    "learn_from_observed",
    "map_rows",
    "passes",
    "released",
    "scaled_rows",
    "select_columns",
    "smoothed",
    "smoothed_rows",
    "winsorised",
]
