"""The matrix as two products.

Everything behind the solver is an :class:`Operator`: it multiplies a vector that is zero outside a support from
either side. :class:`Corrected` adds what must never touch the data: centring, scaling and deflation, as column factors
and low-rank corrections. :class:`Preparation` turns the user's words for centring and scaling into such corrections.
"""

from typing import Any

import scipy.sparse as sp

from netbic.operators.base import DataOperator, Operator
from netbic.operators.blocks import RowBlocks, is_dask
from netbic.operators.chunked import ChunkedOperator
from netbic.operators.corrected import Corrected
from netbic.operators.dense import DenseOperator
from netbic.operators.masked import Masked, learn_from_observed
from netbic.operators.preparation import CENTERS, Preparation, winsorised
from netbic.operators.scanning import Look
from netbic.operators.sparse import SparseOperator
from netbic.operators.workers import BlockError, ClusterError

__all__ = [
    "CENTERS",
    "BlockError",
    "ChunkedOperator",
    "ClusterError",
    "Corrected",
    "DataOperator",
    "DenseOperator",
    "Look",
    "Masked",
    "Operator",
    "Preparation",
    "RowBlocks",
    "SparseOperator",
    "as_operator",
    "is_dask",
    "learn_from_observed",
    "winsorised",
]


def as_operator(X: Any, low_memory: bool = False) -> DataOperator:
    """The operator for a validated array: dense, CSR or blocks of rows."""
    if isinstance(X, RowBlocks):
        return ChunkedOperator(X)
    return SparseOperator(X) if sp.issparse(X) else DenseOperator(X, low_memory)
