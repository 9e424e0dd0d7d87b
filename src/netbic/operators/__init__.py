"""The matrix as two products.

Everything behind the solver is an :class:`Operator`: it multiplies a vector that is zero outside a support from
either side. :class:`Corrected` adds what must never touch the data: centring, scaling and deflation, as column factors
and low-rank corrections. :class:`Preparation` turns the user's words for centring and scaling into such corrections.
"""

from netbic.deprecation import earlier_names
from netbic.operators.base import DataOperator, Operator
from netbic.operators.base import Floats as Floats
from netbic.operators.base import Indices as Indices
from netbic.operators.corrected import Corrected
from netbic.operators.dense import DenseOperator
from netbic.operators.dispatch import as_operator
from netbic.operators.masked import Masked, learn_from_observed
from netbic.operators.preparation import CENTERS, Preparation, winsorised
from netbic.operators.row_reduction import Look
from netbic.operators.row_reduction import aligned as aligned
from netbic.operators.row_reduction import is_sparse as is_sparse
from netbic.operators.sparse import SparseOperator

__all__ = [
    "CENTERS",
    "Corrected",
    "DataOperator",
    "DenseOperator",
    "Look",
    "Masked",
    "Operator",
    "Preparation",
    "SparseOperator",
    "as_operator",
    "learn_from_observed",
    "winsorised",
]

_OUT_OF_CORE = ("BlockError", "ChunkedOperator", "ClusterError", "RowBlocks", "is_dask")
__getattr__ = earlier_names("netbic.operators", {name: f"netbic.outofcore.{name}" for name in _OUT_OF_CORE})
