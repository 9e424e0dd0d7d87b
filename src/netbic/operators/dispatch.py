"""Which operator is used for which kind of matrix."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import scipy.sparse as sp

from netbic.arrays import Matrix
from netbic.operators.base import DataOperator
from netbic.operators.dense import DenseOperator
from netbic.operators.sparse import SparseOperator


@singledispatch
def as_operator(X: Matrix, low_memory: bool = False) -> DataOperator:
    """The operator of a validated matrix.

    Arrays and sparse matrices are registered here, blocks of rows by `netbic.operators`. An operator is returned
    unchanged. Register another class of matrices with ``as_operator.register``.

    Parameters
    ----------
    X : array, CSR matrix, RowBlocks or DataOperator
    low_memory : bool
        Keep a dense X in one memory order instead of both.

    Examples
    --------
    >>> import numpy as np
    >>> as_operator(np.eye(3)).row_sums()
    array([1., 1., 1.])
    """
    raise TypeError(
        f"X is a {type(X).__name__}: give an array, a sparse matrix, a Dask array or a netbic.operators.DataOperator"
    )


@as_operator.register
def _operator(X: DataOperator, low_memory: bool = False) -> DataOperator:
    return X


@as_operator.register
def _dense(X: np.ndarray, low_memory: bool = False) -> DataOperator:
    return DenseOperator(X, low_memory)


@as_operator.register(sp.sparray)
@as_operator.register(sp.spmatrix)
def _sparse(X: Matrix, low_memory: bool = False) -> DataOperator:
    return SparseOperator(X)
