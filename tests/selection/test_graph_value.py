"""The graph helps where it is informative, not where it is rewired, permuted, or on the wrong genes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import netbic
from netbic import Graph, SparseGraphSVD
from netbic.selection import graph_value
from netbic.selection.graph_value import fit_folds
from netbic.selection.resampling import folds

study = netbic.simulate.cohort(300, 1000, n_modules=3, strength=0.7, random_state=0)
model = SparseGraphSVD(3, n_rows=40, n_columns=60, column_graph=study.network)
QUICK = {"n_rewired": 9, "n_repeats": 2, "random_state": 0, "n_jobs": 2}


def test_the_true_graph_helps_and_others_do_not():
    value = graph_value(model, study.expression, **QUICK)
    assert value.helps
    assert value.verdict.startswith("The graph helps")
    assert not value.degree["tracks"].any()
    order = np.random.default_rng(0).permutation(1000)
    permuted = SparseGraphSVD(**model.get_params() | {"column_graph": Graph(study.network.weights[order][:, order])})
    assert not graph_value(permuted, study.expression.to_numpy(), **QUICK).helps


def test_p_values_are_those_of_t_tests():
    X, seed = study.expression.to_numpy(), int(np.random.default_rng(0).integers(2**31))
    nameless = SparseGraphSVD(**model.get_params() | {"column_graph": study.network.weights, "random_state": 0})
    options = {"n_rewired": 3, "n_folds": 3, "n_repeats": 2, "random_state": 0, "early_stopping": False}
    value, again = (graph_value(nameless, X, **options, n_jobs=n_jobs) for n_jobs in (1, 2))
    pd.testing.assert_frame_equal(value.table, again.table)
    own, _, *rewired = value.table["share"]
    t = (own - np.mean(rewired)) / (np.std(rewired, ddof=1) * np.sqrt(1 + 1 / 3))
    assert value.p_rewired == pytest.approx(stats.t.sf(t, 2))
    places = [(repeat, fold) for repeat in range(2) for fold in range(3)]
    fits = fit_folds((nameless, X, 3, seed, None), (["true", "none"], places))
    scores = np.array(fits).reshape(6, 2)
    gains = scores[:, 0] - scores[:, 1]
    assert value.p_none == pytest.approx(stats.t.sf(gains.mean() / (gains.std(ddof=1) / np.sqrt(3)), 2))


def test_held_out_scores_are_the_scores_of_clones():
    X = study.expression.to_numpy()
    nameless = SparseGraphSVD(**model.get_params() | {"column_graph": study.network.weights})
    found = fit_folds((nameless, X, 4, 3, None), (["none", "true"], [(0, 1), (0, 2)]))
    part = folds(300, 4, [3, 0])[2]
    inside = np.setdiff1d(np.arange(300), part)
    own = SparseGraphSVD(3, n_rows=30, n_columns=60, column_graph=study.network.weights).fit(X[inside])
    assert found[3] == pytest.approx(own.score(X[part]), rel=1e-9)  # the second graph in the second fold
    together = np.sort(np.concatenate(folds(200, 7, 1)))
    assert together.tolist() == list(range(200))


def test_bad_input():
    for options, message in (
        ({"n_rewired": 2}, "at least 3 are needed"),
        ({"n_folds": 160}, "160 folds of 300 samples: choose 2 to 150"),
        ({"n_folds": 1}, "1 folds of 300 samples"),
        ({"n_repeats": 0}, "n_repeats=0"),
    ):
        with pytest.raises(ValueError, match=message):
            graph_value(model, study.expression, **options)
    with pytest.raises(ValueError, match="no column_graph"):
        graph_value(SparseGraphSVD(1), study.expression)


def test_a_named_graph_of_the_samples_is_matched_by_name():
    toy = netbic.simulate.paper(0.06, random_state=0)
    names = np.array([f"s{i}" for i in range(100)], dtype=object)
    order = np.random.default_rng(0).permutation(100)
    frame = pd.DataFrame(toy.X, index=names)
    parameters = {"n_rows": 50, "n_columns": 50, "center": None, "column_smoothness": 1.0, "graph_term": "adjacency"}
    parameters["column_graph"] = toy.column_graph
    weights = toy.row_graph.weights
    by_name = SparseGraphSVD(1, **parameters, row_graph=Graph(weights[order][:, order], names[order]))
    by_position = SparseGraphSVD(1, **parameters, row_graph=Graph(weights))
    quick = {"n_rewired": 3, "n_repeats": 1, "n_folds": 3, "random_state": 0}
    one, other = (graph_value(each, X, **quick) for each, X in ((by_name, frame), (by_position, toy.X)))
    pd.testing.assert_frame_equal(one.table, other.table)
    assert one.degree["tracks"].all()  # modules that follow the degrees are reported


def test_early_stopping_gives_the_same_answer_with_fewer_fits():
    """Rewired graphs are needed only if the graph is better than none, and fewer if it is clearly better."""
    quick = {"n_folds": 3, "n_repeats": 2, "n_rewired": 7, "random_state": 0}
    whole, early = (graph_value(model, study.expression, **quick, early_stopping=stop) for stop in (False, True))
    assert whole.helps
    assert early.helps
    assert whole.p_rewired <= early.p_rewired <= 0.001
    assert early.table["graph"].tolist() == ["true", "none", *["rewired"] * 5]
    assert early.table["n_fits"].tolist() == [6, 6, *[3] * 5]
    assert (whole.table["n_fits"] == 6).all()
    assert early.p_none == whole.p_none
    np.testing.assert_array_equal(early.table["share"][:2], whole.table["share"][:2])
    # Shares of graphs with fewer fits are compared on the folds that all graphs have in common.
    one = graph_value(model, study.expression, **quick | {"n_repeats": 1, "n_rewired": 5}, early_stopping=False)
    assert early.p_rewired == pytest.approx(one.p_rewired, rel=1e-9)
    differences = [value.table["share"][2:] - value.table["share"][0] for value in (early, one)]
    np.testing.assert_allclose(*differences, rtol=1e-9)


def test_a_useless_graph_is_not_compared_with_rewired_ones():
    quick = {"n_folds": 3, "n_repeats": 2, "n_rewired": 3, "random_state": 0}
    useless = SparseGraphSVD(**model.get_params() | {"column_graph": study.network.rewire(5)})
    none = graph_value(useless, study.expression, **quick)
    assert not none.helps
    assert none.p_none > 0.3
    assert np.isnan(none.p_rewired)
    assert none.table["graph"].tolist() == ["true", "none"]
    assert none.table["n_fits"].tolist() == [3, 3]  # one repeat is enough
    assert none.verdict.startswith("No evidence")
    assert "rewired" not in none.verdict
    one = graph_value(useless, study.expression, **quick | {"n_repeats": 1}, early_stopping=False)
    assert none.p_none == one.p_none
