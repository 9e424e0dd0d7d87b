"""The matrix that an operator represents."""

import numpy as np


def entries_of(operator):
    """All entries, by products with unit vectors from either side."""
    n, p = operator.shape
    by_columns = np.column_stack([operator.matvec(np.array([j]), np.ones(1)) for j in range(p)])
    by_rows = np.array([operator.rmatvec(np.array([i]), np.ones(1)) for i in range(n)])
    np.testing.assert_allclose(by_rows, by_columns, atol=1e-10)
    return by_columns
