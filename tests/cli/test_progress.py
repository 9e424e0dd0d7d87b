"""The progress of commands: arithmetic of the time that is left, lines, and the stages of a fit."""

import importlib
import re

import pytest

from netbic.cli.durations import Fitting
from netbic.cli.progress import Left, Lines, Progress, Schedule, Stage, in_words
from support.commands import run_successfully


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_before_anything_is_measured_the_expected_time_is_left(clock):
    schedule = Schedule({"a": Stage("first", 2.0, 10), "b": Stage("second", 5.0)}, clock)
    assert schedule.left().expected == pytest.approx(25)
    assert schedule.left().share == 0


@pytest.mark.parametrize("factor", [0.2, 1.0, 6.0])
def test_the_time_that_is_left_follows_the_machine(clock, factor):
    """At a tenth of the work the estimate is right within a factor of 1.5, whatever the speed of the machine."""
    schedule = Schedule({"a": Stage("first", 1.0, 100), "b": Stage("second", 10.0, 10, 0, 2)}, clock)
    for number in range(21):
        schedule.update("a", number, 100)
        clock.now += factor
    true = (200 - 21) * factor
    assert schedule.left().expected == pytest.approx(true, rel=0.5)
    for number in range(21, 101):
        schedule.update("a", number, 100)
        clock.now += factor
    assert schedule.left().expected == pytest.approx(100 * factor, rel=0.1)


def test_a_stage_is_extrapolated_from_its_own_steps(clock):
    """The second stage takes ten times as long as expected: this does not change what the third is expected to take."""
    stages = {"a": Stage("first", 1.0, 100), "b": Stage("second", 1.0, 100), "c": Stage("third", 1.0, 10)}
    schedule = Schedule(stages, clock)
    for key, seconds, n_steps in (("a", 1.0, 101), ("b", 10.0, 51)):
        for number in range(n_steps):
            schedule.update(key, number, 100)
            clock.now += seconds
    assert schedule.left().expected == pytest.approx(490 + 10 * 610 / 150, rel=0.1)


def test_a_stage_that_ends_early_is_not_waited_for(clock):
    schedule = Schedule({"a": Stage("first", 1.0, 29, 200), "b": Stage("second", 1.0, 10)}, clock)
    assert schedule.left().most == pytest.approx(210)
    for number in range(6):
        schedule.update("a", number, 29)
        clock.now += 1
    schedule.update("b", 0, 10)
    left = schedule.left()
    assert left.expected == pytest.approx(10, rel=0.2)
    assert left.most == left.expected


def test_a_stage_with_more_steps_than_expected(clock):
    schedule = Schedule({"a": Stage("first", 1.0, 4, 21)}, clock)
    schedule.update("a", 0, 2)
    assert schedule.left().expected == pytest.approx(4)  # two are known, four expected
    clock.now += 2
    schedule.update("a", 2, 7)
    assert schedule.left().expected == pytest.approx(5)
    assert schedule.left().most == pytest.approx(19)


def test_steps_of_an_earlier_run_take_no_time(clock):
    schedule = Schedule({"a": Stage("first", 1.0, 100)}, clock)
    schedule.update("a", 90, 100)
    assert schedule.left().expected == pytest.approx(10)
    clock.now += 10
    schedule.update("a", 92, 100)
    assert schedule.left().expected == pytest.approx(8 * 5, rel=0.4)


def test_the_share_does_not_decrease_and_is_less_than_all(clock):
    schedule, shares = Schedule({"a": Stage("first", 1.0)}, clock), []
    schedule.update("a", 0, 1)
    for _ in range(100):
        clock.now += 0.5
        shares.append(schedule.left().share)
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 0.99
    assert schedule.left().expected > 0


def test_the_start_of_processes_does_not_count_as_time_of_steps(clock):
    schedule = Schedule({"a": Stage("first", 1.0, 100, 0, 1, 4.0)}, clock)
    schedule.update("a", 0, 100)
    assert schedule.left().expected == pytest.approx(104)
    clock.now += 4
    assert schedule.left().expected == pytest.approx(100)
    for number in range(1, 21):
        clock.now += 3
        schedule.update("a", number, 100)
    assert schedule.left().expected == pytest.approx(3 * 80, rel=0.1)


def test_measured_work_needs_no_pace(clock):
    """Two processes; before a fit is reported, the time that the first one takes is all that is known."""
    stages = {"a": Stage("fits", 0.5, 20.0, startup=4.0, measured=True, first=0.05), "b": Stage("last", 1.0)}
    schedule = Schedule(stages, clock)
    schedule.update("a", 0.0, 20.0)
    assert schedule.left().expected == pytest.approx(4 + 10 + 1)
    clock.now += 4  # 4 seconds are not yet 5% of the work: there are at least 80
    assert schedule.left().expected == pytest.approx(40 + 1)
    schedule.update("a", 4.0, 104.0)  # this fit was made while processes started
    assert schedule.left().expected == pytest.approx(50 + 1)
    clock.now += 10
    assert schedule.left().expected == pytest.approx(40 + 1)
    schedule.update("a", 22.0, 62.0)  # the others are faster than expected
    assert schedule.left().expected == pytest.approx(20 + 1)


