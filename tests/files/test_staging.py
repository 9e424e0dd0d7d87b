"""Results are written to scratch folders and moved to their places together."""

import signal
import subprocess
import sys
import threading
import time

import pytest

import netbic
from netbic import SparseGraphSVD
from netbic.files import WriteError, add_files, atomic, remove_stale_scratch, scratch_folder
from support.output_folders import TOY, FullDisk, contents


def test_a_scratch_folder_is_removed_only_when_its_process_has_ended(tmp_path):
    with scratch_folder(tmp_path, "out.zarr") as scratch:
        remove_stale_scratch(tmp_path, "out.zarr")
        assert scratch.is_dir()
    assert not scratch.exists()
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVE, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == -signal.SIGKILL
    left = sorted(tmp_path.iterdir())
    assert [path.is_dir() for path in left] == [False, True]
    (tmp_path / ".unfinished-abcd1234").mkdir()
    (tmp_path / ".unfinished-abcd1234" / "thesis.txt").write_text("mine")
    remove_stale_scratch(tmp_path, "another.zarr")
    assert set(left) <= set(tmp_path.iterdir())
    remove_stale_scratch(tmp_path, "out.zarr")
    assert [path.name for path in tmp_path.iterdir()] == [".unfinished-abcd1234"]


_LEAVE = """
import os, signal, sys
from pathlib import Path
from netbic.files import scratch_folder
with scratch_folder(Path(sys.argv[1]), "out.zarr") as scratch:
    (scratch / "store").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_adding_files_is_all_or_nothing(tmp_path, monkeypatch):
    netbic.save(SparseGraphSVD(1, n_columns=20).fit(TOY.X), tmp_path)
    before = contents(tmp_path)
    monkeypatch.setattr(atomic.os, "fsync", FullDisk(1))
    with pytest.raises(WriteError):
        add_files(tmp_path, {"edges.tsv": b"one", "gene_sets.tsv": b"two"})
    assert contents(tmp_path) == before


def test_a_folder_that_a_thread_makes_again_after_an_interruption_is_removed(tmp_path):
    """As threads of Zarr do, which are not told of an interruption."""
    late = []

    def write_again(scratch):
        while scratch.exists():
            time.sleep(0.001)
        (scratch / "store").mkdir(parents=True)

    def interrupted():
        with scratch_folder(tmp_path, "out.zarr") as scratch:
            late.append(threading.Thread(target=write_again, args=[scratch]))
            late[0].start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    late[0].join()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_temporary_file_is_gone_is_removed_by_the_next_command(tmp_path):
    with scratch_folder(tmp_path, "out.zarr") as scratch:
        pass
    scratch.mkdir()
    with scratch_folder(tmp_path, "other.zarr"):
        assert scratch.exists()
    with scratch_folder(tmp_path, "out.zarr") as mine:
        assert list(tmp_path.glob(".netbic*.files")) == [mine]
