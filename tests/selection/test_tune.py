"""Grid search: planted sizes found, choices, interrupted searches resumed."""

import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import netbic
from netbic import Graph, L1Ball, SparseGraphCCA, SparseGraphSVD
from netbic.errors import InputError
from netbic.selection import tune
from netbic.selection.resampling import folds
from netbic.selection.tune import choose_point, default_grid, describe_choice, standard_error_of_difference

toy = netbic.simulate.paper(0.03, random_state=0)
plain = SparseGraphSVD(1, center=None)
SIZES = {"n_rows": [20, 50, 90], "n_columns": [20, 50, 90]}


@pytest.fixture(scope="module")
def cohort():
    return netbic.simulate.cohort(120, 300, n_modules=2, module_samples=20, module_genes=30, random_state=0)


# Choices


@pytest.mark.nightly
def test_planted_sizes_are_found():
    grid = {"n_rows": [10, 30, 50, 70, 100], "n_columns": [10, 30, 50, 70, 100]}
    right = []
    for seed in range(6):
        X = netbic.simulate.paper(0.038, random_state=seed).X
        right.append(tune(plain, X, grid, random_state=seed).best_params_)
    hits = [point == {"n_rows": 50, "n_columns": 50} for point in right]
    assert np.mean(hits) > 0.6, right


def results_of(scores, points, members):
    scores = np.array(scores, dtype=float)
    results = {f"split{fold}_test_score": column for fold, column in enumerate(scores.T)}
    names = {name for point in points for name in point}
    return results | {f"param_{name}": None for name in names} | {
        "params": points,
        "mean_test_score": scores.mean(axis=1),
        "mean_row_share": np.zeros(len(points)),
        "mean_column_share": np.array(members, dtype=float),
    }  # fmt: skip


def test_one_standard_error():
    points = [{"n_columns": size} for size in (10, 20, 30, 40)]
    scores = np.array([[0, 1, 2], [2.5, 3, 4], [2.5, 3.5, 4.5], [1, 1, 5]])
    results = results_of(scores, points, [0.1, 0.2, 0.3, 0.4])
    errors = [np.std(scores[2] - scores[k], ddof=1) / np.sqrt(3) for k in (0, 1, 3)]
    assert standard_error_of_difference(results) == pytest.approx(np.median(errors))
    models = [SparseGraphSVD(**point) for point in points]
    assert choose_point(results, models, "best") == 2
    near = results_of([[0, 1.5, 2], [2.4, 3.4, 4.5], [2.5, 3.5, 4.5], [1, 1, 5]], points, [0.1, 0.2, 0.3, 0.4])
    assert choose_point(near, models, "one_se") == 1
    assert choose_point(results_of(scores, points, [0.1, 0.2, 0.3, 0.4]), models, "one_se") == 2
    equal = results_of([[3, 1, 2], [2.5, 3.5, 4.4], [2.5, 3.5, 4.5], [1, 1, 5]], points, [0.1, 0.3, 0.3, 0.4])
    smooth = [SparseGraphSVD(column_graph=toy.column_graph, column_smoothness=s) for s in (0, 0.1, None, 0)]
    assert choose_point(equal, smooth, "one_se") == 1


def sizes(n, p):
    return {"n_rows": (n, "rows"), "n_columns": (p, "columns")}


def test_the_verdict_reports_sizes_that_are_not_identified():
    points = [{"n_columns": size} for size in (10, 100, 1000)]
    rising = results_of([[1, 1], [2, 2], [3, 3]], points, [0.01, 0.1, 1])
    text, unidentified = describe_choice(rising, 2, sizes(50, 1000))
    assert "not identify n_columns: the best value is the largest tried (all 1,000 columns)" in text
    assert "n_rows" not in text
    assert unidentified == ("n_columns",)
    assert "(1,000 of 3,127 columns); try larger values" in describe_choice(rising, 2, sizes(50, 3127))[0]
    inside = results_of([[1, 1], [3, 3], [2, 2]], points, [0.01, 0.1, 1])
    text, unidentified = describe_choice(inside, 1, sizes(50, 1000))
    assert "identify" not in text
    assert unidentified == ()
    falling = results_of([[3, 3], [2, 2], [1, 1]], points, [0.01, 0.1, 1])
    text = describe_choice(falling, 0, sizes(50, 1000))[0]
    assert "The smallest n_columns tried is chosen (10): try smaller values." in text