def test_what_is_expected_of_later_stages_can_be_replaced(clock):
    schedule = Schedule({"a": Stage("first", 1.0), "b": Stage("second", 100.0)}, clock)
    schedule.update("a", 0, 1)
    schedule.expect({"a": Stage("first", 50.0), "b": Stage("second", 3.0)})
    assert schedule.left().expected == pytest.approx(4)


def test_a_stage_may_begin_again(clock):
    stages = {"a": Stage("first", 0.0, startup=3.0), "b": Stage("second", 1.0, 10), "c": Stage("third", 1.0, 20)}
    schedule = Schedule(stages, clock)
    schedule.update("a", 0, 5)
    assert schedule.left().expected == pytest.approx(33)
    clock.now += 30  # tells nothing about the others
    schedule.update("b", 0, 10)
    assert schedule.left().expected == pytest.approx(30)
    clock.now += 10
    schedule.update("b", 10, 10)
    schedule.update("a", 0, 5)
    assert schedule.left().expected == pytest.approx(23)
    schedule.update("c", 0, 20)
    assert schedule.left().expected == pytest.approx(20)


def test_lines_come_every_few_per_cent_but_not_too_often(clock, capsys, monkeypatch):
    monkeypatch.setattr("netbic.cli.progress._FIRST", 2.5)  # switched off for other tests
    lines, printed = Lines(clock), []
    start = clock.now
    for share in (0.0, 0.04, 0.08, 0.2, 0.22, 0.24, 0.9, 0.99):
        clock.now += 2
        lines.show("finding modules", Left(40 * (1 - share), 40 * (1 - share), share))
        if capsys.readouterr().err:
            printed.append((clock.now - start, share))
    assert printed == [(4, 0.04), (10, 0.22), (16, 0.99)]
    clock.now += 61
    lines.show("finding modules", Left(30, 100, 0.99))
    assert capsys.readouterr().err == "finding modules: 99% done, about 30 seconds left (at most 100 seconds)\n"


def test_durations_in_words():
    assert in_words(0) == "5 seconds"
    assert in_words(3600) == "60 minutes"
    assert in_words(86400) == "24.0 hours"


def test_a_silent_command_starts_no_thread(capsys):
    with Progress({"a": Stage("first", 1.0)}, silent=True) as progress:
        progress.update("a", 1, 1)
    assert capsys.readouterr() == ("", "")


def test_stages_follow_the_size_of_the_data():
    small, large = Fitting(100, 1000, 5), Fitting(1000, 1000, 5)
    for part, given in (("choices", (True,)), ("tuning", (100, 0.1)), ("modules", ())):
        stages = [getattr(size, part)(*given) for size in (small, large)]
        assert list(stages[0]) == list(stages[1])
        seconds = [{key: stage.seconds * stage.steps for key, stage in each.items()} for each in stages]
        assert all(seconds[1][key] == pytest.approx(10 * seconds[0][key]) for key in stages[0])
    assert "graph" not in small.choices(has_graph=False)
    assert list(small.results(0, report=False)) == ["tables"]


@pytest.fixture
def at_once(monkeypatch):
    """Lines without waiting for seconds."""
    module = importlib.import_module("netbic.cli.progress")
    for name in ("_FIRST", "_GAP", "_SHARE"):
        monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(module, "_TICK", 0.002)


LINE = re.compile(r"(.+): \d+% done, about [\d.]+ (seconds|minutes|hours) left( \(at most [\d.]+ \w+\))?")
STAGES = [
    *("choosing the sizes", "choosing the number of modules", "smoothing over the network", "testing the network"),
    *("finding modules", "judging modules in pairs of halves", "writing tables", "writing the report"),
]


def test_lines_name_the_stages_of_a_fit(at_once, cohort, tmp_path):
    arguments = ["--modules", 2, "--auto", "--verdict", "--out", tmp_path / "out"]
    done = run_successfully("fit", cohort / "expression.tsv", "--graph", cohort / "edges.tsv", *arguments)
    lines = [found for line in done.stderr.splitlines() if (found := LINE.fullmatch(line))]
    seen = list(dict.fromkeys(found[1] for found in lines))
    assert [stage for stage in STAGES if stage in seen] == [stage for stage in seen if stage != "starting"]
    assert {"choosing the number of modules", "judging modules in pairs of halves", "writing the report"} <= {*seen}
    assert not LINE.search(done.stdout)


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_nothing_is_shown_to_programs(at_once, cohort, tmp_path, option):
    done = run_successfully("fit", cohort / "expression.tsv", "--modules", 2, option, "--out", tmp_path / "out")
    assert not done.stderr


def test_tuning_reports_its_fits(at_once, cohort, tmp_path):
    arguments = ["--modules", 1, "--genes", "5,8", "--samples", 6, "--folds", 3, "--out", tmp_path / "out"]
    done = run_successfully("tune", cohort / "expression.tsv", *arguments)
    assert "fitting settings to folds: " in done.stderr
