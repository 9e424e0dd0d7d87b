"""Pieces of a task: kept one by one, read again, refused for another task."""

import pytest

from netbic import InputError
from netbic.storage import CheckpointMismatch, Pieces, Task, read_task
from support.output_folders import contents

TASK = Task("tuning", {"folds": 3}, {"X": "ab12"})


@pytest.fixture
def folder(tmp_path):
    pieces = Pieces(tmp_path / "pieces", TASK)
    for name in ("1-0", "fold 2/3", "1-1"):
        pieces[name] = name.encode()
    return tmp_path / "pieces"


def test_pieces_are_read_again_without_half_written_ones(folder):
    (folder / ".netbic-unfinished-1-2").write_bytes(b"half")
    assert dict(Pieces(folder, TASK)) == {name: name.encode() for name in ("1-0", "fold 2/3", "1-1")}
    Pieces(folder, TASK).remove()
    assert not folder.exists()


def test_another_task_is_refused_with_what_differs_and_nothing_changes(folder, monkeypatch):
    before = contents(folder)
    for task, said in (
        (Task("tuning", {"folds": 5}, {"X": "ab12"}), "folds: 3 then, 5 now"),
        (Task("tuning", {"folds": 3}, {"X": "cd34"}), "X differs"),
    ):
        with pytest.raises(CheckpointMismatch, match=rf"other data or settings \({said}\): repeat those"):
            Pieces(folder, task)
    with pytest.raises(InputError, match="pieces of a tuning, not of a fit"):
        read_task(folder, "fit")
    monkeypatch.setattr("netbic.storage.runs.__version__", "99.0")
    with pytest.raises(CheckpointMismatch, match=r"netbic: .* then, 99.0 now"):
        Pieces(folder, TASK)
    assert contents(folder) == before


def test_other_files_and_folders_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_bytes(b"mine")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "task.json").write_bytes(b"{")
    for name in ("file", "folder", "damaged"):
        with pytest.raises(InputError, match="is not a folder of netbic with pieces of a tuning: name another folder"):
            Pieces(tmp_path / name, TASK)
    with pytest.raises(InputError, match="name a folder inside one that exists"):
        Pieces(tmp_path / "nowhere" / "pieces", TASK)
