"""A Dask array gives the same modules as the matrix in memory."""

import tracemalloc

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import netbic
from netbic.operators import blocks, chunked
from netbic.operators.blocks import RowBlocks
from netbic.operators.chunked import ChunkedOperator
from support.block_problems import COUNTS, DENSE, GRAPH, assert_same, model, sparse_blocks

PARAMETERS = {
    "usual": {},
    "scaled": {"scale": True},
    "centred both ways": {"center": "both"},
    "rows centred": {"center": "rows"},
    "grand mean": {"center": "grand"},
    "as it is": {"center": None},
    "graph": {"column_graph": GRAPH, "column_smoothness": 0.3},
    "restarts": {"n_init": 3, "random_state": 0},
    "projected": {"deflation": "projection"},
    "schur": {"deflation": "schur"},
    "the paper's": {"solver": "aisp", "column_graph": GRAPH},
    "all rows": {"n_rows": None},
    "all columns": {"n_columns": None, "column_penalty": netbic.Dense()},
    "everything": {"n_rows": None, "n_columns": None, "column_penalty": netbic.Dense()},
    "columns from the data": {"n_columns": None},
    "everything from the data": {"n_rows": None, "n_columns": None, "n_components": "auto"},
    "all rows, with a graph": {"n_rows": None, "column_graph": GRAPH},
    "soft": {"n_rows": None, "row_penalty": netbic.L1Ball(3.0)},
    "non-negative": {"n_columns": None, "column_penalty": netbic.L0(20, nonnegative=True)},
}
all_parameters = pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)


def in_blocks(X, height=70):
    return da.from_array(X, chunks=(height, -1))


@all_parameters
def test_blocks_of_any_kind(parameters):
    """Dense, sparse, and more columns than rows."""
    assert_same(model(**parameters).fit(DENSE), model(**parameters).fit(in_blocks(DENSE)))
    assert_same(model(**parameters).fit(sp.csr_array(COUNTS)), model(**parameters).fit(sparse_blocks(COUNTS, 70)))
    parameters = {name: parameters[name] for name in parameters.keys() - {"column_graph", "column_smoothness"}}
    X = np.ascontiguousarray(DENSE.T)
    assert_same(model(**parameters).fit(X), model(**parameters).fit(in_blocks(X, 25)))


@pytest.fixture
def by_passes(monkeypatch):
    """Starts and subspaces are computed as for a matrix with two long sides: by passes over X, not exactly."""
    monkeypatch.setattr("netbic.solver.starts._GRAM_SIZE", 10)
    monkeypatch.setattr("netbic.solver.starts._EXACT_WORK", 0)
    monkeypatch.setattr("netbic.solver.joint._GRAM_SIZE", 0)
    monkeypatch.setattr("netbic.solver.joint._SMALL", 0)


@all_parameters
def test_starts_by_passes(parameters, by_passes):
    """Rows and columns are packed together before a module is searched for."""
    assert_same(model(**parameters).fit(DENSE), model(**parameters).fit(in_blocks(DENSE)))
    assert_same(model(**parameters).fit(sp.csr_array(COUNTS)), model(**parameters).fit(sparse_blocks(COUNTS, 70)))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 299), max_size=12, unique=True))
def test_any_heights(cuts):
    bounds = [0, *sorted(cuts), 300]
    chunks = tuple(np.diff(bounds).tolist())
    assert_same(model().fit(DENSE), model().fit(da.from_array(DENSE, chunks=(chunks, -1))))


def test_blocks_of_other_types():
    far, single, whole = DENSE + 1e9, DENSE.astype(np.float32), COUNTS.astype(np.int32)
    assert_same(model().fit(far), model().fit(in_blocks(far)), tolerance=1e-6)
    fitted = model().fit(in_blocks(single))
    assert_same(model().fit(single), fitted, tolerance=1e-5)
    assert fitted.components_.dtype == np.float32
    assert_same(model().fit(whole), model().fit(in_blocks(whole)))
    for kind in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        assert_same(model().fit(COUNTS), model().fit(sparse_blocks(COUNTS, 70, kind)))


