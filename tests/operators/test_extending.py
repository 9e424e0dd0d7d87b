"""The operator of docs/extending.md works with every function or is refused in one sentence."""

import re
from pathlib import Path

import numpy as np
import pytest

import netbic
from netbic.operators.base import DataOperator, as_operator
from netbic.selection import graph_value, n_modules, stability, tune

PAGE = Path(__file__).parents[2] / "docs/extending.md"
generator = np.random.default_rng(0)
A, B = generator.standard_normal((60, 4)), generator.standard_normal((90, 4))
X = A @ B.T
GRAPH = np.triu(generator.uniform(size=(90, 90)) < 0.05, 1).astype(float)
GRAPH += GRAPH.T


def cells_of_the_page():
    return re.findall(r"```\{code-cell\} python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def operators_of_the_page():
    made = {"np": np}
    for cell in cells_of_the_page():
        if "Operator(" in cell and "class " in cell:
            exec(cell, made)
    return [made["ProductOperator"], made["FastProductOperator"]]


every_operator = pytest.mark.parametrize("make", operators_of_the_page(), ids=lambda made: made.__name__)


def test_the_page_runs():
    names = {}
    for cell in cells_of_the_page():
        exec(cell, names)
    assert issubclass(names["ProductOperator"], DataOperator)


@every_operator
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"center": "both", "scale": True},
        {"center": None, "solver": "aisp", "deflation": "schur"},
        {"column_graph": GRAPH, "column_smoothness": 0.5},
        {"n_init": 3, "random_state": 0, "n_jobs": 2, "deflation": "projection"},
        {"column_graph": GRAPH, "solver": "monotone"},
        {"n_rows": None},
        {"n_rows": None, "column_graph": GRAPH},
    ],
    ids=lambda parameters: ", ".join(parameters),
)
def test_a_fit_equals_that_of_the_dense_matrix(make, parameters):
    parameters = {"n_rows": 12, "n_columns": 15} | parameters
    model, dense = (netbic.SparseGraphSVD(2, **parameters) for _ in range(2))
    model.fit(make(A, B))
    dense.fit(X)
    np.testing.assert_array_equal(model.rows_, dense.rows_)
    np.testing.assert_array_equal(model.columns_, dense.columns_)
    np.testing.assert_allclose(model.singular_values_, dense.singular_values_)
    np.testing.assert_allclose(model.explained_variance_ratio_, dense.explained_variance_ratio_)
    np.testing.assert_allclose(model.transform(make(A, B)), dense.transform(X), atol=1e-9)
    assert model.score(make(A, B)) == pytest.approx(dense.score(X))
    np.testing.assert_allclose(model.get_submatrix(0, make(A, B)), dense.get_submatrix(0, X))


@every_operator
@pytest.mark.parametrize("parameters", [{}, {"n_components": 1, "row_penalty": netbic.L0(12, nonnegative=True)}])
def test_sizes_signs_and_numbers_from_the_data(make, parameters):
    toy = netbic.simulate.paper(0.02, random_state=0).X
    data = make(toy, np.eye(toy.shape[1])), toy
    found, expected = (netbic.SparseGraphSVD(center=None, **parameters).fit(one) for one in data)
    assert found.count_ == expected.count_
    np.testing.assert_array_equal(found.columns_, expected.columns_)
    np.testing.assert_array_equal(found.rows_, expected.rows_)


@every_operator
def test_names_and_single_modules(make):
    model = netbic.SparseGraphSVD(2, n_rows=12, n_columns=15)
    names = [f"s{i}" for i in range(60)], [f"g{j}" for j in range(90)]
    assert len(list(model.iter_fit(make(A, B), names=names))) == 2
    assert model.names_["columns"][3] == "g3"
    found = netbic.SparseGraphSVD(2, n_rows=12, n_columns=15).modules_of(model.prepared(make(A, B)))
    np.testing.assert_array_equal(found[1].v.support, np.flatnonzero(model.columns_[1]))


@pytest.mark.parametrize("function", [n_modules, stability, graph_value])
@pytest.mark.parametrize("options", [{}, {"n_jobs": "dask"}])
def test_functions_that_need_rows_of_x_are_refused(function, options):
    model = netbic.SparseGraphSVD(1, n_rows=12, n_columns=15, column_graph=GRAPH)
    (make, _) = operators_of_the_page()
    with pytest.raises(
        TypeError, match=r"^X is a ProductOperator, but .* data in memory: give X\.toarray\(\) if it fits"
    ):
        function(model, make(A, B), **options)
    with pytest.raises(TypeError, match=r"^X is a ProductOperator, but .* data in memory"):
        tune(model, make(A, B), {"n_rows": [5, 10]}, **options)
    with pytest.raises(TypeError, match=r"^X is a ProductOperator, which offers products only"):
        netbic.pl.heatmap(model.fit(make(A, B)), make(A, B))


@pytest.mark.parametrize("missing", ["ignore", "impute"])
def test_options_that_need_entries_of_x_are_refused(missing):
    (make, _) = operators_of_the_page()
    with pytest.raises(ValueError, match=f"missing='{missing}' needs the entries of X, but X is a ProductOperator"):
        netbic.SparseGraphSVD(1, missing=missing).fit(make(A, B))


def test_values_out_of_range_are_refused():
    (make, _) = operators_of_the_page()
    with pytest.raises(ValueError, match="whose squares leave the range of numbers"):
        netbic.SparseGraphSVD(1).fit(make(A * 1e200, B))
    with pytest.raises(ValueError, match="X contains NaN"):
        netbic.SparseGraphSVD(1).fit(make(np.where(A > 2, np.nan, A), B))
    with pytest.raises(ValueError, match="at least one of each"):
        netbic.SparseGraphSVD(1).fit(make(A[:0], B))
    with pytest.raises(ValueError, match="60 features, but SparseGraphSVD is expecting 90 features"):
        netbic.SparseGraphSVD(1).fit(make(A, B)).transform(make(A, B[:60]))


def test_a_class_that_is_not_an_operator_is_refused():
    with pytest.raises(TypeError, match=r"abstract class .*rmatvec"):
        type("Half", (DataOperator,), {"matvec": lambda self, support, values: values})((3, 3))
    with pytest.raises(ValueError, match=r"shape=\(3,\): a pair of integers is needed"):
        DataOperator.__init__(object.__new__(operators_of_the_page()[0]), (3,))
    with pytest.raises(TypeError, match="X is a set: give an array"):
        as_operator({1, 2})
