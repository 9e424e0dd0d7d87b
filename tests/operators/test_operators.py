"""Every operator, compared with plain numpy."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from netbic.operators.base import DataOperator, RowReduction
from netbic.operators.blocks import RowBlocks
from netbic.operators.chunked import ChunkedOperator
from netbic.operators.corrected import Scaler
from netbic.operators.dense import _BLOCK_ENTRIES, DenseOperator
from netbic.operators.sparse import SparseOperator
from support.operator_entries import entries_of

GENERATOR = np.random.default_rng(0)
COUNTS = GENERATOR.poisson(0.5, (30, 20)) * GENERATOR.uniform(1, 3, (30, 20)) + (np.arange(20) == 4) * 5.0


def with_wide_indices(X):
    matrix = sp.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


class ProductsOnly(DataOperator):
    """Every default of the base class."""

    def __init__(self, X):
        super().__init__(X.shape, X.dtype)
        self.matvec, self.rmatvec = DenseOperator(X).matvec, DenseOperator(X).rmatvec

    def matvec(self, support, values): ...

    def rmatvec(self, support, values): ...


OPERATORS = {
    "defaults": ProductsOnly,
    "dense, row by row": lambda X: DenseOperator(np.ascontiguousarray(X)),
    "dense, column by column": lambda X: DenseOperator(np.asfortranarray(X)),
    "dense, packed": lambda X: DenseOperator(X).for_one_start(),
    "dense, low memory": lambda X: DenseOperator(X, low_memory=True),
    "dense, low memory, packed": lambda X: DenseOperator(np.asfortranarray(X), low_memory=True).for_one_start(),
    "sparse": lambda X: SparseOperator(sp.csr_array(X)),
    "sparse, 64-bit indices": lambda X: SparseOperator(with_wide_indices(X)),
    "blocks": lambda X: ChunkedOperator(RowBlocks(da.from_array(X, chunks=(7, -1)))),
    "blocks, one": lambda X: ChunkedOperator(RowBlocks(da.from_array(X, chunks=-1))),
    "blocks, sparse": lambda X: ChunkedOperator(RowBlocks(sparse_blocks(X))),
}


def sparse_blocks(X):
    return da.from_array(X, chunks=((1, 9, 20), -1)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)), dtype=X.dtype)


SUMMARISED = {name: make for name, make in OPERATORS.items() if "packed" not in name}

every_operator = pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
every_data_operator = pytest.mark.parametrize("make", SUMMARISED.values(), ids=SUMMARISED)


def scaled_by_hand(X, center, scale):
    deviations = X.std(axis=0) if scale else 1.0
    offset = {
        None: 0.0,
        "columns": X.mean(axis=0),
        "rows": X.mean(axis=1, keepdims=True),
        "both": X.mean(axis=0) + X.mean(axis=1, keepdims=True) - X.mean(),
        "grand": X.mean(),
    }[center]
    return (X - offset) / deviations


@every_operator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(make, dtype):
    X = COUNTS.astype(dtype)
    X.flags.writeable = False
    operator = make(X)
    tol = 1e-5 if dtype == np.float32 else 1e-13
    generator = np.random.default_rng(1)
    for kept in (1, 3, 3, 4, 18, 20):
        columns, rows = (np.sort(generator.choice(size, kept, replace=False)) for size in (20, 30))
        values = generator.standard_normal(kept)
        product, transposed = operator.matvec(columns, values), operator.rmatvec(rows, values)
        np.testing.assert_allclose(product, COUNTS[:, columns] @ values, atol=30 * tol)
        np.testing.assert_allclose(transposed, COUNTS[rows].T @ values, atol=30 * tol)
        assert product.dtype == transposed.dtype == np.float64


@every_operator
def test_submatrix(make):
    operator = make(COUNTS)
    for rows, columns in (
        ([3], [5, 2, 19]),
        ([29, 0, 7, 8], [4, 1]),
        ([], [1, 2]),
        (range(30), range(20)),
        ([2], []),
        (range(29, -1, -1), [3, 1]),
    ):
        at = np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)
        found = operator.submatrix(*at)
        np.testing.assert_array_equal(found, COUNTS[np.ix_(*at)])
        assert found.dtype == operator.dtype
    np.testing.assert_array_equal(operator.toarray(), COUNTS)


def test_packed_lines_survive_any_sequence_of_supports():
    X = np.random.default_rng(2).standard_normal((40, 50))
    operator = DenseOperator(X).for_one_start()
    generator = np.random.default_rng(3)
    support = np.sort(generator.choice(40, 8, replace=False))
    for step in range(200):
        if step % 20 == 0:
            support = np.sort(generator.choice(40, generator.integers(1, 12), replace=False))
        else:
            swapped = generator.integers(support.size)
            support = np.sort(
                np.append(np.delete(support, swapped), generator.choice(np.setdiff1d(range(40), support)))
            )
        values = generator.standard_normal(support.size)
        np.testing.assert_allclose(operator.rmatvec(support, values), X[support].T @ values, atol=1e-12)
        if step % 7 == 0:
            operator.reset_cache()
        again = generator.standard_normal(support.size)  # the same array of indices, also after a reset
        np.testing.assert_allclose(operator.rmatvec(support, again), X[support].T @ again, atol=1e-12)


@every_data_operator
def test_sums(make):
    operator = make(COUNTS)
    np.testing.assert_allclose(operator.row_sums(), COUNTS.sum(axis=1))
    np.testing.assert_allclose(operator.column_sums(), COUNTS.sum(axis=0))
    generator = np.random.default_rng(4)
    for r, c in ((generator.random(30), generator.random(20)), (np.zeros(30), COUNTS.mean(axis=0))):
        squares = (COUNTS - r[:, None] - c) ** 2
        np.testing.assert_allclose(operator.column_squares(r, c), squares.sum(axis=0))
        factors = generator.random(20)
        assert operator.squared_norm(r, c, None) == pytest.approx(squares.sum())
        assert operator.squared_norm(r, c, factors) == pytest.approx(np.sum(squares * factors**2))


def test_squared_norm_of_a_matrix_far_from_zero():
    X = 1e8 + np.random.default_rng(5).standard_normal((30, 20))
    exact = np.sum((X - X.mean(axis=0)) ** 2)
    assert DenseOperator(X).squared_norm(np.zeros(30), X.mean(axis=0), None) == pytest.approx(exact, rel=1e-6)


def test_column_squares_in_blocks():
    wide = np.random.default_rng(6).standard_normal((5, _BLOCK_ENTRIES // 2))
    squares = DenseOperator(wide).column_squares(np.zeros(5), np.zeros(wide.shape[1]))
    np.testing.assert_allclose(squares, np.sum(wide**2, axis=0))


@every_data_operator
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [None, "columns", "rows", "both", "grand"])
def test_scaling_equals_plain_arithmetic(make, center, scale):
    data = make(COUNTS)
    scaler = Scaler.learn(data, center, scale)
    operator = scaler.operator(data)
    expected = scaled_by_hand(COUNTS, center, scale)
    np.testing.assert_allclose(entries_of(operator), expected, atol=1e-10)
    np.testing.assert_allclose(entries_of(operator.for_one_start()), expected, atol=1e-10)
    assert operator.squared_norm == pytest.approx(np.sum(expected**2))
    np.testing.assert_allclose(scaler.apply(COUNTS), expected, atol=1e-10)
    directions = np.random.default_rng(7).standard_normal((20, 3))
    for X in (COUNTS, sp.csr_array(COUNTS)):
        np.testing.assert_allclose(scaler.project(X, directions), expected @ directions, atol=1e-9)
    if center not in ("rows", "both"):
        np.testing.assert_allclose(scaler.undo(expected), COUNTS, atol=1e-10)


@every_data_operator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("on_rows", [True, False])
@pytest.mark.parametrize("center", [None, "columns", "both"])
def test_gram(make, dtype, on_rows, center):
    data = make(COUNTS)
    operator = Scaler.learn(data, center, center == "both").operator(data)
    Y = 4.0 * scaled_by_hand(COUNTS, center, center == "both")
    expected = Y @ Y.T if on_rows else Y.T @ Y
    gram = operator.gram(on_rows, 4.0, dtype)
    assert gram.dtype == dtype
    np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=1e-9 if dtype == np.float64 else 1e-2, rtol=1e-5)


@pytest.mark.parametrize("on_rows", [True, False])
@pytest.mark.parametrize("center", ["columns", "both"])
def test_gram_of_data_that_are_almost_centred(on_rows, center):
    """Small offsets are subtracted from the Gram matrix instead of the data."""
    X = np.random.default_rng(9).standard_normal((30, 20)) + 0.05
    for dtype in (np.float64, np.float32):
        data = DenseOperator(X.astype(dtype))
        gram = Scaler.learn(data, center, False).operator(data).gram(on_rows, 1.0, dtype)
        Y = scaled_by_hand(X, center, False)
        expected = Y @ Y.T if on_rows else Y.T @ Y
        np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=1e-10 if dtype == np.float64 else 1e-4)


@every_data_operator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_columns_are_not_inflated_by_scaling(make, dtype):
    X = COUNTS.astype(dtype)
    X[:, 3] = 0.1
    scaler = Scaler.learn(make(X), "columns", True)
    assert scaler.factors[3] == 1
    assert np.abs(scaler.apply(X)[:, 3]).max() < 1e-6


@every_data_operator
@pytest.mark.parametrize("scale", [1e20, 1e-25])
def test_single_precision_squares_do_not_overflow(make, scale):
    squares = make((scale * COUNTS).astype(np.float32)).column_squares(np.zeros(30), np.zeros(20))
    np.testing.assert_allclose(squares, scale**2 * np.sum(COUNTS**2, axis=0), rtol=1e-5)


@every_data_operator
def test_corrections_add_up_and_keep_the_norm(make):
    data = make(COUNTS)
    operator = Scaler.learn(data, "columns", False).operator(data)
    expected = COUNTS - COUNTS.mean(axis=0)
    generator = np.random.default_rng(8)
    for kept in (20, 3, 3):
        a, b = generator.standard_normal(30), generator.standard_normal(20)
        a[kept:], b[kept:] = 0, 0
        operator = operator.minus(a, b, operator.matvec(np.arange(20), b))
        expected = expected - np.outer(a, b)
    np.testing.assert_allclose(entries_of(operator), expected, atol=1e-10)
    assert operator.squared_norm == pytest.approx(np.sum(expected**2))


@every_data_operator
@pytest.mark.parametrize("center", [None, "both"])
def test_quantities_that_are_not_products(make, center):
    """Squared lengths, the largest entry, many products and X'X w, after corrections and layers of both kinds."""
    data = make(COUNTS)
    operator = Scaler.learn(data, center, scale=True).operator(data)
    generator = np.random.default_rng(4)
    sparse = (generator.uniform(size=30) < 0.1) * 3.0, (generator.uniform(size=20) < 0.1) * 2.0
    for left, right in ((generator.standard_normal(30), generator.standard_normal(20)), sparse):
        operator = operator.minus(left, right, operator.matvec(np.arange(20), right))
    X = entries_of(operator)
    rows, columns = operator.squared_lengths()
    np.testing.assert_allclose(rows, (X**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(columns, (X**2).sum(axis=0), rtol=1e-12)
    assert operator.largest_entry() == np.unravel_index(X.argmax(), X.shape)
    vector = generator.standard_normal(20)
    product, image = operator.normal(vector)
    np.testing.assert_allclose(product, X.T @ (X @ vector), atol=1e-11)
    np.testing.assert_allclose(image, X @ vector, atol=1e-12)
    vectors, weights = generator.standard_normal((20, 3)), generator.integers(0, 2, (30, 3))
    product, image = operator.normal(vectors, weights)
    np.testing.assert_allclose(image, weights * (X @ vectors), atol=1e-12)
    np.testing.assert_allclose(product, X.T @ image, atol=1e-11)
    np.testing.assert_allclose(operator.left_products(image), product.T, atol=1e-11)
    supports = [np.array([2, 5, 11]), np.arange(20)]
    products = operator.products([(support, vector[support]) for support in supports])
    np.testing.assert_allclose(products, [X[:, one] @ vector[one] for one in supports], atol=1e-12)


def test_sparse_products_in_many_blocks(monkeypatch):
    """Blocks of two rows and groups of eight vectors give what the whole matrix gives, and X is not copied."""
    monkeypatch.setattr("netbic.operators.sparse._BLOCK_ENTRIES", 20)
    monkeypatch.setattr("netbic.operators.sparse._CACHED_ENTRIES", 1)
    X = sp.csr_array(COUNTS)
    operator, generator = SparseOperator(X), np.random.default_rng(0)
    blocks = [block for _, block in operator._blocks()]
    assert len(blocks) > 10
    assert all(np.shares_memory(block.data, X.data) for block in blocks)
    np.testing.assert_array_equal(sp.vstack(blocks).toarray(), COUNTS)
    vectors, offsets = generator.standard_normal((20, 19)), generator.standard_normal((30, 19))
    products, images = operator.normal(vectors, offsets)
    np.testing.assert_allclose(images, COUNTS @ vectors - offsets, atol=1e-12)
    np.testing.assert_allclose(products, COUNTS.T @ images, atol=1e-11)
    np.testing.assert_allclose(operator.left_products(images), products.T, atol=1e-11)
    lengths = operator.squared_lengths(np.ones(20), offsets, vectors)
    for found, axis in zip(lengths, (1, 0), strict=True):
        np.testing.assert_allclose(found, ((COUNTS - offsets @ vectors.T) ** 2).sum(axis=axis), rtol=1e-12)


@pytest.mark.parametrize("make", [OPERATORS["sparse"], OPERATORS["blocks, sparse"]], ids=["in memory", "blocks"])
def test_squared_lengths_of_a_sparse_matrix_make_no_row_dense(make, monkeypatch):
    data = make(COUNTS)
    operator = Scaler.learn(data, "columns", scale=True).operator(data)
    monkeypatch.setattr(RowReduction, "over_slabs", lambda *_: pytest.fail("rows were made dense"))
    np.testing.assert_allclose(operator.squared_lengths()[1], 30)


def test_moments_of_a_sparse_matrix_are_computed_once(monkeypatch):
    passes, blocks = [], SparseOperator._blocks
    monkeypatch.setattr(SparseOperator, "_blocks", lambda self: passes.append(1) or blocks(self))
    data = SparseOperator(sp.csr_array(COUNTS))
    operator = Scaler.learn(data, "columns", scale=True).operator(data)
    assert operator.squared_norm == pytest.approx(600)
    assert len(passes) == 1
