"""SparseGraphPLS and SparseGraphCCA: special cases equal other software and textbooks, names decide, bad input."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import sqrtm
from sklearn.cross_decomposition import PLSSVD, PLSCanonical, PLSRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from netbic import L0, Graph, GroupL0, L1Ball, SparseGraphCCA, SparseGraphPLS


def two_tables(n=40, p=30, q=20, seed=0, signal=2.0):
    """Gaussian noise, and two signals in common: in features 0-7 and 8-13 of X, 0-4 and 5-9 of Y."""
    random = np.random.default_rng(seed)
    X, Y = random.standard_normal((n, p)) + 5, random.standard_normal((n, q)) * np.arange(1, q + 1)
    for strength, x, y in ((signal, slice(8), slice(5)), (signal / 2, slice(8, 14), slice(5, 10))):
        common = strength * random.standard_normal((n, 1))
        X[:, x] += common
        Y[:, y] += common * np.arange(1, q + 1)[y]
    return X, Y


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


SHAPES = {"more samples": (60, 30, 20), "more features": (25, 80, 50), "one feature of Y": (30, 40, 1)}


@pytest.mark.filterwarnings("ignore:found 1 of 2 pairs")  # a target has one feature
@parametrize_with_checks([SparseGraphPLS()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [False, True])
def test_dense_pairs_equal_pls_svd(shape, scale):
    X, Y = two_tables(*SHAPES[shape])
    count = min(3, Y.shape[1])
    model = SparseGraphPLS(count, deflation="hotelling", scale=scale).fit(X, Y)
    peer = PLSSVD(count, scale=scale).fit(X, Y)
    signs = np.sign(np.sum(model.x_weights_ * peer.x_weights_, axis=0))
    np.testing.assert_allclose(model.x_weights_, peer.x_weights_ * signs, atol=1e-10)
    np.testing.assert_allclose(model.y_weights_, peer.y_weights_ * signs, atol=1e-10)
    for found, expected in zip(model.transform(X, Y), peer.transform(X, Y), strict=True):
        np.testing.assert_allclose(found, expected * signs, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_dense_pairs_equal_pls_canonical(shape):
    X, Y = two_tables(*SHAPES[shape])
    count = min(3, Y.shape[1])
    model = SparseGraphPLS(count, deflation="canonical").fit(X, Y)
    peer = PLSCanonical(count, tol=1e-20, max_iter=100_000, algorithm="svd").fit(X, Y)
    signs = np.sign(np.sum(model.x_weights_ * peer.x_weights_, axis=0))
    for name in ("x_weights_", "y_weights_", "x_loadings_", "y_loadings_", "x_rotations_", "y_rotations_"):
        np.testing.assert_allclose(getattr(model, name), getattr(peer, name) * signs, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(model.x_scores_, peer.transform(X) * signs, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [False, True])
def test_dense_regression_equals_pls_regression(shape, scale):
    X, Y = two_tables(*SHAPES[shape])
    model = SparseGraphPLS(3, scale=scale, tol=1e-12).fit(X, Y)
    peer = PLSRegression(3, scale=scale, tol=1e-20, max_iter=100_000).fit(X, Y)
    size = np.abs(Y).max()
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-6 * size)  # the peer iterates
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.predict(X), atol=1e-10 * size)
    assert model.score(X, Y) == pytest.approx(peer.score(X, Y), abs=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(60, 20, 12), (25, 60, 40)])
def test_dense_cca_is_that_of_the_textbook(ridge, shape):
    if not ridge and shape[0] < shape[1]:
        pytest.skip("the textbook solution needs more samples than features")
    X, Y = two_tables(*shape)
    covariance = {"covariance": "ridge", "ridge": ridge} if ridge else {"covariance": "full"}
    model = SparseGraphCCA(3, **covariance, deflation="hotelling").fit(X, Y)
    R, S = standardised(X), standardised(Y)
    roots = [
        np.linalg.inv(sqrtm((1 - ridge) * T.T @ T / (len(T) - 1) + ridge * np.eye(T.shape[1])).real) for T in (R, S)
    ]
    u, d, v = np.linalg.svd(roots[0] @ R.T @ S @ roots[1] / (len(X) - 1))
    np.testing.assert_allclose(model.singular_values_ / (len(X) - 1), d[:3], rtol=1e-8)
    for found, expected in ((model.x_rotations_, roots[0] @ u[:, :3]), (model.y_rotations_, roots[1] @ v[:3].T)):
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)
    if not ridge:
        np.testing.assert_allclose(model.correlations_, d[:3], rtol=1e-8)


MODELS = {
    "regression": SparseGraphPLS(2, n_x=8, n_y=5),
    "canonical": SparseGraphPLS(2, n_x=8, n_y=5, deflation="canonical"),
    "hotelling": SparseGraphPLS(2, n_x=8, n_y=5, deflation="hotelling"),
    "cca": SparseGraphCCA(2, n_x=8, n_y=5),
    "ridge": SparseGraphCCA(2, n_x=8, n_y=5, covariance="ridge"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_of_the_fit_are_those_of_transform(name, shape):
    X, Y = two_tables(*SHAPES[shape])
    model = MODELS[name].set_params(n_y=min(5, Y.shape[1]), n_components=min(2, Y.shape[1])).fit(X, Y)
    x_scores, y_scores = model.transform(X, Y)
    np.testing.assert_allclose(x_scores, model.x_scores_, atol=1e-9)
    np.testing.assert_allclose(y_scores, model.y_scores_, atol=1e-9)
    np.testing.assert_allclose(model.transform(X), x_scores)
    correlations = [np.corrcoef(t, s)[0, 1] for t, s in zip(x_scores.T, y_scores.T, strict=True)]
    np.testing.assert_allclose(model.correlations_, correlations, atol=1e-10)
    assert (np.abs(model.x_weights_) > 0).sum(axis=0).tolist() == [8] * model.n_components_


@pytest.mark.parametrize("name", MODELS)
def test_planted_features_are_found_and_units_do_not_matter(name):
    X, Y = two_tables(n=80)
    model = MODELS[name].set_params(n_components=2, n_y=5).fit(X, Y)
    np.testing.assert_array_equal(np.flatnonzero(model.x_support_[0]), np.arange(8))
    np.testing.assert_array_equal(np.flatnonzero(model.y_support_[0]), np.arange(5))
    np.testing.assert_array_equal(np.flatnonzero(model.y_support_[1]), np.arange(5, 10))
    weights = model.x_weights_.copy()
    other = model.fit(X * np.arange(1, 31) - 7, 0.01 * Y)
    np.testing.assert_allclose(other.x_weights_, weights, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_sparse_tables_and_single_precision_give_the_same_pairs(name):
    X, Y = two_tables(n=60, p=90, q=70)
    X[X < 5], Y[np.abs(Y) < 5] = 0, 0
    dense = MODELS[name].set_params(n_components=2, n_y=5).fit(X, Y)
    weights, scores = dense.x_weights_.copy(), dense.transform(X, Y)
    sparse = dense.fit(sp.csr_array(X), sp.csr_array(Y))
    np.testing.assert_allclose(sparse.x_weights_, weights, atol=1e-6)
    for found, expected in zip(sparse.transform(sp.csr_array(X), sp.csr_array(Y)), scores, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    single = dense.fit(X.astype(np.float32), Y.astype(np.float32))
    np.testing.assert_allclose(single.x_weights_, weights, atol=1e-4)


def test_graphs_help_where_the_signal_follows_them():
    gains = []
    for seed in range(10):
        X, Y = two_tables(n=40, p=150, q=100, seed=seed, signal=0.7)
        blocks = np.kron(np.eye(19), np.ones((8, 8)) - np.eye(8))[:150, :150]
        graph = Graph(blocks)
        with_graph = SparseGraphCCA(1, n_x=8, n_y=5, x_graph=graph).fit(X, Y)
        without = SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
        gains.append(with_graph.x_support_[0, :8].mean() - without.x_support_[0, :8].mean())
        assert with_graph.graph_share_[0] > 0 == without.graph_share_[0]
    assert np.mean(gains) > 0.05
    assert min(gains) >= -0.25


def frames():
    X, Y = two_tables()
    samples = [f"s{number}" for number in range(len(X))]
    X = pd.DataFrame(X, samples, [f"gene{number}" for number in range(X.shape[1])])
    return X, pd.DataFrame(Y, samples, [f"lipid{number}" for number in range(Y.shape[1])])


def test_samples_are_matched_by_name():
    X, Y = frames()
    model = SparseGraphCCA(1, n_x=8, n_y=5).fit(X, Y)
    weights = model.y_weights_.copy()
    shuffled = Y.sample(frac=1, random_state=0)
    np.testing.assert_allclose(model.fit(X, shuffled).y_weights_, weights, atol=1e-6)
    np.testing.assert_allclose(model.transform(X, shuffled)[1], model.y_scores_)
    np.testing.assert_array_equal(model.names_["y"], Y.columns)
    assert model.get_feature_names_out().tolist() == ["sparsegraphcca0"]
    edges = pd.DataFrame({"a": ["lipid1", "lipid2"], "b": ["lipid3", "lipid9"]})
    assert model.set_params(y_graph=edges).fit(X, Y).graphs_["y"].n_edges == 2
    regression = SparseGraphPLS(1, n_x=8, n_y=5).fit(X, Y)
    for other in (shuffled, sp.csr_array(Y.to_numpy())):
        assert regression.score(X, other) == pytest.approx(regression.score(X, Y))
    numbered = X.reset_index(drop=True), shuffled.set_axis(shuffled.index.str[1:].astype(int))
    np.testing.assert_allclose(regression.fit(*numbered).y_weights_[:, 0], weights[:, 0], atol=1e-6)


def test_bad_input():
    for change, message in (
        ({"Y": lambda X, Y: Y.iloc[:-1]}, "1 of 40 samples of X are not in the other table: s39"),
        (
            {"Y": lambda X, Y: Y.add_prefix("x", axis=0)},
            "40 samples of Y .* xs0, xs1, xs2 and 37 more.*give X.T and Y.T",
        ),
        ({"Y": lambda X, Y: Y.iloc[[0, *range(39)]]}, "'s0' occurs twice in Y"),
        ({"Y": lambda X, Y: Y.to_numpy()[:-1]}, "X has 40 samples but Y has 39"),
        ({"Y": lambda X, Y: None}, "needs two tables"),
        ({"Y": lambda X, Y: Y.where(Y < 3)}, "Y contains NaN: use missing='ignore'"),
        ({"X": lambda X, Y: X.where(X < 5)}, "X contains NaN: use missing='ignore'"),
        ({"n_x": 31}, "n_x=31 but X has 30 features: choose 1 to 30"),
        ({"n_y": 21}, "n_y=21 but Y has 20 features: choose 1 to 20"),
        ({"n_y": None, "y_penalty": L0(21)}, "Y has 20 features: choose k from 1 to 20"),
        ({"y_penalty": L1Ball(2.0)}, "n_y=5 and y_penalty=.* are both given"),
        ({"x_smoothness": 0.5}, "x_smoothness=0.5 needs a x_graph"),
        ({"y_graph": np.ones((3, 3)) - np.eye(3)}, "graph has 3 nodes but Y has 20 features"),
        ({"deflation": "schur"}, "deflation='schur'"),
        ({"n_components": -1}, "n_components=-1"),
        ({"n_y": None, "y_penalty": GroupL0({"a": ["unknown"]}, 1)}, "feature groups is a feature of Y"),
    ):
        X, Y = frames()
        X, Y = (change.pop(name, lambda X, Y, own=own: own)(X, Y) for name, own in (("X", X), ("Y", Y)))
        with pytest.raises((ValueError, TypeError), match=message):
            SparseGraphCCA(**({"n_components": 1, "n_x": 8, "n_y": 5} | change)).fit(X, Y)


def test_bad_covariances():
    for parameters, message in (
        ({"covariance": "full", "n_x": 3}, "covariance='full' and n_x=3: the textbook solution is not sparse"),
        ({"covariance": "full"}, "X has 10 samples and 30 features: more samples than features"),
        ({"covariance": "ridge", "ridge": 0}, "ridge=0: a number above 0 and at most 1"),
        ({"covariance": "shrunk"}, "covariance='shrunk'"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseGraphCCA(1, **parameters).fit(*two_tables(n=10))


def test_constant_features_have_no_weight():
    X, Y = two_tables()
    X[:, 3], Y[:, 7] = 1.0, 0.0
    model = SparseGraphCCA(2).fit(X, Y)
    np.testing.assert_allclose(model.x_weights_[3], 0, atol=1e-14)
    np.testing.assert_allclose(model.y_weights_[7], 0, atol=1e-14)
    with pytest.warns(UserWarning, match="found 0 of 2 pairs: nothing but rounding error"):
        empty = SparseGraphPLS(2).fit(X, np.ones((40, 3)))
    assert empty.transform(X).shape == (40, 0)
    np.testing.assert_allclose(empty.predict(X), 1.0)
    with pytest.warns(UserWarning, match="found 2 of 5 pairs"):
        assert SparseGraphPLS(5, n_x=8, deflation="canonical").fit(X, Y[:, :2]).n_components_ == 2


def test_either_name_of_the_second_table():
    X, Y = frames()
    one, other = SparseGraphPLS(1, n_x=4).fit(X, Y), SparseGraphPLS(1, n_x=4).fit(X, y=Y)
    np.testing.assert_array_equal(one.x_weights_, other.x_weights_)
    for use, message in (
        (lambda: SparseGraphPLS().fit(X, Y, y=Y), "Y and y are both given"),
        (lambda: one.fit(X, Y, y_start=np.ones((3, 2))), r"y_start has shape \(3, 2\): \(20, 1\) is needed"),
        (lambda: one.fit(X, Y, y_start=np.zeros((20, 2))), "a column of y_start is zero"),
        (lambda: one.transform(X, Y[Y.columns[::-1]]), "feature 0 of Y is 'lipid19', but it was 'lipid0' in the fit"),
        (lambda: one.transform(X, Y.to_numpy()[:, :3]), "Y has 3 features but the model was fitted to 20"),
    ):
        with pytest.raises(ValueError, match=message):
            use()


def test_products_that_leave_the_range_of_numbers():
    X, Y = two_tables()
    for factor in (1e80, 1e-85):
        with pytest.raises(ValueError, match="products of the entries of X and Y leave the range"):
            SparseGraphPLS(1, scale=False).fit(X * factor, Y * factor)
    with pytest.raises(ValueError, match="Y has entries up to"):
        SparseGraphPLS(1, scale=False).fit(X, Y * 1e-150)
    model = SparseGraphPLS(1, n_x=8, scale=False)
    expected = model.fit(X, Y).x_weights_.copy()
    np.testing.assert_allclose(model.fit(X * 1e60, Y * 1e-90).x_weights_, expected, atol=1e-6)