# Results, threads, names


def test_the_result_does_not_depend_on_n_jobs_and_has_the_form_of_scikit_learn(cohort):
    model = SparseGraphSVD(2, n_rows=20, column_graph=cohort.network)
    grid = [
        {"n_columns": [20, 40], "column_smoothness": [0.0, 0.1]},
        {"column_penalty": [L1Ball(4.0)], "scale": [True]},
    ]
    one, many = (tune(model, cohort.expression, grid, n_folds=3, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    first, second = pd.DataFrame(one.cv_results_), pd.DataFrame(many.cv_results_)
    pd.testing.assert_frame_equal(first, second)
    pd.testing.assert_frame_equal(one.table, many.table)
    search = GridSearchCV(model, grid, cv=2).fit(cohort.expression)
    ours, theirs = one.cv_results_, search.cv_results_
    assert ours["params"] == theirs["params"]
    for name in theirs:
        if name.startswith("param_"):
            assert list(ours[name]) == list(theirs[name])
        assert name in ours or name.endswith("time") or name.startswith("split")
    assert ours["rank_test_score"].min() == 1
    assert one.table["chosen"].tolist().index(True) == one.best_index_
    assert one.best_score_ == ours["mean_test_score"][one.best_index_]
    same = SparseGraphSVD(**model.get_params() | one.best_params_).fit(cohort.expression)
    np.testing.assert_array_equal(same.components_, one.best_estimator_.components_)
    assert one.best_estimator_.feature_names_in_[0] == "GENE0000"


def test_the_default_grid(cohort):
    model = SparseGraphSVD(column_graph=cohort.network, row_penalty=L1Ball(3.0))
    grid = default_grid(model, (120, 300))
    assert sorted(grid) == ["column_smoothness", "n_columns"]
    assert grid["n_columns"][0] == 5
    assert grid["n_columns"][-1] == 300
    assert grid["column_smoothness"][0] == 0
    assert max(grid["column_smoothness"]) < 1
    model.set_params(smoothness_scale="relative")
    assert max(default_grid(model, (120, 300))["column_smoothness"]) <= 0.25
    assert "n_rows" not in default_grid(SparseGraphSVD(), (6, 3000))
    assert default_grid(SparseGraphSVD(n_rows=5), (6, 3000))["n_rows"] == [5, 6]
    tuning = tune(SparseGraphSVD(1, n_rows=30), cohort.expression, n_folds=2, random_state=0)
    assert len(tuning.table) == 25
    ridge = default_grid(SparseGraphCCA(x_graph=cohort.network, covariance="ridge"), (300, 20))
    assert sorted(ridge) == ["n_x", "n_y", "ridge", "x_smoothness"]
    assert (ridge["n_x"][-1], ridge["n_y"][-1]) == (300, 20)


# Scores, recomputed by hand


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


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_held_out_scores_are_those_of_plain_fits(cohort, kind):
    X, network = cohort.expression, cohort.network
    parameters = {"n_components": 3, "n_columns": 40, "column_smoothness": 0.1}
    grid = {"n_rows": [10, 30]}
    given, graph = X, network
    if kind == "sparse":
        given, graph = sp.csr_array(X.to_numpy()), Graph(network.weights)
    tuning = tune(SparseGraphSVD(column_graph=graph, **parameters), given, grid, random_state=1)
    (rows, out_rows), (columns, out_columns) = held(X, 1, 2)
    values = X.to_numpy()
    weights = network.weights[columns][:, columns]
    own = SparseGraphSVD(column_graph=weights, **parameters | {"n_rows": round(30 * 0.8), "n_columns": round(40 * 0.8)})
    own.fit(values[np.ix_(rows, columns)])
    samples = values[np.ix_(out_rows, columns)]
    features = values[np.ix_(rows, out_columns)]
    by_hand = own.score(samples) + share((features - features.mean(axis=0)).T, own.left_vectors_.T)
    assert tuning.cv_results_["split2_test_score"][1] == pytest.approx(by_hand, rel=1e-9)
    assert tuning.best_estimator_.n_features_in_ == 300


@pytest.mark.nightly
def test_a_sparse_matrix_is_never_made_dense():
    X = sp.random(200, 40_000, density=0.005, random_state=0, format="csr")
    tracemalloc.start()
    tune(SparseGraphSVD(1, n_rows=20), X, {"n_columns": [200]}, n_folds=2, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 200 * 40_000


def test_features_are_scaled_separately_in_each_fold():
    generator = np.random.default_rng(0)
    X = 3 + generator.standard_normal((30, 40)) * generator.uniform(0.5, 2, 40)
    (rows, out_rows), (columns, out_columns) = held(X, 0, 0, 3)
    for center in ("columns", "rows", "both", "grand"):
        model = SparseGraphSVD(2, n_rows=10, center=center, scale=True)
        tuning = tune(model, X, {"n_columns": [12]}, random_state=0, n_folds=3)
        model.set_params(n_rows=round(10 * 20 / 30), n_columns=round(12 * 26 / 40)).fit(X[np.ix_(rows, columns)])
        Y = X[np.ix_(rows, out_columns)]
        deviations = Y.std(axis=0)
        Y = Y - (Y.mean() if center == "grand" else Y.mean(axis=0) if center in ("columns", "both") else 0)
        Y = Y - (Y.mean(axis=1, keepdims=True) if center in ("rows", "both") else 0)
        by_hand = model.score(X[np.ix_(out_rows, columns)]) + share((Y / deviations).T, model.left_vectors_.T)
        assert tuning.cv_results_["split0_test_score"][0] == pytest.approx(by_hand)


# Interruption


class Stop:
    """Interrupts after a number of fits, like Ctrl-C."""

    def __init__(self, after):
        self.after, self.calls = after, []

    def __call__(self, done, total):
        self.calls.append((done, total))
        if len(self.calls) == self.after:
            raise KeyboardInterrupt


def fits_in(folder):
    return len(list(folder.glob("*-*")))


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_an_interrupted_tuning_is_resumed(tmp_path, n_jobs):
    kept = tmp_path / "tuning"
    whole = tune(plain, toy.X, SIZES, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=Stop(20), n_jobs=n_jobs)
    assert fits_in(kept) == 20
    next(kept.glob("*-*")).write_text("[0.1, 1,")  # cut short: this fit is repeated
    counted = Stop(None)
    again = tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=counted, n_jobs=n_jobs)
    assert counted.calls == [(done, 45) for done in range(20, 46)]
    pd.testing.assert_frame_equal(pd.DataFrame(whole.cv_results_), pd.DataFrame(again.cv_results_))
    assert whole.verdict == again.verdict
    finished = Stop(None)
    tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=finished)
    assert finished.calls == []


def test_a_checkpoint_stores_its_seed(tmp_path):
    kept, grid = tmp_path / "tuning", {"n_rows": [20, 50]}
    with pytest.raises(KeyboardInterrupt):
        tune(plain, toy.X, grid, checkpoint=kept, progress=Stop(3))
    seed = json.loads((kept / "task.json").read_text())["data"]["seed"]
    tune(plain, toy.X, grid, checkpoint=kept)
    assert json.loads((kept / "task.json").read_text())["data"]["seed"] == seed
    assert fits_in(kept) == 10


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    defaults = {"model": plain, "X": toy.X, "grid": {"n_rows": [50]}, "random_state": 0, "checkpoint": tmp_path / "own"}
    tune(**defaults)
    before = {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()}
    for options, message in (
        ({"X": toy.X + 1}, "X differs"),
        ({"grid": {"n_rows": [40]}}, "model and grid differs"),
        ({"model": SparseGraphSVD(2)}, "model and grid differs"),
        ({"n_folds": 4}, "n_folds: 5 then, 4 now"),
        ({"random_state": 1}, "seed differs"),
        ({"checkpoint": tmp_path}, "not a folder of netbic"),
        ({"checkpoint": tmp_path / "nowhere" / "tuning"}, "cannot be written"),
    ):
        with pytest.raises(InputError, match=message):
            tune(**defaults | options)
    assert {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()} == before


# Bad input

INCOMPLETE = toy.X.copy()
INCOMPLETE[0, 0] = np.nan


def test_bad_input_is_found_before_anything_is_fitted(monkeypatch):
    def unexpected(*_):
        raise AssertionError("fitted")

    monkeypatch.setattr(SparseGraphSVD, "modules_of", unexpected)
    for options, message in (
        ({"n_folds": 60}, "60 folds of 100 samples: choose 2 to 50"),
        ({"n_folds": 0}, "n_folds=0"),
        ({"X": toy.X[:, :6]}, "5 folds of 6 features: choose 2 to 3"),
        ({"grid": {"n_rows": [10, 101]}}, r"grid point n_rows=101: n_rows=101 but X has 100 rows"),
        ({"grid": {"n_rows": [10], "n_columns": [-1]}}, "n_columns=-1"),
        ({"grid": {"column_penalty": [L1Ball(10.5)]}}, r"L1Ball\(.*column"),
        ({"grid": {"column_smoothness": [0.1]}}, "needs a column_graph"),
        ({"grid": {"graph_term": ["hub"]}}, "graph_term='hub' is not known"),
        ({"grid": {"genes": [1]}}, "'genes' is no parameter of SparseGraphSVD: choose among .*n_columns"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": {"n_rows": []}}, r"grid\['n_rows'\] is empty"),
        ({"grid": {"n_rows": 5}}, r"grid\['n_rows'\]=5: a list of values is needed"),
        ({"grid": 5}, "a dict of lists is needed"),
        ({"X": INCOMPLETE}, "missing='ignore'"),
        ({"X": np.zeros((100, 100))}, "does not vary"),
        ({"rule": "two_se"}, "rule='two_se' is not known"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ):
        with pytest.raises(ValueError, match=message):
            tune(**{"model": plain, "X": toy.X, "grid": {"n_rows": [50]}} | options)
    with pytest.raises(TypeError, match="GridSearchCV"):  # it takes other estimators
        tune(GridSearchCV(plain, {}), toy.X)
    flat = np.random.default_rng(0).standard_normal((12, 10))
    flat[:, :5] = 1.0
    with pytest.raises(ValueError, match=r"fold \d of 5: its held-out part does not vary: use fewer folds"):
        tune(SparseGraphSVD(1), flat, {"n_rows": [5]}, random_state=0)


def test_warnings_of_trial_fits_are_not_shown():
    """With at most two iterations no fit converges: only the last, to all of X, causes a warning."""
    with pytest.warns(ConvergenceWarning) as caught:
        tune(SparseGraphSVD(1, max_iter=2, tol=0.0, n_rows=50), toy.X, {"n_columns": [5, 50]}, random_state=0)
    assert len(caught) == 1


def test_the_number_of_modules_is_not_chosen_by_explained_variance():
    with pytest.raises(ValueError, match=r'more modules always explain more.*n_components="auto"'):
        tune(SparseGraphSVD(2), np.random.default_rng(0).standard_normal((40, 30)), {"n_components": [2, 8]})
