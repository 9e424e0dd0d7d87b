"""Fitted attributes that other packages read: matched graphs, the scaler, passes; and the threads of a fit."""

import gc
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

import netbic
from netbic import SparseGraphSVD
from netbic.estimators import parameters
from netbic.simulate import paper

toy = paper(0.03, random_state=0)
GENES = [f"g{i}" for i in range(100)]
X = pd.DataFrame(toy.X, columns=GENES)
edges = pd.DataFrame(np.argwhere(np.triu(toy.column_graph.weights.toarray())), columns=["source", "target"])
edges = edges.map(lambda i: GENES[i]).sample(frac=1, random_state=0)  # nodes in another order than the columns


def test_a_model_is_fitted_when_all_modules_are_found():
    model = SparseGraphSVD(2, n_rows=50, n_columns=50)
    search = model.iter_fit(X)
    next(search)
    with pytest.raises(NotFittedError):
        model.transform(X)
    with pytest.raises(NotFittedError):
        netbic.storage.summary_table(model)
    assert len(list(search)) == 1
    assert model.transform(X).shape == (100, 2)
    with pytest.raises(ValueError, match="n_rows=101"):
        model.set_params(n_rows=101).fit(toy.X)
    assert model.names_["columns"].tolist() == GENES  # those of the modules that the model still has


def test_a_fit_matches_each_graph_once(monkeypatch, tmp_path):
    calls, match = [], parameters.match
    monkeypatch.setattr(parameters, "match", lambda *arguments: calls.append(arguments[3]) or match(*arguments))
    model = SparseGraphSVD(1, n_rows=50, n_columns=50, row_graph=toy.row_graph, column_graph=edges).fit(X)
    assert calls == ["row", "column"]
    assert model.graphs_["rows"] is toy.row_graph
    assert (model.graphs_["columns"].weights != toy.column_graph.weights).nnz == 0
    assert model.graphs_["columns"].names.tolist() == GENES
    netbic.save(model, tmp_path)
    loaded = netbic.load(tmp_path)
    for axis in ("row", "column"):
        assert (loaded.graphs_[f"{axis}s"].weights != model.graphs_[f"{axis}s"].weights).nnz == 0


def test_passes_are_those_of_the_last_fit():
    model = SparseGraphSVD(1, n_rows=50, n_columns=50).fit(da.from_array(toy.X, chunks=(50, 100)))
    assert model.passes_ > 0
    np.testing.assert_allclose(model.scaler_.offsets, toy.X.mean(axis=0))
    assert model.fit(toy.X).passes_ is None
    assert model.graphs_ == {"rows": None, "columns": None}


def blas_threads():
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_the_number_of_blas_threads_is_restored_after_overlapping_fits():
    gc.collect()  # iterations that other tests have begun and not ended
    model = SparseGraphSVD(2, n_rows=20, n_columns=20)
    model.fit(X)
    with threadpool_limits(2, user_api="blas"):
        usual = blas_threads()
        first, second = model.iter_fit(X), SparseGraphSVD(2, n_rows=20, n_columns=20).iter_fit(X)
        next(first), next(second)
        assert set(blas_threads().values()) == {1}
        first.close()
        assert set(blas_threads().values()) == {1}
        second.close()
        assert blas_threads() == usual
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda k: SparseGraphSVD(1, n_rows=20, n_columns=20).fit(X), range(20)))
        assert blas_threads() == usual
