"""Grid search: planted sizes found, choices, interrupted searches resumed."""

import json

import numpy as np
import pandas as pd
import pytest
from netbic.selection.choice import AxisSize, choice, standard_error_of_difference, standard_errors, verdict
from netbic.selection.grid import default_grid
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold

import netbic
from netbic import Graph, L1Ball, SparseGraphSVD
from netbic.io import InputError
from netbic.selection import tune
from netbic.selection.resampling import folds

toy = netbic.simulate.paper(0.03, random_state=0)
plain = SparseGraphSVD(1, center=None)
SIZES = {"n_rows": [20, 50, 90], "n_columns": [20, 50, 90]}


@pytest.fixture(scope="module")
def cohort():
    return netbic.simulate.cohort(120, 300, n_modules=2, module_samples=20, module_genes=30, random_state=0)


# ---------------------------------------------------------------------------------------------------------------------
# Choices
# ---------------------------------------------------------------------------------------------------------------------


def test_planted_sizes_are_found():
    grid = {"n_rows": [10, 30, 50, 70, 100], "n_columns": [10, 30, 50, 70, 100]}
    right = []
    for seed in range(6):
        X = netbic.simulate.paper(0.038, random_state=seed).X
        right.append(tune(plain, X, grid, random_state=seed).best_params_)
    hits = [point == {"n_rows": 50, "n_columns": 50} for point in right]
    assert np.mean(hits) > 0.6, right


@pytest.mark.filterwarnings("ignore:the graph makes up")
def test_smoothness_is_larger_for_the_true_graph_than_for_a_shuffled_one():
    grid = {"column_smoothness": [0.0, 0.5, 1.0]}
    taken = []
    for seed in range(4):
        hard = netbic.simulate.paper(0.06, random_state=seed)
        order = np.random.default_rng(seed).permutation(100)
        for graph in (hard.column_graph, Graph(hard.column_graph.weights[order][:, order])):
            units = {"graph_term": "normalized", "smoothness_scale": "relative"}
            model = SparseGraphSVD(1, n_rows=50, n_columns=50, column_graph=graph, center=None, **units)
            taken.append(tune(model, hard.X, grid, random_state=seed, rule="best").best_params_["column_smoothness"])
    assert np.mean(taken[::2]) > np.mean(taken[1::2]) + 0.2


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
    np.testing.assert_allclose(standard_errors(results), np.std(scores, axis=1, ddof=1) / np.sqrt(3))
    errors = [np.std(scores[2] - scores[k], ddof=1) / np.sqrt(3) for k in (0, 1, 3)]
    assert standard_error_of_difference(results) == pytest.approx(np.median(errors))
    models = [SparseGraphSVD(**point) for point in points]
    assert choice(results, models, "best") == 2
    near = results_of([[0, 1.5, 2], [2.4, 3.4, 4.5], [2.5, 3.5, 4.5], [1, 1, 5]], points, [0.1, 0.2, 0.3, 0.4])
    assert choice(near, models, "one_se") == 1
    assert choice(results_of(scores, points, [0.1, 0.2, 0.3, 0.4]), models, "one_se") == 2
    equal = results_of([[3, 1, 2], [2.5, 3.5, 4.4], [2.5, 3.5, 4.5], [1, 1, 5]], points, [0.1, 0.3, 0.3, 0.4])
    smooth = [SparseGraphSVD(column_graph=toy.column_graph, column_smoothness=s) for s in (0, 0.1, None, 0)]
    assert choice(equal, smooth, "one_se") == 1
    one_fold = results_of([[1.0], [3.0], [2.0], [2.9]], points, [0.1, 0.2, 0.3, 0.4])
    assert choice(one_fold, models, "one_se") == 1


def test_differences_between_folds_do_not_widen_the_margin():
    points = [{"n_columns": size} for size in (10, 20, 30)]
    scores = np.array([[1.0, 1.1, 0.9], [2.0, 2.1, 1.9], [3.0, 3.0, 3.0]])
    levels = np.array([0.0, 50.0, 100.0])
    models = [SparseGraphSVD(**point) for point in points]
    for given in (scores, scores + levels):
        assert choice(results_of(given, points, [0.1, 0.2, 0.3]), models, "one_se") == 2


def sizes(n, p):
    return {"n_rows": AxisSize(n, "rows"), "n_columns": AxisSize(p, "columns")}


def test_the_verdict_reports_sizes_that_are_not_identified():
    points = [{"n_columns": size} for size in (10, 100, 1000)]
    rising = results_of([[1, 1], [2, 2], [3, 3]], points, [0.01, 0.1, 1])
    text, unidentified = verdict(rising, 2, sizes(50, 1000), "held_out")
    assert "not identify n_columns: the best value is the largest tried (all 1,000 columns)" in text
    assert "n_rows" not in text
    assert unidentified == ("n_columns",)
    assert "(1,000 of 3,127 columns); try larger values" in verdict(rising, 2, sizes(50, 3127), "held_out")[0]
    inside = results_of([[1, 1], [3, 3], [2, 2]], points, [0.01, 0.1, 1])
    text, unidentified = verdict(inside, 1, sizes(50, 1000), "held_out")
    assert "identify" not in text
    assert unidentified == ()


