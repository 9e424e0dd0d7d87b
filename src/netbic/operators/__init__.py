"""Matrices that are accessed by products with sparse vectors.

The solver sees a matrix as an :class:`Operator`, which multiplies vectors that are zero outside a support from either
side. :class:`DataOperator` is the base class of the data themselves. :class:`Corrected` adds centring, scaling and
deflation as column factors and low-rank corrections, so that the data are never changed. :class:`Scaler` computes the
corrections for the parameters `center` and `scale`.
"""

from netbic.deprecation import earlier_names
from netbic.operators.base import DataOperator, Operator
from netbic.operators.corrected import Corrected
from netbic.operators.cross import Cross, CrossOperator, Table, Whitening
from netbic.operators.dense import DenseOperator
from netbic.operators.dispatch import as_operator
from netbic.operators.masked import Masked, learn_from_observed
from netbic.operators.row_reduction import RowReduction
from netbic.operators.row_reduction import aligned as aligned
from netbic.operators.scaler import CENTERS, Scaler, winsorised
from netbic.operators.smoothing import SmoothedOperator, Smoother, scaled_rows, smoothed, smoothed_rows
from netbic.operators.sparse import SparseOperator

__all__ = [
    "CENTERS",
    "Corrected",
    "Cross",
    "CrossOperator",
    "DataOperator",
    "DenseOperator",
    "Masked",
    "Operator",
    "RowReduction",
    "Scaler",
    "SmoothedOperator",
    "Smoother",
    "SparseOperator",
    "Table",
    "Whitening",
    "as_operator",
    "learn_from_observed",
    "scaled_rows",
    "smoothed",
    "smoothed_rows",
    "winsorised",
]

_OUT_OF_CORE = ("BlockError", "ChunkedOperator", "ClusterError", "RowBlocks", "is_dask")
_EARLIER = {name: f"netbic.outofcore.{name}" for name in _OUT_OF_CORE}
_EARLIER |= {"Look": "netbic.operators.RowReduction", "Preparation": "netbic.operators.Scaler"}
__getattr__ = earlier_names("netbic.operators", _EARLIER)
