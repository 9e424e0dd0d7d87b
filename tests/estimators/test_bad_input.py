"""Errors and warnings of SparseGraphSVD for invalid input and for data without signal."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.exceptions import NotFittedError

from netbic import L0, L1, L1Ball, SparseGraphSVD

X = np.random.default_rng(0).standard_normal((30, 20)) + np.arange(20)


def path_graph(size):
    return sp.diags_array([np.ones(size - 1), np.ones(size - 1)], offsets=[-1, 1], shape=(size, size))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_columns": 21}, ValueError, "n_columns=21 but X has 20 columns: choose 1 to 20"),
        ({"n_rows": 31}, ValueError, "n_rows=31 but X has 30 rows: choose 1 to 30"),
        ({"n_rows": 0}, ValueError, "n_rows=0: at least 1 is needed"),
        ({"n_columns": 2.5}, TypeError, "n_columns=2.5: an integer is needed"),
        ({"n_components": 0}, ValueError, "n_components=0: at least 1 is needed"),
        ({"n_components": True}, TypeError, "n_components=True: an integer is needed"),
        ({"n_components": "all"}, ValueError, "n_components='all': an integer or 'auto' is needed"),
        ({"column_graph": "net.sif"}, ValueError, "the graph is the text 'net.sif': read a file with netbic.io.read"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"tol": -1.0}, ValueError, "tol=-1.0: a finite number of at least 0"),
        ({"scale": "yes"}, ValueError, "scale='yes': True, False or a number from 0 to 1"),
        ({"center": np.arange(2)}, ValueError, "center=array.* is not known"),
        ({"column_smoothness": 0.1}, ValueError, "column_smoothness=0.1 needs a column_graph"),
        ({"column_graph": path_graph(20), "column_smoothness": np.nan}, ValueError, "column_smoothness=nan: a finite"),
        ({"column_graph": path_graph(19)}, ValueError, "column graph has 19 nodes but X has 20 columns"),
        ({"row_graph": path_graph(20)}, ValueError, "row graph has 20 nodes but X has 30 rows"),
        ({"n_columns": 3, "column_penalty": L0(3)}, ValueError, "n_columns=3 and column_penalty=.* are both given"),
        ({"column_penalty": "l1"}, TypeError, "column_penalty='l1' is not a penalty"),
        ({"row_penalty": L0(31)}, ValueError, "but X has 30 rows: choose k from 1 to 30"),
        ({"solver": "fast"}, ValueError, "solver='fast' is not known: choose one of 'auto', 'aisp', 'monotone'"),
        ({"graph_term": "x"}, ValueError, "graph_term='x' is not known: choose one of 'modularity'"),
        ({"signs": "both"}, ValueError, "signs='both' is not known: choose one of 'absolute', 'signed'"),
        ({"center": True}, ValueError, "center=True is not known: choose one of None, 'columns'"),
        ({"deflation": "x"}, ValueError, "deflation='x' is not known: choose one of None, 'hotelling'"),
        ({"smoothness_scale": "x"}, ValueError, "smoothness_scale='x' is not known: choose one of 'module'"),
        ({"missing": "x"}, ValueError, "missing='x' is not known"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        SparseGraphSVD(**parameters).fit(X)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.where(np.arange(20) == 3, np.nan, X), "contains NaN: use missing='ignore' or missing='impute', or replace"),
        (np.where(np.arange(20) == 3, np.inf, X), "infinity"),
        (X[0], "2D array"),
        (np.empty((0, 20)), "0 sample"),
        (np.empty((30, 0)), r"0 feature"),
        (np.full((3, 3), "a"), "could not convert"),
    ],
)
def test_bad_matrices(data, message):
    with pytest.raises(ValueError, match=message):
        SparseGraphSVD().fit(data)


@pytest.mark.parametrize("data", [np.zeros((6, 5)), np.full((6, 5), 5.1), np.full((6, 5), 1e9 + 0.1)])
@pytest.mark.parametrize(
    ("parameters", "asked"), [({}, 1), ({"n_components": 2}, 2), ({"n_components": 2, "n_rows": 2, "n_columns": 2}, 2)]
)
def test_nothing_to_find(data, parameters, asked):
    with pytest.warns(UserWarning, match=f"found 0 of {asked} modules: nothing but rounding error is left of X"):
        model = SparseGraphSVD(**parameters).fit(data)
    assert model.components_.shape == model.columns_.shape == (0, 5)
    assert model.left_vectors_.shape == model.rows_.T.shape == (6, 0)
    for array in (model.singular_values_, model.explained_variance_ratio_, model.converged_, model.graph_share_):
        assert array.shape == (0,)
    assert model.score(data) == 0.0
    np.testing.assert_allclose(model.inverse_transform(model.transform(data)), data)


def test_fewer_modules_than_requested(capsys):
    data = np.outer(np.arange(1.0, 7), np.arange(1.0, 6)) + np.outer(np.ones(6), [1.0, -1, 1, -1, 1])
    with pytest.warns(UserWarning, match="found 2 of 4 modules"):
        model = SparseGraphSVD(4, center=None, verbose=1).fit(data)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["module 1", "module 2"]
    assert model.components_.shape == (2, 5)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"scores have shape \(4, 3\): \(n_samples, 2\) is needed"):
        model.inverse_transform(np.ones((4, 3)))
    with pytest.raises(NotFittedError):
        SparseGraphSVD().inverse_transform(np.ones((4, 2)))


def test_warnings_say_what_is_wrong():
    noisy = np.random.default_rng(1).standard_normal((40, 40))
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((10, 100)), columns=[f"g{i}" for i in range(100)])
    few = pd.DataFrame({"source": ["g1", "g2", "x"], "target": ["g2", "x", "y"]})
    short = {"max_iter": 2, "tol": 1e-12}
    unconverged = r"modules 1, 2 did not converge \(module 1 reached max_iter=2\)"
    heavy = {"column_penalty": L1(1000.0)}
    no_column = r"found 0 of 2 modules: the column penalty L1\(.*1000.0\) keeps no column"
    for data, parameters, message in (
        (X, heavy, no_column),
        (X, heavy | {"search": "sequential"}, no_column),
        (noisy, short | {"column_penalty": L1Ball(3.0)}, unconverged),
        (noisy, short | {"n_rows": 5, "n_columns": 5}, unconverged),
        (frame, {"column_graph": few, "n_columns": 5}, "only 2 of 100 columns are nodes of the column graph"),
    ):
        with pytest.warns(UserWarning, match=message):
            model = SparseGraphSVD(2, **parameters).fit(data)
    assert model.n_components_ == 2


def test_a_graph_without_edges_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="the column graph has no edge between the columns of X: it is ignored"):
        model = SparseGraphSVD(1, n_columns=5, column_graph=sp.csr_array((20, 20))).fit(X)
    np.testing.assert_array_equal(model.components_, SparseGraphSVD(1, n_columns=5).fit(X).components_)


def test_values_that_would_be_changed_in_silence_are_refused():
    dates = np.arange(600).reshape(30, 20).astype("datetime64[D]").astype("datetime64[ns]")
    dates[0, 0] = np.datetime64("NaT")
    for given in (dates, pd.DataFrame(dates), dates - dates.min()):
        with pytest.raises(ValueError, match="dates or durations"):
            SparseGraphSVD(1).fit(given)
    number = np.linspace(0, 1, 30)[:, None]
    for covariates, message in (
        (np.ma.masked_array(number, mask=number > 0.5), "masked array with masked entries"),
        (number + 1j, "no array of numbers"),
        (pd.DataFrame({"age": number[:, 0] + 1j}), "covariate 'age' has the type complex128"),
        (dates[:, :1], "no array of numbers"),
        (number * 1e160, "covariate 'x0' has entries up to 1e\\+160, whose squares leave the range"),
        (pd.DataFrame({"age": number[:, 0] * 1e-160}), "covariate 'age' has entries up to 1e-160"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseGraphSVD(1).fit(X, covariates=covariates)
    unmasked = SparseGraphSVD(1).fit(X, covariates=np.ma.masked_array(number, mask=False))
    np.testing.assert_array_equal(unmasked.components_, SparseGraphSVD(1).fit(X, covariates=number).components_)


def test_the_unit_of_a_study_does_not_matter():
    """A study in another unit varies as much as before, in single precision too."""
    studies = np.repeat(["a", "b"], 15)
    usual = SparseGraphSVD(1, n_columns=5).fit(X, studies=studies)
    for dtype, largest in ((np.float32, 1e20), (np.float64, 1e100)):
        for factor in (largest, 1 / largest):
            scaled = (X * np.where(studies == "b", factor, 1.0)[:, None]).astype(dtype)
            found = SparseGraphSVD(1, n_columns=5).fit(scaled, studies=studies)
            np.testing.assert_array_equal(found.columns_, usual.columns_)
    with pytest.raises(ValueError, match=r"study 'b' has entries up to .*, whose squares leave the range"):
        SparseGraphSVD(1).fit(X * np.where(studies == "b", 1e150, 1.0)[:, None], studies=studies)
    constant = np.where((studies == "b")[:, None], X.mean(axis=0), X)
    with pytest.raises(ValueError, match="study 'b' does not vary"):
        SparseGraphSVD(1).fit(constant, studies=studies)


def test_a_linear_operator_of_scipy_is_referred_to_data_operators():
    X = np.random.default_rng(0).standard_normal((20, 10))
    for use in (SparseGraphSVD(1).fit, SparseGraphSVD(1).fit(X).transform):
        with pytest.raises(TypeError, match=r"a LinearOperator of SciPy: write .*netbic\.operators\.DataOperator"):
            use(aslinearoperator(X))
