"""Sparse matrices with invalid index arrays, complex numbers and masked arrays in every function that takes data."""

from itertools import product

import anndata
import dask.array as da
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic.arrays import checked, compressed_problem, sparse_problem
from netbic.operators.executors import BlockError

X = np.random.default_rng(0).poisson(1.0, (12, 8)).astype(np.float64)
X[:6, :4] += 3
MASKED = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
MASKED[2, 3] = 1e6
MASKED[[2, 7], [3, 5]] = np.ma.masked
INCOMPLETE = np.where(MASKED.mask, np.nan, X)
PATH = np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1)


def model(**keywords):
    return netbic.SparseGraphSVD(2, n_rows=6, n_columns=4, **keywords)


def broken(kind, part, value, place=1):
    """A sparse matrix with an invalid value in one of its arrays."""
    matrix = kind(X)
    if part in ("row", "col"):
        coords = [matrix.row.copy(), matrix.col.copy()]
        coords[part == "col"][place] = value
        matrix.coords = tuple(coords)
    else:
        array = getattr(matrix, part).astype(np.int64)
        array[place] = value
        setattr(matrix, part, array)
    return matrix


def with_list(value):
    matrix = sp.lil_array(X)
    matrix.rows[2] = [value, *matrix.rows[2][1:]]
    return matrix


def with_key(key):
    matrix = sp.dok_array(X)
    matrix._dict[key] = 1.0
    return matrix


FAULTS = {
    "csr index": (broken(sp.csr_array, "indices", 1794), "the index array of X holds 1,794 but X has 8 columns"),
    "csr matrix": (broken(sp.csr_matrix, "indices", 8), "the index array of X holds 8 but X has 8 columns"),
    "csr negative": (broken(sp.csr_array, "indices", -5), "the index array of X holds -5 but X has 8 columns"),
    "csr invalid pointer": (broken(sp.csr_array, "indptr", 10**9), "the pointer array of X decreases, from 1,000,"),
    "csr pointer back": (broken(sp.csr_array, "indptr", -7), "the pointer array of X decreases, from 0 to -7"),
    "csr beginning": (broken(sp.csr_array, "indptr", 2, 0), "the pointer array of X begins with 2, not 0"),
    "csr end": (broken(sp.csr_array, "indptr", 10**6, -1), "entries where the pointer array of X counts 1,000,000"),
    "csc index": (broken(sp.csc_array, "indices", 12), "the index array of X holds 12 but X has 12 rows"),
    "csc pointer": (broken(sp.csc_matrix, "indptr", 10**9), "the pointer array of X decreases"),
    "coo row": (broken(sp.coo_array, "row", 12), "the row index array of X holds 12 but X has 12 rows"),
    "coo column": (broken(sp.coo_array, "col", -1), "the column index array of X holds -1 but X has 8 columns"),
    "bsr index": (broken(sp.bsr_array, "indices", 77), "the index array of X holds 77 but X has"),
    "dia offset": (broken(sp.dia_array, "offsets", 2**62), "the offset array of X holds 4,611,686,018,427,387,904"),
    "dia twice": (broken(sp.dia_array, "offsets", sp.dia_array(X).offsets[0]), "names a diagonal twice"),
    "lil index": (with_list(99), "the index array of X holds 99 but X has 8 columns"),
    "dok key": (with_key((3, -4)), "the index array of X holds -4 but X has 8 columns"),
    "one dimension": (sp.coo_array(X[0]), "X has 1 dimensions where 2 are needed"),
}


def test_a_broken_sparse_matrix_is_refused():
    fitted = model().fit(X)
    for matrix, message in FAULTS.values():
        for use in (
            model().fit,
            fitted.transform,
            fitted.score,
            lambda matrix: netbic.io.scores_by_name(fitted, matrix, range(8)),
            lambda matrix: netbic.pl.heatmap(fitted, matrix),
        ):
            with pytest.raises(ValueError, match=message):
                use(matrix)
        with pytest.raises(ValueError, match=message.replace("X", "the graph")):
            netbic.Graph(matrix)


def test_intact_matrices_are_accepted():
    for name, flavour in product(("csr", "csc", "coo", "bsr", "dia", "lil", "dok"), ("array", "matrix")):
        matrix = getattr(sp, f"{name}_{flavour}")(X)
        assert sparse_problem(matrix) is None
        assert checked(matrix) is matrix
        empty = getattr(sp, f"{name}_{flavour}")((0, 5) if name != "dok" else (1, 5))
        assert sparse_problem(empty) is None


def test_entries_after_the_last_pointer_are_ignored_in_memory():
    parts = np.append(sp.csr_array(X).data, 1.0), np.append(sp.csr_array(X).indices, 10**6), sp.csr_array(X).indptr
    matrix = sp.csr_array(X)
    matrix.data, matrix.indices = parts[:2]
    assert sparse_problem(matrix) is None
    assert compressed_problem(*parts, X.shape, "X/") == (
        f"X/indices has {parts[1].size} entries where X/indptr counts {parts[1].size - 1}"
    )


def test_indices_of_any_integer_type():
    matrix = sp.csr_array(X)
    for dtype in (np.int32, np.int64, np.uint32, ">i4", ">i8", np.int16):
        parts = matrix.data, matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
        assert compressed_problem(*parts, X.shape, "X") is None
        parts[1][3] = 8
        assert compressed_problem(*parts, X.shape, "X") == "the index array of X holds 8 but X has 8 columns"
        assert "not integers" in (compressed_problem(parts[0], parts[1] * 1.0, parts[2], X.shape, "X") or "")


