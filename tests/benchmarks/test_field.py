"""The comparison with other methods: its measures, its runner and its tables."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.field import data, fits, metrics, page, ranks
from benchmarks.field.__main__ import main
from benchmarks.field.tasks import Fitted, tasks
from support.shared_data import shared_folder

needs_data = pytest.mark.skipif(shared_folder("NETBIC_DATA") is None, reason="needs the folder in NETBIC_DATA")


def random_members(members, rng):
    return np.array([rng.permutation(own) for own in members])


def planted_figure(scenario, change):
    """The figure of the planted members after a change."""
    task = tasks()["planted"]
    (asked,) = task.problems(small=False)[f"{scenario}/0"]
    truth = data.load(asked.instance).truth
    members = change(truth)
    return task.figures({asked: Fitted(members.T.astype(float), members)}, data.load)["Jaccard index"]


@pytest.mark.parametrize("scenario", ["disjoint", "thirty_samples", "four_hundred_samples_overlapping"])
def test_planted_members_score_one_and_random_members_nearly_zero(scenario):
    rng = np.random.default_rng(0)
    assert planted_figure(scenario, lambda truth: truth) == pytest.approx(1.0)
    assert planted_figure(scenario, lambda truth: rng.permutation(truth)) == pytest.approx(1.0)
    assert planted_figure(scenario, lambda truth: truth[:0]) == 0.0
    assert planted_figure(scenario, lambda truth: random_members(truth, rng)) < 0.15


def test_additional_modules_do_not_change_the_figure_of_planted_ones():
    rng = np.random.default_rng(0)
    assert planted_figure("disjoint", lambda truth: np.vstack([random_members(truth, rng), truth])) == pytest.approx(1)


def test_f_of_sets_falls_with_missing_and_with_additional_sets():
    rng = np.random.default_rng(0)
    truth = rng.random((20, 500)) < 0.05
    assert metrics.f_of_sets(truth, truth) == pytest.approx(1.0)
    assert metrics.f_of_sets(truth[:10], truth) < 0.75
    assert metrics.f_of_sets(np.vstack([truth, random_members(truth, rng)]), truth) < 0.75
    assert metrics.f_of_sets(np.zeros((3, 500), bool), truth) == 0.0


def brute_force_concordance(risk, time, event):
    right = pairs = 0.0
    for i in range(len(risk)):
        for j in range(len(risk)):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                right += (risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j])
    return right / pairs


@pytest.mark.parametrize("seed", range(5))
def test_concordance_is_that_of_a_loop_over_pairs(seed):
    rng = np.random.default_rng(seed)
    risk, time, event = rng.integers(0, 8, 40) * 1.0, rng.integers(1, 12, 40) * 1.0, rng.random(40) < 0.6
    assert metrics.concordance(risk, time, event) == pytest.approx(brute_force_concordance(risk, time, event))
    assert metrics.concordance(-time, time, np.ones(40, bool)) == pytest.approx(1.0)


def log_partial_likelihood(beta, x, time, event):
    """Breslow's, as a loop."""
    return sum(beta * x[i] - np.log(np.exp(beta * x[time >= time[i]]).sum()) for i in np.flatnonzero(event))


@pytest.mark.parametrize("seed", range(5))
def test_the_score_test_is_made_of_derivatives_of_the_partial_likelihood(seed):
    rng = np.random.default_rng(seed)
    x, time, event = rng.standard_normal(50), rng.integers(1, 20, 50) * 1.0, rng.random(50) < 0.7
    z, step = (x - x.mean()) / x.std(), 1e-3
    low, middle, high = (log_partial_likelihood(beta, z, time, event) for beta in (-step, 0.0, step))
    expected = (high - low) / (2 * step) / np.sqrt(-(high - 2 * middle + low) / step**2)
    assert metrics.cox_score_test(x, time, event) == pytest.approx(expected, rel=1e-4)


