"""Matrices with planted modules, the same in blocks, and the comparison of two fits."""

import dask.array as da
import numpy as np
import scipy.sparse as sp

import netbic
from support.batches import assert_equal_fits

GENERATOR = np.random.default_rng(0)
DENSE = GENERATOR.standard_normal((300, 120)) + 2.0
DENSE[:30, :20] += 1.5
DENSE[100:130, 40:60] -= 1.2
COUNTS = GENERATOR.poisson(0.3, (300, 120)) * 1.0
COUNTS[:30, :20] += GENERATOR.poisson(1.0, (30, 20))
LINKS = np.triu(GENERATOR.uniform(size=(120, 120)) < 0.03, 1)
LINKS[:20, :20] |= np.triu(GENERATOR.uniform(size=(20, 20)) < 0.5, 1)
GRAPH = netbic.Graph(sp.csr_array(LINKS + LINKS.T, dtype=float))


def model(**parameters):
    """Two modules of 30 rows and 20 columns, unless the parameters differ."""
    return netbic.SparseGraphSVD(**({"n_components": 2, "n_rows": 30, "n_columns": 20} | parameters))


def sparse_blocks(X, chunks, kind=sp.csr_array):
    """The matrix in sparse blocks."""
    return da.from_array(X, chunks=(chunks, -1)).map_blocks(kind, meta=kind((0, 0)), dtype=X.dtype)


def assert_same(one, other, tolerance=1e-8):
    """Supports identical, vectors within the tolerance."""
    assert_equal_fits(one, other, tolerance)
    np.testing.assert_array_equal(one.converged_, other.converged_)
