"""SparseGraphSVD as a scikit-learn estimator."""

import tracemalloc
from itertools import product

import dask.array as da
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks

import netbic
from netbic import L0, Dense, Graph, L1Ball, SparseGraphSVD
from netbic.estimators.inputs import one_blas_thread

X = np.random.default_rng(0).standard_normal((30, 20)) + np.arange(20)


def path_graph(size):
    return sp.diags_array([np.ones(size - 1), np.ones(size - 1)], offsets=[-1, 1], shape=(size, size))


@pytest.mark.filterwarnings("ignore:found . of . modules", "ignore:the graph makes up")
@parametrize_with_checks(
    [SparseGraphSVD(2, n_columns=1), SparseGraphSVD(2, n_columns=1, n_init=2, search="sequential")]
)
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


# Fitted attributes


def test_the_share_of_features_outside_of_a_module():
    model = SparseGraphSVD(2, n_columns=10)
    assert not hasattr(model, "sparsity_")
    X = np.random.default_rng(0).standard_normal((30, 40))
    np.testing.assert_allclose(model.fit(X).sparsity_, [0.75, 0.75])


def test_shapes_and_memberships():
    model = SparseGraphSVD(3, n_rows=5, n_columns=4, column_graph=path_graph(20)).fit(X)
    assert model.n_components_ == 3
    assert model.left_vectors_.shape == (30, 3)
    assert model.components_.shape == (3, 20)
    np.testing.assert_array_equal(model.rows_, model.left_vectors_.T != 0)
    np.testing.assert_array_equal(model.columns_, model.components_ != 0)
    assert model.rows_.sum(axis=1).tolist() == [5, 5, 5]
    assert model.get_shape(1) == (5, 4)
    assert model.get_submatrix(1, X).shape == (5, 4)
    assert model.n_iter_ == max(map(len, model.objectives_))
    assert model.converged_.tolist() == [True] * 3


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: da.from_array(X, chunks=(20, -1))])
def test_columns_of_mostly_empty_matrices_are_divided_by_more(make):
    X = np.random.default_rng(0).poisson(0.9, (60, 30)).astype(float)
    for data, share in ((X, 0.5), (X * (X > 1), 0.8)):  # 40 % and 78 % zeros
        model = SparseGraphSVD(2).fit(make(data))
        assert model.scale_power == model.scale_ == share
        np.testing.assert_allclose(model.scaler_.factors, data.std(axis=0) ** -share)
        assert SparseGraphSVD(2, scale=0.5).fit(make(data)).scale_power == 0.5
    assert SparseGraphSVD(2, search="sequential").fit(make(data)).scaler_.factors is None


def test_dense_fit_is_pca():
    model = SparseGraphSVD(3, column_penalty=Dense(), tol=1e-13, max_iter=20000).fit(X)
    pca = PCA(3).fit(X)
    signs = np.sign(np.sum(model.components_ * pca.components_, axis=1))
    np.testing.assert_allclose(model.components_, signs[:, None] * pca.components_, atol=1e-6)
    np.testing.assert_allclose(model.singular_values_, pca.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-6)
    np.testing.assert_allclose(model.transform(X), signs * pca.transform(X), atol=1e-5)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), pca.inverse_transform(pca.transform(X)))


@pytest.mark.parametrize("center", [None, "columns", "rows", "both", "grand"])
@pytest.mark.parametrize("scale", [False, True])
def test_explained_variance_and_score_by_hand(center, scale):
    model = SparseGraphSVD(3, n_columns=6, center=center, scale=scale).fit(X)
    prepared = {
        None: X,
        "columns": X - X.mean(axis=0),
        "rows": X - X.mean(axis=1, keepdims=True),
        "both": X - X.mean(axis=0) - X.mean(axis=1, keepdims=True) + X.mean(),
        "grand": X - X.mean(),
    }[center] / (X.std(axis=0) if scale else 1)
    reached = []
    for k in range(1, 4):
        V = model.components_[:k]
        scores = np.linalg.lstsq(V.T, prepared.T, rcond=None)[0].T
        reached.append(1 - np.sum((prepared - scores @ V) ** 2) / np.sum(prepared**2))
    np.testing.assert_allclose(np.cumsum(model.explained_variance_ratio_), reached, rtol=1e-9)
    assert model.score(X) == pytest.approx(reached[-1])
    np.testing.assert_allclose(model.transform(X), scores, atol=1e-9)


