"""The matrix as two products.

Everything behind the solver is an :class:`Operator`: it multiplies a vector that is zero outside a support from
either side. :class:`Corrected` adds what must never touch the data: centring, scaling and deflation, as column factors
and low-rank corrections. :class:`Preparation` turns the user's words for centring and scaling into such corrections.
"""

from netbic.operators.base import Operator
from netbic.operators.corrected import Corrected
from netbic.operators.dense import DenseOperator
from netbic.operators.preparation import CENTERS, Preparation

__all__ = ["CENTERS", "Corrected", "DenseOperator", "Operator", "Preparation"]
