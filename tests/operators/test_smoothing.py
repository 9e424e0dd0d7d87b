"""Smoothed matrices of every kind agree with the explicit inverse."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

import netbic
from netbic.operators.base import as_operator
from netbic.operators.blocks import RowBlocks
from netbic.operators.corrected import Scaler
from netbic.operators.smoothing import SmoothedOperator, Smoother, smoothed

GENERATOR = np.random.default_rng(0)
X = GENERATOR.poisson(0.7, (40, 25)) * GENERATOR.uniform(1, 3, (40, 25))
LINKS = np.triu(GENERATOR.uniform(size=(25, 25)) < 0.15, 1)
LINKS[:, 7] = LINKS[7] = False  # without neighbours
M = netbic.Graph(sp.csr_array(LINKS + LINKS.T, dtype=float)).term("normalized").matrix
KINDS = {
    "dense": lambda X: X,
    "sparse": sp.csr_array,
    "blocks": lambda X: RowBlocks(da.from_array(X, chunks=(9, -1))),
    "sparse blocks": lambda X: RowBlocks(
        da.from_array(X, chunks=(9, -1)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)), dtype=X.dtype)
    ),
}


def inverse(weight):
    return (1 - weight) * np.linalg.inv(np.eye(25) - weight * M.toarray())


@pytest.mark.parametrize("weight", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_the_series_is_the_inverse(weight):
    smoother, expected = Smoother(M, weight), inverse(weight)
    np.testing.assert_allclose(smoother.rows(X), X @ expected, atol=1e-11)
    np.testing.assert_allclose(smoother.columns(X.T), expected @ X.T, atol=1e-11)
    np.testing.assert_allclose(smoother.columns(X[0]), expected @ X[0], atol=1e-11)
    np.testing.assert_allclose(smoother.undo_columns(smoother.columns(X.T)), X.T, atol=1e-9)
    single = smoother.rows(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, X @ expected, atol=2e-5)


def test_smoothing_neither_amplifies_nor_depends_on_the_blocks_of_rows():
    many = np.random.default_rng(1).standard_normal((200, 25))
    together = Smoother(M, 0.9).rows(many)
    one_by_one = np.vstack([Smoother(M, 0.9).rows(row[None]) for row in many])
    np.testing.assert_allclose(together, one_by_one, atol=1e-12)
    assert (np.linalg.norm(together, axis=1) <= np.linalg.norm(many, axis=1)).all()
    np.testing.assert_allclose(together[:, 7], 0.1 * many[:, 7], atol=1e-12)


@pytest.mark.parametrize("weight", [-0.1, 1.0, np.nan])
def test_other_weights_are_refused(weight):
    with pytest.raises(ValueError, match="at least 0 and below 1"):
        Smoother(M, weight)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("turned", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize(("center", "scale"), [(None, False), ("columns", True), ("both", True)])
def test_products_norms_entries_and_gram_matrices(kind, turned, center, scale):
    data = X[:15] if turned else X
    n, p = data.shape
    base = as_operator(kind(data))
    scaler = Scaler.learn(base, center, scale)
    operator = smoothed(scaler.operator(base), Smoother(M, 0.8))
    expected = scaler.apply(data) @ inverse(0.8)
    close = {"atol": 1e-10, "rtol": 1e-10}
    support, values = np.array([1, 4, 7, 12]), np.array([0.5, -1.0, 2.0, 0.3])
    np.testing.assert_allclose(operator.matvec(support, values), expected[:, support] @ values, **close)
    np.testing.assert_allclose(operator.rmatvec(support, values), expected[support].T @ values, **close)
    np.testing.assert_allclose(operator.normal(np.ones(p))[0], expected.T @ (expected @ np.ones(p)), **close)
    np.testing.assert_allclose(operator.products([(support, values)]), [expected[:, support] @ values], **close)
    np.testing.assert_allclose(operator.squared_norm, np.sum(expected**2), **close)
    for found, axis in zip(operator.squared_lengths(), (1, 0), strict=True):
        np.testing.assert_allclose(found, np.sum(expected**2, axis=axis), **close)
    rows = np.triu(operator.gram(True, 2.0, np.float64))
    np.testing.assert_allclose(rows, np.triu(4 * expected @ expected.T), **close)
    columns = np.triu(operator.gram(False, 2.0, np.float64))
    np.testing.assert_allclose(columns, np.triu(4 * expected.T @ expected), **close)
    deflated = operator.minus(np.arange(n) * 1.0, np.ones(p), operator.matvec(np.arange(p), np.ones(p)))
    expected = expected - np.outer(np.arange(n), np.ones(p))
    np.testing.assert_allclose(deflated.rmatvec(support, values), expected[support].T @ values, **close)
    np.testing.assert_allclose(deflated.squared_norm, np.sum(expected**2), **close)


def test_entries_of_an_implicit_matrix():
    operator = SmoothedOperator(as_operator(sp.csr_array(X)), None, Smoother(M, 0.8))
    expected = X @ inverse(0.8)
    np.testing.assert_allclose(operator.toarray(), expected, atol=1e-11)
    few, many = np.array([3, 1]), np.arange(20)
    np.testing.assert_allclose(operator.submatrix(few, many), expected[np.ix_(few, many)], atol=1e-11)
    np.testing.assert_allclose(operator.submatrix(many, few), expected[np.ix_(many, few)], atol=1e-11)
    np.testing.assert_allclose(operator.column_sums(), expected.sum(axis=0), atol=1e-10)