def test_auc_does_not_depend_on_the_direction_of_a_score():
    positive = np.array([True, True, False, False, False])
    score = np.array([5.0, 2.0, 3.0, 1.0, 0.0])
    assert metrics.auc(score, positive) == metrics.auc(-score, positive) == pytest.approx(5 / 6)
    assert metrics.auc(np.zeros(5), positive) == 0.5


def test_copies_of_a_module_are_reproduced_once():
    scores = np.random.default_rng(0).standard_normal((100, 3))
    copies = np.hstack([scores, scores + 1e-3, np.ones((100, 2))])
    assert metrics.n_reproduced(scores, scores) == metrics.n_reproduced(copies, copies) == 3
    assert metrics.n_reproduced(scores, np.random.default_rng(1).standard_normal((100, 3))) == 0
    assert metrics.n_reproduced(scores[:, :0], scores) == 0


def test_the_leading_components_explain_most():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((60, 4))
    X = scores @ (np.array([1.0, 3.0, 0.1, 2.0])[:, None] * rng.standard_normal((4, 200)))
    assert metrics.leading(X, scores * [1, 1, 1000, 1], 2).tolist() == [1, 3]


@needs_data
def test_truth_as_a_method_has_the_best_figure_on_real_data():
    task = tasks()["regulons"]
    (asked,) = task.problems(small=True)["bsubtilis/0"]
    truth = data.load(asked.instance).truth
    assert task.figures({asked: Fitted(truth.T * 1.0, truth)}, data.load)["F"] == pytest.approx(1.0)
    task = tasks()["labels"]
    (asked,) = task.problems(small=True)["gastric/0"]
    known = data.load(asked.instance).targets.fillna(0.0).to_numpy()
    nothing = np.zeros((data.load(asked.instance).X.shape[1], known.shape[1]))
    assert task.figures({asked: Fitted(nothing, nothing.T > 0, known)}, data.load)["AUC"] == pytest.approx(1.0)
    assert task.figures({asked: Fitted(nothing, nothing.T > 0)}, data.load)["AUC"] == pytest.approx(0.5)


@needs_data
def test_halves_and_studies_share_no_samples():
    one, two = (data.load(f"halves/gastric/3/{part}").X for part in "ab")
    assert len(one) + len(two) == 109
    assert not set(one.index) & set(two.index)
    rnaseq, arrays = (data.load(f"studies/brca/0/{study}").X for study in ("rnaseq", "arrays"))
    assert (rnaseq.columns == arrays.columns).all()
    assert not set(rnaseq.index.str[:12]) & set(arrays.index)


@needs_data
def test_a_score_that_is_the_time_of_death_is_chosen_and_predicts():
    task, rng = tasks()["survival"], np.random.default_rng(0)
    asked = task.problems(small=True)["gastric/0"]
    X = data.expression("gastric")
    risk = -np.log(data.survival("gastric")["time"]).reindex(X.index).to_numpy()
    weights = np.linalg.lstsq((X - X.mean()).to_numpy(), np.column_stack([rng.standard_normal(109), risk]))[0]
    found = {one: Fitted(weights, weights.T > 0) for one in asked}
    assert task.figures(found, data.load)["C"] > 0.95


def values_of(differences, n_sets=6, n_seeds=4):
    """Figures of a first method, which are random, and of others that differ from it by a constant or by noise."""
    rng = np.random.default_rng(0)
    first = rng.random(n_sets * n_seeds)
    units = [f"{name}/{seed}" for name in "abcdef"[:n_sets] for seed in range(n_seeds)]
    return pd.DataFrame({"first": first} | {name: first + by(rng, first) for name, by in differences.items()}, units)


def test_a_constant_difference_is_no_noise_and_a_random_one_is():
    random = np.random.default_rng(1).standard_normal(24)
    others = {"worse": lambda rng, own: -0.02, "alike": lambda rng, own: 0.1 * (random - random.mean()) - 0.005}
    table = ranks.compared(values_of(others))
    assert table.loc["worse", ["low", "high"]].tolist() == pytest.approx([-0.02, -0.02])
    assert not table.loc["worse", "noise"]
    assert table.loc["alike", "noise"]


