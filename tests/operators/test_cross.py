"""The cross-product of two tables: every product equals that of dense arrays."""

import numpy as np
import pytest
import scipy.sparse as sp

from netbic.operators.base import as_operator
from netbic.operators.corrected import Scaler
from netbic.operators.cross import Cross, CrossOperator, Table, Whitening

N, P, Q = 17, 30, 23


def tables(kind, whitened=False, removed=0, seed=0):
    """Two tables, and the same as dense arrays."""
    random = np.random.default_rng(seed)
    made = []
    for features in (P, Q):
        X = np.where(random.random((N, features)) < 0.4, random.standard_normal((N, features)) + 1, 0.0)
        X = {"dense": X, "float32": X.astype(np.float32), "sparse": sp.csr_array(X)}[kind]
        data = as_operator(X)
        operator = Scaler.learn(data, "columns", True).operator(data)
        dense = operator.submatrix(np.arange(N), np.arange(features))
        table = Table(operator)
        if whitened:
            U = np.linalg.qr(random.standard_normal((N, 6)))[0]
            table = Table(operator, Whitening(U, np.arange(1.0, 7)))
            dense = U @ np.diag(np.arange(1.0, 7)) @ U.T @ dense
        for direction in np.linalg.qr(random.standard_normal((N, removed)))[0].T if removed else ():
            table, dense = table.without(direction), dense - np.outer(direction, direction @ dense)
        made.append((table, dense))
    return made


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize(("whitened", "removed"), [(False, 0), (True, 0), (False, 2), (True, 3)])
def test_products(kind, whitened, removed):
    (x, X), (y, Y) = tables(kind, whitened, removed)
    C, cross = X.T @ Y, CrossOperator(x, y)
    share = 1e-13 if kind != "float32" else 1e-6  # of the norm of the result

    def check(found, expected):
        np.testing.assert_allclose(found, expected, rtol=0, atol=share * np.linalg.norm(X) * np.linalg.norm(Y))

    random = np.random.default_rng(1)
    columns, rows = np.array([1, 4, 20]), np.array([0, 7, 8, 29])
    v, u = random.standard_normal(3), random.standard_normal(4)
    check(cross.matvec(columns, v), C[:, columns] @ v)
    check(cross.rmatvec(rows, u), C[rows].T @ u)
    check(cross.submatrix(rows, columns), C[np.ix_(rows, columns)])
    check(cross.formed(), C)
    check(x.gram(), X @ X.T)
    V = random.standard_normal((Q, 3))
    products, images = cross.normal(V, np.zeros((cross.shape[0], V.shape[1])))
    check(images / np.linalg.norm(V), C @ V / np.linalg.norm(V))
    size = np.linalg.norm(C) * np.linalg.norm(V)
    check(products / size, C.T @ C @ V / size)


def test_parts_have_the_layers_of_deflation():
    (x, X), (y, Y) = tables("sparse", whitened=True, removed=1)
    random = np.random.default_rng(2)
    left, right = random.standard_normal(P), random.standard_normal(Q)
    sparse_left, sparse_right = np.eye(P)[3] + np.eye(P)[20], np.eye(Q)[5]
    cross = Cross(x, y, 1.0).less(left, right, 1.0).less(sparse_left, sparse_right, 2.0)
    C = X.T @ Y - np.outer(left, right) - np.outer(sparse_left, sparse_right)
    rows, columns = np.array([2, 3, 20, 21]), np.array([0, 5, 6])
    part = cross.part(rows, columns)
    every_row, every_column = np.arange(4), np.arange(3)
    dense = np.array([part.matvec(np.array([j]), np.ones(1)) for j in every_column]).T
    np.testing.assert_allclose(dense, C[np.ix_(rows, columns)], atol=1e-12)
    dense = np.array([part.rmatvec(np.array([i]), np.ones(1)) for i in every_row])
    np.testing.assert_allclose(dense, C[np.ix_(rows, columns)], atol=1e-12)
    np.testing.assert_allclose(cross.matvec(columns, np.ones(3)), C[:, columns].sum(axis=1), atol=1e-12)
    assert cross.squared_norm == 2.0