@pytest.mark.parametrize("noise", [1e-10, 1e-8, 1e-6, 1e-4])
def test_explained_variance_of_nearly_parallel_modules(noise):
    generator = np.random.default_rng(0)
    data = np.outer(generator.standard_normal(12), generator.standard_normal(9))
    data += noise * generator.standard_normal(data.shape)
    model = SparseGraphSVD(3, n_rows=3, center=None).fit(data)
    assert (model.explained_variance_ratio_ >= 0).all()
    assert model.explained_variance_ratio_.sum() == pytest.approx(model.score(data), abs=1e-9)


def test_explained_variance_counts_a_repeated_module_once():
    """Under Hotelling's deflation a second module may lie in the span of the first: it then adds nothing."""
    model = SparseGraphSVD(2, n_columns=1, n_rows=1, center=None)
    data = np.zeros((6, 5))
    data[:2, 0] = 3.0, 2.0
    with pytest.warns(UserWarning, match="found 2 of 3 modules"):
        model.set_params(n_components=3).fit(data)
    np.testing.assert_allclose(model.explained_variance_ratio_, [1, 0], atol=1e-12)


def test_graph_share_by_hand():
    graph = Graph(path_graph(20))
    model = SparseGraphSVD(
        1, n_rows=10, n_columns=6, column_graph=graph, column_smoothness=0.5, smoothness_scale="absolute"
    ).fit(X)
    w = np.abs(model.components_[0])
    pull = 0.5 * abs(w @ graph.term("modularity").toarray() @ w)
    assert model.graph_share_[0] == pytest.approx(pull / (pull + model.singular_values_[0]))
    heavy = {"column_smoothness": 3.0, "smoothness_scale": "relative", "graph_term": "normalized"}
    with pytest.warns(UserWarning, match=r"more than 30% of the scores of module 1 \(graph_share\)"):
        SparseGraphSVD(1, n_columns=6, column_graph=graph, **heavy).fit(X)


def test_relative_smoothness_is_in_units_of_the_leading_singular_value():
    graph = Graph(path_graph(20))
    leading = np.linalg.norm(X - X.mean(axis=0), 2)
    for term in netbic.graph_terms.TERMS:
        scale = graph.term(term).scale
        keywords = {"n_rows": 10, "n_columns": 6, "column_graph": graph, "graph_term": term}
        units = {"smoothness_scale": "relative"}
        relative = SparseGraphSVD(1, column_smoothness=0.3, **keywords, **units).fit(X)
        sigma = 0.3 * leading / scale
        absolute = SparseGraphSVD(1, column_smoothness=sigma, smoothness_scale="absolute", **keywords).fit(X)
        np.testing.assert_allclose(relative.components_, absolute.components_, atol=1e-9)
        default = SparseGraphSVD(1, **keywords, **units).fit(X)
        fifth = SparseGraphSVD(1, column_smoothness=0.2, **keywords, **units).fit(X)
        np.testing.assert_array_equal(default.components_, fifth.components_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype):
    keywords = {"n_columns": 5, "column_graph": path_graph(20), "tol": 1e-5}  # the least of single precision
    model = SparseGraphSVD(2, **keywords).fit(X.astype(dtype))
    for array in (model.left_vectors_, model.components_, model.singular_values_, model.transform(X.astype(dtype))):
        assert array.dtype == dtype
    exact = SparseGraphSVD(2, **keywords).fit(X)
    np.testing.assert_array_equal(model.columns_, exact.columns_)
    # At a maximum, an error e of the objective is one of sqrt(e) of the vectors.
    np.testing.assert_allclose(model.objectives_, exact.objectives_, rtol=1e-6)
    np.testing.assert_allclose(model.components_, exact.components_, atol=1e-3)


