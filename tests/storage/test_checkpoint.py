"""Checkpoints: entries are saved one by one, damage at the end is dropped, another task is refused."""

import json

import pytest

import netbic
from netbic import InputError
from netbic.storage import Checkpoint, CheckpointMismatch, Task, read_header

TASK = Task("tuning", {"folds": 3}, {"X": "ab12"})


def entries(path, task=TASK, **options):
    return Checkpoint(path, task, int, **options).entries


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "squares.checkpoint"
    checkpoint = Checkpoint(path, TASK, int)
    for number in (1, 4, 9):
        checkpoint.append(number)
    return path


def test_entries_are_read_back_in_order(path):
    assert entries(path) == [1, 4, 9]
    Checkpoint(path, TASK, int).append(16)
    assert entries(path) == [1, 4, 9, 16]
    assert entries(None) == []


@pytest.mark.parametrize("strict", [True, False])
def test_a_line_cut_short_is_dropped(path, strict):
    whole = path.read_bytes()
    for size in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:size])
        expected = [1, 4, 9][: whole[:size].count(b"\n") - 1]
        assert entries(path, strict=strict) == expected
        Checkpoint(path, TASK, int, strict=strict).append(25)
        assert entries(path, strict=strict) == [*expected, 25]


def test_a_damaged_line_is_an_error_or_ends_the_entries(path):
    path.write_bytes(path.read_bytes().replace(b"\n4\n", b"\n[4\n"))
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"is damaged \(a line reads '\[4'\): delete it"):
        entries(path)
    assert path.read_bytes() == before
    assert entries(path, strict=False) == [1]
    assert entries(path) == [1]


def test_another_task_is_refused_and_what_differs_is_named(path):
    before = path.read_bytes()
    other = Task("tuning", {"folds": 4, "seed": 1}, {"X": "cd34"})
    with pytest.raises(CheckpointMismatch) as caught:
        entries(path, other)
    assert str(caught.value).endswith(
        "was started with other data or settings (X differs; folds: 3 then, 4 now; seed: None then, 1 now): "
        "repeat those, name another file, or delete this one"
    )
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="is a checkpoint of a tuning, not of a fit: name another file"):
        entries(path, Task("fit", {"folds": 3}, {"X": "ab12"}))
    assert path.read_bytes() == before
    assert entries(path, other, strict=False) == []
    assert read_header(path, "tuning")["settings"] == {"folds": 4, "seed": 1}


def test_a_checkpoint_of_another_version_is_another_task(path, monkeypatch):
    monkeypatch.setattr("netbic.storage.checkpoint.__version__", "99.0")
    with pytest.raises(CheckpointMismatch, match=r"netbic: .* then, 99\.0 now"):
        entries(path)


def test_a_tuning_of_the_earlier_format_is_refused(tmp_path):
    path = tmp_path / "tuning.jsonl"
    task = {"netbic": netbic.__version__, "criterion": "held_out", "n_folds": 5, "seed": 3, "X": "ab"}
    path.write_text(f"{json.dumps(task)}\n[0, 0, 0.5, 1, 0.2, 0.2]\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"in a format that netbic .* cannot resume: delete it to start again"):
        netbic.selection.tune(netbic.SparseGraphSVD(1), [[1.0, 2.0], [3.0, 4.0]] * 20, checkpoint=path)
    assert path.read_bytes() == before


def test_nothing_is_written_through_a_missing_file(path):
    checkpoint = Checkpoint(path, TASK, int)
    path.unlink()
    with pytest.raises(OSError, match=r"squares.checkpoint cannot be written"):
        checkpoint.append(16)
    assert not path.exists()