def test_seeds_of_one_data_set_are_not_counted_as_data_sets():
    values = values_of({"other": lambda rng, own: -np.repeat(rng.standard_normal(6) + 0.5, 4)})
    by_sets, by_units = (ranks.interval(values["other"] - values["first"], ranks.draws(units))
                         for units in (values.index, pd.Index([f"{number}/0" for number in range(24)])))  # fmt: skip
    assert by_sets[1] - by_sets[0] > 1.4 * (by_units[1] - by_units[0])


def test_unfinished_units_are_the_worst_and_unmeant_ones_are_left_out():
    columns = {"unit": ["a/0"] * 3 + ["b/0"] * 3, "method": ["one", "two", "three"] * 2, "figure": "AUC"}
    columns |= {"value": [0.4, 0.3, np.nan, 0.6, np.nan, np.nan]}
    columns |= {"status": ["done", "done", "crashed", "done", "timed out", "not meant"]}
    table = pd.DataFrame(columns)
    values = ranks.main_values(table, tasks()["labels"])
    assert values.loc["a/0"].to_dict() == {"one": 0.4, "two": 0.3, "three": 0.3}
    assert values.loc["b/0", ["one", "two"]].tolist() == [0.6, 0.3]
    assert np.isnan(values.loc["b/0", "three"])
    assert page.task_table(tasks()["labels"], table).loc["three", "units"] == "0, 1 crashed, 1 not meant"


def test_a_method_is_known_without_its_packages_and_by_its_code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text('"""Text."""\nimport nowhere\nNAME = "Mine"\nENVIRONMENT = "other"\n')
    known = fits.method(path)
    assert (known.key, known.name, known.environment, known.docstring) == ("mine", "Mine", "other", "Text.")
    path.write_text('"""Another text."""\nimport nowhere  # comment\n\nNAME = "Mine"\nENVIRONMENT = "other"\n')
    assert fits.method(path).digest == known.digest
    path.write_text(path.read_text() + "K = 1\n")
    assert fits.method(path).digest != known.digest


# Runs

METHOD = """
import sys, time
from pathlib import Path
import numpy as np
from problem import Found
NAME, ENVIRONMENT = "{name}", "netbic"
def run(problem):
    {body}
"""
BODIES = {
    "crashing": "raise ValueError('no such thing')",
    "sleeping": "time.sleep(60)",
    "unmeant": "raise NotImplementedError('it is meant for counts')",
    "greedy": "np.ones(int(5e8))",
    "infinite": "return Found(np.full((problem.X.shape[1], 1), np.inf), np.ones((1, problem.X.shape[1]), bool))",
    "empty": "return Found(np.zeros((problem.X.shape[1], 0)), np.zeros((0, problem.X.shape[1]), bool))",
}


@pytest.fixture
def method_files(tmp_path):
    def write(*names):
        for name in names:
            (tmp_path / f"{name}.py").write_text(METHOD.format(name=name, body=BODIES[name]))
        return [str(tmp_path / f"{name}.py") for name in names]

    return write


def table_of(folder, name):
    return pd.read_csv(folder / "small" / f"{name}.tsv", sep="\t")


@pytest.mark.nightly
def test_failures_are_recorded_and_not_tried_again(method_files, tmp_path, capsys):
    names = list(BODIES)
    options = ["--small", "--tasks", "speed", "--folder", str(tmp_path / "fits"), "--methods", *method_files(*names)]
    main(["fit", *options, "--seconds", "8", "--gigabytes", "2"])
    main(["figures", *options])
    found = table_of(tmp_path / "fits", "fits").set_index("method")
    expected = {"crashing": "crashed", "sleeping": "timed out", "unmeant": "not meant", "greedy": "crashed",
                "infinite": "crashed", "empty": "done"}  # fmt: skip
    assert found["status"].to_dict() == expected
    assert found.loc["crashing", "message"] == "ValueError: no such thing"
    assert "allocate" in found.loc["greedy", "message"]
    assert "finite" in found.loc["infinite", "message"]
    assert found.loc["sleeping", "wall"] < 20
    capsys.readouterr()
    main(["fit", *options])
    assert capsys.readouterr().out.endswith("0 fits to run\n")
    main(["fit", *options, "--again", "--seconds", "8", "--gigabytes", "2"])
    assert "6 fits to run\n" in capsys.readouterr().out