def test_a_broken_block_of_a_dask_array_is_named():
    blocks = [sp.csr_array(X[:6]), sp.csr_array(X[6:])]
    blocks[1].indices[0] = 99
    whole = da.concatenate(
        [da.from_array(np.zeros((6, 8)), chunks=-1).map_blocks(lambda _, b=b: b, dtype=float) for b in blocks]
    )
    with pytest.raises(BlockError, match=r"block 1 \(rows 6 to 11\): ValueError: the index array of it holds 99"):
        model().fit(whole)


def test_complex_data_are_refused():
    fitted = model().fit(X)
    uses = [model().fit, fitted.transform, fitted.score]
    in_memory = [lambda data: netbic.selection.n_modules(model(), data)]
    numbers, objects = "complex128", "holds complex numbers, real numbers are needed"
    for data, message, functions in (
        (X + 1j, numbers, uses + in_memory),
        (np.ma.masked_array(X + 1j), numbers, uses + in_memory),
        (sp.csr_array(X + 1j), numbers, uses + in_memory),
        (pd.DataFrame(X).astype({3: complex}), numbers, uses + in_memory),
        (da.from_array(X + 1j, chunks=(6, -1)), numbers, uses),
        ((X + 1j).astype(object), objects, uses),
        (pd.DataFrame(X + 1j).astype(object), objects, uses),
    ):
        for use in functions:
            with pytest.raises(ValueError, match=message):
                use(data)


def test_complex_weights_are_refused():
    path, ring = nx.path_graph(8), igraph.Graph.Ring(8)
    nx.set_edge_attributes(path, {(0, 1): 2, (1, 2): 1 + 2j}, "weight")
    ring.es["weight"] = [1.0] * 7 + [1j]
    for graph, message in (
        (PATH + 1j, "the graph holds complex128"),
        (sp.csr_array(PATH * 1j), "the graph holds complex128"),
        (sp.coo_array(PATH * 1j), "the graph holds complex128"),
        (pd.DataFrame(PATH * 1j), "the graph holds complex128"),
        (path, r"edge 1 has weight \(1\+2j\), a complex number"),
        (ring, "edge 7 has weight 1j, a complex number"),
        (pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [1, 2j]}), "edge 1 has weight 2j, a complex"),
        (pd.DataFrame([["a", "b", 1j]]), "edge 0 has weight 1j, a complex"),
    ):
        with pytest.raises(ValueError, match=message):
            netbic.Graph.of(graph)


@pytest.mark.parametrize("data", [MASKED, list(MASKED), MASKED.astype(np.float32), MASKED.astype(np.int64)])
def test_masked_entries_are_missing_values(data):
    single = getattr(data, "dtype", None) == np.float32
    incomplete = INCOMPLETE.astype(np.float32 if single else np.float64)
    for missing in ("ignore", "impute"):
        fitted, expected = model(missing=missing).fit(data), model(missing=missing).fit(incomplete)
        np.testing.assert_array_equal(fitted.components_, expected.components_)
        np.testing.assert_array_equal(fitted.transform(data), expected.transform(incomplete))
        assert fitted.score(data) == expected.score(incomplete)


def test_masked_entries_are_counted_where_none_may_be_missing():
    fitted, message = model().fit(X), "X is a masked array and 2 of its entries are masked"
    for use in (
        model().fit,
        model().prepared,
        fitted.transform,
        fitted.score,
        lambda X: list(model().iter_fit(X)),
        lambda X: netbic.io.scores_by_name(fitted, X, range(8)),
        lambda X: netbic.selection.tune(model(), X, {"n_columns": [2, 3]}, n_folds=2),
        lambda X: netbic.selection.stability(model(), X, n_pairs=1),
        lambda X: netbic.selection.n_modules(model(), X),
        lambda X: netbic.selection.graph_value(model(column_graph=PATH), X),
        lambda X: netbic.enrichment.held_out_edges(model(column_graph=PATH), X, share=0.5),
        lambda X: netbic.tl.modules(anndata.AnnData(X), n_components=1, n_rows=4, n_columns=3),
    ):
        with pytest.raises(ValueError, match=rf"{message}|contains NaN"):
            use(MASKED)
    with pytest.raises(ValueError, match=message):
        model().fit(MASKED)


def test_a_mask_is_never_ignored():
    fitted = model(missing="ignore").fit(INCOMPLETE)
    same = np.testing.assert_array_equal
    same(netbic.io.scores_by_name(fitted, MASKED, range(8)), netbic.io.scores_by_name(fitted, INCOMPLETE, range(8)))
    same(*(netbic.pl.base.data_of(fitted, data).matrix for data in (MASKED, INCOMPLETE)))
    same(*(netbic.tl.to_anndata(fitted, data).X for data in (MASKED, INCOMPLETE)))
    assert np.isnan(fitted.inverse_transform(np.ma.masked_less(fitted.transform(INCOMPLETE), 0.1))).any()
    for data in (MASKED, INCOMPLETE):
        with pytest.raises(ValueError, match="NaN"):
            fitted.get_submatrix(0, data)


def test_an_unmasked_masked_array_is_an_array():
    plain = np.ma.masked_array(X)
    np.testing.assert_array_equal(model().fit(plain).components_, model().fit(X).components_)
    assert netbic.Graph(np.ma.masked_array(PATH)).n_edges == 7
    with pytest.raises(ValueError, match="graph weights are a masked array and 14 of its entries are masked"):
        netbic.Graph(np.ma.masked_greater(PATH, 0))
