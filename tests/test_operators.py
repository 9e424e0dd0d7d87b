"""Operators against plain numpy."""

import numpy as np
import pytest

from netbic.operators import DenseOperator, Preparation
from netbic.operators.dense import _BLOCK_ENTRIES

GENERATOR = np.random.default_rng(0)
X = GENERATOR.standard_normal((30, 20)) + 3 * GENERATOR.standard_normal(20) + 100


def written_out(operator):
    n, p = operator.shape
    by_columns = np.column_stack([operator.matvec(np.array([j]), np.ones(1)) for j in range(p)])
    by_rows = np.array([operator.rmatvec(np.array([i]), np.ones(1)) for i in range(n)])
    np.testing.assert_allclose(by_rows, by_columns, atol=1e-10)
    return by_columns


def prepared_by_hand(X, center, scale):
    deviations = X.std(axis=0) if scale else 1.0
    offset = {
        None: 0.0,
        "columns": X.mean(axis=0),
        "rows": X.mean(axis=1, keepdims=True),
        "both": X.mean(axis=0) + X.mean(axis=1, keepdims=True) - X.mean(),
        "grand": X.mean(),
    }[center]
    return (X - offset) / deviations


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kept", [2, 18])
def test_dense_products(dtype, order, kept):
    data = np.asarray(X, dtype=dtype, order=order)
    data.flags.writeable = False
    operator = DenseOperator(data)
    columns, rows = np.arange(kept), np.arange(kept) + 1
    values = GENERATOR.standard_normal(kept)
    tol = 1e-4 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(operator.matvec(columns, values), X[:, columns] @ values, rtol=tol, atol=100 * tol)
    np.testing.assert_allclose(operator.rmatvec(rows, values), X[rows].T @ values, rtol=tol, atol=100 * tol)
    assert operator.matvec(columns, values).dtype == np.float64


def test_dense_sums():
    operator = DenseOperator(X)
    np.testing.assert_allclose(operator.row_sums(), X.sum(axis=1))
    np.testing.assert_allclose(operator.column_sums(), X.sum(axis=0))
    r, c = GENERATOR.standard_normal(30), GENERATOR.standard_normal(20)
    expected = np.sum((X - r[:, None] - c) ** 2, axis=0)
    np.testing.assert_allclose(operator.column_squares(r, c), expected)


def test_column_squares_in_blocks():
    wide = GENERATOR.standard_normal((5, _BLOCK_ENTRIES // 2))
    squares = DenseOperator(wide).column_squares(np.zeros(5), np.zeros(wide.shape[1]))
    np.testing.assert_allclose(squares, np.sum(wide**2, axis=0))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [None, "columns", "rows", "both", "grand"])
def test_preparation_is_the_arithmetic_it_says(center, scale):
    data = DenseOperator(X)
    preparation = Preparation.learn(data, center, scale)
    operator = preparation.operator(data)
    expected = prepared_by_hand(X, center, scale)
    np.testing.assert_allclose(written_out(operator), expected, atol=1e-10)
    assert operator.squared_norm == pytest.approx(np.sum(expected**2))
    np.testing.assert_allclose(preparation.apply(X), expected, atol=1e-10)
    if center not in ("rows", "both"):
        np.testing.assert_allclose(preparation.undo(expected), X, atol=1e-10)


def test_constant_columns_are_not_blown_up_by_scaling():
    data = X.copy()
    data[:, 3] = 0.1
    prepared = Preparation.learn(DenseOperator(data), "columns", True).apply(data)
    assert np.abs(prepared[:, 3]).max() < 1e-12


def test_corrections_add_up_and_keep_the_norm():
    data = DenseOperator(X)
    operator = Preparation.learn(data, "columns", False).operator(data)
    expected = X - X.mean(axis=0)
    for _ in range(3):
        a, b = GENERATOR.standard_normal(30), GENERATOR.standard_normal(20)
        b[5:] = 0
        operator, expected = operator.minus(a, b, operator.matvec(np.arange(20), b)), expected - np.outer(a, b)
    np.testing.assert_allclose(written_out(operator), expected, atol=1e-10)
    assert operator.squared_norm == pytest.approx(np.sum(expected**2))