def test_dense_data_do_not_identify_the_size():
    generator = np.random.default_rng(0)
    dense = np.outer(generator.standard_normal(80), generator.standard_normal(200)) + generator.standard_normal(
        (80, 200)
    )
    verdict = tune(SparseGraphSVD(1), dense, {"n_columns": [10, 40, 100, 200]}, random_state=0).verdict
    assert "The data do not identify n_columns" in verdict
    assert "all 200 columns" in verdict


# ---------------------------------------------------------------------------------------------------------------------
# Results, threads, names
# ---------------------------------------------------------------------------------------------------------------------


def test_the_result_does_not_depend_on_n_jobs_and_has_the_form_of_scikit_learn(cohort):
    model = SparseGraphSVD(2, n_rows=20, column_graph=cohort.network)
    grid = [
        {"n_columns": [20, 40], "column_smoothness": [0.0, 0.1]},
        {"column_penalty": [L1Ball(4.0)], "scale": [True]},
    ]
    one, many = (tune(model, cohort.expression, grid, random_state=0, n_jobs=jobs) for jobs in (1, 64))
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


def test_grid_search_of_scikit_learn_scores_held_out_samples():
    graph = toy.column_graph
    model = SparseGraphSVD(1, n_rows=40, n_columns=50, column_graph=graph, center=None)
    cv = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"n_columns": [30, 50], "column_smoothness": [0.0, 0.5]}, cv=cv).fit(toy.X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    train, test = list(cv.split(toy.X))[1]
    own = SparseGraphSVD(**model.get_params() | search.cv_results_["params"][3]).fit(toy.X[train])
    assert search.cv_results_["split1_test_score"][3] == own.score(toy.X[test])
    explained = toy.X[test] @ np.linalg.qr(own.components_.T)[0]
    assert own.score(toy.X[test]) == pytest.approx(np.sum(explained**2) / np.sum(toy.X[test] ** 2))


def test_graphs_are_matched_by_name(cohort):
    shuffled = cohort.network.names[np.random.default_rng(0).permutation(300)]
    grid = {"column_smoothness": [0.5]}
    model = SparseGraphSVD(2, n_rows=20, n_columns=30, column_graph=cohort.network.align(shuffled))
    by_name = tune(model, cohort.expression, grid, random_state=0)
    by_place = tune(
        model.set_params(column_graph=cohort.network.weights), cohort.expression.to_numpy(), grid, random_state=0
    )
    assert by_name.best_score_ == by_place.best_score_


def test_graphs_in_the_grid(cohort):
    rewired = cohort.network.rewire(0)
    model = SparseGraphSVD(2, n_rows=20, n_columns=30, column_smoothness=0.3)
    tuning = tune(
        model, cohort.expression, {"column_graph": [None, rewired, cohort.network]} | {"column_smoothness": [None]}
    )
    assert len(set(tuning.cv_results_["mean_test_score"])) == 3


def test_the_verdict_reports_the_smallest_size_tried():
    tuning = tune(SparseGraphSVD(1, n_rows=50, center=None), toy.X, {"n_columns": [70, 85, 100]}, random_state=0)
    assert "The smallest n_columns tried is chosen (70): try smaller values." in tuning.verdict


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


# ---------------------------------------------------------------------------------------------------------------------
# Interruption
# ---------------------------------------------------------------------------------------------------------------------


class Stop:
    """Interrupts after a number of fits, like Ctrl-C."""

    def __init__(self, after):
        self.after, self.calls = after, []

    def __call__(self, done, total):
        self.calls.append((done, total))
        if len(self.calls) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_tuning_is_resumed(tmp_path, n_jobs):
    kept = tmp_path / "tuning.jsonl"
    whole = tune(plain, toy.X, SIZES, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=Stop(20), n_jobs=n_jobs)
    assert len(kept.read_text().splitlines()) == 21
    with kept.open("a") as file:
        file.write("[3, 4, 0.1")  # a line cut short
    counted = Stop(None)
    again = tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=counted, n_jobs=n_jobs)
    assert counted.calls == [(done, 45) for done in range(21, 46)]
    pd.testing.assert_frame_equal(pd.DataFrame(whole.cv_results_), pd.DataFrame(again.cv_results_))
    assert whole.verdict == again.verdict
    finished = Stop(None)
    tune(plain, toy.X, SIZES, random_state=0, checkpoint=kept, progress=finished)
    assert finished.calls == []