@pytest.mark.parametrize(("form", "center"), [(sp.csr_array, None), (sp.csr_matrix, "both"), (sp.coo_array, "columns")])
def test_sparse_input_gives_the_result_of_dense_input(form, center):
    counts = np.random.default_rng(0).poisson(0.3, (60, 80)).astype(float)
    graph = path_graph(80)
    keywords = {"n_rows": 12, "n_columns": 10, "column_graph": graph, "center": center, "scale": True, "tol": 1e-10}
    dense, sparse = (SparseGraphSVD(3, **keywords).fit(X) for X in (counts, form(counts)))
    np.testing.assert_array_equal(sparse.columns_, dense.columns_)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-8)
    np.testing.assert_allclose(sparse.left_vectors_, dense.left_vectors_, atol=1e-8)
    np.testing.assert_allclose(sparse.explained_variance_ratio_, dense.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_allclose(sparse.transform(form(counts)), dense.transform(counts), atol=1e-7)
    assert sparse.score(form(counts)) == pytest.approx(dense.score(counts))


def test_a_joint_search_makes_no_copy_of_a_sparse_matrix_by_columns(monkeypatch):
    counts = sp.csr_array(np.random.default_rng(0).poisson(0.3, (60, 80)).astype(float))
    expected = SparseGraphSVD(3).fit(counts.toarray())
    monkeypatch.setattr("netbic.operators.sparse.SparseOperator._columns", property(lambda self: pytest.fail("copied")))
    np.testing.assert_array_equal(SparseGraphSVD(3).fit(counts).columns_, expected.columns_)


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("mean", [0.0, 30.0])
def test_memory_of_a_dense_fit(dtype, low_memory, mean):
    """At most 2.5 times the memory of X in addition to X, 1.4 times with low_memory, including centred copies."""
    data = (np.random.default_rng(0).standard_normal((300, 6000)) + mean).astype(dtype)
    model = SparseGraphSVD(3, n_rows=20, n_columns=50, low_memory=low_memory).fit(data)
    tracemalloc.start()
    model.fit(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most / data.nbytes <= (1.4 if low_memory else 2.5)


def test_sparse_data_far_from_zero_give_the_result_of_dense_data():
    data = np.random.default_rng(0).standard_normal((60, 20)) + 1e5
    dense, sparse = (SparseGraphSVD(3, n_rows=20, n_columns=6, tol=1e-8).fit(X) for X in (data, sp.csr_array(data)))
    np.testing.assert_array_equal(sparse.columns_, dense.columns_)
    np.testing.assert_allclose(sparse.singular_values_, dense.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(sparse.explained_variance_ratio_, dense.explained_variance_ratio_, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-25, 1e20, 1e30])
def test_single_precision_at_any_scale(scale):
    """Squares overflow single precision long before the data do."""
    data = np.random.default_rng(0).standard_normal((60, 40)).astype(np.float32) + 1
    for form, center, values in product((np.asarray, sp.csr_array), ("columns", "both"), (data, data.T.copy())):
        plain = SparseGraphSVD(3, n_rows=10, n_columns=8, center=center).fit(values.astype(np.float64))
        scaled = SparseGraphSVD(3, n_rows=10, n_columns=8, center=center).fit(form(values * np.float32(scale)))
        np.testing.assert_array_equal(scaled.columns_, plain.columns_)
        assert scaled.score(form(values * np.float32(scale))) == pytest.approx(plain.score(values), rel=1e-4)


@pytest.mark.parametrize("largest", [1e-120, 1e140])
def test_numbers_outside_the_supported_range_are_refused(largest):
    scaled = X / np.abs(X).max()
    incomplete = np.where(np.arange(20) == np.arange(30)[:, None], np.nan, scaled)
    inside, outside = (largest * (2.0, 0.5)[(largest > 1) == is_inside] for is_inside in (True, False))
    for data in (scaled, incomplete, sp.csr_array(scaled)):
        usual, other = (SparseGraphSVD(2, missing="ignore").fit(data * by) for by in (1.0, inside))
        np.testing.assert_allclose(other.components_, usual.components_, atol=1e-9)
        message = r"whose squares leave the range of numbers: rescale X.*between 1e-120 and 1e\+140"
        for scale in (False, True):
            with pytest.raises(ValueError, match=message):
                SparseGraphSVD(missing="ignore", scale=scale).fit(data * outside * (1e-80 if largest < 1 else 1e20))


def test_input_is_never_modified(tmp_path):
    before = X.copy()
    for data in (X, np.asfortranarray(X), pd.DataFrame(X, columns=[f"g{i}" for i in range(20)])):
        SparseGraphSVD(2, n_columns=5, scale=True).fit(data).transform(data)
    np.testing.assert_array_equal(X, before)
    counts = sp.csr_array(np.random.default_rng(0).poisson(0.3, (60, 80)).astype(float))
    unsorted = sp.csr_array((counts.data[::-1].copy(), counts.indices[::-1].copy(), counts.indptr), shape=counts.shape)
    kept = unsorted.indices.copy(), unsorted.data.copy()
    SparseGraphSVD(2, n_columns=5, scale=True).fit(unsorted)
    np.testing.assert_array_equal(unsorted.indices, kept[0])
    np.testing.assert_array_equal(unsorted.data, kept[1])
    np.save(tmp_path / "X.npy", X)
    frozen = X.copy()
    frozen.flags.writeable = False
    expected = SparseGraphSVD(2, n_columns=5).fit(X).components_
    for data in (np.load(tmp_path / "X.npy", mmap_mode="r"), frozen):
        np.testing.assert_array_equal(SparseGraphSVD(2, n_columns=5).fit(data).components_, expected)


def test_restarts_never_lower_the_objective_and_n_jobs_does_not_matter():
    one = SparseGraphSVD(2, n_rows=5, n_columns=4).fit(X)
    many = [SparseGraphSVD(2, n_rows=5, n_columns=4, n_init=8, random_state=3, n_jobs=jobs).fit(X) for jobs in (1, 2)]
    assert many[0].objectives_[0][-1] >= one.objectives_[0][-1]
    np.testing.assert_array_equal(many[0].components_, many[1].components_)
    np.testing.assert_array_equal(many[0].left_vectors_, many[1].left_vectors_)


def test_the_order_of_samples_and_features_does_not_matter():
    random = np.random.default_rng(0)
    for seed, options in product(range(3), ({}, {"search": "sequential", "n_init": 5}, {"n_rows": 25, "n_init": 5})):
        data = netbic.simulate.cohort(100, 300, n_modules=3, random_state=seed).expression.to_numpy()
        rows, columns = random.permutation(100), random.permutation(300)
        model = SparseGraphSVD(2, n_columns=40, random_state=0, **options)
        usual, other = model.fit(data), clone(model).fit(data[rows][:, columns])
        np.testing.assert_allclose(other.components_, usual.components_[:, columns], atol=1e-6)
        np.testing.assert_allclose(other.left_vectors_, usual.left_vectors_[rows], atol=1e-6)


def test_nonnegative_vectors_do_not_vanish_because_of_a_wrong_sign():
    for data in (X, -X):
        penalties = {"row_penalty": L0(5, nonnegative=True), "column_penalty": L1Ball(2.0, nonnegative=True)}
        both = SparseGraphSVD(1, **penalties).fit(data)
        assert both.n_components_ == 1
        assert (both.components_ >= 0).all()
        assert (both.left_vectors_ >= 0).all()
    # Here both signs of the leading pair leave no positive score: the largest entry is the last resort.
    awkward = np.full((6, 6), -1.0)
    awkward[2, 3] = 0.5
    both = SparseGraphSVD(1, row_penalty=L0(2, nonnegative=True), column_penalty=L0(2, nonnegative=True), center=None)
    with pytest.warns(UserWarning, match="holds fewer than 2"):
        both.fit(awkward)
    assert both.singular_values_[0] == pytest.approx(0.5)
    with pytest.warns(UserWarning, match="found 0 of 1 modules: the .* penalty .* keeps no"):
        both.fit(np.full((6, 6), -1.0))


def test_names_match_the_graph_to_the_columns():
    names = [f"g{i}" for i in range(20)]
    frame = pd.DataFrame(X, columns=names, index=[f"s{i}" for i in range(30)])
    values = frame.to_numpy()  # pandas 3 may store them by columns, which changes the last bit of sums
    order = np.random.default_rng(1).permutation(20)
    graph = Graph(path_graph(20).tocsr()[order][:, order], names=np.array(names)[order])
    plain = SparseGraphSVD(2, n_columns=5, column_graph=path_graph(20)).fit(values)
    named = SparseGraphSVD(2, n_columns=5, column_graph=graph).fit(frame)
    np.testing.assert_array_equal(plain.components_, named.components_)
    assert named.feature_names_in_.tolist() == names
    rows = nx.path_graph(30)
    by_index = SparseGraphSVD(1, n_rows=5, row_graph=nx.relabel_nodes(rows, lambda i: f"s{i}")).fit(frame)
    by_position = SparseGraphSVD(1, n_rows=5, row_graph=rows).fit(values)
    np.testing.assert_array_equal(by_index.left_vectors_, by_position.left_vectors_)


# Compatibility with scikit-learn


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "missing"])
@pytest.mark.parametrize("n_rows", [None, 10])
def test_a_prepared_matrix_gives_many_models_the_same_modules_as_fit(kind, n_rows):
    generator = np.random.default_rng(0)
    data = generator.standard_normal((40, 350)) + 2
    parameters = {"n_components": 3, "n_rows": n_rows, "missing": "ignore" if kind == "missing" else "error"}
    if kind == "missing":
        data[generator.random(data.shape) < 0.05] = np.nan
    data = {"float32": data.astype(np.float32), "sparse": sp.csr_array(data)}.get(kind, data)
    prepared = SparseGraphSVD(**parameters).prepared(data)
    with one_blas_thread():
        for size in (20, 60, 20):
            model = SparseGraphSVD(n_columns=size, **parameters)
            modules = model.modules_of(prepared)
            fitted = model.fit(data)
            found = np.array([module.v.full() for module in modules]).astype(fitted.components_.dtype)
            np.testing.assert_array_equal(found, fitted.components_)
            np.testing.assert_array_equal([module.u.support.size for module in modules], fitted.rows_.sum(axis=1))