def test_dense_and_sparse_blocks_side_by_side():
    mixed = da.concatenate([da.from_array(COUNTS[:100], chunks=50), sparse_blocks(COUNTS[100:], 60)])
    assert_same(model().fit(COUNTS), model().fit(mixed.rechunk({1: -1})))
    X = np.ascontiguousarray(COUNTS.T)
    mixed = da.concatenate([in_blocks(X[:50], 25), sparse_blocks(X[50:], 40)])
    for parameters in ({}, {"center": "both"}, {"scale": True}):
        assert_same(model(**parameters).fit(X), model(**parameters).fit(mixed))


@pytest.fixture
def streamed(monkeypatch):
    """Nothing fits into memory."""
    monkeypatch.setattr(blocks, "_HELD_SHARE", 0.0)


def test_little_memory_does_not_change_the_results(monkeypatch):
    """Blocks in memory, streamed blocks, and no lines in memory either."""
    X = in_blocks(DENSE)
    held = model().fit(X)
    monkeypatch.setattr(blocks, "_HELD_SHARE", 0.0)
    assert_same(held, streamed := model().fit(X), tolerance=0)
    monkeypatch.setattr(chunked, "_CACHE_SHARE", 0.0)
    assert_same(held, unpacked := model().fit(X), tolerance=0)
    assert unpacked.passes_ > streamed.passes_ == held.passes_


def counted(X, loads):
    """The array; loading a block is recorded."""

    def mark(block):
        loads.append(len(block))
        return block

    return X.map_blocks(mark, dtype=X.dtype, meta=np.empty((0, 0)))


def test_passes_are_counted_and_kept_blocks_are_loaded_once(monkeypatch):
    """The summary, the Gram matrix and the scores at the end take a pass each, the two modules about two each."""
    loads = []
    X = counted(in_blocks(DENSE, 60), loads)
    model().fit(X)
    assert len(loads) == 5
    loads.clear()
    monkeypatch.setattr(blocks, "_HELD_SHARE", 0.0)
    fitted = model().fit(X)
    assert len(loads) == pytest.approx(5 * fitted.passes_)
    assert 5 < fitted.passes_ < 8


def test_a_clear_module_takes_one_pass_after_its_start(streamed, by_passes, monkeypatch):
    """One for the summary, those of the start, one that packs the rows and the columns together; one for all scores."""
    X = np.random.default_rng(0).standard_normal((400, 300))
    X[:30, :20] += 3.0
    starts, normal = [], ChunkedOperator.normal
    monkeypatch.setattr(ChunkedOperator, "normal", lambda self, *given: starts.append(1) or normal(self, *given))
    fitted = netbic.SparseGraphSVD(1, n_rows=30, n_columns=20).fit(da.from_array(X, chunks=(80, -1)))
    assert fitted.rows_[0, :30].all()
    assert fitted.passes_ == 1 + len(starts) + 1 + 1


def test_the_passes_of_a_joint_search_do_not_depend_on_the_number_of_modules(streamed, by_passes):
    """One for the summary, six for the subspace, one for the scores of the modules, one for what they explain."""
    few, many = (model(n_components=n, n_rows=None).fit(in_blocks(DENSE)).passes_ for n in (1, 8))
    assert few == many == 9


def test_blocks_without_active_rows_are_not_loaded(streamed):
    loads = []
    operator = ChunkedOperator(RowBlocks(counted(in_blocks(DENSE, 50), loads)))
    rows = np.array([3, 7, 210])
    operator.rmatvec(rows, np.ones(3))
    assert len(loads) == 2
    operator.rmatvec(rows, np.arange(3.0))  # packed already
    operator.rmatvec(rows[:2], np.ones(2))
    assert len(loads) == 2
    operator.rmatvec(np.array([3, 8, 210]), np.ones(3))
    assert len(loads) == 3
    operator.matvec(np.array([1, 5]), np.ones(2))
    operator.matvec(np.array([5]), np.ones(1))
    assert len(loads) == 9


