"""A penalty that chooses its size: recovery, invariance to scale and order, and diagnostics."""

import importlib
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import netbic
from netbic import L0, AdaptiveSupport, SparseGraphSVD
from netbic.operators.corrected import winsorised
from netbic.penalties import Choice
from netbic.penalties.adaptive import evidence_of_gradation
from netbic.simulate import paper
from support.problems import quiet_fit
from support.simulations import adaptive_run, f1

solving = importlib.import_module("netbic.solver.solve")  # `netbic.solver.solve` is the function
ADAPTIVE = {"row_penalty": AdaptiveSupport(), "column_penalty": AdaptiveSupport(), "center": None}


@pytest.mark.parametrize(
    ("gamma", "kind", "least"),
    [
        (0.05, "true", 0.93),
        *(pytest.param(0.03, kind, 0.96, marks=pytest.mark.nightly) for kind in ("none", "permuted")),
    ],
)
def test_sizes_are_found(gamma, kind, least):
    found = np.array([adaptive_run(100, gamma, kind, 500 + seed) for seed in range(4)], dtype=float)
    right, reached, with_true_sizes, _, converged = found.mean(axis=0)
    assert right == 1
    assert converged == 1
    assert reached > max(least, with_true_sizes - 0.03)


@pytest.mark.filterwarnings("ignore:.*do not identify")
@pytest.mark.parametrize("term", ["modularity", pytest.param("normalized", marks=pytest.mark.nightly)])
def test_a_choice_that_would_cycle_converges(monkeypatch, term):
    """Several of these run into cycles while sizes and weights are chosen again in every iteration."""
    outcomes, iterate = [], solving._iterate
    monkeypatch.setattr(solving, "_iterate", lambda *a, **k: outcomes.append(iterate(*a, **k)) or outcomes[-1])
    cycled = 0
    for seed in range(8):
        toy = paper(0.05, random_state=seed)
        graphs = {"row_graph": toy.row_graph, "column_graph": toy.column_graph, "graph_term": term}
        outcomes.clear()
        model = SparseGraphSVD(1, **ADAPTIVE, **graphs).fit(toy.X)
        cycled += any(solution.outcome == "cycle" for solution in outcomes)
        assert model.converged_.all()
        assert model.choices_["size"].tolist() == [model.rows_.sum(), model.columns_.sum()]
    assert cycled >= 3, "few of these run into cycles any more: the test has lost its subject"


def test_order_scale_and_sign_of_the_data_do_not_matter():
    toy = paper(0.04, random_state=1)
    generator = np.random.default_rng(0)
    rows, columns = generator.permutation(100), generator.permutation(100)
    whole = SparseGraphSVD(1, **ADAPTIVE, row_graph=toy.row_graph, column_graph=toy.column_graph).fit(toy.X)
    graphs = toy.row_graph.weights[rows][:, rows], toy.column_graph.weights[columns][:, columns]
    moved = SparseGraphSVD(1, **ADAPTIVE, row_graph=graphs[0], column_graph=graphs[1])
    moved.fit(-8 * toy.X[np.ix_(rows, columns)])
    assert (moved.rows_[0] == whole.rows_[0][rows]).all()
    assert (moved.columns_[0] == whole.columns_[0][columns]).all()
    np.testing.assert_allclose(moved.posteriors_["columns"][0], whole.posteriors_["columns"][0][columns], atol=1e-6)
    np.testing.assert_allclose(moved.choices_["sigma"], 8 * whole.choices_["sigma"], rtol=1e-4)


def test_the_size_of_an_axis_may_be_given():
    toy = paper(0.03, random_state=2)
    model = SparseGraphSVD(1, n_rows=50, column_penalty=AdaptiveSupport(), center=None).fit(toy.X)
    assert model.posteriors_["rows"] is None
    assert model.posteriors_["columns"].shape == (1, 100)
    assert model.choices_["axis"].tolist() == ["columns"]
    assert abs(model.choices_["size"][0] - 50) <= 5
    model = SparseGraphSVD(1, n_rows=5, n_columns=5).fit(toy.X)
    assert model.choices_.empty
    assert model.posteriors_ == {"rows": None, "columns": None}


def test_all_kinds_of_matrices_are_accepted():
    toy = paper(0.03, random_state=3)
    truth = toy.v != 0
    incomplete = np.where(np.random.default_rng(0).random(toy.X.shape) < 0.1, np.nan, toy.X)
    plain = SparseGraphSVD(1, **ADAPTIVE)
    assert f1(plain.fit(sp.csr_array(toy.X)).columns_[0], truth) > 0.95
    assert f1(plain.fit(toy.X.astype(np.float32)).columns_[0], truth) > 0.95
    assert f1(plain.set_params(missing="ignore").fit(incomplete).columns_[0], truth) > 0.95
    assert f1(plain.set_params(missing="impute").fit(incomplete).columns_[0], truth) > 0.95


