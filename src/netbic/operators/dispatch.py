"""Which operator holds which kind of matrix: the one place where kinds of matrices are told apart."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from netbic.operators.base import DataOperator
from netbic.operators.dense import DenseOperator
from netbic.operators.sparse import SparseOperator


@singledispatch
def as_operator(X: Any, low_memory: bool = False) -> DataOperator:
    """Make the operator for a validated matrix.

    Arrays and sparse matrices are known here, blocks of rows are registered by `netbic.outofcore`. A matrix class of
    your own joins with ``as_operator.register``.

    Parameters
    ----------
    X : array, CSR matrix or RowBlocks
    low_memory : bool
        Keep a dense X in one memory order instead of both.
    """
    raise TypeError(f"X is a {type(X).__name__}: no operator is registered for it (see netbic.operators.as_operator)")


@as_operator.register
def _dense(X: np.ndarray, low_memory: bool = False) -> DataOperator:
    return DenseOperator(X, low_memory)


@as_operator.register(sp.sparray)
@as_operator.register(sp.spmatrix)
def _sparse(X: Any, low_memory: bool = False) -> DataOperator:
    return SparseOperator(X)
