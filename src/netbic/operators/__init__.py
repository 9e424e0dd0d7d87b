"""Matrices that are accessed by products with sparse vectors.

The solver sees a matrix as an :class:`Operator`, which multiplies vectors that are zero outside a support from either
side. :class:`DataOperator` is the base class of the data themselves. :class:`Corrected` adds centring, scaling and
deflation as column factors and low-rank corrections, so that the data are never changed. :class:`Scaler` computes the
corrections for the parameters `center` and `scale`.
"""

from netbic.operators.base import DataOperator, Operator, RowReduction, as_operator
from netbic.operators.chunked import ChunkedOperator
from netbic.operators.dense import DenseOperator
from netbic.operators.sparse import SparseOperator

__all__ = [
    "ChunkedOperator",
    "DataOperator",
    "DenseOperator",
    "Operator",
    "RowReduction",
    "SparseOperator",
    "as_operator",
]