def test_outliers_are_clipped():
    toy = paper(0.03, random_state=4)
    X = toy.X.copy()
    X[70, 80] = 5.0
    clipped = SparseGraphSVD(1, **ADAPTIVE).fit(X)
    assert f1(clipped.columns_[0], toy.v != 0) > 0.95
    as_it_is = {axis: AdaptiveSupport(clip=None) for axis in ("row_penalty", "column_penalty")}
    with pytest.warns(UserWarning, match="do not identify"):
        alone = SparseGraphSVD(1, **ADAPTIVE | as_it_is).fit(X)
    assert alone.columns_[0][80]
    assert alone.columns_.sum() < 10


def test_winsorising_does_not_change_the_other_entries():
    X = np.random.default_rng(0).standard_normal((200, 5))
    X[3, 2] = 50.0
    X[:, 4] = np.where(np.arange(200) < 120, 0.0, X[:, 4])
    clipped = winsorised(X)
    mad = 1.4826 * np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    assert clipped[3, 2] == pytest.approx(np.median(X[:, 2]) + 3 * mad[2])
    assert (clipped[:, 4] == X[:, 4]).all()
    inside = np.abs(X - np.median(X, axis=0)) <= 3 * mad
    assert (clipped[inside] == X[inside]).all()
    assert np.isnan(winsorised(np.where(X > 2, np.nan, X))).sum() == (X > 2).sum()


def test_noise_causes_a_warning():
    X = np.random.default_rng(0).standard_normal((100, 100))
    with pytest.warns(UserWarning, match="do not identify"):
        model = SparseGraphSVD(1, **ADAPTIVE).fit(X)
    assert (model.choices_["diagnostic"] != "").any()


def test_diagnostics_of_choices():
    assert Choice(np.full(10, 0.99), 0, 1).diagnostic == "saturated"
    assert Choice(np.append([0.9, 0.9], np.zeros(8)), 0, 1).diagnostic == "collapsed"
    clear = np.append(np.ones(5), np.zeros(5))
    assert Choice(clear, 0, 1, 0.9).diagnostic == "weak"
    assert Choice(clear, 0, 1, 2.0).diagnostic == ""
    assert Choice(np.append(np.full(4, 0.6), np.full(6, 0.4)), 0, 1).diagnostic == "overlapping"
    assert Choice(clear, 0, 1).expected_f1 == 1
    assert Choice(np.array([0.8, 0.6, 0.6, 0.2]), 0, 1).expected_f1 == pytest.approx(2 * 2.0 / (3 + 2.2))
    assert Choice(np.array([0.1, 0.3, 0.2]), 0, 1).support.tolist() == [1, 2]