def number_to_run(lines):
    return next(int(line.split()[0]) for line in lines if line.endswith(("fits to run", "fits to run\n")))


@pytest.mark.nightly
def test_work_goes_on_after_a_kill(method_files, tmp_path):
    (path,) = method_files("empty")
    options = ["--small", "--tasks", "noise", "planted", "--folder", str(tmp_path / "fits"), "--methods", path]
    command = [sys.executable, "-m", "benchmarks.field", "fit", *options]
    running = subprocess.Popen(command, cwd=fits.ROOT, stdout=subprocess.PIPE, text=True)
    number = number_to_run(iter(running.stdout.readline, ""))
    for _ in range(2):
        running.stdout.readline()
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
    time.sleep(1)  # what it had started ends
    records = list((tmp_path / "fits").rglob("*.json"))
    assert all(json.loads(path.read_text())["status"] == "done" for path in records)
    again = subprocess.run(command, cwd=fits.ROOT, capture_output=True, text=True, check=True).stdout
    assert 2 <= len(records) < number
    assert number_to_run(again.splitlines()) == number - len(records)
    assert len(list((tmp_path / "fits").rglob("*.json"))) == number


@pytest.mark.nightly
def test_what_has_figures_is_not_run_again_and_rows_of_others_stay(method_files, tmp_path, capsys):
    empty, infinite = method_files("empty", "infinite")
    folder = tmp_path / "fits"
    options = ["--small", "--folder", str(folder), "--tasks"]
    main(["fit", *options, "speed", "planted", "--methods", empty])
    main(["figures", *options, "speed", "planted", "--methods", empty])
    before = table_of(folder, "figures"), table_of(folder, "fits")
    shutil.rmtree(folder / "small" / "empty")
    main(["fit", *options, "speed", "--methods", empty, infinite])
    main(["figures", *options, "speed", "--methods", empty, infinite])
    assert "\n1 fits to run\n" in capsys.readouterr().out
    for table, earlier in zip((table_of(folder, "figures"), table_of(folder, "fits")), before, strict=True):
        kept = table[table["method"] == "empty"].sort_values(earlier.columns.tolist(), ignore_index=True)
        expected = earlier.sort_values(earlier.columns.tolist(), ignore_index=True)
        pd.testing.assert_frame_equal(kept, expected, check_dtype=False)
    Path(empty).write_text(Path(empty).read_text() + "\nCHANGED = True\n")
    main(["fit", *options, "speed", "--methods", empty])
    assert "\n1 fits to run\n" in capsys.readouterr().out


@pytest.mark.nightly
def test_the_small_benchmark_has_figures_of_all_tasks(tmp_path):
    options = ["--small", "--folder", str(tmp_path), "--methods", "pca", "ica"]
    main(["fit", *options])
    main(["figures", *options])
    table = table_of(tmp_path, "figures")
    assert (table["status"] == "done").all()
    known = set(table["task"]) if data.available() else {"planted", "noise", "speed"}
    assert known == set(tasks() if data.available() else known)
    assert table["value"].notna().all()
    # Truth given as a method has a Jaccard index of 1 (above).
    planted = table[table["figure"] == "Jaccard index"].groupby("method")["value"].mean()
    assert (planted < 1).all()
    own = {name: table[table["task"] == name] for name in known}
    assert all(len(page.task_table(tasks()[name], own[name])) == 2 for name in known)
    page.picture({name: tasks()[name] for name in known}, table).savefig(tmp_path / "picture.png")
    text = page.text(tasks(known), table, table_of(tmp_path, "fits"), fits.methods(["pca", "ica"]))
    assert all(f"## {name.capitalize()}" in text for name in known)
