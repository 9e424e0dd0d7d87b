"""Criteria of a grid search: scores recomputed by hand."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from netbic.selection.criteria import Block

import netbic
from netbic import Graph, SparseGraphSVD
from netbic.selection import tune
from netbic.selection.resampling import folds

toy = netbic.simulate.paper(0.03, random_state=0)
SIZES = {"n_rows": [20, 50, 90], "n_columns": [20, 50, 90]}


@pytest.fixture(scope="module")
def cohort():
    return netbic.simulate.cohort(120, 300, n_modules=2, module_samples=20, module_genes=30, random_state=0)


def held(X, seed, fold, n_folds=5):
    """Rows and columns of a fold: inside, held out."""
    seed = int(np.random.default_rng(seed).integers(2**31))
    for axis, what in ((0, "samples"), (1, "features")):
        out = folds(X.shape[axis], n_folds, [seed, axis], what)[fold]
        yield np.setdiff1d(np.arange(X.shape[axis]), out), out


def share(Y, vectors):
    """Share of |Y|^2 in the span of the rows of `vectors`."""
    basis = np.linalg.qr(vectors.T)[0]
    return np.sum((Y @ basis) ** 2) / np.sum(Y**2)


@pytest.mark.parametrize("kind", ["frame", "sparse", "float32"])
def test_held_out_scores_are_those_of_plain_fits(cohort, kind):
    X, network = cohort.expression, cohort.network
    parameters = {"n_components": 3, "n_columns": 40, "column_smoothness": 0.1}
    grid = {"n_rows": [10, 30]}
    given, graph = X, network
    if kind == "sparse":
        given, graph = sp.csr_array(X.to_numpy()), Graph(network.weights)
    if kind == "float32":
        given = X.astype(np.float32)
    tuning = tune(SparseGraphSVD(column_graph=graph, **parameters), given, grid, random_state=1)
    (rows, out_rows), (columns, out_columns) = held(X, 1, 2)
    values = X.to_numpy() if kind != "float32" else given.to_numpy()
    weights = network.weights[columns][:, columns]
    own = SparseGraphSVD(column_graph=weights, **parameters | {"n_rows": round(30 * 0.8), "n_columns": round(40 * 0.8)})
    own.fit(values[np.ix_(rows, columns)])
    samples = values[np.ix_(out_rows, columns)]
    features = values[np.ix_(rows, out_columns)]
    by_hand = own.score(samples) + share((features - features.mean(axis=0)).T, own.left_vectors_.T)
    tolerance = 1e-4 if kind == "float32" else 1e-9
    assert tuning.cv_results_["split2_test_score"][1] == pytest.approx(by_hand, rel=tolerance)
    assert tuning.best_estimator_.n_features_in_ == 300


def test_a_sparse_matrix_is_never_made_dense():
    X = sp.random(200, 40_000, density=0.005, random_state=0, format="csr")
    tracemalloc.start()
    tune(SparseGraphSVD(1, n_rows=20), X, {"n_columns": [200]}, n_folds=2, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 200 * 40_000


@pytest.mark.parametrize("center", ["columns", "rows", "both", "grand"])
def test_features_are_scaled_separately_in_each_fold(center):
    generator = np.random.default_rng(0)
    X = 3 + generator.standard_normal((30, 40)) * generator.uniform(0.5, 2, 40)
    model = SparseGraphSVD(2, n_rows=10, center=center, scale=True)
    tuning = tune(model, X, {"n_columns": [12]}, random_state=0, n_folds=3)
    (rows, out_rows), (columns, out_columns) = held(X, 0, 0, 3)
    own = SparseGraphSVD(2, n_rows=round(10 * 20 / 30), n_columns=round(12 * 26 / 40), center=center, scale=True)
    own.fit(X[np.ix_(rows, columns)])
    Y = X[np.ix_(rows, out_columns)]
    deviations = Y.std(axis=0)
    Y = Y - (Y.mean() if center == "grand" else Y.mean(axis=0) if center in ("columns", "both") else 0)
    Y = Y - (Y.mean(axis=1, keepdims=True) if center in ("rows", "both") else 0)
    by_hand = own.score(X[np.ix_(out_rows, columns)]) + share((Y / deviations).T, own.left_vectors_.T)
    assert tuning.cv_results_["split0_test_score"][0] == pytest.approx(by_hand)


def test_a_fold_is_a_partition_and_graphs_are_restricted():
    X = np.arange(200.0).reshape(10, 20)
    seen = np.zeros(X.shape)
    for out_rows, out_columns in zip(folds(10, 5, 0), folds(20, 5, 0, "features"), strict=True):
        trial = Block(X, out_rows, out_columns)
        seen[np.ix_(out_rows, out_columns)] += 1
        assert trial.X.shape == (8, 16)
        ring = Graph(np.roll(np.eye(20), 1, axis=1) + np.roll(np.eye(20), -1, axis=1))
        fitting = trial.training_model(SparseGraphSVD(1, n_rows=5, n_columns=10, column_graph=ring))
        assert (fitting.n_rows, fitting.n_columns) == (4, 8)
        inside = np.setdiff1d(np.arange(20), out_columns)
        assert (fitting.column_graph.weights != ring.weights[inside][:, inside]).nnz == 0
    assert seen.sum() == 40


def test_missing_entries_are_ignored():
    generator = np.random.default_rng(0)
    X = toy.X.copy()
    few = X.copy()
    few[3, 4] = np.nan
    many = np.where(generator.random(X.shape) < 0.2, np.nan, X)
    model = SparseGraphSVD(1, center=None, missing="ignore")
    whole, one, many_missing = (tune(model, data, SIZES, random_state=0) for data in (X, few, many))
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=0.01)
    assert many_missing.best_params_ == {"n_rows": 50, "n_columns": 50}