def test_choices_are_preserved_by_saving_and_resuming(tmp_path):
    toy = paper(0.03, random_state=5)
    parameters = ADAPTIVE | {"row_graph": toy.row_graph, "n_components": 2}
    model, again = SparseGraphSVD(**parameters), SparseGraphSVD(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the second module is noise
        found = list(model.iter_fit(toy.X))
        list(again.iter_fit(toy.X, known=found[:1]))
    netbic.save(model, tmp_path)
    for other in (netbic.load(tmp_path), again):
        pd.testing.assert_frame_equal(other.choices_, model.choices_)
        for axis in ("rows", "columns"):
            np.testing.assert_array_equal(other.posteriors_[axis], model.posteriors_[axis])
    assert netbic.load(tmp_path).column_penalty == AdaptiveSupport()


toy = paper(0.03, random_state=0)


def test_bad_input():
    graph = {"column_graph": toy.column_graph}
    for parameters, message in (
        (graph | {"column_smoothness": 0.2}, "column_smoothness=0.2 but .* chooses it"),
        (graph | {"signs": "signed"}, "signs='signed'"),
        (graph | {"graph_term": "laplacian"}, "graph_term='laplacian'"),
        ({"column_penalty": AdaptiveSupport(gate=0)}, "gate must be a finite number above 0"),
        ({"column_penalty": AdaptiveSupport(fallback=101)}, "choose a fallback from 1 to 100, or None"),
        ({"column_penalty": AdaptiveSupport(clip="far")}, "clip must be a finite number above 0"),
        ({"solver": "monotone"}, "it has no objective"),
    ):
        with pytest.raises(ValueError, match=message):
            SparseGraphSVD(1, **ADAPTIVE | parameters).fit(toy.X)
    with pytest.raises(ValueError, match="has 4 columns: at least 5 are needed"):
        SparseGraphSVD(1, **ADAPTIVE).fit(toy.X[:, :4])


def test_a_graph_can_be_left_out():
    parameters = {"column_graph": toy.column_graph, "column_smoothness": 0}
    without, none = (SparseGraphSVD(1, **ADAPTIVE | extra).fit(toy.X) for extra in (parameters, {}))
    np.testing.assert_array_equal(without.components_, none.components_)


def test_sizes_mix_with_other_penalties():
    model = SparseGraphSVD(1, row_penalty=L0(50), column_penalty=AdaptiveSupport(nonnegative=True), center=None)
    same = paper(0.02, signs="same", random_state=0)
    model.fit(same.X)
    assert (model.components_ >= 0).all()
    assert f1(model.columns_[0], same.v != 0) > 0.95


@pytest.mark.parametrize(
    ("seed", "with_graph"),
    [(2, True), *(pytest.param(*case, marks=pytest.mark.nightly) for case in ((3, True), (2, False), (3, False)))],
)
def test_modules_of_equal_strength_are_not_mixed_up(seed, with_graph):
    """Overlapping modules of equal strength: the leading singular pair is a mixture of them."""
    study = netbic.simulate.cohort(300, 1500, n_modules=4, strength=1.5, random_state=seed)
    graph = {"column_graph": study.network} if with_graph else {}
    model = SparseGraphSVD(4, row_penalty=AdaptiveSupport(), column_penalty=AdaptiveSupport(), **graph)
    model.fit(study.expression)
    assert netbic.simulate.recovery(model.columns_, study.genes)["f1"].min() > 0.95
    assert netbic.simulate.recovery(model.rows_, study.samples)["f1"].min() > 0.95


def test_constant_columns_are_not_candidates():
    X = toy.X.copy()
    X[:, ::3] = 2.0
    model = SparseGraphSVD(1, **ADAPTIVE | {"center": "columns"}).fit(X)
    truth = (toy.v != 0) & (np.arange(100) % 3 > 0)
    assert f1(model.columns_[0], truth) > 0.95
    assert np.isnan(model.posteriors_["columns"][0, ::3]).all()
    X = toy.X.copy()  # nor are columns of low variance members
    X[:, 75:] *= 0.02
    model = quiet_fit(X, n_components=1, **ADAPTIVE)
    assert model.columns_[0, 75:].sum() <= 2


def test_unequal_noise_has_a_diagnostic_or_is_scaled():
    generator, toy = np.random.default_rng(1), paper(0.02, random_state=1)
    factors = np.exp(0.5 * generator.standard_normal(100))
    X = np.outer(toy.u, toy.v) + 0.02 * factors * generator.standard_normal((100, 100))
    with pytest.warns(UserWarning, match="use `scale=True` instead"):
        model = SparseGraphSVD(1, **ADAPTIVE | {"center": "columns"}).fit(X)
    assert model.choices_["diagnostic"].tolist()[1] == "heteroscedastic"
    assert model.choices_["heteroscedasticity"][1] == pytest.approx(np.log(factors).std(), rel=0.3)
    scaled = SparseGraphSVD(1, **ADAPTIVE | {"center": "columns", "scale": True}).fit(X)
    assert f1(scaled.columns_[0], toy.v != 0) > 0.9


def test_dense_data_get_the_fallback_and_the_modules_of_l0():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((60, 3)) @ generator.standard_normal((3, 400)) + generator.standard_normal((60, 400))
    graph = np.triu(generator.random((400, 400)) < 0.02, 1).astype(float)
    parameters = {"column_graph": graph + graph.T, "column_smoothness": 0.4}
    model = SparseGraphSVD(2, column_penalty=AdaptiveSupport(fallback=50, clip=None), **parameters).fit(X)
    fixed = SparseGraphSVD(2, n_columns=50, **parameters).fit(X)
    np.testing.assert_array_equal(model.components_, fixed.components_)
    np.testing.assert_array_equal(model.graph_share_, fixed.graph_share_)
    assert model.choices_["fallback"].all()
    assert (model.choices_["diagnostic"] == "dense").all()
    assert model.choices_["size"].tolist() == [50, 50]


def test_weights_without_a_gap_are_detected():
    detected = []
    for seed in range(8):
        generator = np.random.default_rng(seed)
        noise = generator.standard_normal(1080)
        equal, uneven = np.full(80, 6.0), 8 * generator.uniform(0.6, 1.4, 80)
        normal, exponential = generator.normal(0, 6, 80), generator.exponential(4, 80)
        kinds = [np.append(weights, np.zeros(1000)) + noise for weights in (equal, uneven, normal, exponential)]
        detected.append([evidence_of_gradation(scores) > 0 for scores in kinds])
    shares = np.mean(detected, axis=0)
    assert (shares[:2] <= 0.1).all()  # with a gap
    assert (shares[2:] >= 0.85).all()


def test_the_noise_estimate_of_a_small_module_stays_bounded():
    """Without a bound it was squared in every iteration, and the sizes never converged."""
    generator = np.random.default_rng(8)
    X = generator.standard_normal((40, 60))
    X[generator.random(X.shape) < 0.4] = np.nan
    model = quiet_fit(X, n_components=1, **ADAPTIVE, missing="impute")
    assert (model.choices_["noise"] < 2).all()
    assert model.converged_.all()  # solutions that alternate while missing entries are imputed are a cycle
