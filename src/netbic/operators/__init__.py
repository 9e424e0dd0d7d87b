"""Matrices that are accessed by products with sparse vectors.

The solver sees a matrix as an :class:`Operator`, which multiplies vectors that are zero outside a support from either
side. :class:`DataOperator` is the base class of the data themselves. :class:`Corrected` adds centring, scaling and
deflation as column factors and low-rank corrections, so that the data are never changed. :class:`Scaler` computes the
corrections for the parameters `center` and `scale`.
"""

from netbic.operators.base import DataOperator, Operator, RowReduction, as_operator
from netbic.operators.base import aligned as aligned
from netbic.operators.blocks import (
    ColumnStatistics,
    RowBlocks,
    column_statistics,
    compute_rows,
    map_rows,
    passes,
    released,
    select_columns,
)
from netbic.operators.chunked import ChunkedOperator
from netbic.operators.corrected import CENTERS, Corrected, Scaler, winsorised
from netbic.operators.cross import Cross, CrossOperator, Table, Whitening
from netbic.operators.dense import DenseOperator
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
from netbic.operators.smoothing import SmoothedOperator, Smoother, scaled_rows, smoothed, smoothed_rows
from netbic.operators.sparse import SparseOperator

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