def test_results_do_not_depend_on_earlier_products():
    X = in_blocks(DENSE)
    used, generator = ChunkedOperator(RowBlocks(X)), np.random.default_rng(1)
    for _ in range(40):
        columns, rows = (np.sort(generator.choice(size, 8, replace=False)) for size in (120, 300))
        some = np.sort(generator.choice(columns, 5, replace=False)), np.sort(generator.choice(rows, 5, replace=False))
        for one, other in ((columns, rows), some):
            values, fresh = generator.standard_normal(one.size), ChunkedOperator(RowBlocks(X))
            np.testing.assert_array_equal(used.matvec(one, values), fresh.matvec(one, values))
            np.testing.assert_array_equal(used.rmatvec(other, values), fresh.rmatvec(other, values))


def test_scores_and_entries_of_a_module():
    X = in_blocks(DENSE)
    kinds = [{"center": "columns", "scale": True}, {"center": "both", "scale": True}]
    for parameters in (*kinds, {"missing": "ignore"}, {"missing": "impute"}):
        fitted = model(**parameters).fit(DENSE)
        np.testing.assert_allclose(fitted.transform(X), fitted.transform(DENSE), atol=1e-10)
        assert fitted.score(X) == pytest.approx(fitted.score(DENSE), rel=1e-10)
        np.testing.assert_array_equal(fitted.get_submatrix(1, X), fitted.get_submatrix(1, DENSE))
        if "scale" in parameters:
            found, expected = fitted.transform(sparse_blocks(COUNTS, 70)), fitted.transform(COUNTS)
            np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_sparse_matrix_stays_sparse():
    """As a dense array it would take 8 GB."""

    def block(number):
        rng = np.random.default_rng(number)
        found = sp.random_array((5_000, 20_000), density=2e-4, rng=rng, format="csr")
        corner = sp.csr_array((np.ones(900), (np.repeat(np.arange(30), 30), np.tile(np.arange(30), 30))), found.shape)
        return found + corner if number == 3 else found

    X = da.map_blocks(
        lambda block_info=None: block(block_info[None]["chunk-location"][0]),
        chunks=((5_000,) * 10, (20_000,)),
        meta=sp.csr_array((0, 0)),
        dtype=float,
    )
    tracemalloc.start()
    fitted = model(n_components=1, n_rows=30, n_columns=30).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fitted.rows_[0].nonzero()[0].tolist() == list(range(15_000, 15_030))
    assert peak < 3e8


def test_passes_are_printed(capsys):
    model(verbose=1).fit(in_blocks(DENSE))
    assert "passes so far" in capsys.readouterr().out
    assert model().fit(DENSE).passes_ is None


@pytest.mark.parametrize("height", [20, pytest.param(100, marks=pytest.mark.nightly)])
def test_starts_equal_those_in_memory_for_any_number_of_blocks(height):
    """Too large for exact starts, with a signal so weak that another start finds other modules."""
    study = netbic.simulate.cohort(600, 1000, n_modules=4, strength=0.5, random_state=0)
    X, parameters = study.expression.to_numpy(), {"n_components": 3, "n_rows": 60, "n_columns": 50}
    assert_same(model(**parameters).fit(X), model(**parameters).fit(in_blocks(X, height)))
    tall = np.ascontiguousarray(X.T)
    assert_same(model(**parameters).fit(tall), model(**parameters).fit(in_blocks(tall, height)))


def test_data_that_all_blocks_need_are_computed_once(streamed):
    loads = []
    X = counted(in_blocks(DENSE, 60), loads)
    fitted = model().fit(X - X.mean(axis=0))
    assert len(loads) == pytest.approx(5 * (fitted.passes_ + 1))
    assert_same(model().fit(DENSE), fitted)


def test_parameters_are_checked_before_anything_is_loaded():
    loads = []
    X = counted(in_blocks(DENSE, 60), loads)
    with pytest.raises(ValueError, match="n_rows=1000"):
        model(n_rows=1000).fit(X)
    with pytest.raises(ValueError, match="100 features"):
        model().fit(DENSE).transform(X[:, :100])
    assert not loads
