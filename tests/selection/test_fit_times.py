"""The expected time of fits that are not made yet."""

import numpy as np
import pytest

import netbic
from netbic.selection import largest_share, tune
from netbic.selection.fit_times import FitTimes, work_of
from netbic.selection.fits import LocalExecutor


def path(size):
    links = np.diag(np.ones(size - 1), 1)
    return netbic.Graph(links + links.T)


def test_times_that_are_a_line_of_the_work_are_found_from_two_fits():
    works = np.array([0.02, 0.1, 0.3, 1.0, 2.0])
    true = 0.5 + 3 * works
    times = FitTimes(works)
    for point in (4, 0):
        times.add(point, true[point])
    assert times.expected(range(5)) == pytest.approx(true.sum())
    assert times.spent == pytest.approx(true[[4, 0]].sum())


def test_a_setting_that_was_fitted_takes_its_mean_time_again():
    times = FitTimes([0.1, 1.0])
    times.add(0, 5.0)
    times.add(0, 7.0)
    times.add(1, 0.5)  # the larger one is faster: no negative times follow
    assert times.expected([0, 0, 1]) == pytest.approx(12.5)


@pytest.mark.parametrize("measured", [[(0, 9.0)], [(0, 9.0), (2, 1.0)], [(1, 0.0), (2, 1e-9)]])
def test_expected_times_are_never_negative(measured):
    times = FitTimes([0.1, 0.5, 2.0, 4.0])
    for point, seconds in measured:
        times.add(point, seconds)
    assert np.isfinite(times._by_point()).all()
    assert (times._by_point() >= 0).all()


def test_work_depends_on_sizes_and_the_graph():
    model = netbic.SparseGraphSVD(1, n_rows=20, n_columns=25, column_graph=path(100))
    assert work_of(model.set_params(column_smoothness=0.0), (80, 100)) == pytest.approx(0.25 * 0.25)
    assert work_of(model.set_params(column_smoothness=0.5), (80, 100)) == pytest.approx(2 * 0.25 * 0.25)
    assert largest_share(model, {"n_columns": [25, 75]}, (80, 100)) == pytest.approx(0.75)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_slowest_and_the_fastest_setting_come_first(n_jobs, monkeypatch):
    monkeypatch.setattr(LocalExecutor, "n_parallel", property(lambda self: self.n_jobs))
    X, reports = np.random.default_rng(0).standard_normal((60, 40)), []
    grid = {"n_columns": [10, 40, 4, 20]}
    found = tune(
        netbic.SparseGraphSVD(1), X, grid, random_state=0, n_jobs=n_jobs, durations=lambda *both: reports.append(both)
    )
    spent, left = np.array(reports).T
    assert len(reports) == 20
    assert (np.diff(spent) > 0).all()
    assert left[-1] == 0
    assert (left[:-1] > 0).all()
    assert found.best_params_["n_columns"] in grid["n_columns"]
    assert [result["n_columns"] for result in found.cv_results_["params"]] == grid["n_columns"]
