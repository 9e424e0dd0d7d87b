"""Fits are reported as they are finished, and fits whose results were kept are not repeated."""

import warnings
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pytest
from netbic.selection.finished import as_text, from_text, tracked

import netbic
from netbic.errors import InputError
from netbic.selection import choose_settings, graph_value, n_modules, stability, verdicts

STUDY = netbic.simulate.cohort(100, 200, n_modules=2, strength=1.5, random_state=0)


class Pair(NamedTuple):
    scores: np.ndarray
    overlap: float


@dataclass
class Counts:
    counts: np.ndarray
    n: int


@pytest.mark.parametrize("kind", [Pair, Counts])
def test_results_are_kept_without_loss(kind):
    values = np.random.default_rng(0).standard_normal((3, 4)) / 3
    found = from_text(kind, as_text(kind(values, 7)))
    assert type(found) is kind
    names = Pair._fields if kind is Pair else [field.name for field in fields(kind)]
    np.testing.assert_array_equal(getattr(found, names[0]), values)
    assert getattr(found, names[1]) == 7
    assert from_text(float, as_text(0.1)) == 0.1


def _product(data: float, job: int) -> float:
    return data * job


def _failing(data: float, job: int) -> float:
    if job == 3:
        raise KeyboardInterrupt
    return data * job


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_only_missing_fits_are_made_and_reported(n_jobs):
    finished, calls = {}, []
    with pytest.raises(KeyboardInterrupt):
        list(tracked(STUDY.expression, n_jobs, "products", None, finished).map(_failing, 2.0, range(6)))
    assert sorted(finished) == [f"products {k}" for k in range(len(finished))]
    n_kept = len(finished)
    executor = tracked(STUDY.expression, n_jobs, "products", lambda *done: calls.append(done), finished)
    executor.left = 10
    assert list(executor.map(_product, 2.0, range(6))) == [0, 2, 4, 6, 8, 10]
    n_new = 6 - n_kept
    assert calls == [(k, n_new + 10) for k in range(1, n_new + 1)]
    executor.finish("other data", 0)
    assert list(executor.map(_product, 3.0, range(2))) == [0, 3]  # the same jobs of another part
    assert calls[-3:] == [(n_new + 1, n_new + 1), (n_new + 2, n_new + 3), (n_new + 3, n_new + 3)]


def test_fits_that_are_not_needed_end_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = tracked(STUDY.expression, 2, "products").map(_product, 2.0, range(50))
        assert next(results) == 0
        results.close()


class _Stop(dict):
    """Interrupts when a number of results are kept."""

    def __init__(self, last):
        super().__init__()
        self.last = last

    def __setitem__(self, name, text):
        super().__setitem__(name, text)
        if len(self) == self.last:
            raise KeyboardInterrupt


def _fitted():
    return netbic.SparseGraphSVD(2, n_columns=20, column_graph=STUDY.network, random_state=0).fit(STUDY.expression)


COMPUTATIONS = {
    "n_modules": lambda **more: n_modules(_fitted(), STUDY.expression, most=3, random_state=0, **more).table,
    "graph_value": lambda **more: (
        graph_value(
            _fitted(), STUDY.expression, n_rewired=3, n_repeats=1, random_state=0, early_stopping=False, **more
        ).table
    ),
    "verdicts": lambda **more: verdicts(_fitted(), STUDY.expression, n_pairs=4, random_state=0, **more).table,
    "choose_settings": lambda **more: choose_settings(
        _fitted(), STUDY.expression, most=2, n_rewired=3, random_state=0, **more
    ),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_an_interrupted_computation_gives_the_same_result(name):
    whole, finished = COMPUTATIONS[name](), _Stop(2)
    with pytest.raises(KeyboardInterrupt):
        COMPUTATIONS[name](finished=finished, n_jobs=2)
    assert len(finished) == 2
    kept, calls = dict(finished), []
    again = COMPUTATIONS[name](finished=finished, progress=lambda *done: calls.append(done))
    assert repr(again) == repr(whole) if name == "choose_settings" else again.equals(whole)
    assert calls
    assert {key: finished[key] for key in kept} == kept
    n_kept = len(finished)
    COMPUTATIONS[name](finished=finished)
    assert len(finished) == n_kept  # nothing was computed again


def test_the_stages_of_a_choice_are_reported_in_order():
    calls = []
    choose_settings(
        _fitted(), STUDY.expression, most=2, n_rewired=3, random_state=0, progress=lambda *c: calls.append(c)
    )
    assert list(dict.fromkeys(call[0] for call in calls)) == ["number", "sizes", "diffusion", "graph"]
    assert all(done <= total for _, done, total in calls)
    for stage in ("number", "graph"):
        done = [number for name, number, _ in calls if name == stage]
        assert done == sorted({*done})


class _Interrupt:
    """Interrupts after a number of reports."""

    def __init__(self, after=0):
        self.after, self.calls = after, []

    def __call__(self, done, total):
        self.calls.append((done, total))
        if len(self.calls) == self.after:
            raise KeyboardInterrupt


def _equal(some, other):
    for axis in ("columns", "rows"):
        one, two = getattr(some, axis), getattr(other, axis)
        assert one.frequency.equals(two.frequency)
        assert one.rewired.frequency.equals(two.rewired.frequency)
    assert some.table.equals(other.table)


@pytest.mark.parametrize("after", [2, 7, 11])
def test_stability_continues_from_its_checkpoint(tmp_path, after):
    model = netbic.SparseGraphSVD(2, n_rows=30, n_columns=20, column_graph=STUDY.network, random_state=0)
    options = {"n_pairs": 4, "n_rewired": 2, "random_state": 5}
    whole, path, first = stability(model, STUDY.expression, **options), tmp_path / "pairs", _Interrupt(after)
    with pytest.raises(KeyboardInterrupt):
        stability(model, STUDY.expression, **options, checkpoint=path, progress=first, n_jobs=2)
    assert first.calls == [(k, 12) for k in range(1, after + 1)]
    again = _Interrupt()
    _equal(stability(model, STUDY.expression, **options, checkpoint=path, progress=again), whole)
    assert [done for done, _ in again.calls] == list(range(1, 13 - after))
    more = _Interrupt()
    larger = stability(model, STUDY.expression, n_pairs=5, n_rewired=2, checkpoint=path, progress=more)  # and its seed
    assert len(more.calls) == 2
    _equal(larger, stability(model, STUDY.expression, n_pairs=5, n_rewired=2, random_state=5))


def test_stability_refuses_the_checkpoint_of_other_data(tmp_path):
    model = netbic.SparseGraphSVD(2, n_columns=20, random_state=0)
    stability(model, STUDY.expression, n_pairs=1, checkpoint=tmp_path / "pairs", random_state=0)
    with pytest.raises(InputError, match="was started with other data or settings"):
        stability(model, STUDY.expression * 2, n_pairs=1, checkpoint=tmp_path / "pairs", random_state=0)
    with pytest.raises(InputError, match="other data or settings"):
        stability(model.set_params(n_columns=21), STUDY.expression, checkpoint=tmp_path / "pairs", random_state=0)