def test_a_checkpoint_stores_its_seed(tmp_path):
    kept = tmp_path / "tuning.jsonl"
    with pytest.raises(KeyboardInterrupt):
        tune(plain, toy.X, SIZES, checkpoint=kept, progress=Stop(3))
    seed = json.loads(kept.read_text().splitlines()[0])["data"]["seed"]
    tune(plain, toy.X, SIZES, checkpoint=kept)
    lines = kept.read_text().splitlines()
    assert json.loads(lines[0])["data"]["seed"] == seed
    assert len(lines) == 46


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    kept = tmp_path / "tuning.jsonl"
    tune(plain, toy.X, {"n_rows": [50]}, checkpoint=kept, random_state=0)
    before = kept.read_bytes()
    defaults = {"model": plain, "X": toy.X, "grid": {"n_rows": [50]}, "random_state": 0, "checkpoint": kept}
    for options, message in (
        ({"X": toy.X + 1}, "X differs"),
        ({"grid": {"n_rows": [40]}}, "model and grid differs"),
        ({"model": SparseGraphSVD(2)}, "model and grid differs"),
        ({"n_folds": 4}, "n_folds: 5 then, 4 now"),
        ({"random_state": 1}, "seed differs"),
    ):
        with pytest.raises(InputError, match=message):
            tune(**defaults | options)
    assert kept.read_bytes() == before
    for content in (b"gene\tsample\n", b"no line at all", b"\xff\xfe", b"{}\n"):
        kept.write_bytes(content)
        with pytest.raises(InputError, match="checkpoint"):
            tune(plain, toy.X, {"n_rows": [50]}, checkpoint=kept)
        assert kept.read_bytes() == content
    kept.write_bytes(before + b"[1, 2\n")
    with pytest.raises(InputError, match="is damaged"):
        tune(plain, toy.X, {"n_rows": [50]}, checkpoint=kept)
    with pytest.raises(InputError, match="cannot be read"):
        tune(plain, toy.X, {"n_rows": [50]}, checkpoint=tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        tune(plain, toy.X, {"n_rows": [50]}, checkpoint=tmp_path / "nowhere" / "tuning.jsonl")


def test_random_starts_are_seeded():
    model = SparseGraphSVD(1, center=None, n_init=3)
    one, other = (tune(model, toy.X, {"n_rows": [10]}, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    assert one.best_score_ == other.best_score_


# ---------------------------------------------------------------------------------------------------------------------
# Bad input
# ---------------------------------------------------------------------------------------------------------------------

INCOMPLETE = toy.X.copy()
INCOMPLETE[0, 0] = np.nan


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_folds": 60}, "60 folds of 100 samples: choose 2 to 50"),
        ({"n_folds": 1}, "1 folds of 100 samples"),
        ({"n_folds": 0}, "n_folds=0"),
        ({"X": toy.X[:, :6]}, "5 folds of 6 features: choose 2 to 3"),
        ({"grid": {"n_rows": [10, 101]}}, r"grid point n_rows=101: n_rows=101 but X has 100 rows"),
        ({"grid": {"n_rows": [10], "n_columns": [-1]}}, "n_columns=-1"),
        ({"grid": {"column_penalty": [L1Ball(10.5)]}}, r"L1Ball\(.*column"),
        ({"grid": {"column_smoothness": [0.1]}}, "needs a column_graph"),
        ({"grid": {"graph_term": ["hub"]}}, "graph_term='hub' is not known"),
        ({"grid": {"genes": [1]}}, "'genes' is no parameter of SparseGraphSVD: choose among .*n_columns"),
        ({"grid": {}}, "grid is empty"),
        ({"grid": []}, "grid is empty"),
        ({"grid": {"n_rows": []}}, r"grid\['n_rows'\] is empty"),
        ({"grid": {"n_rows": 5}}, r"grid\['n_rows'\]=5: a list of values is needed"),
        ({"grid": {"graph_term": "normalized"}}, "a list of values is needed"),
        ({"grid": 5}, "a dict of lists is needed"),
        ({"X": INCOMPLETE}, "missing='ignore'"),
        ({"X": np.zeros((100, 100))}, "does not vary"),
        ({"rule": "two_se"}, "rule='two_se' is not known"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_input_is_found_before_anything_is_fitted(options, message, monkeypatch):
    def unexpected(*_):
        raise AssertionError("fitted")

    monkeypatch.setattr(SparseGraphSVD, "modules_of", unexpected)
    with pytest.raises(ValueError, match=message):
        tune(**{"model": plain, "X": toy.X, "grid": {"n_rows": [50]}} | options)


def test_a_constant_fold_is_named():
    X = np.random.default_rng(0).standard_normal((12, 10))
    X[:, :2] = 1.0
    flat = [
        seed
        for seed in range(200)
        if any(set(part) == {0, 1} for part in folds(10, 5, [int(np.random.default_rng(seed).integers(2**31)), 1]))
    ]
    with pytest.raises(ValueError, match=r"fold \d of 5: its held-out part does not vary: use fewer folds"):
        tune(SparseGraphSVD(1), X, {"n_rows": [5]}, random_state=flat[0])


def test_users_of_other_estimators_are_referred_to_scikit_learn():
    with pytest.raises(TypeError, match="GridSearchCV"):
        tune(GridSearchCV(plain, {}), toy.X)


def test_warnings_of_trial_fits_are_not_shown():
    """With at most two iterations no fit converges: only the last, to all of X, causes a warning."""
    with pytest.warns(ConvergenceWarning) as caught:
        tune(SparseGraphSVD(1, max_iter=2, tol=0.0, n_rows=50), toy.X, {"n_columns": [5, 50]}, random_state=0)
    assert len(caught) == 1
