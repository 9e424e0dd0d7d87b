"""Matrices of floats: which precision is used, and conversion to dense or CSR arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from netbic.arrays import Array, Matrix, checked, is_sparse

NameArray = NDArray[np.object_]
Step = dict[str, Any]  # of the preprocessing: its name ("step"), counts and the genes concerned


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Floats are kept (half precision becomes single); single precision holds small integers exactly."""
    dtype = np.dtype(dtype)
    small = dtype.kind in "iub" and dtype.itemsize <= 2
    return np.dtype(np.float32 if small or dtype in (np.float16, np.float32) else np.float64)


def as_matrix(values: Matrix) -> Matrix:
    """A dense array or CSR matrix of floats; masked entries of a masked array are missing (NaN)."""
    values = checked(values)
    matrix: Matrix = sp.csr_array(values) if is_sparse(values) else np.asarray(values)
    return matrix.astype(float_type(matrix.dtype), copy=False)


def native(values: Any) -> Array:
    """An array in the byte order of this machine, which SciPy's compiled code needs."""
    array = np.asarray(values)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def as_names(names: Any) -> NameArray:
    """Names as text without blanks around them."""
    return np.array([str(name).strip() for name in names], dtype=object)
