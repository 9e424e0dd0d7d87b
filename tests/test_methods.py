"""Methods by their names in the literature."""

import warnings

import numpy as np
import pytest

import netbic
from netbic import L0, L1, Dense, L1Ball
from netbic.methods import METHODS

TOY = netbic.simulate.paper(0.03, random_state=0)
GRAPHS = {"row_graph": TOY.row_graph, "column_graph": TOY.column_graph, "row_sigma": 0.1, "column_sigma": 0.1}


@pytest.mark.filterwarnings("ignore:the graph makes up")  # as it does in the paper's own simulation
@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_the_planted_module(name):
    keywords = GRAPHS if METHODS[name].uses_graph else {}
    sizes = {} if name == "SVD" else {"n_rows": 50, "n_columns": 50}
    with warnings.catch_warnings():
        if METHODS[name].signs == "signed":  # the signed term may cycle with random signs
            warnings.simplefilter("ignore")
        model = netbic.method(name, **sizes, **keywords).fit(TOY.X)
    if name == "SVD":
        assert model.columns_.all()
        assert np.abs(model.components_[0] @ TOY.v) > 0.9
    else:
        assert model.columns_.sum() == model.rows_.sum() == 50
        assert model.columns_[0][:50].mean() >= (0.7 if METHODS[name].signs == "signed" else 0.9)


def test_the_paper_convention():
    model = netbic.method("sgSVD*", 3, n_rows=5, n_columns=6, **GRAPHS)
    expected = {"n_rows": 5, "n_columns": 6, "row_smoothness": 0.1, "column_smoothness": 0.1, "center": None}
    expected |= {"smoothness_scale": "absolute", "graph_term": "adjacency", "solver": "aisp", "deflation": "hotelling"}
    expected["search"] = "sequential"
    usual = netbic.SparseGraphSVD(3, row_graph=TOY.row_graph, column_graph=TOY.column_graph).get_params()
    assert model.get_params() == usual | expected
    assert netbic.method("sgSVD", **GRAPHS).signs == "signed"
    assert netbic.method("L0SVD", solver="auto", center="columns").center == "columns"
    for short, long in (("sgSVD*", "L0-sgSVD*"), ("sgSVD", "L0-sgSVD")):
        assert METHODS[short] is METHODS[long]


@pytest.mark.filterwarnings("ignore:module 1 did not converge")  # the sizes that BIC chooses may alternate
@pytest.mark.parametrize("name", ["ALSVD", "SCADSVD"])
def test_without_sizes_bic_chooses(name):
    toy = netbic.simulate.paper(0.02, random_state=1)
    model = netbic.method(name).fit(toy.X)
    assert 40 <= model.columns_.sum() <= 60
    assert model.columns_[0][:50].mean() >= 0.8


def test_pmd_tuned_to_k_is_pmd_for_the_bounds_it_reports():
    tuned = netbic.method("PMD", n_rows=50, n_columns=50, tol=1e-12, max_iter=5000).fit(TOY.X)
    bounds = [float(np.abs(x).sum()) for x in (tuned.left_vectors_[:, 0], tuned.components_[0])]
    pmd = netbic.method(
        "PMD", row_penalty=L1Ball(bounds[0]), column_penalty=L1Ball(bounds[1]), tol=1e-12, max_iter=5000
    ).fit(TOY.X)
    np.testing.assert_allclose(pmd.components_, tuned.components_, atol=1e-9)


def test_a_penalty_replaces_that_of_the_method():
    with pytest.warns(UserWarning, match="the graph makes up"):
        model = netbic.method("L1-sgSVD*", row_penalty=L1(0.05), column_penalty=L1(0.05), **GRAPHS).fit(TOY.X)
    assert model.n_components_ == 1
    assert netbic.method("PMD", row_penalty=L1Ball(2.0)).column_penalty == Dense()
    with pytest.raises(ValueError, match="are both given"):
        netbic.method("sgSVD*", n_rows=3, row_penalty=L0(3)).fit(TOY.X)


def test_bad_names_and_pointless_sigmas():
    with pytest.raises(ValueError, match=r"method 'sgsvd' is not known: choose one of 'sgSVD\*', 'L0-sgSVD\*'"):
        netbic.method("sgsvd")
    with pytest.warns(UserWarning, match="L0SVD has no graph term: row_sigma and column_sigma are ignored"):
        netbic.method("L0SVD", row_sigma=0.1)
    with pytest.warns(UserWarning, match="SVD keeps every row and column: n_rows and n_columns are ignored"):
        netbic.method("SVD", n_rows=3)
    with pytest.raises(ValueError, match=r"row_smoothness=0\.1 needs a row_graph"):
        netbic.method("sgSVD*", row_sigma=0.1).fit(TOY.X)
